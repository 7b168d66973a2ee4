"""Counters since start: what the kernel's own tables say, and nothing where they say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.system.memory import Counters, parse_neighbour_stat, parse_paired, parse_softnet, read_counters
from advisor.facts.unknown import Unknowns
from advisor.host import tree_host
from tests.cases import read_cases

DATA = read_cases(__file__, Counters)

SNMP = DATA["SNMP"]
NETSTAT = DATA["NETSTAT"]
SNMP6 = (
    "Udp6InDatagrams                 \t100\nUdp6RcvbufErrors                \t1\nUdp6SndbufErrors                \t0\n"
)
SOFTNET = "00000011 00000002 00000001 00000000\n0000000f 00000000 00000003 00000000\n"
ARP_CACHE = DATA["ARP_CACHE"]
VMSTAT = DATA["VMSTAT"]
VMSTAT_OF_LINUX_3_10 = "pgsteal_kswapd_dma32 5\npgsteal_kswapd_normal 6\npgsteal_direct_normal 2\nallocstall 9\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def test_every_counter_is_read(tmp_path: Path) -> None:
    net = {"snmp": SNMP, "netstat": NETSTAT, "snmp6": SNMP6, "softnet_stat": SOFTNET, "stat/arp_cache": ARP_CACHE}
    tree(tmp_path, {"proc/vmstat": VMSTAT, **{f"proc/net/{name}": text for name, text in net.items()}})
    unknown = Unknowns()
    assert read_counters(tree_host(str(tmp_path)), unknown) == DATA["every_counter_is_read"]
    assert unknown.listed() == ()


def test_a_host_without_the_tables_has_no_counters(tmp_path: Path) -> None:
    unknown = Unknowns()
    assert read_counters(tree_host(str(tmp_path)), unknown) == Counters()
    assert unknown.listed() == ()


def test_a_host_without_ipv6_counts_ipv4(tmp_path: Path) -> None:
    counters = read_counters(tree_host(str(tree(tmp_path, {"proc/net/snmp": SNMP}))), Unknowns())
    assert (counters.udp_received, counters.udp_receive_buffer_errors) == (5000, 7)


def test_an_unreadable_table_is_noted(tmp_path: Path) -> None:
    (tmp_path / "proc/net/snmp").mkdir(parents=True)
    unknown = Unknowns()
    assert read_counters(tree_host(str(tmp_path)), unknown).udp_received is None
    assert [entry.fact for entry in unknown.listed()] == ["counters.snmp"]


@pytest.mark.parametrize(("text", "expected"), DATA["paired_lines"])
def test_paired_lines(text: str, expected: dict[str, dict[str, int]]) -> None:
    assert parse_paired(text) == expected


@pytest.mark.parametrize("text", ["", "zz 0 0\n", "1\n", "\0\n"])
def test_softnet_that_is_none(text: str) -> None:
    assert parse_softnet(text) is None


def test_an_old_kernel_counts_by_zone(tmp_path: Path) -> None:
    counters = read_counters(tree_host(str(tree(tmp_path, {"proc/vmstat": VMSTAT_OF_LINUX_3_10}))), Unknowns())
    assert (counters.reclaimed_by_kswapd_pages, counters.reclaimed_directly_pages) == (11, 2)
    assert counters.compaction_stalls is None


@pytest.mark.parametrize(("text", "expected"), DATA["neighbour_tables"])
def test_neighbour_tables(text: str, expected: tuple[int | None, int | None]) -> None:
    assert parse_neighbour_stat(text) == expected
