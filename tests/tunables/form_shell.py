"""The functions of the rollback script that read values, run on their own under each shell that it has to run under."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from advisor.host import Missing, Probe, ReadFile, ReadIrqs, observe
from advisor.host.steps import QDISC_HANDLES
from advisor.shell.rollback_script import _probe_command
from tests.trees import host_of

SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]
NOTHING = "nothing"


def functions(*forms: str) -> str:
    """The template's functions of these forms."""
    from advisor.shell.templates import make_environment

    blank = {"profiles": "", "fingerprint": "", "machine_id": "", "values": [], "moved": [], "files": [], "reload": []}
    template = make_environment(escape_html=False).get_template("rollback.sh.j2")
    text = template.render(**blank, has_links=False, forms=["words", *forms], qdisc_handles=QDISC_HANDLES)
    return text[text.index("words() {") : text.index('if [ "$problems"')]


def read_by_shell(probe: Probe, text: str, shell: list[str], functions: str) -> str:
    """What the script makes of ``text``, in the place of what the probe's command or file gives."""
    *_, reduction = _probe_command(probe).rpartition(" | ")
    reduction = reduction.partition(" < ")[0]
    done = subprocess.run(
        [*shell, "-c", f"root=\n{functions}\n{reduction}"], input=text.encode(), capture_output=True, check=False
    )
    return done.stdout.decode().removesuffix("\n") if done.returncode == 0 else NOTHING


@functools.cache
def _functions_of(form: str) -> str:
    return functions(form)


def _reading_of(probe: Probe) -> str:
    """The command that reads a probe's file or, in the place of what its command prints, the file ``text``."""
    line = _probe_command(probe)
    return line if isinstance(probe, ReadFile | ReadIrqs) else line.rpartition(" | ")[2] + ' < "$root"/text'


def read_batch(shell: Sequence[str], examples: Iterable[tuple[str, Probe]]) -> list[str]:
    """What one process of the shell reads for each example, a root directory and a probe of one form; `NOTHING` where
    the script finds that the value cannot be read. To start a shell for each takes five times as long."""
    listed = list(examples)
    forms = {probe.form.partition(":")[0] for _, probe in listed}
    assert len(forms) == 1
    probes = list(dict.fromkeys(probe for _, probe in listed))
    arms = (f"    {number}) {_reading_of(probe)} ;;" for number, probe in enumerate(probes))
    script = "\n".join(
        (
            "set -u; LC_ALL=C; export LC_ALL",
            _functions_of(forms.pop()),
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
