"""The linters are tests: pytest is the only command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
SCRIPTS = sorted(
    path
    for path in [
        *ROOT.glob("*.sh"),
        ROOT / ".ci/run",
        *ROOT.glob(".githooks/*"),
        *ROOT.glob("packaging/**/*"),
        *ROOT.glob("tests/lab/**/*"),
    ]
    if path.is_file()
    and path.read_bytes()[:20].split(b"\n")[0] in (b"#!/bin/sh", b"#!/usr/bin/env bash", b"#!/bin/bash")
)


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    run(BIN / "ruff", "check", ".")


def test_ruff_would_format_nothing() -> None:
    run(BIN / "ruff", "format", "--check", ".")


def test_mypy_strict_finds_nothing() -> None:
    run(BIN / "mypy")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shellcheck_finds_nothing(script: Path) -> None:
    run(BIN / "shellcheck", script)
