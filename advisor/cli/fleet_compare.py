"""``advisor fleet compare``: which host differs, in what, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor.cli.complete import severity_names
from advisor.cli.fleet_options import Forks, HostSources, Keep, Limit, Login, MaxAge, Timeout, logs_in
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json
from advisor.fleet import FORKS, TIMEOUT_SECONDS

if TYPE_CHECKING:
    from advisor.fleet.compare.comparison import HostComparison


@logs_in
def compare(
    snapshots: Annotated[
        list[Path] | None, Argument(metavar="SNAPSHOT…", help="Snapshots of hosts instead of an inventory.")
    ] = None,
    inventory: HostSources = None,
    limit: Limit = None,
    kept: Annotated[bool, Option("--kept", help="Compare the stored captures; connect to no host.")] = False,
    pair: Annotated[
        tuple[str, str] | None,
        Option("--pair", metavar="A B", help="Compare only these two, with both values of each."),
    ] = None,
    group_by: Annotated[
        str | None,
        Option(
            "--group-by", metavar="WHAT", help="Compare within: llt-cluster, group, or a variable of the inventory."
        ),
    ] = None,
    probe: Annotated[bool, Option("--probe", help="Probe the paths between the hosts, too.")] = False,
    as_json: Json = False,
    html: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Write the result as a page, too; - is stdout.")
    ] = None,
    fail_on: Annotated[
        str,
        Option(
            "--fail-on",
            metavar="SEVERITY",
            help="Exit with 1 on a difference of this severity or above.",
            autocompletion=severity_names,
        ),
    ] = "advice",
    forks: Forks = FORKS,
    timeout: Timeout = TIMEOUT_SECONDS,
    output: Keep = None,
    max_age: MaxAge = None,
    *,
    login: Login,
) -> int:
    """Find which host differs, in what, and what to do. Changes nothing. Exit code 1 where hosts differ in what is
    advice or warning, 4 where a host could not be read (the others are compared)."""
    from advisor.cli.progress import fleet_progress
    from advisor.cli.scan_picture import check_files
    from advisor.errors import UsageError
    from advisor.operations.fleet_hosts import Collection, compare_fleet, parse_age
    from advisor.operations.severity import check_severity, has_severity

    floor = check_severity(fail_on)
    if snapshots and (kept or probe or limit is not None or max_age is not None):
        raise UsageError("--limit, --kept, --probe and --max-age are for an inventory (-i)")
    check_files({"--html": html}, printing="--json" if as_json else None)
    age = None if max_age is None else parse_age(max_age)
    asked = Collection(login(inventory, limit), kept, forks, timeout, output, age) if inventory else None
    with fleet_progress() as progress:
        found = compare_fleet(snapshots or (), asked, pair=pair, group_by=group_by, probe=probe, progress=progress)
    _print_comparison(found, as_json=as_json, html=html)
    return 4 if found.failed else 1 if has_severity(found.findings, floor) else 0


def _print_comparison(found: HostComparison, *, as_json: bool, html: Path | None) -> None:
    from advisor.report.fleet_compare import comparison_document, comparison_text

    if html is not None:
        from advisor.report.fleet_compare_page import comparison_page

        page = comparison_page(found)
        if str(html) == "-":
            sys.stdout.buffer.write(page.encode("utf-8", "replace"))
            return
        from advisor.operations.files import write_output

        write_output(html, page.encode("utf-8", "replace"))
        say(f"{html}: the comparison as a page")
    if as_json:
        print_json(comparison_document(found))
    else:
        print_text(comparison_text(found, width=terminal_width(), color=wants_color()))


COMMANDS = {"compare": compare}
