"""``advisor fleet why``: who stands out from its peers, and what binds each host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from advisor.cli.fleet_options import Forks, HostSources, Keep, Kept, Limit, Login, Timeout, logs_in
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.scan import Json
from advisor.fleet import FORKS, TIMEOUT_SECONDS


@logs_in
def why(
    snapshots: Annotated[
        list[Path] | None,
        Argument(metavar="SNAPSHOT…", help="Snapshots with a span (snapshot --seconds) instead of an inventory."),
    ] = None,
    inventory: HostSources = None,
    limit: Limit = None,
    kept: Kept = False,
    seconds: Annotated[
        float | None, Option("--seconds", metavar="SECONDS", help="Observe each host this long.  [default: 10.0]")
    ] = None,
    as_json: Json = False,
    forks: Forks = FORKS,
    timeout: Timeout = TIMEOUT_SECONDS,
    output: Keep = None,
    *,
    login: Login,
) -> int:
    """Find what stands out from its peers, and what binds. Compares the drives, links and hosts of a fleet, all
    observed at once. Changes nothing; nothing has to be installed there. Exit code 1 where something stands out or
    binds, 4 where a host could not be read (the others are judged)."""
    from advisor.cli.progress import fleet_progress
    from advisor.errors import UsageError
    from advisor.operations.diagnosis import check_seconds
    from advisor.operations.fleet_hosts import Collection, diagnose_fleet
    from advisor.report.fleet_why import fleet_why_document, fleet_why_text

    if snapshots and (kept or limit is not None):
        raise UsageError("--limit and --kept are for an inventory (-i)")
    if seconds is not None and (snapshots or kept):
        raise UsageError("--seconds is for hosts that are asked now: the span that was recorded counts")
    observed = 10.0 if seconds is None else seconds
    check_seconds(observed)
    asked = Collection(login(inventory, limit), kept, forks, timeout, output) if inventory else None
    with fleet_progress() as progress:
        found = diagnose_fleet(snapshots or (), asked, seconds=observed, progress=progress)
    if as_json:
        print_json(fleet_why_document(found))
    else:
        print_text(fleet_why_text(found, width=terminal_width(), color=wants_color()))
    return 4 if found.failed else 1 if found.is_bound else 0


COMMANDS = {"why": why}
