"""Programs of the system: their output as text, and a network of its own for as long as a block lasts."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def run_text(words: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[str]:
    """What it prints and ends with; a failure is an error only with ``check=True``."""
    return subprocess.run(words, **{"capture_output": True, "text": True, "check": False, **more})


@contextlib.contextmanager
def network_namespace(name: str) -> Iterator[None]:
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)
