"""The scripts of a transaction are the same text for each; the data that they read survive whatever names and values
hold, and are refused where they are not as they were written."""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.exporters.apply_script import transaction_script
from advisor.shell.quote import BIDI, escape_field, make_data, make_records, shell_quote
from advisor.shell.rollback_script import rollback_script, self_contained_script
from advisor.transaction.watchdog import watch_text
from tests.exporters.apply_script.stage import Stage
from tests.transaction import system
from tests.transaction.system import build, plan_of, roll_back_locked
from tests.transaction.test_script import SHELLS, applied_script, reload_stand_in, run_script
from tests.trees import listing
from tests.tunables.form_shell import functions

each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
fields = st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.text(
    "\\\n\t\r '\"$`-%L0n;|\x01\x81\u00e4\U0001f300", max_size=12
)
records = st.lists(st.lists(fields, min_size=1, max_size=6), min_size=1, max_size=6)
PRINT = '\nshow() { printf \'%s\\0\' "$#" "$@"; }\n'


def printed_fields(shell: list[str], listed: list[list[str]], link: str = "") -> list[str]:
    """What the script's reader gives a command for each record: the number of its fields, and each field."""
    lines = make_records(listed).decode("ascii").splitlines()
    calls = "\n".join(f"with_fields {shlex.quote(line)} show" for line in lines)
    script = f"LC_ALL=C; root=\n{functions()}{PRINT}named={shlex.quote(link)}\n{calls}\n"
    done = subprocess.run(
        [*shell, "-u"], input=script.encode("utf-8", "surrogateescape"), capture_output=True, check=True
    )
    assert done.stderr == b""
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@each_shell
def test_the_shell_reads_what_python_wrote(shell: list[str]) -> None:
    @settings(max_examples=40, deadline=None)
    @given(records)
    def check(listed: list[list[str]]) -> None:
        assert printed_fields(shell, listed) == [word for one in listed for word in (str(len(one)), *one)]

    check()
    hostile = [["-n", "--", "-e x\\c", "\udcff\udc81", "", "a\\L", "\\", "\n\n", "*", "~", "$(id)", ""]]
    assert printed_fields(shell, hostile) == ["12", *hostile[0]]


def test_the_apply_script_escapes_as_python_does(tmp_path: Path) -> None:
    text = Stage(tmp_path).script.read_text("utf-8", "surrogateescape")
    escape = re.search(r"^escape\(\) \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    assert escape is not None

    @settings(max_examples=25, deadline=None)
    @given(st.lists(fields, min_size=1, max_size=8))
    def check(listed: list[str]) -> None:
        calls = "\n".join(f"escape {shlex.quote(one)}; printf '%s\\n' \"$escaped\"" for one in listed)
        for shell in SHELLS:
            script = f"LC_ALL=C; export LC_ALL\n{escape[0]}{calls}\n".encode("utf-8", "surrogateescape")
            done = subprocess.run([*shell], input=script, capture_output=True, check=True)
            assert done.stdout.splitlines() == [escape_field(one) for one in listed]

    check()


def test_two_transactions_have_the_same_scripts(tmp_path: Path) -> None:
    first = applied_script(tmp_path / "a")
    second = applied_script(tmp_path / "b", system.plan_of(system.build(tmp_path / "b"), [2], runtime_only=True))
    stage = Stage(tmp_path / "c")
    stage.call("apply", "--confirm-within", "30")
    assert first.read_bytes() == second.read_bytes() == (stage.transaction / "rollback.sh").read_bytes()
    assert first.with_name("rollback.data").read_bytes() != second.with_name("rollback.data").read_bytes()
    assert (stage.transaction / "watch.sh").read_text() == watch_text()
    assert stage.call("rollback").code == 0
    assert (first.stat().st_mode & 0o777, first.with_name("rollback.data").stat().st_mode & 0o777) == (0o700, 0o600)


def without_end(data: bytes) -> bytes:
    return data[: data.rindex(b"end\t")]


def sealed(data: bytes, old: bytes, new: bytes) -> bytes:
    """Other data, with the right checksum."""
    changed = without_end(data).replace(old, new, 1)
    assert changed != without_end(data)
    return changed + f"end\t{hashlib.sha256(changed).hexdigest()} {len(changed)}\n".encode()


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "not there, or not of format 1"),
    "cut": (lambda data: data[: len(data) // 2], "truncated or altered"),
    "without its end": (without_end, "truncated or altered"),
    "a value": (lambda data: data.replace(b"212992", b"212993", 1), "truncated or altered"),
    "one record more": (lambda data: data + b"undo\trun\ttrue\n", "truncated or altered"),
    "the checksum": (lambda data: data[:-70] + b"0" * 8 + data[-62:], "truncated or altered"),
    "another format": (lambda data: sealed(data, b"advisor-rollback\t1", b"advisor-rollback\t2"), "not of format 1"),
    "of the watchdog": (lambda data: make_data("advisor-watch", b""), "not there, or not of format 1"),
    "an unknown record": (lambda data: sealed(data, b"plan\t", b"plane\t"), "plane: no such record"),
    "no numbers": (lambda data: sealed(data, b"group\t", b"group\t$(id) "), "group: not numbers"),
}


@each_shell
def test_data_that_are_not_as_they_were_written_are_refused(tmp_path: Path, shell: list[str]) -> None:
    script = applied_script(tmp_path)
    path = script.with_name("rollback.data")
    data = path.read_bytes()
    for name, (damaged, why) in DAMAGE.items():
        path.write_bytes(damaged(data))
        before = listing(tmp_path)
        done = run_script(script, tmp_path, "--force", shell=shell)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), (name, done.stderr)
        assert done.stderr.startswith(f"rollback: refused: {path}: "), name
        assert why in done.stderr, name
        assert done.stderr.endswith("; nothing was changed\n"), name
        assert listing(tmp_path) == before, name
    path.unlink()
    done = run_script(script, tmp_path, shell=shell)
    assert (done.returncode, "not there" in done.stderr, done.stderr.count("\n")) == (3, True, 1)
    path.write_bytes(data)
    assert "restored" in run_script(script, tmp_path, shell=shell).stdout


