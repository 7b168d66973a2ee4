"""The rollback script ends where ``advisor rollback`` ends, under every shell, with any name and any content."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.planning.records import FileChange, Plan
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import rollback_script, script_text
from advisor.transaction.apply import apply_plan
from advisor.transaction.watchdog import watch_text
from tests.host.test_walk import ACCESS, attributes_of, for_nobody, set_or_skip
from tests.running import run_text
from tests.transaction.system import TARGETS, apply_locked, build, plan_of, store_of
from tests.trees import listing

SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]

OTHERS = [
    shell
    for shell in (["mksh"], ["lksh"], ["ksh"], ["yash"], ["posh"], ["zsh", "--emulate", "sh"])
    if shutil.which(shell[0])
]


def run_script(
    script: Path, where: Path, *options: str, shell: list[str] = SHELLS[0]
) -> subprocess.CompletedProcess[str]:
    path = f"{where / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
    return run_text([*shell, str(script), "--root", str(where / "root"), *options], env={"PATH": path}, timeout=60)


def applied_script(where: Path, plan: Plan | None = None) -> Path:
    host, store = build(where), store_of(where)
    record = apply_locked(host, plan or plan_of(host), store)
    return store.script_path(record.id)


def reload_stand_in(where: Path) -> None:
    """With --root the script does not reload the running systemd; the stand-in is reloaded by hand."""
    subprocess.run([where / "bin/systemctl", "daemon-reload"], check=True)


@pytest.mark.parametrize("shell", [*SHELLS, *OTHERS], ids=lambda shell: shell[0])
def test_the_script_leaves_every_byte_as_it_was_and_is_safe_to_run_twice(tmp_path: Path, shell: list[str]) -> None:
    build(tmp_path)
    before = listing(tmp_path / "root")
    script = applied_script(tmp_path)
    first = run_script(script, tmp_path, shell=shell)
    reload_stand_in(tmp_path)
    second = run_script(script, tmp_path, shell=shell)
    assert (first.returncode, "restored" in first.stdout) == (5, True), "the stand-in had not reloaded the unit"
    assert all(
        name in first.stdout for name, *_ in (*TARGETS, ("/etc/llttab",), ("/etc/sysctl.d/90-advisor-test.conf",))
    )
    assert second.returncode == 3, second.stdout + second.stderr
    assert second.stderr == "rollback: nothing to do: everything is as it was before\n"
    assert "restored" not in second.stdout
    assert listing(tmp_path / "root") == before


def path_without(where: Path, tool: str) -> str:
    """A search path on which there is everything but that tool."""
    place = where / f"without-{tool}"
    place.mkdir()
    for directory in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for path in Path(directory).iterdir():
            if path.name != tool and not (place / path.name).exists():
                (place / path.name).symlink_to(path)
    return f"{where / 'bin'}:{place}"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_search_path_of_cd_leads_the_script_nowhere_else(tmp_path: Path, shell: list[str]) -> None:
    """Started by a relative path, with the same path below CDPATH: it still finds its store, and so its lock."""
    applied_script(tmp_path)
    store = store_of(tmp_path)
    (tmp_path / "decoy/transactions/0001").mkdir(parents=True)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", "CDPATH": str(tmp_path / "decoy")}
    words = [*shell, "transactions/0001/rollback.sh", "--root", str(tmp_path / "root")]
    with store.hold_lock():
        done = run_text(words, env=environment, cwd=store.directory, timeout=60)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "another transaction is under way" in done.stderr


@pytest.mark.repeats(4)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("tool", ["wc", "awk", "sed", "mv", "tr", "ls"])
def test_a_missing_tool_is_never_mistaken_for_another_end(tmp_path: Path, tool: str, shell: list[str]) -> None:
    """All is restored, or the exit code says that it is not; run again with the tool, all is."""
    build(tmp_path)
    root = tmp_path / "root"
    before = listing(root)
    script = applied_script(tmp_path)
    applied = listing(root)
    words = [*shell, str(script), "--root", str(root)]
    environment = {"PATH": path_without(tmp_path, tool)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60, check=False)
    reload_stand_in(tmp_path)
    if done.returncode == 3:
        # The data cannot be read without it.
        assert listing(root) == applied
        assert "nothing was changed" in done.stderr
    else:
        # 5 as well where all is there but for the unit, which systemd has not loaded by then.
        assert done.returncode in ((0, 5) if listing(root) == before else (5,)), done.stdout + done.stderr
    if done.returncode == 5:
        assert "not restored" in done.stderr
    run_script(script, tmp_path, shell=shell)
    reload_stand_in(tmp_path)
    assert run_script(script, tmp_path, shell=shell).returncode == 3
    assert listing(root) == before


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell[0] != "busybox"], ids=lambda shell: shell[0])
def test_the_access_list_of_a_file_comes_back_with_it(tmp_path: Path, shell: list[str]) -> None:
    """By coreutils' cp; that of busybox, which its shell takes, copies none."""
    build(tmp_path)
    table = tmp_path / "root/etc/llttab"
    table.chmod(0o640)
    set_or_skip(table, {"user.note": b"\0kept", ACCESS: for_nobody(6)})
    before = listing(tmp_path / "root"), attributes_of(table), table.stat().st_mode
    script = applied_script(tmp_path)
    run_script(script, tmp_path, shell=shell)
    reload_stand_in(tmp_path)
    assert run_script(script, tmp_path, shell=shell).returncode == 3
    assert (listing(tmp_path / "root"), attributes_of(table), table.stat().st_mode) == before


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_what_somebody_wrote_cannot_command_the_terminal(tmp_path: Path, shell: list[str]) -> None:
    script = applied_script(tmp_path)
    (tmp_path / "root/proc/sys/net/core/rmem_max").write_text("7\x1b]0;owned\x07\n")
    done = run_script(script, tmp_path, shell=shell)
    assert "modified externally (7?]0;owned?)\n" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_the_script_keeps_what_somebody_else_set_and_says_so_with_5(tmp_path: Path) -> None:
    script = applied_script(tmp_path)
    value = tmp_path / "root/proc/sys/net/core/rmem_max"
    value.write_text("777\n")
    (tmp_path / "root/etc/llttab").write_text("theirs\n")
    reload_stand_in(tmp_path)
    done = run_script(script, tmp_path)
    assert done.returncode == 5
    assert "kept      sysctl:net.core.rmem_max: modified externally (777)" in done.stdout
    assert "by hand: printf" in done.stdout
    assert (value.read_text(), (tmp_path / "root/etc/llttab").read_text()) == ("777\n", "theirs\n")
    reload_stand_in(tmp_path)
    forced = run_script(script, tmp_path, "--force")
    assert forced.returncode == 0, forced.stdout
    assert value.read_text() == "212992\n"


