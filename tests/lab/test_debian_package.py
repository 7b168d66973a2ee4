"""The Debian package on a Debian: installed by dpkg, run, used to change the host, and removed without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .guest import Machine
from .road import out

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    directory = tmp_path_factory.mktemp("deb")
    command = ["sh", str(ROOT / "packaging/deb/build.sh"), str(directory)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = directory.glob("*.deb")
    return found.read_bytes()


def test_it_installs_works_and_leaves(guest: Machine, package: bytes) -> None:
    before = out(guest, "dpkg --get-selections | sort; ls /usr/bin /usr/lib /var/lib")
    guest.put("/root/advisor.deb", package)
    # What it depends on is there: no network is needed.
    done = guest.run("dpkg --install /root/advisor.deb", timeout=300)
    assert done.rc == 0, done.stdout + done.stderr
    try:
        # The lab's own advisor stands on the path before it: this is the package's.
        reported = json.loads(out(guest, "/usr/bin/advisor scan --json"))
        assert reported["schema"] == "advisor.scan/1"
        assert {link["name"] for link in reported["links"]} >= {"eth0", "eth1"}
        # dpkg leaves documentation out where its configuration says so, as the lab's does.
        assert not [
            line for line in out(guest, "dpkg --verify host-advisor || :").splitlines() if "/usr/share/" not in line
        ]
        assert out(guest, "cd /tmp && mkdir -p advisor && /usr/bin/advisor --version").startswith("advisor ")
        rmem = out(guest, "sysctl -n net.core.rmem_max")
        out(guest, "/usr/bin/advisor apply socket-buffers-8m --yes")
        assert out(guest, "sysctl -n net.core.rmem_max").strip() == "8388608"
        out(guest, "/usr/bin/advisor verify")
    finally:
        # What restores the host needs nothing of the package.
        removed = guest.run("dpkg --purge host-advisor", timeout=300)
    assert removed.rc == 0, removed.stdout + removed.stderr
    out(guest, 'sh "$(ls -d /var/lib/advisor/transactions/* | tail -1)/rollback.sh"')
    assert out(guest, "sysctl -n net.core.rmem_max") == rmem
    out(guest, "rm -rf /root/advisor.deb /tmp/advisor /var/lib/advisor")
    assert out(guest, "dpkg --get-selections | sort; ls /usr/bin /usr/lib /var/lib") == before
