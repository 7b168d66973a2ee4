"""Cloud machines: the tables of 2023 and 2026, a user's own file, networks, local disks and Azure."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import Facts
from advisor.facts.system.identity import Cloud
from advisor.limits.cloud_disks import machine_limits
from advisor.limits.declared import Declared, DeclaredVolume, parse_declared
from advisor.limits.machine_file import parse_machines
from advisor.limits.machines import find_local, find_machine, table
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits, PathCeiling, StoragePath
from advisor.report.limits import limits_text
from tests.cases import read_cases
from tests.known import known
from tests.limits.hosts import EBS, array, disk, facts, link

DATA = read_cases(__file__)

LOCAL = "Amazon EC2 NVMe Instance Storage"


def path(found: Limits, device: str) -> StoragePath:
    return next(one for one in found.paths if one.device == device)


def ceiling(found: Limits, device: str, what: str) -> PathCeiling:
    return next(one for one in path(found, device).ceilings if one.what == what)


def azure(host: Facts) -> Facts:
    return msgspec.structs.replace(host, host=msgspec.structs.replace(host.host, cloud=Cloud("azure", None)))


def google(host: Facts) -> Facts:
    return msgspec.structs.replace(host, host=msgspec.structs.replace(host.host, cloud=Cloud("gcp", None)))


def shown(found: Limits) -> str:
    text = limits_text(found, width=80, color=False)
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *(("ec2-instances.csv", 1363), ("azure-vm-sizes.csv", 1449), ("azure-disks.csv", 69), ("google-disks.csv", 3)),
        *(("azure-vm-cached.csv", 32), ("google-machine-limits.csv", 258)),
    ],
)
def test_tables_are_whole_and_every_row_can_be_read(name: str, rows: int) -> None:
    assert len(table(name)) == rows


def test_the_older_table_is_the_fuller_one_where_it_has_the_type() -> None:
    older = known(find_machine("aws", "r5b.24xlarge"))
    assert older.volumes is not None
    assert (older.volumes.mb_per_s, older.volumes.iops, older.volumes.dated) == (7500, 260_000, "2023-05-31")
    assert (known(older.network).mbps, known(older.network).dated) == (25_000, "August 2026")
    newer = known(find_machine("aws", "r8g.48xlarge"))
    assert newer.volumes is not None
    assert (newer.volumes.mb_per_s, newer.volumes.iops, newer.volumes.is_maximum) == (5000, None, True)


def test_a_maximum_that_has_grown_since_is_named() -> None:
    one = known(find_machine("aws", "c6in.32xlarge"))
    assert one.volumes is not None
    assert (one.volumes.mb_per_s, one.volumes.iops) == (12_500, 350_000)
    assert one.volumes.dated == "August 2026 (MB/s) and 2023-05-31 (IOPS)"
    assert one.volumes.note.startswith("its maximum was 10,000 MB/s in 2023")
    assert "August 2026" in one.volumes.source
    assert "2023-05-31" in one.volumes.source


def test_the_network_of_an_instance_and_what_one_flow_carries() -> None:
    host = facts(links=[link("eth0", speed=None)], instance_type="r5b.24xlarge", virtualization="amazon")
    found = limits_of(host)
    one = ceiling(found, "eth0", "EC2 network")
    assert (one.sustained.read_mb_per_s, one.known) == (3125, "table")
    text = shown(found)
    assert (
        "EC2 network 3,125 - from a table: r5b.24xlarge, baseline of all its links together; table of August 2026"
        in text
    )
    assert "one flow carries 5 Gbit/s (625 MB/s) at most" in text
    assert path(found, "eth0").sustained[0].what == "EC2 network"


def test_networks_off_the_cloud_and_of_unknown_types() -> None:
    found = limits_of(facts(links=[link("eth0")]))
    assert [one.what for one in path(found, "eth0").ceilings] == ["wire"]
    assert path(found, "eth0").notes == ()
    host = facts(links=[link("eth0", speed=None)], instance_type="m99z.large", virtualization="amazon")
    one = ceiling(limits_of(host), "eth0", "EC2 network")
    assert (one.known, one.why) == ("unknown", "m99z.large is not in the tables")


@pytest.mark.parametrize(("count", "each"), [(1, 1), (2, 0.5)])
def test_local_disks_by_what_was_measured_on_all_together(count: int, each: float) -> None:
    names = [f"nvme{n}n1" for n in range(1, count + 1)]
    disks = [disk("nvme0n1", model=EBS), *(disk(name, model=LOCAL) for name in names)]
    found = limits_of(facts(disks, instance_type="i8g.8xlarge", virtualization="amazon"))
    one = ceiling(found, "nvme1n1", "drive")
    assert one.known == "measured"
    assert one.sustained.read_mb_per_s == pytest.approx(8533.063168 * each)
    assert "measured" in shown(found)
    assert "by ScyllaDB on i8g.8xlarge" in shown(found)


def test_local_disks_measured_or_not() -> None:
    names = [f"nvme{n}n1" for n in range(1, 9)]
    host = facts(
        [disk(name, model=LOCAL) for name in names], [array("md0", "raid0", names)], instance_type="i4i.32xlarge"
    )
    one = ceiling(limits_of(host), "md0", "8 drives")
    assert one.sustained.write_mb_per_s == pytest.approx(8 * 2296.702976)
    family = known(find_local("aws", "i3.16xlarge"))
    assert (family.name, family.read_iops) == ("i3.ALL", 411_200)
    host = facts([disk("nvme1n1", model=LOCAL)], instance_type="i3.16xlarge")
    said = Declared((DeclaredVolume("drive", device="nvme1n1", read_mb_per_s=1000.0),))
    assert ceiling(limits_of(host, None, said), "nvme1n1", "drive").known == "declared"
    nobody = facts([disk("nvme1n1", model=LOCAL)], instance_type="m6id.large")
    assert ceiling(limits_of(nobody), "nvme1n1", "drive").known == "unknown"
    said = parse_declared(b"instance-type='z3-highmem-8-highlssd'\n", "v.toml")
    disks = [disk("nvme0n1", model="nvme_card"), disk("nvme1n1", model="nvme_card-pd")]
    found = limits_of(google(facts(disks)), None, said)
    assert ceiling(found, "nvme0n1", "drive").sustained.read_iops == 750_000
    assert ceiling(found, "nvme1n1", "Google disk").known == "unknown"


def test_an_azure_vm_by_its_declared_size_and_disks_by_tier() -> None:
    said = parse_declared(
        b'instance-type="Standard_D8s_v5"\n[[volume]]\ndevice="sdc"\ntype="Premium_LRS"\ntier="P30"\n'
        b'[[volume]]\ndevice="sdd"\ntype="Premium_LRS"\ngib=100\n',
        "v.toml",
    )
    found = limits_of(azure(facts([disk("sdc", kind="scsi"), disk("sdd", kind="scsi")])), None, said)
    assert ceiling(found, "sdc", "Azure VM").sustained.read_iops == 12_800
    assert ceiling(found, "sdc", "Azure disk").sustained.read_mb_per_s == 200
    smaller = ceiling(found, "sdd", "Azure disk")
    assert "P10" in smaller.why
    assert (smaller.sustained.read_iops, smaller.burst and smaller.burst.read_iops) == (500, 3500)
    assert "Standard_D8s_v5, for all its managed disks; table of August 2026" in shown(found)


# sdb, sdc: pd-ssd of 100 and 300 GiB; sdd: a Hyperdisk. nvme0n1: a local SSD.
GOOGLE_DISKS = DATA["GOOGLE_DISKS"]


def test_disks_of_google_by_size_share_what_their_type_has_and_hyperdisk_has_what_was_bought() -> None:
    disks = [disk(name, kind="scsi", model="PersistentDisk") for name in ("sdb", "sdc", "sdd", "sde")]
    said = parse_declared(GOOGLE_DISKS, "v.toml")
    found = limits_of(google(facts([*disks, disk("nvme0n1", model="nvme_card")])), None, said)
    small, large = (ceiling(found, name, "Google disk").sustained for name in ("sdb", "sdc"))
    # 6000 IOPS and 30 for each of 400 GiB; 240 MiB/s and 0.48.
    assert (small.read_iops, large.read_iops) == (4500, 13500)
    assert small.write_mb_per_s == pytest.approx((240 + 0.48 * 400) / 4 * 1.048576)
    assert "its share, by size, of what 400 GiB of the type carry together" in ceiling(found, "sdb", "Google disk").why
    bought = ceiling(found, "sdd", "Google disk")
    assert (bought.known, bought.sustained.read_iops) == ("declared", 5000)
    assert bought.sustained.read_mb_per_s == pytest.approx(290 * 1.048576)
    assert ceiling(found, "sdd", "Google VM").known == "unknown"
    assert "--volumes FILE declares it" in ceiling(found, "sde", "Google disk").why
    local = ceiling(found, "nvme0n1", "drive")
    assert (local.known, "advisor bench measures it" in local.why) == ("unknown", True)


@pytest.mark.parametrize(
    ("lines", "iops", "mib", "words"), DATA["a_figure_of_hyperdisk_that_is_not_bought_follows_from_the_other"]
)
def test_a_figure_of_hyperdisk_that_is_not_bought_follows_from_the_other(
    lines: str, iops: int, mib: float | None, words: str
) -> None:
    said = parse_declared(f"[[volume]]\ndevice='sdd'\n{lines}\n".encode(), "v.toml")
    host = google(facts([disk("sdd", kind="scsi", model="PersistentDisk")]))
    one = ceiling(limits_of(host, None, said), "sdd", "Google disk")
    assert words in one.why
    assert (one.sustained.read_iops, one.sustained.write_iops) == (iops, iops)
    assert one.sustained.read_mb_per_s == (None if mib is None else pytest.approx(mib * 1.048576))


CACHED = DATA["CACHED"]


def test_host_caching_of_azure_has_a_limit_of_its_own_and_its_reads_need_not_reach_the_disk() -> None:
    """The example of Microsoft's page: Standard_D8s_v3, 16,000 IOPS cached, 12,800 uncached, 5,000 of a P30."""
    disks = [disk("sdc", kind="scsi"), disk("sdd", kind="scsi")]
    found = limits_of(azure(facts(disks)), None, parse_declared(CACHED, "v.toml"))
    cache = ceiling(found, "sdc", "Azure VM cache")
    assert (cache.known, cache.sustained.read_iops, cache.sustained.write_mb_per_s) == ("table", 16_000, 128)
    assert (cache.burst and cache.burst.read_mb_per_s, "disks with host caching" in cache.why) == (400, True)
    whole, medium = ceiling(found, "sdc", "Azure VM"), ceiling(found, "sdc", "Azure disk")
    assert (whole.sustained.read_iops, whole.sustained.write_iops) == (None, 12_800)
    assert (medium.sustained.read_iops, medium.sustained.write_iops) == (None, 5_000)
    assert "reads that the host's cache does not answer: 200 MB/s and 5,000 IOPS" in medium.why
    assert ceiling(found, "sdd", "Azure VM").sustained.read_iops == 12_800
    assert ceiling(found, "sdd", "Azure disk").sustained.read_iops == 5_000
    assert all(one.what != "Azure VM cache" for path in found.paths if path.device == "sdd" for one in path.ceilings)
    assert "Standard_D8s_v3, for all its disks with host caching; table of November 2026" in shown(found)


