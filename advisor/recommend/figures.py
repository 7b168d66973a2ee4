"""What the articles behind the profiles measured, with which workload. Charts without numbers are marked as such."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.recommend import infoscale, iris, iscsi
from advisor.recommend.records import Figure
from advisor.rules import sources
from advisor.rules.queries import BEEGFS_NVME, JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS, NUMA_PINNING

_FSS_BASE = Figure(
    "Mirrored inside one zone: about half of the 2,000 IOPS (8 MB/s) of a local disk; across zones less still.",
    "4 KiB random, half reads, half writes",
    sources.WHITE_PAPER,
)

FIGURES: Mapping[str, tuple[Figure, ...]] = {
    JUMBO_FRAMES: (
        Figure(
            "MTU 9000 was the best of the three tunings; the paper has charts and no numbers.",
            "4 KiB sequential, half reads, half writes, mirrored over TCP inside one zone",
            sources.WHITE_PAPER,
        ),
        Figure(
            "A datagram of 8,192 bytes crosses MTU 1500 as 6 fragments; over an MTU mismatch TCP went on with smaller "
            "segments while datagrams of 8,972 bytes were all lost.",
            "UDP datagrams and TCP between two network namespaces",
            sources.MEASURED_MTU,
        ),
    ),
    NETWORK_BUFFERS: (
        Figure(
            "The buffers were slightly the best of the three tunings, with little difference; charts and no numbers.",
            "64 KiB sequential, half reads, half writes, mirrored over UDP inside one zone",
            sources.WHITE_PAPER,
        ),
        Figure(
            "Datagrams held at MTU 9000 and 1500: 12 and 15 by the default of 212,992 bytes, 51 and 61 by four times "
            "that (851,968), 504 and 606 by 8,388,608. One LLT window is 50.",
            "bursts of 8 KiB datagrams to a receiver that does not read",
            sources.MEASURED_UDP,
        ),
    ),
    LLT_FLOW_CONTROL: (
        Figure(
            "Twice the high-water marks (1,000 to 2,000 packets) was the best of the three tunings; charts and no "
            "numbers.",
            "4 KiB sequential, half reads, half writes, mirrored over UDP across two zones",
            sources.WHITE_PAPER,
        ),
        Figure("Between two zones of one region the round trip took 1.16 ms and 1.12 ms.", "ping", sources.IRIS_GP3),
        _FSS_BASE,
    ),
    BEEGFS_NVME: (
        Figure(
            "132 GB/s read and 121 GB/s written, 97 % and 89 % of the 136.4 GB/s of eleven EDR links.",
            "1 MiB sequential, a file for each of 1,024 and 256 threads on 32 clients, 33 targets, three to a file",
            sources.DELL_BEEGFS,
        ),
        Figure(
            "3.6 million IOPS written and 3.5 million read.",
            "4 KiB random, direct, a file for each of 512 and 1,024 threads",
            sources.DELL_BEEGFS,
        ),
        Figure(
            "Four drives wrote 5.1 GB/s as RAID 0 and 3.4 GB/s as RAID 10.",
            "dd, 1 MiB direct, a file of 10 GiB on one target",
            sources.DELL_BEEGFS,
        ),
    ),
    NUMA_PINNING: (
        Figure(
            "Access across the nodes cost 10 % and more; with services, links and drives bound to their nodes the "
            "system reached 97 % (read) and 89 % (write) of what its network carries.",
            "1 MiB sequential by 1,024 and 256 threads on six servers of two nodes",
            sources.DELL_BEEGFS,
        ),
    ),
    "web-server": (
        Figure(
            "Before its ports ran out, a host opened 28,232 connections to one address and port with the kernel's "
            "range, 49,152 with 16384 to 65535. Of a queue asked for at 4,096, 129 connections could wait with "
            "somaxconn 128, 4,097 with 4096.",
            "connections to a server on the same host, counted; no time was measured",
            sources.MEASURED_COUNTS,
        ),
    ),
    **infoscale.FIGURES,
    **iris.FIGURES,
    **iscsi.FIGURES,
}
