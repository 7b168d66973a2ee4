"""What a network manager claims of a link, and the traces that show which one manages it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from advisor.host import Host, Missing, is_count
from advisor.host.patterns import lazy_regex

Manager = Literal["NetworkManager", "systemd-networkd", "netplan", "ifupdown", "network-scripts", "wicked", "udev"]


class LinkOwner(msgspec.Struct, frozen=True):
    """Who sets a link up at boot.

    ``file`` is the manager's file for the link, None where it has none; ``name`` what the manager calls the link there:
    a profile's UUID, a netplan ID as TYPE/ID, a logical interface, else the link's name. ``shared_with`` are other
    links that the same settings apply to. ``profile`` is the file that netplan makes for NetworkManager. ``evidence``
    says what shows it.
    """

    manager: Manager
    file: str | None
    name: str
    evidence: str
    shared_with: tuple[str, ...] = ()
    profile: str | None = None


def is_stopped(host: Host, unit: str) -> bool:
    """Whether systemd knows that a unit does not run. State files of a manager outlive it.

    systemd keeps a link per running unit since version 240; where there are none, a unit is not known to be stopped.
    """
    return host.exists("/run/systemd/units") and isinstance(
        host.readlink(f"/run/systemd/units/invocation:{unit}"), Missing
    )


def link_index(host: Host, link: str) -> str | None:
    """The kernel's number of a link."""
    index = host.read(f"/sys/class/net/{link}/ifindex")
    return None if isinstance(index, Missing) or not is_count(index) else index


def link_addresses(host: Host, link: str) -> frozenset[str]:
    """The address that a link shows, and a bond member's own one, in small letters."""
    paths = (f"/sys/class/net/{link}/address", f"/sys/class/net/{link}/bonding_slave/perm_hwaddr")
    return frozenset(text.lower() for path in paths if isinstance(text := host.read(path), str) and text)


def others_with(host: Host, link: str, directory: str, line: str) -> Iterator[str]:
    """Other links whose state file, by index in ``directory``, holds the same line."""
    numbers = {link_index(host, name): name for name in host.names("/sys/class/net")}
    for index in host.names(directory):
        name = numbers.get(index)
        if name is None or name == link:
            continue
        text = host.read(f"{directory}/{index}")
        if isinstance(text, str) and line in text.splitlines():
            yield name


def udev_property(host: Host, link: str, name: str) -> str | None:
    """A property of the link in udev's database."""
    index = link_index(host, link)
    known = Missing("absent", "") if index is None else host.read(f"/run/udev/data/n{index}")
    found = None if isinstance(known, Missing) else re.search(rf"^E:{name}=(.+)$", known, re.MULTILINE)
    return found[1] if found else None


def is_plain(text: str) -> bool:
    """Whether names can be shown and written: printable, and valid UTF-8."""
    return text.isprintable() and "\ufffd" not in text


# Who else sets what we would set: tuning daemons and network managers that are active on the host.

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
