"""EBS volumes: what may be bought together, buckets of credits, quotas, and what older instances carry."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.errors import InvalidInputError
from advisor.facts.clusters.iris import Iris, IrisPlace
from advisor.limits.cloud_disks import EbsVolume, bucket_of, fills_seconds, lasts_seconds
from advisor.limits.declared import Declared, DeclaredVolume, Quota, parse_declared
from advisor.limits.figures import MIB
from advisor.limits.notes import Measurement, with_observed
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits, StoragePath
from tests.cases import read_cases
from tests.known import known
from tests.limits.hosts import EBS, array, disk, facts, mounted

DATA = read_cases(__file__)


def volume(kind: str, gib: int, **more: Any) -> bytes:
    lines = "".join(f"{key.replace('_', '-')} = {value}\n" for key, value in more.items())
    return f"[[volume]]\ndevice = 'nvme1n1'\ntype = '{kind}'\ngib = {gib}\n{lines}".encode()


@pytest.mark.parametrize(("kind", "gib", "bought", "words"), DATA["what_cannot_be_bought_together"])
def test_what_cannot_be_bought_together(kind: str, gib: int, bought: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        parse_declared(volume(kind, gib, **bought), "v.toml")


@pytest.mark.parametrize(
    ("gib", "base", "burst_seconds", "fill_seconds"), DATA["the_bucket_of_gp2_as_amazon_s_table_has_it"]
)
def test_the_bucket_of_gp2_as_amazon_s_table_has_it(gib: int, base: int, burst_seconds: int, fill_seconds: int) -> None:
    bucket = known(bucket_of(EbsVolume("gp2", gib)))
    assert (bucket.base, round(lasts_seconds(bucket, 3000) or 0)) == (base, burst_seconds)
    assert round(fills_seconds(bucket)) == fill_seconds


def limits(kind: str, gib: int, *, virtualization: str = "amazon", **bought: Any) -> tuple[Limits, Any, Declared]:
    host = facts([disk("nvme1n1", model=EBS, size_bytes=gib << 30)], virtualization=virtualization)
    said = Declared((msgspec.convert({"type": kind, "device": "nvme1n1", "gib": gib, **bought}, DeclaredVolume),))
    return limits_of(host, None, said), host, said


def path(found: Limits) -> StoragePath:
    (one,) = [one for one in found.paths if one.kind == "storage"]
    return one


def figures(found: Limits) -> dict[str, float]:
    return {one.quantity: one.value for one in path(found).sustained}


@pytest.mark.parametrize(("kind", "iops", "mib", "on_nitro"), [("io1", 32_000, 500, 1000), ("io2", 32_000, 500, 4000)])
def test_an_instance_that_is_not_built_on_nitro_carries_less(kind: str, iops: int, mib: int, on_nitro: int) -> None:
    old, _, _ = limits(kind, 4000, virtualization="xen", iops=64_000)
    assert figures(old)["read_iops"] == iops
    assert figures(old)["read_mb_per_s"] == pytest.approx(mib * MIB)
    assert "not built on Nitro" in path(old).ceilings[-1].why
    new, _, _ = limits(kind, 4000, iops=64_000)
    assert figures(new)["read_iops"] == 64_000
    assert figures(new)["read_mb_per_s"] == pytest.approx(on_nitro * MIB)
    few, _, _ = limits(kind, 4000, virtualization="xen", iops=1000)
    assert figures(few)["read_iops"] == 1000


def test_streams_from_st1_draw_on_a_bucket_of_bytes() -> None:
    """1 TiB of st1: 40 MiB/s for ever, 250 from a bucket of 1 TiB: 4,993 s at that rate."""
    found, host, said = limits("st1", 1024)
    measured = Measurement("seq", "nvme1n1", "mb_per_s", 250 * MIB, 1.0)
    (seen,) = path(with_observed(found, [measured], host, said)).observed
    assert seen.in_burst
    assert seen.seconds == pytest.approx(2**20 / (250 - 40))
    within = Measurement("seq", "nvme1n1", "mb_per_s", 40 * MIB, 1.0)
    (seen,) = path(with_observed(found, [within], host, said)).observed
    assert (seen.in_burst, seen.seconds) == (False, None)


def quota(iops: int, elsewhere: int | None = None, bought: int = 256_000) -> Limits:
    host = facts([disk("nvme1n1", model=EBS)], virtualization="amazon")
    volumes = (
        DeclaredVolume("io2", device="nvme1n1", gib=1000, iops=bought),
        DeclaredVolume("gp3", device="nvme9n1", gib=1000, iops=16_000),
    )
    return limits_of(host, None, Declared(volumes, Quota(iops=iops, elsewhere_iops=elsewhere)))


def test_what_is_bought_of_a_quota_and_what_is_left() -> None:
    one = known(quota(600_000).quota)
    assert (one.iops, one.bought, one.elsewhere, one.left) == (600_000, 256_000, 0, 344_000)
    two = known(quota(600_000, 512_000).quota)
    assert two.left == -168_000
    assert any("168,000 more than the quota" in note for note in quota(600_000, 512_000).notes)
    assert limits("gp3", 5)[0].quota is None
    assert figures(quota(300_000, 200_000))["read_iops"] == 100_000
    assert figures(quota(300_000))["read_iops"] == 256_000
    # Nothing is left: a ceiling of nothing is none that an array can be reckoned with.
    assert figures(quota(300_000, 300_000))["read_iops"] == 0
    found = parse_declared(b"[quota]\niops = 600000\nelsewhere-iops = 256000\n", "v.toml").quota
    assert (found and found.elsewhere_iops) == 256_000
    with pytest.raises(InvalidInputError, match=r"quota.elsewhere-iops: it is part of iops, which is not given"):
        parse_declared(b"[quota]\nelsewhere-iops = 256000\n", "v.toml")


def test_stripes_that_do_not_go_over_all_volumes() -> None:
    names = [f"nvme{n}n1" for n in range(1, 9)]
    disks = [disk(name, model=EBS, size_bytes=100 << 30) for name in names]
    said = Declared(tuple(DeclaredVolume("gp3", device=name, gib=100) for name in names))
    for stripes, iops in ((4, 12_000), (8, 24_000)):
        made = array("db", "striped", names, manager="lvm", data_disks=stripes)
        found = path(limits_of(facts(disks, [made]), None, said))
        assert {one.value for one in found.sustained if one.quantity == "read_iops"} == {iops}
        words = "db: 4 stripes over 8 devices: one file lies on 4 of them at a time; which ones is not known"
        assert [note.startswith(words) for note in found.notes if note.startswith("db")] == [True] * (stripes < 8)


def test_what_iris_keeps_on_a_path_is_told() -> None:
    def place(role: str, device: str, name: str = "") -> IrisPlace:
        return IrisPlace(role, name, f"/{name}", f"/on/{device}", "xfs", device, (device,))  # type: ignore[arg-type]

    one = Iris(
        "LIVE",
        "/usr/irissys",
        None,
        running=True,
        mirror="",
        cpf="/usr/irissys/iris.cpf",
        settings=None,
        places=(place("wij", "nvme1n1"), place("database", "nvme1n1", "APP"), place("journal", "nvme2n1")),
    )
    host = facts([disk("nvme1n1"), disk("nvme2n1"), disk("nvme3n1")], filesystems=[mounted("nvme1n1", "/on/nvme1n1")])
    found = {path.device: path.holds for path in limits_of(msgspec.structs.replace(host, iris=(one,))).paths}
    assert found == {
        "nvme1n1": ("InterSystems IRIS LIVE: WIJ, database APP",),
        "nvme2n1": ("InterSystems IRIS LIVE: journal",),
        "nvme3n1": (),
    }
