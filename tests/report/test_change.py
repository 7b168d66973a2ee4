from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host import DirectoryFiles, Host, LiveCommands, PutFile, WriteFile, observe
from advisor.planning.records import Change, FileChange, Plan, Skipped, SkipState
from advisor.report.documents import rollback_document, status_document, transaction_document, verify_document
from advisor.report.fix import step_command, steps_text
from advisor.report.layout import columns
from advisor.report.plan import plan_text
from advisor.report.terms import human_change
from advisor.report.transaction import applied_text, rollback_text, status_text, verify_text
from advisor.shell.state_table import State
from advisor.transaction.journal import Damaged, Record, Store
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Drift, Status, find_drift
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import SideEffect
from tests.golden import assert_golden
from tests.report import plans
from tests.report.pasted import lines_too_wide
from tests.rules import build

SGR = re.compile(r"\x1b\[\d+m")
EMPTY = Plan(("nothing",), None, (), (), (), (), ())


def change(name: str = "sysctl:vm.swappiness", before: str = "60", after: str = "10", **parts: object) -> Change:
    one = parse_tunable(name)
    record = Change(
        tunable=name,
        before=before,
        after=after,
        persist="/etc/sysctl.d/90-advisor-p.conf",
        persist_note=None,
        risk=one.risk,
        takes_effect=one.takes_effect,
        why="Because.",
        hurts_when="Sometimes.",
        sources=("sysctl(8)",),
        profile="p",
        probe=one.probe,
        steps=one.make_steps(after),
        undo=one.make_steps(before),
    )
    return build.replaced(record, parts)


def skipped(state: SkipState, name: str = "sysctl:vm.swappiness", reason: str = "for a reason") -> Skipped:
    return Skipped(name, "60", "10", reason, state, "p")


def plan(*changes: Change, **parts: object) -> Plan:
    return build.replaced(EMPTY, {"profiles": ("p",), "changes": changes, **parts})


def record(made: Plan, identity: str = "0007", state: State = "applied", **parts: object) -> Record:
    whole = Record(identity, made, state, 1_772_374_500.0, 1_772_374_501.5, "boot", (), {}, (), None)
    return build.replaced(whole, parts)


def at(width: int, made: Plan) -> str:
    return plan_text(made, width=width, color=False)


def words(text: str) -> str:
    """The text as one line, so that a phrase is found wherever it was wrapped."""
    return " ".join(text.split())


# -- plan ----------------------------------------------------------------------------------------------------------


DAMAGED = (
    Damaged("0001", "the journal is cut", "/srv/state/transactions/0001/rollback.sh", directory="/srv/state/0001"),
    Damaged("0002", "the journal is cut", None, directory="/srv/state/0002"),
    Damaged("0003", "the journal is cut", "/srv/x.sh", by_script=True, directory="/srv/state/0003"),
)


def printed(pages: Mapping[str, str]) -> str:
    return "\n".join(f"== {name}\n{text}" for name, text in pages.items())


