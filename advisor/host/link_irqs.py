"""The interrupts of a link and where they may run, as one line that outlives their numbers.

``eth0-TxRx-0=0-3 eth0-TxRx-1=4-7``: the name that the driver gave each (``-`` where it gave none) and its affinity, by
name, and by number among those of one name. A driver that recreates its queues gets other numbers for interrupts of
the same names, so that each is found again by its name, or by its place where several have one name. The
vectors are those of the PCI function (``msi_irqs`` of sysfs-bus-pci). ``templates/rollback.sh.j2`` does the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from advisor.errors import CommandError
from advisor.host.missing import Missing
from advisor.host.patterns import lazy_regex
from advisor.host.reader import Reader
from advisor.host.steps import SetIrqs, WriteFile

NAMELESS = b"-"
_ODD_BYTE = lazy_regex(rb"[^!-<>-~]")
_CPUS = lazy_regex(r"[0-9,-]+", re.ASCII)


class LinkIrq(NamedTuple):
    """One interrupt: ``name`` in printable ASCII, ``cpus`` as the kernel lists them."""

    name: str
    number: int
    cpus: str


def link_irqs(host: Reader, link: str) -> tuple[LinkIrq, ...] | Missing:
    """The message-signalled interrupts of the PCI function that carries a link, by name and number."""
    # The directory of the PCI function: the link's device, or what a virtio or auxiliary device is part of.
    device = host.real(f"/sys/class/net/{link}/device")
    if isinstance(device, Missing):
        place = None
    else:
        # Every PCI function has a class; the bridge above one has vectors of its own, which are not the link's.
        place = device if host.exists(f"{device}/class") else device.rpartition("/")[0]
    names = () if place is None else host.names(f"{place}/msi_irqs")
    numbers = [int(name) for name in names if re.fullmatch(r"[0-9]{1,9}", name)]
    if not numbers:
        return Missing("absent", "it has no message-signalled interrupts of its own")
    found = []
    for number in numbers:
        cpus = host.read(f"/proc/irq/{number}/smp_affinity_list")
        cpus = cpus if isinstance(cpus, Missing) else cpus.strip(" \t")
        if isinstance(cpus, Missing) or not _CPUS.fullmatch(cpus):
            why = cpus.why if isinstance(cpus, Missing) else "not a list of CPUs"
            return Missing("unreadable", f"the affinity of interrupt {number}: {why}")
        actions = host.read_bytes(f"/sys/kernel/irq/{number}/actions")
        if isinstance(actions, Missing):
            interrupts = host.read_bytes("/proc/interrupts")
            label = f"{number}:".encode()
            lines = [] if isinstance(interrupts, Missing) else [line.split() for line in interrupts.split(b"\n")]
            actions = next((words[-1] for words in lines if words[:1] == [label]), NAMELESS)
        found.append(LinkIrq(_ODD_BYTE.sub(b"_", actions.rstrip(b"\n") or NAMELESS).decode("ascii"), number, cpus))
    return tuple(sorted(found))


def irqs_line(found: tuple[LinkIrq, ...] | Missing) -> str | Missing:
    """As the head of this module shows it."""
    return found if isinstance(found, Missing) else " ".join(f"{one.name}={one.cpus}" for one in found)


def set_irqs(host: Reader, step: SetIrqs, do: Callable[[WriteFile], None]) -> None:
    """Give each interrupt its affinity, by ``do``. Raises CommandError with nothing written where they are not
    the same ones, or with the kernel's words for the first that it refused, after all others."""
    found = link_irqs(host, step.link)
    if isinstance(found, Missing):
        raise CommandError(found.why)
    wanted = [word.rpartition("=")[::2] for word in step.affinities]
    if len(found) != len(wanted):
        raise CommandError(f"it has {len(found)} interrupts now and had {len(wanted)}")
    if [one.name for one in found] != [name for name, _ in wanted]:
        raise CommandError("its interrupts have other names than before, so that none can be identified")
    refused: list[CommandError] = []
    for one, (_, cpus) in zip(found, wanted, strict=True):
        try:
            if one.cpus != cpus:
                do(WriteFile(f"/proc/irq/{one.number}/smp_affinity_list", cpus))
        except CommandError as error:
            refused.append(error)
    if refused:
        raise refused[0]
