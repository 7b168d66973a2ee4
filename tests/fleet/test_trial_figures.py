"""Readings of a trial over a connection that is real and local: commands, counts, what the host counts, a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from advisor.fleet.inventory import Access, Inventory, find_ansible_program
from advisor.fleet.inventory import read_hosts as inventory_hosts
from advisor.fleet.runs.executor import Hands
from advisor.fleet.runs.trial_counters import TrialCounters
from advisor.fleet.runs.trial_figures import read_phase
from advisor.fleet.runs.trial_records import PhaseMeasured
from advisor.fleet.store import FleetStore
from advisor.operations.fleet_trials import make_terms
from tests.proof.test_prometheus import Server, server, vector

__all__ = ["server"]

STAT = "   8       0 sda {reads} 0 {sectors} {ms} 0 0 0 0 0 0 0\n"


def read_here(directory: Path, *metrics: str, command: str | None = None, readings: int = 2) -> PhaseMeasured:
    interpreter = f'{{"ansible_connection": "local", "ansible_python_interpreter": "{sys.executable}"}}'
    inventory = Inventory(("h1,",), None, Access(extra_vars=(interpreter,)))
    hands = Hands(inventory, inventory_hosts(inventory), FleetStore(directory), directory / "run", forks=1)
    terms = make_terms(metrics, command, readings=readings, period_seconds=0, seed=1)
    return read_phase(hands, terms, ["h1"], "before", lambda _: None)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "ansible"))
    monkeypatch.setenv("ANSIBLE_LOCAL_TEMP", str(tmp_path / "ansible/tmp"))
    find_ansible_program("ansible-playbook")
    return tmp_path


def test_every_kind_of_figure_is_read(place: Path, server: Server) -> None:
    count = place / "count"
    count.write_text("100")
    server.answer = lambda asked: vector("7.5")
    found = read_here(
        place,
        "tps=regex:tps = ([0-9]+)",
        f"c=counter:n=$(($(cat {count}) + 40)); echo $n | tee {count}",
        f'q=prom:{server.url}:rate(x{{instance="{{host}}"}}[$span])',
        "gone=command:cat /nonexistent/figure",
        command="echo tps = 34",
    )
    figures = {metric: hosts["h1"] for metric, hosts in found.figures.items()}
    assert figures["tps"] == (34.0, 34.0, 34.0)
    # What is counted since the reading before has no figure at the first.
    first, *rates = figures["c"]
    assert first is None
    assert all(rate is not None and rate > 0 for rate in rates)
    assert figures["q"] == (None, 7.5, 7.5)
    assert 'instance="h1"' in server.asked[0]["query"]
    assert figures["gone"] == (None, None, None)
    assert "metric gone: the command ended with 1" in found.failures["h1"]


def test_what_a_host_counts_is_a_figure_of_two_readings() -> None:
    counters = TrialCounters(["disk-wait", "cpu-pressure"])

    def texts(reads: int, ms: int, stalled_us: int) -> dict[str, str]:
        stat = STAT.format(reads=reads, sectors=8 * reads, ms=ms)
        pressure = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled_us}\n"
        return {"disks": "sda\n", "/proc/diskstats": stat, "/proc/pressure/cpu": pressure}

    assert counters.figures_since(texts(100, 400, 0), 50.0) == {"disk-wait": None, "cpu-pressure": None}
    found = counters.figures_since(texts(300, 1000, 500_000), 60.0)
    assert found == {"disk-wait": 3.0, "cpu-pressure": 5.0}
    with pytest.raises(ValueError, match="the counter was reset"):
        counters.figures_since(texts(0, 0, 600_000), 70.0)
    with pytest.raises(ValueError, match="there is no disk"):
        TrialCounters(["disk-rate"]).figures_since({"disks": "*\n", "/proc/diskstats": ""}, 1.0)
