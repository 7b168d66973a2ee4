"""Which interrupts are moved to their own device's node, and which must be left."""

from __future__ import annotations

from advisor.facts.cpulist import format_list
from advisor.facts.host_facts import Facts
from advisor.facts.irqs import Irq
from advisor.facts.numa import near_cpus
from advisor.planning.selection import Selected
from advisor.profiles.profile import Values

IRQ_RANK = 50


def select_irqs(values: Values, facts: Facts) -> tuple[Selected, ...]:
    """IRQs of links and NVMe drives on a known node, each with the nearest CPUs that do the housekeeping.

    Those the kernel manages refuse every write (genirq managed affinity) and are already spread by it; they are
    reported, not failed.
    """
    places = [(link.numa_node, link.irqs) for link in facts.links]
    places += [(disk.numa_node, disk.irqs) for disk in facts.disks if disk.kind == "nvme"]
    nodes = {irq: node for node, irqs in places if node is not None for irq in irqs}
    known = {node.id for node in facts.numa.nodes}
    near = {
        node: format_list(near_cpus(facts.cpu.sets, facts.numa, node, interrupts=True))
        for node in known.intersection(nodes.values())
    }
    chosen: list[Selected] = []
    for irq in facts.irqs:
        node = nodes.get(irq.number)
        cpus = near.get(node, "") if node is not None else ""
        if node is None or not cpus:
            continue
        chosen.append(_select_irq(irq, node, cpus))
    return tuple(chosen)


def _select_irq(irq: Irq, node: int, cpus: str) -> Selected:
    common = {"irq": str(irq.number)}
    what = f"{', '.join(irq.actions) or 'a device'} on node {node}"
    if irq.managed:
        return Selected(
            common,
            cpus,
            refusal=f"{what}: its affinity is managed by the kernel, which spreads it over the queues' own CPUs",
            before=irq.affinity,
        )
    return Selected(common, cpus, why=f"It serves {what}.", rank=IRQ_RANK)
