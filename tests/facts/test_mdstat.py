"""Texts about md against what is known to be true of 35 arrays in /proc/mdstat and 23 in mdadm --detail."""

from __future__ import annotations

import tarfile
from functools import cache

import pytest

from advisor.facts.block.md import DetailDevice, MdstatArray, parse_mdadm_detail, parse_mdstat
from tests import captured
from tests.cases import read_cases
from tests.each import for_each

# A text in the style of those that are read; damaged at random by the property tests.
DATA = read_cases(__file__)

MDSTAT = DATA["MDSTAT"]
DETAIL = DATA["DETAIL"]

NOT_PRINTED = {"file", "array", "n_members", "health", "redundancy_disks", "missing_disks", "source_inconsistent"}
NOT_PRINTED |= {"realness", "licence", "source", "rounding_kib"}


def test_flags_of_members() -> None:
    array = parse_mdstat(MDSTAT)[0]
    assert [(one.name, one.number, one.flags) for one in array.members] == DATA["flags_of_members"]
    assert (array.having("F"), array.having("S"), array.having("J")) == (("nvme0n1p3",), ("cciss/c0d1",), ("sdz",))


def test_geometry_and_work() -> None:
    array = parse_mdstat(MDSTAT)[0]
    assert (array.level, array.chunk_bytes, array.layout, array.metadata) == ("raid5", 524288, "left-symmetric", "1.2")
    assert (array.disks, array.up, array.pattern) == (3, 2, "_UU")
    assert (array.action, array.progress_percent, array.finish_minutes) == ("recovery", 12.5, 85.3)
    assert array.speed_kib == 166857
    assert array.size_bytes == 1953260544 * 1024
    assert array.bitmap == "0/8 pages [0KB], 65536KB chunk"


def test_an_array_that_broke_and_one_that_another_host_resyncs() -> None:
    _, broken, remote = parse_mdstat(MDSTAT)
    assert (broken.state, broken.level) == ("broken", "raid0")
    assert (remote.layout, remote.action, remote.waiting) == ("2 far-copies", "resync", "REMOTE")


@for_each("end", range(0, len(MDSTAT), 7))
def test_a_cut_text_says_what_it_still_says(end: int) -> None:
    whole = {array.name: array for array in parse_mdstat(MDSTAT)}
    for array in parse_mdstat(MDSTAT[:end]):
        assert array.size_bytes in (None, whole[array.name].size_bytes) or end < MDSTAT.index("blocks") + 200
        assert array.state == whole[array.name].state


def test_detail_between_messages() -> None:
    (detail,) = parse_mdadm_detail(DETAIL)
    assert (detail.device, detail.level, detail.chunk_bytes) == ("/dev/md0", "raid6", 1 << 20)
    assert detail.progress_percent == 7
    assert detail.uuid == "85c5b164:d58a5ada:14f5fe07:d642e843"
    assert detail.devices == (
        DetailDevice("/dev/sdb1", 0, "active sync"),
        DetailDevice(None, 1, "removed"),
        DetailDevice("/dev/cciss/c0d0", None, "journal"),
    )


def mdstat_rows() -> list[dict[str, str]]:
    path = captured.FIXTURES / "truth/mdstat_truth.csv"
    return captured.truth_rows("mdstat_truth") if path.is_file() else []


@pytest.mark.captured
def test_all_35_captured_arrays_are_tried() -> None:
    captured.captured_root()
    assert len(mdstat_rows()) == 35


@pytest.mark.captured
@pytest.mark.parametrize("row", mdstat_rows(), ids=lambda row: f"{row['file']}:{row['array']}")
def test_captured_mdstat(row: dict[str, str]) -> None:
    text = captured.captured_file(f"mdstat/{row['file']}").read_text()
    array = next(one for one in parse_mdstat(text) if one.name == row["array"])
    expected = {key: value for key, value in row.items() if key not in NOT_PRINTED}
    expected["superblock"] = expected["superblock"].removesuffix(" (not printed)")
    assert printed(array) == expected


def printed(array: MdstatArray) -> dict[str, str]:
    """The array in the words of the truth."""
    flags = {one: "".join(f"({flag})" for flag in one.flags) for one in array.members}
    values: dict[str, object] = {
        "state": array.state,
        "read_only": array.read_only,
        "level": array.level,
        "blocks_kib": kib(array.size_bytes),
        "superblock": array.metadata,
        "chunk_kib": kib(array.chunk_bytes),
        "algorithm": array.algorithm,
        "layout": array.layout,
        "n_raid_disks": array.disks,
        "n_up": array.up,
        "pattern": array.pattern,
        "members": " ".join(f"{one.name}[{one.number}]{flags[one]}" for one in array.members),
        "failed": " ".join(array.having("F")),
        "spares": " ".join(array.having("S")),
        "journal": " ".join(array.having("J")),
        "action": "=".join(word for word in (array.action, array.waiting) if word),
        "progress_pct": array.progress_percent,
        "finish_min": array.finish_minutes,
        "speed_kib_s": array.speed_kib,
        "bitmap": array.bitmap,
    }
    return {key: "" if value is None else str(value) for key, value in values.items()}


def kib(size: int | None) -> int | None:
    return None if size is None else size // 1024


@cache
def command_texts() -> dict[str, str]:
    """Captured outputs by folder and name, as ``mdadm/MDADM_CONTENT.txt``."""
    found: dict[str, str] = {}
    for archive in ("cmd/insights_cmds.tar.xz", "cmd/jc_cmds.tar.xz"):
        with tarfile.open(captured.captured_file(archive)) as tar:
            for member in tar:
                if opened := tar.extractfile(member):
                    found["/".join(member.name.split("/")[-2:])] = opened.read().decode("utf-8", "replace")
    return found


def detail_rows() -> list[dict[str, str]]:
    path = captured.FIXTURES / "truth/mdadm_detail_truth.csv"
    return captured.truth_rows("mdadm_detail_truth") if path.is_file() else []


@pytest.mark.captured
@pytest.mark.parametrize("row", detail_rows(), ids=lambda row: row["file"])
def test_captured_mdadm_detail(row: dict[str, str]) -> None:
    project, _, name = row["file"].partition("-")
    place = f"generic/{name.replace('.txt', '.out')}" if project == "jc" else f"mdadm/{name[:-4].upper()}.txt"
    (detail,) = parse_mdadm_detail(command_texts()[place])
    shown = {
        "level": detail.level,
        "array_size": kib(detail.size_bytes),
        "raid_devices": detail.raid_devices,
        "total_devices": detail.total_devices,
        "state": detail.state,
        "active": detail.active,
        "working": detail.working,
        "failed": detail.failed,
        "spare": detail.spare,
        "layout": detail.layout,
        "chunk": detail.chunk_bytes and f"{detail.chunk_bytes >> 10}K",
        "consistency": detail.consistency,
        "metadata": detail.metadata,
        "devices": "; ".join(
            f"{one.path or '-'}:{'-' if one.slot is None else one.slot}:{one.state}" for one in detail.devices
        ),
    }
    expected = {key: value for key, value in row.items() if key not in ("file", "jc_agrees")}
    assert {key: "" if value is None else str(value) for key, value in shown.items()} == expected


@pytest.mark.captured
@pytest.mark.parametrize(("name", "devices"), DATA["captured_texts_of_several_arrays_or"])
def test_captured_texts_of_several_arrays_or_none(name: str, devices: list[str]) -> None:
    assert [one.device for one in parse_mdadm_detail(command_texts()[f"mdadm/{name}.txt"])] == devices
