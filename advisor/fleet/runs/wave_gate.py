"""The gate of a wave: who answered before it answers after it, at the size that both ends now carry.

Every host of the wave asks over the links that its plan puts at risk: those whom it has reason to talk to (routers,
LLT nodes, storage) and the other hosts of the inventory on the same subnet. Between two hosts of the inventory the size
is what both carry by then: a host that is not raised yet is asked at its own size. A peer outside the inventory must
answer at the new one. A peer that was silent before is not asked again. LLT links that were up before must be up after.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.llt import Llt
from advisor.facts.lltstat import LltNode, parse_lltstat_nodes
from advisor.fleet.runs.order import OrderSubject, addresses_of, mtu_moves, owners_of, subnet_addresses, subnets_of
from advisor.host.patterns import lazy_regex

MAX_ASKED = 64
"""Of each host: more add nothing about its links."""
_SMALL = {4: 84, 6: 104}
_LEAST = {4: 576, 6: 1280}
_ECHO = lazy_regex(r"echo ([0-9A-Fa-f:.%\w-]{2,80}) ([0-9]{1,5}) (ok|lost|unasked)", re.ASCII)


class EchoQuestion(msgspec.Struct, frozen=True, order=True):
    """An echo of ``size`` bytes, the whole IP packet, to an address; from ``source``, an address or a link."""

    address: str
    size: int
    source: str | None = None


class GateTarget(msgspec.Struct, frozen=True):
    """A peer beyond a link at risk: its MTU in bytes before and after, and the inventory host that has the address."""

    address: str
    why: str
    source: str | None
    before: int
    after: int
    owner: str | None = None


class GateAnswer(msgspec.Struct, frozen=True):
    """What a host's gate script printed: per address and size ``ok``, ``lost`` or ``unasked`` (no ping that could)."""

    echoes: Mapping[tuple[str, int], str]
    nodes: tuple[LltNode, ...] = ()


class Baseline(msgspec.Struct, frozen=True):
    """What held before a wave: by target how many bytes it answered, and the LLT links that were up."""

    answered: tuple[tuple[GateTarget, int], ...]
    silent: tuple[GateTarget, ...]
    unasked: int
    llt_up: tuple[tuple[int, str], ...]
    """Node and tag of each."""


class Neighbourhood(msgspec.Struct, frozen=True):
    """Who of a fleet has which address, and is on which subnet, looked up once for all hosts that ask."""

    owners: Mapping[str, str]
    members: Mapping[str, Sequence[tuple[int, int, str]]]
    """By subnet: the place of a host in the fleet, that of the address among its own, and the address."""


def find_neighbourhood(fleet: Iterable[OrderSubject]) -> Neighbourhood:
    """The addresses of a fleet by owner and by subnet; those that several hosts have are nobody's."""
    subjects = tuple(fleet)
    owners = owners_of(subjects)
    members: dict[str, list[tuple[int, int, str]]] = {}
    for rank, subject in enumerate(subjects):
        reached = (found for link in subject.facts.links for found in subnet_addresses(link))
        for place, (subnet, address) in enumerate(reached):
            if owners.get(address) == subject.name:
                members.setdefault(subnet, []).append((rank, place, address))
    return Neighbourhood(owners, members)


def targets_of(subject: OrderSubject, around: Neighbourhood) -> tuple[GateTarget, ...]:
    """Whom a host asks; none where its plan puts no link's MTU at risk. At most 64, ours last."""
    moves = {move.link: move for move in mtu_moves(subject.plan)}
    if not moves:
        return ()
    found = {}
    for peer in subject.peers:
        move = moves.get(peer.link or "")
        if move is not None:
            owner = around.owners.get(peer.address)
            found[peer.address] = GateTarget(peer.address, peer.why, peer.source, move.before, move.after, owner)
    for target in _neighbour_targets(subject, around):
        if len(found) >= MAX_ASKED:
            break
        found.setdefault(target.address, target)
    return tuple(found.values())[:MAX_ASKED]


def _neighbour_targets(subject: OrderSubject, around: Neighbourhood) -> Iterator[GateTarget]:
    """Hosts of the inventory on the subnets of the links at risk, one address each, in the order of the inventory."""
    moves = {move.link: move for move in mtu_moves(subject.plan)}
    for link in subject.facts.links:
        if link.name not in moves:
            continue
        move = moves[link.name]
        there = [around.members.get(subnet, ()) for subnet in dict.fromkeys(subnets_of(link))]
        last = -1
        # A subnet of thousands is read no further than to the last who is asked.
        for rank, _, address in heapq.merge(*there):
            owner = around.owners[address]
            if rank != last and owner != subject.name:
                yield GateTarget(address, f"{owner}, on the same subnet", None, move.before, move.after, owner)
            last = rank


