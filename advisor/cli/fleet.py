"""``advisor fleet``: the same over many hosts of an Ansible inventory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor.cli import fleet_change
from advisor.cli.commands import make_group
from advisor.cli.complete import declarable_workloads, severity_names
from advisor.cli.fleet_change import (
    Forks,
    HostSources,
    InventorySources,
    Keep,
    Kept,
    Limit,
    Login,
    MaxAge,
    Timeout,
    logs_in,
)
from advisor.cli.limits import Measured
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import FailOn, Json
from advisor.fleet import FORKS, TIMEOUT_SECONDS

if TYPE_CHECKING:
    from advisor.fleet.compare.comparison import HostComparison

# ``advisor fleet compare``: which host differs, in what, and what to do.


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
    from advisor.cli.pages import check_files
    from advisor.cli.progress import fleet_progress
    from advisor.errors import UsageError
    from advisor.operations.fleet import Collection, compare_fleet, parse_age
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
    from advisor.report.fleet.compare import comparison_document, comparison_text

    if html is not None:
        from advisor.report.fleet.compare_page import comparison_page

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


COMPARE_COMMANDS = {"compare": compare}


# ``advisor fleet limits``: what a cluster carries at most, and what binds it.


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
    from advisor.operations.fleet import Collection, add_up_ceilings, parse_age
    from advisor.report.fleet.scan import fleet_limits_document, fleet_limits_text

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


LIMITS_COMMANDS = {"limits": limits}


# ``advisor fleet scan``: what each host of an inventory is, and what is wrong there.


@logs_in
def scan(
    inventory: InventorySources,
    limit: Limit = None,
    forks: Forks = FORKS,
    timeout: Timeout = TIMEOUT_SECONDS,
    output: Keep = None,
    max_age: MaxAge = None,
    as_json: Json = False,
    whole: Annotated[bool, Option("--all", help="Print every host, and every finding with its reasons.")] = False,
    workload: Annotated[
        str | None,
        Option(
            "--workload",
            metavar="NAME|K=V,…",
            help="Declare what runs on these hosts.",
            autocompletion=declarable_workloads,
        ),
    ] = None,
    fail_on: FailOn = None,
    *,
    login: Login,
) -> int:
    """Capture each host of an inventory, and judge it. As advisor scan does. Changes nothing there; nothing has to be
    installed there, not even Python."""
    from advisor.cli.progress import fleet_progress
    from advisor.operations.fleet import Collection, parse_age, scan_fleet
    from advisor.operations.severity import check_severity, has_severity
    from advisor.report.fleet.scan import fleet_scan_document, fleet_scan_text

    floor = check_severity(fail_on)
    age = None if max_age is None else parse_age(max_age)
    asked = Collection(
        login(inventory, limit), forks=forks, timeout_seconds=timeout, output=output, max_age_seconds=age
    )
    with fleet_progress() as progress:
        found = scan_fleet(asked, workload=workload, progress=progress)
    if as_json:
        print_json(fleet_scan_document(found))
    else:
        print_text(fleet_scan_text(found, width=terminal_width(), color=wants_color(), is_whole=whole))
    if found.failed:
        return 4
    return 1 if has_severity((rule.finding for rule in found.findings), floor) else 0


def receive(
    host: Annotated[str, Argument(metavar="HOST", help="The name of the host in the store.")],
    facts: Annotated[str, Argument(metavar="FACTS", help="What Ansible's worker knows of it, as JSON.")] = "{}",
    output: Keep = None,
) -> int:
    """Store a capture that is read from standard input. It is what the capture script printed on a host, and is stored
    as a snapshot without passwords and keys. For hosts that Ansible cannot reach: advisor fleet capture-script | ssh
    HOST sh -s | advisor fleet receive HOST"""
    from advisor.operations.fleet import receive_capture

    sys.stdout.write(f"{receive_capture(sys.stdin.buffer, host, facts=facts, output=output)}\n")
    return 0


def capture_script(
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="Write the script here; without it, to stdout.")
    ] = None,
    seconds: Annotated[
        float | None,
        Option("--seconds", metavar="SECONDS", help="Record the counters of this time, too, for advisor fleet why."),
    ] = None,
) -> int:
    """Print the script that captures a host. POSIX sh, read-only, the same for every host; fleet receive reads its
    output."""
    from advisor.operations.diagnosis import capture_script, check_seconds
    from advisor.operations.files import write_output

    if seconds is not None:
        check_seconds(seconds)
    if output is None:
        print_text(capture_script(seconds))
    else:
        write_output(output, capture_script(seconds))
    return 0


LOOK_COMMANDS: dict[str, Callable[..., int]] = {"scan": scan, "receive": receive, "capture-script": capture_script}


# ``advisor fleet why``: who stands out from its peers, and what binds each host.


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
    from advisor.operations.fleet import Collection, diagnose_fleet
    from advisor.report.fleet.scan import fleet_why_document, fleet_why_text

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


WHY_COMMANDS = {"why": why}


_VERBS: dict[str, Callable[..., int]] = {
    **LOOK_COMMANDS,
    "compare": compare,
    **WHY_COMMANDS,
    **LIMITS_COMMANDS,
    **fleet_change.COMMANDS,
}


COMMANDS = {"fleet": make_group("Do the same on many hosts of an Ansible inventory.", _VERBS)}
