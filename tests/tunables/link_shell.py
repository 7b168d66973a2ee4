"""The rollback script's reading functions, run by themselves under each shell that it must run under."""

from __future__ import annotations

import shutil
import subprocess

from advisor.host import Missing, Probe
from advisor.host.steps import QDISC_HANDLES
from advisor.shell.rollback_script import _probe

SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]
NOTHING = "nothing"


def functions(*forms: str) -> str:
    """The template's functions of these forms."""
    from advisor.shell.templates import environment

    blank = {"profiles": "", "fingerprint": "", "machine_id": "", "values": [], "moved": [], "files": [], "reload": []}
    template = environment(escape_html=False).get_template("rollback.sh.j2")
    text = template.render(**blank, has_links=False, forms=["words", *forms], qdisc_handles=QDISC_HANDLES)
    return text[text.index("words() {") : text.index('if [ "$problems"')]


def read_by_shell(probe: Probe, text: str, shell: list[str], functions: str) -> str:
    """What the script makes of ``text``, in the place of what the probe's command or file gives."""
    *_, reduction = _probe(probe).rpartition(" | ")
    reduction = reduction.partition(" < ")[0]
    done = subprocess.run(
        [*shell, "-c", f"root=\n{functions}\n{reduction}"], input=text.encode(), capture_output=True, check=False
    )
    return done.stdout.decode().removesuffix("\n") if done.returncode == 0 else NOTHING


def plain(found: str | Missing) -> str:
    return NOTHING if isinstance(found, Missing) else found
