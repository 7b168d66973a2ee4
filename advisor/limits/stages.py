"""The ceilings of one storage path, from the outside in: quota, instance, network, PCI Express, volume or drive.

What several disks share is divided evenly among those of the path, and each disk's share goes through the arithmetic of
the arrays above it, as the disk's own figures do. So a mirror's second copy counts where it is really sent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence, Set

import msgspec

from advisor.facts.block.block_graph import BlockNode, Rank
from advisor.facts.block.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.limits import cloud_disks
from advisor.limits.cloud_disks import PROVISIONED, find_cached, machine_limits
from advisor.limits.declared import Declared
from advisor.limits.figures import QUANTITIES, Figures, both_ways, combine
from advisor.limits.links import EMULATED, PCIE_SOURCE, PCIE_WORDS, PciAndNetwork, mb_per_s, wire_ceiling
from advisor.limits.machines import Machine
from advisor.limits.media import Media, Medium
from advisor.limits.records import PathCeiling, Rate, Stage
from advisor.rules.queries import is_virtual_machine
from advisor.rules.remote.multipath import iscsi_maps, link_speeds, selector

NO_TYPE = "the firmware does not report the instance type: declare instance-type in --volumes FILE"
TURNS_WORDS = "round robin gives each path the same: as many times the slowest link as there are paths"


class StorageStages(msgspec.Struct, frozen=True):
    """All that the stages of a path are made of."""

    facts: Facts
    context: PciAndNetwork
    declared: Declared
    media: Media
    instance_type: str | None
    machine: Machine | None

    def at_a_time(self, node: BlockNode, *, slowest: bool = False) -> BlockNode:
        """The part of a tree that serves one stream at a time: the fastest of its segments, or the slowest."""

        def rank(one: BlockNode) -> Rank:
            rates = [ceiling.sustained for ceiling in self.of(one)]
            reads = [rate.read_mb_per_s for rate in rates if rate.read_mb_per_s is not None]
            iops = [rate.read_iops for rate in rates if rate.read_iops is not None]
            figures = (min(reads, default=0.0), min(iops, default=0.0), float(len(set(one.disks()))))
            return tuple(-figure for figure in figures) if slowest else figures

        return node.at_a_time(rank)

    def of(self, node: BlockNode) -> Iterator[PathCeiling]:
        """The ceilings of one tree."""
        disks = tuple(dict.fromkeys(node.disks()))
        ebs = tuple(name for name in disks if self.media.is_volume(name))
        if ebs:
            yield from self._quota_ceilings(node, ebs)
            is_azure = any(self.media.is_azure(name) for name in ebs)
            cached = tuple(name for name in ebs if self.media.is_cached(name))
            uncached = tuple(name for name in ebs if name not in cached)

            def share(figures: Figures) -> Rate:
                whole = shared(node, ebs, figures)
                if not cached:
                    return whole
                # The host's cache may answer every read of the disks that it caches.
                reads = shared(node, uncached, figures) if uncached else Rate()
                return msgspec.structs.replace(whole, read_mb_per_s=reads.read_mb_per_s, read_iops=reads.read_iops)

            yield machine_ceiling(
                self.machine,
                self.instance_type,
                "Azure VM" if is_azure else "EC2 instance",
                "managed disks" if is_azure else "EBS volumes",
                share,
                self.media.by_kind(ebs).keys(),
            )
            if cached:
                yield cache_ceiling(self.instance_type, lambda figures: shared(node, cached, figures))
        for role, what in (("iscsi", "iSCSI"), ("nvme", "NVMe over fabrics")):
            far = tuple(name for name in disks if self._fabric_of(name) == role)
            if far:
                yield self._network_ceiling(node, far, role, what)
        for name in (array.device for array in node.arrays() if array.level == "replica"):
            yield PathCeiling("network", "DRBD link", (name,), "unknown", self._why_replica(name))
        yield from self._pcie_ceilings(node, disks)
        kind = "Azure disk" if any(self.media.is_azure(name) for name in ebs) else "EBS volume"
        yield from self._media_ceilings(node, ebs, kind if len(ebs) == 1 else f"{len(ebs)} {kind}s", "volume")
        google = tuple(name for name in disks if name not in ebs and self.media.is_google(name))
        if google:
            yield from self._google_ceilings(node, google)
            what = "Google disk" if len(google) == 1 else f"{len(google)} Google disks"
            yield from self._media_ceilings(node, google, what, "volume")
        seen = (*ebs, *google)
        unseen = tuple(name for name in disks if name not in seen and self._find_disk(name) is None)
        drives = tuple(name for name in disks if name not in seen and name not in unseen)
        if unseen:
            what = "disk not seen here" if len(unseen) == 1 else f"{len(unseen)} disks not seen here"
            yield PathCeiling("medium", what, unseen, "unknown", self._why_unseen(unseen[0]))
        yield from self._media_ceilings(
            node, drives, "drive" if len(drives) == 1 else f"{len(drives)} drives", "medium"
        )

    def _google_ceilings(self, node: BlockNode, disks: Sequence[str]) -> Iterator[PathCeiling]:
        """What the machine type carries to all its disks of each type on this path."""
        name = self.instance_type
        for kind, names in self.media.by_kind(disks).items():
            found = machine_limits(name, kind) if name and kind else None
            if kind is None:
                why = "what it carries goes by the type of the disk, which is not declared"
            elif kind in cloud_disks.HYPERDISKS:
                why = f"no table has what Google's machine types carry to {kind}"
            elif name is None:
                why = NO_TYPE
            else:
                why = f"no table has what {name} carries to {kind}"
            if found is None:
                yield PathCeiling("instance", "Google VM", tuple(names), "unknown", why)
                continue
            yield PathCeiling(
                stage="instance",
                what="Google VM",
                where=(name,) if name else (),
                known="table",
                why=f"{name}, for all its {kind} disks; table of {found.dated}",
                sustained=shared(node, names, found.figures),
                source=found.source,
            )

    def _find_disk(self, name: str) -> Disk | None:
        return next((disk for disk in self.facts.disks if disk.name == name), None)

    def _why_unseen(self, name: str) -> str:
        """Why a device at the bottom of a path is no disk of this host."""
        access = name.removesuffix(" (remote)")
        arrays = [array for array in self.facts.arrays if array.manager == "vxvm"]
        if any(access in array.detail.get("remote", "").split(", ") for array in arrays):
            return "another node exports it (FSS): writes cross LLT to that node, and only that node knows its ceilings"
        if any(access in array.detail.get("unmapped", "").split(", ") for array in arrays):
            return "neither vxdisk nor vxdmpadm shows which disk of the kernel it is"
        if any(name == array.device for array in arrays):
            return "what it lies on could not be read: vxprint -ht needs root"
        return self.media.why_unknown(name)

    def _why_replica(self, name: str) -> str:
        """Why the link that carries a copy of each write is not known."""
        array = next(one for one in self.facts.arrays if one.device == name)
        if array.detail.get("connection") in ("Connected", "Established"):
            return "each write crosses it to the peer, and DRBD's status does not name the link"
        return "each write crosses it to the peer, which is not connected now"

    def _fabric_of(self, name: str) -> str | None:
        disk = self._find_disk(name)
        if disk is None:
            return None
        if disk.detail.get("transport") == "iscsi":
            return "iscsi"
        return "nvme" if name in self.context.far else None

    def _quota_ceilings(self, node: BlockNode, ebs: Sequence[str]) -> Iterator[PathCeiling]:
        """Of the io1 and io2 volumes among these: an account has no quota of the others' IOPS."""
        quota = self.declared.quota
        if quota is None:
            return
        ebs = tuple(name for name in ebs if self.media.is_ebs(name))
        kinds = {
            name: one.type for name in ebs if (one := self.media.declared(name)) is not None and one.type != "drive"
        }
        counted = tuple(name for name, kind in kinds.items() if kind in PROVISIONED)
        unknown = tuple(name for name in ebs if name not in kinds)
        if not counted and unknown:
            why = "it counts io1 and io2 volumes, and the type is not declared"
            yield PathCeiling("quota", "account quota", unknown, "unknown", why)
            return
        iops = math.inf if quota.iops is None else max(0, quota.iops - (quota.elsewhere_iops or 0))
        rate = shared(node, counted, both_ways(quota.throughput_mb_per_s or math.inf, iops))
        if counted and rate != Rate():
            why = f"as declared in {self.declared.where or 'the user'}; for all io1 and io2 volumes of the account"
            why += " that are not elsewhere" if quota.elsewhere_iops else ""
            where = counted if len(counted) < len(ebs) else ()
            yield PathCeiling("quota", "account quota", where, "declared", why, rate)

    def _network_ceiling(self, node: BlockNode, far: Sequence[str], role: str, what: str) -> PathCeiling:
        links = self.context.portals.get(role, ())
        names = tuple(link for link in links if link is not None)
        if not links or len(names) < len(links):
            why = "its sessions are not shown here" if not links else "the address of a session does not show its link"
            return PathCeiling("network", f"{what} links", names, "unknown", why)
        found = wire_ceiling(f"{what} links", names, self.facts, ipv6=role in self.context.ipv6)
        limit = found.sustained.read_mb_per_s
        turns = turns_limit(self.facts, far, ipv6=role in self.context.ipv6) if role == "iscsi" else None
        if turns is not None:
            limit, found = turns, msgspec.structs.replace(found, why=f"{found.why}; {TURNS_WORDS}")
        rate = Rate() if limit is None else shared(node, far, both_ways(limit))
        return msgspec.structs.replace(found, stage="network", sustained=rate)

    def _pcie_ceilings(self, node: BlockNode, disks: Sequence[str]) -> Iterator[PathCeiling]:
        """Each hop's even share among the disks of the path below it; the smallest share of each disk counts."""
        hops = {name: self.context.hops.get(name, ()) for name in disks}
        if not any(hops.values()):
            yield from self._no_pcie(disks)
            return
        if is_virtual_machine(self.facts):
            yield PathCeiling("pcie", "PCI Express", (), "unknown", EMULATED)
            return
        crowd = Counter(hop.address for name in node.disks() for hop in hops.get(name, ()))
        share = {
            name: min(((mb_per_s(hop.mbps) / crowd[hop.address], hop.address) for hop in found), default=(math.inf, ""))
            for name, found in hops.items()
        }
        where = tuple(sorted({address for _, address in share.values() if address}))
        most = max(crowd[address] for address in where)
        behind = f", {most} disks behind one link" if most > 1 else ""
        rate = finite(combine(node, lambda name: both_ways(share.get(name, (math.inf, ""))[0])))
        if rate != Rate():
            yield PathCeiling("pcie", "PCI Express", where, "host", PCIE_WORDS + behind, rate, source=PCIE_SOURCE)

    def _no_pcie(self, disks: Sequence[str]) -> Iterator[PathCeiling]:
        paths = [name for name in disks if (disk := self._find_disk(name)) and disk.paths and not self._fabric_of(name)]
        if paths:
            why = f"{paths[0]} has several controllers: how they share the load is not known"
            yield PathCeiling("pcie", "PCI Express", tuple(paths), "unknown", why)

    def _media_ceilings(self, node: BlockNode, disks: Sequence[str], what: str, stage: Stage) -> Iterator[PathCeiling]:
        if not disks:
            return
        found = {name: self.media.figures(name) for name in disks}
        unknown = [name for name, medium in found.items() if medium is None]
        if unknown:
            yield PathCeiling(stage, what, tuple(unknown), "unknown", self.media.why_unknown(unknown[0]))
            return
        known = {name: medium for name, medium in found.items() if medium is not None}
        bursts = [medium.burst_seconds for medium in known.values() if medium.burst_seconds]
        whys = tuple(dict.fromkeys(medium.why for medium in known.values()))
        yield PathCeiling(
            stage=stage,
            what=what,
            where=tuple(disks),
            known=next(iter(known.values())).known,
            why="; ".join(whys[:3]) + (f"; and {len(whys) - 3} more" if len(whys) > 3 else ""),
            sustained=_over_media(node, known, lambda medium: medium.sustained),
            burst=_over_media(node, known, lambda medium: medium.burst or medium.sustained)
            if any(medium.burst for medium in known.values())
            else None,
            burst_seconds=min(bursts, default=None),
            source=next((medium.source for medium in known.values() if medium.source), None),
        )


