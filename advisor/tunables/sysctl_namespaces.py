"""Which kernel parameters each namespace has for itself (namespaces(7)); all others are one value of the whole host.

Of the network: what is there and can be written in a network namespace that is not the first one, on Linux 6.18; a
kernel before it may have less. Sources: net/core/sysctl_net_core.c (``netns_core_table``), net/ipv4/sysctl_net_ipv4.c,
net/ipv4/route.c, net/ipv6, net/netfilter/nf_conntrack_standalone.c, ipc/ipc_sysctl.c, ipc/mq_sysctl.c,
kernel/utsname_sysctl.c, kernel/ucount.c of the kernel.
"""

from __future__ import annotations

from advisor.tunables.kind import Namespace

_CORE = "optmem_max|rps_default_mask|somaxconn|tstamp_allow_data|txrehash|xfrm_acq_expires|xfrm_aevent_etime"
_CORE_REST = "xfrm_aevent_rseqth|xfrm_larval_drop"
# In the first namespace alone, or shown to the others and not written by them.
_IPV4_OF_HOST = "|".join(
    (
        *("cipso_", "fib_sync_mem$", "inet_peer_", "ipfrag_secret_interval$", r"neigh\.default\.", "tcp_available_"),
        *(r"route\.(?:error_|gc_|max_size$|redirect_)", r"conf\..+\.mc_forwarding$", "tcp_allowed_congestion_control$"),
        *("tcp_ehash_entries$", "tcp_low_latency$", "tcp_max_orphans$", "tcp_mem$", "udp_hash_entries$", "udp_mem$"),
    )
)
_IPV6_OF_HOST = r"calipso_|ip6frag_secret_interval$|mld_|neigh\.default\.|conf\..+\.mc_forwarding$"
_NETFILTER_OF_HOST = "nf_log_all_netns$|nf_conntrack_(?:max|buckets|count|expect_max)$"

NAMESPACES: tuple[tuple[str, Namespace], ...] = (
    (rf"net\.core\.(?:{_CORE}|{_CORE_REST})", "net"),
    (rf"net\.ipv4\.(?!{_IPV4_OF_HOST}).+", "net"),
    (rf"net\.ipv6\.(?!{_IPV6_OF_HOST}).+", "net"),
    (rf"net\.netfilter\.(?!{_NETFILTER_OF_HOST}).+", "net"),
    (r"net\.mptcp\.(?!available_).+", "net"),
    (r"net\.(?:bridge|sctp|smc|unix|vrf)\..+", "net"),
    (r"kernel\.(?:shm(?:all|max|mni|_next_id|_rmid_forced)|msg(?:max|mnb|mni|_next_id)|sem|sem_next_id)", "ipc"),
    (r"kernel\.auto_msgmni|fs\.mqueue\..+", "ipc"),
    (r"kernel\.(?:host|domain)name", "uts"),
    (r"user\.max_.+", "user"),
)
"""Pattern of a key, and its namespace."""
