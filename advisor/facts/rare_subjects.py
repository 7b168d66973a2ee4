"""The signs of what few hosts have: `advisor.facts.host_facts` looks at them before it loads the module that reads it.

Where no sign is there, the reader of the subject would find nothing and note nothing.
"""

from __future__ import annotations

from typing import Final

BEEGFS: Final = "/etc/beegfs"
CASSANDRA: Final = ("/etc/cassandra/cassandra.yaml", "/etc/cassandra/conf", "/etc/dse/cassandra/cassandra.yaml")
"""Looked for and never read: it may hold passwords."""
CEPH: Final = "/var/lib/ceph"
DECLUSTERED: Final = "/usr/lpp/mmfs/bin/mmvdisk"
"""Part of IBM Storage Scale's RAID (packages gpfs.gnr), which the Erasure Code Edition is."""
FIBRE_CHANNEL: Final = "/sys/class/fc_host"
IRIS_REGISTRY: Final = "/usr/local/etc/irissys"
IRIS_USUAL: Final = ("/usr/irissys", "/opt/irissys", "/opt/iris")
ISCSID_CONF: Final = "/etc/iscsi/iscsid.conf"
ISCSI_RECORDS: Final = ("/etc/iscsi/nodes", "/var/lib/iscsi/nodes")
ISCSI_SESSIONS: Final = "/sys/class/iscsi_session"
LIO_TARGETS: Final = "/sys/kernel/config/target/iscsi"
IET: Final = "/proc/net/iet"
LLTTAB: Final = "/etc/llttab"
LLT_FLOW_QUERY: Final = ("lltconfig", "-F", "query")
MAIN_CF: Final = "/etc/VRTSvcs/conf/config/main.cf"
ZFS_POOLS: Final = "/proc/spl/kstat/zfs"
VOLUME_MANAGER: Final = ("/etc/vx/volboot", "/sys/module/vxio")
"""The first is made when the volume manager is first started, the second is there while it runs."""
