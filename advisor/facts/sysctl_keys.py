"""The sysctls that rules and profiles name, and which values the kernel refuses for them."""

from __future__ import annotations

import re

from advisor.host.patterns import lazy_regex

_CORE = (
    *("rmem_default", "rmem_max", "wmem_default", "wmem_max", "optmem_max"),
    *("netdev_max_backlog", "netdev_budget", "netdev_budget_usecs", "somaxconn", "default_qdisc"),
    *("busy_read", "busy_poll", "rps_sock_flow_entries"),
)
_IPV4 = (
    *("tcp_rmem", "tcp_wmem", "tcp_mem", "udp_mem", "udp_rmem_min", "udp_wmem_min"),
    *("tcp_congestion_control", "tcp_mtu_probing", "ip_no_pmtu_disc", "tcp_slow_start_after_idle"),
    *("tcp_sack", "tcp_fack", "tcp_timestamps", "tcp_window_scaling", "tcp_no_metrics_save"),
    *("tcp_tw_reuse", "tcp_tw_recycle", "tcp_low_latency", "tcp_adv_win_scale", "tcp_moderate_rcvbuf"),
    *("ip_local_port_range", "ip_local_reserved_ports", "ip_forward"),
    *("tcp_max_syn_backlog", "tcp_syncookies", "tcp_keepalive_time", "tcp_keepalive_intvl", "tcp_keepalive_probes"),
    *(f"conf.all.{name}" for name in ("rp_filter", "arp_filter", "arp_ignore", "arp_announce")),
    *(f"conf.default.{name}" for name in ("rp_filter", "arp_filter", "arp_ignore", "arp_announce")),
    *(f"neigh.default.gc_thresh{number}" for number in (1, 2, 3)),
)
_VM = (
    *("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes"),
    *("dirty_expire_centisecs", "dirty_writeback_centisecs", "min_free_kbytes", "watermark_scale_factor"),
    *("vfs_cache_pressure", "swappiness", "zone_reclaim_mode", "nr_hugepages", "nr_overcommit_hugepages"),
    *("overcommit_memory", "overcommit_ratio", "max_map_count", "stat_interval"),
)
_KERNEL = (
    *("numa_balancing", "pid_max", "shmmax", "shmall", "shmmni", "panic", "panic_on_oops"),
    *("timer_migration", "sched_autogroup_enabled", "sched_rt_runtime_us", "sched_cfs_bandwidth_slice_us"),
    # Below /proc/sys until Linux 5.13, in debugfs since.
    *("sched_min_granularity_ns", "sched_wakeup_granularity_ns", "sched_migration_cost_ns", "sched_latency_ns"),
)
KEYS: tuple[str, ...] = tuple(
    sorted(
        [
            *(f"net.core.{name}" for name in _CORE),
            *(f"net.ipv4.{name}" for name in _IPV4),
            *(f"vm.{name}" for name in _VM),
            *(f"kernel.{name}" for name in _KERNEL),
            *("dev.raid.speed_limit_min", "dev.raid.speed_limit_max"),
            *("fs.aio-max-nr", "fs.aio-nr", "fs.file-max", "fs.nr_open"),
            "sunrpc.tcp_max_slot_table_entries",
        ]
    )
)
"""Dotted keys that a scan reads; a host has those that its kernel knows."""

# A number as the kernel's proc_get_long takes it: no plus sign, hexadecimal and octal by their prefix.
_NUMBER = lazy_regex(r"-?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_MOST_DIGITS = 40
_INT = (-(1 << 31), (1 << 31) - 1)
_LONG = (-(1 << 63), (1 << 64) - 1)
# How many numbers a key holds, where it is more than one.
_FIELDS = {
    "net.ipv4.tcp_rmem": 3,
    "net.ipv4.tcp_wmem": 3,
    "net.ipv4.tcp_mem": 3,
    "net.ipv4.udp_mem": 3,
    "net.ipv4.ip_local_port_range": 2,
}
WORDS = frozenset({"net.core.default_qdisc", "net.ipv4.tcp_congestion_control", "net.ipv4.ip_local_reserved_ports"})
_NUMBERS = frozenset(KEYS) - WORDS
UNSIGNED_KEYS = frozenset(
    {
        *("net.ipv4.tcp_mem", "net.ipv4.udp_mem", "vm.dirty_bytes", "vm.dirty_background_bytes"),
        *("vm.nr_hugepages", "vm.nr_overcommit_hugepages", "kernel.shmmax", "kernel.shmall"),
        *("fs.aio-max-nr", "fs.file-max"),
    }
)
"""Keys whose numbers the kernel holds as unsigned longs (proc_doulongvec_minmax)."""
# The same settings of one link, and of all that a pattern names.
_LINK_SETTING = lazy_regex(r"net\.ipv4\.conf\.[^.]+\.(rp_filter|arp_filter|arp_ignore|arp_announce)")


def refusal(key: str, value: str) -> str | None:
    """Why the kernel refuses a value for a managed key; None where it accepts it or that is unknown.

    The kernel reads as many numbers as the key has and ignores what follows them after white space, so a comment
    there does no harm. Bounds of single keys are not checked, only what cannot be read as a number at all.
    """
    if key in WORDS:
        is_quoted = value.startswith(("'", '"'))
        return "the quotes become part of the value, which the kernel does not know" if is_quoted else None
    if key not in _NUMBERS and not _LINK_SETTING.fullmatch(key):
        return None
    # No other white space separates numbers there.
    words = re.split("[ \t\n]+", value.strip(" \t\n"))[: _FIELDS.get(key, 1)]
    if not words[0]:
        return "the value is empty"
    wrong = next((word for word in words if not _NUMBER.fullmatch(word)), None)
    if wrong is not None:
        if "'" in wrong or '"' in wrong:
            return "the quotes become part of the value"
        return f"{wrong[:40]} is not a number"
    low, high = _LONG if key in UNSIGNED_KEYS else _INT
    too_large = next((word for word in words if not low <= _parse_value(word) <= high), None)
    return f"{too_large[:40]} is too large" if too_large else None


def kernel_number(word: str) -> int | None:
    """What the kernel reads of a word as a number (proc_get_long: ``0x`` is hexadecimal, a leading ``0`` octal); None
    where it refuses it."""
    return _parse_value(word) if _NUMBER.fullmatch(word) and len(word) <= _MOST_DIGITS else None


def numbers_of(key: str) -> int | None:
    """How many numbers a managed key holds; None for one that holds words and for an unknown one."""
    return _FIELDS.get(key, 1) if key in _NUMBERS or _LINK_SETTING.fullmatch(key) else None


def _parse_value(word: str) -> int:
    digits = word.removeprefix("-")
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
    # Python refuses to convert thousands of digits; forty are too many for the kernel already.
    number = int(digits[:_MOST_DIGITS], base)
    return -number if word.startswith("-") else number
