"""What profiles mean on each captured host, by the same code as ``advisor plan`` there, and the waves of it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError, UsageError
from advisor.facts.clusters.llt import Llt, LltNode, parse_lltstat_nodes
from advisor.facts.host_facts import scan
from advisor.facts.redaction import REDACTED
from advisor.fleet.inventory import InventoryHost
from advisor.fleet.runs.journal import PlannedHost, PlannedState
from advisor.fleet.runs.order import (
    OrderSubject,
    addresses_of,
    find_segments,
    known_groups,
    mtu_moves,
    mtu_order,
    mtu_warnings,
    owners_of,
    subject_of,
    subnet_addresses,
    subnets_of,
)
from advisor.fleet.runs.waves import Candidate, FailoverGroup, Waves, WaveShape, make_waves
from advisor.host.numbers import group_pairs
from advisor.host.patterns import lazy_regex
from advisor.planner import plan_profiles, profile_requests
from advisor.planning.records import Plan
from advisor.snapshot.archive import open_snapshot
from advisor.snapshot.remote.store import CapturedStore
from advisor.transaction.journal import sequence_of

# The gate of a wave: who answered before it answers after it, at the size that both ends now carry.

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


class CapturedHost(msgspec.Struct, frozen=True):
    """A host of the inventory and what was learnt of it: where its capture is kept, or why there is none.

    A capture is opened by whoever looks into it and not held: each takes a megabyte, and a fleet has thousands.
    ``boot_id`` distinguishes copies of one image, whose machine-id is one.
    """

    name: str
    archive: Path | None
    machine_id: str = ""
    message: str = ""
    boot_id: str = ""


class FleetPlan(msgspec.Struct, frozen=True):
    """The plan of every host, in the order of the inventory, the waves, and what a person has to know before."""

    hosts: tuple[PlannedHost, ...]
    subjects: Mapping[str, OrderSubject]
    machine_ids: Mapping[str, str]
    waves: Waves
    notes: tuple[str, ...]
    groups: Mapping[str, tuple[FailoverGroup, ...]] = {}
    profiles: tuple[str, ...] = ()

    @property
    def changing(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.hosts if one.state == "change")

    def script(self, name: str) -> bytes:
        """The transaction script of a host that is to be changed."""
        from advisor.exporters.apply_script import transaction_script

        hostname = self.subjects[name].facts.hostname or name
        text = transaction_script(self.plan(name), machine_id=self.machine_ids[name], hostname=hostname)
        return text.encode("utf-8", "surrogateescape")

    def plan(self, name: str) -> Plan:
        """The plan of a host that was planned for."""
        made = self.subjects[name].plan
        assert made is not None
        return made


def plan_fleet(
    captured: Sequence[CapturedHost],
    names: Sequence[str],
    settings: Mapping[str, str],
    *,
    inventory: Sequence[InventoryHost],
    shape: WaveShape,
    leave: Iterable[str] = (),
    progress: Callable[..., None] = lambda *counts: None,
) -> FleetPlan:
    """Plans and waves. ``leave`` are hosts that are looked at and not planned for (they are done).

    Raises UsageError for an unknown profile or a bad setting; what is wrong with one host is that host's.
    """
    profile_requests(names, settings)
    done = frozenset(leave)
    planned = []
    subjects = {}
    first = _first_names(captured, done, shape.canary.names)
    for number, one in enumerate(captured):
        host, subject = _plan_host(one, names, settings, is_done=one.name in done, first=first.get(one.name, one.name))
        planned.append(host)
        if subject is not None:
            subjects[one.name] = subject
        progress(number + 1, len(captured))
    changing = [one.name for one in planned if one.state == "change"]
    groups = _failover_groups(inventory, subjects.values(), shape.failover)
    candidates = [Candidate(name, groups.get(name, ())) for name in changing]
    waves = make_waves(candidates, order=mtu_order([*subjects.values()]), canary=shape.canary, batch=shape.batch)
    notes = [
        *waves.notes,
        *_warning_notes(changing, subjects),
        *_group_notes(planned, groups),
        *mtu_warnings(find_segments([*subjects.values()]), waves),
    ]
    machine_ids = {one.name: one.machine_id for one in captured if one.name in subjects}
    return FleetPlan(tuple(planned), subjects, machine_ids, waves, tuple(notes), groups, tuple(names))


def _first_names(captured: Iterable[CapturedHost], done: frozenset[str], canary: Sequence[str]) -> Mapping[str, str]:
    """The name under which each running machine is planned for: one that is done, else a canary, else the first."""
    order = sorted(captured, key=lambda one: (one.name not in done, one.name not in canary))
    found: dict[tuple[str, str], str] = {}
    return {
        one.name: found.setdefault((one.machine_id, one.boot_id), one.name)
        for one in order
        if one.machine_id and one.boot_id
    }


def _warning_notes(names: Iterable[str], subjects: Mapping[str, OrderSubject]) -> Iterator[str]:
    """The warnings that scans of the hosts would newly give, each with the hosts: for a person, and the journal."""
    found = group_pairs(
        (f"a scan would then report {one.id}: {one.title}", name)
        for name in names
        if (plan := subjects[name].plan)
        for one in plan.warnings
    )
    yield from (f"{', '.join(hosts)}: {text}" for text, hosts in found.items())


def _plan_host(
    one: CapturedHost, names: Sequence[str], settings: Mapping[str, str], *, is_done: bool, first: str
) -> tuple[PlannedHost, OrderSubject | None]:
    if one.archive is None:
        return PlannedHost(one.name, "failed", message=one.message), None
    if first != one.name and not is_done:
        return PlannedHost(one.name, "same", message=f"machine-id and boot id are those of {first}"), None
    try:
        captured = open_snapshot(one.archive)
    except AdvisorError as error:
        return PlannedHost(one.name, "failed", message=error.message), None
    try:
        facts = scan(captured)
        if is_done:
            return PlannedHost(one.name, "done"), subject_of(one.name, captured, facts, None)
        store = CapturedStore(captured)
        waiting = store.find_waiting()
        after = max((sequence_of(record.id) for record in store.read_records()), default=0)
        plan = plan_profiles(captured, names, settings, store=store, facts=facts)
    except AdvisorError as error:
        return PlannedHost(
            one.name, "cannot", message=f"{error.message} ({error.hint})" if error.hint else error.message
        ), None
    state, message = _judge_plan(plan)
    if state == "change" and waiting is not None:
        state, message = "cannot", f"transaction {waiting.id} waits for confirmation there"
    subject = subject_of(one.name, captured, facts, plan if state == "change" else None)
    host = PlannedHost(one.name, state, plan.fingerprint, len(plan.changes), len(plan.files), message, after)
    return host, subject


def _judge_plan(plan: Plan) -> tuple[PlannedState, str]:
    """What the plan of a host amounts to, and why where it is not to be carried out."""
    if plan.blocking:
        first = plan.blocking[0]
        more = len(plan.blocking) - 1
        return "cannot", f"{first.tunable}: {first.reason}" + (f", and {more} more" if more else "")
    if plan.is_empty:
        if not plan.cannot_apply:
            return "nothing", "everything is there already"
        return "unfit", plan.skipped[0].reason if plan.skipped else "nothing of it applies here"
    for file in plan.files:
        if file.before is not None and REDACTED in file.before:
            why = "holds a password or key, which is left out of captures, so it cannot be planned from here"
            return "cannot", f"{file.path}: {why}; advisor apply on that host can"
    return "change", ""


def _failover_groups(
    inventory: Iterable[InventoryHost], subjects: Iterable[OrderSubject], failover: str | None
) -> dict[str, tuple[FailoverGroup, ...]]:
    """Failover groups of each host: those of the inventory and those that the hosts show."""
    found = {name: [*groups] for name, groups in known_groups(subjects).items()}
    for host in inventory:
        declared_groups = []
        named = host.variables.get(VARIABLE)
        if named:
            declared_groups.append(FailoverGroup(named, f"{VARIABLE} of the inventory"))
        if failover is not None:
            declared_groups += _named_by(host, failover)
        for group in declared_groups:
            if group not in found.setdefault(host.name, []):
                found[host.name].append(group)
    return {name: tuple(groups) for name, groups in found.items()}


def check_failover(inventory: Iterable[InventoryHost], failover: str | None) -> None:
    """Raises UsageError where a group, or a variable, that is to keep hosts apart is that of no host: with its name
    misspelt, both nodes of a pair would be changed at the same time."""
    if failover is None or any(_named_by(host, failover) for host in inventory):
        return
    what = "has this variable" if failover.startswith("var=") else "is in a group of this name"
    raise UsageError(
        f"--failover-group {failover}: no host that is asked {what}",
        hint="a group of the inventory, or var=NAME for a variable of it; see --limit",
    )


VARIABLE = "advisor_failover_group"


def _named_by(host: InventoryHost, failover: str) -> list[FailoverGroup]:
    """The group that ``--failover-group`` makes the host a node of, if any."""
    if failover.startswith("var="):
        variable = failover.removeprefix("var=")
        value = host.variables.get(variable)
        return [FailoverGroup(value, f"{variable} of the inventory")] if value else []
    return [FailoverGroup(failover, "a group of the inventory")] if failover in host.groups else []


def _group_notes(planned: Iterable[PlannedHost], groups: Mapping[str, Sequence[FailoverGroup]]) -> list[str]:
    """A node whose partner could not be asked: nobody knows whether that one could take over."""
    states = {one.name: one.state for one in planned}
    members = group_pairs((group.name, name) for name, those in groups.items() for group in those)
    notes = []
    for label, names in sorted(members.items()):
        silent = [name for name in names if states.get(name) == "failed"]
        changing = [name for name in names if states.get(name) == "change"]
        if silent and changing:
            notes.append(
                f"{label}: {', '.join(silent)} could not be asked, so it is not known whether there is anybody to take "
                f"over from {', '.join(changing)}"
            )
    return notes