@pytest.mark.parametrize(("machine", "kind", "figures"), DATA["what_a_machine_type_of_google_carries"])
def test_what_a_machine_type_of_google_carries(machine: str, kind: str, figures: tuple[int, ...] | None) -> None:
    found = machine_limits(machine, kind)
    assert (found is None) is (figures is None)
    if found is not None and figures is not None:
        most = found.figures
        mib = (most.read_mb_per_s / 1.048576, most.write_mb_per_s / 1.048576)
        assert (most.read_iops, most.write_iops, *mib) == pytest.approx(figures)
        assert found.dated in found.source


def test_a_small_machine_of_google_binds_before_its_disks() -> None:
    disks = [disk(name, kind="scsi", model="PersistentDisk") for name in ("sdb", "sdc", "sdd")]
    said = parse_declared(b"instance-type='n2-standard-4'\n" + GOOGLE_DISKS.replace(b"300", b"3000"), "v.toml")
    found = limits_of(google(facts(disks)), None, said)
    machine = ceiling(found, "sdc", "Google VM")
    assert (machine.known, machine.sustained.read_iops) == ("table", 15_000)
    assert machine.sustained.read_mb_per_s == pytest.approx(240 * 1.048576)
    assert machine.why == "n2-standard-4, for all its pd-ssd disks; table of September 2026"
    bought = ceiling(found, "sdd", "Google VM")
    assert bought.why == "no table has what Google's machine types carry to hyperdisk-balanced"


