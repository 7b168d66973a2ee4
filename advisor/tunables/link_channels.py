"""The number of a link's queues, and the settings that are reset with it: the CPUs of each queue (RPS, XPS) and its
flows (RFS), the affinity of each interrupt, and the RSS indirection table. Recorded, so that they can be restored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from advisor.host import Host, Missing, ReadCommand, ReadIrqs, RunCommand, SetIrqs, observe
from advisor.host.kernel_text import NO_CPUS, NO_TABLE, highest_queue, setting_words
from advisor.tunables.link_driver import DriverValue
from advisor.tunables.link_queues import LinkRps, LinkRpsFlows, LinkXps
from advisor.tunables.preflight import Preflight, SideEffect

_UNSUPPORTED = "Operation not supported"
_SHOWN = 60


def queue_state(host: Host, link: str) -> tuple[tuple[SideEffect, ...], tuple[str, ...]]:
    """All settings that can be read, in the order in which they are restored; and notes on them."""
    queues = tuple(_read_queues(host, link))
    irqs, table = observe(host, ReadIrqs(link)), _read_table(host, link)
    others = (*_irq_side_effect(link, irqs), *_rss_side_effect(link, table))
    if isinstance(table, Missing) or setting_words(table) is None:
        table_words = ""
    else:
        table_words = f"its RSS indirection table ({table if len(table) <= _SHOWN else table[:_SHOWN] + '…'})"
    if isinstance(irqs, Missing):
        irq_words = ""
    else:
        count = len(irqs.split(" "))
        irq_words = f"the affinity of {count} interrupt{'s' * (count > 1)}"
    recorded = tuple(filter(None, (irq_words, table_words, _queue_words(queues))))
    notes = [f"{link}: {_RESET} {'; '.join(recorded)}"] if recorded else []
    return (*queues, *others), (*notes, *(f"{link}: {why}" for why in _open_ends(irqs, table)))


def rss_notes(link: str, state: Iterable[SideEffect], queues: int) -> tuple[str, ...]:
    """Notes where RSS uses more receive queues than there are to be."""
    for one in state:
        last = highest_queue(one.before) if one.tunable == f"link:{link}:rss" else -1
        if last >= queues and not one.before.startswith("default "):
            return (
                f"{link}: its RSS indirection table uses queue {last}. If it was set by hand, the kernel refuses "
                f"{queues} receive queues, and nothing is changed; ethtool -X {link} default gives it up",
            )
    return ()


_RESET = (
    "most drivers set up all queues again, and their settings are the driver's while this is active. "
    "Recorded, and restored on rollback:"
)


def _read_queues(host: Host, link: str) -> Iterator[SideEffect]:
    for name in host.names(f"/sys/class/net/{link}/queues"):
        found = re.fullmatch(r"(rx|tx)-(\d{1,5})", name, re.ASCII)
        for kind in (LinkRps, LinkRpsFlows, LinkXps) if found else ():
            if found and found[1] == kind.side:
                one = kind(link, int(found[2]))
                live = observe(host, one.probe)
                if isinstance(live, str):
                    yield SideEffect(one.id, live, one.probe, one.make_steps(live), resets=True)


def _irq_side_effect(link: str, live: str | Missing) -> Iterator[SideEffect]:
    if isinstance(live, str):
        yield SideEffect(
            f"link:{link}:irqs", live, ReadIrqs(link), (SetIrqs(link, tuple(live.split(" "))),), resets=True
        )


def _rss_side_effect(link: str, live: str | Missing) -> Iterator[SideEffect]:
    if isinstance(live, str):
        words = setting_words(live)
        undo = () if words is None else (RunCommand(("ethtool", "-X", link, *words)),)
        yield SideEffect(f"link:{link}:rss", live, ReadCommand(("ethtool", "-x", link), "rss"), undo, resets=True)


def _read_table(host: Host, link: str) -> str | Missing:
    # A name that begins with a dash would be an option to ethtool(8).
    return NO_TABLE if link.startswith("-") else observe(host, ReadCommand(("ethtool", "-x", link), "rss"))


def _queue_words(queues: tuple[SideEffect, ...]) -> str:
    count = sum(one.before != ("0" if ":rps-flow-cnt." in one.tunable else NO_CPUS) for one in queues)
    return f"{count} value{'s' * (count > 1)} of RPS, RFS or XPS" if count else ""


def _open_ends(irqs: str | Missing, table: str | Missing) -> Iterator[str]:
    """What would not be restored."""
    if isinstance(irqs, Missing) and not irqs.is_absent:
        yield f"its interrupts could not be recorded, and would not be restored: {irqs.why}"
    if isinstance(table, str) and setting_words(table) is None:
        yield "ethtool -X cannot set an RSS indirection table such as its own: where the driver resets it, it is lost"
    if isinstance(table, Missing) and table != NO_TABLE and _UNSUPPORTED not in table.why:
        yield f"its RSS indirection table could not be recorded, and would not be restored: {table.why}"


# A link receives by its combined channels and by those for receiving alone.
_BESIDE = {"combined": "rx", "rx": "combined"}


class LinkChannels(DriverValue, frozen=True):
    """``link:IFACE:channels.KEY`` — how many queues of a kind a link has (ethtool -l), persisted in a udev rule.

    KEY is rx, tx, other or combined; a driver has those for which ethtool shows a maximum, and more than that are
    refused. Many drivers take the link down for a moment, reset RSS to all queues, and request new interrupts with
    default affinities; RPS and XPS of removed queues are lost. A rollback restores them and reads them back. Two things
    cannot be restored: interrupts whose count or names have changed, and an RSS indirection table that ethtool -X
    cannot set. Both are then named.
    """

    risk = "link"
    group = "channels"
    word = "channels"
    keys = ("rx", "tx", "other", "combined")
    unit = "queues"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        around = super().run_preflight(host, before, after)
        if before == after:
            return around
        siblings, notes = queue_state(host, self.link)
        others = {one.tunable: one.before for one in around.side_effects}
        queues = int(after) + int(others.get(f"link:{self.link}:channels.{_BESIDE.get(self.key)}", "0"))
        notes += rss_notes(self.link, siblings, queues) if self.key in _BESIDE else ()
        return msgspec.structs.replace(around, side_effects=(*around.side_effects, *siblings), notes=notes)
