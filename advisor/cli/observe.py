"""``advisor observe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from advisor.cli.output import print_text, say, terminal_width, wants_color


def observe(
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Write the workload file here.")],
    seconds: Annotated[float, Option("--seconds", metavar="SECONDS", help="Observe this long.")] = 10.0,
    device: Annotated[
        str | None, Option("--device", metavar="DEV", help="Observe this disk. Default: the busiest one.")
    ] = None,
    unit: Annotated[
        str | None, Option("--unit", metavar="NAME", help="Observe the requests of this systemd unit alone.")
    ] = None,
) -> int:
    """Write a workload file, the fio twin of the observed load. It states its error. As root each request is traced;
    else the counters give a coarse twin. `prove`, `bench` and `recommend` take the file with --workload.

    Exit code 0 for a twin that was written, 3 with the reason where no faithful one can be made. The host is not
    changed.
    """
    from advisor.cli.progress import wait_progress
    from advisor.operations.files import check_output
    from advisor.operations.observation import check_observation, observe_load, save_workload
    from advisor.report.observed import twin_text

    # All that can be wrong is found before anything is waited for.
    check_observation(seconds=seconds, device=device, unit=unit)
    check_output(output)
    with wait_progress("observing", seconds):
        found = observe_load(seconds=seconds, device=device, unit=unit)
    print_text(twin_text(found, output, width=terminal_width(), color=wants_color()))
    save_workload(found, output)
    say(f"{output}: the workload file")
    return 0


COMMANDS = {"observe": observe}
