"""A comparison of hosts: the page for a terminal, and its document. First who differs, and the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.fleet.compare.comparison import (
    AttributeDifference,
    FleetFinding,
    HeldValue,
    HostComparison,
    HostLine,
    Network,
)
from advisor.host.grouping import group_pairs
from advisor.report.encode import encode_document
from advisor.report.fleet_matrix import add_matrix, add_rows
from advisor.report.format import ranked, runs
from advisor.report.layout import Page, Piece, Span, Style, counted, listed, padded
from advisor.report.units import format_speed
from advisor.rules.finding import SEVERITIES

SCHEMA = "advisor.fleet-comparison/1"
MAX_NAMES = 12
_MAX_ROWS = 8
_MAX_HOSTS = 20
STYLES: Mapping[str, Style] = {"critical": "bold red", "warning": "red", "advice": "yellow", "info": "cyan"}


def comparison_document(comparison: HostComparison) -> bytes:
    """``advisor.fleet-comparison/1``."""
    whole = {name: getattr(comparison, name) for name in comparison.__struct_fields__ if name != "hosts"}
    hosts = [msgspec.structs.asdict(one) for one in comparison.hosts]
    return encode_document({"schema": SCHEMA, "hosts": hosts, "failed": list(comparison.failed), **whole})


def comparison_text(comparison: HostComparison, *, width: int, color: bool) -> str:
    """The page. All names are spelt out where they are not printable. What findings of one kind have in common (why,
    when it hurts, who says so) is printed with the first of them."""
    page = Page(width, color=color)
    ranks = ranked(comparison.compared)
    page.add(*summary_pieces(comparison))
    _add_who(page, comparison)
    shown: set[str] = set()
    for finding in comparison.findings:
        page.blank()
        label = padded(Span(finding.severity, STYLES[finding.severity]), 9)
        page.add_cells((label,), (Span(finding.title, "bold"), " ", Span(finding.id, "dim")), indent=0)
        page.labelled(_finding_rows(finding, ranks, is_first=finding.id not in shown), indent=4)
        shown.add(finding.id)
        for command in finding.commands:
            page.command(command, indent=6)
    failed = [one for one in comparison.hosts if one.state == "failed"]
    if failed:
        page.heading(f"Not compared: {counted(len(failed), 'host')}")
        page.table([(Span(one.name, "bold"), one.message or "nothing is known of it") for one in failed])
    if len(comparison.types) > 1:
        page.heading("Types of hardware")
        page.table([(str(len(one.hosts)), f"{one.label}: {names_words(one.hosts, ranks)}") for one in comparison.types])
    _add_networks(page, comparison, ranks)
    if comparison.matrix is not None:
        add_matrix(page, comparison.matrix)
    if comparison.unknown:
        page.heading("Unknown, and so not compared")
        rows = [(names_words(one.hosts, ranks), unknown_words(one.attributes)) for one in comparison.unknown]
        page.table(rows[:_MAX_HOSTS])
    return page.text


def summary_words(comparison: HostComparison) -> str:
    """``12 hosts compared, 1 failed``."""
    failed = f", {len(comparison.failed)} failed" if comparison.failed else ""
    if comparison.pair:
        return f"{comparison.pair[0]} against {comparison.pair[1]}"
    return f"{counted(len(comparison.compared), 'host')} compared{failed}"


def verdict_words(comparison: HostComparison) -> str:
    """What came of it in one sentence; that all are alike is said about what is known alone."""
    if len(comparison.compared) < 2:
        return "nothing to compare: there are not two hosts that could be read"
    counts = [
        counted(count, severity) if severity == "warning" else f"{count} {severity}"
        for severity in reversed(SEVERITIES)
        if (count := sum(one.severity == severity for one in comparison.findings))
    ]
    alike = f"alike in {comparison.alike} of {comparison.attributes} attributes"
    return f"{alike}; {', '.join(counts)}" if counts else f"{alike}: no host differs, as far as is known"


def summary_pieces(comparison: HostComparison) -> Sequence[Piece]:
    return (Span(summary_words(comparison), "bold"), " · ", verdict_words(comparison))


def differing_hosts(comparison: HostComparison) -> list[tuple[HostLine, list[FleetFinding]]]:
    """Hosts that are outliers among others, the worst first; where nobody is in the majority, nobody is called one."""
    found = [(host, [one for one in comparison.findings if host.name in singled_out(one)]) for host in comparison.hosts]
    ranks = ranked(comparison.compared)
    return sorted(
        ((host, some) for host, some in found if some),
        key=lambda item: (*_rank_badness(item[1]), ranks.get(item[0].name, 0)),
    )


def singled_out(finding: FleetFinding) -> frozenset[str]:
    """The hosts of a finding that are not as most are, or have what must be there once."""
    hosts = {host for one in finding.differences if one.has_majority or len(one.groups) == 1 for host in one.outliers}
    return frozenset(hosts)


def _rank_badness(findings: Sequence[FleetFinding]) -> tuple[int, ...]:
    return tuple(-sum(one.severity == severity for one in findings) for severity in reversed(SEVERITIES))


def _add_who(page: Page, comparison: HostComparison) -> None:
    who = [(host, some) for host, some in differing_hosts(comparison) if any(one.severity != "info" for one in some)]
    if not who or comparison.pair:
        return
    page.heading("Who differs")
    rows = []
    for host, some in who[:_MAX_HOSTS]:
        worst = some[0].severity
        rows.append(
            (Span(host.name, "bold"), Span(worst, STYLES[worst]), ", ".join(dict.fromkeys(map(short_words, some))))
        )
    page.table(rows)
    if len(who) > _MAX_HOSTS:
        page.add(f"… and {counted(len(who) - _MAX_HOSTS, 'more host')}", indent=2)


def short_words(finding: FleetFinding) -> str:
    """What it is about, in a word or two: ``mtu in network``."""
    return finding.id.rpartition(".")[2].replace("-", " ")


def names_words(names: Sequence[str], ranks: Mapping[str, int], *, of: int | None = None) -> str:
    """Names in natural order, runs drawn together, and no more than fit; ``all`` where it is every host."""
    if of is not None and len(names) == of > 1:
        return f"all {of} hosts"
    if len(names) <= MAX_NAMES:
        return runs(names, ranks)
    text = runs(names, ranks)
    if text.count(",") < MAX_NAMES:
        return text
    first = sorted(names, key=lambda name: ranks.get(name, 0))[:MAX_NAMES]
    return f"{runs(first, ranks)} and {len(names) - MAX_NAMES} more"


def _finding_rows(
    finding: FleetFinding, ranks: Mapping[str, int], *, is_first: bool
) -> Iterator[tuple[str, Sequence[Piece]]]:
    if finding.scope:
        yield "within", (finding.scope,)
    for number, one in enumerate(finding.differences[:_MAX_ROWS]):
        yield ("seen" if not number else ""), (Span(one.attribute, "cyan"), "  ", difference_words(one, ranks))
    if len(finding.differences) > _MAX_ROWS:
        yield "", (Span(f"… and {len(finding.differences) - _MAX_ROWS} more; --json lists all", "dim"),)
    for number, line in enumerate(finding.seen[:_MAX_ROWS]):
        yield ("seen" if not number else ""), (line,)
    if finding.goes_with:
        yield "with it", (goes_with_words(finding.goes_with),)
    if is_first:
        yield "why", (finding.why,)
        yield "hurts when", (finding.hurts_when,)
        yield "source", (Span("; ".join(finding.sources), "dim"),)
    yield "do", (finding.advice,)


def goes_with_words(names: Sequence[str]) -> str:
    """What differs as a consequence, by name as far as it is few."""
    shown = ", ".join(names[:_MAX_ROWS])
    return f"{shown} and {len(names) - _MAX_ROWS} more" if len(names) > _MAX_ROWS else shown


def difference_words(one: AttributeDifference, ranks: Mapping[str, int]) -> str:
    """``1500 on n3 · 9000 on 11 others``; without a majority every value with its hosts."""
    parts = []
    for held in one.groups:
        count = f"{len(held.hosts)} hosts " if len(held.hosts) > 3 else ""
        parts.append(f"{held.value} on {count}{names_words(held.hosts, ranks)}")
    if one.absent:
        parts.append(f"not there on {names_words(one.absent, ranks)}")
    if one.has_majority:
        usual = "not there" if one.majority is None else str(one.majority)
        parts.append(f"{usual} on {counted(one.majority_count, 'other')}")
    elif len(one.groups) + bool(one.absent) > 1 and len(one.outliers) > 2:
        parts.insert(0, "no majority:")
        parts[:2] = [" ".join(parts[:2])]
    if one.unknown:
        parts.append(f"unknown on {names_words(one.unknown, ranks)}")
    return " · ".join(parts)


def _add_networks(page: Page, comparison: HostComparison, ranks: Mapping[str, int]) -> None:
    if not comparison.networks:
        return
    page.heading("Networks")
    rows = [(one.network, counted(one.hosts, "host"), network_words(one, ranks)) for one in odd_first(comparison)]
    add_rows(page, rows, _MAX_HOSTS)


def odd_first(comparison: HostComparison) -> list[Network]:
    """Networks, those with several MTUs or speeds first."""
    return sorted(comparison.networks, key=lambda one: (len(one.mtus) < 2, len(one.speeds) < 2))


def network_words(one: Network, ranks: Mapping[str, int]) -> str:
    """``MTU 9000 · 25 Gbit/s``, and whose it is where there are several."""
    parts = [one.scope] if one.scope else []
    parts.append(f"MTU {_values_words(one.mtus, ranks, str)}" if one.mtus else "MTU unknown")
    if one.speeds:
        parts.append(_values_words(one.speeds, ranks, format_speed))
    return " · ".join(parts)


def _values_words(groups: Sequence[HeldValue], ranks: Mapping[str, int], shown: Callable[[int], str]) -> str:
    said = [(shown(int(one.value)), one.hosts) for one in groups]
    if len(said) == 1:
        return said[0][0]
    first, *rest = said
    return ", ".join(
        [f"{first[0]} ({len(first[1])})", *(f"{value} ({names_words(some, ranks)})" for value, some in rest)]
    )


def unknown_words(attributes: Iterable[str]) -> str:
    """The attributes by topic, as they may be many."""
    topics = group_pairs((name.partition(".")[0], name) for name in attributes)
    return listed(
        [names[0] if len(names) == 1 else f"{len(names)} of {topic}" for topic, names in sorted(topics.items())]
    )
