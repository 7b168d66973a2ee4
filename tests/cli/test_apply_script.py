"""``advisor apply-script``: a script for this host or a captured one, or a reason why there is none."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.transaction import system
from tests.trees import make_tree

ADVISOR = [sys.executable, "-m", "advisor"]


def call(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run([*ADVISOR, *words], capture_output=True, text=True, check=False, env=environment)


def a_tree(where: Path, others: Mapping[str, str] | None = None) -> Path:
    more = {
        f"/proc/sys/net/core/{name}": "212992\n" for name in ("rmem_default", "wmem_default", "wmem_max", "optmem_max")
    }
    more["/proc/sys/net/ipv4/tcp_wmem"] = "4096 16384 4194304\n"
    more["/proc/sys/kernel/hostname"] = "node1\n"
    more["/proc/meminfo"] = "MemTotal:       65536000 kB\n"
    return make_tree(where / "root", {**system.FILES, **more, **(others or {})})


def test_it_is_written_for_its_owner_and_runs_on_its_host_alone(tmp_path: Path) -> None:
    root, script = a_tree(tmp_path), tmp_path / "apply.sh"
    done = call("apply-script", "socket-buffers-8m", "--runtime-only", "--root", str(root), "-o", str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert oct(script.stat().st_mode & 0o7777) == "0o700"
    environment = {"PATH": os.environ["PATH"], "ADVISOR_STATE_DIR": str(tmp_path / "state")}
    words = ["sh", str(script), "check", "--root", str(root)]
    checked = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert checked.returncode == 0, checked.stdout
    assert '"state":"ready"' in checked.stdout
    (root / "etc/machine-id").write_text("f" * 32)
    assert subprocess.run(words, capture_output=True, env=environment, check=False).returncode == 3


def test_without_a_file_it_is_printed(tmp_path: Path) -> None:
    done = call("apply-script", "socket-buffers-8m", "--runtime-only", "--root", str(a_tree(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#!/bin/sh\n# Carries out on node1: socket-buffers-8m\n")


def test_what_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    root = str(a_tree(tmp_path, {"/etc/sysctl.d/99-site.conf": "# theirs\nnet.core.rmem_max = 1\n"}))
    assert call("apply-script", "nonsense", "--root", root).returncode == 2
    assert call("apply-script", "jumbo-frames", "--set", "links=eth9", "--root", root).returncode == 2
    refused = call("apply-script", "socket-buffers-8m", "--root", root)
    assert refused.returncode == 3
    assert "99-site.conf line 2 sets it to 1 at boot, after advisor's file" in refused.stderr


def test_on_a_terminal_a_person_reads_no_json(tmp_path: Path) -> None:
    root, script = a_tree(tmp_path), tmp_path / "apply.sh"
    done = call("apply-script", "socket-buffers-8m", "--runtime-only", "--root", str(root), "-o", str(script))
    assert done.returncode == 0, done.stderr
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "ADVISOR_STATE_DIR": str(tmp_path / "state")}
    words = ["sh", str(script), "check", "--root", str(root)]
    process = subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):
        while data := os.read(ours, 65536):
            text += data
    os.close(ours)
    assert process.wait(60) == 0
    assert text.strip()
    assert b"{" not in text
