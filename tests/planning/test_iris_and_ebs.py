"""The profiles iris, iris-write-daemons and ebs-volumes: what they mean on hosts that are such, and on others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.errors import InvalidInputError, RefusedError, UsageError
from advisor.facts.clusters.iris import Cpf, Iris, wanted_pages
from advisor.facts.host_facts import Facts, scan
from advisor.planning.guards import check_guards
from advisor.planning.records import Change
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import load, parse_profile
from tests.cases import cases
from tests.planning.system import GIB, applied, host, planned, states, system, values
from tests.profiles.build import document, toml, wanted
from tests.rules.build import disk, facts, replaced

CASES = cases(__file__)

MIB = 1 << 20
PAGE = 2 * MIB
CPF = (
    "[ConfigFile]\nVersion=2023.2\n; by hand\n[config]\r\nAsyncwij=8\nglobals=0,0,4096,0,0,0\nroutines=512\n"
    "gmheap=524288\n\n[Journal]\n"
)
PATH = "/usr/irissys/iris.cpf"
NEEDED = 2688  # (4,096 + 512 + 512) MiB and 5 % in pages of 2 MiB
VM = "/proc/sys/vm"
EBS = "Amazon Elastic Block Store"
STORE = "Amazon EC2 NVMe Instance Storage"


def memory(available_gib: int = 12) -> str:
    sizes = f"MemTotal: {16 * GIB} kB\nMemAvailable: {available_gib * GIB} kB\n"
    return f"{sizes}HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"


def tree(cpf: str = CPF, **more: str) -> dict[str, str | None]:
    return {
        PATH: cpf,
        "/proc/meminfo": memory(),
        f"{VM}/nr_hugepages": "0\n",
        f"{VM}/swappiness": "60\n",
        f"{VM}/dirty_ratio": "20\n",
        f"{VM}/dirty_bytes": "0\n",
        f"{VM}/dirty_background_ratio": "10\n",
        f"{VM}/dirty_background_bytes": "0\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "/usr/lib/tmpfiles.d/x.conf": "",
        **more,
    }


def test_huge_pages_by_the_cpf_and_the_notes_of_intersystems(tmp_path: Path) -> None:
    system(tmp_path, files=tree())
    plan = planned(tmp_path, "iris")
    assert values(plan) == {
        "sysctl:vm.nr_hugepages": ("0", str(NEEDED)),
        "sysctl:vm.swappiness": ("60", "5"),
        "sysctl:vm.dirty_background_ratio": ("10", "5"),
        "sysctl:vm.dirty_ratio": ("20", "10"),
        "thp:enabled": ("always", "madvise"),
    }
    assert any("2,688 huge pages take 5,376 of 16,384 MiB (32 %)" in note for note in plan.notes)
    assert any("where it finds less, the plan is rolled back" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("instances", "state", "reason"),
    [
        ((), "not-applicable", "no InterSystems IRIS instance"),
        ((None,), "unknown", "could not be read"),
        ((Cpf(globals_mb=(0, 0, 1)), None), "unknown", "could not be read"),
        ((Cpf(),), "not-applicable", "left to IRIS"),
        ((Cpf(globals_mb=(0, 0, 1)), Cpf(globals_mb=(0, 0, 0))), "not-applicable", "left to IRIS"),
        ((Cpf(globals_mb=(0, 0, 1), memlock=32),), "not-applicable", "memlock"),
    ],
)
def test_no_number_is_made_up(instances: tuple[Cpf | None, ...], state: str, reason: str) -> None:
    (one,) = pages(instances)[1]
    assert (one.state, reason in one.reason) == (state, True), one.reason


def test_the_pages_of_all_instances_that_take_them() -> None:
    one, off = Cpf(globals_mb=(0, 0, 1000)), Cpf(globals_mb=(0, 0, 1000), memlock=32)
    (target,) = pages((one, one, off))[0]
    assert target.value == str(2 * (wanted_pages(one, PAGE) or 0))
    (skipped,) = pages((one,), page=None)[1]
    assert skipped.state == "unknown"


def pages(instances: tuple[Cpf | None, ...], page: int | None = PAGE) -> Any:
    line = wanted(tunable="sysctl:vm.nr_hugepages", value={"huge-pages": "iris"})
    return resolve_targets(
        Request.from_settings(parse_profile(toml(document("mine", line)), "x"), {}), known(instances, page)
    )


def known(instances: tuple[Cpf | None, ...], page: int | None = PAGE) -> Facts:
    found = tuple(
        Iris(f"I{n}", f"/i{n}", None, running=None, mirror="", cpf=f"/i{n}/iris.cpf", settings=one)
        for n, one in enumerate(instances)
    )
    return facts(iris=found, memory=replaced(facts().memory, {"default_hugepage_bytes": page}))


@pytest.mark.parametrize("line", CASES["what a profile may not say"])
def test_what_a_profile_may_not_say(line: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        parse_profile(toml(document("mine", wanted(**line))), "x")


def change(pages: int) -> Change:
    return Change("sysctl:vm.nr_hugepages", "0", str(pages), None, None, "none", "now", "", "", (), "p", None, (), ())  # type: ignore[arg-type]


def budget(
    pages: int, *, total: int | None, available: int | None, now: int = 0, page: int | None = PAGE
) -> tuple[str, ...]:
    sizes = {"total_bytes": total, "available_bytes": available, "default_hugepage_bytes": page}
    host_facts = facts(memory=replaced(facts().memory, sizes), sysctl={"vm.nr_hugepages": str(now)})
    return check_guards((), [change(pages)], host_facts)


def test_what_does_not_fit_is_refused() -> None:
    total = 1000 * PAGE
    assert "memory budget" in budget(850, total=total, available=900 * PAGE)[0]
    with pytest.raises(RefusedError, match="851 huge pages"):
        budget(851, total=total, available=900 * PAGE)
    with pytest.raises(RefusedError, match="to come from"):
        budget(500, total=total, available=499 * PAGE)
    # What is reserved already is not available any more, and needs not be.
    assert budget(500, total=total, available=100 * PAGE, now=400)
    assert budget(300, total=total, available=0, now=400) == ()
    for whole, left in ((None, 1), (1, None)):
        assert "unknown" in budget(5, total=whole, available=left)[0]
    assert "unknown" in budget(5, total=total, available=total, page=None)[0]


def test_the_write_daemons_of_the_article(tmp_path: Path) -> None:
    system(tmp_path, files=tree())
    plan = applied(tmp_path, "iris-write-daemons")
    assert values(plan) == {
        f"file:{PATH}:config/Asyncwij": ("8", "16"),
        f"file:{PATH}:config/wdparm": ("(unset)", "16,32,512,128"),
        f"file:{PATH}:config/wduseasyncio": ("(unset)", "1"),
    }
    assert {(one.risk, one.takes_effect) for one in plan.changes} == {("restart", "service-restart")}
    text = (tmp_path / "root" / PATH[1:]).read_bytes()
    assert (
        text
        == CPF.replace("Asyncwij=8", "Asyncwij=16")
        .replace("gmheap=524288\n", "gmheap=524288\nwdparm=16,32,512,128\nwduseasyncio=1\n")
        .encode()
    )
    found = scan(host(tmp_path)).iris[0].settings
    assert found is not None
    assert (found.asyncwij, found.wdparm, found.wduseasyncio) == (16, (16, 32, 512, 128), 1)
    assert planned(tmp_path, "iris-write-daemons").is_empty


def test_one_instance_may_be_named_and_only_files_that_are_known_are_changed() -> None:
    two = known((Cpf(), Cpf()))
    odd = replaced(two, {"iris": (*two.iris, replaced(two.iris[0], {"cpf": "/i0/LIVE.cpf", "name": "X"}))})
    profile = load("iris-write-daemons")

    def chosen(host_facts: Facts, **settings: str) -> tuple[set[str], set[str]]:
        targets, skipped = resolve_targets(Request.from_settings(profile, settings), host_facts)
        return {one.tunable.split(":")[1] for one in targets}, {one.reason for one in skipped}

    assert chosen(two) == ({"/i0/iris.cpf", "/i1/iris.cpf"}, set())
    assert chosen(two, cpfs="I1") == chosen(two, cpfs="/i1/iris.cpf") == ({"/i1/iris.cpf"}, set())
    assert chosen(odd, cpfs="X") == (set(), {"'/i0/LIVE.cpf': only a file named iris.cpf is changed"})
    assert chosen(known((None,))) == (set(), {"/i0/iris.cpf could not be read"})
    with pytest.raises(UsageError, match="no IRIS instance 'I9'"):
        chosen(two, cpfs="I9")


def resolved(*disks: Any) -> tuple[dict[str, str], set[str]]:
    targets, skipped = resolve_targets(Request.from_settings(load("ebs-volumes"), {}), facts(disks=disks))
    return {one.tunable: one.value for one in targets}, {one.reason for one in skipped}


def test_the_timeout_of_ebs_volumes_and_of_them_alone() -> None:
    volumes = (disk("nvme1n1", model=EBS), disk("nvme2n1", model=f"{EBS}    "))
    found, _ = resolved(disk("nvme0n1"), *volumes, disk("nvme3n1", model=STORE), disk("xvdb", kind="xen", model=EBS))
    assert found == {
        "block:nvme1n1:io_timeout": "2147483640",
        "block:nvme2n1:io_timeout": "2147483640",
        "block:nvme3n1:io_timeout": "90000",
        "udev:block:nvme*/model/Amazon EC2 NVMe Instance Storage:io_timeout": "90000",
        "udev:block:nvme*/model/Amazon Elastic Block Store:io_timeout": "2147483640",
    }


@pytest.mark.parametrize("live", ["4294967295", "4294967288"])
def test_a_timeout_without_end_is_kept(live: str, tmp_path: Path) -> None:
    queue = "/sys/block/nvme1n1/queue"
    files = {f"{queue}/io_timeout": f"{live}\n", "/sys/block/nvme1n1/device/model": f"{EBS}\n", "/run/udev/data/x": ""}
    files |= {"/sys/block/nvme1n1/size": "2048\n", f"{queue}/scheduler": "[none]\n"}
    system(tmp_path, files=tree() | files)
    plan = planned(tmp_path, "ebs-volumes")
    assert states(plan)["block:nvme1n1:io_timeout"] == "would-lower"
