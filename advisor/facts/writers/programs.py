"""Running programs that set values when they start, and again whenever they start anew.

A program that sets the same everywhere is a section of tables/programs.ini. ``runs`` are units of which one runs,
``has`` paths of which one is there, ``needs`` paths that have to be there too, ``stops`` units that systemd may know as
stopped, ``off`` a switch of Google's configuration, ``config`` a file that the conditions of ``sets`` are about; the
parts of a path may be patterns. ``on`` is a file with the pattern without which it does nothing, ``reads`` what a line
of ``config`` sets, a pattern of the whole line and tunables made of its groups. ``early`` says that it acts before the
links are there.

Sources: moby, daemon/libnetwork/drivers/bridge (setup_ip_forwarding.go, setup_bridgenetfiltering.go); kubernetes,
pkg/kubelet/cm/container_manager_linux.go (setupKernelTunables), cmd/kube-proxy (conntrack settings) and pkg/proxy
(route_localnet); k3s, pkg/agent/syssetup/setup.go; cilium, pkg/datapath/loader/base.go (Reinitialize); calico,
felix/dataplane/linux/int_dataplane.go (configureKernel); containernetworking/plugins, pkg/ip/ipforward_linux.go;
netavark, src/network/bridge.rs; lxd and incus, network/driver_bridge.go; libvirt, src/network/bridge_driver.c
(networkEnableIPForwarding); ovs-vswitchd.conf.db(5), mtu_request; irqbalance(1); mlnx-tools, sysctl_perf_tuning;
firewalld, firewall/core/fw_policy.py (enable_ip_forwarding); cluster-node-tuning-operator, pkg/tuned/controller.go;
dhcpcd.conf(5), networkd.conf(5).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from advisor.facts.link_claim import is_stopped
from advisor.facts.owners import is_running, is_switched_off, read_owners
from advisor.facts.printable import printable
from advisor.facts.sysctl_files import dotted_key, is_pattern
from advisor.facts.writers.record import Place, Writer
from advisor.host import Host
from advisor.host.numbers import is_count
from advisor.host.package_data import read_sections

OVS_DATABASES = ("/etc/openvswitch/conf.db", "/var/lib/openvswitch/conf.db")


def _found(host: Host, path: str) -> list[str]:
    """The files that a path stands for and that are there; each of its parts may be a pattern."""
    places = [""]
    for part in path.split("/")[1:]:
        places = [
            f"{place}/{name}"
            for place in places
            for name in (host.names(place or "/") if is_pattern(part) else (part,))
            if fnmatchcase(name, part)
        ]
    return [place for place in places if host.exists(place)]


def _read_row(parts: Mapping[str, str], sets: Sequence[str], reads: Sequence[str], host: Host) -> Iterator[Place]:
    """Yield what a program of the table sets where it runs, or is there and is not known to be stopped or switched off;
    each of ``sets`` may have a condition on the text of its configuration."""
    runs, has, needs, stops = (parts.get(name, "").split() for name in ("runs", "has", "needs", "stops"))
    is_there = is_running(host, *runs) or any(_found(host, path) for path in has)
    is_off = (stops and all(is_stopped(host, unit) for unit in stops)) or is_switched_off(host, parts.get("off", ""))
    switch, _, is_on = parts.get("on", "").partition(" | ")
    is_off = is_off or bool(switch and not re.search(is_on, host.read_or_empty(switch)))
    if not is_there or is_off or not all(_found(host, path) for path in needs):
        return
    files = [path for one in parts.get("config", "").split() for path in _found(host, one)]
    texts = {path: host.read_or_empty(path) for path in files}
    for line in sets:
        words, sign, condition = (*line.split(" | "), "", "")[:3]
        if not sign or any(re.search(condition, text) for text in texts.values()) is (sign == "if"):
            for tunable, equals, value in (word.partition("=") for word in shlex.split(words)):
                yield Place(tunable, value if equals else None)
    for pattern, tunables in (line.split(" | ") for line in reads):
        for path, number, line in (
            (path, number, line) for path, text in texts.items() for number, line in enumerate(text.split("\n"), 1)
        ):
            if found := re.fullmatch(pattern, line):
                for tunable, equals, value in (word.partition("=") for word in tunables.split()):
                    kind, _, name = printable(found.expand(tunable)).partition(":")
                    name = dotted_key(name) if kind == "sysctl" else name
                    yield Place(f"{kind}:{name}", found.expand(value) if equals else None, path, number)


def _make_row(name: str, pairs: Sequence[tuple[str, str]]) -> Writer:
    parts = dict(pairs)
    sets, reads = ([text for key, text in pairs if key == kind] for kind in ("sets", "reads"))
    return Writer(name, parts["acts"], partial(_read_row, parts, sets, reads), parts["change"], is_program=True)


_TABLE = dict(read_sections("programs.ini"))
EARLY, PROGRAMS = (
    tuple(_make_row(*row) for row in _TABLE.items() if ("early" in dict(row[1])) is is_early)
    for is_early in (True, False)
)
"""The programs of tables/programs.ini: those that act before the links are there, and the others."""
_KNOWN = {
    path: [
        *(text.split(" | ")[2] for key, text in pairs if key == "sets" and " | " in text),
        *(f"(?m)^{text.split(' | ')[0]}$" for key, text in pairs if key == "reads"),
    ]
    for pairs in _TABLE.values()
    for path in dict(pairs).get("config", "").split()
} | {
    path: [pattern]
    for pairs in _TABLE.values()
    for path, _, pattern in [dict(pairs).get("on", "").partition(" | ")]
    if path
}
WICKED_LEASES = "/var/lib/wicked"
LEASES = ("/run/systemd/netif/leases", "/var/lib/dhcp", "/var/lib/dhclient", WICKED_LEASES)
"""Those of systemd-networkd, those of dhclient, and those of wicked."""
_LEASE = r"(?m)<mtu>[0-9]{1,9}</mtu>|^MTU=[0-9]+$"
_LEASE += r'|^lease \{|^[ \t]*(?:interface "[^"\n]{1,40}"|option interface-mtu [0-9]{1,9});'
CONFIGURATIONS = (*OVS_DATABASES, *_KNOWN)
MARKS = tuple(path for pairs in _TABLE.values() for path in dict(pairs).get("has", "").split() if not is_pattern(path))
"""Files by which a program is recognised."""


def patterns_of(path: str) -> Sequence[str]:
    """Return the patterns of what is read of a program's configuration; none of another file."""
    return next((found for name, found in _KNOWN.items() if fnmatchcase(path, name)), ())


