"""A fleet in memory: for each attribute the value that most hosts have, and only the hosts that have another.

What is alike on all hosts is kept once, so memory grows with what differs. A host itself costs its row: its names, and
the networks that it is in.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.block.block import natural
from advisor.facts.host_facts import scan
from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.comparison import AttributeDifference, AttributeKind, HeldValue
from advisor.fleet.compare.summary import TYPE_ATTRIBUTES, CaptureSource, HostSummary, read_standing, summarise_host
from advisor.host.numbers import group_pairs
from advisor.snapshot.open import open_host

_FEW = 8

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
_SHARED = ("name", "hostname", "machine_id", "boot_id", "group", "cluster", "node", "unknown")


class Column:
    """One attribute of all hosts: ``base``, and the hosts (by number) that have another value; None is *not there*."""

    __slots__ = ("_next_look", "base", "others")

    def __init__(self) -> None:
        self.base: Value | None = None
        self.others: dict[int, Value | None] = {}
        self._next_look = _FEW

    def add(self, host: int, value: Value | None) -> None:
        """The value of the next host; every host is added, in order."""
        if value != self.base:
            self.others[host] = value
            if len(self.others) >= self._next_look and 2 * len(self.others) > host:
                hosts = host + 1
                counts = Counter(self.others.values())
                rebase_value, count = counts.most_common(1)[0]
                if count > hosts - len(self.others):
                    alike = {host for host, one in self.others.items() if one == rebase_value}
                    rest = {host: self.base for host in range(hosts) if host not in self.others}
                    self.others = {host: one for host, one in {**self.others, **rest}.items() if host not in alike}
                    self.base = rebase_value
                # So that all looks together cost no more than a few per host.
                self._next_look = max(_FEW, 2 * len(self.others))

    def value(self, host: int) -> Value | None:
        return self.others.get(host, self.base)

    def present(self, hosts: int) -> dict[int, Value]:
        """The values of the hosts, by number, that have one."""
        return {host: value for host in range(hosts) if (value := self.value(host)) is not None}


class Fleet:
    """Summaries of hosts, taken in one after the other and then let go."""

    def __init__(self) -> None:
        self.hosts: list[HostSummary] = []
        self.columns: dict[str, Column] = {}
        self.set_by: Counter[str] = Counter()
        """For each sysctl, how many hosts set it by a file."""
        self._interned: dict[object, object] = {}

    def add(self, summary: HostSummary) -> None:
        """Take in one host."""
        number = len(self.hosts)
        members = tuple(self._share_values(one, ("network", "link", "role")) for one in summary.memberships)
        values = summary.values
        hardware = self._intern_value(tuple((name, values[name]) for name in TYPE_ATTRIBUTES if name in values))
        kept = msgspec.structs.replace(summary, memberships=members, values={}, sysctl_set=(), hardware=hardware)
        self.hosts.append(self._share_values(kept, _SHARED))
        self.set_by.update(summary.sysctl_set)
        for name, column in self.columns.items():
            column.add(number, self._intern_value(values.get(name)))
        for name in values.keys() - self.columns.keys():
            column = self.columns[name] = Column()
            column.add(number, self._intern_value(values[name]))

    def _share_values(self, record: R, names: Iterable[str]) -> R:
        """The record with values that other hosts have, too, kept once."""
        return msgspec.structs.replace(record, **{name: self._intern_value(getattr(record, name)) for name in names})

    def _intern_value(self, value: T) -> T:
        """The one object that stands for all that are equal."""
        if isinstance(value, str | tuple):
            return self._interned.setdefault(value, value)  # type: ignore[return-value]
        return value

    def ordered(self) -> list[int]:
        """The hosts' numbers by name; the report never depends on the order in which they came."""
        rows = self.hosts
        return sorted(range(len(rows)), key=lambda number: (natural(rows[number].name), rows[number].name))

    def names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.hosts[number].name for number in numbers)


