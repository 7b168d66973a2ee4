"""The clock: it holds nothing up, but clusters and measurements rely on it."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.cause import BindingCause, cause
from advisor.diagnosis.observation import Observation

_TIME_SERVICES = frozenset({"chronyd", "ntpd", "systemd-timesyn", "systemd-timesyncd", "ptp4l", "phc2sys"})


@cause(
    id="clock.unsynchronised",
    resource="clock",
    help="repair",
    what="What the kernel says about its clock (adjtimex), where a time service runs that should steer it.",
    threshold="unsynchronised at the end of the span; a host without a time service is not judged",
    sources=(
        "netdata/netdata src/health/health.d/timex.conf; weka/tools install/scripts.d/ta/060_clockdiff.sh",
        "adjtimex(2)",
    ),
)
def unsynchronised(seen: Observation) -> Iterator[BindingCause]:
    services = {seen.word("process", name, "name") for name in seen.span.names("process")} & _TIME_SERVICES
    if seen.word("clock", "host", "state") != "unsynchronised" or not services:
        return
    yield unsynchronised.bind(
        0.0,
        "The clock is not synchronised",
        device=None,
        evidence={"state": "unsynchronised", "time_service": ", ".join(sorted(map(str, services)))},
        advice="Find out why the time service does not steer the clock: clusters and time stamps rely on it.",
        commands=("timedatectl", "chronyc sources -v"),
    )


STEP_FROM_S = 0.128
"""ntpd sets a clock that is off by more, and steers one that is off by less."""


@cause(
    id="clock.stepped",
    resource="clock",
    help="repair",
    what="By how much the time of day ran ahead of the time since boot, or behind it: it was set, and not steered.",
    threshold="0.128 s in the span, from which ntpd sets a clock instead of steering it",
    sources=("ntpd documentation, step threshold (tinker step)", "clock_gettime(2), CLOCK_REALTIME and CLOCK_BOOTTIME"),
)
def stepped(seen: Observation) -> Iterator[BindingCause]:
    ahead = seen.span.levels("clock", "host", "ahead_s")
    change = ahead[-1] - ahead[0] if ahead else 0.0
    if abs(change) < STEP_FROM_S:
        return
    yield stepped.bind(
        0.0,
        f"The clock was set {'forward' if change > 0 else 'back'} by {abs(change):.3g} s",
        evidence={"seconds": change},
        advice="Let the time service steer the clock (chrony: makestep for the first updates only), and find out what "
        "sets it: clusters, leases and time stamps of databases rely on a clock that runs evenly.",
        commands=("timedatectl", "chronyc tracking", "journalctl -u chronyd -u systemd-timesyncd --since -1h"),
    )
