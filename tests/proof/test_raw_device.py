"""A disk itself as the target: what is refused, that reading changes no byte, and that only an empty one is written to.

The disk is a loop device over a file; a captured tree gives it a name and a serial number, which loop devices lack.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.host import DirectoryFiles, Host, LiveCommands, live_host
from advisor.proof.bench import bench
from advisor.proof.raw_device import HeldDevice, hold_device, permit_writes, read_raw_target
from advisor.proof.scratch import MIB
from advisor.proof.series import Bench
from advisor.proof.session import self_test
from advisor.proof.session_runner import Settings
from advisor.proof.target import RawDevice
from advisor.proof.workloads import get_workload
from advisor.report.bench import bench_text
from advisor.report.proof import proof_text
from tests.known import known
from tests.trees import make_tree

from .fakes import FakeFio, calm_tree

READ, WRITE = "infoscale.4k-rand-r100", "infoscale.4k-rand-w100"
SERIAL = "S3-77"
SIZE = 64 * MIB
SHORT: dict[str, object] = {"mode": "quick", "seconds": 0.1, "seed": 1, "byte_budget": 512 * MIB}


def loop_device(file: Path) -> str | None:
    """The loop device over a file; None where none can be had."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        return None
    done = subprocess.run(["losetup", "--find", "--show", file], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


class Disk:
    """A loop device that the tree of a captured host shows as ``/dev/vdz``."""

    def __init__(self, tree: Path, file: Path, loop: str) -> None:
        self.tree = tree
        self.file = file
        self.loop = loop
        self.number = os.stat(loop).st_rdev
        self.label = f"{os.major(self.number)}:{os.minor(self.number)}"
        calm_tree(tree)
        files = {
            "size": f"{SIZE // 512}\n",
            "serial": f"{SERIAL}\n",
            "dev": f"{self.label}\n",
            "queue/rotational": "0\n",
        }
        make_tree(
            tree,
            {f"/sys/block/vdz/{name}": f"{text}\n" for name, text in files.items()},
            {f"/sys/dev/block/{self.label}": "../../block/vdz"},
        )
        (tree / "dev").mkdir()
        os.mknod(tree / "dev/vdz", 0o060600, self.number)
        (tree / "dev/link").symlink_to("vdz")

    @property
    def host(self) -> Host:
        return self.host_with("/usr/sbin:/usr/bin:/sbin:/bin")

    def host_with(self, path: str) -> Host:
        return Host(DirectoryFiles(str(self.tree)), LiveCommands(path=path), is_root=True)

    def content(self) -> str:
        subprocess.run(["blockdev", "--flushbufs", self.loop], check=True)
        return hashlib.sha256(self.file.read_bytes()).hexdigest()


@pytest.fixture
def vdz(tmp_path: Path, disk: Path) -> Iterator[Disk]:
    file = disk / "backing"
    file.write_bytes(b"")
    os.truncate(file, SIZE)
    loop = loop_device(file)
    if loop is None:
        pytest.skip("no loop devices here")
    try:
        yield Disk(tmp_path / "tree", file, loop)
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)


def chosen(path: str = "/dev/vdz", serial: str = SERIAL, *, may_write: bool = False) -> RawDevice:
    return RawDevice(path, serial, may_write)


def held(host: Host, raw: RawDevice) -> HeldDevice:
    return hold_device(host, read_raw_target(host, raw).raw or raw)


def refused(host: Host, raw: RawDevice) -> str:
    with pytest.raises(RefusedError) as caught:
        held(host, raw)
    assert caught.value.exit_code == 3
    return caught.value.message


# -- which disk --------------------------------------------------------------------------------------------------------


def test_a_disk_is_found_by_its_node_and_serial_number(vdz: Disk) -> None:
    for path in ("/dev/vdz", "/dev/link"):
        found = read_raw_target(vdz.host, chosen(path))
        assert (found.path, found.device, found.file_system) == ("/dev/vdz", "vdz", "raw device")
        assert found.size_bytes == SIZE
    held(vdz.host, chosen(may_write=True)).remove()
    assert "no serial number" in refused(live_host(), chosen(vdz.loop, ""))
    (vdz.tree / "sys/block/vdz/serial").unlink()
    assert "no serial number" in refused(vdz.host, chosen())


