"""``advisor prove``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from advisor.cli.change import Set, need_root
from advisor.cli.output import print_json, print_text, say, settings, terminal_width, wants_color
from advisor.cli.scan import Json

if TYPE_CHECKING:
    from advisor.plan.records import Plan
    from advisor.proof.records import Proof


def prove(
    name: Annotated[str | None, typer.Argument(metavar="PROFILE", help="Not needed with --self-test.")] = None,
    target: Annotated[
        Path | None, typer.Option("--target", metavar="DIR", help="Where fio may make its scratch file.")
    ] = None,
    peer_ssh: Annotated[
        str | None,
        typer.Option("--peer-ssh", metavar="[USER@]HOST", help="A second host for the workloads net.*, over ssh."),
    ] = None,
    peer_address: Annotated[
        str | None,
        typer.Option("--peer-address", metavar="ADDR", help="Of that host; else what ssh connects to."),
    ] = None,
    pairs: Set = None,
    workloads: Annotated[
        list[str] | None, typer.Option("--workload", metavar="NAME", help="Claim this instead; up to three.")
    ] = None,
    budget: Annotated[float | None, typer.Option("--budget", metavar="SECONDS", help="Never take longer.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="8 pairs of 1 s: shows effects of 20 % and more.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="48 pairs: shows effects of 5 % and more.")] = False,
    keep_if_gain: Annotated[
        bool, typer.Option("--keep-if-gain", help="Apply the profile if a gain is proven.")
    ] = False,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Compare the host with itself: the noise floor, and no invented gain.")
    ] = False,
    reconnect: Annotated[
        str | None,
        typer.Option("--reconnect", metavar="COMMAND", help="Run after each toggle: makes connections or mounts anew."),
    ] = None,
    allow_remount: Annotated[
        bool, typer.Option("--allow-remount", help="Permit mounting the target anew between the arms.")
    ] = False,
    allow_link_flap: Annotated[
        bool, typer.Option("--allow-link-flap", help="Permit toggling what interrupts a link.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of the coin that orders each pair; drawn if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Measure on a busy host too; indicative at most.")] = False,
    byte_budget: Annotated[
        int | None,
        typer.Option(
            "--byte-budget", metavar="MIB", min=1, help="Write at most this (else 8 GiB and 1 % of the device)."
        ),
    ] = None,
    volume: Annotated[
        str | None,
        typer.Option("--volume", metavar="TYPE:GIB", help="The EBS volume below: spend 5 % of its credits at most."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep every run, to be analysed again.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the result as a page with pictures, too.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Apply and roll back a profile in interleaved pairs around fio micro-runs, and say whether it helped.

    Exit code 0 for a proven gain (or, with --self-test, for none invented), 1 for every other verdict, 4 where
    the result was printed but its page could not be written (unless the profile was kept).
    """
    from advisor.cli.prove_page import UNWRITTEN, check_page, write_page
    from advisor.errors import UsageError
    from advisor.host import live_host
    from advisor.proof.conductor import InterruptedProofError, Settings
    from advisor.proof.credits import parse_volume
    from advisor.proof.progress import show_progress

    if quick and deep:
        raise UsageError("--quick and --deep exclude each other")
    if (name is None) != self_test:
        raise UsageError("give a profile, or --self-test without one")
    if target is None and peer_ssh is None:
        raise UsageError("nothing to measure on", hint="--target DIR, or --peer-ssh HOST for the workloads net.*")
    if peer_address is not None and peer_ssh is None:
        raise UsageError("--peer-address belongs to --peer-ssh")
    check_call(name, workloads or ())
    if save is not None:
        from advisor.proof.archive import check_place

        check_place(save)
    if html is not None:
        check_page(html)
    if peer_ssh is not None:
        from advisor.proof.peer import check_destination

        check_destination(peer_ssh)
    need_root()
    mode: Literal["quick", "default", "deep"] = "quick" if quick else "deep" if deep else "default"
    chosen = Settings(
        target=str(target.resolve()) if target else "",
        mode=mode,
        budget_seconds=budget,
        byte_budget=None if byte_budget is None else byte_budget << 20,
        volume=None if volume is None else parse_volume(volume),
        seed=seed,
        keep_if_gain=keep_if_gain,
        force=force,
        allow_link_flap=allow_link_flap,
        save_to=str(save.absolute()) if save else None,
        keep_result=save is None,
        self_test=self_test,
    )
    progress = show_progress(say)
    plans: list[Plan] = []

    def measure() -> Proof:
        from advisor.proof.profile import SecondHost, noise_floor, prove_profile

        second = SecondHost(peer_ssh, peer_address) if peer_ssh is not None else None
        if self_test:
            usual = "infoscale.4k-rand-rw50" if target else "net.tcp-64k"
            return noise_floor(live_host(), workloads or [usual], chosen, second=second, progress=progress)

        return prove_profile(
            live_host(),
            name or "",
            settings(pairs),
            chosen,
            workloads=workloads or (),
            reconnect=reconnect,
            allow_remount=allow_remount,
            second=second,
            progress=progress,
            say=say,
            planned=plans.append,
        )

    def tell(proof: Proof) -> bool:
        """Print the result and write its page; where one of the two cannot be done, the other is all the same."""
        try:
            _print(proof, as_json=as_json)
            sys.stdout.flush()
        finally:
            is_written = html is None or write_page(html, proof, plans[-1] if plans else None)
        return is_written

    try:
        proof = measure()
    except InterruptedProofError as stopped:
        tell(stopped.proof)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    if not tell(proof) and not proof.kept:
        return UNWRITTEN
    good = ("no-difference", "inconclusive") if self_test else ("gain",)
    return 0 if proof.verdict in good else 1


def check_call(name: str | None, workloads: Sequence[str]) -> None:
    """Raise UsageError for an unknown profile or workload, before root is asked for."""
    from advisor.profiles import load
    from advisor.proof.records import claims_for

    if name is not None:
        load(name)
    claims_for(workloads)


def _print(proof: Proof, *, as_json: bool) -> None:
    if proof.saved_to:
        say(f"every run is kept in {proof.saved_to}")
    if as_json:
        print_json(proof)
        return
    from advisor.report.proof import proof_text

    print_text(proof_text(proof, width=terminal_width(), color=wants_color()))


COMMANDS: Final = {"prove": prove}
