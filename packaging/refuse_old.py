"""Lets a bundle refuse a Python that is too old in one line: ``python packaging/refuse_old.py FILE``.

pex searches for another interpreter then, and prints a page about each one that it finds. What stands before its
first file runs in every Python since 2.7, and leaves the search to pex where it could find one.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

FIRST = """\
import os, subprocess, sys
if sys.version_info < (3, 11) and not any(
    os.access(os.path.join(place, name), os.X_OK)
    and subprocess.call([os.path.join(place, name), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]) == 0
    for place in os.environ.get("PATH", "").split(os.pathsep)
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14")
):
    sys.exit("advisor: needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])
"""


def refuse_old(path: Path) -> None:
    """Puts the check before the first file of the archive, whose other members stay as they are."""
    content = path.read_bytes()
    head = content[: content.index(b"\n") + 1] if content.startswith(b"#!") else b""
    whole = path.with_name(f"{path.name}.new")
    with zipfile.ZipFile(path) as old, whole.open("wb") as file:
        file.write(head)
        with zipfile.ZipFile(file, "w") as new:
            for member in old.infolist():
                text = old.read(member)
                if member.filename == "__main__.py":
                    text = FIRST.encode() + text
                new.writestr(member, text, compress_type=member.compress_type)
    whole.chmod(path.stat().st_mode)
    whole.replace(path)


if __name__ == "__main__":
    refuse_old(Path(sys.argv[1]))
