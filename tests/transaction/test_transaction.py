"""A transaction over every kind of tunable: all or nothing, whatever fails, whoever dies, whoever else writes."""

from __future__ import annotations

import errno
import os
import signal
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.errors import CommandError, NotRestoredError, RefusedError, RestoredError
from advisor.host import Host, Step, WriteFile
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Record, Store
from advisor.transaction.rollback import recover_unfinished, roll_back
from advisor.transaction.status import find_drift, rollback_transactions, verify_transactions
from tests.transaction.system import TARGETS, apply_locked, build, plan_of, plan_of_values, roll_back_locked, store_of
from tests.transaction.test_script import reload_stand_in, run_script
from tests.trees import listing

ALL = range(len(TARGETS))


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path


def applied(where: Path, host: Host) -> tuple[Record, Store]:
    store = store_of(where)
    with store.hold_lock():
        return apply_plan(host, plan_of(host), store), store


def test_rollback_leaves_every_byte_as_it_was(where: Path) -> None:
    host = build(where)
    before = listing(where / "root")
    record, store = applied(where, host)
    assert listing(where / "root") != before
    outcomes = roll_back_locked(host, record, store)
    assert {one.state for one in outcomes} == {"restored"}
    assert listing(where / "root") == before
    assert store.find_record(record.id).state == "rolled-back"
    again = roll_back_locked(host, store.find_record(record.id), store)
    assert {one.state for one in again} == {"already"}


class DyingHost(Host):
    """Kills its own process, as a power cut would, at the step with this number (before it or right after it)."""

    def __init__(self, host: Host, die_at: int, *, after: bool) -> None:
        super().__init__(host.files, host.commands, is_root=True)
        self._left = die_at
        self._after = after

    def do(self, step: Step) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        super().do(step)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked process; its signal number, or 0 if it ended by itself."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) * -1


def locked_apply(host: Host, where: Path) -> None:
    store = store_of(where)
    apply_locked(host, plan_of(host), store)


# 8 live values (one has no step of its own), 4 files and their reloads.
@pytest.mark.repeats(7)
@pytest.mark.parametrize(("die_at", "after"), [(at, after) for at in range(1, 14) for after in (False, True)])
def test_a_kill_at_any_step_is_put_back_by_the_next_run(where: Path, die_at: int, after: bool) -> None:
    host = build(where)
    before = listing(where / "root")
    assert in_child(lambda: locked_apply(DyingHost(host, die_at, after=after), where)) == signal.SIGKILL
    store = store_of(where)
    (record,) = store.read_records()
    assert record.state == "applying"
    halfway = verify_transactions(host, None, store)
    assert (halfway.is_as_set, halfway.unfinished) == (False, (record,))
    with store.hold_lock():
        ((recovered, outcomes),) = recover_unfinished(host, store)
    assert recovered.id == record.id
    assert all(one.is_back for one in outcomes)
    assert listing(where / "root") == before
    with store.hold_lock():
        assert recover_unfinished(host, store) == ()


class RefusingHost(Host):
    """A kernel that answers EINVAL at one step, or a driver that clamps the value it is given."""

    def __init__(self, host: Host, at: int, clamp: str | None = None) -> None:
        super().__init__(host.files, host.commands, is_root=True)
        self._left = at
        self._clamp = clamp

    def do(self, step: Step) -> None:
        self._left -= 1
        if self._left != 0:
            super().do(step)
        elif self._clamp is None:
            raise CommandError("Invalid argument")
        else:
            (place,) = Path(self.locate("/sys/class/net/eth1/mtu")).parent.glob("mtu")
            place.write_text(self._clamp)


@pytest.mark.repeats(5)
@pytest.mark.parametrize("at", range(1, 14))
def test_one_refused_step_puts_everything_back(where: Path, at: int) -> None:
    host = build(where)
    before = listing(where / "root")
    store = store_of(where)
    with store.hold_lock(), pytest.raises(RestoredError, match="Invalid argument"):
        apply_plan(RefusingHost(host, at), plan_of(host), store)
    assert listing(where / "root") == before
    assert store.read_records()[0].state == "rolled-back"


def test_a_value_that_a_driver_clamps_is_a_failure_and_is_put_back(where: Path) -> None:
    host = build(where)
    before = listing(where / "root")
    store = store_of(where)
    with store.hold_lock(), pytest.raises(RestoredError, match="link:eth1:mtu: set to 9000, but reads 8000"):
        apply_plan(RefusingHost(host, 6, clamp="8000\n"), plan_of(host), store)
    assert listing(where / "root") == before


