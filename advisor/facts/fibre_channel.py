"""Fibre Channel: ports of this host's adapters and the remote ports that they have logged in to.

Source: drivers/scsi/scsi_transport_fc.c (/sys/class/fc_host, /sys/class/fc_remote_ports), whose fields the
fibrechannel class of prometheus/procfs lists, too.
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.block import natural
from advisor.facts.printable import printable
from advisor.facts.rare_subjects import FIBRE_CHANNEL
from advisor.host import Host

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
