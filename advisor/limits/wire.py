"""Links: what of a rate on the wire is left for data, by the sizes of the headers.

Sources: IEEE 802.3 (preamble and delimiter 8 bytes, header 14, frame check sequence 4, gap 12: 38 in all), RFC 791 and
8200 (IP headers of 20 and 40 bytes), RFC 9293 (TCP, 20) and RFC 7323 (timestamps, 12 with padding); InfiniBand
Architecture Specification volume 1 (local route header 8, base transport header 12, check sums 4 and 2).
"""

from __future__ import annotations

ETHERNET_SOURCE = "IEEE 802.3, RFC 791, RFC 8200, RFC 9293 and RFC 7323: sizes of headers"
INFINIBAND_SOURCE = "InfiniBand Architecture Specification, volume 1: sizes of headers"
ETHERNET_BYTES = 38
IPV4_BYTES = 20
IPV6_BYTES = 40
TCP_BYTES = 20
TIMESTAMP_BYTES = 12
INFINIBAND_BYTES = 26
INFINIBAND_MTU = 4096
"""The largest MTU of the InfiniBand transport: with a smaller one even less is left."""


def tcp_efficiency(mtu: int, *, timestamps: bool = True, ipv6: bool = False) -> float:
    """The share of an Ethernet link's rate that is left for the payload of TCP: 0.941 at an MTU of 1,500."""
    headers = (IPV6_BYTES if ipv6 else IPV4_BYTES) + TCP_BYTES + (TIMESTAMP_BYTES if timestamps else 0)
    return max(0.0, (mtu - headers) / (mtu + ETHERNET_BYTES))


def infiniband_efficiency(mtu: int = INFINIBAND_MTU) -> float:
    """The share of an InfiniBand data rate (after line coding) that is left for RDMA payload."""
    return mtu / (mtu + INFINIBAND_BYTES)


def mb_per_s(mbit_per_s: float) -> float:
    """Mbit/s as MB/s."""
    return mbit_per_s / 8
