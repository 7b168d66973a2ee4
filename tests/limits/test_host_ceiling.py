"""The ceiling of a whole host: every part once, whatever shares it; what is not known stays unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from advisor.errors import InvalidInputError
from advisor.facts.block.mounts import Mount
from advisor.facts.host_facts import Facts, scan
from advisor.facts.system.identity import Cloud
from advisor.limits.declared import Declared, DeclaredVolume, parse_declared
from advisor.limits.host_ceiling import with_host
from advisor.limits.links import PciAndNetwork, PciHop, read_pci_and_network
from advisor.limits.paths import limits_of
from advisor.limits.records import Binding, HostCeiling, StageSum
from advisor.limits.storage_use import Front, front_of, parse_exports, parse_measured, read_front, with_measured
from advisor.report.host_ceiling import add_ceiling, binding_words
from advisor.report.layout import Page
from tests import beegfs_server
from tests.cases import read_cases
from tests.golden import assert_golden
from tests.known import known
from tests.limits.hosts import EBS, array, disk, facts, link, mounted

DATA = read_cases(__file__)


def near(value: float, **close: Any) -> Any:
    return pytest.approx(value, **close)


TWO = Front("server", "two links", ("eth0", "eth1"))


def of(
    host: Facts,
    declared: Declared | None = None,
    front: Front | None = None,
    hops: Mapping[str, tuple[PciHop, ...]] | None = None,
    **around: object,
) -> HostCeiling:
    context = PciAndNetwork(hops=hops or {}, **around)  # type: ignore[arg-type]
    declared = declared or Declared()
    found = with_host(limits_of(host, context, declared), host, context, declared, front or front_of(host))
    return known(found.host)


def stage(ceiling: HostCeiling, name: str) -> StageSum:
    (found,) = [one for one in ceiling.stages if one.stage == name]
    return found


def drives(*names: str, read: float = 1000.0, write: float = 500.0) -> Declared:
    return Declared(
        tuple(DeclaredVolume("drive", device=name, read_mb_per_s=read, write_mb_per_s=write) for name in names)
    )


def article(role: beegfs_server.Role = "storage", **parts: object) -> HostCeiling:
    host = beegfs_server.behind_switches(beegfs_server.tree(role, **parts)).host()  # type: ignore[arg-type]
    whole = scan(host)
    around = read_pci_and_network(host, whole)
    declared = parse_declared(beegfs_server.volumes().encode(), "v.toml")
    found = known(with_host(limits_of(whole, around, declared), whole, around, declared, read_front(host, whole)).host)
    return found


def test_six_targets_behind_two_links() -> None:
    """S004: 76.8 and 31.2 GB/s of drives, two x16 cards of 15.75, two EDR links of 12.4."""
    found = article()
    media, pcie = stage(found, "media"), stage(found, "pcie")
    assert (media.read_mb_s, media.write_mb_s) == (near(76_800), near(31_200))
    assert len(media.members) == 24
    assert (pcie.read_mb_s, pcie.members) == (near(31_504), ("0000:17:00.0", "0000:97:00.0"))
    assert found.binds is not None
    assert (found.read_mb_s, found.write_mb_s) == (near(24_842, abs=1), near(24_842, abs=1))
    assert (found.binds.stage, found.binds.members) == ("network", ("ib0", "ib1"))
    assert (found.binds.next_stage, found.binds.next_mb_s) == ("pcie", near(31_504))
    assert (known(found.write_binds).next_stage, known(found.write_binds).next_mb_s) == ("media", near(31_200))


def test_a_metadata_server_and_links_of_services() -> None:
    found = article("meta")
    assert stage(found, "media").read_mb_s == near(38_400)
    assert stage(found, "network").members == ("ib1",)
    assert stage(found, "pcie").read_mb_s == near(15_752)
    assert known(found.binds).lifted_mb_s == near(15_752)
    # The storage targets of a host with metadata lie behind one of its two adapters: 15,752, not 31,504.
    found = article("meta")
    assert (known(found.binds).next_stage, known(found.binds).next_mb_s) == ("pcie", near(15_752))
    found = article(interfaces=False)
    assert stage(found, "network").members == ("ib0", "ib1")
    assert "prefers" in found.notes[0]


def test_two_arrays_behind_one_adapter_share_it() -> None:
    names = ["sda", "sdb", "sdc", "sdd"]
    card = PciHop("0000:05:00.0", 8000)
    host = facts(
        [disk(name, kind="scsi") for name in names],
        [array("md0", "raid0", names[:2]), array("md1", "raid0", names[2:])],
        [link("eth0", speed=100_000)],
        filesystems=[mounted("md0", "/a"), mounted("md1", "/b")],
    )
    found = of(host, drives(*names), hops=dict.fromkeys(names, (card,)))
    assert (found.read_mb_s, found.write_mb_s) == (near(1000), near(1000))
    assert found.binds is not None
    assert (found.binds.stage, found.binds.members) == ("pcie", ("0000:05:00.0",))
    assert (found.binds.next_stage, found.binds.next_mb_s) == ("media", near(4000))


def test_drives_of_several_volumes_or_partitions_count_once() -> None:
    names = ["nvme0n1", "nvme1n1"]
    host = facts(
        [disk(name) for name in names],
        [array("dm-0", "striped", names), array("dm-1", "striped", names), array("dm-2", "raid1", names)],
        filesystems=[mounted(f"dm-{n}", f"/{n}") for n in range(3)],
    )
    found = of(host, drives(*names), Front("local", ""))
    assert (found.read_mb_s, found.write_mb_s) == (near(2000), near(1000))
    one = msgspec.structs.replace(disk("nvme0n1"), partitions=("nvme0n1p1", "nvme0n1p2"))
    host = facts([one], filesystems=[mounted("nvme0n1p1", "/a"), mounted("nvme0n1p2", "/b")])
    assert of(host, drives("nvme0n1"), Front("local", "")).read_mb_s == near(1000)


def test_paths_of_a_multipath_device_lead_to_one_medium_over_the_portals_links() -> None:
    names = ["sda", "sdb", "sdc", "sdd"]
    wires = [link(f"eth{n}", pci=f"0000:0{n}:00.0") for n in range(4)]
    host = facts(
        [disk(name, kind="scsi", transport="iscsi") for name in names],
        [array("dm-0", "multipath", names)],
        wires,
        filesystems=[mounted("dm-0", "/vm")],
    )
    found = of(
        host,
        drives(*names, read=300, write=200),
        Front("client", "iSCSI sessions"),
        portals={"iscsi": tuple(one.name for one in wires)},
    )
    assert stage(found, "media").read_mb_s == near(300)
    assert stage(found, "network").read_mb_s == near(471, abs=1)
    assert (known(found.binds).stage, known(found.binds).next_stage) == ("media", "network")


def test_an_instance_carries_all_its_volumes_together() -> None:
    """S002, test 2: 5 + 16 gp3 of 1,000 MB/s and 16,000 IOPS on an r5b.24xlarge."""
    names = [f"nvme{n}n1" for n in range(1, 22)]
    volumes = [DeclaredVolume("gp3", device=name, gib=1000, iops=16_000, throughput_mb_per_s=1000.0) for name in names]
    host = facts(
        [disk(name, model=EBS) for name in names],
        [array("wij", "striped", names[:5]), array("db", "striped", names[5:])],
        [link("eth0", speed=None)],
        filesystems=[mounted("wij", "/wij"), mounted("db", "/db")],
        instance_type="r5b.24xlarge",
        virtualization="amazon",
    )
    found = of(host, Declared(tuple(volumes)))
    assert (found.read_mb_s, found.write_mb_s) == (near(7500), near(7500))
    assert (found.read_iops, found.write_iops) == (near(260_000), near(260_000))
    assert found.binds is not None
    assert (found.binds.stage, found.binds.members) == ("instance", ("r5b.24xlarge",))
    assert (found.binds.next_stage, found.binds.next_mb_s) == ("media", near(21_000))
    assert stage(found, "network").known == "not-counted"


def test_members_of_a_bond_count_once_and_ports_of_a_card_share_its_slot() -> None:
    ports = [link(f"eth{n}", speed=25_000, pci=f"0000:01:00.{n}", gigabits=32) for n in range(2)]
    bond = link("bond0", kind="bond", pci=None, speed=50_000, lower=("eth0", "eth1"), mode="802.3ad")
    host = facts([disk("nvme0n1")], links=[*ports, bond], filesystems=[mounted("nvme0n1", "/data")])
    found = of(host, drives("nvme0n1", read=99_000, write=99_000))
    assert stage(found, "network").members == ("bond0",)
    assert found.read_mb_s == near(4000)
    assert any("slot carries 4,000 MB/s" in note for note in found.notes)


def test_links_and_drives_of_unknown_speed_are_unknown_and_not_zero() -> None:
    wires = [link("eth0"), link("eth1", speed=None, pci="0000:02:00.0")]
    host = facts([disk("nvme0n1")], links=wires, filesystems=[mounted("nvme0n1", "/data")])
    found = of(host, drives("nvme0n1"), TWO)
    network = stage(found, "network")
    assert (network.read_mb_s, network.known) == (None, "unknown")
    assert "eth1: its driver reports no speed" in network.why
    assert found.read_mb_s == near(1000)
    assert (known(found.binds).stage, known(found.binds).next_mb_s) == ("media", None)
    found = of(facts([disk("nvme0n1")], links=[link("eth0", speed=None)]))
    assert (found.read_mb_s, found.binds) == (None, None)
    assert all(one.read_mb_s is None for one in found.stages)


def test_several_stages_bind_each_its_part() -> None:
    """Twelve drives behind a narrow card, twelve that have all the lanes they need."""
    names = [f"nvme{n}n1" for n in range(4)]
    narrow = PciHop("0000:05:00.0", 4000)
    host = facts(
        [disk(name) for name in names],
        [array("md0", "raid0", names[:2]), array("md1", "raid0", names[2:])],
        filesystems=[mounted("md0", "/a"), mounted("md1", "/b")],
    )
    found = of(host, drives(*names), Front("local", ""), dict.fromkeys(names[:2], (narrow,)))
    assert found.read_mb_s == near(500 + 2000)
    assert [(one.stage, one.mb_s) for one in known(found.binds).shares] == [("media", near(2000)), ("pcie", near(500))]


def test_a_file_system_of_another_host_is_bound_by_the_links_to_it() -> None:
    nfs = Mount("0:50", "/", "/mnt/nfs", "nfs4", "10.0.0.9:/x", "rw,vers=4.2,addr=10.0.0.9")
    host = facts(links=[link("eth0", speed=10_000, addresses=["10.0.0.2/24"]), link("eth1", pci="0000:02:00.0")])
    front = front_of(host, [nfs])
    found = of(host, front=front)
    assert (front.role, stage(found, "network").members) == ("client", ("eth0",))
    assert found.read_mb_s == near(1250 * 1448 / 1538)


def test_exports_make_a_server() -> None:
    assert parse_exports('/srv/a *(rw)\n# /no\n"/srv/b c" host(ro)\nrelative x\n') == ("/srv/a", "/srv/b c")
    host = facts([disk("nvme0n1")], links=[link("eth0")], filesystems=[mounted("nvme0n1", "/srv")])
    front = front_of(host, exports="/srv/a *(rw)\n")
    assert (front.role, front.links, front.places, front.is_assumed) == ("server", ("eth0",), ("/srv",), True)


def test_what_was_measured_is_a_share_of_the_ceiling() -> None:
    found = with_measured(article(), parse_measured("read=24GB/s,write=22GB/s"))
    assert [round(100 * (one.share or 0)) for one in found.measured] == [97, 89]
    both = with_measured(article(), parse_measured("24 GB/s")).measured
    assert [(one.direction, one.mb_s) for one in both] == [("read", 24_000), ("write", 24_000)]
    assert [parse_measured(text)[0].mb_s for text in ("1MiB/s", "8Gbit/s", "1.5gb/s")] == [1.048576, 1000, 1500]


@pytest.mark.parametrize(("text", "field"), DATA["a_figure_that_is_wrong_is_refused_with_its_field"])
def test_a_figure_that_is_wrong_is_refused_with_its_field(text: str, field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"field {field}"):
        parse_measured(text)


def bought(instance: str | None, provider: str = "aws", kind: str = "io2") -> HostCeiling:
    """Two volumes in EC2 or Azure, on a machine of this type."""
    names = ["nvme1n1", "nvme2n1"]
    model = EBS if provider == "aws" else "MSFT NVMe Accelerator v1.0"
    host = facts([disk(name, model=model) for name in names], filesystems=[mounted(name, f"/{name}") for name in names])
    cloud = Cloud(provider, instance)
    host = msgspec.structs.replace(host, host=msgspec.structs.replace(host.host, cloud=cloud, virtualization="kvm"))
    volume = DeclaredVolume("io2", gib=1000, iops=200_000) if kind == "io2" else DeclaredVolume("Premium_LRS", gib=1024)
    return of(host, Declared(tuple(msgspec.structs.replace(volume, device=name) for name in names)))


def test_iops_of_machines_that_are_known_or_not() -> None:
    for name in ("m7i.48xlarge", "r7iz.32xlarge", "r9z.96xlarge", None):
        found = bought(name)
        assert (found.read_iops, found.write_iops) == (None, None), name
        assert (found.read_iops_at_most, found.write_iops_at_most) == (near(400_000), near(400_000)), name
    found = bought("r5b.24xlarge")
    assert found.read_iops == near(260_000)
    assert found.iops_binds is not None
    assert (found.iops_binds.stage, found.iops_binds.members) == ("instance", ("r5b.24xlarge",))
    assert (found.iops_binds.next_stage, found.iops_binds.next_iops) == ("media", near(400_000))
    assert stage(bought("r9z.96xlarge"), "instance").why == ("its limits are not known: the type is not in the tables")


def test_the_page_says_what_binds_in_part_or_one_way_and_what_is_unknown() -> None:
    names = [f"nvme{n}n1" for n in range(4)]
    arrays = [array("md0", "raid0", names[:2]), array("md1", "raid0", names[2:])]
    shared = facts([disk(name) for name in names], arrays, filesystems=[mounted("md0", "/a"), mounted("md1", "/b")])
    one = facts([disk("nvme0n1")], filesystems=[mounted("nvme0n1", "/a")])
    narrow, wide = (PciHop("0000:05:00.0", mbps) for mbps in (4000, 8000))
    local = Front("local", "")
    # Of writes, 2 × 500 MB/s of drives behind an adapter of 500.
    words = ceiling_text(of(shared, drives(*names), local, dict.fromkeys(names[:2], (narrow,))))
    assert "drives and volumes (binds in part)" in words
    assert "PCI Express (binds in part)" in words
    pages = {
        "one way": of(one, drives("nvme0n1", read=3000, write=400), local, {"nvme0n1": (wide,)}),
        "next": article("meta"),
        "IOPS": bought("r5b.24xlarge"),
        "unknown": bought("m7i.48xlarge"),
        "Azure": bought("Standard_E96bds_v5", "azure", "Premium_LRS"),
    }
    assert_golden("host-ceiling", "\n".join(f"== {name}\n{ceiling_text(found)}" for name, found in pages.items()))


def ceiling_text(found: HostCeiling) -> str:
    page = Page(80, color=False)
    add_ceiling(page, found, "The whole host")
    return page.text


@pytest.mark.parametrize(("next_mb_s", "is_shown"), [(3000.0, True), (500.0, False), (None, False)])
def test_the_next_stage_is_shown_only_above_the_ceiling(next_mb_s: float | None, is_shown: bool) -> None:
    binding = Binding("network", ("ib0",), next_mb_s, "media")
    assert ("next: " in binding_words(2500.0, binding)) == is_shown
