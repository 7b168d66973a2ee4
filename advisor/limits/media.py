"""Volumes and drives: what the user declares of them, and why nothing is known of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from operator import mul

import msgspec

from advisor.facts.host_facts import Facts
from advisor.limits import cloud_disks
from advisor.limits.cloud_disks import (
    AZURE_DISKS,
    EBS_MODEL,
    GOOGLE_DISKS,
    GUIDE,
    VOLUME_TYPES,
    Carried,
    EbsVolume,
    is_machine_type,
)
from advisor.limits.declared import Declared, DeclaredVolume, canonical_id
from advisor.limits.figures import MIB, Figures, both_ways
from advisor.limits.links import mb_per_s
from advisor.limits.machines import (
    FLOW_MBPS,
    FLOW_SOURCE,
    LOCAL_TABLE,
    PLACED_FLOW_MBPS,
    Given,
    LocalNvme,
    Machine,
    find_local,
    find_machine,
)
from advisor.limits.records import Known, PathCeiling, Rate

MAGNETIC = Carried(90.0, 200.0)
LOCAL_MODELS = {"aws": "Amazon EC2 NVMe Instance Storage", "azure": "Microsoft NVMe Direct Disk"}
"""How the models of local NVMe disks begin, by provider."""
AZURE_REMOTE_MODEL = "MSFT NVMe Accelerator"


class Medium(msgspec.Struct, frozen=True):
    """What one volume or drive carries, how that is known, and the words for it."""

    sustained: Figures
    known: Known
    why: str
    burst: Figures | None = None
    burst_seconds: float | None = None
    source: str | None = None


class Media:
    """The declared volumes and drives, by the disks of this host that they are."""

    def __init__(self, facts: Facts, declared: Declared, local: LocalNvme | None = None) -> None:
        """``local``: what was measured on local disks of machines of this type."""
        self._disks = {disk.name: disk for disk in facts.disks}
        # By the id in the serial number where one is declared, else by the name of the device.
        by_id = {canonical_id(one.volume_id): one for one in declared.volume if one.volume_id}
        by_device = {
            one.device.removeprefix("/dev/"): one for one in declared.volume if one.device and not one.volume_id
        }
        found = {}
        for name, disk in self._disks.items():
            one = by_id.get(canonical_id(disk.serial or "")) or by_device.get(name)
            if one is not None:
                found[name] = one
        self._found = found
        # Instances that run on Xen are those from before Nitro.
        nitro = facts.host.virtualization != "xen"
        self._made = {name: medium_of(one, declared.where, nitro=nitro) for name, one in self._found.items()}
        self._made |= {
            name: Medium(figures, "measured", "read by fio, which wrote nothing: of writes nothing is known")
            for name, figures in declared.measured.items()
            if name not in self._found
        }
        self._made |= _google_media(self._found, declared.where)
        for name, one in self._found.items():
            if one.is_cached and (medium := self._made.get(name)) is not None:
                self._made[name] = _cached_medium(medium)
        if local is not None:
            here = local_disks(facts)
            self._made |= {name: _measured_medium(local, len(here)) for name in here if name not in self._found}
        used = set(self._found.values())
        self.unused = tuple(one for one in declared.volume if one not in used)

    def figures(self, disk: str) -> Medium | None:
        """What is known of a disk's medium."""
        return self._made.get(disk)

    def declared(self, disk: str) -> DeclaredVolume | None:
        """What the user said about a disk."""
        return self._found.get(disk)

    def size_bytes(self, disk: str) -> int | None:
        """What the kernel reads of a disk's size."""
        one = self._disks.get(disk)
        return one.size_bytes if one else None

    def is_declared_ebs(self, disk: str) -> bool:
        return disk in self._found and self._found[disk].type not in ("drive", *AZURE_DISKS, *GOOGLE_DISKS)

    def is_ebs(self, disk: str) -> bool:
        """Whether it is an EBS volume, by its model or by the user's word."""
        one = self._disks.get(disk)
        return self.is_declared_ebs(disk) or (one is not None and one.model == EBS_MODEL)

    def is_azure(self, disk: str) -> bool:
        """Whether it is an Azure managed disk, by its model or by the user's word."""
        one = self._disks.get(disk)
        is_declared = disk in self._found and self._found[disk].type in AZURE_DISKS
        return is_declared or (one is not None and (one.model or "").startswith(AZURE_REMOTE_MODEL))

    def is_cached(self, disk: str) -> bool:
        """Whether it is declared as an Azure disk with host caching."""
        return disk in self._found and self._found[disk].is_cached

    def is_google(self, disk: str) -> bool:
        """Whether it is a Persistent Disk or a Hyperdisk, by its model or by the user's word."""
        one = self._disks.get(disk)
        is_declared = disk in self._found and self._found[disk].type in GOOGLE_DISKS
        return is_declared or (one is not None and one.model in cloud_disks.REMOTE_MODELS)

    def by_kind(self, disks: Iterable[str]) -> dict[str | None, list[str]]:
        """Disks by their declared type; those of which none is declared under None."""
        found: dict[str | None, list[str]] = {}
        for disk in disks:
            said = self.declared(disk)
            found.setdefault(said.type if said else None, []).append(disk)
        return found

    def is_volume(self, disk: str) -> bool:
        """Whether the limits of the machine for volumes hold for it."""
        return self.is_ebs(disk) or self.is_azure(disk)

    def why_unknown(self, disk: str) -> str:
        """Why nothing is known of a disk's medium."""
        one = self._disks.get(disk)
        if one is None:
            return "it is not among the disks of this host"
        if disk in self._found:
            kind = self._found[disk].type
            return "a drive of which nothing is declared" if kind == "drive" else f"{kind}, with no IOPS declared"
        if self.is_azure(disk):
            return "an Azure disk does not report its type: --volumes FILE declares it"
        if self.is_google(disk):
            return "a disk of Google Cloud does not report its type: --volumes FILE declares it"
        if (one.model or "").startswith(tuple(LOCAL_MODELS.values())) or one.model in cloud_disks.LOCAL_MODELS:
            return "a local disk of a machine whose local disks no table has figures of: advisor bench measures it"
        if self.is_ebs(disk):
            return "an EBS volume does not report its type: --volumes FILE declares it"
        if one.kind in ("virtio", "xen"):
            return "its hypervisor does not show what a virtual disk may draw: advisor bench measures it"
        return "a drive does not report what it carries: declare its data sheet in --volumes FILE, or measure it"


