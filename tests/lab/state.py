"""What a guest is, as one text: what "as before" means. `STATE` is everything that a profile could touch, and all of
/etc; `NEAR` is what is quick to ask."""

from __future__ import annotations

NEAR = r"""
cd /
places="etc/sysctl.d etc/systemd etc/udev etc/tmpfiles.d etc/iscsi etc/llttab"
find $places \( -type f -o -type l \) | sort | xargs stat -c '%N %a %u %g'
find $places -type f | sort | xargs cksum
cd /proc/sys && grep -H . net/core/?mem_* vm/dirty_* vm/swappiness vm/vfs_cache_pressure
cd /sys && grep -H . class/net/*/mtu class/net/*/tx_queue_len \
    block/nvme*/queue/scheduler block/nvme*/queue/read_ahead_kb block/nvme*/queue/nr_requests \
    kernel/mm/transparent_hugepage/enabled
ethtool -g eth0
ethtool -k eth0
lltconfig -F query
lltconfig -T query
systemctl show -p NUMAPolicy -p NUMAMask -p CPUAffinity demo-storage.service
"""

STATE = r"""
cd /
find etc -type f -print0 | sort -z | xargs -0 stat -c '%n %a %u %g'
find etc -type f -print0 | sort -z | xargs -0 cksum
find etc -type d | sort
find etc -type l -printf '%p -> %l\n' | sort
sysctl -a 2>/dev/null | grep -E '^(net\.(core|ipv4\.(tcp|udp))|vm\.|kernel\.numa|kernel\.sched)' |
    grep -vE 'random|stat|numa_balancing_scan|tcp_fastopen_key|cookies'
for file in /sys/class/net/*/mtu /sys/class/net/*/tx_queue_len /proc/irq/*/smp_affinity_list \
    /sys/block/[nmv]*/queue/scheduler /sys/block/[nmv]*/queue/read_ahead_kb /sys/block/md*/md/stripe_cache_size \
    /sys/kernel/mm/transparent_hugepage/enabled; do
    [ -r "$file" ] && echo "$file $(cat "$file")"
done
for link in eth0 eth1; do ethtool -g "$link" 2>/dev/null; ethtool -k "$link" 2>/dev/null; done
lltconfig -F query
systemctl show -p NUMAPolicy -p NUMAMask -p CPUAffinity demo-storage.service
ip -o addr show | grep -v valid_lft | sort
ip route show table all proto static; ip -6 route show table all proto static
systemctl list-unit-files 'advisor*' --no-legend | grep -v transient
"""


def changed(before: list[str], after: list[str]) -> list[str]:
    """Lines that differ, but for what each boot makes new: interrupts, keys, and sizes reckoned from free memory."""
    per_boot = (
        "/proc/irq/",
        "net.core.netdev_rss_key",
        "net.ipv4.tcp_mem",
        "net.ipv4.udp_mem",
        "vm.min_free",
        "vm.user_",
        "vm.admin_",
    )
    return [line for line in sorted({*before} ^ {*after}) if not line.startswith(per_boot)]
