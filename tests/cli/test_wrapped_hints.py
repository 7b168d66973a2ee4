"""Errors on a terminal: wrapped at its width, and a command in them on a line of its own; in a pipe on one line."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

ADVISOR = [sys.executable, "-m", "advisor"]
WORDS = ("limits", "foo=1")
COMMAND = "advisor limits --what-if raid=raid10"


def error_on_terminal(*words: str, columns: int) -> list[str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen([*ADVISOR, *words], env=kept, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    found = b""
    try:
        while data := os.read(ours, 65536):
            found += data
    except OSError:
        pass  # Linux ends a terminal without writers with EIO.
    finally:
        os.close(ours)
    assert process.wait() == 2
    return found.decode().splitlines()


@pytest.mark.parametrize("columns", [50, 80])
def test_a_hint_is_wrapped_and_its_command_is_whole(columns: int) -> None:
    lines = error_on_terminal(*WORDS, columns=columns)
    assert lines[0] == "advisor: unexpected argument: foo=1"
    assert all(len(line) <= columns for line in lines), lines
    assert any(line.endswith(COMMAND) for line in lines), lines
    assert all(line.startswith("    ") for line in lines[2:]), lines


def test_a_pipe_gets_one_line() -> None:
    done = subprocess.run([*ADVISOR, *WORDS], capture_output=True, text=True, check=False)
    _error, hint = done.stderr.splitlines()
    assert "volumes, instance, raid, stripes, links, speed, mtu" in hint
    assert hint.endswith(COMMAND)
