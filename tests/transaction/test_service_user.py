"""A service user against root's rollback script: directories and links that change under it, at every step it takes.

The steps are steered: each tool that the script runs is a stand-in that first lets the user (uid 4711) do its worst.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from advisor.host import Host
from advisor.planning.records import FileChange, Plan
from tests.exporters.apply_script.stage import Stage
from tests.transaction.system import build, plan_of
from tests.transaction.test_script import SHELLS, applied_script_of
from tests.trees import STANDARD_PATH, make_command

USER: Final = 4711
OLD, NEW, SECRET = b"old\n", b"new\n", b"only root's\n"
TOOLS: Final = ("ls", "rm", "cp", "mv", "chown", "chmod", "cat", "cmp", "cksum", "id", "readlink", "mkdir", "rmdir")
STEPS: Final = range(8)
ROUNDS: Final = int(os.environ.get("ADVISOR_RACE_ROUNDS", "10"))
"""Of each race; its own thorough run takes 200."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to become another user"
)

# What the user does, at call number STEP of any tool; the paths are relative to the directory that holds ``srv``.
ATTACKS: Final = {
    "temporary name": "ln -sf ../../secret/file srv/app/.app.conf.advisor.new",
    "file": "ln -sf ../../secret/file srv/app/app.conf",
    "directory": "mv srv/app srv/app.old; ln -s ../secret srv/app",
    "hard link": "ln -f secret/file srv/app/.app.conf.advisor.new",
}


@pytest.fixture
def tmp_path(open_path: Path) -> Path:
    """One that the user can enter: every session of pytest that begins meanwhile closes the one that it gives."""
    return open_path


def plan_for(host: Host, path: str, before: bytes | None, *, owner: int = 0, mode: int = 0o644) -> Plan:
    file = FileChange(path, before, NEW, mode, owner, owner, None if before is None else mode, (), (), ())
    return msgspec.structs.replace(plan_of(host, [0]), files=(file,))


def world(
    where: Path, before: bytes | None, *, path: str = "/srv/app/app.conf", owner: int = 0, mode: int = 0o644
) -> Path:
    """The applied script of a file of ``owner``; then the user owns the directory, and the directory above it."""
    host = build(where)
    root = where / "root"
    (root / "srv/app").mkdir(parents=True)
    (root / "secret").mkdir(mode=0o700)
    secret = root / "secret/file"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    (root / "secret/app.conf").write_bytes(SECRET)
    if before is not None:
        file = root / path.lstrip("/")
        file.write_bytes(before)
        os.chown(file, owner, owner)
        file.chmod(mode)
    script = applied_script_of(where, plan_for(host, path, before, owner=owner, mode=mode))
    for directory in (root / "srv", root / "srv/app"):
        os.chown(directory, USER, USER)
    return script


def stand_ins(where: Path, attack: str, step: int) -> None:
    become = f"setpriv --reuid {USER} --regid {USER} --clear-groups"
    for tool in TOOLS:
        real = shutil.which(tool, path="/usr/bin:/bin")
        body = (
            f'[ $(/usr/bin/id -u) = 0 ] || exec {real} "$@"\n'
            f"n=$(/usr/bin/wc -c < {where}/calls); printf x >> {where}/calls\n"
            f"[ $n != {step} ] || (cd {where}/root && {become} sh -c '{attack}') 2>/dev/null\n"
            f'exec {real} "$@"'
        )
        make_command(where / "bin", tool, body)


def run(script: Path, where: Path, shell: list[str], seconds: int = 60) -> subprocess.CompletedProcess[str]:
    words = [*shell, str(script), "--root", str(where / "root"), "--force"]
    path = f"{where / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
    return subprocess.run(words, capture_output=True, text=True, env={"PATH": path}, timeout=seconds, check=False)


def secrets(where: Path) -> list[tuple[bytes, int, int]]:
    places = (where / "root/secret/file", where / "root/secret/app.conf")
    return [(place.read_bytes(), place.stat().st_mode, place.stat().st_uid) for place in places]


