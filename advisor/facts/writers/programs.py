"""Running programs that set values when they start, and again whenever they start anew.

A program that sets the same everywhere is a section of tables/programs.ini. ``runs`` are units of which one runs,
``has`` paths of which one is there, ``needs`` paths that have to be there too, ``stops`` units that systemd may know as
stopped, ``off`` a switch of Google's configuration, ``config`` a file that the conditions of ``sets`` are about; the
parts of a path may be patterns. Each ``on`` is a file with the pattern without which it does nothing, ``reads`` what a
line of ``config`` sets, a pattern of the whole line and tunables made of its groups. ``early`` says that it acts before
the links are there.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

import msgspec

from advisor.facts.network.link_claim import is_running, is_stopped, is_switched_off, read_owners
from advisor.facts.settings.sysctl import SYSCTL_CONF, dotted_key, is_pattern, list_files, parse_sysctl_file
from advisor.facts.text import printable
from advisor.facts.writers.commands import ANY, VARIABLE, only_writes, parse_script
from advisor.host import Host
from advisor.host.numbers import is_count
from advisor.host.origin import read_sections
from advisor.host.patterns import lazy_regex

# A writer of values on a Linux host, what it writes, and where.


class LastWord(msgspec.Struct, frozen=True):
    """Who sets a tunable last: the writer, the file and line where it says so, and the value, None where unknown."""

    writer: str
    file: str | None
    line: int | None
    value: str | None


class Write(msgspec.Struct, frozen=True):
    """A value that a writer gives a tunable by the next boot, or whenever the writer starts.

    ``tunable`` is an id, with ``*`` where the writer means every device or key. ``value`` is None where it sets a value
    that cannot be known. ``rank`` is the writer's place in the order of time. ``acts`` says when it writes, ``change``
    how to change it there.
    """

    tunable: str
    value: str | None
    writer: str
    rank: int
    file: str | None = None
    line: int | None = None
    acts: str = ""
    change: str = ""
    is_program: bool = False
    """A running program sets it: again whenever it starts, whatever the files of others say."""

    def covers(self, tunable: str) -> bool:
        """Return whether the tunable is one that this writes."""
        return self.tunable == tunable or ("*" in self.tunable and fnmatchcase(tunable, self.tunable))

    @property
    def word(self) -> LastWord:
        """The same, as documents have it."""
        return LastWord(self.writer, self.file, self.line, self.value)

    @property
    def place(self) -> str:
        """Where the value stands: file and line, the file, or the writer's name."""
        if self.file is None:
            return self.writer
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def sentence(self) -> str:
        """Who sets it to what, when and where, and how to change it there."""
        value = "" if self.value is None else f" to {self.value}"
        where = "" if self.file is None else f" ({self.place})"
        return f"{self.writer} sets it{value} {self.acts}{where}: {self.change}"


class Place(msgspec.Struct, frozen=True):
    """What a reader of files found: a tunable, its value, and where. ``by``: the writer, where a row has several."""

    tunable: str
    value: str | None
    file: str | None = None
    line: int | None = None
    by: str | None = None


class Writer(msgspec.Struct, frozen=True):
    """A row of the table. ``acts`` says when; ``change`` how to change a value there. ``read`` recognises it."""

    name: str
    acts: str
    read: Callable[[Host], Iterable[Place]]
    change: str
    is_program: bool = False


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


def _read_row(
    parts: Mapping[str, str], sets: Sequence[str], reads: Sequence[str], on: Sequence[str], host: Host
) -> Iterator[Place]:
    """Yield what a program of the table sets where it runs, or is there and is not known to be stopped or switched off;
    each of ``sets`` may have a condition on the text of its configuration."""
    runs, has, needs, stops = (parts.get(name, "").split() for name in ("runs", "has", "needs", "stops"))
    is_there = is_running(host, *runs) or any(_found(host, path) for path in has)
    is_off = (stops and all(is_stopped(host, unit) for unit in stops)) or is_switched_off(host, parts.get("off", ""))
    switches = (line.split(" | ") for line in on)
    is_off = is_off or any(not re.search(is_on, host.read_or_empty(switch)) for switch, is_on in switches)
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
    sets, reads, on = ([text for key, text in pairs if key == kind] for kind in ("sets", "reads", "on"))
    return Writer(name, parts["acts"], partial(_read_row, parts, sets, reads, on), parts["change"], is_program=True)


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
    for path, pattern in (text.split(" | ") for key, text in pairs if key == "on")
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


# What start-up scripts, units and cron set: rc.local, services of the administrator, cron tables, hooks of links.

