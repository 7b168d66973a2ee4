"""Plans of a captured container: what of it is its own, and what a file persists."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.planner import plan_profiles
from tests.planning.system import system

OWN, HOST, FILE = (
    "sysctl:net.ipv4.tcp_rmem",
    "sysctl:net.core.rmem_max",
    "file:/etc/beegfs/beegfs-storage.conf:tuneNumWorkers",
)
WORDS = (f"{OWN}=4096 131072 6291456", f"{HOST}=8388608", f"{FILE}=32")
FILES = {"/run/systemd/container": "lxc\n", "/etc/beegfs/beegfs-storage.conf": "tuneNumWorkers = 8\n"}


@pytest.mark.parametrize("runs_systemd", [False, True])
def test_a_file_persists_a_value_where_systemd_reads_it(tmp_path: Path, runs_systemd: bool) -> None:
    files = FILES | ({"/run/systemd/system/one": ""} if runs_systemd else {})
    plan = plan_profiles(system(tmp_path, files=files), WORDS, {})
    changes = {one.tunable: one for one in plan.changes}
    assert set(changes) == {OWN, FILE}
    assert (changes[OWN].persist is not None) is runs_systemd
    assert changes[FILE].persist == "/etc/beegfs/beegfs-storage.conf"
    assert {one.tunable: one.state for one in plan.skipped} == {HOST: "not-applicable"}
    assert any("change its image, too" in note for note in plan.notes)
