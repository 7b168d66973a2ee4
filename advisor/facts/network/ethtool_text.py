"""What ethtool(8) prints, for hosts whose drivers cannot be asked: captured output of ``-g``, ``-l``, ``-k``, ``-i`` …

Each parser takes one text and returns the same names as `Host.ethtool` gives for a live link. A text in which ethtool
refuses (``Operation not supported``, ``bad command line argument(s)``) becomes `Missing` with ethtool's own words;
lines that do not fit are passed over, so a truncated text gives what it still holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from advisor.host.ethtool import Answer
from advisor.host.missing import Missing
from advisor.host.patterns import lazy_regex

_REFUSAL = lazy_regex(
    r"(?:ethtool: |netlink error: |Cannot (?:get|set|read|allocate)|No data available|no stats available).*"
)
_NOT_APPLICABLE = ("not supported", "No data available", "no stats available", "No such device")
_COUNT = lazy_regex(r"[0-9]{1,18}", re.ASCII)
_SWITCH = lazy_regex(r"(on|off)(?:\s.*)?", re.DOTALL)

_RING_NAMES = {"RX": "rx", "RX Mini": "rx_mini", "RX Jumbo": "rx_jumbo", "TX": "tx"}
_CHANNEL_NAMES = {"RX": "rx", "TX": "tx", "Other": "other", "Combined": "combined"}
_DRIVER_NAMES = {"firmware-version": "firmware", "bus-info": "bus"}
_PAUSE_NAMES = {
    "Autonegotiate": "autoneg",
    "RX": "rx",
    "TX": "tx",
    "RX negotiated": "rx_negotiated",
    "TX negotiated": "tx_negotiated",
}

# ethtool prints names of its own for some features, and a summary line above those that belong together.
_KERNEL_NAMES = {
    "rx-checksumming": "rx-checksum",
    "generic-segmentation-offload": "tx-generic-segmentation",
    "generic-receive-offload": "rx-gro",
    "large-receive-offload": "rx-lro",
    "rx-vlan-offload": "rx-vlan-hw-parse",
    "tx-vlan-offload": "tx-vlan-hw-insert",
    "ntuple-filters": "rx-ntuple-filter",
    "receive-hashing": "rx-hashing",
}
_SUMMARIES = {
    "tx-checksumming": ("tx-checksum-", None),
    "scatter-gather": ("tx-scatter-gather", "tx-scatter-gather"),
    "tcp-segmentation-offload": ("tx-tcp", "tx-tcp-segmentation"),
    "udp-fragmentation-offload": ("tx-udp-fragmentation", "tx-udp-fragmentation"),
}


def parse_ethtool_rings(text: str) -> Answer | Missing:
    """``ethtool -g``: rx, rx_mini, rx_jumbo, tx and the same with ``_max``, in descriptors; 0 where it prints n/a."""
    return _answer_or_refusal(text, _parse_bounded(text, _RING_NAMES), "ring sizes")


def parse_ethtool_channels(text: str) -> Answer | Missing:
    """``ethtool -l``: rx, tx, other, combined and the same with ``_max``, in queues; 0 where it prints n/a."""
    return _answer_or_refusal(text, _parse_bounded(text, _CHANNEL_NAMES), "channels")


def parse_ethtool_driver(text: str) -> Answer | Missing:
    """``ethtool -i``: driver, version, firmware, bus and the ``supports-…`` switches; a missing line is left out."""
    facts: Answer = {}
    for name, value in _parse_pairs(text):
        if name.startswith("supports-"):
            facts[name] = value == "yes"
        elif name in ("driver", "version", "firmware-version", "expansion-rom-version", "bus-info"):
            facts[_DRIVER_NAMES.get(name, name)] = value
    return _answer_or_refusal(text, facts, "driver")


def parse_ethtool_features(text: str) -> dict[str, bool] | Missing:
    """``ethtool -k``: whether each feature is on now, by the names that ethtool prints (see `kernel_feature_names`).

    ``off [requested on]`` is off. Empty where the header stands alone or no line can be read.
    """
    body = _after_header(text, "Features for ", "Offload parameters for ")
    if body is None:
        return _refusal_reason(text, "features")
    facts: dict[str, bool] = {}
    for name, value in _parse_pairs(body):
        switch = _SWITCH.fullmatch(value)
        if switch:
            # ethtool before 3.0 printed "tcp segmentation offload".
            facts[name.replace(" ", "-")] = switch[1] == "on"
    return facts


def kernel_feature_names(printed: Mapping[str, bool]) -> dict[str, bool]:
    """Features by the kernel's own names (ETH_SS_FEATURES), sorted.

    A summary line (``tcp-segmentation-offload``) gives way to the features below it; where an old ethtool printed the
    summary only, it stands for the feature that it is named after. ``tx-checksumming`` alone keeps its name, as the
    text does not say which checksum it means.
    """
    features: dict[str, bool] = {}
    for name, on in printed.items():
        if name not in _SUMMARIES:
            features[_KERNEL_NAMES.get(name, name)] = on
    for summary in printed.keys() & _SUMMARIES.keys():
        prefix, stands_for = _SUMMARIES[summary]
        if not any(name.startswith(prefix) for name in printed if name != summary):
            features[stands_for or summary] = printed[summary]
    return dict(sorted(features.items()))


def parse_ethtool_coalesce(text: str) -> Answer | Missing:
    """``ethtool -c``: rx-usecs, rx-frames, adaptive-rx … by the names that ``ethtool -C`` takes; n/a is left out."""
    facts: Answer = {}
    for name, value in _parse_pairs(text):
        both = re.fullmatch(r"(\S+)\s+TX:\s*(\S+)", value)
        if both and name in ("Adaptive RX", "CQE mode RX"):
            word = "adaptive" if name.startswith("Adaptive") else "cqe-mode"
            sides = {f"{word}-rx": both[1], f"{word}-tx": both[2]}
            facts.update({side: state == "on" for side, state in sides.items() if state in ("on", "off")})
        elif _COUNT.fullmatch(value) and " " not in name:
            facts[name] = int(value)
    return _answer_or_refusal(text, facts, "coalescing")


def parse_ethtool_pause(text: str) -> Answer | Missing:
    """``ethtool -a``: autoneg, rx, tx, rx_negotiated, tx_negotiated."""
    facts: Answer = {
        _PAUSE_NAMES[name]: value == "on"
        for name, value in _parse_pairs(text)
        if name in _PAUSE_NAMES and value in ("on", "off")
    }
    return _answer_or_refusal(text, facts, "pause settings")


def parse_ethtool_settings(text: str) -> dict[str, tuple[str, ...]] | Missing:
    """``ethtool LINK``: each setting by its printed name, with one string per printed line of its value.

    Empty where the header stands alone or no line can be read.
    """
    body = _after_header(text, "Settings for ")
    facts: dict[str, tuple[str, ...]] = {}
    current = None
    for line in (body or "").splitlines():
        name, colon, value = line.partition(":")
        if not line.strip() or _REFUSAL.match(line.strip()):
            current = None
        elif colon:
            current = name.strip()
            facts[current] = (value.strip(),)
        elif current is not None:
            facts[current] += (line.strip(),)
    return _refusal_reason(text, "settings") if body is None or (_find_refusal(text) and not facts) else facts


def settings_speed_mbps(settings: Mapping[str, tuple[str, ...]]) -> int | None:
    """Link speed in Mbit/s; None where ethtool prints ``Unknown!`` or nothing."""
    found = re.match(r"([0-9]{1,9})Mb/s", settings.get("Speed", ("",))[0], re.ASCII)
    return int(found[1]) if found else None


def best_advertised_mbps(settings: Mapping[str, tuple[str, ...]]) -> int | None:
    """The fastest of the modes (``25000baseCR/Full``) that a link both supports and advertises; None for none."""
    supported, advertised = (
        set(re.findall(r"\b([0-9]{2,7})base", " ".join(settings.get(f"{one} link modes", ())), re.ASCII))
        for one in ("Supported", "Advertised")
    )
    return max(map(int, supported & advertised), default=None)


PARSERS: Mapping[str, tuple[tuple[str, ...], Callable[[str], Answer | Missing]]] = {
    "rings": (("-g",), parse_ethtool_rings),
    "channels": (("-l",), parse_ethtool_channels),
    "driver": (("-i",), parse_ethtool_driver),
    "coalesce": (("-c",), parse_ethtool_coalesce),
    "pause": (("-a",), parse_ethtool_pause),
}
"""What `Host.ethtool` calls each query, with the options that ask ethtool(8) for it and the parser of its answer."""


def _parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each line with a colon; ethtool's complaints are passed over."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and not _REFUSAL.match(line.strip()):
            yield name.strip(), value.strip()


def _parse_bounded(text: str, names: Mapping[str, str]) -> Answer:
    """Values under ``Pre-set maximums:`` and under ``Current hardware settings:``."""
    facts: Answer = {}
    ending = None
    for name, value in _parse_pairs(text):
        if name == "Pre-set maximums":
            ending = "_max"
        elif name == "Current hardware settings":
            ending = ""
        elif ending is not None and name in names and (value == "n/a" or _COUNT.fullmatch(value)):
            facts[names[name] + ending] = 0 if value == "n/a" else int(value)
    return facts


def _after_header(text: str, *headers: str) -> str | None:
    """What follows the line that begins with one of the headers; None where there is no such line."""
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if line.strip().startswith(headers)), None)
    return None if at is None else "\n".join(lines[at + 1 :])


def _find_refusal(text: str) -> str | None:
    # perror(3) of a message that ends in a line feed puts the reason on the next line.
    lines = text.replace("\n: ", ": ").splitlines()
    return next((line.strip() for line in lines if _REFUSAL.match(line.strip())), None)


def _answer_or_refusal(text: str, facts: Answer, what: str) -> Answer | Missing:
    return facts or _refusal_reason(text, what)


def _refusal_reason(text: str, what: str) -> Missing:
    """Absent where the driver has no such thing, else unreadable; in ethtool's own words where it says anything."""
    words = _find_refusal(text)
    if words is None:
        return Missing("unreadable", f"ethtool printed no {what}")
    return Missing("absent" if any(sign in words for sign in _NOT_APPLICABLE) else "unreadable", words[:200])
