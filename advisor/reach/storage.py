"""The storage that this host uses over the network: NFS servers, iSCSI portals, NVMe targets."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.facts.mounts import Mount
from advisor.host import Host, Missing, is_count
from advisor.reach.addresses import FoundAddress

_NVME_OVER_IP = {"tcp": "NVMe/TCP", "rdma": "NVMe/RDMA"}
_MOST_NAMED = 3


def nfs_servers(mounts: Iterable[Mount]) -> list[FoundAddress]:
    """The ``addr=`` of each NFS mount: the server's address as the kernel uses it (nfs(5))."""
    targets: dict[str, list[str]] = {}
    for mount in mounts:
        address = _find_option(mount.options.split(","), "addr") if mount.kind in {"nfs", "nfs4"} else None
        if address:
            targets.setdefault(address, []).append(mount.target)
    return [FoundAddress(address, "nfs", f"NFS server of {_join_names(those)}") for address, those in targets.items()]


def _find_option(options: Iterable[str], name: str) -> str | None:
    return next((option.partition("=")[2] for option in options if option.startswith(f"{name}=")), None) or None


def _join_names(names: Iterable[str]) -> str:
    those = list(dict.fromkeys(names))
    more = len(those) - _MOST_NAMED
    return ", ".join(those[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def iscsi_portals(host: Host) -> list[FoundAddress]:
    """Portals of the iSCSI connections that exist, and the address of this host that each uses (scsi_transport_iscsi).

    ``address`` is where the connection leads now, ``persistent_address`` what it was made with.
    """
    found = []
    base = "/sys/class/iscsi_connection"
    for name in host.names(base):
        address = _read_attribute(host, f"{base}/{name}/address") or _read_attribute(
            host, f"{base}/{name}/persistent_address"
        )
        port = _read_attribute(host, f"{base}/{name}/port") or _read_attribute(host, f"{base}/{name}/persistent_port")
        if address:
            why = f"iSCSI portal, port {port}" if port else "iSCSI portal"
            found.append(FoundAddress(address.strip("[]"), "iscsi", why, source=_iscsi_source(host, f"{base}/{name}")))
    return list(dict.fromkeys(found))


def _iscsi_source(host: Host, connection: str) -> str | None:
    """The address of the SCSI host that the connection hangs below: ``…/host3/session1/connection1:0/…``."""
    place = host.real(connection)
    parts = [] if isinstance(place, Missing) else place.split("/")
    scsi_host = next((part for part in parts if part.startswith("host") and is_count(part[4:])), None)
    return _read_attribute(host, f"/sys/class/iscsi_host/{scsi_host}/ipaddress") if scsi_host else None


def _read_attribute(host: Host, path: str) -> str | None:
    text = host.read(path)
    # The kernel prints a string that was never set in its own way.
    return None if isinstance(text, Missing) or text in ("", "(null)", "<NULL>") else text


def nvme_targets(host: Host) -> list[FoundAddress]:
    """Targets of the NVMe controllers over TCP and RDMA (nvme-fabrics): ``traddr=…,trsvcid=…,host_traddr=…``."""
    found = []
    base = "/sys/class/nvme"
    for name in host.names(base):
        kind = _NVME_OVER_IP.get(_read_attribute(host, f"{base}/{name}/transport") or "")
        options = (_read_attribute(host, f"{base}/{name}/address") or "").split(",")
        address = _find_option(options, "traddr")
        if kind and address:
            source = _find_option(options, "host_traddr") or _find_option(options, "src_addr")
            why = f"{kind} target {name}"
            found.append(FoundAddress(address, "nvme", why, _find_option(options, "host_iface"), source))
    return found
