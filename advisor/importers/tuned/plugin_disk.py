"""``[disk]``: schedulers and read-ahead of block devices."""

from __future__ import annotations

import re

from advisor.facts.disks import kind_of
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.importers.made import Found
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned.context import Given, can_compare, parse_assignment
from advisor.importers.tuned.devices import is_array, is_no_disk, is_tuned_disk
from advisor.importers.tuned.instances import rules_of
from advisor.profiles.profile import FieldSense, ForEach, Only

OPTIONS = frozenset({"dynamic", "elevator", "apm", "spindown", "readahead", "readahead_multiply", "scheduler_quantum"})
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
