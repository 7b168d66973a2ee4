"""The script against ``advisor apply``: the same tree, the same journal, the same answers, under every shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from advisor.errors import BusyError, RefusedError
from advisor.exporters.apply_script import transaction_script
from advisor.host import RunCommand
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget, Skipped
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import decode_journal
from advisor.transaction.layers import ownership_of
from advisor.transaction.rollback import roll_back
from advisor.transaction.status import rollback_transactions, verify_transactions
from tests.cases import read_cases
from tests.exporters.apply_script.stage import SHELLS, Stage, answer_of, reported
from tests.transaction import system
from tests.trees import listing, make_command
from tests.waiting import until, until_unwatched

AT_ONCE = ("apply", "--confirm-within", "0")
shells = pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@shells
def test_it_ends_as_apply_ends(tmp_path: Path, shell: list[str]) -> None:
    ours, theirs = Stage(tmp_path / "ours"), Stage(tmp_path / "theirs")
    with theirs.store.hold_lock():
        wanted = apply_plan(theirs.host, theirs.plan, theirs.store)
    done = ours.call(*AT_ONCE, under=shell)
    assert (done.code, done.state, done.last["id"]) == (0, "applied", "0001"), done
    assert ours.listing() == theirs.listing()
    assert reported(ours.record()) == {**reported(wanted), "plan": ours.plan}
    # In a tree, Python starts no watchdog and has no script of one.
    assert listing(ours.transaction).keys() - {"watch.sh", "watch.data"} == listing(theirs.transaction).keys()
    modes = {name: mode for name, (_, mode, _) in listing(ours.where / "state").items()}
    for name in ("watch.sh", "watch.data"):
        modes.pop(f"transactions/0001/{name}")
    assert modes == {name: mode for name, (_, mode, _) in listing(theirs.where / "state").items()}
    assert verify_transactions(ours.host, None, ours.store).is_as_set


def test_journal_and_rollback_script_are_those_of_apply_to_the_byte(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.call(*AT_ONCE)
    both = [(stage.transaction / name).read_bytes() for name in ("rollback.sh", "rollback.data")]
    entries = decode_journal((stage.transaction / "journal").read_bytes(), "journal")
    (tmp_path / "state").rename(tmp_path / "first")
    rollback_of_first = subprocess.run(
        ["dash", tmp_path / "first/transactions/0001/rollback.sh", "--root", stage.root, "--reload"],
        env=stage.environment(), capture_output=True, check=True,
    )  # fmt: skip
    assert b"everything is as it was" in rollback_of_first.stdout
    with stage.store.hold_lock():
        apply_plan(stage.host, stage.plan, stage.store)
    assert [(stage.transaction / name).read_bytes() for name in ("rollback.sh", "rollback.data")] == both
    theirs = decode_journal((stage.transaction / "journal").read_bytes(), "journal")
    for one, other in zip(entries, theirs, strict=True):
        assert type(one) is type(other)
        for name in ("plan", "boot_id", "version", "bystanders", "what", "live"):
            assert getattr(one, name, None) == getattr(other, name, None)


@pytest.mark.repeats(1)
@shells
def test_its_help_is_its_own_alone(tmp_path: Path, shell: list[str]) -> None:
    """It carries the rollback script and the watchdog, which have a help of their own."""
    stage = Stage(tmp_path)
    done = subprocess.run([*shell, str(stage.script), "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: sh SCRIPT check | apply")
    assert done.stdout.lower().count("exit code") == 1, done.stdout
    assert "--journal" not in done.stdout


@pytest.mark.repeats(1)
@shells
def test_check_changes_nothing_and_says_that_it_is_ready(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    before = listing(tmp_path)
    done = stage.call("check", under=shell)
    assert (done.code, done.state) == (0, "ready"), done
    assert listing(tmp_path) == before


@pytest.mark.repeats(1)
@shells
def test_rollback_leaves_every_byte_and_the_journal_says_so(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    stage.call(*AT_ONCE, under=shell)
    done = stage.call("rollback", under=shell)
    assert (done.code, done.state) == (0, "rolled-back"), done
    assert stage.listing() == before
    record = stage.record()
    assert (record.state, record.kept, record.why_undone) == ("rolled-back", (), "asked for")
    assert stage.is_closed()
    again = stage.call("rollback", under=shell)
    assert (again.code, again.state) == (3, "rolled-back")
    assert again.last["message"] == "nothing to do: transaction 0001 is already rolled back"
    assert stage.listing() == before


def test_check_prints_each_item_that_was_modified(stage: Stage) -> None:
    changes = [one for one in stage.plan.changes if one.tunable.startswith("sysctl:")][:2]
    assert len(changes) == 2
    for change in changes:
        (stage.root / f"proc/sys/{change.tunable.removeprefix('sysctl:').replace('.', '/')}").write_text("12345\n")
    done = stage.call("check")
    assert (done.code, done.state) == (3, "refused")
    for change in changes:
        assert f"changed   {change.tunable}: expected {change.before}, found 12345" in done.said


def test_a_program_that_only_reloads_is_needed_where_something_is_reloaded(stage: Stage) -> None:
    step = RunCommand(("no-such-reload",))
    files = tuple(msgspec.structs.replace(one, reload=(step,)) for one in stage.plan.files)
    assert files
    again = Stage(stage.where / "again", plan=msgspec.structs.replace(stage.plan, files=files))
    done = again.call("check")
    assert (done.code, done.last["message"]) == (3, "no-such-reload: no such command here")
    words = [word for word in again.words("check") if word != "--reload"]
    bare = subprocess.run(words, capture_output=True, env=again.environment(), cwd="/", check=False)
    assert answer_of(bare.returncode, bare.stdout, bare.stderr).state == "ready"


def test_advisor_puts_back_what_the_script_applied(stage: Stage) -> None:
    before = stage.listing()
    stage.call(*AT_ONCE)
    ((record, outcomes),) = rollback_transactions(stage.host, None, everything=False, force=False, store=stage.store)
    assert {one.state for one in outcomes} <= {"restored", "already"}, outcomes
    assert stage.listing() == before
    assert stage.store.find_record(record.id).state == "rolled-back"


def test_the_script_puts_back_what_advisor_applied(stage: Stage) -> None:
    before = stage.listing()
    with stage.store.hold_lock():
        apply_plan(stage.host, stage.plan, stage.store)
    assert stage.call("verify").state == "applied"
    assert stage.call("rollback").code == 0
    assert stage.listing() == before
    assert stage.record().state == "rolled-back"


@pytest.mark.repeats(1)
@shells
def test_a_second_apply_changes_nothing(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    stage.call(*AT_ONCE, under=shell)
    until_unwatched(stage.store)
    before = listing(tmp_path)
    for verb in ("check", "apply"):
        done = stage.call(verb, under=shell)
        assert (done.code, done.state, done.last["id"]) == (0, "unchanged", None), done.last
    after = {name: one for name, one in listing(tmp_path).items() if name != "state/lock"}
    assert after == {name: one for name, one in before.items() if name != "state/lock"}


@pytest.mark.parametrize("verb", ["check", "apply", "verify", "rollback", "confirm", "status"])
def test_another_host_is_refused(stage: Stage, verb: str) -> None:
    (stage.root / "etc/machine-id").write_text("e" * 32 + "\n")
    before = listing(stage.where)
    done = stage.call(verb)
    assert (done.code, done.state) == (3, "refused")
    assert "another host" in done.last["message"]
    assert listing(stage.where) == before


def test_without_a_machine_id_the_name_tells_the_host(stage: Stage) -> None:
    plan = msgspec.structs.replace(stage.plan, machine_id=None)
    stage.script.write_text(transaction_script(plan, machine_id=None, hostname="node1"))
    name = stage.root / "proc/sys/kernel/hostname"
    name.write_text("node2\n")
    assert stage.call("check").last["message"] == "made for another host (expected node1, found node2)"
    name.write_text("node1\n")
    assert stage.call("check").state == "ready"
    with pytest.raises(RefusedError, match="neither machine-id nor name"):
        transaction_script(plan, machine_id=None, hostname=None)


DATA = read_cases(__file__)


@pytest.mark.parametrize(("path", "content", "item", "said"), DATA["what_has_changed_since_the_plan"])
@pytest.mark.parametrize("verb", ["apply", pytest.param("check", marks=pytest.mark.thorough)])
def test_what_has_changed_since_the_plan_is_refused_by_name(
    stage: Stage, verb: str, path: str, content: str, item: str, said: str
) -> None:
    (stage.root / path).write_text(content)
    before = stage.listing()
    done = stage.call(verb)
    assert (done.code, done.state) == (3, "refused")
    assert item in done.last["message"]
    assert said in done.last["message"]
    assert done.states()[item] == "changed"
    assert stage.listing() == before
    assert not stage.transaction.exists()


def test_while_advisor_works_the_script_is_refused_and_the_other_way_round(stage: Stage) -> None:
    with stage.store.hold_lock():
        for verb in ("check", "apply"):
            done = stage.call(verb)
            assert (done.code, done.state) == (3, "refused")
            assert f"process {os.getpid()}, since" in done.last["message"]
    assert stage.call("check").state == "ready"


def slow(stage: Stage) -> Path:
    """The transaction stops at the first value of LLT until the file that this gives is there."""
    gate = stage.where / "go"
    real = (stage.where / "bin/lltconfig").read_text().replace("#!/bin/sh\n", "")
    wait = f'case "$2" in highwater:*) touch {stage.where}/waits; until [ -e {gate} ]; do sleep 0.05; done ;; esac\n'
    make_command(stage.where / "bin", "lltconfig", wait + real)
    return gate


def until_there(path: Path) -> None:
    until(path.exists, f"{path}: waited in vain", pause=0.02)


@pytest.mark.repeats(1)
@shells
def test_of_two_at_once_one_is_refused(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    gate = slow(stage)
    first = stage.start(*AT_ONCE, under=shell)
    until_there(tmp_path / "waits")
    for verb in ("apply", "check", "rollback"):
        done = stage.call(verb, under=shell)
        assert (done.code, done.state) == (3, "refused")
        assert f"process {first.pid}, since" in done.last["message"]
    with pytest.raises(BusyError, match=f"process {first.pid}"), stage.store.hold_lock():
        pass
    gate.touch()
    first.communicate(timeout=60)
    assert first.returncode == 0


@pytest.mark.repeats(2)
@pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_signal_puts_everything_back(tmp_path: Path, name: str, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    gate = slow(stage)
    process = stage.start(*AT_ONCE, under=shell)
    until_there(tmp_path / "waits")
    subprocess.run(["kill", f"-{name}", str(process.pid)], check=True)
    gate.touch()
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"interrupted by SIG{name}" in said.decode()
    assert stage.listing() == before
    assert (stage.record().state, stage.is_closed()) == ("rolled-back", True)


@pytest.mark.repeats(5)
@pytest.mark.parametrize("index", range(len(system.TARGETS) - 1))
@pytest.mark.parametrize("kind", ["refused", "clamped"])
def test_a_value_that_is_refused_or_clamped_takes_all_back(tmp_path: Path, index: int, kind: str) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    tunable, after = system.TARGETS[index][0], stage.plan.changes[index].after
    text = "cat: write error: Invalid argument" if kind == "refused" else ""
    # What writes into an attribute is a cat, and into LLT its own program.
    if tunable.startswith("llt:"):
        real = (tmp_path / "bin/lltconfig").read_text().replace("#!/bin/sh\n", "")
        word = f"{tunable.partition(':')[2]}:{after}"
        make_command(tmp_path / "bin", "lltconfig", f'[ "$2" != "{word}" ] || {_end(kind, text)}\n{real}')
    else:
        # A kernel that refuses a value keeps the one that it has.
        keeps = f"echo '{stage.plan.changes[index].before}'; " if kind == "refused" else ""
        body = f'text=$(/bin/cat "$@"; echo x); [ "${{text%?x}}" != "{after}" ] || {{ {keeps}{_end(kind, text)}; }}\n'
        make_command(tmp_path / "bin", "cat", body + 'printf %s "${text%x}"')
    done = stage.call(*AT_ONCE, under=["dash"])
    assert (done.code, done.state) == (4, "rolled-back"), done
    assert tunable in done.last["message"] or tunable in done.said, done
    if kind == "refused":
        assert "Invalid argument" in done.last["message"]
    assert stage.listing() == before
    assert (stage.record().state, stage.is_closed()) == ("rolled-back", True)


def _end(kind: str, text: str) -> str:
    return f"{{ echo '{text}' >&2; exit 1; }}" if kind == "refused" else "{ echo 7; exit 0; }"


@pytest.mark.repeats(1)
@shells
def test_what_somebody_else_set_since_is_told_and_kept(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    stage.call(*AT_ONCE, under=shell)
    (stage.root / "proc/sys/net/core/rmem_max").write_text("777\n")
    (stage.root / "etc/llttab").write_text("theirs\n")
    drifted = stage.call("verify", under=shell)
    assert (drifted.code, drifted.state) == (1, "drifted")
    reported_of = {name for name, state in drifted.states().items() if state == "drifted"}
    assert reported_of == {"sysctl:net.core.rmem_max", "/etc/llttab"}
    done = stage.call("rollback", under=shell)
    assert (done.code, done.state) == (5, "kept-external")
    assert {name for name, state in done.states().items() if state == "kept"} == reported_of
    assert stage.record().state == "kept-external"
    assert dict(stage.record().kept)["sysctl:net.core.rmem_max"] == "kept: modified externally (777)"
    assert {name for name, _ in stage.record().kept} == reported_of
    forced = stage.call("rollback", "--force", under=shell)
    assert (forced.code, forced.state) == (0, "rolled-back")
    assert stage.listing() == before


def test_verify_says_the_same_as_advisor(stage: Stage) -> None:
    stage.call(*AT_ONCE)
    with (stage.root / "etc/llttab").open("a") as llttab:
        llttab.write("include 0-1\n")
    assert verify_transactions(stage.host, None, stage.store).is_as_set
    assert stage.call("verify").code == 0, "lines that others add are no drift"
    with (stage.root / "etc/llttab").open("a") as llttab:
        llttab.write("set-flow highwater:5\n")
    assert not verify_transactions(stage.host, None, stage.store).is_as_set
    assert stage.call("verify").states()["/etc/llttab"] == "drifted"
    (stage.root / "run/llt").write_text("")
    done = stage.call("verify")
    assert (done.code, done.states()["llt:highwater"]) == (1, "unknown")
    (stage.root / "etc/systemd/network/10-advisor-eth1.link").unlink()
    assert stage.call("verify").states()["/etc/systemd/network/10-advisor-eth1.link"] == "drifted"


@pytest.mark.repeats(1)
@shells
def test_without_confirmation_it_goes_back_and_with_it_it_stays(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    waits = stage.call("apply", "--confirm-within", "1", under=shell)
    assert (waits.code, waits.state, waits.last["deadline"]) == (0, "awaiting-confirmation", 1)
    assert stage.record().state in ("awaiting-confirmation", "rolling-back", "rolled-back")
    until_there(stage.transaction / "outcome")
    assert stage.listing() == before
    assert (stage.record().state, stage.record().by_watchdog) == ("rolled-back", True)
    late = stage.call("confirm", under=shell)
    assert (late.code, late.state) == (3, "refused")
    assert stage.call("rollback", under=shell).code == 0
    assert (stage.record().state, stage.record().by_watchdog) == ("rolled-back", False)
    stage.call("apply", "--confirm-within", "600", under=shell)
    refused = stage.call("apply", under=shell)
    assert refused.code == 3
    assert "transaction 0002: awaiting confirmation" in refused.last["message"]
    assert stage.call("status", under=shell).state == "awaiting-confirmation"
    kept = stage.call("confirm", under=shell)
    assert (kept.code, kept.state, kept.last["id"]) == (0, "applied", "0002")
    assert stage.record().confirmed is not None
    assert stage.call("verify", under=shell).code == 0


def test_a_state_directory_that_others_can_write_to_is_refused(stage: Stage) -> None:
    for place in (stage.where / "state", stage.where / "state/transactions"):
        place.mkdir()
        place.chmod(0o770)
        done = stage.call("apply")
        assert (done.code, done.last["message"]) == (3, f"{place}: not a directory that only its owner can write to")
        place.chmod(0o700)


def test_a_lock_that_is_no_file_is_refused(stage: Stage) -> None:
    (stage.where / "state/transactions").mkdir(parents=True)
    (stage.where / "state").chmod(0o700)
    (stage.where / "state/transactions").chmod(0o700)
    (stage.where / "state/lock").symlink_to("/etc/passwd")
    assert "not a regular file" in stage.call("apply").last["message"]


def test_a_command_that_is_missing_is_named(stage: Stage) -> None:
    for name in ("flock", "lltconfig"):
        bare = stage.where / f"without-{name}"
        bare.mkdir()
        for directory in (stage.where / "bin", Path("/usr/bin"), Path("/bin"), Path("/usr/sbin"), Path("/sbin")):
            for program in directory.iterdir():
                if program.name != name and not (bare / program.name).exists():
                    (bare / program.name).symlink_to(program)
        done = stage.call("check", more={"PATH": str(bare)})
        assert (done.code, done.last["message"]) == (3, f"{name}: no such command here")


@pytest.mark.parametrize(
    "words",
    DATA["a_call_that_is_wrong_is_told"],
)  # fmt: skip
def test_a_call_that_is_wrong_is_told(stage: Stage, words: tuple[str, ...]) -> None:
    process = subprocess.run(["dash", stage.script, *words], capture_output=True, check=False)
    assert process.returncode == 2
    assert b'"code":2' in process.stdout.splitlines()[-1]


@pytest.mark.repeats(1)
@shells
def test_a_later_transaction_that_changed_the_same_goes_first(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    stage.call(*AT_ONCE, under=shell)
    (stage.root / "proc/sys/net/core/rmem_max").write_text("1000\n")
    made = system.plan_of(stage.host, [0])
    (change,) = made.changes
    # Of another profile: the same one, applied again, would hold what this one holds.
    made = replace(made, profiles=("other",), changes=(replace(change, profile="other"),))
    with stage.store.hold_lock():
        later = apply_plan(stage.host, made, stage.store)
    before = listing(stage.where)
    done = stage.call("rollback", under=shell)
    assert (done.code, done.state) == (3, "refused")
    name, file = "sysctl:net.core.rmem_max", "/etc/sysctl.d/90-advisor-test.conf"
    assert done.states() == {name: "held"}, "the file says already what the later one wants"
    assert done.last["message"] == (
        f"the later transaction {later.id} holds {name}: roll back {later.id} first, each by the tool that applied it; "
        "or run advisor rollback 0001, which skips these items"
    )
    assert f"{name}: held by the later transaction {later.id}" in done.said
    assert {**listing(stage.where), "state/lock": ()} == {**before, "state/lock": ()}
    assert file in stage.record().plan.changes[0].persist  # type: ignore[operator]
    with stage.store.hold_lock():
        roll_back(stage.host, later, stage.store)
    assert stage.call("rollback", under=shell).code == 5, "the value that somebody else has set"


def test_a_later_transaction_that_counts_on_a_value_goes_first(stage: Stage) -> None:
    """It changes nothing, as the value is there, and holds it all the same."""
    stage.call(*AT_ONCE)
    host, store = stage.host, stage.store
    target = PlanTarget("sysctl:net.core.rmem_max", "8388608", "exactly", "why", "hurts", ("s",), "other")
    held = ownership_of(store.read_records())
    made = make_plan(
        ("other",), (target,), (), observe_targets(host, [target], {}, held), system.bare_facts(), held=held
    )
    assert [one.tunable for one in made.claims] == ["sysctl:net.core.rmem_max"]
    with store.hold_lock():
        apply_plan(host, made, store)
    done = stage.call("rollback")
    assert (done.code, done.states()) == (3, {"sysctl:net.core.rmem_max": "held"}), done
    with store.hold_lock():
        assert all(one.is_back for one in roll_back(host, store.find_record("1"), store)), "as the message says"
    assert (stage.root / "proc/sys/net/core/rmem_max").read_text() == "8388608\n"


def test_a_plan_that_cannot_be_applied_has_no_script(stage: Stage) -> None:
    nothing = msgspec.structs.replace(stage.plan, changes=(), files=())
    with pytest.raises(RefusedError, match="nothing is to be changed"):
        transaction_script(nothing, machine_id="x", hostname=None)
    stands = Skipped("a:b", None, None, "is blocked here", "blocked", "p")
    with pytest.raises(RefusedError, match="is blocked here"):
        transaction_script(msgspec.structs.replace(stage.plan, skipped=(stands,)), machine_id="x", hostname=None)


@pytest.mark.parametrize(
    "only",
    [[0], list(range(8)), *(pytest.param([one], marks=pytest.mark.thorough) for one in range(1, len(system.TARGETS)))],
)
def test_the_script_is_clean_under_shellcheck(tmp_path: Path, only: list[int]) -> None:
    host = system.build(tmp_path)
    script = tmp_path / "apply.sh"
    script.write_text(transaction_script(system.plan_of(host, only), machine_id=system.MACHINE, hostname="h"))
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, "--shell=sh", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.repeats(1)
@shells
def test_it_can_be_read_from_standard_input(stage: Stage, shell: list[str]) -> None:
    words = [*shell, "-s", *AT_ONCE, "--root", str(stage.root), "--reload"]
    done = subprocess.run(
        words, input=stage.script.read_bytes(), capture_output=True, env=stage.environment(), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.record().state == "applied"


def test_a_rollback_script_that_cannot_be_written_whole_means_that_nothing_is_changed(stage: Stage) -> None:
    half = 'text=$(/bin/cat "$@"; echo x)\ncase $text in *"Restores the values that"*) echo half; exit 1 ;; esac\n'
    make_command(stage.where / "bin", "cat", half + 'printf %s "${text%x}"')
    before = stage.listing()
    done = stage.call(*AT_ONCE, under=["dash"])
    assert (done.code, done.state) == (3, "refused"), done
    assert stage.listing() == before
    assert not stage.transaction.exists()


@pytest.mark.repeats(1)
@shells
def test_the_number_of_a_transaction_is_the_next_one(tmp_path: Path, shell: list[str]) -> None:
    """0011 is no octal number, as which the awk of busybox would read it."""
    stage = Stage(tmp_path)
    (tmp_path / "state/transactions/0011").mkdir(parents=True, mode=0o700)
    done = stage.call("apply", "--confirm-within", "0", under=shell)
    assert (done.code, done.last["id"]) == (0, "0012"), done
    assert sorted(one.name for one in (tmp_path / "state/transactions").iterdir()) == ["0011", "0012"]


def test_without_a_state_directory_the_journal_of_a_tree_is_in_the_tree(stage: Stage) -> None:
    """The running host's own journal would hold, and roll back on the host, what was done to a tree."""
    environment = {"PATH": stage.environment()["PATH"]}
    for verb, state in ((AT_ONCE, "applied"), (("status",), "applied"), (("rollback",), "rolled-back")):
        done = subprocess.run(
            stage.words(*verb), env=environment, cwd="/", capture_output=True, timeout=60, check=False
        )
        assert answer_of(done.returncode, done.stdout, done.stderr).state == state
        assert (stage.root / "var/lib/advisor/transactions/0001/journal").exists()
