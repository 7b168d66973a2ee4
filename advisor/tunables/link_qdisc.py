"""``link:IFACE:qdisc`` — the root qdisc of a link (tc(8)), without parameters, persisted in a udev rule.

A qdisc that the kernel attached reads default, its kind and its parameters, such as default mq fq_codel limit 10240p on
a link with several queues. It is attached again when advisor's is deleted. One that another tool set up is not changed,
as its parameters could not be restored; nor is one that the kernel would not attach again, as net.core.default_qdisc or
the MTU has changed since. One root qdisc makes all queues of a link wait for one lock: for a qdisc in each of them set
sysctl:net.core.default_qdisc instead, which counts for links that come up from then on. What waits in a qdisc is lost
when it is replaced.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, Probe, ReadCommand, SetQdisc, Step
from advisor.host.kernel_text import DEFAULT
from advisor.host.steps import QDISC_HANDLES
from advisor.tunables.edits import FileEdit
from advisor.tunables.kind import Tunable
from advisor.tunables.link_persist import QUEUE_RULES, run_rule
from advisor.tunables.preflight import Preflight

_DEFAULT_PATH = "/proc/sys/net/core/default_qdisc"
# How many full frames a quantum is by default; a frame is the MTU and a link header.
_FRAMES = {"fq": 2, "fq_codel": 1, "fq_pie": 1, "sfq": 1}
_MAX_HEADER_BYTES = 64


class LinkQdisc(Tunable, frozen=True):
    link: str

    id_form = "link:{self.link}:qdisc"

    @property
    def probe(self) -> Probe:
        return ReadCommand(("tc", "qdisc", "show", "dev", self.link), "qdisc")

    def check_value(self, value: str) -> str | None:
        return None if value in QDISC_HANDLES else f"is none of {', '.join(QDISC_HANDLES)}"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (SetQdisc(self.link, None if value.startswith(f"{DEFAULT} ") else value),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        if value not in QDISC_HANDLES:
            return Missing("absent", f"{value} {self.check_value(value)}")
        words = f"qdisc replace dev $name root handle {QDISC_HANDLES[value]}"
        return run_rule(host, self.link, "tc", words, value, path=QUEUE_RULES)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        why = None if before == after else self._explain_lost(host, before)
        return Preflight(refusal=why and f"its qdisc could not be restored: {why}")

    def _explain_lost(self, host: Host, before: str) -> str | None:
        """Why deleting advisor's qdisc would not restore ``before``."""
        default, *words = before.split()
        words = words[1:] if words[:1] == ["mq"] else words
        if default != DEFAULT or words == ["noqueue"]:
            return None
        kind = host.read(_DEFAULT_PATH)
        if isinstance(kind, Missing):
            return f"which one the kernel attaches is unknown: {_DEFAULT_PATH}: {kind.why}"
        if words[:1] != [kind]:
            return f"it is {' '.join(words[:1])}, and the kernel would attach {kind} now (net.core.default_qdisc)"
        text = " ".join(words)
        mtu = host.read_int(f"/sys/class/net/{self.link}/mtu")
        quantum = re.search(r"\bquantum ([0-9]+)b?\b", text)
        if isinstance(mtu, Missing) or quantum is None or kind not in _FRAMES:
            return None
        header = int(quantum[1]) // _FRAMES[kind] - mtu
        if 0 <= header <= _MAX_HEADER_BYTES:
            return None
        return f"its quantum is {quantum[1]}, which the kernel would not choose at an MTU of {mtu}"
