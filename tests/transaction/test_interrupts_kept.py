"""Interrupts that stay: found again under other numbers by both engines, set again by the unit, and rolled back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from advisor.host import Host, Missing, ReadFile, observe
from advisor.host.irqs import DEVICES, read_identity
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.status import rollback_transactions, verify_transactions
from advisor.tunables.irq import SCRIPT, UNIT
from tests.planning.system import ETH0, LOOPBACK, Link, applied, host, planned, system
from tests.planning.test_placement import LINKS, PINNING
from tests.transaction.killing import killed_at_step
from tests.trees import host_of, listing, make_command, make_tree
from tests.tunables.form_shell import NOTHING, SHELLS, read_batch

PORT = "0000:3b:00.3"
DRIVE = "0000:3b:00.4"
SYSTEMD = {"/run/systemd/system/x": ""}
BOOT = "/proc/sys/kernel/random/boot_id"
NAMES = {40: "eth2-TxRx-0", 41: "eth2-TxRx-1", 50: "nvme0q0"}


def build(where: Path) -> None:
    """A link on node 1 with two queues, and the first interrupt of a drive there; all of them may run anywhere."""
    port = msgspec.structs.replace(LINKS[3], irqs=dict.fromkeys((40, 41), "0-7"))
    drive = Link("eth9", node=1, irqs={50: "0-7"})
    names = {f"/sys/kernel/irq/{number}/actions": f"{name}\n" for number, name in NAMES.items()}
    files = {**SYSTEMD, **names, BOOT: "boot-1\n"}
    system(where, (LOOPBACK, ETH0, port, drive), files, {"systemctl": "exit 0"})


def reboot(where: Path, numbers: Mapping[int, int], names: Mapping[str, str] | None = None) -> None:
    """The kernel's view after a boot: other numbers, each interrupt anywhere again; ``names`` are changed ones."""
    root = where / "root"
    for folder in ("proc/irq", "sys/kernel/irq"):
        shutil.rmtree(root / folder)
    shutil.rmtree(root / "sys/devices/pci0000:3a" / PORT / "msi_irqs")
    shutil.rmtree(root / "sys/devices/pci0000:3a" / DRIVE / "msi_irqs")
    files: dict[str, str] = {BOOT: "boot-2\n"}
    for old, new in numbers.items():
        name = NAMES[old]
        device = f"/sys/devices/pci0000:3a/{DRIVE if old == 50 else PORT}"
        files |= {f"{device}/msi_irqs/{new}": "msi\n", f"/proc/irq/{new}/smp_affinity_list": "0-7\n"}
        files[f"/sys/kernel/irq/{new}/actions"] = (names or {}).get(name, name) + "\n"
    make_tree(root, files)


def start_unit(where: Path, shell: list[str], *, seconds: int = 0) -> subprocess.CompletedProcess[str]:
    """What systemd would run at boot."""
    root = where / "root"
    assert f"ExecStart=-/bin/sh {SCRIPT}\n" in (root / UNIT.lstrip("/")).read_text()
    words = [*shell, str(root / SCRIPT.lstrip("/")), str(root), str(seconds)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def affinity(where: Path, number: int) -> str:
    return (where / f"root/proc/irq/{number}/smp_affinity_list").read_text().strip()


def drifted(where: Path) -> list[tuple[str, str | None]]:
    status = verify_transactions(host(where), None, Store(str(where / "state")))
    return [(one.what, one.live) for one in status.drift]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda one: one[0])
