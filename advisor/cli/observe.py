"""``advisor observe``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from advisor.cli.output import print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.operations.observation import ObservedTwin


def observe(
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="Write the workload file here.")
    ] = None,
    seconds: Annotated[
        float | None, Option("--seconds", metavar="SECONDS", help="Observe this long.  [default: 10.0]")
    ] = None,
    device: Annotated[
        str | None, Option("--device", metavar="DEV", help="Observe this disk. Default: the busiest one.")
    ] = None,
    unit: Annotated[
        str | None, Option("--unit", metavar="NAME", help="Observe the requests of this systemd unit alone.")
    ] = None,
    target: Annotated[
        Path | None, Option("--target", metavar="DIR", help="Run the twin on a scratch file here, and compare it.")
    ] = None,
    check: Annotated[
        Path | None, Option("--check", metavar="FILE", help="Compare the twin of this workload file; observe nothing.")
    ] = None,
    svg: Annotated[Path | None, Option("--svg", metavar="FILE", help="Write the comparison as a picture, too.")] = None,
) -> int:
    """Write a workload file, the fio twin of the observed load. It states its error. As root each request is traced;
    else the counters give a coarse twin. `prove`, `bench` and `recommend` take the file with --workload.

    Exit code 0 for a twin that was written, 3 with the reason where no faithful one can be made. The host is not
    changed; with --target a scratch file is written and removed.
    """
    from advisor.cli.progress import wait_progress
    from advisor.cli.prove_page import UNWRITTEN, check_page, write_text
    from advisor.errors import UsageError
    from advisor.operations.files import check_output
    from advisor.operations.observation import (
        ObservedTwin,
        check_observation,
        check_target,
        judge_twin,
        load_workload,
        observe_load,
        refuse_unfaithful,
        save_workload,
    )
    from advisor.report.observed import twin_svg

    if (output is None) == (check is None):
        raise UsageError("expected one of: -o FILE to observe, --check FILE to compare a twin")
    if check is not None and (seconds is not None or device is not None or unit is not None):
        raise UsageError("--check excludes --seconds, --device and --unit: the file says what was observed")
    if target is None and (check is not None or svg is not None):
        raise UsageError("nothing to run the twin on", hint="--target DIR")
    if svg is not None:
        check_page(svg, "--svg", others=(output, check))
    # All that can be wrong is found before anything is waited for.
    wanted = 10.0 if seconds is None else seconds
    given = None if check is None else load_workload(check)
    if given is None:
        check_observation(seconds=wanted, device=device, unit=unit)
    if output is not None:
        check_output(output)
    if target is not None:
        check_target(target)
    if given is None:
        with wait_progress("observing", wanted):
            given = observe_load(seconds=wanted, device=device, unit=unit)
    found = ObservedTwin(given)
    if target is not None:
        with wait_progress(f"running the twin on a scratch file in {target}"):
            found = judge_twin(found.workload, target)
    _print_twin(found, output or check)
    is_written = svg is None or found.comparison is None or write_text(svg, twin_svg(found.comparison), "picture")
    refuse_unfaithful(found)
    if output is not None:
        save_workload(found.workload, output)
        say(f"{output}: the workload file")
    return 0 if is_written else UNWRITTEN


def _print_twin(found: ObservedTwin, path: Path | None) -> None:
    from advisor.report.observed import twin_text

    print_text(twin_text(found.workload, found.comparison, path, width=terminal_width(), color=wants_color()))


COMMANDS: Final = {"observe": observe}
