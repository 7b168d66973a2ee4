"""Several arms in one session: the real engine and the real runner against an fio on PATH and a captured host."""

from __future__ import annotations

import itertools
import math
import os
import random
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from scipy import stats

from advisor.errors import InvalidInputError, RefusedError, UsageError
from advisor.host import Host
from advisor.proof.archive import Saved, load_proof, reanalyse_proof
from advisor.proof.blocks import conclude_session, smallest_blocks
from advisor.proof.process import caught_signals
from advisor.proof.profile import Means, arms_of_words, prove_arms
from advisor.proof.records import NONE, Claim, FioRun, Pair, Proof, ProofSubject, Session, ToggleClass, resolve_subject
from advisor.proof.schedule import MODES, make_schedule
from advisor.proof.scratch import MIB
from advisor.proof.session_runner import Conductor, InterruptedSessionError, Settings, Site
from advisor.proof.target import read_target
from advisor.proof.workloads import NULL_CONTROL, WORKLOADS, UnknownWorkloadError, expand_workloads, get_workload
from advisor.report.proof.page import proof_page, proof_svg
from advisor.report.proof.result import proof_text
from advisor.report.proof.words import command_again
from advisor.transaction.journal import Store
from tests.each import for_each
from tests.golden import assert_golden
from tests.known import known
from tests.trees import host_of, listing, make_command, make_tree

from .fakes import FakeFio, calm_tree
from .sessions import WORKLOAD, run
from .test_bench import settings

OTHER = "infoscale.64k-seq-r100"
ARMS = (NONE, "fast", "same", "slow")
FACTORS = {NONE: 1.0, "fast": 1.3, "same": 1.0, "slow": 0.75}


class FileSwitch:
    """Arms that are real for the fake fio: each writes its factor into the file that it reads."""

    toggle_class: ToggleClass = "T0"
    settle_seconds = 0.0

    def __init__(self, fio: FakeFio) -> None:
        self.file = fio.directory / "speed"
        self.placed: list[str] = []

    def place(self, arm: str) -> None:
        self.placed.append(arm)
        self.file.write_text(str(FACTORS[arm]))


def empty(workloads: tuple[str, ...] = (WORKLOAD,), arms: tuple[str, ...] = ARMS, blocks: int = 14) -> Session:
    mode = msgspec.structs.replace(MODES["quick"], pairs=blocks, looks=(blocks,), seconds=0.1)
    loads = [get_workload(name) for name in workloads]
    schedule = make_schedule(
        mode, loads, free_bytes=1 << 40, place_seconds=0, scratch_bytes=MIB, arms=len(arms), hold_seconds=0.1
    )
    bare = ProofSubject(", ".join(arms[1:]), tuple(map(Claim, workloads)))
    return Session(
        subject=resolve_subject(bare, mode, most=len(workloads)),
        arms=arms,
        schedule=schedule,
        judged_by="pair",
        toggle_class="T0",
        seed=7,
        target="/srv",
        file_system="xfs",
        device=None,
        fio_version="fio-3.33",
        started="2024-05-17T12:00:00+00:00",
    )


def made(ratios: dict[str, float], *, blocks: int, noise: float, seed: int, workloads: tuple[str, ...]) -> Proof:
    """A session of numbers: each arm times its ratio, with normal noise on the log scale."""
    coin = random.Random(seed)
    arms = (NONE, *ratios)
    listed = []
    for index in range(blocks):
        runs, controls = list[FioRun](), list[FioRun]()
        for arm in coin.sample(arms, len(arms)):
            for name in workloads:
                runs.append(run(arm, 1000 * ratios.get(arm, 1.0) * math.exp(coin.gauss(0, noise)), name))
            controls.append(run(arm, 1e6 * math.exp(coin.gauss(0, 0.01)), NULL_CONTROL))
        listed.append(Pair(index, 0, "", tuple(runs), tuple(controls)))
    return conclude_session(msgspec.structs.replace(empty(workloads, arms, blocks), pairs=tuple(listed)))


# -- what follows from a session ---------------------------------------------------------------------------------------


