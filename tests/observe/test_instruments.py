"""Instruments of the running machine, fed with bytes and texts as their sources lay them out."""

from __future__ import annotations

import re
import struct

import psutil
import pytest

from advisor.host import Host, MemoryFiles, RecordedCommands, live_host
from advisor.host.trace_instance import pack_command
from advisor.observe.disks import parse_allowances, parse_ebs_log, read_volumes
from advisor.observe.network import parse_connections
from advisor.observe.processes import HIDDEN_STORAGE, read_processes
from advisor.observe.sample import Reading
from tests.cases import read_cases
from tests.diagnosis.moments import ebs_log
from tests.known import known

DATA = read_cases(__file__)

# iproute2 6.1 and, without a blank before the process column, 5.18.
SS = DATA["SS"]


def test_connections_with_what_limited_them() -> None:
    found = parse_connections(SS)
    assert list(found) == ["10.0.0.1:40000 > 10.0.0.2:5201", "[::1]:22 > [::1]:50000"]
    first = found["10.0.0.1:40000 > 10.0.0.2:5201"]
    assert first.counters["busy_ms"] == 3024
    assert (first.counters["rwnd_limited_ms"], first.counters["sndbuf_limited_ms"]) == (1008, 4)
    assert (first.counters["retransmitted"], first.counters["bytes_acked"]) == (7, 800)
    assert (first.gauges["rtt_ms"], first.gauges["min_rtt_ms"]) == (1.5, 0.5)
    assert found["[::1]:22 > [::1]:50000"].counters["busy_ms"] == 0


def test_the_log_page_of_an_ebs_volume() -> None:
    found = known(parse_ebs_log(ebs_log({"volume_iops_us": 5, "instance_throughput_us": 7}, queue=9)))
    counters, queue = found
    assert (counters["volume_iops_us"], counters["instance_throughput_us"], queue) == (5, 7, 9)
    assert (counters["reads"], counters["volume_throughput_us"], counters["instance_iops_us"]) == (1000, 0, 0)
    assert parse_ebs_log(bytes(4096)) is None
    assert parse_ebs_log(ebs_log({})[:50]) is None


def test_a_volume_is_asked_by_its_controller() -> None:
    asked = []

    def read_log(device: str, page: int, length: int) -> bytes:
        asked.append((device, page, length))
        return ebs_log({})

    files = {
        "/sys/block/nvme1n1/device/model": b"Amazon Elastic Block Store              \n",
        "/sys/block/nvme0n1/device/model": b"Samsung",
    }
    reading = Reading(1.0)
    read_volumes(Host(MemoryFiles(files), RecordedCommands({}), is_live=True), reading, read_log)
    assert asked == [("nvme1", 0xD0, 4096)]
    assert list(reading.counters["ebs"]) == ["nvme1n1"]
    captured = Reading(1.0)
    read_volumes(Host(MemoryFiles(files), RecordedCommands({})), captured)
    assert list(captured.missing) == ["ebs nvme1n1"]


def test_commands_and_allowances_of_drivers() -> None:
    command = pack_command(0xD0, 4096, 0x1000, 0xFFFFFFFF)
    assert len(command) == 72
    assert command[0] == 2
    address, _, length, first = struct.unpack_from("<QIII", command, 24)
    assert (address, length) == (0x1000, 4096)
    assert first == 0xD0 | 1023 << 16
    text = "NIC statistics:\n     tx_timeout: 0\n     bw_in_allowance_exceeded: 12\n     queue_0_rx_cnt: 4\n"
    assert parse_allowances(text) == {"bw_in_allowance_exceeded": 12}


def test_processes_whose_storage_is_hidden_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "io_counters", deny)
    reading = Reading(0.0)
    read_processes(live_host(), reading)
    says = reading.missing[HIDDEN_STORAGE]
    assert re.fullmatch(r"storage of \d+ (is hidden|needs root).*: PID \d+(, \d+){0,4}(, …)?", says)
