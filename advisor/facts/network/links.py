"""Links: what they are, what they are stacked on, what their driver allows, where their interrupts run.

One ``ip -j -d addr show`` describes all links at once; sysfs shows what they are stacked on and where they sit; drivers
are asked over the ethtool ioctl. Where ip is missing, sysfs and /proc/net stand in for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from advisor.facts.network.ip_text import BareLink
from advisor.facts.network.link_sources import Sources, driver_word, read_sources
from advisor.facts.network.link_tables import LinkDirectory, number, parse_bonding, parse_route_mtus
from advisor.facts.processors.pci import PcieLink, read_place
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex
from advisor.host.ethtool import NOT_RECORDED, Answer
from advisor.host.numbers import is_hexadecimal

# InfiniBand and RoCE ports below /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband).

CLASS = "/sys/class/infiniband"


class IbPort(msgspec.Struct, frozen=True):
    """A port of an RDMA device. ``speed_mbps`` in Mbit/s over all lanes; ``layer`` is InfiniBand or Ethernet."""

    device: str
    port: int
    state: str | None
    physical_state: str | None
    layer: str | None
    rate: str | None
    speed_mbps: int | None


def parse_rate_mbps(text: str) -> int | None:
    """Mbit/s of ``100 Gb/sec (4X EDR)``; None for anything else."""
    found = re.match(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec", text, re.ASCII)
    return round(float(found[1]) * 1000) if found else None


def parse_port_state(text: str) -> str:
    """The word of ``4: ACTIVE``."""
    return text.partition(": ")[2] or text


def read_ports(host: Host, device: str) -> tuple[IbPort, ...]:
    """The ports of one RDMA device, by number; an attribute that cannot be read is None."""
    numbers = sorted(int(name) for name in host.names(f"{CLASS}/{device}/ports") if re.fullmatch("[0-9]{1,3}", name))
    return tuple(_read_port(host, device, number) for number in numbers)


def _read_port(host: Host, device: str, number: int) -> IbPort:
    place = f"{CLASS}/{device}/ports/{number}"
    state, physical, rate = (host.read_text(f"{place}/{name}") for name in ("state", "phys_state", "rate"))
    return IbPort(
        device=device,
        port=number,
        state=parse_port_state(state) if state else None,
        physical_state=parse_port_state(physical) if physical else None,
        layer=host.read_text(f"{place}/link_layer"),
        rate=rate,
        speed_mbps=parse_rate_mbps(rate) if rate else None,
    )


# What drivers and kernels of all ages say for a speed that they do not know: -1 as 32, as 16 bits, and nothing.
_NO_SPEED = frozenset({0, 65535, 4294967295})
_COUNTERS = ("rx_packets", "rx_missed_errors", "rx_fifo_errors", "rx_over_errors")
_MASK_LENGTH = 4096
_ETHERNET_MTU = 1500
_REPRESENTOR = lazy_regex(r"pf\d+(vf|sf)\d+$|(?<=[a-z0-9])_\d+$", re.ASCII)


class Rings(msgspec.Struct, frozen=True):
    """Descriptors per queue, now and at most."""

    rx: int
    rx_max: int
    tx: int
    tx_max: int


class Channels(msgspec.Struct, frozen=True):
    """Queues, now and at most."""

    rx: int
    rx_max: int
    tx: int
    tx_max: int
    combined: int
    combined_max: int
    other: int
    other_max: int


class Link(msgspec.Struct, frozen=True):
    """One network link. ``mtu`` in bytes, ``speed_mbps`` in Mbit/s; both None where unknown.

    ``kind`` is ethernet, infiniband, wlan or loopback for what has no kind of its own in the kernel, else the kernel's
    word (bond, vlan, bridge, macvlan, macvtap, ipvlan, vxlan, veth, dummy, team, tun, tap, ifb, gre …); ``virtual`` or
    ``unknown`` where nothing reports it.
    ``lower`` are the links it is stacked on (bond members, the parent of a VLAN or macvlan, a bridge's ports),
    ``upper`` those stacked on it. ``mtu_min``/``mtu_max`` are the driver's range; 0 from the kernel means *no bound*
    and is given as None. ``features`` are the offloads by the kernel's names. A link that is made of others, or of
    nothing, has no PCI function and so no ``numa_node`` of its own; its speed is its driver's word (10000 for a veth).
    """

    name: str
    kind: str
    mtu: int | None
    mtu_min: int | None
    mtu_max: int | None
    speed_mbps: int | None
    state: str | None
    carrier: bool | None
    driver: str | None
    firmware: str | None
    pci: str | None
    numa_node: int | None
    local_cpus: str | None
    pcie: PcieLink | None
    mac: str | None
    permanent_mac: str | None
    ifindex: int | None
    lower: tuple[str, ...]
    upper: tuple[str, ...]
    irqs: tuple[int, ...]
    rings: Rings | None
    channels: Channels | None
    features: Mapping[str, bool] | None
    txqueuelen: int | None
    addresses: tuple[str, ...]
    """Addresses with prefix length, IPv4 before IPv6."""
    default_route: bool | None
    """Whether a default route of the main table leaves by it; of several IPv4 next hops, the kernel lists the first."""
    detail: Mapping[str, str]
    """What only this kind has: vlan id, bond mode, macvlan mode, vxlan id, bridge state …"""
    counters: Mapping[str, int] = {}
    """Packets received, and lost before the kernel saw them, since the driver counts; of links with a device only.

    rx_packets, rx_missed_errors, rx_fifo_errors, rx_over_errors (kernel: networking/statistics).
    """
    rps_cpus: str | None = None
    """The CPUs to which the first receive queue's packets are steered, as sysfs prints them; links with a device."""
    best_speed_mbps: int | None = None
    """The fastest mode that it supports and advertises; None for a link that has none, as most virtual ones."""
    port_of: str | None = None
    """PCI address of the physical function, for a virtual function and for a representor of one."""
    qdisc: str | None = None
    """The discipline at the root of what the link sends, as ip shows it; ``mq`` has one for each queue below it."""
    pci_id: str | None = None
    """PCI vendor and device, as ``8086:37d1``."""
    route_mtus: Mapping[str, int] = {}
    """MTUs that its routes have of their own, by destination, with ``, locked`` behind it where path MTU discovery is
    off; of links above 1500 bytes only."""


class _Stack(msgspec.Struct, frozen=True):
    """Which links rest on which, by name."""

    lower: Mapping[str, tuple[str, ...]]
    upper: Mapping[str, tuple[str, ...]]


def read_links(host: Host, unknown: Unknowns) -> tuple[Link, ...]:
    """Every link of the caller's network namespace, by name."""
    sources = read_sources(host, unknown)
    # The kernel's own lower_ and upper_ links, and what the links' parents and masters imply where it has none.
    lower: dict[str, set[str]] = {}
    upper: dict[str, set[str]] = {}
    for above, below in _lower_pairs(sources):
        lower.setdefault(above, set()).add(below)
        upper.setdefault(below, set()).add(above)
    stack = _Stack(
        lower={name: tuple(sorted(names)) for name, names in lower.items()},
        upper={name: tuple(sorted(names)) for name, names in upper.items()},
    )
    found = tuple(_read_link(host, name, sources, stack, unknown) for name in sorted(sources.bare))
    churned = {port: words for link in found for port, words in _read_churned(host, link)}
    found = tuple(_with_detail(link, port_churned=churned.get(link.name)) for link in found) if churned else found
    shared = {one for one, count in Counter(link.pci for link in found if link.pci).items() if count > 1}
    return tuple(_as_representor(link) if link.pci in shared else link for link in found)


def _read_churned(host: Host, bond: Link) -> Iterator[tuple[str, str]]:
    """Yield each port of a bond that never came to agree with its other end, and which side says so."""
    text = host.read_or_empty(f"/proc/net/bonding/{bond.name}") if bond.detail.get("mode") == "802.3ad" else ""
    for member in parse_bonding(text).members if text else ():
        if member.churned:
            yield member.name, member.churned


def _with_detail(link: Link, **words: str | None) -> Link:
    own = {name: word for name, word in words.items() if word}
    return msgspec.structs.replace(link, detail={**link.detail, **own}) if own else link


def _as_representor(link: Link) -> Link:
    """A representor has the PCI function of its port, and says by its name which function it stands for."""
    name = link.detail.get("phys_port_name") or link.name
    return msgspec.structs.replace(link, port_of=link.pci) if _REPRESENTOR.search(name) else link


def _read_link(host: Host, name: str, sources: Sources, stack: _Stack, unknown: Unknowns) -> Link:
    bare, place = sources.bare[name], sources.directories.get(name)
    device = f"{place.path}/device" if place and "device" in place.entries else None
    pci = read_place(host, device, f"links.{name}", unknown) if device else None
    port = _rdma_port(host, device, place) if device and place else None
    driver = sources.answers[name, "driver"]
    if device is None and bare.kind is None:
        unknown.note(f"links.{name}.kind", "nothing reports what kind of link it is")
    counts = _all_counts(_note_answer(sources, name, "rings", unknown), ("rx", "rx_max", "tx", "tx_max"))
    # To netlink a wireless card is an Ethernet card.
    if bare.kind == "ethernet" and place and not place.entries.isdisjoint({"phy80211", "wireless"}):
        kind = "wlan"
    else:
        kind = bare.kind or "unknown"
    return Link(
        name=name,
        kind=kind,
        mtu=bare.mtu,
        mtu_min=bare.mtu_min,
        mtu_max=bare.mtu_max,
        speed_mbps=_read_speed(host, bare, place, port, unknown),
        state=bare.state,
        carrier=bare.carrier,
        driver=(_linked_driver(host, device) if device else None) or driver_word(driver, "driver"),
        firmware=driver_word(driver, "firmware") if device or not place else None,
        pci=pci.address if pci else None if place else _bus_address(driver),
        numa_node=pci.numa_node if pci else None,
        local_cpus=pci.local_cpus if pci else None,
        pcie=pci.pcie if pci else None,
        mac=bare.mac,
        permanent_mac=bare.permanent_mac or (_assigned_mac(host, bare, place) if device else None),
        ifindex=bare.ifindex,
        lower=stack.lower.get(name, ()),
        upper=stack.upper.get(name, ()),
        irqs=pci.irqs if pci else (),
        rings=Rings(**counts) if counts else None,
        channels=_make_channels(_note_answer(sources, name, "channels", unknown)),
        features=_feature_map(_note_answer(sources, name, "features", unknown)),
        txqueuelen=bare.txqueuelen,
        addresses=bare.addresses if sources.addresses is None else sources.addresses.get(name, ()),
        default_route=None if sources.default_routes is None else name in sources.default_routes,
        detail={**bare.detail, **_rdma_detail(port)} if port else bare.detail,
        counters=_read_counters(host, place) if device and place else {},
        rps_cpus=_rps_cpus(host, place) if device and place else None,
        best_speed_mbps=_read_best_speed(host, name) if device else None,
        qdisc=bare.qdisc,
        port_of=_physical_function(host, device) if device else None,
        pci_id=_read_pci_id(host, pci.address) if pci else None,
        # The loopback is above it, too, and two processes take a twentieth of a scan.
        route_mtus=_read_route_mtus(host, name)
        if name != "lo" and bare.addresses and (bare.mtu or 0) > _ETHERNET_MTU
        else {},
    )


def _physical_function(host: Host, device: str) -> str | None:
    target = host.readlink(f"{device}/physfn")
    return None if isinstance(target, Missing) else printable(target.rstrip("/").rpartition("/")[2]) or None


def _read_route_mtus(host: Host, name: str) -> dict[str, int]:
    commands = (("ip", "-o", f"-{version}", "route", "show", "table", "all", "dev", name) for version in (4, 6))
    texts = (done.stdout for done in map(host.run, commands) if not isinstance(done, Missing))
    return {destination: mtu for text in texts for destination, mtu in parse_route_mtus(text).items()}


def _read_pci_id(host: Host, address: str) -> str | None:
    place = f"/sys/bus/pci/devices/{address}"
    words = [host.read_or_empty(f"{place}/{name}").strip().removeprefix("0x") for name in ("vendor", "device")]
    return ":".join(words) if all(is_hexadecimal(word) for word in words) else None


def _read_best_speed(host: Host, name: str) -> int | None:
    answer = host.ethtool(name, "modes")
    if not isinstance(answer, Missing):
        best = answer.get("best_mbps")
        return best if isinstance(best, int) and best else None
    if host.is_live:
        return None
    from advisor.facts.network.ethtool_text import best_advertised_mbps, parse_ethtool_settings

    done = host.run(("ethtool", name))
    settings = done if isinstance(done, Missing) else parse_ethtool_settings(done.stdout)
    return None if isinstance(settings, Missing) else best_advertised_mbps(settings)


def _read_counters(host: Host, place: LinkDirectory) -> dict[str, int]:
    readings = {name: number(host, f"{place.path}/statistics/{name}") for name in _COUNTERS}
    return {name: value for name, value in readings.items() if isinstance(value, int)}


def _rps_cpus(host: Host, place: LinkDirectory) -> str | None:
    # One queue stands for all: who sets the mask sets it for each, and a card may have hundreds.
    return printable(host.read_or_empty(f"{place.path}/queues/rx-0/rps_cpus").strip()[:_MASK_LENGTH]) or None


def _lower_pairs(sources: Sources) -> Iterator[tuple[str, str]]:
    """Each link with one that it rests on."""
    for name, place in sources.directories.items():
        yield from ((name, below) for below in place.named("lower_"))
        yield from ((above, name) for above in place.named("upper_"))
    for name, link in sources.bare.items():
        if link.below in sources.bare:
            yield name, str(link.below)
        if link.master in sources.bare:
            yield str(link.master), name


def _read_speed(
    host: Host, bare: BareLink, place: LinkDirectory | None, port: IbPort | None, unknown: Unknowns
) -> int | None:
    """Mbit/s; not asked of a link that is down, whose driver answers nothing or what it had before."""
    if bare.carrier is False or bare.state == "down":
        return None
    reading = number(host, f"{place.path}/speed") if place else None
    if isinstance(reading, int) and reading not in _NO_SPEED:
        return reading
    speed = (port.speed_mbps if port else None) or _captured_speed(host, bare.name)
    if speed is None and place and "device" in place.entries:
        why = f": {reading.why}" if isinstance(reading, Missing) and not reading.is_absent else ""
        unknown.note(f"links.{bare.name}.speed_mbps", f"the driver reports no speed{why}")
    return speed


def _captured_speed(host: Host, link: str) -> int | None:
    if host.is_live:
        return None
    from advisor.facts.network.ethtool_text import parse_ethtool_settings, settings_speed_mbps

    done = host.run(("ethtool", link))
    settings = done if isinstance(done, Missing) else parse_ethtool_settings(done.stdout)
    return None if isinstance(settings, Missing) else settings_speed_mbps(settings)


def _rdma_port(host: Host, device: str, place: LinkDirectory) -> IbPort | None:
    """The InfiniBand or RoCE port of a link; dev_port counts from 0, where several share one RDMA device."""
    ports = [port for name in host.names(f"{device}/infiniband") for port in read_ports(host, name)]
    if len(ports) < 2:
        return ports[0] if ports else None
    index = number(host, f"{place.path}/dev_port")
    return next((port for port in ports if isinstance(index, int) and port.port == index + 1), None)


def _rdma_detail(port: IbPort) -> dict[str, str]:
    words = {"rdma_device": port.device, "rdma_port": str(port.port), "rdma_rate": port.rate, "rdma_state": port.state}
    return {name: word for name, word in words.items() if word}


def _bus_address(driver: Answer | Missing) -> str | None:
    """The PCI address that the driver reports, for a host whose sysfs was not captured."""
    bus = driver_word(driver, "bus") or ""
    return bus if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", bus) else None


def _linked_driver(host: Host, device: str) -> str | None:
    target = host.readlink(f"{device}/driver")
    return None if isinstance(target, Missing) else printable(target.rstrip("/").rpartition("/")[2]) or None


def _assigned_mac(host: Host, bare: BareLink, place: LinkDirectory | None) -> str | None:
    """The address, where the kernel says that it is the permanent one (addr_assign_type 0)."""
    assigned = number(host, f"{place.path}/addr_assign_type") if place else None
    return bare.mac if assigned == 0 else None


def _note_answer(sources: Sources, name: str, what: str, unknown: Unknowns) -> Answer | None:
    answer = sources.answers[name, what]
    if answer != NOT_RECORDED:
        return unknown.value(f"links.{name}.{what}", answer)
    place = sources.directories.get(name)
    if place is None or "device" in place.entries:
        unknown.note(f"links.{what}", NOT_RECORDED)
    return None


def _make_channels(answer: Answer | None) -> Channels | None:
    names = ("rx", "rx_max", "tx", "tx_max", "combined", "combined_max", "other", "other_max")
    counts = _all_counts(answer, names)
    return Channels(**counts) if counts else None


def _all_counts(answer: Answer | None, names: tuple[str, ...]) -> dict[str, int] | None:
    """All of the counts, or None: half an answer is none."""
    found = {name: value for name in names if answer and type(value := answer.get(name)) is int}
    return found if len(found) == len(names) else None


def _feature_map(answer: Answer | None) -> Mapping[str, bool] | None:
    # Not copied: links of one driver share one set.
    return cast("Mapping[str, bool]", answer) if answer else None
