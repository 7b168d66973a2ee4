"""Where the candidates of a search come from, and which of them can be raced on a host."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import msgspec
import pytest

from advisor.errors import InvalidInputError, NotRestoredError, UsageError
from advisor.facts.host_facts import scan
from advisor.host import Host, live_host
from advisor.operations import open_host
from advisor.operations.prove import choose_command
from advisor.operations.tuning import keep_winner, name_candidates, name_recorded, repeat_load
from advisor.proof.archive import reanalyse_proof
from advisor.proof.command_runner import results_directory
from advisor.proof.process import StoppedError
from advisor.proof.session_runner import silent
from advisor.proof.tuning.arms import CandidateSwitch, RaceArm, RaceLoad, group_plans, pattern_metric, plan_offers
from advisor.proof.tuning.records import TunePattern
from advisor.proof.tuning.session import TuneOptions, load_session, tune
from advisor.report.proof.tuning import tuned_text
from advisor.transaction.journal import Store
from tests.cases import read_cases
from tests.known import known
from tests.proof.conftest import disk
from tests.proof.fakes import calm_tree
from tests.trees import host_of, make_tree

DATA = read_cases(__file__)

__all__ = ["disk"]

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "storage-host-root.tar.gz"
TREE = DATA["TREE"]


TRUE = known(choose_command("true", ["time"]))
LOAD = RaceLoad(live_host(), process=TRUE)


@pytest.fixture(name="host")
def make_host(tmp_path: Path) -> Host:
    return host_of(make_tree(tmp_path / "tree", TREE))


def raced(host: Host, tmp_path: Path, *words: str) -> tuple[dict[str, RaceArm], dict[str, str]]:
    """The arms by name, and why the others are left out."""
    named = name_candidates(words, host)
    arms, left = plan_offers(host, named.offers, scan(host), Store(str(tmp_path / "state")), LOAD)
    return {one.candidate.name: one for one in arms}, {one.name: one.reason for one in (*named.left_out, *left)}


def test_a_pattern_races_only_what_its_runs_can_show(tmp_path: Path, disk: Path) -> None:
    buffers = {f"/proc/sys/net/core/{way}mem_max": "212992\n" for way in "rw"}
    host = host_of(make_tree(tmp_path / "tree", {**TREE, **buffers}))
    workload = "infoscale.4k-rand-r100"
    load = RaceLoad(live_host(), pattern=TunePattern(workload, str(disk), pattern_metric(workload)))
    words = ("sysctl:vm.swappiness=10", "sysctl:net.core.rmem_max=8388608", "block:sda:read_ahead_kb=4096")
    named = name_candidates(words, host)
    _, by_command = plan_offers(host, named.offers, scan(host), Store(str(tmp_path / "state")), LOAD)
    arms, left = plan_offers(host, named.offers, scan(host), Store(str(tmp_path / "state")), load)
    reasons = {one.name: one.reason for one in left}
    assert words[1] not in {one.name for one in by_command}
    assert "new sessions or mounts" in reasons[words[1]]
    assert "page cache" in reasons[words[2]]
    assert words[1] not in {one.candidate.name for one in arms}


def test_a_tunable_without_a_value_stands_for_all_that_it_offers(host: Host, tmp_path: Path) -> None:
    named = name_candidates(["block:sda:scheduler", "block:sda:rq_affinity"], host)
    assert [one.name.partition("=")[2] for one in named.offers] == ["mq-deadline", "kyber", "none", "0", "1", "2"]
    assert named.offers[0].source == "block:sda:scheduler offers mq-deadline, kyber, none"
    _, left = raced(host, tmp_path, "block:sda:scheduler")
    # the present value is no candidate: it races anyway
    assert "would change no live value here" in left["block:sda:scheduler=mq-deadline"]


@pytest.mark.parametrize("word", ["block:sda:read_ahead_kb", "sysctl:vm.swappiness"])
def test_no_value_is_made_up_for_a_number(word: str, host: Host) -> None:
    with pytest.raises(UsageError, match="declares no values to choose from here"):
        name_candidates([word], host)


def test_rules_name_what_findings_advise_with_the_finding_as_source(tmp_path: Path) -> None:
    host = open_host(snapshot=ARCHIVE)
    named = name_candidates(["rules", "sysctl:vm.swappiness=10"], host)
    by_name = {one.name: one.source for one in named.offers}
    default = "sysctl:net.core.rmem_max>=851968 sysctl:net.core.rmem_default>=851968"
    assert by_name[default].startswith("finding buffers.below-llt-window: ")
    assert {one.name for one in named.left_out} >= {"arrays.degraded"}
    arms, _ = plan_offers(host, named.offers, scan(host), Store(str(tmp_path / "state")), LOAD)
    (one,) = (arm.candidate for arm in arms if arm.candidate.name == default)
    assert {(value.before, value.after) for value in one.values} == {("212992", "851968"), ("425984", "851968")}
    assert one.sources


def test_what_cannot_be_raced_is_left_out_with_its_reason(host: Host, tmp_path: Path) -> None:
    arms, left = raced(
        host,
        tmp_path,
        *("sysctl:vm.swappiness=10", "sysctl:vm.swappiness<=10", "sysctl:net.core.default_qdisc=fq", "jumbo-frames"),
    )
    assert list(arms) == ["sysctl:vm.swappiness=10"]
    assert left["sysctl:vm.swappiness<=10"] == "sets the same values as sysctl:vm.swappiness=10"
    assert set(left) == {"sysctl:vm.swappiness<=10", "sysctl:net.core.default_qdisc=fq", "jumbo-frames"}


def test_a_candidate_that_is_named_twice_is_refused(host: Host) -> None:
    joined = "sysctl:vm.swappiness=1,sysctl:vm.dirty_ratio=2"
    with pytest.raises(UsageError, match="a value may hold commas") as caught:
        name_candidates([joined], host)
    assert caught.value.hint == "--candidates sysctl:vm.swappiness=1 --candidates sysctl:vm.dirty_ratio=2"
    with pytest.raises(UsageError, match="is named twice"):
        name_candidates(["socket-buffers-8m,socket-buffers-8m"], host)


def test_one_transaction_varies_one_tunable_alone(host: Host, tmp_path: Path) -> None:
    """After a crash the journal restores one value that is not its plan's."""
    words = [f"sysctl:{key}={value}" for key in ("vm.swappiness", "vm.vfs_cache_pressure") for value in (5, 10, 15)]
    arms, left = raced(host, tmp_path, *words, "sysctl:kernel.pid_max=65536")
    assert not left
    groups = group_plans({name: one.plan for name, one in arms.items()})
    assert sorted(name for group in groups for name in group.arms) == sorted(arms)
    for group in groups:
        after = {one.tunable: one.after for one in group.plan.changes}
        others = {
            one.tunable for name in group.arms for one in arms[name].plan.changes if after[one.tunable] != one.after
        }
        assert others <= {group.varied}
        assert len(after) == len(group.plan.changes)
    assert len(groups) == 2


