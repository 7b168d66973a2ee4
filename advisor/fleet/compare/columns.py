"""A fleet in memory: for each attribute the value that most hosts have, and only the hosts that have another.

What is alike on all hosts is kept once, so memory grows with what differs. A host itself costs its row: its names, and
the networks that it is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from advisor.facts.block import natural
from advisor.fleet.compare.attributes import AttributeKind
from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.comparison import AttributeDifference, HeldValue
from advisor.fleet.compare.summary import TYPE_ATTRIBUTES, HostSummary
from advisor.host.grouping import group_pairs

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
