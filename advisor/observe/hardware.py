"""Counters of parts that fail: kinds ``edac``, ``fc``, ``rdma`` and ``scsi``, paths of multipath maps: ``path``,
and mappings that are suspended: ``mapping``.

Source: Linux Documentation/admin-guide/RAS; ABI/testing/sysfs-class-infiniband, sysfs-class-fc_host (drivers/scsi/
scsi_transport_fc.c), sysfs-block-dm; drivers/scsi/scsi_sysfs.c; multipath_status of drivers/md/dm-mpath.c. Widths of
InfiniBand's own counters: InfiniBand Architecture Specification, PortCounters; they stop at their largest value and do
not wrap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.dm import STATUS
from advisor.facts.dm_text import parse_dm_lines
from advisor.host import Host, Missing
from advisor.host.numbers import whole_number
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
