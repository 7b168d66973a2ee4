"""What the paths to peers carry: as text for a person, and as the document of ``advisor probe --json``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.reach.addresses import Limit, Reach, Role
from advisor.reach.peers import Survey
from advisor.report.layout import Page, Piece, Span, Style, listed, padded, width_of

_ROLES: Mapping[Role, str] = {
    "named": "named",
    "gateway": "gateway",
    "llt": "LLT",
    "iscsi": "iSCSI",
    "nfs": "NFS",
    "nvme": "NVMe",
    "neighbour": "neighbour",
}
_LIMITS: Mapping[Limit, str] = {"link": "link", "silent": "silent", "way-back": "way back"}
_JUMBO = 9000
Meaning = tuple[str, str, Sequence[Sequence[str]]]
"""A word of the table, what it means, and commands that show more."""


def probe_document(survey: Survey) -> dict[str, object]:
    """``advisor.probe/1``: a peer for each path, with ``carries`` where ``--mtu`` asked for a size."""
    return {
        "schema": "advisor.probe/1",
        "mtu": survey.mtu,
        "carried": None if survey.mtu is None else survey.is_carried,
        "peers": [_peer_dict(survey, reach) for reach in survey.reaches],
        "unprobeable": [msgspec.to_builtins(one) for one in survey.unprobeable],
    }


def _peer_dict(survey: Survey, reach: Reach) -> dict[str, object]:
    peer: dict[str, object] = msgspec.to_builtins(reach.peer)
    rest = {name: value for name, value in msgspec.to_builtins(reach).items() if name != "peer"}
    return {**peer, **rest, "carries": survey.carries(reach)}


def probe_text(survey: Survey, *, width: int, color: bool) -> str:
    """The table, what each kind of end means and the command that helps, and who could not be asked."""
    page = Page(width, color=color)
    _add_table(page, survey)
    if survey.mtu is not None:
        failing = [reach for reach in survey.reaches if not survey.carries(reach)]
        page.blank()
        if not failing:
            count = len(survey.reaches)
            who = "the peer carries" if count == 1 else f"all {count} peers carry"
            page.add(Span("Yes", "green"), f": {who} packets of {survey.mtu} bytes.")
        else:
            named = [f"{reach.peer.address} ({reach.path_mtu or _limit_words(reach)})" for reach in failing]
            text = f"packets of {survey.mtu} bytes do not get to {listed(named)} and back whole."
            page.add(Span("No", "red"), f": {text}", hang=4)
            links = {reach.peer.link: reach.path_mtu for reach in failing if reach.limit == "link" and reach.peer.link}
            if links:
                own = listed([f"{link} ({size})" for link, size in links.items()])
                text = f"Nothing so large leaves this host by {own}: raise the MTU there before you ask again."
                page.add(text, indent=4)
    for word, text, commands in (*_limit_meanings(survey.reaches), *_answer_meanings(survey.reaches)):
        page.blank()
        page.add(Span(word, "bold"), f": {text}", hang=2)
        for command in commands:
            page.command(shlex.join(command), indent=4)
    page.bulleted(
        "Not asked",
        ([Span(one.what, "bold"), f" ({one.link})" if one.link else "", f": {one.why}"] for one in survey.unprobeable),
    )
    return page.text


def _peer_row(survey: Survey, reach: Reach, who: str) -> tuple[Piece, ...]:
    peer = reach.peer
    return (
        Span(peer.address, "bold"),
        who,
        peer.link or "-",
        "-"
        if reach.rtt_ms_median is None
        else (f"{reach.rtt_ms_median:.0f}" if reach.rtt_ms_median >= 100 else f"{reach.rtt_ms_median:.3g}"),
        f"{reach.lost}/{reach.sent}",
        Span("-" if reach.path_mtu is None else str(reach.path_mtu), _row_style(survey, reach)),
        _limit_words(reach),
    )


def _row_style(survey: Survey, reach: Reach) -> Style:
    if survey.carries(reach) is False or not reach.answered:
        return "red"
    return "yellow" if reach.limit in ("silent", "way-back", "unknown") else "green"


def _limit_words(reach: Reach) -> str:
    if reach.limit == "too-big":
        return f"too big, says {reach.limited_by}"
    if reach.limit in _LIMITS:
        return _LIMITS[reach.limit]
    return "unsteady" if reach.answered else "no answer"


def _add_table(page: Page, survey: Survey) -> None:
    """Aligned columns: who each peer is in full, or in a word where there is no room for that.

    An address that leaves no room for even so much has a line of its own.
    """
    columns = ("peer", "who", "link", "RTT ms", "lost", "path MTU", "limit")
    titles = tuple(Span(title, "dim") for title in columns)
    full = [titles, *(_peer_row(survey, reach, reach.peer.why) for reach in survey.reaches)]
    short = [titles, *(_peer_row(survey, reach, _ROLES[reach.peer.role]) for reach in survey.reaches)]
    for table in (full, short):
        if sum(_column_sizes(table)) <= page.prose:
            page.table(table, indent=0)
            return
    sizes = _column_sizes(short)[1:]
    for row in short:
        page.add(row[0])
        page.add_cells([padded(cell, size) for cell, size in zip(row[1:-1], sizes, strict=False)], (row[-1],), indent=4)


def _column_sizes(table: Sequence[Sequence[Piece]]) -> list[int]:
    """The width of each column with two blanks behind it, but for the last one."""
    last = len(table[0]) - 1
    return [max(width_of((row[at],)) for row in table) + 2 * (at < last) for at in range(last + 1)]


def _limit_meanings(reaches: Sequence[Reach]) -> Iterator[Meaning]:
    """What each kind of limit that was found means."""
    low = {reach.peer.link for reach in reaches if reach.limit == "link" and (reach.path_mtu or 0) < _JUMBO}
    names = ",".join(sorted(name for name in low if name and name != "lo"))
    if names:
        text = (
            "nothing on the way is smaller than the MTU of the own link, and nothing larger can leave it. "
            "What it would take to raise it (this changes nothing):"
        )
        yield "link", text, [("advisor", "plan", "jumbo-frames", "--set", f"links={names}")]
    elif any(reach.limit == "link" for reach in reaches):
        text = "nothing on the way is smaller than the MTU of the own link, and nothing larger can leave it."
        yield "link", text, []
    # One for each router that says so.
    routers: dict[str | None, str] = {}
    for reach in reaches:
        if reach.limit == "too-big":
            routers.setdefault(reach.limited_by, reach.peer.address)
    if routers:
        text = (
            "a router on the way says that it cannot pass more on. TCP adapts to that for as long as these messages "
            "get through; a datagram with don't-fragment is lost. Where it is:"
        )
        yield "too big", text, [("tracepath", "-n", address) for address in routers.values()]
    if any(reach.limit == "silent" for reach in reaches):
        text = (
            "small packets are answered; larger ones vanish and nobody says so. A switch port or the peer has a "
            "smaller MTU, or a firewall drops the messages that would report it. Connections hang on this: they open, "
            "and stall at the first full packet. See which MTU the peer has; if it is not the limit, the switches "
            "between are. On the peer:"
        )
        yield "silent", text, [("ip", "link", "show")]
    sizes = [f"{one.peer.address} in {one.said_mtu} bytes" for one in reaches if one.limit == "way-back"]
    if sizes:
        text = (
            f"the peer takes larger packets in, but its answers come in fragments ({listed(sizes)}): its own link, or "
            "the way back, has a smaller MTU. On the peer:"
        )
        yield "way back", text, [("ip", "link", "show")]


def _answer_meanings(reaches: Sequence[Reach]) -> Iterator[Meaning]:
    silent = [reach for reach in reaches if not reach.answered]
    if silent:
        text = (
            f"{_list_reasons(silent)}. Nobody has the address, it is down, or echoes are dropped on the way: nothing "
            "can be said about the path. Whether it is there at all, on a network that is directly connected (FAILED: "
            "nobody):"
        )
        commands = [("ip", "neigh", "show", reach.peer.address.partition("%")[0]) for reach in silent]
        yield "no answer", text, commands
    unsteady = [reach for reach in reaches if reach.answered and reach.limit == "unknown"]
    if unsteady:
        text = f"{_list_reasons(unsteady)}. How much is lost:"
        yield "unsteady", text, [("advisor", "probe", one.peer.address, "--count", "50") for one in unsteady]


def _list_reasons(reaches: Iterable[Reach]) -> str:
    return "; ".join(f"{reach.peer.address}: {reach.why_not or ''}" for reach in reaches)
