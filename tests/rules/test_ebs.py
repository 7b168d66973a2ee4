"""Rules about EBS volumes: each fires on a host that needs it and is silent on one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.facts.clusters.iris import Iris, IrisPlace
from advisor.facts.system.identity import BurstingVolume, PurchasedFigures
from advisor.limits.machines import find_instance
from advisor.rules.judged import judge
from advisor.rules.queries import EBS_MODEL
from advisor.rules.remote.ebs import _SHARED_LINK
from advisor.rules.rule import Finding
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.rules.build import Table, array, disk, facts, joined, on_cloud, replaced

VOLUMES = tuple(disk(f"nvme{n}n1", model=EBS_MODEL) for n in range(1, 9))
NAMES = tuple(one.name for one in VOLUMES)
INSTANCE = Iris(
    *("LIVE", "/usr/irissys", "2023.2", True, "", "/usr/irissys/iris.cpf", None),
    (IrisPlace("database", "APP", "/db/", "/db", "xfs", "nvme1n1", ("nvme1n1",)),),
)
STREAM = "read=100%,block=1m,access=sequential"


def volume(*members: str, **parts: Any) -> Any:
    whole = {"manager": "lvm", "level": "striped", "device": "dm-0", "queue": {"read_ahead_kb": "128"}}
    return array("vg/db", *members, **{**whole, **parts})


def ordered(word: str) -> dict[str, Any]:
    return {"disks": tuple(replaced(one, {"scheduler": word}) for one in VOLUMES)}


def found(rule: str, workload: str | None, parts: Mapping[str, Any]) -> list[Finding]:
    declared = parse_workload(workload) if workload else None
    return [one for one in judge(facts(**parts), declared) if one.id == rule]


def purchases(mb_per_s: float) -> tuple[PurchasedFigures, ...]:
    """Against an r5b.24xlarge."""
    share = max(0.0, 1 - 7_500 / mb_per_s)
    return (PurchasedFigures("MB/s", mb_per_s, 7_500, "r5b.24xlarge", share, NAMES),)


def bursting(*figures: Any) -> BurstingVolume:
    return BurstingVolume(*figures)


DATA = read_cases(__file__, bursting, disk, on_cloud, ordered, purchases, volume, INSTANCE=INSTANCE, VOLUMES=VOLUMES)

CASES: Table = joined(
    DATA["CASES"],
    {
        "ebs.few-stripes": [
            ({"disks": VOLUMES, "arrays": (volume(*NAMES, data_disks=4),)}, "advice", "4 stripes over 8"),
            {"disks": VOLUMES, "arrays": (volume(*NAMES),)},
            {"disks": VOLUMES, "arrays": (volume(*NAMES, data_disks=4, manager="md"),)},
            {"disks": VOLUMES, "arrays": (volume(*NAMES, data_disks=None),)},
        ],
        "ebs.stream-read-ahead": [
            (STREAM, {"disks": VOLUMES[:1]}, "info", "nvme1n1: read_ahead_kb 128"),
            (STREAM, {"disks": VOLUMES, "arrays": (volume(*NAMES),)}, "info", "dm-0: read_ahead_kb 128"),
            (STREAM, {"disks": tuple(replaced(one, {"queue": {}}) for one in VOLUMES)}),
        ],
        "ebs.account-quota": [
            ({"disks": (replaced(VOLUMES[0], {"size_bytes": 17 << 40}),)}, "info", "nvme1n1"),
            ({"disks": VOLUMES[:2], "iris": (INSTANCE,)}, "info", "100000"),
        ],
    },
)


def test_no_type_of_the_table_counts_as_not_optimized() -> None:
    assert {name for name in _SHARED_LINK if find_instance(name)} == set()
    assert find_instance("m1.large") is not None


def test_a_hostile_name_stays_one_word_of_the_command() -> None:
    odd = disk("nvme1n1;reboot", model=EBS_MODEL)
    (one,) = found("ebs.stream-read-ahead", STREAM, {"disks": (odd,)})
    assert one.commands == ("advisor apply 'block:nvme1n1;reboot:read_ahead_kb>=1024'",)


def test_read_ahead_is_that_of_the_uppermost_device() -> None:
    (one,) = found("ebs.stream-read-ahead", STREAM, {"disks": VOLUMES, "arrays": (volume(*NAMES[:7]),)})
    assert one.evidence["devices"] == ("dm-0", "nvme8n1")
