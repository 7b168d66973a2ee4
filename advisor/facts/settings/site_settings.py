"""Settings that administrators leave in files other than sysctl.d: mounts, udev rules, multipath, start-up scripts.

Only what a rule looks at is kept, one `SiteSetting` per place, so nothing else of these files (passwords of mounts,
keys of scripts) reaches a scan's document. Sources: fstab(5), udev(7), multipath.conf(5), tmpfiles.d(5),
systemd.link(5), and BeeGFS' own configuration files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex
from advisor.host.config_text import canonical, meant_by

MAX_TEXT = 200
"""Characters of a value that are kept; more would be no setting of these kinds."""

AFFINITY_SCRIPT = "sets interrupts"
"""Key of a line that runs a vendor's script which sets the CPUs of interrupts; the value is its name."""

MAX_FILE_TEXT = 256 * 1024
MAX_LINE = 1024
"""Characters of a file and of a line that are looked at: those of a snapshot may be made to cost time."""

_UDEV_WRITE = lazy_regex(r'ATTR\{([^}"]+)\}\s*=\s*"([^"]*)"')
_UDEV_RUN = lazy_regex(r'RUN(?:\{program\})?\s*\+?=\s*"([^"]*)"')
_MULTIPATH = lazy_regex(r"^(\w+)\s+\"?([^\"{}#!]+?)\"?$")
_SECTION = lazy_regex(r"^(\w+)\s*\{$")
_IFCONFIG_MTU = lazy_regex(r"\bifconfig\s+(\S+)\s.*?\bmtu\s+([0-9]+)")
_QUEUE_LENGTH = lazy_regex(
    r"\b(?:ifconfig\s+(\S+)\s.*?|ip\s+link\s+set\s+(?:dev\s+)?(\S+)\s.*?)\btxqueuelen\s+([0-9]+)"
)
_OFFLOAD = lazy_regex(r"\bethtool\s+(?:-K|--offload|--features)\s+(\S+)((?:\s+[\w-]+\s+(?:on|off))+)")
# Nothing else below /sys: among it are passwords, as those of iSCSI targets in /sys/kernel/config.
_WRITE = lazy_regex(
    r"\becho\s+(?:-n\s+)?(\"[^\"]*\"|'[^']*'|[^\s>]+(?:\s[^\s>]+)?)\s*>>?\s*"
    r"[\"']?(/sys/(?:block/|class/block/|kernel/mm/transparent_hugepage/)[^\s;\"']+)"
)
_SYSTEMCTL = lazy_regex(
    r"\b(?:systemctl\s+(?:--now\s+)?(?:stop|disable|mask)\s+(?:--now\s+)?|service\s+)(irqbalance)\b"
)
_SET_AFFINITY = lazy_regex(r"\b(set_irq_affinity\w*(?:\.sh)?|mlnx_affinity|mlnx_tune)\b", re.ASCII)
_OFFLOADS = frozenset({"tso", "gso", "tcp-segmentation-offload", "generic-segmentation-offload"})
_LINK_OFFLOADS = frozenset({"TCPSegmentationOffload", "TCP6SegmentationOffload", "GenericSegmentationOffload"})
Found = tuple[str, str, str]
"""Key, value and scope."""
Parse = Callable[[str], Iterator[tuple[int, Found]]]
_IRQBALANCE = "/etc/systemd/system/irqbalance.service"


class SiteSetting(msgspec.Struct, frozen=True):
    """One setting in one file.

    ``scope`` is what it is for: the mount point and kind of file system, the section, the udev rule's conditions, the
    link. ``key`` is the mount option, the attribute (``queue/scheduler``), the file written to, or the command's own
    word; ``value`` is empty where there is none.
    """

    path: str
    line: int
    key: str
    value: str
    scope: str = ""


def _number_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text[:MAX_FILE_TEXT].replace("\0", "").split("\n"), 1):
        bare = line.strip()
        if bare and not bare.startswith("#") and len(bare) <= MAX_LINE:
            yield number, bare


def parse_fstab(text: str) -> Iterator[tuple[int, Found]]:
    """Each option that a rule knows, with the mount point and the kind of file system."""
    for number, line in _number_lines(text):
        words = line.split()
        for option in words[3].split(",") if len(words) > 3 else ():
            key, _, value = option.partition("=")
            if key in ("nobarrier", "barrier", "discard"):
                yield number, (key, value, f"{words[1]} ({words[2]})")