def medium_of(one: DeclaredVolume, where: str, *, nitro: bool = True) -> Medium | None:
    """What a declared volume carries, on an instance that is built on Nitro or not; None where too little is known."""
    source = where or "the user"
    if one.type == "drive":
        limits = (one.read_mb_per_s, one.write_mb_per_s, one.read_iops, one.write_iops)
        figures = Figures(*(math.inf if value is None else float(value) for value in limits))
        return Medium(figures, "declared", f"as declared in {source}") if figures.is_limit else None
    if one.type in AZURE_DISKS:
        # By its tier, or by the figures that were bought; None where they are not declared.
        if one.type in cloud_disks.MOST:
            if one.iops is None and one.throughput_mb_per_s is None:
                return None
            figures = both_ways(one.throughput_mb_per_s or math.inf, one.iops or math.inf)
            return Medium(figures, "declared", f"{one.type} as declared in {source}")
        tier = cloud_disks.find_tier(one.type, one.tier, one.gib)
        if tier is None:
            return None
        return Medium(
            both_ways(tier.mb_per_s, tier.iops),
            "table",
            f"{one.type} {tier.name} as declared in {source}; table of August 2026",
            burst=both_ways(tier.burst_mb_per_s, tier.burst_iops) if tier.bursts else None,
            source=cloud_disks.AZURE_SOURCE,
        )
    if one.type in GOOGLE_DISKS:
        # By what was bought; what follows from the size is shared with others (`_google_media`).
        if one.iops is None and one.mib_per_s is None:
            return None
        iops, mib = cloud_disks.bought_figures(one.type, one.iops, one.mib_per_s)
        figures = both_ways(math.inf if mib is None else mib * MIB, math.inf if iops is None else iops)
        if (iops, mib) == (one.iops, one.mib_per_s):
            return Medium(figures, "declared", f"{one.type} as declared in {source}")
        follows = f"{mib:,.0f} MiB/s" if one.mib_per_s is None else f"{iops:,.0f} IOPS"
        why = f"{one.type} as declared in {source}, which brings {follows}"
        return Medium(figures, "declared", why, source=cloud_disks.HYPERDISK_SOURCE)
    carried = MAGNETIC if one.type == "standard" else _carried_by(one, nitro=nitro)
    if carried is None:
        return None
    is_less = not nitro and carried != _carried_by(one, nitro=True) and one.type in VOLUME_TYPES
    old = "; the instance is not built on Nitro and carries less of it" if is_less else ""
    shared = "; Multi-Attach: all its instances together" if one.multi_attach else ""
    size = f", {one.gib:,} GiB" if one.gib else ""
    has_burst = carried.bucket is not None and carried.burst_mib_per_s is not None and carried.burst_iops is not None
    bucket = carried.bucket
    return Medium(
        sustained=both_ways(carried.mib_per_s * MIB, carried.iops),
        known="table",
        why=f"{one.type}{size} as declared in {source}{old}{shared}",
        burst=both_ways((carried.burst_mib_per_s or 0) * MIB, carried.burst_iops or 0) if has_burst else None,
        burst_seconds=cloud_disks.lasts_seconds(bucket, bucket.burst) if bucket else None,
        source=GUIDE,
    )