def machine_ceiling(
    machine: Machine | None,
    name: str | None,
    what: str,
    volumes: str,
    share: Callable[[Figures], Rate],
    kinds: Set[str | None] = frozenset(),
) -> PathCeiling:
    """What a machine carries to all its volumes. ``share`` is what a path has of that, ``kinds`` the declared types of
    its volumes."""
    found = machine.volumes.for_kinds(kinds) if machine and machine.volumes else None
    if found is None:
        why = f"{name} is not in the tables" if name else NO_TYPE
        if machine is not None:
            why = f"the tables have no limits of {name} for its {volumes}"
        return PathCeiling("instance", what, (name,) if name else (), "unknown", why)
    least = "; its maximum, and what it carries for longer may be less" if found.is_maximum else ""
    least += "; its IOPS are not known" if found.iops is None else ""
    least += f"; {found.note}" if found.note else ""
    bursts = (found.burst_mb_per_s, found.burst_iops) != (None, None)
    return PathCeiling(
        stage="instance",
        what=what,
        where=(name,) if name else (),
        known="declared" if found.is_declared else "table",
        why=f"{name}, for all its {volumes}; {'file' if found.is_declared else 'table'} of {found.dated}{least}",
        sustained=share(volume_figures(found.mb_per_s, found.iops)),
        burst=share(volume_figures(found.burst_mb_per_s, found.burst_iops)) if bursts else None,
        burst_seconds=found.burst_seconds,
        source=found.source,
    )


