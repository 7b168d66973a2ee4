"""``advisor scan`` and ``advisor snapshot``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from advisor.cli.output import print_json, print_text, say, terminal_width, the_host, wants_color
from advisor.cli.parameters import Option
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts
    from advisor.host import Host
    from advisor.limits.declared import Declared
    from advisor.operations.muting import MutedFindings
    from advisor.operations.since import ScanDifference
    from advisor.report.scan_summary import ScanSummary
    from advisor.rules.workload import DeclaredWorkload

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
        Option("--workload", metavar="NAME|K=V,…", help="Declare what runs here, for the rules of intent."),
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
    from advisor.facts.host_facts import scan as scan_host
    from advisor.host.provenance import read_provenance
    from advisor.operations.muting import expired_notes, mute_findings
    from advisor.report.scan_summary import ScanSummary
    from advisor.rules.finding import at_or_above
    from advisor.rules.registry import judge

    declared = declared_workload(workload)
    bought = _declared_volumes(volumes)
    floor = parse_severity(fail_on)
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
    # Before the scan: what cannot be compared is known at once.
    earlier = None
    if since is not None:
        from advisor.operations.since import read_earlier

        earlier = read_earlier(since)
    host = the_host(root, snapshot)
    provenance = read_provenance(host, str(root or snapshot or ""))
    facts = scan_host(host)
    if interval is not None:
        facts = _over_interval(host, facts, interval)
    if bought is not None:
        from advisor.limits.purchase import with_purchases

        facts = with_purchases(facts, bought)
    found = mute_findings(host, facts, judge(facts, declared))
    if keep:
        from advisor.operations.since import keep_scan
        from advisor.report.json import scan_document

        document = scan_document(facts, found.findings, provenance)
        say(msg("kept: {path}", path=keep_scan(document, provenance.scanned_at)))
    summary = ScanSummary(
        facts, found.active, provenance, len(found.findings) - len(found.active), expired_notes(found.expired)
    )
    if (svg or html or picture) and _draw_pictures(host, summary, found, bought, svg=svg, html=html, picture=picture):
        pass
    elif earlier is not None:
        from advisor.operations.since import compare_findings

        _print_since(summary, compare_findings(earlier, found.findings))
    elif muted:
        _print_muted(found)
    elif as_json:
        from advisor.report.json import scan_document

        print_json(scan_document(facts, found.findings, provenance))
    else:
        _print_scan(summary, "all" if whole else "brief" if brief else "page")
    return 1 if floor and any(at_or_above(finding.severity, floor) for finding in found.active) else 0


def _declared_volumes(path: Path | None) -> Declared | None:
    if path is None:
        return None
    from advisor.limits.declared import read_declared

    return read_declared(path)


def _draw_pictures(
    host: Host,
    summary: ScanSummary,
    found: MutedFindings,
    bought: Declared | None,
    *,
    svg: Path | None,
    html: Path | None,
    picture: bool,
) -> bool:
    """The pictures that are asked for; whether one of them went to standard output, in place of the page."""
    from advisor.cli.scan_picture import host_ceiling, with_services, write_files

    known, services = with_services(host, summary.facts)
    ceiling = host_ceiling(host, summary.facts, bought) if svg or html else None
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
        from advisor.report.text import scan_text

        print_text(scan_text(found.facts, found.findings, width=width, color=color, provenance=found.provenance))
        if sys.stdout.isatty():
            # The window shows the end of what was printed.
            print_text(scan_summary.list_text(found, width=width, color=color))


def _print_since(found: ScanSummary, difference: ScanDifference) -> None:
    from advisor.report.scan_since import EarlierState, since_text

    earlier = difference.earlier
    state = EarlierState(earlier.time, earlier.hostname, difference.new, difference.worse, difference.gone)
    print_text(since_text(found, state, width=terminal_width(), color=wants_color()))


def _print_muted(found: MutedFindings) -> None:
    from advisor.operations.muting import current_day, ignore_file, muting_rows, read_muting
    from advisor.report.scan_since import muted_text

    rows = muting_rows(read_muting(), found, current_day())
    print_text(muted_text(rows, str(ignore_file()), width=terminal_width(), color=wants_color()))


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"


def parse_severity(text: str | None) -> str | None:
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
    from advisor.planner import read_for_scan_and_plans
    from advisor.snapshot.archive import capture_host, save_snapshot

    data = capture_host(the_host(root, None), read_for_scan_and_plans)
    save_snapshot(data, output)
    say(f"{output}: {len(data) // 1024} KiB; it names this host's devices, addresses and serial numbers")
    return 0


def _write_capture_script(output: Path | None, root: Path | None) -> int:
    from advisor.errors import UsageError
    from advisor.operations.transactions import write_script
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
