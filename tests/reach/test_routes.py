"""Which link leads where: ip(8) and the tables of /proc/net, against each other and in every state of damage."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.reach.addresses import (
    Hop,
    gateways,
    lookup,
    parse_default_routes,
    parse_route_get,
    parse_route_table,
    parse_route_table6,
    route_to,
)
from tests.cases import cases
from tests.reach.space import Spaces
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

TABLE = CASES["TABLE"]
TABLE6 = CASES["TABLE6"]
BASE = {"/proc/version": "Linux\n", "/proc/net/route": TABLE, "/proc/net/ipv6_route": TABLE6}


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text)


def test_gateways_without_ip(tmp_path: Path) -> None:
    host = host_of(make_tree(tmp_path / "root", BASE), tmp_path / "empty")
    make_command(tmp_path / "empty", "ip", "echo 'BusyBox: ip: -j: unknown' >&2; exit 1")
    assert gateways(host) == (
        (address("192.0.2.1"), "eth0"),
        (address("fe80::1"), "eth0"),
        (address("2001:db8:b::1"), "eth1"),
    )


def test_gateways_of_every_table_and_next_hop(tmp_path: Path) -> None:
    routes = [
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []},
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "table": "100"},
        {"dst": "default", "dev": "ppp0", "scope": "link"},
        {
            "dst": "default",
            "nexthops": [
                {"gateway": "192.0.2.3", "dev": "eth1"},
                {"via": {"family": "inet6", "host": "fe80::3"}, "dev": "eth2"},
                {"dev": "eth3"},
                7,
            ],
        },
        {"dst": "default", "gateway": "evil;reboot", "dev": "eth0"},
        {"type": "unreachable", "dst": "default", "dev": "lo"},
    ]
    make_command(tmp_path / "bin", "ip", f"case \"$*\" in *-4*) echo '{json.dumps(routes)}' ;; *) echo '[]' ;; esac")
    host = host_of(make_tree(tmp_path / "root", BASE), tmp_path / "bin")
    assert gateways(host) == (
        (address("192.0.2.1"), "eth0"),
        (address("192.0.2.3"), "eth1"),
        (address("fe80::3"), "eth2"),
    )


@pytest.mark.parametrize(
    ("script", "hop"),
    [
        ("""echo '[{"dst":"198.51.100.9","gateway":"192.0.2.1","dev":"eth5"}]'""", Hop("eth5", address("192.0.2.1"))),
        ("""echo '[{"type":"local","dst":"198.51.100.9","dev":"lo"}]'""", Hop("lo", is_local=True)),
        ("echo 'RTNETLINK answers: Network is unreachable' >&2; exit 2", None),
        ("echo '198.51.100.9 via 192.0.2.1 dev eth5'", Hop("eth0", address("192.0.2.1"))),
        ("echo '[{}]'", Hop("eth0", address("192.0.2.1"))),
    ],
    ids=["router", "own address", "no route", "no JSON", "no link"],
)
def test_the_next_hop(tmp_path: Path, script: str, hop: Hop | None) -> None:
    make_command(tmp_path / "bin", "ip", script)
    host = host_of(make_tree(tmp_path / "root", BASE), tmp_path / "bin")
    assert route_to(host, address("198.51.100.9")) == hop


@given(st.text(max_size=200))
def test_no_text_breaks_them(text: str) -> None:
    assert parse_route_get(text) is None or text.lstrip().startswith("[")
    assert isinstance(parse_default_routes(text), tuple)
    assert isinstance(parse_route_table(text), tuple)
    assert isinstance(parse_route_table6(text), tuple)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["dev", "gateway", "via", "host", "nexthops", "type"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_VALUES)
def test_no_json_breaks_them(value: object) -> None:
    text = json.dumps(value)
    hop = parse_route_get(text)
    assert hop is None or hop.link
    assert all(link for _, link in parse_default_routes(text) if link)


ROUTES = (
    "192.0.2.0/26 dev a0",
    "192.0.2.64/26 dev b0",
    "198.51.100.0/24 via 192.0.2.1 dev a0",
    "198.51.100.128/25 via 192.0.2.65 dev b0",
    "198.51.100.130/32 via 192.0.2.1 dev a0",
    "203.0.113.0/24 via 192.0.2.65 dev b0 metric 10",
    "203.0.113.0/24 via 192.0.2.1 dev a0 metric 20",
    "2001:db8:1::/48 via 2001:db8:a::9 dev a0",
    "2001:db8:1:2::/64 via 2001:db8:b::9 dev b0",
)


def test_the_tables_say_what_ip_says(spaces: Spaces) -> None:
    """The fallback against the kernel's own lookup, in a namespace with overlapping routes."""
    spaces.add("here", "far")
    for link, number in (("a0", 1), ("b0", 2)):
        spaces.wire(("here", link), ("far", f"far{number}"))
    spaces.address("here", "a0", "192.0.2.2/32", "2001:db8:a::1/64")
    spaces.address("here", "b0", "192.0.2.66/32", "2001:db8:b::1/64")
    for route in ROUTES:
        version = "-6" if ":" in route.split()[0] else "-4"
        spaces.run("here", f"ip {version} route add {route}")
    four = parse_route_table(spaces.run("here", "cat /proc/net/route"))
    six = parse_route_table6(spaces.run("here", "cat /proc/net/ipv6_route"))
    targets = ["192.0.2.3", "192.0.2.70", "198.51.100.1", "198.51.100.129", "198.51.100.130", "203.0.113.5"]
    for text in (*targets, "2001:db8:1::5", "2001:db8:1:2::5", "2001:db8:a::5"):
        target = address(text)
        reported = parse_route_get(spaces.run("here", f"ip -j route get {text}"))
        assert reported is not None
        assert lookup(four if target.version == 4 else six, target) == reported