def test_the_pages_of_plans(tmp_path: Path) -> None:
    wanted = "sysctl:vm.swappiness"
    bridge = SideEffect("link:br0:mtu", "1500", parse_tunable("link:br0:mtu").probe, ())
    states: tuple[SkipState, ...] = ("in-place", "not-applicable", "would-lower", "unknown", "overridden")
    blocked = skipped("blocked", "link:eth0:mtu", "its driver allows at most 1500")
    shared = ("llt:highwater", "llt:rporthighwater", "link:{link}:mtu")
    ours = FileChange(
        path="/etc/sysctl.d/90-advisor-p.conf",
        before=b"# ours\nvm.swappiness = 60\n",
        after=b"# ours\nvm.swappiness = 10\n",
        mode=0o644,
        uid=0,
        gid=0,
        mode_before=0o644,
        reload=(),
        tunables=(wanted,),
        edits=(),
    )
    made = {
        "one value": plan(
            change(why="The kernel prefers to drop file pages."),
            files=(ours,),
            skipped=(skipped("in-place", "sysctl:vm.dirty_ratio"),),
            notes=("memory budget: 20 TCP sockets",),
        ),
        "sockets": plans.sockets(tmp_path / "sockets"),
        "sockets, runtime only": plans.sockets(tmp_path / "runtime", runtime_only=True),
        "pinning": plans.pinning(tmp_path / "pinning"),
        "jumbo": plans.jumbo(tmp_path / "jumbo"),
        "lines without an end": plan(change(), files=(file_of(b"a\r\nb", b"a\nb\n"),)),
        "only the file": plan(change(before="10")),
        "every state": plan(change(), skipped=(*(skipped(state, reason=state) for state in states), blocked)),
        "fits nothing": plan(skipped=(skipped("not-applicable"),)),
        "nothing left": plan(skipped=(skipped("in-place"), skipped("would-lower", "sysctl:vm.dirty_ratio"))),
        "a shared reason": plan(
            skipped=tuple(skipped("not-applicable", name, "none" if "{" in name else "no LLT") for name in shared)
        ),
        "a side effect": plan(change("link:eth1:mtu", "1500", "9000"), side_effects=(bridge,)),
        "one risk of four": plan(
            *(change(f"sysctl:vm.a{letter}") for letter in "bcd"), change("sysctl:vm.ae", risk="link")
        ),
    }
    for operator in ("=", ">=", "<="):
        words = (f"{wanted}{operator}10",)
        made[f"asked for with {operator}"] = plan(change(wanted), words=words, profiles=("set-vm-swappiness",))
        for state in ("in-place", "would-lower", "blocked", "unknown"):
            made[f"{state}, asked for with {operator}"] = plan(skipped=(skipped(state, wanted),), words=words)
    pages = {name: at(80, one).replace(one.fingerprint[:12], "0" * 12) for name, one in made.items()}
    assert_golden("plan", printed(pages))
    assert made["sockets"].fingerprint[:12] in at(80, made["sockets"])
    named = ("sockets", "pinning", "jumbo", "every state", "fits nothing", "nothing left")
    new = msgspec.structs.replace(file_of(None, b"x\n"), uid=12, gid=34, new_directories=("/etc/a/b", "/etc/a"))
    steps = {name: steps_text(made[name]) for name in named}
    assert_golden("plan-steps", printed({**steps, "a new file": steps_text(plan(change(), files=(new,)))}))


def test_units_are_told_of_bytes_only() -> None:
    assert human_change("sysctl:net.core.netdev_max_backlog", "1000", "8388608") == ""
    assert human_change("sysctl:net.ipv4.tcp_rmem", "4096 131072", "4096 131072 8388608") == ""
    assert human_change("sysctl:net.core.rmem_max", "odd", "8388608") == ""


def file_of(before: bytes | None, after: bytes) -> FileChange:
    return FileChange("/etc/x", before, after, 0o600, 0, 0, None, (), (), ())


def test_running_text_stops_where_it_is_hard_to_read(tmp_path: Path) -> None:
    assert max(columns(line) for line in at(160, plans.pinning(tmp_path)).splitlines()[1:]) < 130


@pytest.mark.parametrize("made", [plans.sockets, plans.pinning, plans.jumbo])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_real_plans_keep_to_the_width(made: Callable[[Path], Plan], width: int, tmp_path: Path) -> None:
    assert lines_too_wide(at(width, made(tmp_path)), width) == []


