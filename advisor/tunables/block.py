"""``block:DEV:ATTRIBUTE`` — a queue setting of a disk or an array, persisted in a udev rule that knows it by its
serial number, WWN or UUID.

DEV is the kernel's name, as /sys/block lists it: sda, nvme0n1, md0, dm-3. The attributes are those of the kernel's
Documentation/ABI/stable/sysfs-block: scheduler, nr_requests, read_ahead_kb, max_sectors_kb, rq_affinity, nomerges,
add_random, iostats, rotational, write_cache, wbt_lat_usec, io_timeout, io_poll. An array's settings are its own and do
not follow from those of its members.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.memory import parse_meminfo
from advisor.host import Host, Missing, observe
from advisor.host.patterns import lazy_regex
from advisor.tunables.block_identity import (
    BLOCK_PATHS,
    BlockValue,
    example_files,
    identity_of,
    identity_refusal,
    later_rules,
)
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.preflight import Preflight, SideEffect, list_choices

_SWITCH = ("0", "1")
_NUMBER = lazy_regex(r"0|[1-9][0-9]{0,9}")
_SCHEDULER = lazy_regex(r"[a-z][a-z0-9-]{0,30}")

# What a value must be, and the words for it; None where numbers are bounded below.
_WORDS = {
    "rq_affinity": ("0", "1", "2"),
    "nomerges": ("0", "1", "2"),
    "add_random": _SWITCH,
    "iostats": _SWITCH,
    "rotational": _SWITCH,
    "io_poll": _SWITCH,
    "write_cache": ("write back",),
}
_LEAST = {
    "nr_requests": 4,  # BLKDEV_MIN_RQ: the kernel takes a smaller one for it
    "read_ahead_kb": 0,
    "max_sectors_kb": 4,
    "wbt_lat_usec": 0,
    "io_timeout": 1,
}
_IN_PAGES = frozenset({"read_ahead_kb"})
ATTRIBUTES = ("scheduler", *_LEAST, *_WORDS)
MAX_SCHEDULED = 2048
"""MAX_SCHED_RQ of block/blk-mq-sched.h: the longest queue of a scheduler, by 16 times 128."""
LINUX_MQ = 5
"""From this version of Linux on every driver has blk-mq; a queue without it had no longest length."""
READ_AHEAD_SHARE = 1 / 16
"""Of the memory, for one file: advisor's choice."""
_MODULES: Mapping[str, str] = {"bfq": "bfq", "kyber": "kyber-iosched", "mq-deadline": "mq-deadline"}
SCHEDULERS = (*_MODULES, "none")
"""Those of Linux 5.0 and later (Documentation/block/switching-sched.rst)."""


