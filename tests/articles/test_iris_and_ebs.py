"""S002, the article on InterSystems IRIS over gp3 and io2 volumes: each of its figures that can be computed.

Rows are those of the evidence (seed_facts.csv, 002). What the author measured and no code can repeat is listed in
docs/systems/iris.md. The share of test 2 that the instance cannot use: tests/limits/test_articles.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.clusters.iris import Iris, globals_bytes, pages_for, parse_cpf, wanted_pages
from advisor.limits.cloud_disks import EbsVolume, carried
from advisor.limits.declared import Declared, DeclaredVolume, Quota
from advisor.limits.figures import MIB
from advisor.limits.machines import find_instance
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits, StoragePath
from advisor.planning.guards import HUGE_PAGE_SHARE
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import load
from advisor.proof.workloads import WORKLOADS as PATTERNS
from advisor.rules.clusters.iris import ARTICLE_STRIPE_BYTES
from advisor.rules.judged import judge
from advisor.rules.network.buffers import bandwidth_delay_bytes
from advisor.rules.rule import named
from advisor.rules.workload import WORKLOADS, parse_workload
from tests.cases import read_cases
from tests.limits.hosts import EBS, array, disk, facts, mounted
from tests.rules.build import facts as calm
from tests.rules.build import replaced

INSTANCE = "r5b.24xlarge"
GIB = 1 << 30
HOST_BYTES = 768 * GIB

# The fragment that the article shows.
CPF = "[config]\nAsyncwij=16\nglobals=0,0,589824,0,0,0\nwdparm=16,32,512,128\nwduseasyncio=1\n"


def gp3(name: str, **bought: Any) -> DeclaredVolume:
    return DeclaredVolume("gp3", device=name, gib=1000, **bought)


def io2(name: str, iops: int) -> DeclaredVolume:
    return DeclaredVolume("io2", device=name, gib=1000, iops=iops)


def limits(layout: dict[str, list[DeclaredVolume]], quota: Quota | None = None) -> Limits:
    """The article's instance; each directory on XFS, over stripes where it has several volumes."""
    volumes = [one for some in layout.values() for one in some]
    arrays = [
        array(place, "striped", [str(one.device) for one in some], manager="lvm", chunk_bytes=ARTICLE_STRIPE_BYTES)
        for place, some in layout.items()
        if len(some) > 1
    ]
    systems = [mounted(place if len(some) > 1 else str(some[0].device), f"/{place}") for place, some in layout.items()]
    names = [str(one.device) for one in volumes]
    host = facts(
        [disk(name, model=EBS) for name in names],
        arrays,
        filesystems=systems,
        instance_type=INSTANCE,
        virtualization="amazon",
    )
    return limits_of(host, None, Declared(tuple(volumes), quota))


def path(found: Limits, name: str) -> StoragePath:
    return next(one for one in found.paths if one.name == f"/{name}")


def bound(found: Limits, name: str) -> dict[str, tuple[str, int]]:
    """What binds each quantity, rounded."""
    return {one.quantity: (one.stage, round(one.value)) for one in path(found, name).sustained}


def test_s002_volumes_as_they_come_and_at_most() -> None:
    """Row "002,volumes": gp3 3,000 IOPS and 125 MB/s by itself, 16,000 and 1,000 at most; io2 256,000 and 4,000."""
    plain = carried(EbsVolume("gp3", 1000))
    assert plain is not None
    assert (plain.iops, plain.mib_per_s) == (3000, 125)
    most = carried(EbsVolume("gp3", 1000), 16_000, 1000.0)
    assert most is not None
    assert (most.iops, most.mib_per_s) == (16_000, 1000)
    express = carried(EbsVolume("io2", 1000), 256_000)
    assert express is not None
    assert (express.iops, express.mib_per_s) == (256_000, 4000)
    assert carried(EbsVolume("io2", 1000), 100_000) == replaced(express, {"iops": 100_000})


def test_s002_the_instance_and_the_figure_further_down_that_is_wrong() -> None:
    """Row "002,instance": 7,500 MB/s and 260,000 IOPS; 10,000 MB/s in the text."""
    instance = find_instance(INSTANCE)
    assert instance is not None
    assert (instance.max_mb_per_s, instance.max_iops, instance.bursts) == (7500, 260_000, False)
    assert {"7,500", "10,000"} <= {side.says.split()[0] for side in named(("contradiction.r5b-ebs-limit",))[0].sides}


def test_s002_test_1_buys_more_than_the_instance_carries() -> None:
    """Row "002,test1": WIJ 256,000 and 4,000, databases 100,000 and 4,000, journal gp3: 356k IOPS and 8,125 MB/s."""
    layout = {"jrn": [gp3("nvme1n1")], "wij": [io2("nvme2n1", 256_000)], "db": [io2("nvme3n1", 100_000)]}
    found = limits(layout)
    throughput, iops = found.bought
    assert iops.volumes - 3000 == 356_000
    # The article counts MiB/s of volumes as MB/s.
    assert throughput.volumes / MIB == pytest.approx(8125)
    assert (throughput.instance, iops.instance) == (7500, 260_000)
    assert throughput.unusable > 0
    assert iops.unusable > 0
    assert bound(found, "jrn")["write_iops"] == ("volume", 3000)
    assert bound(found, "wij")["write_iops"] == ("volume", 256_000)
    assert bound(found, "db")["write_iops"] == ("volume", 100_000)


