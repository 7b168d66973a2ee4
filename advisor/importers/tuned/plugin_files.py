"""Plugins that write files below /sys: ``[sysfs]``, ``[vm]``, and those of single drivers."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from advisor.host import Host
from advisor.host.numbers import whole_number
from advisor.host.patterns import lazy_regex
from advisor.importers.made import Found
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned.context import Given
from advisor.importers.tuned.versions import PERCENT_OF_DIRTY, show_version

_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/"
_OF_QUEUE = lazy_regex(r"/sys/block/([^/*?\[]+)/queue/([a-z_]+)")
DIRTY_OPTIONS = {
    f"dirty_{which}{unit}": f"dirty_{which}{other}"
    for which in ("", "background_")
    for unit, other in (("bytes", "ratio"), ("ratio", "bytes"))
}
"""Options of ``[vm]`` since TuneD 2.25, each with the one that the kernel zeroes when it is set."""
_WORDS = ("always", "never", "madvise")
_MAX_MATCHES = 4096
_TWO_PAGES = 2 * 4096  # Of the smallest page that Linux has; larger ones are met by the kernel's own check.


def convert_sysfs(given: Given) -> Found:
    path = os.path.normpath(given.key)
    if not path.startswith("/sys/"):
        return given.swallowed("it is not below /sys, and TuneD writes nowhere else with this plugin")
    if is_glob(path) and not next(match_files(given.host, path), None):
        note = "nothing on this host fits the pattern"
    else:
        note = ""
    # Ids of tunables for a file below /sys, the most specific first.
    found = []
    if path.startswith(_HUGE_PAGES):
        found.append(f"thp:{path.removeprefix(_HUGE_PAGES)}")
    queue = _OF_QUEUE.fullmatch(path)
    if queue:
        found.append(f"block:{queue[1]}:{queue[2]}")
    return given.line.wanted((*found, f"sysfs:{path}"), given.text, note=note)


def is_glob(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def match_files(host: Host, pattern: str) -> Iterator[str]:
    """The files of a host that a pattern fits, part by part, as glob(7) has it."""
    found = [""]
    for part in pattern.split("/")[1:]:
        if is_glob(part):
            found = [
                f"{place}/{name}" for place in found for name in host.names(place or "/") if fnmatchcase(name, part)
            ]
        else:
            found = [f"{place}/{part}" for place in found]
        found = found[:_MAX_MATCHES]
    yield from (place for place in found if host.exists(place))


def convert_vm(given: Given) -> Found:
    if given.key == "transparent_hugepage.defrag":
        return given.line.wanted("thp:defrag", given.text)
    if given.key in DIRTY_OPTIONS:
        return _dirty_limit(given)
    if given.text not in _WORDS:
        return given.swallowed(f"TuneD takes always, never or madvise, not {given.text[:40]!r}")
    cmdline = given.host.read("/proc/cmdline")
    if given.is_faithful and isinstance(cmdline, str) and cmdline.find("transparent_hugepage=") > 0:
        why = "the kernel's command line says transparent_hugepage=, and TuneD then leaves it alone"
        return given.line.ignored(why, "overridden")
    return given.line.wanted("thp:enabled", given.text)


def _dirty_limit(given: Given) -> ImportedSetting:
    """``dirty_bytes`` and its family, with the checks of TuneD's own; of a pair TuneD sets the ratio last."""
    key, text = given.key, given.text.strip()
    percent = key.endswith("bytes") and text.endswith("%")
    if percent and given.is_faithful and given.version is not None and given.version < PERCENT_OF_DIRTY:
        return given.line.ignored(f"TuneD takes a percentage here since {show_version(PERCENT_OF_DIRTY)}", "refused")
    if key.endswith("bytes") and DIRTY_OPTIONS[key] in given.instance.unit.options and given.is_faithful:
        return given.line.ignored(f"{DIRTY_OPTIONS[key]} of the same section is set after it", "overridden")
    number = whole_number(text.rstrip("%") if percent else text)
    if percent:
        key = DIRTY_OPTIONS[key]
    least, most, range_of = (0, 100, "0 to 100") if key.endswith("ratio") else (1, None, "a positive number of bytes")
    if key == "dirty_bytes":
        least, range_of = _TWO_PAGES, "at least two pages"
    if number is None or number < least or (most is not None and number > most):
        return given.swallowed(f"TuneD takes {range_of}, not {text[:40]!r}")
    return given.line.wanted(f"sysctl:vm.{key}", str(number))


def convert_selinux(given: Given) -> Found:
    if not given.host.is_dir("/sys/fs/selinux/avc"):
        return given.line.ignored("there is no SELinux on this host")
    return given.line.wanted("sysfs:/sys/fs/selinux/avc/cache_threshold", given.text.strip())


def convert_scsi_host(given: Given) -> Found:
    path = "/sys/class/scsi_host/host*/link_power_management_policy"
    if given.instance.unit.devices != "*":
        return given.line.manual("it is for some SCSI hosts only, whose numbers are assigned at each boot")
    if not next(match_files(given.host, path), None):
        return given.line.ignored("no SCSI host here has a power management of its link (ALPM)")
    return given.line.wanted(f"sysfs:{path}", given.text)


def convert_audio(given: Given) -> Found:
    file = {"timeout": "power_save", "reset_controller": "power_save_controller"}[given.key]
    modules = [name for name in ("snd_hda_intel", "snd_ac97_codec") if given.host.is_dir(f"/sys/module/{name}")]
    if not modules:
        return given.line.ignored("there is no sound card here that snd_hda_intel or snd_ac97_codec drives")
    value = given.text.strip()
    if given.key == "reset_controller":
        value = {"true": "Y", "1": "Y", "yes": "Y", "y": "Y"}.get(value.lower(), "N")
    return [given.line.wanted(f"sysfs:/sys/module/{name}/parameters/{file}", value) for name in modules]


def convert_video(given: Given) -> Found:
    if not next(match_files(given.host, "/sys/class/drm/card*/device/power_method"), None):
        return given.line.ignored("no graphics card here has radeon's power methods")
    return given.line.manual("which of radeon's power methods a card has differs from card to card")


def convert_usb(given: Given) -> Found:
    value = "1" if given.text.strip().lower() in ("true", "1") else "0"
    return given.line.wanted("sysfs:/sys/bus/usb/devices/*/power/autosuspend", value)


def convert_eeepc(given: Given) -> Found:
    if not given.host.exists("/sys/devices/platform/eeepc/cpufv"):
        return given.line.ignored("this host is no EeePC")
    return given.line.manual("TuneD switches it by the load while it runs")


def convert_acpi(given: Given) -> Found:
    choices = given.host.read("/sys/firmware/acpi/platform_profile_choices")
    wanted = [word.strip() for word in given.text.split("|")]
    if not isinstance(choices, str):
        return given.line.ignored("this host's firmware has no platform profiles")
    chosen = next((word for word in wanted if word in choices.split()), None)
    if chosen is None:
        return given.swallowed(f"the firmware offers {choices}")
    return given.line.wanted("sysfs:/sys/firmware/acpi/platform_profile", chosen)


def convert_uncore(given: Given) -> Found:
    path = f"/sys/devices/system/cpu/intel_uncore_frequency/*/{given.key}"
    if not next(match_files(given.host, path), None):
        return given.line.ignored("this host shows no uncore frequencies")
    if not re.fullmatch(r"[0-9]{1,9}", given.text.strip()):
        return given.line.manual("a share of the range has to be worked out for each uncore part")
    return given.line.wanted(f"sysfs:{path}", given.text.strip())
