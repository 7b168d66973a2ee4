"""``advisor`` alone: the guided road on a terminal, the help without one."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SETUP = """
mount -t tmpfs none /etc/sysctl.d
ip link set lo up
sysctl -q -w net.ipv4.tcp_sack=0
echo net.ipv4.tcp_sack=0 > /etc/sysctl.d/50-site.conf
"""
CHOOSE, AGREE, KEEP = "Enter to stop:", "[y/N]", "[Y/n]"
DEADLINE = 240


def talk(where: Path, answers: Sequence[tuple[str, str]], *before: str) -> tuple[int, str]:
    """The exit code and all that advisor prints on a terminal of its own, where each prompt gets its answer."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(where / "state"), "PYTHONPATH": str(ROOT)}
    environment |= {"NO_COLOR": "1", "COLUMNS": "80"}
    after = '\ntrap : INT; stty -opost; code=0; "$@" || code=$?; cat /proc/sys/net/ipv4/tcp_sack; exit $code'
    command = [
        "setsid",
        "-c",
        "-w",
        "unshare",
        "-n",
        "-m",
        "sh",
        "-ec",
        SETUP + after,
        "sh",
        *before,
        sys.executable,
        "-m",
        "advisor",
    ]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=where)
    os.close(theirs)
    text, end = "", time.monotonic() + DEADLINE
    pending = list(answers)
    seen = 0
    while time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            text += data.decode("utf-8", "replace")
        if pending and (place := text.find(pending[0][0], seen)) >= 0:
            seen = place + len(pending[0][0])
            os.write(ours, f"{pending.pop(0)[1]}\n".encode())
    code = process.wait(30)
    os.close(ours)
    assert not pending, f"never asked: {pending}\n{text}"
    return code, text


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")


@needs_root
def test_the_whole_road_ends_with_a_change_that_is_kept(tmp_path: Path) -> None:
    code, text = talk(tmp_path, [(CHOOSE, "advice.tcp-sack-off"), (AGREE, "y"), (KEEP, "")])
    assert code == 0, text
    steps = [line for line in text.splitlines() if line.startswith("$ ")]
    assert steps == ["$ advisor scan", "$ advisor fix advice.tcp-sack-off", "$ advisor verify 0001"]
    assert "To roll back later: advisor rollback 0001" in text
    assert text.splitlines()[-1] == "1"


@needs_root
def test_at_the_end_it_can_be_rolled_back(tmp_path: Path) -> None:
    code, text = talk(tmp_path, [(CHOOSE, "advice.tcp-sack-off"), (AGREE, "y"), (KEEP, "n")])
    assert code == 0, text
    assert "$ advisor rollback 0001" in text
    assert text.splitlines()[-1] == "0"


@needs_root
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(CHOOSE, "")], 0),
        ([(CHOOSE, "advice.tcp-sack-off"), (AGREE, "n")], 3),
        ([(CHOOSE, "no.such")], 2),
        ([(CHOOSE, "\x03")], 130),
        ([(CHOOSE, "\x04")], 0),
    ],
)
def test_to_stop_changes_nothing(tmp_path: Path, answers: list[tuple[str, str]], expected: int) -> None:
    code, text = talk(tmp_path, answers)
    assert "Traceback" not in text
    assert (code, text.splitlines()[-1]) == (expected, "0"), text


def test_another_user_gets_the_command_for_root(open_path: Path, as_nobody: tuple[str, ...]) -> None:
    code, text = talk(open_path, [(CHOOSE, "advice.tcp-sack-off")], *as_nobody)
    assert code == 0, text
    assert "$ advisor fix advice.tcp-sack-off --dry-run" in text
    assert f"sudo {sys.executable} -m advisor fix advice.tcp-sack-off" in text


def test_without_a_terminal_it_is_the_help(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "advisor"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "Usage: advisor" in done.stdout + done.stderr
