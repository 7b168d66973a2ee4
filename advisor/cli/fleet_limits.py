"""``advisor fleet limits``: what a cluster carries at most, and what binds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from advisor.cli.fleet_options import Forks, HostSources, Keep, Kept, Limit, Login, MaxAge, Timeout, logs_in
from advisor.cli.limits import Measured
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.scan import Json
from advisor.fleet import FORKS, TIMEOUT_SECONDS


@logs_in
def limits(
    captures: Annotated[
        list[Path] | None,
        Argument(metavar="CAPTURE", help="Snapshots or captured trees of hosts instead of an inventory."),
    ] = None,
    inventory: HostSources = None,
    limit: Limit = None,
    kept: Kept = False,
    volumes: Annotated[
        list[str] | None,
        Option(
            "--volumes",
            metavar="[HOST=]FILE",
            help="Read what volumes and drives carry, of one host or of all, as in advisor limits; may be repeated.",
        ),
    ] = None,
    measured_text: Measured = None,
    as_json: Json = False,
    forks: Forks = FORKS,
    timeout: Timeout = TIMEOUT_SECONDS,
    output: Keep = None,
    max_age: MaxAge = None,
    *,
    login: Login,
) -> int:
    """Add up the ceilings of a cluster, and name what binds it. Of its storage servers and of their clients. Measures
    and changes nothing. Exit code 4 where a host could not be read (the others are added up)."""
    from advisor.cli.progress import fleet_progress
    from advisor.errors import UsageError
    from advisor.operations.fleet_hosts import Collection, add_up_ceilings, parse_age
    from advisor.report.fleet_limits import fleet_limits_document, fleet_limits_text

    if captures and (kept or limit is not None or max_age is not None):
        raise UsageError("--limit, --kept and --max-age are for an inventory (-i)")
    age = None if max_age is None else parse_age(max_age)
    asked = Collection(login(inventory, limit), kept, forks, timeout, output, age) if inventory else None
    with fleet_progress() as progress:
        cluster, failed = add_up_ceilings(
            captures or (), asked, volumes=volumes or (), measured=measured_text, progress=progress
        )
    if as_json:
        print_json(fleet_limits_document(cluster, failed))
    else:
        print_text(fleet_limits_text(cluster, failed, width=terminal_width(), color=wants_color()))
    return 4 if failed else 0


COMMANDS = {"limits": limits}
