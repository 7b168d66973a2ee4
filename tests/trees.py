"""Fake systems for tests: a tree from a dict, executables that keep state, and nothing of our own code replaced."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from advisor.host import DirectoryFiles, Host, LiveCommands

STANDARD_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def make_tree(root: Path, files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> Path:
    """Files (absolute host path → content) and symbolic links (path → target) below ``root``."""
    for path, content in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    for path, target in (links or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    return root


def make_command(directory: Path, name: str, script: str) -> str:
    """The path of an executable on a private search path; ``script`` is its sh body."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def host_of(root: Path, commands: Path | None = None) -> Host:
    """A host that is a tree, with real commands found in ``commands`` before the system's."""
    path = f"{commands}:{STANDARD_PATH}" if commands else STANDARD_PATH
    return Host(DirectoryFiles(str(root)), LiveCommands(path=path), is_root=True)


def listing(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every path below ``root`` with its kind, mode and content: what a byte comparison compares."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for directory, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(directory, name)
            status = path.lstat()
            if path.is_symlink():
                found[str(path.relative_to(root))] = ("link", 0, os.readlink(path).encode())
            elif path.is_dir():
                found[str(path.relative_to(root))] = ("dir", stat.S_IMODE(status.st_mode), b"")
            else:
                found[str(path.relative_to(root))] = ("file", stat.S_IMODE(status.st_mode), path.read_bytes())
    return found
