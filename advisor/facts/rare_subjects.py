"""The signs of what few hosts have: `advisor.facts.host_facts` looks at them before it loads the module that reads it.

Where no sign is there, the reader of the subject would find nothing and note nothing.
"""

from __future__ import annotations

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
