"""The clock: it holds nothing up, but clusters and measurements rely on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from advisor.diagnosis.cause import BindingCause, cause
from advisor.diagnosis.observation import Observation

_TIME_SERVICES: Final = frozenset({"chronyd", "ntpd", "systemd-timesyn", "systemd-timesyncd", "ptp4l", "phc2sys"})


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
