"""PCIe: links below their maximum, and slots that carry less than the device needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from advisor.facts.network.links import Link
from advisor.facts.processors.pci import PcieLink
from advisor.host.patterns import lazy_regex
from advisor.rules import sources
from advisor.rules.queries import crosses_network, is_physical, is_up, is_virtual_machine
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 180

_X722 = lazy_regex(r"8086:37(c[c-f]|d[0-3])")
_WORTH = 1.1  # what is short by less than a tenth is lost in what packets and encoding take


def _pci_devices(facts: Facts) -> Iterable[tuple[str, str, PcieLink]]:
    """Kind, name and PCIe link of what sits on PCI. A hypervisor's PCIe is make-believe and is left out."""
    if is_virtual_machine(facts):
        return
    for link in facts.links:
        if link.pcie is not None and _is_port(link) and not _is_make_believe(link):
            yield "links", link.name, link.pcie
    for disk in facts.disks:
        if disk.pcie is not None:
            yield "disks", disk.name, disk.pcie


def _is_narrow(pcie: PcieLink) -> bool:
    return pcie.width is not None and pcie.width_max is not None and 0 < pcie.width < pcie.width_max


def _is_slow(pcie: PcieLink) -> bool:
    return pcie.speed_gts is not None and pcie.speed_max_gts is not None and 0 < pcie.speed_gts < pcie.speed_max_gts


def _describe_shape(pcie: PcieLink) -> str:
    now = f"x{pcie.width or '?'} at {_format_gts(pcie.speed_gts)}"
    return f"{now} of x{pcie.width_max or '?'} at {_format_gts(pcie.speed_max_gts)}"


def _format_gts(speed: float | None) -> str:
    return "? GT/s" if speed is None else f"{speed:g} GT/s"


def _low_finding(shape: str, limiting: str | None, members: tuple[tuple[str, str, PcieLink], ...]) -> Finding:
    narrow = _is_narrow(members[0][2])
    names = tuple(name for _, name, _ in members)
    return below_maximum.found(
        severity="advice" if narrow else "info",
        title=f"PCIe link {shape}: {_join_some(names)}",
        why=(
            "Fewer lanes than the device has: a seat that is not firm, a slot with fewer lanes, or lanes shared with "
            "another slot."
            if narrow
            else "A lower speed than the device's: an older slot or riser, or a port that sleeps while idle."
        ),
        evidence={
            **{kind: tuple(name for of, name, _ in members if of == kind) for kind in ("links", "disks")},
            "pcie": shape,
            "limiting": limiting,
            "bandwidth_mbps": members[0][2].bandwidth_mbps,
        },
        remedy=(
            RunShell("lspci -vv | grep -E '^[0-9a-f]|LnkCap:|LnkSta:'", "read the links again under load, as root"),
            "if they stay, reseat the device or move it to a faster slot",
        ),
    )