def cache_ceiling(name: str | None, share: Callable[[Figures], Rate]) -> PathCeiling:
    """What an Azure VM carries to all its disks with host caching."""
    found = find_cached(name) if name else None
    if found is None:
        why = f"no table has the cached limits of {name}" if name else NO_TYPE
        return PathCeiling("instance", "Azure VM cache", (name,) if name else (), "unknown", why)
    burst = both_ways(found.burst_mb_per_s or math.inf, found.burst_iops or math.inf)
    return PathCeiling(
        stage="instance",
        what="Azure VM cache",
        where=(name,) if name else (),
        known="table",
        why=f"{name}, for all its disks with host caching; table of November 2026",
        sustained=share(both_ways(found.mb_per_s, found.iops)),
        burst=share(burst) if found.burst_iops else None,
        source=cloud_disks.AZURE_CACHE_SOURCE,
    )


def volume_figures(mb_per_s: float | None, iops: float | None) -> Figures:
    """Reads and writes alike; no limit where a figure is not known."""
    return both_ways(math.inf if mb_per_s is None else mb_per_s, math.inf if iops is None else iops)


def _over_media(node: BlockNode, known: dict[str, Medium], figures: Callable[[Medium], Figures]) -> Rate:
    # A disk that is below an array twice, by two partitions, is not twice as fast.
    times = Counter(node.disks())
    each = {name: figures(medium).shared_by(times[name]) for name, medium in known.items()}
    return finite(combine(node, lambda name: each.get(name, Figures()), one_medium=True))


