"""The functions of the rollback script that read values, run on their own under each shell that it has to run under."""

from __future__ import annotations

import functools
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from advisor.host import Missing, Probe, ReadCommand, ReadEthtool, ReadFile, observe
from advisor.shell.quote import make_records
from advisor.shell.rollback_script import probe_fields, script_text
from tests.trees import host_of

SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]
NOTHING = "nothing"


@functools.cache
def functions() -> str:
    """The script's functions that read data, values and links, and that do steps."""
    text = script_text()
    return text[text.index("tab='") : text.index("load_data() {")]


def fields_command(fields: Sequence[str], function: str) -> str:
    """The command that calls a function of the script with the fields of a record."""
    return f"with_fields {shlex.quote(make_records([fields]).decode().rstrip())} {function}"


def read_by_shell(probe: Probe, text: str, shell: list[str]) -> str:
    """What the script makes of ``text``, in the place of what the probe's command or file gives."""
    script = f"root=\n{functions()}\n{_reading_of(probe, '/dev/stdin')}"
    done = subprocess.run([*shell, "-c", script], input=text.encode(), capture_output=True, check=False)
    return done.stdout.decode().removesuffix("\n") if done.returncode == 0 else NOTHING


def _reading_of(probe: Probe, path: str) -> str:
    """The command that reads a probe's file or, in the place of what its command prints, the file ``path``."""
    fields = probe_fields(probe)
    match probe:
        case ReadFile(place, form):
            fields = probe_fields(ReadFile(path if path == "/dev/stdin" else place, form, probe.identity))
        case ReadCommand():
            fields = probe_fields(ReadFile(path, probe.form))
        case ReadEthtool():
            return "ethtool_value " + " ".join(map(shlex.quote, fields[3:7])) + f' < "$root"{path}'
    return fields_command(fields, "read_probe")


def read_batch(shell: Sequence[str], examples: Iterable[tuple[str, Probe]]) -> list[str]:
    """What one process of the shell reads for each example, a root directory and a probe; `NOTHING` where
    the script finds that the value cannot be read. To start a shell for each takes five times as long."""
    listed = list(examples)
    probes = list(dict.fromkeys(probe for _, probe in listed))
    arms = (f"    {number}) {_reading_of(probe, '/text')} ;;" for number, probe in enumerate(probes))
    script = "\n".join(
        (
            "set -u; LC_ALL=C; export LC_ALL",
            f"root=\n{functions()}",
            "live_value() {\n    case $1 in",
            *arms,
            "    esac\n}",
            "while read -r number root; do",
            '    if live=$(live_value "$number" 2>/dev/null); then printf \'V%s\\000\' "$live"',
            "    else printf 'N\\000'",
            "    fi",
            "done",
        )
    )
    lines = "".join(f"{probes.index(probe)} {root}\n" for root, probe in listed)
    done = subprocess.run([*shell, "-c", script], input=lines.encode(), capture_output=True, check=False)
    assert done.stderr == b"", done.stderr.decode()
    found = done.stdout.decode("utf-8", "replace").split("\0")[:-1]
    assert len(found) == len(listed)
    return [NOTHING if one == "N" else one[1:] for one in found]


def plain(found: str | Missing) -> str:
    return NOTHING if isinstance(found, Missing) else found


def read_by_both(where: Path, listed: list[tuple[str, bytes]], shell: list[str]) -> list[tuple[str, bytes, str, str]]:
    """Form, text, what Python reads and what the shell reads, of texts of one form."""
    examples = []
    for number, (form, text) in enumerate(listed):
        root = where / str(number)
        root.mkdir(exist_ok=True)
        (root / "text").write_bytes(text)
        examples.append((str(root), ReadFile("/text", form)))
    by_python = [plain(observe(host_of(Path(root)), probe)) for root, probe in examples]
    pairs = zip(listed, by_python, read_batch(shell, examples), strict=True)
    return [(form, text, ours, theirs) for (form, text), ours, theirs in pairs]
