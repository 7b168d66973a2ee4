"""Readers of drives, kills, file systems, NFS and pauses, fed with what their sources print."""

from __future__ import annotations

import struct

import pytest

from advisor.facts.block.mounts import DF, Space, parse_df
from advisor.facts.block.stacked import ZfsPool, parse_kstat, parse_zpool_list
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands, live_host
from advisor.host.ethtool import _read_statistics
from advisor.observe.disks import parse_smart_log, read_drives, read_space, read_zfs
from advisor.observe.hardware import parse_kills, read_kills
from advisor.observe.network import (
    NfsMount,
    count_ring_drops,
    find_pauses,
    parse_mountstats,
    parse_pool_stats,
    read_nfs_mounts,
    read_nfs_server,
    read_pauses,
)
from advisor.observe.processes import parse_file_limit
from advisor.observe.sample import Reading
from tests.cases import read_cases
from tests.diagnosis.moments import smart_log
from tests.known import known

DATA = read_cases(__file__)

KMSG = DATA["KMSG"]
MOUNTSTATS = DATA["MOUNTSTATS"]


def test_the_health_log_of_an_nvme_drive() -> None:
    """Offsets of struct nvme_smart_log: media_errors 160, warning_temp_time 192, thm_temp1_trans_count 216."""
    page = bytearray(512)
    page[0] = 0x06
    struct.pack_into("<H", page, 1, 350)
    page[3:6] = bytes((90, 10, 101))
    page[160:176] = (7).to_bytes(16, "little")
    struct.pack_into("<II", page, 192, 11, 12)
    struct.pack_into("<IIII", page, 216, 1, 2, 3, 4)
    found = known(parse_smart_log(bytes(page)))
    counters, levels = found
    assert counters == {
        "media_errors": 7,
        "warning_temperature_minutes": 11,
        "critical_temperature_minutes": 12,
        "light_throttles": 1,
        "heavy_throttles": 2,
        "light_throttled_s": 3,
        "heavy_throttled_s": 4,
    }
    assert (levels["critical_warning"], levels["temperature_celsius"], levels["used_percent"]) == (6, 77, 101)
    assert (levels["spare_percent"], levels["spare_threshold_percent"]) == (90, 10)
    assert parse_smart_log(bytes(512)) is None
    assert parse_smart_log(bytes(page[:511])) is None


def test_each_local_controller_is_asked() -> None:
    asked = []

    def read_log(device: str, page: int, length: int) -> bytes | Missing:
        asked.append((device, page, length))
        return smart_log({"media_errors": 1}) if device == "nvme0" else Missing("unreadable", "status 0x2")

    files = {f"/sys/class/nvme/{name}/transport": kind for name, kind in _CONTROLLERS.items()}
    reading = Reading(1.0)
    read_drives(Host(MemoryFiles(files), RecordedCommands({}), is_live=True, is_root=True), reading, read_log)
    assert asked == [("nvme0", 2, 512), ("nvme1", 2, 512)]
    assert list(reading.counters["smart"]) == ["nvme0"]
    assert reading.missing == {"smart nvme1": "status 0x2"}
    plain = Reading(1.0)
    read_drives(
        Host(MemoryFiles(files), RecordedCommands({}), is_live=True),
        plain,
        lambda *_: Missing("unreadable", "Permission denied"),
    )
    assert plain.missing == {"smart": "Permission denied; root reads log pages"}
    captured = Reading(1.0)
    read_drives(Host(MemoryFiles(files), RecordedCommands({})), captured, read_log)
    assert list(captured.missing) == ["smart"]


_CONTROLLERS = {"nvme0": b"pcie\n", "nvme1": b"pcie\n", "nvme2": b"tcp\n"}


def test_kills_of_the_kernels_log() -> None:
    assert parse_kills(KMSG) == {
        "22": {"process": "post gres", "pid": "77", "cgroup": "/a.slice/db.service"},
        "23": {"process": "ruby", "pid": "78"},
        "24": {"process": "a) b", "pid": "79"},
    }
    assert parse_kills("12,1,2,-;said by a program: Killed process 5 (x) total-vm\n") == {}
    assert parse_kills("Killed process 5 (x) total-vm") == {}