def turns_limit(facts: Facts, disks: Collection[str], *, ipv6: bool) -> float | None:
    """What equal turns over links of different speed carry, in MB/s: each path as much as the slowest. None where the
    iSCSI disks are not the paths of one map with round robin, or its links are equal or unknown."""
    maps = [one for one in iscsi_maps(facts) if set(disks).intersection(one.members)]
    if len(maps) != 1 or set(disks) - set(maps[0].members) or len(maps[0].path_groups) > 1:
        return None
    if selector(maps[0]) != "round-robin" or len(set(link_speeds(facts, maps[0]).values())) < 2:
        return None
    sessions = facts.iscsi.sessions if facts.iscsi else ()
    paths = Counter(name for one in sessions if set(disks).intersection(one.disks) for name in one.links)
    wires = {name: wire_ceiling(name, (name,), facts, ipv6=ipv6).sustained.read_mb_per_s for name in paths}
    each = [wire / paths[name] for name, wire in wires.items() if wire is not None]
    return paths.total() * min(each) if len(each) == len(wires) else None


def shared(node: BlockNode, disks: Sequence[str], whole: Figures) -> Rate:
    """What an array makes of something that these of its disks share evenly."""
    members = set(disks)
    each = whole.shared_by(sum(name in members for name in node.disks()) or 1)
    return finite(combine(node, lambda name: each if name in members else Figures()))


def finite(figures: Figures) -> Rate:
    """The figures with None for what sets no limit."""
    return Rate(*(None if math.isinf(value := figures.of(quantity)) else value for quantity in QUANTITIES))
