"""Records the demonstration: commands typed on the lab host, and what they really printed, with the time they took.

python docs/demo.py [--socket SOCKET]

Writes docs/demo.cast (asciinema v2, https://docs.asciinema.org/manual/asciicast/v2/) and the blocks of README.md that
show parts of it, each between two marks. Nothing is edited but for lines that are left out: there stands an ellipsis.
Under emulation commands take some ten times as long as on a real host; the recording keeps the order of things, and at
most two seconds of each wait.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.lab.guest import Guest, Machine  # noqa: E402
from tests.lab.hardware import STORAGE_HOST  # noqa: E402
from tests.lab.serve import ServedGuest  # noqa: E402

CAST = DOCS / "demo.cast"
README = DOCS.parent / "README.md"
MARKS = ("<!-- {}: written by docs/demo.py -->", "<!-- end of {} -->")
WIDTH, HEIGHT = 80, 40
LONGEST_WAIT = 2.0
KEYSTROKE = 0.04
PROMPT = "# "


class Typed(NamedTuple):
    """A command, the block of the README that shows it, and what of its output stands there; the recording has all."""

    command: str
    block: str = ""
    shown: str = ".*"
    """A regular expression: the lines in which it is found."""


SESSION: tuple[Typed, ...] = (
    Typed("advisor plan socket-buffers-8m", "change", r"^Plan of|would change|sysctl:net.core.rmem_max "),
    Typed("advisor apply socket-buffers-8m --yes 2>/dev/null", "change", r"^Applied|rollback\.sh"),
    Typed("sysctl net.core.rmem_max net.ipv4.tcp_rmem"),
    Typed("sysctl -q -w net.core.rmem_max=425984   # somebody else, later", "change"),
    Typed('advisor verify; echo "exit code $?"', "change", r"^Drift|rmem_max|\(0001\)$|^exit"),
    Typed('advisor rollback; echo "exit code $?"', "change", r"rolled back|skipped|^exit"),
    Typed('advisor rollback --force; echo "exit code $?"'),
    Typed("sysctl net.core.rmem_max net.ipv4.tcp_rmem"),
)
BLOCKS = tuple(dict.fromkeys(one.block for one in SESSION if one.block))


@contextmanager
def machine(socket: Path | None) -> Iterator[Machine]:
    """A guest that is kept up, or one of our own."""
    if socket is not None:
        yield ServedGuest(socket)
        return
    with Guest(STORAGE_HOST) as guest:
        yield guest


def record(guest: Machine) -> list[tuple[str, str, float]]:
    """Each command with its output and seconds; the guest is left as it was found."""
    guest.run("rm -rf /var/lib/advisor")
    found = []
    for command, *_ in SESSION:
        start = time.monotonic()
        # As on a terminal: both outputs in the order in which they come.
        done = guest.run(f"COLUMNS={WIDTH} sh -c {quoted(command)} 2>&1", timeout=300)
        found.append((command, done.stdout, time.monotonic() - start))
    guest.run("rm -rf /var/lib/advisor")
    return found


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def cast(session: list[tuple[str, str, float]]) -> str:
    """The recording: a header, then an event each for what is typed and what is printed."""
    header = {
        "version": 2,
        "width": WIDTH,
        "height": HEIGHT,
        "title": "advisor",
        "env": {"TERM": "xterm", "SHELL": "/bin/sh"},
    }
    lines, now = [json.dumps(header)], 0.0
    for command, output, seconds in session:
        lines.append(event(now, PROMPT))
        now += 0.5
        for char in command:
            lines.append(event(now, char))
            now += KEYSTROKE
        lines.append(event(now, "\r\n"))
        now += min(seconds, LONGEST_WAIT)
        lines.append(event(now, output.replace("\n", "\r\n")))
        now += 1.0
    return "\n".join(lines) + "\n"


def event(seconds: float, text: str) -> str:
    return json.dumps([round(seconds, 3), "o", text])


def text_blocks(session: list[tuple[str, str, float]]) -> dict[str, str]:
    """The text of each block of the README: an ellipsis where lines are left out."""
    found: dict[str, list[str]] = {}
    for (command, output, _), typed in zip(session, SESSION, strict=True):
        lines = found.setdefault(typed.block, [])
        lines.append(f"{PROMPT}{command}")
        for line in output.rstrip("\n").splitlines():
            if re.search(typed.shown, line):
                lines.append(line)
            elif lines[-1] != "…":
                lines.append("…")
    return {name: "\n".join(found[name]) + "\n" for name in BLOCKS}


def recorded_blocks(text: str) -> dict[str, str]:
    """What the README's blocks hold, from the recording alone."""
    output = "".join(json.loads(line)[2] for line in text.splitlines()[1:]).replace("\r\n", "\n")
    pieces = re.split("|".join(re.escape(f"{PROMPT}{command}\n") for command, *_ in SESSION), output)[1:]
    return text_blocks([(command, piece, 0.0) for (command, *_), piece in zip(SESSION, pieces, strict=True)])


def insert_blocks(readme: str, blocks: Mapping[str, str]) -> str:
    """The README with each block between its marks. Raises ValueError where a mark is missing."""
    for name, block in blocks.items():
        first, last = (mark.format(name) for mark in MARKS)
        start, end = readme.index(first), readme.index(last)
        readme = f"{readme[:start]}{first}\n\n```text\n{block}```\n\n{readme[end:]}"
    return readme


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", type=Path, help="of a guest that is kept up (tests/lab/README.md)")
    with machine(parser.parse_args().socket) as guest:
        text = cast(record(guest))
    CAST.write_text(text)
    README.write_text(insert_blocks(README.read_text(), recorded_blocks(text)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
