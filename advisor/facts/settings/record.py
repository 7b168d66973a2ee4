"""The record of a kernel parameter: all that the readers, rules, plans, imports and pages know of a sysctl key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import msgspec

from advisor.facts.settings import sources as cited
from advisor.host.numbers import is_count

KernelVersion = tuple[int, int]
"""Major and minor."""
Severity = Literal["info", "advice", "warning"]

_DOCUMENTS = (
    ("net.core.", cited.SYSCTL_NET),
    ("net.ipv", cited.IP_SYSCTL),
    ("net.netfilter.", cited.CONNTRACK),
    ("vm.", cited.VM),
    ("kernel.", cited.SYSCTL_KERNEL),
    ("fs.", cited.SYSCTL_FS),
    ("dev.raid.", cited.MD),
    ("dev.tty.", cited.TTY),
    ("sunrpc.", cited.SUNRPC),
    ("user.", cited.SYSCTL_USER),
)
"""The kernel's own document of the keys that begin so."""


class Machine(msgspec.Struct, frozen=True):
    """What a host is, as far as it decides whether a value is good there; None is unknown.

    ``is_such`` tells whether it has a trait, by the name that cautions give it (advisor/rules/settings.py);
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
    is_guard: bool = False
    """Whether it protects the host, so that no counter asks for it."""
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
        if not all(is_count(word) for word in (*old, *new)):
            pairs = []
        is_lower = any(int(was) > int(now) for was, now in pairs) or not pairs
        is_higher = any(int(was) < int(now) for was, now in pairs) or (not pairs and new != ["0"])
        lower, higher = self.lower_hurts if is_lower else "", self.higher_hurts if is_higher else ""
        if lower and higher:
            return f"Higher: {higher} Lower: {lower}"
        return lower or higher
