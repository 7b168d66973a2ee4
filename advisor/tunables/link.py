"""Which kind of tunable a ``link:`` id names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.tunables.kind import Capture, Kind, Tunable, UnknownIdError
from advisor.tunables.link_channels import LinkChannels
from advisor.tunables.link_driver import DriverValue, LinkCoalesce, LinkFeature, LinkPause, LinkRing
from advisor.tunables.link_mtu import LinkMtu, is_link_name
from advisor.tunables.link_qdisc import LinkQdisc
from advisor.tunables.link_queues import LinkRps, LinkRpsFlows, LinkXps, QueueValue
from advisor.tunables.link_txqueuelen import LinkTxqueuelen

_SYSFS = r"/sys/(?:class|devices/.*)/net/([^/]+)"
_WHOLE = {"mtu": LinkMtu, "qdisc": LinkQdisc, "txqueuelen": LinkTxqueuelen}
_DRIVER = {one.word: one for one in (LinkRing, LinkChannels, LinkCoalesce, LinkPause)}
_QUEUE = {one.word: one for one in (LinkRps, LinkRpsFlows, LinkXps)}
_ATTRIBUTES = (
    *("ring.rx", "channels.combined", "coalesce.rx-usecs", "feature.rx-gro", "pause.rx"),
    *("txqueuelen", "qdisc", "rps.rx-0", "rps-flow-cnt.rx-0", "xps.tx-0"),
)


def parse_link(rest: str) -> Tunable:
    """The tunable of ``IFACE:ATTRIBUTE``. Raises UsageError for what names none."""
    link, _, attribute = rest.rpartition(":")
    found = _parse_link(link, attribute) if is_link_name(link) else None
    if found is None:
        hint = f"write link:eth1:mtu, or in the place of mtu one of {', '.join(_ATTRIBUTES)}"
        raise UnknownIdError(rest, kind="link", hint=hint)
    return found


def _parse_link(link: str, attribute: str) -> Tunable | None:
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


EXAMPLE_ADDRESS = "52:54:00:12:34:56"


def _example_files(one: Tunable) -> Mapping[str, bytes]:
    if not isinstance(one, DriverValue | QueueValue | LinkTxqueuelen | LinkQdisc):
        return {}
    attributes = {"address": EXAMPLE_ADDRESS.encode(), "addr_assign_type": b"0", "device/uevent": b""}
    return {
        **dict.fromkeys(("/usr/sbin/ethtool", "/usr/sbin/tc", "/usr/bin/sh"), b""),
        **{f"/sys/class/net/{one.link}/{name}": text for name, text in attributes.items()},
    }


KIND = Kind(
    name="link",
    order=20,
    parse=parse_link,
    devices=lambda host: (name for name in host.names("/sys/class/net") if name != "bonding_masters"),
    noun="link",
    examples=(
        ("link:eth1:mtu", "9000"),
        ("link:eth1:ring.rx", "4096"),
        ("link:eth1:channels.combined", "8"),
        ("link:eth1:coalesce.rx-usecs", "50"),
        ("link:eth1:feature.rx-gro", "on"),
        ("link:eth1:pause.rx", "off"),
        ("link:eth1:txqueuelen", "10000"),
        ("link:eth1:qdisc", "fq"),
        ("link:eth1:rps.rx-0", "0-3"),
        ("link:eth1:rps-flow-cnt.rx-0", "4096"),
        ("link:eth1:xps.tx-0", "0-3"),
    ),
    capture=Capture(
        files=(("/sys/class/net/*/queues/*", ("rps_cpus", "rps_flow_cnt", "xps_cpus")),),
        listed=("/sys/class/net/*/queues",),
        marked=tuple(
            f"{directory}/{name}"
            for name in ("ethtool", "tc")
            for directory in ("/usr/sbin", "/sbin", "/usr/bin", "/bin")
        ),
        link_commands=(
            ("tc", "qdisc", "show", "dev", "{link}"),
            *(("ethtool", option, "{link}") for option in ("-g", "-l", "-k")),
        ),
        port_commands=tuple(("ethtool", option, "{link}") for option in ("-c", "-a", "-x")),
    ),
    namespaces=((".+", "net"),),
    written_by=frozenset({"tuned", "network-manager"}),
    sysfs=((rf"{_SYSFS}/mtu", r"link:\1:mtu"), (rf"{_SYSFS}/tx_queue_len", r"link:\1:txqueuelen")),
    units=((r".+:mtu", "bytes"),),
    example_files=_example_files,
)
