"""Disks of one identity (paths to a unit, clones) that change their names: each value goes back to the disk that it was
set on, or nowhere, and then the item is named with exit code 5. By command and by script."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pytest

from advisor.errors import RefusedError
from advisor.host import Host
from advisor.planning.records import Plan
from advisor.shell.rollback_script import rollback_script
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.status import find_drift
from tests.cases import cases
from tests.transaction.system import MACHINE, apply_locked, plan_of_values, roll_back_locked
from tests.transaction.test_script import run_script
from tests.trees import host_of, make_tree

ENGINES = {"command": None, "dash": ["dash"], "busybox": ["busybox", "sh"]}
BOOT, NEXT_BOOT = "1111-2222", "3333-4444"
ONE_BOOT = {"same": BOOT, "next": NEXT_BOOT}
WWID = "naa.600140512345678"


class Disk(msgspec.Struct, frozen=True):
    """A disk object: what kernel and udev say about it, and its queue length. ``hctl`` is where its link leads to."""

    value: str
    hctl: str | None
    path: str | None
    sequence: str | None
    words: str | None = WWID
    file: str = "device/wwid"
    holder: str | None = None


Layout = Mapping[str, Disk]
CASES = cases(__file__)
DISKS = {name: Disk(**fields) for name, fields in CASES["disks"].items()}
A, B, C, D = (DISKS[name] for name in "ABCD")
AFTER = "256"
LAYOUT = {"sda": D, "sdb": A, "sdc": B, "sdd": C}


def lay(where: Path, disks: Mapping[str, Disk], boot: str = BOOT) -> Host:
    """The tree of a host with these disks, whatever was there before."""
    root = where / "root"
    shutil.rmtree(root, ignore_errors=True)
    files = {"/etc/machine-id": f"{MACHINE}\n", "/proc/sys/kernel/random/boot_id": f"{boot}\n"}
    links = {}
    for number, (name, disk) in enumerate(disks.items()):
        place = f"/sys/devices/pci0000:00/host/{disk.hctl or f'virtual-{name}'}"
        own = f"{place}/block/{name}"
        links[f"/sys/block/{name}"] = f"../..{own}"
        if disk.hctl is not None:
            links[f"{own}/device"] = "../.."
        files[f"{own}/dev"] = f"8:{16 * number}\n"
        files[f"{own}/queue/nr_requests"] = f"{disk.value}\n"
        if disk.words is not None:
            is_below = disk.hctl is not None and disk.file.startswith("device/")
            files[f"{place if is_below else own}/{disk.file.removeprefix('device/')}"] = f"{disk.words}\n"
        if disk.path is not None:
            files[f"/run/udev/data/b8:{16 * number}"] = f"S:disk/x\nE:ID_SERIAL=x\nE:ID_PATH={disk.path}\nG:systemd\n"
        if disk.sequence is not None:
            files[f"{own}/diskseq"] = f"{disk.sequence}\n"
        if disk.holder is not None:
            files["/sys/block/dm-9/dm/uuid"] = f"{disk.holder}\n"
            links[f"{own}/holders/dm-9"] = "/sys/block/dm-9"
    make_tree(root, files, links)
    return host_of(root)


def values(where: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: (where / f"root/sys/block/{name}/queue/nr_requests").read_text().strip() for name in names}


def plan_of(host: Host, *names: str) -> Plan:
    return plan_of_values(host, {f"block:{name}:nr_requests": AFTER for name in names}, runtime_only=True)


def known_by(disk: Disk, marks: Iterable[str]) -> Disk:
    """The disk on a host that shows no more marks of its place than these."""
    left_out = {"hctl", "path", "sequence"} - set(marks)
    return msgspec.structs.replace(disk, **dict.fromkeys(left_out))


def set_up(where: Path, disks: Mapping[str, Disk], *names: str) -> Plan:
    """The values are set on ``names`` and stay: the host's state, and its transaction."""
    host, store = lay(where, disks), Store(str(where / "state"))
    plan = plan_of(host, *names)
    assert {one.tunable for one in plan.changes} == {f"block:{name}:nr_requests" for name in names}, plan.skipped
    record = apply_locked(host, plan, store)
    assert find_drift(host, [record]) == ()
    assert values(where, names) == dict.fromkeys(names, AFTER)
    return plan


