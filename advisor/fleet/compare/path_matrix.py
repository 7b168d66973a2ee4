"""What the paths between the nodes of a fleet carry, and how long they are: each node asks the others.

Whom each asks: the links of other nodes that are in one network with a link of its own. Up to `FULL_MESH` hosts in a
network, everybody asks everybody. Beyond that each asks some `NEIGHBOURS`, and is asked by as many, at distances that
grow from the next one to the far end of the ring: no chance in it, so that two runs ask the same. Each pair is asked in
both directions. Links of a cluster and of storage come first, since a host asks `MAX_TARGETS` at most.

How: by a POSIX ``sh`` script that needs ping(8) and nothing else. The answer is the word of a host: only lines of the
very form that the script prints are taken, and of them only numbers and addresses. ping's own sentences are kept as
text to be shown.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Literal, get_args

import msgspec

from advisor.fleet import counted_hosts
from advisor.fleet.compare.collected import Membership
from advisor.fleet.engine import HostAnswer, HostJob, run_job
from advisor.fleet.inventory import Inventory, InventoryHost, file_name
from advisor.host.patterns import lazy_regex
from advisor.reach.addresses import Limit, parse_address
from advisor.reach.echo import LARGEST

FULL_MESH = 16
NEIGHBOURS = 8
MAX_TARGETS = 128
_LEAST_MTU = {4: 68, 6: 1280}  # RFC 791, RFC 8200
_LINK_NAME_BYTES = 15  # IFNAMSIZ, without the end


class ProbedLink(msgspec.Struct, frozen=True):
    """A link of another host, to be asked over ``link``.

    ``mtu`` and ``target_mtu`` are those of the two links in bytes, ``wanted`` the smaller of them: the largest packet
    that both take. ``role`` is what the fleet knows the link by (`advisor.fleet.compare.collected`).
    """

    target: str
    address: str
    network: str
    link: str
    target_link: str
    role: str
    mtu: int | None
    target_mtu: int | None

    @property
    def wanted(self) -> int | None:
        return None if self.mtu is None or self.target_mtu is None else min(self.mtu, self.target_mtu, LARGEST)


class Targets(msgspec.Struct, frozen=True):
    """Whom each host asks. ``possible`` counts the pairs of links that share a network, in both directions; ``notes``
    says what is left out, and why."""

    by_host: Mapping[str, tuple[ProbedLink, ...]]
    possible: int
    notes: tuple[str, ...]

    @property
    def asked(self) -> int:
        return sum(map(len, self.by_host.values()))


_Place = tuple[str, Membership]
_Ring = Mapping[str, Sequence[Membership]]


def choose_targets(members: Mapping[str, Iterable[Membership]]) -> Targets:
    """Whom each host asks, by the networks that its links are in (`HostSummary.memberships`)."""
    notes: list[str] = []
    places = [(host, one) for host in sorted(members) for one in members[host] if _is_askable(one)]
    chosen: dict[str, dict[tuple[str, str, str], ProbedLink]] = {host: {} for host in sorted(members)}
    rings = _make_rings(_without_shared(places, notes))
    for ring in rings:
        for host, other, own, far in _ring_pairs(ring, ring_strides(len(ring))):
            made = ProbedLink(other, far.address, own.network, own.link, far.link, own.role, own.mtu, far.mtu)
            # Two links that share several networks (IPv4 and IPv6, say) are one wire.
            chosen[host].setdefault((own.link, other, far.link), made)
    kept = {host: tuple(found.values())[:MAX_TARGETS] for host, found in chosen.items()}
    # Pairs of links, each once. Those of a large network are counted and not listed: a thousand hosts have a million;
    # of two large networks over the very same links, one counts.
    listed: set[tuple[str, str, str, str]] = set()
    large = {}
    for ring in rings:
        if len(ring) <= FULL_MESH:
            pairs = _ring_pairs(ring, range(1, len(ring)))
            listed.update((host, own.link, other, far.link) for host, other, own, far in pairs)
        else:
            ends = frozenset((host, one.link) for host, links in ring.items() for one in links)
            # Of hosts with so many links each, ascending: every two of them make as many pairs as the one with more
            # has.
            large[ends] = 2 * sum(place * count for place, count in enumerate(sorted(map(len, ring.values()))))
    targets = Targets(kept, len(listed) + sum(large.values()), tuple(notes))
    is_large = any(len(ring) > FULL_MESH for ring in rings)
    return msgspec.structs.replace(targets, notes=(*notes, *_describe_bounds(targets, chosen, is_large=is_large)))


def ring_strides(count: int) -> tuple[int, ...]:
    """How far around a ring of ``count`` hosts those are whom each asks; with d also ``count`` - d, so that every pair
    is asked in both directions."""
    if count <= FULL_MESH:
        return tuple(range(1, count))
    steps = NEIGHBOURS // 2
    ahead = {max(1, round((count // 2) ** (step / (steps - 1)))) for step in range(steps)}
    return tuple(sorted(ahead | {count - one for one in ahead}))


def _is_askable(one: Membership) -> bool:
    """Whether a captured host's words are an address and a name of a link, as they go into a script."""
    address = parse_address(one.address)
    if address is None or "%" in one.address or (one.mtu is not None and one.mtu < _LEAST_MTU[address.version]):
        return False
    name = one.link
    is_name = name not in ("", ".", "..") and name.isprintable() and not any(char in "/: " for char in name)
    return is_name and len(name.encode("utf-8", "surrogateescape")) <= _LINK_NAME_BYTES