class BlockQueue(BlockValue, frozen=True):
    kind = "block"
    example = "nvme0n1"
    directory = "queue"
    attributes = ATTRIBUTES

    @property
    def value_form(self) -> str:
        return "selected" if self.attribute == "scheduler" else "words"

    def check_value(self, value: str) -> str | None:
        if self.attribute == "scheduler":
            return None if _SCHEDULER.fullmatch(value) else "is not the name of a scheduler"
        if self.attribute == "write_cache" and value == "write through":
            return "makes the kernel leave out flushes, which loses data where the device has a cache of its own"
        if self.attribute in _WORDS:
            words = _WORDS[self.attribute]
            return None if value in words else f"is not {' or '.join(words)}"
        least = _LEAST[self.attribute]
        if re.fullmatch(r"[1-9][0-9]{10,}", value, re.ASCII):
            return "is more than the kernel takes"
        if not _NUMBER.fullmatch(value) or int(value) < least:
            return f"is not a whole number from {least} on"
        if self.attribute in _IN_PAGES and int(value) % 4:
            return "is not a multiple of 4: the kernel counts in pages of 4 KiB"
        return None

    def list_values(self, host: Host) -> tuple[str, ...]:
        """The schedulers that the device offers, or the words of a setting that has few; none of a number."""
        if self.attribute == "scheduler":
            return tuple(word.strip("[]") for word in host.read_or_empty(self.path).split())
        return tuple(word for word in _WORDS.get(self.attribute, ()) if self.check_value(word) is None)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        refusal: str | None = None
        note: tuple[str, ...] = ()
        if self.attribute == "scheduler":
            refusal, note = self._check_scheduler(host, after)
        elif self.attribute == "max_sectors_kb":
            limit = host.read_int(f"/sys/block/{self.device}/queue/max_hw_sectors_kb")
            if isinstance(limit, int) and int(after) > limit:
                refusal = f"its hardware takes at most {limit} (max_hw_sectors_kb)"
        elif self.attribute == "nr_requests" and before != after:
            refusal, note = self._check_length(host, int(before) if _NUMBER.fullmatch(before) else 0, int(after))
        elif self.attribute == "read_ahead_kb":
            refusal = _explain_read_ahead(host, int(after))
        siblings = self._side_effects(host) if self.attribute == "scheduler" and before != after else ()
        # Going back resets the length of the queue once more, to what the scheduler has by default.
        again = [step for one in siblings if one.tunable.endswith(":nr_requests") for step in one.undo]
        identity = identity_of(host, self.device)
        unknowable = identity_refusal(identity)
        return Preflight(
            refusal=refusal or unknowable,
            state="incapable" if unknowable and not refusal else "blocked",
            undo=(*self.make_steps(before), *again),
            identity=identity,
            side_effects=siblings,
            notes=(*note, *later_rules(host, f"queue/{self.attribute}")),
        )

    def explain_refusal(self, host: Host, wanted: str) -> str | None:
        """Why the device would not take a scheduler; None where it would."""
        return self._check_scheduler(host, wanted)[0]

    def _check_scheduler(self, host: Host, wanted: str) -> tuple[str | None, tuple[str, ...]]:
        """Why the device would not take a scheduler, and notes on one that it would."""
        listed = [word.strip("[]") for word in host.read_or_empty(self.path).split()]
        if wanted in listed:
            return None, ()
        known = f"it offers {list_choices(listed)}"
        if listed == ["none"]:
            return 'it offers "none" alone, as it hands requests on as they come', ()
        module = _MODULES.get(wanted)
        release = host.read("/proc/sys/kernel/osrelease")
        index = host.read(f"/lib/modules/{release}/modules.dep")
        if isinstance(index, Missing):
            return f"{known}; whether a module provides {wanted} is unknown: modules.dep: {index.why}", ()
        if module is None or not re.search(rf"(?m)^(?:\S*/)?{re.escape(module)}\.ko", index):
            return f"{known}, and there is no module for {wanted}", ()
        return None, (f"the scheduler {wanted} is in the module {module}, which the kernel loads when it is asked for",)

    def _check_length(self, host: Host, before: int, wanted: int) -> tuple[str | None, tuple[str, ...]]:
        """Why the kernel would not make the queue so long (block/blk-mq.c, blk_mq_tag_update_depth), and what is not
        known of it."""
        release = re.match(r"[0-9]{1,3}", host.read_or_empty("/proc/sys/kernel/osrelease"))
        if not (release and int(release[0]) >= LINUX_MQ) and not host.is_dir(f"/sys/block/{self.device}/mq"):
            return None, ()
        if wanted > MAX_SCHEDULED:
            return f"the kernel takes at most {MAX_SCHEDULED} (block/blk-mq-sched.h)", ()
        if wanted <= before or "[none]" not in host.read_or_empty(f"/sys/block/{self.device}/queue/scheduler"):
            return None, ()
        tags = _count_tags(host, self.device)
        if tags is None:
            return None, (
                (
                    f"{self.id}: without a scheduler the queue is no longer than the drive's own, which is not "
                    "known here: the plan is rolled back if it is shorter"
                ),
            )
        if wanted <= tags:
            return None, ()
        return f"without a scheduler the queue holds what the drive's own does, {tags}; a scheduler allows more", ()

    def _side_effects(self, host: Host) -> tuple[SideEffect, ...]:
        """What the kernel resets with the scheduler: the length of the queue, and its throttling (none with bfq)."""
        found = []
        for attribute in ("nr_requests", "wbt_lat_usec"):
            one = BlockQueue(self.device, attribute)
            live = observe(host, one.probe)
            if not isinstance(live, Missing):
                found.append(SideEffect(one.id, live, one.probe, one.make_steps(live)))
        return tuple(found)


def _count_tags(host: Host, device: str) -> int | None:
    """Requests that a driver takes at a time; None where it does not show it."""
    adapter = host.real(f"/sys/block/{device}/device")
    found = re.search(r"/(host[0-9]{1,6})/", "" if isinstance(adapter, Missing) else adapter)
    most = host.read_int(f"/sys/class/scsi_host/{found[1]}/can_queue") if found else None
    return most if isinstance(most, int) and most > 0 else None


def _explain_read_ahead(host: Host, kibibytes: int) -> str | None:
    """Why so much read-ahead does not fit the host; None where it does, or its memory cannot be read."""
    total = parse_meminfo(host.read_or_empty("/proc/meminfo")).get("MemTotal")
    most = None if not total else int(total * READ_AHEAD_SHARE) >> 10
    if most is None or kibibytes <= most:
        return None
    return (
        f"each file that is read in order would take {kibibytes >> 10:,} MiB of {(total or 0) >> 20:,} MiB of "
        f"memory: at most {most:,} KiB here"
    )


KIND = Kind(
    name="block",
    order=40,
    parse=BlockQueue.parse,
    # A loop device without a file has no size, nor does an array that is not assembled.
    devices=lambda host: (name for name in host.names("/sys/block") if host.read_int(f"/sys/block/{name}/size")),
    noun="block device setting",
    examples=(("block:nvme0n1:scheduler", "mq-deadline"),),
    capture=Capture(files=(("/sys/block/*/queue", ATTRIBUTES),)),
    written_by=frozenset({"tuned", "saptune"}),
    sysfs=((rf"{BLOCK_PATHS}/queue/([^/]+)", r"block:\1:\2"),),
    example_files=example_files,
    slow=r".*:read_ahead_kb",
)