def rolled_back(where: Path, host: Host, plan: Plan, engine: str) -> dict[str, str]:
    """Each item that is not back, with what is said about it; the exit code fits."""
    shell = ENGINES[engine]
    if shell is None:
        store = Store(str(where / "state"))
        outcomes = roll_back_locked(host, store.read_records()[-1], store)
        return {one.what: one.detail for one in outcomes if not one.is_back}
    (where / "rollback.sh").write_text(rollback_script(plan))
    done = run_script(where / "rollback.sh", where, shell=shell)
    assert done.stderr.count("\n") == (1 if done.returncode else 0), done.stderr
    lines = [line.split(None, 2) for line in done.stdout.splitlines()]
    failed = {words[1]: words[2] for words in lines if words[0] == "failed"}
    assert done.returncode == (5 if failed else 0), done.stdout
    assert "by hand" not in done.stdout
    return failed


def layout(names: Mapping[str, str]) -> Layout:
    return {name: DISKS[disk] for name, disk in names.items()}


KNOWN = {
    "ID_PATH": ({"path"}, BOOT),
    "ID_PATH, after a boot": ({"path", "sequence"}, NEXT_BOOT),
    "device link": ({"hctl"}, BOOT),
    "device link, after a boot": ({"hctl"}, NEXT_BOOT),
    "diskseq": ({"sequence"}, BOOT),
    "diskseq, after a boot": ({"sequence"}, NEXT_BOOT),
    "all": ({"path", "hctl", "sequence"}, BOOT),
}


@pytest.fixture(scope="module", params=KNOWN)
def applied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Plan]:
    where = tmp_path_factory.mktemp("applied")
    marks, _ = KNOWN[request.param]
    plan = set_up(where, {name: known_by(disk, marks) for name, disk in LAYOUT.items()}, "sdb", "sdc")
    return request.param, where, plan


def is_found(disk: Disk, now: Disk, marks: set[str], boot: str) -> bool:
    if "sequence" in marks and boot == BOOT and disk.sequence == now.sequence:
        return True
    return disk.path == now.path if "path" in marks else "hctl" in marks and disk.hctl == now.hctl


@pytest.mark.repeats(30)
@pytest.mark.parametrize("move", CASES["moves"])
def test_each_value_goes_back_to_its_own_path_or_nowhere(
    applied: tuple[str, Path, Plan], move: str, tmp_path: Path
) -> None:
    known, origin, plan = applied
    marks, boot = KNOWN[known]
    wanted, now, found = {}, {}, set()
    for name, disk in layout(CASES["moves"][move]).items():
        own = next((one for one in (A, B) if one.path == disk.path), None)
        is_own = own is not None and is_found(own, disk, marks, boot)
        now[name] = known_by(msgspec.structs.replace(disk, value=AFTER), marks)
        wanted[name] = own.value if own is not None and is_own else AFTER
        if own is not None and is_own:
            found.add(own.value)
    missed = {f"block:{name}:nr_requests" for name in ("sdb", "sdc") if LAYOUT[name].value not in found}
    for engine in ENGINES:
        where = tmp_path / engine
        shutil.copytree(origin / "state", where / "state")
        host = lay(where, now, boot)
        store = Store(str(where / "state"))
        assert {one.what for one in find_drift(host, store.read_records())} == missed
        failed = rolled_back(where, host, plan, engine)
        assert (engine, values(where, now)) == (engine, wanted)
        assert set(failed) == missed, failed
        same = [name for name, disk in now.items() if disk.words == WWID]
        for said in failed.values():
            assert "cannot be read: " in said
            assert all(name in said for name in same), said