def test_each_arm_is_compared_with_none_as_scipy_does_and_adjusted_after_holm() -> None:
    found = made({"a": 1.08, "b": 1.0, "c": 0.93}, blocks=16, noise=0.05, seed=3, workloads=(WORKLOAD, OTHER))
    raw = []
    for one in found.workloads:
        logs = []
        for block in found.session.pairs:
            value = {each.arm: each.figures.value(one.metric) for each in block.runs if each.workload == one.name}
            logs.append(math.log(value[one.arm] / value[NONE]))
        raw.append(float(stats.wilcoxon(logs, method="exact").pvalue))
    assert [one.p_value for one in found.workloads] == pytest.approx(raw)
    assert [one.p_holm for one in found.workloads] == pytest.approx(holm_by_hand(raw))
    assert len(found.workloads) == 6


def holm_by_hand(p_values: list[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for step, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[index]))
        adjusted[index] = highest
    return adjusted


@for_each("seed", range(30))
def test_an_interval_excludes_no_change_exactly_where_a_difference_is_called(seed: int) -> None:
    ratio = 1 + random.Random(seed).choice((-0.1, 0.0, 0.04, 0.08, 0.15))
    found = made({"a": ratio, "b": 1.03, "c": 1.0}, blocks=14, noise=0.06, seed=seed, workloads=(WORKLOAD, OTHER))
    for one in found.workloads:
        excludes = known(one.ci95)[0] > 1 or known(one.ci95)[1] < 1
        assert excludes == (one.verdict in ("gain", "loss")), one
        assert (one.verdict in ("gain", "loss")) == ((one.p_holm or 1.0) <= 0.05), one


def test_the_best_arm_of_a_workload_is_a_proven_gain_or_nobody() -> None:
    found = made({"a": 1.2, "b": 1.4, "c": 1.0}, blocks=14, noise=0.03, seed=1, workloads=(WORKLOAD,))
    assert found.best == {WORKLOAD: "b"}
    assert found.is_gain
    nothing = made({"a": 1.0}, blocks=14, noise=0.05, seed=5, workloads=(WORKLOAD,))
    assert nothing.best == {WORKLOAD: None}
    assert not nothing.is_gain


@pytest.mark.parametrize("comparisons", [1, 3, 9, 27])
def test_the_smallest_number_of_blocks_can_just_be_significant(comparisons: int) -> None:
    count = smallest_blocks(comparisons)
    assert 2 / 2**count * comparisons <= 0.05 < 2 / 2 ** (count - 1) * comparisons
    few = made({"a": 2.0}, blocks=5, noise=0.01, seed=1, workloads=(WORKLOAD,))
    assert few.verdict == "indicative"
    assert not few.is_gain


# -- a session ---------------------------------------------------------------------------------------------------------


def measured(fake_fio: FakeFio, host: Host, disk: Path, switch: FileSwitch, **changes: object) -> Proof:
    chosen: Settings = settings(disk, **changes)
    session = msgspec.structs.replace(empty((WORKLOAD, OTHER)), target=str(disk))
    target = read_target(host, str(disk))
    with caught_signals() as stop:
        return Conductor(Site(host, target, chosen, fake_fio.runner, stop), switch, session).run()


