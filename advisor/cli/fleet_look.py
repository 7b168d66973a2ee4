"""``advisor fleet scan``: what each host of an inventory is, and what is wrong there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from advisor.cli.complete import declarable_workloads
from advisor.cli.fleet_options import Forks, InventorySources, Keep, Limit, Login, MaxAge, Timeout, logs_in
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.scan import FailOn, Json
from advisor.fleet import FORKS, TIMEOUT_SECONDS


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
    from advisor.operations.fleet_hosts import Collection, parse_age, scan_fleet
    from advisor.operations.severity import check_severity, has_severity
    from advisor.report.fleet_scan import fleet_scan_document, fleet_scan_text

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
    from advisor.operations.fleet_hosts import receive_capture

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
    from advisor.operations.captures import capture_script
    from advisor.operations.diagnosis import check_seconds
    from advisor.operations.files import write_output

    if seconds is not None:
        check_seconds(seconds)
    if output is None:
        print_text(capture_script(seconds))
    else:
        write_output(output, capture_script(seconds))
    return 0


COMMANDS: dict[str, Callable[..., int]] = {"scan": scan, "receive": receive, "capture-script": capture_script}