def _without_shared(places: Sequence[_Place], notes: list[str]) -> list[_Place]:
    """Those whose address no other host has: an address of a cluster moves about, and that of a bridge for containers
    is there on every host and reaches none of them."""
    holders: dict[str, set[str]] = {}
    for host, one in places:
        holders.setdefault(one.address, set()).add(host)
    shared = sorted(address for address, hosts in holders.items() if len(hosts) > 1)
    notes += [f"{address} is on {len(holders[address])} hosts: not asked" for address in shared[:5]]
    notes += [f"{len(shared) - 5} more addresses are on several hosts: not asked"] if len(shared) > 5 else []
    return [(host, one) for host, one in places if len(holders[one.address]) == 1]


def _make_rings(places: Iterable[_Place]) -> list[_Ring]:
    """Networks with two hosts and more, the more important ones first; in each the links of every host."""
    found: dict[str, dict[str, dict[str, Membership]]] = {}
    for host, one in places:
        found.setdefault(one.network, {}).setdefault(host, {}).setdefault(one.link, one)
    rings = {
        network: {host: sorted(links.values(), key=lambda one: (one.role, one.link)) for host, links in hosts.items()}
        for network, hosts in found.items()
        if len(hosts) > 1
    }
    return [ring for _, ring in sorted(rings.items(), key=lambda item: _ring_rank(*item))]


def _ring_rank(network: str, ring: _Ring) -> tuple[int, int, int]:
    """LLT before other storage and cluster links before the rest; IPv4 first, then by address."""
    roles = {one.role for links in ring.values() for one in links}
    kinds = (("llt-",), ("iscsi-", "beegfs-"), ("",))
    kind = next(number for number, words in enumerate(kinds) if any(role.startswith(words) for role in roles))
    place = ip_network(network, strict=False)
    return kind, place.version, int(place.network_address)


def _ring_pairs(ring: _Ring, distances: Iterable[int]) -> Iterator[tuple[str, str, Membership, Membership]]:
    """Host, other host and their links; where a host has several links in the network, the first asks the first."""
    hosts = sorted(ring, key=lambda host: (int(ip_address(ring[host][0].address)), host))
    for at, host in enumerate(hosts):
        for distance in distances:
            other = hosts[(at + distance) % len(hosts)]
            own, far = ring[host], ring[other]
            for number in range(max(len(own), len(far))):
                yield host, other, own[number % len(own)], far[number % len(far)]


