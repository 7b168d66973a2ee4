"""Whom a host talks to: trees with routers, LLT nodes, NFS, iSCSI and NVMe over IP, and what they must not do to us."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.facts.clusters.llt import Llt, LltLink, LltNode, LltNodeLink
from advisor.facts.network.links import Link
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.reach.addresses import Peers
from advisor.reach.peers import NodeAddress, PeerFactsRead, named_peers, parse_set_addr, peers_of
from tests.cases import cases
from tests.rules.build import link
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

# What the routes of this host are: the second network is behind eth1, the third behind the VLAN on bond0.
IP = CASES["IP"]
SYS = "/sys/class"
SESSION = "/sys/devices/platform/host3/session1/connection1:0/iscsi_connection/connection1:0"
FILES = CASES["FILES"]
LINKS = {f"{SYS}/iscsi_connection/connection1:0": f"../../..{SESSION}"}


def wired(name: str, *addresses: str, upper: tuple[str, ...] = (), mtu: int = 1500) -> Link:
    return link(name, addresses=addresses, upper=upper, mtu=mtu)


NETWORK = (
    wired("eth0", "192.0.2.9/24"),
    wired("eth1", "198.51.100.9/24", "2001:db8::9/64", mtu=9000),
    wired("eth2", upper=("bond0",)),
    wired("eth3", upper=("bond0",)),
    wired("bond0", upper=("bond0.7",)),
    wired("bond0.7", "203.0.113.9/24"),
)


def a_host(root: Path, files: Mapping[str, str] = FILES) -> Host:
    make_command(root / "bin", "ip", IP)
    return host_of(make_tree(root / "root", files, LINKS if files is FILES else None), root / "bin")


def facts(llt: Llt | None = None) -> PeerFactsRead:
    return PeerFactsRead(NETWORK, llt)


def by_address(peers: Peers) -> dict[str, tuple[str, str | None, str]]:
    return {peer.address: (peer.role, peer.link, peer.why) for peer in peers.asked}


def test_everybody_whom_a_host_talks_to(tmp_path: Path) -> None:
    peers = peers_of(a_host(tmp_path), facts())
    assert by_address(peers) == {
        "192.0.2.1": ("gateway", "eth0", "default gateway"),
        "fe80::1%eth0": ("gateway", "eth0", "default gateway"),
        "198.51.100.41": ("iscsi", "eth1", "iSCSI portal"),
        "203.0.113.40": ("iscsi", "bond0.7", "iSCSI portal, port 3260"),
        "198.51.100.2": ("nfs", "eth1", "NFS server of /data, /var/log/all"),
        "2001:db8::5": ("nfs", "eth1", "NFS server of /six"),
        "198.51.100.50": ("nvme", "eth1", "NVMe/TCP target nvme1"),
        "2001:db8::50": ("nvme", "eth1", "NVMe/RDMA target nvme2"),
    }
    assert {peer.address: peer.source for peer in peers.asked if peer.source} == {
        "203.0.113.40": "203.0.113.9",
        "198.51.100.50": "198.51.100.9",
    }
    assert {peer.mtu for peer in peers.asked if peer.link == "eth1"} == {9000}
    assert {(one.what, one.why) for one in peers.unprobeable} == {
        ("evil;reboot", "NFS server of /odd: not an IP address"),
        ("portal.example", "iSCSI portal: not an IP address"),
        ("192.0.2.9", "NFS server of /self: an address of this host itself"),
    }


def test_only_those_behind_the_links_that_change(tmp_path: Path) -> None:
    host = a_host(tmp_path)
    assert {peer.link for peer in peers_of(host, facts(), links={"eth1"}).asked} == {"eth1"}
    # A member of a bond carries what goes over the VLAN on that bond.
    over = peers_of(host, facts(), links={"eth2"}, extra=["203.0.113.5", "192.0.2.5", "192.88.99.1"])
    assert [peer.address for peer in over.asked] == ["203.0.113.5", "203.0.113.40"]
    assert {(one.what, one.why) for one in over.unprobeable if one.role == "named"} == {
        ("192.0.2.5", "reached over eth0: none of the links meant"),
        ("192.88.99.1", "no route leads there: none of the links meant"),
    }
    assert peers_of(host, facts(), links={"bond0.7"}).asked == over.asked[1:]
    assert peers_of(host, facts(), links={"none9"}).asked == ()


def test_named_ones(tmp_path: Path) -> None:
    host = a_host(tmp_path)
    peers = named_peers(host, facts(), ["198.51.100.2", "::ffff:192.0.2.5", "127.0.0.1", "10.9.8.7", "198.51.100.2"])
    assert by_address(peers) == {
        "10.9.8.7": ("named", None, "named"),
        "127.0.0.1": ("named", "lo", "named"),
        "192.0.2.5": ("named", "eth0", "named"),
        "198.51.100.2": ("named", "eth1", "named"),
    }
    with pytest.raises(UsageError):
        named_peers(host, facts(), ["198.51.100.2/24"])


def test_one_who_is_named_and_found_is_asked_once(tmp_path: Path) -> None:
    peers = peers_of(a_host(tmp_path), facts(), links={"eth1"}, extra=["198.51.100.2"])
    found = by_address(peers)
    assert found["198.51.100.2"] == ("named", "eth1", "named; NFS server of /data, /var/log/all")
    assert len(peers.asked) == len(found)


def udp(tag: str, address: str | None, carrier: str | None, kind: str = "udp") -> LltLink:
    return LltLink(tag, "udp", kind, False, "50000", None, address, carrier)


LLTTAB = CASES["LLTTAB"]


def test_llt_nodes(tmp_path: Path) -> None:
    llt = Llt(
        running=True,
        flow_control={},
        links=(udp("link1", "198.51.100.9", "eth1"), udp("link2", "203.0.113.9", "bond0.7", "rdma")),
        llttab=None,
        nodes=(
            LltNode(0, "north", "OPEN", True, 2, (LltNodeLink("link1", "UP", "198.51.100.9"),)),
            LltNode(1, "south", "OPEN", False, 2, (LltNodeLink("link1", "UP", "198.51.100.12"),)),
            LltNode(2, "east", "OPEN", False, 2, (LltNodeLink("link2", "UP", "203.0.113.13"),)),
        ),
    )
    peers = peers_of(a_host(tmp_path, {"/proc/version": "Linux\n", "/etc/llttab": LLTTAB}), facts(llt))
    assert {name: rest for name, rest in by_address(peers).items() if rest[0] == "llt"} == {
        "192.0.2.12": ("llt", "eth0", "LLT node 6 over gone"),
        "198.51.100.12": ("llt", "eth1", "LLT node 1 over link1"),
        "203.0.113.12": ("llt", "bond0.7", "LLT node 1 over link2"),
        "203.0.113.13": ("llt", "bond0.7", "LLT node 2 over link2"),
        "fe80::c%eth1": ("llt", "eth1", "LLT node 2 over link1"),
    }
    sources = {peer.address: peer.source for peer in peers.asked}
    assert sources["198.51.100.12"] == "198.51.100.9"
    # An IPv4 source is none for an IPv6 peer.
    assert sources["fe80::c%eth1"] is None
    assert {(one.what, one.why) for one in peers.unprobeable} == {
        ("198.51.100.9", "LLT node 0 over link1: an address of this host itself"),
        ("not-an-address", "LLT node 3 over link1: not an IP address"),
    }


def seen(tag: str) -> LltNodeLink:
    return LltNodeLink(tag, "UP", "00:11:22:33:44:66")


def test_llt_links_that_have_no_addresses(tmp_path: Path) -> None:
    ethernet = LltLink("eth1", "eth-00:11:22:33:44:55", "ether", False, None, None, None, "eth1")
    broadcast = udp("link2", "198.51.100.9", "eth1")
    llt = Llt(
        running=True,
        flow_control={},
        links=(ethernet, broadcast),
        llttab=None,
        # A release that shows the hardware address of a UDP link, too, names nobody to ask.
        nodes=(LltNode(1, "south", "OPEN", False, 2, (seen("eth1"), seen("link2"))),),
    )
    host = a_host(tmp_path, {"/proc/version": "Linux\n"})
    left = peers_of(host, facts(llt), links={"eth1"}).unprobeable
    assert [(one.what, one.link) for one in left] == [("LLT link eth1", "eth1"), ("LLT link link2", "eth1")]
    assert "Ethernet without IP" in left[0].why
    assert "broadcast" in left[1].why
    assert peers_of(host, facts(llt), links={"eth0"}).unprobeable == ()


_HOSTILE = st.text(st.sampled_from("ad=r:,.%;$`\n\t 019fe[]\\\0\x1b٣"), max_size=40)


@given(_HOSTILE, _HOSTILE, st.sampled_from(["tcp", "rdma", "loop"]))
def test_no_attribute_breaks_it(address: str, other: str, transport: str) -> None:
    """Whatever sysfs and the mount table hold: peers have addresses, everything else is distinguished in words."""
    files = {
        f"{SYS}/nvme/nvme1/transport": transport.encode(),
        f"{SYS}/nvme/nvme1/address": f"traddr={address},host_iface={other},host_traddr={other}".encode(),
        f"{SYS}/iscsi_connection/connection1:0/address": address.encode(),
        f"{SYS}/iscsi_connection/connection1:0/port": other.encode(),
        "/proc/mounts": f"s:/ /data nfs rw,addr={address} 0 0\n".encode(),
        "/etc/llttab": f"set-addr 1 link1 {address}\n".encode(),
    }
    llt = Llt(running=False, flow_control={}, links=(udp("link1", other, other),), llttab=None)
    peers = peers_of(Host(MemoryFiles(files), NoCommands()), facts(llt))
    for peer in peers.asked:
        assert peer.address.partition("%")[0].strip("0123456789abcdef.:") == ""


def test_set_addr_lines() -> None:
    assert parse_set_addr(LLTTAB)[1] == NodeAddress("1", "link1", "198.51.100.12")
    assert len(parse_set_addr(LLTTAB)) == 6


def test_neighbours_are_peers_of_links_at_risk_alone(tmp_path: Path) -> None:
    listed = [
        {"dst": "198.51.100.77", "dev": "eth1", "lladdr": "02:00:00:00:00:01", "state": ["STALE"]},
        {"dst": "198.51.100.78", "dev": "eth1", "state": ["FAILED"]},
        {"dst": "203.0.113.77", "dev": "bond0.7", "lladdr": "02:00:00:00:00:02", "state": ["REACHABLE"]},
        {"dst": 5},
    ]
    shell = IP.replace("case", f"case \"$*\" in *neighbor*) echo '{json.dumps(listed)}'; exit ;; esac\ncase", 1)
    make_command(tmp_path / "bin", "ip", shell)
    host = host_of(make_tree(tmp_path / "root", {}), tmp_path / "bin")
    found = {links: by_address(peers_of(host, facts(), links=links)) for links in (("eth1",), ("eth2",))}
    assert {
        links: [one for one, (role, *_) in peers.items() if role == "neighbour"] for links, peers in found.items()
    } == {("eth1",): ["198.51.100.77"], ("eth2",): ["203.0.113.77"]}
    assert "neighbour" not in {role for role, *_ in by_address(peers_of(host, facts())).values()}
