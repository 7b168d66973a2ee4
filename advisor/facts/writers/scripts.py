"""What start-up scripts, units and cron set: rc.local, services of the administrator, cron tables, hooks of links.

Sources: rc-local.service(8), systemd.service(5), crontab(5), NetworkManager-dispatcher(8), interfaces(5), cloud-init's
module reference (bootcmd, scripts per boot).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from advisor.facts.sysctl_files import SYSCTL_CONF, list_files, parse_sysctl_file
from advisor.facts.writers.commands import ANY, VARIABLE, only_writes, parse_script
from advisor.facts.writers.programs import LEASES, OVS_DATABASES, only_known_keys, patterns_of
from advisor.facts.writers.record import Place
from advisor.host import Host
from advisor.host.patterns import lazy_regex

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
            yield from _loaded(host, file, by)


def _loaded(host: Host, file: str, by: str | None) -> Iterable[Place]:
    """What ``sysctl -p FILE`` sets: it reads the file once more."""
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
        from advisor.facts.site_settings import only_settings

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
