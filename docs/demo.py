"""Records the demonstration: commands typed on the lab host, and what they really printed, with the time they took.

python docs/demo.py [--socket SOCKET]

Writes docs/demo.cast (asciinema v2, https://docs.asciinema.org/manual/asciicast/v2/) and the session in README.md,
between its two marks. Nothing is edited but for lines that are left out, which is said there. Under emulation commands
take some ten times as long as on a real host; the recording keeps the order of things, and at most two seconds of each
wait.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.lab.guest import Guest, Machine  # noqa: E402
from tests.lab.hardware import STORAGE_HOST  # noqa: E402
from tests.lab.serve import ServedGuest  # noqa: E402

CAST = DOCS / "demo.cast"
README = DOCS.parent / "README.md"
MARKS = ("<!-- demo: written by docs/demo.py -->", "<!-- end of demo -->")
WIDTH, HEIGHT = 80, 40
LONGEST_WAIT = 2.0
KEYSTROKE = 0.04
PROMPT = "# "

# What is typed, and how many of its lines the README shows; the recording has all.
SESSION: tuple[tuple[str, int], ...] = (
    ("advisor plan socket-buffers-8m", 13),
    ("advisor apply socket-buffers-8m --yes 2>/dev/null", 30),
    ("sysctl net.core.rmem_max net.ipv4.tcp_rmem", 5),
    ("sysctl -q -w net.core.rmem_max=425984   # somebody else, later", 5),
    ('advisor verify; echo "exit code $?"', 12),
    ('advisor rollback; echo "exit code $?"', 20),
    ('advisor rollback --force; echo "exit code $?"', 20),
    ("sysctl net.core.rmem_max net.ipv4.tcp_rmem", 5),
)


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
    for command, _ in SESSION:
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


def page(session: list[tuple[str, str, float]]) -> str:
    """The session as text, longer outputs cut where the SESSION says so."""
    parts = []
    for (command, output, _), (_, limit) in zip(session, SESSION, strict=True):
        shown = output.rstrip("\n").splitlines()
        rest = ["…"] if len(shown) > limit else []
        parts.append("\n".join([f"{PROMPT}{command}", *shown[:limit], *rest]))
    return "\n".join(parts) + "\n"


def session_of(text: str) -> str:
    """What the README's block is to hold, told from the recording alone."""
    output = "".join(json.loads(line)[2] for line in text.splitlines()[1:]).replace("\r\n", "\n")
    pieces = re.split("|".join(re.escape(f"{PROMPT}{command}\n") for command, _ in SESSION), output)[1:]
    return page([(command, piece, 0.0) for (command, _), piece in zip(SESSION, pieces, strict=True)])


def with_block(readme: str, block: str) -> str:
    """The README with the block between its marks."""
    start, end = (readme.index(mark) for mark in MARKS)
    return f"{readme[:start]}{MARKS[0]}\n\n```text\n{block}```\n\n{readme[end:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", type=Path, help="of a guest that is kept up (tests/lab/README.md)")
    with machine(parser.parse_args().socket) as guest:
        text = cast(record(guest))
    CAST.write_text(text)
    README.write_text(with_block(README.read_text(), session_of(text)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
