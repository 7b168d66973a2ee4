"""Rules about EBS volumes: each fires on a host that needs it and is silent on one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from advisor.facts.iris import Iris, IrisPlace
from advisor.facts.purchase import PurchasedFigures
from advisor.limits.instances import find_instance
from advisor.rules.ebs import _SHARED_LINK
from advisor.rules.finding import Finding
from advisor.rules.queries import EBS_MODEL
from advisor.rules.registry import judge
from advisor.rules.workload import parse_workload
from tests.rules.build import array, disk, facts, nothing_known, on_cloud, replaced
from tests.rules.selection import rules_of

RULES = rules_of("ebs", "ebs_purchase", "ebs_quotas")
VOLUMES = tuple(disk(f"nvme{n}n1", model=EBS_MODEL) for n in range(1, 9))
NAMES = tuple(one.name for one in VOLUMES)
INSTANCE = Iris(
    *("LIVE", "/usr/irissys", "2023.2", True, "", "/usr/irissys/iris.cpf", None),
    (IrisPlace("database", "APP", "/db/", "/db", "xfs", "nvme1n1", ("nvme1n1",)),),
)
STREAM = "read=100%,block=1m,access=sequential"
RANDOM = "read=70%,block=8k,access=random"


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


FIRES: tuple[tuple[str, str | None, dict[str, Any], str], ...] = (
    ("ebs.few-stripes", None, {"disks": VOLUMES, "arrays": (volume(*NAMES, data_disks=4),)}, "4 stripes over 8"),
    ("ebs.stream-read-ahead", STREAM, {"disks": VOLUMES[:1]}, "nvme1n1: read_ahead_kb 128"),
    ("ebs.stream-read-ahead", STREAM, {"disks": VOLUMES, "arrays": (volume(*NAMES),)}, "dm-0: read_ahead_kb 128"),
    ("ebs.scheduler", None, ordered("mq-deadline"), "nvme1n1: mq-deadline"),
    ("ebs.not-optimized", None, {"host": on_cloud("aws", "t2.large")}, "t2.large"),
    ("ebs.unusable-purchase", None, {"purchases": purchases(21_000)}, "volumes 21,000 MB/s, r5b.24xlarge 7,500 MB/s"),
    ("ebs.unusable-purchase", None, {"purchases": purchases(8_389)}, "11 % cannot pass"),
    ("ebs.account-quota", None, {"disks": (replaced(VOLUMES[0], {"size_bytes": 17 << 40}),)}, "nvme1n1"),
    ("ebs.account-quota", None, {"disks": VOLUMES[:2], "iris": (INSTANCE,)}, "100000"),
)
SILENT: tuple[tuple[str, str | None, dict[str, Any]], ...] = (
    ("ebs.unusable-purchase", None, {"disks": VOLUMES, "host": on_cloud("aws", "r5b.24xlarge")}),
    ("ebs.unusable-purchase", None, {"purchases": purchases(7_400)}),
    ("ebs.unusable-purchase", None, {"purchases": purchases(8_000)}),
    ("ebs.few-stripes", None, {"disks": VOLUMES, "arrays": (volume(*NAMES),)}),
    # Of drives it is another matter, and so is an array that is not LVM's.
    ("ebs.few-stripes", None, {"disks": (disk("nvme1n1"),), "arrays": (volume("nvme1n1", data_disks=1),)}),
    ("ebs.few-stripes", None, {"disks": VOLUMES, "arrays": (volume(*NAMES, data_disks=4, manager="md"),)}),
    ("ebs.few-stripes", None, {"disks": VOLUMES, "arrays": (volume(*NAMES, data_disks=None),)}),
    ("ebs.stream-read-ahead", None, {"disks": VOLUMES}),
    ("ebs.stream-read-ahead", RANDOM, {"disks": VOLUMES}),
    ("ebs.stream-read-ahead", "write=100%,access=sequential", {"disks": VOLUMES}),
    ("ebs.stream-read-ahead", STREAM, {"disks": (disk("nvme1n1"),)}),
    ("ebs.stream-read-ahead", STREAM, {"disks": tuple(replaced(one, {"queue": {}}) for one in VOLUMES)}),
    ("ebs.scheduler", None, ordered("none")),
    ("ebs.scheduler", None, {"disks": (disk("nvme0n1", scheduler="mq-deadline"),)}),
    ("ebs.not-optimized", None, {"host": on_cloud("aws", "r5b.24xlarge")}),
    ("ebs.account-quota", None, {"disks": VOLUMES}),
    ("ebs.account-quota", None, {"disks": (disk("nvme1n1", size_bytes=30 << 40),), "iris": (INSTANCE,)}),
    ("ebs.not-optimized", None, {"host": on_cloud("aws", None)}),
    ("ebs.not-optimized", None, {"host": on_cloud("gcp", "t2.large")}),
)


@pytest.mark.parametrize(("rule", "workload", "parts", "says"), FIRES)
def test_it_fires(rule: str, workload: str | None, parts: dict[str, Any], says: str) -> None:
    (one,) = found(rule, workload, parts)
    assert says in str(dict(one.evidence))
    assert one.severity == "info" or not one.intent
    assert all(len(text) > 5 for text in (one.title, one.why, one.advice, one.hurts_when))


@pytest.mark.parametrize(("rule", "workload", "parts"), SILENT)
def test_it_is_silent(rule: str, workload: str | None, parts: dict[str, Any]) -> None:
    assert found(rule, workload, parts) == []


def test_every_rule_is_seen_to_fire_and_to_be_silent() -> None:
    assert {rule.id for rule in RULES} == {row[0] for row in FIRES} == {row[0] for row in SILENT}


def test_nothing_is_said_of_a_host_of_which_nothing_is_known() -> None:
    assert [one for one in judge(nothing_known()) if one.id.startswith("ebs.")] == []


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
