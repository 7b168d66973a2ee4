"""One profile in the place of another: only what differs is written, and nothing else is ever there in between."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from advisor.errors import CommandError, RefusedError, RestoredError
from advisor.host import Host, PutFile, Step, WriteFile
from advisor.report.fix import steps_text
from advisor.report.transaction import status_text
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.layers import preview_replaced
from advisor.transaction.rollback import recover_unfinished, roll_back
from advisor.transaction.status import Status
from tests.transaction.layered import BASE, apply, at_boot, build, live, plan_of, store_of
from tests.transaction.test_layers import HIGH, LOW, PAGES, QUEUE, SWAP, out
from tests.trees import listing

A = {SWAP: "10", QUEUE: "8192", HIGH: "1000", PAGES: "512"}
B = {SWAP: "10", QUEUE: "16384", HIGH: "1000", LOW: "900"}
AFTER = {**BASE, **B}


class Watching(Host):
    """Notes every step, and after each of them every value."""

    watches = True

    def __init__(self, host: Host, refuse: int = 0) -> None:
        super().__init__(host.files, host.commands, is_root=True)
        self._plain = host
        self._refuse = refuse
        self.steps: list[Step] = []
        self.seen: list[dict[str, object]] = []

    def do(self, step: Step) -> None:
        self.steps.append(step)
        if len(self.steps) == self._refuse:
            raise CommandError("Invalid argument")
        super().do(step)
        if self.watches:
            self.seen.append(live(self._plain))


def switched(where: Path) -> Watching:
    host, store = build(where), store_of(where)
    apply(host, store, "one", A)
    watching = Watching(host)
    record = apply(watching, store, "two", B, instead_of=("0001",))
    assert record is not None
    assert [(one.id, one.state) for one in store.read_records()] == [("0001", "rolled-back"), ("0002", "applied")]
    return watching


def test_only_what_differs_is_written_and_no_other_value_is_ever_there(tmp_path: Path) -> None:
    watching = switched(tmp_path)
    assert (live(watching), at_boot(tmp_path)) == (AFTER, AFTER)
    written = [step for step in watching.steps if not isinstance(step, PutFile)]
    # somaxconn and rporthighwater get their values, pages_to_scan goes back; swappiness and highwater are left alone.
    assert len(written) == 3, written
    for name, first in {**BASE, **A}.items():
        values = {str(seen[name]) for seen in watching.seen}
        assert values <= {first, AFTER[name]}, name
    files = {step.path: step for step in watching.steps if isinstance(step, PutFile)}
    assert len(files) == len([step for step in watching.steps if isinstance(step, PutFile)]), "each file once"


def test_back_from_a_switch_is_before_the_first(tmp_path: Path) -> None:
    build(tmp_path)
    before = listing(tmp_path / "root")
    watching = switched(tmp_path)
    assert "kept" not in out(watching, store_of(tmp_path), "2").values()
    assert listing(tmp_path / "root") == before


def test_a_value_that_is_refused_leaves_the_first_in_force_as_it_was(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", A)
    before = listing(tmp_path / "root")
    for number in range(1, 4):
        plan = plan_of(host, store, "two", B, instead_of=("0001",))
        with store.hold_lock(), pytest.raises(RestoredError):
            apply_plan(Watching(host, refuse=number), plan, store)
        assert listing(tmp_path / "root") == before
        with store.hold_lock():
            assert recover_unfinished(host, store) == ()
        assert store.find_record("1").state == "applied"


def waits(store: Store, identity: str) -> Path:
    """Make a transaction one that waits for confirmation, by the files of its watchdog."""
    directory = store.script_path(identity).parent
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    (directory / "boot").write_text(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    (directory / "deadline").write_text(f"{now + 600:.0f}\n")
    (directory / "pending").touch()
    return directory


def test_until_the_new_one_is_confirmed_the_first_stays(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", A)
    plan = plan_of(host, store, "two", B, instead_of=("0001",))
    with store.hold_lock():
        apply_plan(host, plan, store)
        directory = waits(store, "0002")
        assert store.find_record("2").state == "awaiting-confirmation"
        assert recover_unfinished(host, store) == ()
        assert [one.is_active for one in store.read_records()] == [True, True]
        shown = status_text(Status(store.read_records(), ()), width=80, color=False)
        assert "0002 replaces 0001 once it is confirmed." in shown
        before = listing(tmp_path)
        with pytest.raises(RefusedError, match="upper layer 0002 holds some of the same items and awaits"):
            roll_back(host, store.find_record("1"), store)
        assert listing(tmp_path) == before
        (directory / "pending").unlink()
        ((taken, outcomes),) = recover_unfinished(host, store)
    assert (taken.id, {one.state for one in outcomes}) == ("0001", {"passed", "restored"})
    assert (live(host), at_boot(tmp_path)) == (AFTER, AFTER)


@pytest.mark.parametrize("wanted", [B, {QUEUE: "16384"}, {PAGES: "512", HIGH: "2000"}])
def test_what_it_will_do_is_what_it_does(tmp_path: Path, wanted: dict[str, str]) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", A)
    apply(host, store, "two", {SWAP: "20", HIGH: "1500", LOW: "900"})
    made = plan_of(host, store, "three", wanted, instead_of=("0001", "0002"))
    found = preview_replaced(host, made, store.read_records())
    text = steps_text(made, found)
    expected: list[Step] = [step for change in made.changes for step in change.steps]
    expected += [PutFile(file.path, file.after, file.mode, file.uid, file.gid) for file in made.files]
    for _, remaining in found:
        expected += [file.undo for file in reversed(remaining.files)]
        expected += [step for change in reversed(remaining.changes) for step in change.undo]
    watching = Watching(host)
    apply(watching, store, "three", wanted, instead_of=("0001", "0002"))
    assert watching.steps == expected
    for step in expected:
        if isinstance(step, WriteFile):
            assert f"printf '%s\\n' {step.value} > {step.path}\n" in text
        elif isinstance(step, PutFile):
            assert f"rm -f {step.path}\n" in text or f" > {step.path}" in text
    assert "rm -f /etc/sysctl.d/90-advisor-one.conf\n" in text
    assert "of 0001 (one), which is rolled back once this is confirmed" in text


def test_where_only_the_old_one_goes_a_dry_run_says_so(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", A)
    apply(host, store, "two", {QUEUE: "16384"})
    made = plan_of(host, store, "two", {QUEUE: "16384"}, instead_of=("0001",))
    assert made.is_empty
    text = steps_text(made, preview_replaced(host, made, store.read_records()))
    assert "Nothing to do" not in text
    assert "printf '%s\\n' 60 > /proc/sys/vm/swappiness" in text
