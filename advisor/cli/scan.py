"""``advisor scan`` and ``advisor snapshot``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from advisor import operations
from advisor.cli.complete import declarable_workloads, severity_names
from advisor.cli.monitored import MetricFiles, OpenMetrics, Prometheus, check_forms, scan_host
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.host import Host
    from advisor.operations import Scan
    from advisor.report.scan_summary import ScanSummary

# Annotations are evaluated here, not from their text by typer: that takes 2 ms of a scan.


Root = Annotated[
    Path | None, Option("--root", metavar="DIR", help="Read a captured /proc and /sys tree, not this host.")
]
Snapshot = Annotated[
    Path | None,
    Option("--snapshot", metavar="FILE", help="Read an archive of advisor snapshot, or a sosreport (- is stdin)."),
]
FailOn = Annotated[
    str | None,
    Option(
        "--fail-on",
        metavar="SEVERITY",
        help="Exit with 1 on a finding of this severity or above: info, advice, warning or critical.",
        autocompletion=severity_names,
    ),
]
Workload = Annotated[
    str | None,
    Option(
        "--workload",
        metavar="NAME|K=V,…",
        help="Declare what runs here, for the rules of intent.",
        autocompletion=declarable_workloads,
    ),
]
Volumes = Annotated[
    Path | None,
    Option("--volumes", metavar="FILE", help="Read what the volumes were bought with, as in advisor limits."),
]
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]


def scan(
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    workload: Workload = None,
    volumes: Volumes = None,
    fail_on: FailOn = None,
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
    prometheus: Prometheus = None,
    openmetrics: OpenMetrics = None,
) -> int:
    """Find what is wrong with this host, a line each. Needs no root."""
    from advisor.errors import UsageError
    from advisor.operations.muting import expired_notes
    from advisor.operations.severity import check_severity, has_severity
    from advisor.report.scan_summary import ScanSummary

    floor = check_severity(fail_on)
    forms = {"--picture": picture, "--json": as_json, "--all": whole, "--brief": brief, "--muted": muted}
    # A document holds everything, and what has changed as well.
    forms["--since"] = since is not None and not as_json
    files = MetricFiles(prometheus, openmetrics)
    check_forms(files, as_json=as_json, pages={"--svg": svg, "--html": html})
    forms |= {f"--{form} -": file == "-" for form, file in files._asdict().items()}
    asked = [option for option, is_asked in forms.items() if is_asked]
    if len(asked) > 1:
        raise UsageError(f"{asked[0]} and {asked[1]} exclude each other")
    if svg is not None or html is not None:
        from advisor.cli.pages import check_files

        check_files(
            {"--svg": svg, "--html": html},
            printing=asked[0] if asked and (as_json or picture or files.takes_output) else None,
        )
    if interval is not None and not 0.1 <= interval <= 3600:
        # "nan" is a number to the parser, and below no bound.
        text = f"--interval: expected {0.1} to {3600}, found {interval}"
        raise UsageError(text)
    if interval is not None and (root or snapshot):
        raise UsageError(
            "--interval reads this host twice, and a capture has one reading",
            hint="leave out --interval: the counts since each path was added are judged",
        )
    host: Host | None = None

    def look() -> Scan:
        # A capture that cannot be opened is a failure that monitoring has to see.
        nonlocal host
        host = operations.open_host(root, snapshot)
        if interval is not None:
            say(f"Reading the load of the paths for {interval:g} s.")
        return operations.scan(
            host,
            workload=workload,
            volumes=volumes,
            interval=interval,
            since=since,
            place=str(root or snapshot or ""),
            # A page and a line show findings, and of the facts what every scan reads.
            only_judged=not (as_json or whole or keep or svg or html or picture),
        )

    found = scan_host(look, files)
    assert host is not None
    if keep:
        from advisor.operations.files import keep_scan
        from advisor.report.json import scan_document

        document = scan_document(found.facts, found.findings, found.provenance)
        say(f"kept: {keep_scan(document, found.provenance.scanned_at)}")
    hidden = len(found.findings) - len(found.active)
    summary = ScanSummary(found.facts, found.active, found.provenance, hidden, expired_notes(found.expired))
    if (
        (svg or html or picture) and _draw_pictures(host, summary, found, svg=svg, html=html, picture=picture)
    ) or files.takes_output:
        pass
    elif as_json:
        from advisor.report.json import scan_document

        print_json(scan_document(found.facts, found.findings, found.provenance, found.difference))
    elif found.difference is not None:
        from advisor.report.scan_page import since_text

        print_text(since_text(summary, found.difference, width=terminal_width(), color=wants_color()))
    elif muted:
        _print_muted(found)
    else:
        _print_scan(summary, "all" if whole else "brief" if brief else "page")
    return 1 if has_severity(found.active, floor) else 0


def _draw_pictures(
    host: Host, summary: ScanSummary, found: Scan, *, svg: Path | None, html: Path | None, picture: bool
) -> bool:
    """The pictures that are asked for; whether one of them went to standard output, in place of the page."""
    from advisor.cli.pages import write_files
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
        from advisor.report.picture.page import picture_text

        width, color = terminal_width(), wants_color()
        is_plain = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
        print_text(picture_text(known, summary.findings, services, width=width, color=color, is_plain=is_plain))
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


def _print_muted(found: Scan) -> None:
    from advisor.operations.muting import ignore_file, list_muting
    from advisor.report.scan_page import muted_text

    names = (found.facts.host.hostname or "",)
    rows = list_muting(found.findings, names=names, is_live=found.provenance.source == "live")
    muted = len(found.findings) - len(found.active)
    print_text(muted_text(rows, str(ignore_file()), muted=muted, width=terminal_width(), color=wants_color()))


def snapshot(
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="Write the archive here; - is stdout.")
    ] = None,
    root: Root = None,
    script: Annotated[
        bool, Option("--script", help="Write a shell script instead; --snapshot reads what it prints on another host.")
    ] = False,
    seconds: Annotated[
        float | None,
        Option("--seconds", metavar="SECONDS", help="Record the counters of this time, too, for advisor why."),
    ] = None,
    archive: Annotated[
        Path | None,
        Option("--from", metavar="ARCHIVE", help="Make it of a sosreport or another support archive, without secrets."),
    ] = None,
) -> int:
    """Capture what a scan reads into an archive. `advisor scan --snapshot` replays it elsewhere with the same
    result."""
    from advisor.errors import UsageError
    from advisor.operations.diagnosis import check_seconds

    if script:
        from advisor.operations.diagnosis import capture_script
        from advisor.operations.files import write_output

        if seconds is not None:
            check_seconds(seconds)
        if root is not None or archive is not None:
            other = "--root" if root is not None else "--from"
            raise UsageError(f"--script and {other} exclude each other: the script reads the host that runs it")
        text = capture_script(seconds)
        if output is None or str(output) == "-":
            sys.stdout.write(text)
            return 0
        write_output(output, text, mode=0o700)
        say(f"{output}: run it on a host, then: advisor scan --snapshot FILE, of what it printed")
        return 0
    if output is None:
        raise UsageError("an archive needs a place", hint="-o FILE names it")
    from advisor.cli.progress import wait_progress
    from advisor.operations.diagnosis import read_capture, save_capture

    if seconds is not None:
        check_seconds(seconds)
    host = operations.open_host(root, archive)
    with nullcontext() if seconds is None or not host.is_live else wait_progress("recording the counters", seconds):
        if str(output) == "-":
            data = read_capture(host, seconds=seconds)
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            size = len(data)
        else:
            size = save_capture(host, output, seconds=seconds)
    say(f"{output}: {size // 1024} KiB; it names this host's devices, addresses and serial numbers")
    return 0


# ``advisor probe``.


def probe(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[PEER…]", help="Addresses or names. Default: every host that this one is connected to."),
    ] = None,
    mtu: Annotated[
        int | None, Option("--mtu", metavar="BYTES", help="Exit with 1 if packets of this size do not reach a peer.")
    ] = None,
    count: Annotated[
        int, Option("--count", metavar="N", help="Send so many small echoes for the round-trip time.")
    ] = 5,
    as_json: Json = False,
) -> int:
    """Measure the round-trip time and path MTU to peers. Sends ICMP echoes that must not be fragmented. Changes
    nothing."""
    from advisor.operations.probing import probe_peers

    found = probe_peers(names or (), mtu=mtu, count=count, progress=say)
    if as_json:
        from advisor.report.reach import probe_document

        print_json(probe_document(found))
    else:
        from advisor.report.reach import probe_text

        print_text(probe_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_carried else 1


COMMANDS = {"scan": scan, "snapshot": snapshot, "probe": probe}