@pytest.mark.parametrize(
    ("path", "serial", "message"),
    [
        ("/dev/vdz", "S3-78", "serial number is not 'S3-78'"),
        ("/dev/vdz", "s3-77", "serial number is not"),
        ("/dev/vdz", "S3-7", "serial number is not"),
        ("/dev/vdy", SERIAL, "/dev/vdy"),
        ("/proc/meminfo", SERIAL, "no block device"),
        ("/dev", SERIAL, "no block device"),
    ],
)
def test_another_disk_is_never_taken(vdz: Disk, path: str, serial: str, message: str) -> None:
    assert message in refused(vdz.host, chosen(path, serial))


def test_a_serial_number_that_two_disks_have_tells_neither(vdz: Disk) -> None:
    """Two paths to one disk, too: a hold on one keeps nobody from mounting the other."""
    for text, is_alike in ((SERIAL, True), ("S3-78", False)):
        make_tree(vdz.tree, {"/sys/block/vdy/size": "8\n", "/sys/block/vdy/serial": f"{text}\n"})
        if is_alike:
            assert "vdy has the same serial number" in refused(vdz.host, chosen())
        else:
            held(vdz.host, chosen()).remove()


def test_a_partition_is_no_disk(vdz: Disk) -> None:
    link = vdz.tree / f"sys/dev/block/{vdz.label}"
    link.unlink()
    link.symlink_to("../../block/vdz/vdz1")
    assert "no whole disk" in refused(vdz.host, chosen())


# -- in use ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"/proc/self/mountinfo": "27 1 {label} / /srv/data rw - xfs /dev/vdz rw\n"}, "mounted at /srv/data"),
        ({"/sys/block/vdz/holders/dm-3/uevent": ""}, "dm-3"),
        ({"/proc/swaps": "Filename Type Size Used Priority\n/dev/vdz partition 1 0 -2\n"}, "swap space"),
    ],
)
def test_a_disk_that_is_mounted_a_member_or_swap_is_refused(vdz: Disk, files: dict[str, str], words: str) -> None:
    make_tree(vdz.tree, {path: text.replace("{label}", vdz.label) for path, text in files.items()})
    assert words in refused(vdz.host, chosen())


def test_what_somebody_holds_is_refused_although_nothing_tells_who(vdz: Disk) -> None:
    other = os.open(vdz.loop, os.O_RDONLY | os.O_EXCL)
    try:
        assert "in use" in refused(vdz.host, chosen())
    finally:
        os.close(other)
    ours = held(vdz.host, chosen())
    with pytest.raises(OSError, match="busy"):
        os.open(vdz.loop, os.O_RDONLY | os.O_EXCL)
    ours.remove()


def test_a_disk_that_is_another_by_now_is_not_read(vdz: Disk, disk: Path) -> None:
    looked_at = known(read_raw_target(vdz.host, chosen()).raw)
    node = vdz.tree / "dev/vdz"
    node.unlink()
    os.mknod(node, 0o060600, os.makedev(7, 250))
    with pytest.raises(RefusedError):
        hold_device(vdz.host, looked_at)
    node.unlink()
    node.write_bytes(b"")
    with pytest.raises(RefusedError, match="not the device"):
        hold_device(vdz.host, looked_at)


# -- writing -----------------------------------------------------------------------------------------------------------


def test_writing_takes_a_permission_of_its_own_and_reading_takes_none() -> None:
    with pytest.raises(RefusedError, match=f"{WRITE} would write") as caught:
        permit_writes(chosen(), [get_workload(READ), get_workload(WRITE)])
    assert "--allow-raw-writes" in (caught.value.hint or "")
    assert permit_writes(chosen(may_write=True), [get_workload(WRITE)]).may_write
    assert not permit_writes(chosen(may_write=True), [get_workload(READ)]).may_write


