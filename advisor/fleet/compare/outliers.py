"""Which host differs, in what, and how much it matters: pure, from what `advisor.fleet.compare.columns` keeps.

Each attribute is compared among the hosts that its kind says: all, those of one type of hardware, or one LLT cluster.
More than half of the hosts that are known make a majority, and the others are outliers; where there is none, the groups
are listed and none is called wrong. Unknown never counts as differing. What differs as a consequence (of the kernel,
of a driver, of TuneD, of the type of hardware) is reported with its cause. Differences of one topic on the same hosts
are one finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.columns import Fleet, Judge, JudgedRow
from advisor.fleet.compare.comparison import (
    OWN_PURPOSE,
    FleetFinding,
    HardwareGroup,
    HostComparison,
    HostLine,
    Scope,
    UnknownOn,
    kind_of,
)
from advisor.fleet.compare.path_findings import judge_matrix
from advisor.fleet.compare.path_matrix import Matrix
from advisor.fleet.compare.remedies import CommandOrigin, match_links, remedy_commands
from advisor.fleet.compare.summary import TYPE_ATTRIBUTES, HardwareType, HostSummary
from advisor.fleet.compare.topology import (
    clock_findings,
    cluster_findings,
    identity_findings,
    key_of,
    network_findings,
    shared_networks,
    told_network,
    without_covered,
    without_effects,
)
from advisor.host.numbers import group_pairs
from advisor.rules import sources
from advisor.rules.rule import SEVERITIES

Classes = Mapping[Scope, Sequence[tuple[str, Sequence[int]]]]


def find_outliers(
    fleet: Fleet,
    *,
    controller: CommandOrigin | None = None,
    failed: Mapping[str, str] | None = None,
    pair: tuple[str, str] | None = None,
    group_by: str | None = None,
    matrix: Matrix | None = None,
) -> HostComparison:
    """The comparison of all hosts; with ``pair`` of two by name, each difference with both values.

    ``failed`` are hosts of which there is nothing, with the reason. Raises UsageError for a host that is not there.
    """
    match_links(fleet)
    hosts = _pair_numbers(fleet, pair) if pair else fleet.ordered()
    origin = controller or CommandOrigin()
    judge = Judge(fleet)
    types = _hardware_types(fleet, hosts)
    found: list[FleetFinding] = []
    rows = []
    # Hosts by the group that they are compared within; "" where all are one.
    group_hosts = group_pairs((fleet.hosts[number].group or "", number) for number in hosts)
    for group, members in sorted(group_hosts.items()):
        classes = _make_classes(fleet, members, types, group, lift=len(hosts) == 2)
        own = list(_judged_rows(judge, classes))
        rows += own
        found += _class_findings(judge, own, members, group, types, origin)
    found += judge_matrix(matrix) if matrix else ()
    found.sort(key=_finding_order)
    lines = [_host_line(fleet.hosts[number], found, types[number]) for number in hosts]
    lines += [HostLine(name, "failed", message=message) for name, message in sorted((failed or {}).items())]
    names = set(fleet.columns)
    by_label = group_pairs((_hardware_label(hardware), number) for number, hardware in types.items())
    groups = (HardwareGroup(label, fleet.names(hosts)) for label, hosts in by_label.items())
    return HostComparison(
        hosts=tuple(lines),
        findings=tuple(found),
        types=tuple(sorted(groups, key=lambda one: (-len(one.hosts), one.label))),
        networks=tuple(told_network(one) for one in shared_networks([fleet.hosts[number] for number in hosts])),
        unknown=tuple(UnknownOn(some, what) for some, what in judge.known.unknown_by_hosts(hosts).items()),
        attributes=len(names),
        alike=len(names - {row.attribute for row in rows}),
        pair=pair,
        group_by=group_by,
        matrix=matrix,
    )


def _pair_numbers(fleet: Fleet, pair: tuple[str, str]) -> list[int]:
    numbers = {fleet.hosts[number].name: number for number in fleet.ordered()}
    for name in pair:
        if name not in numbers:
            raise UsageError(f"--pair {name}: no such host among {len(numbers)}", hint=", ".join(list(numbers)[:8]))
    if pair[0] == pair[1]:
        raise UsageError(f"--pair {pair[0]} {pair[1]}: one host; two are compared")
    return [numbers[name] for name in pair]


def _hardware_types(fleet: Fleet, hosts: Sequence[int]) -> dict[int, HardwareType]:
    """The type of each host. One of which less is known is of the first type that does not contradict it."""
    counts = Counter(fleet.hosts[number].hardware for number in hosts)
    order = sorted(counts, key=lambda one: (-len(one), -counts[one], repr(one)))
    home: dict[HardwareType, HardwareType] = {}
    for one in order:
        known = dict(one)
        fits = (other for other in dict.fromkeys(home.values()) if _agrees_with(known, dict(other)))
        home[one] = next(fits, one)
    return {number: home[fleet.hosts[number].hardware] for number in hosts}


def _agrees_with(part: Mapping[str, Value], whole: Mapping[str, Value]) -> bool:
    # Only a type of which less is known joins another; one without a product is no other machine for that.
    return len(part) < len(whole) and all(whole.get(name) == value for name, value in part.items())


def _make_classes(
    fleet: Fleet, members: Sequence[int], types: Mapping[int, HardwareType], group: str, *, lift: bool
) -> Classes:
    """Who is compared with whom. For a pair, all scopes are the pair."""
    everyone = [(group, members)]
    if lift:
        return {"fleet": everyone, "type": everyone, "cluster": everyone}
    clusters = _split_members(members, lambda number: _cluster_label(fleet.hosts[number]))
    return {
        "fleet": everyone,
        "type": [
            (_join_labels(group, label), some)
            for label, some in _split_members(members, lambda one: _hardware_label(types[one]))
        ],
        "cluster": [(_join_labels(group, label), some) for label, some in clusters],
    }


def _cluster_label(row: HostSummary) -> str:
    return f"cluster {row.cluster}" if row.cluster else "no cluster"


def _join_labels(group: str, label: str) -> str:
    return ", ".join(part for part in (group, label) if part)


def _split_members(members: Sequence[int], label_of: Callable[[int], str]) -> list[tuple[str, list[int]]]:
    found = group_pairs((label_of(number), number) for number in members)
    # One class is no class: its name adds nothing.
    return [("", members_of) for members_of in found.values()] if len(found) == 1 else sorted(found.items())


def _hardware_label(hardware: HardwareType) -> str:
    """``Dell Inc. PowerEdge R740xd, Xeon Platinum 8268, 256 GiB``."""
    known = dict(hardware)
    parts = (known.get("host.instance_type") or known.get("host.product"), known.get("cpu.model"))
    sizes = (f"{known['cpu.threads']} threads" if "cpu.threads" in known else None, known.get("memory.installed"))
    return ", ".join(str(part) for part in (*parts, *sizes) if part) or "hardware unknown"


def _judged_rows(judge: Judge, classes: Classes) -> Iterator[JudgedRow]:
    for attribute in sorted(judge.fleet.columns):
        if attribute in TYPE_ATTRIBUTES or not judge.fleet.columns[attribute].others:
            continue
        kind = kind_of(attribute)
        for scope, hosts in classes[kind.scope]:
            row = judge.row(attribute, kind, scope, hosts) if len(hosts) > 1 else None
            if row is not None:
                yield row


def _class_findings(
    judge: Judge,
    rows: Sequence[JudgedRow],
    members: Sequence[int],
    group: str,
    types: Mapping[int, HardwareType],
    controller: CommandOrigin,
) -> Iterator[FleetFinding]:
    fleet = judge.fleet
    own = [fleet.hosts[number] for number in members]
    shared = shared_networks(own)
    hardware = _hardware_rows(judge, members, types, group)
    left, effects = without_effects(fleet, rows, hardware)
    between = [*network_findings(shared, controller), *identity_findings(own, shared)]
    between += [*cluster_findings(own), *clock_findings(own)]
    left, covered = without_covered(fleet, left, shared)
    for one in between:
        with_it = covered.get(one.id, ()) if one.id in ("fleet.mtu-in-network", "fleet.speed-in-network") else ()
        mine = tuple(name for name, hosts in with_it if {*one.hosts} & {*hosts})
        yield msgspec.structs.replace(one, goes_with=mine, scope=_join_labels(group, one.scope))
    if hardware:
        yield _hardware_finding(judge, hardware, effects.get("hardware", ()), group)
    # Differences of one topic on the same hosts, together.
    bundles = group_pairs(((row.scope, row.kind.topic, row.kind.severity, row.shape), row) for row in left)
    for some in bundles.values():
        kind = min((row.kind for row in some), key=lambda one: one.rank)
        differences = tuple(judge.name_hosts(row) for row in some)
        if len(differences) > 1:
            title = f"{kind.topic}: {len(differences)} attributes differ"
        else:
            title = f"{differences[0].attribute} differs"
        yield FleetFinding(
            id=f"fleet.{kind.name or kind.topic.lower().replace(' ', '-')}",
            severity=kind.severity,
            title=title,
            hosts=judge.ordered(some[0].outliers),
            scope=some[0].scope,
            why=kind.why,
            differences=differences,
            goes_with=tuple(name for row in some for name in effects.get(key_of(row), ())),
            advice=kind.do,
            commands=remedy_commands(judge.fleet, some, controller),
            hurts_when=kind.hurts_when,
            sources=kind.sources,
            rank=kind.rank,
        )


def _hardware_rows(
    judge: Judge, members: Sequence[int], types: Mapping[int, HardwareType], group: str
) -> list[JudgedRow]:
    """What makes the types differ, where there are several."""
    if len({types[number] for number in members}) < 2:
        return []
    rows = (judge.row(name, kind_of(name), group, members) for name in TYPE_ATTRIBUTES if name in judge.fleet.columns)
    return [row for row in rows if row is not None]


def _hardware_finding(judge: Judge, rows: Sequence[JudgedRow], effects: Sequence[str], group: str) -> FleetFinding:
    """Types on purpose are information; one product with less memory or fewer processors is a part that is missing."""
    differences = tuple(judge.name_hosts(row) for row in rows)
    is_purpose = any(row.attribute in ("host.product", "host.instance_type", "host.architecture") for row in rows)
    hosts = tuple(dict.fromkeys(host for one in differences for host in one.outliers))
    return FleetFinding(
        id="fleet.hardware",
        severity="info" if is_purpose else "advice",
        title="hosts are of several types" if is_purpose else "hosts of one product have other parts",
        hosts=hosts,
        scope=group,
        why="What hardware decides is compared among hosts of one type only; all else among all."
        if is_purpose
        else "Memory, processors or NUMA nodes are not the same: a part was lost, or a firmware setting differs.",
        differences=differences,
        goes_with=tuple(effects),
        advice="nothing, if it is on purpose"
        if is_purpose
        else "compare the firmware's own list of parts (dmidecode, the service processor) and its settings",
        hurts_when=OWN_PURPOSE,
        sources=(sources.PCI_SYSFS,),
        rank=70 if is_purpose else 31,
    )


def _finding_order(one: FleetFinding) -> tuple[int, int, str, str, str, tuple[str, ...]]:
    return -SEVERITIES.index(one.severity), one.rank, one.id, one.scope, one.title, one.hosts


def _host_line(row: HostSummary, found: Iterable[FleetFinding], hardware: HardwareType) -> HostLine:
    count = sum(row.name in one.hosts for one in found)
    return HostLine(row.name, "compared", row.hostname, row.group, row.cluster, _hardware_label(hardware), count)
