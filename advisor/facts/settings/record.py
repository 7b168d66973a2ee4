"""The record of a kernel parameter: all that the readers, rules, plans, imports and pages know of a sysctl key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import msgspec

from advisor.host.numbers import is_count

# The public sources that the records of settings cite, each named once.

WHITE_PAPER = "Veritas InfoScale 7.4.2 for RHEL on AWS, performance test white paper (2020)"
SYSCTL_NET = "Linux kernel documentation, admin-guide/sysctl/net"
SYSCTL_KERNEL = "Linux kernel documentation, admin-guide/sysctl/kernel"
IP_SYSCTL = "Linux kernel documentation, networking/ip-sysctl"
SCALING = "Linux kernel documentation, networking/scaling"
MD = "Linux kernel documentation, admin-guide/md"
SOCKET = "socket(7)"
ENA = "ENA Linux driver best practices (amzn-drivers)"
DELL_BEEGFS = "Dell EMC Ready Solution for HPC BeeGFS storage: two-socket servers with 24 NVMe drives"
BEEGFS_STORAGE = "BeeGFS documentation, storage server tuning"
RFC_TCP_OPTIONS = "RFC 7323 (window scaling, timestamps) and RFC 2018 (selective acknowledgement)"
MEASURED_UDP = "Measured on Linux 6.18: datagrams of 8,192 bytes that a socket buffer holds"
TCP = "tcp(7)"
VM = "Linux kernel documentation, admin-guide/sysctl/vm"
NETAPP_BEEGFS = "NetApp Ansible roles for BeeGFS"
TUNED_MSSQL = "TuneD profile mssql: vm.dirty_ratio 80"
OLD_IXGB = "Intel ixgb driver README of the 2000s, copied on into many guides"
TUNING_NOTES = "Tuning notes for 10 Gbit/s links as they are passed on in public gists"
MEASURED_DEFAULTS = (
    "Measured on Linux 6.18: rmem_max 4,194,304; tcp_rmem 4096 131072 33554432; tcp_wmem up to 4,194,304"
)
SYSCTL_FS = "Linux kernel documentation, admin-guide/sysctl/fs: aio-nr, aio-max-nr, file-nr, file-max"
HUGETLB = "Linux kernel documentation, admin-guide/mm/hugetlbpage"
CONNTRACK = "Linux kernel documentation, networking/nf_conntrack-sysctl"
BRIDGE = "Linux kernel documentation, networking/bridge"
DEBUGFS = "Linux kernel, kernel/sched/debug.c: below /sys/kernel/debug/sched from 5.13 on"
INOTIFY = "inotify(7)"
SUNRPC = "Linux kernel, net/sunrpc/xprtsock.c"
TTY = "Linux kernel, drivers/tty/Kconfig"
SYSCTL_USER = "Linux kernel documentation, admin-guide/sysctl/user"
YAMA = "Linux kernel documentation, admin-guide/LSM/Yama"
NETDEV = "Linux kernel documentation, networking: an interface's MTU must match on one layer-2 segment"
ETHTOOL = "ethtool(8)"
TC = "tc(8)"
SEGMENTATION = "Linux kernel documentation, networking/segmentation-offloads"
BLOCK_SYSFS = "Linux kernel documentation, ABI/stable/sysfs-block"
THP = "Linux kernel documentation, admin-guide/mm/transhuge"
CPUFREQ = "Linux kernel documentation, admin-guide/pm"
CMDLINE = "Linux kernel documentation, admin-guide/kernel-parameters"
KUBERNETES = "Kubernetes documentation, network plugins: net/bridge/bridge-nf-call-iptables"


KernelVersion = tuple[int, int]
"""Major and minor."""
Severity = Literal["info", "advice", "warning"]

_DOCUMENTS = (
    ("net.core.", SYSCTL_NET),
    ("net.ipv", IP_SYSCTL),
    ("net.netfilter.", CONNTRACK),
    ("vm.", VM),
    ("kernel.", SYSCTL_KERNEL),
    ("fs.", SYSCTL_FS),
    ("dev.raid.", MD),
    ("dev.tty.", TTY),
    ("sunrpc.", SUNRPC),
    ("user.", SYSCTL_USER),
)
"""The kernel's own document of the keys that begin so."""


