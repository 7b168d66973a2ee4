"""Causes in the storage path: a slow member, a full or slow device, a service's own limit, read-ahead."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain, combinations
from statistics import median

from advisor.diagnosis.cause import (
    BINDS_FROM,
    BindingCause,
    asks_group,
    asks_storage,
    cause,
    device_of,
    limit_command,
    name_group,
    percent,
    stalled_share,
)
from advisor.diagnosis.observation import DiskLoad, Observation
from advisor.diagnosis.shared_devices import find_held_groups
from advisor.facts.block.block import multipath_head
from advisor.facts.block.block_graph import is_flash, is_remote, medium_of
from advisor.host.numbers import count_of
from advisor.observe.cgroups import V1_IO_LIMITS

IOSTATS = "Linux kernel documentation, admin-guide/iostats"
PSI = "Linux kernel documentation, accounting/psi"
_WEKA = "weka/tools install/scripts.d/ta/360_disparate_drive_write_latencies.sh"
_NETDATA_DISKS = "netdata/netdata src/health/health.d/disks.conf"
SLOW_MEMBER_TIMES = 3.0
SLOW_PACE_TIMES = 3.0
MORE_TIMES = 1.5
BUSY_FROM = 0.7
FULL_QUEUE_BUSY_FROM = 0.95
FULL_QUEUE_FROM = 0.95
SHALLOW = 4
ALWAYS_BUSY_FROM = 0.9
SERIAL_QUEUE = 1.6
SERIAL_WAIT_FROM = 0.2
SOON_MS = 10.0
"""A server that takes longer for a request is what binds (net.nfs-server)."""
PAGE_BYTES = 4096
_LIMITS = ("read_bytes", "write_bytes", "reads", "writes")
AT_LIMIT_FROM = 0.85
EXACTLY_FROM = 0.97
"""Of a limit: a load of its own seldom comes so near, and a bucket of the kernel's is never further from it."""
FEW_PAGES = 256


def disk_evidence(load: DiskLoad) -> dict[str, float | int | str]:
    """The figures of a device that every verdict on it shows."""
    return {
        "busy_share": load.utilisation,
        "queue": load.queue,
        "wait_ms": load.wait_ms,
        "medium_ms": load.least_ms,
        "requests_per_s": load.requests,
        "bytes_per_s": load.bytes_per_s,
    }


def follow_up(seen: Observation, name: str) -> tuple[str, ...]:
    """What follows from a device that holds its users up: all that lies on it waits, and so does who writes."""
    above = seen.stack.above(name)
    devices = (f"{cause} {one}" for one in (name, *sorted(above)) for cause in ("disk.saturated", "disk.slow"))
    return (*devices, "application.serial")


@cause(
    id="disk.slow-member",
    resource="disk",
    help="repair",
    what="The mean wait of each member of an array, of each path of a map, and of each of several drives of one model, "
    "against its peers.",
    threshold="3 times the median of two or more peers of the same medium (10 times that of a single one) and more "
    "than its medium takes, with no more to do than they have; WEKA calls a drive slow at 10 times the lowest",
    sources=(_WEKA, IOSTATS),
)
def slow_member(seen: Observation) -> Iterator[BindingCause]:
    """A member whose requests take far longer than those of its peers: an array is as fast as its slowest member."""
    found: dict[str, BindingCause] = {}
    members = (
        (group, [seen.loads[name] for name in names if name in seen.loads]) for group, names in _list_peers(seen)
    )
    paths = ((f"the paths of {head}", list(loads)) for head, loads in seen.path_loads.items())
    for group, loads in chain(members, paths):
        for load in loads:
            others = [one.wait_ms for one in loads if one is not load]
            if not others or load.name in found or _is_asked_for_more(load, loads):
                continue
            usual = median(others)
            times = SLOW_MEMBER_TIMES if len(others) > 1 else 10.0
            if load.wait_ms < times * usual or load.wait_ms < 1.5 * load.service_ms or load.wait_ms - usual < 1:
                continue
            share = load.utilisation * (1 - usual / load.wait_ms)
            if share >= BINDS_FROM:
                found[load.name] = slow_member.bind(
                    share,
                    f"{load.name} is {load.wait_ms / usual:.1f} times slower than its {_peers_text(others)} in {group}",
                    device=load.name,
                    evidence={**disk_evidence(load), "peers_wait_ms": usual, "peers": len(others)},
                    advice="Look into the drive, its cable and its slot before any tuning.",
                    commands=look_at(seen, load.name),
                    asks=asks_storage(seen, load.name),
                    explains=(*follow_up(seen, load.name), *_follow_head(seen, load.name)),
                )
    yield from found.values()


