"""Values of a link's driver, whichever option of ethtool(8) shows and sets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from advisor.host import Host, Missing, Probe, ReadEthtool, SetEthtool, Step, observe
from advisor.host.ethtool import answer_key
from advisor.host.patterns import lazy_regex
from advisor.host.steps import ETHTOOL_OPTIONS, DriverGroup
from advisor.tunables.edits import FileEdit
from advisor.tunables.kind import Risk, Tunable
from advisor.tunables.link_persist import run_rule
from advisor.tunables.preflight import Preflight, SideEffect

SWITCH = ("on", "off")
_NUMBER = lazy_regex(r"0|[1-9][0-9]{0,8}")


class DriverValue(Tunable, frozen=True):
    """One value of one group; a kind gives the group, its word in ids, and its keys."""

    link: str
    key: str

    group: ClassVar[DriverGroup]
    word: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    switches: ClassVar[frozenset[str]] = frozenset()
    unit: ClassVar[str] = ""
    id_form = "link:{self.link}:{self.word}.{self.key}"

    @property
    def probe(self) -> Probe:
        return ReadEthtool(self.link, self.group, self.key)

    def check_value(self, value: str) -> str | None:
        if self.key in self.switches:
            return None if value in SWITCH else "is not on or off"
        return None if _NUMBER.fullmatch(value) else f"is not a number of {self.unit}"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (SetEthtool(self.link, self.group, self.key, value),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return run_rule(host, self.link, "ethtool", f"{ETHTOOL_OPTIONS[self.group].upper()} $name {self.key}", value)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if before == after:
            return Preflight()
        return Preflight(
            refusal=self.refusal(host, after), state="incapable", side_effects=tuple(self.find_side_effects(host))
        )

    def refusal(self, host: Host, value: str) -> str | None:
        """Why this driver would not take the value: it says how large rings and channels can be."""
        answer = host.ethtool(self.link, self.group)
        limit = None if isinstance(answer, Missing) else answer.get(f"{answer_key(self.group, self.key)}_max")
        return f"its driver allows at most {limit}" if isinstance(limit, int) and int(value) > limit else None

    def find_side_effects(self, host: Host) -> Iterator[SideEffect]:
        """The other values of the group: drivers move one with another."""
        for key in self.keys:
            if key != self.key:
                yield from observe_side_effect(host, type(self)(self.link, key))


def observe_side_effect(host: Host, one: DriverValue) -> Iterator[SideEffect]:
    """The tunable with its value now; nothing where the driver has no such value."""
    live = observe(host, one.probe)
    if isinstance(live, str):
        yield SideEffect(one.id, live, one.probe, one.make_steps(live))


class LinkRing(DriverValue, frozen=True):
    """``link:IFACE:ring.KEY`` — the size of a link's ring in descriptors (ethtool -g), persisted in a udev rule.

    KEY is rx, rx-mini, rx-jumbo or tx; a driver has those for which ethtool shows a maximum, and a larger one is
    refused. Many drivers take the link down for a moment to make new rings.
    """

    risk = "link"
    group = "rings"
    word = "ring"
    keys = ("rx", "rx-mini", "rx-jumbo", "tx")
    unit = "descriptors"


class LinkCoalesce(DriverValue, frozen=True):
    """``link:IFACE:coalesce.KEY`` — when a link's interrupts come (ethtool -c), persisted in a udev rule.

    KEY is rx-usecs or tx-usecs, the microseconds after a packet; rx-frames or tx-frames, the number of packets;
    adaptive-rx or adaptive-tx, on where the driver finds the values by itself. A driver has those for which ethtool
    shows a value.
    """

    group = "coalesce"
    word = "coalesce"
    keys = ("adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "tx-usecs", "tx-frames")
    switches = frozenset({"adaptive-rx", "adaptive-tx"})
    unit = "microseconds or frames"


class LinkPause(DriverValue, frozen=True):
    """``link:IFACE:pause.KEY`` — Ethernet flow control of a link, on or off (ethtool -a), persisted in a udev rule.

    KEY is autoneg, rx or tx. Most drivers renegotiate the link.
    """

    risk = "link"
    group = "pause"
    word = "pause"
    keys = ("autoneg", "rx", "tx")
    switches = frozenset({"autoneg", "rx", "tx"})


# NETIF_F_UPPER_DISABLES: switched off on a bond or VLAN, it goes off on the links below, and not on again.
_HANDED_DOWN = "rx-lro"


class LinkFeature(DriverValue, frozen=True):
    """``link:IFACE:feature.NAME`` — an offload of a link, on or off (ethtool -k), persisted in a udev rule.

    NAME is the kernel's own, such as tx-tcp-segmentation or rx-gro: the words that ethtool(8) takes too. What ethtool
    shows as [fixed] is refused. Features hang together (no segmentation without checksums): those that are on are
    recorded, so that a rollback finds what was switched off along with one.
    """

    group = "features"
    word = "feature"
    keys = ()

    @property
    def risk(self) -> Risk:
        # Nothing leaves a link that is looped back.
        return "link" if self.key == "loopback" else "none"

    @staticmethod
    def is_name(word: str) -> bool:
        return bool(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,30}", word))

    def check_value(self, value: str) -> str | None:
        return None if value in SWITCH else "is not on or off"

    def refusal(self, host: Host, value: str) -> str | None:
        changeable, requested = host.ethtool(self.link, "changeable"), host.ethtool(self.link, "requested")
        if isinstance(changeable, Missing) or isinstance(requested, Missing):
            return None
        if not changeable.get(self.key):
            return "it is [fixed]: the driver does not let it be changed"
        if requested.get(self.key) == (value == "on"):
            # Asked for once more it would stay as it is, and a rollback would take the earlier request away.
            return f"{value} is requested already: blocked by the kernel or another feature"
        return None

    def find_side_effects(self, host: Host) -> Iterator[SideEffect]:
        """Every other feature that is on and can be changed; of one that links hand down, also that of those below."""
        for key in _changeable_features(host, self.link):
            if key != self.key:
                yield from observe_side_effect(host, LinkFeature(self.link, key))
        if self.key == _HANDED_DOWN:
            # The links that this one is made of, and theirs in turn, sorted.
            found: set[str] = set()
            pending = [self.link]
            while pending:
                names = host.names(f"/sys/class/net/{pending.pop()}")
                lower = {name.removeprefix("lower_") for name in names if name.startswith("lower_")} - found
                found |= lower
                pending += lower
            for link in tuple(sorted(found)):
                if self.key in _changeable_features(host, link):
                    yield from observe_side_effect(host, LinkFeature(link, self.key))


def _changeable_features(host: Host, link: str) -> tuple[str, ...]:
    features, changeable = host.ethtool(link, "features"), host.ethtool(link, "changeable")
    if isinstance(features, Missing) or isinstance(changeable, Missing):
        return ()
    return tuple(key for key, on in features.items() if on and changeable.get(key))


# What the kernel changes with the forwarding of packets besides other sysctls, which `sysctl_group` names.

_KEY = lazy_regex(r"net\.(?:ipv4\.(?P<short>ip_forward)|(?P<version>ipv[46])\.conf\.(?P<link>[^.]+)\.forwarding)")
_LRO = "rx-lro"


def forwarding_preflight(host: Host, key: str, before: str) -> Preflight:
    """What goes beyond other sysctls where ``key`` is a switch of forwarding; nothing for all other keys."""
    found = _KEY.fullmatch(key)
    if found is None or before != "0":
        return Preflight()
    is_all = found["short"] is not None or found["link"] == "all"
    links = host.names("/sys/class/net") if is_all else (found["link"].replace("/", "."),)
    siblings = tuple(_lro_side_effects(host, links))
    names = ", ".join(one.tunable.split(":")[1] for one in siblings)
    note = (
        f"the kernel switches large receive offload off on {names} where it begins to forward; a rollback restores it"
    )
    return Preflight(side_effects=siblings, notes=(note,) if siblings else ())


def _lro_side_effects(host: Host, links: tuple[str, ...]) -> Iterator[SideEffect]:
    for name in links:
        changeable = host.ethtool(name, "changeable")
        if not isinstance(changeable, Missing) and changeable.get(_LRO):
            yield from (one for one in observe_side_effect(host, LinkFeature(name, _LRO)) if one.before == "on")
