"""`scan` reads a whole host into one frozen `Facts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from advisor.facts import unknown as signs
from advisor.facts.block.controllers import controller_arrays, read_controllers
from advisor.facts.block.disks import Disk, FileSystem, read_disks, read_filesystems
from advisor.facts.block.mounts import read_mounts
from advisor.facts.network.link_claim import Owners, read_owners
from advisor.facts.network.links import Link, read_links
from advisor.facts.processors.cpu import Cpu, read_cpu
from advisor.facts.processors.numa import Numa, read_numa
from advisor.facts.processors.pci import Accelerator, Irq, read_accelerators, read_irqs
from advisor.facts.remote.network_storage import FcPort, NetworkStorage, read_fibre_channel, read_network_storage
from advisor.facts.settings import KEYS, NAMED
from advisor.facts.settings.site_settings import SiteSetting, read_site_settings
from advisor.facts.settings.sysctl import SysctlOrigin, named_keys, origins, read_sysctl, read_sysctl_sources
from advisor.facts.system.identity import (
    BurstingVolume,
    Cloud,
    Container,
    Identity,
    PurchasedFigures,
    read_container,
    read_identity,
)
from advisor.facts.system.memory import Counters, Memory, MemoryModule, read_counters, read_memory, read_memory_modules
from advisor.facts.system.roles import StorageSoftware, read_roles, read_software
from advisor.facts.system.services import Systemd, read_systemd
from advisor.facts.unknown import Unknown, Unknowns
from advisor.facts.writers import Write, read_writes
from advisor.host import Host, Missing

if TYPE_CHECKING:
    from advisor.facts.block.block import Array, PathLoad
    from advisor.facts.block.controller import Controller
    from advisor.facts.block.dm import EncryptedDevice
    from advisor.facts.block.stacked import ZfsPool
    from advisor.facts.clusters.beegfs import Beegfs
    from advisor.facts.clusters.infoscale import InfoScale
    from advisor.facts.clusters.iris import Iris
    from advisor.facts.clusters.llt import Llt
    from advisor.facts.remote.iscsi import Iscsi


class Facts(msgspec.Struct, frozen=True):
    """Everything a scan learnt; the JSON of ``advisor scan`` is this and the findings."""

    host: Identity
    cpu: Cpu
    memory: Memory
    numa: Numa
    links: tuple[Link, ...]
    irqs: tuple[Irq, ...]
    sysctl: Mapping[str, str]
    sysctl_origin: Mapping[str, SysctlOrigin]
    disks: tuple[Disk, ...]
    filesystems: tuple[FileSystem, ...]
    arrays: tuple[Array, ...]
    llt: Llt | None
    unknown: tuple[Unknown, ...]
    counters: Counters = Counters()
    owners: Owners = Owners()
    site_settings: tuple[SiteSetting, ...] = ()
    iscsi: Iscsi | None = None
    controllers: tuple[Controller, ...] = ()
    beegfs: Beegfs | None = None
    iris: tuple[Iris, ...] = ()
    infoscale: InfoScale | None = None
    network_storage: tuple[NetworkStorage, ...] = ()
    systemd: Systemd | None = None
    path_load: tuple[PathLoad, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    fibre_channel: tuple[FcPort, ...] = ()
    encrypted: tuple[EncryptedDevice, ...] = ()
    zfs_pools: tuple[ZfsPool, ...] = ()
    memory_modules: tuple[MemoryModule, ...] = ()
    software: StorageSoftware | None = None
    purchases: tuple[PurchasedFigures, ...] = ()
    """What the user declares of volumes, against the machine; a scan by itself knows of none."""
    bursting: tuple[BurstingVolume, ...] = ()
    """Those of the declared volumes that live on credits."""
    container: Container = Container()
    writes: tuple[Write, ...] = ()
    """What sets values of tunables besides sysctl files, in the order of time (`advisor.facts.writers`)."""
    roles: Mapping[str, tuple[str, ...]] = {}
    """What the host is seen to serve, by the name of the profile for it: the signs, such as units that run."""


def scan(host: Host, *, with_drives: bool | None = None, only_judged: bool = False) -> Facts:
    """Read a host. Never fails because one part of it is odd: what cannot be read is listed under ``unknown``.

    ``with_drives`` asks the drives for their health, and firmware for its settings; by default only a captured host,
    which has the answers.
    ``only_judged`` leaves out the version of systemd, at which no rule looks: the process takes 5 ms of CPU time.
    """
    host, unknown = host.remembering(), Unknowns()
    for name, why in host.origin.unknown if host.origin else ():
        unknown.note(name, why)
    disks = read_disks(host, unknown)
    is_asked = with_drives or (with_drives is None and not host.is_live)
    if is_asked and any(disk.kind in ("nvme", "scsi") for disk in disks):
        from advisor.facts.block.drive_health import with_health

        disks = with_health(host, disks, unknown)
    links = read_links(host, unknown)
    if is_asked and host.is_live and host.is_root and _has_firmware(disks, links):
        from advisor.facts.block.drive_health import with_formats, with_write_ordering

        disks, links = with_formats(host, disks), with_write_ordering(host, links)
    filesystems = read_filesystems(host, unknown)
    controllers = read_controllers(host, unknown)
    if controllers:
        from advisor.facts.block.three_ware import with_disks

        controllers = with_disks(host, controllers, disks, unknown)
    pools = _read_pools(host, unknown)
    arrays = (
        *_read_kernel_arrays(host, disks, pools, unknown),
        *_read_volumes(host, disks, unknown),
        *controller_arrays(controllers, disks),
    )
    identity = read_identity(host, unknown)
    llt = _read_llt(host, links, unknown)
    iscsi = _read_iscsi(host, links, disks, arrays, unknown)
    network_storage = read_network_storage(host, disks, links, iscsi)
    lines = read_sysctl_sources(host, unknown)
    named = named_keys(lines)
    return Facts(
        host=identity,
        cpu=read_cpu(host, unknown),
        memory=read_memory(host, unknown),
        numa=read_numa(host, unknown),
        links=links,
        irqs=read_irqs(host, unknown),
        sysctl=read_sysctl(host, unknown, named),
        sysctl_origin=origins(lines, named.union(KEYS, NAMED)),
        writes=read_writes(host),
        disks=disks,
        filesystems=filesystems,
        arrays=arrays,
        llt=llt,
        counters=read_counters(host, unknown),
        owners=read_owners(host),
        site_settings=read_site_settings(host, unknown),
        iscsi=iscsi,
        controllers=controllers,
        beegfs=_read_beegfs(host, links, disks, arrays, unknown),
        iris=_read_iris(host, filesystems, arrays, disks, unknown),
        infoscale=_read_infoscale(host, llt, links, identity.cloud, unknown),
        network_storage=network_storage,
        roles=read_roles(host, network_storage),
        systemd=read_systemd(host, with_version=not only_judged),
        accelerators=read_accelerators(host, unknown),
        fibre_channel=_read_fibre_channel(host),
        encrypted=_read_encrypted(host, unknown),
        zfs_pools=pools,
        memory_modules=_read_modules(host, identity, unknown) if is_asked else (),
        software=_read_software(host, unknown),
        path_load=_read_path_load(host, arrays),
        container=read_container(host),
        unknown=unknown.listed(),
    )


def _has_firmware(disks: tuple[Disk, ...], links: tuple[Link, ...]) -> bool:
    """Whether a drive or an adapter is of a kind whose firmware is asked."""
    return any(disk.kind == "nvme" for disk in disks) or any(link.driver == "mlx5_core" for link in links)


def _is_absent(answer: object) -> bool:
    return isinstance(answer, Missing) and answer.is_absent


def _read_modules(host: Host, identity: Identity, unknown: Unknowns) -> tuple[MemoryModule, ...]:
    if identity.virtualization not in (None, "", "none"):
        return ()

    return read_memory_modules(host, is_virtual=False, unknown=unknown)


def _read_fibre_channel(host: Host) -> tuple[FcPort, ...]:
    if not host.names(signs.FIBRE_CHANNEL):
        return ()

    return read_fibre_channel(host)


def _read_encrypted(host: Host, unknown: Unknowns) -> tuple[EncryptedDevice, ...]:
    # One of the mapped devices may be encrypted.
    if not any(name.startswith("dm-") for name in host.names("/sys/block")):
        return ()
    from advisor.facts.block.dm import read_encrypted

    return read_encrypted(host, unknown)


def _read_pools(host: Host, unknown: Unknowns) -> tuple[ZfsPool, ...]:
    if not host.names(signs.ZFS_POOLS):
        return ()
    from advisor.facts.block.stacked import read_zfs_pools

    return read_zfs_pools(host, unknown)


def _read_software(host: Host, unknown: Unknowns) -> StorageSoftware | None:
    if not any(map(host.exists, (signs.DECLUSTERED, *signs.CASSANDRA))) and not host.names(signs.CEPH):
        return None

    return read_software(host, unknown)


def _read_kernel_arrays(
    host: Host, disks: tuple[Disk, ...], pools: tuple[ZfsPool, ...], unknown: Unknowns
) -> tuple[Array, ...]:
    is_named = bool(pools) or any(name.startswith(("md", "dm-", *signs.STACKED)) for name in host.names("/sys/block"))
    # In a capture the output of the arrays' tools may stand alone.
    if host.is_live and not is_named and _is_absent(host.read("/proc/mdstat")):
        return ()
    from advisor.facts.block.arrays import read_arrays

    return read_arrays(host, disks, unknown, pools)


def _read_volumes(host: Host, disks: tuple[Disk, ...], unknown: Unknowns) -> tuple[Array, ...]:
    mounts = read_mounts(host)
    is_mounted = not isinstance(mounts, Missing) and any(mount.source.startswith("/dev/vx/") for mount in mounts)
    if not is_mounted and not any(map(host.exists, signs.VOLUME_MANAGER)):
        return ()
    from advisor.facts.block.vxvm import read_vxvm

    return read_vxvm(host, disks, unknown)


def _read_llt(host: Host, links: tuple[Link, ...], unknown: Unknowns) -> Llt | None:
    flow = host.run(signs.LLT_FLOW_QUERY)
    if _is_absent(flow) and _is_absent(host.read(signs.LLTTAB)):
        return None
    from advisor.facts.clusters.llt import read_llt

    return read_llt(host, links, unknown, flow)


def _read_iscsi(
    host: Host, links: tuple[Link, ...], disks: tuple[Disk, ...], arrays: tuple[Array, ...], unknown: Unknowns
) -> Iscsi | None:
    texts = (host.read(path) for path in (signs.ISCSID_CONF, f"{signs.IET}/volume", f"{signs.IET}/session"))
    listed = map(host.listdir, (*signs.ISCSI_RECORDS, signs.ISCSI_SESSIONS, signs.LIO_TARGETS))
    if all(map(_is_absent, (*texts, *listed))):
        return None
    from advisor.facts.remote.iscsi import read_iscsi

    return read_iscsi(host, links, disks, arrays, unknown)


def _read_beegfs(
    host: Host, links: tuple[Link, ...], disks: tuple[Disk, ...], arrays: tuple[Array, ...], unknown: Unknowns
) -> Beegfs | None:
    mounts = read_mounts(host)
    is_mounted = not isinstance(mounts, Missing) and any(mount.kind == "beegfs" for mount in mounts)
    if not is_mounted and not host.names(signs.BEEGFS):
        return None
    from advisor.facts.clusters.beegfs import read_beegfs

    return read_beegfs(host, links, disks, arrays, unknown)


def _read_iris(
    host: Host,
    filesystems: tuple[FileSystem, ...],
    arrays: tuple[Array, ...],
    disks: tuple[Disk, ...],
    unknown: Unknowns,
) -> tuple[Iris, ...]:
    if not any(map(host.exists, (signs.IRIS_REGISTRY, *(f"{place}/iris.cpf" for place in signs.IRIS_USUAL)))):
        return ()
    from advisor.facts.clusters.iris import read_iris

    return read_iris(host, filesystems, arrays, disks, unknown)


def _read_infoscale(
    host: Host, llt: Llt | None, links: tuple[Link, ...], cloud: Cloud | None, unknown: Unknowns
) -> InfoScale | None:
    if llt is None and not any(map(host.exists, signs.VOLUME_MANAGER)) and _is_absent(host.read(signs.MAIN_CF)):
        return None
    from advisor.facts.clusters.infoscale import read_infoscale

    return read_infoscale(host, llt, links, cloud, unknown)


def _read_path_load(host: Host, arrays: tuple[Array, ...]) -> tuple[PathLoad, ...]:
    if not any(array.path_groups for array in arrays):
        return ()
    from advisor.facts.block.block import read_path_load

    return read_path_load(host, arrays)
