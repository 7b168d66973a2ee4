"""Who else sets what we would set: tuning daemons and network managers that are active on the host."""

from __future__ import annotations

import msgspec

from advisor.facts.link_claim import is_stopped
from advisor.host import Host, Missing


class Owners(msgspec.Struct, frozen=True):
    """Other programs that write the same values. A name is given only for one that is active."""

    irqbalance: bool = False
    tuned_profile: str | None = None
    network_managers: tuple[str, ...] = ()


def read_owners(host: Host) -> Owners:
    """From their run-time files; no process is asked."""
    profile = host.read("/etc/tuned/active_profile")
    active = isinstance(profile, str) and profile and _runs(host, "/run/tuned/tuned.pid")
    return Owners(
        irqbalance=any(name.startswith("irqbalance") for name in host.names("/run")),
        tuned_profile=profile if active and isinstance(profile, str) else None,
        network_managers=tuple(
            name for name, sign, unit in _MANAGERS if host.exists(sign) and not (unit and is_stopped(host, unit))
        ),
    )


# Name, what it makes when it starts, its unit. NetworkManager writes no pid file on every distribution.
_MANAGERS = (
    ("NetworkManager", "/run/NetworkManager/devices", "NetworkManager.service"),
    ("systemd-networkd", "/run/systemd/netif/state", "systemd-networkd.service"),
    ("netplan", "/run/systemd/generator/netplan.stamp", ""),
)


def _runs(host: Host, pid_file: str) -> bool:
    pid = host.read(pid_file)
    return not isinstance(pid, Missing) and pid.isdigit() and host.exists(f"/proc/{pid}")
