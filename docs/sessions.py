"""Runs the sessions of the tutorial, the how-tos and the README, and writes what was really printed into the pages.

python docs/sessions.py [PAGE…]            writes what has changed
python docs/sessions.py --check [PAGE…]    writes nothing; exit code 1 if a page is stale

A session is a block of ```console. Its lines that begin with its first two characters, "$ " or "# ", are typed in a
shell; what follows each is what the command printed, on both outputs, at 80 columns. A comment `<!-- setup: COMMANDS
-->` is run without being shown. The blocks of a page share one sandbox: network, mount, process and host name
namespaces of their own, with copies of /etc and empty state directories, so that nothing of this machine is changed,
and a root directory without the files with which a manager of containers marks its own; root is needed to make it.
Dates and measured times do not count as a difference.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
COLUMNS = 80
PROMPTS = ("$ ", "# ")
MARK = "\x1e"
"""Between the outputs of two commands; no page of advisor prints it."""
PART = re.compile(r"^```console\n(?P<session>.*?)^```$|^<!-- setup: (?P<setup>.*?) -->$", re.DOTALL | re.MULTILINE)
MOVING = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?: UTC|Z)?)?|\b\d+(?:\.\d+)? (?:ms|s)\b|\b\d+\.\d{3}\b")
"""Dates and measured times: they say when a page was written, not what the program does."""

SANDBOX = """
mkdir {home}/root && mount -t tmpfs none {home}/root
for one in /*; do
  if [ -L "$one" ]; then cp -P "$one" {home}/root/
  elif [ -d "$one" ]; then mkdir "{home}/root$one" && mount --rbind "$one" "{home}/root$one"; fi
done
cd {home}/root && mkdir old && pivot_root . old && umount -l /old && rmdir /old
mount -t tmpfs none {home}/mnt && mkdir {home}/mnt/etc {home}/mnt/lib && cp -a /etc/. {home}/mnt/etc/
rm -rf {home}/mnt/etc/advisor {home}/mnt/etc/sysctl.d {home}/mnt/etc/systemd/network
mkdir -p {home}/mnt/etc/sysctl.d {home}/mnt/etc/systemd/network
mount --bind {home}/mnt/etc /etc && mount --bind {home}/mnt/lib /var/lib
mount -t sysfs none /sys && mount -t tmpfs none /run && hostname stor1 && ip link set lo up
cd {home}/work
"""


class Command(NamedTuple):
    """What is typed with its prompt, None for a setup; and what stands below it on the page."""

    typed: str | None
    run: str
    printed: str


def find_pages() -> list[Path]:
    """Every page that has a session."""
    found = [path for directory in ("tutorial", "how-to") for path in sorted((DOCS / directory).glob("*.md"))]
    found.append(DOCS.parent / "README.md")
    return [path for path in found if "```console\n" in path.read_text("utf-8")]


def parse_commands(text: str) -> Iterator[Command]:
    """The commands of a page in their order, setups among them."""
    for part in PART.finditer(text):
        if part["setup"]:
            yield Command(None, part["setup"], "")
            continue
        typed, printed = None, ""
        # Only the prompt that a session begins with is one: what is printed may begin with the other.
        prompt = part["session"][:2]
        if prompt not in PROMPTS:
            raise RuntimeError(f"a session begins with a prompt: {part['session'][:40]!r}")
        for line in part["session"].splitlines(keepends=True):
            if line.startswith(prompt):
                if typed is not None:
                    yield Command(typed, typed[2:], printed)
                typed, printed = line, ""
            elif typed is not None and typed.endswith("\\\n"):
                typed += line
            else:
                printed += line
        if typed is not None:
            yield Command(typed, typed[2:], printed)


def run_commands(commands: Sequence[Command]) -> list[str]:
    """What each command prints in a fresh sandbox. Raises RuntimeError where the sandbox cannot be made."""
    with tempfile.TemporaryDirectory() as home:
        for name in ("mnt", "work", "bin"):
            Path(home, name).mkdir()
        for name in ("docs", "profiles"):
            Path(home, "work", name).symlink_to(DOCS.parent / name)
        launcher = Path(home, "bin/advisor")
        launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m advisor "$@"\n')
        launcher.chmod(0o755)
        script = SANDBOX.format(home=shlex.quote(home)) + f"printf '{MARK}'\n"
        script += "".join(f"{one.run.rstrip()}\nprintf '{MARK}'\n" for one in commands)
        keep = {name: value for name, value in os.environ.items() if name in ("LANG", "VIRTUAL_ENV")}
        environment = {**keep, "PATH": f"{home}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "COLUMNS": str(COLUMNS)}
        environment |= {"PYTHONPATH": str(DOCS.parent), "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": home}
        done = subprocess.run(
            ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            check=False,
            timeout=600,
        )
    found = done.stdout.split(MARK)
    if len(found) != len(commands) + 2:
        raise RuntimeError(f"the sandbox ended early: {done.stdout[-2000:]}")
    return found[1:-1]


def compose_page(text: str) -> str:
    """The page with what its commands print now; where only dates differ, with what it says already."""
    commands = list(parse_commands(text))
    outputs = iter(run_commands(commands))
    shown = []
    for command, output in zip(commands, outputs, strict=True):
        if command.typed is None:
            if output:
                raise RuntimeError(f"a setup printed: {command.run}\n{output}")
            continue
        clean = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
        same = MOVING.sub("", clean) == MOVING.sub("", command.printed)
        shown.append(f"{command.typed}{command.printed if same else clean}")
    left = iter(shown)

    def replace_session(part: re.Match[str]) -> str:
        if part["setup"]:
            return part[0]
        count = sum(1 for _ in parse_commands(part[0]))
        return f"```console\n{''.join(next(left) for _ in range(count))}```"

    return PART.sub(replace_session, text)


def main(arguments: Sequence[str]) -> int:
    is_check = "--check" in arguments
    pages = [Path(one).resolve() for one in arguments if one != "--check"] or find_pages()
    code = 0
    for page in pages:
        text = page.read_text("utf-8")
        wanted = compose_page(text)
        if wanted == text:
            continue
        code = 1 if is_check else 0
        name = str(page.relative_to(DOCS.parent))
        print(f"{name}: {'is stale' if is_check else 'written'}")
        if is_check:
            print("".join(difflib.unified_diff(text.splitlines(True), wanted.splitlines(True), name, "printed now")))
        else:
            page.write_text(wanted, "utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
