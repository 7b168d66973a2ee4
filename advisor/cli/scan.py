"""``advisor scan`` and ``advisor snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from advisor.cli.output import print_json, print_text, say, terminal_width, the_host, wants_color

Root = Annotated[
    Path | None, typer.Option("--root", metavar="DIR", help="Read a captured /proc and /sys tree instead of this host.")
]
Snapshot = Annotated[
    Path | None, typer.Option("--snapshot", metavar="FILE", help="Read an archive made by advisor snapshot.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def scan(
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload", metavar="NAME|K=V,…", help="Declare what runs here, so that rules of intent can judge."
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="SEVERITY", help="Exit 1 on a finding of info, advice or warning, or above."),
    ] = None,
) -> int:
    """What this host is, and what is wrong with it. Needs no root; what root would add is listed as unknown."""
    from advisor.facts.whole import scan as scan_host
    from advisor.rules import judge
    from advisor.rules.finding import at_or_above
    from advisor.rules.workload import parse_workload

    declared = parse_workload(workload) if workload else None
    floor = _severity(fail_on)
    facts = scan_host(the_host(root, snapshot))
    findings = judge(facts, declared)
    if as_json:
        from advisor.report.json import scan_document

        print_json(scan_document(facts, findings))
    else:
        from advisor.report.text import scan_text

        print_text(scan_text(facts, findings, width=terminal_width(), color=wants_color()))
    return 1 if floor and any(at_or_above(finding.severity, floor) for finding in findings) else 0


def _severity(text: str | None) -> str | None:
    from advisor.errors import UsageError
    from advisor.rules.finding import SEVERITIES

    if text is not None and text not in SEVERITIES:
        raise UsageError(f"--fail-on {text}: not one of {', '.join(SEVERITIES)}")
    return text


def snapshot(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the archive.")],
    root: Root = None,
) -> int:
    """Capture what a scan reads into an archive that scan --snapshot replays elsewhere with the same result."""
    from advisor.snapshot import capture, save
    from advisor.workflow import read_for_scan_and_plans

    data = capture(the_host(root, None), read_for_scan_and_plans)
    save(data, output)
    say(f"{output}: {len(data) // 1024} KiB; it names this host's devices, addresses and serial numbers")
    return 0


COMMANDS: Final = {"scan": scan, "snapshot": snapshot}
