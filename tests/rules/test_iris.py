"""Rules about InterSystems IRIS: each fires on a host that needs it and is silent on one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.clusters.iris import Cpf, Iris, IrisPlace, Role
from advisor.facts.system.memory import HugePagePool
from advisor.rules.judged import judge
from advisor.rules.rule import Finding
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.rules.build import GIB, LARGE_BUFFERS, Table, array, disk, facts, joined, nothing_known, replaced

MIB = 1 << 20
SETTINGS = Cpf(
    globals_mb=(0, 0, 45_000, 0, 0, 0),
    routines_mb=(1024,),
    gmheap_kb=1 << 20,
    asyncwij=16,
    wduseasyncio=1,
    wdparm=(16, 32, 512, 128),
)
QUIET = {**LARGE_BUFFERS, "vm.swappiness": "5", "vm.dirty_background_ratio": "5", "vm.dirty_ratio": "10"}
NEEDED = 23_524  # (45,000 + 1,024 + 1,024) MiB in pages of 2 MiB


def place(role: Role, device: str, *disks: str, name: str = "", kind: str = "xfs") -> IrisPlace:
    return IrisPlace(role, name, f"/{device}/{role}", f"/{device}", kind, device, disks or (device,))


APART = (
    place("journal", "nvme1n1"),
    place("alternate-journal", "nvme2n1"),
    place("wij", "dm-1", "nvme3n1", "nvme4n1"),
    place("database", "dm-0", "nvme5n1", "nvme6n1", name="APP"),
    place("database", "nvme0n1p1", "nvme0n1", name="IRISSYS", kind="ext4"),
)
TOGETHER = (place("journal", "nvme1n1"), place("database", "nvme1n1", name="APP"))


def instance(settings: Cpf | None = SETTINGS, places: tuple[IrisPlace, ...] = APART, **parts: Any) -> Iris:
    whole = Iris(
        "LIVE", "/usr/irissys", "2023.2", running=True, mirror="", cpf="/usr/irissys/iris.cpf", settings=settings
    )
    return replaced(whole, {"places": places, **parts})


def given(changed: dict[str, Any] | None = None, **parts: Any) -> tuple[Iris, ...]:
    return (instance(replaced(SETTINGS, changed or {}), **parts),)


def memory(pages: int = NEEDED, free: int | None = 0, **parts: Any) -> Any:
    own = {"hugepages": (HugePagePool(2 * MIB, pages, free),), "default_hugepage_bytes": 2 * MIB, **parts}
    return replaced(facts().memory, own)


def found(rule: str, workload: str | None, parts: dict[str, Any]) -> list[Finding]:
    host = facts(**{**COMMON, **parts})
    return [one for one in judge(host, parse_workload(workload) if workload else None) if one.id == rule]


def stripe(kib: int) -> dict[str, Any]:
    parts = {"manager": "lvm", "level": "striped", "device": "dm-0", "chunk_bytes": kib << 10}
    return {"arrays": (array("vg/db", "nvme5n1", "nvme6n1", **parts),)}


COMMON = {"iris": given(), "memory": memory(), "sysctl": QUIET}
DATA = read_cases(
    __file__, HugePagePool, disk, given, instance, memory, place, replaced, stripe, QUIET=QUIET, TOGETHER=TOGETHER
)

CASES: Table = joined(
    DATA["CASES"],
    {
        "iris.shmmax": [
            ({"sysctl": {**QUIET, "kernel.shmmax": str(13 * GIB)}}, "warning", "below the shared memory"),
            ({"sysctl": {**QUIET, "kernel.shmall": str(GIB // 4096)}}, "warning", "below the shared memory"),
        ]
    },
)


def test_nothing_is_said_of_a_host_of_which_nothing_is_known() -> None:
    assert [one for one in judge(nothing_known()) if one.id.startswith("iris.")] == []
    blank = replaced(nothing_known(), {"iris": (instance(), instance(Cpf()), instance(None))})
    assert {one.severity for one in judge(blank) if one.id.startswith("iris.")} <= {"info"}


def test_what_several_instances_ask_for_is_added_up() -> None:
    both = (*given(), *given(name="TEST"))
    (one,) = found("iris.huge-pages-short", None, {"iris": both})
    assert one.evidence["needed_at_least"] == 2 * NEEDED
    assert one.evidence["instances"] == ("LIVE", "TEST")


@pytest.mark.parametrize("rule", ["iris.huge-pages-short", "iris.vm-settings", "iris.transparent-huge-pages"])
def test_what_a_profile_does_is_one_command(rule: str) -> None:
    """`advisor recommend` offers it as it stands."""
    parts = {"memory": memory(0, thp_enabled="always"), "sysctl": LARGE_BUFFERS | {"vm.swappiness": "60"}}
    (one,) = found(rule, None, parts)
    assert (one.advice, one.profile) == ("advisor plan iris", "iris")


def test_no_huge_pages_is_no_limit_of_the_kernel() -> None:
    assert found("iris.shmmax", None, {"memory": memory(0)}) == []


def test_an_odd_path_stays_one_word_of_the_command() -> None:
    (one,) = found("iris.write-daemons", None, {"iris": given({"asyncwij": 8}, cpf="/a;b/iris.cpf")})
    assert one.advice == "advisor plan iris-write-daemons --set 'cpfs=/a;b/iris.cpf'"
