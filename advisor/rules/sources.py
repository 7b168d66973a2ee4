"""The public sources that rules cite, each named once. ``MEASURED`` marks what an experiment on a host showed."""

from __future__ import annotations

from advisor.facts.settings.record import BEEGFS_STORAGE as BEEGFS_STORAGE
from advisor.facts.settings.record import BRIDGE as BRIDGE
from advisor.facts.settings.record import DEBUGFS as DEBUGFS
from advisor.facts.settings.record import DELL_BEEGFS as DELL_BEEGFS
from advisor.facts.settings.record import ENA as ENA
from advisor.facts.settings.record import HUGETLB as HUGETLB
from advisor.facts.settings.record import IP_SYSCTL as IP_SYSCTL
from advisor.facts.settings.record import KUBERNETES as KUBERNETES
from advisor.facts.settings.record import MD as MD
from advisor.facts.settings.record import MEASURED_DEFAULTS as MEASURED_DEFAULTS
from advisor.facts.settings.record import MEASURED_UDP as MEASURED_UDP
from advisor.facts.settings.record import NETAPP_BEEGFS as NETAPP_BEEGFS
from advisor.facts.settings.record import OLD_IXGB as OLD_IXGB
from advisor.facts.settings.record import RFC_TCP_OPTIONS as RFC_TCP_OPTIONS
from advisor.facts.settings.record import SCALING as SCALING
from advisor.facts.settings.record import SOCKET as SOCKET
from advisor.facts.settings.record import SYSCTL_FS as SYSCTL_FS
from advisor.facts.settings.record import SYSCTL_KERNEL as SYSCTL_KERNEL
from advisor.facts.settings.record import SYSCTL_NET as SYSCTL_NET
from advisor.facts.settings.record import SYSCTL_USER as SYSCTL_USER
from advisor.facts.settings.record import TCP as TCP
from advisor.facts.settings.record import TUNED_MSSQL as TUNED_MSSQL
from advisor.facts.settings.record import TUNING_NOTES as TUNING_NOTES
from advisor.facts.settings.record import VM as VM
from advisor.facts.settings.record import WHITE_PAPER as WHITE_PAPER
from advisor.facts.settings.record import YAMA as YAMA

