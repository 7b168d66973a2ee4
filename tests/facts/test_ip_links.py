"""ip's JSON and text, and the tables below /proc/net."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from functools import cache

import pytest

from advisor.facts.network.ip_text import parse_ip_links, parse_ip_text
from advisor.facts.network.link_tables import (
    parse_bonding,
    parse_default_routes,
    parse_default_routes6,
    parse_inet6,
    parse_local_addresses,
    parse_vlan_config,
    place_addresses,
)
from tests.captured import captured_file
from tests.cases import read_cases


def entry(name: str, **more: object) -> dict[str, object]:
    return {"ifindex": 7, "ifname": name, "flags": ["UP", "LOWER_UP"], "mtu": 1500, "link_type": "ether", **more}


def info(kind: str, **data: object) -> dict[str, object]:
    return {"info_kind": kind, "info_data": data}


# --- ip -j ----------------------------------------------------------------------------------------------------------


DATA = read_cases(__file__, info)


@pytest.mark.parametrize(("more", "kind"), DATA["kind"])
def test_kind(more: Mapping[str, object], kind: str) -> None:
    assert parse_ip_links(json.dumps([entry("x", **more)]))["x"].kind == kind


def test_a_bond_and_its_member() -> None:
    bond = info("bond", mode="802.3ad", miimon=100, xmit_hash_policy="layer3+4", ad_lacp_rate="fast", num_peer_notif=1)
    member = {"info_slave_kind": "bond", "info_slave_data": {"state": "ACTIVE", "perm_hwaddr": "52:54:00:36:37:ea"}}
    links = parse_ip_links(json.dumps([entry("bond0", linkinfo=bond), entry("e0", master="bond0", linkinfo=member)]))
    assert links["bond0"].detail == DATA["a_bond_and_its_member"]
    assert (links["e0"].master, links["e0"].permanent_mac) == ("bond0", "52:54:00:36:37:ea")
    assert links["e0"].detail == {"port_state": "ACTIVE"}


def test_what_a_link_is_bound_to() -> None:
    vxlan = info("vxlan", id=42, port=4789, link="e0")
    links = parse_ip_links(
        json.dumps(
            [
                entry("e0.5", link="e0", linkinfo=info("vlan", id=5, protocol="802.1Q")),
                entry("v0", link="v1", linkinfo=info("veth")),
                entry("vx", linkinfo=vxlan),
                entry("far", link=None, link_index=3, link_netnsid=0, linkinfo=info("macvlan", mode="bridge")),
            ]
        )
    )
    assert links["e0.5"].below == "e0"
    assert links["vx"].below == "e0"
    assert links["v0"].below is None
    assert links["v0"].detail == {"peer": "v1"}
    assert links["far"].below is None
    assert links["far"].detail == {"mode": "bridge", "link_netnsid": "0"}


def test_no_bound_is_none_and_a_length_of_0_is_0() -> None:
    link = parse_ip_links(json.dumps([entry("lo", min_mtu=0, max_mtu=0)]))["lo"]
    assert (link.mtu_min, link.mtu_max, link.txqueuelen) == (None, None, 0)


def test_addresses_come_ipv4_first() -> None:
    addresses = DATA["addresses_come_ipv4_first"]
    link = parse_ip_links(json.dumps([entry("x", addr_info=addresses)]))["x"]
    assert link.addresses == ("10.0.0.1/24", "10.1.0.1/32", "fd00::1/64")


def test_carrier_is_known_of_links_that_are_up() -> None:
    up, idle, down = (["UP", "LOWER_UP"], ["NO-CARRIER", "UP"], ["BROADCAST"])
    links = parse_ip_links(json.dumps([entry(str(at), flags=flags) for at, flags in enumerate((up, idle, down))]))
    assert [link.carrier for link in links.values()] == [True, False, None]


def test_empty_entries_of_old_versions_are_passed_over() -> None:
    assert parse_ip_links('[{},{},{"ifname":"eth0"},"x",null]').keys() == {"eth0"}


def test_a_tunnels_ip_address_is_no_mac() -> None:
    assert parse_ip_links(json.dumps([entry("t", link_type="ipip", address="10.0.0.1")]))["t"].mac is None
    assert parse_ip_links(json.dumps([entry("t", link_type="tunnel6", address="fd00::1")]))["t"].mac is None


def test_a_control_character_that_ip_did_not_escape() -> None:
    assert parse_ip_links('[{"ifname":"c\x01d","link":"a\\"b"}]').keys() == {"c\x01d"}


@pytest.mark.parametrize("text", ["", "{}", "not json", "[", '[{"ifname": "eth0"', "[" * 100_000, '"x"', "null"])
def test_what_is_no_list_of_links_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_ip_links(text)


# --- ip without -j --------------------------------------------------------------------------------------------------

TEXT = DATA["TEXT"]


def test_text_tells_what_json_tells() -> None:
    links = parse_ip_text(TEXT)
    assert {name: link.kind for name, link in links.items()} == DATA["text_tells_what_json_tells"]
    vlan = links["bond0.5"]
    assert (vlan.below, vlan.mtu, vlan.mtu_min, vlan.mtu_max) == ("bond0", 9000, None, 65535)
    assert vlan.detail == {"protocol": "802.1Q", "id": "5"}
    assert vlan.addresses == ("10.0.0.5/24", "fe80::290:faff:fe8d:361e/64")
    assert (links["eno1"].master, links["eno1"].permanent_mac) == ("bond0", "00:90:fa:8d:36:22")
    assert (links["eno1"].txqueuelen, links["eno1"].state, links["eno1"].carrier) == (1000, "up", True)
    assert links["tun0"].addresses == ("10.1.0.1/32",)
    assert (links["va"].below, links["mv"].below, links["mv"].detail) == (None, None, {"mode": "bridge"})


def test_without_details_a_card_and_a_bridge_look_alike() -> None:
    text = "2: br0: <UP> mtu 1500 state UP\n    link/ether 00:90:fa:8d:36:1e brd ff:ff:ff:ff:ff:ff\n"
    assert parse_ip_text(text)["br0"].kind is None


# --- /proc/net ------------------------------------------------------------------------------------------------------

ROUTE = DATA["ROUTE"]
ROUTE6 = DATA["ROUTE6"]


def test_default_routes() -> None:
    assert parse_default_routes(ROUTE) == {"eth0"}
    assert parse_default_routes6(ROUTE6) == {"eth1"}


def test_addresses_are_placed_where_that_is_certain() -> None:
    local = {"192.0.2.2", "127.0.0.1", "10.0.0.4", "10.0.0.9", "172.16.0.1", "10.1.0.7"}
    placed, homeless = place_addresses(local, ROUTE)
    assert placed == {"eth0": ("192.0.2.2/24",), "lo": ("127.0.0.1/8",)}
    # Two in one network: the second may be a service address on lo. One behind a gateway, one that no network holds.
    assert sorted(homeless) == ["10.0.0.4", "10.0.0.9", "10.1.0.7", "172.16.0.1"]


def test_local_addresses() -> None:
    trie = "Local:\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.4\n        /32 host LOCAL\n"
    assert parse_local_addresses(trie) == {"10.0.0.4"}


def test_inet6() -> None:
    text = "fe800000000000001063befffef176dd 03 40 20 c0       va\nshort 1 2 3 4 va\n"
    assert parse_inet6(text) == {"va": ("fe80::1063:beff:fef1:76dd/64",)}


def test_vlan_config() -> None:
    text = (
        "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n"
        "bond0.10       | 10  | bond0\nv | x | y\n"
    )
    assert parse_vlan_config(text) == {"bond0.10": ("10", "bond0")}


# --- the captured texts ---------------------------------------------------------------------------------------------


@cache
def captured(folder: str) -> Mapping[str, str]:
    found = {}
    with tarfile.open(captured_file("cmd/insights_cmds.tar.xz")) as tar:
        for member in tar:
            opened = tar.extractfile(member) if f"/{folder}/" in f"/{member.name}" else None
            if opened:
                found[member.name.rpartition("/")[2]] = opened.read().decode()
    return found


@pytest.mark.captured
@pytest.mark.parametrize(("file", "mode", "members", "detail"), DATA["captured_bonds"])
def test_captured_bonds(
    file: str, mode: str | None, members: Mapping[str, int | None], detail: Mapping[str, str]
) -> None:
    bond = parse_bonding(captured("bond")[file])
    assert bond.mode == mode
    assert {member.name: member.speed_mbps for member in bond.members} == members
    assert detail.items() <= bond.detail.items()
    assert all(member.permanent_mac for member in bond.members)


@pytest.mark.captured
def test_every_captured_bond_is_tested() -> None:
    assert len(captured("bond")) == 7


@pytest.mark.captured
@pytest.mark.parametrize(("file", "expected"), DATA["captured_ip"])
def test_captured_ip(file: str, expected: Mapping[str, tuple[str | None, int, str | None]]) -> None:
    links = parse_ip_text(captured("ip")[file])
    assert {name: (link.kind, link.mtu, link.master) for name, link in links.items()} == expected


@pytest.mark.captured
def test_captured_bond_in_ip_text() -> None:
    links = parse_ip_text(captured("ip")["IP_D_S_LINK_BOND_1.txt"])
    assert (links["bond0"].detail["mode"], links["bond0"].detail["lacp_rate"]) == ("active-backup", "slow")
    assert (links["enp2s0"].mac, links["enp2s0"].permanent_mac) == ("52:54:00:36:37:ea", "52:54:00:c9:b9:47")
    assert (links["enp2s0"].mtu_min, links["enp2s0"].mtu_max) == (68, 65535)


@pytest.mark.captured
def test_captured_addresses_in_ip_text() -> None:
    links = parse_ip_text(captured("ip")["IP_ADDR_TEST.txt"])
    assert links["bond1.57"].addresses == (
        "10.192.4.171/27",
        "fe80::211:3fff:fee2:f59e/64",
        "2001::211:3fff:fee2:f59e/64",
    )
    assert links["tunl1"].addresses == ("172.30.0.1/32",)


def test_a_heading_that_ubuntu_prints_among_the_details_of_a_vxlan_is_passed_over() -> None:
    """As iproute2 6.1.0-1ubuntu6 prints it; an alias may hold the same words."""
    text = (
        '[{"ifindex":3,"ifname":"vx0","mtu":1450,"ifalias":"a fan-map ","linkinfo":{"info_kind":"vxlan",'
        '"info_data":{"id":42fan-map ,"local":"10.0.0.1","port":4789}}}]'
    )
    found = parse_ip_links(text)["vx0"]
    assert (found.kind, found.mtu, found.detail["id"]) == ("vxlan", 1450, "42")
