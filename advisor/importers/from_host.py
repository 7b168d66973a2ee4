"""``--from-host``: the settings of another host, captured in a snapshot, as a profile: make this host like that one.

What the kernel works out from memory or CPUs, and what belongs to one device, one address or one peer, is not carried
over: it is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.facts.block.disks import Disk
from advisor.facts.host_facts import Facts, scan
from advisor.facts.network.links import Link
from advisor.facts.settings import find_setting
from advisor.facts.settings.sysctl import key_path
from advisor.host import Host, Missing, observe
from advisor.host.numbers import group_pairs
from advisor.importers.records import (
    ImportDifference,
    Imported,
    ImportedSetting,
    Mode,
    SourceLine,
    is_growing,
    lowered_fields,
    without_rivals,
)
from advisor.importers.to_profile import profile_name
from advisor.importers.tuned.devices import devices_of
from advisor.profiles.profile import FieldSense, Only
from advisor.tunables import parse_tunable

_QUEUE = ("scheduler", "read_ahead_kb", "nr_requests", "rq_affinity", "nomerges", "max_sectors_kb", "wbt_lat_usec")
_RINGS = ("rx", "tx")
_NEAR = 0.05


def import_host(other: Host, here: Host, mode: Mode, *, where: str) -> Imported:
    """What ``other`` has set and this host has otherwise; ``where`` is the snapshot's name."""
    theirs, ours = scan(other), scan(here)
    name = theirs.host.hostname or "host"
    judge = _Comparison(other, here, theirs, ours, where, mode)
    settings = tuple(judge.settings())
    has_links = any(one.for_each == "links" for one in settings)
    return Imported(
        name=profile_name(f"like-{name}"),
        origin=f"host:{name}",
        mode=mode,
        title=f"Like the host {name}",
        about=f"The settings of {name} ({theirs.host.os or 'system unknown'}, Linux {theirs.host.kernel or 'unknown'})",
        sources=(f"{where}: {name}",),
        settings=without_rivals(settings),
        differences=tuple(judge.find_lowering()),
        links=(devices_of(here, "net") or ()) if has_links else (),
        notes=("Only what differed from the host of the import is in it.",),
    )


