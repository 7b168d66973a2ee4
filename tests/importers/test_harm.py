"""What an import does not bring over because it could take the host over, and what it says about what could harm."""

from __future__ import annotations

import pytest

from advisor.importers.to_profile import to_profile
from advisor.importers.tuned.convert import import_tuned
from advisor.tunables.catalogue import hurts_when
from tests.importers.hosts import became, machine, tuned
from tests.importers.plans import plan_imported


@pytest.mark.parametrize(
    "word", ["init=/bin/sh", "rdinit=/x", "systemd.run=/bin/sh", "selinux=0", "nfsd.cltrack_prog=/x"]
)
def test_a_word_that_takes_the_host_over_is_never_proposed(word: str) -> None:
    host = machine(tuned(x=f"[bootloader]\ncmdline_x=+nosmt {word}\n"))
    found = import_tuned("x", host, "intent")
    kept, refused = became(found, "cmdline_x")
    assert (kept.tunable, kept.outcome) == ("cmdline:nosmt", "tunable")
    assert refused.outcome == "manual"
    assert f"'cmdline:{word.partition('=')[0]}' is not a tunable here: " in refused.why
    assert "add" not in refused.why
    assert [one.tunable for one in plan_imported(found, host).skipped] == ["cmdline:nosmt"]


def test_what_a_weaker_protection_costs_is_said() -> None:
    assert "memory not theirs" in hurts_when("cmdline:mitigations", "off")
    assert "memory not theirs" not in hurts_when("cmdline:nosmt", "")


@pytest.mark.parametrize(
    ("boost", "harm"), [("0", "Single threads are slower"), ("1", "It costs power and heat at all times")]
)
def test_what_a_value_costs_goes_by_the_value(boost: str, harm: str) -> None:
    files = {**tuned(x=f"[cpu]\nboost={boost}\n"), "/sys/devices/system/cpu/cpufreq/boost": "1\n"}
    imported = import_tuned("x", machine(files), "intent", version=(2, 28))
    (line,) = to_profile(imported).tunables
    assert line.tunable == "cpufreq:boost"
    assert line.hurts_when.startswith(harm)


def test_an_elevator_is_for_disks_and_arrays_alone() -> None:
    loops: dict[str, str | bytes] = {
        f"/sys/block/loop{number}/{file}": text
        for number in range(3)
        for file, text in (("queue/scheduler", "[none] mq-deadline\n"), ("removable", "0\n"), ("size", "0\n"))
    }
    host = machine({**tuned(x="[disk]\nelevator=mq-deadline\n"), **loops})
    found = import_tuned("x", host, "faithful")
    names = [name for one in became(found, "elevator") if one.only is not None for name in one.only.names]
    assert "sda" in names
    assert [name for name in names if name.startswith("loop")] == []
    assert [one.kind for one in found.differences if one.key == "elevator"] == ["other"]
