"""How long a treated host waits for the verdict, which every wave after its own adds to; and a trial of no host."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.errors import UsageError
from advisor.fleet.runs.host_trial import trial_waves, window_seconds
from advisor.fleet.runs.planning import CapturedHost, plan_fleet
from advisor.fleet.runs.waves import Batch, Canary, WaveShape
from advisor.operations.fleet_trials import make_terms
from tests.fleet.test_first_use import run

CAPTURE = Path(__file__).parents[1] / "fixtures/storage-host-root.tar.gz"
METRIC = "command:/usr/local/bin/p99:lower:ms"


def window(hosts: int, shape: WaveShape) -> int:
    names = [f"n{at:02}" for at in range(hosts)]
    captured = [CapturedHost(name, CAPTURE) for name in names]
    plan = plan_fleet(captured, ["socket-buffers-8m"], {}, inventory=(), shape=shape)
    assert plan.changing == tuple(names)
    # All copies of one capture are nodes of one cluster, of which a wave takes one; here each stands for itself.
    plan = msgspec.structs.replace(plan, groups={})
    waves = trial_waves(plan, names[::2], shape)
    assert sorted(name for wave in waves.waves for name in wave.hosts) == names[::2]
    return window_seconds(make_terms([METRIC], period_seconds=0), waves)


def test_every_wave_adds_to_the_window_of_the_first_host() -> None:
    alone = WaveShape(canary=Canary(count=0), batch=Batch(count=1))
    twenty, thirty = window(40, alone), window(60, alone)
    assert thirty - twenty >= 10 * 300
    assert twenty >= 20 * 300


def test_hosts_of_one_wave_do_not_wait_for_one_another() -> None:
    together = WaveShape(canary=Canary(count=0), batch=Batch(percent=100))
    assert window(40, together) - window(20, together) < 300


def test_a_window_that_no_host_can_wait_for_is_refused_before_anything_is_measured() -> None:
    terms = make_terms([METRIC], period_seconds=99_000)
    plan = plan_fleet([CapturedHost("n1", CAPTURE)], ["socket-buffers-8m"], {}, inventory=(), shape=WaveShape())
    with pytest.raises(UsageError) as caught:
        window_seconds(terms, trial_waves(plan, ["n1"], WaveShape()))
    assert "--batch" in str(caught.value.hint)


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("--dry-run",), ("--yes", "--json")], ids=["dry run", "trial"])
def test_a_trial_of_which_no_host_answers_is_refused_with_nothing_touched(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    lines = [f"n{at} ansible_host=127.1.0.{at + 1} ansible_port=1\n" for at in range(8)]
    (tmp_path / "hosts.ini").write_text("".join(lines))
    asked = ("prove", "socket-buffers-8m", "-i", tmp_path / "hosts.ini", "--metric", METRIC)
    out, errors = run(tmp_path, *asked, *words, code=3)
    assert "no host could be asked" in errors + out
    assert not list((tmp_path / "fleet").glob("runs/*"))
