"""The order of changes that the kernel ties together; the rest goes by name."""

from __future__ import annotations

from advisor.facts.block_graph import BlockGraph
from advisor.host.numbers import is_count
from advisor.planning.observations import ObservedTarget
from advisor.tunables.sysctl_group import restore_rank

# What comes first: it resets what follows (nr_requests), or bounds it (preread_bypass_threshold).
_FIRST = (":scheduler", ":stripe_cache_size")


def rank_of(identity: str) -> int:
    """0 for most, more for what another setting of the same device, or a wider sysctl of the same group, changes."""
    if identity.startswith("sysctl:net."):
        return restore_rank(identity.removeprefix("sysctl:"))
    return 1 if identity.startswith(("block:", "md:", "udev:")) and not identity.endswith(_FIRST) else 0


def layer_rank(identity: str, one: ObservedTarget, graph: BlockGraph) -> int:
    """Of the largest request of a device on others: what is below rises first and sinks last, since a map's request
    fails on a path that takes less."""
    kind, _, rest = identity.partition(":")
    name, _, attribute = rest.rpartition(":")
    before, after = one.live, one.combined
    if kind != "block" or attribute != "max_sectors_kb" or not isinstance(before, str) or not isinstance(after, str):
        return 0
    if not is_count(before) or not is_count(after):
        return 0
    height = len(graph.lowest(name))
    return height if int(after) > int(before) else -height
