"""``advisor prove`` as a command: refusals before root is asked for, and a gain that is kept."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from advisor.transaction.journal import Store
from tests.cli.own_profile import profile_text
from tests.cli.test_bad_input import advisor
from tests.containers import needs_a_host
from tests.proof.conftest import disk, fake_fio
from tests.proof.fakes import CALM, FakeFio
from tests.running import run_text

__all__ = ["disk", "fake_fio"]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--quick", "--deep"), "exclude each other"), (("--raw-device", "/dev/sdz"), "--raw-device: was removed")],
)
def test_bad_input_is_told_before_root_is_asked_for(
    words: tuple[str, ...], message: str, tmp_path: Path, as_nobody: tuple[str, ...]
) -> None:
    done = advisor("prove", "numa-pinning", "--target", "/var/tmp", *words, where=tmp_path, before=as_nobody)
    assert done.returncode == 2
    assert message in done.stderr


CALM_HOST = """
mount --bind "$1/pressure" /proc/pressure && mount --bind "$1/stat" /proc/stat &&
mount --bind "$1/diskstats" /proc/diskstats &&
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/work" /etc && shift && "$@"
code=$?
cat /proc/sys/kernel/msgmnb
exit $code
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="makes namespaces: needs root")
@pytest.mark.parametrize(
    ("words", "value", "code", "is_kept"),
    [(("--keep-if-gain",), 30000, 0, True), ((), 30000, 0, False), (("--keep-if-gain",), 9000, 1, False)],
)
@needs_a_host
def test_a_proven_gain_is_applied_where_that_is_asked_for(
    words: tuple[str, ...], value: int, code: int, is_kept: bool, fake_fio: FakeFio, disk: Path
) -> None:
    place = disk / "host"
    for name in ("pressure", "etc/advisor/profiles", "work", "target"):
        (place / name).mkdir(parents=True)
    text = profile_text("longer-queues", {"sysctl:kernel.msgmnb": value}, "infoscale.4k-rand-rw50")
    (place / "etc/advisor/profiles/longer-queues.toml").write_text(text)
    (place / "pressure/cpu").write_text(CALM)
    (place / "pressure/io").write_text(CALM)
    (place / "stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\n")
    (place / "diskstats").touch()
    # a new IPC namespace has 16384, which makes 900 IOPS here; the null engine does not read the value
    fake_fio.plan(iops=900 / 16384, control_factor=16384.0)
    (fake_fio.directory / "speed").symlink_to("/proc/sys/kernel/msgmnb")
    size = ("--quick", "--dead-time", "0.1", "--file-size", "1M", "--seconds", "0.1", "--seed", "1", "--json")
    command = ("prove", "longer-queues", "--target", str(place / "target"), *size, *words)
    done = run_text(
        ["unshare", "--ipc", "--mount", "sh", "-c", CALM_HOST, "sh", place, sys.executable, "-m", "advisor", *command],
        env={
            **os.environ,
            "PATH": f"{fake_fio.directory}:{os.environ['PATH']}",
            "ADVISOR_STATE_DIR": str(disk / "state"),
            "PYTHONPATH": str(ROOT),
        },
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    document, _, live = done.stdout.rstrip().rpartition("\n")
    assert json.loads(document)["kept"] is is_kept
    assert live == str(value if is_kept else 16384)
    states = [record.state for record in Store(str(disk / "state")).read_records()]
    assert states == (["rolled-back", "applied"] if is_kept else ["rolled-back"])
    # A file would set it for the host at its next boot, and this is a namespace of its own.
    assert not list((place / "etc/sysctl.d").glob("*"))
