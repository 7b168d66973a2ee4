"""``[net]``: offloads, coalescing, rings, channels and pause frames of links, and the size of a hash table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from advisor.facts.writers.commands import FEATURES
from advisor.host import Missing
from advisor.host.patterns import lazy_regex
from advisor.importers.made import Found, flatten_found
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned.context import Given, can_compare, parse_assignment
from advisor.importers.tuned.instances import rules_of
from advisor.profiles.profile import FieldSense, Only

_COALESCE = frozenset(
    {
        *("adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "rx-usecs-irq", "rx-frames-irq"),
        *("tx-usecs", "tx-frames", "tx-usecs-irq", "tx-frames-irq", "stats-block-usecs", "sample-interval"),
        *("pkt-rate-low", "rx-usecs-low", "rx-frames-low", "tx-usecs-low", "tx-frames-low"),
        *("pkt-rate-high", "rx-usecs-high", "rx-frames-high", "tx-usecs-high", "tx-frames-high"),
    }
)
# Group of TuneD → the keys that it knows, and the first word of our id.
_GROUPS = {
    "coalesce": (_COALESCE, "coalesce"),
    "pause": (frozenset({"autoneg", "rx", "tx"}), "pause"),
    "ring": (frozenset({"rx", "rx-mini", "rx-jumbo", "tx"}), "ring"),
    "channels": (frozenset({"rx", "tx", "other", "combined"}), "channels"),
}
_NUMBER = lazy_regex(r"\d{1,9}", re.ASCII)
OPTIONS = frozenset({"dynamic", "wake_on_lan", "nf_conntrack_hashsize", "features", "txqueuelen", "mtu", *_GROUPS})


def convert_net(given: Given) -> Found:
    key = given.key
    if key == "dynamic":
        is_on = given.text.strip().lower() in ("true", "1")
        why = "it says whether TuneD slows idle links down by itself"
        return given.line.ignored(why, "dynamic" if is_on else None, sets_nothing=not is_on)
    if key == "nf_conntrack_hashsize":
        return _hash_size(given)
    if key == "wake_on_lan":
        return given.line.manual("waking a host over the network: ethtool -s LINK wol, per link")
    if key in ("txqueuelen", "mtu"):
        return _number_setting(given, key)
    pairs = parse_link_parameters(given.text)
    if pairs is None:
        return given.swallowed("its names and values do not come in pairs, and TuneD sets none of them")
    if key == "features":
        return flatten_found(_feature_settings(given, name, value) for name, value in pairs.items())
    known, word = _GROUPS[key]
    unknown = sorted(pairs.keys() - known)
    if unknown:
        why = f"TuneD does not know {', '.join(unknown)[:80]} of {key}, and then sets none of the line"
        return given.swallowed(why, "unknown")
    # All pairs of a line, which TuneD gives to a link in one command: what a link takes otherwise is its own.
    taken = {link: _as_taken(given, link, key, pairs) for link in given.instance.devices or ()}
    others = {link: made for link, made in taken.items() if made != pairs}
    found = [
        one
        for name, value in pairs.items()
        for one in _on_rest(given, f"{word}.{name}", value.lower() if value.lower() in ("on", "off") else value, others)
    ]
    for link, made in others.items():
        if isinstance(made, str):
            found.append(given.swallowed(f"{link}: {made}"))
            continue
        only = Only(names=(link,))
        note = f"{link} has no {' or '.join(pairs)} channels, and TuneD then takes the other kind"
        for name, value in made.items():
            found.append(
                given.line.wanted(f"link:{{link}}:{word}.{name}", value, for_each="links", only=only, note=note)
            )
    return found


def parse_link_parameters(text: str) -> dict[str, str] | None:
    """``rx on, tx off`` or ``rx: on; tx: off`` as pairs; None for an odd number of words."""
    words = re.sub(r"(:\s*)|(\s+)|(\s*;\s*)|(\s*,\s*)", " ", text).split()
    return None if len(words) % 2 else dict(zip(words[::2], words[1::2], strict=True))


def _on_rest(given: Given, attribute: str, value: str, others: Collection[str]) -> list[ImportedSetting]:
    """On the section's links without those others."""
    if not others:
        return [_on_links(given, attribute, value)]
    names = tuple(name for name in given.instance.devices or () if name not in others)
    only = Only(names=names)
    return [given.line.wanted(f"link:{{link}}:{attribute}", value, for_each="links", only=only)] if names else []


