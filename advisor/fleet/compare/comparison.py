"""What a comparison of hosts says: records only, in the order in which they matter."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from advisor.fleet.compare.collected import Value
from advisor.fleet.compare.path_matrix import Matrix
from advisor.host.patterns import lazy_regex
from advisor.rules import sources
from advisor.rules.rule import Severity

# What each kind of attribute means in a comparison: how much a difference matters, why, and within which hosts it is
# one. The first kind whose pattern fits counts.

Scope = Literal["fleet", "type", "cluster"]
"""Compared among all hosts; among those of one hardware; within one LLT cluster."""

ROLLING = "Nodes that are being upgraded one after the other differ on purpose, for as long as that lasts."
OWN_PURPOSE = "Hosts that have another purpose differ on purpose: compare them apart (--group-by, --limit)."
LINK_FLAP = "Many drivers take the link down for a moment to change this."
SAME_CLUSTER = "Veritas Cluster Server Administrator's Guide, /etc/llthosts and /etc/gabtab are alike on every node"


class AttributeKind(msgspec.Struct, frozen=True):
    """``topic`` names what belongs together: differences of one topic on the same hosts are reported in one line.

    ``rank`` orders findings of one severity, the most pressing first. ``hardware`` says that another type of machine
    may explain it. ``do`` is what to do where no command is known. ``name`` is the last part of the finding's id; empty
    means the words of the topic.
    """

    pattern: str
    topic: str
    severity: Severity
    rank: int
    scope: Scope
    why: str
    hurts_when: str
    sources: tuple[str, ...]
    do: str = "look at what differs, and set the outlier as the others are"
    name: str = ""


def _link(leaf: str, topic: str, rank: int, why: str, *cited: str, **parts: object) -> AttributeKind:
    kind = AttributeKind(
        rf"link\..+\.{leaf}", topic, "advice", rank, "type", why, LINK_FLAP, cited or (sources.IP_LINK,)
    )
    return msgspec.structs.replace(kind, **parts)


def _service(pattern: str, topic: str, rank: int, why: str, *cited: str, **parts: object) -> AttributeKind:
    kind = AttributeKind(pattern, topic, "advice", rank, "fleet", why, OWN_PURPOSE, cited)
    return msgspec.structs.replace(kind, **parts)


_ALIKE = "Nodes that share work are as quick as the slowest of them, and an odd one fails in its own way."

KINDS = (
    _service(
        r"advisor\.(drift|unfinished)",
        "drift",
        5,
        "A profile is active there and its values have drifted, or a transaction was interrupted.",
        "advisor verify",
        severity="warning",
        hurts_when="The value may have been changed on purpose: ask before it is restored.",
        do="advisor status there; then advisor verify, and apply the profile again or roll it back",
    ),
    _service(
        r"advisor\.profiles",
        "active profiles",
        30,
        "The active profiles differ, so the hosts are tuned for different things.",
        "advisor status",
        do="apply the profile there as on the others, or roll it back on all",
        name="profiles-in-force",
    ),
    _link(
        r"(state|carrier)",
        "link state",
        10,
        "The link is up on most hosts and not on this one: it carries nothing, and a cluster has lost a path.",
        scope="fleet",
        severity="warning",
        hurts_when="A link that is kept down on purpose (a spare, a maintenance) is no fault.",
        do="ip -s link show; look at the cable, the switch port and the peer",
    ),
    _link(
        r"mtu",
        "link MTU",
        12,
        "Links with the same function have different MTUs. Where they share a network, large packets vanish; where "
        "they do not, the hosts send packets of different sizes.",
        sources.MEASURED_MTU,
        scope="fleet",
        hurts_when="A switch on the way that does not carry the larger MTU: large packets vanish without an error.",
    ),
    _link(
        r"present",
        "links",
        32,
        "A link that most hosts have is missing, or one is there that they do not have.",
        scope="fleet",
        hurts_when=OWN_PURPOSE,
        do="ip -br link; look at cabling, driver and configuration of the host",
    ),
    _link(r"speed_mbps", "link speed", 33, "The link runs at another speed: a cable, a port or what was negotiated.",
          hurts_when=OWN_PURPOSE, do="ethtool the link on both hosts; look at cable, transceiver and switch port"),
    _link(r"pcie", "link PCIe", 34, "The card has fewer PCIe lanes or a slower slot than on the other hosts.",
          sources.PCI_SYSFS, hurts_when=OWN_PURPOSE, do="move the card to a slot like that of the others"),
    _link(r"driver", "link driver", 40, "Another driver serves the link: other defaults, other limits."),
    _link(r"firmware", "link firmware", 60, "The card runs another firmware: its faults are others, too.",
          hurts_when=ROLLING, do="bring the firmware of the outlier to that of the others"),
    _link(r"ring\.(rx|tx)", "link rings", 50, "Ring sizes differ: bursts that one host takes are dropped by another.",
          sources.SCALING),
    _link(r"channels\.(rx|tx|combined)", "link channels", 51,
          "The number of queues differs: packets are spread over fewer CPUs on one host.", sources.SCALING),
    _link(r"feature\..+", "link offloads", 52,
          "Offloads differ: the same traffic costs other CPU time and other packet sizes.", sources.SCALING),
    _link(r"detail\..+", "link mode", 35, "Bonding, VLAN or bridge settings differ: failover works otherwise.",
          sources.BONDING, scope="fleet"),
    _link(r"rps_cpus", "link steering", 53, "Packets are steered to CPUs on some hosts only.", sources.SCALING),
    _link(r"numa_node", "link locality", 61, "The card sits on another NUMA node than on hosts of the same type.",
          sources.PCI_SYSFS, severity="info", hurts_when=OWN_PURPOSE, do="move the card, or pin by the host's node"),
    _link(r"(txqueuelen|kind)", "link settings", 62, "Links with the same function are set up differently."),
    _link(r"(name|mtu_max|.*_max)", "link names and limits", 80,
          "Names and limits differ, so a command that is right on one host is wrong on another.",
          severity="info", hurts_when=OWN_PURPOSE),
    _service(r"link\.count", "links", 32, "The number of network ports differs.", sources.PCI_SYSFS, scope="type"),
    _service(r"sysctl\..+", "sysctl", 36, "Kernel parameters differ: what was set on the others is missing here, or "
             "somebody tried something.", sources.SYSCTL_D,
             hurts_when="A value that fits this host's memory or work better than the others' is lost."),
    _service(r"cmdline\..+", "kernel command line", 37, "The kernel was started with other tuning words.",
             "Linux kernel documentation, admin-guide/kernel-parameters",
             do="set it as on the others in the boot loader's configuration; it takes effect at the next boot"),
    _service(r"host\.(kernel|os)", "kernel and system", 38, "Another kernel brings other defaults and other drivers. "
             + _ALIKE, sources.SYSCTL_KERNEL, hurts_when=ROLLING, do="bring the outlier to the release of the others"),
    _service(r"llt\.(timer|running|links|links_low_priority|link_type|link_mtu|present)(\..+)?", "LLT", 20,
             "Nodes of a cluster must have the same LLT links and timers: a node with other timers declares its peers "
             "lost sooner or later than they do.", sources.VCS_TIMERS, sources.VCS_LINKS,
             scope="cluster", severity="warning", hurts_when=ROLLING,
             do="make /etc/llttab alike on all nodes; timers can be set live with lltconfig -T"),
    _service(r"llt\.(flow|file\.flow)\..+", "LLT flow control", 21, "A node with lower water marks stops its clients "
             "before the others do; the cluster writes at its pace. The values are one setting for the cluster, live "
             "and in /etc/llttab.", sources.VCS_FLOW, sources.WHITE_PAPER,
             scope="cluster", hurts_when="8 KiB of memory for each packet and peer.",
             do="set the same on every node: lltconfig -F NAME:VALUE, and the same set-flow line in /etc/llttab"),
    _service(r"llt\.nodes", "LLT", 22, "Nodes of one cluster see different numbers of nodes.", sources.VCS_LINKS,
             scope="cluster", severity="warning", hurts_when=ROLLING, do="lltstat -nvv on each node"),
    _service(r"llt\..+", "LLT", 23, "The nodes' /etc/llttab differ in more than names and addresses.",
             sources.LLTCONFIG, scope="cluster", do="compare /etc/llttab of the nodes"),
    _service(r"infoscale\.(llthosts|seed_nodes|systems)", "cluster membership", 19,
             "Nodes disagree on who belongs to the cluster: it may seed in two halves, or not at all.", SAME_CLUSTER,
             scope="cluster", severity="warning", hurts_when="A node is just being added or removed.",
             do="make /etc/llthosts, /etc/gabtab and main.cf alike on all nodes"),
    _service(r"infoscale\..+", "InfoScale", 39, "InfoScale is set up differently on nodes of one cluster. " + _ALIKE,
             sources.WHITE_PAPER, scope="cluster"),
    _service(r"array\..+\.(state|missing|failed)", "array state", 9, "An array is not as sound as on the other hosts.",
             sources.MD, severity="warning", hurts_when="A check that just runs is no fault.",
             do="mdadm --detail, lvs, multipath -ll or the controller's tool on the host"),
    _service(r"controller\..+\.(protection_healthy|volume\.(state|cache|write_policy))", "controller cache", 11,
             "A RAID controller's cache is protected or used otherwise than on the other hosts.", sources.MD,
             severity="warning", do="look with the controller's own tool"),
    _service(r"array\..+\.queue\..+", "array settings", 54, "Queue settings of an array differ. " + _ALIKE,
             sources.BLOCK_SYSFS, scope="type"),
    _service(r"array\..+", "arrays", 41, "Arrays are built differently: chunk, level or members. " + _ALIKE, sources.MD,
             scope="type", do="mind it in planning: the shape of an array cannot be changed without moving the data"),
    _service(r"disk\..+\.(count|size_bytes|present|pcie)", "disks", 42, "Hosts of one type have other disks: one is "
             "missing, is another model, or sits in a narrower slot.", sources.BLOCK_SYSFS, scope="type",
             do="lsblk -d -o NAME,MODEL,SIZE on both; look for a disk that has failed or was not found"),
    _service(r"disk\..+", "disk settings", 43, "Schedulers or queue settings of the same model differ. " + _ALIKE,
             sources.BLOCK_SYSFS, scope="type"),
    _service(r"controller\..+", "controllers", 44, "RAID controllers or their firmware differ. " + _ALIKE, sources.MD,
             scope="type", hurts_when=ROLLING),
    _service(r"filesystem\..+", "file systems", 45, "File systems on the same mount point differ in kind, options or "
             "geometry.", "mount(8)", sources.XFS),
    _service(r"memory\.hugepages\..+", "huge pages", 46, "The pools of huge pages differ. " + _ALIKE, sources.VM,
             scope="type"),
    _service(r"memory\.thp_.+", "transparent huge pages", 47, "Transparent huge pages are set differently. " + _ALIKE,
             sources.VM),
    _service(r"iscsi\..+", "iSCSI", 48, "Sessions or settings of iSCSI differ: a lost path is waited for longer here "
             "than there.", "open-iscsi README"),
    _service(r"beegfs\..+", "BeeGFS", 48, "BeeGFS services are set up differently. " + _ALIKE, sources.BEEGFS_STORAGE),
    _service(r"iris\..+", "IRIS", 48, "IRIS is set up differently. " + _ALIKE, sources.IRIS_CPF),
    _service(r"owner\..+", "who sets values", 49, "Another program (TuneD, irqbalance, a network manager) sets values "
             "on some hosts: what was set by hand is overwritten there.", "tuned-adm(8), irqbalance(1)"),
    _service(r"cpu\.frequency\..+", "processor clocks", 44, "Clocks are chosen otherwise: one host saves power while "
             "the others run. " + _ALIKE, "Linux kernel documentation, admin-guide/pm/cpufreq", scope="type",
             do="set the governor and the preference as on the others: cpupower frequency-set -g, or TuneD"),
    _service(r"(cpu|numa)\..+", "processors and nodes", 55, "Hosts of one type show other processors or NUMA nodes: a "
             "firmware setting (SMT, sub-NUMA clustering) or a part that failed.", sources.PCI_SYSFS, scope="type",
             do="compare the firmware settings of the two"),
    _service(r"file\..+", "files of the administrator", 63, "A udev rule, start-up script or configuration file sets "
             "it on some hosts only.", "udev(7), tmpfiles.d(5), multipath.conf(5)"),
)  # fmt: skip

_COMPILED = tuple((lazy_regex(kind.pattern, re.DOTALL), kind) for kind in KINDS)

OTHER = AttributeKind(".*", "other", "info", 99, "fleet", "Hosts differ in this.", OWN_PURPOSE, (sources.SYSCTL_D,))


@lru_cache(maxsize=16_384)
def kind_of(attribute: str) -> AttributeKind:
    """The kind of an attribute."""
    return next((kind for pattern, kind in _COMPILED if pattern.fullmatch(attribute)), OTHER)


class HeldValue(msgspec.Struct, frozen=True):
    """A value, and the hosts that have it."""

    value: Value
    hosts: tuple[str, ...]


class AttributeDifference(msgspec.Struct, frozen=True):
    """One attribute in which hosts differ.

    With a majority (more than half of the hosts that are known) ``majority`` is its value, None where the majority
    does not have the attribute at all, and ``groups`` are the outliers. Without one, ``groups`` are all values, the
    most frequent first. ``absent`` are hosts that do not have it, where that is not the majority's way; ``unknown``
    those where it could not be read, which never count as differing.
    """

    attribute: str
    has_majority: bool
    majority: Value | None
    majority_count: int
    groups: tuple[HeldValue, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def outliers(self) -> tuple[str, ...]:
        """The hosts that are not as the majority; all of them where there is none."""
        return (*(host for held in self.groups for host in held.hosts), *self.absent)


class FleetFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What differs, on which ``hosts``, why it matters, what to do, when that would hurt, and who says so.

    ``scope`` is within which hosts it was compared, empty for all. ``differences`` of one topic on the same hosts are
    one finding. ``goes_with`` are attributes that differ with it and are a consequence. ``commands`` run on the
    controller where an inventory is known, else on the host that they name.
    """

    id: str
    severity: Severity
    title: str
    hosts: tuple[str, ...]
    scope: str = ""
    why: str
    differences: tuple[AttributeDifference, ...] = ()
    goes_with: tuple[str, ...] = ()
    advice: str
    commands: tuple[str, ...] = ()
    hurts_when: str
    sources: tuple[str, ...]
    rank: int = 99
    seen: tuple[str, ...] = ()
    """What was seen, in words, where it is no attribute."""