def parse_udev_rules(text: str) -> Iterator[tuple[int, Found]]:
    """Attributes that are written, and commands that are run; a line may go on after a backslash."""
    begun, whole = 0, ""
    for number, line in _number_lines(text):
        begun, whole = (begun, whole + line) if whole else (number, line)
        if whole.endswith("\\") and len(whole) <= MAX_LINE:
            whole = whole[:-1] + " "
            continue
        scope = ", ".join(re.findall(r'(?<![A-Z])[A-Z]+(?:\{[^}]*\})?\s*[=!]=\s*"[^"]*"', whole))
        for key, value in _UDEV_WRITE.findall(whole):
            yield begun, (key, value, scope)
        for command in _UDEV_RUN.findall(whole):
            yield from ((begun, found) for found in _parse_commands(command.replace("'", " ")))
        whole = ""


_PLACE_LENGTH = 200
"""Characters of the sections around a key that are kept."""


def parse_multipath(text: str) -> Iterator[tuple[int, Found]]:
    """Key and value of each line, with the sections around it and what the innermost is for:
    ``devices/device[VENDOR,PRODUCT]``."""
    opened: list[int] = []
    places: list[str] = []
    own: list[dict[str, str]] = []
    lines: list[tuple[int, str, str, int]] = []
    for number, line in _number_lines(text):
        bare = re.split(r"\s[#!]", line, maxsplit=1)[0].rstrip()
        if section := _SECTION.match(bare):
            above = f"{places[opened[-1]]}/" if opened else ""
            opened.append(len(places))
            # multipath.conf(5) nests three deep; a damaged file may nest without end.
            places.append(above[:_PLACE_LENGTH] + section[1])
            own.append({})
        elif bare.startswith("}"):
            del opened[-1:]
        elif found := _MULTIPATH.match(bare):
            value = canonical(found[2])
            if opened:
                own[opened[-1]][found[1]] = value
            lines.append((number, found[1], value, opened[-1] if opened else -1))
    meant = [meant_by(place, settings) for place, settings in zip(places, own, strict=True)]
    for number, key, value, at in lines:
        scope = "" if at < 0 else places[at] + (f"[{meant[at]}]" if meant[at] else "")
        yield number, (key, value, scope)


def parse_script(text: str) -> Iterator[tuple[int, Found]]:
    """Commands of a start-up script that set what rules look at; nothing else of it is kept."""
    for number, line in _number_lines(text):
        yield from ((number, found) for found in _parse_commands(line))


def only_settings(script: str) -> str:
    """A start-up script without anything but the commands that `parse_script` reads, each in its own line.

    Scripts hold passwords in every form, so what is handed on is what is known to hold none.
    """
    return "\n".join("; ".join(_parse_mount_options(line)) for line in script.split("\n"))


def _parse_mount_options(line: str) -> Iterator[str]:
    if not line.strip().startswith("#"):
        for pattern in (_IFCONFIG_MTU, _QUEUE_LENGTH, _OFFLOAD, _WRITE, _SYSTEMCTL, _SET_AFFINITY):
            for found in pattern.finditer(line):
                yield found[0] + (" stop" if pattern is _SYSTEMCTL and "stop" in line.split() else "")


def _parse_commands(line: str) -> Iterator[Found]:
    for link, mtu in _IFCONFIG_MTU.findall(line):
        yield "ifconfig mtu", mtu, link
    for old, new, length in _QUEUE_LENGTH.findall(line):
        yield "txqueuelen", length, old or new
    for link, features in _OFFLOAD.findall(line):
        words = features.split()
        for name, state in zip(words[::2], words[1::2], strict=False):
            if name in _OFFLOADS and state == "off":
                yield name, state, link
    for value, path in _WRITE.findall(line):
        yield _attribute_name(path), value.strip("\"'"), path
    for service in _SYSTEMCTL.findall(line):
        if "service" not in line.split() or "stop" in line.split():
            yield "stops", service, ""
    for script in _SET_AFFINITY.findall(line):
        yield AFFINITY_SCRIPT, script, ""


def _attribute_name(path: str) -> str:
    """The part of a path that says what is written: ``queue/scheduler`` of any disk."""
    queue = re.fullmatch(r"/sys/(?:block|class/block)/[^/]+/(queue/\w+)", path)
    return queue[1] if queue else path


def parse_tmpfiles(text: str) -> Iterator[tuple[int, Found]]:
    """``w`` lines: the file and what is written to it."""
    for number, line in _number_lines(text):
        words = line.split(None, 6)
        if len(words) == 7 and words[0].rstrip("!-+") == "w":
            yield number, (_attribute_name(words[1]), words[6].strip(), words[1])


