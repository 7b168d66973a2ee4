"""Measured series and proofs: what a session is asked for, what is kept of it, and comparisons of kept results.

A session runs fio on a target for minutes to hours. ``progress`` is called with its events, which hold no figure, and
``options`` are recorded with the result as the words that repeat the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from advisor.errors import AdvisorError, InvalidInputError, UsageError
from advisor.host import live_host
from advisor.host.patterns import lazy_regex
from advisor.proof import session as bench
from advisor.proof.archive import (
    Saved,
    SavedBench,
    check_place,
    load_any,
    load_proof,
    reanalyse_proof,
    reanalyse_series,
)
from advisor.proof.command_runner import CommandProcess
from advisor.proof.comparison import SeriesComparison, compare
from advisor.proof.covariates import memory_bytes
from advisor.proof.profile import ground_for_command
from advisor.proof.records import Proof
from advisor.proof.schedule import HOLD_FACTOR, HOLD_SECONDS
from advisor.proof.scratch import file_size as file_size_bytes
from advisor.proof.series import Bench
from advisor.proof.session_runner import ProgressEvent, Settings
from advisor.proof.workloads import expand_workloads
from advisor.shell.quote import shell_quote
from advisor.snapshot.open import open_host

_BUDGET_MAX_SECONDS = 7 * 86400
_DEAD_TIME_MAX_SECONDS = 3600.0
_BUDGET = lazy_regex(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh]?)")
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``30m`` or ``2h``. Raises UsageError."""
    found = _BUDGET.fullmatch(text)
    seconds = float(found[1]) * _UNIT_SECONDS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= _BUDGET_MAX_SECONDS:
        raise _budget_error(text[:40])
    return seconds


def _budget_error(text: str) -> UsageError:
    return UsageError(
        f"--budget {text}: expected a time above 0, up to a week",
        hint="such as 90s, 30m or 2h; a number without a unit is seconds",
    )


def choose_settings(
    *,
    target: Path | None = None,
    quick: bool = False,
    deep: bool = False,
    budget: float | str | None = None,
    byte_budget: int | None = None,
    seed: int | None = None,
    force: bool = False,
    save: Path | None = None,
    seconds: float | None = None,
    file_size: str | None = None,
    place: Sequence[str] = (),
    keep_if_gain: bool = False,
    allow_link_flap: bool = False,
    self_test: bool = False,
    dead_time: float | None = None,
    check: bool = False,
    ask: Callable[[str], None] = lambda _: None,
) -> Settings:
    """Return what a session is asked for; the arguments are what the options of their names take.

    ``target`` is a directory for fio's scratch file. ``budget``, ``seconds`` and ``dead_time`` are in seconds,
    ``byte_budget`` in MiB; a ``budget`` may be a text for `parse_budget`. ``ask`` is told what a busy host costs, and
    raises RefusedError where it is not to be measured. Raises UsageError before anything is looked at, for a file that
    could not be written among others.
    """
    if quick and deep:
        raise UsageError("--quick and --deep exclude each other")
    if isinstance(budget, str):
        budget = parse_budget(budget)
    if budget is not None and not 0 < budget <= _BUDGET_MAX_SECONDS:
        raise _budget_error(f"{budget:g}")
    if byte_budget is not None and byte_budget < 1:
        raise UsageError(f"--byte-budget {byte_budget}: expected 1 or more")
    if save is not None:
        check_place(save)
    if dead_time is not None and not 0 <= dead_time <= _DEAD_TIME_MAX_SECONDS:
        raise UsageError(f"--dead-time {dead_time:g}: expected 0 to {_DEAD_TIME_MAX_SECONDS:g} s")
    return Settings(
        target=str(target.resolve()) if target else "",
        mode="quick" if quick else "deep" if deep else "default",
        budget_seconds=budget,
        byte_budget=None if byte_budget is None else byte_budget << 20,
        seconds=seconds,
        scratch_bytes=None if file_size is None else file_size_bytes(file_size, memory_bytes(live_host())),
        places=_parse_places(place),
        seed=seed,
        force=force,
        save_to=str(save.absolute()) if save else None,
        keep_result=save is None,
        keep_if_gain=keep_if_gain,
        allow_link_flap=allow_link_flap,
        self_test=self_test,
        hold_seconds=HOLD_SECONDS if dead_time is None else HOLD_FACTOR * dead_time,
        is_check=check,
        ask=ask,
    )


