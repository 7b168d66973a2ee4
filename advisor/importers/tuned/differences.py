"""Where what TuneD does with a profile on this host is not what its author meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor.errors import UsageError
from advisor.facts.settings.sysctl import key_path
from advisor.facts.tuned.files import is_on, package_version, python_packages
from advisor.facts.tuned.profile import TunedProfile, Unit
from advisor.host import Host, Missing
from advisor.host.numbers import group_pairs
from advisor.host.patterns import lazy_regex
from advisor.importers.records import ImportDifference, ImportedSetting, is_growing, lowered_fields
from advisor.importers.tuned.devices import is_no_disk, make_instances

# Which release of TuneD first knew a plugin or an option of it: read in the plugins of each release, 2.19 to 2.28.

TunedVersion = tuple[int, ...]
"""(2, 25, 1); of an installed package without what the distribution adds."""

OLDEST = (2, 19)
NEWEST = (2, 28)
# Options that 2.19 had stand in the table of plugins alone; none has gone since.
_OPTIONS = {
    ("cpu", "energy_performance_preference"): (2, 20),
    ("cpu", "pm_qos_resume_latency_us"): (2, 20),
    ("scheduler", "irq_process"): (2, 22),
    ("video", "panel_power_savings"): (2, 23),
    ("cpu", "boost"): (2, 24),
    ("scheduler", "sched_base_slice_ns"): (2, 25),
    ("vm", "dirty_bytes"): (2, 25),
    ("vm", "dirty_ratio"): (2, 25),
    ("vm", "dirty_background_bytes"): (2, 25),
    ("vm", "dirty_background_ratio"): (2, 25),
    ("scheduler", "kthread_process"): (2, 25, 1),
}
_PLUGINS = {"acpi": (2, 22), "uncore": (2, 22, 1), "irq": (2, 23)}
PERCENT_OF_DIRTY = (2, 26)
"""``dirty_bytes=40%``."""

_VERSION = lazy_regex(r"(?:[0-9]{1,3}:)?([0-9]{1,4}(?:\.[0-9]{1,4}){1,2})(?:[-~+].*)?")
_IN_SOURCE = lazy_regex(r"TUNED_VERSION_(?:MAJOR|MINOR|PATCH) *= *([0-9]{1,4})")


def parse_tuned_version(text: str) -> TunedVersion:
    """``2.25``, ``2.25.1``, ``2.20.0-1``. Raises UsageError for another, and for one that no table is known of."""
    found = _VERSION.fullmatch(text.strip())
    version = tuple(int(part) for part in found[1].split(".")) if found else ()
    if not OLDEST <= version[:2] <= NEWEST:
        raise UsageError(
            f"--tuned-version {text}: no release of TuneD between {show_version(OLDEST)} and {show_version(NEWEST)}"
        )
    return version


def show_version(version: TunedVersion) -> str:
    return ".".join(map(str, version))


def installed_version(files: Host) -> str | None:
    """The version of TuneD that is installed, as dpkg or its own module says it; None where neither is seen."""
    known = package_version(files, "tuned")
    if known is not None:
        return known
    for directory in python_packages(files):
        source = files.read(f"{directory}/tuned/version.py")
        if not isinstance(source, Missing):
            numbers = [found[1] for line in source.splitlines() if (found := _IN_SOURCE.match(line.strip()))]
            return ".".join(numbers[:3]) or None
    return None


def known_version(installed: str | None) -> TunedVersion | None:
    """The numbers of an installed version; None where it is unknown or has none."""
    found = _VERSION.fullmatch(installed or "")
    return tuple(int(part) for part in found[1].split(".")) if found else None


def known_since(plugin: str, option: str) -> TunedVersion:
    """The first release that has the option; empty for what the oldest of the tables had, too."""
    return max(_PLUGINS.get(plugin, ()), _OPTIONS.get((plugin, option), ()))


Place = tuple[str, int, str, str]


def find_differences(
    profile: TunedProfile,
    host: Host,
    main: Mapping[str, str],
    faithful: Sequence[ImportedSetting],
    intent: Sequence[ImportedSetting],
) -> tuple[ImportDifference, ...]:
    """Line by line, then what else TuneD does."""
    found = [
        *_by_line(faithful, intent),
        *find_lowering(host, faithful),
        *_dynamic_tuning(profile, main),
        *_other_devices(profile, host, main),
    ]
    return tuple(sorted(found, key=lambda one: (one.file, one.line, one.section, one.key, one.kind)))


def _by_line(faithful: Sequence[ImportedSetting], intent: Sequence[ImportedSetting]) -> Iterator[ImportDifference]:
    meant = _group_by_place(intent)
    for place, done in _group_by_place(faithful).items():
        wanted = meant.get(place, [])
        if _summarize_settings(done) == _summarize_settings(wanted):
            continue
        departing = next((one for one in (*done, *wanted) if one.departs is not None), None)
        if departing is None:
            # The same value in another sense: it matters only where it lowers something, reported separately.
            continue
        first = done[0]
        yield ImportDifference(
            kind=departing.departs or "other",
            section=first.section,
            key=first.key,
            file=first.file,
            line=first.line,
            faithful=_outcome_words(done),
            intent=_outcome_words(wanted),
            why=departing.why if departing.outcome != "tunable" else departing.note,
        )


def _group_by_place(settings: Sequence[ImportedSetting]) -> dict[Place, list[ImportedSetting]]:
    return group_pairs(((one.file, one.line, one.section, one.key), one) for one in settings if not one.sets_nothing)


def _summarize_settings(settings: Sequence[ImportedSetting]) -> object:
    return [(one.outcome, one.tunable, one.value, one.only) for one in settings]


def _outcome_words(settings: Sequence[ImportedSetting]) -> str:
    """What becomes of one line, in one."""
    done = []
    for one in settings:
        if one.outcome != "tunable":
            done.append("nothing" if one.outcome == "ignored" else "by hand")
        else:
            names = f" on {', '.join(one.only.names)}" if one.only and one.only.names else ""
            value = one.value if one.multiply is None else f"{one.multiply} times what is there"
            done.append(f"{one.tunable} {value}{names}")
    return "; ".join(dict.fromkeys(done)) or "nothing"


def find_lowering(host: Host, settings: Sequence[ImportedSetting]) -> Iterator[ImportDifference]:
    """Limits and buffers that this host has more of than the profile writes into them."""
    for one in settings:
        if one.outcome != "tunable" or one.tunable is None or one.sense != "exactly" or one.value is None:
            continue
        kind, _, key = one.tunable.partition(":")
        if kind != "sysctl" or not is_growing(key):
            continue
        lower = lowered_fields(host.read_or_empty(key_path(key)), one.value)
        if lower:
            what = ", ".join(f"{was} to {now}" for was, now in lower)
            yield ImportDifference(
                kind="lowers",
                section=one.section,
                key=one.key,
                file=one.file,
                line=one.line,
                faithful=f"lowers it from {what}",
                intent="keeps what is larger already",
                why="a kernel that is younger than the profile has more of it by itself",
            )


def _other_devices(profile: TunedProfile, host: Host, main: Mapping[str, str]) -> Iterator[ImportDifference]:
    """Settings of disks that TuneD makes on unused loop devices and the like, which no imported line is for."""
    for instance in make_instances(profile, host, "faithful", main):
        is_idle = instance.left_out is not None or instance.unclear is not None or instance.inert is not None
        if instance.unit.type != "disk" or is_idle or profile.failed is not None:
            continue
        others = [name for name in instance.devices or () if is_no_disk(host, name)]
        for key in ("elevator", "readahead", "readahead_multiply"):
            option = instance.unit.options.get(key)
            if option is not None and others:
                yield ImportDifference(
                    kind="other",
                    section=instance.unit.name,
                    key=key,
                    file=option.path,
                    line=option.line,
                    faithful=f"is set on {', '.join(others[:20])}{', …' if len(others) > 20 else ''}, too",
                    intent="is for disks and arrays alone",
                    why="such devices hold nothing at this moment, and come and go",
                )


_DYNAMIC = {
    "cpu": ("while it runs, TuneD holds the CPUs' wake-up latency to 100 or 1000 us, by the load", "force_latency"),
    "net": ("while it runs, TuneD slows idle links down to 100 Mbit/s, which interrupts them", ""),
    "disk": ("while it runs, TuneD sends idle disks to sleep that take such orders (hdparm)", ""),
}


def _dynamic_tuning(profile: TunedProfile, main: Mapping[str, str]) -> Iterator[ImportDifference]:
    if not is_on(main, "dynamic_tuning"):
        return
    seen_types = set()
    for unit in profile.units.values():
        if unit.type not in _DYNAMIC or unit.type in seen_types or not unit.enabled or _is_static(unit):
            continue
        seen_types.add(unit.type)
        what, instead = _DYNAMIC[unit.type]
        if instead and instead in unit.options:
            continue
        option = next(iter((*unit.settings.values(), *unit.options.values())), None)
        yield ImportDifference(
            kind="dynamic",
            section=unit.name,
            key="dynamic",
            file=option.path if option else (profile.files[0] if profile.files else ""),
            line=option.line if option else 0,
            faithful=what,
            intent="nothing of that is imported",
            why="dynamic_tuning is on in tuned-main.conf, and the section does not say dynamic=0",
        )


def _is_static(unit: Unit) -> bool:
    option = unit.options.get("dynamic")
    return option is not None and (option.value or "").lower() not in ("true", "1")
