"""Where the sources contradict each other: every side with who says it, and what this tool does about it.

A rule names the contradictions that bear on its advice; its findings carry them, so that nobody takes one vendor's
number for the truth. docs/contradictions.md lists them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from advisor.rules import sources

PREFIX: Final = "contradiction."
_BY_ID: Final[dict[str, Contradiction]] = {}


class ContradictionSide(msgspec.Struct, frozen=True):
    """What one source says."""

    says: str
    source: str


class Contradiction(msgspec.Struct, frozen=True):
    """A question that sources answer differently. ``id`` begins with ``contradiction.``; ``topic`` says what of."""

    id: str
    topic: str
    sides: tuple[ContradictionSide, ...]
    what_we_do: str


def _add_contradiction(name: str, topic: str, *sides: tuple[str, str], what_we_do: str) -> Contradiction:
    new = Contradiction(PREFIX + name, topic, tuple(ContradictionSide(*side) for side in sides), what_we_do)
    return _BY_ID.setdefault(new.id, new)


SOCKET_BUFFERS = _add_contradiction(
    "socket-buffers",
    "How large socket buffers should be",
    ("Every socket buffer sysctl at 8 MiB.", sources.WHITE_PAPER),
    (
        "In the same paper: four times the default, which is 851,968 bytes and not 8 MiB.",
        sources.WHITE_PAPER + ", the text next to its example",
    ),
    ("Keep the defaults until a problem is seen. The white paper links to this.", sources.KEEP_DEFAULTS),
    ("Linux 6.18 by itself allows 4 MiB, and TCP 32 MiB: for TCP, 8 MiB would lower it.", sources.MEASURED_DEFAULTS),
    what_we_do="A limit is only ever raised. Without a counter or a declared workload it is a matter of intent; "
    "851,968 bytes hold one window of LLT and can be asked for instead of 8 MiB.",
)

HUGE_PAGES = _add_contradiction(
    "transparent-huge-pages",
    "Transparent huge pages",
    ("always, for storage and metadata servers.", sources.BEEGFS_STORAGE),
    ("Switched off.", sources.DELL_BEEGFS),
    ("Only defrag is set, to always.", sources.NETAPP_BEEGFS),
    ("never for Oracle, always for SQL Server.", sources.TUNED_ORACLE),
    ("always for HPC computing nodes.", sources.TUNED_HPC),
    what_we_do="The mode is set only by a profile that names it, and is part of its plan. enabled=always together with "
    "defrag=always is reported only where the kernel counts stalls.",
)

ZONE_RECLAIM = _add_contradiction(
    "zone-reclaim-mode",
    "vm.zone_reclaim_mode on file servers",
    ("1.", sources.BEEGFS_STORAGE),
    ("1.", sources.NETAPP_BEEGFS),
    ("1, for HPC computing nodes.", sources.TUNED_HPC),
    ("2, which only allows writing dirty pages during reclaim.", sources.DELL_BEEGFS),
    ("Leave it off on file servers, whose page cache matters more than its place.", sources.VM),
    what_we_do="The kernel's documentation is followed: a file that switches it on is reported, and is right only "
    "where every service is bound to a node. A profile for BeeGFS sets it only to the value that it is given.",
)

DIRTY_RATIOS = _add_contradiction(
    "dirty-ratios",
    "How much of the memory may be dirty (vm.dirty_background_ratio, vm.dirty_ratio)",
    ("5 and 20.", sources.BEEGFS_STORAGE),
    ("5 and 20.", sources.DELL_BEEGFS),
    ("1 and 75.", sources.NETAPP_BEEGFS),
    ("5 and 10.", sources.INTERSYSTEMS_LINUX),
    ("3 and 40.", sources.TUNED_ORACLE_DIRTY),
    ("3 and 80.", sources.TUNED_MSSQL),
    ("10 and 40.", sources.TUNED_THROUGHPUT),
    what_we_do="No ratio is recommended for everybody: the rules and profiles for BeeGFS and IRIS name their vendor's. "
    "Elsewhere bytes count against the speed of the disks: a declared workload that writes much is advised "
    "vm.dirty_bytes where the ratio means more than 4 GiB.",
)

NUMA_BALANCING = _add_contradiction(
    "numa-balancing",
    "kernel.numa_balancing",
    ("0 where services are bound to nodes.", sources.DELL_BEEGFS),
    ("Tasks that are bound already have nothing to gain from it: switch it off.", sources.SYSCTL_KERNEL),
    ("0.", sources.TUNED_ORACLE_DIRTY),
    ("1.", sources.TUNED_SPECTRUMSCALE),
    what_we_do="It is left on unless a profile that binds services to nodes is asked for.",
)

TWO_LINKS_ONE_SUBNET = _add_contradiction(
    "several-links-arp",
    "rp_filter and ARP on hosts with several links in one network",
    ("rp_filter 1, arp_filter 1, arp_announce 2, arp_ignore 2, with routes by source.", sources.NETAPP_BEEGFS),
    ("rp_filter 2.", sources.RED_HAT_RP_FILTER),
    ("rp_filter 2 for asymmetric routing; the larger of conf.all and the link's own counts.", sources.IP_SYSCTL),
    what_we_do="A strict filter is reported on hosts with several networks, as a matter of intent: with routes by "
    "source it is right. arp_filter 1 is never advised without them.",
)

HDD_SCHEDULER = _add_contradiction(
    "hard-disk-scheduler",
    "Scheduler and queue length of rotating disks",
    ("deadline with nr_requests 4096.", sources.BEEGFS_STORAGE),
    ("deadline with nr_requests 1024; mq-deadline with 64 for device-mapper.", sources.NETAPP_BEEGFS),
    ("Leave the scheduler that the kernel has chosen.", sources.RED_HAT_SCHEDULER),
    what_we_do="A rotating disk without any scheduler is reported as a matter of intent, a long queue only where a "
    "workload of streams is declared. Nothing is said about the kernel's own choice.",
)

READ_AHEAD = _add_contradiction(
    "read-ahead",
    "read_ahead_kb",
    ("4096, for storage targets.", sources.BEEGFS_STORAGE),
    ("The default of 128, and 1024 for streams from st1 and sc1 volumes only.", sources.AWS_HDD),
    ("0.", sources.TUNED_SPECTRUMSCALE),
    what_we_do="It follows the declared workload: streams that are read want 4096 KiB of rotating disks and two full "
    "stripes of an array, random reads 128 or less; EBS volumes keep the default but for streams from st1 and sc1. "
    "Undeclared, nothing is said.",
)

METADATA_WORKERS = _add_contradiction(
    "beegfs-meta-workers",
    "tuneNumWorkers of a BeeGFS metadata server",
    ("24 for each of six services, 144 on the host.", sources.DELL_BEEGFS),
    ("0, which means twice the CPU cores.", sources.BEEGFS_META_CONF),
    ("Four to eight times the cores on a server for metadata alone.", sources.BEEGFS_META_CONF + ", its comment"),
    what_we_do="Workers are counted over all services and targets of the host and set against its CPUs. No number is "
    "advised: whether there are too few shows in the queue of requests (beegfs-ctl --serverstats).",
)

PEERING_MTU = _add_contradiction(
    "aws-peering-mtu",
    "MTU between AWS regions over VPC peering",
    ("1500.", sources.AWS_MTU_2023),
    ("8500.", sources.AWS_MTU),
    what_we_do="Neither is taken for granted: advisor probe PEER measures what the path carries.",
)

RAID10_WRITES = _add_contradiction(
    "raid10-writes",
    "What RAID 10 does to the writing speed of four NVMe drives, against RAID 0",
    ("The text, in translation, speaks of an increase of about 50 %.", sources.DELL_BEEGFS + ", its text"),
    ("3.4 GB/s against 5.1 GB/s: a third less.", sources.DELL_BEEGFS + ", its measurement"),
    what_we_do="The figures are believed, as arithmetic agrees with them: every write goes to two drives.",
)

R5B_LIMIT = _add_contradiction(
    "r5b-ebs-limit",
    "EBS bandwidth of r5b.24xlarge",
    ("7,500 MB/s, where it describes the instance.", sources.IRIS_GP3 + ", its list of the instance"),
    ("10,000 MB/s, further down.", sources.IRIS_GP3 + ", its text on volumes"),
    ("7,500 MB/s and 260,000 IOPS.", sources.AWS_EBS_OPTIMIZED),
    what_we_do="advisor limits uses 7,500 MB/s, from Amazon's own table.",
)

LLT_DEFAULTS = _add_contradiction(
    "llt-flow-control-defaults",
    "Default high-water and low-water marks of LLT",
    ("200 and 100 packets.", sources.VCS_FLOW),
    ("1000 and 800 packets, as lltconfig of InfoScale 7.4.2 prints them.", sources.WHITE_PAPER),
    what_we_do="What lltconfig -F query prints is taken for the default where /etc/llttab does not set it and the "
    "value is one of the two; else the plan asks for --set default=PACKETS.",
)

FC_TIMEOUTS = _add_contradiction(
    "multipath-fc-timeouts",
    "Timeouts of Fibre Channel paths under multipath (fast_io_fail_tmo, dev_loss_tmo)",
    ("5 s, and dev_loss_tmo infinity; no_path_retry 30.", sources.HPE_CSI),
    ("10 s; dev_loss_tmo is left alone.", sources.PURE_OPENSTACK),
    ("5 s and 600 s by default.", sources.MULTIPATH_CONF),
    what_we_do="Only a path that never fails fast (off), or later than any of them says, is reported.",
)

NFS_SLOTS = _add_contradiction(
    "nfs-slots",
    "How many requests an NFS client has under way on one connection (sunrpc.tcp_max_slot_table_entries)",
    ("65,536: the server is to say when it has enough.", sources.KERNEL_SUNRPC),
    ("128.", sources.AZURE_SLOTS),
    ("128.", sources.GOOGLE_NFS),
    what_we_do="It is a matter of intent, for NFSv3 alone: sessions of NFSv4.1 agree on their slots with the server.",
)

WRITE_ORDERING = _add_contradiction(
    "pci-write-ordering",
    "Write ordering of RDMA adapters (PCI_WR_ORDERING)",
    ("1: relaxed, always.", sources.WEKA_MLX),
    ("0: relaxed only where the memory region asks for it.", sources.ORDERING_DEFAULT),
    what_we_do="It is shown as information on hosts with such adapters, and never set.",
)

CONTRADICTIONS: Final = tuple(_BY_ID.values())


def contradiction(identity: str) -> Contradiction | None:
    """The contradiction with this id; None where there is none."""
    return _BY_ID.get(identity)


def named(identities: Iterable[str]) -> tuple[Contradiction, ...]:
    """Those with these ids, in their order. Raises KeyError for an id that stands for nothing."""
    return tuple(_BY_ID[identity] for identity in identities)