def _parse_places(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for pair in given:
        name, equals, directory = pair.partition("=")
        if not (name and equals and directory):
            raise UsageError(f"--place {pair}: expected SECTION=DIR, such as wij=/wij")
        if name in found:
            raise UsageError(f"--place {pair}: section {name} is named twice")
        found[name] = str(Path(directory).resolve())
    return tuple(found.items())


def choose_workloads(names: Sequence[str] = (), threads: str | None = None) -> tuple[str, ...]:
    """Return the workloads that names and patterns (``infoscale.*``) mean, each with each number of ``threads``
    (``1,8`` or ``1..64``). Raises UsageError for one that there is not or that needs a second host."""
    return bench.require_workloads(bench.sweep_threads(expand_workloads(names), threads))


def measure_series(
    settings: Settings,
    workloads: Sequence[str] = (),
    *,
    command: CommandProcess | None = None,
    options: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] = lambda _: None,
) -> Bench:
    """Measure workloads on this host as it is, by default a small random mix and reads. Writes fio's scratch file only.
    ``command`` (of `advisor.operations.prove.choose_command`) is measured in their place.

    Raises UsageError and RefusedError before anything is written, InterruptedSessionError with the partial result after
    a signal.
    """
    if command is not None:
        ground = ground_for_command(command)
        return bench.bench(
            live_host(),
            (),
            settings,
            runner=ground.runner,
            target=ground.target,
            command=command.command,
            options=options,
            progress=progress,
        )
    if not settings.target:
        raise UsageError("nothing to measure on", hint="--target DIR or --command CMD")
    return bench.bench(live_host(), workloads, settings, options=options, progress=progress)


def load_result(path: Path, *compared: Path) -> Saved | SavedBench:
    """Return a kept proof, series or comparison of several profiles. Raises InvalidInputError, PermissionDeniedError.

    ``compared`` are the files of a comparison that it is of.
    """
    try:
        return load_any(path)
    except InvalidInputError as error:
        if not path.exists():
            raise
        try:
            open_host(snapshot=path)
        except AdvisorError:
            raise error from None
        call = "advisor fleet compare" if compared else "advisor scan --snapshot"
        raise InvalidInputError(
            f"{path}: the capture of a host, not a saved proof or series",
            hint=" ".join((call, *(shell_quote(str(one)) for one in compared or (path,)))),
        ) from error


def load_session(path: Path) -> Saved:
    """Return a kept session of two arms. Raises InvalidInputError, PermissionDeniedError."""
    return load_proof(path)


def analyse_session(saved: Saved) -> Proof:
    """Return what follows from the stored runs of a session. Measures nothing; the same runs give the same proof."""
    return reanalyse_proof(saved)


def analyse_series(saved: SavedBench) -> Bench:
    """Return what follows from the stored runs of a series. Measures nothing; the same runs give the same result."""
    return reanalyse_series(saved)


def compare_results(first: Path, second: Path) -> SeriesComparison:
    """Return the second of two kept series or proofs compared with the first; of a proof, its arm A counts.

    Measures nothing. Raises UsageError for a comparison of several profiles, InvalidInputError for files that are no
    kept results or have no workload in common.
    """
    found, other = (load_result(path, first, second) for path in (first, second))
    for path, saved in ((first, found), (second, other)):
        if isinstance(saved, Saved) and not saved.proof.session.is_paired:
            raise UsageError(
                f"{path}: a comparison of several arms cannot be compared with another result", hint="name it alone"
            )
        if isinstance(saved, Saved) and saved.proof.session.subject.command is not None:
            raise UsageError(
                f"{path}: judged by a command: such a proof is not compared with another result",
                hint=f"advisor compare {path} prints it",
            )
        if isinstance(saved, SavedBench) and saved.bench.series.command is not None:
            raise UsageError(
                f"{path}: a series of a command is not compared with another result",
                hint=f"advisor compare {path} prints it; advisor prove --command compares",
            )
    return compare(found, other, (str(first), str(second)))
