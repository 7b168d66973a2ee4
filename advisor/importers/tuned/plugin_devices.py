"""Plugins that write files below /sys: ``[sysfs]``, ``[vm]``, and those of single drivers."""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from advisor.facts.block.disks import kind_of
from advisor.facts.writers.commands import FEATURES
from advisor.host import Host, Missing
from advisor.host.numbers import whole_number
from advisor.host.patterns import lazy_regex
from advisor.importers.records import Found, ImportedSetting, flatten_found
from advisor.importers.tuned.devices import (
    Given,
    can_compare,
    is_array,
    is_no_disk,
    is_tuned_disk,
    parse_assignment,
    rules_of,
)
from advisor.importers.tuned.differences import PERCENT_OF_DIRTY, show_version
from advisor.profiles.profile import FieldSense, ForEach, Only

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


# ``[disk]``: schedulers and read-ahead of block devices.

DISK_OPTIONS = frozenset(
    {"dynamic", "elevator", "apm", "spindown", "readahead", "readahead_multiply", "scheduler_quantum"}
)
_ARRAYS = lazy_regex(r"(md|dm)")
_DISKS = lazy_regex(r"(sd|hd|vd|xvd|nvme|mmcblk|dasd|pmem|loop|zram|nbd|rbd|sr|fd)")


def convert_disk(given: Given) -> Found:
    key = given.key
    if key == "dynamic":
        is_on = given.text.strip().lower() in ("true", "1")
        why = "it says whether TuneD puts idle disks to sleep by itself"
        return given.line.ignored(why, "dynamic" if is_on else None, sets_nothing=not is_on)
    if key in ("apm", "spindown"):
        return given.line.manual(f"a disk's own power management: hdparm -{'B' if key == 'apm' else 'S'} per disk")
    if key == "scheduler_quantum":
        return given.line.ignored("it belongs to the scheduler CFQ, which Linux has not had since 5.0", "unknown")
    if key == "readahead":
        text = given.text.strip()
        written = parse_assignment(text)
        kilobytes = parse_readahead(written.value)
        if given.is_faithful and not can_compare(text, "128"):
            return given.line.ignored(
                f"TuneD takes {text[:40]!r} for no number, as an operator and a unit do not go together, and sets "
                "nothing",
                "refused",
            )
        if kilobytes is None:
            return given.swallowed("it is no number of KiB, or of sectors as in 8192 s")
        return _on_devices(given, "read_ahead_kb", str(kilobytes), sense=written.sense)
    if key == "readahead_multiply":
        if not re.fullmatch(r"[1-9]\d{0,3}(\.0+)?", given.text.strip(), re.ASCII):
            return given.line.manual("our profiles multiply by whole numbers only")
        factor = int(given.text.strip().partition(".")[0])
        return _on_devices(given, "read_ahead_kb", "", multiply=factor)
    wanted = given.text.strip()
    devices = given.instance.devices or ()
    lacking = tuple(name for name in devices if not _takes_scheduler(given.host, name, wanted))
    if devices and lacking == devices:
        return given.swallowed(f"no device here takes the scheduler {wanted[:40]}")
    return _on_devices(given, "scheduler", wanted, without=lacking)


def parse_readahead(text: str) -> int | None:
    """KiB from ``4096`` or ``8192 s`` (sectors of 512 bytes); None for what is neither."""
    number, _, unit = text.strip().partition(" ")
    if not re.fullmatch(r"[+-]?\d{1,15}", number, re.ASCII):
        return None
    count = int(number)
    return int(count / 2) if unit.strip().startswith("s") else count


def _takes_scheduler(host: Host, name: str, scheduler: str) -> bool:
    """Whether a device may take a scheduler: it offers it, or it offers others, and a module may bring this one."""
    text = host.read(f"/sys/block/{name}/queue/scheduler")
    if not isinstance(text, str):
        return True
    offered = [word.strip("[]") for word in text.split()]
    return scheduler in offered or offered != ["none"]