def _follow_head(seen: Observation, path: str) -> tuple[str, ...]:
    """What follows at the head of a path of NVMe's own multipath, which lies on it without a link in sysfs."""
    head = multipath_head(path)
    return follow_up(seen, head) if head else ()


def _is_asked_for_more(load: DiskLoad, loads: list[DiskLoad]) -> bool:
    """Whether a device has so much more to do than its peers that its queue is longer for that, and not since it is
    slow: it needs no more of its time for each request. Of an array a slow member has as much to do as the others."""
    others = [one for one in loads if one is not load]
    if load.pace_ms >= 2 * median(one.pace_ms for one in others):
        return False
    more = load.requests > MORE_TIMES * median(one.requests for one in others)
    return more or load.bytes_per_s > 2 * MORE_TIMES * max(1.0, median(one.bytes_per_s for one in others))


def _peers_text(others: list[float]) -> str:
    return "peer" if len(others) == 1 else f"{len(others)} peers"


def _list_peers(seen: Observation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Devices that should answer alike: the members of an array, and disks of one model under like load."""
    for name in seen.stack.devices:
        members = seen.stack.members(name)
        # What caches another medium (bcache, dm-cache, a journal) is no peer of it.
        if name.startswith("bcache") or len({medium_of(seen.stack, one) for one in members}) > 1:
            continue
        if len(members) > 1:
            yield name, members
    models: dict[str, list[str]] = {}
    for disk in seen.facts.disks:
        # Volumes of a provider bear one name, and each has its own grant.
        is_drive = disk.kind not in ("virtio", "xen") and not seen.stack.is_served(disk.name)
        if disk.model and is_drive and disk.name in seen.loads:
            models.setdefault(f"{disk.model}", []).append(disk.name)
    for model, names in models.items():
        rates = [seen.loads[name].requests for name in names]
        if len(names) > 3 and max(rates) < 3 * min(rates):
            yield f"drives of model {model}", tuple(names)


def waited_share(seen: Observation) -> float:
    """The share of time in which tasks waited for storage; without PSI an estimate: CPUs that had nothing to run but
    waited, and tasks that were blocked when they were counted."""
    stall = seen.stall("io")
    if stall is not None:
        return stall
    whole, blocked = seen.cpus.get("all"), seen.span.levels("scheduler", "host", "blocked")
    iowait = (whole.iowait or 0.0) * seen.cpu_count if whole else 0.0
    return min(1.0, max(iowait, sum(blocked) / len(blocked) if blocked else 0.0))


def _is_waited_for(seen: Observation, load: DiskLoad) -> bool:
    """Whether somebody waits for the device. Asynchronous requests count as no stall, so a queue that is never empty
    says so, too; unless the kernel filled it by itself, with writeback or with the check of an array."""
    if waited_share(seen) >= BINDS_FROM:
        return True
    is_always_busy = load.utilisation >= ALWAYS_BUSY_FROM and load.queue >= 4
    return is_always_busy and not _is_filled_by_kernel(seen, load)


def _is_filled_by_kernel(seen: Observation, load: DiskLoad) -> bool:
    """Whether what a device does is for nobody who waits: an array above it is checked or rebuilt, or most of its queue
    are dirty pages under writeback."""
    arrays = {load.name, *seen.stack.above(load.name)}
    if any(seen.word("array", name, "sync_action") not in (None, "idle", "frozen") for name in arrays):
        return True
    rates = seen.disks[load.name]
    written, size = rates.write_bytes_per_s or 0.0, rates.write_size_bytes or 0.0
    pages = seen.span.levels("vm", "host", "nr_writeback")
    under_way = sum(pages) / len(pages) * PAGE_BYTES if pages else 0.0
    return written >= 0.8 * load.bytes_per_s > 0 and under_way >= load.queue * size / 2


def _has_known_medium(seen: Observation, name: str) -> bool:
    """Whether sysfs, which a container may hide, or the device's name shows what it is."""
    return name in seen.stack.devices or name.startswith("nvme")


def _is_lowest(seen: Observation, name: str) -> bool:
    """Whether no device below this one holds it up: then it is the narrowest."""
    return not any(
        below in seen.loads and seen.loads[below].excess >= 0.3 and seen.loads[below].utilisation >= BUSY_FROM
        for below in seen.stack.lowest(name)
    )


@cause(
    id="disk.saturated",
    resource="disk",
    help="hardware",
    what="Utilisation, queue and mean wait of each block device, against the time that its medium takes by itself.",
    threshold="busy 70 % of the time and the wait above the medium's own time (block_graph.service_ms), with tasks "
    "that wait 10 % of the time for storage; or always busy, a queue of 4 that is no writeback and no check of an "
    "array, and twice that time; netdata warns at 98 % of ten minutes",
    sources=(_NETDATA_DISKS, IOSTATS),
)
def saturated(seen: Observation) -> Iterator[BindingCause]:
    """A device that is always busy, with requests that wait for each other; of an array all of whose members are, the
    array."""
    found = {one.device or "": one for one in _find_saturated(seen)}
    for name in seen.stack.devices:
        members = seen.stack.members(name)
        if len(members) > 1 and all(one in found for one in members):
            rows = [found.pop(one) for one in members]
            most = max(rows, key=lambda one: one.share)
            yield saturated.bind(
                sum(one.share for one in rows) / len(rows),
                f"{name} is saturated, with all its {len(members)} members",
                device=name,
                evidence={**most.evidence, "busiest_member": most.device},
                advice=most.advice,
                commands=most.commands,
                asks=asks_storage(seen, name),
                explains=tuple(dict.fromkeys(text for one in members for text in follow_up(seen, one))),
            )
    yield from found.values()


def _find_saturated(seen: Observation) -> Iterator[BindingCause]:
    for name, load in seen.loads.items():
        if load.utilisation < BUSY_FROM or not _is_waited_for(seen, load) or not _is_lowest(seen, name):
            continue
        rotates = not is_flash(seen.stack, (name,))
        share = load.utilisation * load.excess
        if rotates and load.utilisation >= ALWAYS_BUSY_FROM:
            # One arm serves one request at a time: busy is full.
            share = load.utilisation
        # Nobody is seen to wait for a deep queue of requests that each take less than twice the medium's own time.
        if (
            share < (0.3 if waited_share(seen) >= BINDS_FROM else 0.5)
            or _is_slow(seen, load)
            or _members_differ(seen, name)
        ):
            continue
        rates = seen.disks[name]
        is_discarding = _is_discarding(seen, load)
        advice, commands = _advise(seen, load, rotates=rotates)
        yield saturated.bind(
            share,
            f"{name} is busy with discards, {rates.discards_per_s:.0f} a second"
            if is_discarding
            else f"{name} is always busy, with one request after the other"
            if load.queue <= SERIAL_QUEUE
            else f"{name} is saturated: {load.queue:.1f} requests wait or are served at any time",
            device=name,
            evidence={
                **disk_evidence(load),
                **(
                    {"discards_per_s": rates.discards_per_s, "discard_ms": rates.discard_wait_ms}
                    if is_discarding
                    else {}
                ),
            },
            advice=advice,
            commands=commands,
            asks=asks_storage(seen, name),
            explains=follow_up(seen, name),
        )


def _advise(seen: Observation, load: DiskLoad, *, rotates: bool) -> tuple[str, tuple[str, ...]]:
    """What helps a device that is full, by what fills it, and the commands for that."""
    name = load.name
    if _is_discarding(seen, load):
        return (
            "Trim at a quiet time (fstrim.timer) instead of at each deletion (the mount option discard), and delete "
            "less at a time.",
            ("systemctl status fstrim.timer", f"cat /sys/block/{name}/queue/discard_max_bytes"),
        )
    if _works_itself(seen, name):
        return _OWN_WORK, look_at(seen, name)
    if _may_be_flushing(seen, load) and not rotates:
        return (
            "Small writes, one after the other, take longer than the medium: flushes of its cache (fsync), which this "
            "kernel does not count, may be what they wait for. Commit several changes at a time.",
            (f"cat /sys/block/{name}/queue/write_cache",),
        )
    return (
        "Spread the load over more or faster devices, or ask for fewer bytes; advisor limits shows what the path "
        "carries.",
        ("advisor limits",),
    )


def _works_itself(seen: Observation, name: str) -> bool:
    """Whether a mapping or an array waits for its own work, and not for what lies below it, which has room."""
    load = seen.loads[name]
    below = [seen.loads[one] for one in seen.stack.members(name) if one in seen.loads]
    return bool(below) and all(
        2 * one.utilisation <= load.utilisation and 2 * one.wait_ms <= load.wait_ms for one in below
    )


def look_at(seen: Observation, name: str) -> tuple[str, ...]:
    """Commands that show what is wrong with a device: of its drive; of a mapping or an array itself; of a session with
    a server."""
    if seen.stack.members(name):
        own = next((text for head, text in _TOOLS.items() if name.startswith(head)), "cat /proc/mounts")
        return (f"lsblk -s /dev/{name}", own.format(name))
    if is_remote(seen.stack, name) and not name.startswith("nvme"):
        over = next((disk.detail.get("transport") for disk in seen.facts.disks if disk.name == name), None)
        return (_SESSIONS.get(over or "", f"lsblk -S /dev/{name}"), f"journalctl -k --grep {name}")
    return (f"smartctl -a /dev/{name}", f"journalctl -k --grep {name}")


_TOOLS = {
    **{"md": "mdadm --detail /dev/{}", "dm-": "dmsetup table /dev/{}", "drbd": "drbdadm status"},
    **{"bcache": "grep . /sys/block/{}/bcache/state", "loop": "losetup --list"},
}
_SESSIONS = {
    "iscsi": "iscsiadm -m session -P 3",
    "fc": "grep . /sys/class/fc_host/host*/port_state /sys/class/fc_host/host*/speed",
}
_OWN_WORK = (
    "What lies below it has room: look at the work of the mapping itself (encryption, parity, checksums, a delay, a "
    "thin pool or a snapshot) and at the CPUs that do it; of a replica at its peer."
)


def _is_slow(seen: Observation, load: DiskLoad) -> bool:
    """Whether a device completes far fewer requests than its medium could: it is slow, not full."""
    is_slow = load.utilisation >= 0.5 and load.pace_ms > SLOW_PACE_TIMES * load.service_ms
    if is_slow and _may_be_flushing(seen, load):
        return False
    return is_slow and _has_known_medium(seen, load.name) and not _is_discarding(seen, load)


def _may_be_flushing(seen: Observation, load: DiskLoad) -> bool:
    """Whether a device may spend its time on flushes, which kernels before 5.5 do not count: small writes, one or two
    at a time. What they take says nothing of its medium."""
    rates = seen.disks[load.name]
    writes, reads = rates.writes_per_s or 0.0, rates.reads_per_s or 0.0
    small = (rates.write_size_bytes or 0.0) <= 64 * 1024
    return rates.flushes_per_s is None and writes > 4 * reads and small and load.queue <= 2


def _is_discarding(seen: Observation, load: DiskLoad) -> bool:
    """Whether discards are what a device does at least half of its time: what they take says nothing of its medium."""
    rates = seen.disks[load.name]
    under_way = (rates.discards_per_s or 0.0) * (rates.discard_wait_ms or 0.0) / 1000
    return under_way >= max(0.3, load.queue / 2)


def _is_slow_everywhere(seen: Observation, name: str) -> bool:
    """Whether a device has several members and all of them are slow: what they share is, not one of them."""
    members = seen.stack.members(name)
    return (
        len(members) > 1
        and name in seen.loads
        and all(one in seen.loads and _is_slow(seen, seen.loads[one]) for one in members)
    )


def _members_differ(seen: Observation, name: str) -> bool:
    """Whether one member of the device waits far longer than the others: then that one is the answer."""
    waits = [seen.loads[one].wait_ms for one in seen.stack.members(name) if one in seen.loads]
    return any(max(pair) > 10 * max(0.1, min(pair)) for pair in combinations(waits, 2))


@cause(
    id="disk.queue-full",
    resource="disk",
    help="tuning",
    what="The mean queue of flash and of virtual disks against the requests that the kernel takes for it "
    "(nr_requests), and what a SCSI disk is given at once (queue_depth).",
    threshold="95 % of nr_requests while each request takes no longer than its medium; or a queue_depth of at most 4, "
    "and twice as many requests; busy 95 % of the time, with tasks that wait 20 % of the time for storage",
    sources=(
        IOSTATS,
        "Linux kernel documentation, ABI/stable/sysfs-block (nr_requests)",
        "drivers/scsi/scsi_sysfs.c (queue_depth)",
    ),
)
def queue_full(seen: Observation) -> Iterator[BindingCause]:
    """A device that could serve more requests at once than it is given: the others wait for a place."""
    if waited_share(seen) < 0.2:
        return
    for disk in seen.facts.disks:
        load = seen.loads.get(disk.name)
        if load is None or load.utilisation < FULL_QUEUE_BUSY_FROM or not is_flash(seen.stack, (disk.name,)):
            continue
        places, depth = (count_of(text) for text in (disk.queue.get("nr_requests"), disk.detail.get("queue_depth")))
        # The older protocol of USB takes one request at a time, whatever is set.
        is_settable = disk.detail.get("transport") != "usb"
        is_shallow = is_settable and depth is not None and 0 < depth <= SHALLOW and load.queue >= 2 * depth
        is_used_up = places is not None and load.queue >= FULL_QUEUE_FROM * places
        if _is_slow(seen, load) or not (is_shallow or (is_used_up and load.excess < 0.3)):
            continue
        what = (
            f"{disk.name} is given {depth} at once" if is_shallow else f"the queue of {disk.name} has {places} places"
        )
        yield queue_full.bind(
            min(load.utilisation, waited_share(seen)),
            f"{load.queue:.0f} requests are under way or wait, and {what}",
            device=disk.name,
            evidence={**disk_evidence(load), "nr_requests": places, "queue_depth": depth},
            advice="Raise it, up to what the device takes, and measure: a longer queue costs latency.",
            commands=(
                (f"cat /sys/block/{disk.name}/device/queue_depth",)
                if is_shallow
                else (f"advisor plan 'block:{disk.name}:nr_requests>={2 * (places or 0)}'",)
            ),
            asks=asks_storage(seen, disk.name),
            explains=(f"disk.saturated {disk.name}", "application.serial"),
        )


@cause(
    id="disk.slow",
    resource="disk",
    help="repair",
    what="The busy time for each completed request, against what the medium takes.",
    threshold="3 times the medium's own time (block_graph.service_ms) while the device is busy",
    sources=(IOSTATS,),
)
def slow(seen: Observation) -> Iterator[BindingCause]:
    """A device that completes far fewer requests than its kind does, whatever is asked of it."""
    whole = {name for name in seen.stack.devices if _is_slow_everywhere(seen, name)}
    parts = {member for name in whole for member in seen.stack.lowest(name)}
    for name, load in seen.loads.items():
        if not _is_slow(seen, load) or not _is_waited_for(seen, load) or name in parts:
            continue
        if name not in whole and not _is_lowest(seen, name):
            continue
        share = load.utilisation * load.excess
        if share < 0.3:
            continue
        virtual = seen.facts.host.virtualization not in (None, "none") and not seen.stack.members(name)
        what = f"{name} is slow, with all its members" if name in whole else f"{name} is slow"
        yield slow.bind(
            share,
            f"{what}: {load.pace_ms:.1f} ms of its time for each request, where its medium takes "
            f"{load.service_ms:.1f} ms",
            device=name,
            evidence={**disk_evidence(load), "busy_ms_for_each_request": load.pace_ms},
            advice="Ask who provides this storage: its own limit, or other tenants, hold it up."
            if virtual
            else _OWN_WORK
            if _works_itself(seen, name)
            else "Look into the device and what lies behind it (drive, controller, fabric) before any tuning.",
            commands=("advisor limits",) if virtual else look_at(seen, name),
            asks=asks_storage(seen, name),
            explains=follow_up(seen, name),
            help="tenant" if virtual else "repair",
        )


@cause(
    id="disk.cgroup-limit",
    resource="disk",
    help="tuning",
    what="Bytes and requests of each control group and device against its io.max, or blkio.throttle of version 1, and "
    "the group's own stalls; what io.cost (io.weight), io.latency and the weights of BFQ hold back.",
    threshold="85 % of a limit, and (where it is counted) the group waits for storage 10 % of the time; 97 % where it "
    "does not, and no writeback is what is held; requests held "
    "back by io.cost 10 % of the time; a depth of io.latency below max, and stalls of 10 %; at a full device with BFQ "
    "stalls of 50 % and half the weight of who moves the most; of all these, limits alone were seen live",
    sources=(
        "Linux kernel documentation, admin-guide/cgroup-v2, IO (io.max, io.cost, io.latency, io.weight)",
        "Linux kernel documentation, admin-guide/cgroup-v1/blkio-controller",
        "Linux kernel documentation, block/bfq-iosched",
    ),
)
def cgroup_limit(seen: Observation) -> Iterator[BindingCause]:
    """A service that reaches the limit of its own control group, or waits for its share of a device."""
    yield from _at_limits(seen)
    for held in find_held_groups(seen):
        yield cgroup_limit.bind(
            held.share,
            held.title,
            device=device_of(seen, held.number),
            evidence={"cgroup": held.path, **{key: value for key, value in held.evidence.items() if value is not None}},
            advice=held.advice,
            commands=limit_command(
                seen, held.path, held.properties, file=held.file, controller="blkio", file_v1="blkio.weight"
            ),
            asks=asks_group(seen, held.path, "read_bytes", "write_bytes"),
            # What is full by itself stays an answer: the weights only decide who waits for it.
            explains=("application.serial", "memory.dirty-limit"),
        )


def _at_limits(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("cgroup-io"):
        path, _, number = name.rpartition(" ")
        used = {}
        for field in _LIMITS:
            limit = seen.level("cgroup-io", name, f"{field}_max")
            rate = seen.per_second("cgroup-io", name, field)
            if limit and rate is not None:
                used[field] = (rate / limit, rate, limit)
        if not used:
            continue
        field, (part, rate, limit) = max(used.items(), key=lambda one: one[1][0])
        stalled = stalled_share(seen, path)
        share = part if stalled is None else stalled
        if part < AT_LIMIT_FROM or (share < BINDS_FROM and not _is_held_exactly(seen, field, part)):
            continue
        device = device_of(seen, number)
        yield cgroup_limit.bind(
            share if share >= BINDS_FROM else min(1.0, part),
            f"{name_group(path)} is held up by the limit of its own control group on {device}",
            device=device,
            evidence={"cgroup": path, f"{field}_per_s": rate, "limit_per_s": limit, "used_share": part},
            advice="Raise or remove the limit (IOReadBandwidthMax=, IOWriteIOPSMax=, …), if it is not meant.",
            commands=limit_command(
                seen,
                path,
                "IOReadBandwidthMax,IOWriteBandwidthMax,IOReadIOPSMax,IOWriteIOPSMax",
                file="io.max",
                controller="blkio",
                file_v1=V1_IO_LIMITS[f"{field}_max"],
            ),
            asks=asks_group(seen, path, "read_bytes", "write_bytes"),
            explains=(*follow_up(seen, device), "memory.dirty-limit"),
        )


def _is_held_exactly(seen: Observation, field: str, part: float) -> bool:
    """Whether a group without stalls moves just what its limit admits, and waits for it: asynchronous requests are no
    stall. Pages under writeback are held for nobody who waits."""
    if part < EXACTLY_FROM:
        return False
    pages = seen.span.levels("vm", "host", "nr_writeback")
    return not field.startswith("write") or bool(pages and sum(pages) / len(pages) < FEW_PAGES)


@cause(
    id="disk.read-ahead",
    resource="disk",
    help="tuning",
    what="Bytes that a disk read, against what processes asked for by read(2) and by faults on mapped files; and the "
    "mean size of its reads against read_ahead_kb.",
    threshold="4 times what was asked for, by reads of at least half of read_ahead_kb (256 KiB or more) that "
    "come from read(2) or faults",
    sources=("Linux kernel documentation, admin-guide/mm and sysctl/vm; mm/readahead.c", "proc_pid_io(5), rchar"),
)
def read_ahead(seen: Observation) -> Iterator[BindingCause]:
    """A device that reads far more than anybody asked for: what is read ahead is thrown away."""
    chars = [seen.rose("process", name, "read_chars") for name in seen.span.names("process")]
    faults = seen.per_second("vm", "host", "pgmajfault")
    stall = seen.stall("io")
    if not any(chars) or faults is None or (stall is not None and stall < BINDS_FROM):
        return
    asked = sum(one or 0 for one in chars) / seen.span.seconds_of("process") + faults * PAGE_BYTES
    for name, load in seen.loads.items():
        ahead = seen.stack.devices[name].read_ahead_kb if name in seen.stack.devices else None
        rates = seen.disks[name]
        if ahead is None or ahead < 256 or seen.stack.members(name) or not rates.read_size_bytes:
            continue
        read = rates.read_bytes_per_s or 0.0
        if not _is_read_by_pages(seen, rates.reads_per_s or 0.0, read, faults):
            continue
        if read < 4 * asked or rates.read_size_bytes < ahead * 512 or load.utilisation < 0.3:
            continue
        yield read_ahead.bind(
            load.utilisation * (1 - asked / read),
            f"{name} reads {read / max(asked, 1):.0f} times as much as is asked for: read-ahead thrashes",
            device=name,
            evidence={
                "read_bytes_per_s": read,
                "asked_bytes_per_s": asked,
                "read_size_bytes": rates.read_size_bytes,
                "read_ahead_kb": ahead,
                "major_faults_per_s": faults,
            },
            advice="Less read-ahead for random reads; the program may also advise the kernel (MADV_RANDOM).",
            commands=(f"advisor plan block:{name}:read_ahead_kb=128",),
            asks=asks_storage(seen, name),
            explains=(*follow_up(seen, name), "memory.pressure"),
        )


def _is_read_by_pages(seen: Observation, reads_per_s: float, read_bytes_per_s: float, faults_per_s: float) -> bool:
    """Whether the requests of a device can come from read(2) or from faults at all: each is asked for by one of these,
    or by a few bytes. Asynchronous reads (libaio, io_uring) and those of the kernel's own threads (an NFS server, a
    check of an array) count as neither, and nothing is read ahead for them."""
    seconds = seen.span.seconds_of("process")
    asked = 0.0
    for name in seen.span.names("process"):
        read, chars = (seen.rose("process", name, field) or 0 for field in ("read_bytes", "read_chars"))
        if seconds and read / seconds >= read_bytes_per_s / 10:
            asked += chars / seconds
    return 2 * faults_per_s >= reads_per_s or asked >= 512 * reads_per_s


@cause(
    id="application.serial",
    resource="application",
    help="application",
    what="Stalls for storage while the busiest device, or an NFS mount, has one request at a time and is not slow.",
    threshold="stalled 20 % of the time and a queue of at most 1.6 on a device that serves many requests at once "
    "and is busy for a third of what is waited; on a mount whose server answers within 10 ms and is asked half of it",
    sources=(IOSTATS, PSI, "mountstats(8)"),
)
def serial(seen: Observation) -> Iterator[BindingCause]:
    """Requests that are sent one after the other: the device serves each quickly and waits for the next."""
    yield from _serial_mounts(seen)
    waited = waited_share(seen)
    busiest = max(
        (one for one in seen.loads.values() if not seen.stack.members(one.name) and not _waits_below(seen, one)),
        key=lambda one: one.utilisation,
        default=None,
    )
    if busiest is None or waited < SERIAL_WAIT_FROM or not _has_known_medium(seen, busiest.name):
        return
    if busiest.queue > SERIAL_QUEUE or busiest.utilisation < (0.15 if seen.stall("io") is not None else 0.5):
        return
    if _is_slow(seen, busiest) or not is_flash(seen.stack, (busiest.name,)):
        return
    if busiest.utilisation < waited / 3:
        # Most of the time something else is waited for: a server, a limit.
        return
    yield serial.bind(
        max(busiest.utilisation, waited),
        f"Requests to {busiest.name} are sent one at a time: the device idles between them",
        device=busiest.name,
        evidence={**disk_evidence(busiest), "stalled_share": seen.stall("io")},
        advice="More threads or a deeper queue of asynchronous requests in the application; the device has room.",
        asks=asks_storage(seen, busiest.name),
    )


def _serial_mounts(seen: Observation) -> Iterator[BindingCause]:
    """NFS mounts that have one request at a time under way, each of which their server answers soon."""
    waited, seconds = waited_share(seen), seen.span.seconds_of("nfs")
    local = max((one.utilisation for one in seen.loads.values()), default=0.0)
    for target in seen.span.names("nfs"):
        requests, answered = (seen.rose("nfs", target, name) or 0 for name in ("requests", "rtt_ms"))
        queue = answered / (seconds * 1000) if seconds else 0.0
        least = waited / 2 if seen.stall("io") is not None else 0.5
        is_waited_for = waited >= SERIAL_WAIT_FROM and least <= queue <= SERIAL_QUEUE
        if not is_waited_for or local >= waited / 2 or answered >= SOON_MS * requests:
            continue
        yield serial.bind(
            min(1.0, max(queue, waited)),
            f"Requests to {seen.word('nfs', target, 'source')} are sent one at a time: each waits for the answer "
            "to the one before",
            device=target,
            evidence={
                "queue": queue,
                "rtt_ms": answered / requests,
                "requests_per_s": requests / seconds,
                "stalled_share": waited,
            },
            advice="More threads or asynchronous requests at a time; more read-ahead for what is read in order.",
            commands=("nfsiostat 1 3",),
        )


def _waits_below(seen: Observation, load: DiskLoad) -> bool:
    """Whether a loop device waits for what holds its file, and not for its own thread or the page cache."""
    below = (seen.loads[name] for name in seen.stack.lowest(load.name) if name in seen.loads)
    return any(one.utilisation >= load.utilisation / 2 for one in below)


FLUSHES_FROM = 10
"""A second."""
FLUSHING_FROM = 0.3


@cause(
    id="disk.flushes",
    resource="disk",
    help="application",
    what="How many flushes of its cache each disk is asked for, and the share of time in which it is busy with one.",
    threshold="10 a second, under way 30 % of the time and half of the time in which the device is busy, with tasks "
    "that wait 20 % of the time for storage; counted since Linux 5.5",
    sources=(IOSTATS, "Linux kernel documentation, block/writeback_cache_control"),
)
def flushes(seen: Observation) -> Iterator[BindingCause]:
    """Writers that wait until the cache of the drive is on its medium, for each small write: fsync after fsync."""
    if waited_share(seen) < 0.2:
        return
    for name, load in seen.loads.items():
        rates = seen.disks[name]
        if seen.stack.members(name) or not rates.flushes_per_s or rates.flush_wait_ms is None:
            continue
        busy = min(1.0, rates.flushes_per_s * rates.flush_wait_ms / 1000)
        if rates.flushes_per_s < FLUSHES_FROM or busy < FLUSHING_FROM or busy < load.utilisation / 2:
            continue
        if (rates.writes_per_s or 0.0) > 20 * rates.flushes_per_s:
            continue
        yield flushes.bind(
            max(busy, min(waited_share(seen), load.utilisation)),
            f"Writers to {name} wait for its cache to be flushed, {rates.flushes_per_s:.0f} times a second",
            device=name,
            evidence={
                "flushes_per_s": rates.flushes_per_s,
                "flush_ms": rates.flush_wait_ms,
                "writes_per_s": rates.writes_per_s,
                "write_size_bytes": rates.write_size_bytes,
                "stalled_share": seen.stall("io"),
            },
            advice="Commit several changes at a time (fewer calls of fsync); a drive whose cache survives a power cut "
            "flushes at once.",
            commands=(f"cat /sys/block/{name}/queue/write_cache",),
            asks=asks_storage(seen, name),
            explains=follow_up(seen, name),
        )


FULL_FROM = 0.99
NEARLY_FULL_FROM = 0.9
_FULL_WITHIN_S = 3600


@cause(
    id="disk.filesystem-full",
    resource="disk",
    help="repair",
    what="Space and inodes of file systems on this host's devices and in its memory, and how fast they fill.",
    threshold="99 % of what ordinary users may have, or of the inodes; or 90 % and full within an hour at the rate "
    "of the span (netdata warns at 90 %, and where it would be full within hours)",
    sources=(_NETDATA_DISKS, "df(1)"),
    is_error=True,
)
def filesystem_full(seen: Observation) -> Iterator[BindingCause]:
    """Writers fail, or will soon: allocation is slow near full, too."""
    for target in seen.span.names("space"):
        used, free = (seen.span.levels("space", target, f"{one}_bytes") for one in ("used", "available"))
        inodes, free_inodes = (seen.level("space", target, name) for name in ("inodes", "free_inodes"))
        if not used or not free or not used[-1] + free[-1]:
            continue
        share = used[-1] / (used[-1] + free[-1])
        of_inodes = 1 - (free_inodes or 0) / inodes if inodes else 0.0
        fills_per_s = (free[0] - free[-1]) / seen.span.seconds if len(free) > 1 and seen.span.seconds else 0.0
        full_in_s = free[-1] / fills_per_s if fills_per_s > 0 else None
        is_filling = full_in_s is not None and full_in_s <= _FULL_WITHIN_S and share >= NEARLY_FULL_FROM
        if share < FULL_FROM and of_inodes < FULL_FROM and not is_filling:
            continue
        is_in_memory = seen.word("space", target, "kind") == "tmpfs"
        lacks_inodes = of_inodes >= FULL_FROM > share
        what = "has no inodes left" if lacks_inodes else "is full" if share >= FULL_FROM else "is filling"
        yield filesystem_full.bind(
            max(share, of_inodes),
            f"The file system {target} {what}: {percent(of_inodes if lacks_inodes else share, 1)} used",
            of="inodes" if lacks_inodes else "space",
            evidence={
                "mounted_on": target,
                "used_share": share,
                "inodes_used_share": of_inodes,
                "available_bytes": free[-1],
                **({} if full_in_s is None and len(free) > 1 else {"full_in_s": full_in_s}),
            },
            advice="Delete files that are not needed: each takes an inode, whatever its size. ext4 has as many as it "
            "was made with; XFS takes more by xfs_growfs -m."
            if lacks_inodes
            else "It lies in memory: delete files, find who writes them, or mount it again with a larger size=."
            if is_in_memory
            else "Free space or grow it: near full allocation is slow, and at the end writers fail.",
            commands=(
                *(() if lacks_inodes else (f"df -h {shlex.quote(target)}",)),
                f"df -i {shlex.quote(target)}",
                *((f"du --inodes -x -d 2 {shlex.quote(target)}",) if lacks_inodes else ()),
            ),
            # Who fills it: one that is full and at rest is nobody's of this moment.
            asks=asks_storage(seen) if full_in_s is not None else None,
        )
