"""Links of a host, put together from ip, sysfs, the drivers and /proc/net; each source may be missing or wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest

from advisor.facts.network.link_sources import IP_JSON, IP_TEXT
from advisor.facts.network.links import CLASS, Channels, Link, Rings, parse_rate_mbps, read_links, read_ports
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from advisor.host.ethtool import UNSUPPORTED, Answer
from tests import captured
from tests.cases import read_cases

NET = "/sys/class/net"
NIC = "/sys/devices/pci0000:00/0000:00:03.0"
Recorded = Mapping[tuple[str, ...], Completed | Missing]


def link_files(name: str, **attributes: object) -> dict[str, bytes]:
    """A directory of /sys/class/net with these attributes; ``uevent`` is always there."""
    files = {"uevent": f"INTERFACE={name}", **{key.replace("__", "/"): str(value) for key, value in attributes.items()}}
    return {f"{NET}/{name}/{key}": f"{value}\n".encode("utf-8", "surrogateescape") for key, value in files.items()}


def nic_files(name: str = "eth0", **attributes: object) -> tuple[dict[str, bytes], dict[str, str]]:
    """A virtio network card at 0000:00:03.0, as the kernel lays it out."""
    place = f"{NIC}/virtio0/net/{name}"
    given = {
        **{"ifindex": 2, "iflink": 2, "type": 1, "mtu": 1500, "operstate": "up", "carrier": 1, "speed": 1000},
        **{"address": "52:54:00:00:00:01", "addr_assign_type": 0, "tx_queue_len": 1000},
        **attributes,
    }
    files = {f"{place}/{key}": f"{value}\n".encode() for key, value in given.items()}
    pci = {"numa_node": "0", "local_cpulist": "0-3", "class": "0x020000", "msi_irqs/37": "msi", "msi_irqs/38": "msi"}
    files |= {f"{NIC}/{key}": f"{value}\n".encode() for key, value in pci.items()}
    files |= {"/sys/devices/system/node/online": b"0\n", "/sys/devices/system/node/node0/cpulist": b"0-3\n"}
    links = {
        f"{NET}/{name}": f"../../devices/pci0000:00/0000:00:03.0/virtio0/net/{name}",
        f"{place}/device": "../../../virtio0",
        f"{NIC}/virtio0/driver": "../../../../bus/virtio/drivers/virtio_net",
        f"{NIC}/subsystem": "../../../bus/pci",
        f"{NIC}/virtio0/subsystem": "../../../../bus/virtio",
    }
    return files, links


def host(
    files: Mapping[str, bytes],
    links: Mapping[str, str] | None = None,
    *,
    recorded: Recorded | None = None,
    ethtool: Mapping[tuple[str, str], Answer | Missing] | None = None,
    unreadable: Mapping[str, str] | None = None,
) -> Host:
    source = MemoryFiles(files, links or {}, frozenset(), unreadable or {})
    return Host(source, RecordedCommands(recorded or {}), is_root=True, ethtool_answers=ethtool)


def by_name(machine: Host, unknown: Unknowns | None = None) -> dict[str, Link]:
    return {link.name: link for link in read_links(machine, unknown or Unknowns())}


def noted(machine: Host) -> dict[str, str]:
    unknown = Unknowns()
    read_links(machine, unknown)
    return {one.fact: one.why for one in unknown.listed()}


def ip_answer(*entries: Mapping[str, object]) -> dict[tuple[str, ...], Completed | Missing]:
    return {IP_JSON: Completed(0, json.dumps(entries), "")}


ETH0 = {"ifindex": 2, "ifname": "eth0", "flags": ["UP", "LOWER_UP"], "mtu": 9000, "operstate": "UP", "txqlen": 1000}
ETH0 |= {"link_type": "ether", "address": "52:54:00:00:00:01", "min_mtu": 68, "max_mtu": 9194}


# --- one card -------------------------------------------------------------------------------------------------------


def test_a_card_by_sysfs_alone() -> None:
    link = by_name(host(*nic_files()))["eth0"]
    assert (link.kind, link.mtu, link.speed_mbps, link.state, link.carrier) == ("ethernet", 1500, 1000, "up", True)
    assert (link.driver, link.pci, link.numa_node, link.local_cpus) == ("virtio_net", "0000:00:03.0", 0, "0-3")
    assert (link.irqs, link.mac, link.permanent_mac) == ((37, 38), "52:54:00:00:00:01", "52:54:00:00:00:01")
    assert (link.ifindex, link.txqueuelen, link.mtu_min, link.mtu_max) == (2, 1000, None, None)


def test_what_ip_says_goes_before_sysfs() -> None:
    link = by_name(host(*nic_files(), recorded=ip_answer(ETH0)))["eth0"]
    assert (link.mtu, link.mtu_min, link.mtu_max) == (9000, 68, 9194)
    assert (link.pci, link.numa_node, link.speed_mbps) == ("0000:00:03.0", 0, 1000)


@pytest.mark.parametrize("speed", ["-1", "4294967295", "65535", "0"])
def test_a_speed_that_the_driver_does_not_know(speed: str) -> None:
    machine = host(*nic_files(speed=speed))
    assert by_name(machine)["eth0"].speed_mbps is None
    assert "links.eth0.speed_mbps" in noted(machine)


def test_a_link_that_is_down_has_no_speed_and_that_is_no_news() -> None:
    machine = host(*nic_files(operstate="down", carrier="", speed=""))
    assert by_name(machine)["eth0"].speed_mbps is None
    assert "links.eth0.speed_mbps" not in noted(machine)


def test_a_speed_that_cannot_be_read_is_noted_with_the_reason() -> None:
    files, links = nic_files()
    del files[f"{NIC}/virtio0/net/eth0/speed"]
    machine = host(files, links, unreadable={f"{NIC}/virtio0/net/eth0/speed": "Invalid argument"})
    assert noted(machine)["links.eth0.speed_mbps"] == "the driver reports no speed: Invalid argument"


def test_a_virtual_link_without_speed_is_no_news() -> None:
    assert "links.veth0.speed_mbps" not in noted(host(link_files("veth0", operstate="up", speed="-1")))


def test_node_minus_one_is_none() -> None:
    files, links = nic_files()
    files[f"{NIC}/numa_node"] = b"-1\n"
    assert by_name(host(files, links))["eth0"].numa_node is None


def test_a_mac_that_was_set_is_not_the_permanent_one() -> None:
    link = by_name(host(*nic_files(addr_assign_type=3)))["eth0"]
    assert (link.mac, link.permanent_mac) == ("52:54:00:00:00:01", None)
    reported = ip_answer({**ETH0, "permaddr": "52:54:00:00:00:99"})
    assert by_name(host(*nic_files(addr_assign_type=3), recorded=reported))["eth0"].permanent_mac == "52:54:00:00:00:99"


@pytest.mark.parametrize("odd", ["", "abc", "-1", "\0", "9" * 30, str(2**63), "1e3", "٣"])
def test_odd_numbers_become_none(odd: str) -> None:
    machine = host(*nic_files(mtu=odd, ifindex=odd, speed=odd, tx_queue_len=odd, type=odd, iflink=odd, carrier=odd))
    link = by_name(machine)["eth0"]
    assert (link.mtu, link.ifindex, link.speed_mbps, link.txqueuelen) == (None, None, None, None)
    msgspec.json.encode(link)
    if odd not in ("", "-1", "\0"):
        assert "links.eth0.mtu" in noted(machine)


def test_a_card_counts_what_it_lost_and_a_virtual_link_is_not_asked() -> None:
    lost = {"statistics/rx_packets": 1000, "statistics/rx_missed_errors": 7, "statistics/rx_fifo_errors": "-"}
    files, links = nic_files("eth0", **lost, **{"queues/rx-0/rps_cpus": "0000000f"})
    files |= link_files("dummy0", type=1, statistics__rx_missed_errors=3, **{"queues__rx-0__rps_cpus": "f"})
    found = by_name(host(files, links))
    assert found["eth0"].counters == {"rx_packets": 1000, "rx_missed_errors": 7}
    assert found["eth0"].rps_cpus == "0000000f"
    assert (found["dummy0"].counters, found["dummy0"].rps_cpus) == ({}, None)


def test_trailing_nul_bytes_are_no_part_of_a_value() -> None:
    assert by_name(host(*nic_files(mtu="1500\0\0", operstate="up\0")))["eth0"].mtu == 1500


# --- drivers --------------------------------------------------------------------------------------------------------

CHANNELS: Answer = {"rx": 0, "rx_max": 0, "tx": 0, "tx_max": 0, "combined": 4, "combined_max": 8, "other": 1}


def test_what_drivers_say() -> None:
    answers: dict[tuple[str, str], Answer | Missing] = {
        ("eth0", "rings"): {"rx": 256, "rx_max": 512, "tx": 128, "tx_max": 256},
        ("eth0", "channels"): {**CHANNELS, "other_max": 1},
        ("eth0", "features"): {"rx-gro": True, "rx-lro": False},
        ("eth0", "driver"): {"driver": "virtio_net", "version": "1.0.0", "firmware": "7.10", "bus": "0000:00:03.0"},
    }
    link = by_name(host(*nic_files(), ethtool=answers))["eth0"]
    assert link.rings == Rings(rx=256, rx_max=512, tx=128, tx_max=256)
    assert link.channels == Channels(rx=0, rx_max=0, tx=0, tx_max=0, combined=4, combined_max=8, other=1, other_max=1)
    assert link.features == {"rx-gro": True, "rx-lro": False}
    assert link.firmware == "7.10"


def test_what_a_driver_does_not_have_is_no_news_and_what_it_refuses_is() -> None:
    denied = Missing("unreadable", "Operation not permitted")
    answers = dict.fromkeys([("eth0", what) for what in ("channels", "features", "driver")], UNSUPPORTED)
    machine = host(*nic_files(), ethtool={**answers, ("eth0", "rings"): denied})
    assert {fact: why for fact, why in noted(machine).items() if "eth0" in fact} == {
        "links.eth0.rings": "Operation not permitted"
    }
    assert "links.channels" not in noted(machine)


def test_half_an_answer_is_none() -> None:
    assert by_name(host(*nic_files(), ethtool={("eth0", "channels"): CHANNELS}))["eth0"].channels is None


@pytest.mark.parametrize("firmware", ["", "N/A", "n/a", "  "])
def test_a_driver_that_tells_no_firmware(firmware: str) -> None:
    answers: Mapping[tuple[str, str], Answer] = {("eth0", "driver"): {"firmware": firmware}}
    assert by_name(host(*nic_files(), ethtool=answers))["eth0"].firmware is None


def test_captured_texts_of_ethtool_stand_in_for_the_driver() -> None:
    rings = "Pre-set maximums:\nRX: 4096\nTX: 4096\nCurrent hardware settings:\nRX: 512\nTX: 256\n"
    features = "Features for eth0:\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n"
    refused = Completed(95, "Channel parameters for eth0:\n", "netlink error: Operation not supported\n")
    recorded = {
        ("ethtool", "-g", "eth0"): Completed(0, rings, ""),
        ("ethtool", "-k", "eth0"): Completed(0, features, ""),
        ("ethtool", "-l", "eth0"): refused,
        ("ethtool", "-i", "eth0"): Completed(0, "driver: ena\nfirmware-version: 1.2\nbus-info: 0000:00:05.0\n", ""),
        ("ethtool", "eth0"): Completed(0, "Settings for eth0:\n\tSpeed: 25000Mb/s\n", ""),
        **ip_answer(ETH0),
    }
    link = by_name(host({}, recorded=recorded))["eth0"]
    assert link.rings == Rings(rx=512, rx_max=4096, tx=256, tx_max=4096)
    assert (link.features, link.channels) == ({"tx-tcp-segmentation": True}, None)
    assert (link.driver, link.firmware, link.pci, link.speed_mbps) == ("ena", "1.2", "0000:00:05.0", 25000)


# --- kinds ----------------------------------------------------------------------------------------------------------


DATA = read_cases(__file__, link_files)


@pytest.mark.parametrize(("attributes", "kind"), DATA["kind_by_sysfs"])
def test_kind_by_sysfs(attributes: Mapping[str, object], kind: str) -> None:
    assert by_name(host(link_files("x", **attributes)))["x"].kind == kind


def virtual(*links: tuple[str, int, int]) -> tuple[dict[str, bytes], dict[str, str]]:
    """Virtual links by name, ifindex and iflink."""
    files: dict[str, bytes] = {}
    targets = {}
    for name, ifindex, iflink in links:
        place = f"/sys/devices/virtual/net/{name}"
        files |= {f"{place}/{key}": f"{value}\n".encode() for key, value in [("ifindex", ifindex), ("iflink", iflink)]}
        files[f"{place}/type"] = b"1\n"
        targets[f"{NET}/{name}"] = f"../../devices/virtual/net/{name}"
    return files, targets


def test_the_ends_of_a_veth_know_each_other() -> None:
    links = by_name(host(*virtual(("va", 5, 6), ("vb", 6, 5))))
    assert (links["va"].kind, links["va"].detail, links["va"].lower) == ("veth", {"peer": "vb"}, ())


def test_a_link_that_rests_on_another_is_no_veth() -> None:
    files, targets = virtual(("m0", 5, 6), ("e0", 6, 6))
    rests = {"/sys/devices/virtual/net/m0/lower_e0": "../e0"}
    assert by_name(host(files, {**targets, **rests}))["m0"].kind == "virtual"


def test_a_virtual_link_without_a_trace_is_only_virtual() -> None:
    assert by_name(host(*virtual(("d0", 5, 5))))["d0"].kind == "virtual"
    for driver, kind in [("dummy", "dummy"), ("bonding", "bond"), ("802.1Q VLAN Support", "vlan"), ("team", "team")]:
        answers: Mapping[tuple[str, str], Answer] = {("d0", "driver"): {"driver": driver}}
        assert by_name(host(*virtual(("d0", 5, 5)), ethtool=answers))["d0"].kind == kind


def test_a_wireless_card_is_no_ethernet_card() -> None:
    files = link_files("eth0", ifindex=2, phy80211__index=0)
    assert by_name(host(files, recorded=ip_answer(ETH0)))["eth0"].kind == "wlan"
    assert by_name(host(files))["eth0"].kind == "wlan"


def test_bonding_masters_is_no_link() -> None:
    assert by_name(host({f"{NET}/bonding_masters": b"bond0\n", **link_files("bond0")})).keys() == {"bond0"}


# --- stacks ---------------------------------------------------------------------------------------------------------

BONDING = DATA["BONDING"]


def test_a_bond_by_proc_alone() -> None:
    files = {**link_files("bond0", type=1), **link_files("e0", type=1), "/proc/net/bonding/bond0": BONDING.encode()}
    links = by_name(host(files))
    assert (links["bond0"].kind, links["bond0"].lower) == ("bond", ("e0",))
    assert links["bond0"].detail == {"mode": "802.3ad", "xmit_hash_policy": "layer3+4", "miimon": "100"}
    assert (links["e0"].upper, links["e0"].permanent_mac) == (("bond0",), "52:54:00:00:00:0a")


def test_a_bond_by_sysfs_has_its_members_and_no_place_of_its_own() -> None:
    files = {
        **link_files("bond0", type=1, bonding__mode="active-backup 1", bonding__xmit_hash_policy="layer2 0"),
        **link_files("e0", type=1, bonding_slave__perm_hwaddr="52:54:00:00:00:0a", bonding_slave__state="backup"),
    }
    stack = {f"{NET}/bond0/lower_e0": "../e0", f"{NET}/e0/upper_bond0": "../bond0", f"{NET}/e0/master": "../bond0"}
    links = by_name(host(files, stack))
    assert links["bond0"].detail == {"mode": "active-backup", "xmit_hash_policy": "layer2"}
    assert (links["bond0"].lower, links["e0"].upper, links["bond0"].numa_node) == (("e0",), ("bond0",), None)
    assert links["e0"].detail == {"port_state": "backup"}


def test_one_half_of_a_pair_is_enough() -> None:
    links = by_name(host({**link_files("a"), **link_files("b")}, {f"{NET}/a/upper_b": "../b"}))
    assert (links["a"].upper, links["b"].lower) == (("b",), ("a",))


def test_a_vlan_by_its_table() -> None:
    table = b"VLAN Dev name | VLAN ID\nName-Type: X\neth0.10 | 10 | eth0\n"
    links = by_name(host({**link_files("eth0"), **link_files("eth0.10"), "/proc/net/vlan/config": table}))
    assert (links["eth0.10"].kind, links["eth0.10"].detail) == ("vlan", {"id": "10"})
    assert (links["eth0.10"].lower, links["eth0"].upper) == (("eth0",), ("eth0.10",))


def test_a_macvlan_by_its_iflink() -> None:
    files = {**link_files("e0", ifindex=2, iflink=2), **link_files("m0", ifindex=3, iflink=2, uevent="DEVTYPE=macvlan")}
    assert by_name(host(files))["m0"].lower == ("e0",)


def test_a_bridge_and_its_ports() -> None:
    files = {**link_files("br0", bridge__stp_state=1), **link_files("p0", brport__state=3)}
    links = by_name(host(files, {f"{NET}/br0/lower_p0": "../p0", f"{NET}/p0/upper_br0": "../br0"}))
    assert (links["br0"].lower, links["br0"].detail) == (("p0",), {"stp_state": "1"})
    assert links["p0"].detail == {"port_state": "forwarding"}


def test_ip_tells_the_stack_where_sysfs_has_none() -> None:
    bond = {"ifname": "bond0", "linkinfo": {"info_kind": "bond"}}
    vlan = {"ifname": "bond0.5", "link": "bond0", "linkinfo": {"info_kind": "vlan"}}
    links = by_name(host({}, recorded=ip_answer(bond, vlan, {**ETH0, "master": "bond0"})))
    assert (links["bond0"].lower, links["bond0"].upper) == (("eth0",), ("bond0.5",))
    assert links["bond0.5"].lower == ("bond0",)


# --- addresses and routes -------------------------------------------------------------------------------------------


def test_default_routes_of_both_families() -> None:
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
    files = {
        **link_files("eth0"),
        **link_files("eth1"),
        **link_files("eth2"),
        "/proc/net/route": f"{head}eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n".encode(),
        "/proc/net/ipv6_route": f"{'0' * 32} 00 {'0' * 32} 00 fe{'0' * 30} 400 2 0 00000003 eth1\n".encode(),
    }
    assert {name: link.default_route for name, link in by_name(host(files)).items()} == {
        "eth0": True,
        "eth1": True,
        "eth2": False,
    }


def test_without_routes_nothing_is_said_of_them() -> None:
    machine = host(link_files("eth0"))
    assert by_name(machine)["eth0"].default_route is None
    assert "links.default_route" in noted(machine)


def test_addresses_without_ip() -> None:
    files = DATA["addresses_without_ip"]
    machine = host(files)
    assert by_name(machine)["eth0"].addresses == ("192.0.2.2/24", "fd00::2/64")
    assert noted(machine)["links.addresses"] == "without ip the link is unknown that has 10.9.9.9"


# --- what ip may do to us -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Missing("absent", "ip is not installed"), "ip is not installed"),
        (Missing("unreadable", "ip did not answer within 10 s"), "did not answer"),
        (Completed(0, "{not json", ""), "no valid JSON"),
        (Completed(0, "", ""), "no valid JSON"),
        (Completed(0, "7", ""), "no valid JSON"),
        (Completed(255, "", 'Option "-j" is unknown, try "ip -help".'), "is unknown"),
    ],
)
def test_sysfs_stands_in_for_ip_and_the_reason_is_noted(answer: Completed | Missing, why: str) -> None:
    machine = host(*nic_files(), recorded={IP_JSON: answer})
    assert (by_name(machine)["eth0"].mtu, by_name(machine)["eth0"].kind) == (1500, "ethernet")
    assert why in noted(machine)["links.mtu_max"]


def test_an_old_ip_is_asked_for_text() -> None:
    text = (
        "2: eth0: <UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000\n    link/ether 52:54:00:00:00:01 promiscuity 0\n"
    )
    text += "    inet 192.0.2.2/24 scope global eth0\n"
    old = {IP_JSON: Completed(255, "", 'Option "-j" is unknown'), IP_TEXT: Completed(0, text, "")}
    link = by_name(host(*nic_files(), recorded=old))["eth0"]
    assert (link.mtu, link.addresses, link.pci) == (9000, ("192.0.2.2/24",), "0000:00:03.0")


def test_a_kind_that_text_does_not_tell_comes_from_sysfs() -> None:
    text = "2: br0: <UP,LOWER_UP> mtu 9000 state UP\n    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n"
    machine = host(link_files("br0", bridge__stp_state=0, ifindex=2), recorded={IP_TEXT: Completed(0, text, "")})
    assert (by_name(machine)["br0"].kind, by_name(machine)["br0"].mtu) == ("bridge", 9000)


def test_sysfs_of_another_network_namespace_is_not_mixed_in() -> None:
    machine = host(*nic_files(ifindex=77), recorded=ip_answer(ETH0))
    link = by_name(machine)["eth0"]
    assert (link.mtu, link.pci, link.speed_mbps) == (9000, None, None)
    assert noted(machine)["links.pci"] == "/sys/class/net shows the links of another network namespace"


def test_a_link_that_came_or_went_between_two_readings() -> None:
    files, links = nic_files()
    assert by_name(host({**files, **link_files("new")}, links, recorded=ip_answer(ETH0))).keys() == {"eth0"}
    gone = by_name(host(files, links, recorded=ip_answer(ETH0, {"ifname": "gone", "ifindex": 9})))["gone"]
    assert (gone.kind, gone.speed_mbps, gone.features) == ("unknown", None, None)


def test_a_host_without_anything() -> None:
    machine = host({})
    assert by_name(machine) == {}
    assert noted(machine)["links"] == "does not exist"


# --- names ----------------------------------------------------------------------------------------------------------


# --- InfiniBand -----------------------------------------------------------------------------------------------------


def test_a_link_on_the_second_port_of_a_card() -> None:
    files, links = nic_files("ib1", type=32, dev_port=1, speed="-1")
    ports = {1: "10 Gb/sec (4X SDR)", 2: "40 Gb/sec (4X QDR)"}
    for number, rate in ports.items():
        place = f"/sys/class/infiniband/mlx4_0/ports/{number}"
        files |= {f"{place}/rate": rate.encode(), f"{place}/state": b"4: ACTIVE\n"}
    files[f"{NIC}/virtio0/infiniband/mlx4_0/fw_ver"] = b"1\n"
    link = by_name(host(files, links))["ib1"]
    assert (link.kind, link.speed_mbps) == ("infiniband", 40000)
    assert link.detail == DATA["a_link_on_the_second_port_of_a_card"]


@pytest.mark.parametrize(
    ("text", "mbps"), [("2.5 Gb/sec (1X SDR)", 2500), ("400 Gb/sec (4X NDR)", 400000), ("?", None)]
)
def test_rate(text: str, mbps: int | None) -> None:
    assert parse_rate_mbps(text) == mbps


# --- the captured hosts ---------------------------------------------------------------------------------------------


@pytest.mark.captured
def test_captured_cards() -> None:
    links = by_name(captured.host("hwloc/32intel64-2p8co2t+8ve"))
    rows = [row for row in captured.truth_rows("hwloc_devices_truth") if row["class"] == "net"]
    assert links.keys() == {row["name"] for row in rows}
    for row in rows:
        link, expected = links[row["name"]], json.loads(row["attrs"])
        assert (link.pci, str(link.numa_node), link.local_cpus) == (row["pci"], row["numa_node"], row["local_cpus"])
        assert (link.driver, str(link.mtu), link.state) == tuple(
            expected[key] for key in ("driver", "mtu", "operstate")
        )
        assert (str(link.txqueuelen), link.mac) == (expected["tx_queue_len"], expected["address"])
        assert link.speed_mbps == (int(expected["speed"]) if "speed" in expected else None)
        assert link.carrier == ({"1": True}.get(expected.get("carrier")))
        assert link.kind == "ethernet"
        assert link.irqs


@pytest.mark.captured
def test_captured_composite_host() -> None:
    machine = captured.host("procfs/procfs-fixtures")
    rows = captured.truth_rows("procfs_truth")
    link = by_name(machine)["eth0"]
    expected = dict(word.split("=") for row in rows if row["kind"] == "net" for word in row["a"].split())
    assert (str(link.mtu), str(link.speed_mbps), link.state) == tuple(
        expected[key] for key in ("mtu", "speed", "operstate")
    )
    assert (str(link.txqueuelen), link.mac, link.carrier) == (expected["tx_queue_len"], expected["address"], True)
    assert link.permanent_mac is None  # addr_assign_type is 3: somebody set it


@pytest.mark.captured
def test_captured_infiniband() -> None:
    host = captured.host("procfs/procfs-fixtures")
    ports = {f"{device}/{port.port}": port for device in host.names(CLASS) for port in read_ports(host, device)}
    rows = {row["name"]: row["a"] for row in captured.truth_rows("procfs_truth") if row["kind"] == "ib"}
    assert ports.keys() == rows.keys()
    for name, words in rows.items():
        port = ports[name]
        assert words.startswith(f"rate={port.rate} state=4: {port.state} phys=")
        assert words.endswith(f": {port.physical_state} layer={port.layer}")
    assert [port.speed_mbps for port in ports.values()] == [100000, 40000, 40000, 25000]


def test_a_function_and_a_representor_name_the_port_that_they_are_part_of() -> None:
    files, links = nic_files("ens1f0")
    place = "/sys/devices/pci0000:00/0000:00:03.0/virtio0/net/ens1f0_0"
    for key, value in {"ifindex": 3, "iflink": 3, "type": 1, "mtu": 1500, "operstate": "up"}.items():
        files[f"{place}/{key}"] = f"{value}\n".encode()
    files |= {
        "/sys/bus/pci/devices/0000:00:03.0/vendor": b"0x8086\n",
        "/sys/bus/pci/devices/0000:00:03.0/device": b"0x37d1\n",
    }
    links |= {f"{NET}/ens1f0_0": place, f"{place}/device": "../../../virtio0"}
    found = {one.name: (one.port_of, one.pci_id) for one in read_links(host(files, links), Unknowns())}
    assert found == {"ens1f0": (None, "8086:37d1"), "ens1f0_0": ("0000:00:03.0", "8086:37d1")}
    links[f"{NIC}/virtio0/physfn"] = "../0000:00:02.0"
    assert {one.port_of for one in read_links(host(files, links), Unknowns())} == {"0000:00:02.0", "0000:00:03.0"}
