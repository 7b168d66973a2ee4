"""The scratch file: made by us, whole, ours before every use, and gone afterwards."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from advisor.errors import CommandError, RefusedError
from advisor.host import live_host
from advisor.proof.process import StoppedError
from advisor.proof.scratch import (
    GIB,
    MIB,
    Keep,
    Scratch,
    ScratchChangedError,
    has_holes,
    left_behind,
    make_scratch,
    require_space,
    scratch_file,
)
from advisor.proof.target import MeasuredTarget, read_target

NOTHING_KEPT = Keep(0, 0.0)


@pytest.fixture
def target(disk: Path) -> MeasuredTarget:
    return read_target(live_host(), str(disk))


@pytest.fixture
def scratch(target: MeasuredTarget) -> Iterator[Scratch]:
    with scratch_file(target, 2 * MIB, keep=NOTHING_KEPT) as made:
        yield made


def test_modes_owner_and_content(scratch: Scratch) -> None:
    directory, file = os.lstat(scratch.directory), os.lstat(scratch.path)
    assert stat.S_IMODE(directory.st_mode) == 0o700
    assert stat.S_IMODE(file.st_mode) == 0o600
    assert directory.st_uid == file.st_uid == os.geteuid()
    content = Path(scratch.path).read_bytes()
    assert len(content) == scratch.size_bytes == 2 * MIB
    # random: no two blocks alike, and nothing that compresses
    assert len({content[at : at + 4096] for at in range(0, len(content), 4096)}) == 512
    assert content.count(0) < len(content) // 100


def test_modes_do_not_depend_on_the_umask(target: MeasuredTarget) -> None:
    before = os.umask(0)
    try:
        with scratch_file(target, 4096, keep=NOTHING_KEPT) as made:
            assert stat.S_IMODE(os.lstat(made.directory).st_mode) == 0o700
            assert stat.S_IMODE(os.lstat(made.path).st_mode) == 0o600
    finally:
        os.umask(before)


def test_it_has_no_holes_and_holes_are_seen(scratch: Scratch, disk: Path) -> None:
    with open(scratch.path, "rb") as file:
        assert not has_holes(file.fileno(), scratch.size_bytes)
    sparse = disk / "sparse"
    with sparse.open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(MIB)
        assert has_holes(file.fileno(), MIB)


def test_what_is_left_behind_and_what_is_not(target: MeasuredTarget, disk: Path) -> None:
    with pytest.raises(RefusedError, match="stay free"):
        make_scratch(msgspec.structs.replace(target, free_bytes=GIB), MIB)
    assert os.listdir(disk) == []
    with scratch_file(target, MIB, keep=NOTHING_KEPT):
        assert len(os.listdir(disk)) == 1
    assert os.listdir(disk) == []
    assert left_behind(target) == ()
    (disk / ".advisor-proof-0123").mkdir()
    (disk / ".advisor-proof-file").write_text("")
    assert left_behind(target) == (f"{target.path}/.advisor-proof-0123",)


def test_nothing_is_left_behind_when_filling_is_stopped(target: MeasuredTarget, disk: Path) -> None:
    chunks = 0

    def stop_at_third() -> None:
        nonlocal chunks
        chunks += 1
        if chunks == 3:
            assert len(os.listdir(disk)) == 1
            raise StoppedError("stopped by SIGTERM")

    with pytest.raises(StoppedError):
        make_scratch(target, 64 * MIB, keep=NOTHING_KEPT, check_stop=stop_at_third)
    assert os.listdir(disk) == []


def test_nothing_is_left_behind_when_the_file_cannot_grow(target: MeasuredTarget, disk: Path) -> None:
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        with pytest.raises(CommandError, match="File too large"):
            make_scratch(target, 8 * MIB, keep=NOTHING_KEPT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(disk) == []


def test_a_file_put_in_its_place_is_neither_used_nor_removed(target: MeasuredTarget) -> None:
    scratch = make_scratch(target, MIB, keep=NOTHING_KEPT)
    other = Path(scratch.directory) / "other"
    other.write_bytes(b"precious" * (MIB // 8))
    other.rename(scratch.path)
    with pytest.raises(ScratchChangedError, match="not the file that was made"):
        scratch.check()
    with pytest.raises(ScratchChangedError):
        scratch.remove()
    assert Path(scratch.path).read_bytes().startswith(b"precious")


def test_a_link_put_in_its_place_is_neither_used_nor_followed(target: MeasuredTarget, disk: Path) -> None:
    scratch = make_scratch(target, MIB, keep=NOTHING_KEPT)
    precious = disk / "precious"
    os.rename(scratch.path, precious)
    os.symlink(precious, scratch.path)
    with pytest.raises(ScratchChangedError):
        scratch.check()
    with pytest.raises(ScratchChangedError):
        scratch.remove()
    assert precious.stat().st_size == MIB


def test_a_directory_put_in_its_place_is_seen(target: MeasuredTarget, disk: Path) -> None:
    scratch = make_scratch(target, MIB, keep=NOTHING_KEPT)
    os.rename(scratch.directory, disk / "moved")
    os.mkdir(scratch.directory)
    os.link(disk / "moved/scratch", scratch.path)
    with pytest.raises(ScratchChangedError, match="not the directory that was made"):
        scratch.check()
    os.unlink(scratch.path)
    os.rmdir(scratch.directory)
    os.symlink(disk / "moved", scratch.directory)
    with pytest.raises(ScratchChangedError):
        scratch.check()


def test_a_grown_file_is_seen(scratch: Scratch) -> None:
    os.truncate(scratch.path, 3 * MIB)
    with pytest.raises(ScratchChangedError, match="3145728 bytes instead of 2097152"):
        scratch.check()
    os.truncate(scratch.path, 2 * MIB)


def test_a_stranger_in_the_directory_keeps_the_directory(target: MeasuredTarget) -> None:
    scratch = make_scratch(target, MIB, keep=NOTHING_KEPT)
    stranger = Path(scratch.directory) / "stranger"
    stranger.touch()
    with pytest.raises(ScratchChangedError, match="not empty"):
        scratch.remove()
    assert stranger.exists()
    assert not Path(scratch.path).exists()


def test_after_a_remount_the_device_number_may_differ_but_not_the_file(scratch: Scratch) -> None:
    elsewhere = msgspec.structs.replace(
        scratch, directory_identity=(1, scratch.directory_identity[1]), file_identity=(1, scratch.file_identity[1])
    )
    with pytest.raises(ScratchChangedError):
        elsewhere.check()
    assert elsewhere.after_remount() == scratch
    swapped = msgspec.structs.replace(scratch, file_identity=(scratch.file_identity[0], 1))
    with pytest.raises(ScratchChangedError):
        swapped.after_remount()


def sized(size_bytes: int, free_bytes: int) -> MeasuredTarget:
    return MeasuredTarget("/srv", "xfs", "/srv", "/dev/sda", "sda", False, size_bytes, free_bytes)


@pytest.mark.parametrize(
    ("size", "free", "enough"),
    [
        (1000 * GIB, 101 * GIB, True),
        (1000 * GIB, 100 * GIB, False),
        (20 * GIB, 6 * GIB, True),
        (20 * GIB, 5 * GIB, False),
    ],
)
def test_the_larger_of_ten_percent_and_five_gib_stays_free(size: int, free: int, enough: bool) -> None:
    if enough:
        require_space(sized(size, free), GIB)
    else:
        with pytest.raises(RefusedError, match="stay free"):
            require_space(sized(size, free), GIB)