class Machine(msgspec.Struct, frozen=True):
    """What a host is, as far as it decides whether a value is good there; None is unknown.

    ``is_such`` tells whether it has a trait, by the name that cautions give it (advisor/rules/settings/sysctls.py);
    every host has that of no name.
    """

    kernel: KernelVersion | None = None
    memory_bytes: int | None = None
    page_bytes: int = 4096
    cpus: int | None = None
    is_such: Callable[[str], bool] = lambda trait: not trait

    def is_since(self, version: KernelVersion) -> bool:
        """Return whether the kernel is known to be this version or a newer one."""
        return self.kernel is not None and self.kernel >= version

    def is_before(self, version: KernelVersion) -> bool:
        """Return whether the kernel is known to be older than this version."""
        return self.kernel is not None and self.kernel < version


class Value(NamedTuple):
    """A value of a key: its words, and the integers that begin it."""

    key: str
    text: str
    numbers: tuple[int, ...]

    @property
    def first(self) -> int:
        """The first number; -1 where it begins with none."""
        return self.numbers[0] if self.numbers else -1


Judge = Callable[[Value, Machine], bool]


class Gone(NamedTuple):
    """What is said instead on kernels from ``since`` on, where following the advice does nothing any more."""

    since: KernelVersion
    title: str
    why: str


class Caution(msgspec.Struct, frozen=True, kw_only=True):
    """Values that harm, that lower what the kernel has by itself, or that do nothing.

    ``id`` is that of the finding. ``when`` names the values, ``is_bad`` recognises them, both for all the ``keys``.
    ``instead`` says what to do, ``better`` which value is better, with ``<=`` where a smaller one is as good; None
    where no value is.
    """

    id: str
    keys: tuple[str, ...]
    title: str
    when: str
    why: str
    instead: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    is_bad: Judge
    where: str = ""
    """The trait of the machines on which they are bad; empty for all."""
    better: str | Callable[[Value, Machine], str] | None = None
    severity: Severity = "advice"
    contradictions: tuple[str, ...] = ()
    gone: Gone | None = None
    own: Mapping[str, tuple[str, str]] = {}
    """Title and why of one of several keys, where it is the only one."""
    is_intent: bool = False
    """Whether it is right for some and wrong for others, so that the owner decides."""
    is_of_gone: bool = False
    """Whether it is about a key that is gone, or kept without effect: on an older kernel the value counts."""

    def covers(self, key: str) -> bool:
        """Return whether it is about a key; a key of its own with a star stands for each link's."""
        # A name without a star is never compiled as a pattern: all of them together take a thirtieth of a scan.
        return any(key == own or ("*" in own and fnmatchcase(key, own)) for own in self.keys)


class MemoryShare(NamedTuple):
    """What a number of a key takes of the memory: ``unit`` bytes each, 0 for pages and -1 for huge pages.

    ``warn`` and ``refuse`` are shares of all memory; ``what`` says what becomes of it.
    """

    unit: int
    warn: float
    refuse: float
    what: str
    source: str


class InUse(NamedTuple):
    """Where a host shows how much of a limit is used: the pattern's group is the number; of several the ``largest``
    counts, their ``sum`` in pages, or how many there are (``count``). A path with a star is one file of each process.
    """

    path: str
    pattern: str
    what: str
    counts: Literal["largest", "pages", "count"] = "largest"


class Least(NamedTuple):
    """The least that the largest number of a key may be, and what happens below it."""

    number: int
    otherwise: str


class _Named(msgspec.Struct, frozen=True):
    key: str
    does: str
    unit: str = ""


