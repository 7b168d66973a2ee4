"""What is said besides the figures: sizes that do not agree, paths that are missing, volumes that are not here."""

from __future__ import annotations

import pytest

from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.paths import limits_of
from tests.limits.hosts import EBS, array, disk, facts

GIB = 1 << 30


@pytest.mark.parametrize(
    ("gib", "size_bytes", "words"),
    [
        (500, 12_884_901_888, ("500 GiB are declared", "reads 12 GiB")),
        (12, 500 * GIB, ("12 GiB are declared", "reads 500 GiB")),
        (500, 500 * 10**9, ("500 GiB are declared", "reads 466 GiB")),
        (500, 500 * GIB, ()),
        (500, 499 * GIB, ()),
        (500, None, ()),
        (None, 12_884_901_888, ()),
    ],
)
def test_a_declared_size_that_the_disk_does_not_have_is_told(
    gib: int | None, size_bytes: int | None, words: tuple[str, ...]
) -> None:
    said = DeclaredVolume("gp3" if gib else "drive", device="nvme1n1", gib=gib)
    host = facts([disk("nvme1n1", model=EBS, size_bytes=size_bytes)])
    (path,) = limits_of(host, None, Declared((said,))).paths
    assert len(path.notes) == bool(words)
    assert all(word in path.notes[0] for word in words)


def test_a_multipath_map_that_lost_paths_rebuilds_nothing() -> None:
    disks = [disk(name, kind="scsi") for name in ("sda", "sdb", "sdc")]
    for failed, words in (
        (["sda"], "mpathA: 1 of 3 paths is missing; the other 2 carry the load"),
        (["sda", "sdb"], "mpathA: 2 of 3 paths are missing; the other one carries the load"),
    ):
        one = array(
            "mpathA",
            "multipath",
            ["sda", "sdb", "sdc"],
            manager="dm-multipath",
            failed=failed,
            missing=len(failed),
            state="degraded",
        )
        path = next(path for path in limits_of(facts(disks, [one])).paths if path.device == "mpathA")
        assert path.notes == (words,)
    one = array("mpathA", "multipath", ["sda"], manager="dm-multipath", missing=0)
    (path,) = limits_of(facts([disk("sda", kind="scsi")], [one])).paths
    assert path.notes == ()


def test_declared_volumes_that_are_not_here_are_named() -> None:
    one = DeclaredVolume("gp3", volume_id="vol-0abc12345", gib=1)
    two = DeclaredVolume("gp3", device="/dev/nvme9n1", gib=1)
    (note,) = limits_of(facts(), None, Declared((one, two))).notes
    assert note == "2 declared volumes are no disk of this host and left out: vol-0abc12345, /dev/nvme9n1"
    many = tuple(DeclaredVolume("gp3", device=f"nvme{n}n1", gib=1) for n in range(8))
    (note,) = limits_of(facts(), None, Declared(many)).notes
    assert note.endswith("nvme4n1 and 3 more")


@pytest.mark.parametrize(
    ("level", "more", "bound"),
    [
        ("cache", {}, True),
        ("writecache", {}, True),
        ("snapshot", {}, True),
        ("snapshot-origin", {}, True),
        ("raid5", {"journal": ["sdc"]}, True),
        ("raid5", {"missing": 1, "state": "degraded"}, True),
        ("raid1", {"missing": 1, "state": "recovering"}, True),
        ("raid1", {"missing": 1, "state": "degraded"}, False),
        ("raid5", {}, False),
        ("raid1", {}, False),
    ],
)
def test_a_ceiling_far_from_what_is_reached_is_said_to_be_a_bound(
    level: str, more: dict[str, object], bound: bool
) -> None:
    disks = [disk(name, kind="scsi") for name in ("sda", "sdb", "sdc")]
    paths = limits_of(facts(disks, [array("top", level, ["sda", "sdb", "sdc"], **more)])).paths
    assert any("not count" in note for path in paths if path.device == "top" for note in path.notes) == bound
