"""The ceiling of a whole host: all of its data paths at once, each shared part counted once.

Every path loads what is below it: a drive, each PCI Express link above the drive, the EC2 instance, the links. How much
follows from the arithmetic of its arrays (`advisor.limits.figures`): a mirror's writes load each of its drives in full.
It also finds the most that all paths carry together. Two arrays behind one adapter, targets on the same drives, the
paths of a multipath device and the members of a bond therefore never count twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from advisor.facts.block.block import natural
from advisor.facts.block.block_graph import BlockGraph, BlockNode
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.limits.cloud_disks import PROVISIONED, find_cached, machine_limits
from advisor.limits.declared import Declared
from advisor.limits.figures import Figures, Most, Quantity, SharedPart, both_ways, combine, lowest, most
from advisor.limits.links import EMULATED, PciAndNetwork, has_timestamps, mb_per_s, wire_ceiling, wire_of
from advisor.limits.machines import Given
from advisor.limits.media import Hired, Media, hired_machine
from advisor.limits.records import Binding, HostCeiling, HostKnown, HostStage, IopsBinding, Limits, Share, StageSum
from advisor.limits.stages import TURNS_WORDS, StorageStages, turns_limit, volume_figures
from advisor.limits.storage_use import Front, physical
from advisor.rules.queries import is_virtual_machine

STAGES: tuple[HostStage, ...] = ("network", "instance", "quota", "pcie", "media")
"""From the outside in: of equals, the outermost binds."""
_MB: tuple[Quantity, ...] = ("read_mb_per_s", "write_mb_per_s")
_IOPS: tuple[Quantity, ...] = ("read_iops", "write_iops")
_SYSTEM = frozenset({"/", "/boot", "/boot/efi", "/efi", "/usr", "/var", "/var/log", "/tmp", "/opt", "[SWAP]"})
_ROUNDING = 1 - 1e-6
_MEMORY = "the kernel reports neither the memory channels nor their speed"
_PROCESSOR = "what file systems, checksums and the network stack cost depends on the load: measure it"


class DataPath(msgspec.Struct, frozen=True):
    """A data path: its tree of devices; None for a file system of other hosts, which lies behind ``links`` only."""

    name: str
    node: BlockNode | None
    places: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    is_metadata: bool = False


class _Carrier(msgspec.Struct, frozen=True):
    """A shared part before any path loads it: the disks (or remote paths) below, and what it carries."""

    stage: HostStage
    name: str
    members: tuple[str, ...]
    carries: Figures
    disks: frozenset[str] = frozenset()
    paths: frozenset[int] = frozenset()
    why_unknown: str = ""
    """Where its stage does not say it for all of them."""


def with_host(
    limits: Limits, facts: Facts, context: PciAndNetwork, declared: Declared, front: Front, given: Given | None = None
) -> Limits:
    """The limits with the ceiling of the whole host. ``given`` are the machines of a user's own file."""
    made = _Host(facts, context, declared, front, hired_machine(facts, declared, given))
    return msgspec.structs.replace(limits, host=made.ceiling())


