"""InfiniBand and RoCE ports below /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband)."""

from __future__ import annotations

import re

import msgspec

from advisor.host import Host

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
