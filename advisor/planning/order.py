"""The order of changes that the kernel ties together; the rest goes by name."""

from __future__ import annotations

from advisor.tunables.sysctl_group import restore_rank

# What comes first: it resets what follows (nr_requests), or bounds it (preread_bypass_threshold).
_FIRST = (":scheduler", ":stripe_cache_size")


def rank_of(identity: str) -> int:
    """0 for most, more for what another setting of the same device, or a wider sysctl of the same group, changes."""
    if identity.startswith("sysctl:net."):
        return restore_rank(identity.removeprefix("sysctl:"))
    return 1 if identity.startswith(("block:", "md:", "udev:")) and not identity.endswith(_FIRST) else 0
