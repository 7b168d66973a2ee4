"""What the matrix of paths says: where packets that both ends would take do not arrive, and who is far away.

Judged within one network at a time, since nodes of one network are a few switches apart. An echo has to come back, so
each cell speaks of both directions; that one end has an answer and the other has none is a finding of its own. That the
links of a network have different MTUs is none of it: no packet is needed to see that (`fleet.compare.topology`).
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from advisor.fleet.compare.comparison import FleetFinding
from advisor.fleet.compare.path_matrix import Matrix, MatrixCell
from advisor.host.numbers import group_pairs
from advisor.rules.rule import Severity
from advisor.rules.sources import MEASURED_MTU

RFC_PMTUD = "RFC 1191 (IPv4) and RFC 8201 (IPv6), path MTU discovery"
RFC_BLACK_HOLE = "RFC 2923, section 2.1: black holes of path MTU discovery"
RFC_REQUIREMENTS = "RFC 1122, section 3.2.2.6: every host must answer echoes"
MODIFIED_Z = "Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993): modified z-score above 3.5"

RTT_FLOOR_US = 100.0
"""An outlier is longer than the median by this much at least, and twice as long: in a network of 20 us, a scheduler
that wakes ping up late is no fault of a path."""
MAX_MODIFIED_Z = 3.5
MIN_PAIRS = 6
"""Below four hosts in a network nobody can say who is the outlier."""
LOST_ECHOES = 2
"""Of six. The first one may be lost while the neighbour is looked up."""
_TAGS = 8  # bytes: some switches and kernels let one or two VLAN tags more through in one direction
_SHOWN = 8


def judge_matrix(matrix: Matrix) -> tuple[FleetFinding, ...]:
    """The findings of each network, in the order of the networks and of what matters most."""
    networks = group_pairs((cell.network, cell) for cell in matrix.cells)
    judges = (_judge_sizes, _judge_answers, _slow_paths)
    return tuple(one for look in judges for cells in networks.values() for one in look(cells))


def find_culprits(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The hosts that the pairs have in common: the one with the most others first, until all pairs are accounted for.
    Of a pair that stands alone, none: either end may be it."""
    left = {frozenset(pair) for pair in pairs}
    found = []
    while left:
        counts = {host: sum(host in pair for pair in left) for host in sorted({one for pair in left for one in pair})}
        host = max(counts, key=lambda one: counts[one])
        if counts[host] < 2:
            break
        found.append(host)
        left = {pair for pair in left if host not in pair}
    return tuple(found)


def _place_of(cells: Sequence[MatrixCell]) -> str:
    """The hosts that are behind it, or the pair."""
    named = find_culprits((cell.source, cell.target) for cell in cells)
    alone = [cell for cell in cells if cell.source not in named and cell.target not in named]
    pairs = dict.fromkeys(" and ".join(sorted((cell.source, cell.target))) for cell in alone)
    shown = [*named, *pairs]
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _path_finding(
    identity: str, cells: Sequence[MatrixCell], words: Callable[[MatrixCell], str], severity: Severity = "warning",
    *, title: str, why: str, advice: str, sources: tuple[str, ...], hurts_when: str = "Never: to look changes nothing.",
) -> FleetFinding:  # fmt: skip
    rows = [f"{cell.source} ({cell.link}) → {cell.target} ({cell.target_link}): {words(cell)}" for cell in cells]
    more = (f"and {len(rows) - _SHOWN} more",) if len(rows) > _SHOWN else ()
    return FleetFinding(
        id=identity,
        severity=severity,
        title=title,
        hosts=find_culprits((cell.source, cell.target) for cell in cells),
        why=why,
        advice=advice,
        hurts_when=hurts_when,
        sources=sources,
        rank=0,
        seen=(*rows[:_SHOWN], *more),
    )


def _size_words(cell: MatrixCell) -> str:
    by = f", says {cell.limited_by}" if cell.limited_by and cell.limit != "silent" else ""
    return f"{'less than' if cell.path_mtu is None else f'{cell.path_mtu} of'} {cell.wanted} bytes{by}"


def _probe_command(cell: MatrixCell) -> str:
    return f"on {cell.source}: advisor probe {shlex.quote(cell.address)} --mtu {cell.wanted}"


