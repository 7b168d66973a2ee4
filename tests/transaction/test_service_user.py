"""A service user against root's rollback script: directories and links that change under it, at every step it takes.

The steps are steered: each tool that the script runs is a stand-in that first lets the user (uid 4711) do its worst.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import msgspec
import pytest

from advisor.host import Host
from advisor.planning.records import FileChange, Plan
from tests.transaction.system import build, plan_of
from tests.transaction.test_script import SHELLS, applied_script_of
from tests.trees import make_command

USER: Final = 4711
OLD, NEW, SECRET = b"old\n", b"new\n", b"only root's\n"
TOOLS: Final = ("ls", "rm", "cp", "mv", "chown", "chmod", "cat", "cmp", "cksum", "id", "readlink", "mkdir", "rmdir")
STEPS: Final = range(8)

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


def plan_for(host: Host, path: str, before: bytes | None) -> Plan:
    file = FileChange(path, before, NEW, 0o644, 0, 0, None if before is None else 0o644, (), (), ())
    return msgspec.structs.replace(plan_of(host, [0]), files=(file,))


def world(where: Path, before: bytes | None, *, path: str = "/srv/app/app.conf") -> Path:
    """The applied script; then the user owns the directory, and the directory above it."""
    host = build(where)
    root = where / "root"
    (root / "srv/app").mkdir(parents=True)
    (root / "secret").mkdir(mode=0o700)
    secret = root / "secret/file"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    (root / "secret/app.conf").write_bytes(SECRET)
    if before is not None:
        (root / path.lstrip("/")).write_bytes(before)
    script = applied_script_of(where, plan_for(host, path, before))
    for directory in (root / "srv", root / "srv/app"):
        os.chown(directory, USER, USER)
    # So that the user reaches its directory.
    for directory in (where, *where.parents):
        if directory.stat().st_uid == 0 and str(directory) != "/":
            directory.chmod(directory.stat().st_mode | 0o011)
    return script


def stand_ins(where: Path, attack: str, step: int) -> None:
    become = f"setpriv --reuid {USER} --regid {USER} --clear-groups"
    for tool in TOOLS:
        real = shutil.which(tool, path="/usr/bin:/bin")
        body = (
            f"n=$(/usr/bin/wc -c < {where}/calls); printf x >> {where}/calls\n"
            f"[ $n != {step} ] || (cd {where}/root && {become} sh -c '{attack}') 2>/dev/null\n"
            f'exec {real} "$@"'
        )
        make_command(where / "bin", tool, body)


def run(script: Path, where: Path, shell: list[str]) -> subprocess.CompletedProcess[str]:
    words = [*shell, str(script), "--root", str(where / "root"), "--force"]
    path = f"{where / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
    return subprocess.run(words, capture_output=True, text=True, env={"PATH": path}, timeout=60, check=False)


def secrets(where: Path) -> list[tuple[bytes, int, int]]:
    places = (where / "root/secret/file", where / "root/secret/app.conf")
    return [(place.read_bytes(), place.stat().st_mode, place.stat().st_uid) for place in places]


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
        assert done.returncode == 5, done.stdout
        assert "others than root can change" in done.stdout
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