def _on_devices(
    given: Given,
    attribute: str,
    value: str,
    *,
    sense: FieldSense = "exactly",
    multiply: int | None = None,
    without: tuple[str, ...] = (),
) -> list[ImportedSetting]:
    """One line for disks, one for arrays: by the section's own patterns, or by name where those do not say all."""
    rules = rules_of(given.instance.unit)
    patterns = rules.patterns
    names = tuple(
        name for name in given.instance.devices or () if name not in without and not is_no_disk(given.host, name)
    )
    is_exact = patterns is None or given.instance.is_shared or bool(without) or _has_others(given)
    if is_exact and not names:
        why = "no device of this host is left for it" if rules.match(_all_disks(given.host)) else "no device here fits"
        return [given.line.ignored(why, "inert" if given.is_faithful else None)]
    kinds: tuple[tuple[ForEach, str, re.Pattern[str]], ...] = (
        ("disks", "{disk}", _ARRAYS),
        ("arrays", "{array}", _DISKS),
    )
    return [
        given.line.wanted(f"block:{place}:{attribute}", value, sense=sense, multiply=multiply, for_each=each, only=only)
        for each, place, other in kinds
        if (only := _only_devices(each, names, is_exact=is_exact, patterns=patterns or (), other=other)) is not None
    ]


def _only_devices(
    each: str, names: tuple[str, ...], *, is_exact: bool, patterns: tuple[str, ...], other: re.Pattern[str]
) -> Only | None:
    """What bounds one of the two kinds; None where nothing of it is meant."""
    if is_exact:
        own = tuple(name for name in names if is_array(name) == (each == "arrays"))
        return Only(names=own) if own else None
    if "*" in patterns:
        return Only()
    own = tuple(pattern for pattern in patterns if not other.match(pattern))
    return Only(names=own) if own else None


def _all_disks(host: Host) -> tuple[str, ...]:
    return host.names("/sys/block")


def _has_others(given: Given) -> bool:
    """Whether a disk of this host is none that TuneD uses: removable, or an NVMe disk of several paths."""
    names = _all_disks(given.host)
    return given.is_faithful and any(
        kind_of(name) in ("scsi", "nvme", "virtio", "xen", "mmc") and not is_tuned_disk(given.host, name)
        for name in names
    )


# ``[net]``: offloads, coalescing, rings, channels and pause frames of links, and the size of a hash table.