class UnknownAttributes:
    """Which of a host's attributes are unknown, asked many times: by the pattern tuples, of which there are few."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._answers: dict[tuple[tuple[str, ...], str], bool] = {}

    def is_unknown(self, host: int, attribute: str) -> bool:
        patterns = self._fleet.hosts[host].unknown
        if not patterns:
            return False
        key = (patterns, attribute)
        if key not in self._answers:
            self._answers[key] = any(_matches_attribute(pattern, attribute) for pattern in patterns)
        return self._answers[key]

    def unknown_by_hosts(self, hosts: Iterable[int]) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        """Hosts to the attributes that others have and that are unknown there; hosts with the same are together."""
        alike = group_pairs((patterns, host) for host in hosts if (patterns := self._fleet.hosts[host].unknown))
        found = {self._fleet.names(some): tuple(self._expand_unknown(some)) for some in alike.values()}
        return {some: attributes for some, attributes in sorted(found.items()) if attributes}

    def _expand_unknown(self, alike: list[int]) -> Iterator[str]:
        for name in sorted(self._fleet.columns):
            column = self._fleet.columns[name]
            if self.is_unknown(alike[0], name) and any(column.value(host) is None for host in alike):
                yield name


def _matches_attribute(pattern: str, attribute: str) -> bool:
    """Whether a pattern means an attribute; ``*`` stands for any text, there may be two."""
    if "*" not in pattern:
        return pattern == attribute
    first, *middle, last = pattern.split("*")
    if not attribute.startswith(first) or len(attribute) < len(first) + len(last) or not attribute.endswith(last):
        return False
    rest = attribute[len(first) : len(attribute) - len(last)]
    for part in middle:
        _, found, rest = rest.partition(part)
        if not found and part:
            return False
    return True


Groups = dict[Value | None, tuple[int, ...]]


class JudgedRow(msgspec.Struct, frozen=True):
    """A difference before it is reported. ``groups`` has each value (None: not there) and its hosts, by number."""

    attribute: str
    kind: AttributeKind
    scope: str
    groups: Groups
    unknown: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(map(len, self.groups.values()))

    @property
    def majority(self) -> tuple[Value | None] | None:
        """The value of more than half of the hosts that are known, in a tuple of one; None where there is none."""
        return next(((value,) for value, hosts in self.groups.items() if 2 * len(hosts) > self.total), None)

    @property
    def outliers(self) -> tuple[int, ...]:
        """Hosts that are not as the majority; all of them where there is none."""
        most = self.majority
        return tuple(host for value, hosts in self.groups.items() if (value,) != most for host in hosts)

    @property
    def shape(self) -> tuple[bool, tuple[tuple[int, ...], ...] | tuple[int, ...]]:
        """What two differences on the same hosts have in common."""
        if self.majority is not None:
            return True, tuple(sorted(self.outliers))
        return False, tuple(sorted(tuple(sorted(hosts)) for hosts in self.groups.values()))


class Judge:
    """Judges the attributes of one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.known = UnknownAttributes(fleet)
        self._places = {number: place for place, number in enumerate(fleet.ordered())}
        suffix = ".present"
        self._objects = frozenset(name[: -len(suffix)] for name in fleet.columns if name.endswith(suffix))

    def row(self, attribute: str, kind: AttributeKind, scope: str, hosts: Sequence[int]) -> JudgedRow | None:
        """How the hosts differ in an attribute; None where they do not, as far as is known."""
        column = self.fleet.columns[attribute]
        if not column.others or all(host not in column.others for host in hosts):
            return None
        owner = self._object_column(attribute)
        groups: dict[Value | None, list[int]] = {}
        unknown = []
        for host in hosts:
            value = column.value(host)
            if value is None and self.known.is_unknown(host, attribute):
                unknown.append(host)
            elif value is not None or owner is None or owner.value(host) is not None:
                groups.setdefault(value, []).append(host)
        if len(groups) < 2:
            return None
        return JudgedRow(attribute, kind, scope, {value: tuple(some) for value, some in groups.items()}, tuple(unknown))

    def ordered(self, hosts: Iterable[int]) -> tuple[str, ...]:
        """Names of hosts, in natural order."""
        return self.fleet.names(sorted(hosts, key=self._places.__getitem__))

    def _object_column(self, attribute: str) -> Column | None:
        """Whether the link, disk or array is there at all: what is not there lacks nothing."""
        name, _, leaf = attribute.rpartition(".")
        if leaf == "present":
            name = name.rpartition(".")[0]
        while name:
            if name in self._objects:
                return self.fleet.columns[f"{name}.present"]
            name = name.rpartition(".")[0]
        return None

    def name_hosts(self, row: JudgedRow) -> AttributeDifference:
        """The difference in the names of the hosts."""
        most = row.majority
        groups = [(value, hosts) for value, hosts in row.groups.items() if (value,) != most and value is not None]
        absent = () if most == (None,) else row.groups.get(None, ())
        return AttributeDifference(
            attribute=row.attribute,
            has_majority=most is not None,
            majority=most[0] if most else None,
            majority_count=len(row.groups[most[0]]) if most else 0,
            groups=tuple(
                HeldValue(value, self.fleet.names(hosts)) for value, hosts in sorted(groups, key=_group_order)
            ),
            absent=self.fleet.names(absent),
            unknown=self.fleet.names(row.unknown),
        )


def _group_order(group: tuple[Value, tuple[int, ...]]) -> tuple[int, bool, int, str]:
    value, hosts = group
    return -len(hosts), isinstance(value, str), value if isinstance(value, int) else 0, str(value)


