"""Counters of parts that fail: kinds ``edac``, ``fc``, ``rdma`` and ``scsi``, paths of multipath maps: ``path``,
and mappings that are suspended: ``mapping``.

Source: Linux Documentation/admin-guide/RAS; ABI/testing/sysfs-class-infiniband, sysfs-class-fc_host (drivers/scsi/
scsi_transport_fc.c), sysfs-block-dm; drivers/scsi/scsi_sysfs.c; multipath_status of drivers/md/dm-mpath.c. Widths of
InfiniBand's own counters: InfiniBand Architecture Specification, PortCounters; they stop at their largest value and do
not wrap.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable, Mapping

from advisor.facts.block.dm import STATUS
from advisor.facts.block.dm_text import parse_dm_lines
from advisor.host import Host, Missing
from advisor.host.numbers import whole_number
from advisor.host.patterns import lazy_regex
from advisor.host.trace_instance import read_kernel_log
from advisor.observe.cpus import read_numbers
from advisor.observe.sample import LARGEST, Reading, parse_counts

_EDAC = ("ce_count", "ue_count", "ce_noinfo_count", "ue_noinfo_count")
_SCSI = ("ioerr_cnt", "iotmo_cnt", "iorequest_cnt", "iodone_cnt")
_STOPS_AT: Mapping[str, int] = {
    **dict.fromkeys(("local_link_integrity_errors", "excessive_buffer_overrun_errors"), 0xF),
    **dict.fromkeys(("link_error_recovery", "link_downed"), 0xFF),
    **dict.fromkeys(("port_rcv_constraint_errors", "port_xmit_constraint_errors"), 0xFF),
    **dict.fromkeys(("symbol_error", "port_rcv_errors", "port_rcv_remote_physical_errors"), 0xFFFF),
    **dict.fromkeys(("port_rcv_switch_relay_errors", "port_xmit_discards", "VL15_dropped"), 0xFFFF),
    "port_xmit_wait": 0xFFFFFFFF,
}
_NO_COUNTER = frozenset({"lifespan", "seconds_since_last_reset"})
_SCSI_DISK = re.compile(r"sd[a-z]+")


def parse_hexadecimal(text: str) -> int | None:
    """A counter that is printed as ``0x1a``; None for all ones (the driver does not count) or what is no number."""
    number = whole_number(text, 16)
    return number if number is not None and 0 <= number < LARGEST else None


def parse_paths(words: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """Of the status of a multipath target each path by device number: ``A`` or ``F`` and how often it failed."""
    found = {}
    for device, state, failures in zip(words, words[1:], words[2:], strict=False):
        count = parse_counts([failures])
        if count and state in ("A", "F") and re.fullmatch(r"[0-9]+:[0-9]+", device):
            found[device] = state, count[0]
    return found


def read_memory_errors(host: Host, reading: Reading) -> None:
    """Errors that memory controllers corrected (``ce``) and could not correct (``ue``)."""
    reading.ask("edac")
    top = "/sys/devices/system/edac/mc"
    for name in host.names(top):
        if re.fullmatch(r"mc[0-9]+", name):
            reading.add("edac", name, read_numbers(host, f"{top}/{name}", _EDAC))


def read_adapters(host: Host, reading: Reading) -> None:
    """Fibre Channel hosts and InfiniBand ports, with their state."""
    reading.ask("fc", "rdma")
    for name in host.names("/sys/class/fc_host"):
        place = f"/sys/class/fc_host/{name}"
        counters = {}
        for field in host.names(f"{place}/statistics"):
            text = host.read(f"{place}/statistics/{field}")
            count = None if isinstance(text, Missing) or field in _NO_COUNTER else parse_hexadecimal(text)
            if count is not None:
                counters[field] = count
        reading.add("fc", name, counters, words=_read_words(host, place, ("port_state", "speed")))
    for device in host.names("/sys/class/infiniband"):
        for port in host.names(f"/sys/class/infiniband/{device}/ports"):
            place = f"/sys/class/infiniband/{device}/ports/{port}"
            counters = _read_port(host, f"{place}/counters") | _read_port(host, f"{place}/hw_counters")
            words = _read_words(host, place, ("state", "phys_state", "rate"))
            reading.add("rdma", f"{device}/{port}", counters, words=words)


def _read_port(host: Host, directory: str) -> dict[str, int]:
    """Counters of a port; one that has reached the largest value that it can hold says nothing any more."""
    found = read_numbers(host, directory, tuple(name for name in host.names(directory) if name not in _NO_COUNTER))
    return {field: count for field, count in found.items() if count != _STOPS_AT.get(field)}


def _read_words(host: Host, place: str, names: tuple[str, ...]) -> dict[str, str]:
    texts = {name: host.read(f"{place}/{name}") for name in names}
    return {name: text[:80] for name, text in texts.items() if not isinstance(text, Missing) and text}


def read_scsi(host: Host, reading: Reading) -> None:
    """Commands of each SCSI disk that failed or timed out, and all that were sent; 32 bits each.

    Of a drive without a medium (a card reader, 0 bytes) each look whether there is one now fails.
    """
    reading.ask("scsi")
    for name in host.names("/sys/block"):
        if _SCSI_DISK.fullmatch(name) and host.read_int(f"/sys/block/{name}/size") != 0:
            texts = {field: host.read(f"/sys/block/{name}/device/{field}") for field in _SCSI}
            counts = {field: parse_hexadecimal(text) for field, text in texts.items() if not isinstance(text, Missing)}
            reading.add("scsi", name, {field: count for field, count in counts.items() if count is not None})


def read_paths(host: Host, reading: Reading) -> None:
    """How often each path of a multipath map failed, by ``dmsetup status``; asked only where there is such a map."""
    reading.ask("path")
    uuids = (host.read(f"/sys/block/{name}/dm/uuid") for name in host.names("/sys/block") if name.startswith("dm-"))
    if not any(not isinstance(uuid, Missing) and uuid.startswith("mpath-") for uuid in uuids):
        return
    done = host.run(STATUS)
    if isinstance(done, Missing) or not done.ok:
        reading.note_missing("path", done if isinstance(done, Missing) else f"dmsetup: {done.stderr.strip()[:200]}")
        return
    for name, targets in parse_dm_lines(done.stdout).items():
        for target in targets:
            for device, (state, failures) in (parse_paths(target.words) if target.kind == "multipath" else {}).items():
                word = {"state": "active" if state == "A" else "failed"}
                reading.add("path", f"{name} {device}", {"failures": failures}, words=word)


def read_mappings(host: Host, reading: Reading) -> None:
    """Which mappings of the device mapper are suspended: their requests wait until they are resumed."""
    reading.ask("mapping")
    for name in host.names("/sys/block"):
        suspended = host.read(f"/sys/block/{name}/dm/suspended") if name.startswith("dm-") else ""
        if not isinstance(suspended, Missing) and suspended in ("0", "1"):
            reading.add("mapping", name, words={"suspended": suspended})


# Kind ``clock``: whether the kernel's clock is synchronised, and how many seconds it is ahead of the time since boot.
#
# Source: adjtimex(2), clock_gettime(2); read only, no rights needed.

_TIMEX_WORDS = 64
"""More room than struct timex needs on any architecture."""
_TIME_ERROR = 5


def read_clock(host: Host, reading: Reading) -> None:
    reading.ask("clock")
    if not host.is_live:
        reading.note_missing("clock", "the kernel of the running host alone says whether it is synchronised")
        return
    state = ctypes.CDLL(None, use_errno=True).adjtimex((ctypes.c_long * _TIMEX_WORDS)())
    if state < 0:
        reading.note_missing("clock", "adjtimex is not permitted here")
    else:
        ahead = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
        word = "unsynchronised" if state == _TIME_ERROR else "synchronised"
        reading.add("clock", "host", gauges={"ahead_s": ahead}, words={"state": word})


# Processes that the kernel killed since memory was used up, by its log: kind ``kill``.
#
# Source: mm/oom_kill.c (``Killed process PID (NAME)``, and since 5.0 ``oom-kill:constraint=…,task_memcg=…``);
# Documentation/ABI/testing/dev-kmsg: ``PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT``, where the
# kernel's own priorities are below 8.

_KILLED = lazy_regex(
    r"^[0-7],([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,40};[^\n]{0,80}?"
    r"Killed process ([0-9]{1,10})(?:, UID [0-9]{1,10},)? \(([^\n]{1,40}?)\)(?: total-vm|[.,]|$)"
)
_GROUP = lazy_regex(
    r";oom-kill:constraint=[^\n]{0,2000}?,task_memcg=([^,\n]{1,1000}),task=[^\n]{0,80}?,pid=([0-9]{1,10}),"
)
_MAX_KILLS = 64


def parse_kills(text: str) -> dict[str, dict[str, str]]:
    """The last kills of a log by the sequence number of their record: ``process``, ``pid``, and ``cgroup`` where the
    kernel names it."""
    groups: dict[str, str] = {}
    found: dict[str, dict[str, str]] = {}
    for line in text.split("\n"):
        if "oom-kill:" in line and (group := _GROUP.search(line)):
            groups[group[2]] = group[1]
        elif "Killed process" in line and (killed := _KILLED.match(line)):
            number, pid, name = killed.groups()
            cgroup = groups.pop(pid, "")
            found[number] = {"process": name, "pid": pid} | ({"cgroup": cgroup} if cgroup else {})
    return dict(list(found.items())[-_MAX_KILLS:])


def read_kills(host: Host, reading: Reading, read_log: Callable[[], str | Missing] = read_kernel_log) -> None:
    """Read after the counters of memory: a host that has killed nothing since boot is not asked for its log."""
    vm: Mapping[str, int] = reading.counters.get("vm", {}).get("host", {})
    if not host.is_live or vm.get("oom_kill") == 0:
        return
    text = read_log()
    if isinstance(text, Missing):
        reading.note_missing("kill", f"{text.why}: the kernel's log names the processes that it killed")
        return
    for number, words in parse_kills(text).items():
        reading.add("kill", number, words=words)


# Requests that failed, and damage to file systems, by the kernel's log: kind ``log-error``.
#
# Source: block/blk-core.c and blk-mq.c (blk_errors: ``I/O error, dev sda, sector 8 op 0x0:(READ)``; before 4.20 after
# ``print_req_error:``, ``blk_update_request:`` or ``end_request:``); fs/buffer.c (``Buffer I/O error on dev``);
# drivers/nvme/host/pci.c (``nvme nvme0: I/O 12 QID 3 timeout, aborting``, ``controller is down; will reset``);
# fs/ext4/super.c, fs/xfs/xfs_message.c and xfs_fsops.c, fs/btrfs/messages.c; Documentation/ABI/testing/dev-kmsg.

_RECORD = lazy_regex(r"([0-7]),([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,40};([^\n]{1,400})")
_REQUEST = lazy_regex(
    r"(?:I/O|critical medium|timeout|protection|device offline|critical space allocation) error, dev ([\w!.-]{1,60}),"
)
_BUFFER = lazy_regex(r"Buffer I/O error on dev(?:ice)? ([\w!.-]{1,60}),")
_CONTROLLER = lazy_regex(r"nvme (nvme[0-9]{1,5}): (?:I/O [^\n]{0,80}\btimeout,|controller is down; will reset)")
_FILE_SYSTEM = lazy_regex(
    r"(?:EXT[234]-fs error \(device ([\w!.-]{1,60})\)"
    r"|XFS \(([\w!.-]{1,60})\): (?:[^\n]{0,80}?(?:Corruption|shut(?:ting)? ?down)|log I/O error)"
    r"|BTRFS (?:error|critical) \(device ([\w!.-]{1,60}))"
)
_REMOVABLE = lazy_regex(r"fd[0-9]+|sr[0-9]+|ram[0-9]+")
"""Drives without a medium fail whenever somebody looks for one."""
MOST_ERRORS = 64


def parse_log_errors(text: str) -> dict[str, dict[str, str]]:
    """The last errors of a log by the sequence number of their record: ``device``, ``kind`` (``request`` or
    ``filesystem``) and ``text``."""
    found: dict[str, dict[str, str]] = {}
    for line in text.split("\n"):
        if not any(word in line for word in ("rror", "orruption", "shut", "timeout,", "will reset")):
            continue
        record = _RECORD.match(line)
        if record is None:
            continue
        _, number, says = record.groups()
        request = _REQUEST.search(says) or _BUFFER.search(says) or _CONTROLLER.match(says)
        damage = None if request else _FILE_SYSTEM.search(says)
        device = next((name for name in (request or damage).groups() if name), "") if request or damage else ""  # type: ignore[union-attr]
        if device and not _REMOVABLE.fullmatch(device):
            kind = "request" if request else "filesystem"
            found[number] = {"device": device, "kind": kind, "text": says[:200]}
    return dict(list(found.items())[-MOST_ERRORS:])


def read_log_errors(host: Host, reading: Reading, read_log: Callable[[], str | Missing] = read_kernel_log) -> None:
    """Of the running host alone, and where its log may be read."""
    if not host.is_live:
        return
    text = read_log()
    if isinstance(text, Missing):
        # Without root that is part of what `observe_span` says about it.
        if host.is_root:
            reading.note_missing("log-error", text)
        return
    reading.ask("log-error")
    for number, words in parse_log_errors(text).items():
        reading.add("log-error", number, words=words)