class _Comparison:
    def __init__(self, other: Host, here: Host, theirs: Facts, ours: Facts, where: str, mode: Mode) -> None:
        self._other = other
        self._here = here
        self._theirs = theirs
        self._ours = ours
        self._where = where
        self._is_meant = mode == "intent"
        self._name = theirs.host.hostname or "that host"

    def settings(self) -> Iterator[ImportedSetting]:
        for key, value in sorted(self._theirs.sysctl.items()):
            yield self._sysctl_setting(key, value)
        for name in ("enabled", "defrag"):
            found = self._read_setting(f"thp:{name}")
            if found is not None:
                yield found
        for name in ("governor", "energy_performance_preference"):
            yield from self._clock_settings(name)
        ours, theirs = (
            group_pairs(((disk.kind, disk.rotational), disk) for disk in facts.disks)
            for facts in (self._ours, self._theirs)
        )
        for kind, disks in theirs.items():
            for attribute in _QUEUE:
                values = {_queue_value(disk, attribute) for disk in disks} - {None}
                if values:
                    yield self._queue_setting(kind, attribute, {value for value in values if value}, ours.get(kind, []))
        yield from self._link_settings()

    def _source_line(self, section: str, key: str, raw: str) -> SourceLine:
        return SourceLine(section, key, raw, self._where, 0, f"{self._name} has it so.")

    def _sysctl_setting(self, key: str, value: str) -> ImportedSetting:
        line = self._source_line("sysctl", key, value)
        # A scan reads what rules and this host's own files name.
        own = self._ours.sysctl.get(key) or self._here.read_text(key_path(key))
        setting = find_setting(key)
        if setting is not None and setting.is_counter:
            return line.ignored("it counts, and is nobody's setting")
        if own is None:
            return line.ignored("this host's kernel has no such key, or does not show it")
        if own == value:
            return line.ignored("it is the same here")
        if _is_by_memory(key) and not self._is_as_large():
            return line.manual("the kernel works it out from the memory, of which the two hosts have not the same")
        if self._is_meant and is_growing(key):
            # A limit or a buffer as it comes over in intent: never less than this host has.
            lower = lowered_fields(own, line.raw)
            if lower and not lowered_fields(line.raw, own):
                return line.ignored(_more_than(" ".join(own.split())))
            kept = ", ".join(str(was) for was, _ in lower)
            note = f"this host has more of a part, {kept}, which stays" if lower else ""
            return line.wanted(f"sysctl:{line.key}", " ".join(line.raw.split()), sense="at-least", note=note)
        return line.wanted(f"sysctl:{key}", value)

    def find_lowering(self) -> Iterator[ImportDifference]:
        """Limits and buffers of which this host has more than the other."""
        for key, value in sorted(self._theirs.sysctl.items()):
            own = self._ours.sysctl.get(key)
            lower = lowered_fields(own, value) if own is not None and is_growing(key) else ()
            if lower and (self._is_as_large() or not _is_by_memory(key)):
                yield ImportDifference(
                    kind="lowers",
                    section="sysctl",
                    key=key,
                    file=self._where,
                    line=0,
                    faithful=f"lowers it from {', '.join(f'{was} to {now}' for was, now in lower)}",
                    intent="keeps what is larger already",
                    why=f"{self._name} has less of it than this host",
                )

    def _is_as_large(self) -> bool:
        one, other = self._theirs.memory.total_bytes, self._ours.memory.total_bytes
        return one is not None and other is not None and abs(one - other) <= _NEAR * max(one, other)

    def _read_setting(self, identity: str) -> ImportedSetting | None:
        one = parse_tunable(identity)
        theirs, ours = observe(self._other, one.probe), observe(self._here, one.probe)
        if isinstance(theirs, Missing):
            return None
        line = self._source_line(identity.partition(":")[0], identity.partition(":")[2], theirs)
        if isinstance(ours, Missing):
            return line.ignored(f"this host does not have it: {ours.why}")
        return line.ignored("it is the same here") if theirs == ours else line.wanted(identity, theirs)

    def _clock_settings(self, name: str) -> Iterator[ImportedSetting]:
        theirs, ours = _clock_values(self._theirs, name), _clock_values(self._ours, name)
        if not theirs:
            return
        line = self._source_line("cpufreq", name, ", ".join(sorted(theirs)))
        if not ours:
            yield line.ignored("this host shows no such setting of its CPUs")
        elif theirs == ours:
            yield line.ignored("it is the same here")
        elif len(theirs) > 1:
            yield line.manual(f"{self._name}'s CPUs differ among themselves")
        else:
            yield line.wanted(f"cpufreq:*:{name}", next(iter(theirs)))

    def _queue_setting(
        self, kind: tuple[str, bool | None], attribute: str, values: set[str], ours: Iterable[Disk]
    ) -> ImportedSetting:
        word, rotational = kind
        words = f"{word} {'disks' if rotational is None else 'hard disks' if rotational else 'drives'}"
        line = self._source_line("block", f"{words}: {attribute}", ", ".join(sorted(values)))
        own = {_queue_value(disk, attribute) for disk in ours}
        if not own:
            return line.ignored("this host has no such disks")
        if len(values) > 1:
            return line.manual(f"{self._name}'s disks of this kind differ among themselves")
        value = next(iter(values))
        if own == {value}:
            return line.ignored("it is the same here")
        only = Only(kinds=(word,), rotational=rotational)
        return line.wanted(f"block:{{disk}}:{attribute}", value, for_each="disks", only=only)

    def _link_settings(self) -> Iterator[ImportedSetting]:
        ours, theirs = (
            group_pairs((link.driver, link) for link in facts.links if link.driver)
            for facts in (self._ours, self._theirs)
        )
        for driver, links in theirs.items():
            for key in _RINGS:
                values = {str(getattr(link.rings, key)) for link in links if link.rings is not None}
                if values:
                    yield self._ring_setting(driver, key, values, ours.get(driver, []))
            mtus = sorted({str(link.mtu) for link in links if link.mtu is not None})
            own = sorted({str(link.mtu) for link in ours.get(driver, []) if link.mtu is not None})
            line = self._source_line("link", f"{driver}: mtu", ", ".join(mtus))
            if not own:
                yield line.ignored(f"this host has no link with the driver {driver}")
            elif mtus == own:
                yield line.ignored("it is the same here")
            else:
                why = "an MTU has to fit the switches and peers of each link"
                is_more = max(map(int, mtus)) > max(map(int, own))
                yield line.manual(
                    f"{why}: advisor plan jumbo-frames" if is_more else f"{why}; here it is {', '.join(own)}"
                )

    def _ring_setting(self, driver: str, key: str, values: set[str], ours: Iterable[Link]) -> ImportedSetting:
        line = self._source_line("link", f"{driver}: ring.{key}", ", ".join(sorted(values)))
        own = {str(getattr(link.rings, key)) for link in ours if link.rings is not None}
        if not own:
            return line.ignored(f"this host has no link with the driver {driver} that has rings")
        if len(values) > 1:
            return line.manual(f"{self._name}'s links with this driver differ among themselves")
        value = next(iter(values))
        if own == {value}:
            return line.ignored("it is the same here")
        if self._is_meant and all(lowered_fields(one, value) for one in own):
            return line.ignored(_more_than(", ".join(sorted(own))))
        identity, only = f"link:{{link}}:ring.{key}", Only(drivers=(driver,))
        sense: FieldSense = "at-least" if self._is_meant else "exactly"
        return line.wanted(identity, value, sense=sense, for_each="links", only=only)


def _is_by_memory(key: str) -> bool:
    """Whether the kernel works the figure out from the size of memory, or it is a part of the memory."""
    setting = find_setting(key)
    return setting is not None and (setting.derived_from.startswith("memory:") or "Hugepagesize" in setting.unit)


def _more_than(own: str) -> str:
    return f"this host has more of it, {own}, and in intent it is only raised"


def _clock_values(facts: Facts, name: str) -> set[str]:
    groups = facts.cpu.frequency.groups if facts.cpu.frequency is not None else ()
    return {value for group in groups if (value := getattr(group, name)) is not None}


def _queue_value(disk: Disk, attribute: str) -> str | None:
    value = disk.scheduler if attribute == "scheduler" else disk.queue.get(attribute)
    return value or None
