"""``[net]``: offloads, coalescing, rings, channels and pause frames of links, and the size of a hash table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from advisor.interchange.records import ImportedSetting
from advisor.interchange.tuned.context import Context, Given
from advisor.interchange.tuned.devices import parse_device_rules
from advisor.interchange.tuned.operators import can_compare, parse_assignment
from advisor.profiles import FieldSense, Only

_COALESCE: Final = frozenset(
    {
        *("adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "rx-usecs-irq", "rx-frames-irq"),
        *("tx-usecs", "tx-frames", "tx-usecs-irq", "tx-frames-irq", "stats-block-usecs", "sample-interval"),
        *("pkt-rate-low", "rx-usecs-low", "rx-frames-low", "tx-usecs-low", "tx-frames-low"),
        *("pkt-rate-high", "rx-usecs-high", "rx-frames-high", "tx-usecs-high", "tx-frames-high"),
    }
)
# Group of TuneD → the keys that it knows, and the first word of our id.
_GROUPS: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "coalesce": (_COALESCE, "coalesce"),
    "pause": (frozenset({"autoneg", "rx", "tx"}), "pause"),
    "ring": (frozenset({"rx", "rx-mini", "rx-jumbo", "tx"}), "ring"),
    "channels": (frozenset({"rx", "tx", "other", "combined"}), "channels"),
}
# ethtool's old names of offloads, and the kernel's own (NETIF_F_*_BIT strings).
_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "rx": ("rx-checksum",),
    "sg": ("tx-scatter-gather",),
    "tso": ("tx-tcp-segmentation", "tx-tcp6-segmentation"),
    "gso": ("tx-generic-segmentation",),
    "gro": ("rx-gro",),
    "lro": ("rx-lro",),
    "rxvlan": ("rx-vlan-hw-parse",),
    "txvlan": ("tx-vlan-hw-insert",),
    "ntuple": ("rx-ntuple-filter",),
    "rxhash": ("rx-hashing",),
}
OPTIONS: Final = frozenset(
    {"dynamic", "wake_on_lan", "nf_conntrack_hashsize", "features", "txqueuelen", "mtu", *_GROUPS}
)


def convert_net(context: Context, given: Given) -> list[ImportedSetting]:
    key = given.key
    if key == "dynamic":
        return [given.line.ignored("it says whether TuneD slows idle links down by itself", "dynamic")]
    if key == "nf_conntrack_hashsize":
        return [_hash_size(context, given)]
    if key == "wake_on_lan":
        return [given.line.manual("waking a host over the network: ethtool -s LINK wol, per link")]
    if key in ("txqueuelen", "mtu"):
        return [_number(context, given, key)]
    pairs = parse_link_parameters(given.text)
    if pairs is None:
        return [given.swallowed(context, "its names and values do not come in pairs, and TuneD sets none of them")]
    if key == "features":
        return [one for name, value in pairs.items() for one in _feature(context, given, name, value)]
    known, word = _GROUPS[key]
    unknown = sorted(pairs.keys() - known)
    if unknown:
        why = f"TuneD does not know {', '.join(unknown)[:80]} of {key}, and then sets none of the line"
        return [given.swallowed(context, why, "unknown")]
    return [_on_links(given, f"{word}.{name}", _switch(value)) for name, value in pairs.items()]


def parse_link_parameters(text: str) -> dict[str, str] | None:
    """``rx on, tx off`` or ``rx: on; tx: off`` as pairs; None for an odd number of words."""
    words = re.sub(r"(:\s*)|(\s+)|(\s*;\s*)|(\s*,\s*)", " ", text).split()
    return None if len(words) % 2 else dict(zip(words[::2], words[1::2], strict=True))


def _switch(value: str) -> str:
    return value.lower() if value.lower() in ("on", "off") else value


def _feature(context: Context, given: Given, name: str, value: str) -> list[ImportedSetting]:
    if value.lower() not in ("on", "off"):
        return [given.swallowed(context, f"{name[:40]} is to be {value[:40]!r}, which is neither on nor off")]
    if name == "tx":
        return [given.line.manual("tx stands for several checksum offloads, of which a driver has some")]
    names = _FEATURES.get(name, (name,))
    return [_on_links(given, f"feature.{one}", value.lower()) for one in names]


def _number(context: Context, given: Given, key: str) -> ImportedSetting:
    text = given.text.strip()
    written = parse_assignment(text)
    if context.is_faithful and not can_compare(text, "1"):
        return given.line.ignored(f"TuneD takes {text[:40]!r} for no number and sets nothing", "refused")
    if not re.fullmatch(r"\d{1,9}", written.value):
        return given.swallowed(context, "it is no whole number")
    if written.sense != "exactly":
        return given.line.manual(f"set it on links that have {'less' if written.sense == 'at-least' else 'more'}")
    return _on_links(given, key, written.value)


def _hash_size(context: Context, given: Given) -> ImportedSetting:
    text = given.text.strip()
    if not re.fullmatch(r"\d{1,12}", text):
        return given.swallowed(context, "it is no whole number")
    note = "the module nf_conntrack must be there" if not context.host.is_dir("/sys/module/nf_conntrack") else ""
    path = "/sys/module/nf_conntrack/parameters/hashsize"
    sense: FieldSense = "exactly" if context.is_faithful else "at-least"
    return given.line.wanted((f"sysfs:{path}", "module:nf_conntrack:hashsize"), text, sense=sense, note=note)


def _on_links(given: Given, attribute: str, value: str) -> ImportedSetting:
    """On the section's links: by pattern, or by name where patterns do not say all."""
    rules = parse_device_rules(given.instance.unit.devices)
    if rules.is_all and not given.instance.is_shared:
        only = None
    elif rules.patterns is None or given.instance.is_shared:
        names = given.instance.devices or ()
        if not names:
            return given.line.ignored("no link of this host is left for it", "inert")
        only = Only(names=names)
    else:
        only = Only(names=rules.patterns)
    return given.line.wanted(f"link:{{link}}:{attribute}", value, for_each="links", only=only)
