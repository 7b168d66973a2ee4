"""Storage that this host reaches, or serves, over the network, as seen: mounts, disks and targets that carry data.

Kinds of mounts and their options: nfs(5), mount.cifs(8), and the names that BeeGFS, Ceph, Lustre and GlusterFS give
themselves in mountinfo. Disks: the transport of SCSI (iscsi) and of NVMe controllers (tcp, rdma).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from advisor.facts.block.block import natural
from advisor.facts.block.mounts import Mount, read_mounts
from advisor.facts.text import printable
from advisor.facts.unknown import FIBRE_CHANNEL
from advisor.host import Host, Missing, is_count

if TYPE_CHECKING:
    from advisor.facts.block.disks import Disk
    from advisor.facts.network.links import Link
    from advisor.facts.remote.iscsi import Iscsi

# Fibre Channel: ports of this host's adapters and the remote ports that they have logged in to.

REMOTE_PORTS = "/sys/class/fc_remote_ports"
_MAX_PORTS = 1024


class RemotePort(msgspec.Struct, frozen=True):
    """A port of the fabric that this host sees. The timeouts are in seconds: None where they are unknown;
    ``fast_io_fail`` is the kernel's own word, a number or ``off``."""

    name: str
    state: str | None
    is_target: bool
    fast_io_fail: str | None
    dev_loss_seconds: int | None


class FcPort(msgspec.Struct, frozen=True):
    """A port of an adapter. Speeds are in Gbit/s; 0 stands for one that the driver does not know."""

    name: str
    state: str | None
    speed_gbps: int
    best_speed_gbps: int
    remote_ports: tuple[RemotePort, ...]


def parse_fc_speeds(text: str) -> tuple[int, ...]:
    """Gbit/s of ``4 Gbit, 8 Gbit, 16 Gbit``; none for ``unknown``."""
    return tuple(int(number) for number in re.findall(r"\b([0-9]{1,4}) Gbit\b", text, re.ASCII))


def read_fibre_channel(host: Host) -> tuple[FcPort, ...]:
    """Every port, by the number of its SCSI host."""
    names = sorted(host.names(FIBRE_CHANNEL), key=natural)[:_MAX_PORTS]
    remote = sorted(host.names(REMOTE_PORTS), key=natural)[:_MAX_PORTS] if names else []
    return tuple(_read_port(host, name, [one for one in remote if _is_behind(one, name)]) for name in names)


def _is_behind(remote: str, name: str) -> bool:
    """Whether rport-H:B-N was logged in by hostH."""
    return remote.partition(":")[0].removeprefix("rport-") == name.removeprefix("host")


def _read_port(host: Host, name: str, remote: list[str]) -> FcPort:
    place = f"{FIBRE_CHANNEL}/{name}"
    state = host.read_text(f"{place}/port_state")
    speeds = (parse_fc_speeds(host.read_text(f"{place}/{one}") or "") for one in ("speed", "supported_speeds"))
    now, best = (max(known, default=0) for known in speeds)
    behind = tuple(_read_remote(host, one) for one in remote)
    return FcPort(printable(name), printable(state[:40]) if state else None, now, best, behind)


def _read_remote(host: Host, name: str) -> RemotePort:
    place = f"{REMOTE_PORTS}/{name}"
    state, roles, fast, lost = (
        host.read_text(f"{place}/{one}") for one in ("port_state", "roles", "fast_io_fail_tmo", "dev_loss_tmo")
    )
    return RemotePort(
        printable(name),
        printable(state[:40]) if state else None,
        "Target" in (roles or ""),
        fast if fast and re.fullmatch(r"off|[0-9]{1,6}", fast, re.ASCII) else None,
        int(lost) if lost and re.fullmatch(r"[0-9]{1,10}", lost, re.ASCII) else None,
    )


Kind = Literal["iscsi", "iscsi-target", "nvme", "nfs", "cifs", "beegfs", "ceph", "lustre", "glusterfs"]
Protocol = Literal["tcp", "udp", "rdma"]

MAX_LISTED = 512
"""Mounts and disks that are kept: a host has a few dozen at most."""
_MAX_TEXT = 200

_MOUNTS: Mapping[str, Kind] = {
    **{"nfs": "nfs", "nfs4": "nfs", "cifs": "cifs", "smb3": "cifs", "beegfs": "beegfs", "ceph": "ceph"},
    **{"fuse.ceph": "ceph", "lustre": "lustre", "glusterfs": "glusterfs", "fuse.glusterfs": "glusterfs"},
}
_PROTOCOLS: Mapping[str, Protocol] = {
    **{"tcp": "tcp", "tcp6": "tcp", "udp": "udp", "udp6": "udp", "rdma": "rdma", "rdma6": "rdma"}
}
# What speaks TCP where its options say nothing else; BeeGFS and Lustre choose between TCP and RDMA by themselves.
_BY_DEFAULT: Mapping[Kind, Protocol] = {"nfs": "tcp", "cifs": "tcp", "ceph": "tcp", "glusterfs": "tcp"}


