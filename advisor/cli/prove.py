"""``advisor prove``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.change import Set
from advisor.cli.complete import proven_workloads, requestable_words
from advisor.cli.measuring import (
    AllowRawWrites,
    Budget,
    ByteBudget,
    ConfirmSerial,
    FileSize,
    Places,
    RawDevice,
    Seconds,
    TargetMemory,
    Volume,
    exit_code,
    print_result,
    repeated_options,
    say_where_kept,
)
from advisor.cli.output import parse_settings, say
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json

if TYPE_CHECKING:
    from advisor.proof.records import Proof


def prove(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[PROFILE…]",
            help="One profile, by name or file, or values. Not with --self-test or --arms.",
            autocompletion=requestable_words,
        ),
    ] = None,
    arms: Annotated[
        str | None,
        Option("--arms", metavar="none,P,Q…", help="Compare several profiles with none, in the same blocks."),
    ] = None,
    target: Annotated[
        Path | None, Option("--target", metavar="DIR", help="Let fio make its scratch file here.")
    ] = None,
    raw_device: RawDevice = None,
    confirm_serial: ConfirmSerial = None,
    allow_raw_writes: AllowRawWrites = False,
    peer_ssh: Annotated[
        str | None,
        Option("--peer-ssh", metavar="[USER@]HOST", help="Use a second host, over ssh, for the workloads net.*."),
    ] = None,
    peer_address: Annotated[
        str | None,
        Option("--peer-address", metavar="ADDR", help="Name the address of that host. Default: what ssh connects to."),
    ] = None,
    pairs: Set = None,
    workloads: Annotated[
        list[str] | None,
        Option(
            "--workload",
            metavar="NAME",
            help="Measure this, up to three. Default: what the profile claims. With --arms any number, and patterns "
            "such as 'infoscale.*'.",
            autocompletion=proven_workloads,
        ),
    ] = None,
    budget: Budget = None,
    quick: Annotated[bool, Option("--quick", help="Measure 8 pairs of 1 s: shows effects of 20 % and more.")] = False,
    deep: Annotated[bool, Option("--deep", help="Measure 48 pairs: shows effects of 5 % and more.")] = False,
    keep_if_gain: Annotated[bool, Option("--keep-if-gain", help="Apply the profile if a gain is proven.")] = False,
    self_test: Annotated[
        bool, Option("--self-test", help="Compare the host with itself: the noise floor, and no invented gain.")
    ] = False,
    reconnect: Annotated[
        str | None,
        Option("--reconnect", metavar="COMMAND", help="Run this after each toggle, to reconnect or remount."),
    ] = None,
    allow_remount: Annotated[
        bool, Option("--allow-remount", help="Permit remounting the target between the arms.")
    ] = False,
    allow_link_flap: Annotated[
        bool, Option("--allow-link-flap", help="Permit toggling what interrupts a link.")
    ] = False,
    seed: Annotated[
        int | None, Option("--seed", metavar="N", help="Order the pairs by this seed. Default: drawn.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Measure on a busy host too; indicative at most.")] = False,
    byte_budget: ByteBudget = None,
    seconds: Seconds = None,
    size: FileSize = None,
    target_memory: TargetMemory = None,
    places: Places = None,
    volume: Volume = None,
    save: Annotated[
        Path | None,
        Option("--save", metavar="FILE", help="Save every run, to be analysed again. Default: the state directory."),
    ] = None,
    html: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Write the result as a page with pictures, too.")
    ] = None,
    svg: Annotated[
        Path | None, Option("--svg", metavar="FILE", help="Write the bars of --arms as a picture, too.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure whether a profile helps on this host. Applies and rolls it back in interleaved pairs around fio
    micro-runs.

    Exit code 0 for a proven gain (of any arm with --arms; with --self-test, for none invented), 1 for every other
    verdict, 4 where the result was printed but its page could not be written (unless the profile was kept).
    """
    from advisor.cli.prove_page import UNWRITTEN, check_page, write_page
    from advisor.errors import UsageError
    from advisor.operations.measure import choose_settings
    from advisor.operations.prove import choose_profile, measure_noise, name_second_host, prove_profile
    from advisor.proof.session_runner import InterruptedProofError
    from advisor.report.session_progress import show_progress

    if sum((bool(names), self_test, arms is not None)) != 1:
        raise UsageError("expected one of: a profile, --arms none,P,Q, --self-test")
    if arms is not None and keep_if_gain:
        raise UsageError("--keep-if-gain: which of several arms would be kept is not defined", hint="advisor apply")
    if svg is not None and arms is None:
        raise UsageError("--svg belongs to --arms", hint="--html writes the pictures of a proof")
    if target is None and raw_device is None and peer_ssh is None:
        raise UsageError("nothing to measure on", hint="--target DIR, or --peer-ssh HOST for the workloads net.*")
    second = name_second_host(peer_ssh, peer_address)
    asked = choose_profile(names, workloads or ()) if names else None
    values = parse_settings(pairs)
    chosen = choose_settings(
        target=target,
        raw_device=raw_device,
        confirm_serial=confirm_serial,
        allow_raw_writes=allow_raw_writes,
        quick=quick,
        deep=deep,
        budget=budget,
        byte_budget=byte_budget,
        volume=volume,
        seed=seed,
        force=force,
        save=save,
        seconds=seconds,
        size=size,
        target_memory=target_memory,
        places=places or (),
        keep_if_gain=keep_if_gain,
        allow_link_flap=allow_link_flap,
        self_test=self_test,
    )
    if html is not None:
        check_page(html, others=(save, svg))
    if svg is not None:
        check_page(svg, "--svg", others=(save, html))
    options = repeated_options(
        {
            "--set": pairs,
            "--place": places,
            "--budget": budget,
            "--byte-budget": byte_budget,
            "--seconds": seconds,
            "--file-size": size,
            "--target-memory": target_memory,
            "--volume": volume,
            "--reconnect": reconnect,
            "--allow-remount": allow_remount,
            "--force": force,
        }
    )
    if arms is not None:
        from advisor.cli.prove_arms import prove_arms

        means = {"reconnect": reconnect, "allow_remount": allow_remount}
        return prove_arms(arms, workloads or (), values, chosen, second, means, options, html, svg, as_json=as_json)
    progress = show_progress(say)

    def measure() -> Proof:
        if asked is None:
            return measure_noise(chosen, workloads or (), second=second, options=options, progress=progress)
        return prove_profile(
            asked,
            chosen,
            values=values,
            workloads=workloads or (),
            reconnect=reconnect,
            allow_remount=allow_remount,
            second=second,
            options=options,
            progress=progress,
            say=say,
        )

    def print_proof(proof: Proof) -> bool:
        """Print the result and write its page; where one of the two cannot be done, the other is all the same."""
        try:
            say_where_kept(proof)
            print_result(proof, as_json=as_json)
            sys.stdout.flush()
        finally:
            is_written = html is None or write_page(html, proof)
        return is_written

    try:
        proof = measure()
    except InterruptedProofError as stopped:
        print_proof(stopped.proof)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    if not print_proof(proof) and not proof.kept:
        return UNWRITTEN
    return exit_code(proof)


COMMANDS: Final = {"prove": prove}
