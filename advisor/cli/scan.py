"""``advisor scan`` and ``advisor snapshot``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from advisor import operations
from advisor.cli.complete import declarable_workloads, severity_names
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.parameters import Option
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.host import Host
    from advisor.operations import Scan
    from advisor.operations.since import EarlierScan
    from advisor.report.scan_summary import ScanSummary
    from advisor.rules.finding import Finding

Root = Annotated[
    Path | None, Option("--root", metavar="DIR", help="Read a captured /proc and /sys tree, not this host.")
]
Snapshot = Annotated[
    Path | None, Option("--snapshot", metavar="FILE", help="Read an archive of advisor snapshot, not this host.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]


def scan(
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    workload: Annotated[
        str | None,
        Option(
            "--workload",
            metavar="NAME|K=V,…",
            help="Declare what runs here, for the rules of intent.",
            autocompletion=declarable_workloads,
        ),
    ] = None,
    volumes: Annotated[
        Path | None,
        Option("--volumes", metavar="FILE", help="Read what the volumes were bought with, as in advisor limits."),
    ] = None,
    fail_on: Annotated[
        str | None,
        Option(
            "--fail-on",
            metavar="SEVERITY",
            help="Exit with 1 on a finding of this severity or above: info, advice, warning or critical.",
            autocompletion=severity_names,
        ),
    ] = None,
    svg: Annotated[
        Path | None, Option("--svg", metavar="FILE", help="Write a drawing of the host as SVG, too; - is stdout.")
    ] = None,
    html: Annotated[
        Path | None,
        Option("--html", metavar="FILE", help="Write the picture and the findings as a page, too; - is stdout."),
    ] = None,
    picture: Annotated[bool, Option("--picture", help="Draw the nodes in the terminal instead of the page.")] = False,
    interval: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="SECONDS",
            min=0.1,
            max=3600,
            help="Read the load of each multipath path over this time, while a load runs. Default: since each path was "
            "added.",
        ),
    ] = None,
    whole: Annotated[
        bool, Option("--all", help="Print every fact, and every finding with its reasons, evidence and sources.")
    ] = False,
    brief: Annotated[bool, Option("--brief", help="Print one line, as for the message of the day.")] = False,
    muted: Annotated[bool, Option("--muted", help="List what is muted, why and until when.")] = False,
    since: Annotated[
        str | None,
        Option("--since", metavar="FILE|DATE", help="Print what is new, worse or gone since a scan or snapshot."),
    ] = None,
    keep: Annotated[bool, Option("--keep", help="Keep this scan in the state directory, for --since DATE.")] = False,
) -> int:
    """Find what is wrong with this host, a line each. Needs no root."""
    from advisor.cli.scan_picture import check_files
    from advisor.errors import UsageError
    from advisor.operations.muting import expired_notes
    from advisor.operations.severity import check_severity, has_severity
    from advisor.report.scan_summary import ScanSummary

    floor = check_severity(fail_on)
    forms = {"--picture": picture, "--json": as_json, "--all": whole, "--brief": brief, "--muted": muted}
    forms["--since"] = since is not None
    asked = [option for option, is_asked in forms.items() if is_asked]
    if len(asked) > 1:
        raise UsageError(msg("{first} and {second} exclude each other", first=asked[0], second=asked[1]))
    check_files({"--svg": svg, "--html": html}, printing="--json" if as_json else "--picture" if picture else None)
    if interval is not None and (root or snapshot):
        raise UsageError(
            "--interval reads this host twice, and a capture has one reading",
            hint="leave out --interval: the counts since each path was added are judged",
        )
    earlier = None
    if since is not None:
        from advisor.operations.since import read_earlier

        # Before the scan: what cannot be compared is known at once.
        earlier = read_earlier(since)
    host = operations.open_host(root, snapshot)
    if interval is not None:
        say(f"Reading the load of the paths for {interval:g} s.")
    found = operations.scan(
        host, workload=workload, volumes=volumes, interval=interval, place=str(root or snapshot or "")
    )
    if keep or as_json:
        from advisor.report.json import scan_document

        document = scan_document(found.facts, found.findings, found.provenance)
    if keep:
        from advisor.operations.since import keep_scan

        say(msg("kept: {path}", path=keep_scan(document, found.provenance.scanned_at)))
    hidden = len(found.findings) - len(found.active)
    summary = ScanSummary(found.facts, found.active, found.provenance, hidden, expired_notes(found.expired))
    if (svg or html or picture) and _draw_pictures(host, summary, found, svg=svg, html=html, picture=picture):
        pass
    elif earlier is not None:
        _print_since(summary, earlier, found.findings)
    elif muted:
        _print_muted(found)
    elif as_json:
        print_json(document)
    else:
        _print_scan(summary, "all" if whole else "brief" if brief else "page")
    return 1 if has_severity(found.active, floor) else 0


def _draw_pictures(
    host: Host,
    summary: ScanSummary,
    found: Scan,
    *,
    svg: Path | None,
    html: Path | None,
    picture: bool,
) -> bool:
    """The pictures that are asked for; whether one of them went to standard output, in place of the page."""
    from advisor.cli.scan_picture import write_files
    from advisor.operations.pictures import find_services, host_ceiling

    known, services = find_services(host, found.facts)
    ceiling = host_ceiling(host, found.facts, found.declared) if svg or html else None
    muted = [one for one in found.findings if one.muted is not None]
    is_told = write_files(
        *(known, summary.findings, services),
        ceiling=ceiling,
        svg=svg,
        html=html,
        provenance=summary.provenance,
        muted=muted,
    )
    if picture:
        from advisor.report.picture.text import picture_text

        width, color = terminal_width(), wants_color()
        print_text(picture_text(known, summary.findings, services, width=width, color=color, is_plain=not _is_utf8()))
    return is_told or picture


def _print_scan(found: ScanSummary, form: Literal["all", "brief", "page"]) -> None:
    from advisor.report import scan_summary

    width, color = terminal_width(), wants_color()
    if form == "brief":
        print_text(scan_summary.brief_text(found))
    elif form == "page":
        print_text(scan_summary.summary_text(found, width=width, color=color))
    else:
        from advisor.report.scan_page import scan_text

        print_text(scan_text(found.facts, found.findings, width=width, color=color, provenance=found.provenance))
        if sys.stdout.isatty():
            # The window shows the end of what was printed.
            print_text(scan_summary.list_text(found, width=width, color=color))


def _print_since(found: ScanSummary, earlier: EarlierScan, findings: Sequence[Finding]) -> None:
    from advisor.operations.since import compare_findings
    from advisor.report.scan_since import EarlierState, since_text

    difference = compare_findings(earlier, findings)
    state = EarlierState(earlier.time, earlier.hostname, difference.new, difference.worse, difference.gone)
    print_text(since_text(found, state, width=terminal_width(), color=wants_color()))


def _print_muted(found: Scan) -> None:
    from advisor.operations.muting import ignore_file, list_muting
    from advisor.report.scan_since import muted_text

    print_text(muted_text(list_muting(found.findings), str(ignore_file()), width=terminal_width(), color=wants_color()))


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"


def snapshot(
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="Write the archive here; - is stdout.")
    ] = None,
    root: Root = None,
    script: Annotated[
        bool,
        Option("--script", help="Write a shell script instead; --snapshot reads what it prints on another host."),
    ] = False,
) -> int:
    """Capture what a scan reads into an archive. `advisor scan --snapshot` replays it elsewhere with the same
    result."""
    from advisor.errors import UsageError

    if script:
        return _write_capture_script(output, root)
    if output is None:
        raise UsageError("an archive needs a place", hint="-o FILE names it")
    from advisor.operations.captures import save_capture

    size = save_capture(operations.open_host(root), output)
    say(f"{output}: {size // 1024} KiB; it names this host's devices, addresses and serial numbers")
    return 0


def _write_capture_script(output: Path | None, root: Path | None) -> int:
    from advisor.errors import UsageError
    from advisor.operations.captures import capture_script
    from advisor.operations.files import write_output

    if root is not None:
        raise UsageError("--script and --root exclude each other: the script reads the host that runs it")
    text = capture_script()
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        return 0
    write_output(output, text, mode=0o700)
    say(f"{output}: run it on a host, then: advisor scan --snapshot FILE, of what it printed")
    return 0


COMMANDS: Final = {"scan": scan, "snapshot": snapshot}
