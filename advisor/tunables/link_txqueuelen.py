"""``link:IFACE:txqueuelen`` — the length of a link's transmit queue in packets (ip-link(8)), persisted in a udev rule.

It bounds the qdiscs that have no limit of their own, such as pfifo_fast.
"""

from __future__ import annotations

from advisor.host import Host, Missing, SetTxqueuelen, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.link_persist import attribute_rule


class LinkTxqueuelen(KernelFile, frozen=True):
    link: str

    holds_count = True
    id_form = "link:{self.link}:txqueuelen"
    path_form = "/sys/class/net/{self.link}/tx_queue_len"
    accepted = lazy_regex(r"[1-9][0-9]{0,6}")
    wrong = "is not a number of packets from 1 to 9999999"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (SetTxqueuelen(self.link, int(value)),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return attribute_rule(host, self.link, "tx_queue_len", value)