def test_after_a_boot_the_unit_sets_them_again_and_rollback_finds_them(tmp_path: Path, shell: list[str]) -> None:
    build(tmp_path)
    before = listing(tmp_path / "root/etc")
    applied(tmp_path, PINNING)
    # Number 40 is another queue's now, and the drive has another name.
    reboot(tmp_path, {40: 61, 41: 40, 50: 33}, {"nvme0q0": "nvme1q0"})
    assert [what for what, _ in drifted(tmp_path)] == ["irq:40:affinity", "irq:41:affinity", "irq:50:affinity"]
    done = start_unit(tmp_path, shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [affinity(tmp_path, number) for number in (61, 40, 33)] == ["4-7"] * 3
    assert drifted(tmp_path) == []
    again = (tmp_path / "root/proc/irq/61/smp_affinity_list").stat().st_mtime_ns
    assert start_unit(tmp_path, shell).returncode == 0
    assert (tmp_path / "root/proc/irq/61/smp_affinity_list").stat().st_mtime_ns == again
    script = tmp_path / "state/transactions/0001/rollback.sh"
    words = [*shell, str(script), "--root", str(tmp_path / "root")]
    back = subprocess.run(words, capture_output=True, text=True, check=False)
    assert back.returncode == 0, back.stdout + back.stderr
    assert [affinity(tmp_path, number) for number in (61, 40, 33)] == ["0-7"] * 3
    assert listing(tmp_path / "root/etc") == before


KNOWS = "\0Link.MACAddress\0Link.MTUBytes\0"


@pytest.mark.parametrize(
    ("version", "program", "has_options"),
    [
        ("252 (252.39)", None, False),
        ("261 (261.2-1)", None, True),
        ("252 (252.39)", f"{KNOWS}Link.IRQAffinityPolicy\0", True),
        ("261 (261.2-1)", KNOWS, False),
        # Where the options are looked up by another program, the version decides.
        ("261 (261.2-1)", "\0Link.IRQAffinityPolicyOther\0", True),
    ],
)
@pytest.mark.parametrize("engine", ["python", "sh"])
def test_a_link_file_where_systemd_knows_the_options(
    tmp_path: Path, version: str, program: str | None, has_options: bool, engine: str
) -> None:
    build(tmp_path)
    root = tmp_path / "root"
    if program is not None:
        make_tree(root, {"/usr/lib/systemd/systemd-udevd": program})
    make_command(tmp_path / "bin", "systemctl", f'[ "$1" != --version ] || echo "systemd {version}"')
    make_tree(
        root,
        {
            f"/sys/devices/pci0000:3a/{PORT}/net/eth2/mtu": "1500\n",
            "/usr/lib/systemd/network/99-default.link": "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep path\n",
        },
    )
    before = listing(root / "etc")
    applied(tmp_path, PINNING)
    file = root / "etc/systemd/network/10-advisor-eth2.link"
    assert file.exists() == has_options
    if has_options:
        assert file.read_text() == (
            "[Match]\nMACAddress=02:00:00:00:00:03\n\n[Link]\nNamePolicy=keep path\n"
            "IRQAffinityPolicy=spread\nIRQAffinityNUMA=local\n"
        )
    # In each case the unit has the exact value.
    assert f"{PORT}/eth2-TxRx-0=4-7\n" in (root / UNIT.lstrip("/")).read_text()
    assert planned(tmp_path, PINNING).is_empty
    if engine == "python":
        rollback_transactions(host(tmp_path), None, everything=False, force=False, store=Store(str(tmp_path / "state")))
    else:
        script = tmp_path / "state/transactions/0001/rollback.sh"
        subprocess.run(["sh", str(script), "--root", str(root)], capture_output=True, check=True)
    assert listing(root / "etc") == before


@pytest.mark.parametrize("at", [1, 3, 5])
def test_killed_in_the_middle_all_of_it_is_restored(tmp_path: Path, at: int) -> None:
    build(tmp_path)
    before = listing(tmp_path / "root")
    store = Store(str(tmp_path / "state"))
    plan = planned(tmp_path, PINNING)

    def work(dying: Host, kept: Store) -> None:
        with kept.hold_lock():
            apply_plan(dying, plan, kept)

    assert killed_at_step(host(tmp_path), store, work, at, after=True)
    with store.hold_lock():
        recover_unfinished(host(tmp_path), store)
    assert listing(tmp_path / "root") == before


def test_what_is_missing_or_not_accepted_is_printed(tmp_path: Path) -> None:
    build(tmp_path)
    applied(tmp_path, PINNING)
    reboot(tmp_path, {40: 40, 50: 50})
    # An attribute of the kernel that takes no write, from root neither.
    place = tmp_path / "root/proc/irq/50/smp_affinity_list"
    place.unlink()
    place.symlink_to("/proc/sys/kernel/ostype")
    for shell in SHELLS:
        done = start_unit(tmp_path, shell)
        missing, refused = done.stdout.splitlines()
        assert (done.returncode, missing) == (1, f"missing: {PORT}/eth2-TxRx-1")
        assert refused.startswith(f"not accepted: {DRIVE}/nvme0q0: expected CPUs 4-7, found Linux (")
    assert affinity(tmp_path, 40) == "4-7"


def test_an_interrupt_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    build(tmp_path)
    applied(tmp_path, PINNING)
    reboot(tmp_path, {40: 40, 41: 41})
    root = tmp_path / "root"
    # The first second of waiting brings it.
    late = root / "sys/devices/pci0000:3a" / DRIVE / "msi_irqs/52"
    make_tree(root, {"/sys/kernel/irq/52/actions": "nvme0q0\n", "/proc/irq/52/smp_affinity_list": "0-7\n"})
    sleep = f'mkdir -p "{late.parent}"; echo msi > "{late}"'
    words = ["sh", "-c", f'sleep() {{ {sleep}; }}; . "$0"', str(root / SCRIPT.lstrip("/"))]
    text = (root / SCRIPT.lstrip("/")).read_text().replace("${1-}", str(root)).replace("${2-20}", "3")
    (root / SCRIPT.lstrip("/")).write_text(text)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert affinity(tmp_path, 52) == "4-7"


ENGINES = [None, *SHELLS]
ENGINE_NAMES = ["python", *(one[0] for one in SHELLS)]


def rolled_back(where: Path, shell: list[str] | None) -> tuple[int, str]:
    """A rollback by the rollback script, or by Python without a shell: exit code and report."""
    if shell is None:
        store = Store(str(where / "state"))
        done = rollback_transactions(host(where), None, everything=False, force=False, store=store)
        outcomes = [one for _, each in done for one in each]
        report = "\n".join(f"{one.what} {one.detail} {one.by_hand or ''}" for one in outcomes)
        return (0 if all(one.is_back for one in outcomes) else 5), report
    script = where / "state/transactions/0001/rollback.sh"
    words = [*shell, str(script), "--root", str(where / "root")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("shell", ENGINES, ids=ENGINE_NAMES)
def test_what_is_to_be_done_by_hand_names_the_number_of_now(tmp_path: Path, shell: list[str] | None) -> None:
    build(tmp_path)
    applied(tmp_path, PINNING)
    reboot(tmp_path, {40: 70, 41: 40, 50: 72})
    start_unit(tmp_path, ["sh"])
    make_tree(tmp_path / "root", {"/proc/irq/70/smp_affinity_list": "2\n"})
    code, report = rolled_back(tmp_path, shell)
    assert code == 5
    assert "/proc/irq/70/smp_affinity_list" in report
    assert "/proc/irq/40/" not in report


@pytest.mark.parametrize("shell", ENGINES, ids=ENGINE_NAMES)
def test_what_no_driver_has_requested_since_the_boot_is_gone(tmp_path: Path, shell: list[str] | None) -> None:
    build(tmp_path)
    applied(tmp_path, PINNING)
    # Number 40 is a vector of the other queue's now, and no driver has requested either.
    reboot(tmp_path, {40: 41, 41: 40, 50: 50}, {"eth2-TxRx-0": "", "eth2-TxRx-1": ""})
    code, report = rolled_back(tmp_path, shell)
    assert code == 0, report
    assert report.count("is not there since the boot") == 2
    assert [affinity(tmp_path, number) for number in (40, 41)] == ["0-7"] * 2


def test_what_is_left_of_one_name_is_not_taken_for_another(tmp_path: Path) -> None:
    name, left = "mana_q3@pci:0000:3b:00.3", "mana_q0@pci:0000:3b:00.3"
    files = {f"{DEVICES}/{PORT}/msi_irqs/{number}": "msi" for number in (8, 9)}
    files |= {"/sys/kernel/irq/8/actions": f"{left}\n", "/sys/kernel/irq/9/actions": "mana_hwc\n"}
    files |= {f"/proc/irq/{number}/smp_affinity_list": f"{number}\n" for number in (8, 9)}
    probe = ReadFile("/proc/irq/9/smp_affinity_list", identity=(f"{DEVICES}/{PORT}", name, "1/1"))
    root = make_tree(tmp_path, files)
    assert isinstance(observe(host_of(root), probe), Missing)
    for shell in SHELLS:
        assert read_batch(shell, [(str(root), probe)]) == [NOTHING]


def test_interrupt_0_belongs_to_nothing(tmp_path: Path) -> None:
    files = {f"{DEVICES}/{PORT}/irq": "0\n", "/sys/kernel/irq/0/actions": "timer\n"}
    root = make_tree(tmp_path, {**files, "/proc/irq/0/smp_affinity_list": "0\n"})
    assert read_identity(host_of(root), 0) is None
    probe = ReadFile("/proc/irq/0/smp_affinity_list", identity=(f"{DEVICES}/{PORT}", "timer", "1/1"))
    assert isinstance(observe(host_of(root), probe), Missing)
    for shell in SHELLS:
        assert read_batch(shell, [(str(root), probe)]) == [NOTHING]