class Setting(_Named, frozen=True, kw_only=True):
    """A key; one with a star stands for the same setting of each link (``net.ipv4.conf.*.rp_filter``).

    ``does`` says what it is in one sentence, ``unit`` what a number counts (``switch``: 0 or 1; ``mode``: numbers that
    stand for ways), ``fields`` how its numbers are called.
    """

    fields: tuple[str, ...] = ()
    holds: Literal["integers", "unsigned", "words"] = "integers"
    low: int | None = None
    high: int | None = None
    """What every number has to be, where the kernel refuses others. Where kernels differ, the widest."""
    bounds_source: str = ""
    is_ordered: bool = False
    """Whether the kernel refuses a number below the one before it."""
    since: KernelVersion | None = None
    until: KernelVersion | None = None
    """The first version without it."""
    moved_to: str = ""
    """Where it went, or which setting stands for it."""
    is_kept: bool = False
    """Whether the file is still there from ``until`` on, without effect."""
    default: str = ""
    derived_from: str = ""
    """What the kernel works its default out from; then a difference between hosts is none."""
    takes_effect: Literal["now", "new-sockets", "new-links"] = "now"
    twin: str = ""
    """The key that says the same in another unit, and that is zero wherever this one is not."""
    same_as: str = ""
    """The key that shows the same value, under another name or in another unit."""
    is_finer: bool = False
    """Whether its unit is the finer of those two."""
    grows: bool = False
    """Whether a larger value than the wanted one is as good: limits, buffers, tables."""
    is_pool: bool = False
    """Whether each who needs some of it needs them for itself, so that two wishes add up."""
    is_slow: bool = False
    """Whether its effect builds up over minutes: caches, reclaim, the placement of pages."""
    holds_memory: int | None = None
    """The bytes of memory in one of what it limits, 0 for pages: a limit above all memory takes nothing away."""
    is_counter: bool = False
    """Whether the kernel counts there and nobody sets it."""
    guards: str = ""
    """The direction of values that protects the host (``higher``, ``lower``), or its values from the weakest on: no
    counter asks for them."""
    is_scanned: bool = False
    """Whether a scan reads it."""
    is_shown: bool = False
    """Whether it stands on the page of a whole host."""
    shown_by: str = ""
    lower_hurts: str = ""
    higher_hurts: str = ""
    hurts: str = ""
    """When any value does harm that has no sentence of its own in ``hurts_of``."""
    hurts_of: Mapping[str, str] = {}
    share: MemoryShare | None = None
    in_use: InUse | None = None
    least: Least | None = None
    not_above: str = ""
    """The key whose value this one should not exceed."""
    is_below: bool = False
    """Whether it should not be equal to that either."""
    otherwise: str = ""
    """What happens where it does."""
    vendors: Mapping[str, str] = {}
    """What the documents of a product ask for, by the name of its profile: ``<=10``, ``>=5``, ``20``."""
    derives: Judge | None = None
    """Whether the kernel of such a machine has a value by itself, without a file that sets it."""
    cautions: tuple[Caution, ...] = ()
    sources: tuple[str, ...] = ()
    """In addition to the kernel's own document."""

    @property
    def citations(self) -> tuple[str, ...]:
        """The kernel's own document, then the others."""
        own = next((document for prefix, document in _DOCUMENTS if self.key.startswith(prefix)), None)
        return tuple(dict.fromkeys((*([own] if own else ()), *self.sources)))

    @property
    def is_in_bytes(self) -> bool:
        """Whether its numbers are bytes, and are shown as KiB or MiB."""
        return self.unit == "bytes"

    @property
    def is_buffer(self) -> bool:
        """Whether it is one of the sizes of socket buffers."""
        return self.is_in_bytes and self.share is not None and self.is_shown and self.grows

    def is_gone(self, kernel: KernelVersion | None) -> bool:
        """Return whether this kernel has the setting no more, or without effect."""
        return self.until is not None and kernel is not None and kernel >= self.until

    def is_weaker(self, value: str, before: str) -> bool:
        """Return whether a value of what guards the host guards it less than another does."""
        order = self.guards.split()
        if value in order and before in order:
            return order.index(value) < order.index(before)
        ends = (value, before) if self.guards == "higher" else (before, value)
        numbers = [int(word) for word in ends if re.fullmatch("-?[0-9]{1,20}", word)]
        return self.guards in ("higher", "lower") and len(numbers) == len(ends) and numbers[0] < numbers[1]

    def is_ample(self, value: str, machine: Machine) -> bool:
        """Return whether a limit lets programs have all memory of the machine, and as much swap: lowered to it, it
        does no harm."""
        if self.holds_memory is None or not machine.memory_bytes or not is_count(value):
            return False
        return int(value) * (self.holds_memory or machine.page_bytes) >= 2 * machine.memory_bytes

    @property
    def meaning(self) -> str:
        """What it is in a sentence, with its unit and where its default comes from."""
        unit = {"": "", "mode": "", "switch": " 0 is off, 1 on."}.get(self.unit, f" Unit: {self.unit}.")
        names = f" Its numbers: {', '.join(self.fields)}." if self.fields else ""
        derived = f" By default the kernel derives it from {self.derived_from}." if self.derived_from else ""
        return f"{self.does}{unit}{names}{derived}"

    @property
    def went(self) -> str:
        """Since when it is gone or without effect, and where it went; empty for one that is there."""
        if self.until is None:
            return ""
        what = "has no effect since" if self.is_kept else "is gone since"
        return f"{what} Linux {self.until[0]}.{self.until[1]}; in its place {self.moved_to}"

    def harm_of(self, value: str, before: str = "") -> str:
        """Return when a value does harm, by the direction in which it departs from ``before`` where that is given;
        empty where it is not known."""
        if said := self.hurts_of.get(value) or self.hurts:
            return said
        other = ("1" if value == "0" else "0") if self.unit == "switch" else ""
        old, new = (before or other).split(), value.split()
        pairs = list(zip(old, new, strict=False)) if len(old) == len(new) and new else []
        if not all(is_count(word.removeprefix("-")) for word in (*old, *new)):
            pairs = []
        is_lower = any(int(was) > int(now) for was, now in pairs) or not pairs
        is_higher = any(int(was) < int(now) for was, now in pairs) or (not pairs and new != ["0"])
        lower, higher = self.lower_hurts if is_lower else "", self.higher_hurts if is_higher else ""
        if lower and higher:
            return f"Higher: {higher} Lower: {lower}"
        return lower or higher


