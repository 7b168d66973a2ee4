"""Whether a value that was read can be a value of its tunable at all: what cannot be understood is never restored."""

from __future__ import annotations

from typing import Final

from advisor.facts.sysctl_keys import WORDS
from advisor.host.patterns import lazy_regex
from advisor.tunables.block import BlockQueue
from advisor.tunables.cpufreq_policy import CpuFrequency
from advisor.tunables.intel_pstate import IntelPstate
from advisor.tunables.link_mtu import LinkMtu
from advisor.tunables.link_rps_flows import LinkRpsFlows
from advisor.tunables.link_txqueuelen import LinkTxqueuelen
from advisor.tunables.llt_flow import LltFlow
from advisor.tunables.llt_timer import LltTimer
from advisor.tunables.md import MdSetting
from advisor.tunables.sched import SchedDebug
from advisor.tunables.sysctl import Sysctl
from advisor.tunables.thp import HugePages
from advisor.tunables.tunable import Tunable

_COUNTED: Final = (
    *(BlockQueue, CpuFrequency, HugePages, IntelPstate, LinkMtu, LinkRpsFlows, LinkTxqueuelen, LltFlow, LltTimer),
    *(MdSetting, SchedDebug),
)
_COUNTS: Final = lazy_regex(r"[0-9]{1,20}")
NUMBERS: Final = lazy_regex(r"-?[0-9]{1,20}(?:[ \t]+-?[0-9]{1,20})*")
# A tab parts the numbers of a sysctl; U+FFFD stands where bytes were no text.
_NO_TEXT: Final = lazy_regex(r"[\0-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
_SHOWN: Final = 40


def explain_misread(one: Tunable, live: str, wanted: str) -> str | None:
    """Why the live value is none of this tunable's; None where it may be one.

    Where a number is wanted, the kernel's own value is a number too, in ASCII digits; -5 is no count of anything.
    """
    if _NO_TEXT.search(live):
        return f"not a value: {live[:_SHOWN]!r}"
    if not NUMBERS.fullmatch(wanted):
        return None
    if isinstance(one, Sysctl):
        fits = one.key in WORDS or NUMBERS.fullmatch(live) is not None
    else:
        is_system = isinstance(one, MdSetting) and live == "system"
        fits = not isinstance(one, _COUNTED) or is_system or _COUNTS.fullmatch(live) is not None
    return None if fits else f"not a number: {live[:_SHOWN]!r}"
