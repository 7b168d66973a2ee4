"""Whole sessions: the real protocol against an fio on PATH, a captured host, and a toggle that writes a file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from advisor.errors import CommandError, InvalidInputError, NotRestoredError, RefusedError, UsageError
from advisor.host import Host
from advisor.operations.prove import choose_command
from advisor.proof.archive import load_proof, reanalyse_proof
from advisor.proof.fio import FioMissingError, FioProcess
from advisor.proof.profile import ground_for_command
from advisor.proof.records import Arm, Claim, Proof, ProofSubject, ToggleClass, command_subject
from advisor.proof.scratch import MIB, Keep
from advisor.proof.session import ProgressEvent, Settings, plan_session, prove, self_test
from advisor.proof.workloads import UnknownWorkloadError
from tests.known import known

from .fakes import CALM, FakeFio, SpeedToggle, calm_host
from .test_bench import settings

READ, WRITE = "infoscale.4k-rand-r100", "infoscale.4k-rand-w100"
SUBJECT = ProofSubject("storage", (Claim(READ),))


SHORT: dict[str, object] = {"budget_seconds": 16.5, "seconds": 0.1}
"""A layout of three pairs: for what does not need a verdict. The fake fio takes no time, so no budget is used up."""


def settle(fake_fio: FakeFio, host: Host, disk: Path, factor: float, **changes: object) -> tuple[Proof, SpeedToggle]:
    toggle = SpeedToggle(fake_fio, factor)
    proof = prove(host, SUBJECT, toggle, settings(disk, **changes), runner=fake_fio.runner)
    return proof, toggle


def arms(proof: Proof) -> str:
    """The order in which the counted runs really ran."""
    return "".join(run.arm for pair in proof.session.pairs for run in pair.runs)


def test_a_gain_is_proven_saved_and_the_host_restored(
    fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path
) -> None:
    """By force, which costs nothing on a calm host."""
    place = tmp_path / "result.proof"
    toggle, shown = SpeedToggle(fake_fio, 1.3), list[ProgressEvent]()
    chosen = settings(disk, save_to=str(place), force=True)
    proof = prove(host, SUBJECT, toggle, chosen, runner=fake_fio.runner, progress=shown.append)
    assert proof.verdict == "gain"
    assert proof.workloads[0].ratio == pytest.approx(1.3, rel=0.03)
    assert (toggle.in_force, proof.kept, os.listdir(disk)) == ("A", False, [])
    # the record gives the same verdict again
    saved = load_proof(place)
    assert saved.proof == reanalyse_proof(place) == reanalyse_proof(saved) == reanalyse_proof(proof) == proof
    assert {run.number for pair in proof.session.pairs for run in (*pair.runs, *pair.control_runs)} <= set(saved.fio)
    assert all(text.startswith("{") for text in saved.fio.values())
    # progress has no figure
    assert [event.stage for event in shown] == [
        "plan",
        "scratch",
        "warm-up",
        "warm-up",
        *["pair"] * 8,
        "hold",
        "hold",
        "restore",
    ]
    assert [event.pair for event in shown if event.stage == "pair"] == list(range(1, 9))
    assert all(event.pairs == 8 and event.seconds_left >= 0 for event in shown)
    allowed = {"stage", "pair", "pairs", "seconds_left", "lamps", "schedule", "workloads", "are_combined", "standing"}
    assert set(ProgressEvent.__struct_fields__) == allowed


def test_nothing_is_no_difference_after_the_looks(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    proof, toggle = settle(fake_fio, host, disk, 1.0, mode="default")
    assert (proof.verdict, proof.workloads[0].pairs) == ("no-difference", 24)
    assert proof.session.schedule.looks == (8, 16, 24)
    # warm-up of each arm, both arms of each pair, both held, and the restoring
    assert len(toggle.placed) == 2 + 2 * 24 + 2 + 1
    assert [pair.index for pair in proof.session.pairs if pair.control_runs] == list(range(24))
    assert known(proof.control).pairs == 24


def test_a_short_session_of_a_change_that_needs_new_connections(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    toggle, seen = SpeedToggle(fake_fio, 1.3, toggle_class="T1"), list[Arm]()
    chosen = settings(disk, save_to="/proc/nowhere/result", **SHORT)
    proof = prove(host, SUBJECT, toggle, chosen, reconnect=seen.append, runner=fake_fio.runner)
    assert seen == toggle.placed
    assert toggle.in_force == "A"
    # fewer than six pairs are indicative, and the warm-up is none of them
    assert proof.workloads[0].pairs == 3
    assert (proof.verdict, proof.session.ended) == ("indicative", "complete")
    assert [run.arm for run in proof.session.warm_up] == ["A", "A", "B", "B"]
    assert min(run.number for pair in proof.session.pairs for run in (*pair.runs, *pair.control_runs)) == 4
    assert any("not saved" in note for note in proof.notes)
    # fio works in our directory only
    calls = zip(fake_fio.calls(), fake_fio.directories(), strict=True)
    (place,) = {place for words, place in calls if "--filename=scratch" in words}
    assert os.path.dirname(place) == str(disk)


def test_a_clear_gain_ends_at_the_first_look(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    proof, _ = settle(fake_fio, host, disk, 1.3, mode="default")
    assert (proof.verdict, proof.workloads[0].pairs, proof.session.ended) == ("gain", 8, "settled")


def test_a_gain_is_kept_only_where_it_was_asked_for(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    proof, toggle = settle(fake_fio, host, disk, 1.3, keep_if_gain=True)
    assert (proof.verdict, proof.kept, toggle.in_force) == ("gain", True, "B")
    proof, toggle = settle(fake_fio, host, disk, 0.7, keep_if_gain=True)
    assert (proof.verdict, proof.kept, toggle.in_force) == ("loss", False, "A")


def test_the_order_is_the_seed_s_coin(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    proofs = [settle(fake_fio, host, disk, 1.0, seed=seed, **SHORT)[0] for seed in (5, 5, 7)]
    assert proofs[0].order == proofs[1].order != proofs[2].order
    assert {order for proof in proofs for order in proof.order} == {"AB", "BA"}
    assert arms(proofs[0]) == "".join(proofs[0].order)
    assert proofs[2].seed == 7
    seeds = {settle(fake_fio, host, disk, 1.0, seed=None, **SHORT)[0].seed for _ in range(2)}
    assert len(seeds) == 2


def test_a_warm_up_that_does_not_settle_is_noted(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    fake_fio.plan(noise=0.6, seed=3)
    proof, _ = settle(fake_fio, host, disk, 1.0, **SHORT)
    assert len(proof.session.warm_up) > 4
    assert any("after the warm-up" in note for note in proof.notes)


def test_a_control_that_moves_makes_the_session_invalid(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    fake_fio.plan(control_factor=1.15)
    proof, _ = settle(fake_fio, host, disk, 1.001, mode="default")
    assert proof.verdict == "invalid"
    assert "null.4k moved by +1" in proof.reasons[0]


@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_an_arm_that_does_not_read_back_ends_in_invalid_with_a_in_force(
    fake_fio: FakeFio, host: Host, disk: Path, at: int
) -> None:
    toggle = SpeedToggle(fake_fio, 1.3)
    toggle.fails_at = [at]
    proof = prove(host, SUBJECT, toggle, settings(disk, **SHORT), runner=fake_fio.runner)
    assert proof.verdict == "invalid"
    assert "reads back 20 instead of 40" in proof.reasons[0]
    assert toggle.placed[-1] == toggle.in_force == "A"
    assert os.listdir(disk) == []


def test_a_reconnect_that_fails_makes_it_invalid(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3, toggle_class="T1")

    def reconnect(arm: Arm) -> None:
        if len(toggle.placed) == 4:
            raise CommandError("mount: device is busy")

    proof = prove(host, SUBJECT, toggle, settings(disk, **SHORT), reconnect=reconnect, runner=fake_fio.runner)
    assert proof.verdict == "invalid"
    assert "device is busy" in proof.reasons[0]


def test_where_a_cannot_be_put_back_it_is_said_with_code_5(
    fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path
) -> None:
    toggle = SpeedToggle(fake_fio, 1.3)
    toggle.fails_at = [2 + 6]
    place = tmp_path / "result.proof"
    with pytest.raises(NotRestoredError, match="could not be restored") as caught:
        prove(host, SUBJECT, toggle, settings(disk, save_to=str(place), **SHORT), runner=fake_fio.runner)
    assert caught.value.exit_code == 5
    assert caught.value.items
    assert os.listdir(disk) == []
    assert load_proof(place).proof.verdict == "invalid"


def test_a_kept_gain_that_cannot_be_placed_again_falls_back_to_a(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3)
    toggle.fails_at = [2 + 16]
    proof = prove(host, SUBJECT, toggle, settings(disk, keep_if_gain=True), runner=fake_fio.runner)
    assert toggle.placed[-2:] == ["B", "A"]
    assert (proof.verdict, proof.kept, toggle.in_force) == ("invalid", False, "A")


def test_something_unforeseen_still_restores_and_saves(
    fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path
) -> None:
    class Broken(SpeedToggle):
        def place(self, arm: Arm) -> None:
            super().place(arm)
            if len(self.placed) == 6:
                raise ZeroDivisionError

    toggle = Broken(fake_fio, 1.3)
    place = tmp_path / "result.proof"
    with pytest.raises(ZeroDivisionError):
        prove(host, SUBJECT, toggle, settings(disk, save_to=str(place), **SHORT), runner=fake_fio.runner)
    assert toggle.in_force == "A"
    assert os.listdir(disk) == []
    assert load_proof(place).proof.session.ended == "fault"


@pytest.mark.parametrize("stage", ["warm-up", "pair", "restore"])
def test_a_terminal_that_is_gone_does_not_keep_the_host_changed(
    fake_fio: FakeFio, host: Host, disk: Path, stage: str
) -> None:
    def progress(event: ProgressEvent) -> None:
        if event.stage == stage and event.pair != 1:
            raise BrokenPipeError(32, "Broken pipe")

    toggle = SpeedToggle(fake_fio, 1.3)
    with pytest.raises(BrokenPipeError):
        prove(host, SUBJECT, toggle, settings(disk, **SHORT), runner=fake_fio.runner, progress=progress)
    assert not toggle.placed or toggle.placed[-1] == toggle.in_force == "A"
    assert os.listdir(disk) == []


@pytest.mark.parametrize("hazard", ["zero-ios", "error-exit-0", "cut-off"])
def test_an_fio_that_fails_midway_makes_it_invalid(fake_fio: FakeFio, host: Host, disk: Path, hazard: str) -> None:
    fake_fio.plan(misbehave=hazard, after=8)
    proof, toggle = settle(fake_fio, host, disk, 1.3, **SHORT)
    assert (proof.verdict, proof.session.ended) == ("invalid", "fault")
    assert toggle.in_force == "A"
    assert os.listdir(disk) == []
    # the runs of the broken pair are in the record, but count for nothing
    assert all(pair.whole for pair in proof.session.pairs[:-1])


def test_a_scratch_file_that_is_swapped_ends_the_session(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    class Swapping(SpeedToggle):
        def place(self, arm: Arm) -> None:
            super().place(arm)
            if len(self.placed) == 5:
                (made,) = disk.iterdir()
                (made / "other").write_bytes(b"precious")
                (made / "other").rename(made / "scratch")

    toggle = Swapping(fake_fio, 1.3)
    proof = prove(host, SUBJECT, toggle, settings(disk, **SHORT), runner=fake_fio.runner)
    assert proof.verdict == "invalid"
    assert "not the file that was made" in proof.reasons[0]
    assert any("not removed" in note for note in proof.notes)
    (made,) = disk.iterdir()
    assert (made / "scratch").read_bytes() == b"precious"


# -- refusals: before anything is changed -------------------------------------------------------------------------


def refused(
    fake_fio: FakeFio, host: Host, subject: ProofSubject, toggle: SpeedToggle, chosen: Settings
) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        prove(host, subject, toggle, chosen, runner=fake_fio.runner)
    assert caught.value.exit_code == 3
    return caught.value


@pytest.mark.parametrize(
    ("path", "toggle_class", "chosen", "words"),
    [
        (None, "T1", {}, "new sockets"),
        ("network", "T0", {}, "local"),
        (None, "T0", {"keep": Keep(0, 1.0)}, "stay free"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything(
    fake_fio: FakeFio,
    host: Host,
    disk: Path,
    path: Literal["network"] | None,
    toggle_class: ToggleClass,
    chosen: dict[str, object],
    words: str,
) -> None:
    toggle = SpeedToggle(fake_fio, 1.3, toggle_class=toggle_class)
    subject = msgspec.structs.replace(SUBJECT, path=path) if path else SUBJECT
    assert words in refused(fake_fio, host, subject, toggle, settings(disk, **chosen)).message
    assert toggle.placed == []
    assert [call for call in fake_fio.calls() if call != ["--version"]] == []


def test_link_flaps_need_permission(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3, toggle_class="T2")
    error = refused(fake_fio, host, SUBJECT, toggle, settings(disk))
    assert "--allow-link-flap" in (error.hint or "")
    assert toggle.placed == []
    allowed = settings(disk, allow_link_flap=True, **SHORT)
    assert prove(host, SUBJECT, toggle, allowed, runner=fake_fio.runner).tendency != "loss"
    assert "B" in toggle.placed


def test_a_network_profile_is_measured_on_a_network_mount(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    line = "27 1 0:99 / / rw - nfs4 server:/export rw\n"
    host = calm_host(tmp_path / "nfs", proc__self__mountinfo=line)
    subject = msgspec.structs.replace(SUBJECT, path="network")
    proof = prove(host, subject, SpeedToggle(fake_fio, 1.3), settings(disk, **SHORT), runner=fake_fio.runner)
    assert proof.workloads[0].pairs == 3


def test_a_reboot_tunable_is_run_as_a_sequence_and_is_indicative(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3, toggle_class="T3")
    proof = prove(host, SUBJECT, toggle, settings(disk), runner=fake_fio.runner)
    assert (proof.verdict, proof.tendency) == ("indicative", "gain")
    assert toggle.placed == ["A", "B", "A", "A"]
    assert set(proof.order) == {"ABA"}


def test_a_busy_host_is_asked_about_and_may_prove_a_gain(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    busy = calm_host(tmp_path / "busy", proc__pressure__cpu=CALM.replace("avg10=0.00", "avg10=55.00", 1))
    toggle = SpeedToggle(fake_fio, 1.3)
    asked: list[str] = []

    def answer_no(words: str) -> None:
        asked.append(words)
        raise RefusedError("cancelled")

    refused(fake_fio, busy, SUBJECT, toggle, settings(disk, ask=answer_no))
    assert toggle.placed == []
    proof = prove(busy, SUBJECT, toggle, settings(disk, mode="default", ask=asked.append), runner=fake_fio.runner)
    assert (proof.verdict, proof.session.schedule.looks) == ("gain", (13, 27, 40))
    assert proof.gate.busy
    assert "cpu pressure" in asked[0]
    assert ["8 pairs" in asked[0], "40 pairs" in asked[1], len(asked)] == [True, True, 2]


def test_foreign_io_is_noted_before_arm_b_is_ever_placed(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    """Somebody writes to the device while the session takes its idle sample."""
    import threading

    row = "   8       0 sda 0 0 {} 0 0 0 0 0 0 0 0\n"
    host = calm_host(
        tmp_path / "tree", proc__diskstats=row.format(0), proc__self__mountinfo="27 1 8:0 / / rw - ext4 /dev/sda rw\n"
    )
    toggle = SpeedToggle(fake_fio, 1.3)
    grow = threading.Timer(0.5, (tmp_path / "tree/proc/diskstats").write_text, (row.format(100_000),))
    grow.start()
    proof = prove(host, SUBJECT, toggle, settings(disk), runner=fake_fio.runner)
    grow.join()
    assert "others already move" in proof.gate.busy[0]
    assert os.listdir(disk) == []


def test_a_missing_fio_is_refused_before_anything(host: Host, disk: Path, tmp_path: Path, fake_fio: FakeFio) -> None:
    toggle = SpeedToggle(fake_fio, 1.3)
    with pytest.raises(FioMissingError):
        prove(host, SUBJECT, toggle, settings(disk), runner=FioProcess(search_path=str(tmp_path)))
    assert toggle.placed == []
    assert os.listdir(disk) == []


def test_bad_input_is_told_before_anything(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3)
    with pytest.raises(UnknownWorkloadError):
        prove(host, ProofSubject("p", (Claim("nonsense"),)), toggle, settings(disk), runner=fake_fio.runner)
    with pytest.raises(InvalidInputError):
        prove(host, ProofSubject("p", ()), toggle, settings(disk), runner=fake_fio.runner)
    with pytest.raises(UsageError, match=r"0\.1 to 600 s"):
        prove(host, SUBJECT, toggle, settings(disk, seconds=601.0), runner=fake_fio.runner)
    assert toggle.placed == []


# -- budgets ------------------------------------------------------------------------------------------------------


def test_the_clock_ends_the_session_even_where_the_layout_was_too_hopeful(
    fake_fio: FakeFio, host: Host, disk: Path
) -> None:
    # laid out for runs of 0.1 s and the usual overhead, but each takes twice as long as that
    fake_fio.plan(sleep=1.2)
    began = time.monotonic()
    proof, toggle = settle(fake_fio, host, disk, 1.3, budget_seconds=13.0, seconds=0.1)
    assert time.monotonic() - began < 13.0
    assert proof.session.schedule.pairs == 2
    assert len(proof.session.pairs) < 2
    assert proof.session.ended == "budget"
    assert toggle.in_force == "A"


def test_written_bytes_stay_in_the_budget_and_are_shown_before(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    fake_fio.plan(iops=20_000)
    subject = ProofSubject("storage", (Claim(WRITE),))
    shown: list[ProgressEvent] = []
    chosen = settings(disk, byte_budget=400 * MIB)
    plan = plan_session(host, subject, SpeedToggle(fake_fio, 1.3), chosen)
    proof = prove(host, subject, SpeedToggle(fake_fio, 1.3), chosen, runner=fake_fio.runner, progress=shown.append)
    assert shown[0].schedule == plan == proof.session.schedule
    assert plan.predicted_bytes <= 400 * MIB
    assert 100 * MIB < proof.session.bytes_written <= plan.predicted_bytes
    assert {run.figures.written_bytes for pair in proof.session.pairs for run in pair.runs} != {0}


def test_writes_that_are_too_short_to_be_timed_are_refused(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    fake_fio.plan(iops=2_000_000, noise=0)
    toggle = SpeedToggle(fake_fio, 1.3)
    error = refused(fake_fio, host, ProofSubject("s", (Claim(WRITE),)), toggle, settings(disk, byte_budget=200 * MIB))
    assert "too short to be timed" in error.message
    assert set(toggle.placed) == {"A"}


# -- contamination ------------------------------------------------------------------------------------------------

STAT = "cpu  {busy} 0 0 {idle} 0 0 0 {steal} 0 0\n"


class StealingToggle(SpeedToggle):
    """Between chosen placings the hypervisor takes the CPU away, as /proc/stat of the captured host reports; each time
    ``more`` ticks for each placing so far."""

    def __init__(self, fio: FakeFio, tree: Path, stolen: set[int], more: int) -> None:
        super().__init__(fio, 1.3)
        self.stat = tree / "proc/stat"
        self.stolen = stolen
        self.more = more
        self.fio = fio

    def place(self, arm: Arm) -> None:
        super().place(arm)
        ticks = 40 + self.more * len(self.placed)
        self.fio.plan(noise=0.02, stat=str(self.stat), steal=ticks if len(self.placed) in self.stolen else 0)


def stealing(fake_fio: FakeFio, tmp_path: Path, stolen: set[int], *, more: int = 0) -> tuple[Host, StealingToggle]:
    host = calm_host(tmp_path / "stealing", proc__stat=STAT.format(busy=100, idle=1000, steal=0))
    return host, StealingToggle(fake_fio, tmp_path / "stealing", stolen, more)


@pytest.mark.parametrize(("at", "hit"), [(7, 0), (8, 1)])
def test_a_contaminated_pair_is_repeated_and_kept_on_record(
    fake_fio: FakeFio, disk: Path, tmp_path: Path, at: int, hit: int
) -> None:
    """Placings 7 and 8 are the third pair."""
    host, toggle = stealing(fake_fio, tmp_path, {at})
    shown: list[ProgressEvent] = []
    proof = prove(host, SUBJECT, toggle, settings(disk), runner=fake_fio.runner, progress=shown.append)
    assert (proof.verdict, len(proof.session.pairs), proof.workloads[0].pairs) == ("gain", 9, 8)
    (spoiled,) = [pair for pair in proof.session.pairs if pair.contaminated]
    assert spoiled.superseded
    # the lamp is at the run that was hit, and shown with the next pair
    assert [run.lamps for run in spoiled.runs] == [("steal",) if number == hit else () for number in range(2)]
    assert [event.pair for event in shown if event.lamps == ("steal",)] == [3]
    (repeated,) = [pair for pair in proof.session.pairs if pair.attempt == 1]
    assert repeated.index == spoiled.index
    assert 0 < proof.contaminated_share < 0.2


def test_repeats_are_limited_and_what_remains_is_kept_in(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    # placings 3 and 4 are the first pair: it is spoiled and every repeat of it still more, the rest is not
    host, toggle = stealing(fake_fio, tmp_path, {3, 5, 7, 9, 11}, more=10)
    proof = prove(host, SUBJECT, toggle, settings(disk), runner=fake_fio.runner)
    assert sum(pair.superseded for pair in proof.session.pairs) == 4
    assert [pair.attempt for pair in proof.session.pairs[:5]] == [0, 1, 2, 3, 4]
    assert proof.workloads[0].pairs == 8
    assert any("1 contaminated pair is included" in note for note in proof.notes)
    assert proof.verdict == "gain"


def test_a_session_of_which_most_is_contaminated_is_judged_all_the_same(
    fake_fio: FakeFio, disk: Path, tmp_path: Path
) -> None:
    stolen = {3, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}
    host, toggle = stealing(fake_fio, tmp_path, stolen, more=10)
    proof = prove(host, SUBJECT, toggle, settings(disk), runner=fake_fio.runner)
    assert proof.contaminated_share > 0.5
    assert proof.verdict == "gain"


class BusyToggle(StealingToggle):
    """Arm B itself costs CPU time that others then lack."""

    def place(self, arm: Arm) -> None:
        self.stolen = set(range(100)) if arm == "B" else set()
        super().place(arm)


def test_what_an_arm_always_costs_is_no_contamination(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    """It is in every pair, whichever arm has it, so none stands out."""
    host, _ = stealing(fake_fio, tmp_path, set())
    toggle = BusyToggle(fake_fio, tmp_path / "stealing", set(), 0)
    proof = prove(host, SUBJECT, toggle, settings(disk), runner=fake_fio.runner)
    assert proof.contaminated_share == 0
    assert proof.verdict == "gain"
    stolen = {run.arm: run.covariates.steal_share for pair in proof.session.pairs for run in pair.runs}
    assert stolen["A"] == 0
    assert (stolen["B"] or 0) > 0.2


# -- several workloads, self-test ---------------------------------------------------------------------------------


def test_all_workloads_of_an_arm_share_one_placing(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    subject = ProofSubject("storage", (Claim(READ), Claim(WRITE)), exploratory=("iris.ranread",))
    toggle = SpeedToggle(fake_fio, 1.3)
    proof = prove(host, subject, toggle, settings(disk, budget_seconds=30.0, seconds=0.1), runner=fake_fio.runner)
    assert len(toggle.placed) == 2 + 2 * len(proof.session.pairs) + 1
    assert {run.workload for run in proof.session.pairs[0].runs} == {READ, WRITE, "iris.ranread"}
    assert [item.name for item in proof.workloads] == [READ, WRITE]
    assert {item.name for item in proof.exploratory} >= {"iris.ranread"}


def test_the_self_test_invents_no_gain(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    fake_fio.plan(noise=0.05)
    proof = self_test(host, [READ], settings(disk, keep_if_gain=True), runner=fake_fio.runner)
    assert proof.profile == "self-test"
    assert proof.verdict in ("no-difference", "inconclusive")
    assert not proof.kept
    assert proof.session.self_test


def test_a_toggle_may_place_fio_but_not_the_control(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    class Placing(SpeedToggle):
        def fio_options(self, arm: Arm) -> tuple[str, ...]:
            return ("--numa_cpu_nodes=0", "--numa_mem_policy=bind:0") if arm == "B" else ()

    proof = prove(host, SUBJECT, Placing(fake_fio, 1.3), settings(disk), runner=fake_fio.runner)
    placed = ["--numa_cpu_nodes=0" in words for words in fake_fio.calls()]
    runs = [*proof.session.warm_up, *(run for pair in proof.session.pairs for run in (*pair.runs, *pair.control_runs))]
    runs += [run for hold in proof.session.holds for run in hold.runs]
    expected = [run.arm == "B" and run.workload == READ for run in sorted(runs, key=lambda run: run.number)]
    assert placed == expected
    assert True in placed


@pytest.mark.alone
def test_a_hold_of_a_short_command_ends_with_its_time(fake_fio: FakeFio, host: Host, tmp_path: Path) -> None:
    """Laid out for the runs' own time, of which one takes longer here once the arms are held."""
    speed, pause = fake_fio.directory / "speed", tmp_path / "pause"
    speed.write_text("1")
    pause.write_text("0")
    words = f"sh -c 'cat {speed}; sleep $(cat {pause})'"
    command = known(choose_command(words, ["regex:([0-9.]+):higher"], directory=tmp_path))
    place = ground_for_command(command)

    def slow_down(event: ProgressEvent) -> None:
        pause.write_text("0.1" if event.stage == "hold" else "0")

    chosen = settings(tmp_path, hold_seconds=1.0)
    subject, toggle = command_subject("p", command.command), SpeedToggle(fake_fio, 1.3)
    proof = prove(host, subject, toggle, chosen, runner=place.runner, target=place.target, progress=slow_down)
    assert proof.session.schedule.hold_runs > 12
    assert [6 <= len(one.runs) <= 10 for one in proof.session.holds] == [True, True]