def parse_link_file(text: str) -> Iterator[tuple[int, Found]]:
    """Offloads that a systemd .link file switches off."""
    for number, line in _number_lines(text):
        key, equals, value = (part.strip() for part in line.partition("="))
        if equals and key in _LINK_OFFLOADS and value.lower() in ("no", "false", "0", "off"):
            yield number, (key, value, "")


def parse_ifcfg(text: str) -> Iterator[tuple[int, Found]]:
    """Offloads that ETHTOOL_OPTS switches off."""
    for number, line in _number_lines(text):
        if line.startswith("ETHTOOL_OPTS"):
            options = line.partition("=")[2].strip("\"'")
            yield from ((number, found) for found in _parse_commands(f"ethtool {options}"))


def parse_beegfs(text: str) -> Iterator[tuple[int, Found]]:
    for number, line in _number_lines(text):
        key, equals, value = (part.strip() for part in line.partition("="))
        if equals and key == "tuneTargetChooser":
            yield number, (key, value, "")


def parse_command_line(text: str) -> Iterator[tuple[int, Found]]:
    """Parameters of the kernel that rules look at."""
    for word in text.split():
        key, equals, value = word.partition("=")
        if equals and key in ("transparent_hugepage", "elevator"):
            yield 1, (key, value, "")


_FILES: tuple[tuple[str, Parse], ...] = (
    ("/etc/fstab", parse_fstab),
    ("/etc/multipath.conf", parse_multipath),
    ("/etc/rc.local", parse_script),
    ("/etc/rc.d/rc.local", parse_script),
    ("/etc/beegfs/beegfs-meta.conf", parse_beegfs),
    ("/proc/cmdline", parse_command_line),
)
# Only what an administrator wrote: distributions' own files below /usr/lib are theirs to mend.
_DIRECTORIES: tuple[tuple[str, str, Parse], ...] = (
    ("/etc/udev/rules.d", r".*\.rules", parse_udev_rules),
    ("/etc/multipath/conf.d", r".*\.conf", parse_multipath),
    ("/etc/tmpfiles.d", r".*\.conf", parse_tmpfiles),
    ("/etc/systemd/network", r".*\.link", parse_link_file),
    ("/etc/sysconfig/network-scripts", r"ifcfg-[^~]*", parse_ifcfg),
)


def read_site_settings(host: Host, unknown: Unknowns) -> tuple[SiteSetting, ...]:
    """What the files of the administrator set, in the order of files and lines; a file read twice counts once."""
    found: list[SiteSetting] = []
    seen: set[object] = set()
    for path, parse in _list_files(host):
        text = host.read(path)
        if isinstance(text, Missing):
            unknown.value(f"site_settings.{printable(path)}", text)
            continue
        real = host.real(path)
        if real not in seen:
            seen.add(real)
            found += _make_settings(path, parse(text))
    return (*found, *_masked_units(host))


def _masked_units(host: Host) -> Iterator[SiteSetting]:
    """A unit that is a link to /dev/null cannot be started (systemctl(1), mask)."""
    if host.readlink(_IRQBALANCE) == "/dev/null":
        yield SiteSetting(_IRQBALANCE, 1, "stops", "irqbalance")


def _list_files(host: Host) -> Iterator[tuple[str, Parse]]:
    yield from _FILES
    # Of several instances of a service each has a directory of its own.
    for name in sorted(host.names("/etc/beegfs")):
        if name.endswith(".d"):
            yield f"/etc/beegfs/{name}/beegfs-meta.conf", parse_beegfs
    for directory, pattern, parse in _DIRECTORIES:
        names = (name for name in host.names(directory) if re.fullmatch(pattern, name, re.DOTALL))
        yield from ((f"{directory}/{name}", parse) for name in sorted(names))


def _make_settings(path: str, found: Iterable[tuple[int, Found]]) -> Iterator[SiteSetting]:
    for number, (key, value, scope) in found:
        if key in _KEPT:
            yield SiteSetting(printable(path), number, key, printable(value[:MAX_TEXT]), printable(scope[:MAX_TEXT]))


_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_KEPT = frozenset(
    {
        *("nobarrier", "barrier", "discard", "queue/scheduler", "queue/nomerges", "queue/write_cache", "elevator"),
        "queue/nr_requests",
        *("rr_min_io", "rr_min_io_rq", "path_selector", "tuneTargetChooser", "ifconfig mtu", "txqueuelen"),
        *("tx_queue_len", "stops", AFFINITY_SCRIPT, "transparent_hugepage", _THP, *_OFFLOADS, *_LINK_OFFLOADS),
    }
)
