"""Burst credits: the EBS user guide's figures, a bound before the start, an honest word where nothing shows."""

from __future__ import annotations

import pytest

from advisor.errors import RefusedError, UsageError
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.proof.credits import EBS_MODEL, MOST_SHARE, EbsVolume, bucket_of, credit_notes, most_spent, parse_volume
from tests.known import known

NOWHERE = Host(MemoryFiles({}, {}, frozenset()), NoCommands())


@pytest.mark.parametrize("text", ["gp3:100", "io1:100", "io2:4", "gp2:1000", "gp2:16384", "st1:12800"])
def test_what_has_no_bucket_to_spend(text: str) -> None:
    assert bucket_of(parse_volume(text)) is None
    assert list(credit_notes(NOWHERE, None, parse_volume(text), 1e9)) == []


@pytest.mark.parametrize(
    ("text", "base", "burst"), [("st1:1024", 40, 250), ("sc1:2048", 24, 160), ("st1:4096", 160, 500)]
)
def test_hdd_volumes_spend_throughput(text: str, base: float, burst: float) -> None:
    bucket = known(bucket_of(parse_volume(text)))
    assert (bucket.unit, bucket.base, bucket.burst, bucket.size) == ("MiB", base, burst, 1024 * parse_volume(text).gib)


@pytest.mark.parametrize(
    "text", ["", "gp2", "gp2:", "gp2:0", "gp2:-1", "gp2:100:3", "gp4:100", "gp2:1e3", "gp2:99999", ":5"]
)
def test_what_is_no_volume_is_told_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is no volume") as caught:
        parse_volume(text)
    assert "gp2:100" in (caught.value.hint or "")


def test_a_session_beyond_its_share_is_refused_and_one_below_is_told() -> None:
    volume = EbsVolume("gp2", 100)
    bucket = known(bucket_of(volume))
    edge = MOST_SHARE * bucket.size / (bucket.burst - bucket.base)
    (said,) = credit_notes(NOWHERE, None, volume, edge * 0.99)
    assert f"{most_spent(bucket, edge * 0.99):,.0f} I/O" in said
    with pytest.raises(RefusedError, match="could use up"):
        list(credit_notes(NOWHERE, None, volume, edge * 1.01))


def test_an_ebs_volume_of_unknown_type_is_told_also_below_a_partition_and_a_stripe() -> None:
    pci = "/sys/devices/pci0000:00/0000:00:1f.0/nvme/nvme1"
    files = {f"{pci}/nvme1n1/nvme1n1p1/partition": b"1", f"{pci}/model": EBS_MODEL.encode() + b"    \n"}
    links = {
        "/sys/class/block/nvme1n1": f"{pci}/nvme1n1",
        "/sys/class/block/nvme1n1p1": f"{pci}/nvme1n1/nvme1n1p1",
        f"{pci}/nvme1n1/device": pci,
        "/sys/class/block/dm-0": "/sys/devices/virtual/block/dm-0",
        "/sys/devices/virtual/block/dm-0/slaves/nvme1n1": f"{pci}/nvme1n1",
    }
    host = Host(MemoryFiles(files, links), NoCommands())
    for device in ("nvme1n1", "nvme1n1p1", "dm-0"):
        (said,) = credit_notes(host, device, None, 10)
        assert "does not report its type" in said, device
    assert list(credit_notes(host, "sda", None, 10)) == []
