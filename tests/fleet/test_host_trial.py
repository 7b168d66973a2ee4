"""``fleet prove`` over test hosts: an injected effect, a placebo, a host that vanishes, a controller that is killed.

The value is a sysctl of the network namespace that nothing here uses; the figure that depends on it is made by the
command of the metric.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from tests.fleet.hosts import Hosts, Kind, why_not
from tests.fleet.test_run import advisor, fleet, journal, until, words
from tests.schemas import judge

needs_hosts = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

SYSCTL = "net/ipv4/tcp_rmem"
PROFILE = """\
name = "lowat"
title = "One sysctl"
summary = "Sets one value."
helps-when = "Always."
hurts-when = "Never."
sources = ["a test"]
[[tunables]]
tunable = "sysctl:net.ipv4.tcp_rmem"
value = "4096 131072 8388608"
why = "A test."
hurts-when = "Never."
sources = ["a test"]
"""
# 100 for each host's own number, two in a hundred of noise, and a gain where the value is set.
FIGURE = """\
#!/bin/sh
noise=$(od -An -N2 -tu2 /dev/urandom)
gain=100
grep -q 8388608 /proc/sys/net/ipv4/tcp_rmem && gain=$1
case $(hostname) in *[13579]) level=100 ;; *) level=300 ;; esac
echo "$((level * gain * (9800 + noise * 400 / 65536)))"
"""


def trial_hosts(number: int) -> Any:
    kind = Kind(programs={"figure": FIGURE})
    return fleet(number, **{f"node{at:02}": kind for at in range(1, number + 1)})


def call(hosts: Hosts, gain: int = 130, *more: str) -> list[str]:
    profile = hosts.home / "lowat.toml"
    profile.write_text(PROFILE)
    metric = f"command:/usr/local/bin/figure {gain}"
    timing = ("--period", "0", "--settle", "0", "--readings", "1", "--canary", "0", "--batch", "100%")
    return ["prove", str(profile), "-i", str(hosts.inventory()), "--metric", metric, *timing, "--yes", *more]


def values(hosts: Hosts) -> list[str]:
    return [hosts.shell(name, f"cat /proc/sys/{SYSCTL}").strip() for name in hosts.names]


@pytest.mark.thorough
@needs_hosts
def test_an_injected_effect_is_found_and_everything_is_as_before() -> None:
    with trial_hosts(8) as hosts:
        before = values(hosts)
        done = advisor(hosts, *call(hosts), "--seed", "7")
        assert done["verdict"] == "gain"
        (effect,) = done["effects"]
        # The interval itself misses in one trial of twenty; these are the ends of any that is near.
        assert 0.15 < effect["low"] < effect["high"] < 0.45
        assert effect["p_value"] == pytest.approx(2 / 70)
        assert sum(host["is_treated"] for host in done["hosts"]) == 4
        assert [host["state"] for host in done["hosts"] if host["is_treated"]] == ["rolled-back"] * 4
        assert values(hosts) == before
        entries = [json.loads(line)["event"] for line in journal(hosts).splitlines()]
        assert entries.index("assigned") < entries.index("wave-begun")
        assert advisor(hosts, "status")["runs"][0]["state"] == "rolled-back"


@needs_hosts
@pytest.mark.thorough
def test_a_placebo_shows_nothing_and_a_gain_is_kept_where_that_is_asked_for() -> None:
    with trial_hosts(8) as hosts:
        before = values(hosts)
        placebo = advisor(hosts, *call(hosts, 100), "--seed", "7", code=1)
        assert placebo["verdict"] in ("no-difference", "inconclusive")
        assert values(hosts) == before
        kept = advisor(hosts, *call(hosts), "--seed", "7", "--keep-if-gain")
        assert kept["state"] == "done"
        treated = [host["name"] for host in kept["hosts"] if host["is_treated"]]
        now = dict(zip(hosts.names, values(hosts), strict=True))
        assert sorted(treated) == [name for name, value in now.items() if value.endswith("8388608")]
        assert advisor(hosts, "rollback")["state"] == "rolled-back"
        assert values(hosts) == before


@needs_hosts
@pytest.mark.thorough
def test_a_treated_host_that_vanishes_counts_as_treated() -> None:
    with trial_hosts(8) as hosts:
        before = values(hosts)
        process = hosts.popen(*words(*call(hosts, 130), "--seed", "7", "--json"))
        until(lambda: '"event":"wave-ended"' in journal(hosts) or process.poll() is not None)
        assigned = next(json.loads(line) for line in journal(hosts).splitlines() if '"assigned"' in line)
        gone = assigned["treated"][0]
        hosts.sever(gone)
        hosts.kill(gone)
        out, err = process.communicate(timeout=400)
        # Its rollback is not certain: it is named with what to do.
        assert process.returncode == 5, out + err
        found = judge(out)
        assert found["missing"] == [gone]
        assert found["verdict"] == "inconclusive"
        assert "undecided" in " ".join(found["reasons"])
        lost = next(host for host in found["hosts"] if host["name"] == gone)
        assert lost["state"] == "unknown"
        assert "rollback" in lost["by_hand"]
        hosts.start(gone)
        assert values(hosts) == before


@needs_hosts
@pytest.mark.thorough
@pytest.mark.parametrize("moment", ['"event":"assigned"', '"verb":"apply"', '"event":"wave-ended"'])
def test_a_killed_controller_is_resumed_with_its_own_toss(moment: str) -> None:
    with trial_hosts(8) as hosts:
        before = values(hosts)
        process = hosts.popen(*words(*call(hosts), "--seed", "7"))
        until(lambda: moment in journal(hosts) or process.poll() is not None)
        process.kill()
        process.communicate(timeout=300)
        # Each host is as before, or as it was asked to be.
        assert {one.split()[-1] for one in values(hosts)} <= {before[0].split()[-1], "8388608"}
        refusal = advisor(hosts, "apply", "--resume", "last", "--yes", code=3)["error"]
        assert "advisor fleet prove --resume" in refusal["hint"]
        done = advisor(hosts, "prove", "--resume", "last", "--yes")
        assert (done["verdict"], done["seed"]) == ("gain", 7)
        tosses = [json.loads(line) for line in journal(hosts).splitlines() if '"event":"assigned"' in line]
        assert len(tosses) == 1
        assert values(hosts) == before


@needs_hosts
@pytest.mark.thorough
def test_an_interrupt_rolls_every_treated_host_back() -> None:
    with trial_hosts(8) as hosts:
        before = values(hosts)
        process = hosts.popen(*words(*call(hosts), "--batch", "1"))
        until(lambda: journal(hosts).count('"event":"wave-ended"') == 2 or process.poll() is not None)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 130, out + err
        assert "nothing of it is active on any host" in err
        assert values(hosts) == before


@needs_hosts
def test_four_hosts_are_refused_before_anything_is_touched() -> None:
    with Hosts(1) as hosts:
        (hosts.home / "lowat.toml").write_text(PROFILE)
        asked = ("prove", hosts.home / "lowat.toml", "-i", "a,b,c,d,", "--metric", "command:true", "--yes")
        error = advisor(hosts, *asked, code=3)["error"]
        assert "4 hosts can be treated: the smallest p of 6 assignments is 0.333" in error["message"]
        assert "8 hosts or more" in error["hint"]
