"""A copy of the checkout that every user can read: a clone may lie in a home directory that only its owner enters."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def copy_for_everybody(place: Path) -> None:
    """Copy advisor, its data and the distributions that it needs into a directory, readable for every user."""
    # Another process may be compiling a module: it writes next to it first.
    unfinished = shutil.ignore_patterns("*.pyc.*")
    for name in ("advisor", "profiles", "templates", "tables"):
        shutil.copytree(ROOT / name, place / name, ignore=unfinished)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for source in _find_modules(needed):
        if source.is_dir():
            shutil.copytree(source, place / source.name, ignore=unfinished)
        else:
            shutil.copy2(source, place)
    subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)


def _find_modules(requirements: Iterable[str]) -> set[Path]:
    """The top directories and files of these distributions and of all that they require in turn."""
    found: set[Path] = set()
    pending, seen = list(requirements), set[str]()
    while pending:
        requirement = pending.pop()
        match = re.match(r"[\w.-]+", requirement)
        if match is None or match[0].lower() in seen or "extra ==" in requirement:
            continue
        seen.add(match[0].lower())
        try:
            distribution = importlib.metadata.distribution(match[0])
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or an older Python
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
        found |= {Path(str(distribution.locate_file(top))) for top in tops}
        pending += distribution.requires or ()
    return found


def prefix_for_nobody(place: Path) -> tuple[str, ...]:
    """What goes before ``sys.executable`` so that it runs the copy as nobody; skips where nobody has no such Python."""
    # setpriv still opens the interpreter with root's rights: it may lie in the closed directory as well.
    words = ("env", f"PYTHONPATH={place}", *AS_NOBODY)
    probe = subprocess.run([*words, sys.executable, "-c", "import json"], capture_output=True, text=True, cwd="/")
    if probe.returncode:
        pytest.skip(f"another user cannot run {sys.executable}: {probe.stderr.strip()[-200:]}")
    return words
