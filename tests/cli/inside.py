"""The command line in this process: a start of Python takes ten times as long as most refusals."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from unittest.mock import patch

import pytest

from advisor.cli import main
from advisor.cli.parser import build_program


def call_inside(*words: object, **environment: object) -> subprocess.CompletedProcess[str]:
    """What ``advisor WORDS`` ends with, prints and says; an error that nobody expected is raised."""
    argv = ["advisor", *map(str, words)]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    asked = {name: str(value) for name, value in environment.items()}
    with (
        patch.dict(os.environ, asked),
        patch.object(sys, "argv", argv),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    said, errors = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert isinstance(ended.value.code, int)
    assert "Traceback" not in errors
    return subprocess.CompletedProcess(argv, ended.value.code, said, errors)


def call_on_terminal(
    *words: str, columns: int = 80, out: int | None = None, environment: Mapping[str, str] = {}
) -> tuple[int, str]:
    """Return how ``advisor WORDS`` ends in a process, and the text on its terminal: all output, or errors alone."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "advisor", *words],
        env={**kept, **environment},
        stdin=theirs,
        stdout=theirs if out is None else out,
        stderr=theirs,
    )
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # Linux ends a terminal without writers with EIO.
        while data := os.read(ours, 65536):
            printed += data
    os.close(ours)
    return process.wait(), printed.decode()


program = cache(build_program)


def parse_words(words: list[str]) -> None:
    """Parse the words of a call and run nothing; a call that is refused raises typer's error."""
    command, rest = program(), list(words)
    context = command.make_context("advisor", [*rest])
    while rest and hasattr(command, "list_commands"):
        name, *rest = rest
        command = command.get_command(context, name)
        context = command.make_context(name, [*rest], parent=context)
