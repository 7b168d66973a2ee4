"""What differs because something else does: reported with its cause, not a second time.

Another kernel has other defaults, another driver other rings, TuneD sets what its profile says, and hardware decides
much by itself. What a file of a host sets is never called a consequence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from advisor.fleet.compare.columns import Fleet, JudgedRow, explains_effect
from advisor.fleet.compare.topology import Shared
from advisor.host.patterns import lazy_regex

# A cause, and what it explains where the one's value decides the other's. {role} is the link's.
_LINK_CAUSE = lazy_regex(r"link\.(?P<role>.+)\.driver", re.DOTALL)
_LINK_EFFECT = (
    r"link\.{role}\.(firmware|ring\..+|channels\..+|feature\..+|mtu_max|.+_max|speed_mbps|txqueuelen|pcie|numa_node)"
)
_KERNEL_EFFECT = lazy_regex(
    r"host\.os|link\..+\.(feature\..+|ring\..+|channels\..+|mtu_max)|(disk|array)\..+\.(queue\..+|scheduler)|"
    r"filesystem\..+\.options|memory\.thp_.+",
    re.DOTALL,
)
_TUNED_EFFECT = lazy_regex(r"disk\..+\.(queue\..+|scheduler)|memory\.thp_.+|cpu\.frequency\..+", re.DOTALL)
_BY_HARDWARE = lazy_regex(
    r"sysctl\.(kernel\.(numa_balancing|sched_.+)|net\.ipv4\.tcp_[rw]mem|vm\.(min_free_kbytes|zone_reclaim_mode))"
)


def without_effects(
    fleet: Fleet, rows: Sequence[JudgedRow], hardware: Sequence[JudgedRow]
) -> tuple[list[JudgedRow], dict[str, tuple[str, ...]]]:
    """Rows that stand for themselves, and for each cause what goes with it."""
    effects: dict[str, list[str]] = {}
    causes = [
        row
        for row in rows
        if (row.attribute in ("host.kernel", "owner.tuned_profile") or _LINK_CAUSE.fullmatch(row.attribute) is not None)
    ]
    gone = set()
    for row in rows:
        cause = next((one for one in causes if one is not row and _is_effect(fleet, one, row)), None)
        if cause is not None and id(cause) not in gone:
            effects.setdefault(key_of(cause), []).append(row.attribute)
            gone.add(id(row))
        elif hardware and _is_by_hardware(fleet, row) and any(explains_effect(one, row) for one in hardware):
            effects.setdefault("hardware", []).append(row.attribute)
            gone.add(id(row))
    left = [row for row in rows if id(row) not in gone]
    return left, {key: tuple(dict.fromkeys(names)) for key, names in effects.items()}


def key_of(row: JudgedRow) -> str:
    return f"{row.scope}\0{row.attribute}"


def _is_effect(fleet: Fleet, cause: JudgedRow, row: JudgedRow) -> bool:
    name = row.attribute
    is_default = name.startswith("sysctl.") and not fleet.set_by[name.removeprefix("sysctl.")]
    if cause.attribute == "host.kernel":
        fits = is_default or _KERNEL_EFFECT.fullmatch(name) is not None
    elif cause.attribute == "owner.tuned_profile":
        fits = is_default or _TUNED_EFFECT.fullmatch(name) is not None
    else:
        role = _LINK_CAUSE.fullmatch(cause.attribute)
        pattern = _LINK_EFFECT.format(role=re.escape(role["role"])) if role else ""
        fits = re.fullmatch(pattern, name, re.DOTALL) is not None
    return fits and explains_effect(cause, row)


def _is_by_hardware(fleet: Fleet, row: JudgedRow) -> bool:
    """What another type of machine may explain; what an administrator sets is never among it."""
    if row.kind.scope == "type":
        return True
    key = row.attribute.removeprefix("sysctl.")
    return _BY_HARDWARE.fullmatch(row.attribute) is not None and not fleet.set_by[key]


def without_covered(
    fleet: Fleet, rows: Sequence[JudgedRow], shared: Sequence[Shared]
) -> tuple[list[JudgedRow], dict[str, list[tuple[str, tuple[str, ...]]]]]:
    """Without MTU and speed of links whose network has the same finding: it is reported there, once and as worse."""
    odd = {"mtu": _odd_networks(shared, "mtu"), "speed_mbps": _odd_networks(shared, "speed_mbps")}
    finding = {"mtu": "fleet.mtu-in-network", "speed_mbps": "fleet.speed-in-network"}
    covered: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    left = []
    for row in rows:
        found = re.fullmatch(r"link\.(?P<role>.+)\.(?P<leaf>mtu|speed_mbps)", row.attribute, re.DOTALL)
        hosts = fleet.names(row.outliers)
        if found and all(_is_covered(odd[found["leaf"]], host, found["role"]) for host in hosts):
            covered.setdefault(finding[found["leaf"]], []).append((row.attribute, hosts))
        else:
            left.append(row)
    return left, covered


def _is_covered(odd: set[tuple[str, str]], host: str, role: str) -> bool:
    # A bond's network covers its ports.
    above = [role]
    while "." in above[-1]:
        above.append(above[-1].rpartition(".")[0])
    return any((host, one) in odd for one in above)


def _odd_networks(shared: Iterable[Shared], name: str) -> set[tuple[str, str]]:
    found = set()
    for one in shared:
        values = {getattr(member, name) for _, member in one.members} - {None}
        if len(values) > 1:
            found |= {(row.name, member.role) for row, member in one.members}
    return found