def test_what_cannot_be_put_back_is_listed_with_the_command_to_do_by_hand(where: Path) -> None:
    host = build(where)
    plan = plan_of(host)
    gone = where / "root/sys/class/net/eth1.5/mtu"

    class VanishingHost(RefusingHost):
        def do(self, step: Step) -> None:
            if self._left == 93:
                gone.unlink()
            super().do(step)

    store = store_of(where)
    with store.hold_lock(), pytest.raises(NotRestoredError) as caught:
        apply_plan(VanishingHost(host, 99), plan, store)
    assert caught.value.exit_code == 5
    assert caught.value.items == (("link:eth1.5:mtu", "ip link set dev eth1.5 mtu 1500"),)
    assert store.read_records()[0].kept[0][0] == "link:eth1.5:mtu"
    assert (where / "root/sys/class/net/eth1/mtu").read_text() == "1500\n"


def test_what_somebody_else_set_since_is_kept_unless_forced(where: Path) -> None:
    host = build(where)
    before = listing(where / "root")
    record, store = applied(where, host)
    (where / "root/proc/sys/net/core/rmem_max").write_text("777\n")
    (where / "root/etc/llttab").write_text("theirs\n")
    drift = {one.what: one for one in find_drift(host, store.read_records())}
    assert set(drift) == {"sysctl:net.core.rmem_max", "/etc/llttab"}
    assert drift["sysctl:net.core.rmem_max"].live == "777"
    outcomes = {one.what: one for one in roll_back_locked(host, record, store)}
    assert {what for what, one in outcomes.items() if one.state == "kept"} == set(drift)
    assert (where / "root/proc/sys/net/core/rmem_max").read_text() == "777\n"
    assert store.find_record(record.id).state == "kept-external"
    forced = {one.what: one for one in roll_back_locked(host, store.find_record(record.id), store, force=True)}
    assert forced["sysctl:net.core.rmem_max"].detail.startswith("777 → "), "what was overwritten is reported"
    assert listing(where / "root") == before


def test_what_somebody_set_between_two_transactions_is_not_lost_with_the_first(where: Path) -> None:
    host = build(where)
    first, store = applied(where, host)
    place = where / "root/proc/sys/net/core/rmem_max"
    place.write_text("1000\n")
    made = plan_of(host, [0])
    (change,) = made.changes
    # By another profile; the same one, applied again, holds what the first one holds.
    change = msgspec.structs.replace(change, profile="other")
    with store.hold_lock():
        second = apply_plan(host, msgspec.structs.replace(made, profiles=("other",), changes=(change,)), store)
        (kept,) = [one for one in roll_back(host, first, store) if not one.is_back]
        assert (kept.what, kept.state) == ("sysctl:net.core.rmem_max", "kept")
        assert kept.detail == f"modified externally (1000) before {second.id} was applied"
        assert place.read_text() == "8388608\n"
        roll_back(host, second, store)
        assert place.read_text() == "1000\n"
        outcomes = roll_back(host, store.find_record(first.id), store)
    assert [one.what for one in outcomes if one.state == "kept"] == ["sysctl:net.core.rmem_max"]


def make_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


MTU, RMEM_FILE = "sys/class/net/eth1/mtu", "etc/sysctl.d/90-advisor-test.conf"


@pytest.mark.parametrize(
    ("place", "spoil", "said"),
    [
        (MTU, lambda path: path.write_text("1400\n"), "link:eth1:mtu: changed since"),
        # What cannot be read now is not called changed.
        (MTU, lambda path: path.unlink(), "link:eth1:mtu: cannot be read: does not exist"),
        (RMEM_FILE, make_directory, f"/{RMEM_FILE}: cannot be read: "),
        ("etc/machine-id", lambda path: path.write_text("f" * 32), "another host"),
    ],
)
def test_a_host_that_changed_since_the_plan_is_refused_untouched(
    where: Path, place: str, spoil: Callable[[Path], object], said: str
) -> None:
    host = build(where)
    plan = plan_of(host)
    spoil(where / "root" / place)
    before = listing(where / "root")
    store = store_of(where)
    with store.hold_lock(), pytest.raises(RefusedError, match=said):
        apply_plan(host, plan, store)
    assert listing(where / "root") == before
    assert store.read_records() == ()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(only=st.sets(st.sampled_from(list(ALL)), min_size=1), die_at=st.integers(1, 14), after=st.booleans())
def test_any_subset_any_crash_point_the_baseline_comes_back(
    tmp_path_factory: pytest.TempPathFactory, only: set[int], die_at: int, after: bool
) -> None:
    where = tmp_path_factory.mktemp("any")
    host = build(where)
    before = listing(where / "root")
    plan = plan_of(host, only)

    def dying_apply() -> None:
        with store_of(where).hold_lock():
            apply_plan(DyingHost(host, die_at, after=after), plan, store_of(where))

    died = in_child(dying_apply)
    store = store_of(where)
    with store.hold_lock():
        recover_unfinished(host, store)
        for record in store.read_records():
            if record.is_active:
                assert died == 0
                roll_back(host, record, store)
    assert listing(where / "root") == before


