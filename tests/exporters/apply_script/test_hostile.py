"""Names, values and contents are data: nothing in them runs, and nothing of them reaches the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.host import Host, ReadFile, WriteFile
from advisor.planning.records import Change, FileChange, Plan
from tests.cases import read_cases
from tests.exporters.apply_script.stage import Stage
from tests.transaction import system
from tests.trees import listing

AT_ONCE = ("apply", "--confirm-within", "0")
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
DATA = read_cases(__file__)

NASTY = DATA["NASTY"]


def plan_with(host: Host, root: Path, name: str, before: str, after: str, content: bytes) -> Plan:
    """A plan with one value, and one file, of these names, values and contents."""
    plan = system.plan_of(host, [0])
    folder = "".join(one for one in name if one not in "/\n").strip(".")[:40] or "x"
    place = root / "proc/sys" / folder
    place.mkdir(parents=True)
    (place / "value").write_text(f"{before}\n")
    path = f"/proc/sys/{folder}/value"
    change = msgspec.structs.replace(
        plan.changes[0],
        tunable=f"sysctl:{name}",
        before=before,
        after=after,
        probe=ReadFile(path),
        steps=(WriteFile(path, after),),
        undo=(WriteFile(path, before),),
    )
    assert isinstance(change, Change)
    file = FileChange(f"/etc/-{folder}", None, content, 0o640, 0, 0, None, (), (), ())
    return msgspec.structs.replace(plan, changes=(change,), files=(file,), profiles=(name,))


def words(value: str) -> str:
    return " ".join(one for one in "".join(char if char.isprintable() else "?" for char in value).split() if one)


def carried_out(where: Path, name: str, value: str, content: bytes) -> Stage:
    host = system.build(where)
    before, after = words(value) or "1", f"{words(value)} 2".strip()
    plan = plan_with(host, where / "root", name, before, after, content)
    stage = Stage(where, lambda _: host, plan)
    was = listing(where / "root")
    done = stage.call(*AT_ONCE)
    assert (done.code, done.state) == (0, "applied"), done
    assert {one["what"] for one in done.last["items"]} == {plan.changes[0].tunable, plan.files[0].path}
    assert stage.record().plan == plan
    assert (where / "root" / plan.files[0].path.lstrip("/")).read_bytes() == content
    assert stage.call("verify").code == 0
    back = stage.call("rollback")
    assert (back.code, back.state) == (0, "rolled-back"), back
    assert listing(where / "root") == was
    for answer in (done, back):
        assert all(" " <= char <= "~" or char == "\n" for char in answer.said + answer.errors)
    assert not list(where.rglob("pwned"))
    assert not Path("/pwned").exists()
    return stage


@pytest.mark.parametrize("nasty", NASTY)
def test_nothing_in_a_name_or_a_value_runs(tmp_path: Path, nasty: str) -> None:
    carried_out(tmp_path, nasty, nasty, nasty.encode())


def test_a_script_of_nasty_words_is_clean_under_shellcheck(tmp_path: Path) -> None:
    host, words_of_all = system.build(tmp_path), "".join(one for one in NASTY if one.isprintable())
    plan = plan_with(host, tmp_path / "root", words_of_all, "1", f"2 {words_of_all}", words_of_all.encode())
    stage = Stage(tmp_path, lambda _: host, plan)
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, "--shell=sh", stage.script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=text, value=text, content=st.binary(max_size=60))
def test_any_name_value_and_content_come_and_go(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: str, content: bytes
) -> None:
    carried_out(tmp_path_factory.mktemp("any"), name, value, content)


def test_what_somebody_wrote_cannot_command_the_terminal(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    (stage.root / "proc/sys/net/core/rmem_max").write_text("7\x1b]0;owned\x07\n")
    done = stage.call("check")
    assert done.code == 3
    assert "found 7?]0;owned?" in done.last["message"]
    assert "\x1b" not in done.said + done.errors


@pytest.mark.repeats(1)
@pytest.mark.parametrize("name", ["it's $(touch pwned) `x`", 'a "quoted" \\n', "plain//twice/"])
def test_any_state_directory_will_do(tmp_path: Path, name: str) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    state = {"ADVISOR_STATE_DIR": f"{tmp_path}/{name}"}
    assert stage.call("apply", "--confirm-within", "1", more=state).state == "awaiting-confirmation"
    from advisor.transaction.journal import Store

    store = Store(state["ADVISOR_STATE_DIR"])
    watchdog = store.watchdog_of("0001")
    assert watchdog.place is not None, "it is known to advisor as its own"
    assert watchdog.await_outcome() is not None
    assert stage.listing() == before
    assert store.read_records()[0].state == "rolled-back"
    assert not list(tmp_path.rglob("pwned"))