# Values of kernel parameters that harm, and values that a kernel makes by itself from its machine.

_TCP_SHARE_OF_MEMORY = 256
_INITIAL_SIZES = {"net.ipv4.tcp_rmem": 131_072, "net.ipv4.tcp_wmem": 16_384}
# The maxima that a kernel has by itself: their field, then the versions from which they are known, with bytes. Those of
# TCP shrink where memory is small (a 128th of it), so they count only where that is far away.
_OWN_MAXIMA = {
    "net.core.rmem_max": (0, (((6, 18), 4_194_304), ((3, 10), 212_992))),
    "net.ipv4.tcp_rmem": (2, (((6, 18), 33_554_432), ((3, 10), 6_291_456))),
    "net.ipv4.tcp_wmem": (2, (((3, 10), 4_194_304),)),
}


def judge_words(words: str) -> Judge:
    """Return what tells the values of a list: ``0``, ``!0`` for any other, ``>=75``, or a word."""

    def is_bad(value: Value, _: Machine) -> bool:
        return any(_fits(word, value) for word in words.split())

    return is_bad


def _fits(word: str, value: Value) -> bool:
    if word.startswith(">="):
        return value.first >= int(word[2:])
    if word.startswith("!"):
        return value.first != int(word[1:])
    return value.first == int(word) if is_count(word) else value.text == word


def own_maximum(key: str, machine: Machine) -> tuple[int, int]:
    """Return which field of a key is the maximum, and the bytes that this kernel has there by itself; 0 bytes where
    that is unknown."""
    field, known = _OWN_MAXIMA[key]
    own = next((size for since, size in known if machine.is_since(since)), 0)
    is_small = key.startswith("net.ipv4") and (machine.memory_bytes or 0) < own * _TCP_SHARE_OF_MEMORY
    return field, 0 if is_small else own


def _is_lowered(value: Value, machine: Machine) -> bool:
    field, own = own_maximum(value.key, machine)
    return len(value.numbers) > field and value.numbers[field] < own


def _raise_limit(value: Value, machine: Machine) -> str:
    field, own = own_maximum(value.key, machine)
    return raise_maximum(value.key, value.numbers, own) if field else str(max(value.first, own))


def raise_maximum(key: str, values: tuple[int, ...], maximum: int) -> str:
    """Return minimum, default and maximum of tcp_rmem or tcp_wmem with at least this maximum, each at least the one
    before it and none below ``values``; the kernel's own where those are no such three, or the default is below the
    minimum."""
    low, initial, most = values if len(values) == 3 else (4096, 0, 0)
    if initial < low:
        initial = max(low, _INITIAL_SIZES[key])
    return f"{low} {initial} {max(initial, most, maximum)}"


def _is_own_size(value: Value, machine: Machine) -> bool:
    """Whether the sizes of TCP are the kernel's own; the maximum is a 128th of the memory where that is less."""
    usual, share = (6_291_456, 33_554_432, 4_194_304), (machine.memory_bytes or 0) // 128
    if len(value.numbers) != 3 or value.numbers[:2] not in ((4096, 131_072), (4096, 87_380), (4096, 16_384)):
        return False
    return value.numbers[2] in usual or 0.75 * share <= value.numbers[2] <= 1.1 * share