class _Host:
    def __init__(self, facts: Facts, context: PciAndNetwork, declared: Declared, front: Front, hired: Hired) -> None:
        self.facts = facts
        self.around = context
        self.declared = declared
        self.front = front
        self.hired = hired
        self.media = Media(facts, declared, hired.local)
        stages = StorageStages(facts, context, declared, self.media, hired.name, hired.machine)
        whole, self.left_out = data_paths(facts, front)
        self.paths = tuple(part for path in whole for part in _split_parts(_serving_path(path, stages)))
        self.segmented = tuple(
            path.name
            for path in whole
            if path.node and (serving := _serving_path(path, stages).node)
            if set(serving.disks()) != set(path.node.disks())
        )
        self.numbers = tuple(at for at, path in enumerate(self.paths) if not path.is_metadata)
        self._notes: list[str] = []

    def ceiling(self) -> HostCeiling:
        carriers = tuple(self._all_carriers())
        parts = {quantity: self._shared_parts(carriers, quantity) for quantity in (*_MB, *_IOPS)}
        found = {quantity: most(self.numbers, parts[quantity]) for quantity in parts} if self.numbers else {}
        stages = tuple(self._sum_stages(carriers, parts))
        reads, writes = (self._find_binding(quantity, found.get(quantity), parts, stages) for quantity in _MB)
        unlimited = self._unknown_iops(carriers)
        read_iops, write_iops = (_bounded_value(found.get(quantity)) for quantity in _IOPS)
        iops_binds = [self._iops_binding(quantity, found.get(quantity), parts) for quantity in _IOPS]
        return HostCeiling(
            read_mb_s=_bounded_value(found.get("read_mb_per_s")),
            write_mb_s=_bounded_value(found.get("write_mb_per_s")),
            binds=reads or writes,
            write_binds=writes,
            stages=stages,
            role=self.front.role,
            read_iops=None if unlimited else read_iops,
            write_iops=None if unlimited else write_iops,
            paths=tuple(self.paths[at].name for at in self.numbers),
            notes=tuple(
                dict.fromkeys(
                    (
                        self.front.why,
                        *self._notes,
                        *self._metadata_words(),
                        *self._segment_words(),
                        *self._left_out_words(),
                    )
                )
            ),
            machine=self._machine_words() if any(one.stage == "instance" for one in carriers) else None,
            iops_binds=iops_binds[0],
            write_iops_binds=iops_binds[1],
            read_iops_at_most=read_iops if unlimited else None,
            write_iops_at_most=write_iops if unlimited else None,
            iops_unknown_of=unlimited,
        )

    def _unknown_iops(self, carriers: Sequence[_Carrier]) -> tuple[str, ...]:
        """The machine where its IOPS are not known: it has a limit, and a total without it would be no ceiling."""
        return tuple(
            one.name for one in carriers if one.stage == "instance" and not math.isfinite(one.carries.read_iops)
        )

    def _machine_words(self) -> str:
        return {"azure": "Azure VM", "gcp": "Google VM"}.get(self.hired.provider or "", "EC2 instance")

    def _metadata_words(self) -> Iterator[str]:
        names = [path.name for path in self.paths if path.is_metadata]
        if names:
            yield (
                f"{len(names)} metadata target{'' if len(names) == 1 else 's'} hold no file contents: their drives and "
                "what only these lie behind are left out"
            )

    def _segment_words(self) -> Iterator[str]:
        if self.segmented:
            yield (
                f"{_join_few(self.segmented)}: parts one behind the other, of which one stream uses one at a time: "
                "counted with the fastest; load that is spread over all of them reaches more"
            )

    def _left_out_words(self) -> Iterator[str]:
        if self.left_out:
            yield f"left out, as the system's own or unused: {_join_few(self.left_out)}"

    # What is shared.

    def _all_carriers(self) -> Iterator[_Carrier]:
        # The links that everything goes through that is served, those to each remote server, and those of LLT.
        every = frozenset(range(len(self.paths)))
        if self.front.links or self.front.role in ("server", "assumed"):
            yield self._link_carrier("links", self.front.links, every)
        if self.front.mirror:
            front_links = self._link_carrier("LLT", self.front.mirror, every)
            limited = Figures(write_mb_per_s=front_links.carries.write_mb_per_s)
            yield msgspec.structs.replace(front_links, carries=limited)
        by_links: dict[tuple[str, ...], set[int]] = {}
        for at, path in enumerate(self.paths):
            if path.node is None:
                by_links.setdefault(path.links, set()).add(at)
        for links, those in by_links.items():
            yield self._link_carrier(f"links {', '.join(links)}", links, frozenset(those))
        yield from self._fabric_carriers()
        yield from self._cloud_carriers()
        if not is_virtual_machine(self.facts):
            yield from self._hop_carriers()
        for path in self.paths:
            # Each drive, and each multipath device as the one medium that it is.
            if path.node is not None:
                for name, members in _media_below(path.node):
                    found = [self.media.figures(one) for one in members]
                    known = [one.sustained for one in found if one is not None]
                    carries = lowest(known) if known else Figures()
                    yield _Carrier("media", name, (name,), carries, disks=frozenset(members))

    def _link_carrier(self, name: str, links: Sequence[str], paths: frozenset[int]) -> _Carrier:
        return _Carrier("network", name, tuple(links), self._sum_wires(links), paths=paths)

    def _sum_wires(self, names: Sequence[str]) -> Figures:
        """What these links carry one way: the sum of the cards, each by its wires and the slot that it is in; no limit
        that is known where one of them is unknown."""
        # What a cloud machine carries over all its links together.
        found = self.hired.machine.network if self.hired.machine else None
        whole = both_ways(mb_per_s(found.mbps)) if found else Figures()
        links = physical(names, self.facts)
        if not links or any(not physical((name,), self.facts) for name in names):
            return whole
        cards: dict[str, list[Link]] = {}
        for link in links:
            limiting = link.pcie.limiting if link.pcie else None
            cards.setdefault(limiting or (link.pci or link.name).rpartition(".")[0], []).append(link)
        return lowest((whole, both_ways(sum(self._card_rate(ports) for ports in cards.values()))))

    def _card_rate(self, ports: Sequence[Link]) -> float:
        carried = [wire_of(link, timestamps=has_timestamps(self.facts)).mb_per_s for link in ports]
        if None in carried:
            return math.inf
        wires = sum(one for one in carried if one is not None)
        slot = next((link.pcie.bandwidth_mbps for link in ports if link.pcie and link.pcie.bandwidth_mbps), None)
        if slot is None or is_virtual_machine(self.facts) or mb_per_s(slot) >= wires:
            return wires
        names = ", ".join(link.name for link in ports)
        self._notes.append(f"{names}: the slot carries {mb_per_s(slot):,.0f} MB/s, less than the wire")
        return mb_per_s(slot)

    def _fabric_carriers(self) -> Iterator[_Carrier]:
        for role, what in (("iscsi", "iSCSI"), ("nvme", "NVMe over fabrics")):
            far = frozenset(name for name in self._path_disks() if self._fabric_of(name) == role)
            if far:
                links = self.around.portals.get(role, ())
                named = tuple(one for one in links if one is not None)
                is_known = bool(links) and len(named) == len(links)
                found = wire_ceiling(what, named, self.facts, ipv6=role in self.around.ipv6) if is_known else None
                limit = found.sustained.read_mb_per_s if found else None
                turns = turns_limit(self.facts, far, ipv6=role in self.around.ipv6) if role == "iscsi" else None
                if turns is not None:
                    limit = turns
                    self._notes.append(f"{what}: {TURNS_WORDS}")
                carries = Figures() if limit is None else both_ways(limit)
                yield _Carrier("network", what, named, carries, disks=far)

    def _fabric_of(self, name: str) -> str | None:
        disk = next((one for one in self.facts.disks if one.name == name), None)
        if disk is not None and disk.detail.get("transport") == "iscsi":
            return "iscsi"
        return "nvme" if name in self.around.far else None

    def _cloud_carriers(self) -> Iterator[_Carrier]:
        yield from self._google_carriers()
        volumes = frozenset(name for name in self._path_disks() if self.media.is_volume(name))
        if not volumes:
            return
        one = self.hired.machine.volumes if self.hired.machine else None
        one = one.for_kinds(self.media.by_kind(volumes).keys()) if one else None
        carries = volume_figures(one.mb_per_s, one.iops) if one else Figures()
        name = self.hired.name
        members = (name,) if name else ()
        what = name or f"{self._machine_words()} of unknown type"
        cached = frozenset(name for name in volumes if self.media.is_cached(name))
        if cached != volumes:
            yield _Carrier("instance", what, members, carries, disks=volumes - cached)
        if cached:
            # Every read may be answered by the cache, and every write reaches the disk in the end.
            writes = Figures(write_mb_per_s=carries.write_mb_per_s, write_iops=carries.write_iops)
            yield _Carrier("instance", f"{what}, writes", members, writes, disks=volumes)
            found = find_cached(name) if name else None
            limit = both_ways(found.mb_per_s, found.iops) if found else Figures()
            why = f"no table has the cached limits of {name}" if name else ""
            yield _Carrier("instance", f"{what}, host cache", members, limit, disks=cached, why_unknown=why)
        quota = self.declared.quota
        counted = frozenset(
            name for name in volumes if (said := self.media.declared(name)) is not None and said.type in PROVISIONED
        )
        if quota is not None and counted:
            iops = math.inf if quota.iops is None else max(0, quota.iops - (quota.elsewhere_iops or 0))
            limit = both_ways(quota.throughput_mb_per_s or math.inf, iops)
            yield _Carrier("quota", "account quota", ("account quota",), limit, disks=counted)

    def _google_carriers(self) -> Iterator[_Carrier]:
        """What a machine type of Google carries to all its disks of each type."""
        name = self.hired.name
        for kind, disks in self.media.by_kind(filter(self.media.is_google, self._path_disks())).items():
            found = machine_limits(name, kind) if name and kind else None
            to = kind or "disks of unknown type"
            yield _Carrier(
                "instance",
                f"{name or 'Google VM of unknown type'}, {to}",
                (name,) if name else (),
                found.figures if found else Figures(),
                disks=frozenset(disks),
                why_unknown=f"no table has what it carries to {to}" if name else "",
            )

    def _hop_carriers(self) -> Iterator[_Carrier]:
        below: dict[str, set[str]] = {}
        speeds: dict[str, int] = {}
        for name in self._path_disks():
            for hop in self.around.hops.get(name, ()):
                below.setdefault(hop.address, set()).add(name)
                speeds[hop.address] = hop.mbps
        for address, names in below.items():
            yield _Carrier("pcie", address, (address,), both_ways(mb_per_s(speeds[address])), disks=frozenset(names))

    def _path_disks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for path in self.paths if path.node for name in path.node.disks()))

    # What loads it.

    def _shared_parts(self, carriers: Sequence[_Carrier], quantity: Quantity) -> tuple[SharedPart, ...]:
        # By disk: a carrier has few of them, and of many paths few stand on these.
        media = {one.name: one.carries.of(quantity) for one in carriers if one.stage == "media"}

        def capacity(name: str) -> float:
            return media.get(name, math.inf)

        loads = _by_disk(loads_of(path.node, quantity, capacity) if path.node else {} for path in self.paths)
        shares = _by_disk(
            loads_of(_collapse_multipath(path.node), quantity, capacity) if path.node else {} for path in self.paths
        )
        found: dict[tuple[str, str], SharedPart] = {}
        for one in carriers:
            loaded = _path_loads(one, shares if one.stage == "media" else loads)
            part = SharedPart(one.stage, one.name, one.members, one.carries.of(quantity), loaded)
            found.setdefault((one.stage, one.name), part)
        order = {stage: at for at, stage in enumerate(STAGES)}
        return tuple(sorted(found.values(), key=lambda part: order.get(part.stage, 0)))  # type: ignore[call-overload]

    def _sum_stages(
        self, carriers: Sequence[_Carrier], parts: Mapping[Quantity, Sequence[SharedPart]]
    ) -> Iterator[StageSum]:
        for stage in reversed(STAGES):
            mine = [one for one in carriers if one.stage == stage]
            if mine or stage in ("media", "pcie", "network"):
                disks = {name for at in self.numbers if (node := self.paths[at].node) for name in node.disks()}
                found: dict[Quantity, Most | None] = {}
                for quantity in (*_MB, *_IOPS):
                    own = [part for part in parts[quantity] if part.stage == stage]
                    loaded = {at for part in own for at in part.loads}
                    reached = [at for at in self.numbers if at in loaded]
                    found[quantity] = most(reached, own) if reached and self.numbers else None
                members = tuple(dict.fromkeys(name for one in mine if _is_on(one, disks) for name in one.members))
                bounding = {name for one in found.values() if one for bound in one.bounds for name in bound.members}
                shown = tuple(sorted((name for name in members if name in bounding), key=natural)) or members
                figures = [_bounded_value(found[quantity]) for quantity in (*_MB, *_IOPS)]
                values = [one for one in figures if one is not None]
                known, why = self._stage_known(stage, mine, values, disks, shown)
                yield StageSum(stage, shown, figures[0], figures[1], known, why, figures[2], figures[3])
        yield StageSum("memory", (), None, None, "unknown", _MEMORY)
        yield StageSum("processor", (), None, None, "unknown", _PROCESSOR)

    def _stage_known(
        self,
        stage: HostStage,
        mine: Sequence[_Carrier],
        figures: Sequence[float],
        disks: Set[str],
        shown: Sequence[str],
    ) -> tuple[HostKnown, str]:
        if not self.numbers:
            return "unknown", "no storage that holds data is found"
        if stage == "network" and not mine:
            return "not-counted", "no link is on the way from an application to this storage"
        if stage == "pcie" and is_virtual_machine(self.facts):
            return "unknown", EMULATED
        if stage == "pcie" and not mine:
            return "unknown", "no width and speed of a PCI Express link above a drive can be read"
        unknown = [one for one in mine if not one.carries.is_limit and _is_on(one, disks)]
        if unknown and stage == "instance":
            return "unknown", f"its limits are not known: {self._why_unknown(stage, unknown[0])}"
        if unknown:
            names = _join_few([", ".join(one.members) or one.name for one in unknown])
            why = self._why_unknown(stage, unknown[0]).removeprefix(f"{names}: ")
            # What the stage is shown with needs no second name.
            why = why if list(shown) == [names] else f"not known of {names}: {why}"
            return ("partly" if figures else "unknown"), why
        if stage == "instance" and self._unknown_iops(mine):
            return "known", f"{_ADDED[stage]}; its IOPS are not known"
        return "known", _ADDED[stage]

    def _why_unknown(self, stage: HostStage, one: _Carrier) -> str:
        if one.why_unknown:
            return one.why_unknown
        if stage == "media":
            return self.media.why_unknown(min(one.disks))
        if stage == "instance":
            return "the type is not in the tables" if self.hired.name else "the firmware does not report the type"
        if stage == "network":
            carried = [wire_of(link, timestamps=True) for link in physical(one.members, self.facts)]
            silent = next((f"{each.link}: {each.why}" for each in carried if each.mb_per_s is None), None)
            return silent or "the links that carry it are not known"
        return "not declared"

    # What binds.

    def _find_binding(
        self,
        quantity: Quantity,
        found: Most | None,
        parts: Mapping[Quantity, Sequence[SharedPart]],
        stages: Sequence[StageSum],
    ) -> Binding | None:
        if found is None or not found.bounds:
            return None
        shares = shares_of((bound.stage, bound.members, bound.share) for bound in found.bounds)
        stage = shares[0].stage
        lifted = most(self.numbers, [part for part in parts[quantity] if part.stage != stage])
        name = "read_mb_s" if quantity == "read_mb_per_s" else "write_mb_s"
        binding = binding_of(shares, stages, name, _bounded_value(lifted))
        following = _stage_of(lifted)
        if lifted is None or following is None or lifted.value >= (binding.next_mb_s or math.inf) * _ROUNDING:
            return binding
        # A stage's own sum may be out of reach of this host's paths: next is what they reach.
        return msgspec.structs.replace(binding, next_mb_s=lifted.value, next_stage=following)

    def _iops_binding(
        self, quantity: Quantity, found: Most | None, parts: Mapping[Quantity, Sequence[SharedPart]]
    ) -> IopsBinding | None:
        if found is None or not found.bounds:
            return None
        share = shares_of((bound.stage, bound.members, bound.share) for bound in found.bounds)[0]
        lifted = most(self.numbers, [part for part in parts[quantity] if part.stage != share.stage])
        return IopsBinding(share.stage, share.members, _bounded_value(lifted), _stage_of(lifted))


