"""`scan` reads a whole host into one frozen `Facts`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.arrays import Array, read_arrays
from advisor.facts.counters import Counters, read_counters
from advisor.facts.cpu import Cpu, read_cpu
from advisor.facts.disks import Disk, FileSystem, read_disks, read_filesystems
from advisor.facts.identity import Identity, read_identity
from advisor.facts.irqs import Irq, read_irqs
from advisor.facts.links import Link, read_links
from advisor.facts.llt import Llt, read_llt
from advisor.facts.memory import Memory, read_memory
from advisor.facts.numa import Numa, read_numa
from advisor.facts.owners import Owners, read_owners
from advisor.facts.site_settings import SiteSetting, read_site_settings
from advisor.facts.sysctl import KEYS, SysctlOrigin, origins, read_sysctl, read_sysctl_sources
from advisor.facts.unknown import Unknown, Unknowns
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


def scan(host: Host) -> Facts:
    """Read a host. Never fails because one part of it is odd: what cannot be read is listed under ``unknown``."""
    unknown = Unknowns()
    disks = read_disks(host, unknown)
    links = read_links(host, unknown)
    return Facts(
        host=read_identity(host, unknown),
        cpu=read_cpu(host, unknown),
        memory=read_memory(host, unknown),
        numa=read_numa(host, unknown),
        links=links,
        irqs=read_irqs(host, unknown),
        sysctl=read_sysctl(host, unknown),
        sysctl_origin=origins(read_sysctl_sources(host, unknown), KEYS),
        disks=disks,
        filesystems=read_filesystems(host, unknown),
        arrays=read_arrays(host, disks, unknown),
        llt=read_llt(host, links, unknown),
        counters=read_counters(host, unknown),
        owners=read_owners(host),
        site_settings=read_site_settings(host, unknown),
        unknown=unknown.listed(),
    )
