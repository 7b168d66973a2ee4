"""Parts that fail or do not serve: drives, paths, arrays, memory modules. They come before any performance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from advisor.diagnosis.cause import BINDS_FROM, BindingCause, asks_storage, cause
from advisor.diagnosis.observation import Observation
from advisor.diagnosis.storage import follow_up
from advisor.host.numbers import count_noun

_NETDATA_NVME = "netdata/netdata src/health/health.d/nvme.conf (critical_warning)"
_SMART_LOG = "NVM Express Base Specification, SMART / Health Information; struct nvme_smart_log of libnvme"
_HEAT_BIT = 1 << 1
_WARNINGS: Mapping[int, str] = {
    0: "its spare blocks are used up",
    2: "it is no longer reliable",
    3: "it takes no more writes",
    4: "its cache would not survive a power cut",
    5: "its persistent memory region takes no more writes",
}
"""Bits of the critical warning; heat, bit 1, is disk.throttled-by-heat."""
_HEAT_TIMES: Mapping[str, int] = {"light_throttled_s": 1, "heavy_throttled_s": 1, "critical_temperature_minutes": 60}
"""Counters, and the seconds that each step of them stands for."""
_MD = "Linux kernel documentation, admin-guide/md"
_EDAC = "Linux kernel documentation, admin-guide/RAS"
_BAD_POOLS = frozenset({"DEGRADED", "FAULTED", "UNAVAIL", "SUSPENDED", "REMOVED", "OFFLINE"})
_SYNC = frozenset({"resync", "recover", "reshape", "repair"})
_BROKEN = "broken"
"""The state of an array without redundancy, such as of level 0, that misses a member."""
_STATE_COMMANDS = {
    "dm-multipath": ("multipath -ll", "journalctl -k --grep multipath"),
    "lvm": ("lvs -a -o +lv_health_status,devices",),
}
_FAILED_STATES = frozenset({"degraded", "failed"})
_REBUILDING = frozenset({"recovering", "resyncing", "reshaping", "repairing"})


@cause(
    id="disk.failing",
    resource="disk",
    help="repair",
    what="SCSI commands that failed or timed out, failures of multipath paths, media errors of NVMe drives, and "
    "requests that failed or damage to file systems by the kernel's log, during the span; the critical warning of NVMe "
    "drives (log page 0x02).",
    threshold="any command that timed out, path that failed, media error, error in the log, or critical warning but "
    "heat; 5 failed commands that are 1 % of all (status queries fail, too)",
    sources=(
        "drivers/scsi/scsi_sysfs.c (iotmo_cnt, ioerr_cnt)",
        "drivers/md/dm-mpath.c, multipath_status",
        _NETDATA_NVME,
        _SMART_LOG,
        "block/blk-core.c, blk_errors; fs/buffer.c",
    ),
    is_error=True,
)
def failing(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("scsi"):
        late, wrong = (seen.rose("scsi", name, field) or 0 for field in ("iotmo_cnt", "ioerr_cnt"))
        sent = seen.rose("scsi", name, "iorequest_cnt") or 0
        if late or (wrong >= 5 and wrong >= sent / 100):
            yield failing.bind(
                (late + wrong) / (sent or late + wrong),
                f"{name}: {count_noun(late, 'command')} timed out and {wrong} failed",
                of="requests",
                device=name,
                evidence={"timed_out": late, "failed": wrong, "sent": sent},
                advice="Look into the drive, its cable and its slot; replace it if it is failing. Check the backups.",
                commands=(f"smartctl -a /dev/{name}", f"journalctl -k --grep {name}"),
                asks=asks_storage(seen, name),
                explains=(f"disk.slow-member {name}", *follow_up(seen, name)),
            )
    for name in seen.span.names("path"):
        failures = seen.rose("path", name, "failures")
        if failures:
            yield failing.bind(
                0.0,
                f"A path of {name.partition(' ')[0]} failed {count_noun(failures, 'time')}",
                of="requests",
                device=name.partition(" ")[0],
                evidence={"path": name.rpartition(" ")[2], "failures": failures},
                advice="Look into the port, the cable and the fabric of this path.",
                commands=("multipath -ll",),
            )
    for controller in seen.span.names("smart"):
        errors = seen.rose("smart", controller, "media_errors") or 0
        bits = int(seen.level("smart", controller, "critical_warning") or 0)
        says = [text for bit, text in _WARNINGS.items() if bits >> bit & 1]
        if not errors and not says:
            continue
        disks = _disks_of(seen, controller)
        yield failing.bind(
            0.0,
            f"{controller} says that {says[0]}"
            if says
            else f"{controller} could not read or write its media {errors} times",
            of="requests",
            device=disks[0] if len(disks) == 1 else controller,
            evidence={
                "media_errors": errors,
                "critical_warning": f"{bits:#04x}",
                "spare_percent": seen.level("smart", controller, "spare_percent"),
                "spare_threshold_percent": seen.level("smart", controller, "spare_threshold_percent"),
                "used_percent": seen.level("smart", controller, "used_percent"),
            },
            advice="Check the backups and replace the drive; no setting mends it.",
            commands=(f"smartctl -a /dev/{controller}",),
            explains=tuple(text for name in disks for text in (f"disk.slow-member {name}", *follow_up(seen, name))),
        )

    yield from _failing_by_log(seen)


def _failing_by_log(seen: Observation) -> Iterator[BindingCause]:
    """Devices of which the kernel's log says in the span that requests failed or their file system is damaged; not
    those that a counter shows already."""
    counted = {name for name in seen.span.names("scsi") if seen.rose("scsi", name, "ioerr_cnt")}
    logs = [one.words.get("log-error", {}) for one in seen.span.samples if "log-error" in one.counters]
    new: dict[str, list[Mapping[str, str]]] = {}
    for number, words in logs[-1].items() if len(logs) > 1 else ():
        if number not in logs[0]:
            name = words.get("device", "?")
            disks = _disks_of(seen, name)
            new.setdefault(disks[0] if len(disks) == 1 else seen.stack.whole(name), []).append(words)
    for name, rows in new.items():
        if name in counted:
            continue
        damaged = sum(one.get("kind") == "filesystem" for one in rows)
        yield failing.bind(
            0.0,
            f"The kernel reports damage to the file system on {name}"
            if damaged == len(rows)
            else f"The kernel reports that requests to {name} failed",
            of="requests",
            device=name,
            evidence={"errors_in_log": len(rows), "last": rows[-1].get("text")},
            advice="Look into the device and what lies behind it, and check the backups; then check the file system.",
            commands=(f"journalctl -k --grep {name}",),
            asks=asks_storage(seen, name),
            explains=(f"disk.slow-member {name}", *follow_up(seen, name)),
        )


def _disks_of(seen: Observation, controller: str) -> tuple[str, ...]:
    """The namespaces of an NVMe controller that are disks of this host."""
    return tuple(name for name in seen.stack.devices if re.fullmatch(rf"{controller}n[0-9]+", name))


@cause(
    id="disk.throttled-by-heat",
    resource="disk",
    help="repair",
    what="Time in which an NVMe drive slowed itself down for its heat, and its own warning of it (log page 0x02).",
    threshold="throttled, or above its critical temperature, for 10 % of the interval, or its warning at the end",
    sources=(_SMART_LOG, _NETDATA_NVME),
    is_error=True,
)
def throttled_by_heat(seen: Observation) -> Iterator[BindingCause]:
    seconds = seen.span.seconds_of("smart")
    for controller in seen.span.names("smart"):
        rises = {field: seen.rose("smart", controller, field) or 0 for field in _HEAT_TIMES}
        throttled = sum(rises[field] * unit for field, unit in _HEAT_TIMES.items())
        is_hot = bool(int(seen.level("smart", controller, "critical_warning") or 0) & _HEAT_BIT)
        share = min(1.0, throttled / seconds) if seconds else 0.0
        if share < BINDS_FROM and not is_hot:
            continue
        disks = _disks_of(seen, controller)
        degrees = seen.level("smart", controller, "temperature_celsius")
        yield throttled_by_heat.bind(
            share,
            f"{controller} slows itself down for its heat" if throttled else f"{controller} is too hot",
            device=disks[0] if len(disks) == 1 else controller,
            evidence={"temperature_celsius": degrees, **rises},
            advice="Cooling first: fans, air flow, the slot next to a hot card. Measurements are invalid meanwhile.",
            commands=(f"smartctl -a /dev/{controller}",),
            explains=tuple(text for name in disks for text in (f"disk.slow-member {name}", *follow_up(seen, name))),
        )


@cause(
    id="array.degraded",
    resource="array",
    help="repair",
    what="Members that an array misses; the state of ZFS pools.",
    threshold="any; an array that is being rebuilt is array.rebuilding; a pool that is DEGRADED, FAULTED or worse",
    sources=(_MD, "netdata/netdata src/health/health.d/zfs.conf"),
    is_error=True,
)
def degraded(seen: Observation) -> Iterator[BindingCause]:
    states = {array.device: (array.name, array.state, array.missing) for array in seen.facts.arrays}
    managers: dict[str, str] = {array.device: array.manager for array in seen.facts.arrays}
    for device in dict.fromkeys((*seen.span.names("array"), *states)):
        name, state, missing = states.get(device, (device, None, None))
        lost = seen.level("array", device, "degraded")
        action = seen.word("array", device, "sync_action")
        if action in _SYNC or state in _REBUILDING:
            continue
        is_broken = seen.word("array", device, "state") == _BROKEN
        count = lost if lost is not None else (missing or 1) if is_broken or state in _FAILED_STATES else 0
        if count:
            manager = managers.get(device, "md")
            yield degraded.bind(
                0.0,
                f"{name} has lost {count_noun(count, 'path')}"
                if manager == "dm-multipath"
                else f"{name} misses {count:.0f} of its members",
                device=name,
                evidence={"missing_members": count, "state": state or None, "sync_action": action or None},
                advice="Look into the port, the cable and the fabric of the path: one more failure stops all."
                if manager == "dm-multipath"
                else "It has no redundancy, and what was on the missing member is lost: check the member, its cable "
                "and the backups."
                if is_broken
                else "Replace the failed member and let the array rebuild: until then another failure may lose data.",
                commands=_STATE_COMMANDS.get(manager, ("advisor scan",))
                if manager != "md"
                else (f"mdadm --detail /dev/{name}",),
            )
    for pool in seen.span.names("zfs"):
        pool_state = seen.word("zfs", pool, "state")
        if pool_state in _BAD_POOLS:
            yield degraded.bind(
                0.0,
                f"ZFS pool {pool} is {pool_state}",
                device=pool,
                evidence={"state": pool_state},
                advice="Replace the failed member (zpool replace) and let the pool resilver; a suspended pool waits "
                "for its devices to come back (zpool clear).",
                commands=(f"zpool status -v {pool}",),
            )


@cause(
    id="array.rebuilding",
    resource="array",
    help="repair",
    what="Arrays that are resynchronised, recovered or reshaped; a check only where it holds others up.",
    threshold="any; of a check: stalls of 10 % of the time",
    sources=(_MD,),
    is_error=True,
)
def rebuilding(seen: Observation) -> Iterator[BindingCause]:
    states = {array.device: array for array in seen.facts.arrays}
    for device in dict.fromkeys((*seen.span.names("array"), *states)):
        array = states.get(device)
        action = seen.word("array", device, "sync_action")
        if action is None and array is not None and array.state in _REBUILDING:
            action = array.state
        stall = seen.stall("io") or 0.0
        if action is None or (action not in (*_SYNC, *_REBUILDING) and not (action == "check" and stall >= BINDS_FROM)):
            continue
        done, every = (seen.level("array", device, f"sync_{what}_sectors") for what in ("done", "all"))
        progress = done / every if done is not None and every else None
        speed = seen.level("array", device, "sync_kib_per_s")
        # The member that is written has other work than those that are read; a check reads all of them alike.
        follows = ("disk.saturated", "disk.slow", *(() if action == "check" else ("disk.slow-member",)))
        members = tuple(f"{cause} {name}" for name in seen.stack.lowest(device) for cause in follows)
        yield rebuilding.bind(
            max(stall, *(seen.loads[one].utilisation for one in seen.stack.members(device) if one in seen.loads), 0.0),
            f"{array.name if array else device} is being {_PARTICIPLES.get(action, action)}",
            device=array.name if array else device,
            evidence={
                "sync_action": action,
                "done_share": progress,
                "sync_bytes_per_s": speed * 1024 if speed is not None else None,
                "missing_members": seen.level("array", device, "degraded") or 0,
                "stalled_share": stall,
            },
            advice="Wait until it is done before measuring or tuning; dev.raid.speed_limit_max bounds what it takes.",
            commands=("cat /proc/mdstat", "sysctl dev.raid.speed_limit_min dev.raid.speed_limit_max"),
            explains=(*members, *follow_up(seen, device)),
        )


_PARTICIPLES = {
    **{"resync": "resynchronised", "recover": "rebuilt", "reshape": "reshaped", "repair": "repaired"},
    **{"check": "checked", "recovering": "rebuilt", "resyncing": "resynchronised", "reshaping": "reshaped"},
    "repairing": "repaired",
}


@cause(
    id="memory.errors",
    resource="memory",
    help="repair",
    what="Errors that memory controllers corrected, or could not correct, during the span.",
    threshold="any",
    sources=("netdata/netdata src/health/health.d/memory.conf", _EDAC),
    is_error=True,
)
def memory_errors(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("edac"):
        corrected, lost = (
            sum(seen.rose("edac", name, field) or 0 for field in (f"{kind}_count", f"{kind}_noinfo_count"))
            for kind in ("ce", "ue")
        )
        if corrected or lost:
            yield memory_errors.bind(
                0.0,
                f"{count_noun(lost, 'error')} of memory could not be corrected"
                if lost
                else f"{count_noun(corrected, 'error')} of memory {'was' if corrected == 1 else 'were'} corrected",
                device=name,
                evidence={"corrected": corrected, "uncorrected": lost},
                advice="Find the module and replace it.",
                commands=("grep . /sys/devices/system/edac/mc/mc*/dimm*/dimm_ce_count", "journalctl -k --grep edac"),
            )