def explains_effect(cause: JudgedRow, effect: JudgedRow) -> bool:
    """Whether hosts with one value of the cause have one value of the effect, as far as both are known."""
    value_of = {host: value for value, hosts in cause.groups.items() for host in hosts}
    seen: dict[Value | None, Value | None] = {}
    pairs = [(value_of[host], value) for value, hosts in effect.groups.items() for host in hosts if host in value_of]
    for one, value in pairs:
        if seen.setdefault(one, value) != value:
            return False
    return len(seen) > 1 and len(pairs) == effect.total


# Captures of many hosts become summaries, one host's facts in memory at a time, on as many CPUs as there are.

LLT_CLUSTER = "llt-cluster"
MAX_PROCESSES = 16
_FEW_HOSTS = 12
"""Of fewer hosts, starting processes would take longer than it saves."""

Progress = Callable[[int, int], None]


class Unread(msgspec.Struct, frozen=True):
    """Why nothing is known of a capture."""

    message: str


def read_source(source: CaptureSource) -> HostSummary:
    """The summary of one capture."""
    host = open_host(snapshot=Path(source.path))
    standing = read_standing(host, has_looked=source.is_capture and host.is_root is True)
    return summarise_host(scan(host), source, standing, host.read_text("/proc/cmdline"))


def gather_hosts(
    sources: Sequence[CaptureSource],
    *,
    group_by: str | None = None,
    processes: int | None = None,
    progress: Progress = lambda done, total: None,
) -> tuple[Fleet, dict[str, str]]:
    """The fleet, and the hosts of which nothing could be read with the reason.

    ``group_by`` llt-cluster makes each host's LLT cluster its group. ``processes`` is how many read at once; by default
    one for each CPU.
    """
    fleet = Fleet()
    failed: dict[str, str] = {}
    for _, one in read_sources(sources, read_source, failed, progress, processes):
        fleet.add(_with_group(one) if group_by == LLT_CLUSTER else one)
    return fleet, failed


def _with_group(summary: HostSummary) -> HostSummary:
    group = f"cluster {summary.cluster}" if summary.cluster else "no cluster"
    return msgspec.structs.replace(summary, group=group)


def read_sources(
    sources: Sequence[CaptureSource],
    read: Callable[[CaptureSource], T],
    failed: dict[str, str],
    progress: Progress = lambda done, total: None,
    processes: int | None = None,
) -> Iterator[tuple[str, T]]:
    """Host and what ``read``, a function of a module, makes of its capture, in their order. Those that cannot be read
    are added to ``failed`` with the reason. ``processes`` read at once; by default one for each CPU."""
    for done, (source, one) in enumerate(zip(sources, _read_each(sources, read, processes), strict=True), 1):
        if isinstance(one, Unread):
            failed[source.name] = one.message
        else:
            yield source.name, one
        progress(done, len(sources))


def _read_each(
    sources: Sequence[CaptureSource], read: Callable[[CaptureSource], T], processes: int | None
) -> Iterator[T | Unread]:
    few = 1 if len(sources) < _FEW_HOSTS else min(len(os.sched_getaffinity(0)), MAX_PROCESSES)
    count, read_one = few if processes is None else processes, partial(_read_one, read)
    done = 0
    if count > 1:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        # A process may be killed (the system ran out of memory): on alone, which takes the least.
        with suppress(BrokenProcessPool), ProcessPoolExecutor(count) as pool:
            for one in pool.map(read_one, sources, chunksize=max(1, min(16, len(sources) // (4 * count)))):
                yield one
                done += 1
    yield from map(read_one, sources[done:])


def _read_one(read: Callable[[CaptureSource], T], source: CaptureSource) -> T | Unread:
    try:
        return read(source)
    except AdvisorError as error:
        return Unread(error.message)
    except (OSError, MemoryError) as error:
        return Unread(f"{source.path}: {error or 'too large for this memory'}")


def named_sources(paths: Iterable[Path]) -> tuple[CaptureSource, ...]:
    """Plain snapshot files: a host is called as its file, without the ending; with its directory where that is not
    enough to distinguish two."""
    named = {path: _host_name(path) for path in paths}
    counts = Counter(named.values())
    return tuple(CaptureSource(name if counts[name] == 1 else str(path), str(path)) for path, name in named.items())


def _host_name(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".bz2", ".xz", ".tar", ".tgz", ".snapshot", ".capture"):
        name = name.removesuffix(ending)
    return name or path.name


def grouped_by(variable: str, groups: Sequence[str], variables: Mapping[str, str]) -> str:
    """The group of an inventory's host: the value of a variable, else, where ``variable`` is ``group``, its groups."""
    if variable == "group":
        return ", ".join(groups) or "ungrouped"
    return f"{variable} {variables[variable]}" if variable in variables else f"no {variable}"
