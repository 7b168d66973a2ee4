"""The paths between the hosts that are compared: each asks the others, as `advisor.fleet.paths.matrix` chooses."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from advisor.fleet import FORKS
from advisor.fleet.compare.columns import Fleet
from advisor.fleet.engine import HostAnswer, HostJob, run_job
from advisor.fleet.inventory import Inventory, InventoryHost, file_name
from advisor.fleet.paths.matrix import Answer, Matrix, choose_targets, make_matrix, parse_answer, probe_script

_SECONDS = 300
_MAX_ANSWER = 4 << 20


def probe_paths(inventory: Inventory, hosts: Sequence[InventoryHost], fleet: Fleet, *, forks: int = FORKS) -> Matrix:
    """Asks every host for the paths to the others. A host that does not answer is in the matrix with the reason."""
    targets = choose_targets({row.name: row.memberships for row in fleet.hosts})
    asked = [host for host in hosts if targets.by_host.get(host.name)]
    answers = {}
    with tempfile.TemporaryDirectory(prefix="advisor-probe.") as place:
        scripts = Path(place, "scripts")
        scripts.mkdir(mode=0o700)
        for host in asked:
            (scripts / (file_name(host.name) + ".sh")).write_text(probe_script(targets.by_host[host.name]))
        job = HostJob("probe", scripts, timeout_seconds=_SECONDS)
        for one in run_job(inventory, job, output=Path(place, "answers"), hosts=asked, forks=forks):
            answers[one.host] = _parse_answer(one)
    return make_matrix(targets, answers)


def _parse_answer(one: HostAnswer) -> Answer | str:
    if one.state != "ok" or one.path is None:
        return f"{one.state}: {one.message}" if one.message else one.state
    try:
        with one.path.open(encoding="utf-8", errors="replace") as file:
            return parse_answer(file.read(_MAX_ANSWER))
    except OSError as error:
        return f"its answer cannot be read: {error.strerror}"