@pytest.mark.parametrize(("size", "iops"), DATA["later_azure_sizes_are_known_where_a_source_gives_them"])
def test_later_azure_sizes_are_known_where_a_source_gives_them(size: str, iops: float | None) -> None:
    said = parse_declared(
        f'instance-type="{size}"\n[[volume]]\ndevice="sdc"\ntype="Premium_LRS"\ngib=512\n'.encode(), "v"
    )
    machine = ceiling(limits_of(azure(facts([disk("sdc", kind="scsi")])), None, said), "sdc", "Azure VM")
    assert (machine.known, machine.sustained.read_iops) == ("table" if iops else "unknown", iops)
    assert size in machine.why


@pytest.mark.parametrize(("kinds", "read", "burst"), DATA["newer_kinds_of_azure_disks_are_carried_faster"])
def test_newer_kinds_of_azure_disks_are_carried_faster(
    kinds: tuple[str | None, ...], read: tuple[int, int], burst: tuple[int, int] | None
) -> None:
    found = known(find_machine("azure", "Standard_D8s_v7"))
    limits = known(found.volumes).for_kinds(set(kinds))
    assert (limits.iops, limits.mb_per_s) == read
    assert (limits.burst_iops, limits.burst_mb_per_s) == (burst or (None, None))
    older = known(find_machine("azure", "Standard_D8s_v6"))
    # 404 MiB/s of its source, which cuts the rest off: Microsoft's page has 424.
    assert known(older.volumes).for_kinds({"PremiumV2_LRS"}).mb_per_s == 424


