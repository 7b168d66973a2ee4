"""One attribute over some hosts: the value of most, who differs, who lacks it, and of whom it is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from advisor.fleet.compare.attributes import AttributeKind
from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.columns import Column, Fleet, UnknownAttributes
from advisor.fleet.compare.comparison import AttributeDifference, HeldValue

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
