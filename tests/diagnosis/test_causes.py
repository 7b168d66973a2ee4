"""Every injected bottleneck has its answer first; hosts that are well have none."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from advisor.diagnosis.diagnose import diagnose, list_causes
from advisor.diagnosis.observation import read_context
from advisor.observe.processes import HIDDEN_STORAGE
from advisor.observe.sample import CounterSpan
from advisor.report.host_metrics import why_metrics
from advisor.report.monitoring import render_metrics
from advisor.report.why import asker_text, nothing_text
from tests.diagnosis.cases import CASES, WELL, Case
from tests.diagnosis.healthy import healthy_history
from tests.diagnosis.moments import Disk, Link, Machine, Process, diagnose_machine, host_at, span_of
from tests.diagnosis.pairs import list_pairs
from tests.known import known


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_first_answer_is_right(case: Case) -> None:
    found = diagnose_machine(case.machine)
    assert found.binds, found.unknown
    assert found.binds[0].id in case.right, [(one.id, one.device, one.share) for one in found.binds]
    assert 0 <= found.binds[0].share <= 1


@pytest.mark.parametrize(("name", "machine"), WELL, ids=[name for name, _ in WELL])
def test_nothing_binds_a_host_that_is_well(name: str, machine: Machine) -> None:
    found = diagnose_machine(machine)
    assert found.binds == (), [(one.id, one.device, one.share, one.evidence) for one in found.binds]


def test_names_of_killed_processes() -> None:
    case = next(one for one in CASES if one.name == "OOM kill")
    found = diagnose_machine(case.machine).binds[0]
    assert found.evidence["processes"] == "postgres (4000), java (4001)"
    assert found.title.startswith("The kernel killed 2 processes")
    assert (known(found.asks).unit, known(found.asks).process) == ("app.service", "java (4001)")
    for machine, says in ((Machine(), False), (Machine(vm={"oom_kill": 0.2}), True)):
        samples = [
            msgspec.structs.replace(one, missing={**one.missing, "kill": "denied"}) for one in span_of(machine).samples
        ]
        unknown = diagnose(CounterSpan(samples), read_context(host_at(machine, 1000)), 0.0).unknown
        assert ("names of processes that the kernel killed" in {one.fact for one in unknown}) is says


def test_a_kill_before_the_span_is_not_of_it() -> None:
    """The log keeps what was killed hours ago."""
    case = next(one for one in CASES if one.name == "OOM kill")
    span = span_of(replace(case.machine, vm={}, memory_some=0))
    old = [
        msgspec.structs.replace(one, words={**one.words, "kill": span.samples[-1].words["kill"]})
        for one in span.samples
    ]
    assert diagnose(CounterSpan(old), read_context(host_at(case.machine, 1000)), 0.0).binds == ()


def test_what_binds_by_itself() -> None:
    case = next(one for one in CASES if one.name.startswith("NVMe drive slowed down"))
    assert [(one.id, one.device) for one in diagnose_machine(case.machine).binds] == [
        ("disk.throttled-by-heat", "nvme0n1")
    ]
    found = diagnose_machine(Machine(user=0.95, cpu_some=0.15))
    assert [one.id for one in found.binds] == ["cpu.saturated"]
    case = next(one for one in CASES if one.name.startswith("busy neighbour"))
    asks = known(diagnose_machine(case.machine).binds[0].asks)
    assert (asks.unit, asks.process) == ("backup.service", "tar (101)")
    assert known(asks.share) > 0.9


def test_every_cause_has_a_case() -> None:
    answered = {one.id for case in CASES for one in diagnose_machine(case.machine).binds}
    assert {cause.id for cause in list_causes()} == answered


def test_the_share_of_a_process_is_that_of_the_busy_cpus() -> None:
    """Short programs keep the CPUs busy too, and are seen at neither end of the span."""
    compiling = Machine(user=0.95, cpu_some=0.8, running=12, processes=(Process("make", "build.service", cpu=0.4),))
    asks = known(diagnose_machine(compiling).binds[0].asks)
    assert asks.share == pytest.approx(0.4 / (4 * 0.99), abs=0.02)
    assert asks.unseen_share == pytest.approx(1 - 0.4 / (4 * 0.99), abs=0.02)
    assert "many processes; the largest is build.service: 10 % of it, its largest process make (100)" in asker_text(
        asks
    )
    assert "the rest: processes that began or ended meanwhile, or others" in asker_text(asks)
    endless = replace(compiling, processes=(Process("spin", "", cpu=1.0),))
    single = known(diagnose_machine(endless).binds[0].asks)
    assert single.share == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (Machine(user=0.86, cpu_some=0.47), "CPU 90 % busy, tasks waited 47 % of the time"),
        (Machine(user=0.5, cpu_some=0.47), "CPU 54 % busy, tasks waited 47 % of the time"),
        (
            Machine(io_some=0.23, disks=(Disk("vda", 300, 20, wait_ms=9, busy=0.59, number="254:0"),)),
            "disks: vda busiest with 59 %, queue 2.9, tasks waited 23 % of the time for storage",
        ),
        (Machine(links=(Link(tx_bytes=1e8, speed=1000),)), "links: 82 % used"),
    ],
)
def test_what_is_near_is_not_well(machine: Machine, says: str) -> None:
    found = diagnose_machine(machine)
    assert found.binds == ()
    assert found.near[0].startswith(says)
    assert nothing_text(found) == f"Nothing binds by the thresholds; nearest: {found.near[0]}."
    assert not set(found.near) & set(found.well)


def test_a_busy_link_of_unknown_speed_is_not_called_quiet() -> None:
    full = Machine(links=(Link(rx_bytes=5e9, speed=-1),))
    found = diagnose_machine(full)
    assert found.binds == ()
    assert ("use of link eth0", "it carries 5,000.0 MB/s, and its speed is unknown") in [
        (one.fact, one.why) for one in found.unknown
    ]
    assert not [one for one in found.well if "quiet" in one]
    assert nothing_text(found) == (
        "Nothing whose use is known is saturated; how full eth0 is cannot be said: the speed is unknown."
    )
    text = render_metrics(why_metrics(found, ()), "prometheus")
    assert 'advisor_why_unknown_use{device="eth0",resource="net"} 1' in text.replace(
        'resource="net",device="eth0"', 'device="eth0",resource="net"'
    )


def test_hidden_storage_is_unknown_where_it_counts() -> None:
    hidden = "storage of 1 is hidden by the kernel: PID 7"

    def unknown_of(machine: Machine) -> list[str]:
        samples = [
            msgspec.structs.replace(one, missing={**one.missing, HIDDEN_STORAGE: hidden})
            for one in span_of(machine).samples
        ]
        found = diagnose(CounterSpan(samples), read_context(host_at(machine, 1000)), 0.0)
        return [one.why for one in found.unknown]

    assert hidden not in unknown_of(Machine())
    busy = next(one for one in CASES if one.name.startswith("busy neighbour"))
    assert hidden in unknown_of(busy.machine)


@pytest.mark.repeats(4)
@pytest.mark.parametrize("seeds", [range(at, at + 25) for at in range(0, 250, 25)], ids=lambda seeds: f"{seeds[0]}-")
def test_hosts_that_are_well_raise_no_alarm(seeds: range) -> None:
    alarms = {
        seed: [(one.id, one.device, one.share) for one in found.binds]
        for seed in seeds
        if (found := diagnose_machine(healthy_history(seed))).binds
    }
    assert not alarms


def test_pairs_of_bottlenecks_are_both_named() -> None:
    pairs = list(list_pairs())[::54]
    first = both = 0
    for one, other, machine in pairs:
        found = [binding.id for binding in diagnose_machine(machine).binds]
        first += bool(found) and found[0] in one.right | other.right
        both += bool(set(found) & one.right and set(found) & other.right)
    assert first >= 0.9 * len(pairs)
    assert both >= 0.9 * len(pairs)
