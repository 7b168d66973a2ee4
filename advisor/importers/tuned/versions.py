"""Which release of TuneD first knew a plugin or an option of it: read in the plugins of each release, 2.19 to 2.28."""

from __future__ import annotations

from advisor.errors import UsageError
from advisor.facts.tuned.places import package_version, python_packages
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

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