UNITS = "/etc/systemd/system"
UNIT_PLACES = (UNITS, "/usr/local/lib/systemd/system")
"""Where administrators keep units of their own."""
CRON_FILES = ("/etc/crontab", "/etc/anacrontab")
CRON_TABLES = ("/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs")
CRON_SCRIPTS = tuple(f"/etc/cron.{often}" for often in ("hourly", "daily", "weekly", "monthly"))
RC_LOCAL = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/init.d/after.local")
RC_SCRIPTS = "/etc/local.d"
"""Those of OpenRC, as on Alpine and Gentoo (openrc, local)."""
CLOUD_FILES = ("/etc/cloud/cloud.cfg", "/var/lib/cloud/instance/cloud-config.txt")
CLOUD_SCRIPTS = "/var/lib/cloud/scripts/per-boot"
HOOKS = (
    *("/etc/network/if-up.d", "/etc/network/if-pre-up.d", "/etc/NetworkManager/dispatcher.d"),
    *("/etc/NetworkManager/dispatcher.d/pre-up.d", "/usr/lib/NetworkManager/dispatcher.d"),
    *("/etc/networkd-dispatcher/routable.d", "/etc/networkd-dispatcher/configured.d", "/etc/sysconfig/network/if-up.d"),
)
WICKED_SCRIPTS = ("/etc/sysconfig/network/scripts", "/etc/wicked/scripts")
"""Where the scripts lie that ifcfg files of wicked name."""
HOOK_FILES = ("/sbin/ifup-local", "/usr/sbin/ifup-local")
OWN_PROGRAMS = lazy_regex(
    r"(?:/usr/local/s?bin|/usr/local/libexec|/usr/local/lib|/opt|/root|/srv|/home)/[\w./@:+-]+(?<!\.conf)(?<!\.rules)(?<!\.cpf)"
    r"|/etc/[\w./@:+-]+\.sh"
)
"""Where administrators keep scripts of their own; what a package brings is a program, and no list of settings."""
_EXEC = lazy_regex(r"\s*Exec(?:StartPre|Start|StartPost)\s*=\s*[-@:+!]*(.*)")
_CRON_TIMES = lazy_regex(r"\s*(?:@\w+|(?:[0-9*/,A-Za-z-]+\s+){4}[0-9*/,A-Za-z-]+)\s+(.*)")
_UNQUOTED = lazy_regex(r"^(['\"])(.*)\1$")
_MOST_FILES = 64


def read_rc_local(host: Host) -> Iterator[Place]:
    """Yield what rc.local sets."""
    seen: set[object] = set()
    for path in (*RC_LOCAL, *(f"{RC_SCRIPTS}/{one}" for one in host.names(RC_SCRIPTS) if one.endswith(".start"))):
        if host.exists(path) and (real := host.real(path)) not in seen:
            seen.add(real)
            yield from _of_script(host, path)


def read_units(host: Host) -> Iterator[Place]:
    """Yield what the commands of services that start at boot set, and the scripts of one's own that they run."""
    for directory in (f"{UNITS}/{name}" for name in host.names(UNITS) if name.endswith(".wants")):
        for name in host.names(directory):
            unit, _, kind = name.rpartition(".")
            template, at, instance = unit.partition("@")
            if kind not in ("service", "timer") or name.startswith("advisor"):
                continue
            path = f"{template}{at}.service"
            more = [f"{path}.d/{one}" for one in host.names(f"{UNITS}/{path}.d") if "advisor" not in one]
            files = [next((one for place in UNIT_PLACES if host.exists(one := f"{place}/{path}")), "")]
            for file in (*files, *(f"{UNITS}/{one}" for one in more if one.endswith(".conf"))):
                for number, line in enumerate(host.read_or_empty(file).splitlines() if file else (), 1):
                    if found := _EXEC.match(line):
                        command = found[1].replace("%i", instance).replace("%I", instance)
                        yield from _of_command(host, command, file, number, f"{unit}.service")


def read_cron(host: Host) -> Iterator[Place]:
    """Yield what cron's tables and scripts set."""
    tables = [*CRON_FILES, *(f"{place}/{name}" for place in CRON_TABLES for name in host.names(place))]
    for path in tables[:_MOST_FILES]:
        for number, line in enumerate(host.read_or_empty(path).splitlines(), 1):
            if not line.lstrip().startswith("#") and (found := _CRON_TIMES.match(line)):
                # A system table names the user before the command.
                command = found[1] if "spool" in path else found[1].partition(" ")[2]
                yield from _of_command(host, command, path, number, None)
    for path in [f"{place}/{name}" for place in CRON_SCRIPTS for name in host.names(place)][:_MOST_FILES]:
        yield from _of_script(host, path)


def read_hooks(host: Host) -> Iterator[Place]:
    """Yield what scripts set that run when a link comes up, whichever link it is."""
    for path in [*HOOK_FILES, *(f"{place}/{name}" for place in HOOKS for name in host.names(place))][:_MOST_FILES]:
        yield from _of_script(host, path)


def read_cloud_init(host: Host) -> Iterator[Place]:
    """Yield what cloud-init sets at each boot: ``bootcmd`` of its configuration, and its scripts."""
    for path in (*CLOUD_FILES, *(f"{CLOUD_FILES[0]}.d/{name}" for name in host.names(f"{CLOUD_FILES[0]}.d"))):
        for number, command in _boot_commands(host.read_or_empty(path)):
            yield from _of_command(host, command, path, number, None)
    for name in host.names(CLOUD_SCRIPTS):
        yield from _of_script(host, f"{CLOUD_SCRIPTS}/{name}")