def test_colour_changes_no_character_and_is_off_unless_wanted(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    colored = plan_text(made, width=80, color=True)
    assert "\x1b[" in colored
    assert "\x1b" not in at(80, made)
    assert SGR.sub("", colored) == at(80, made)


HOSTILE = st.text(alphabet=st.sampled_from("a7 \x1b[31m\n\t\u202e\udcff'\"$`;[bold]/"), min_size=1, max_size=30)


@settings(deadline=None)
@given(HOSTILE, st.integers(min_value=40, max_value=120), st.booleans())
def test_no_name_of_a_host_moves_the_cursor(name: str, width: int, color: bool) -> None:
    item = Skipped(f"link:{name}:mtu", name, name, name, "blocked", "p")
    file = file_of(None, name.encode("utf-8", "surrogateescape"))
    one = change(
        before=name,
        after=name[::-1],
        persist=None,
        persist_note=name,
        why=name,
        hurts_when=name,
        probe=parse_tunable("sysctl:vm.swappiness").probe,
        steps=(WriteFile(f"/proc/sys/{name}", name),),
    )
    made = plan(one, skipped=(item,) * 5, notes=(name,), files=(file,))
    kept = record(made, kept=((name, name),), why_undone=name, pending=name, state="applying")
    drift = (Drift("0007", name, name, name, name),)
    outcomes = (ItemOutcome(name, "failed", name, name), ItemOutcome(name, "restored", name))
    texts = (
        plan_text(made, width=width, color=color) if not_surrogate(name) else "",
        applied_text(kept, made, width=width, color=color) if not_surrogate(name) else "",
        status_text(Status((kept,), drift), width=width, color=color),
        verify_text(Status((record(made),), drift), width=width, color=color),
        rollback_text(((kept, outcomes),), width=width, color=color),
    )
    for text in texts:
        lines = (SGR.sub("", text) if color else text).split("\n")
        assert all(map(str.isprintable, lines))
        assert lines_too_wide("\n".join(lines), width) == []


def not_surrogate(name: str) -> bool:
    """The fingerprint of a plan is over its JSON, which carries no lone surrogates."""
    return "\udcff" not in name


# -- steps ---------------------------------------------------------------------------------------------------------


def run_sh(script: str, *arguments: str) -> str:
    done = subprocess.run(["sh", *arguments, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_steps_typed_by_hand_bring_about_what_the_plan_says(tmp_path: Path) -> None:
    made = plans.sockets(tmp_path)
    root = tmp_path / "host"
    script = re.sub(r"(?<= )/(proc|etc)/", rf"{root}/\1/", steps_text(made))
    run_sh(f"set -e\n{script}")
    host = Host(DirectoryFiles(str(root)), LiveCommands())
    assert [observe(host, one.probe) for one in made.changes] == [one.after for one in made.changes]
    assert [host.read_bytes(file.path) for file in made.files] == [file.after for file in made.files]


@pytest.mark.parametrize("made", [plans.sockets, plans.pinning, plans.jumbo])
def test_steps_are_a_shell_script(made: Callable[[Path], Plan], tmp_path: Path) -> None:
    run_sh(steps_text(made(tmp_path)), "-n")


CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(["EOF", "EOF0", "a 'b' $c `d`", "é", "# x", "\\n", "\x1b[2J", ""]), max_size=5).map(
        lambda lines: "".join(f"{line}\n" for line in lines).encode()
    ),
)


@settings(max_examples=60, deadline=None)
@given(CONTENTS)
def test_a_file_written_by_hand_is_the_same_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    place = tmp_path_factory.getbasetemp() / "by-hand"
    file = msgspec.structs.replace(file_of(None, content), path=str(place))
    text = steps_text(plan(change(steps=()), files=(file,)))
    run_sh(text)
    assert place.read_bytes() == content
    assert all(line.isprintable() for line in text.split("\n"))


VALUES = st.text(alphabet=st.sampled_from("a \x1b\x07\u202e\u00a0é'\"\\$`!*"), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_command_by_hand_is_visible_whole_and_means_the_same(value: str) -> None:
    command = step_command(WriteFile("/dev/stdout", value))
    assert command.isprintable()
    assert run_sh(command.partition(" > ")[0]) == f"{value}\n"


# -- apply, status, verify and rollback ------------------------------------------------------------------------------


def test_the_pages_of_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", "/srv/state")
    sockets, pinning = plans.sockets(tmp_path), plans.pinning(tmp_path / "pinning")
    bridge = SideEffect("link:br0:mtu", "1500", parse_tunable("link:br0:mtu").probe, ())
    bridged = plan(change("link:eth1:mtu", "1500", "9000"), side_effects=(bridge,))
    moved = {"link:br0:mtu": "9000", "link:gone:mtu": "1"}
    applied = {
        "sockets": (record(sockets), sockets),
        "pinning": (record(pinning), pinning),
        "a side effect": (record(bridged, side_effects_after=moved), bridged),
        "nothing to do": (None, plan(skipped=(skipped("in-place"),))),
    }
    pages = {name: applied_text(*given, width=80, color=False) for name, given in applied.items()}
    assert_golden("transaction-applied", printed(pages))

    one = plan(change())
    begun = record(one, "0005", "applying", ended=None, pending="sysctl:vm.swappiness")
    drift = (Drift("0001", "sysctl:vm.swappiness", "10", "60", "modified externally"),)
    many = (
        record(one, "0001", "applied"),
        *(record(one, f"{number:04d}", "rolled-back", why_undone="trial") for number in range(2, 10)),
        record(one, "0010", "awaiting-confirmation", seconds_left=42.0),
        record(one, "0011", "unfinished", why_undone="no space", kept=(("sysctl:vm.swappiness", "is 30"),)),
    )
    states = {
        "none": Status((), ()),
        "none, and the lock is held": Status((), (), lock_holder="process 4711"),
        "many": Status(many, drift),
        "interrupted": Status((record(one, "0004", why_undone="asked for"), begun), ()),
        "running": Status((msgspec.structs.replace(begun, process=4711),), ()),
        "running by the lock": Status((begun,), (), lock_holder="process 4711, since 2026-03-01 14:05:09"),
        "stopped": Status((begun,), (), stopped_holder=4711),
        "damaged": Status((), (), damaged=DAMAGED),
        "a time that no calendar has": Status((record(one, began=1e300, ended=float("nan")),), ()),
    }
    pages = {name: status_text(status, width=80, color=False) for name, status in states.items()}
    pages["many, all"] = status_text(states["many"], width=80, color=False, everything=True)
    monkeypatch.delenv("ADVISOR_STATE_DIR")
    pages["none in the usual place"] = status_text(Status((), ()), width=80, color=False)
    assert_golden("transaction-status", printed(pages))

    host = Host(DirectoryFiles(str(tmp_path / "host")), LiveCommands())
    for step in (step for changed in sockets.changes for step in changed.steps):
        host.do(step)
    for name, text in (("rmem_max", "4194304\n"), ("wmem_max", "212992\n")):
        (tmp_path / "host/proc/sys/net/core" / name).write_text(text)
    interrupts = [changed for changed in pinning.changes if changed.tunable.startswith("irq:")]
    irq_drift = tuple(Drift("0007", irq.tunable, irq.after, irq.before, "modified externally") for irq in interrupts)
    both = plan(change(), files=(file_of(None, b"x\n"),))
    verified = {
        "none": Status((), ()),
        "one value of two transactions": Status((record(both, "0001"), record(both, "0002")), ()),
        "drift": Status((record(sockets),), find_drift(host, (record(sockets),))),
        "drift of interrupts": Status((record(pinning),), irq_drift),
        "stopped": Status((begun,), (), stopped_holder=4711),
        "waiting": Status((record(one, state="awaiting-confirmation", seconds_left=42.4),), ()),
    }
    assert len(verified["drift"].drift) == 3
    pages = {name: verify_text(status, width=80, color=False) for name, status in verified.items()}
    assert_golden("transaction-verify", printed(pages))

    value, file = "sysctl:vm.swappiness", "/etc/x"
    theirs = ItemOutcome(value, "kept", "modified externally (30)", "printf '%s\\n' 60 > /proc/sys/vm/swappiness")
    failed = ItemOutcome(file, "failed", "No space left", "restore the earlier content of /etc/x (see the script)")
    unit = next(changed.tunable for changed in pinning.changes if changed.tunable.startswith("unit:"))
    force = "advisor rollback 0007 --force"
    outcomes: dict[str, tuple[Plan, tuple[ItemOutcome, ...]]] = {
        "everything": (one, (ItemOutcome(file, "restored", "removed"), ItemOutcome(value, "already", "is 60"))),
        "kept and failed": (one, (theirs, failed)),
        "kept and restored": (one, (theirs, ItemOutcome(file, "restored", "as it is"))),
        "kept and passed": (one, (theirs, ItemOutcome(file, "passed", "as it is"))),
        "kept and already": (one, (theirs, ItemOutcome(file, "already", "as it is"))),
        "one force": (one, tuple(ItemOutcome(name, "kept", "theirs", force) for name in (value, file))),
        "a service": (pinning, (ItemOutcome(unit, "restored", "as before"),)),
        "interrupts": (
            pinning,
            tuple(ItemOutcome(irq.tunable, "restored", f"{irq.after} → {irq.before}") for irq in interrupts),
        ),
    }
    pages = {
        name: rollback_text(((record(of), items),), width=80, color=False) for name, (of, items) in outcomes.items()
    }
    assert_golden("transaction-rollback", printed(pages))


def test_the_lock_says_who_holds_it(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    assert store.lock_holder() is None
    with store.hold_lock():
        assert f"process {os.getpid()}, since 20" in (store.lock_holder() or "")
    assert store.lock_holder() is None


# -- documents -----------------------------------------------------------------------------------------------------


def test_the_document_of_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", "/state")
    made = plans.sockets(tmp_path)
    document = msgspec.json.decode(msgspec.json.encode(transaction_document(record(made), made)))
    assert list(document)[:4] == ["schema", "id", "state", "deadline"]
    assert document["schema"] == "advisor.transaction/1"
    assert (document["id"], document["state"], document["deadline"]) == ("0007", "applied", None)
    assert document["rollback_script"] == "/state/transactions/0007/rollback.sh"
    assert document["fingerprint"] == made.fingerprint
    assert [one["tunable"] for one in document["changes"]] == [one.tunable for one in made.changes]
    assert {"files", "skipped", "notes", "profiles"} <= document.keys()
    assert document["dry_run"] is False


def test_the_document_of_a_dry_run_holds_every_command(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    document = transaction_document(None, made)
    assert (document["id"], document["state"], document["dry_run"]) == (None, "unchanged", True)
    commands = [command for step in document["steps"] for command in step["commands"]]  # type: ignore[attr-defined]
    assert commands[-1] == "systemctl daemon-reload"


def test_the_document_of_an_apply_with_nothing_to_do() -> None:
    document = transaction_document(None, plan(skipped=(skipped("in-place"),)))
    assert (document["id"], document["state"], document["dry_run"]) == (None, "unchanged", False)
    assert not document["changes"]


def test_the_other_documents() -> None:
    made = plan(change())
    drift = (Drift("0007", "sysctl:vm.swappiness", "10", "60", "is as before the transaction"),)
    status = Status((record(made),), drift)
    assert status_document(status)["schema"] == "advisor.status/1"
    assert status_document(status)["in_force"] == ["0007"]
    verified = verify_document(status)
    assert (verified["schema"], verified["ok"]) == ("advisor.verify/1", False)
    assert verified["drift"] == [msgspec.to_builtins(drift[0])]
    failed = ItemOutcome("sysctl:vm.swappiness", "failed", "EIO", "by hand")
    rolled = rollback_document(((record(made), (failed,)),))
    assert (rolled["schema"], rolled["ok"]) == ("advisor.rollback/1", False)
    assert rollback_document(())["ok"] is True
    assert verify_document(Status((), ()))["ok"] is True
    both = Status((record(made, "0000", "rolled-back"), record(made, "0001"), record(made, "0002")), ())
    assert verify_document(both)["values"] == 1
    assert msgspec.json.encode(status_document(Status((record(made, began=1e300, ended=float("nan")),), ())))
    waiting = record(made, state="awaiting-confirmation", seconds_left=42.4)
    awaiting = verify_document(Status((waiting,), ()))["awaiting_confirmation"]
    assert isinstance(awaiting, list)
    assert [(each["id"], each["seconds_left"]) for each in awaiting] == [("0007", 42)]


def test_steps_that_put_a_file_hold_no_words_of_a_rollback() -> None:
    assert "restore the earlier content" in step_command(PutFile("/etc/x", b"x"))
    assert "restore the earlier content" not in steps_text(plan(change(), files=(file_of(None, b"x\n"),)))
