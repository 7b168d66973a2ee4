"""Which sections of a profile TuneD brings to bear on a host, in which order, and which devices each of them gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from advisor.facts.identity import read_identity
from advisor.facts.tuned.functions import MAX_CPUINFO
from advisor.facts.tuned.profile import TunedProfile, Unit
from advisor.facts.tuned.regex import UnsafePatternError, search_text
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.numbers import whole_number
from advisor.importers.records import Mode
from advisor.importers.tuned.devices import Rules, assign_devices, devices_of, parse_device_rules, udev_properties

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