def _cached_medium(one: Medium) -> Medium:
    """Of a disk with host caching: the cache may answer every read."""

    def uncap(figures: Figures) -> Figures:
        return msgspec.structs.replace(figures, read_mb_per_s=math.inf, read_iops=math.inf)

    missed = f"{one.sustained.read_mb_per_s:,.0f} MB/s and {one.sustained.read_iops:,.0f} IOPS"
    return msgspec.structs.replace(
        one,
        sustained=uncap(one.sustained),
        burst=None if one.burst is None else uncap(one.burst),
        why=f"{one.why}; reads that the host's cache does not answer: {missed}",
    )


def _google_media(found: Mapping[str, DeclaredVolume], where: str) -> Iterator[tuple[str, Medium]]:
    """Each Persistent Disk with its share, by size, of what all of its type on the instance carry together."""
    sizes: dict[str, int] = {}
    for one in found.values():
        if one.type in cloud_disks.GOOGLE_BY_SIZE:
            sizes[one.type] = sizes.get(one.type, 0) + (one.gib or 0)
    for name, one in found.items():
        if one.type not in sizes or not one.gib:
            continue
        share = one.gib / sizes[one.type]
        together = cloud_disks.carried_together(one.type, sizes[one.type])
        why = f"{one.type}, {one.gib:,} GiB as declared in {where or 'the user'}"
        if share < 1:
            why += f"; its share, by size, of what {sizes[one.type]:,} GiB of the type carry together"
        yield (name, Medium(together.map(partial(mul, share)), "table", why, source=cloud_disks.GOOGLE_SOURCE))


def local_disks(facts: Facts) -> tuple[str, ...]:
    """The local NVMe disks of a cloud machine, by their model."""
    if facts.host.cloud is not None and facts.host.cloud.provider == "gcp":
        return tuple(disk.name for disk in facts.disks if disk.model in cloud_disks.LOCAL_MODELS)
    model = LOCAL_MODELS.get(facts.host.cloud.provider if facts.host.cloud else "")
    return tuple(disk.name for disk in facts.disks if model and (disk.model or "").startswith(model))