def test_the_script_refuses_another_host_unless_told(tmp_path: Path) -> None:
    script = applied_script(tmp_path)
    (tmp_path / "root/etc/machine-id").write_text("e" * 32 + "\n")
    before = listing(tmp_path / "root")
    done = run_script(script, tmp_path)
    assert done.returncode == 3
    assert "machine-id" in done.stderr
    assert listing(tmp_path / "root") == before
    assert run_script(script, tmp_path, "--any-host").stdout.count("restored") >= 7


def test_bad_arguments_and_no_root(tmp_path: Path) -> None:
    script = applied_script(tmp_path)
    assert run_script(script, tmp_path, "--nonsense").returncode == 2
    if shutil.which("setpriv"):
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "dash", "-s"]
        done = subprocess.run(unprivileged, input=script.read_bytes(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (6, b"rollback: needs root\n")


def test_scripts_are_clean_under_shellcheck(tmp_path: Path) -> None:
    texts = {"rollback": script_text(), "watch": watch_text(), "single": rollback_script(plan_of(build(tmp_path)))}
    for name, text in texts.items():
        (tmp_path / f"{name}.sh").write_text(text)
    words = [str(Path(sys.executable).with_name("shellcheck")), "--shell=sh"]
    words += [str(tmp_path / f"{name}.sh") for name in texts]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


hostile = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(hostile)
def test_any_text_stays_one_word(text: str) -> None:
    done = subprocess.run(["dash", "-c", f"printf '%s' {shell_quote(text)}"], capture_output=True, check=True)
    assert done.stdout == text.encode()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.one_of(st.none(), st.binary(max_size=60)), after=st.binary(max_size=60), name=hostile)
def test_any_file_name_and_content_come_back(
    tmp_path_factory: pytest.TempPathFactory, before: bytes | None, after: bytes, name: str
) -> None:
    where = tmp_path_factory.mktemp("file")
    name = name.replace("/", "").strip(".") or "x"
    if len(name.encode()) > 200 or before == after:
        return
    host = build(where)
    path = where / "root/etc" / f"-{name}"
    if before is not None:
        path.write_bytes(before)
        path.chmod(0o640)
    mode = None if before is None else 0o640
    change = FileChange(f"/etc/-{name}", before, after, 0o640, 0, 0, mode, (), (), ())
    plan = msgspec.structs.replace(plan_of(host, [0]), files=(change,))
    was = listing(where / "root")
    script = applied_script_of(where, plan)
    done = run_script(script, where)
    assert done.returncode == 0, done.stdout + done.stderr
    assert listing(where / "root") == was


def applied_script_of(where: Path, plan: Plan) -> Path:
    from tests.trees import host_of

    store = store_of(where)
    with store.hold_lock():
        record = apply_plan(host_of(where / "root", where / "bin"), plan, store)
    return store.script_path(record.id)


@pytest.mark.repeats(7)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("lines", [199, 200, 201, 40_001, 100_000])
def test_a_long_file_comes_back_whole(tmp_path: Path, shell: list[str], lines: int) -> None:
    """A list of so many commands would overflow the stack of bash, which would print nothing."""
    host = build(tmp_path)
    table = tmp_path / "root/etc/llttab"
    before = b"".join(b"%d\n" % number for number in range(lines))
    table.write_bytes(before)
    plan = plan_of(host, [0])
    file = FileChange("/etc/llttab", before, b"new\n", 0o644, 0, 0, 0o644, (), (), ())
    script = applied_script_of(tmp_path, msgspec.structs.replace(plan, files=(file,)))
    assert table.read_bytes() == b"new\n"
    done = run_script(script, tmp_path, shell=shell)
    assert (done.returncode, table.read_bytes() == before) == (0, True), done.stdout


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_shell_that_prints_less_than_the_content_writes_nothing(tmp_path: Path, shell: list[str]) -> None:
    script = applied_script(tmp_path)
    text = script.read_text()
    assert "\nbefore() {\n" in text
    script.write_text(text.replace("\nbefore() {\n", "\nbefore() {\n    return 139\n", 1))
    kept = (tmp_path / "root/etc/llttab").read_bytes()
    done = run_script(script, tmp_path, "--force", shell=shell)
    assert done.returncode == 5
    assert "/etc/llttab: this shell cannot print its content" in done.stdout
    assert (tmp_path / "root/etc/llttab").read_bytes() == kept


@pytest.mark.parametrize("number", range(len(TARGETS)), ids=[name for name, *_ in TARGETS])
def test_a_single_file_has_the_functions_that_its_items_need(tmp_path: Path, number: int) -> None:
    host = build(tmp_path)
    before, made, script = listing(tmp_path / "root"), plan_of(host, (number,)), tmp_path / "undo.sh"
    script.write_text(rollback_script(made))
    assert script.read_text().count("\n") < script_text().count("\n") / 1.8
    apply_locked(host, made, store_of(tmp_path))
    first = run_script(script, tmp_path)
    reload_stand_in(tmp_path)
    assert (run_script(script, tmp_path).returncode, "half-way" in first.stderr) == (3, False)
    assert listing(tmp_path / "root") == before
    shellcheck = Path(sys.executable).with_name("shellcheck")
    assert subprocess.run([shellcheck, "--shell=sh", script], check=False).returncode == 0