def _describe_bounds(
    targets: Targets, chosen: Mapping[str, Mapping[tuple[str, str, str], ProbedLink]], *, is_large: bool
) -> Iterator[str]:
    cut = [host for host, found in chosen.items() if len(found) > len(targets.by_host[host])]
    if is_large:
        yield (
            f"{targets.asked} of {targets.possible} pairs are asked: in a network of more than {FULL_MESH} hosts each "
            f"asks about {NEIGHBOURS}, and is asked by as many"
        )
    if cut:
        yield (
            f"{counted_hosts(len(cut))} asked about the first {MAX_TARGETS} targets only, those over cluster and "
            "storage links first"
        )


WORKERS = 8
"""Targets that a node asks at a time: many at once would make the round trips longer that they measure."""
LIMIT_SECONDS = 60
"""After which a node begins with no other target. A target that answers takes a second; one with a silent end some
twenty."""
MAX_ANSWER = 1 << 20

Tool = Literal["probe", "do", "plain", "none"]
Ending = Literal["link", "own", "too-big", "silent", "unknown"]

_NUMBER = "[0-9]{1,6}"
_TIME = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_LINE = lazy_regex(
    rf"cell ({_NUMBER}) sent ({_NUMBER}) received ({_NUMBER}) times (-|{_TIME}(?:,{_TIME}){{0,19}}) "
    rf"carries (-|yes|no) mtu (-|{_NUMBER}) limit ({'|'.join(get_args(Ending))}) said (-|{_NUMBER}) "
    r"by (-|[0-9a-fA-F:.]{2,45}) why ?([^\n]{0,300})"
)
_BEGIN = lazy_regex(r"advisor-probe 1 (probe|do|plain|none)")


class TargetAnswer(msgspec.Struct, frozen=True):
    """What a node says about one target.

    ``times_us`` are round trips in microseconds. ``carries`` is whether packets of the wanted size came back, None
    where that is not known. ``mtu`` is the largest size that did, in bytes of the whole packet, and ``limit`` what
    ends it: the words of `advisor.reach.addresses.Limit`, and ``own`` where the node's own kernel refuses more.
    ``said_mtu`` is the MTU that somebody named, ``by`` who; ``why`` is text.
    """

    index: int
    sent: int
    received: int
    times_us: tuple[float, ...]
    carries: bool | None
    mtu: int | None
    limit: Ending
    said_mtu: int | None
    by: str | None
    why: str | None


class Answer(msgspec.Struct, frozen=True):
    """All that a node said. ``tool`` is None where the text is no answer of the script at all; ``is_whole`` is False
    where its end is missing."""

    tool: Tool | None
    lines: Mapping[int, TargetAnswer]
    is_whole: bool


def probe_script(targets: Sequence[ProbedLink]) -> str:
    """The script that asks ``targets``, which it knows by their place in the sequence."""
    from advisor.shell.templates import make_environment

    asked = [(index, target, target.wanted or 0) for index, target in enumerate(targets)]
    workers = [asked[number::WORKERS] for number in range(min(WORKERS, len(asked)))]
    template = make_environment(escape_html=False).get_template("probe.sh.j2")
    return template.render(workers=workers, most_workers=WORKERS, count=len(asked), limit_seconds=LIMIT_SECONDS)


