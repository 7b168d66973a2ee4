"""What a capture takes from a host: the one list from which its script is made.

Directories are patterns of the shell. ``a|b`` among the names of a directory means the first of them that is there.
What a fact reads beyond this needs a line here, what a tunable reads a line in the ``capture`` of its kind:
`tests/fleet/test_capture_complete.py` names the path.
Never here: keys and certificates, shadow files, the arguments and environment of processes, logs, user data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.facts.block.controllers import (
    ARCCONF,
    ARCCONF_LIST,
    SHOW,
    SHOW_DRIVES,
    SHOW_VOLUMES,
    SSACLI,
    STORCLI,
    STORCLI2,
)
from advisor.facts.block.disks import QUEUE_ATTRIBUTES
from advisor.facts.block.dm import STATUS, TABLE
from advisor.facts.block.filesystems import FSTYP, VXTUNEFS
from advisor.facts.block.mounts import DF
from advisor.facts.block.stacked import DRBD_STATUS, ZPOOL, ZPOOL_STATUS
from advisor.facts.block.vxvm import DMP_PATHS, LIST_NATIVE, PATHS, VXPRINT
from advisor.facts.clusters.infoscale import DISK_LIST
from advisor.facts.clusters.llt import NODE_QUERY, STATUS_QUERY, TIMER_QUERY
from advisor.facts.network.link_sources import IP_JSON, IP_TEXT
from advisor.facts.network.link_stack import RULES
from advisor.facts.settings import KEYS
from advisor.facts.settings.sysctl import is_pattern, key_path
from advisor.facts.system.memory import DMIDECODE
from advisor.facts.system.services import LIST_RUNNING, VERSION
from advisor.facts.unknown import CASSANDRA, DECLUSTERED, LLT_FLOW_QUERY
from advisor.facts.writers.devices import DIRECTORIES as MODULE_DIRECTORIES
from advisor.facts.writers.devices import MODPROBE_PLACES
from advisor.facts.writers.devices import RULES as UDEV_RULES
from advisor.facts.writers.programs import (
    CLOUD_FILES,
    CLOUD_SCRIPTS,
    CONFIGURATIONS,
    CRON_FILES,
    CRON_SCRIPTS,
    CRON_TABLES,
    HOOK_FILES,
    HOOKS,
    LEASES,
    MARKS,
    RC_LOCAL,
    RC_SCRIPTS,
    UNIT_PLACES,
    WICKED_SCRIPTS,
)
from advisor.tunables import all_kinds

Names = tuple[str, ...]
Argv = tuple[str, ...]
MAX_LINKS = 128
MAX_FILE_BYTES = 8 << 20
MAX_TOTAL_KB = 192 << 10


def _words(*texts: str) -> Names:
    return tuple(word for text in texts for word in text.split())


_DMI = _words("sys_vendor product_name board_vendor bios_vendor bios_version chassis_asset_tag product_uuid")
_CPUSET = _words(
    "cpuset.cpus.effective cpuset.mems.effective cpuset.effective_cpus cpuset.effective_mems cpuset.cpus cpuset.mems",
    "cpus mems",
)
_NETWORKD = _words("/etc/systemd/network /run/systemd/network /usr/local/lib/systemd/network /usr/lib/systemd/network")


def _merge_directories(listed: Iterable[tuple[str, Names]]) -> Iterator[tuple[str, Names]]:
    """Each name of a directory once, where it stands first."""
    seen: set[tuple[str, str]] = set()
    for directory, names in listed:
        fresh = tuple(name for name in names if (directory, name) not in seen)
        seen.update((directory, name) for name in fresh)
        if fresh:
            yield directory, fresh


_CAPTURES = tuple(kind.capture for kind in all_kinds() if kind.capture is not None)
"""What plans for each kind of tunable read; what the facts read is listed in this file."""

_OF_WRITERS = (*RC_LOCAL, *CRON_FILES, *HOOK_FILES, *CONFIGURATIONS, *CLOUD_FILES)
_BY_FACTS: tuple[tuple[str, Names], ...] = (
    ("/proc", _words("cmdline cpuinfo drbd mdstat meminfo modules mounts swaps sysinfo uptime version vmstat")),
    ("/proc/self", _words("auxv cgroup cpuset mountinfo mounts status")),
    ("/proc/1", _words("mountinfo")),
    ("/proc/self/ns", _words("cgroup ipc mnt net pid user uts")),
    ("/proc/net", _words("ipv6_route netstat route snmp snmp6 sockstat sockstat6 softnet_stat")),
    ("/proc/net/stat", _words("arp_cache")),
    ("/proc/net/iet", _words("volume session")),
    ("/proc/net/vlan", _words("config")),
    ("/proc/net/bonding", _words("*")),
    ("/proc/irq/*", _words("smp_affinity_list|smp_affinity effective_affinity_list node")),
    ("/proc/xen", _words("capabilities")),
    ("/proc/fs/nfsd", _words("threads")),
    ("/proc/fs/nfs", _words("exports")),
    ("/var/lib/nfs", _words("etab")),
    ("/etc/postgresql/*/*", _words("postgresql.conf")),
    ("/proc/device-tree", _words("model")),
    ("/proc/device-tree/hypervisor", _words("compatible")),
    ("/proc/sys/net/ipv4/conf/*", _words("arp_announce arp_filter arp_ignore rp_filter")),
    # Side effects of an MTU.
    ("/proc/sys/net/ipv6/conf/*", _words("mtu")),
    ("/proc/sys/kernel", _words("arch hostname osrelease")),
    ("/proc/sys/kernel/random", _words("boot_id")),
    ("/sys/bus/pci/devices/*", _words("class vendor device numa_node local_cpulist|local_cpus irq")),
    ("/sys/bus/pci/devices/*", _words("current_link_speed current_link_width max_link_speed max_link_width driver")),
    ("/sys/bus/pci/devices/*", _words("subsystem_vendor aer_dev_correctable")),
    ("/sys/class/sas_phy/*", _words("invalid_dword_count device/port")),
    ("/sys/kernel/irq/*", _words("actions")),
    ("/sys/kernel/debug/irq/irqs", _words("*")),
    ("/sys/class/net/*", _words("addr_assign_type address carrier dev_port ifindex iflink master mtu operstate speed")),
    ("/sys/class/net/*", _words("tun_flags tx_queue_len type uevent device")),
    ("/sys/class/net/*/device", _words("driver physfn")),
    ("/sys/class/net/*/statistics", _words("rx_packets rx_missed_errors rx_fifo_errors rx_over_errors")),
    ("/sys/class/net/*/bonding", _words("mode xmit_hash_policy miimon arp_interval active_slave primary min_links")),
    (
        "/sys/class/net/*/bonding",
        _words("lacp_rate ad_select tlb_dynamic_lb updelay downdelay ad_aggregator ad_partner_mac"),
    ),
    ("/sys/class/net/*/bonding_slave", _words("state mii_status perm_hwaddr ad_aggregator_id")),
    ("/sys/class/net/*", _words("mode")),
    ("/sys/class/net/*/bridge", _words("stp_state forward_delay vlan_filtering bridge_id root_id")),
    ("/sys/class/net/*/brport", _words("state")),
    ("/sys/class/infiniband/*/ports/*", _words("state phys_state link_layer rate")),
    ("/sys/block/*", _words("dev diskseq serial size stat wwid ana_state device")),
    ("/sys/block/*/queue", QUEUE_ATTRIBUTES),
    ("/sys/block/*/device", _words("devtype iopolicy model name numa_node queue_depth serial state transport uid")),
    ("/sys/block/*/device", _words("access_state dh_state inquiry queue_count sqsize ctrl_loss_tmo fast_io_fail_tmo")),
    ("/sys/class/fc_host/*", _words("port_state speed supported_speeds")),
    ("/sys/fs/btrfs/*/devinfo/*", _words("missing")),
    ("/sys/class/fc_remote_ports/*", _words("port_state roles fast_io_fail_tmo dev_loss_tmo")),
    ("/proc/spl/kstat/zfs/*", _words("state")),
    ("/sys/block/*/device", _words("address vendor vpd_pg80 wwid")),
    ("/sys/block/*/device/power", _words("runtime_status")),
    ("/sys/block/*/device/hwmon/*", _words("temp1_input")),
    ("/sys/block/*/device/hwmon[0-9]*", _words("temp1_input")),
    ("/sys/block/*/loop", _words("backing_file")),
    ("/sys/block/*/bcache", _words("cache_mode state")),
    ("/sys/block/*/*/bcache", _words("cache_mode state")),
    ("/sys/block/*/dm", _words("name uuid suspended")),
    (
        "/sys/block/*/md",
        _words("level chunk_size raid_disks degraded array_state sync_action sync_completed sync_speed"),
    ),
    ("/sys/block/*/md", _words("layout metadata_version consistency_policy mismatch_cnt journal_mode uuid")),
    ("/sys/block/*/md/bitmap", _words("location")),
    ("/sys/block/*/md/dev-*", _words("slot state")),
    ("/sys/block/*/*", _words("partition")),
    ("/sys/class/block/*", _words("dev start")),
    ("/sys/class/nvme/*", _words("transport")),
    ("/sys/class/scsi_host/*", _words("can_queue proc_name")),
    ("/sys/class/iscsi_session/*", _words("targetname initiatorname ifacename state recovery_tmo first_burst_len")),
    ("/sys/class/iscsi_session/*", _words("max_burst_len immediate_data initial_r2t")),
    ("/sys/class/iscsi_connection/*", _words("address port persistent_address persistent_port state")),
    ("/sys/class/iscsi_connection/*", _words("max_recv_dlength header_digest data_digest")),
    ("/sys/class/iscsi_host/*", _words("ipaddress netdev")),
    ("/sys/kernel/config/target/iscsi/*/tpgt_*", _words("enable")),
    (
        "/sys/kernel/config/target/iscsi/*/tpgt_*/param",
        _words("FirstBurstLength MaxBurstLength MaxRecvDataSegmentLength ImmediateData InitialR2T")
        + _words("HeaderDigest DataDigest"),
    ),
    ("/sys/kernel/config/target/iscsi/*/tpgt_*/lun/*/*", _words("udev_path")),
    ("/sys/class/dmi/id", _DMI),
    ("/sys/devices/virtual/dmi/id", _DMI),
    ("/sys/devices/system/clocksource/clocksource0", _words("available_clocksource current_clocksource")),
    ("/sys/devices/system/cpu/cpuidle", _words("current_driver")),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*", _words("name latency disable")),
    ("/sys/devices/system/cpu/smt", _words("control")),
    ("/sys/devices/system/cpu/intel_pstate", _words("no_turbo")),
    (
        "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle",
        _words("package_throttle_count package_throttle_total_time_ms"),
    ),
    ("/sys/devices/system/cpu", _words("isolated nohz_full")),
    ("/proc/irq", _words("default_smp_affinity")),
    ("/sys/fs/cgroup", _words("cpuset.cpus.isolated")),
    ("/sys/fs/cgroup/*", _words("cpuset.cpus.partition cpuset.cpus.effective")),
    ("/sys/devices/system/cpu", _words("online offline present sched_mc_power_savings sched_smt_power_savings")),
    ("/sys/devices/system/cpu/cpu[0-9]*", _words("online")),
    ("/sys/devices/system/cpu/cpu[0-9]*/topology", _words("core_cpus_list|thread_siblings_list|thread_siblings")),
    ("/sys/devices/system/cpu/cpu[0-9]*/topology", _words("package_cpus_list|core_siblings_list|core_siblings")),
    ("/sys/devices/system/cpu/cpu[0-9]*/topology", _words("die_cpus_list physical_package_id")),
    ("/sys/devices/system/cpu/cpu[0-9]*/topology", _words("core_id die_id cluster_id book_id drawer_id")),
    ("/sys/kernel/security", _words("lockdown")),
    ("/proc/sys/fs", _words("file-nr")),
    ("/etc/default", _words("instance_configs.cfg irqbalance")),
    ("/etc/sysconfig", _words("irqbalance")),
    ("/sys/devices/system/edac/mc/mc[0-9]*", _words("ue_count ce_count")),
    ("/sys/devices/system/node", _words("online")),
    ("/sys/devices/system/node/node[0-9]*", _words("cpulist|cpumap distance meminfo")),
    ("/sys/hypervisor", _words("type uuid")),
    ("/sys/kernel/mm/hugepages/*", _words("free_hugepages nr_hugepages")),
    ("/sys/fs/cgroup", _CPUSET),
    ("/sys/fs/cgroup/cpuset", _CPUSET),
    ("/dev/cpuset", _CPUSET),
    ("/", _words(".dockerenv")),
    ("/etc", _words("fstab gabtab hostname llthosts llttab machine-id multipath.conf os-release rc.local")),
    ("/etc", _words("exports modules redhat-release sysctl.conf waagent.conf")),
    ("/etc/initramfs-tools", _words("modules")),
    *((path.rpartition("/")[0], (path.rpartition("/")[2],)) for path in _OF_WRITERS if not is_pattern(path)),
    ("/etc/rc.d", _words("rc.local")),
    ("/usr/lib", _words("os-release")),
    ("/etc/VRTSvcs/conf/config", _words("main.cf")),
    ("/etc/iscsi", _words("iscsid.conf")),
    ("/etc/network", _words("interfaces")),
    ("/etc/tuned", _words("active_profile tuned-main.conf")),
    ("/usr/lib/python3*/site-packages/tuned", _words("version.py")),
    ("/run/tuned", _words("tuned.pid")),
    ("/run/network", _words("ifstate")),
    ("/run/systemd", _words("container")),
    ("/run/host", _words("container-manager")),
    ("/run/systemd/netif", _words("state")),
    ("/usr/lib/systemd/network", _words("99-default.link")),
    ("/usr/irissys", _words("iris.cpf")),
    ("/opt/irissys", _words("iris.cpf")),
    ("/opt/iris", _words("iris.cpf")),
)
ATTRIBUTES: tuple[tuple[str, Names], ...] = tuple(
    _merge_directories((*_BY_FACTS, *(one for each in _CAPTURES for one in each.files)))
)
"""Directories, and the files in them whose content is taken."""

LISTED: Names = _words(
    "/run /sys/block /sys/block/* /sys/block/*/holders /sys/block/*/slaves /sys/block/*/*/holders /sys/block/*/md",
    "/sys/class/block /sys/dev/block /sys/block/*/device /sys/block/*/device/hwmon",
    "/sys/bus/pci/devices /sys/bus/pci/devices/*/msi_irqs",
    "/sys/class/infiniband /sys/class/infiniband/*/ports",
    "/sys/class/fc_host /sys/class/fc_remote_ports /proc/spl/kstat/zfs /var/lib/ceph /var/lib/ceph/*",
    "/etc/systemd/system/timers.target.wants /usr/lib/systemd/system/timers.target.wants",
    "/sys/class/iscsi_session /sys/class/iscsi_connection /sys/class/iscsi_host /sys/class/scsi_host /sys/class/nvme",
    "/sys/class/sas_phy",
    "/sys/class/net /sys/class/net/* /sys/class/net/*/device/infiniband",
    "/sys/devices/system/cpu /sys/devices/system/cpu/cpu0/topology /sys/kernel/mm/hugepages",
    "/sys/devices/system/cpu/cpu0/cpuidle",
    "/sys/kernel/config/target/iscsi /sys/kernel/config/target/iscsi/* /sys/kernel/config/target/iscsi/*/tpgt_*/np",
    "/sys/kernel/config/target/iscsi/*/tpgt_*/lun /sys/kernel/config/target/iscsi/*/tpgt_*/lun/*",
    "/var/log/pods /var/lib/ocp-tuned/profiles /etc/systemd/system/*.wants",
    "/sys/devices/system/node /etc/systemd/system /run/systemd/units /proc/net/bonding",
    "/sys/fs/btrfs /sys/fs/btrfs/*/devices /sys/fs/btrfs/*/devinfo /sys/fs/btrfs/*/allocation/data",
    "/sys/fs/cgroup /sys/fs/cgroup/system.slice /sys/fs/cgroup/system.slice/*.slice",
    "/sys/fs/cgroup/systemd/system.slice /sys/fs/cgroup/systemd/system.slice/*.slice",
    *(place for each in _CAPTURES for place in each.listed),
)
"""Directories of which the names are taken."""

MARKED: Names = _words(
    "/proc/irq /sys/kernel/irq /sys/kernel/debug/irq/irqs /sys/module/llt /sys/module/vxio /etc/vx/volboot",
    "/run/.containerenv /run/secrets/kubernetes.io/serviceaccount",
    "/run/systemd/system /run/systemd/generator/netplan.stamp /run/udev/control /run/udev/data",
    "/run/NetworkManager/devices /sbin/ifup /usr/sbin/ifup /usr/local/etc/irissys",
    "/usr/lib/systemd/systemd-sysctl /lib/systemd/systemd-sysctl /sys/devices/system/cpu/cpu[0-9]*/topology",
    "/sys/kernel/scst_tgt /var/lib/pgsql/data /var/lib/mysql /var/lib/ceph/osd/*/block /var/lib/ceph/*/osd.*/block",
    "/proc/device-tree/ibm,partition-name /proc/device-tree/chosen/qemu,graphic-width",
    "/usr/bin/google_optimize_local_ssd /usr/libexec/ocid /run/oci-hpc/oci-rdma-authentication.json",
    "/opt/oci-hpc/oci-cn-auth",
    *(DECLUSTERED, *CASSANDRA, *MARKS),
    "/etc/sysctl.d /etc/tmpfiles.d /etc/udev/rules.d /etc/systemd /etc/systemd/network",
    *(path for each in _CAPTURES for path in each.marked),
)
"""What is only looked for."""

_WRITERS_PLACES = (*CRON_TABLES, *CRON_SCRIPTS, *HOOKS, *WICKED_SCRIPTS, *LEASES, CLOUD_SCRIPTS, RC_SCRIPTS)
CONFIGURATION: tuple[tuple[str, Names], ...] = (
    *(
        (place, ("*.conf",))
        for place in _words("/etc/sysctl.d /run/sysctl.d /usr/local/lib/sysctl.d /usr/lib/sysctl.d")
    ),
    ("/lib/sysctl.d", ("*.conf",)),
    ("/boot", ("sysctl.conf-*",)),
    ("/usr/lib/modules/*", ("sysctl.conf",)),
    *((place, ("*.conf",)) for place in MODPROBE_PLACES[1:]),
    *((place, ("*.conf",)) for place in _words("/etc/tmpfiles.d /run/tmpfiles.d")),
    *((place, ("*.conf",)) for place in _words("/usr/local/lib/tmpfiles.d /usr/lib/tmpfiles.d")),
    *((place, ("*.conf",)) for place in MODULE_DIRECTORIES),
    *((place, ("*.service",)) for place in UNIT_PLACES),
    *((place, ("*",)) for place in _WRITERS_PLACES),
    *((path.rpartition("/")[0], (path.rpartition("/")[2],)) for path in CONFIGURATIONS if is_pattern(path)),
    (f"{CLOUD_FILES[0]}.d", ("*.cfg",)),
    *((place, ("*.rules",)) for place in UDEV_RULES),
    ("/etc/multipath/conf.d", ("*.conf",)),
    ("/etc/sysconfig/network", ("ifcfg-*", "ifsysctl*", "config")),
    ("/etc/sysconfig/network-scripts", ("ifcfg-*",)),
    *((place, ("*.yaml",)) for place in _words("/run/netplan /etc/netplan /lib/netplan /usr/lib/netplan")),
    ("/run/NetworkManager/system-connections", ("*",)),
    ("/etc/NetworkManager/system-connections", ("*",)),
    ("/usr/lib/NetworkManager/system-connections", ("*",)),
    ("/run/NetworkManager/devices", ("*",)),
    *((place, ("*.network", "*.link")) for place in _NETWORKD if place != "/usr/lib/systemd/network"),
    ("/usr/lib/systemd/network", ("*.network", "*.link")),
    *((f"{place}/*.network.d", ("*.conf",)) for place in _NETWORKD),
    ("/run/systemd/netif/links", ("*",)),
    ("/etc/network/interfaces.d", ("*",)),
    ("/etc/systemd/system/*.service.d", ("*.conf",)),
    ("/etc/oci-utils.conf.d", ("*",)),
    ("/etc/beegfs", ("*.conf", "*[iI]nterfaces*", "*[fF]ile*")),
    ("/etc/beegfs/*.d", ("*.conf", "*[iI]nterfaces*", "*[fF]ile*")),
    ("/etc/iscsi/nodes", ("*",)),
    ("/etc/iscsi/nodes/*", ("*",)),
    ("/etc/iscsi/nodes/*/*", ("*",)),
    ("/var/lib/iscsi/nodes", ("*",)),
    ("/var/lib/iscsi/nodes/*", ("*",)),
    ("/var/lib/iscsi/nodes/*/*", ("*",)),
    ("/run/udev/data", ("b*", "n*")),
    *(one for each in _CAPTURES for one in each.configuration),
)
"""Directories whose names are taken, and the content of the files that fit."""

TRANSACTIONS = "/var/lib/advisor/transactions"
TRANSACTION_FILES = _words("journal pending taken reverting deadline outcome boot put-back closed")


def wanted_sysctls() -> tuple[tuple[str, Names], ...]:
    """Directories below /proc/sys, and the names in them."""
    found: dict[str, list[str]] = {}
    for key in KEYS:
        directory, _, name = key_path(key).rpartition("/")
        found.setdefault(directory, []).append(name)
    return tuple((directory, tuple(names)) for directory, names in sorted(found.items()))


EACH_MOMENT: Names = _words(
    "/proc/diskstats /proc/stat /proc/pressure/* /proc/vmstat /proc/meminfo",
    "/proc/net/dev /proc/net/snmp /proc/net/netstat /proc/net/sockstat /proc/net/softnet_stat",
    "/sys/block/*/inflight /sys/block/*/stat",
)
"""Patterns of the counters that each sample of a span holds, as `advisor.observe.rates` reads them."""

AT_THE_ENDS: Names = _words(
    "/proc/interrupts /proc/net/stat/nf_conntrack /proc/net/stat/arp_cache /proc/net/stat/ndisc_cache",
    "/proc/locks /proc/net/snmp6 /proc/net/sockstat6 /proc/sys/net/ipv4/ip_local_port_range",
    "/proc/sys/net/ipv4/neigh/default/gc_thresh3 /proc/sys/net/ipv6/neigh/default/gc_thresh3",
    "/proc/self/mountstats /proc/fs/nfsd/pool_stats /proc/spl/kstat/zfs/arcstats",
    "/proc/sys/net/netfilter/nf_conntrack_count /proc/sys/net/netfilter/nf_conntrack_max",
    "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/* /sys/devices/system/node/node[0-9]*/numastat",
    "/sys/devices/system/edac/mc/mc[0-9]*/*_count",
    "/sys/class/net/*/carrier_* /sys/class/net/*/speed /sys/class/net/*/operstate /sys/class/net/*/statistics/*",
    "/sys/class/fc_host/*/port_state /sys/class/fc_host/*/speed /sys/class/fc_host/*/statistics/*",
    "/sys/class/infiniband/*/ports/*/counters/* /sys/class/infiniband/*/ports/*/hw_counters/*",
    "/sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/phys_state",
    "/sys/class/infiniband/*/ports/*/rate",
    "/sys/block/sd*/device/*_cnt /sys/block/dm-*/dm/uuid /sys/block/dm-*/dm/suspended",
    "/sys/block/md*/md/array_state /sys/block/md*/md/sync_action /sys/block/md*/md/sync_completed",
    "/sys/block/md*/md/degraded /sys/block/md*/md/sync_speed /sys/block/md*/md/mismatch_cnt",
)
"""Patterns of those that only the first and the last sample hold."""

CGROUP_FILES: Names = _words(
    "cgroup.controllers cpu.stat cpu.max memory.events memory.current memory.high memory.max",
    "io.stat io.max io.pressure cpu.pressure memory.pressure",
    "io.cost.qos io.cost.model io.latency io.weight io.bfq.weight",
    "cpu.cfs_quota_us cpu.cfs_period_us memory.failcnt memory.oom_control memory.usage_in_bytes memory.limit_in_bytes",
    "blkio.throttle.* pids.events pids.current pids.max",
)
"""Of each control group, at the ends as well."""
MOST_MOMENTS = 30

SECONDS = 10
CONTROLLER_SECONDS = 20

NETWORK_COMMANDS: tuple[Argv, ...] = (
    IP_JSON,
    IP_TEXT,
    ("ip", "-o", "-4", "addr", "show"),
    RULES,
    LLT_FLOW_QUERY,
    TIMER_QUERY,
    STATUS_QUERY,
    NODE_QUERY,
)
LINK_COMMANDS: tuple[Argv, ...] = (
    ("ip", "-o", "address", "show", "dev", "{link}", "permanent"),
    ("ip", "-o", "-4", "route", "show", "table", "all", "dev", "{link}"),
    ("ip", "-o", "-6", "route", "show", "table", "all", "dev", "{link}"),
    ("ethtool", "-i", "{link}"),
    *(argv for each in _CAPTURES for argv in each.link_commands),
)
"""For each link but the loopback one."""
PORT_COMMANDS: tuple[Argv, ...] = (("ethtool", "{link}"), *(argv for each in _CAPTURES for argv in each.port_commands))
"""For each link with a device."""
STORAGE_COMMANDS: tuple[Argv, ...] = (VXPRINT, LIST_NATIVE, PATHS, DMP_PATHS, DISK_LIST)
ROOT_COMMANDS: tuple[Argv, ...] = (
    *(TABLE, STATUS, DMIDECODE),
    *(argv for each in _CAPTURES for argv in each.root_commands),
)
CONTROLLER_COMMANDS: tuple[Argv, ...] = (
    *((program, *words) for program in (*STORCLI, *STORCLI2) for words in (SHOW, SHOW_VOLUMES, SHOW_DRIVES)),
    *(SSACLI, ARCCONF_LIST, (*ARCCONF, "1", "al", "nologs")),
)
SYSTEM_COMMANDS: tuple[Argv, ...] = (
    ("uname", "-m"),
    DF,
    ZPOOL,
    ZPOOL_STATUS,
    DRBD_STATUS,
    LIST_RUNNING,
    VERSION,
    *(argv for each in _CAPTURES for argv in each.system_commands),
)
UNIT_PROPERTIES = (
    *_words("Id LoadState MainPID WorkingDirectory RequiresMountsFor ReadWritePaths"),
    *(name for each in _CAPTURES for name in each.unit_properties),
)
"""Of every service that is loaded, by one command; the questions of a scan and of plans are answered from it."""


def wanted_programs() -> Names:
    """Every program that a capture may run for its answer."""
    others = (
        "systemctl",
        "smartctl",
        "iris",
        "tw_cli",
        "xfs_info",
        "dumpe2fs",
        "beegfs-ctl",
        "beegfs",
        "stat",
        *VXTUNEFS,
        *FSTYP,
    )
    listed = (("ss",), *NETWORK_COMMANDS, *LINK_COMMANDS, *PORT_COMMANDS, *STORAGE_COMMANDS, *ROOT_COMMANDS)
    argvs = (*listed, *CONTROLLER_COMMANDS, *SYSTEM_COMMANDS)
    return tuple(sorted({*others, *(argv[0] for argv in argvs)}))
