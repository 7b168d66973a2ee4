"""``advisor scan`` and ``advisor snapshot``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.output import print_json, print_text, say, terminal_width, the_host, wants_color
from advisor.cli.parameters import Option
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts
    from advisor.host import Host
    from advisor.limits.declared import Declared
    from advisor.rules.finding import Finding
    from advisor.rules.workload import DeclaredWorkload

Root = Annotated[
    Path | None, Option("--root", metavar="DIR", help="Read a captured /proc and /sys tree instead of this host.")
]
Snapshot = Annotated[
    Path | None, Option("--snapshot", metavar="FILE", help="Read an archive made by advisor snapshot.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]


def scan(
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    workload: Annotated[
        str | None,
        Option("--workload", metavar="NAME|K=V,…", help="Declare what runs here, so that rules of intent can judge."),
    ] = None,
    volumes: Annotated[
        Path | None,
        Option("--volumes", metavar="FILE", help="What was bought of the volumes, as for advisor limits."),
    ] = None,
    fail_on: Annotated[
        str | None,
        Option(
            "--fail-on",
            metavar="SEVERITY",
            help="Exit 1 on a finding of info, advice, warning or critical, or above.",
        ),
    ] = None,
    svg: Annotated[
        Path | None, Option("--svg", metavar="FILE", help="Draw the host into an SVG file, too; - is stdout.")
    ] = None,
    html: Annotated[
        Path | None,
        Option("--html", metavar="FILE", help="Write the picture and the findings as a page, too; - is stdout."),
    ] = None,
    picture: Annotated[
        bool, Option("--picture", help="Draw the nodes in the terminal, in place of the page of the scan.")
    ] = False,
    interval: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="SECONDS",
            min=0.1,
            max=3600,
            help="Read the load of each multipath path over this long, under a load that runs. Without it: since each "
            "path was added.",
        ),
    ] = None,
) -> int:
    """What this host is, and what is wrong with it. Needs no root; what root would add is listed as unknown."""
    from advisor.cli.scan_picture import check_files
    from advisor.errors import UsageError
    from advisor.facts.host_facts import scan as scan_host
    from advisor.rules.finding import at_or_above
    from advisor.rules.registry import judge

    declared = declared_workload(workload)
    bought = _declared_volumes(volumes)
    floor = severity(fail_on)
    if picture and as_json:
        raise UsageError("--picture and --json exclude each other")
    check_files({"--svg": svg, "--html": html}, printing="--json" if as_json else "--picture" if picture else None)
    if interval is not None and (root or snapshot):
        raise UsageError(
            "--interval reads this host twice, and a capture has one reading",
            hint="leave out --interval: the counts since each path was added are judged",
        )
    host = the_host(root, snapshot)
    facts = scan_host(host)
    if interval is not None:
        facts = _over_interval(host, facts, interval)
    if bought is not None:
        from advisor.limits.purchase import with_purchases

        facts = with_purchases(facts, bought)
    findings = judge(facts, declared)
    is_told = (svg or html or picture) and _draw(host, facts, findings, bought, svg=svg, html=html, picture=picture)
    if not is_told:
        _print(facts, findings, as_json=as_json)
    return 1 if floor and any(at_or_above(finding.severity, floor) for finding in findings) else 0


def _declared_volumes(path: Path | None) -> Declared | None:
    if path is None:
        return None
    from advisor.limits.declared import read_declared

    return read_declared(path)


def _draw(
    host: Host,
    facts: Facts,
    findings: Sequence[Finding],
    bought: Declared | None,
    *,
    svg: Path | None,
    html: Path | None,
    picture: bool,
) -> bool:
    """The pictures that are asked for; whether one of them went to standard output, in place of the page."""
    from advisor.cli.scan_picture import host_ceiling, with_services, write_files

    known, services = with_services(host, facts)
    ceiling = host_ceiling(host, facts, bought) if svg or html else None
    is_told = write_files(known, findings, services, ceiling=ceiling, svg=svg, html=html)
    if picture:
        from advisor.report.picture.text import picture_text

        width, color = terminal_width(), wants_color()
        print_text(picture_text(known, findings, services, width=width, color=color, is_plain=not _is_utf8()))
    return is_told or picture


def _print(facts: Facts, findings: tuple[Finding, ...], *, as_json: bool) -> None:
    if as_json:
        from advisor.report.json import scan_document

        print_json(scan_document(facts, findings))
        return
    from advisor.report.text import scan_text

    print_text(scan_text(facts, findings, width=terminal_width(), color=wants_color()))


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"


def severity(text: str | None) -> str | None:
    from advisor.errors import UsageError
    from advisor.rules.finding import SEVERITIES

    if text is not None and text not in SEVERITIES:
        raise UsageError(
            msg("--fail-on {text}: not one of {severities}", text=text, severities=", ".join(SEVERITIES)),
            hint="--fail-on warning exits with 1 on a finding of warning or critical",
        )
    return text


def snapshot(
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="Where to write it; - is stdout.")
    ] = None,
    root: Root = None,
    script: Annotated[
        bool,
        Option(
            "--script", help="Write a shell script instead, whose output on any other host --snapshot opens as well."
        ),
    ] = False,
) -> int:
    """Capture what a scan reads into an archive that scan --snapshot replays elsewhere with the same result."""
    from advisor.errors import UsageError

    if script:
        return _write_capture_script(output, root)
    if output is None:
        raise UsageError("an archive needs a place", hint="-o FILE names it")
    from advisor.planner import read_for_scan_and_plans
    from advisor.snapshot.archive import capture, save

    data = capture(the_host(root, None), read_for_scan_and_plans)
    save(data, output)
    say(f"{output}: {len(data) // 1024} KiB; it names this host's devices, addresses and serial numbers")
    return 0


def _write_capture_script(output: Path | None, root: Path | None) -> int:
    from advisor.errors import UsageError
    from advisor.operations.apply import write_script
    from advisor.snapshot.remote.capture import capture_script

    if root is not None:
        raise UsageError("--script and --root exclude each other: the script reads the host that runs it")
    text = capture_script()
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        return 0
    write_script(text, output)
    say(f"{output}: run it on a host, then: advisor scan --snapshot FILE, of what it printed")
    return 0


COMMANDS: Final = {"scan": scan, "snapshot": snapshot}


def declared_workload(workload: str | None) -> DeclaredWorkload | None:
    """``--workload``; the names of measured patterns are read only where one is given, as they cost time."""
    if not workload:
        return None
    from advisor.recommend import declared

    return declared(workload)


def _over_interval(host: Host, facts: Facts, seconds: float) -> Facts:
    import msgspec

    from advisor.facts.path_load import over_interval

    say(f"Reading the load of the paths for {seconds:g} s.")
    return msgspec.structs.replace(facts, path_load=over_interval(host, facts.arrays, seconds))
