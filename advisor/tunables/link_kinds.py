"""Which kind of tunable a ``link:`` id names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from advisor.errors import UsageError
from advisor.i18n import msg
from advisor.tunables.link import LinkMtu
from advisor.tunables.link_channels import LinkChannels
from advisor.tunables.link_coalesce import LinkCoalesce
from advisor.tunables.link_driver import DriverValue
from advisor.tunables.link_feature import LinkFeature
from advisor.tunables.link_pause import LinkPause
from advisor.tunables.link_qdisc import LinkQdisc
from advisor.tunables.link_queues import QueueCpus
from advisor.tunables.link_ring import LinkRing
from advisor.tunables.link_rps import LinkRps
from advisor.tunables.link_rps_flows import LinkRpsFlows
from advisor.tunables.link_txqueuelen import LinkTxqueuelen
from advisor.tunables.link_xps import LinkXps
from advisor.tunables.tunable import Tunable

_WHOLE: Final[Mapping[str, Callable[[str], Tunable]]] = {
    "mtu": LinkMtu,
    "qdisc": LinkQdisc,
    "txqueuelen": LinkTxqueuelen,
}
_DRIVER: Final[Mapping[str, type[DriverValue]]] = {
    one.word: one for one in (LinkRing, LinkChannels, LinkCoalesce, LinkPause)
}
_QUEUE: Final[Mapping[str, type[QueueCpus] | type[LinkRpsFlows]]] = {
    one.word: one for one in (LinkRps, LinkRpsFlows, LinkXps)
}
_ATTRIBUTES: Final = (
    *("ring.rx", "channels.combined", "coalesce.rx-usecs", "feature.rx-gro", "pause.rx"),
    *("txqueuelen", "qdisc", "rps.rx-0", "rps-flow-cnt.rx-0", "xps.tx-0"),
)


def parse_link(rest: str) -> Tunable:
    """The tunable of ``IFACE:ATTRIBUTE``. Raises UsageError for what names none."""
    link, _, attribute = rest.rpartition(":")
    found = _tunable(link, attribute) if _is_name(link) else None
    if found is None:
        hint = f"write link:eth1:mtu, or in the place of mtu one of {', '.join(_ATTRIBUTES)}"
        raise UsageError(msg("'link:{rest}' is not a tunable", rest=rest), hint=hint)
    return found


def _tunable(link: str, attribute: str) -> Tunable | None:
    word, _, key = attribute.partition(".")
    if attribute in _WHOLE:
        return _WHOLE[attribute](link)
    if word in _DRIVER and key in _DRIVER[word].keys:
        return _DRIVER[word](link, key)
    if word == LinkFeature.word and LinkFeature.is_name(key):
        return LinkFeature(link, key)
    kind = _QUEUE.get(word)
    queue = re.fullmatch(r"([rt]x)-(0|[1-9][0-9]{0,3})", key)
    return kind(link, int(queue[2])) if kind and queue and queue[1] == kind.side else None


def _is_name(link: str) -> bool:
    try:
        LinkMtu.parse(f"{link}:mtu")
    except UsageError:
        return False
    return True
