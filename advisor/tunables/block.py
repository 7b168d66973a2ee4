"""``block:DEV:ATTRIBUTE`` — a queue setting of a disk or an array, persisted in a udev rule that knows it by its
serial number, WWN or UUID.

DEV is the kernel's name, as /sys/block lists it: sda, nvme0n1, md0, dm-3. The attributes are those of the kernel's
Documentation/ABI/stable/sysfs-block: scheduler, nr_requests, read_ahead_kb, max_sectors_kb, rq_affinity, nomerges,
add_random, iostats, rotational, write_cache, wbt_lat_usec, io_timeout, io_poll. An array's settings are its own and do
not follow from those of its members.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import ClassVar, Self

from advisor.facts.system.memory import parse_meminfo
from advisor.host import Host, Missing, RunCommand, observe
from advisor.host.device_identity import ATTRIBUTES as DEVICE_IDENTITY_ATTRIBUTES
from advisor.host.device_identity import Marks, is_nvme_path, marks_of, udev_properties, words_of
from advisor.host.missing import Identity
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.kind import Capture, Kind, Tunable, UnknownIdError
from advisor.tunables.preflight import Preflight, SideEffect, list_choices

# What a block device is known by for longer than its kernel name lasts: names such as sda are assigned at each boot.

RULES = "/etc/udev/rules.d/90-advisor-block.rules"
# A file replaces those of its name in the directories after its own (udev(7)); /lib may be /usr/lib.
_RULE_DIRECTORIES = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
_HEADER = b"# Settings of block devices, one line for each device and attribute.\n"
_RELOAD = (RunCommand(("udevadm", "control", "--reload")),)

# A pattern in quotes (udev(7)): no sign with a meaning of its own, and none that would end it.
_SAFE = lazy_regex(r"[\w#+.:=@/,-]+( +[\w#+.:=@/,-]+)*", re.ASCII)
_PROPERTIES = ("ID_SERIAL", "ID_WWN_WITH_EXTENSION", "ID_WWN")
_ATTRIBUTES = ("wwid", "device/wwid", "serial", "device/serial")
_NAME = lazy_regex(r"[\w!.-]+", re.ASCII)


BLOCK_PATHS = r"/sys/(?:block|class/block|devices/.*/block)/([^/]+)"
"""Pattern of the directories of a block device below /sys; the group is its name."""


def is_device_name(name: str) -> bool:
    """Whether the kernel could list a block device by it: ``sda``, ``nvme0n1``, ``cciss!c0d0``."""
    return bool(_NAME.fullmatch(name)) and name not in (".", "..")


def identity_of(host: Host, device: str) -> Identity | None:
    """What distinguishes this device from others until the rollback; None where there is no such thing."""
    return next(iter(identities_of(host, (device,))))


def identities_of(host: Host, devices: Iterable[str]) -> tuple[Identity | None, ...]:
    """The same of several devices, with each file read once."""
    read, see = cache(partial(words_of, host)), cache(partial(marks_of, host))
    names = host.names("/sys/block")
    return tuple(_identify(host, device, names, read, see) for device in devices)


def _identify(
    host: Host, device: str, names: Iterable[str], read: Callable[[str, str], str], see: Callable[[str], Marks]
) -> Identity | None:
    attribute = next((one for one in DEVICE_IDENTITY_ATTRIBUTES if read(device, one)), None)
    words = read(device, attribute) if attribute else ""
    marks = see(device)
    if not words and marks == Marks():
        return None
    alike = []
    if words or marks.place or marks.device:
        # All others for a device without words, which is known by its place alone.
        others = (one for one in names if one != device and is_nvme_path(one) == is_nvme_path(device))
        alike = [one for one in others if attribute is None or read(one, attribute) == words]
    seen = [see(name) for name in alike]
    is_shared = bool(words) and (bool(alike) or _is_multipath(host, device))
    return (
        f"/sys/block/{device}/{attribute}" if attribute else "",
        words,
        "shared" if is_shared else "single",
        *([marks.place] if marks.place and all(one.place != marks.place for one in seen) else ()),
        *([marks.device] if marks.device and all(one.device != marks.device for one in seen) else ()),
        *([marks.sequence] if marks.sequence else ()),
    )


def identity_refusal(identity: Identity | None) -> str | None:
    """Why nothing may be set on a device: it could not be found again to be rolled back."""
    if identity is None or identity[2:] != ("shared",):
        return None
    return (
        "another device has the same identity, and neither ID_PATH, the device link nor diskseq distinguishes them: "
        "it could not be rolled back"
    )


def _is_multipath(host: Host, device: str) -> bool:
    """Whether it is a path of a multipath map, which others join and leave at any time."""
    holders = host.names(f"/sys/block/{device}/holders")
    return any(words_of(host, one, "dm/uuid").startswith("mpath-") for one in holders)


def device_rule(host: Host, device: str, attribute: str, value: str) -> FileEdit | Missing:
    """The udev rule that gives ``attribute`` (``queue/scheduler``) of this device its value at boot and on plugging in;
    Missing says why no rule can name the device."""
    if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
        return Missing("absent", "udev does not run here, so no rule would be carried out")
    # The match keys of a rule that this device alone fits.
    own = udev_properties(host, device)
    base = f"/sys/block/{device}"
    if host.exists(f"{base}/md"):
        match = _array_match("MD_UUID", own.get("MD_UUID"), 'KERNEL=="md*"')
    elif host.exists(f"{base}/dm"):
        uuid = own.get("DM_UUID") or _read_text(host, f"{base}/dm/uuid")
        if uuid:
            match = _array_match("DM_UUID", uuid)
        else:
            match = _array_match("DM_NAME", own.get("DM_NAME") or _read_text(host, f"{base}/dm/name"))
    else:
        others = [name for name in host.names("/sys/block") if name != device]
        match = _by_property(host, own, others) or _by_attribute(host, device, others) or _explain_nameless(own)
    if isinstance(match, Missing):
        return match
    rule = ('ACTION=="add|change"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"', *match)
    return FileEdit(RULES, "udev-rule", ", ".join(rule), f'ATTR{{{attribute}}}="{value}"', _HEADER, reload=_RELOAD)


def later_rules(host: Host, attribute: str, *, after: str = RULES) -> tuple[str, ...]:
    """Notes on rule files of the site and of packages that are read after advisor's and assign this attribute."""
    said = []
    seen = set()
    for directory in _RULE_DIRECTORIES:
        for name in host.names(directory):
            is_later = name.endswith(".rules") and name > after.rpartition("/")[2] and "-advisor-" not in name
            if is_later and name not in seen:
                seen.add(name)
                text = host.read_or_empty(f"{directory}/{name}")
                if re.search(rf"ATTR\{{{re.escape(attribute)}\}}\s*=[^=]", text):
                    said.append(f"{directory}/{name} assigns {attribute} after {after}: see which devices it means")
    return tuple(said)


