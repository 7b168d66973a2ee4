"""Kernel parameters of which more is what an author asks for: limits, buffers, tables.

A kernel that is younger than the profile may have more by itself, and nobody who raises a limit means to lower it.
"""

from __future__ import annotations

import re
from typing import Final

from advisor.host.patterns import lazy_regex

_GROWING: Final = lazy_regex(
    r"net\.core\.([rw]mem_(default|max)|optmem_max|somaxconn|netdev_max_backlog|netdev_budget(_usecs)?)"
    r"|net\.ipv4\.(tcp_[rw]mem|tcp_mem|udp_mem|udp_[rw]mem_min|tcp_max_syn_backlog|tcp_max_tw_buckets)"
    r"|net\.ipv[46]\.neigh\.default\.gc_thresh[123]|net\.netfilter\.nf_conntrack_max"
    r"|fs\.(file-max|nr_open|aio-max-nr|inotify\.max_\w+)"
    r"|kernel\.(pid_max|threads-max|shmmax|shmall|shmmni|msgmax|msgmnb|msgmni|sem)"
    r"|vm\.(max_map_count|min_free_kbytes|nr_hugepages|nr_overcommit_hugepages)"
)


def is_growing(key: str) -> bool:
    """Whether a larger value than the wanted one is as good."""
    return _GROWING.fullmatch(key) is not None


def lowered_fields(live: str, wanted: str) -> tuple[tuple[int, int], ...]:
    """The numbers that ``wanted`` would lower, each with what it would become; none where fields do not correspond."""
    old, new = live.split(), wanted.split()
    if len(old) != len(new) or not all(re.fullmatch(r"[0-9]{1,20}", word) for word in (*old, *new)):
        return ()
    return tuple((int(was), int(now)) for was, now in zip(old, new, strict=True) if int(now) < int(was))