def baseline_questions(targets: Iterable[GateTarget]) -> tuple[EchoQuestion, ...]:
    """A small echo, and one as large as the link carries before the wave (raised: its present MTU)."""
    found = []
    for target in targets:
        found.append(EchoQuestion(target.address, _SMALL[_ip_version(target.address)], target.source))
        found.append(EchoQuestion(target.address, target.before, target.source))
    return tuple(dict.fromkeys(found))


def make_baseline(targets: Iterable[GateTarget], answer: GateAnswer) -> Baseline:
    """Who answered before the wave, and how much."""
    answered = []
    silent = []
    unasked = 0
    for target in targets:
        small = _SMALL[_ip_version(target.address)]
        states = {size: answer.echoes.get((target.address, size), "unasked") for size in (small, target.before)}
        if states[target.before] == "ok":
            answered.append((target, target.before))
        elif states[small] == "ok":
            answered.append((target, small))
        elif "unasked" in states.values():
            unasked += 1
        else:
            silent.append(target)
    return Baseline(tuple(answered), tuple(silent), unasked, _links_up(answer.nodes))


def questions_after(before: Baseline, carried: Mapping[str, int]) -> tuple[EchoQuestion, ...]:
    """What has to be answered once the wave is active.

    ``carried`` is the MTU that each host of the inventory has by then at the address in question. One that had answered
    small echoes only is asked for those.
    """
    found = []
    for target, size in before.answered:
        found.append(EchoQuestion(target.address, _size_after(target, size, carried), target.source))
    return tuple(dict.fromkeys(found))


def _size_after(target: GateTarget, size: int, carried: Mapping[str, int]) -> int:
    if size != target.before:
        return size
    return max(min(target.after, carried.get(target.address, target.after)), _LEAST[_ip_version(target.address)])


def judge_answers(
    before: Baseline, asked: Iterable[EchoQuestion], after: GateAnswer
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What answered, and what did not, in sentences."""
    whys = {target.address: target.why for target, _ in before.answered}
    passing = []
    failing = []
    for question in asked:
        state = after.echoes.get((question.address, question.size), "unasked")
        named = f"{question.address} ({whys.get(question.address, 'asked before')})"
        if state == "ok":
            passing.append(f"{named} answers {question.size} bytes")
        else:
            failing.append(f"{named} answered before, and not {question.size} bytes now")
    up = set(_links_up(after.nodes))
    names = {node.id: node.name for node in after.nodes}
    for node, tag in before.llt_up:
        if (node, tag) not in up:
            failing.append(f"LLT link {tag} to node {names.get(node) or node} was up before and is not now")
    return tuple(passing), tuple(failing)


def carried_by(fleet: Iterable[OrderSubject], changed: Iterable[str]) -> dict[str, int]:
    """The MTU at each address of the inventory once the hosts ``changed`` have applied their plans."""
    moved = set(changed)
    found: dict[str, int] = {}
    for subject in fleet:
        moves = {move.link: move.after for move in mtu_moves(subject.plan)} if subject.name in moved else {}
        for link in subject.facts.links:
            mtu = moves.get(link.name, link.mtu)
            for address in addresses_of(link):
                if mtu is not None:
                    found[address] = min(mtu, found.get(address, mtu))
    return found


def has_llt(llt: Llt | None) -> bool:
    """Whether the gate has LLT links to look at."""
    return llt is not None and any(not node.is_self for node in llt.nodes)


def gate_script(questions: Iterable[EchoQuestion]) -> str:
    """A POSIX sh script that asks; see its head (``templates/fleet_gate.sh.j2``)."""
    from advisor.shell.templates import make_environment

    template = make_environment(escape_html=False).get_template("fleet_gate.sh.j2")
    return template.render(questions=sorted(set(questions), key=lambda one: (one.address, one.size)))


def parse_gate_answer(text: str) -> GateAnswer:
    """What a gate script printed; lines that are none of it are passed over."""
    asked, _, llt = text.partition("\nllt\n") if not text.startswith("llt\n") else ("", "", text[4:])
    echoes = {}
    for line in asked.splitlines():
        found = _ECHO.fullmatch(line.strip())
        if found is not None:
            echoes[found[1], int(found[2])] = found[3]
    return GateAnswer(echoes, parse_lltstat_nodes(llt))


def _links_up(nodes: Iterable[LltNode]) -> tuple[tuple[int, str], ...]:
    return tuple(
        (node.id, link.tag) for node in nodes if not node.is_self for link in node.links if link.status == "UP"
    )


def _ip_version(address: str) -> int:
    return 6 if ":" in address else 4