def _judge_sizes(cells: Sequence[MatrixCell]) -> Iterator[FleetFinding]:
    less = [cell for cell in cells if cell.carries is False]
    silent = [cell for cell in less if cell.limit == "silent"]
    if silent:
        yield _path_finding(
            "fleet.path-black-hole",
            silent,
            _size_words,
            title=f"Packets that both links take vanish on the way: {_place_of(silent)}",
            why="Small packets are answered; those of the links' own MTU are lost, and nobody says so. A switch port "
            "or a trunk between them has a smaller MTU. TCP connections open and stall at the first full packet; "
            "datagrams (LLT over UDP, heartbeats) are lost without an error.",
            advice="Raise the MTU of the switch ports between these links, or lower that of the links; then "
            f"{_probe_command(silent[0])}",
            hurts_when="Lowering the MTU of one node alone makes it the next one that differs: all links of a network "
            "need the same.",
            sources=(MEASURED_MTU, RFC_BLACK_HOLE),
        )
    big = [cell for cell in less if cell.limit in ("too-big", "link", "way-back")]
    if big:
        yield _path_finding(
            "fleet.path-mtu-smaller",
            big,
            _size_words,
            title=f"A smaller MTU on the way than both links have: {_place_of(big)}",
            why="Somebody on the way, or the node's own kernel, says that packets of the links' MTU are too big. TCP "
            "adapts while these messages get through; a datagram that must not be fragmented is lost. Between nodes of "
            "one network nobody should: a router with proxy ARP, a tunnel, or a route with an MTU of its own is there.",
            advice=f"On {big[0].source}: ip route get {shlex.quote(big[0].address)} (a gateway, an mtu); then "
            f"{_probe_command(big[0])}",
            hurts_when="A tunnel that has to be there: its own headers need the difference, and the links' MTU must "
            "allow for them.",
            sources=(RFC_PMTUD,),
        )
    odd = [pair for pair in _both_directions(cells) if _mtus_differ(*pair)]
    if odd:
        yield _path_finding(
            "fleet.path-mtu-asymmetric",
            [cell for pair in odd for cell in pair],
            lambda cell: f"{cell.path_mtu} bytes",
            title=f"The path MTU differs by direction: {_place_of([cell for cell, _ in odd])}",
            why="The two directions do not take the same way, or one switch port takes in what it does not give out. "
            "What works when one node opens a connection fails when the other does.",
            advice="Compare the switch ports at both ends, in both directions (MTU, LACP members, VLAN)",
            sources=(MEASURED_MTU, RFC_PMTUD),
        )


def _both_directions(cells: Sequence[MatrixCell]) -> Iterator[tuple[MatrixCell, MatrixCell]]:
    """Both directions of each pair of links, each pair once."""
    known = {(cell.source, cell.link, cell.target, cell.target_link): cell for cell in cells}
    for (source, link, target, far), cell in known.items():
        back = known.get((target, far, source, link))
        if back is not None and source < target:
            yield cell, back


def _mtus_differ(one: MatrixCell, back: MatrixCell) -> bool:
    return one.path_mtu is not None and back.path_mtu is not None and abs(one.path_mtu - back.path_mtu) > _TAGS


# -- who answers ---------------------------------------------------------------------------------------------------