def modify_during(switch: CandidateSwitch, store: Store, name: str, file: Path) -> None:
    """Somebody else writes 40000 to a file while an arm is placed."""
    with store.hold_lock(), switch.hold():
        switch.place(name)
        file.write_text("40000\n")


@pytest.mark.parametrize("name", ["sysctl:vm.swappiness=10", "sysctl:vm.swappiness=20"])
def test_a_value_of_somebody_else_stays_whichever_arm_is_placed(name: str, host: Host, tmp_path: Path) -> None:
    """Also where the arm sets another value than its transaction announced."""
    store, live = Store(str(tmp_path / "state")), tmp_path / "tree/proc/sys/vm/swappiness"
    arms, _ = plan_offers(host, name_candidates(["sysctl:vm.swappiness=10", "sysctl:vm.swappiness=20"], host).offers,
                          scan(host), store, LOAD)  # fmt: skip
    with pytest.raises(NotRestoredError) as caught:
        modify_during(CandidateSwitch(host, arms, store), store, name, live)
    assert [what for what, _ in caught.value.items] == ["sysctl:vm.swappiness"]
    assert live.read_text() == "40000\n"


@pytest.mark.parametrize("name", ["sysctl:vm.swappiness=10", "sysctl:vm.swappiness=20"])
def test_a_variant_is_restored_where_another_value_was_modified(name: str, host: Host, tmp_path: Path) -> None:
    store, tree = Store(str(tmp_path / "state")), tmp_path / "tree/proc/sys"
    words = ["sysctl:vm.swappiness=10", "sysctl:vm.swappiness=20", "sysctl:kernel.pid_max=65536"]
    arms, _ = plan_offers(host, name_candidates(words, host).offers, scan(host), store, LOAD)
    with pytest.raises(NotRestoredError):
        modify_during(CandidateSwitch(host, arms, store), store, name, tree / "kernel/pid_max")
    assert (tree / "kernel/pid_max").read_text() == "40000\n"
    assert (tree / "vm/swappiness").read_text().strip() == "60"


LAW = """#!/bin/sh
# Slower or faster by a law of vm.swappiness, without noise but for the number of the run.
read -r value < {live}
echo x >> {live}.log
number=$(wc -l < {live}.log)
case $value in 10) rate=1200 ;; *) rate=1000 ;; esac
echo "rate: $((rate + number % 7))"
"""