def shares_of(found: Iterable[tuple[str, Iterable[str], float]]) -> tuple[Share, ...]:
    """Stage, members and share of each part that binds → each stage with its share, the largest first."""
    sums: dict[str, float] = {}
    members: dict[str, list[str]] = {}
    for stage, names, share in found:
        sums[stage] = sums.get(stage, 0.0) + share
        members.setdefault(stage, []).extend(names)
    ranked = sorted(sums, key=lambda stage: -sums[stage])
    return tuple(
        msgspec.convert(
            [
                {"stage": one, "members": tuple(sorted(dict.fromkeys(members[one]), key=natural)), "mb_s": sums[one]}
                for one in ranked
            ],
            tuple[Share, ...],
        )
    )


def _stage_of(found: Most | None) -> HostStage | None:
    """The stage with the largest share."""
    if found is None or not found.bounds:
        return None
    return shares_of((bound.stage, bound.members, bound.share) for bound in found.bounds)[0].stage


def binding_of(shares: Sequence[Share], stages: Sequence[StageSum], name: str, lifted: float | None) -> Binding:
    """What binds, and the lowest of the other stages that are known in full."""
    stage = shares[0].stage
    others = [
        (value, one.stage)
        for one in stages
        if one.stage != stage and one.known == "known" and (value := getattr(one, name)) is not None
    ]
    following = min(others, default=(lifted, None), key=lambda pair: pair[0] or 0.0)
    return Binding(stage, shares[0].members, following[0], following[1], lifted, tuple(shares))


