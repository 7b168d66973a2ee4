"""What is read of bounded tables, of the kernel's log and of processes that sleep where no signal wakes them."""

from __future__ import annotations

import os

import pytest

from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands, live_host
from advisor.observe.cgroups import read_cgroups
from advisor.observe.cpus import read_task_table
from advisor.observe.hardware import MOST_ERRORS, parse_log_errors, read_log_errors, read_mappings
from advisor.observe.network import (
    ALL_SOCKETS,
    parse_port_use,
    read_fragments,
    read_neighbours,
    read_ports,
    read_protocols,
    read_udp6,
)
from advisor.observe.processes import parse_thread_time
from advisor.observe.sample import Reading
from tests.cases import read_cases
from tests.observe.spans import Source

DATA = read_cases(__file__)

SS = DATA["SS"]


def read_files(
    files: dict[str, str], source: Source, commands: dict[tuple[str, ...], Completed] | None = None
) -> Reading:
    reading = Reading(1.0)
    encoded = {path: text.encode() for path, text in files.items()}
    source(Host(MemoryFiles(encoded), RecordedCommands(commands or {})), reading)
    return reading


def test_ports_count_by_destination_and_own_address() -> None:
    assert parse_port_use(SS, 40000, 40199) == {
        "10.0.0.1 > 10.0.0.9:443": 2,
        "10.0.0.2 > 10.0.0.9:443": 1,
        "[2001:db8::1] > [2001:db8::9]:443": 1,
    }
    assert parse_port_use("", 1, 2) == {}


@pytest.mark.parametrize(("waiting", "asks"), [(98, False), (99, True)])
def test_sockets_are_listed_only_where_there_are_many(waiting: int, asks: bool) -> None:
    files = {
        "/proc/net/sockstat": f"TCP: inuse 1 orphan 0 tw {waiting} alloc 3 mem 1\n",
        "/proc/sys/net/ipv4/ip_local_port_range": "40000\t40199\n",
        "/proc/net/snmp": "",
        "/proc/net/netstat": "",
    }

    def read(host: Host, reading: Reading) -> None:
        read_protocols(host, reading)
        read_ports(host, reading)

    found = read_files(files, read, {ALL_SOCKETS: Completed(0, SS, "")})
    assert ("ports" in found.gauges) is asks


def test_neighbours_and_datagrams_of_both_families() -> None:
    head = "entries  allocs   destroys table_fulls \n"
    files = {
        "/proc/net/stat/arp_cache": head + "0000000a 1 1 00000002\n0000000a 1 1 00000001\n",
        "/proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n",
        "/proc/net/snmp6": "Udp6InDatagrams \t7\nUdp6RcvbufErrors \t3\nIp6InReceives 9\nIp6ReasmFails 4\n",
    }
    found = read_files(files, read_neighbours)
    assert found.counters["neighbour"] == {"IPv4": {"full": 3}}
    assert found.gauges["neighbour"] == {"IPv4": {"entries": 10, "most": 1024}}
    assert read_files(files, read_udp6).counters["udp6"] == {"host": {"InDatagrams": 7, "RcvbufErrors": 3}}
    assert read_files({}, read_udp6).counters["udp6"] == {}


def test_fragments_of_both_families() -> None:
    files = {
        "/proc/net/snmp": "Ip: Forwarding ReasmTimeout ReasmReqds ReasmFails\nIp: 2 3 9 4\n",
        "/proc/net/snmp6": "Ip6InReceives 9\nIp6ReasmFails 4\n",
        "/proc/net/sockstat": "sockets: used 8\nFRAG: inuse 2 memory 4800\n",
        "/proc/sys/net/ipv4/ipfrag_high_thresh": "4194304\n",
        "/proc/sys/net/ipv6/ip6frag_high_thresh": "4194304\n",
    }
    found = read_files(files, read_fragments)
    assert found.counters["fragments"] == {
        "IPv4": {"ReasmReqds": 9, "ReasmTimeout": 3, "ReasmFails": 4},
        "IPv6": {"ReasmFails": 4},
    }
    assert found.gauges["fragments"] == {
        "IPv4": {"inuse": 2, "memory": 4800, "most": 4194304},
        "IPv6": {"most": 4194304},
    }
    assert read_files({}, read_fragments).counters["fragments"] == {}


