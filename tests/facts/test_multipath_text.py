"""What multipath prints against what is known to be true of twelve captured maps."""

from __future__ import annotations

import pytest

from advisor.facts.block.arrays import read_arrays
from advisor.facts.block.lvm_text import MultipathMap, count_unread, parse_multipath
from advisor.facts.unknown import Unknowns
from tests import captured
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.facts.test_mdstat import command_texts

DATA = read_cases(__file__)

TEXT = DATA["TEXT"]


def test_a_map() -> None:
    (one,) = parse_multipath(TEXT)
    assert (one.name, one.wwid, one.device) == ("mpatha", "3600a0b", "dm-2")
    assert (one.vendor, one.product, one.size) == ("NETAPP", "LUN C-Mode", "54T")
    assert (one.features, one.hwhandler, one.access) == ("3 queue_if_no_path pg_init_retries 50", "1 alua", "rw")
    assert [(group.policy, group.priority, group.state) for group in one.groups] == [
        ("service-time 0", 50, "active"),
        ("service-time 0", -10, "enabled"),
    ]
    assert [(path.device, path.is_usable) for path in one.paths] == [("sdc", True), ("sdf", False), ("-", False)]


def test_heads_of_old_releases_and_lost_paths() -> None:
    maps = {one.device: one for one in parse_multipath(DATA["OLD_HEADS"])}
    assert {name: one.wwid for name, one in maps.items()} == {
        **{"VOLUME": "360050760", "dm-2": "360a98000", "dm-4": "3600a0b80", "3600a0b81": "3600a0b81", "dm-3": "adm-1x"}
    }
    usable = {name: [path.is_usable for path in one.paths] for name, one in maps.items()}
    assert usable == {
        **{"VOLUME": [True, False, False], "dm-2": [True, False], "dm-4": [], "3600a0b81": []},
        "dm-3": [True, False, False, False, False],
    }
    assert count_unread(DATA["OLD_HEADS"]) == 1


def test_lost_paths_are_counted_each_by_itself() -> None:
    tree = Tree()
    tree.answer(["multipath", "-ll"], DATA["OLD_HEADS"])
    unknown = Unknowns()
    found = {one.device: one for one in read_arrays(tree.host(), (), unknown)}
    [lost] = [one.why for one in unknown.listed() if one.fact == "arrays.multipath"]
    assert lost.startswith("1 map ")
    states = {name: (one.missing, one.expected, one.survives, one.state) for name, one in found.items()}
    assert states == {
        **{"dm-3": (4, 5, 0, "degraded"), "VOLUME": (2, 3, 0, "degraded"), "dm-2": (1, 2, 0, "degraded")},
        **{"dm-4": (0, 0, -1, "failed"), "3600a0b81": (0, 0, -1, "failed")},
    }
    assert found["dm-3"].failed == ("sdh", "sdk")


@pytest.mark.parametrize("end", range(0, len(TEXT), 11))
def test_a_cut_text(end: int) -> None:
    for one in parse_multipath(TEXT[:end]):
        assert one.name == "mpatha"


def map_rows() -> list[dict[str, str]]:
    path = captured.FIXTURES / "truth/multipath_truth.csv"
    rows = captured.truth_rows("multipath_truth") if path.is_file() else []
    position: dict[str, int] = {}
    for row in rows:
        row["index"] = str(position.setdefault(row["file"], 0))
        position[row["file"]] += 1
    return rows


@pytest.mark.captured
@pytest.mark.parametrize("row", map_rows(), ids=lambda row: f"{row['file']}:{row['index']}")
def test_captured_maps(row: dict[str, str]) -> None:
    name = row["file"].removeprefix("insights-").removesuffix(".txt").upper()
    maps = parse_multipath(command_texts()[f"multipath_v4_ll/{name}.txt"])
    assert len(maps) == sum(other["file"] == row["file"] for other in map_rows())
    assert printed(maps[int(row["index"])]) == {
        key: value for key, value in row.items() if key not in ("file", "index")
    }


def printed(one: MultipathMap) -> dict[str, str]:
    """The map in the words of the truth."""
    policies = ";".join(f"{group.policy}/prio={group.priority}/{group.state}" for group in one.groups)
    states = (f"{path.dm_state}/{path.check_state}/{path.device_state}" for path in one.paths)
    paths = " ".join(f"{path.device}@{path.hctl}[{state}]" for path, state in zip(one.paths, states, strict=True))
    values = {
        "map": one.name,
        "wwid": one.wwid,
        "dm": one.device,
        "vendor": one.vendor,
        "product": one.product,
        "size": one.size,
        "features": one.features,
        "hwhandler": one.hwhandler,
        "n_groups": len(one.groups),
        "policies": policies,
        "n_paths": len(one.paths),
        "paths": paths,
        "n_failed": sum(not path.is_usable for path in one.paths),
        "queue_if_no_path": int("queue_if_no_path" in (one.features or "")),
    }
    return {key: "" if value is None else str(value) for key, value in values.items()}