def _array_match(name: str, value: str | None, *more: str) -> tuple[str, ...] | Missing:
    if not value:
        return Missing("unreadable", f"udev has no {name} of it, so that a rule could not name it for good")
    if not _SAFE.fullmatch(value):
        return Missing("unreadable", f"its {name} holds signs that a udev rule could not carry: {value[:80]!r}")
    return (*more, f'ENV{{{name}}}=="{value}"')


def _read_text(host: Host, path: str) -> str | None:
    text = host.read(path)
    return None if isinstance(text, Missing) else text


def _by_property(host: Host, own: Mapping[str, str], others: list[str]) -> tuple[str, ...] | None:
    """By one property that no other disk shares; paths to one unit share them, so that the way to it is added."""
    for names in _candidate_keys(own):
        wanted = {name: own[name] for name in names}
        if not any(wanted.items() <= udev_properties(host, other).items() for other in others):
            return tuple(f'ENV{{{name}}}=="{value}"' for name, value in wanted.items())
    return None


def _candidate_keys(own: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    names = [name for name in _PROPERTIES if _SAFE.fullmatch(own.get(name, ""))]
    yield from ((name,) for name in names)
    if _SAFE.fullmatch(own.get("ID_PATH", "")):
        yield from ((name, "ID_PATH") for name in names)


def _by_attribute(host: Host, device: str, others: list[str]) -> tuple[str, ...] | None:
    for attribute in _ATTRIBUTES:
        value = _read_text(host, f"/sys/block/{device}/{attribute}")
        is_shared = any(_read_text(host, f"/sys/block/{other}/{attribute}") == value for other in others)
        if value and _SAFE.fullmatch(value) and not is_shared:
            return (f'ATTR{{{attribute}}}=="{value}"',)
    return None


def _explain_nameless(own: Mapping[str, str]) -> Missing:
    odd = [own[name] for name in _PROPERTIES if name in own and not _SAFE.fullmatch(own[name])]
    if odd:
        return Missing("unreadable", f"its serial number holds signs that a udev rule could not carry: {odd[0][:80]!r}")
    return Missing("absent", "it has no serial number or WWN of its own, and the kernel's name for it may change")


class BlockValue(KernelFile, frozen=True):
    """One attribute of a device; a kind gives its word in ids, an example of a device, its directory and its names."""

    device: str
    attribute: str

    example: ClassVar[str]
    directory: ClassVar[str]
    attributes: ClassVar[tuple[str, ...]]
    holds_count = True
    id_form = "{self.kind}:{self.device}:{self.attribute}"
    path_form = "/sys/block/{self.device}/{self.directory}/{self.attribute}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        device, _, attribute = rest.rpartition(":")
        if attribute not in cls.attributes or not is_device_name(device):
            example, names = f"{cls.kind}:{cls.example}:ATTRIBUTE", ", ".join(cls.attributes)
            hint = f"write {example}, one of {names}"
            raise UnknownIdError(rest, kind=cls.kind, hint=hint)
        return cls(device, attribute)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return device_rule(host, self.device, f"{self.directory}/{self.attribute}", value)


def example_files(one: Tunable) -> Mapping[str, bytes]:
    """Files of a host with a device of the number 8:0 that has the attribute."""
    return {f"/sys/block/{one.device}/dev": b"8:0", one.path: b""} if isinstance(one, BlockValue) else {}


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