def _as_taken(given: Given, link: str, key: str, pairs: Mapping[str, str]) -> Mapping[str, str] | str:
    """What TuneD makes of a line on one link, or why it comes to nothing there."""
    group = {"ring": "rings", "channels": "channels"}.get(key)
    answer = given.host.ethtool(link, group) if group else None
    if answer is None or isinstance(answer, Missing) or not all(map(_NUMBER.fullmatch, pairs.values())):
        return pairs
    if key == "channels" and answer.get(next(iter(pairs))) == 0:
        # As many to receive and to send by where there are none that do both, and the other way round.
        values = list(pairs.values())
        if "combined" in pairs:
            return {"rx": values[0], "tx": values[0]}
        if len(values) == 1:
            return "it has no such channels, and TuneD breaks off there"
        return {"combined": str(max(int(values[0]), int(values[1])))}
    # Of a single value the plan says so itself.
    if not given.is_faithful or len(pairs) == 1:
        return pairs
    limits = ((name, value, answer.get(f"{name.replace('-', '_')}_max")) for name, value in pairs.items())
    refused = [f"{name} at most {most}" for name, value, most in limits if isinstance(most, int) and int(value) > most]
    return f"its driver takes {' and '.join(refused)}, and refuses the line as a whole" if refused else pairs


def _feature_settings(given: Given, name: str, value: str) -> Found:
    if value.lower() not in ("on", "off"):
        return given.swallowed(f"{name[:40]} is to be {value[:40]!r}, which is neither on nor off")
    if name == "tx":
        return given.line.manual("tx stands for several checksum offloads, of which a driver has some")
    names = FEATURES.get(name, (name,))
    return [_on_links(given, f"feature.{one}", value.lower()) for one in names]


def _number_setting(given: Given, key: str) -> ImportedSetting:
    text = given.text.strip()
    written = parse_assignment(text)
    if given.is_faithful and not can_compare(text, "1"):
        return given.line.ignored(f"TuneD takes {text[:40]!r} for no number and sets nothing", "refused")
    if not re.fullmatch(r"[0-9]{1,9}", written.value):
        return given.swallowed("it is no whole number")
    return _on_links(given, key, written.value, written.sense)


def _hash_size(given: Given) -> ImportedSetting:
    text = given.text.strip()
    if not re.fullmatch(r"[0-9]{1,12}", text):
        return given.swallowed("it is no whole number")
    note = "the module nf_conntrack must be there" if not given.host.is_dir("/sys/module/nf_conntrack") else ""
    path = "/sys/module/nf_conntrack/parameters/hashsize"
    sense: FieldSense = "exactly" if given.is_faithful else "at-least"
    return given.line.wanted((f"sysfs:{path}", "module:nf_conntrack:hashsize"), text, sense=sense, note=note)


def _on_links(given: Given, attribute: str, value: str, sense: FieldSense = "exactly") -> ImportedSetting:
    """On the section's links: by pattern, or by name where patterns do not say all."""
    rules = rules_of(given.instance.unit)
    if rules.is_all and not given.instance.is_shared:
        only = None
    elif rules.patterns is None or given.instance.is_shared:
        names = given.instance.devices or ()
        if not names:
            return given.line.ignored("no link of this host is left for it", "inert")
        only = Only(names=names)
    else:
        only = Only(names=rules.patterns)
    return given.line.wanted(f"link:{{link}}:{attribute}", value, sense=sense, for_each="links", only=only)
