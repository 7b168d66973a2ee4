"""The account's quota: of io1 and io2 volumes only, and what a file may say about it."""

from __future__ import annotations

import msgspec
import pytest

from advisor.errors import InvalidInputError
from advisor.limits.declared import Declared, DeclaredVolume, Quota, parse_declared
from advisor.limits.paths import limits_of
from advisor.limits.records import PathCeiling, StoragePath
from tests.known import known
from tests.limits.hosts import EBS, array, disk, facts

GP3 = DeclaredVolume("gp3", device="nvme1n1", gib=1000, iops=16_000)
IO2 = DeclaredVolume("io2", device="nvme2n1", gib=1000, iops=50_000)


def path(*volumes: DeclaredVolume, level: str = "striped", quota: Quota | None = None) -> StoragePath:
    """Of one volume, or of an array of them."""
    names = [str(one.device) for one in volumes]
    arrays = [array("dm-0", level, names)] if len(names) > 1 else []
    said = Declared(volumes, quota or Quota(iops=1000))
    (found,) = limits_of(facts([disk(name, model=EBS) for name in names], arrays), None, said).paths
    return found


def quotas(found: StoragePath) -> list[PathCeiling]:
    return [one for one in found.ceilings if one.stage == "quota"]


@pytest.mark.parametrize("quota", [Quota(iops=1000), Quota(throughput_mb_per_s=1.0)])
def test_a_path_without_provisioned_volumes_has_no_quota(quota: Quota) -> None:
    found = path(GP3, quota=quota)
    assert quotas(found) == []
    assert {(one.stage, one.value) for one in found.sustained if one.quantity == "read_iops"} == {("volume", 16_000)}


@pytest.mark.parametrize("kind", ["io1", "io2"])
def test_a_path_of_provisioned_volumes_is_bound_by_the_quota(kind: str) -> None:
    found = path(msgspec.convert({"type": kind, "device": "nvme2n1", "gib": 1000, "iops": 50_000}, DeclaredVolume))
    (one,) = quotas(found)
    assert (one.known, one.sustained.read_iops, one.sustained.write_iops) == ("declared", 1000, 1000)
    assert "io1 and io2 volumes" in one.why


def test_of_a_mixed_path_the_quota_holds_the_provisioned_part_only() -> None:
    """A stripe is as fast as its slowest member, so two members of 1,000 IOPS at most give 2,000. Of volumes that
    are one behind the other a stream is on one at a time: the quota is that of the io2 alone, and load on both has no
    such limit, as the gp3 goes on by itself."""
    (one,) = quotas(path(GP3, IO2))
    assert (one.where, one.sustained.read_iops) == (("nvme2n1",), 2000)
    linear = path(GP3, IO2, level="linear")
    assert [one.sustained.read_iops for one in quotas(linear)] == [1000]
    assert known(linear.spread).read_iops == 66_000


@pytest.mark.parametrize("volumes", [(), (DeclaredVolume("drive", device="nvme1n1", read_mb_per_s=9000.0),)])
def test_a_volume_of_no_declared_type_has_a_quota_that_is_not_known(volumes: tuple[DeclaredVolume, ...]) -> None:
    said = Declared(volumes, Quota(iops=1000), instance_type="r5b.24xlarge")
    (found,) = limits_of(facts([disk("nvme1n1", model=EBS)]), None, said).paths
    (one,) = quotas(found)
    assert (one.known, one.where) == ("unknown", ("nvme1n1",))
    assert {bound.stage for bound in found.sustained} == {"instance"}


@pytest.mark.parametrize(
    ("quota", "volume", "words"),
    [
        ("iops = 100\nelsewhere-iops = 200", "", r"field quota.elsewhere-iops: 200 is more than the 100 of iops"),
        ("iops = 100000\nelsewhere-iops = 60000", "io2", r"field volume\[1\].iops: 50,000 is more than the 40,000"),
        ("iops = 40000", "io1", r"field volume\[1\].iops: 50,000 is more than the 40,000"),
    ],
)
def test_what_is_more_than_the_quota_is_refused(quota: str, volume: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        parse_declared(_file(quota, volume), "v.toml")
    assert caught.value.exit_code == 2


def _file(quota: str, kind: str) -> bytes:
    first = "[[volume]]\ndevice = 'nvme0n1'\ntype = 'gp2'\ngib = 100\n"
    second = f"[[volume]]\ndevice = 'nvme1n1'\ntype = '{kind}'\ngib = 1000\niops = 50000\n" if kind else ""
    return f"[quota]\n{quota}\n{first}{second}".encode()