def read_open_vswitch(host: Host) -> Iterator[Place]:
    """Yield the MTU of the ports that Open vSwitch sizes: as asked for, or as its other ports have it."""
    if is_running(host, "ovs-vswitchd.service", "openvswitch-switch.service", "openvswitch.service"):
        for path in OVS_DATABASES:
            for port in ovs_ports(host.read_or_empty(path)):
                if is_count(str(port.get("mtu_request", ""))):
                    yield Place(f"link:{port.get('name')}:mtu", str(port["mtu_request"]), path)
                elif port.get("type") == "internal":
                    yield Place(f"link:{port.get('name')}:mtu", None, path)


def ovs_ports(text: str) -> list[dict[str, object]]:
    """Return name, type and mtu_request of each interface of a database file, whose lines are changes."""
    found: dict[str, dict[str, object]] = {}
    for line in text.splitlines():
        if not line.startswith("{") or '"Interface"' not in line:
            continue
        try:
            rows = json.loads(line).get("Interface")
        except (ValueError, AttributeError, RecursionError):
            continue
        for key, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict):
                kept = {name: row[name] for name in ("name", "type", "mtu_request") if name in row}
                found[key] = {**found.get(key, {}), **kept}
            else:
                found.pop(key, None)
    return list(found.values())


def read_irqbalance(host: Host) -> Iterator[Place]:
    """Yield the interrupts that irqbalance moves: all that its options do not exclude."""
    owners = read_owners(host)
    if owners.irqbalance and not owners.banned_irqs:
        yield Place("irq:*:affinity", None)
    elif owners.irqbalance:
        numbers = {int(name) for name in host.names("/proc/irq") if is_count(name)}
        yield from (Place(f"irq:{number}:affinity", None) for number in sorted(numbers.difference(owners.banned_irqs)))


_WORDS: Mapping[str, str] = {
    "transparent_hugepage": "thp:enabled",
    "hugepages": "sysctl:vm.nr_hugepages",
    "numa_balancing": "sysctl:kernel.numa_balancing",
    "panic": "sysctl:kernel.panic",
    "panic_on_warn": "sysctl:kernel.panic_on_warn",
    "nmi_watchdog": "sysctl:kernel.nmi_watchdog",
    "watchdog_thresh": "sysctl:kernel.watchdog_thresh",
}
"""Words of the kernel's command line that give a setting its first value (admin-guide/kernel-parameters)."""
_SAYS: Mapping[str, str] = {"enable": "1", "disable": "0"}


def read_command_line(host: Host) -> Iterator[Place]:
    """Yield what the kernel's command line sets: sysctl.KEY=VALUE, and words for a setting."""
    for word in host.read_or_empty("/proc/cmdline").split():
        name, equals, value = word.partition("=")
        if equals and name.startswith("sysctl."):
            yield Place(f"sysctl:{dotted_key(name.removeprefix('sysctl.'))}", value, "/proc/cmdline", 1)
        elif equals and name in _WORDS:
            yield Place(_WORDS[name], _SAYS.get(value, value), "/proc/cmdline", 1)


def only_known_keys(path: str, text: str) -> str:
    """Return of a program's configuration what is read here, and nothing else: it may hold passwords."""
    if patterns := [_LEASE] if path.startswith(LEASES) else patterns_of(path):
        kept = [""] * (text.count("\n") + 1)
        for found in (one for pattern in patterns for one in re.finditer(pattern, text)):
            # A finding names the line of the file itself.
            kept[text.count("\n", 0, found.start())] += f"{found[0]} "
        return "\n".join(line.rstrip(" ") for line in kept)
    rows = {str(number): row for number, row in enumerate(ovs_ports(text))}
    return json.dumps({"Interface": rows}) if rows else ""
