"""``advisor bench`` and ``advisor compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json

if TYPE_CHECKING:
    from advisor.proof.archive import Saved, SavedBench
    from advisor.proof.records import Proof
    from advisor.proof.series import Bench


def bench(
    target: Annotated[Path, typer.Option("--target", metavar="DIR", help="Where fio may make its scratch file.")],
    workloads: Annotated[
        list[str] | None,
        typer.Option(
            "--workload", metavar="NAME", help="May be given again; without any, a small random mix and reads."
        ),
    ] = None,
    budget: Annotated[float | None, typer.Option("--budget", metavar="SECONDS", help="Never take longer.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="8 rounds of 1 s runs instead of 24 of 2 s.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="48 rounds of 2 s runs.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of the order within each round; drawn if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Measure on a busy host too; indicative only.")] = False,
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
        Path | None,
        typer.Option("--save", metavar="FILE", help="Keep every run there; else in the state directory."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure this host as it is: one series of short fio runs. Changes nothing.

    Exit code 0 for a series that can be relied on, 1 for one that cannot: contaminated, forced, too few rounds, or a
    failing fio.
    """
    from advisor.errors import UsageError
    from advisor.host import live_host
    from advisor.proof.archive import check_place
    from advisor.proof.bench import InterruptedBenchError, require_workloads
    from advisor.proof.bench import bench as measure
    from advisor.proof.conductor import Settings
    from advisor.proof.credits import parse_volume
    from advisor.proof.progress import show_progress

    if quick and deep:
        raise UsageError("--quick and --deep exclude each other")
    require_workloads(workloads or ())
    if save is not None:
        check_place(save)
    mode: Literal["quick", "default", "deep"] = "quick" if quick else "deep" if deep else "default"
    chosen = Settings(
        target=str(target.resolve()),
        mode=mode,
        budget_seconds=budget,
        byte_budget=None if byte_budget is None else byte_budget << 20,
        volume=None if volume is None else parse_volume(volume),
        seed=seed,
        force=force,
        save_to=str(save.absolute()) if save else None,
        keep_result=save is None,
    )
    try:
        found = measure(live_host(), workloads or (), chosen, progress=show_progress(say))
    except InterruptedBenchError as stopped:
        _say_where(stopped.bench)
        _print_bench(stopped.bench, as_json=as_json)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    _say_where(found)
    _print_bench(found, as_json=as_json)
    return 0 if found.quality == "sound" else 1


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A saved series (bench) or proof: the host before.")],
    second: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Another: the host after. Without it A is analysed again.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Set two saved series against each other, B against A; of a proof, its arm A. Measures nothing.

    Exit code 0 where no workload is shown to be worse in B (which does not prove that none is), 1 where one is or
    nothing can follow. With A alone: what bench or prove said, from the stored runs, with the same exit code.
    """
    from advisor.proof.archive import load_any

    found = load_any(first)
    if second is None:
        return _again(found, first, as_json=as_json)
    from advisor.proof.comparison import compare as set_against

    result = set_against(found, load_any(second), (str(first), str(second)))
    if as_json:
        print_json(result)
    else:
        from advisor.report.comparison import comparison_text

        print_text(comparison_text(result, width=terminal_width(), color=wants_color()))
    return 1 if result.is_worse or result.verdict == "invalid" else 0


def _again(saved: Saved | SavedBench, path: Path, *, as_json: bool) -> int:
    """Analyse one saved result again; a verdict that has become another is told."""
    from advisor.proof.archive import SavedBench, reanalyse, reanalyse_series

    if isinstance(saved, SavedBench):
        found = reanalyse_series(saved)
        say(f"{path}: the series of {found.series.started}, analysed again; nothing was measured")
        _print_bench(found, as_json=as_json)
        return 0 if found.quality == "sound" else 1
    proof = reanalyse(saved)
    say(f"{path}: the session of {proof.session.started}, analysed again; nothing was measured")
    _print_proof(proof, as_json=as_json)
    if proof.verdict != saved.proof.verdict:
        say(f"when it was saved the verdict was {saved.proof.verdict}: the rules have changed since")
    return exit_code(proof)


def exit_code(proof: Proof) -> int:
    """0 for a gain, or for a self-test that invented none; 1 for every other verdict."""
    good = ("no-difference", "inconclusive") if proof.session.self_test else ("gain",)
    return 0 if proof.verdict in good else 1


def _say_where(found: Bench) -> None:
    if found.saved_to:
        say(f"every run is kept in {found.saved_to}")


def _print_bench(found: Bench, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        from advisor.report.bench import bench_text

        print_text(bench_text(found, width=terminal_width(), color=wants_color()))


def _print_proof(proof: Proof, *, as_json: bool) -> None:
    if as_json:
        print_json(proof)
    else:
        from advisor.report.proof import proof_text

        print_text(proof_text(proof, width=terminal_width(), color=wants_color()))


COMMANDS: Final = {"bench": bench, "compare": compare}
