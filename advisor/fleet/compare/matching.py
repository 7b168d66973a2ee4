"""Links that carry one name here and another there: matched by network, then by driver and speed.

What a link does names it first (`advisor.fleet.compare.summary_links`); this is for what is left, links known by
their name alone. A name that most hosts have is matched with one that the other hosts have in its place, if both lie in
a common network, or if on each of these hosts exactly one is left with the driver and the speed of the one that is
missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.columns import Fleet
from advisor.host.grouping import group_pairs

_PREFIX = "link."
_PRESENT = ".present"


def match_links(fleet: Fleet) -> None:
    """Gives matched links the name that most hosts know them by. The rows' memberships keep their own."""
    count = len(fleet.hosts)
    there = {role: {*fleet.columns[f"{_PREFIX}{role}{_PRESENT}"].present(count)} for role in _roles_by_name(fleet)}
    usual = [role for role, hosts in there.items() if 2 * len(hosts) > count > len(hosts)]
    rare = [role for role, hosts in there.items() if 2 * len(hosts) <= count]
    if not usual or not rare:
        return
    networks = group_pairs((one.role, one.network) for row in fleet.hosts for one in row.memberships)
    for role in sorted(usual, key=lambda one: (-len(there[one]), one)):
        for other in _stand_ins(fleet, role, rare, there, networks):
            base = f"{_PREFIX}{other}."
            for name in [name for name in fleet.columns if name.startswith(base)]:
                column, moved = fleet.columns.pop(name), f"{_PREFIX}{role}.{name[len(base) :]}"
                target = fleet.columns.setdefault(moved, column)
                for host, value in column.present(count).items() if target is not column else ():
                    if value == target.base:
                        target.others.pop(host, None)
                    else:
                        target.others[host] = value
            there[role] |= there[other]
            rare.remove(other)


def _roles_by_name(fleet: Fleet) -> Iterator[str]:
    """Roles that are names of links, as the links' own names say."""
    for name in sorted(fleet.columns):
        if name.startswith(_PREFIX) and name.endswith(_PRESENT):
            role = name[len(_PREFIX) : -len(_PRESENT)]
            names = fleet.columns.get(f"{_PREFIX}{role}.name")
            if names is not None and {names.base, *names.others.values()} <= {role, None}:
                yield role


def _stand_ins(
    fleet: Fleet, role: str, rare: list[str], there: dict[str, set[int]], networks: Mapping[str, list[str]]
) -> list[str]:
    """Links that stand where ``role`` is missed: disjoint hosts, and the only one of their kind there."""
    found: list[str] = []
    free = [other for other in rare if not there[other] & there[role]]
    for other in free:
        if {*networks.get(role, ())} & {*networks.get(other, ())} and not _is_claimed(found, other, there):
            found.append(other)
    kind = _link_kind(fleet, role, there[role])
    for other in free:
        alike = [one for one in free if there[one] & there[other] and _link_kind(fleet, one, there[one]) == kind]
        if kind is not None and alike == [other] and not _is_claimed(found, other, there) and other not in found:
            missed = [one for one in there if 2 * len(there[one]) > len(fleet.hosts) and not there[one] & there[other]]
            if [one for one in missed if _link_kind(fleet, one, there[one]) == kind] == [role]:
                found.append(other)
    return found


def _is_claimed(found: list[str], other: str, there: dict[str, set[int]]) -> bool:
    return any(there[one] & there[other] for one in found)


def _link_kind(fleet: Fleet, role: str, hosts: set[int]) -> tuple[Value | None, Value | None] | None:
    """Driver and speed, where all of its hosts agree and both are known."""
    columns = [fleet.columns.get(f"{_PREFIX}{role}.{leaf}") for leaf in ("driver", "speed_mbps")]
    values = {tuple(column.value(host) if column else None for column in columns) for host in hosts}
    only = values.pop() if len(values) == 1 else (None, None)
    return None if None in only else (only[0], only[1])
