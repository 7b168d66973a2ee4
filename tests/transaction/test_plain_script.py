"""The script that a person reads: what it undoes stands at its top, and it ends where the whole script ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.host import Host
from advisor.operations.transactions import script_for
from advisor.shell.plain_script import cksum, plain_script
from advisor.transaction.journal import Record, Store
from tests.transaction.system import apply_locked, build, plan_of, plan_of_values, store_of
from tests.transaction.test_script import run_script
from tests.trees import listing

SHELLS = [
    shell
    for shell in (
        ["dash"],
        ["busybox", "sh"],
        ["bash"],
        ["mksh"],
        ["lksh"],
        ["ksh"],
        ["posh"],
        ["yash"],
        ["zsh", "--emulate", "sh"],
    )
    if shutil.which(shell[0])
]
RMEM = "sysctl:net.core.rmem_max"


class Stage:
    """A system with values and a file that a transaction has changed, and the script that undoes it."""

    def __init__(self, where: Path) -> None:
        self.where, self.root = where, where / "root"
        self.host: Host = build(where)
        (self.root / "proc/sys/kernel").mkdir(exist_ok=True)
        (self.root / "proc/sys/kernel/sem").write_text("32000 1024000000 500 32000\n")
        self.before = listing(self.root)
        self.store: Store = store_of(where)
        self.record: Record = apply_locked(
            self.host, plan_of_values(self.host, {RMEM: "8388608", "sysctl:kernel.sem": "1 2 3 4"}), self.store
        )
        self.script = where / "undo.sh"
        self.script.write_text(script_for(self.host, self.record.id, {}, self.store))

    def run(self, *options: str, shell: list[str] = SHELLS[0]) -> subprocess.CompletedProcess[str]:
        return run_script(self.script, self.where, *options, shell=shell)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_what_it_undoes_stands_in_the_first_screen(stage: Stage) -> None:
    top = stage.script.read_text().splitlines()[:24]
    assert [line.split()[1:] for line in top if line.startswith("    value ")] == [
        ["/proc/sys/net/core/rmem_max", "8388608", "212992"],
        ["/proc/sys/kernel/sem", "'1", "2", "3", "4'", "'32000", "1024000000", "500", "32000'"],
    ]
    assert any("/etc/sysctl.d/90-advisor-test.conf" in line for line in top)
    assert len(stage.script.read_text().splitlines()) <= 75


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_every_byte_is_as_before_and_a_second_run_does_nothing(stage: Stage, shell: list[str]) -> None:
    done = stage.run(shell=shell)
    assert done.returncode == 0, done.stdout + done.stderr
    assert listing(stage.root) == stage.before
    assert stage.run(shell=shell).returncode == 3
    assert listing(stage.root) == stage.before


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_what_somebody_changed_since_is_kept_unless_forced(stage: Stage, shell: list[str]) -> None:
    place, own = stage.root / "proc/sys/net/core/rmem_max", stage.root / "etc/sysctl.d/90-advisor-test.conf"
    place.write_text("777\n")
    own.write_text("# theirs\n")
    done = stage.run(shell=shell)
    kept = [line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("kept")]
    assert (done.returncode, sorted(kept)) == (5, ["/etc/sysctl.d/90-advisor-test.conf", "/proc/sys/net/core/rmem_max"])
    assert (place.read_text(), own.read_text()) == ("777\n", "# theirs\n")
    assert stage.run("--force", shell=shell).returncode == 0
    assert listing(stage.root) == stage.before


def test_a_kept_value_is_not_zeroed_by_its_twin(tmp_path: Path) -> None:
    """The kernel sets dirty_bytes to zero where dirty_ratio is written."""
    host, values = build(tmp_path), tmp_path / "root/proc/sys/vm"
    values.mkdir(exist_ok=True)
    for name, value in (("dirty_bytes", "0"), ("dirty_ratio", "20")):
        (values / name).write_text(f"{value}\n")
    made = plan_of_values(host, {"sysctl:vm.dirty_bytes": "8388608"}, runtime_only=True)
    assert [one.tunable for one in made.side_effects] == ["sysctl:vm.dirty_ratio"]
    script = tmp_path / "undo.sh"
    script.write_text(plain_script(made, {"sysctl:vm.dirty_ratio": "0"}, subject="it", fingerprint="f" * 64) or "")
    (values / "dirty_bytes").write_text("777\n")
    (values / "dirty_ratio").write_text("0\n")
    assert run_script(script, tmp_path).returncode == 5
    assert [(values / name).read_text() for name in ("dirty_bytes", "dirty_ratio")] == ["777\n", "0\n"]
    assert subprocess.run([SHELLCHECK, "--shell=sh", script], check=False).returncode == 0


def _alter(stage: Stage) -> None:
    stage.script.write_text(stage.script.read_text().replace(" 212992", " 212993", 1))


def _cut(stage: Stage) -> None:
    stage.script.write_text("".join(stage.script.read_text().splitlines(keepends=True)[:-1]))


def _link(stage: Stage) -> None:
    os.link(stage.root / "etc/sysctl.d/90-advisor-test.conf", stage.where / "other")


def _move(stage: Stage) -> None:
    (stage.root / "etc/machine-id").write_text("f" * 32 + "\n")


def _lead_elsewhere(stage: Stage) -> None:
    place = stage.root / "etc/sysctl.d"
    place.rename(stage.where / "other")
    place.symlink_to(stage.where / "other")


@pytest.mark.parametrize(
    ("spoil", "code", "options"),
    [
        (_lead_elsewhere, 5, ()),
        (_alter, 3, ()),
        (_cut, 0, ()),
        (_move, 3, ()),
        (_move, 0, ("--any-host",)),
        (_link, 5, ()),
    ],
)
def test_what_it_guards(stage: Stage, spoil: Callable[[Stage], None], code: int, options: tuple[str, ...]) -> None:
    spoil(stage)
    after = listing(stage.root)
    assert stage.run(*options).returncode == code
    if spoil not in (_link, _lead_elsewhere) and not options:
        assert listing(stage.root) == after


def test_one_at_a_time(stage: Stage) -> None:
    store = stage.root / "var/lib/advisor"
    (store / "transactions").mkdir(parents=True)
    stage.script.write_text(
        plain_script(stage.record.plan, {}, subject="it", fingerprint=stage.record.fingerprint) or ""
    )
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert stage.run().returncode == 3
    assert stage.run().returncode == 0


def test_other_kinds_have_the_whole_script(tmp_path: Path) -> None:
    host = build(tmp_path)
    made = plan_of(host)
    assert plain_script(made, {}, subject="it", fingerprint=made.fingerprint) is None


def test_an_administrators_link_to_the_directory_has_the_whole_script(stage: Stage) -> None:
    place = stage.root / "etc/sysctl.d"
    place.rename(stage.root / "srv")
    place.symlink_to("../srv")
    stage.script.write_text(script_for(stage.host, stage.record.id, {}, stage.store))
    assert stage.run().returncode == 0
    assert "8388608" not in (stage.root / "srv/90-advisor-test.conf").read_text()
    assert (stage.root / "proc/sys/net/core/rmem_max").read_text() == "212992\n"


@pytest.mark.parametrize("size", [0, 1, 3, 255, 256, 70000])
def test_the_checksum_is_that_of_cksum(size: int) -> None:
    content = bytes(number * 7 % 251 for number in range(size))
    done = subprocess.run(["cksum"], input=content, capture_output=True, check=True)
    assert done.stdout.decode().split() == cksum(content).split()


def test_it_notes_for_advisor_that_all_is_as_before(tmp_path: Path) -> None:
    host, root = build(tmp_path), tmp_path / "root"
    store = Store(str(root / "var/lib/advisor"))
    record = apply_locked(host, plan_of_values(host, {RMEM: "8388608"}), store)
    place = f"/var/lib/advisor/transactions/{record.id}"
    script = tmp_path / "undo.sh"
    script.write_text(
        plain_script(record.plan, {}, subject="it", fingerprint=record.fingerprint, directory=place) or ""
    )
    assert run_script(script, tmp_path).returncode == 0
    assert store.find_record(record.id).state == "rolled-back"
    # One that is open is undone by its own script, which knows of its watchdog.
    (root / place.lstrip("/") / "pending").touch()
    assert "made for" not in run_script(script, tmp_path).stderr
    assert subprocess.run([SHELLCHECK, "--shell=sh", script], check=False).returncode == 0


SHELLCHECK = Path(sys.executable).with_name("shellcheck")
