"""The /proc of a host, mounted below a directory as in a container that looks at its node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.host import tree_host
from tests.trees import make_tree

PROGRAM = """
import sys
from advisor.host import tree_host

host = tree_host(sys.argv[1])
print(host.real("/proc/self/mountinfo"), host.real("/proc/net/dev"))
print(host.read("/proc/mounts") == open("/proc/1/mounts").read().rstrip())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_is_of_the_reader_is_of_the_first_process(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    mount = f'mount --rbind /proc "{tmp_path}/proc" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", PROGRAM, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if "unshare failed" in done.stderr:
        pytest.skip("no mount namespaces here")
    assert done.stdout.split() == ["/proc/1/mountinfo", "/proc/1/net/dev", "True"], done.stderr


def test_a_captured_tree_keeps_its_own_link(tmp_path: Path) -> None:
    files = {"/proc/42/mountinfo": "of 42\n", "/proc/1/mountinfo": "of 1\n"}
    host = tree_host(str(make_tree(tmp_path, files, {"/proc/self": "42"})))
    assert host.read("/proc/self/mountinfo") == "of 42"
