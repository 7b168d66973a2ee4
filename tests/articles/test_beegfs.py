"""S004, Dell EMC's article on BeeGFS: each of its figures that can be computed, from servers built as it says.

Rows are those of the evidence (seed_facts.csv). What the authors measured and no code can repeat is listed in
docs/systems/beegfs.md. More of the article's arithmetic: tests/limits/test_articles.py.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from advisor.facts.clusters.beegfs import EntryInfo, parse_entry_info
from advisor.facts.host_facts import Facts
from advisor.facts.settings import vendor_values
from advisor.limits.figures import Figures, combined, usable_bytes
from advisor.limits.paths import limits_of
from advisor.profiles.profile import load
from advisor.proof.workloads import WORKLOADS
from advisor.rules.clusters.beegfs_settings import DEFAULTS, MIB, connection_bytes, stripe_counts, worker_bytes, workers
from advisor.rules.processors.locality_score import locality
from tests.beegfs_server import server
from tests.cases import read_cases

DRIVE = Figures(3.2, 1.3)
EDR_GB_PER_S = 12.4
STORAGE_SERVERS = 5
STRIPE_COUNT = 3


@cache
def _server(role: Any) -> Facts:
    return server(role)


def cluster() -> tuple[Facts, ...]:
    """The metadata server, half of which stores data, and five storage servers."""
    return (_server("meta"), *(_server("storage") for _ in range(STORAGE_SERVERS)))


def targets(kind: str) -> list[Any]:
    services = (one for host in cluster() if host.beegfs for one in host.beegfs.services if one.kind == kind)
    return [target for one in services for target in one.targets]


def data_links() -> int:
    """Links of zones that store data: both of a storage server, one of the metadata server."""
    return 2 * STORAGE_SERVERS + 1


def test_s004_hardware_two_zones_of_twelve_drives_and_one_link() -> None:
    """Row "004,hw": 24 drives of 1.6 TB, 12 × 32 GB, two EDR adapters; row "004,NUMA": ib0 in zone 0, ib1 in zone 1."""
    host = _server("storage")
    assert host.memory.total_bytes == 12 * 32 << 30
    assert [disk.size_bytes for disk in host.disks] == [1_600_000_000_000] * 24
    for node, name in enumerate(("ib0", "ib1")):
        assert sum(disk.numa_node == node for disk in host.disks) == 12
        assert [link.name for link in host.links if link.numa_node == node] == [name]
    assert host.numa.balancing == 0
    assert locality(host).score == 100


def test_s004_layout_six_metadata_and_33_storage_targets_of_132_drives() -> None:
    """Row "004,layout": 6 RAID 1 pairs with ext4, 3 + 5 × 6 RAID 0 of four with XFS, one service for each target."""
    assert (len(targets("meta")), len(targets("storage"))) == (6, 33)
    assert {(one.level, one.filesystem, len(one.disks)) for one in targets("meta")} == {("raid1", "ext4", 2)}
    assert {(one.level, one.filesystem, len(one.disks)) for one in targets("storage")} == {("raid0", "xfs", 4)}
    assert sum(len(one.disks) for one in targets("storage")) == 132


def test_s004_capacity_190_tib_usable_of_211_tb() -> None:
    """Row "004,capacity": drives × TB × 0.99 × 10^12 / 2^40."""
    size = {disk.name: disk.size_bytes or 0 for disk in _server("storage").disks}
    raw = sum(size[name] for one in targets("storage") for name in one.disks)
    assert round(raw / 1e12) == 211
    assert int(usable_bytes(raw) / 2**40) == 190


def test_s004_drives_would_carry_422_and_172_gb_per_s() -> None:
    """Row "004,drive": 3.2 GB/s read and 1.3 written each."""
    drives = sum(len(one.disks) for one in targets("storage"))
    found = combined("raid0", [DRIVE] * drives)
    assert (round(found.read_mb_per_s), round(found.write_mb_per_s)) == (422, 172)


def test_s004_the_network_binds_at_136_4_of_which_97_and_89_percent_were_reached() -> None:
    """Row "004,network": 11 EDR × 12.4 GB/s; 132 read by 1,024 threads, 121 written by 256."""
    wires = [path for path in limits_of(_server("storage")).paths if path.kind == "network"]
    assert [path.name for path in wires] == ["ib0", "ib1"]
    for path in wires:
        assert {round(one.value / 1000, 1) for one in path.sustained} == {EDR_GB_PER_S}
    carried = data_links() * EDR_GB_PER_S
    assert carried == pytest.approx(136.4)
    assert (round(100 * 132 / carried), round(100 * 121 / carried)) == (97, 89)
    assert carried < combined("raid0", [DRIVE] * 132).write_mb_per_s


def test_s004_raid_0_writes_what_four_drives_say_and_raid_10_two_thirds_of_it() -> None:
    """Row "004,RAID0 vs 10": dd 5.1 and 3.4 GB/s, StorageBench 5.5 and 3.4; the text's "increase" is a decrease."""
    fast, safe = (combined(level, [DRIVE] * 4).write_mb_per_s for level in ("raid0", "raid10"))
    assert (round(fast, 1), round(safe, 1)) == (5.2, 2.6)
    # Both were measured above what the data sheet's 1.3 GB/s for each drive would give RAID 10.
    assert safe < 3.4 < fast


