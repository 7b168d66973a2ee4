"""`scan` reads a whole host into one frozen `Facts`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.arrays import Array, read_arrays
from advisor.facts.beegfs import Beegfs, read_beegfs
from advisor.facts.controller import Controller
from advisor.facts.controllers import controller_arrays, read_controllers
from advisor.facts.counters import Counters, read_counters
from advisor.facts.cpu import Cpu, read_cpu
from advisor.facts.disks import Disk, FileSystem, read_disks, read_filesystems
from advisor.facts.identity import Identity, read_identity
from advisor.facts.infoscale import InfoScale, read_infoscale
from advisor.facts.iris import Iris, read_iris
from advisor.facts.irqs import Irq, read_irqs
from advisor.facts.iscsi import Iscsi, read_iscsi
from advisor.facts.links import Link, read_links
from advisor.facts.llt import Llt, read_llt
from advisor.facts.memory import Memory, read_memory
from advisor.facts.network_storage import NetworkStorage, read_network_storage
from advisor.facts.numa import Numa, read_numa
from advisor.facts.owners import Owners, read_owners
from advisor.facts.path_load import PathLoad, read_path_load
from advisor.facts.purchase import PurchasedFigures
from advisor.facts.site_settings import SiteSetting, read_site_settings
from advisor.facts.sysctl import KEYS, SysctlOrigin, origins, read_sysctl, read_sysctl_sources
from advisor.facts.systemd import Systemd, read_systemd
from advisor.facts.tw_disks import with_disks
from advisor.facts.unknown import Unknown, Unknowns
from advisor.facts.vxvm import read_vxvm
from advisor.host import Host


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
    purchases: tuple[PurchasedFigures, ...] = ()
    """What the user declares of volumes, against the machine; a scan by itself knows of none."""


def scan(host: Host) -> Facts:
    """Read a host. Never fails because one part of it is odd: what cannot be read is listed under ``unknown``."""
    unknown = Unknowns()
    disks = read_disks(host, unknown)
    links = read_links(host, unknown)
    filesystems = read_filesystems(host, unknown)
    controllers = with_disks(host, read_controllers(host, unknown), disks, unknown)
    arrays = (
        *read_arrays(host, disks, unknown),
        *read_vxvm(host, disks, unknown),
        *controller_arrays(controllers, disks),
    )
    identity = read_identity(host, unknown)
    llt = read_llt(host, links, unknown)
    iscsi = read_iscsi(host, links, disks, arrays, unknown)
    return Facts(
        host=identity,
        cpu=read_cpu(host, unknown),
        memory=read_memory(host, unknown),
        numa=read_numa(host, unknown),
        links=links,
        irqs=read_irqs(host, unknown),
        sysctl=read_sysctl(host, unknown),
        sysctl_origin=origins(read_sysctl_sources(host, unknown), KEYS),
        disks=disks,
        filesystems=filesystems,
        arrays=arrays,
        llt=llt,
        counters=read_counters(host, unknown),
        owners=read_owners(host),
        site_settings=read_site_settings(host, unknown),
        iscsi=iscsi,
        controllers=controllers,
        beegfs=read_beegfs(host, links, disks, arrays, unknown),
        iris=read_iris(host, filesystems, arrays, disks, unknown),
        infoscale=read_infoscale(host, llt, links, identity.cloud, unknown),
        network_storage=read_network_storage(host, disks, links, iscsi),
        systemd=read_systemd(host),
        path_load=read_path_load(host, arrays),
        unknown=unknown.listed(),
    )
