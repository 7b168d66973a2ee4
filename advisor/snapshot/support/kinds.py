"""Kinds of support archives: how each is recognised by its content, and where it keeps what.

A kind is a row of `KINDS`: its folder of outputs, the files by which it is known, and how it is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

import msgspec

from advisor.host.patterns import lazy_regex

_WANTED = lazy_regex(
    r"/(?:[^/]+/){0,2}?(?:proc|sys|etc|run|dev|usr/lib|usr/local/lib|usr/share/iris|lib|opt|var/lib|var/opt"
    r"|sos_commands|sos_reports|sos_logs|insights_commands|meta_data|commands|vx|vxvm|vcs|llt|gab|fs|vxfs)(?:/.*)?"
    r"|/(?:[^/]+/){0,2}(?:[\w.-]+\.txt|version_info|branch_info|hostname|date|uptime)"
    r"|/(?:[^/]*VRTSexplorer[^/]*/|var/[^/]+/VRTSexplorer/).*"
)
"""What of an archive is kept: the host's own files where readers look for them, and the outputs of commands."""
_SKIPPED = lazy_regex(
    r".*/(?:sys/fs/cgroup/(?:[^/]+/){3,}|sys/module/|sys/kernel/slab/|sys/firmware/acpi/|usr/lib/(?:python|modules/)"
    r"|etc/(?:pki|ssl|selinux|ssh|apparmor(?:\.d)?|alternatives)/|var/lib/(?:dpkg|rpm|docker|juju|kubelet)/"
    r"|sos_commands/(?:logs|dpkg|apt|rpm|selinux|apparmor|crypto|juju|kubernetes|openstack\w*|openvswitch|rabbitmq|snap)/)"
    r".*"
)


class Kind(msgspec.Struct, frozen=True):
    """``marks`` are regular expressions of paths below the top of the archive, one of which it must hold. ``outputs``
    fits the path of a command's output and groups the name of the command; ``data`` is the folder of the host's files.
    ``version`` names a file and fits the version in it; ``of_root`` fits versions that refuse to run as another user.
    """

    name: str
    marks: str
    outputs: str
    data: str = ""
    version: tuple[str, str] = ("/version.txt", r"sos ?report: *([\w.-]{1,40})")
    of_root: str = r"(?!)"


KINDS = (
    Kind(
        "sosreport",
        r"/(?:sos_commands/.+|sos_reports/.+)",
        r"/sos_commands/[^/]+/([^/]+)",
        of_root=r"([4-9]|[1-9][0-9])\..*",
    ),
    Kind(
        "insights archive",
        r"/(?:data/)?insights_commands/.+|/insights_archive\.txt",
        r"/insights_commands/([^/]+)",
        "/data",
        ("/version_info", r"client_version\W+([\w.-]{1,40})"),
    ),
    Kind(
        "supportconfig",
        r"/(?:basic-environment|supportconfig|basic-health-check)\.txt",
        r"(?!)",
        version=("/supportconfig.txt", r"Script Version: *([\w.-]{1,40})"),
        of_root=r".*",
    ),
    Kind(
        "VRTSexplorer",
        r"/(vx|vxvm|vcs|llt|gab|fs|vxfs)/.+",
        r"/(?!(?:etc|proc|sys|usr|var|opt)/)(?:[^/]+/)*([^/]+?)(?:\.out|\.txt)?",
    ),
)


_ABOVE = (r"|/[^/]+|/var/[^/]+/[^/]+", r"/[^/]+/[^/]+")
"""The top of an archive, the likeliest first: as its tool made it, then in a folder of somebody's own."""


def is_wanted(path: str) -> bool:
    """Whether a member of an archive that is not one of our own is kept."""
    return bool(_WANTED.fullmatch(path)) and not _SKIPPED.fullmatch(path)


def find_kind(contents: Iterable[str]) -> tuple[Kind, str] | None:
    """The kind of an archive by the paths in it, and its top: the folder below which all of it lies, or ``""``."""
    return _find_kind(tuple(contents))


def siblings(kind: Kind, top: str, contents: Iterable[str]) -> set[str]:
    """The tops of further archives of this kind, in the folder in which this one lies."""
    beside = lazy_regex(f"({top.rpartition('/')[0]}/[^/]+)(?:{kind.marks})") if top else None
    return {found[1] for path in contents if beside and (found := beside.fullmatch(path))} - {top}


@lru_cache(maxsize=2)
def _find_kind(paths: tuple[str, ...]) -> tuple[Kind, str] | None:
    if any(path.startswith("/root/") for path in paths[:1]):
        return None
    for above, kind in product(_ABOVE, KINDS):
        marks = lazy_regex(f"({above})(?:{kind.marks})")
        signs: dict[str, set[str]] = {}
        for found in filter(None, map(marks.fullmatch, paths)):
            top = found[1]
            of_top = signs.setdefault(top, set())
            of_top.add(found[marks.groups])
            # One folder of a plain name may be anybody's, two are not.
            if kind.name != "VRTSexplorer" or "VRTSexplorer" in top or len(of_top) > 1:
                return kind, top
    return None


NEEDED: tuple[tuple[str, str], ...] = (
    ("/sys/class/net/*/device", "links.pci links.numa_node links.pcie links.pci_id"),
    ("/sys/class/net/*/queues", "links.rps_cpus"),
    ("/sys/class/net/*/speed ethtool", "links.speed_mbps"),
    ("/sys/kernel/irq/* /proc/interrupts", "irqs"),
    ("/proc/mdstat /sys/block", "arrays"),
    ("/sys/block /proc/partitions", "disks"),
    ("smartctl", "disks.health disks.passed disks.media_errors disks.pending_sectors"),
    ("df", "filesystems.used_percent filesystems.inodes_used_percent"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "memory.thp_enabled"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "memory.thp_defrag"),
    ("/sys/devices/system/edac", "memory.uncorrected_errors memory.corrected_errors"),
    ("/sys/devices/system/node", "numa"),
    ("/sys/devices/system/cpu/cpu0", "cpu.frequency cpu.governor cpu.energy_performance_preference"),
    ("/sys/devices/system/clocksource/clocksource0", "cpu.clock_source"),
    ("/sys/bus/pci/devices", "accelerators"),
    ("/sys/class/scsi_host /sys/class/fc_host", "fibre_channel"),
    ("/etc/sysctl.conf /etc/sysctl.d", "writes"),
    ("/proc/sys/vm", "sysctl"),
    ("/proc/vmstat", "counters.reclaimed_directly_pages counters.compaction_stalls counters.dirty_limit_pages"),
    ("/proc/net/netstat", "counters.tcp_pruned counters.tcp_collapsed counters.listen_overflows"),
    ("/proc/net/snmp", "counters.udp_receive_buffer_errors counters.ip_reassembly_failures"),
    ("/proc/net/softnet_stat", "counters.softnet_dropped counters.softnet_squeezed counters.softnet_processed"),
)
"""Places in an archive, one of which must be there (a program stands for any output of it), and the facts that are
unknown otherwise: what a live host has not is absent, what an archive has not was perhaps never asked for."""
