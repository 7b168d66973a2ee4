"""The order of changes that the kernel ties together; the rest goes by name."""

from __future__ import annotations

from typing import Final

# What comes first: it resets what follows (nr_requests), or bounds it (preread_bypass_threshold).
_FIRST: Final = (":scheduler", ":stripe_cache_size")


def rank_of(identity: str) -> int:
    """0 for most, 1 for settings of a block device that another one of it must come before."""
    return 1 if identity.startswith(("block:", "md:")) and not identity.endswith(_FIRST) else 0
