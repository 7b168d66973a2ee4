"""The process ends without taking apart what it loaded, and still does all that is due at its end."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """\
import atexit, sys, threading
from advisor.cli import run_program
sys.argv[0] = "advisor"
{due}
run_program()
"""


@pytest.mark.parametrize(
    "due", ["atexit.register(print, 'last words')", "threading.Timer(0.3, print, ['last words']).start()"]
)
def test_what_is_due_at_the_end_is_done(due: str) -> None:
    call = [sys.executable, "-c", PROGRAM.format(due=due), "--version"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    first, last = done.stdout.splitlines()
    assert first.startswith("advisor ")
    assert last == "last words"


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["no-such-command"], 2)])
def test_the_exit_code_is_kept(words: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, "-m", "advisor", *words], capture_output=True, check=False)
    assert done.returncode == code
