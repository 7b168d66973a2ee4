"""Rules about InterSystems IRIS: each fires on a host that needs it and is silent on one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.cpf_text import Cpf
from advisor.facts.iris import Iris, IrisPlace, Role
from advisor.facts.memory import HugePagePool
from advisor.rules.finding import Finding
from advisor.rules.registry import judge
from advisor.rules.workload import parse_workload
from tests.rules.build import GIB, LARGE_BUFFERS, Table, array, disk, facts, nothing_known, replaced

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
FAR = "iris,rtt=1.16ms,replication=sync"
CASES: Table = {
    "iris.huge-pages-short": [
        ({"memory": memory(0)}, "advice", "no huge pages"),
        ({"memory": memory(NEEDED - 1)}, "advice", "too few"),
        {},
        {"memory": memory(0), "iris": ()},
        {"memory": memory(0), "iris": given({"memlock": 32})},
        {"memory": memory(0), "iris": given({"globals_mb": ()})},
        {"memory": memory(0, hugepages=())},
        # Which of two pools the kernel gives is not known.
        {
            "memory": memory(
                default_hugepage_bytes=None, hugepages=(HugePagePool(2 * MIB, 0, 0), HugePagePool(GIB, 0, 0))
            )
        },
    ],
    "iris.huge-pages-idle": [
        ({"memory": memory(100, 100)}, "advice", "serve nobody"),
        ({"memory": memory(NEEDED + 5000, 5000)}, "info", "9.8 GiB"),
        ({"iris": given({"memlock": 32}), "memory": memory(100, None)}, "advice", "0.2 GiB"),
        {},
        {"memory": memory(100, 100), "iris": ()},
        {"memory": memory(100, 100), "iris": given(running=False)},
        {"memory": memory(100, None)},
        {"memory": memory(NEEDED + 1000, 1000)},
    ],
    "iris.shmmax": [
        ({"sysctl": {**QUIET, "kernel.shmmax": str(13 * GIB)}}, "warning", "below the shared memory"),
        ({"sysctl": {**QUIET, "kernel.shmall": str(GIB // 4096)}}, "warning", "below the shared memory"),
        {"sysctl": {**QUIET, "kernel.shmmax": "18446744073692774399", "kernel.shmall": "18446744073692774399"}},
        {"sysctl": {**QUIET, "kernel.shmmax": "1"}, "iris": given({"globals_mb": ()})},
    ],
    "iris.transparent-huge-pages": [
        ({"memory": memory(thp_enabled="always")}, "info", "always on"),
        {"memory": memory(thp_enabled="madvise")},
        {"memory": memory(thp_enabled="always"), "iris": ()},
    ],
    "iris.cache-share": [
        ({"iris": given({"globals_mb": (0, 0, 70_000)})}, "warning", "larger than the memory"),
        ({"iris": given({"globals_mb": (0, 0, 56_000)})}, "advice", "leaves little"),
        ({"iris": given({"globals_mb": (0, 0, 0)})}, "info", "IRIS chooses it"),
        ({"iris": given({"globals_mb": (0, 0, 20_000)})}, "info", "31% of the memory"),
        ({"memory": memory(total_bytes=63 * GIB)}, "info", "70% of the memory"),
        {},
        {"memory": memory(total_bytes=None)},
        {"iris": (instance(None, ()),)},
        {"iris": given({"globals_mb": ()})},
    ],
    "iris.journal-shared": [
        ({"iris": given(places=TOGETHER)}, "advice", "with databases"),
        (
            {"iris": given(places=(place("journal", "nvme1n1p1", "nvme1n1"), place("wij", "dm-1", "nvme1n1")))},
            "info",
            "with the WIJ",
        ),
        {},
        # A new instance has its journal next to its own databases.
        {"iris": given(places=(place("journal", "a"), place("database", "a", name="USER")))},
        {"iris": given(places=(place("journal", "a"), replaced(place("wij", "a"), {"device": None, "disks": ()})))},
    ],
    "iris.alternate-journal-shared": [
        (
            {"iris": given(places=(place("journal", "nvme1n1"), place("alternate-journal", "nvme1n1")))},
            "advice",
            "Both journal directories",
        ),
        {},
    ],
    "iris.wij-shared": [
        (
            {"iris": given(places=(place("wij", "dm-0", "a", "b"), place("database", "dm-9", "b", name="APP")))},
            "info",
            "lies with its databases",
        ),
        (
            "iris,write=70%",
            {"iris": given(places=(place("wij", "a"), place("database", "a", name="APP")))},
            "advice",
            "lies with its databases",
        ),
        {},
    ],
    "iris.file-system": [
        ({"iris": given(places=(place("wij", "a", kind="ext4"),))}, "info", "than XFS"),
        {},
        {"iris": given(places=(replaced(place("wij", "a", kind="nfs4"), {"device": None}),))},
    ],
    "iris.stripe-size": [(stripe(64), "info", "not of 4 MB"), stripe(4096), {**stripe(64), "iris": ()}],
    "iris.vm-settings": [
        ({"sysctl": {**QUIET, "vm.swappiness": "60"}}, "info", "Swapping"),
        ({"sysctl": {**QUIET, "vm.dirty_ratio": "20"}}, "info", "write-back"),
        {},
        {"sysctl": {**QUIET, "vm.swappiness": "60"}, "iris": ()},
        # Bytes are active: the ratio is 0 then.
        {"sysctl": {**QUIET, "vm.dirty_ratio": "0", "vm.dirty_bytes": "1073741824"}},
    ],
    "iris.write-daemons": [
        ({"iris": given({"asyncwij": None, "wdparm": ()})}, "info", "fewer write daemons"),
        ("write=60%", {"iris": given({"wduseasyncio": 0})}, "advice", "fewer write daemons"),
        ("iris,write=70%", {"iris": given({"asyncwij": 8})}, "advice", "fewer write daemons"),
        (
            "iris,write=70%",
            {"iris": given({"asyncwij": 8}), "disks": (disk("nvme5n1", rotational=True),)},
            "info",
            "fewer write daemons",
        ),
        {},
        ("iris", {"iris": given({"asyncwij": 8})}),
        ("backup", {"iris": given({"asyncwij": 8})}),
        {"iris": (instance(None, ()),)},
    ],
    "iris.parts-apart": [
        ({}, "info", "on 3 volumes"),
        (
            "iris",
            {"iris": given(places=(place("journal", "a"), place("wij", "b"), place("database", "b", name="APP")))},
            "info",
            "on 2 volumes",
        ),
        {"iris": ()},
        {"iris": given(places=TOGETHER)},
        {"iris": given(places=(place("wij", "a", "a", "b"), place("journal", "b", "b")))},
    ],
    "iris.mirror-round-trip": [
        (FAR, {"iris": given(mirror="Failover Primary")}, "info", "another zone"),
        {},
        (FAR, {"iris": ()}),
        ("iris,rtt=100us,replication=sync", {}),
        ("iris,rtt=1.16ms,replication=async", {}),
        ("iris,replication=sync", {}),
    ],
}


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