def test_advisor_restores_by_the_journal_where_the_data_are_gone(tmp_path: Path) -> None:
    host, store = system.build(tmp_path), system.store_of(tmp_path)
    before = listing(tmp_path / "root")
    applied_script(tmp_path).with_name("rollback.data").unlink()
    outcomes = roll_back_locked(host, store.find_record("0001"), store)
    reload_stand_in(tmp_path)
    assert {one.state for one in outcomes} == {"restored"}
    assert listing(tmp_path / "root") == before


@each_shell
def test_a_single_file_holds_the_same_data(tmp_path: Path, shell: list[str]) -> None:
    """As a file, and from standard input, where there is no place of its own to look for data."""
    system.build(tmp_path)
    before = listing(tmp_path / "root")
    script = applied_script(tmp_path)
    data = script.with_name("rollback.data").read_bytes()
    text = self_contained_script(data, ("it's\n\u00e4",), "f" * 64)
    assert text.splitlines()[1] == "# Restores the values that this host had before: it's \u00e4"
    assert text.splitlines()[2] == f"# Plan {'f' * 64}"
    script.with_name("rollback.data").unlink()
    path = f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
    words = [*shell, "-s", "--", "--root", str(tmp_path / "root")]
    done = subprocess.run(words, input=text.encode(), capture_output=True, env={"PATH": path}, check=False)
    assert b"restored " in done.stdout, done.stderr
    reload_stand_in(tmp_path)
    (tmp_path / "single.sh").write_text(text)
    assert run_script(tmp_path / "single.sh", tmp_path, shell=shell).returncode == 3
    assert listing(tmp_path / "root") == before


@each_shell
def test_the_watchdog_refuses_data_that_are_not_as_they_were_written(tmp_path: Path, shell: list[str]) -> None:
    for name in ("pending", "journal"):
        (tmp_path / name).write_text("")
    (tmp_path / "watch.sh").write_text(watch_text())
    (tmp_path / "watch.data").write_bytes(make_data("advisor-watch", make_records([("made", "/x")]))[:-3])
    (tmp_path / "rollback.sh").write_text(f"touch {tmp_path}/ran\n")
    watchdog = [*shell, str(tmp_path / "watch.sh"), "--boot"]
    before = listing(tmp_path)
    done = subprocess.run(watchdog, capture_output=True, text=True, check=False)
    assert (done.returncode, listing(tmp_path)) == (3, before)
    assert done.stderr == f"watch: refused: {tmp_path}/watch.data: truncated or altered; nothing was changed\n"


def test_no_script_turns_the_direction_of_its_text(tmp_path: Path) -> None:
    turned = "a\u202eb\u2066"
    made = plan_of(build(tmp_path), (0,))
    file = msgspec.structs.replace(made.files[0], after=f"# {turned}\n".encode(), path=f"/etc/{turned}.conf")
    made = msgspec.structs.replace(made, files=(file,), notes=(turned,))
    for text in (transaction_script(made, machine_id=None, hostname=turned), rollback_script(made)):
        assert not BIDI.search(text)
    assert (
        subprocess.run(["sh", "-c", f"printf %s {shell_quote(turned)}"], capture_output=True, check=True).stdout
        == turned.encode()
    )