def test_s004_three_targets_for_a_file_are_those_of_a_zone() -> None:
    """Row "004,beegfs": chunk 2M, stripe 3, as beegfs-ctl prints it in the article."""
    shown = (
        "EntryID: 0-5D9BA1BC-1\nParentID: root\nMetadata node: node001-numa0-4 [ID: 4]\nStripe pattern details:\n"
        "+ Type: RAID0\n+ Chunksize: 2M\n+ Number of storage targets: desired: 3\n\n+ Storage Pool: 1 (Default)\n"
    )
    assert parse_entry_info(shown) == EntryInfo("RAID0", 2 << 20, STRIPE_COUNT)
    in_zone = [one for one in targets("storage")[3:9] if one.numa_nodes == (0,)]
    assert stripe_counts(len(in_zone))[0] == STRIPE_COUNT


DATA = read_cases(__file__)


def test_s004_kernel_settings_are_the_profile_s() -> None:
    """Row "004,sysctl": dirty 5 and 20, min_free 262144, vfs_cache_pressure 50, numa_balancing 0. zone_reclaim_mode 2
    and (row "004,THP") huge pages off are contradicted by BeeGFS' guide, and only set where they are asked for."""
    profile = load("beegfs-nvme")
    wanted = {one.tunable: one.value for one in profile.tunables}
    agreed = {key: text.removeprefix(">=") for key, text in vendor_values("beegfs").items()}
    assert {f"sysctl:{key}": value for key, value in agreed.items()}.items() <= wanted.items()
    assert {key: str(value) for key, value in DATA["s004_kernel_settings_are_the_profile"].items()} == agreed
    assert wanted["sysctl:kernel.numa_balancing"] == "0"
    for tunable, parameter, article in (
        ("sysctl:vm.zone_reclaim_mode", "zone_reclaim", "2"),
        ("thp:enabled", "thp", "never"),
    ):
        assert wanted[tunable] == f"{{{parameter}}}"
        assert profile.parameters[parameter].default == "keep"
        assert article in profile.parameters[parameter].choices


def test_s004_workers_and_connections() -> None:
    """Row "004,beegfs": workers 24 and 32; connections 32, 12 and 24, of which 32 and 12 are the defaults."""
    profile = load("beegfs-nvme")
    assert profile.parameters["storage_workers"].default == 32
    assert "24" in profile.parameters["meta_workers"].choices
    assert (DEFAULTS["meta"]["connMaxInternodeNum"], DEFAULTS["storage"]["connMaxInternodeNum"]) == ("32", "12")
    # 24 for each is less than what one service takes by default, and six of those are more than the host's CPUs by far.
    meta = _server("meta").beegfs
    assert meta is not None
    assert workers(meta.services[0], 96) == 192 > 24
    assert connection_bytes(clients=32, connections=24, buffers=70, buffer_bytes=8192) == 840 * MIB
    assert worker_bytes(workers=32 * 6, buffer_bytes=4 * MIB) == 1.5 * 1024 * MIB


@pytest.mark.parametrize(("name", "block_bytes", "pattern"), DATA["s004_its_benchmarks_are_workloads"])
def test_s004_its_benchmarks_are_workloads(name: str, block_bytes: int, pattern: str) -> None:
    """Row "004,bench": IOzone -r 1m and -r 4K, dd with 1 MiB."""
    (section,) = WORKLOADS[name].sections
    assert (section.block_bytes, section.pattern) == (block_bytes, pattern)