@pytest.mark.parametrize("case", CASES["cases"])
def test_one_value_goes_back_to_its_own_disk_or_nowhere(case: str, tmp_path: Path) -> None:
    one = CASES["cases"][case]
    before, name, boot, restored = layout(one["before"]), one["set"], ONE_BOOT[one["boot"]], one["back"]
    plan = set_up(tmp_path / "origin", before, name)
    meant = before[name]
    later = {place: msgspec.structs.replace(disk, value=AFTER) for place, disk in layout(one["after"]).items()}
    wanted = {place: meant.value if place == restored else AFTER for place in later}
    missed = set() if restored else {f"block:{name}:nr_requests"}
    for engine in ENGINES:
        where = tmp_path / engine
        shutil.copytree(tmp_path / "origin/state", where / "state")
        host = lay(where, later, boot)
        assert {one.what for one in find_drift(host, Store(str(where / "state")).read_records())} == missed
        failed = rolled_back(where, host, plan, engine)
        assert (engine, values(where, later), set(failed)) == (engine, wanted, missed)


def test_an_identity_of_an_earlier_version_goes_by_its_words(tmp_path: Path) -> None:
    plan = set_up(tmp_path / "origin", LAYOUT, "sdb")
    text = msgspec.json.encode(plan)
    identity = msgspec.json.encode(plan.changes[0].probe.identity)  # type: ignore[union-attr]
    assert text.count(identity) == 3
    earlier = msgspec.json.decode(
        text.replace(identity, b'["/sys/block/sdb/device/wwid","%s"]' % WWID.encode()), type=Plan
    )
    cases: list[tuple[Layout, str | None]] = [
        ({"sdb": A, "sdc": B, "sdd": C}, "sdb"),
        ({"sda": A, "sdb": D}, "sda"),
        ({"sda": A, "sdb": D, "sdc": B}, None),
    ]
    for number, (later, restored) in enumerate(cases):
        for engine in ("dash", "busybox"):
            where = tmp_path / f"{number}{engine}"
            host = lay(where, {name: msgspec.structs.replace(disk, value=AFTER) for name, disk in later.items()})
            assert bool(rolled_back(where, host, earlier, engine)) == (restored is None)
            assert values(where, later) == {name: "64" if name == restored else AFTER for name in later}


def test_disks_that_nothing_tells_apart_are_not_set(tmp_path: Path) -> None:
    host = lay(tmp_path, {name: known_by(disk, ()) for name, disk in {"sda": A, "sdb": B}.items()})
    (found,) = plan_of(host, "sda").blocking
    assert "another device has the same identity" in found.reason


def test_another_disk_with_the_name_between_plan_and_apply_is_refused(tmp_path: Path) -> None:
    plan = plan_of(lay(tmp_path, LAYOUT), "sdb")
    host, store = lay(tmp_path, {"sdb": B}), Store(str(tmp_path / "state"))
    with (
        store.hold_lock(),
        pytest.raises(RefusedError, match="block:sdb:nr_requests: cannot be read: the device at ID_PATH"),
    ):
        apply_plan(host, plan, store)
    assert values(tmp_path, ["sdb"]) == {"sdb": "128"}


def test_another_disk_that_has_the_name_is_no_layer(tmp_path: Path) -> None:
    set_up(tmp_path, LAYOUT, "sdb")
    swapped = {"sda": D, "sdb": B, "sdc": msgspec.structs.replace(A, value=AFTER), "sdd": C}
    host, store = lay(tmp_path, swapped), Store(str(tmp_path / "state"))
    with store.hold_lock():
        with pytest.raises(RefusedError, match="transaction 0001 holds it on another device"):
            apply_plan(host, plan_of(host, "sdb"), store)
        assert values(tmp_path, ["sdb", "sdc"]) == {"sdb": "128", "sdc": AFTER}
        roll_back(host, store.read_records()[-1], store)
        second = apply_plan(host, plan_of(host, "sdb"), store)
        assert all(one.is_back for one in roll_back(host, second, store))
    assert values(tmp_path, ["sdb", "sdc"]) == {"sdb": "128", "sdc": "64"}