class ManagingHost(Host):
    """A kernel that keeps an interrupt to itself, as it does with managed vectors."""

    def do(self, step: Step) -> None:
        if isinstance(step, WriteFile) and "/irq/" in step.path:
            raise CommandError(f"{step.path}: Input/output error", errno=errno.EIO)
        super().do(step)


def test_an_interrupt_that_the_kernel_manages_is_left_and_no_failure(where: Path) -> None:
    built = build(where)
    host = ManagingHost(built.files, built.commands, is_root=True)
    before = listing(where / "root")
    record, store = applied(where, host)
    assert [what for what, _ in record.left] == ["irq:40:affinity"]
    assert (record.state, find_drift(host, store.read_records())) == ("applied", ())
    assert all(one.is_back for one in roll_back_locked(host, record, store))
    assert listing(where / "root") == before


@pytest.mark.parametrize("way", ["none", "id", "profile", "all", "apply", "script"])
def test_a_rollback_that_left_work_over_goes_on(where: Path, way: str) -> None:
    host = build(where)
    before = listing(where / "root")
    record, store = applied(where, host)
    place = where / "root/proc/sys/net/core/rmem_max"
    # A directory in its place: nothing can be written there.
    place.unlink()
    place.mkdir()
    outcomes = {one.what: one.state for one in roll_back_locked(host, record, store)}
    assert {name for name, state in outcomes.items() if state == "failed"} == {"sysctl:net.core.rmem_max"}
    left = store.find_record(record.id)
    assert (left.state, left.is_unfinished) == ("unfinished", True)
    assert [one.tunable for one in left.plan.changes] == ["sysctl:net.core.rmem_max"]
    assert not verify_transactions(host, None, store).is_as_set
    place.rmdir()
    place.write_text("8388608\n")
    if way == "script":
        assert run_script(store.script_path(record.id), where).returncode == 0
    elif way == "apply":
        with store.hold_lock():
            # It is not taken for the original.
            with pytest.raises(RefusedError) as refused:
                apply_plan(host, plan_of_values(host, {"sysctl:net.core.rmem_max": "9999999"}), store)
            assert record.id in str(refused.value.hint)
            recover_unfinished(host, store)
    else:
        named = {"none": None, "id": "1", "profile": "test", "all": None}[way]
        done = rollback_transactions(host, named, everything=way == "all", force=False, store=store)
        assert [one.state for _, outcomes in done for one in outcomes] == ["restored"]
    assert listing(where / "root") == before
    # A script that works on a tree notes nothing in a store beside it.
    assert store.find_record(record.id).state == ("unfinished" if way == "script" else "rolled-back")


def test_a_file_with_two_names_is_not_split(where: Path) -> None:
    host, other = build(where), where / "other"
    os.link(where / "root/etc/llttab", other)
    with pytest.raises(RefusedError) as refused:
        apply_locked(host, plan_of(host), store_of(where))
    assert "2 names" in refused.value.message
    other.unlink()
    before = listing(where / "root")
    record, store = apply_locked(host, plan_of(host), store_of(where)), store_of(where)
    os.link(where / "root/etc/llttab", other)
    done = run_script(store.script_path(record.id), where)
    reload_stand_in(where)
    (kept,) = [line for line in done.stdout.splitlines() if line.startswith("kept")]
    assert (done.returncode, "/etc/llttab" in kept) == (5, True)
    kept_now = {one.what: one.state for one in roll_back_locked(host, record, store) if not one.is_back}
    assert kept_now["/etc/llttab"] == "kept"
    other.unlink()
    roll_back_locked(host, store.find_record(record.id), store, force=True)
    assert listing(where / "root") == before


def test_a_journal_of_a_newer_version_is_named_so(where: Path) -> None:
    host = build(where)
    record, store = applied(where, host)
    path = store.script_path(record.id).with_name("journal")
    first, *lines = path.read_bytes().splitlines(keepends=True)
    body = first[9:-1].replace(b'"version":"', b'"version":"9', 1)
    entry = b'{"type":"foreseen","time":1.0}'
    path.write_bytes(
        b"%08x %s\n" % (zlib.crc32(body), body) + b"".join(lines) + b"%08x %s\n" % (zlib.crc32(entry), entry)
    )
    path.with_name("length").unlink(missing_ok=True)
    ((), (newer,)) = store.survey_records()
    assert "is of advisor 9" in newer.message
    assert newer.script is not None
    assert run_script(Path(newer.script), where).returncode in (0, 5)


def test_a_rollback_says_that_somebody_elses_file_sets_the_value_again(where: Path) -> None:
    host = build(where)
    record, store = applied(where, host)
    own = where / "root/etc/sysctl.d/99-site.conf"
    own.write_text("net.core.rmem_max = 8388608\n")
    outcomes = {one.what: one.detail for one in roll_back_locked(host, record, store)}
    assert str(own).removeprefix(str(where / "root")) in outcomes["sysctl:net.core.rmem_max"]
