"""Files that follow bad advice, and the same files that do not."""

from __future__ import annotations

SITE = "/etc/sysctl.d/99-site.conf"
BASE = {
    "/proc/sys/kernel/osrelease": "6.18.44",
    "/proc/meminfo": "MemTotal: 25165824 kB\nMemAvailable: 20000000 kB\n",
    "/sys/devices/system/cpu/online": "0-3",
    "/sys/devices/system/cpu/present": "0-3",
    **{f"/sys/devices/system/cpu/cpu{n}/topology/core_id": str(n) for n in range(4)},
}
UDEV = "/etc/udev/rules.d/60-disks.rules"
RC_LOCAL = "/etc/rc.local"

# The rule, the file, its text that follows the advice, the text that does not.
SYSCTLS = [
    ("tcp-tw-recycle", "net.ipv4.tcp_tw_recycle = 1", "net.ipv4.tcp_tw_recycle = 0"),
    ("tcp-mem-fixed", "net.ipv4.tcp_mem = 10000000 10000000 10000000", "net.ipv4.tcp_mem = 280000 380000 570000"),
    ("tcp-mem-fixed", "net.ipv4.tcp_mem = 1000 2000 10000000", "net.ipv4.tcp_mem = 1000 2000 3000"),
    ("tcp-sack-off", "net.ipv4.tcp_sack = 0", "net.ipv4.tcp_sack = 1"),
    ("tcp-sack-off", "net.ipv4.tcp_timestamps=0", "net.ipv4.tcp_timestamps=1"),
    ("tcp-window-scaling-off", "net.ipv4.tcp_window_scaling = 0", "net.ipv4.tcp_window_scaling = 1"),
    ("tcp-sizes-equal", "net.ipv4.tcp_rmem = 10000000 10000000 10000000", "net.ipv4.tcp_rmem = 4096 131072 67108864"),
    ("tcp-sizes-equal", "net.ipv4.tcp_wmem = 99999999 99999999 99999999", "net.ipv4.tcp_wmem = 4096 16384 4194304"),
    ("without-effect", "net.ipv4.tcp_low_latency = 1", "net.ipv4.tcp_low_latency = 0"),
    ("without-effect", "net.ipv4.tcp_fack = 1", "net.ipv4.tcp_fack = 0"),
    ("without-effect", "net.ipv4.udp_wmem_min = 8192", "net.ipv4.udp_rmem_min = 8192"),
    ("adv-win-scale", "net.ipv4.tcp_adv_win_scale = 2", "net.ipv4.tcp_window_scaling = 1"),
    ("large-by-default", "net.core.rmem_default=8388608", "net.core.rmem_default=851968"),
    ("large-by-default", "net.core.wmem_default=16777216", "net.core.wmem_default=212992"),
    ("optmem-large", "net.core.optmem_max=25165824", "net.core.optmem_max=131072"),
    ("maxima-lowered", "net.ipv4.tcp_rmem = 4096 87380 8388608", "net.ipv4.tcp_rmem = 4096 131072 33554432"),
    ("maxima-lowered", "net.core.rmem_max = 1048576", "net.core.rmem_max = 8388608"),
    ("swappiness-zero", "vm.swappiness = 0", "vm.swappiness = 1"),
    ("cache-pressure-zero", "vm.vfs_cache_pressure = 0", "vm.vfs_cache_pressure = 50"),
    ("min-free-large", "vm.min_free_kbytes = 4194304", "vm.min_free_kbytes = 262144"),
    ("dirty-ratio-high", "vm.dirty_ratio = 80", "vm.dirty_ratio = 20"),
    ("zone-reclaim", "vm.zone_reclaim_mode = 2", "vm.zone_reclaim_mode = 0"),
    ("backlog-huge", "net.core.netdev_max_backlog = 250000", "net.core.netdev_max_backlog = 10000"),
    ("old-lore", "net.ipv4.tcp_congestion_control = htcp", "net.ipv4.tcp_congestion_control = bbr"),
    ("old-lore", "net.ipv4.tcp_no_metrics_save = 1", "net.ipv4.tcp_no_metrics_save = 0"),
    ("tcp-tw-reuse", "net.ipv4.tcp_tw_reuse = 1", "net.ipv4.tcp_tw_reuse = 2"),
    ("no-path-mtu", "net.ipv4.ip_no_pmtu_disc = 1", "net.ipv4.ip_no_pmtu_disc = 0"),
]
FILES = [
    ("nobarrier", "/etc/fstab", "/dev/sdb1 /data xfs noatime,nobarrier 0 0", "/dev/sdb1 /data xfs noatime 0 0"),
    ("nobarrier", "/etc/fstab", "/dev/sdb1 /data ext4 barrier=0 0 2", "/dev/sdb1 /data ext4 barrier=1 0 2"),
    (
        "write-through",
        UDEV,
        'KERNEL=="sd*", ATTR{queue/write_cache}="write through"',
        'KERNEL=="sd*", ATTR{queue/write_cache}="write back"',
    ),
    (
        "write-through",
        RC_LOCAL,
        "for d in sda; do echo 'write through' > /sys/block/$d/queue/write_cache; done",
        "echo 'write back' > /sys/block/sda/queue/write_cache",
    ),
    (
        "write-through",
        "/etc/tmpfiles.d/disk.conf",
        "w /sys/block/sda/queue/write_cache - - - - write through",
        "w /sys/block/sda/queue/read_ahead_kb - - - - 4096",
    ),
    ("irqbalance-off", RC_LOCAL, "systemctl stop irqbalance", "systemctl start irqbalance"),
    ("irqbalance-off", RC_LOCAL, "service irqbalance stop", "service irqbalance start"),
    ("queue-length", RC_LOCAL, "/sbin/ifconfig eth0 txqueuelen 300000", "/sbin/ifconfig eth0 txqueuelen 1000"),
    ("queue-length", RC_LOCAL, "ip link set dev eth0 txqueuelen 10000", "ip link set dev eth0 txqueuelen 2000"),
    ("queue-length", UDEV, 'KERNEL=="eth*", ATTR{tx_queue_len}="10000"', 'KERNEL=="eth*", ATTR{tx_queue_len}="1000"'),
    ("old-scheduler", UDEV, 'KERNEL=="sd*", ATTR{queue/scheduler}="noop"', 'ATTR{queue/scheduler}="none"'),
    (
        "old-scheduler",
        RC_LOCAL,
        "echo deadline > /sys/block/sda/queue/scheduler",
        "echo none > /sys/block/sda/queue/scheduler",
    ),
    ("old-scheduler", "/proc/cmdline", "root=/dev/sda1 elevator=cfq quiet", "root=/dev/sda1 quiet"),
    ("no-merges", UDEV, 'ATTR{queue/nomerges}="2"', 'ATTR{queue/nomerges}="1"'),
    (
        "bfq-for-nvme",
        UDEV,
        'KERNEL=="nvme*n1", ATTR{queue/scheduler}="bfq"',
        'KERNEL=="sd*", ATTR{queue/scheduler}="bfq"',
    ),
    ("rr-min-io", "/etc/multipath.conf", "defaults {\n  rr_min_io 1000\n}", "defaults {\n  rr_min_io_rq 1\n}"),
    (
        "rr-min-io",
        "/etc/multipath/conf.d/openfiler.conf",
        'devices {\n device {\n  vendor "OPNFILER"\n  rr_min_io 10 # paths\n }\n}',
        "# rr_min_io 1000",
    ),
    (
        "target-chooser",
        "/etc/beegfs/beegfs-meta.conf",
        "tuneTargetChooser = roundrobin",
        "tuneTargetChooser = randomized",
    ),
    (
        "huge-pages-for-all",
        "/proc/cmdline",
        "root=/dev/sda1 transparent_hugepage=never",
        "root=/dev/sda1 transparent_hugepage=madvise",
    ),
    (
        "huge-pages-for-all",
        RC_LOCAL,
        "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
    ("ifconfig-mtu", RC_LOCAL, "ifconfig eth1 mtu 9000", "ip link set dev eth1 mtu 9000"),
    ("ifconfig-mtu", RC_LOCAL, "ifconfig eth1 192.0.2.1 mtu 9000 up", "ifconfig eth1 192.0.2.1 up"),
    ("offloads-off", RC_LOCAL, "ethtool -K eth0 tso off gso off", "ethtool -K eth0 tso on gso on"),
    (
        "offloads-off",
        UDEV,
        'ACTION=="add", KERNEL=="eth0", RUN+="/sbin/ethtool -K eth0 tso off"',
        'ACTION=="add", KERNEL=="eth0", RUN+="/sbin/ethtool -K eth0 lro off"',
    ),
    (
        "offloads-off",
        "/etc/systemd/network/10-a.link",
        "[Link]\nTCPSegmentationOffload=no",
        "[Link]\nTCPSegmentationOffload=yes",
    ),
    (
        "offloads-off",
        "/etc/sysconfig/network-scripts/ifcfg-eth0",
        'ETHTOOL_OPTS="-K eth0 gso off"',
        'ETHTOOL_OPTS="-G eth0 rx 4096"',
    ),
]
ALL = [*((rule, SITE, bad, good) for rule, bad, good in SYSCTLS), *FILES]