@pytest.mark.parametrize("top", ["/sys/fs/cgroup/a", "/sys/fs/cgroup/pids/a"])
@pytest.mark.parametrize(("refused", "levels"), [(4, {"tasks": 10, "tasks_max": 12}), (0, {})])
def test_refused_tasks_in_both_versions(top: str, refused: int, levels: dict[str, int]) -> None:
    files = {f"{top}/pids.events": f"max {refused}\n", f"{top}/pids.current": "10\n", f"{top}/pids.max": "12\n"}
    files |= {} if "pids/" in top else {"/sys/fs/cgroup/cgroup.controllers": "pids\n"}
    found = read_files(files, read_cgroups)
    assert found.counters["cgroup"]["/a"] == {"tasks_refused": refused}
    assert found.gauges.get("cgroup", {}).get("/a", {}) == levels


def test_suspended_mappings_and_threads() -> None:
    files = {"/sys/block/dm-0/dm/suspended": "1\n", "/sys/block/dm-1/dm/suspended": "0\n", "/sys/block/sda/size": "1\n"}
    assert read_files(files, read_mappings).words["mapping"] == {"dm-0": {"suspended": "1"}, "dm-1": {"suspended": "0"}}
    files = {_LOADAVG: "0.15 0.10 0.09 3/345 2999\n", _PID_MAX: "32768\n"}
    assert read_files(files, read_task_table).gauges["tasks"]["host"] == {"tasks": 345, "pid_max": 32768}


LOG = DATA["LOG"]


def test_errors_of_devices_in_the_log() -> None:
    found = parse_log_errors(LOG)
    assert {number: (one["device"], one["kind"]) for number, one in found.items()} == {
        "10": ("loop0", "request"),
        "11": ("nvme0n1", "request"),
        "12": ("sda", "request"),
        "14": ("dm-0", "request"),
        "15": ("sdc1", "request"),
        "17": ("loop0p1", "filesystem"),
        "19": ("dm-3", "filesystem"),
        "20": ("vdb", "filesystem"),
        "23": ("nvme1", "request"),
        "24": ("nvme2", "request"),
        "25": ("nvme3", "request"),
    }
    many = "".join(f"3,{at},1,-;I/O error, dev sda, sector {at}\n" for at in range(200))
    assert next(iter(parse_log_errors(many))) == str(200 - MOST_ERRORS)


def test_a_log_that_may_not_be_read_is_unknown() -> None:
    reading = Reading(1.0)
    host = live_host()
    read_log_errors(host, reading, lambda: Missing("unreadable", "not permitted"))
    assert ("log-error" in reading.missing) is host.is_root
    read_log_errors(host, reading, lambda: LOG)
    assert "12" in reading.words["log-error"]


def test_the_time_of_a_thread() -> None:
    text = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 120 30 0 0 20 0 4 0 99 0 0\n"
    assert parse_thread_time(text) == 1500 * 100 // os.sysconf("SC_CLK_TCK")
    assert parse_thread_time("7 (a) S 1\n") is None
    assert parse_thread_time("") is None


_LOADAVG = "/proc/loadavg"
_PID_MAX = "/proc/sys/kernel/pid_max"


@pytest.mark.parametrize(("reached", "found"), [(3, True), (0, False)])
def test_dirty_pages_of_groups_that_reached_a_limit_of_their_memory(reached: int, found: bool) -> None:
    top = "/sys/fs/cgroup/a.service"
    files = {
        "/sys/fs/cgroup/cgroup.controllers": "memory\n",
        f"{top}/memory.events": f"low 0\nhigh 0\nmax {reached}\noom 0\noom_kill 0\n",
        f"{top}/memory.max": "1048576\n",
        f"{top}/memory.stat": "anon 1\nfile 2000\nfile_dirty 300\nfile_writeback 40\n",
    }
    levels = read_files(files, read_cgroups).gauges["cgroup"]["/a.service"]
    names = ("memory_file_bytes", "memory_dirty_bytes", "memory_writeback_bytes")
    assert [levels.get(name) for name in names] == ([2000, 300, 40] if found else [None] * 3)