@pytest.mark.parametrize("place", [0, MIB - 1, SIZE // 2 // 4096 * 4096, SIZE - 1])
def test_one_byte_that_is_not_zero_is_enough_to_leave_it_alone(vdz: Disk, place: int) -> None:
    # in the middle only samples are read: every one of them is filled
    with open(vdz.loop, "r+b", buffering=0) as device:
        for at in range(MIB, SIZE - MIB, 4096) if MIB <= place < SIZE - MIB else [place // 4096 * 4096]:
            device.seek(at)
            device.write(bytes(4095) + b"x")
    assert "holds data" in refused(vdz.host, chosen(may_write=True))
    assert read_raw_target(vdz.host, chosen()).raw is not None


@pytest.mark.parametrize("make", [("mkfs.ext4", "-q", "-F"), ("mkswap",), ("pvcreate", "-y", "-ff")])
def test_a_signature_is_named_and_left_alone(vdz: Disk, make: tuple[str, ...]) -> None:
    if shutil.which(make[0]) is None:
        pytest.skip(f"{make[0]} is not installed")
    subprocess.run([*make, str(vdz.file)], check=True, capture_output=True)
    subprocess.run(["blockdev", "--flushbufs", vdz.loop], check=True)
    assert "holds something" in refused(vdz.host, chosen(may_write=True))


def test_what_may_hold_data_is_not_written_to(vdz: Disk, tmp_path: Path) -> None:
    assert "cannot determine" in refused(vdz.host_with(str(tmp_path)), chosen(may_write=True))
    (vdz.tree / "sys/module/vxio").mkdir(parents=True)
    assert "VxVM" in refused(vdz.host, chosen(may_write=True))
    (vdz.tree / "sys/block/vdz/vdz1").mkdir()
    assert "partitions (vdz1)" in refused(vdz.host, chosen(may_write=True))


# -- measuring ---------------------------------------------------------------------------------------------------------


def measured(
    vdz: Disk, *workloads: str, fio: FakeFio | None = None, may_write: bool = False, budget: float | None = None
) -> Bench:
    settings = Settings(raw=chosen(may_write=may_write), budget_seconds=budget, **SHORT)  # type: ignore[arg-type]
    return bench(vdz.host, workloads, settings, runner=fio.runner if fio else None)


def test_fio_is_told_to_read_only_and_gets_no_path_of_a_device(vdz: Disk, fake_fio: FakeFio) -> None:
    found = measured(vdz, READ, fio=fake_fio)
    assert found.workloads[0].runs == 8
    calls = [words for words in fake_fio.calls() if "--direct=1" in words]
    assert all("--readonly" in words for words in calls)
    assert {word for words in calls for word in words if word.startswith("--filename=")} == {
        word for word in calls[0] if word.startswith(f"--filename=/proc/{os.getpid()}/fd/")
    }
    assert f"--size={SIZE}" in calls[0]
    text = bench_text(found, width=100, color=False)
    assert "/dev/vdz itself was read only" in text
    assert "--raw-device=/dev/vdz --confirm-serial=S3-77" in " ".join(text.replace("\\\n", " ").split())
    assert "never written" in " ".join(text.split())


def test_a_profile_s_workloads_that_write_are_refused_before_fio_runs(vdz: Disk, fake_fio: FakeFio) -> None:
    with pytest.raises(RefusedError, match="would write"):
        measured(vdz, WRITE, fio=fake_fio)
    assert fake_fio.calls() == []


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_reading_leaves_every_byte_and_lets_go_of_the_disk(vdz: Disk) -> None:
    vdz.file.write_bytes(os.urandom(SIZE))
    before = vdz.content()
    found = measured(vdz, READ, budget=7.0)
    assert (found.series.faults, found.series.bytes_written) == ((), 0)
    assert len(found.series.warm_up) >= 2
    assert vdz.content() == before
    os.close(os.open(vdz.loop, os.O_RDONLY | os.O_EXCL))


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_an_empty_disk_is_written_to_within_the_budget(vdz: Disk) -> None:
    before = vdz.content()
    found = measured(vdz, WRITE, may_write=True, budget=7.0)
    assert found.series.faults == ()
    assert 0 < found.series.bytes_written <= 512 * MIB
    assert vdz.content() != before
    assert "what it held is gone" in bench_text(found, width=100, color=False)


def test_a_proof_names_the_disk(vdz: Disk, fake_fio: FakeFio) -> None:
    settings = Settings(raw=chosen(), **SHORT)  # type: ignore[arg-type]
    proof = self_test(vdz.host, [READ], settings, runner=fake_fio.runner)
    assert proof.workloads[0].pairs == 8
    assert proof.session.raw_device is not None
    text = " ".join(proof_text(proof, width=100, color=False).replace("\\\n", " ").split())
    assert "on /dev/vdz (raw device on vdz)" in text
    assert "--raw-device=/dev/vdz --confirm-serial=S3-77" in text