_ADDED: Mapping[HostStage, str] = {
    "media": "the drives and volumes, after the arithmetic of their arrays",
    "pcie": "each PCI Express link above the drives, once",
    "instance": "what the instance carries to all its volumes together",
    "quota": "what the account may have",
    "network": "the wires less their headers, each physical link once",
}


def _bounded_value(found: Most | None) -> float | None:
    return found.value if found is not None and found.bounds else None


def _is_on(one: _Carrier, disks: Set[str]) -> bool:
    return bool(one.paths) or not one.disks.isdisjoint(disks)


def _by_disk(paths: Iterable[Mapping[str, float]]) -> Mapping[str, Sequence[tuple[int, float]]]:
    """For each disk the paths, by number, that load it, and with how much."""
    found: dict[str, list[tuple[int, float]]] = {}
    for at, each in enumerate(paths):
        for disk, load in each.items():
            found.setdefault(disk, []).append((at, load))
    return found


def _path_loads(one: _Carrier, disks: Mapping[str, Sequence[tuple[int, float]]]) -> dict[int, float]:
    """What each path that a carrier carries loads it with."""
    taken: dict[int, float] = {}
    for name in (one.name,) if one.stage == "media" else sorted(one.disks):
        for at, load in disks.get(name, ()):
            taken[at] = taken.get(at, 0.0) + load
    taken |= dict.fromkeys(one.paths, 1.0)
    return {at: taken[at] for at in sorted(taken) if taken[at] > 0}


