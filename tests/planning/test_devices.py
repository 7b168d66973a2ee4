"""Which disks and arrays a profile's line is for."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.host_facts import Facts
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import parse_profile
from tests.cases import cases
from tests.profiles.build import document, toml, wanted
from tests.rules.build import array, disk, facts

CASES = cases(__file__)

GB = 1_000_000_000
HOST = facts(
    disks=(
        disk("nvme0n1"),
        disk("nvme1n1", size_bytes=None),
        disk("sda", kind="scsi", pci=None, rotational=True, size_bytes=8000 * GB, detail={"transport": "sas"}),
        disk("sdb", kind="scsi", pci=None, rotational=False, size_bytes=400 * GB, detail={"transport": "iscsi"}),
        disk("vda", kind="virtio", pci=None, rotational=None, size_bytes=100 * GB),
    ),
    arrays=(
        array("md0", "nvme0n1", "nvme1n1"),
        array("md5", "sda", "sdb", level="raid5", size_bytes=None),
        array("vg0/data", "vda", manager="lvm", device="dm-3", level="striped"),
        array("mpatha", "sda", manager="dm-multipath", device="dm-4", level=None),
    ),
)
NAMES: dict[str, Any] = {"type": "names", "about": "a", "default": []}


def resolved(line: dict[str, Any], known: Facts = HOST, **settings: Any) -> dict[str, str]:
    """Tunable → its value, or the state and the reason why there is none."""
    body = document("mine", line, parameters={"disks": NAMES, "arrays": NAMES})
    targets, skipped = resolve_targets(Request.from_settings(parse_profile(toml(body), "x"), settings), known)
    found = {target.tunable: target.value for target in targets}
    return found | {one.tunable: f"{one.state}: {one.reason}" for one in skipped}


def for_disks(**only: Any) -> dict[str, Any]:
    more = {"only": only} if only else {}
    return wanted(tunable="block:{disk}:scheduler", value="none", for_each="disks", **more)


def for_arrays(tunable: str = "block:{array}:read_ahead_kb", **only: Any) -> dict[str, Any]:
    more = {"only": only} if only else {}
    return wanted(tunable=tunable, value="4096", for_each="arrays", **more)


def chosen(found: dict[str, str]) -> list[str]:
    return [identity.split(":")[1] for identity, value in found.items() if value in ("none", "4096")]


@pytest.mark.parametrize(("only", "names"), CASES["disks"])
def test_disks(only: dict[str, Any], names: list[str]) -> None:
    assert chosen(resolved(for_disks(**only))) == names


@pytest.mark.parametrize(("line", "names"), CASES["arrays"])
def test_arrays(line: dict[str, Any], names: list[str]) -> None:
    assert chosen(resolved(line)) == names


def test_what_is_unknown_is_neither_in_nor_out() -> None:
    found = resolved(for_disks(**{"rotational": False, "min-bytes": 1}))
    assert found["block:vda:scheduler"] == (
        "unknown: whether it is meant is unknown: whether it is rotational could not be read"
    )
    assert found["block:nvme1n1:scheduler"] == "unknown: whether it is meant is unknown: its size could not be read"
    found = resolved(for_arrays(levels=["raid5"]))
    assert found["block:dm-4:read_ahead_kb"].startswith("unknown: ")


def test_some_are_asked_for_by_name() -> None:
    assert chosen(resolved(for_disks(), disks="nvme*,sdb")) == ["nvme0n1", "nvme1n1", "sdb"]
    assert chosen(resolved(for_disks(kinds=["scsi"]), disks="nvme*,sdb")) == ["sdb"]
    assert chosen(resolved(for_arrays(), arrays="vg0/data,md0")) == ["md0", "dm-3"]
    assert chosen(resolved(for_arrays(), arrays="dm-[34]")) == ["dm-3", "dm-4"]
    with pytest.raises(UsageError, match="there is no disk 'sdz' on this host") as caught:
        resolved(for_disks(), disks="sda,sdz")
    assert caught.value.hint == "disks: nvme0n1, nvme1n1, sda, sdb, vda"
    with pytest.raises(UsageError, match="there is no array 'md9' on this host"):
        resolved(for_arrays(), arrays="md9")


def test_a_tunable_may_stand_once_for_each_bound() -> None:
    lines = (for_disks(kinds=["nvme"]), for_disks(kinds=["scsi"]) | {"value": "mq-deadline"})
    body = document("mine", *lines)
    targets, _ = resolve_targets(Request.from_settings(parse_profile(toml(body), "x"), {}), HOST)
    assert {target.tunable: target.value for target in targets} == {
        "block:nvme0n1:scheduler": "none",
        "block:nvme1n1:scheduler": "none",
        "block:sda:scheduler": "mq-deadline",
        "block:sdb:scheduler": "mq-deadline",
    }
    with pytest.raises(InvalidInputError, match="is set by an earlier one already"):
        parse_profile(toml(document("mine", for_disks(kinds=["nvme"]), for_disks(kinds=["nvme"]))), "x")


@pytest.mark.parametrize(("line", "words"), CASES["a line that is wrong is named"])
def test_a_line_that_is_wrong_is_named(line: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(toml(document("mine", line)), "x.toml")
    assert words in caught.value.message