def _join_some(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


@rule(
    id="pcie.below-maximum",
    severity="advice",
    title="A PCIe link runs below its maximum",
    what="Current against maximum link speed and width of each network and storage device, on real hardware.",
    why="Bandwidth is lanes times speed; half the lanes are half the bandwidth.",
    helps_when="The device is asked for more than the slot carries.",
    hurts_when="Idle links may lower their speed to save power and come back under load: that is no fault.",
    sources=(sources.PCI_SYSFS, sources.PCIE_BANDWIDTH),
)
def below_maximum(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    low = [entry for entry in _pci_devices(facts) if _is_narrow(entry[2]) or _is_slow(entry[2])]
    low.sort(key=lambda entry: (_describe_shape(entry[2]), entry[2].limiting or ""))
    groups = groupby(low, key=lambda entry: (_describe_shape(entry[2]), entry[2].limiting))
    return tuple(_low_finding(shape, limiting, tuple(members)) for (shape, limiting), members in groups)


def _is_starved(link: Link) -> bool:
    bandwidth = link.pcie.bandwidth_mbps if link.pcie else None
    return bool(bandwidth and link.speed_mbps and link.speed_mbps > bandwidth and not _is_make_believe(link))


def _is_port(link: Link) -> bool:
    """Whether a card's port stands behind the link, and not one of the functions into which it is divided."""
    return is_physical(link) and link.port_of is None


def _is_make_believe(link: Link) -> bool:
    """Whether the port is inside a chipset, whose PCIe link is not the one that carries its traffic (Intel X722), or
    even the device's own maximum is below the speed of its link."""
    pcie = link.pcie
    if link.pci_id is not None and _X722.fullmatch(link.pci_id):
        return True
    if pcie is None or not pcie.speed_max_gts or not pcie.width_max or not link.speed_mbps:
        return False
    return pcie.speed_max_gts * pcie.width_max * 1000 < link.speed_mbps


@rule(
    id="pcie.below-link-speed",
    severity="warning",
    title="PCIe carries less than a link is fast",
    what="Usable bandwidth of the narrowest PCIe hop from the device to the root, against the link's speed.",
    why="No setting can send more than the slot carries.",
    helps_when="The link is driven near its speed.",
    hurts_when="Nothing is lost where the link is never busy; moving a card costs downtime.",
    sources=(sources.PCIE_BANDWIDTH, sources.DELL_BEEGFS),
)
def below_link_speed(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    if is_virtual_machine(facts):
        return
    for link in facts.links:
        if _is_port(link) and _is_starved(link):
            bandwidth = link.pcie.bandwidth_mbps if link.pcie else None
            limiting = link.pcie.limiting if link.pcie else None
            yield below_link_speed.found(
                title=f"PCIe carries less than link {link.name} is fast",
                why=f"{link.name} runs at {link.speed_mbps:,} Mbit/s, and PCIe carries {bandwidth:,} Mbit/s at its "
                "narrowest" + (f", the bridge {limiting}." if limiting else ", the device's own slot."),
                evidence={
                    "links": (link.name,),
                    "speed_mbps": link.speed_mbps,
                    "bandwidth_mbps": bandwidth,
                    "pcie": _describe_shape(link.pcie) if link.pcie else None,
                    "limiting": limiting,
                },
                remedy="move the card to a slot with more or faster lanes; read the link under load first, for an "
                "idle one may sleep",
            )


@rule(
    id="pcie.shared-slot",
    severity="info",
    title="Ports of one card share a slot that is too narrow",
    what="The speeds of a card's ports together, against the usable bandwidth of its slot.",
    why="All functions of a card share the lanes of its slot.",
    helps_when="A bond or two fabrics over both ports of one card are expected to double the bandwidth.",
    hurts_when="The second port is there to survive a cable or a switch: then it need not carry anything more.",
    sources=(sources.PCIE_BANDWIDTH, sources.DELL_BEEGFS),
)
def shared_slot(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    if is_virtual_machine(facts):
        return
    slots: dict[str, list[Link]] = {}
    for link in facts.links:
        if link.pci is not None and link.pcie is not None and _is_port(link) and not _is_make_believe(link):
            slots.setdefault(link.pci.rpartition(".")[0], []).append(link)
    for _, links in sorted({slot: tuple(links) for slot, links in slots.items()}.items()):
        if (
            len({link.pci for link in links}) > 1
            and not any(_is_starved(link) for link in links)
            and (total := sum({link.pci: link.speed_mbps or 0 for link in links}.values()))
            > (bandwidth := min((link.pcie.bandwidth_mbps or 0 for link in links if link.pcie), default=0))
            > 0
        ):
            names = tuple(link.name for link in links)
            yield shared_slot.found(
                title=f"Ports {', '.join(names)} share a slot that is too narrow",
                why=f"Together they run at {total:,} Mbit/s; their slot carries {bandwidth:,} Mbit/s.",
                evidence={"links": names, "speed_mbps": total, "bandwidth_mbps": bandwidth},
                remedy="use ports of different cards where all must be busy at once",
                intent=True,
            )


def _own_mbps(facts: Facts) -> dict[str, tuple[str, str, int, PcieLink]]:
    """What each PCI function can carry by itself: kind and name of what sits on it, Mbit/s, and its link."""
    own: dict[str, tuple[str, str, int, PcieLink]] = {}
    for disk in facts.disks:
        if disk.pci is not None and disk.pcie is not None and disk.pcie.bandwidth_mbps:
            own.setdefault(disk.pci, ("disks", disk.name, disk.pcie.bandwidth_mbps, disk.pcie))
    for link in facts.links:
        if (
            link.pci is not None
            and link.pcie is not None
            and link.speed_mbps
            and _is_port(link)
            and not _is_make_believe(link)
        ):
            speed = min(link.speed_mbps, link.pcie.bandwidth_mbps or link.speed_mbps)
            own.setdefault(link.pci, ("links", link.name, speed, link.pcie))
    return own


def _below_bridges(facts: Facts) -> Mapping[tuple[str, ...], tuple[str, int]]:
    """Functions that share a bridge, with the narrowest bridge that exactly these share and its Mbit/s."""
    shared: dict[str, list[str]] = {}
    speeds: dict[str, int] = {}
    for address, (_, _, _, pcie) in sorted(_own_mbps(facts).items()):
        for bridge, mbps in pcie.bridges.items():
            shared.setdefault(bridge, []).append(address)
            speeds[bridge] = mbps
    narrowest: dict[tuple[str, ...], tuple[str, int]] = {}
    for bridge, addresses in sorted(shared.items()):
        group = tuple(addresses)
        if len(group) > 1 and speeds[bridge] < narrowest.get(group, ("", speeds[bridge] + 1))[1]:
            narrowest[group] = (bridge, speeds[bridge])
    return narrowest


def _links_mbps(facts: Facts) -> int:
    """Mbit/s of the physical links that are up; 0 where one's speed is unknown."""
    speeds = [link.speed_mbps for link in facts.links if is_physical(link) and is_up(link)]
    known = [speed for speed in speeds if speed]
    return sum(known) if len(known) == len(speeds) else 0


@rule(
    id="pcie.shared-uplink",
    severity="advice",
    title="Devices share a PCIe uplink that is too narrow",
    what="The bandwidth of the devices below a bridge together, against the bridge's own; on real hardware.",
    why="A PCIe switch gives each drive its lanes, and all of them the lanes of its one uplink: twelve drives of four "
    "lanes share sixteen.",
    helps_when="All drives of a server stream at once.",
    hurts_when="Nothing is lost where they never do; drives slower than their lanes share longer without harm.",
    sources=(sources.PCIE_BANDWIDTH, sources.DELL_BEEGFS),
)
def shared_uplink(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    if is_virtual_machine(facts):
        return
    own = _own_mbps(facts)
    uplinks = sum(mbps for _, mbps in _below_bridges(facts).values())
    # What crosses the network gains nothing by wider uplinks where the links carry less than they do.
    is_bound = 0 < _links_mbps(facts) <= uplinks and crosses_network(facts, workload) is True
    declared = workload is not None and workload.is_sequential and not is_bound
    for group, (bridge, mbps) in sorted(_below_bridges(facts).items()):
        if (
            any(own[address][0] == "disks" for address in group)
            and sum(own[address][2] for address in group) > _WORTH * mbps
        ):
            below = [own[address] for address in group]
            total = sum(speed for _, _, speed, _ in below)
            names = tuple(name for _, name, _, _ in below)
            yield shared_uplink.found(
                severity="advice" if declared else "info",
                title=f"{_join_some(names)} share an uplink of {mbps:,} Mbit/s",
                why=f"Their own links carry {total:,} Mbit/s together, {total / mbps:.1f} times what the bridge "
                f"{bridge} above all of them carries."
                + (" The declared workload of streams can ask for that." if declared else ""),
                evidence={
                    **{kind: tuple(name for of, name, _, _ in below if of == kind) for kind in ("disks", "links")},
                    "bridge": bridge,
                    "bandwidth_mbps": mbps,
                    "devices_mbps": total,
                },
                remedy=(
                    RunShell("lspci -tv", "see the bridges"),
                    "put what must be fast at once below different bridges; more drives below this one add space "
                    "and no speed",
                ),
                intent=not declared,
            )