@pytest.mark.parametrize(("lines", "words"), DATA["a_disk_that_is_not_for_sale"])
def test_a_disk_that_is_not_for_sale(lines: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        parse_declared(f"[[volume]]\ndevice='sdb'\n{lines}\n".encode(), "v.toml")


def ec2_type(**more: Any) -> dict[str, Any]:
    ebs = {
        "BaselineBandwidthInMbps": 650,
        "BaselineThroughputInMBps": 81.25,
        "BaselineIops": 3600,
        "MaximumBandwidthInMbps": 10_000,
        "MaximumThroughputInMBps": 1250.0,
        "MaximumIops": 40_000,
    }
    card = {"NetworkCardIndex": 0, "BaselineBandwidthInGbps": 0.781, "PeakBandwidthInGbps": 12.5}
    return {
        "InstanceType": "m7i.large",
        "Hypervisor": "nitro",
        "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": 8192},
        "EbsInfo": {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": ebs},
        "NetworkInfo": {"NetworkPerformance": "Up to 12.5 Gigabit", "NetworkCards": [card]},
        **more,
    }


@pytest.mark.parametrize("whole", [{"InstanceTypes": [ec2_type()]}, [ec2_type()]])
def test_a_file_of_the_user_goes_before_the_tables_and_is_named(whole: Any) -> None:
    given = parse_machines(json.dumps(whole).encode(), "types.json", "2026-11-20")
    host = facts(
        [disk("nvme1n1", model=EBS)], links=[link("eth0", speed=None)], instance_type="m7i.large", virtualization="kvm"
    )
    found = limits_of(host, None, Declared((DeclaredVolume("gp3", device="nvme1n1", gib=100),)), given)
    one = ceiling(found, "nvme1n1", "EC2 instance")
    assert (one.known, one.sustained.read_iops, one.burst and one.burst.read_iops) == ("declared", 3600, 40_000)
    network = ceiling(found, "eth0", "EC2 network")
    assert network.sustained.read_mb_per_s == pytest.approx(97.625)
    assert known(network.burst).read_mb_per_s == pytest.approx(1562.5)
    assert "m7i.large, for all its EBS volumes; file of 2026-11-20" in shown(found)
    assert "types.json of 2026-11-20 (aws ec2 describe-instance-types)" in shown(found)


def sku(**has: str) -> dict[str, Any]:
    capabilities = [{"name": name, "value": value} for name, value in has.items()]
    return {"resourceType": "virtualMachines", "name": "Standard_D999s_v9", "capabilities": capabilities}


def test_what_azure_prints() -> None:
    rows = [
        {"resourceType": "disks", "name": "Premium_LRS", "capabilities": []},
        {"resourceType": "availabilitySets", "name": "Aligned", "capabilities": None},
        sku(
            UncachedDiskIOPS="12800", UncachedDiskBytesPerSecond="302000000", vCPUs="8", PremiumIO="True", MemoryGB="32"
        ),
    ]
    (one,) = parse_machines(json.dumps(rows).encode(), "skus.json", "2026-11-20").values()
    assert (known(one.volumes).iops, known(one.volumes).mb_per_s, one.premium, one.memory_mib) == (
        12_800,
        302,
        True,
        32_768,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("{}", "InstanceTypes: it is missing"),
        ("[]", "no instance type and no VM size"),
        ("3", "InstanceTypes"),
        ('{"InstanceTypes": 3}', "InstanceTypes"),
        ('{"InstanceTypes": [{"InstanceType": 3}]}', r"InstanceTypes\[0\].InstanceType"),
        ('[{"resourceType": "virtualMachines"}]', "name: it is missing"),
        (json.dumps([sku(UncachedDiskIOPS="many")]), "Standard_D999s_v9.capabilities.UncachedDiskIOPS: .*found many"),
        (
            '{"InstanceTypes": [{"InstanceType": "a", "EbsInfo": {"EbsOptimizedInfo": {"BaselineIops": -1}}}]}',
            "BaselineIops",
        ),
        ("[" * 100_000, "nested too deeply|not valid"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_field(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        parse_machines(text.encode(), "types.json", "2026-11-20")
    assert caught.value.message.startswith("types.json: ")