def _boot_commands(text: str) -> Iterator[tuple[int, str]]:
    """The lines of ``bootcmd``, each a command or the list of its words."""
    is_within = False
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip().lstrip("- ")
        if line[:1].strip("#- "):
            is_within = line.startswith("bootcmd:")
        elif is_within:
            yield number, re.sub(r"[\[\],]", " ", bare) if bare.startswith("[") else _UNQUOTED.sub(r"\2", bare)


def _only_boot_commands(text: str) -> str:
    lines = ["bootcmd:", *[""] * text.count("\n")]
    for number, command in _boot_commands(text):
        lines[number - 1] = f"- {writes}" if (writes := only_writes(command)) else ""
    return "\n".join(lines)


def _of_command(host: Host, command: str, path: str, line: int, by: str | None) -> Iterator[Place]:
    yield from places_of(host, command, path, line, by)
    for word in _split(command)[:3]:
        if OWN_PROGRAMS.fullmatch(word) and not host.is_dir(word) and (word.endswith(".sh") or host.is_script(word)):
            yield from _of_script(host, word, by)


def _split(command: str) -> list[str]:
    return re.split(r"[\s;&|'\"]+", command.lstrip())


def _of_script(host: Host, path: str, by: str | None = None) -> Iterator[Place]:
    yield from places_of(host, host.read_or_empty(path), path, None, by)


def places_of(
    host: Host, text: str, path: str, line: int | None, by: str | None = None, link: str | None = None
) -> Iterator[Place]:
    """Yield what the commands of a text set; ``line`` is theirs in the file, None for a whole file. A variable for the
    link is ``link`` where that is known."""
    known = dict.fromkeys(("IFACE", "INTERFACE", "DEVICE", "DEVICE_IFACE", "1"), link) if link else {}
    for number, (tunable, value) in parse_script(text, {name: one for name, one in known.items() if one}):
        where = line or number
        if not tunable.startswith("load:"):
            known_value = None if VARIABLE.fullmatch(value) else value
            yield Place(tunable.replace(ANY, link) if link else tunable, known_value, path, where, by)
            continue
        named = tunable.removeprefix("load:")
        for file in (
            [named]
            if named.endswith(".conf")
            else []
            if named
            else [*(one for one, _ in list_files(host)), SYSCTL_CONF]
        ):
            yield from load_file(host, file, by)


def load_file(host: Host, file: str, by: str | None = None) -> Iterable[Place]:
    """Return what ``sysctl -p FILE`` sets, or another reader of such a file that comes late."""
    lines = parse_sysctl_file(host.read_or_empty(file), file)
    return [
        Place(f"sysctl:{one.key}", one.value, file, one.line, by)
        for one in lines
        if not one.excludes and one.rejected is None and not re.search(r"[*?[]", one.key)
    ]


def _is_script(path: str) -> bool:
    places = (*HOOKS, *WICKED_SCRIPTS, *CRON_SCRIPTS, CLOUD_SCRIPTS, RC_SCRIPTS)
    return path in (*RC_LOCAL, *HOOK_FILES) or path.startswith(tuple(f"{place}/" for place in places))


def without_other_words(path: str, text: str) -> str | None:
    """Return what a script, a unit, a table of cron or the configuration of a program holds of settings, and nothing
    else of it: they hold passwords in every form. None for another file."""
    if path.startswith(LEASES) or path in OVS_DATABASES or patterns_of(path):
        return only_known_keys(path, text)
    if path.startswith(CLOUD_FILES):
        return _only_boot_commands(text)
    if _is_script(path) or OWN_PROGRAMS.fullmatch(path):
        from advisor.facts.settings.site_settings import only_settings

        return only_writes(text, only_settings(text) if path in RC_LOCAL else "")
    is_dropped = ".service.d/" in path and path.endswith(".conf") and "advisor" not in path
    if path.startswith(tuple(f"{place}/" for place in UNIT_PLACES)) and (path.endswith(".service") or is_dropped):
        return "\n".join(map(_only_command, text.split("\n")))
    if path in CRON_FILES or path.startswith(tuple(f"{place}/" for place in CRON_TABLES)):
        return "\n".join(map(_only_job, text.split("\n")))
    return None


def _only_command(line: str) -> str:
    found = _EXEC.match(line)
    return line[: found.start(1)] + _only_words(found[1]) if found else line if line.startswith("[") else ""


def _only_job(line: str) -> str:
    found = None if line.lstrip().startswith("#") else _CRON_TIMES.match(line)
    return f"{line[: found.start(1)]}root {_only_words(found[1])}" if found else ""


def _only_words(command: str) -> str:
    """The programs of one's own that it runs, and what it sets."""
    words = [word for word in _split(command)[:3] if OWN_PROGRAMS.fullmatch(word)]
    return "; ".join(filter(None, (*words[:1], only_writes(command))))
