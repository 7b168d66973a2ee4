"""The data that Python and the shell scripts share: files of a transaction, its states, the unit for the next boot."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.shell import state_table
from advisor.transaction.journal import (
    Applied,
    Awaiting,
    Begun,
    Confirmed,
    Doing,
    Done,
    Entry,
    Left,
    Undoing,
    Undone,
    decode_journal,
    encode_entry,
)
from advisor.transaction.watchdog import Watchdog
from tests.exporters.apply_script.stage import Stage
from tests.transaction import system

WHAT = "sysctl:net.core.rmem_max"
STEP = (Doing(WHAT), Done(WHAT, "8388608"))
ENDINGS: dict[str, tuple[Entry, ...]] = {
    "begun": (),
    "doing": STEP[:1],
    "done": STEP,
    "left": (Doing(WHAT), Left(WHAT, "the kernel manages it")),
    "applied": (*STEP, Applied(2.0, {})),
    "awaiting": (*STEP, Applied(2.0, {}), Awaiting(3.0, 60.0, None)),
    "confirmed": (*STEP, Applied(2.0, {}), Confirmed(4.0)),
    "undoing": (*STEP, Applied(2.0, {}), Undoing(5.0, "asked for")),
    "undone": (*STEP, Applied(2.0, {}), Undoing(5.0, "asked for"), Undone(6.0, ())),
    "undone in part": (*STEP, Applied(2.0, {}), Undoing(5.0, "asked for"), Undone(6.0, ((WHAT, "kept: 4096"),))),
    "undone but for a failure": (*STEP, Applied(2.0, {}), Undone(6.0, ((WHAT, "failed: EIO"),))),
    "undone, passed": (*STEP, Applied(2.0, {}), Undoing(5.0, "asked for"), Undone(6.0, (), ((WHAT, "0002"),))),
}
# The files of a running or ended transaction, with what they hold; BOOT and SIZE are known only then.
FILE_SETS: dict[str, dict[str, str]] = {
    "no file": {},
    "pending": {"pending": ""},
    "pending with deadline": {"pending": "", "deadline": "99999999999\n", "boot": "BOOT"},
    "deadline of an earlier boot": {"pending": "", "deadline": "99999999999\n", "boot": "another"},
    "taken": {"taken": ""},
    "reverting": {"reverting": ""},
    "outcome 0": {"outcome": "0 1700000000 asked for\nrestored  x\n"},
    "outcome 5": {"outcome": "5 1700000000 asked for\nfailed    x\n"},
    "note": {"put-back": "SIZE 1700000000\n"},
    "note and outcome 5": {"put-back": "SIZE 1700000000\n", "outcome": "5 1700000000 asked for\nfailed    x\n"},
    "note of a shorter journal": {"put-back": "7 1700000000\n"},
}


def applied(where: Path) -> tuple[Stage, Begun]:
    host = system.build(where)
    stage = Stage(where, lambda _: host, system.plan_of(host, (0,)))
    assert stage.call("apply", "--confirm-within", "0").code == 0
    path = stage.transaction / "journal"
    begun = decode_journal(path.read_bytes(), "journal")[0]
    assert isinstance(begun, Begun)
    return stage, begun


def lay_out(stage: Stage, entries: tuple[Entry, ...], files: dict[str, str]) -> None:
    """The only transaction: in a new directory, which no watchdog of an earlier one looks at."""
    kept = {name: (stage.transaction / name).read_bytes() for name in ("rollback.sh", "rollback.data")}
    for path in stage.transaction.parent.iterdir():
        shutil.rmtree(path)
    stage.transaction.mkdir(mode=0o700)
    for name, content in kept.items():
        (stage.transaction / name).write_bytes(content)
    journal = b"".join(map(encode_entry, entries))
    (stage.transaction / "journal").write_bytes(journal)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for name, text in files.items():
        (stage.transaction / name).write_text(text.replace("BOOT", boot).replace("SIZE", str(len(journal))))


def state_in_python(stage: Stage) -> str:
    records, damaged = stage.store.survey_records()
    if damaged:
        return "rolled-back" if damaged[0].by_script else "damaged"
    return records[0].state


@pytest.mark.parametrize(
    "ending",
    [
        *("doing", "applied", "undoing", "undone in part", "undone but for a failure", "undone, passed"),
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("begun", "done", "left", "awaiting", "undone")),
        pytest.param("confirmed", marks=pytest.mark.thorough),
    ],
)
def test_both_engines_read_the_same_state(tmp_path: Path, ending: str) -> None:
    stage, begun = applied(tmp_path)
    found = {}
    for held, files in FILE_SETS.items():
        lay_out(stage, (begun, *ENDINGS[ending]), files)
        found[held] = (state_in_python(stage), stage.call("status").state)
    assert {case: states for case, states in found.items() if states[0] != states[1]} == {}
    event = ending.partition(",")[0]
    partly: dict[str, state_table.State] = {"undone in part": "kept-external", "undone but for a failure": "unfinished"}
    state = partly.get(ending) or state_table.STATE_AFTER[event]
    assert found["no file"][0] == ("damaged" if state in state_table.CUT_OFF else state)


@pytest.mark.parametrize("state", state_table.ALLOWED)
def test_the_script_allows_what_the_table_allows(tmp_path: Path, state: state_table.State) -> None:
    histories = {
        "applying": ("doing", "pending"),
        "applied": ("applied", "no file"),
        "awaiting-confirmation": ("awaiting", "pending with deadline"),
        "rolling-back": ("undoing", "taken"),
        "rolled-back": ("undone", "no file"),
        "kept-external": ("undone in part", "no file"),
        "unfinished": ("undone but for a failure", "no file"),
    }
    stage, begun = applied(tmp_path)
    ending, held = histories[state]
    allowed = set()
    for verb in ("confirm", "verify", "apply", "rollback"):
        lay_out(stage, (begun, *ENDINGS[ending]), FILE_SETS[held])
        assert stage.call("status").state == state
        code = stage.call(*((verb, "--confirm-within", "0") if verb == "apply" else (verb,))).code
        if verb == "rollback":
            # Of what has been rolled back there is nothing to do.
            assert code == (3 if state == "rolled-back" else 0)
        elif code == 0:
            allowed.add(verb)
        Path(stage.root, "proc/sys/net/core/rmem_max").write_text("8388608\n")
    assert allowed == set(state_table.ALLOWED[state]) - {"rollback"}


@pytest.mark.parametrize("directory", ["/var/lib/advisor", "/srv/a b%c/ü-1", "/x/$HOME`id`\"'\\"])
def test_both_engines_write_the_same_boot_unit(tmp_path: Path, directory: str) -> None:
    stage, _ = applied(tmp_path)
    place = Path(directory, "transactions/0001")
    script = stage.script.read_text("utf-8", "surrogateescape")
    functions = re.findall(r"^(?:unit_word|boot_unit_text)\(\) \{\n.*?^\}\n", script, re.MULTILINE | re.DOTALL)
    assert len(functions) == 2
    call = "LC_ALL=C\nid=0001\nplace=$1\n" + "".join(functions) + "boot_unit_text\n"
    printed = subprocess.run(["sh", "-c", call, "sh", str(place)], capture_output=True, check=True).stdout.decode()
    assert printed == Watchdog(place, "unit").boot_unit_text()
    assert "After=sys-kernel-debug.mount\n" in printed
    assert "$" not in printed
