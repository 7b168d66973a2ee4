"""iSCSI sessions, node records and targets of fake hosts, and that no secret of them is ever read or handed on."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from advisor.facts.block.block import Array
from advisor.facts.block.disks import read_disks
from advisor.facts.host_facts import scan
from advisor.facts.network.links import Link
from advisor.facts.redaction import without_secrets
from advisor.facts.remote.iscsi import (
    Iscsi,
    link_at,
    link_towards,
    parse_iet,
    parse_iscsi_settings,
    parse_portal,
    read_iscsi,
)
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, RecordedCommands
from advisor.limits.links import read_pci_and_network
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.cases import read_cases
from tests.facts.iscsi import CONF, RECORD, SECRET, TARGET, IscsiTree
from tests.rules.build import array, link

LINKS = (link("eth1", addresses=("10.0.0.7/24",)), link("eth2", addresses=("10.0.1.7/24", "2001:db8::7/64")))


def two_paths() -> IscsiTree:
    tree = IscsiTree()
    tree.session(1, local="10.0.0.7", portal="10.0.0.20", disks=("sda",))
    tree.session(2, local="10.0.1.7", portal="10.0.1.20", disks=("sdb",))
    tree.node()
    tree.files["/etc/iscsi/iscsid.conf"] = CONF
    return tree


def read(
    host: Host, links: tuple[Link, ...] = LINKS, arrays: tuple[Array, ...] = ()
) -> tuple[Iscsi | None, dict[str, str]]:
    unknown = Unknowns()
    found = read_iscsi(host, links, read_disks(host, Unknowns()), arrays, unknown)
    return found, {one.fact: one.why for one in unknown.listed()}


def known(tree: IscsiTree, links: tuple[Link, ...] = LINKS, arrays: tuple[Array, ...] = ()) -> Iscsi:
    found, unknown = read(tree.host(), links, arrays)
    assert found is not None
    assert unknown == {}
    return found


def test_a_host_without_iscsi_has_none_of_it() -> None:
    assert read(IscsiTree().host()) == (None, {})


def test_two_sessions_to_one_target() -> None:
    mapped = array("mpatha", "sda", "sdb", manager="dm-multipath", level="multipath")
    found = known(two_paths(), arrays=(mapped, array("md0", "sdb")))
    first, second = found.sessions
    assert (first.name, first.target, first.state, first.recovery_seconds) == ("session1", TARGET, "LOGGED_IN", 120)
    assert (first.first_burst_bytes, first.max_burst_bytes, first.can_queue) == (262_144, 16_776_192, 113)
    assert (first.immediate_data, first.initial_r2t) == (True, False)
    assert (first.disks, first.links, second.disks, second.links) == (("sda",), ("eth1",), ("sdb",), ("eth2",))
    (wire,) = second.connections
    assert (wire.address, wire.port, wire.local_address, wire.link) == ("10.0.1.20", 3260, "10.0.1.7", "eth2")
    assert (wire.header_digest, wire.data_digest, wire.max_recv_bytes) == (False, False, 262_144)
    assert found.multipath_disks == ("sda", "sdb")


def test_a_record_and_the_settings_keep_what_rules_look_at_and_no_secret() -> None:
    found = known(two_paths())
    (node,) = found.nodes
    assert (node.target, node.portal, node.interface) == (TARGET, "10.0.0.20,3260,1", "default")
    assert node.settings["node.session.cmds_max"] == "128"
    assert found.settings["node.session.cmds_max"] == "100"
    assert not [key for key in (*node.settings, *found.settings) if "auth" in key]


def test_the_last_line_of_a_key_counts_and_a_comment_does_not() -> None:
    text = "node.session.cmds_max = 64\n#node.session.cmds_max = 1\nnode.session.cmds_max=256\nnode.other = 1\n"
    assert parse_iscsi_settings(text) == {"node.session.cmds_max": "256"}


def test_records_of_red_hat_and_of_old_open_iscsi() -> None:
    tree = IscsiTree()
    tree.node(base="/var/lib/iscsi/nodes")
    tree.files[f"/etc/iscsi/nodes/{TARGET}/10.0.9.9,3260"] = "node.session.queue_depth = 64\n"
    assert [(one.portal, one.interface) for one in known(tree).nodes] == [
        ("10.0.9.9,3260", "default"),
        ("10.0.0.20,3260,1", "default"),
    ]


def test_records_that_both_places_lead_to_count_once() -> None:
    tree = IscsiTree()
    tree.node(base="/var/lib/iscsi/nodes")
    tree.links["/etc/iscsi/nodes"] = "/var/lib/iscsi/nodes"
    assert [one.path for one in known(tree).nodes] == [f"/etc/iscsi/nodes/{TARGET}/10.0.0.20,3260,1/default"]


DATA = read_cases(__file__, LINKS=LINKS)


@pytest.mark.parametrize(
    ("local", "portal", "links", "carrier"),
    [
        *DATA["the_link_of_a_connection"],
        ("10.0.0.7", "10.0.0.20", (LINKS[0], link("eth3", addresses=("10.0.0.7/24",))), None),
    ],
)
def test_the_link_of_a_connection(local: str, portal: str, links: tuple[Link, ...], carrier: str | None) -> None:
    tree = IscsiTree()
    tree.session(1, local=local, portal=portal)
    found, unknown = read(tree.host(), links)
    assert found is not None
    assert found.sessions[0].connections[0].link == carrier
    assert ("iscsi.connections.connection1:0.link" in unknown) is (carrier is None)


def test_addresses_that_are_none() -> None:
    odd = (link("eth1", addresses=("no", "10.0.0.1/99", "fe80::1/64")),)
    assert (link_at("x", LINKS), link_at(None, LINKS), link_at("10.0.0.7", odd)) == (None, None, None)
    assert link_towards("fe80::9", odd) is None


def test_what_this_host_exports() -> None:
    tree = IscsiTree()
    tree.nvme(0, 0)
    tree.export("nvme0n1", "10.0.0.7:3260", "0.0.0.0:3260", "[2001:db8::7]:3260", "nonsense")
    (target,) = known(tree).targets
    assert (target.name, target.group, target.enabled, target.disks) == (TARGET, 1, True, ("nvme0n1",))
    portals = {one.address: (one.port, one.link) for one in target.portals}
    assert portals == {"10.0.0.7": (3260, "eth1"), "0.0.0.0": (3260, None), "2001:db8::7": (3260, "eth2")}
    assert target.parameters == {"MaxBurstLength": "262144"}


@pytest.mark.parametrize(("text", "enabled"), [("1", True), ("0", False), ("maybe", None)])
def test_whether_a_target_is_enabled(text: str, enabled: bool | None) -> None:
    tree = IscsiTree()
    tree.export("nvme0n1")
    tree.files[f"/sys/kernel/config/target/iscsi/{TARGET}/tpgt_1/enable"] = f"{text}\n"
    (target,) = known(tree).targets
    assert (target.enabled, target.disks) == (enabled, ())


@pytest.mark.parametrize(("text", "portal"), DATA["a_portal"])
def test_a_portal(text: str, portal: tuple[str, int] | None) -> None:
    assert parse_portal(text) == portal


def test_records_that_only_root_may_read_are_unknown() -> None:
    tree = two_paths()
    contents = {path: text.encode() for path, text in tree.files.items() if not path.startswith("/etc/iscsi")}
    closed = {"/etc/iscsi/nodes": "Permission denied", "/etc/iscsi/iscsid.conf": "Permission denied"}
    files = MemoryFiles(contents, tree.links, frozenset({*tree.directories, "/etc/iscsi/nodes"}), closed)
    found, unknown = read(Host(files, RecordedCommands({})))
    assert found is not None
    assert (len(found.sessions), found.nodes, found.settings) == (2, (), {})
    assert unknown == {"iscsi.nodes": "Permission denied", "iscsi.settings": "Permission denied"}


def test_a_snapshot_replays_it_and_holds_no_secret(tmp_path: Path) -> None:
    tree = two_paths()
    tree.nvme(0, 0)
    tree.export("nvme0n1", "10.0.0.7:3260")
    tree.node(base="/var/lib/iscsi/nodes", portal="10.0.1.20,3260,1")
    tree.files["/srv/iscsi/nodes/x/10.0.2.20,3260,1/default"] = RECORD
    tree.links["/var/lib/iscsi/nodes/linked"] = "/srv/iscsi/nodes/x"
    host = tree.host()
    data = capture_host(host, scan)
    (tmp_path / "snapshot").write_bytes(data)
    there = open_snapshot(tmp_path / "snapshot")
    once, again = scan(host), scan(there)
    assert once.iscsi is not None
    assert len(once.iscsi.nodes) == 3
    assert (again.iscsi, again.disks) == (once.iscsi, once.disks)
    assert SECRET.encode() not in gzip.decompress(data)
    # The ceilings of a captured host know its sessions too.
    assert read_pci_and_network(there, again).portals == read_pci_and_network(host, once).portals != {}


def test_the_password_of_a_record_is_redacted_wherever_records_lie() -> None:
    for path in ("/etc/iscsi/nodes/a/b/c", "/var/lib/iscsi/nodes/a/b/c", "/var/lib/iscsi/send_targets/a/st_config"):
        assert SECRET.encode() not in without_secrets(path, RECORD.encode())


def test_a_thousand_sessions_are_read_as_far_as_the_bound() -> None:
    tree = IscsiTree()
    tree.directories |= {f"/sys/class/iscsi_session/session{number}" for number in range(1000)}
    found, unknown = read(tree.host())
    assert found is not None
    assert len(found.sessions) == 512
    assert "1000" in unknown["iscsi.sessions"]


def test_targets_of_iet_and_those_that_are_logged_in() -> None:
    text = DATA["targets_of_iet_and_those_that_are"]
    found = parse_iet(text)
    assert found["iqn.2006-01.com.openfiler:b"].paths == ()
    one = found["iqn.2006-01.com.openfiler:a"]
    assert one.paths == ("/dev/vg0/lv 0", "/srv/x")
    assert one.initiators == ("192.0.2.7", "fe80::1")
    assert parse_iet("\tlun:0 path:/dev/sda\nnothing\n") == {}
