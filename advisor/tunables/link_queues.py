"""Values of a link's single queues, which are files below /sys/class/net/IFACE/queues."""

from __future__ import annotations

import re
from typing import ClassVar

from advisor.facts.processors.cpulist import format_list, mask_words, parse_list
from advisor.host import Host, Missing
from advisor.host.kernel_text import NO_CPUS
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.link_persist import QUEUE_RULES, run_rule
from advisor.tunables.preflight import Preflight


class QueueValue(KernelFile, frozen=True):
    """One file of one queue; a kind gives its word, the side that its queues are on, and the file's name."""

    link: str
    queue: int

    word: ClassVar[str]
    side: ClassVar[str]
    file: ClassVar[str]
    id_form = "link:{self.link}:{self.word}.{self.side}-{self.queue}"
    path_form = "/sys/class/net/{self.link}/queues/{self.side}-{self.queue}/{self.file}"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        # Not an assignment to the attribute, which would come before the program that sets the number of queues.
        path = f"/sys/class/net/$$0/queues/{self.side}-{self.queue}/{self.file}"
        return run_rule(
            host, self.link, "sh", f"-c 'echo $$1 > {path}' $name", self.format_value(value), path=QUEUE_RULES
        )


class QueueCpus(QueueValue, frozen=True):
    """The CPUs of a queue, as a kernel list such as ``0-3,8``, or ``none``."""

    value_form = "cpumask"

    def check_value(self, value: str) -> str | None:
        if value == NO_CPUS:
            return None
        try:
            cpus = parse_list(value)
        except ValueError:
            cpus = ()
        if not cpus:
            return f"is not a list of CPUs such as 0-3,8, or {NO_CPUS}"
        shortest = format_list(cpus)
        return None if value == shortest else f"is written {shortest}"

    def format_value(self, value: str) -> str:
        mask = 0 if value == NO_CPUS else sum(1 << cpu for cpu in parse_list(value))
        return mask_words(f"{mask:x}")

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        wrong = self.check_value(value)
        return Missing("absent", f"{value} {wrong}") if wrong else super().make_edit(host, value, profile=profile)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        online = host.read("/sys/devices/system/cpu/online")
        if before == after or after == NO_CPUS or isinstance(online, Missing):
            return Preflight()
        absent = sorted(set(parse_list(after)) - set(parse_list(online)))
        return Preflight(refusal=f"CPU {absent[0]} is not online; {online} are" if absent else None)


class LinkRps(QueueCpus, frozen=True):
    """``link:IFACE:rps.rx-N`` — the CPUs that a receive queue's packets are spread over (RPS), persisted in a udev
    rule.

    The value is a kernel list such as 0-3, or none, which leaves a packet on the CPU of its interrupt (the kernel's
    Documentation/networking/scaling).
    """

    word = "rps"
    side = "rx"
    file = "rps_cpus"


class LinkXps(QueueCpus, frozen=True):
    """``link:IFACE:xps.tx-N`` — the CPUs that send by a transmit queue (XPS), persisted in a udev rule.

    The value is a kernel list such as 0-3, or none (the kernel's Documentation/networking/scaling). A link with a
    single queue has no such thing.
    """

    word = "xps"
    side = "tx"
    file = "xps_cpus"


_MAX_FLOWS = 1 << 29


class LinkRpsFlows(QueueValue, frozen=True):
    """``link:IFACE:rps-flow-cnt.rx-N`` — the flows whose CPU a receive queue remembers (RFS), persisted in a udev rule.

    The value is 0 or a power of two. It has an effect where sysctl:net.core.rps_sock_flow_entries is set too.
    """

    word = "rps-flow-cnt"
    side = "rx"
    file = "rps_flow_cnt"
    holds_count = True

    def check_value(self, value: str) -> str | None:
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", value) or int(value) > _MAX_FLOWS:
            return f"is not a number of flows up to {_MAX_FLOWS}"
        return "is no power of two, to which the kernel would round it up" if int(value) & (int(value) - 1) else None
