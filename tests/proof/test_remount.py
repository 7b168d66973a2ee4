"""Remounting the target: real mounts in a mount namespace of the test's own."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.errors import NotRestoredError, RefusedError
from advisor.host import Host, live_host
from advisor.host.commands import LiveCommands
from advisor.host.files import DirectoryFiles
from advisor.proof.remount import Remount, RemountError, make_remount
from advisor.proof.target import MeasuredTarget

from .mounts import can_mount, command, in_own_mounts, mount_line

pytestmark = pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "a place"
    made.mkdir()
    return made


def tmpfs_at(place: Path, options: str = "noatime,nosuid,nodev,size=4m,mode=700") -> None:
    command("mount", "-t", "tmpfs", "-o", options, "none", str(place))


def target_at(place: Path, kind: str = "tmpfs") -> MeasuredTarget:
    return MeasuredTarget(str(place), kind, str(place), "none", None, False, 1, 1)


def remount_of(place: Path, host: Host | None = None, *, needs_connection: bool = False) -> Remount:
    return make_remount(host or live_host(), target_at(place), needs_connection=needs_connection)


def test_it_is_another_mount_with_the_same_options(place: Path) -> None:
    def remount() -> tuple[list[str], list[str], bool]:
        tmpfs_at(place)
        (place / "old").touch()
        before = mount_line(place)
        remount_of(place)("B")
        return before, mount_line(place), (place / "old").exists()

    before, after, is_old_there = in_own_mounts(remount)
    assert before[5:] == after[5:]
    assert "noatime" in after[5]
    # of a file system in memory nothing outlives its last mount: it was really gone
    assert not is_old_there


def test_one_that_is_used_stays_and_its_user_is_named(place: Path) -> None:
    def refused() -> tuple[str, list[str], list[str]]:
        tmpfs_at(place)
        before = mount_line(place)
        with (place / "open").open("w"), pytest.raises(RemountError) as caught:
            remount_of(place)("B")
        return caught.value.message, before, mount_line(place)

    message, before, after = in_own_mounts(refused)
    assert "cannot be unmounted" in message
    assert "in use by" in message
    assert before == after != []


def failing_mount(directory: Path, times: int) -> Host:
    """A host whose mount(8) fails that often before it works."""
    directory.mkdir()
    real = shutil.which("mount")
    script = (
        f"#!/bin/sh\necho x >> {shlex.quote(str(directory))}/calls\n"
        f'[ "$(wc -l < {shlex.quote(str(directory))}/calls)" -gt {times} ] && exec {real} "$@"\n'
        "echo mount: no luck >&2\nexit 32\n"
    )
    (directory / "mount").write_text(script)
    (directory / "mount").chmod(0o755)
    return Host(DirectoryFiles("/"), LiveCommands(path=f"{directory}:/usr/sbin:/usr/bin:/sbin:/bin"), is_live=True)


def calls(directory: Path) -> int:
    """How often mount(8) was called."""
    return len((directory / "calls").read_text().split())


def test_what_could_not_be_mounted_is_mounted_at_the_end(place: Path, tmp_path: Path) -> None:
    def late() -> tuple[list[str], list[str], list[str]]:
        tmpfs_at(place)
        before = mount_line(place)
        remount = remount_of(place, failing_mount(tmp_path / "bin", 3))
        with pytest.raises(RemountError, match="could not be mounted again"):
            remount("B")
        between = mount_line(place)
        remount.ensure_mounted()
        return before, between, mount_line(place)

    before, between, after = in_own_mounts(late)
    assert between == []
    assert before[5:] == after[5:] != []


def test_what_stays_unmounted_is_told_with_the_command_by_hand(place: Path, tmp_path: Path) -> None:
    def never() -> tuple[tuple[tuple[str, str], ...], list[str], list[str]]:
        tmpfs_at(place)
        before = mount_line(place)
        remount = remount_of(place, failing_mount(tmp_path / "bin", 99))
        with pytest.raises(RemountError):
            remount("B")
        with pytest.raises(NotRestoredError) as caught:
            remount.ensure_mounted()
        # by hand, as it says
        subprocess.run(caught.value.items[0][1], shell=True, check=True)
        return caught.value.items, before, mount_line(place)

    items, before, after = in_own_mounts(never)
    assert items[0][0] == f"mount {place}"
    assert before[5:] == after[5:] != []


@pytest.mark.parametrize("path", ["/", "/usr", "/usr/share", "/var", "/var/lib", "/etc", "/home", "/boot/x", "/run/x"])
def test_what_belongs_to_the_system_is_never_unmounted(path: str, tmp_path: Path) -> None:
    from tests.trees import host_of, make_tree

    line = f"99 1 8:1 / {path} rw - ext4 /dev/sda1 rw\n"
    host = host_of(make_tree(tmp_path, {"proc/self/mountinfo": line}))
    with pytest.raises(RefusedError, match="belongs to the system"):
        make_remount(host, MeasuredTarget(path, "ext4", path, "/dev/sda1", "sda1", False, 1, 1), needs_connection=False)


def refusal(place: Path, prepare: list[tuple[str, ...]], *, needs_connection: bool = False) -> str:
    def refused() -> str:
        tmpfs_at(place)
        for words in prepare:
            command(*words)
        with pytest.raises(RefusedError) as caught:
            remount_of(place, needs_connection=needs_connection)
        return caught.value.message

    return in_own_mounts(refused)


def test_mounts_that_cannot_be_remounted_are_refused(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    below = [("mkdir", f"{place}/sub"), ("mount", "-t", "tmpfs", "none", f"{place}/sub")]
    assert "below it" in refusal(place, below)
    assert "other places" in refusal(place, [("mount", "--bind", str(place), str(other))])
    assert "hides another" in refusal(place, [("mount", "-t", "tmpfs", "none", str(place))])
    assert "makes none" in refusal(place, [], needs_connection=True)


NFS = "addr=192.0.2.9,vers=4.2"


def nfs_host(tmp_path: Path, *lines: str) -> Host:
    from tests.trees import host_of, make_tree

    return host_of(make_tree(tmp_path, {"proc/self/mountinfo": "".join(f"{line}\n" for line in lines)}))


def test_a_connection_that_other_mounts_share_does_not_end(tmp_path: Path) -> None:
    one = f"99 1 0:50 / /srv/one rw - nfs4 server:/one rw,{NFS}"
    two = f"98 1 0:51 / /srv/two rw - nfs4 server:/two rw,{NFS}"
    far = "97 1 0:52 / /srv/three rw - nfs4 third:/three rw,addr=192.0.2.10"
    target = MeasuredTarget("/srv/one/dir", "nfs4", "/srv/one", "server:/one", None, True, 1, 1)
    with pytest.raises(RefusedError, match="shares its connection"):
        make_remount(nfs_host(tmp_path / "a", one, two, far), target, needs_connection=True)
    make_remount(nfs_host(tmp_path / "b", one, far), target, needs_connection=True)
