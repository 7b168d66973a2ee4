"""What the paths to peers carry: as text for a person, and as the document of ``advisor probe --json``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from advisor.reach.records import Limit, Reach, Role, Unprobeable
from advisor.reach.survey import Survey
from advisor.report.layout import Page, Piece, Span, Style, listed, padded, width_of

_ROLES: Final[Mapping[Role, str]] = {
    "named": "named",
    "gateway": "gateway",
    "llt": "LLT",
    "iscsi": "iSCSI",
    "nfs": "NFS",
    "nvme": "NVMe",
}
_LIMITS: Final[Mapping[Limit, str]] = {"link": "link", "silent": "silent", "way-back": "way back"}
_JUMBO: Final = 9000


def probe_document(survey: Survey) -> dict[str, object]:
    """``advisor.probe/1``: a peer for each path, with ``carries`` where ``--mtu`` asked for a size."""
    return {
        "schema": "advisor.probe/1",
        "mtu": survey.mtu,
        "carried": None if survey.mtu is None else survey.is_carried,
        "peers": [_peer(survey, reach) for reach in survey.reaches],
        "unprobeable": [msgspec.to_builtins(one) for one in survey.unprobeable],
    }


def _peer(survey: Survey, reach: Reach) -> dict[str, object]:
    peer: dict[str, object] = msgspec.to_builtins(reach.peer)
    rest = {name: value for name, value in msgspec.to_builtins(reach).items() if name != "peer"}
    return {**peer, **rest, "carries": survey.carries(reach)}


def probe_text(survey: Survey, *, width: int, color: bool) -> str:
    """The table, what each kind of end means and the command that helps, and who could not be asked."""
    page = Page(width, color=color)
    _add_table(page, survey)
    if survey.mtu is not None:
        _add_verdict(page, survey, survey.mtu)
    for add in (_add_link, _add_too_big, _add_silent, _add_way_back, _add_unanswered, _add_unsteady):
        add(page, survey.reaches)
    _add_unprobeable(page, survey.unprobeable)
    return page.text


def _row(survey: Survey, reach: Reach, who: str) -> tuple[Piece, ...]:
    peer = reach.peer
    return (
        Span(peer.address, "bold"),
        who,
        peer.link or "-",
        "-" if reach.rtt_ms_median is None else _milliseconds(reach.rtt_ms_median),
        f"{reach.lost}/{reach.sent}",
        Span("-" if reach.path_mtu is None else str(reach.path_mtu), _style(survey, reach)),
        _limit_words(reach),
    )


def _milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _style(survey: Survey, reach: Reach) -> Style:
    if survey.carries(reach) is False or not reach.answered:
        return "red"
    return "yellow" if reach.limit in ("silent", "way-back", "unknown") else "green"


def _limit_words(reach: Reach) -> str:
    if reach.limit == "too-big":
        return f"too big, says {reach.limited_by}"
    return _LIMITS.get(reach.limit) or ("unsteady" if reach.answered else "no answer")


def _add_table(page: Page, survey: Survey) -> None:
    """Aligned columns: who each peer is in full, or in a word where there is no room for that.

    An address that leaves no room for even so much has a line of its own.
    """
    titles = tuple(Span(title, "dim") for title in ("peer", "who", "link", "RTT ms", "lost", "path MTU", "limit"))
    full = [titles, *(_row(survey, reach, reach.peer.why) for reach in survey.reaches)]
    short = [titles, *(_row(survey, reach, _ROLES[reach.peer.role]) for reach in survey.reaches)]
    for table in (full, short):
        if sum(_sizes(table)) <= page.prose:
            page.table(table, indent=0)
            return
    sizes = _sizes(short)[1:]
    for row in short:
        page.add(row[0])
        page.beside([padded(cell, size) for cell, size in zip(row[1:-1], sizes, strict=False)], (row[-1],), indent=4)


def _sizes(table: Sequence[Sequence[Piece]]) -> list[int]:
    """The width of each column with two blanks behind it, but for the last one."""
    last = len(table[0]) - 1
    return [max(width_of((row[at],)) for row in table) + 2 * (at < last) for at in range(last + 1)]


def _add_verdict(page: Page, survey: Survey, mtu: int) -> None:
    failing = [reach for reach in survey.reaches if not survey.carries(reach)]
    page.blank()
    if not failing:
        those = "the peer carries" if len(survey.reaches) == 1 else f"all {len(survey.reaches)} peers carry"
        page.add(Span("Yes", "green"), f": {those} packets of {mtu} bytes.")
        return
    named = [f"{reach.peer.address} ({reach.path_mtu or _limit_words(reach)})" for reach in failing]
    page.add(Span("No", "red"), f": packets of {mtu} bytes do not get to {listed(named)} and back whole.", hang=4)
    links = {reach.peer.link: reach.path_mtu for reach in failing if reach.limit == "link" and reach.peer.link}
    if links:
        own = listed([f"{link} ({size})" for link, size in links.items()])
        page.add(f"Nothing so large leaves this host by {own}: raise the MTU there before you ask again.", indent=4)


def _add_meaning(page: Page, word: str, text: str, commands: Iterable[Sequence[str]]) -> None:
    page.blank()
    page.add(Span(word, "bold"), f": {text}", hang=2)
    for command in commands:
        page.command(shlex.join(command), indent=4)


def _add_link(page: Page, reaches: Iterable[Reach]) -> None:
    those = [reach for reach in reaches if reach.limit == "link"]
    if not those:
        return
    text = "nothing on the way is smaller than the MTU of the own link, and nothing larger can leave it."
    low = {reach.peer.link for reach in those if reach.peer.link not in (None, "lo") and (reach.path_mtu or 0) < _JUMBO}
    names = ",".join(sorted(name for name in low if name))
    if not names:
        _add_meaning(page, "link", text, [])
        return
    more = " What it would take to raise it (this changes nothing):"
    _add_meaning(page, "link", text + more, [("advisor", "plan", "jumbo-frames", "--set", f"links={names}")])


def _add_too_big(page: Page, reaches: Iterable[Reach]) -> None:
    those = [reach for reach in reaches if reach.limit == "too-big"]
    if those:
        text = (
            "a router on the way says that it cannot pass more on. TCP adapts to that for as long as these messages "
            "get through; a datagram with don't-fragment is lost. Where it is:"
        )
        # One for each router that says so.
        by: dict[str | None, str] = {}
        for reach in those:
            by.setdefault(reach.limited_by, reach.peer.address)
        _add_meaning(page, "too big", text, [("tracepath", "-n", address) for address in by.values()])


def _add_silent(page: Page, reaches: Iterable[Reach]) -> None:
    if any(reach.limit == "silent" for reach in reaches):
        text = (
            "small packets are answered; larger ones vanish and nobody says so. A switch port or the peer has a "
            "smaller MTU, or a firewall keeps the messages back that would tell. Connections hang on this: they open, "
            "and stall at the first full packet. See which MTU the peer has; if it is not the limit, the switches "
            "between are. On the peer:"
        )
        _add_meaning(page, "silent", text, [("ip", "link", "show")])


def _add_way_back(page: Page, reaches: Iterable[Reach]) -> None:
    those = [reach for reach in reaches if reach.limit == "way-back"]
    if those:
        sizes = listed([f"{reach.peer.address} in {reach.said_mtu} bytes" for reach in those])
        text = (
            f"the peer takes larger packets in, but its answers come in fragments ({sizes}): its own link, or the way "
            "back, has a smaller MTU. On the peer:"
        )
        _add_meaning(page, "way back", text, [("ip", "link", "show")])


def _add_unanswered(page: Page, reaches: Iterable[Reach]) -> None:
    those = [reach for reach in reaches if not reach.answered]
    if those:
        reasons = "; ".join(f"{reach.peer.address}: {reach.why_not}" for reach in those)
        text = (
            f"{reasons}. Nobody has the address, it is down, or echoes are dropped on the way: nothing can be said "
            "about the path. Whether it is there at all, on a network that is directly connected (FAILED: nobody):"
        )
        commands = [("ip", "neigh", "show", reach.peer.address.partition("%")[0]) for reach in those]
        _add_meaning(page, "no answer", text, commands)


def _add_unsteady(page: Page, reaches: Iterable[Reach]) -> None:
    those = [reach for reach in reaches if reach.answered and reach.limit == "unknown"]
    if those:
        reasons = "; ".join(f"{reach.peer.address}: {reach.why_not}" for reach in those)
        commands = [("advisor", "probe", reach.peer.address, "--count", "50") for reach in those]
        _add_meaning(page, "unsteady", f"{reasons}. How much is lost:", commands)


def _add_unprobeable(page: Page, left: Iterable[Unprobeable]) -> None:
    rows = list(left)
    if not rows:
        return
    page.heading("Not asked")
    for one in rows:
        page.bullet(Span(one.what, "bold"), f" ({one.link})" if one.link else "", f": {one.why}")