@pytest.mark.repeats(12)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_user_who_swaps_links_reaches_nothing_of_roots(tmp_path: Path, attack: str, step: int) -> None:
    for number, before in enumerate((OLD, None)):
        where = tmp_path / str(number)
        where.mkdir()
        script = world(where, before)
        kept = secrets(where)
        (where / "calls").write_bytes(b"")
        stand_ins(where, ATTACKS[attack], step)
        done = run(script, where, SHELLS[0])
        assert secrets(where) == kept
        assert done.returncode in (0, 5), done.stdout
        if done.returncode == 5:
            assert "by hand: advisor rollback" in done.stdout


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize(
    ("mode", "owner", "code"), [(0o755, 0, 0), (0o775, 0, 5), (0o757, 0, 5), (0o1777, 0, 5), (0o755, USER, 5)]
)
def test_whose_a_directory_is(tmp_path: Path, shell: list[str], mode: int, owner: int, code: int) -> None:
    script = world(tmp_path, OLD)
    for directory in (tmp_path / "root/srv", tmp_path / "root/srv/app"):
        os.chown(directory, 0, 0)
    os.chown(tmp_path / "root/srv/app", owner, owner)
    (tmp_path / "root/srv/app").chmod(mode)
    done = run(script, tmp_path, shell)
    assert done.returncode == code, done.stdout
    assert (tmp_path / "root/srv/app/app.conf").read_bytes() == (NEW if code else OLD)
    assert ("users other than root can change" in done.stdout) == bool(code)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize(("owner", "code"), [(0, 0), (USER, 5)])
def test_whose_a_link_on_the_way_is(tmp_path: Path, shell: list[str], owner: int, code: int) -> None:
    script = world(tmp_path, OLD)
    root = tmp_path / "root"
    for directory in (root / "srv", root / "srv/app"):
        os.chown(directory, 0, 0)
    (root / "srv/app").rename(root / "real")
    (root / "srv/app").symlink_to("../real")
    os.lchown(root / "srv/app", owner, owner)
    done = run(script, tmp_path, shell)
    assert done.returncode == code, done.stdout
    assert (root / "real/app.conf").read_bytes() == (NEW if code else OLD)


def file_of(where: Path) -> Path:
    return where / "root/srv/app/app.conf"


@pytest.mark.repeats(12)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755])
@pytest.mark.parametrize("before", [OLD, b"", b"\0\xff no newline", b"x\n" * 25_000])
def test_a_file_of_the_user_is_restored_with_its_rights(
    tmp_path: Path, shell: list[str], before: bytes, mode: int
) -> None:
    script = world(tmp_path, before, owner=USER, mode=mode)
    assert file_of(tmp_path).read_bytes() == NEW
    done = run(script, tmp_path, shell)
    status = file_of(tmp_path).stat()
    assert (done.returncode, file_of(tmp_path).read_bytes()) == (0, before), done.stdout
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (USER, USER, mode)
    assert "restored  /srv/app/app.conf: earlier content" in done.stdout
    assert os.listdir(file_of(tmp_path).parent) == ["app.conf"]
    again = run(script, tmp_path, shell)
    assert (again.returncode, "restored" in again.stdout) == (3, False), again.stdout


def test_a_user_who_stops_what_writes_for_it_is_not_waited_for(tmp_path: Path) -> None:
    script = world(tmp_path, OLD, owner=USER)
    # In the place of the temporary file, at once each time that it goes: what writes into it waits for a reader.
    loop = "cd root/srv/app && while :; do mkfifo .app.conf.advisor.new; rm -f app.conf; mkfifo app.conf; done"
    with attacker(tmp_path, loop):
        done = run(script, tmp_path, SHELLS[0], seconds=200)
    assert done.returncode in (0, 5)


@contextmanager
def attacker(where: Path, loop: str) -> Iterator[None]:
    words = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "sh", "-c", f"cd {where}; {loop}"]
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_without(
    tools: tuple[str, ...], script: Path, where: Path, shell: list[str]
) -> subprocess.CompletedProcess[str]:
    """As `run`, in a mount namespace in which these programs cannot be executed, by whatever path."""
    found = {os.path.realpath(path) for one in tools for path in (shutil.which(one),) if path}
    hide = "".join(f"mount --bind /dev/null {path} && " for path in sorted(found))
    words = [*shell, str(script), "--root", str(where / "root"), "--force"]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{hide}exec "$@"', "sh", *words],
        capture_output=True, text=True, env={"PATH": STANDARD_PATH}, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("before", [OLD, None])