def _is_own_share(value: Value, _: Machine) -> bool:
    """Whether limit / 4 × 3, limit, twice the first (tcp_init_mem, udp_init in net/ipv4)."""
    numbers = value.numbers
    return len(numbers) == 3 and numbers[0] == numbers[1] // 4 * 3 and numbers[2] == 2 * numbers[0]


def _is_fixed(value: Value, machine: Machine) -> bool:
    memory, numbers = machine.memory_bytes, value.numbers
    is_beyond = memory is not None and len(numbers) == 3 and numbers[2] * machine.page_bytes > memory // 2
    return len(numbers) == 3 and (is_beyond or len(set(numbers)) == 1)


_RESERVE_SHARE = 0.03
# For huge pages the kernel itself keeps up to a twentieth of the memory free, and no more than this in KiB: 22,528 for
# each of twelve zones (mm/khugepaged.c, set_recommended_min_free_kbytes).
_OWN_RESERVE = 0.05
_OWN_RESERVE_KB = 270_336


def _largest_reserve(machine: Machine) -> int:
    """The most that may be kept free, in KiB: 3 % of the memory, and what the kernel keeps by itself."""
    kib = (machine.memory_bytes or 0) // 1024
    return max(int(kib * _RESERVE_SHARE), min(int(kib * _OWN_RESERVE), _OWN_RESERVE_KB))


BAD: Mapping[str, Judge] = {
    "advice.tcp-mem-fixed": _is_fixed,
    "advice.tcp-sizes-equal": lambda value, _: len(value.numbers) == 3 and len(set(value.numbers)) == 1,
    "advice.without-effect": lambda value, machine: (
        value.first not in (4096, machine.page_bytes) if value.key.endswith("_min") else value.first == 1
    ),
    "advice.maxima-lowered": _is_lowered,
    "advice.tcp-tw-reuse": lambda value, machine: value.first == 1 or (value.first > 1 and machine.is_before((4, 19))),
    "network.initial-window-lowered": lambda value, machine: (
        len(value.numbers) == 3 and 0 < value.numbers[1] < 131_072 and machine.is_since((5, 0))
    ),
    "advice.min-free-large": lambda value, machine: (
        machine.memory_bytes is not None and value.first > _largest_reserve(machine)
    ),
    "advice.zone-reclaim": lambda value, machine: value.first != 0 and not machine.is_such("binds-services"),
}
"""What tells the values of a caution that do not stand in its section."""
BETTER: Mapping[str, Callable[[Value, Machine], str]] = {
    "advice.tcp-sizes-equal": lambda value, machine: raise_maximum(
        value.key, (), max(value.numbers[2], own_maximum(value.key, machine)[1])
    ),
    "advice.maxima-lowered": _raise_limit,
    "network.initial-window-lowered": lambda value, _: raise_maximum(
        value.key, (value.numbers[0], 131_072, value.numbers[2]), 131_072
    ),
    "advice.min-free-large": lambda _, machine: f"<={_largest_reserve(machine)}",
    "advice.tcp-tw-reuse": lambda _, machine: "2" if machine.is_since((4, 19)) else "0",
    "advice.old-lore": lambda value, _: "cubic" if value.text == "htcp" else "0",
}
"""Better values that depend on the host or on the value."""
DERIVES: Mapping[str, Judge] = {
    **dict.fromkeys(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), _is_own_size),
    **dict.fromkeys(("net.ipv4.tcp_mem", "net.ipv4.udp_mem"), _is_own_share),
    "net.ipv4.tcp_max_syn_backlog": lambda value, _: value.first >= 128 and value.first & (value.first - 1) == 0,
    "vm.min_free_kbytes": lambda value, machine: value.first <= _largest_reserve(machine),
    "kernel.pid_max": lambda value, machine: value.first in (32_768, 4_194_304, 1024 * (machine.cpus or 0)),
    "fs.file-max": lambda value, machine: 0.75 <= 10240 * value.first / (machine.memory_bytes or 1) <= 1.25,
}
"""Whether the kernel of such a machine has a value of the key by itself, without a file that sets it."""