class HardwareGroup(msgspec.Struct, frozen=True):
    """Hosts of one type of machine; ``label`` says what it is."""

    label: str
    hosts: tuple[str, ...]


class HostLine(msgspec.Struct, frozen=True):
    """A host of the comparison. ``state`` is compared or failed; ``message`` why it failed."""

    name: str
    state: Literal["compared", "failed"]
    hostname: str | None = None
    group: str | None = None
    cluster: str | None = None
    hardware: str | None = None
    findings: int = 0
    """In how many findings it is an outlier."""
    message: str | None = None


class UnknownOn(msgspec.Struct, frozen=True):
    """Attributes that other hosts have and that could not be read on these."""

    hosts: tuple[str, ...]
    attributes: tuple[str, ...]


class Network(msgspec.Struct, frozen=True):
    """A network with at least two hosts in it; ``mtus`` and ``speeds`` each value with the hosts that have it."""

    network: str
    scope: str
    hosts: int
    mtus: tuple[HeldValue, ...]
    speeds: tuple[HeldValue, ...]


class HostComparison(msgspec.Struct, frozen=True):
    """Hosts against each other; ``attributes`` is how many were compared, ``alike`` in how many all agree."""

    hosts: tuple[HostLine, ...]
    findings: tuple[FleetFinding, ...]
    types: tuple[HardwareGroup, ...]
    networks: tuple[Network, ...]
    unknown: tuple[UnknownOn, ...]
    attributes: int
    alike: int
    pair: tuple[str, str] | None = None
    group_by: str | None = None
    matrix: Matrix | None = None
    """What the paths between the hosts carry, where that was asked."""

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.hosts if one.state == "failed")

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.hosts if one.state == "compared")