def test_a_confirmed_winner_is_kept_as_a_transaction_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_tree(calm_tree(tmp_path / "calm"), {**TREE, "/etc/sysctl.d/.keep": ""})
    host, live, store = host_of(tree), tree / "proc/sys/vm/swappiness", Store(str(tmp_path / "state"))
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    benchmark = tmp_path / "law"
    benchmark.write_text(LAW.format(live=live))
    benchmark.chmod(0o755)
    command = known(choose_command(str(benchmark), ["regex:rate: ([0-9]+)"], as_user=getpass.getuser()))
    named = name_candidates(["sysctl:vm.swappiness=10", "sysctl:vm.swappiness=20"], host)
    said: list[str] = []
    options = TuneOptions(budget_seconds=600, seed=1, keep_if_gain=True)
    found = tune(host, named, RaceLoad(host, process=command), options, progress=silent, say=said.append, store=store)
    assert (found.verdict, found.winner.name if found.winner else None) == ("gain", "sysctl:vm.swappiness=10")
    # nothing is kept by the search itself
    assert live.read_text().strip() == "60"
    kept = keep_winner(host, found, named, store=store)
    assert kept.kept
    assert live.read_text().strip() == "10"
    assert any("10" in path.read_text() for path in (tree / "etc/sysctl.d").glob("*.conf"))
    text = tuned_text(kept, width=80, color=False)
    assert "confirmed on fresh data" in text
    assert ", applied" in text.replace("\n ", "")
    assert "advisor apply" not in text


STOP = """
if [ ! -e {live}.stopped ] && grep -q '"registration":{{' {state}/searches/*.json; then
    echo x >> {live}.late
    [ "$(wc -l < {live}.late)" -lt 8 ] || {{ touch {live}.stopped; kill -TERM $PPID; sleep 1; }}
fi
"""


@pytest.mark.thorough
def test_a_confirmation_that_was_started_twice_is_indicative_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(make_tree(calm_tree(tmp_path / "calm"), TREE))
    live, state = tmp_path / "calm/proc/sys/vm/swappiness", tmp_path / "state"
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(state))
    benchmark, store = tmp_path / "law", Store(str(state))
    benchmark.write_text(LAW.format(live=live) + STOP.format(live=live, state=state))
    benchmark.chmod(0o755)
    command = known(choose_command(str(benchmark), ["regex:rate: ([0-9]+)"], as_user=getpass.getuser()))
    named = name_candidates(["sysctl:vm.swappiness=10", "sysctl:vm.swappiness=20"], host)
    options = TuneOptions(budget_seconds=600, seed=1, keep_if_gain=True)
    with pytest.raises(StoppedError, match="stopped by SIGTERM"):
        tune(host, named, RaceLoad(host, process=command), options, progress=silent, say=lambda _: None, store=store)
    # nobody sees the figures of the first
    assert not list(results_directory().glob("*"))
    (session,) = (load_session(store, one.stem) for one in (state / "searches").glob("*.json"))
    found = tune(
        host,
        named,
        RaceLoad(host, process=command),
        options,
        resumed=session,
        progress=silent,
        say=lambda _: None,
        store=store,
    )
    assert (found.verdict, found.is_gain) == ("indicative", False)
    assert "the confirmation was started 2 times; the level holds for one" in found.reasons
    assert reanalyse_proof(known(found.confirmation).saved_to or "").verdict == "indicative"
    assert not keep_winner(host, found, named, store=store).kept
    assert live.read_text().strip() == "60"
    _spoil(state, session.id, store)


def _spoil(state: Path, identity: str, store: Store) -> None:
    """Whatever a damaged session holds, it is invalid input that names the file."""
    place = state / "searches" / f"{identity}.json"
    whole = json.loads(place.read_text())
    block = whole["blocks"][0]
    for change, words in (
        ({"blocks": [{**block, "runs": block["runs"][1:]}]}, "block 0 has not each of its arms once"),
        ({"blocks": [{**block, "dropped": [0]}]}, "an arm is dropped that it has not"),
        ({"blocks": [{**block, "runs": [{**one, "measures": {"x": 1}} for one in block["runs"]]}]}, "without a figure"),
        ({"command": {**whole["command"], "metrics": []}}, "without words or metrics"),
        ({"candidates": [{**one, "words": []} for one in whole["candidates"]]}, "without words"),
        ({"candidates": whole["candidates"][1:]}, "its arms are not its candidates"),
        ({"candidates": []}, "it has no arms"),
        ({"arms": []}, "it has no arms"),
        ({"blocks_planned": 0}, "its number of blocks"),
        ({"command": None}, "without words or metrics"),
        ({"ablation": {"kept": [], "dropped": ["sysctl:vm.swappiness"]}}, "values of the winner that it has not"),
        ({"winner": 99}, "a winner that is no arm"),
        ({"started": "yesterday"}, "its start is no time"),
        ({"id": "20200101-000000"}, "its id is another"),
    ):
        place.write_text(json.dumps({**whole, **change}))
        with pytest.raises(InvalidInputError, match=f"{identity}.json: not a search: .*{words}"):
            load_session(store, identity)
    place.write_text(json.dumps(whole))
    session = load_session(store, identity)
    gone = msgspec.structs.replace(
        session, command=msgspec.structs.replace(known(session.command), user="no-such-user")
    )
    with pytest.raises(UsageError, match="there is no such user"):
        repeat_load(gone)
    two = msgspec.structs.replace(session.candidates[0], words=("socket-buffers-8m", "sysctl:vm.swappiness=1"))
    with pytest.raises(InvalidInputError, match=f"{identity}.json: .*expected the words of one candidate"):
        name_recorded(msgspec.structs.replace(session, candidates=(two,)))