def test_s002_test_2_stripes_over_sixteen_and_five_gp3() -> None:
    """Row "002,test2": 80,000 IOPS and 5,000 MB/s; 256,000 and 16,000; of 21,000 MB/s the instance carries 7,500."""
    most = {"iops": 16_000, "throughput_mb_per_s": 1000.0}
    layout = {
        "jrn": [gp3("nvme1n1")],
        "wij": [gp3(f"nvme{n}n1", **most) for n in range(2, 7)],
        "db": [gp3(f"nvme{n}n1", **most) for n in range(7, 23)],
    }
    found = limits(layout)
    volumes = {
        len(one.where): [round(value or 0) for value in (one.sustained.write_iops, one.sustained.write_mb_per_s)]
        for path in found.paths
        for one in path.ceilings
        if one.stage == "volume"
    }
    assert (volumes[5], volumes[16]) == ([80_000, 5000], [256_000, 16_000])
    assert bound(found, "db")["read_mb_per_s"] == ("instance", 7500)
    assert bound(found, "db")["read_iops"] == ("volume", 256_000)
    assert bound(found, "wij")["write_mb_per_s"] == ("volume", 5000)
    assert round(100 * (1 - 7500 / 21_000)) == 64


def test_s002_test_3_two_members_and_one_quota() -> None:
    """Rows "002,test3" and "002,quota": 256k for each of two members are 512k (not 512) of 600,000 for the account."""
    layout = {"jrn": [gp3("nvme1n1")], "db": [io2("nvme2n1", 256_000)]}
    found = limits(layout, Quota(iops=600_000, elsewhere_iops=256_000))
    assert found.quota is not None
    assert found.quota.bought + found.quota.elsewhere == 512_000
    assert found.quota.left == 88_000
    # With a WIJ of its own on each member, as in test 1, the quota would not have done.
    apart = {**layout, "wij": [io2("nvme3n1", 256_000)]}
    more = limits(apart, Quota(iops=600_000, elsewhere_iops=512_000)).quota
    assert more is not None
    assert more.left < 0
    assert bound(found, "db")["read_mb_per_s"] == ("volume", round(4000 * MIB))


def test_s002_the_cache_is_75_percent_of_the_memory_in_294_912_huge_pages() -> None:
    """Rows "002,instance" and "002,iris.cpf": globals=0,0,589824,0,0,0 on 768 GiB (the article says 780 GB)."""
    cpf = parse_cpf(CPF)
    cache = globals_bytes(cpf)
    assert cache is not None
    assert cache / HOST_BYTES == 0.75
    assert pages_for(cache, 2 << 20) == 294_912
    # With the routine cache, the heap and what is spare it still fits the guard of the profile.
    wanted = wanted_pages(cpf, 2 << 20)
    assert wanted is not None
    assert wanted > 294_912
    assert wanted * (2 << 20) < HUGE_PAGE_SHARE * HOST_BYTES


DATA = read_cases(__file__, Iris, parse_cpf, CPF=CPF)


def host_of_the_article() -> Any:
    one = DATA["host_of_the_article"]
    memory = replaced(calm().memory, {"total_bytes": HOST_BYTES, "default_hugepage_bytes": 2 << 20})
    return calm(iris=(one,), memory=memory)


def test_s002_the_cpf_is_what_the_rules_are_content_with_and_the_profile_sets() -> None:
    """Row "002,iris.cpf": Asyncwij=16 (8 by itself), wdparm=16,32,512,128, wduseasyncio=1."""
    cpf = parse_cpf(CPF)
    assert (cpf.asyncwij, cpf.wdparm, cpf.wduseasyncio) == (16, (16, 32, 512, 128), 1)
    found = {one.id for one in judge(host_of_the_article())}
    assert "iris.write-daemons" not in found
    # 75 % is near enough to the 70 % of InterSystems' notes for hosts of this size.
    assert "iris.cache-share" not in found
    targets, _ = resolve_targets(Request.from_settings(load("iris-write-daemons"), {}), host_of_the_article())
    assert {one.tunable.rpartition("/")[2]: one.value for one in targets} == {
        "Asyncwij": "16",
        "wdparm": "16,32,512,128",
        "wduseasyncio": "1",
    }


def test_s002_reads_and_writes_are_70_to_30() -> None:
    """Row "002,RW mix"."""
    assert WORKLOADS["iris"].write_share == pytest.approx(0.3)
    assert PATTERNS["iris.oltp-7030"].sections[0].read_percent == 70


@pytest.mark.parametrize(("rtt", "commits"), [("1.16ms", 862), ("1.12ms", 892)])
def test_s002_between_two_zones(rtt: str, commits: int) -> None:
    """Row "002,AZ ping": 1.16 ms there, 1.12 ms back."""
    workload = parse_workload(f"iris,rtt={rtt},replication=sync")
    (one,) = [one for one in judge(host_of_the_article(), workload) if one.id == "iris.mirror-round-trip"]
    assert one.evidence["commits_per_second_at_most"] == commits


@pytest.mark.parametrize(("gbit", "megabytes"), [(10, 1.45), (25, 3.63), (5, 0.73)])
def test_s002_what_is_in_flight_between_the_zones(gbit: int, megabytes: float) -> None:
    """Row "002,AZ ping", as the evidence has it: bandwidth × 1.16 ms at 10, 25 and 5 Gbit/s."""
    assert bandwidth_delay_bytes(gbit * 1000, 1.16e-3) / 1e6 == pytest.approx(megabytes, abs=0.006)
