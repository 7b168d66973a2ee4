"""Who else sets what we would set: tuning daemons and network managers that are active on the host."""

from __future__ import annotations

import msgspec

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
        network_managers=tuple(name for name, sign in _MANAGERS if host.exists(sign)),
    )


_MANAGERS = (
    ("NetworkManager", "/run/NetworkManager/NetworkManager.pid"),
    ("systemd-networkd", "/run/systemd/netif/state"),
    ("netplan", "/run/systemd/generator/netplan.stamp"),
)


def _runs(host: Host, pid_file: str) -> bool:
    pid = host.read(pid_file)
    return not isinstance(pid, Missing) and pid.isdigit() and host.exists(f"/proc/{pid}")