def test_the_log_is_read_only_where_something_was_killed() -> None:
    host = Host(MemoryFiles({}), RecordedCommands({}), is_live=True)
    for count, kills in ((0, 0), (3, 3)):
        reading = Reading(1.0)
        reading.add("vm", "host", {"oom_kill": count})
        read_kills(host, reading, lambda: KMSG)
        assert len(reading.words.get("kill", {})) == kills
    denied = Reading(1.0)
    read_kills(host, denied, lambda: Missing("unreadable", "Operation not permitted"))
    assert list(denied.missing) == ["kill"]


def test_mounts_of_an_nfs_client() -> None:
    # The kernel prints a blank of a source or a place as \\040: one as it stands is no line of it.
    assert list(parse_mountstats(MOUNTSTATS)) == ["/mnt"]
    assert parse_mountstats(MOUNTSTATS)["/mnt"] == NfsMount("filer:/vol", 1000, 2, 3015, 4025, 7140, 128, 2)
    reading = Reading(1.0)
    read_nfs_mounts(Host(MemoryFiles({"/proc/self/mountstats": MOUNTSTATS.encode()}), RecordedCommands({})), reading)
    assert reading.counters["nfs"]["/mnt"]["queue_ms"] == 3015
    assert reading.gauges["nfs"]["/mnt"] == {"slots": 128, "connections": 2}
    text = MOUNTSTATS.replace("\tRPC", "\tbytes:\t7 8 300 40 400 60 5 6\n\tRPC") + (
        "\t     GETATTR: 10 10 0 100 200 5 400 405 0\n\t      LOOKUP: 20 20 0 100 200 1 700 701 0\n"
        "\t       RENEW: 5 5 0 100 200 0 900 900 0\n"
    )
    found = parse_mountstats(text)["/mnt"]
    assert (found.names, found.names_queue_ms, found.names_ms) == (30, 6, 1100)
    assert (found.direct_bytes, found.server_bytes) == (340, 460)


@pytest.mark.parametrize("line", ["", "READ: 1 2", "READ: x", "\txprt:\ttcp 1", "\txprt:\tudp 1 2 3 4 5 6 7 8 9 10 11"])
def test_a_damaged_table_of_mounts(line: str) -> None:
    text = f"device a:/b mounted on /mnt with fstype nfs statvers=1.1\n{line}\n"
    assert parse_mountstats(text) == {"/mnt": NfsMount("a:/b")}


def test_pools_of_the_nfs_server() -> None:
    text = "# pool packets-arrived sockets-enqueued threads-woken threads-timedout\n0 90 90 60 1\n1 5 x 5 5\n"
    assert parse_pool_stats(text) == {"0": {"packets": 90, "queued": 90, "woken": 60, "timed_out": 1}}
    files = {"/proc/fs/nfsd/pool_stats": text.encode(), "/proc/fs/nfsd/threads": b"8\n"}
    reading = Reading(1.0)
    read_nfs_server(Host(MemoryFiles(files), RecordedCommands({})), reading)
    assert reading.gauges["nfsd"]["0"] == {"threads": 8}
    none = Reading(1.0)
    read_nfs_server(Host(MemoryFiles({}), RecordedCommands({})), none)
    assert (none.counters["nfsd"], none.missing) == ({}, {})


DF_TEXT = DATA["DF_TEXT"]


def test_space_of_file_systems() -> None:
    assert parse_df(DF_TEXT) == {
        "/data with blank": Space("xfs", 900000000, 90000000, 1000, 100),
        "/pool": Space("btrfs", 900000000, 100000000, 0, 0),
    }
    one = parse_df(DF_TEXT)["/data with blank"]
    assert one.used_share == pytest.approx(900 / 990)
    assert one.inodes_used_share == pytest.approx(0.9)
    assert parse_df(DF_TEXT)["/pool"].inodes_used_share is None


