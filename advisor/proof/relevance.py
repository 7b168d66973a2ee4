"""What of a plan the measured target can show: the devices below it, the way to it, the page cache; and how a change
may be toggled, by what each tunable needs and not by what the profile declares alone.

A change that nothing of the session can show is no claim: where all are so the session is refused, where some are they
are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from advisor.errors import RefusedError, UsageError
from advisor.host import Host, Missing
from advisor.planning.records import Change, Plan
from advisor.profiles import Profile
from advisor.proof.records import ToggleClass
from advisor.proof.target import Target
from advisor.proof.workloads import Workload
from advisor.tunables import Effect, Risk, tunable

TOGGLE_CLASSES: Final[tuple[ToggleClass, ...]] = ("T0", "T1", "T2", "T3")
_BY_EFFECT: Final[dict[str, ToggleClass]] = {
    "new-sockets": "T1",
    "remount": "T1",
    "service-restart": "T1",
    "reboot": "T3",
}
_PAGE_CACHE: Final = re.compile(r"block:[^:]+:read_ahead_kb|sysctl:vm\.(?:dirty_.*|vfs_cache_pressure)")
_PLACE: Final = re.compile(r"\{\w+\}")
_NETWORK: Final = ("sysctl:net.", "link:", "llt:", "llt-timer:")


def toggle_class(declared: ToggleClass, changes: Iterable[Change]) -> ToggleClass:
    """The strictest of what a profile declares and what its changes need here."""
    return max((declared, *(class_of(one) for one in changes)), key=TOGGLE_CLASSES.index)


def class_of(change: Change) -> ToggleClass:
    """What a change needs to act: T2 where a link may be interrupted, T1 for new sockets, mounts or a restart."""
    return _class_of(change.takes_effect, change.risk)


def _class_of(effect: Effect, risk: Risk) -> ToggleClass:
    needed = _BY_EFFECT.get(effect, "T0")
    return "T2" if risk == "link" and needed != "T3" else needed


def laxer_than_needed(profile: Profile) -> tuple[str, ToggleClass] | None:
    """The tunable of a profile that needs a stricter class than its ``[proof]`` table declares, and that class; None
    where there is none. A tunable whose device is not known yet is judged by its kind."""
    if profile.proof is None:
        return None
    needed: list[tuple[str, ToggleClass]] = []
    for wanted in profile.tunables:
        try:
            one = tunable(_PLACE.sub("x", wanted.tunable))
        except UsageError:
            continue
        # What has no live value of its own is never toggled.
        if one.takes_effect != "service-restart":
            needed.append((wanted.tunable, _class_of(one.takes_effect, one.risk)))
    stricter = [one for one in needed if TOGGLE_CLASSES.index(one[1]) > TOGGLE_CLASSES.index(profile.proof.toggle)]
    return max(stricter, key=lambda one: TOGGLE_CLASSES.index(one[1]), default=None)


def unseen(host: Host, plan: Plan, target: Target, workloads: Sequence[Workload]) -> list[tuple[str, str]]:
    """The tunables of a plan whose effect cannot show in this session, each with the reason."""
    below = stack_of(host, target.device) if target.device else frozenset()
    is_direct = not any(section.buffered for one in workloads for section in one.sections)
    over_network = target.is_network or any(one.is_network for one in workloads)
    found = []
    for change in plan.changes:
        kind, device, *_rest = [*change.tunable.split(":", 2), ""]
        if _PAGE_CACHE.fullmatch(change.tunable) and is_direct:
            found.append((change.tunable, "it acts on the page cache, and every workload here is direct I/O"))
        elif kind in ("block", "md") and device not in below:
            where = target.device or target.source or target.path
            found.append((change.tunable, f"{device} is not below {target.path} ({where})"))
        elif change.tunable.startswith(_NETWORK) and not over_network:
            found.append((change.tunable, f"{target.path} is local: nothing of it crosses the network"))
    return found


def require_visible(host: Host, plan: Plan, target: Target, workloads: Sequence[Workload]) -> tuple[str, ...]:
    """Notes on what is not measured. Raises RefusedError where nothing of the plan can show."""
    hidden = unseen(host, plan, target, workloads)
    if hidden and len(hidden) == len(plan.changes):
        tunable, why = hidden[0]
        more = f" (and {len(hidden) - 1} more)" if len(hidden) > 1 else ""
        raise RefusedError(f"{tunable}: {why}{more}: a measurement would show nothing of it", hint=_hint(why))
    return tuple(f"not measured: {tunable}: {why}" for tunable, why in hidden)


def _hint(why: str) -> str:
    if "page cache" in why:
        return "--workload buffered.seq-1m-r100 reads through an empty page cache"
    if "not below" in why:
        return "--target takes a directory on the device that is changed; --set chooses other devices"
    return "--target takes a directory that is mounted over the network; --peer-ssh HOST measures between two hosts"


def stack_of(host: Host, device: str) -> frozenset[str]:
    """The device, what it lies on down to the disks (partition, md, LVM, multipath, bcache), and the partitions and
    holders between. ``device`` is a kernel name."""
    found = {device}
    pending = [device]
    while pending:
        for name in _below(host, pending.pop()):
            if name not in found:
                found.add(name)
                pending.append(name)
    return frozenset(found)


def _below(host: Host, device: str) -> Iterable[str]:
    yield from host.names(f"/sys/class/block/{device}/slaves")
    if not isinstance(host.read(f"/sys/class/block/{device}/partition"), Missing):
        place = host.real(f"/sys/class/block/{device}")
        if not isinstance(place, Missing):
            yield place.rstrip("/").split("/")[-2]