class NetworkStorage(msgspec.Struct, frozen=True):
    """One thing whose data crosses the network: a mount point, a disk, or a target that this host exports.

    ``protocol`` is None where it is unknown. ``links`` are the links that are known to carry it.
    """

    kind: Kind
    name: str
    protocol: Protocol | None
    links: tuple[str, ...] = ()
    version: str | None = None
    """Of an NFS mount: 3, 4.1 …"""
    connections: int | None = None
    """Of an NFS mount: how many TCP connections it may use (nconnect=); 1 where the option is not set."""


def read_network_storage(
    host: Host, disks: Iterable[Disk], links: tuple[Link, ...], iscsi: Iscsi | None
) -> tuple[NetworkStorage, ...]:
    """What is seen of storage over the network: disks first, then mounts, then exported targets. ``links``, ``disks``
    and ``iscsi`` are the host's."""
    mounts = read_mounts(host)
    found = [*_iscsi_disks(iscsi), *_nvme_disks(host, disks, links)]
    found += [] if isinstance(mounts, Missing) else _from_mounts(mounts, links)
    return tuple([*found, *_from_targets(iscsi)][:MAX_LISTED])


def _iscsi_disks(iscsi: Iscsi | None) -> Iterator[NetworkStorage]:
    for session in iscsi.sessions if iscsi else ():
        yield from (NetworkStorage("iscsi", disk, "tcp", session.links) for disk in session.disks)


def _nvme_disks(host: Host, disks: Iterable[Disk], links: tuple[Link, ...]) -> Iterator[NetworkStorage]:
    """NVMe namespaces below a controller of nvme-tcp or nvme-rdma; those over Fibre Channel are on no link."""
    for disk in disks:
        if disk.kind != "nvme" or disk.pci is not None:
            continue
        # With native multipath the controllers are below the paths, and the namespace's own device is the subsystem.
        places = [f"/sys/block/{one}/device" for one in disk.paths or (disk.name,)]
        protocols = {_PROTOCOLS.get(host.read_or_empty(f"{place}/transport")) for place in places} - {None}
        if protocols:
            carried = (_of_address(host.read_or_empty(f"{place}/address"), links) for place in places)
            yield NetworkStorage(
                "nvme",
                disk.name,
                protocols.pop() if len(protocols) == 1 else None,
                tuple(dict.fromkeys(link for link in carried if link)),
            )


def _of_address(address: str, links: tuple[Link, ...]) -> str | None:
    """The link of a controller's address, ``traddr=192.0.2.1,trsvcid=4420,host_iface=eth1``."""
    from advisor.facts.remote.iscsi import link_at, link_towards

    options = _parse_options(address)
    own = link_at(options.get("src_addr") or options.get("host_traddr"), links)
    named = options.get("host_iface")
    is_known = any(link.name == named for link in links)
    return own or (named if is_known else None) or link_towards(options.get("traddr"), links)


def _parse_options(text: str) -> dict[str, str]:
    return {key: value for key, equals, value in (one.partition("=") for one in text.split(",")) if equals}


def _from_mounts(mounts: Iterable[Mount], links: tuple[Link, ...]) -> list[NetworkStorage]:
    found: dict[str, NetworkStorage] = {}
    for mount in mounts:
        kind = _MOUNTS.get(mount.kind)
        if kind is not None:
            from advisor.facts.remote.iscsi import link_at, link_towards

            options = _parse_options(mount.options)
            protocol = _PROTOCOLS.get(options.get("proto", "")) or _BY_DEFAULT.get(kind)
            link = link_at(options.get("clientaddr"), links) or link_towards(options.get("addr"), links)
            name = printable(mount.target[:_MAX_TEXT])
            found.setdefault(
                name,
                NetworkStorage(
                    kind,
                    name,
                    protocol,
                    (link,) if link else (),
                    printable(options["vers"][:8]) if kind == "nfs" and "vers" in options else None,
                    _connections_of(options) if kind == "nfs" and protocol == "tcp" else None,
                ),
            )
    return list(found.values())


def _connections_of(options: Mapping[str, str]) -> int:
    number = options.get("nconnect", "")
    return int(number) if is_count(number) and len(number) < 4 else 1


def _from_targets(iscsi: Iscsi | None) -> Iterator[NetworkStorage]:
    for target in iscsi.targets if iscsi else ():
        if target.enabled is not False and target.disks:
            portals = tuple(dict.fromkeys(one.link for one in target.portals if one.link))
            yield NetworkStorage("iscsi-target", target.name, "tcp", portals)