def test_arms_are_told_apart_and_the_host_is_as_before(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    switch = FileSwitch(fake_fio)
    found = measured(fake_fio, host, disk, switch)
    calls = {(one.arm, one.name): one.verdict for one in found.workloads}
    assert {calls["fast", name] for name in (WORKLOAD, OTHER)} == {"gain"}
    assert {calls["slow", name] for name in (WORKLOAD, OTHER)} == {"loss"}
    assert {calls["same", name] for name in (WORKLOAD, OTHER)} <= {"no-difference", "inconclusive"}
    fast = next(one for one in found.workloads if one.arm == "fast")
    assert fast.ratio == pytest.approx(1.3, rel=0.05)
    assert (found.verdict, found.best) == ("gain", {WORKLOAD: "fast", OTHER: "fast"})
    assert switch.placed[-1] == NONE
    assert os.listdir(disk) == []


def test_an_arm_that_cannot_be_made_active_is_a_fault_and_the_host_is_as_before(
    fake_fio: FakeFio, host: Host, disk: Path
) -> None:
    class Failing(FileSwitch):
        def place(self, arm: str) -> None:
            if arm == "slow" and self.placed.count("slow") == 2:
                self.placed.append(arm)
                raise RefusedError("reads back 20 instead of 40")
            super().place(arm)

    switch = Failing(fake_fio)
    found = measured(fake_fio, host, disk, switch)
    assert found.verdict == "invalid"
    assert "arm slow could not be applied: reads back 20 instead of 40" in found.reasons
    assert switch.placed[-1] == NONE
    assert switch.file.read_text() == "1.0"
    assert os.listdir(disk) == []


def test_a_saved_session_gives_the_same_result_again(fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path) -> None:
    place = tmp_path / "arms.gz"
    found = measured(fake_fio, host, disk, FileSwitch(fake_fio), save_to=str(place))
    saved = load_proof(place)
    assert reanalyse_proof(saved) == found
    broken = msgspec.structs.replace(saved.proof.session, arms=("a", "b"))
    with pytest.raises(InvalidInputError, match="arms are not those"):
        load_proof(resaved(saved, broken, tmp_path))
    session = saved.proof.session
    for odd, words in (
        (msgspec.structs.replace(session, arms=(NONE, "fast")), "an arm that the session has not"),
        (msgspec.structs.replace(session, schedule=msgspec.structs.replace(session.schedule, alpha=0.0)), "no level"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            load_proof(resaved(saved, odd, tmp_path))


def resaved(saved: Saved, session: Session, directory: Path) -> Path:
    import gzip

    path = directory / "broken.gz"
    proof = msgspec.structs.replace(saved.proof, session=session)
    path.write_bytes(gzip.compress(msgspec.json.encode(msgspec.structs.replace(saved, proof=proof))))
    return path


# -- profiles ----------------------------------------------------------------------------------------------------------

SOCKETS = {
    f"net.core.{name}": "212992" for name in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "optmem_max")
}
NFS = "27 1 0:99 / / rw - nfs4 server:/export rw\n"


def tree_of(tmp_path: Path) -> Path:
    memory = "MemTotal: 16000000 kB\nDirty: 0 kB\n"
    tree = calm_tree(tmp_path / "tree", proc__self__mountinfo=NFS, proc__meminfo=memory)
    return make_tree(tree, {f"/proc/sys/{name.replace('.', '/')}": f"{value}\n" for name, value in SOCKETS.items()})


def test_a_profile_is_an_arm_that_really_is_active_while_it_is_measured(
    fake_fio: FakeFio, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake fio's speed follows the live value: half as fast again while rmem_max is large."""
    tree = tree_of(tmp_path)
    live, speed = tree / "proc/sys/net/core/rmem_max", fake_fio.directory / "speed"
    follow = make_command(tmp_path, "follow", f"awk '{{ print ($1 > 300000) ? 1.5 : 1.0 }}' {live} > {speed}")
    monkeypatch.setenv("PATH", f"{fake_fio.directory}:/usr/bin:/bin")
    before = listing(tree)
    found = prove_arms(
        host_of(tree),
        arms_of_words(["none", "socket-buffers-8m"]),
        (WORKLOAD,),
        {},
        settings(disk, seconds=0.1),
        Means(reconnect=follow, options=("--reconnect=x y",)),
        store=Store(str(tmp_path / "state")),
    )
    (effect,) = found.workloads
    assert (found.verdict, effect.arm) == ("gain", "socket-buffers-8m")
    assert effect.ratio == pytest.approx(1.5, rel=0.05)
    assert listing(tree) == before
    assert {one.tunable for one in found.session.arm_values["socket-buffers-8m"]} >= {"sysctl:net.core.rmem_max"}
    assert "'--reconnect=x y'" in command_again(found)


def test_two_arms_that_set_one_value_differently_are_refused_and_nothing_is_changed(disk: Path, tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    before = listing(tree)
    with pytest.raises((RefusedError, UsageError), match=r"net\.core|infoscale"):
        prove_arms(
            host_of(tree),
            arms_of_words(["socket-buffers-8m", "infoscale-fss-udp"]),
            (WORKLOAD,),
            {},
            settings(disk, seconds=0.1),
            Means(reconnect="true"),
            store=Store(str(tmp_path / "state")),
        )
    assert listing(tree) == before


def test_an_arm_that_changes_nothing_here_is_refused_by_name(disk: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="jumbo-frames would change no live value"):
        prove_arms(
            host_of(tree_of(tmp_path)),
            arms_of_words(["none", "socket-buffers-8m", "jumbo-frames"]),
            (WORKLOAD,),
            {},
            settings(disk),
            store=Store(str(tmp_path / "state")),
        )


# -- the call ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none", "at least one profile"),
        ("jumbo-frames,jumbo-frames", "named twice"),
        ("none,jumbo-frame", "jumbo-frame"),
        (",".join(f"p{n}" for n in range(9)), "at most 8"),
    ],
)
def test_arms_that_are_none_name_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        arms_of_words(text.split(","))


def test_arms_are_parsed_none_first_and_patterns_are_expanded() -> None:
    assert arms_of_words(["jumbo-frames", "none", "socket-buffers-8m"]) == (NONE, "jumbo-frames", "socket-buffers-8m")
    assert arms_of_words(["jumbo-frames"]) == (NONE, "jumbo-frames")
    nine = expand_workloads(["infoscale.*"])
    assert len(nine) == 9
    assert not any(name.endswith("qd16") for name in nine)
    assert len(expand_workloads(["infoscale.*-qd16"])) == 9
    assert expand_workloads(["beegfs.dd", "beegfs.*"])[0] == "beegfs.dd"
    assert NULL_CONTROL not in expand_workloads(["*"])
    assert set(expand_workloads(["*"])) <= set(WORKLOADS)
    with pytest.raises(UsageError, match="no workload matches"):
        expand_workloads(["oracle.*"])
    with pytest.raises(UnknownWorkloadError):
        expand_workloads(["infoscale.4k"])


# -- what a person reads -----------------------------------------------------------------------------------------------


def test_the_page_of_arms() -> None:
    found = made(
        {"jumbo-frames": 1.2, "socket-buffers-8m": 1.0}, blocks=12, noise=0.03, seed=1, workloads=(WORKLOAD, OTHER)
    )
    assert_golden("arms", proof_text(found, width=80, color=False))
    assert "\x1b[32mgain" in proof_text(found, width=80, color=True)


def test_the_picture_and_the_page_are_well_formed_and_have_every_figure() -> None:
    found = made({"<b>&": 1.2, "x": 1.0}, blocks=12, noise=0.03, seed=1, workloads=(WORKLOAD,))
    picture = ElementTree.fromstring(proof_svg(found))
    texts = "".join(picture.itertext())
    assert "<b>&" in texts
    assert WORKLOAD in texts
    chart = picture[-1][-1]  # below the margin, below the head
    assert len([one for one in chart.iter() if one.get("href") == "#circle"]) == 2
    page = proof_page(found)
    assert "<script" not in page
    assert "&lt;b&gt;&amp;" in page


def test_an_interrupted_session_keeps_what_was_measured(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    import signal

    switch = FileSwitch(fake_fio)
    counter = itertools.count()

    def progress(_event: object) -> None:
        if next(counter) == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    session = msgspec.structs.replace(empty(), target=str(disk))
    target = read_target(host, str(disk))
    with caught_signals() as stop, pytest.raises(InterruptedSessionError) as stopped:
        Conductor(Site(host, target, settings(disk), fake_fio.runner, stop, progress), switch, session).run()
    assert stopped.value.result.verdict == "indicative"
    assert "the session was interrupted" in stopped.value.result.reasons
    assert switch.placed[-1] == NONE
    assert os.listdir(disk) == []
