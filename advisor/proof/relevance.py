"""What of a plan the measured target can show: the devices below it, the way to it, the page cache; and how a change
may be toggled, by what each tunable needs and not by what the profile declares alone.

A change that nothing of the session can show is no claim: where all are so the session is refused, where some are they
are named.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change, Plan
from advisor.profiles.profile import Profile
from advisor.profiles.requested import toggle_needed
from advisor.proof.records import Arm, ToggleClass
from advisor.proof.target import MeasuredTarget, lower_devices
from advisor.proof.workloads import Pattern
from advisor.reach import Passed, Peers, await_gate, gate, peers_of, up_links
from advisor.reach.addresses import Peer as Other
from advisor.transaction.reachability import links_at_risk
from advisor.tunables import parse_tunable

# The way that is measured: over which link, and whether it carries what an arm says it should.

WINDOW_SECONDS = 10.0
"""For the other end to answer again, from the links being up."""
LINK_SECONDS = 30.0
"""For the links to have a carrier again."""
_PAUSE_SECONDS = 0.1
_LARGEST_PACKET_BYTES = 65535
_STORAGE = frozenset({"nfs", "iscsi", "nvme"})


class PathCheck:
    """Asks the other end, after each toggle and before anything is measured, whether the path carries the arm's MTU."""

    def __init__(self, host: Host, links: Iterable[str], passing: Sequence[Passed], window_seconds: float) -> None:
        self._host = host
        self._links = up_links(host, frozenset(links))
        self._passing = tuple(passing)
        self._window_seconds = window_seconds

    @property
    def asked(self) -> tuple[str, ...]:
        """The addresses that are asked."""
        return tuple(one.peer.address for one in self._passing)

    def check(self, arm: Arm) -> None:
        """Wait for carrier, then ask. Raises CommandError that names who does not answer what size."""
        deadline = time.monotonic() + LINK_SECONDS
        while down := self._links - up_links(self._host, self._links):
            if time.monotonic() > deadline:
                raise CommandError(f"arm {arm}: {', '.join(sorted(down))} had no carrier after {LINK_SECONDS:g} s")
            time.sleep(_PAUSE_SECONDS)
        after = await_gate(
            self._host, self._links, self._passing, _LARGEST_PACKET_BYTES, window_seconds=self._window_seconds
        )
        if not after.held:
            why = "; ".join(one.why for one in after.failing)
            raise CommandError(f"the path does not carry arm {arm}: {why}", hint="advisor probe shows what it carries")


def path_check(
    host: Host,
    facts: Facts,
    plan: Plan,
    target: MeasuredTarget,
    say: Callable[[str], None],
    *,
    window_seconds: float = WINDOW_SECONDS,
) -> PathCheck | None:
    """The check for a plan that interrupts links; ``None`` where it does not.

    Who is asked: the peer of ``--peer``, else the storage servers behind these links. Raises RefusedError
    where the measured peer is not reached over them, or does not answer even now.
    """
    links = links_at_risk(plan)
    if not links:
        return None
    extra = [target.peer_address] if target.peer_address else []
    found = peers_of(host, facts, links=links, extra=extra)
    outside = next((one for one in found.unprobeable if one.role == "named"), None)
    if outside is not None:
        raise RefusedError(
            f"--peer {outside.what}: {outside.why}: the effect of this profile cannot show there",
            hint="name the peer's address on the link that is changed, or choose the links with --set links=",
        )
    now = gate(Peers(tuple(peer for peer in found.asked if _is_measured(peer, target))))
    for silent in now.failing:
        if silent.peer.role == "named":
            raise RefusedError(
                f"{silent.why}, and that before anything was changed",
                hint="the peer must answer pings (ICMP echoes) at the present MTU: advisor probe shows what is carried",
            )
    check = PathCheck(host, links, now.passing, window_seconds)
    if check.asked:
        names = ", ".join(check.asked)
        say(f"after each toggle, asked whether the path carries the arm's MTU: {names}")
    else:
        say("nobody beyond these links can be asked whether the path carries the arm's MTU")
    return check


def _is_measured(other: Other, target: MeasuredTarget) -> bool:
    if target.peer_address:
        return other.role == "named"
    if target.file_system in ("nfs", "nfs4"):
        return other.role == "nfs" and target.mount_point in other.why
    return other.role in _STORAGE


def require_other_way_in(host: Host, facts: Facts, plan: Plan, *, force: bool) -> None:
    """Raise RefusedError where the ssh session that this runs in goes over a link that the plan interrupts."""
    links = links_at_risk(plan)
    client = ssh_client() if links and not force else None
    if client is None:
        return
    over = [peer for peer in peers_of(host, facts, links=links, extra=[client]).asked if peer.role == "named"]
    if over:
        raise RefusedError(
            f"the ssh session from {client} that this runs in goes over {over[0].link}, which each toggle interrupts",
            hint="log in over another link or the console; --force does it all the same",
        )


def ssh_client() -> str | None:
    """The address from which the ssh session of this process came; sudo removes it from the environment, but not from
    those of its parents."""
    import psutil

    found = os.environ.get("SSH_CONNECTION")
    for parent in psutil.Process().parents():
        with contextlib.suppress(psutil.Error):
            found = found or parent.environ().get("SSH_CONNECTION")
    return found.split()[0] if found else None


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
