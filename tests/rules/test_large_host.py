"""What a scan of many devices takes grows as they do: a rule that looks at every link for every link would be felt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import pytest

from advisor.facts.host_facts import Facts, scan
from advisor.host import Host
from advisor.host.provenance import Provenance
from advisor.operations.limits import host_limits
from advisor.planner import plan_profiles
from advisor.report.scan_summary import ScanSummary, summary_text
from advisor.rules.judged import judge
from advisor.rules.rule import Finding
from benchmarks.large_host import LargeHost

DISKS = 160


def count_steps(run: Callable[[], object]) -> int:
    """Instructions of the interpreter, which no other work on this machine changes."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    run()  # Modules are loaded, and expressions compiled, before.
    before = sys.gettrace()
    # Python 3.12 sends no such events to a tracer that is there before the first frame asks for them.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
        sys._getframe().f_trace_opcodes = False
    return steps


@cache
def judged(disks: int) -> tuple[Facts, tuple[Finding, ...]]:
    facts = scan(LargeHost(disks).host())
    return facts, judge(facts)


def show_page(disks: int) -> object:
    return summary_text(ScanSummary(*judged(disks), Provenance("root", 0)), width=100, color=False)


@cache
def host(disks: int) -> Host:
    return LargeHost(disks).host()


PARTS: dict[str, Callable[[int], object]] = {"judge": lambda disks: judge(judged(disks)[0]), "page": show_page}


@pytest.mark.parametrize("part", PARTS)
def test_twice_as_many_devices_take_twice_as_much(part: str) -> None:
    assert len(judged(2 * DISKS)[1]) > 60
    once, twice = (count_steps(lambda disks=disks: PARTS[part](disks)) for disks in (DISKS, 2 * DISKS))  # type: ignore[misc]
    assert twice < 2.1 * once, f"{once:,} and {twice:,} steps"


COMMANDS: dict[str, tuple[Callable[[int], object], float]] = {
    "plan": (lambda disks: plan_profiles(host(disks), ["jumbo-frames"], {}, facts=judged(disks)[0]), 1.1),
    # What the paths carry together is a linear programme, which is a little more than linear.
    "limits": (lambda disks: host_limits(host(disks)), 1.3),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_else_reads_a_host_grows_as_its_devices_do(command: str) -> None:
    """Three times, as each has a part that every host takes and no device adds to."""
    run, most = COMMANDS[command]
    first, second, third = (
        count_steps(lambda disks=disks: run(disks))  # type: ignore[misc]
        for disks in (20, 80, 140)
    )
    assert third - second < most * (second - first), f"{first:,}, {second:,} and {third:,} steps"