def test_df_of_this_host_is_understood() -> None:
    reading = Reading(1.0)
    read_space(live_host(), reading)
    assert not reading.missing
    assert all(one["used_bytes"] >= 0 for one in reading.gauges.get("space", {}).values())
    old = Reading(1.0)
    read_space(Host(MemoryFiles({}), RecordedCommands({DF: Completed(1, "", "df: unrecognized option")})), old)
    assert "space" not in old.gauges


def test_pools_and_cache_of_zfs() -> None:
    arc = "13 1 0x01 147 39984 9 3\nname type data\nhits 4 12\nmemory_throttle_count 4 3\nbad 4 x\n"
    assert parse_kstat(arc) == {"hits": 12, "memory_throttle_count": 3}
    files = {"/proc/spl/kstat/zfs/tank/state": b"DEGRADED\n", "/proc/spl/kstat/zfs/arcstats": arc.encode()}
    reading = Reading(1.0)
    read_zfs(Host(MemoryFiles(files), RecordedCommands({})), reading)
    assert reading.words["zfs"] == {"tank": {"state": "DEGRADED"}}
    assert reading.counters["arc"] == {"host": {"hits": 12, "memory_throttle_count": 3}}
    assert parse_zpool_list("tank\tONLINE\t93\nb\tFAULTED\t-\nbroken line\n") == (
        ZfsPool("tank", "ONLINE", 93),
        ZfsPool("b", "FAULTED", None),
    )


@pytest.mark.parametrize(("statistics", "found"), DATA["pause_frames_of_drivers"])
def test_pause_frames_of_drivers(statistics: dict[str, int | str | bool], found: tuple[int | None, int | None]) -> None:
    pauses = find_pauses(statistics)
    assert (pauses.get("rx"), pauses.get("tx")) == found


@pytest.mark.parametrize(("statistics", "dropped"), DATA["what_cards_drop_for_want_of_a_buffer"])
def test_what_cards_drop_for_want_of_a_buffer(statistics: dict[str, int | str | bool], dropped: int | None) -> None:
    assert count_ring_drops(statistics) == dropped


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max open files            1024                 524288               files
"""


def test_files_of_a_process_and_counters_of_all_queues() -> None:
    assert parse_file_limit(LIMITS) == 1024
    assert parse_file_limit(LIMITS.replace("1024  ", "unlimited")) is None
    assert _read_statistics(_Queues()) == {"Rx Queue#": 1, "  pkts rx OOB": 42}  # type: ignore[arg-type]


def test_only_links_that_can_pause_are_asked() -> None:
    links = {f"/sys/class/net/{name}/device/driver": f"/sys/drivers/{driver}" for name, driver in _DRIVERS}
    host = Host(
        MemoryFiles({f"/sys/class/net/{name}/mtu": b"1500" for name, _ in _DRIVERS}, links),
        RecordedCommands({}),
        ethtool_answers={("eth0", "statistics"): {"rx_pause_ctrl_phy": 2}},
    )
    reading = Reading(1.0)
    read_pauses(host, reading)
    assert reading.counters["pause"] == {"eth0": {"rx": 2}}
    assert not reading.missing


class _Queues:
    """A driver with one set of counters for each queue, as the kernel hands them to SIOCETHTOOL."""

    names = ("Rx Queue#", "  pkts rx OOB", "Rx Queue#", "  pkts rx OOB")
    values = (0, 30, 1, 12)

    def ask(self, request: bytes) -> bytes:
        command = struct.unpack_from("I", request)[0]
        if command == 0x37:  # ETHTOOL_GSSET_INFO
            return struct.pack("IIQI", command, 0, 1 << 1, len(self.names)).ljust(24, b"\0")
        if command == 0x1B:  # ETHTOOL_GSTRINGS
            strings = b"".join(name.encode().ljust(32, b"\0") for name in self.names)
            return struct.pack("III", command, 1, len(self.names)) + strings
        return struct.pack("II4Q", command, len(self.values), *self.values)


_DRIVERS = (("eth0", "mlx5_core"), ("eth1", "virtio_net"))
