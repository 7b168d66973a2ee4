"""Who else sets what we would set: tuning daemons and network managers that are active on the host."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.link_claim import is_plain, is_stopped
from advisor.host import Host, Missing, is_count
from advisor.host.patterns import lazy_regex

GOOGLE_CONFIG = "/etc/default/instance_configs.cfg"
SETTING = lazy_regex(r"(?m)^[ \t]*([\w.]+)[ \t]*[=:][ \t]*([^\s#;]+)")
OFF = ("false", "no", "off", "0")


class Owners(msgspec.Struct, frozen=True):
    """Other programs that write the same values. A name is given only for one that is active.

    ``saptune_notes`` are the SAP notes (and notes of the site) that saptune has applied. ``agents`` are configuration
    managers that come back to their files by themselves.
    """

    irqbalance: bool = False
    tuned_profile: str | None = None
    network_managers: tuple[str, ...] = ()
    saptune_notes: tuple[str, ...] = ()
    power_profiles_daemon: bool = False
    agents: tuple[str, ...] = ()
    cloud_multiqueue: bool = False
    """Whether Google's guest environment sets queues, interrupts and XPS of links at boot (google_set_multiqueue)."""
    banned_irqs: tuple[int, ...] = ()
    """Interrupts that irqbalance's options exclude, by number (irqbalance(1), --banirq)."""


def read_owners(host: Host) -> Owners:
    """From their run-time files; no process is asked."""
    return Owners(
        irqbalance=any(name.startswith("irqbalance") for name in host.names("/run")),
        tuned_profile=active_tuned(host),
        network_managers=tuple(
            name for name, sign, unit in _MANAGERS if host.exists(sign) and not (unit and is_stopped(host, unit))
        ),
        saptune_notes=applied_notes(host),
        power_profiles_daemon=is_running(host, "power-profiles-daemon.service"),
        cloud_multiqueue=host.exists("/usr/bin/google_set_multiqueue") and not is_switched_off(host, "set_multiqueue"),
        banned_irqs=tuple(sorted({irq for place in IRQBALANCE_OPTIONS for irq in _read_banned(host, place)})),
        agents=tuple(name for name, sign, unit in _AGENTS if host.exists(sign) and not is_stopped(host, unit)),
    )


def active_tuned(host: Host) -> str | None:
    """Return the profiles, with blanks between them, of a TuneD that runs; None where none does."""
    profile = host.read_text("/etc/tuned/active_profile")
    runs = _runs(host, "/run/tuned/tuned.pid") or is_running(host, "tuned.service")
    return profile if profile and runs else None


def applied_notes(host: Host) -> tuple[str, ...]:
    """Return the notes that saptune has applied: it keeps what was there before one in a file of the note's name, in
    /run since version 3."""
    places = ("/run/saptune/saved_state", "/var/lib/saptune/saved_state")
    return tuple(sorted({name for place in places for name in host.names(place) if is_plain(name)}))


def is_switched_off(host: Host, key: str) -> bool:
    """Return whether the last line of Google's configuration that sets a switch sets it off."""
    values = [value for name, value in SETTING.findall(host.read_or_empty(GOOGLE_CONFIG)) if name.lower() == key]
    return bool(values) and values[-1].lower() in OFF


IRQBALANCE_OPTIONS = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")


def _read_banned(host: Host, path: str) -> list[int]:
    """Those that a line of the service's environment names, as OPTIONS= or IRQBALANCE_ARGS=."""
    lines = [line for line in host.read_or_empty(path).splitlines() if not line.lstrip().startswith("#")]
    words = re.findall(r"(?:--banirq[= ]|(?<![\w-])-i ?)([0-9]{1,7})(?![0-9])", "\n".join(lines))
    return [int(word) for word in words]


# Name, what it makes when it starts, its unit. NetworkManager writes no pid file on every distribution.
_MANAGERS = (
    ("NetworkManager", "/run/NetworkManager/devices", "NetworkManager.service"),
    ("systemd-networkd", "/run/systemd/netif/state", "systemd-networkd.service"),
    ("netplan", "/run/systemd/generator/netplan.stamp", ""),
)


# Name, what its agent is set up by, its unit. Ansible has none: the head of a file shows that Ansible wrote it.
_AGENTS = (
    ("Puppet", "/etc/puppetlabs/puppet/puppet.conf", "puppet.service"),
    ("Puppet", "/etc/puppet/puppet.conf", "puppet.service"),
    ("Chef", "/etc/chef/client.rb", "chef-client.service"),
    ("Salt", "/etc/salt/minion", "salt-minion.service"),
    ("CFEngine", "/var/cfengine/inputs/promises.cf", "cf-execd.service"),
)


def is_running(host: Host, *units: str) -> bool:
    """Return whether one of the units has a control group or a run that systemd knows of."""
    groups = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
    runs = (host.readlink(f"/run/systemd/units/invocation:{unit}") for unit in units)
    return any(host.exists(f"{place}/{unit}") for place in groups for unit in units) or any(
        isinstance(one, str) for one in runs
    )


def _runs(host: Host, pid_file: str) -> bool:
    pid = host.read(pid_file)
    return not isinstance(pid, Missing) and is_count(pid) and host.exists(f"/proc/{pid}")