def test_without_setpriv_the_users_file_is_restored_by_chroot(
    tmp_path: Path, shell: list[str], before: bytes | None
) -> None:
    script = world(tmp_path, before, owner=USER)
    file = tmp_path / "root/srv/app/app.conf"
    kept = secrets(tmp_path)
    done = run_without(("setpriv",), script, tmp_path, shell)
    assert done.returncode == 0, done.stdout + done.stderr
    assert secrets(tmp_path) == kept
    if before is None:
        assert not file.exists()
    else:
        found = file.stat()
        assert (file.read_bytes(), found.st_uid, found.st_gid) == (before, USER, USER)
    assert sorted(os.listdir(file.parent)) == ([] if before is None else ["app.conf"])


def test_without_any_tool_to_become_the_user_nothing_is_written_and_it_says_so(tmp_path: Path) -> None:
    script = world(tmp_path, OLD, owner=USER)
    file = tmp_path / "root/srv/app/app.conf"
    was = file.read_bytes()
    done = run_without(("setpriv", "chroot"), script, tmp_path, SHELLS[0])
    assert done.returncode == 5
    assert "not restored by this script" in done.stdout
    assert "by hand: advisor rollback" in done.stdout
    assert file.read_bytes() == was
    assert run(script, tmp_path, SHELLS[0]).returncode == 0
    assert file.read_bytes() == OLD


RACES: Final = {
    "temporary name": "cd root/srv/app; while :; do ln -s ../../secret/file .app.conf.advisor.new;"
    " ln -f app.conf .app.conf.advisor.new; done",
    "file": "cd root/srv/app; while :; do ln -sf ../../secret/file app.conf; rm -f app.conf; echo new > app.conf; done",
    "directory": "cd root/srv; while :; do mv app app.old; ln -s ../secret app; rm -f app; mv app.old app; done",
    "parent": "cd root/srv; mkdir fake; ln -s ../../secret fake/app; cd ..;"
    " while :; do mv srv/app srv/x; mv srv/fake/app srv/app; mv srv/app srv/fake/app; mv srv/x srv/app; done",
}


@pytest.mark.repeats(2)
@pytest.mark.parametrize("race", RACES)
def test_a_race_of_links_reaches_nothing_of_roots(tmp_path: Path, race: str) -> None:
    """The user swaps names in a tight loop while the script restores, again and again."""
    script = world(tmp_path, OLD, owner=USER)
    kept = secrets(tmp_path)
    codes = set()
    with attacker(tmp_path, RACES[race]):
        for _ in range(ROUNDS):
            codes.add(run(script, tmp_path, SHELLS[0]).returncode)
            assert secrets(tmp_path) == kept
            codes.add(run_without(("setpriv",), script, tmp_path, SHELLS[0]).returncode)
            assert secrets(tmp_path) == kept
    assert codes <= {0, 3, 5}
    assert sorted(os.listdir(tmp_path / "root/secret")) == ["app.conf", "file"]


@pytest.mark.repeats(6)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("before", [OLD, None])
@pytest.mark.parametrize("owner", [0, USER])
def test_the_apply_script_writes_nothing_there(
    tmp_path: Path, shell: list[str], before: bytes | None, owner: int
) -> None:
    """It rolls back what it has set by then, and that file is none of it: all is as it was."""

    def make(where: Path) -> Host:
        host = build(where)
        directory = where / "root/srv/app"
        directory.mkdir(parents=True)
        if before is not None:
            (directory / "app.conf").write_bytes(before)
            os.chown(directory / "app.conf", owner, owner)
        os.chown(directory, USER, USER)
        return host

    plan = plan_for(make(tmp_path / "plan"), "/srv/app/app.conf", before, owner=owner)
    stage = Stage(tmp_path, make, plan)
    was = stage.listing()
    done = stage.call("apply", "--confirm-within", "0", under=shell)
    assert (done.code, done.state) == (4, "rolled-back"), done
    assert "/srv/app/app.conf: users other than root can change" in done.errors
    assert "only advisor apply writes there" in done.errors
    assert stage.listing() == was
    assert stage.is_closed()
