"""What of a plan the measured target can show: the devices below it, the way to it, the page cache; and how a change
may be toggled, by what each tunable needs and not by what the profile declares alone.

A change that nothing of the session can show is no claim: where all are so the session is refused, where some are they
are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change, Plan
from advisor.profiles.profile import Profile
from advisor.profiles.requested import toggle_needed
from advisor.proof.records import ToggleClass
from advisor.proof.target import MeasuredTarget, lower_devices
from advisor.proof.workloads import Pattern
from advisor.tunables import parse_tunable

TOGGLE_CLASSES: tuple[ToggleClass, ...] = ("T0", "T1", "T2", "T3")
_PAGE_CACHE = lazy_regex(r"block:[^:]+:read_ahead_kb|sysctl:vm\.(?:dirty_.*|vfs_cache_pressure)")
_DIRTY = lazy_regex(r"sysctl:vm\.dirty_.*")
_OPAQUE = lazy_regex(r"(?:VxVM|VxDMP|zd|drbd)[0-9]+(?:p[0-9]+)?")
"""Devices of volume managers that do not name their disks in sysfs (DRBD 8 does not, DRBD 9 does)."""
_PLACE = lazy_regex(r"\{\w+\}")
_NETWORK = ("sysctl:net.", "link:", "llt:", "llt-timer:")


def toggle_class(declared: ToggleClass, changes: Iterable[Change]) -> ToggleClass:
    """The strictest of what a profile declares and what its changes need here."""
    return max((declared, *(class_of(one) for one in changes)), key=TOGGLE_CLASSES.index)


def class_of(change: Change) -> ToggleClass:
    """What a change needs to act: T2 where a link may be interrupted, T1 for new sockets, mounts or a restart."""
    return toggle_needed(change.takes_effect, change.risk)


def laxer_than_needed(profile: Profile) -> tuple[str, ToggleClass] | None:
    """The tunable of a profile that needs a stricter class than its ``[proof]`` table declares, and that class; None
    where there is none. A tunable whose device is not known yet is judged by its kind."""
    if profile.proof is None:
        return None
    needed: list[tuple[str, ToggleClass]] = []
    for wanted in profile.tunables:
        try:
            one = parse_tunable(_PLACE.sub("x", wanted.tunable))
        except UsageError:
            continue
        # What has no live value of its own is never toggled.
        if one.takes_effect != "service-restart":
            needed.append((wanted.tunable, toggle_needed(one.takes_effect, one.risk)))
    stricter = [one for one in needed if TOGGLE_CLASSES.index(one[1]) > TOGGLE_CLASSES.index(profile.proof.toggle)]
    return max(stricter, key=lambda one: TOGGLE_CLASSES.index(one[1]), default=None)


def find_unseen(host: Host, plan: Plan, target: MeasuredTarget, workloads: Sequence[Pattern]) -> list[tuple[str, str]]:
    """The tunables of a plan whose effect cannot show in this session, each with the reason."""
    below = stack_of(host, target.device) if target.device else frozenset()
    found = []
    for change in plan.changes:
        cached = _page_cache_reason(change.tunable, workloads)
        device = _device_of(change)
        if cached is not None:
            found.append((change.tunable, cached))
        elif device is not None and device not in below and not is_opaque(target, below):
            where = target.device or target.source or target.path
            found.append((change.tunable, f"{device} is not below {target.path} ({where})"))
        elif change.tunable.startswith(_NETWORK) and not target.is_network:
            found.append((change.tunable, f"{target.path} is local: nothing of it crosses the network"))
    return found


def _device_of(change: Change) -> str | None:
    kind, device, *_rest = [*change.tunable.split(":", 2), ""]
    return device if kind in ("block", "md") else None


def _page_cache_reason(tunable: str, workloads: Sequence[Pattern]) -> str | None:
    """Why no workload shows what acts on the page cache; None where one does, or where the tunable does not."""
    if not _PAGE_CACHE.fullmatch(tunable):
        return None
    buffered = [section for one in workloads for section in one.sections if section.buffered]
    if not buffered:
        return "it acts on the page cache, and every workload here is direct I/O"
    if _DIRTY.fullmatch(tunable) and not any(section.write_share > 0 for section in buffered):
        return "it acts on written pages of the page cache, and every buffered workload here reads only"
    if tunable.endswith(":read_ahead_kb") and not any(section.write_share < 1 for section in buffered):
        return "it acts on reads through the page cache, and every buffered workload here writes only"
    return None


def is_opaque(target: MeasuredTarget, below: frozenset[str]) -> bool:
    """Whether the kernel does not show which disks hold the target: ZFS, VxVM and the like."""
    if target.device is None:
        return not target.is_network or target.source.startswith("/dev/")
    return any(_OPAQUE.fullmatch(name) for name in below)


def require_visible(host: Host, plan: Plan, target: MeasuredTarget, workloads: Sequence[Pattern]) -> tuple[str, ...]:
    """Notes on what is not measured. Raises RefusedError where nothing of the plan can show."""
    hidden = find_unseen(host, plan, target, workloads)
    if hidden and len(hidden) == len(plan.changes):
        tunable, why = hidden[0]
        more = f" (and {len(hidden) - 1} more)" if len(hidden) > 1 else ""
        raise RefusedError(f"{tunable}: {why}{more}: a measurement would show nothing of it", hint=_target_hint(why))
    notes = [f"not measured: {tunable}: {why}" for tunable, why in hidden]
    return (*notes, *_unknown_devices(host, plan, target, {tunable for tunable, _ in hidden}))


def _unknown_devices(host: Host, plan: Plan, target: MeasuredTarget, hidden: set[str]) -> Iterable[str]:
    """The devices of which it is unknown whether the target lies on them."""
    below = stack_of(host, target.device) if target.device else frozenset()
    if not is_opaque(target, below):
        return
    devices = (_device_of(one) for one in plan.changes if one.tunable not in hidden)
    for device in dict.fromkeys(device for device in devices if device is not None and device not in below):
        where = target.source or target.device or target.file_system
        yield f"whether {device} is below {target.path} is unknown: {where} does not show its disks"


def _target_hint(why: str) -> str:
    if "written pages" in why:
        return "no workload of the library writes through the page cache: leave the tunable out of the profile"
    if "page cache" in why:
        return "--workload buffered.seq-1m-r100 reads through an empty page cache"
    if "not below" in why:
        return "--target takes a directory on the device that is changed; --set chooses other devices"
    return "--target takes a directory that is mounted over the network; or --command 'iperf3 -c PEER -t 2 -J'"


def stack_of(host: Host, device: str) -> frozenset[str]:
    """The device, what it lies on down to the disks (partition, md, LVM, multipath, bcache, the file of a loop device,
    the members of a btrfs file system), and the partitions and holders between. ``device`` is a kernel name."""
    found = {device}
    pending = [device]
    while pending:
        one = pending.pop()
        for name in (*lower_devices(host, one), *_btrfs_members(host, one)):
            if name not in found:
                found.add(name)
                pending.append(name)
    return frozenset(found)


def _btrfs_members(host: Host, device: str) -> tuple[str, ...]:
    """All devices of the btrfs file system that one belongs to (/sys/fs/btrfs/UUID/devices)."""
    for uuid in host.names("/sys/fs/btrfs"):
        members = tuple(host.names(f"/sys/fs/btrfs/{uuid}/devices"))
        if device in members:
            return members
    return ()
