"""Which devices of a host a section is for, and which instance of a plugin gets each of them; and the properties that
udev keeps of a device, as TuneD's ``devices_udev_regex`` is matched against them.

TuneD joins ``KEY=VALUE`` lines, sorted by key, of what pyudev shows: the kernel's uevent and udev's database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import NamedTuple

import msgspec

from advisor.facts.block.disks import kind_of
from advisor.facts.system.identity import read_identity
from advisor.facts.tuned.functions import MAX_CPUINFO
from advisor.facts.tuned.profile import TunedProfile, Unit, Variables
from advisor.facts.tuned.regex import UnsafePatternError, search_text
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.numbers import whole_number
from advisor.importers.records import Departure, Found, ImportedSetting, Mode, SourceLine
from advisor.profiles.profile import FieldSense

DATABASE = "/run/udev/data"
_CLASSES = {"disk": ("/sys/class/block", "b"), "net": ("/sys/class/net", "n"), "cpu": ("/sys/bus/cpu/devices", "+cpu:")}


def udev_properties(host: Host, plugin: str, name: str) -> str | None:
    """Return the properties of a device as TuneD matches them, a line each; None where udev's database does not have
    it, or is not in a capture."""
    directory, prefix = _CLASSES[plugin]
    place = host.real(f"{directory}/{name}")
    uevent = host.read(f"{directory}/{name}/uevent")
    if isinstance(place, Missing) or isinstance(uevent, Missing):
        return None
    found = dict(line.split("=", 1) for line in uevent.splitlines() if "=" in line)
    key = {"disk": f"{found.get('MAJOR')}:{found.get('MINOR')}", "net": found.get("IFINDEX", ""), "cpu": name}[plugin]
    kept = host.read(f"{DATABASE}/{prefix}{key}")
    if isinstance(kept, Missing):
        # On this machine udev keeps a file of each device that it has more to say of; a capture holds some.
        if not (host.is_live and kept.is_absent and host.is_dir(DATABASE)):
            return None
        kept = ""
    if "DEVNAME" in found:
        found["DEVNAME"] = f"/dev/{found['DEVNAME'].removeprefix('/dev/')}"
    found |= {"DEVPATH": place.removeprefix("/sys"), "SUBSYSTEM": {"disk": "block"}.get(plugin, plugin)}
    lines = [line.partition(":") for line in kept.splitlines()]
    links = [f"/dev/{text}" for kind, _, text in lines if kind == "S"]
    tags = [text for kind, _, text in lines if kind == "G"]
    found |= {"DEVLINKS": " ".join(links)} if links else {}
    found |= {"TAGS": f":{':'.join(tags)}:"} if tags else {}
    since = next((text for kind, _, text in lines if kind == "I"), None)
    found |= {} if since is None else {"USEC_INITIALIZED": since}
    found |= dict(text.split("=", 1) for kind, _, text in lines if kind == "E" and "=" in text)
    return "".join(f"{one}={value}\n" for one, value in sorted(found.items()))


_PARENTS = frozenset({"scsi", "virtio", "xen", "nvme"})
_MAX_RULES = 400


class Rules:
    """The rules of ``devices=``: shell patterns, those with an exclamation mark for what is left out."""

    def __init__(self, text: str) -> None:
        words = re.split(r"\s|,\s*", text)[:_MAX_RULES]
        self.wanted = tuple(word for word in words if not word.startswith("!") and word.strip())
        # TuneD takes every other word for a negative one, its first character cut off: an empty word among them.
        self.unwanted = tuple(word[1:] for word in words if word not in self.wanted)

    @property
    def is_all(self) -> bool:
        return not any(self.unwanted) and (not self.wanted or "*" in self.wanted)

    @property
    def patterns(self) -> tuple[str, ...] | None:
        """The positive patterns, where they say all; None where something is left out."""
        return None if any(self.unwanted) else tuple(dict.fromkeys(self.wanted or ("*",)))

    def match(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names that fit, in their order."""
        return tuple(name for name in names if self._fits_name(name))

    def _fits_name(self, name: str) -> bool:
        wanted = any(fnmatch(name, rule) for rule in self.wanted or ("*",))
        return wanted and not any(fnmatch(name, rule) for rule in self.unwanted)