def loads_of(
    node: BlockNode, quantity: Quantity, capacity: Callable[[str], float] = lambda _: math.inf
) -> dict[str, float]:
    """What each disk of a tree is loaded with for each unit that the tree carries. Disks that serve side by side, as
    the copies of a mirror its reads, take of it by their ``capacity``; evenly where one of these is not known."""
    known = {disk: capacity(disk) for disk in node.disks()}
    is_known = all(0 < one < math.inf for one in known.values())

    def carried(leaf: Callable[[str], float]) -> float:
        return combine(node, lambda name: both_ways(leaf(name), leaf(name))).of(quantity)

    each = known if is_known else dict.fromkeys(known, 1.0)
    whole, beside = carried(each.__getitem__), known.keys() - set(node.disks(holding=True))
    found = {}
    for disk, count in Counter(node.disks()).items():
        # With no limit but that of this one disk, the tree carries so much.
        alone = carried(lambda name, disk=disk: each[name] if name == disk else math.inf)  # type: ignore[misc]
        if math.isfinite(alone):
            found[disk] = count * each[disk] / alone if alone > 0 else 0.0
        else:
            # How much of the reads a cache answers is not known: unless all figures are, it is loaded with none.
            is_left_out = disk in beside and not is_known
            rest = whole if is_left_out else carried(lambda name, disk=disk: 0.0 if name == disk else each[name])  # type: ignore[misc]
            found[disk] = (whole - rest) / whole if whole > 0 else 0.0
    return found