def parse_answer(text: str) -> Answer:
    """What a node printed. Lines that are not of the script's form are left out, and so is a target of which there are
    two: one of them is not the script's."""
    if len(text) > MAX_ANSWER:
        return Answer(None, {}, is_whole=False)
    rows = [row.removesuffix("\r") for row in text.split("\n")]
    begins = [number for number, row in enumerate(rows) if _BEGIN.fullmatch(row)]
    if len(begins) != 1:
        return Answer(None, {}, is_whole=False)
    matched = _BEGIN.fullmatch(rows[begins[0]])
    tool = msgspec.convert(matched[1], Tool) if matched else None
    found = {}
    for row in rows[begins[0] + 1 :]:
        line = _parse_line(row)
        if line is not None:
            found[line.index] = None if line.index in found else line
    lines = {index: line for index, line in found.items() if line is not None}
    return Answer(tool, lines, is_whole=any(re.fullmatch(f"end {_NUMBER}", row) for row in rows))


def _parse_line(row: str) -> TargetAnswer | None:
    matched = _LINE.fullmatch(row)
    if matched is None:
        return None
    index, sent, received, times, carries, mtu, limit, said, by, why = matched.groups()
    if int(received) > int(sent) or (times == "-") != (int(received) == 0) or (by != "-" and not parse_address(by)):
        return None
    return TargetAnswer(
        index=int(index),
        sent=int(sent),
        received=int(received),
        times_us=() if times == "-" else tuple(round(float(one) * 1000, 3) for one in times.split(",")),
        carries={"yes": True, "no": False}.get(carries),
        mtu=_parse_number(mtu),
        limit=msgspec.convert(limit, Ending),
        said_mtu=_parse_number(said),
        by=None if by == "-" else by,
        why=None if why.strip() in ("", "-") else why.strip(),
    )


def _parse_number(word: str) -> int | None:
    return None if word == "-" else int(word)


class MatrixCell(msgspec.Struct, frozen=True):
    """One direction between two links, as ``source`` saw it.

    ``rtt_us`` is the shortest, the median and the longest round trip in microseconds, None where nothing came back.
    ``path_mtu`` is the largest packet in bytes that came back while one byte more did not (or, ``limit`` being
    ``link``, could not be asked for); None where that is not known. ``wanted`` is what both links carry, and
    ``carries`` whether packets of that size came back: False may be known where the path MTU is not. ``error`` says
    why something of this is not known.
    """

    source: str
    target: str
    address: str
    network: str
    link: str
    target_link: str
    role: str
    mtu: int | None
    target_mtu: int | None
    rtt_us: tuple[float, float, float] | None
    sent: int
    received: int
    path_mtu: int | None
    wanted: int | None
    carries: bool | None
    limit: Limit
    limited_by: str | None = None
    said_mtu: int | None = None
    error: str | None = None

    @property
    def answered(self) -> bool:
        return self.rtt_us is not None


class Matrix(msgspec.Struct, frozen=True):
    """All cells, by source and target in the order they were asked. ``hosts`` are those that ask or are asked;
    ``possible`` counts the pairs of links that share a network, in both directions. ``silent_hosts`` are those whose
    probes did not come back, with the reason."""

    hosts: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    possible: int
    notes: tuple[str, ...]
    silent_hosts: Mapping[str, str] = {}


_NO_PING = "no ping(8) on this host"
_NO_DF = "the ping of this host cannot set don't-fragment: that a packet passes proves nothing"


def make_matrix(targets: Targets, answers: Mapping[str, Answer | str]) -> Matrix:
    """The cells of everybody who was to be asked. In place of an answer stands why there is none; a host without either
    was not asked."""
    cells = [
        _make_cell(host, index, target, answers.get(host, "not asked"))
        for host, asked in targets.by_host.items()
        for index, target in enumerate(asked)
    ]
    hosts = sorted({one.source for one in cells} | {one.target for one in cells})
    silent = {
        host: why
        for host, asked in targets.by_host.items()
        if asked and (why := _why_none(answers.get(host, "not asked"))) is not None
    }
    return Matrix(tuple(hosts), tuple(cells), targets.possible, targets.notes, silent)


def _why_none(answer: Answer | str) -> str | None:
    """Why a host says nothing of any target; None where it says something."""
    if isinstance(answer, str):
        return answer
    if answer.tool is None:
        return "what it printed is no answer of the probe"
    return _NO_PING if answer.tool == "none" else None


