"""The scan of many hosts as a page and as a document: a line for each host, then what was found, by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from advisor.diagnosis.cause import percent
from advisor.diagnosis.diagnose import Diagnosis
from advisor.fleet.scan import FleetScan, HostScan, RuleFinding, State, is_off
from advisor.fleet.why import MIN_PEERS, FleetDiagnosis, Outlier
from advisor.host.numbers import group_pairs
from advisor.limits.cluster import Cluster, ClusterHost
from advisor.report.encode import encode_document
from advisor.report.format import natural, ranked, runs
from advisor.report.host_ceiling import add_ceiling, figure_piece, stage_words
from advisor.report.layout import COMMAND, Page, Piece, Span, counted, listed, padded
from advisor.report.severities import severity_span
from advisor.report.why import nothing_text, verdict_text, why_document
from advisor.rules.rule import SEVERITIES

MAX_LISTED = 20
"""Of more hosts than these, the page is an overview."""
_RARE = 20
_OVERVIEW_HOSTS = 4
_OVERVIEW_FINDINGS = 7
_OVERVIEW_STATES = 2
SCAN_SCHEMA = "advisor.fleet-scan/1"
_STATE_WORDS: Mapping[State, str] = {"ok": "captured", "no-root": "not root"}

HINTS: Mapping[State, str] = {
    "ok": "",
    "unreachable": "ansible -i INVENTORY HOST -m ansible.builtin.raw -a true has to work from here",
    "no-root": "let the inventory say ansible_become: true, or give --become",
    "failed": "ssh HOST true has to print nothing: see the shell's start-up files and forced commands",
    "timeout": "a disk or a command may hang there; --timeout SECONDS waits longer",
    "lost": "run it again; the connection broke off",
}


def fleet_scan_document(scan: FleetScan) -> bytes:
    """``advisor.fleet-scan/1``: every host in the order of the inventory, every rule with its hosts, who failed."""
    return encode_document(
        {
            "schema": SCAN_SCHEMA,
            "hosts": [_host_document(host) for host in scan.hosts],
            "findings": [_rule_document(rule) for rule in scan.findings],
            "failed": scan.failed,
            "same_address": scan.same_address,
            "same_machine": scan.same_machine,
            "clock_off": [host.name for host in scan.hosts if is_off(host)],
        }
    )


def _host_document(host: HostScan) -> dict[str, object]:
    fields = {name: getattr(host, name) for name in host.__struct_fields__}
    counts = {severity: host.count(severity) for severity in SEVERITIES}
    return {**fields, "worst": host.worst, "counts": counts, "hint": HINTS[host.state] or None}


def _rule_document(rule: RuleFinding) -> dict[str, object]:
    one = rule.finding
    return {
        "id": one.id,
        "severity": one.severity,
        "title": one.title,
        "hosts": rule.hosts,
        "is_alike": rule.is_alike,
        "first": {
            "host": rule.hosts[0],
            **{"why": one.why, "evidence": one.evidence, "advice": one.advice, "fix": one.fix},
            "commands": one.commands,
        },
        "profile": one.profile,
        "hurts_when": one.hurts_when,
        "sources": one.sources,
        "intent": one.intent,
    }


def fleet_scan_text(scan: FleetScan, *, width: int, color: bool, is_whole: bool = False) -> str:
    """The page. ``width`` in columns. Of more than `MAX_LISTED` hosts an overview of at most 24 lines, unless it
    ``is_whole``."""
    page = Page(width, color=color)
    _add_head(page, scan)
    if len(scan.hosts) > MAX_LISTED and not is_whole:
        _add_overview(page, scan, width)
        return page.text
    captured = [host for host in scan.hosts if host.state == "ok"]
    page.blank()
    rows: list[Sequence[Piece]] = [[Span(word, "dim") for word in _HEADS]]
    rows += [_host_row(host) for host in scan.hosts]
    page.table(rows)
    failed = [host for host in scan.hosts if host.state != "ok"]
    if failed:
        page.heading("Not captured", f"  {counted(len(failed), 'host')}")
        for host in failed:
            page.add(Span(host.name, "bold"), "  ", Span(_STATE_WORDS.get(host.state, host.state), "red"), indent=2)
            page.add(host.message, indent=6)
        for state, hint in HINTS.items():
            names = [host.name for host in failed if host.state == state]
            if hint and names:
                page.add(Span(f"{_STATE_WORDS.get(state, state)}: ", "dim"), Span(hint, "dim"), indent=2, hang=2)
    _add_oddities(page, scan)
    _add_findings(page, scan, len(captured))
    return page.text


def _add_head(page: Page, scan: FleetScan) -> None:
    captured = [host for host in scan.hosts if host.state == "ok"]
    summary_pieces: list[Piece] = []
    for severity in reversed(SEVERITIES):
        count = sum(host.worst == severity for host in scan.hosts)
        if count:
            summary_pieces.append(f", {count} with ")
            summary_pieces.append(severity_span(severity))
    muted = sum(host.muted or 0 for host in scan.hosts)
    if muted:
        summary_pieces.append(f" · {counted(muted, 'finding')} muted")
    page.add(Span(f"{len(captured)} of {counted(len(scan.hosts), 'host')} captured", "bold"), *summary_pieces)


def _add_overview(page: Page, scan: FleetScan, width: int) -> None:
    """What many hosts have in common, and which of them stand out: one line for each."""
    ranks = ranked(host.name for host in scan.hosts)
    captured = sum(host.state == "ok" for host in scan.hosts)

    def line(word: Span, text: str) -> None:
        page.row("  ", padded(word, 12), _cut(text, width - 14))

    few = {rule.finding.id for rule in scan.findings if len(rule.hosts) * _RARE <= captured}
    rare = {host.name: [one for one in host.findings if one.id in few] for host in scan.hosts}
    weights = {
        name: tuple(-sum(one.severity == severity for one in found) for severity in reversed(SEVERITIES))
        for name, found in rare.items()
    }
    odd = sorted((host for host in scan.hosts if rare[host.name]), key=lambda host: weights[host.name])
    if odd:
        page.heading("Stand out", f"  {counted(len(odd), 'host')} with a finding that at most 1 in {_RARE} has")
        for host in odd[:_OVERVIEW_HOSTS]:
            first = max(rare[host.name], key=lambda one: SEVERITIES.index(one.severity))
            more = f", {len(rare[host.name]) - 1} more" if len(rare[host.name]) > 1 else ""
            line(severity_span(first.severity), f"{host.name}: {first.title}{more}")
    if captured:
        page.heading("Findings", f"  {len(scan.findings)}, hosts that have them")
        for rule in scan.findings[:_OVERVIEW_FINDINGS]:
            one = rule.finding
            line(severity_span(one.severity), f"{len(rule.hosts):>5,}  {one.title}  {runs(rule.hosts, ranks)}")
    failed = [host for host in scan.hosts if host.state != "ok"]
    if failed:
        page.heading("Not captured", f"  {counted(len(failed), 'host')}")
        by_state = Counter(host.state for host in failed).most_common(_OVERVIEW_STATES)
        for state, count in by_state:
            names = [host.name for host in failed if host.state == state]
            line(Span(_STATE_WORDS.get(state, state), "red"), f"{count:>5,}  {runs(names, ranks)}")
    odd_clocks = sum(map(is_off, scan.hosts))
    limited = sum(host.is_root is False for host in scan.hosts)
    same = len(scan.same_address) + len(scan.same_machine)
    known = ((odd_clocks, "clocks off"), (limited, "not as root"), (same, "one host under several names"))
    if any(count for count, _ in known):
        page.blank()
        page.row(_cut("To know: " + ", ".join(f"{what}: {count:,}" for count, what in known if count), width))
    page.blank()
    page.row(Span(_cut("--all: every host and reason; --max-age 1h: from what is stored; --json", width), "dim"))


def _cut(text: str, room: int) -> str:
    """On one line, with what is left out marked."""
    return text if len(text) <= room else f"{text[: max(1, room - 1)].rstrip(' ,')}…"


_HEADS = ("host", "worst", "critical", "warning", "advice", "info", "locality", "system")


def _host_row(host: HostScan) -> Sequence[Piece]:
    if host.state != "ok":
        return [
            host.name,
            Span(_STATE_WORDS.get(host.state, host.state), "red"),
            *[""] * (len(SEVERITIES) + 1),
            Span("see below", "dim"),
        ]
    worst = host.worst
    counts = [str(host.count(severity) or "-") for severity in reversed(SEVERITIES)]
    score = "-" if host.score is None else str(host.score)
    system = " · ".join(part for part in (host.os, host.kernel, None if host.is_root else "not as root") if part)
    return [host.name, severity_span(worst) if worst else Span("none", "green"), *counts, score, system or "unknown"]


def _add_oddities(page: Page, scan: FleetScan) -> None:
    off = [host for host in scan.hosts if is_off(host)]
    limited = [host.name for host in scan.hosts if host.is_root is False]
    if not (off or limited or scan.same_address or scan.same_machine):
        return
    page.heading("To know")
    for host in off:
        page.bullet(
            Span(host.name, "bold"), f": its clock is {skew_words(host.skew_seconds or 0)}; timedatectl there says why"
        )
    for names in scan.same_address:
        page.bullet(
            f"{listed(names)} have one address in the inventory: a host that is captured twice, and changed once"
        )
    for names in scan.same_machine:
        page.bullet(
            f"{listed(names)} have one machine-id: one host under several names, or copies of one image; a copy needs "
            "systemd-machine-id-setup after its /etc/machine-id is emptied"
        )
    if limited:
        ranks = ranked(host.name for host in scan.hosts)
        page.bullet(f"not captured by root, so that more is unknown: {runs(limited, ranks)}; --become makes it root")


def skew_words(seconds: float) -> str:
    """``at least 90 s ahead``."""
    return f"at least {abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"


def _add_findings(page: Page, scan: FleetScan, captured: int) -> None:
    if not captured:
        return
    page.heading("Findings", "" if scan.findings else "  none: nothing that is known here asks for a change")
    ranks = ranked(host.name for host in scan.hosts)
    for rule in scan.findings:
        one = rule.finding
        page.blank()
        page.add_cells(
            (padded(severity_span(one.severity), 7),), (Span(one.title, "bold"), "  ", Span(one.id, "dim")), gap=2
        )
        page.labelled(_rule_rows(rule, captured, ranks), indent=4)


def _rule_rows(rule: RuleFinding, captured: int, ranks: Mapping[str, int]) -> Iterator[tuple[str, Sequence[Piece]]]:
    one = rule.finding
    yield "hosts", (f"{len(rule.hosts)} of {captured}: {runs(rule.hosts, ranks)}",)
    yield "why", (one.why,)
    alone = rule.is_alike or len(rule.hosts) == 1
    yield ("do" if alone else f"do ({rule.hosts[0]})"), (Span(one.advice, "cyan"),)
    yield "hurts when", (one.hurts_when,)
    if not alone:
        yield "differs", (f"figures are those of {rule.hosts[0]}; advisor scan --snapshot CAPTURE prints another's",)
    yield "source", (Span("; ".join(one.sources), "dim"),)


# The ceiling of a cluster and of its hosts: as text for a person, and as the document of ``advisor fleet limits``.

LIMITS_SCHEMA = "advisor.fleet-limits/1"
_PARTS = {"server": "server", "client": "client", "other": "not counted"}


def fleet_limits_document(cluster: Cluster, failed: Mapping[str, str]) -> dict[str, object]:
    """``advisor.fleet-limits/1``."""
    return {"schema": LIMITS_SCHEMA, **msgspec.to_builtins(cluster), "failed": dict(failed)}


def fleet_limits_text(cluster: Cluster, failed: Mapping[str, str], *, width: int, color: bool) -> str:
    """Each host with what binds it, then the cluster."""
    page = Page(width, color=color)
    count = len(cluster.hosts)
    page.add(Span((f"Ceilings of {count} host" if count == 1 else f"Ceilings of {count} hosts"), "bold"))
    words = ("host", "role", "reads MB/s", "writes MB/s", "bound by")
    page.table([tuple(Span(word, "dim") for word in words), *map(_limits_row, cluster.hosts)], indent=2)
    if failed:
        page.heading("Hosts that could not be read")
        page.labelled([(name, (why,)) for name, why in failed.items()])
    add_ceiling(page, cluster.cluster, "The whole cluster")
    return page.text


def _limits_row(one: ClusterHost) -> tuple[Piece, ...]:
    bindings = (one.host.binds, one.host.write_binds)
    stages = tuple(dict.fromkeys(stage_words(each.stage, one.host.machine) for each in bindings if each))
    if not one.host.paths:
        return one.name, _PARTS[one.part], "-", "-", "no storage"
    return (
        one.name,
        _PARTS[one.part],
        figure_piece(one.host.read_mb_s),
        figure_piece(one.host.write_mb_s),
        " / ".join(stages),
    )


# What binds many hosts, and who stands out: as text for a person, and as the document of ``advisor fleet why``.

WHY_SCHEMA = "advisor.fleet-why/1"
MAX_OUTLIERS = 20
_MAX_FAILED = 20
_WHAT = {
    "read-wait": "reads",
    "write-wait": "writes",
    "lost": "of its packets lost",
    "resent": "of its TCP segments sent again",
    "steal": "of its CPU time stolen",
    "storage-stall": "of the time waited for storage",
    "memory-stall": "of the time waited for memory",
}


def fleet_why_document(found: FleetDiagnosis) -> dict[str, object]:
    """``advisor.fleet-why/1``: who stands out, then every host with what binds it, in the order given."""
    outliers = [
        {**msgspec.to_builtins(one), "title": outlier_title(one), "commands": list(outlier_commands(one))}
        for one in found.outliers
    ]
    return {
        "schema": WHY_SCHEMA,
        "outliers": outliers,
        "hosts": [{"name": name, "why": why_document(one)} for name, one in found.hosts],
        "groups": msgspec.to_builtins(found.groups),
        "failed": dict(found.failed),
    }


def outlier_title(one: Outlier) -> str:
    """One line: ``node07: nvme3n1 is 6.1 times slower at reads than the 23 like it (18.2 ms, usual 3 ms)``."""
    if one.measure in ("read-wait", "write-wait"):
        return (
            f"{one.host}: {one.device} is {_number(one.times or 0, '.1f')} times slower at {_WHAT[one.measure]} than "
            f"the {one.count} like it ({_number(one.value, '.3g')} ms, usual {_number(one.usual, '.3g')} ms)"
        )
    subject = f"{one.host}: {one.device}: " if one.device else f"{one.host}: "
    digits = 2 if one.value < 0.01 else 1 if one.value < 0.1 else 0
    usual = f"the {one.count} like it {percent(one.usual, max(digits, 2 if one.usual < 0.01 else digits))}"
    return f"{subject}{percent(one.value, digits)} {_WHAT[one.measure]}, {usual}"


def _number(value: float, form: str) -> str:
    """What is small in this form; all digits before the point of what is large, never an exponent: 2,000."""
    return f"{value:,.0f}" if value >= 100 else format(value, form)


def outlier_commands(one: Outlier) -> tuple[str, ...]:
    """What to look at next, on that host."""
    if one.is_loaded:
        return ()
    if one.measure in ("read-wait", "write-wait"):
        return (f"smartctl -a /dev/{one.device}", f"journalctl -k --grep {one.device}")
    return (f"ethtool -S {one.device}",) if one.device else ("advisor why",)


def fleet_why_text(found: FleetDiagnosis, *, width: int, color: bool) -> str:
    """Who stands out from its peers, then what binds each host, then what could not be compared."""
    page = Page(width, color=color)
    bound = sum(bool(one.binds) for _, one in found.hosts)
    many = len(found.outliers)
    who = "nothing stands out from its peers" if found.hosts else "nothing was judged"
    if many:
        who = "1 figure stands out from its peers" if many == 1 else f"{many} figures stand out from their peers"
    page.add(
        Span(f"{counted(len(found.hosts), 'host')} observed: ", "bold"),
        Span(who, "bold red" if many else "bold"),
        Span(f", {counted(bound, 'host')} bound" if bound else ", no host bound" if found.hosts else "", "bold"),
    )
    for one in found.outliers[:MAX_OUTLIERS]:
        page.blank()
        page.add(Span(outlier_title(one), "bold"), hang=2)
        page.labelled(list(_outlier_rows(one)), indent=4)
    if many > MAX_OUTLIERS:
        page.add(f"{many - MAX_OUTLIERS} more: advisor fleet why --json")
    _add_hosts(page, found)
    # How much the answer rests on: what was compared with how many peers, and what has too few.
    judged = [one for one in found.groups if one.is_judged]
    few = sorted({one.peers for one in found.groups if not one.is_judged} - {one.peers for one in judged})
    page.heading("Compared")
    groups = sorted({(one.peers, max(each.count for each in judged if each.peers == one.peers)) for one in judged})
    page.bullet("; ".join(f"{count} × {peers}" for peers, count in groups) or "nothing: too few peers did enough")
    if few:
        page.bullet(f"fewer than {MIN_PEERS} peers, so nothing is said about them: {'; '.join(few)}")
    if found.failed:
        page.heading("Without a span", f"  {counted(len(found.failed), 'host')}")
        page.labelled([(name, (why,)) for name, why in list(found.failed.items())[:_MAX_FAILED]])
        if len(found.failed) > _MAX_FAILED:
            page.add(f"{len(found.failed) - _MAX_FAILED} more: advisor fleet why --json")
    return page.text


def _outlier_rows(one: Outlier) -> Iterator[tuple[str, list[Piece]]]:
    yield "peers", [f"{one.count} others: {one.peers}; {one.deviations:.0f} times their spread away from the median"]
    if one.is_loaded:
        yield "why", [f"it serves {one.requests_times or 0:.1f} times the requests of its peers: spread the load"]
    elif one.requests_times is not None:
        yield "load", [f"{one.requests_times:.2g} times the requests of its peers: its load does not explain it"]
    for at, command in enumerate(outlier_commands(one)):
        yield "" if at else f"on {one.host}", [Span(command, COMMAND, is_whole=True)]


def _add_hosts(page: Page, found: FleetDiagnosis) -> None:
    """The bound ones by cause, most hosts first; those that nothing binds in one line."""
    bound = group_pairs((one.binds[0].id, (name, one)) for name, one in found.hosts if one.binds)
    if not found.hosts:
        return
    page.heading("What binds", "  the first cause of each host")
    for cause, hosts in sorted(bound.items(), key=lambda item: (-len(item[1]), item[0])):
        hosts.sort(key=lambda pair: (-pair[1].binds[0].share, natural(pair[0])))
        name, worst = hosts[0]
        page.add(Span(cause, "bold"), f"  {counted(len(hosts), 'host')}: {_list_names(found, hosts)}", indent=2, hang=2)
        page.add(f"{name}: {verdict_text(worst.binds[0])}", indent=6)
    free = [(name, one) for name, one in found.hosts if not one.binds]
    if free:
        words = nothing_text(free[0][1]) if len(free) == 1 else "nothing binds by the thresholds."
        page.add(Span("nothing", "bold"), f"  {_list_names(found, free)}: {words}", indent=2, hang=2)


def _list_names(found: FleetDiagnosis, hosts: list[tuple[str, Diagnosis]]) -> str:
    return runs([name for name, _ in hosts], ranked(name for name, _ in found.hosts))
