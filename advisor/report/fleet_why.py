"""What binds many hosts, and who stands out: as text for a person, and as the document of ``advisor fleet why``."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.diagnosis.cause import percent
from advisor.diagnosis.diagnose import Diagnosis
from advisor.fleet.why import MIN_PEERS, FleetDiagnosis, Outlier
from advisor.host.grouping import group_pairs
from advisor.report.format import natural, ranked, runs
from advisor.report.layout import COMMAND, Page, Piece, Span, counted
from advisor.report.why import nothing_text, verdict_text, why_document

SCHEMA = "advisor.fleet-why/1"
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
        "schema": SCHEMA,
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
