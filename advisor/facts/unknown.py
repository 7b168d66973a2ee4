"""What a scan could not learn, and why."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from advisor.host import Missing

T = TypeVar("T")


class Unknown(msgspec.Struct, frozen=True):
    """A fact that is null because it could not be read."""

    fact: str
    why: str


class Unknowns:
    """Collects what could not be read while a scan goes on; the same fact is noted once."""

    def __init__(self) -> None:
        self._noted: dict[str, str] = {}

    def note(self, fact: str, why: str | Missing) -> None:
        """Say that ``fact`` (in the words of the JSON, e.g. ``links.eth0.rings``) is unknown."""
        self._noted.setdefault(fact, why.why if isinstance(why, Missing) else why)

    def value(self, fact: str, reading: T | Missing) -> T | None:
        """The reading, or None. An unreadable one is noted; an absent one is simply not there."""
        if not isinstance(reading, Missing):
            return reading
        if not reading.is_absent:
            self.note(fact, reading)
        return None

    def listed(self) -> tuple[Unknown, ...]:
        return tuple(Unknown(fact, why) for fact, why in sorted(self._noted.items()))


# The signs of what few hosts have: `advisor.facts.host_facts` looks at them before it loads the module that reads it.

BEEGFS = "/etc/beegfs"
CASSANDRA = ("/etc/cassandra/cassandra.yaml", "/etc/cassandra/conf", "/etc/dse/cassandra/cassandra.yaml")
"""Looked for and never read: it may hold passwords."""
CEPH = "/var/lib/ceph"
DECLUSTERED = "/usr/lpp/mmfs/bin/mmvdisk"
"""Part of IBM Storage Scale's RAID (packages gpfs.gnr), which the Erasure Code Edition is."""
FIBRE_CHANNEL = "/sys/class/fc_host"
IRIS_REGISTRY = "/usr/local/etc/irissys"
IRIS_USUAL = ("/usr/irissys", "/opt/irissys", "/opt/iris")
ISCSID_CONF = "/etc/iscsi/iscsid.conf"
ISCSI_RECORDS = ("/etc/iscsi/nodes", "/var/lib/iscsi/nodes")
ISCSI_SESSIONS = "/sys/class/iscsi_session"
LIO_TARGETS = "/sys/kernel/config/target/iscsi"
IET = "/proc/net/iet"
LLTTAB = "/etc/llttab"
LLT_FLOW_QUERY = ("lltconfig", "-F", "query")
MAIN_CF = "/etc/VRTSvcs/conf/config/main.cf"
BTRFS = "/sys/fs/btrfs"
STACKED = ("bcache", "drbd", "zd")
"""How devices begin that bcache, DRBD and ZFS make of others."""
ZFS_POOLS = "/proc/spl/kstat/zfs"
VOLUME_MANAGER = ("/etc/vx/volboot", "/sys/module/vxio")
"""The first is made when the volume manager is first started, the second is there while it runs."""