def _collapse_multipath(node: BlockNode) -> BlockNode:
    """The tree with each multipath device as one disk: all of its paths lead to one medium."""
    if node.family == "multipath":
        return BlockNode(node.name, node.device)
    return msgspec.structs.replace(node, members=tuple(map(_collapse_multipath, node.members)))


def _media_below(node: BlockNode) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each medium of a tree by its device, with the disks that are paths to it."""
    if node.family == "multipath":
        yield node.device, tuple(dict.fromkeys(node.disks()))
    elif not node.members:
        yield node.device, (node.device,)
    else:
        for member in node.members:
            yield from _media_below(member)


def data_paths(facts: Facts, front: Front) -> tuple[tuple[DataPath, ...], tuple[str, ...]]:
    """The paths that hold data, and the names of those that are left out."""
    tops = [DataPath(", ".join(places) or node.name, node, places) for node, places, _ in BlockGraph(facts).tops()]
    remote = tuple(DataPath(one.mountpoint, None, (one.mountpoint,), one.links) for one in front.remote)
    if front.places:
        served = [path for path in tops if _holds_any(path, front.places)]
        metadata = [path for path in tops if path not in served and _holds_any(path, front.metadata)]
        if served:
            metadata = [msgspec.structs.replace(path, is_metadata=True) for path in metadata]
            listed = {path.name for path in (*served, *metadata)}
            return (*served, *metadata, *remote), tuple(path.name for path in tops if path.name not in listed)
    data = [path for path in tops if not _SYSTEM & set(path.places)]
    used = [path for path in data if path.places or (path.node and path.node.members)]
    chosen = used or (data if not remote else []) or (tops if not remote else [])
    return (*chosen, *remote), tuple(path.name for path in tops if path not in chosen)


def _serving_path(path: DataPath, stages: StorageStages) -> DataPath:
    """The path with what serves one stream at a time, as the ceilings of a path by itself have it."""
    return path if path.node is None else msgspec.structs.replace(path, node=stages.at_a_time(path.node))


def _holds_any(path: DataPath, names: Sequence[str]) -> bool:
    if path.node is None:
        return False
    own = {path.node.device, *(one.device for one in path.node.arrays()), *path.node.disks(), *path.places}
    return bool(own & set(names))


def _split_parts(path: DataPath) -> Iterator[DataPath]:
    """The parts of an array whose level is not known: any of them may be used by itself."""
    node = path.node
    if node is None or not node.members or node.family is not None:
        yield path
        return
    for member in node.members:
        yield from _split_parts(DataPath(f"{path.name} ({member.name})", member, path.places))


def _join_few(names: Sequence[str], most_names: int = 4) -> str:
    more = f" and {len(names) - most_names} more" if len(names) > most_names else ""
    return f"{', '.join(names[:most_names])}{more}"