_COALESCE = frozenset(
    {
        *("adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "rx-usecs-irq", "rx-frames-irq"),
        *("tx-usecs", "tx-frames", "tx-usecs-irq", "tx-frames-irq", "stats-block-usecs", "sample-interval"),
        *("pkt-rate-low", "rx-usecs-low", "rx-frames-low", "tx-usecs-low", "tx-frames-low"),
        *("pkt-rate-high", "rx-usecs-high", "rx-frames-high", "tx-usecs-high", "tx-frames-high"),
    }
)
# Group of TuneD → the keys that it knows, and the first word of our id.
_GROUPS = {
    "coalesce": (_COALESCE, "coalesce"),
    "pause": (frozenset({"autoneg", "rx", "tx"}), "pause"),
    "ring": (frozenset({"rx", "rx-mini", "rx-jumbo", "tx"}), "ring"),
    "channels": (frozenset({"rx", "tx", "other", "combined"}), "channels"),
}
_NUMBER = lazy_regex(r"\d{1,9}", re.ASCII)
NET_OPTIONS = frozenset({"dynamic", "wake_on_lan", "nf_conntrack_hashsize", "features", "txqueuelen", "mtu", *_GROUPS})


def convert_net(given: Given) -> Found:
    key = given.key
    if key == "dynamic":
        is_on = given.text.strip().lower() in ("true", "1")
        why = "it says whether TuneD slows idle links down by itself"
        return given.line.ignored(why, "dynamic" if is_on else None, sets_nothing=not is_on)
    if key == "nf_conntrack_hashsize":
        return _hash_size(given)
    if key == "wake_on_lan":
        return given.line.manual("waking a host over the network: ethtool -s LINK wol, per link")
    if key in ("txqueuelen", "mtu"):
        return _number_setting(given, key)
    pairs = parse_link_parameters(given.text)
    if pairs is None:
        return given.swallowed("its names and values do not come in pairs, and TuneD sets none of them")
    if key == "features":
        return flatten_found(_feature_settings(given, name, value) for name, value in pairs.items())
    known, word = _GROUPS[key]
    unknown = sorted(pairs.keys() - known)
    if unknown:
        why = f"TuneD does not know {', '.join(unknown)[:80]} of {key}, and then sets none of the line"
        return given.swallowed(why, "unknown")
    # All pairs of a line, which TuneD gives to a link in one command: what a link takes otherwise is its own.
    taken = {link: _as_taken(given, link, key, pairs) for link in given.instance.devices or ()}
    others = {link: made for link, made in taken.items() if made != pairs}
    found = [
        one
        for name, value in pairs.items()
        for one in _on_rest(given, f"{word}.{name}", value.lower() if value.lower() in ("on", "off") else value, others)
    ]
    for link, made in others.items():
        if isinstance(made, str):
            found.append(given.swallowed(f"{link}: {made}"))
            continue
        only = Only(names=(link,))
        note = f"{link} has no {' or '.join(pairs)} channels, and TuneD then takes the other kind"
        for name, value in made.items():
            found.append(
                given.line.wanted(f"link:{{link}}:{word}.{name}", value, for_each="links", only=only, note=note)
            )
    return found


def parse_link_parameters(text: str) -> dict[str, str] | None:
    """``rx on, tx off`` or ``rx: on; tx: off`` as pairs; None for an odd number of words."""
    words = re.sub(r"(:\s*)|(\s+)|(\s*;\s*)|(\s*,\s*)", " ", text).split()
    return None if len(words) % 2 else dict(zip(words[::2], words[1::2], strict=True))


def _on_rest(given: Given, attribute: str, value: str, others: Collection[str]) -> list[ImportedSetting]:
    """On the section's links without those others."""
    if not others:
        return [_on_links(given, attribute, value)]
    names = tuple(name for name in given.instance.devices or () if name not in others)
    only = Only(names=names)
    return [given.line.wanted(f"link:{{link}}:{attribute}", value, for_each="links", only=only)] if names else []


def _as_taken(given: Given, link: str, key: str, pairs: Mapping[str, str]) -> Mapping[str, str] | str:
    """What TuneD makes of a line on one link, or why it comes to nothing there."""
    group = {"ring": "rings", "channels": "channels"}.get(key)
    answer = given.host.ethtool(link, group) if group else None
    if answer is None or isinstance(answer, Missing) or not all(map(_NUMBER.fullmatch, pairs.values())):
        return pairs
    if key == "channels" and answer.get(next(iter(pairs))) == 0:
        # As many to receive and to send by where there are none that do both, and the other way round.
        values = list(pairs.values())
        if "combined" in pairs:
            return {"rx": values[0], "tx": values[0]}
        if len(values) == 1:
            return "it has no such channels, and TuneD breaks off there"
        return {"combined": str(max(int(values[0]), int(values[1])))}
    # Of a single value the plan says so itself.
    if not given.is_faithful or len(pairs) == 1:
        return pairs
    limits = ((name, value, answer.get(f"{name.replace('-', '_')}_max")) for name, value in pairs.items())
    refused = [f"{name} at most {most}" for name, value, most in limits if isinstance(most, int) and int(value) > most]
    return f"its driver takes {' and '.join(refused)}, and refuses the line as a whole" if refused else pairs


def _feature_settings(given: Given, name: str, value: str) -> Found:
    if value.lower() not in ("on", "off"):
        return given.swallowed(f"{name[:40]} is to be {value[:40]!r}, which is neither on nor off")
    if name == "tx":
        return given.line.manual("tx stands for several checksum offloads, of which a driver has some")
    names = FEATURES.get(name, (name,))
    return [_on_links(given, f"feature.{one}", value.lower()) for one in names]


def _number_setting(given: Given, key: str) -> ImportedSetting:
    text = given.text.strip()
    written = parse_assignment(text)
    if given.is_faithful and not can_compare(text, "1"):
        return given.line.ignored(f"TuneD takes {text[:40]!r} for no number and sets nothing", "refused")
    if not re.fullmatch(r"[0-9]{1,9}", written.value):
        return given.swallowed("it is no whole number")
    return _on_links(given, key, written.value, written.sense)


def _hash_size(given: Given) -> ImportedSetting:
    text = given.text.strip()
    if not re.fullmatch(r"[0-9]{1,12}", text):
        return given.swallowed("it is no whole number")
    note = "the module nf_conntrack must be there" if not given.host.is_dir("/sys/module/nf_conntrack") else ""
    path = "/sys/module/nf_conntrack/parameters/hashsize"
    sense: FieldSense = "exactly" if given.is_faithful else "at-least"
    return given.line.wanted((f"sysfs:{path}", "module:nf_conntrack:hashsize"), text, sense=sense, note=note)


def _on_links(given: Given, attribute: str, value: str, sense: FieldSense = "exactly") -> ImportedSetting:
    """On the section's links: by pattern, or by name where patterns do not say all."""
    rules = rules_of(given.instance.unit)
    if rules.is_all and not given.instance.is_shared:
        only = None
    elif rules.patterns is None or given.instance.is_shared:
        names = given.instance.devices or ()
        if not names:
            return given.line.ignored("no link of this host is left for it", "inert")
        only = Only(names=names)
    else:
        only = Only(names=rules.patterns)
    return given.line.wanted(f"link:{{link}}:{attribute}", value, sense=sense, for_each="links", only=only)
