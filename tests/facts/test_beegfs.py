"""BeeGFS: configuration files of one and of several instances, where their targets lie, and what is never read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.facts.clusters.beegfs import (
    Beegfs,
    EntryInfo,
    entry_command,
    new_entry_command,
    parse_beegfs_conf,
    parse_entry_info,
    parse_interfaces_file,
    size_bytes,
)
from advisor.facts.host_facts import Facts, scan
from advisor.facts.network.link_stack import RULES, SharedSubnet, SubnetLink, parse_source_rules
from advisor.facts.system.services import show_command
from advisor.host import Host
from advisor.rules.judged import judge
from advisor.snapshot.archive import capture_host, open_snapshot, save_snapshot
from tests import beegfs_client, beegfs_server
from tests.beegfs_server import CPUS, server, tree
from tests.cases import read_cases
from tests.facts.storage import Tree

SINGLE = "/etc/beegfs/beegfs-storage.conf"
UNIT = "beegfs-storage.service"


def beegfs(found: Facts) -> Beegfs:
    assert found.beegfs is not None
    return found.beegfs


def single(conf: str, **files: str) -> Tree:
    """One storage service on a plain drive of node 1, mounted at /data."""
    made = Tree()
    made.nvme(0, 1, number="259:0")
    made.mount("259:0", "/data", "xfs")
    made.files |= {SINGLE: conf, **files}
    made.answer(show_command((UNIT,)), f"Id={UNIT}\nLoadState=loaded\nMainPID=0\n")
    return made


def test_a_storage_server_of_the_article() -> None:
    found = beegfs(server())
    assert len(found.services) == len(found.server_units) == 6
    first = found.services[0]
    assert (first.kind, first.instance) == ("storage", "numa0-storage0")
    assert first.unit == "beegfs-storage@numa0-storage0.service" == first.label
    (target,) = first.targets
    assert (target.path, target.mountpoint, target.filesystem) == ("/data/storage0", "/data/storage0", "xfs")
    assert (target.device, target.array, target.level) == ("md0", "md0", "raid0")
    assert (target.disks, target.numa_nodes) == (tuple(f"nvme{n}n1" for n in range(4)), (0,))
    assert first.interfaces == ("ib0",)
    assert first.service is not None
    assert (first.service.cpus_allowed, first.service.numa_policy) == (CPUS[0], "bind")


def test_a_metadata_server_of_the_article() -> None:
    found = beegfs(server("meta"))
    targets = [
        (one.kind, one.targets[0].level, one.targets[0].filesystem, one.targets[0].numa_nodes) for one in found.services
    ]
    assert targets == [("meta", "raid1", "ext4", (0,))] * 6 + [("storage", "raid0", "xfs", (1,))] * 3


def test_one_service_on_a_plain_drive() -> None:
    found = beegfs(scan(single("storeStorageDirectory = /data/a/, /data/b\ntuneNumWorkers = 8\n").host()))
    (one,) = found.services
    assert (one.unit, one.instance, one.interfaces) == (UNIT, None, None)
    assert [target.path for target in one.targets] == ["/data/a", "/data/b"]
    target = one.targets[1]
    assert (target.device, target.array, target.level, target.disks) == ("nvme0n1", None, None, ("nvme0n1",))
    assert target.numa_nodes == (1,)
    assert one.settings["tuneNumWorkers"] == "8"


def test_a_path_on_what_is_no_block_device_has_no_node() -> None:
    made = single("storeStorageDirectory = /tank/s1\n")
    made.files["/proc/self/mountinfo"] += "31 1 0:44 / /tank rw - zfs tank rw\n"
    (target,) = beegfs(scan(made.host())).services[0].targets
    assert (target.mountpoint, target.filesystem) == ("/tank", "zfs")
    assert (target.device, target.disks, target.numa_nodes) == (None, (), ())


def test_what_was_mounted_last_counts() -> None:
    made = single("storeStorageDirectory = /data/s\n")
    made.nvme(1, 0, number="259:1")
    made.mount("259:1", "/data", "ext4")
    (target,) = beegfs(scan(made.host())).services[0].targets
    assert (target.device, target.numa_nodes) == ("nvme1n1", (0,))


def test_a_host_without_beegfs_has_none() -> None:
    made = Tree()
    made.files["/etc/beegfs/README"] = "x"
    assert scan(made.host()).beegfs is None


def test_a_service_without_targets_is_not_asked_about() -> None:
    # The files of the package, where instances are used instead: no unit, no unknown.
    made = tree()
    made.files[SINGLE] = "storeStorageDirectory =\n"
    found = scan(made.host())
    assert beegfs(found) == msgspec.structs.replace(beegfs(server()), services=beegfs(found).services)
    assert len(beegfs(found).services) == 7
    assert not [one for one in found.unknown if one.fact.startswith("services.")]


def test_clients_and_management() -> None:
    made = tree()
    made.files |= {
        "/etc/beegfs/beegfs-client-small.conf": "connMaxInternodeNum = 24\n",
        "/etc/beegfs/beegfs-mgmtd.conf": "storeMgmtdDirectory = /data/storage0/m\n",
        "/etc/beegfs/beegfs-mounts.conf": "/mnt/small /etc/beegfs/beegfs-client-small.conf\n",
    }
    found = beegfs(scan(made.host()))
    rest = {one.label: one for one in found.services if not one.targets}
    assert set(rest) == {"/etc/beegfs/beegfs-client-small.conf", "beegfs-mgmtd.service"}
    assert rest["/etc/beegfs/beegfs-client-small.conf"].kind == "client"
    assert len(found.server_units) == 6


@pytest.mark.parametrize(
    "file",
    [
        *("/etc/shadow", "/etc/beegfs/../shadow", "/etc/beegfs/connauthfile", "/etc/beegfs/a/b/c/deep.conf"),
        *("/root/x", "/etc/beegfs/./x"),
    ],
)
def test_an_interfaces_file_elsewhere_is_not_read(file: str) -> None:
    read: list[str] = []

    made = single(f"storeStorageDirectory = /data\nconnInterfacesFile = {file}\n", **{"/etc/shadow": "root:secret\n"})
    made.files["/etc/beegfs/connauthfile"] = "secret\n"
    host = made.host()
    found = scan(_Watched(host, read))
    assert beegfs(found).services[0].interfaces is None
    assert not {"/etc/shadow", "/etc/beegfs/connauthfile", file} & set(read)
    assert [one.fact for one in found.unknown if "interfaces" in one.fact] == [f"beegfs.{SINGLE}.interfaces"]


class _Watched(Host):
    """A host that keeps which files were opened."""

    def __init__(self, host: Host, read: list[str]) -> None:
        super().__init__(host.files, host.commands, is_root=True)
        self._read = read

    def read(self, path: str) -> object:  # type: ignore[override]
        self._read.append(path)
        return super().read(path)


def test_nothing_that_authenticates_is_kept() -> None:
    text = "connAuthFile = /etc/beegfs/conn.auth\nconnDisableAuthentication = true\nsysMgmtdHost = secret\n"
    assert parse_beegfs_conf(text + "connMaxInternodeNum=12\n") == {"connMaxInternodeNum": "12"}
    encoded = msgspec.json.encode(server().beegfs)
    assert b"onnauthfile" not in encoded


def test_configuration_text() -> None:
    text = "# tuneNumWorkers = 1\ntuneNumWorkers=2\r\n tuneNumWorkers = 3 \ntuneX\n=4\ntune Foo = 5\nconnUseRDMA = \n"
    assert parse_beegfs_conf(text) == {"tuneNumWorkers": "3", "connUseRDMA": ""}
    assert parse_beegfs_conf(f"tuneX{'y' * 70} = 1\ntuneLong = {'z' * 20_000}\n") == {}


def test_interfaces_text() -> None:
    assert parse_interfaces_file("ib0\n# ib9\n\n ib1 10.0.0.1 4\n! eth0 * *\n*\nib0\n") == ("ib0", "ib1", "*")


DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "size"), DATA["sizes"])
def test_sizes(text: str, size: int | None) -> None:
    assert size_bytes(text) == size


def test_entry_information_of_both_tools() -> None:
    shown = beegfs_server.ENTRY.format(chunk="2M", count=3)
    assert parse_entry_info(shown) == EntryInfo("RAID0", 2 << 20, 3)
    mirrored = "+ Type: Buddy Mirror\n+ Chunksize: 1M\n+ Number of buddy groups: desired: 4\n"
    assert parse_entry_info(mirrored) == EntryInfo("Buddy Mirror", 1 << 20, 4)
    assert parse_entry_info("Error: Communication with metadata node failed\n") is None


def test_the_stripe_pattern_of_a_mounted_file_system() -> None:
    (one,) = beegfs(server(pattern=("2M", 3))).patterns
    assert (one.mountpoint, one.entry) == ("/mnt/beegfs", EntryInfo("RAID0", 2 << 20, 3))


def test_release_8_has_another_tool() -> None:
    made = beegfs_client.tree(pattern=None)
    made.answer(new_entry_command("/mnt/beegfs"), beegfs_server.ENTRY.format(chunk="512K", count=4))
    seen = scan(made.host())
    assert (beegfs(seen).tool, beegfs(seen).patterns[0].entry) == ("beegfs", EntryInfo("RAID0", 512 << 10, 4))
    [one] = [finding for finding in judge(seen, None) if finding.id == "beegfs.client-stripes"]
    assert "beegfs entry set --num-targets=3" in str(one.fix)
    bare = scan(beegfs_client.tree(pattern=None).host())
    assert [one.fact for one in bare.unknown if "pattern" in one.fact] == ["beegfs./mnt/beegfs.pattern"]


def test_a_tool_that_fails_tells_no_pattern() -> None:
    made = tree(pattern=("2M", 3))
    made.answer(entry_command("/mnt/beegfs"), "", rc=1)
    assert beegfs(scan(made.host())).patterns == ()


def test_links_in_one_subnet() -> None:
    (shared,) = beegfs(server(arp={"arp_ignore": 1, "rp_filter": 2})).shared_subnets
    links = tuple(SubnetLink(name, 2, 0, 1, 0) for name in ("ib0", "ib1"))
    assert shared == SharedSubnet("10.10.0.0/24", links, source_rules=False)


def test_links_in_networks_of_their_own_share_none() -> None:
    assert beegfs(server(networks=("10.10.0.1/24", "10.11.0.1/24"))).shared_subnets == ()


def test_the_link_s_own_value_counts_where_it_is_larger() -> None:
    made = tree(arp={"arp_ignore": 1})
    made.files["/proc/sys/net/ipv4/conf/ib1/arp_ignore"] = "2\n"
    del made.files["/proc/sys/net/ipv4/conf/ib1/rp_filter"]
    (shared,) = beegfs(scan(made.host())).shared_subnets
    assert [(one.arp_ignore, one.rp_filter) for one in shared.links] == [(1, 0), (2, None)]


@pytest.mark.parametrize(("text", "found"), [*DATA["routing_by_source"], ("[" * 5000, None)])
def test_routing_by_source(text: str, found: bool | None) -> None:
    assert parse_source_rules(text) is found


def test_routing_rules_that_cannot_be_asked_for_are_unknown() -> None:
    made = tree()
    del made.answers[RULES]
    assert beegfs(scan(made.host())).shared_subnets[0].source_rules is None


def test_a_snapshot_replays_all_of_it(tmp_path: Path) -> None:
    made = tree(pattern=("2M", 3)).host()
    save_snapshot(capture_host(made, scan), tmp_path / "host.tar.gz")
    assert scan(open_snapshot(tmp_path / "host.tar.gz")) == scan(made)


def test_a_snapshot_holds_no_password(tmp_path: Path) -> None:
    made = tree()
    made.files["/etc/beegfs/beegfs-mon.conf"] = "dbPassword = hunter2\ntuneNumWorkers = 4\n"
    data = capture_host(made.host(), scan)
    save_snapshot(data, tmp_path / "host.tar.gz")
    again = open_snapshot(tmp_path / "host.tar.gz")
    assert "hunter2" not in str(again.read("/etc/beegfs/beegfs-mon.conf"))
    assert beegfs(scan(again)).services[-1] is not None


def test_odd_input_never_raises() -> None:
    made = tree()
    made.files |= {
        "/etc/beegfs/x.d/beegfs-storage.conf": "storeStorageDirectory = " + ",".join(f"/d{n}" for n in range(1000)),
        "/etc/beegfs/\udcff.d/beegfs-storage.conf": "storeStorageDirectory = /x\n",
        "/etc/beegfs/y.d/beegfs-meta.conf": "\0\udcff= ,,, \nstoreMetaDirectory = ,relative,/,,\n",
        "/etc/beegfs/beegfs-meta.conf/beegfs-meta.conf": "",
    }
    made.files = {path: text.encode("utf-8", "surrogateescape").decode("latin-1") for path, text in made.files.items()}
    found = beegfs(scan(made.host()))
    by_path = {one.path: one for one in found.services}
    assert len(by_path["/etc/beegfs/x.d/beegfs-storage.conf"].targets) == 256
    assert [target.path for target in by_path["/etc/beegfs/y.d/beegfs-meta.conf"].targets] == ["/"]


def test_too_many_instances_are_told() -> None:
    made = Tree()
    made.files |= {f"/etc/beegfs/i{n:03}.d/beegfs-storage.conf": "x\n" for n in range(300)}
    found = scan(made.host())
    assert len(beegfs(found).services) == 256
    assert "beegfs.services" in {one.fact for one in found.unknown}


def test_the_target_chooser_of_an_instance_is_seen() -> None:
    made = tree("meta")
    path = "/etc/beegfs/numa0-meta0.d/beegfs-meta.conf"
    made.files[path] += "tuneTargetChooser = roundrobin\n"
    (setting,) = [one for one in scan(made.host()).site_settings if one.key == "tuneTargetChooser"]
    assert (setting.path, setting.value) == (path, "roundrobin")