def _make_cell(source: str, index: int, target: ProbedLink, answer: Answer | str) -> MatrixCell:
    why = _why_none(answer)
    if why is not None or isinstance(answer, str):
        return _unknown_cell(source, target, why or "not asked")
    line = answer.lines.get(index)
    if line is None:
        lost = "no line of it in the answer" if answer.is_whole else "the answer broke off before it"
        return _unknown_cell(source, target, lost)
    if not line.times_us:
        return _unknown_cell(source, target, line.why or f"no answer to {line.sent} echoes", line)
    times = line.times_us
    # Only what was asked for can be believed: a path MTU beyond the wanted one was never tried.
    mtu = line.mtu if line.mtu is not None and target.wanted is not None and line.mtu <= target.wanted else None
    carries = None if line.carries is None or target.wanted is None else line.carries
    limit = "unknown" if carries is None else _path_limit(line, target)
    return MatrixCell(
        source=source,
        **msgspec.structs.asdict(target),
        wanted=target.wanted,
        rtt_us=(min(times), round(statistics.median(times), 3), max(times)),
        sent=line.sent,
        received=line.received,
        path_mtu=mtu if carries is not None else None,
        carries=carries,
        limit=limit,
        limited_by=line.by,
        said_mtu=line.said_mtu,
        error=_why_unknown(target, line, answer.tool) if carries is None else None,
    )


def _unknown_cell(source: str, target: ProbedLink, why: str, line: TargetAnswer | None = None) -> MatrixCell:
    return MatrixCell(
        source=source,
        **msgspec.structs.asdict(target),
        wanted=target.wanted,
        rtt_us=None,
        sent=line.sent if line else 0,
        received=0,
        path_mtu=None,
        carries=None,
        limit="unknown",
        error=why,
    )


def _path_limit(line: TargetAnswer, target: ProbedLink) -> Limit:
    if line.limit != "own":
        return line.limit
    # A kernel that refuses less than its link carries has learnt of a smaller limit before.
    is_learnt = line.said_mtu is not None and target.mtu is not None and line.said_mtu < target.mtu
    return "too-big" if is_learnt else "link"


def _why_unknown(target: ProbedLink, line: TargetAnswer, tool: Tool | None) -> str:
    if target.wanted is None:
        return "the MTU of one of the links is unknown"
    if line.why is not None:
        return line.why
    return _NO_DF if tool == "plain" else f"no more than {target.wanted} bytes to ask for"


_SECONDS = 300
_MAX_ANSWER = 4 << 20


def probe_paths(
    inventory: Inventory, hosts: Sequence[InventoryHost], members: Mapping[str, Iterable[Membership]], *, forks: int
) -> Matrix:
    """Asks every host for the paths to the others. A host that does not answer is in the matrix with the reason."""
    targets = choose_targets(members)
    asked = [host for host in hosts if targets.by_host.get(host.name)]
    answers = {}
    with tempfile.TemporaryDirectory(prefix="advisor-probe.") as place:
        scripts = Path(place, "scripts")
        scripts.mkdir(mode=0o700)
        for host in asked:
            (scripts / (file_name(host.name) + ".sh")).write_text(probe_script(targets.by_host[host.name]))
        job = HostJob("probe", scripts, timeout_seconds=_SECONDS)
        for one in run_job(inventory, job, output=Path(place, "answers"), hosts=asked, forks=forks):
            answers[one.host] = _parse_answer(one)
    return make_matrix(targets, answers)


def _parse_answer(one: HostAnswer) -> Answer | str:
    if one.state != "ok" or one.path is None:
        return f"{one.state}: {one.message}" if one.message else one.state
    try:
        with one.path.open(encoding="utf-8", errors="replace") as file:
            return parse_answer(file.read(_MAX_ANSWER))
    except OSError as error:
        return f"its answer cannot be read: {error.strerror}"