class UdevRules(Rules):
    """The rules of ``devices_udev_regex``, which TuneD takes in place of ``devices``: the names that it fits."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__("")
        self.wanted = tuple(names)

    @property
    def is_all(self) -> bool:
        return False

    @property
    def patterns(self) -> None:
        return None

    def match(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.wanted)


def parse_device_rules(text: str, by_udev: Iterable[str] | None = None) -> Rules:
    """The rules of a section; no positive one means all devices. ``by_udev`` are the names that its regular expression
    fits, where it has one."""
    return Rules(text) if by_udev is None else UdevRules(by_udev)


def devices_of(host: Host, plugin: str) -> tuple[str, ...] | None:
    """The devices that a plugin of TuneD uses on this host; None for one that knows none, or is not known here."""
    if plugin == "disk":
        return tuple(name for name in host.names("/sys/block") if is_tuned_disk(host, name))
    if plugin == "net":
        return tuple(name for name in host.names("/sys/class/net") if _is_physical(host, name))
    if plugin == "cpu":
        return tuple(name for name in host.names("/sys/devices/system/cpu") if re.fullmatch(r"cpu[0-9]+", name))
    return None


def is_tuned_disk(host: Host, name: str) -> bool:
    """Whether TuneD's disk plugin knows it: not removable, and below SCSI, virtio, Xen or NVMe, or below nothing."""
    removable = host.read(f"/sys/block/{name}/removable")
    if isinstance(removable, Missing):
        return kind_of(name) is not None or re.match(r"md[0-9]|dm-[0-9]", name) is not None
    if removable != "0":
        return False
    subsystem = host.readlink(f"/sys/block/{name}/device/subsystem")
    if isinstance(subsystem, Missing):
        is_virtual = not host.exists(f"/sys/block/{name}/device")
        return is_virtual or kind_of(name) in ("scsi", "nvme", "virtio", "xen")
    return subsystem.rpartition("/")[2] in _PARENTS


def _is_physical(host: Host, name: str) -> bool:
    real = host.real(f"/sys/class/net/{name}")
    return isinstance(real, str) and "/virtual/" not in real and host.is_dir(f"/sys/class/net/{name}")


def is_array(name: str) -> bool:
    """Whether a block device is one of md or the device mapper."""
    return re.match(r"md([0-9]|_)|dm-[0-9]", name) is not None


def is_no_disk(host: Host, name: str) -> bool:
    """Whether a scan leaves the device out: a RAM disk or such like, or a loop or network device not in use."""
    is_unused = host.read(f"/sys/block/{name}/size") == "0" and not host.exists(f"/sys/block/{name}/device")
    return (kind_of(name) is None or is_unused) and not is_array(name)