def _measured_medium(local: LocalNvme, count: int) -> Medium:
    """Of one local disk among ``count``."""
    figures = Figures(local.read_mb_per_s, local.write_mb_per_s, local.read_iops, local.write_iops)
    each = figures if local.scope == "disk" else figures.shared_by(max(count, 1))
    together = "its only disk" if count == 1 else f"its {count} disks together, an even share of each"
    which = "one disk" if local.scope == "disk" else together
    return Medium(each, "measured", f"by ScyllaDB on {local.name}, {which}; August 2026", source=LOCAL_TABLE)


def _carried_by(one: DeclaredVolume, *, nitro: bool = True) -> Carried | None:
    kind = next((kind for kind in VOLUME_TYPES if kind == one.type), None)
    return (
        None
        if kind is None
        else cloud_disks.carried(EbsVolume(kind, one.gib or 1), one.iops, one.mib_per_s, nitro=nitro)
    )


def bucket_of(one: DeclaredVolume) -> cloud_disks.Bucket | None:
    """The bucket of a declared volume; None where it has none."""
    carried = _carried_by(one)
    return carried.bucket if carried else None


# The cloud machine that a host is: its type by the firmware or by the user's word, what is known of it, network.


class Hired(msgspec.Struct, frozen=True):
    """``provider`` and ``name`` None off the cloud or where they are unknown; ``local``: measured figures of its
    local disks, where it has any."""

    provider: str | None = None
    name: str | None = None
    machine: Machine | None = None
    local: LocalNvme | None = None


def hired_machine(facts: Facts, declared: Declared, given: Given | None = None) -> Hired:
    """What the firmware says about the type; the user's word only where it says nothing."""
    cloud = facts.host.cloud
    name = (cloud.instance_type if cloud else None) or declared.instance_type
    provider = cloud.provider if cloud else _provider_of(name)
    if provider is None or name is None:
        return Hired(provider, name)
    local = find_local(provider, name) if local_disks(facts) else None
    return Hired(provider, name, find_machine(provider, name, given), local)


def _provider_of(name: str | None) -> str | None:
    """By the form of a declared type."""
    if name is None:
        return None
    if is_machine_type(name):
        return "gcp"
    return "azure" if name.startswith(("Standard_", "Basic_")) else "aws"


def network_ceiling(hired: Hired) -> PathCeiling | None:
    """What an EC2 instance carries over all its links, each way; None elsewhere. Headers are not taken off."""
    if hired.provider != "aws":
        return None
    name, machine = hired.name, hired.machine
    found = machine.network if machine else None
    if found is None:
        why = "the firmware does not report the instance type" if name is None else f"{name} is not in the tables"
        if machine is not None:
            why = f"the tables have no network bandwidth of {name}"
        return PathCeiling("instance", "EC2 network", (name,) if name else (), "unknown", why)
    value = mb_per_s(found.mbps)
    most = mb_per_s(found.most_mbps) if found.most_mbps else None
    kind = "file" if found.is_declared else "table"
    return PathCeiling(
        stage="instance",
        what="EC2 network",
        where=(name,) if name else (),
        known="declared" if found.is_declared else "table",
        why=f"{name}, baseline of all its links together; {kind} of {found.dated}",
        sustained=Rate(value, value),
        burst=Rate(most, most) if most else None,
        source=found.source,
    )


def flow_notes(hired: Hired) -> Iterator[str]:
    """What one flow carries, whatever the machine does."""
    if hired.provider == "aws":
        yield (
            f"one flow carries {FLOW_MBPS // 1000} Gbit/s ({mb_per_s(FLOW_MBPS):,.0f} MB/s) at most, or "
            f"{PLACED_FLOW_MBPS // 1000} Gbit/s to instances of the same cluster placement group ({FLOW_SOURCE})"
        )