def _judge_answers(cells: Sequence[MatrixCell]) -> Iterator[FleetFinding]:
    asked = [cell for cell in cells if cell.sent]
    deaf = {cell.target for cell in asked} - {cell.target for cell in asked if cell.answered}
    lame = {cell.source for cell in asked} - {cell.source for cell in asked if cell.answered}
    mute = [cell for cell in asked if not cell.answered]
    gone = [cell for cell in mute if cell.target in deaf & lame or cell.source in lame]
    quiet = [cell for cell in mute if cell.target in deaf and cell not in gone]
    if quiet:
        yield _path_finding(
            "fleet.drops-echoes",
            quiet,
            _why_mute,
            "info",
            title=f"Answers no echoes, but gets answers to its own: {', '.join(sorted({one.target for one in quiet}))}",
            why="The path is there, since its own echoes come back. It drops echo requests, or a firewall does. What "
            "the path carries is known from its own cells only.",
            advice="Permit ICMP echo requests from the nodes of this network: sysctl net.ipv4.icmp_echo_ignore_all, "
            "and nft list ruleset",
            hurts_when="A network in which hosts must not be found.",
            sources=(RFC_REQUIREMENTS,),
        )
    if gone:
        yield _path_finding(
            "fleet.cut-off",
            gone,
            _why_mute,
            title=f"Neither answers nor gets an answer: {_place_of(gone)}",
            why="No echo came back in either direction over this network. The link, its VLAN or its address may be "
            "wrong, or echoes are dropped on the way.",
            advice=f"On {gone[0].source}: ip neigh show {shlex.quote(gone[0].address)} (FAILED: nobody has the "
            "address)",
            sources=(RFC_REQUIREMENTS,),
        )
    rest = [cell for cell in mute if cell not in quiet and cell not in gone]
    if rest:
        yield _path_finding(
            "fleet.one-way",
            rest,
            _why_mute,
            title=f"Some pairs do not reach each other while others do: {_place_of(rest)}",
            why="Both ends get answers from other nodes of the network, but not in these directions: a firewall rule, "
            "an address that two hosts have, a static neighbour entry, or a path of the switch that is broken.",
            advice=f"On {rest[0].source}: ip neigh show {shlex.quote(rest[0].address)}; compare the address with ip "
            f"link show dev {shlex.quote(rest[0].target_link)} on {rest[0].target}",
            sources=(RFC_REQUIREMENTS,),
        )
    lossy = [cell for cell in cells if cell.answered and cell.sent - cell.received >= LOST_ECHOES]
    if lossy:
        yield _path_finding(
            "fleet.echoes-lost",
            lossy,
            lambda cell: f"{cell.sent - cell.received} of {cell.sent} lost",
            "advice",
            title=f"Echoes are lost on the way: {_place_of(lossy)}",
            why="On a quiet network none is. Losses cost TCP its window, and datagrams are gone.",
            advice=f"on {lossy[0].source}: advisor probe {shlex.quote(lossy[0].address)} --count 50; then ip -s link "
            f"show dev {shlex.quote(lossy[0].link)} at both ends",
            sources=(RFC_REQUIREMENTS,),
        )


def _why_mute(cell: MatrixCell) -> str:
    return cell.error or "no answer"


# -- who is far away -----------------------------------------------------------------------------------------------


def _slow_paths(cells: Sequence[MatrixCell]) -> Iterator[FleetFinding]:
    pairs: dict[tuple[tuple[str, str], ...], MatrixCell] = {}
    for cell in cells:
        # Of both directions the shorter one: a node that was busy while it asked makes its own longer.
        key = tuple(sorted(((cell.source, cell.link), (cell.target, cell.target_link))))
        if cell.answered and (key not in pairs or _median_us(cell) < _median_us(pairs[key])):
            pairs[key] = cell
    if len(pairs) < MIN_PAIRS:
        return
    times = [_median_us(cell) for cell in pairs.values()]
    middle = statistics.median(times)
    spread = statistics.median(abs(one - middle) for one in times)
    those = [cell for cell in pairs.values() if is_far(_median_us(cell), middle, spread)]
    if those:
        yield _path_finding(
            "fleet.rtt-outlier",
            those,
            lambda cell: f"{_median_us(cell):.0f} us",
            "advice",
            title=f"Much longer round trips than the others of the network: {_place_of(those)}",
            why="A longer way (another switch, zone or site), a busy or slow node, an interrupt that waits for company "
            "(coalescing), or a link at a lower speed. Synchronous replication waits for it with every write.",
            advice=f"on {those[0].source}: advisor probe {shlex.quote(those[0].address)} --count 50, again at another "
            "hour; compare speed, coalescing and place of the nodes (advisor fleet compare)",
            hurts_when="A node that has to be far away, as in another zone.",
            sources=(MODIFIED_Z,),
        )


def _median_us(cell: MatrixCell) -> float:
    return cell.rtt_us[1] if cell.rtt_us else 0.0


def is_far(rtt_us: float, median_us: float, deviation_us: float) -> bool:
    """Whether a round trip is an outlier among others with this median and this median absolute deviation."""
    beyond = rtt_us - median_us
    return beyond > max(RTT_FLOOR_US, median_us) and 0.6745 * beyond > MAX_MODIFIED_Z * deviation_us
