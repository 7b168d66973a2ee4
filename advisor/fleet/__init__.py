"""Many hosts, with Ansible as the engine: capture, compare, plan, apply in waves, verify, roll back."""

from __future__ import annotations

FORKS = 0
"""So many hosts at a time, unless it is asked for otherwise: 0 for what Ansible is configured to, else `OWN_FORKS`."""

OWN_FORKS = 20
"""So many hosts at a time where neither ansible.cfg nor ANSIBLE_FORKS says anything."""

TIMEOUT_SECONDS = 180
"""How long one host is waited for, unless it is asked for otherwise."""

MAX_SKEW_SECONDS = 2.0
"""Clocks that differ by more are reported: NTP holds them within milliseconds, a capture records whole seconds."""


def counted_hosts(count: int) -> str:
    """``1 host``, ``100 hosts``."""
    return f"{count} host" if count == 1 else f"{count} hosts"
