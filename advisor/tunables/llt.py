"""Kind ``llt:``: values of Veritas LLT, of flow control and timers."""

from __future__ import annotations

from advisor.tunables.kind import Kind
from advisor.tunables.llt_flow import LltFlow
from advisor.tunables.llt_timer import LltTimer
from advisor.tunables.tunable import Tunable


def parse_llt(rest: str) -> Tunable:
    """The tunable of ``NAME`` or ``timer.NAME``. Raises UsageError for what names none."""
    return LltTimer.parse(rest) if rest.startswith("timer.") else LltFlow.parse(rest)


KIND = Kind(
    name="llt",
    order=70,
    parse=parse_llt,
    noun="LLT value",
    examples=(("llt:highwater", "2000"), ("llt:timer.peerinact", "3200")),
    capture=None,
    written_by=frozenset(),
    units=((r"\w*(water|window)", "packets"),),
)