def assign_devices(instances: Sequence[tuple[str, Rules]], devices: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Which devices each instance gets: the first whose rules fit takes one, and keeps it."""
    free = list(devices)
    found = {}
    for name, rules in instances:
        found[name] = rules.match(free)
        taken = set(found[name])
        free = [device for device in free if device not in taken]
    return found


# Which sections of a profile TuneD brings to bear on a host, in which order, and which devices each of them gets.

DEVICE_PLUGINS = ("disk", "net", "cpu")


class PluginInstance(msgspec.Struct, frozen=True):
    """An active section. ``devices`` are those that it gets on this host; None for a plugin that has none.

    ``is_first`` of its plugin. ``left_out`` says why TuneD passes the section over here, ``unclear`` why that is
    unknown, ``inert`` which other section takes all of its devices.
    """

    unit: Unit
    is_first: bool = True
    devices: tuple[str, ...] | None = None
    left_out: str | None = None
    unclear: str | None = None
    inert: str | None = None
    is_shared: bool = False
    """Another section gets some of the devices that its rules fit."""


def make_instances(
    profile: TunedProfile, host: Host, mode: Mode, main: Mapping[str, str]
) -> tuple[PluginInstance, ...]:
    """Every section, in the order in which TuneD applies them; those left out come last."""
    judged = [_judge_unit(unit, profile, host) for unit in profile.units.values()]
    active = [one for one in judged if one.left_out is None and one.unclear is None]
    rest = [one for one in judged if one.left_out is not None or one.unclear is not None]
    active.sort(key=lambda one: _read_priority(one.unit, main))
    firsts = set()
    found = []
    for one in _with_devices(active, host, mode):
        found.append(msgspec.structs.replace(one, is_first=one.unit.type not in firsts))
        firsts.add(one.unit.type)
    return (*found, *rest)


def rules_of(unit: Unit) -> Rules:
    """Return the rules by which a section gets its devices."""
    return parse_device_rules(unit.devices, unit.by_udev)


def _read_priority(unit: Unit, main: Mapping[str, str]) -> int:
    option = unit.options.get("priority")
    text = main.get("default_instance_priority", "0") if option is None else option.value or ""
    return whole_number(text.strip().removeprefix("+")) or 0


def _judge_unit(unit: Unit, profile: TunedProfile, host: Host) -> PluginInstance:
    if not unit.enabled:
        return PluginInstance(unit, left_out="the section is not enabled")
    if unit.name in profile.unresolved:
        return PluginInstance(unit, unclear=f"for which hosts or devices it is: {profile.unresolved[unit.name][0]}")
    if unit.devices_udev_regex is not None:
        chosen = _choose_by_udev(unit, unit.devices_udev_regex, host)
        if isinstance(chosen, str):
            return PluginInstance(unit, unclear=f"its devices are chosen by udev's properties: {chosen}")
        unit = msgspec.structs.replace(unit, by_udev=chosen)
    for what, pattern, read in (
        ("cpuinfo_regex", unit.cpuinfo_regex, _read_cpuinfo),
        ("uname_regex", unit.uname_regex, _make_uname),
    ):
        if pattern is None:
            continue
        text = read(host)
        if text is None:
            return PluginInstance(unit, unclear=f"whether its {what} fits this host is unknown")
        try:
            if not search_text(pattern, text, lines=True):
                return PluginInstance(unit, left_out=f"it is not for this host: {what} does not fit")
        except UnsafePatternError as error:
            return PluginInstance(unit, unclear=f"its {what}: {error}")
    return PluginInstance(unit)


def _choose_by_udev(unit: Unit, pattern: str, host: Host) -> tuple[str, ...] | str:
    """The devices whose properties the expression fits, or why that is unknown; none for a plugin without devices."""
    names = devices_of(host, unit.type) if unit.type in DEVICE_PLUGINS else ()
    properties = {name: udev_properties(host, unit.type, name) for name in names or ()}
    unread = [name for name, text in properties.items() if text is None]
    if unread:
        return f"udev's database does not have {', '.join(unread[:4])}"
    try:
        return tuple(name for name, text in properties.items() if text and search_text(pattern, text, lines=True))
    except UnsafePatternError as error:
        return str(error)


def _read_cpuinfo(host: Host) -> str | None:
    text = host.read("/proc/cpuinfo")
    return None if isinstance(text, Missing) else text[:MAX_CPUINFO]


def _make_uname(host: Host) -> str | None:
    """``Linux HOST RELEASE VERSION MACHINE``, as uname(2) has it."""
    identity = read_identity(host, Unknowns())
    version = host.read("/proc/sys/kernel/version")
    parts = ("Linux", identity.hostname, identity.kernel, version, identity.architecture)
    if identity.kernel is None or identity.architecture is None:
        return None
    return " ".join(part if isinstance(part, str) else "" for part in parts)


def _with_devices(active: Sequence[PluginInstance], host: Host, mode: Mode) -> Iterator[PluginInstance]:
    given = {}
    known = {}
    for plugin in DEVICE_PLUGINS:
        own = [(one.unit.name, rules_of(one.unit)) for one in active if one.unit.type == plugin]
        if own:
            known[plugin] = devices_of(host, plugin) or ()
            given[plugin] = assign_devices(own, known[plugin])
    greedy: dict[str, str] = {}
    for one in active:
        plugin = one.unit.type
        if plugin not in given:
            yield one
            continue
        rules = rules_of(one.unit)
        matched = rules.match(known[plugin])
        got = matched if mode == "intent" else given[plugin][one.unit.name]
        yield msgspec.structs.replace(
            one, devices=got, inert=None if mode == "intent" else greedy.get(plugin), is_shared=got != matched
        )
        if rules.is_all:
            greedy.setdefault(plugin, one.unit.name)


# What every plugin's converter is given: the host, the mode, and one setting of one section.

SENSES: dict[str, FieldSense] = {">": "at-least", "<": "at-most"}


class Written(NamedTuple):
    """A value without its operator, and the sense that the operator gives it."""

    value: str
    sense: FieldSense


def parse_assignment(text: str) -> Written:
    """What the author of ``>4096`` means, blanks around the value left out. A value of one character has none."""
    if len(text) > 1 and text[0] in SENSES:
        return Written(text[1:].strip(), SENSES[text[0]])
    return Written(text, "exactly")


def can_compare(text: str, current: str | None) -> bool:
    """Whether TuneD can compare the two; what has no operator need not be compared."""
    written = parse_assignment(text)
    if written.sense == "exactly" or current is None:
        return True
    return _parse_integer(text[1:]) is not None and _parse_integer(current) is not None


def _parse_integer(text: str) -> int | None:
    try:
        # Python refuses to convert thousands of digits, and so TuneD cannot compare them.
        return int(text)
    except ValueError:
        return None


def strip_quotes(text: str) -> str:
    """Without the double quotes around the whole, as TuneD's sysctl plugin takes them off."""
    return re.sub(r'^"(.*)"$', r"\1", text)


class Context(msgspec.Struct, frozen=True):
    """``main`` is TuneD's main configuration."""

    host: Host
    mode: Mode
    main: Mapping[str, str]
    variables: Variables
    reapplied: Mapping[str, tuple[str, str, int]] = {}
    """Sysctls that TuneD takes from the system's files after its own values: key → value and place."""

    lacks_perf: bool = False
    """TuneD does not load its plugin scheduler here, as Python's module perf is missing."""

    version: tuple[int, ...] | None = None
    """Of TuneD; None where it is unknown, and the newest that the tables have is taken."""

    @property
    def is_faithful(self) -> bool:
        return self.mode == "faithful"


class Given(Context, frozen=True, kw_only=True):
    """One setting: ``text`` is its value with variables and functions replaced."""

    line: SourceLine
    key: str
    text: str
    instance: PluginInstance

    def swallowed(self, why: str, departs: Departure = "refused") -> ImportedSetting:
        """What TuneD passes over without failing: faithfully nothing happens, and a person looks at the intent."""
        return self.line.ignored(why, departs) if self.is_faithful else self.line.manual(why, departs)


Converter = Callable[[Given], Found]