VXVM_GUIDE = "Veritas Volume Manager 5.0 Administrator's Guide: dirty region logging, striping, vxsnap prepare"
VXFS_GUIDE = "Veritas File System 5.0 Administrator's Guide: tuning I/O, read_pref_io and read_nstream on stripes"
VCS_FLOW = "Veritas Cluster Server Administrator's Guide 7.0 for Linux, LLT flow control tunables"
VCS_UDP = "Veritas Cluster Server, configuring LLT over UDP: MTU, ports, one subnet per link"
VCS_TIMERS = "Veritas Cluster Server Administrator's Guide 7.0 for Linux, LLT timer tunables"
VCS_LINKS = "Veritas Cluster Server Administrator's Guide, private links: two that fail independently"
LLTCONFIG = "lltconfig(1M), InfoScale 7.4.3 for Linux"
KEEP_DEFAULTS = "Red Hat Enterprise Linux 6 Performance Tuning Guide: do not adjust defaults without need"
SNMP_COUNTER = "Linux kernel documentation, networking/snmp_counter"
BONDING = "Linux kernel documentation, networking/bonding"
BFQ = "Linux kernel documentation, block/bfq-iosched"
PCI_SYSFS = "Linux kernel documentation, ABI/testing/sysfs-bus-pci"
PCIE_BANDWIDTH = "Linux kernel, pcie_bandwidth_available(): the narrowest hop between a device and the root"
SYSCTL_D = "sysctl.d(5)"
XFS = "xfs(5), mkfs.xfs(8)"
MKE2FS = "mke2fs(8), tune2fs(8)"
AWS_MTU = "Amazon EC2 user guide, network MTU"
AWS_EBS_RAID = "Amazon EBS user guide, RAID configuration"
AWS_EBS_QUOTAS = "Amazon EBS user guide, quotas: provisioned IOPS and storage of each volume type in a region"
AWS_EBS_NVME = "Amazon EBS user guide, NVMe volumes: I/O operation timeout"
EC2_UTILS = "amazonlinux/amazon-ec2-utils, 70-ec2-nvme-devices.rules"
AZURE_NVME_TIMEOUT = "Azure/azure-vm-utils, issue 80 and 10-azure-disk-nvme.rules: io_timeout 240000 for remote disks"
GCP_NVME_TIMEOUT = "Google Cloud documentation, troubleshooting NVMe disks: io_timeout"
VMWARE_TIMEOUT = "VMware knowledge base 1009465: 180 seconds for SCSI disks of Linux guests"
NVME_LOSS = "nvme-connect(1), --ctrl-loss-tmo and --fast_io_fail_tmo; Linux kernel, drivers/nvme/host/fabrics.c"
GCP_MTU = "Google Cloud VPC documentation, MTU"
IRIS_GP3 = "InterSystems IRIS on EBS gp3 and io2 Block Express volumes, LVM striping"
IRIS_CPF = "InterSystems Configuration Parameter File Reference: globals, routines, gmheap, memlock"
IRIS_JOURNAL = "InterSystems Data Integrity Guide, journaling best practices"
RFC_BDP = "RFC 7323 (bandwidth × delay)"
MEASURED_MTU = "Measured on Linux 6.18: TCP passes an MTU mismatch unnoticed, datagrams vanish without an error"
MEASURED_COUNTS = "Measured on Linux 6.18: connections counted in a network namespace"
MEASURED_VXLAN = "Measured on Linux 6.18: a VXLAN link keeps 8950 after its underlay falls to 1500"
MEASURED_QUOTES = "Measured with procps 4.0.2 and systemd 252: a quoted triple is refused with EINVAL"
KERNEL_XFS = "Linux kernel documentation, admin-guide/xfs: nobarrier was removed in Linux 4.19"
KERNEL_EXT4 = "Linux kernel documentation, admin-guide/ext4: barriers"
BLOCK_SYSFS = "Linux kernel documentation, ABI/stable/sysfs-block"
BLK_MQ = "Red Hat Enterprise Linux 8 documentation: the single-queue schedulers are gone"
MULTIPATH_CONF = "multipath.conf(5)"
BLOCK_STAT = "Linux kernel documentation, block/stat.rst"
DM_ROUND_ROBIN = "Linux kernel, drivers/md/dm-round-robin.c: rr_add_path, repeat_count"
BEEGFS_META = "BeeGFS metadata server configuration file: tuneTargetChooser"
BEEGFS_NETWORK = "BeeGFS documentation, network tuning"
TUNED_ORACLE = "TuneD profiles oracle (never) and mssql (always)"
IP_LINK = "ip-link(8), systemd.link(5)"
IP_ROUTE = "ip-route(8): mtu, lock"
RED_HAT_RP_FILTER = "Red Hat knowledge base, solution 53031: rp_filter 2 on hosts with several links"
RED_HAT_SCHEDULER = "Red Hat Enterprise Linux 10 documentation: the disk scheduler, set automatically"
RED_HAT_RING = "Red Hat Enterprise Linux 7 Performance Tuning Guide: hardware buffers of network adapters"
TUNED_HPC = "TuneD profile hpc-compute"
TUNED_SPECTRUMSCALE = "TuneD profile spectrumscale-ece"
TUNED_THROUGHPUT = "TuneD profile throughput-performance"
TUNED_ORACLE_DIRTY = "TuneD profile oracle"
INTERSYSTEMS_LINUX = "InterSystems community: vm and hugepage settings of an IRIS host on Linux"
BEEGFS_METADATA = "BeeGFS documentation, metadata server tuning"
BEEGFS_META_CONF = "BeeGFS metadata server configuration file: tuneNumWorkers"
BEEGFS_ALIGNMENT = "BeeGFS documentation, partition alignment"
AWS_MTU_2023 = "Amazon EC2 user guide of May 2023, network MTU"
AWS_EBS_OPTIMIZED = "Amazon EC2 user guide, EBS-optimized instances"
AWS_EBS_TYPES = "Amazon EBS user guide, general purpose and HDD volumes: I/O credits and burst performance"
AWS_HDD = "Amazon EBS user guide, HDD volumes: 1 MiB of read-ahead for streams"
TRANSHUGE = "Linux kernel documentation, admin-guide/mm/transhuge"
SEGMENTATION = "Linux kernel documentation, networking/segmentation-offloads"
BEEGFS_STORAGE_CONF = "BeeGFS storage server configuration file: workers, buffers, connections and interfaces"
BEEGFS_UNITS = "BeeGFS systemd unit beegfs-storage@.service: an instance reads /etc/beegfs/INSTANCE.d"
BEEGFS_BINDING = "BeeGFS source, System.cpp: tuneBindToNumaZone sets the CPUs of the process, not its memory"
BEEGFS_STRIPING = "BeeGFS documentation, striping"
BEEGFS_CLIENT = "BeeGFS documentation, client node tuning"
NETAPP_BEEGFS_PIN = "NetApp Ansible roles for BeeGFS, beegfs_ha_service_daemon.j2: numactl is asked for, and never run"
SYSTEMD_EXEC = "systemd.exec(5)"
STATISTICS = "Linux kernel documentation, networking/statistics"
MEASURED_IPV6 = "Measured on Linux 6.18: below an MTU of 1280 the IPv6 addresses of a link are gone for good"
MDADM = "mdadm(8)"
SCYLLA_AIO = "ScyllaDB, dist/common/sysctl.d/99-scylla-aio.conf: fs.aio-max-nr"
PCP_FILES = "Performance Co-Pilot, pmieconf filesys.vfs_files: more than 80 % of the file handles"
NETDATA_MEMORY = "Netdata, health.d/memory.conf: corrupted memory, ECC errors"
WEKA_NODES = "WEKA tools, 420_check_cross-numa_zone_memory_balance.sh: nodes that differ by more than 8 %"
NVME_MULTIPATH = "Linux kernel documentation, admin-guide/nvme-multipath: numa, round-robin, queue-depth"
NVME_LBA_FORMAT = "WEKA tools, 223_checknvmelba.sh; NVM Express NVM Command Set: relative performance of LBA formats"
PERFSPECT = "Intel PerfSpect, report tables: file systems mounted with discard"
GOOGLE_MULTIQUEUE = "GoogleCloudPlatform guest-configs, google_set_multiqueue; ScyllaDB ansible roles, issue 515"
CPUFREQ = "Linux kernel documentation, admin-guide/pm/cpufreq: governors, boost"
INTEL_PSTATE = "Linux kernel documentation, admin-guide/pm/intel_pstate: energy preference, no_turbo"
CPUIDLE = "Linux kernel documentation, admin-guide/pm/cpuidle, and power/pm_qos_interface"
CLOCK_SOURCE = "ScyllaDB Seastar, perftune.py, and Redpanda rpk, clocksource tuner: tsc where the kernel offers it"
THERMAL_THROTTLE = "Linux kernel documentation, ABI/testing/sysfs-devices-system-cpu: thermal_throttle"
PCP_THROTTLE = "Performance Co-Pilot, pmieconf power.thermal_throttle"
SMARTCTL = "smartctl(8) of smartmontools: overall health, attributes and thresholds, scterc"
NVME_HEALTH = "NVM Express Base Specification, SMART / Health Information log page (02h): critical warning"
SPC_HEALTH = "SCSI Primary Commands (SPC-4), informational exceptions: additional sense codes 0Bh and 5Dh"
DRIVE_FAILURES = "Pinheiro, Weber, Barroso: Failure Trends in a Large Disk Drive Population (FAST 2007)"
MD_TIMEOUTS = "Linux RAID wiki, Timeout Mismatch: SCT ERC of 7 s, or a kernel timeout of 180 s"
EDAC = "Linux kernel documentation, ABI/testing/sysfs-devices-edac: ue_count"
SCSI_STATES = "Linux kernel, scsi_sysfs.c and nvme/host/sysfs.c: states of a device"
DMSETUP = "dmsetup(8): suspend, resume, info"
DM_SUSPEND = "Linux kernel documentation, ABI/testing/sysfs-block-dm: suspended"
BBR_PACING = (
    "Linux kernel, net/ipv4/Kconfig, help of TCP_CONG_BBR: it requires the fq packet scheduler. Since 4.13 TCP paces "
    "by itself where the qdisc does not (net/ipv4/tcp_bbr.c)"
)
FC_TRANSPORT = "Linux kernel, drivers/scsi/scsi_transport_fc.c: states, speeds and timeouts of ports"
PROCFS_FC = "prometheus/procfs, sysfs/class_fibrechannel.go: fields of fc_host"
NETAPP_QUEUE = "NetApp documentation, ONTAP SAN configuration: set queue depths (2,048 commands for each target port)"
HPE_CSI = "HPE CSI driver (hpe-storage/co-deployments), recommended settings of multipath for Nimble and Alletra"
PURE_OPENSTACK = "Pure Storage (tripleo-deployment-configs, RHOSP 16.2), multipath.conf for FlashArray"
ALUA = "SPC-4, asymmetric logical unit access; Linux kernel, scsi_dh_alua: access_state"
NVME_CONNECT = "nvme-connect(1): nr-io-queues (by default one for each CPU), queue-size (by default 128)"
NVME_IDENTIFY = "NVM Express Base Specification, volatile write cache; Linux block layer, queue/write_cache"
MOR = "IBM SpectrumScale_ECE_OS_READINESS, mor.py: check_WCE_NVME"
FSTRIM = "fstrim(8); Redpanda rpk, fstrim tuner; ScyllaDB, scylla_fstrim_setup"
RPK_GCP = "Redpanda rpk, gcp_disk_write_cache_tuner.go: write through on local SSDs of Google Cloud"
DM_CRYPT = "Linux kernel documentation, admin-guide/device-mapper/dm-crypt: no_read_workqueue, no_write_workqueue"
NETDATA_LVM = "Netdata, health.d/lvm.conf: space of thin pools"
NETDATA_DISKS = "Netdata, health.d/disks.conf: space and inodes above 90 %, critical at 98 %"
NETDATA_ZFS = "Netdata, health.d/zfs.conf: state and space of pools"
ZPOOL = "zpoolconcepts(7), zpool-status(8)"
THIN = "lvmthin(7): a pool that is full; autoextend"
SNAPSHOT = "lvcreate(8), lvs(8): a snapshot that is full is invalid"
VDO = "lvmvdo(7): out of space"
AZURE_SLOTS = (
    "Azure NetApp Files documentation, concurrency session slots: 128, which the service takes of a connection"
)
GOOGLE_NFS = "Google Cloud NetApp Volumes documentation, NFS concurrency: 128"
KERNEL_SUNRPC = "Linux kernel, net/sunrpc/xprtsock.c: tcp_max_slot_table_entries is 65,536 by default"
NFS_MOUNT = "nfs(5): nconnect; Azure NetApp Files documentation, mount options: a job of 8 h took 5.5 h with nconnect=8"
MCLOCK = "Ceph documentation, mClock configuration reference: OSD bench results are ignored beyond these thresholds"
CASSANDRA = (
    "Apache Cassandra, StartupChecks: max_map_count 1,048,575, read-ahead of at most 128 KiB; its guide: no swap"
)
PERFSPECT_MEMORY = "Intel PerfSpect, report tables: memory channels and speed of DIMMs"
DMI = "SMBIOS specification, Memory Device; dmidecode(8)"
WEKA_SPEED = "WEKA tools, 900_check_link_speeds.sh"
WEKA_BOND = "WEKA tools, 805_bonding_check.sh"
ETHTOOL_MODES = "ethtool(8): supported and advertised link modes"
WEKA_RDMA = "WEKA tools, 915_rdma_network_errors.sh: IPoIB in datagram mode"
IPOIB = "Linux kernel documentation, infiniband/ipoib: datagram and connected mode"
WEKA_MLX = "WEKA tools, 740_mlx_settings.sh: PCI_WR_ORDERING=1"
ORDERING_DEFAULT = "NVIDIA firmware: per_mkey(0) is the default, and GPU clusters are seen to keep it"
PRACTICE = "Practice: no document of the kernel or a vendor says it; measure before and after"
OPENFILER = "Openfiler iSCSI tuning article: ESXi 4.1 over four 1 GbE paths, 3ware 9650SE with 8 SATA drives"
ISCSID_CONF = "open-iscsi 2.1.8, iscsid.conf"
OPEN_ISCSI = "open-iscsi README: timeouts with and without dm-multipath"
RFC_ISCSI = "RFC 7143: FirstBurstLength, MaxBurstLength, MaxRecvDataSegmentLength, digests"
RAID_SMALL_WRITES = "Chen et al., RAID: High-Performance, Reliable Secondary Storage (1994): small writes"
STORCLI = "Broadcom StorCLI: write cache policies WB, WT and AWB; CacheVault and battery states"
TW_CLI = "3ware SAS/SATA RAID CLI guide: /cx show"
LVCREATE = "lvcreate(8)"
MEASURED_ROTATION = "Observed on Linux 6.18: a virtio disk that says rotational 1 whatever lies behind it"
MOUNT = "mount(8): relatime, strictatime"
DISCARD = "mount(8): discard; fstrim(8): continuous TRIM is slow on many drives, and fstrim once a week is enough"
