"""What the values of a link's driver have in common, whichever option of ethtool(8) shows and sets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from advisor.host import Host, Missing, Probe, ReadEthtool, SetEthtool, Step, observe
from advisor.host.ethtool import answer_key
from advisor.host.patterns import lazy_regex
from advisor.host.steps import ETHTOOL_OPTIONS, DriverGroup
from advisor.tunables.edits import FileEdit
from advisor.tunables.link_rules import run_rule
from advisor.tunables.preflight import Preflight, SideEffect
from advisor.tunables.tunable import DirectValue

SWITCH = ("on", "off")
_NUMBER = lazy_regex(r"0|[1-9][0-9]{0,8}")


class DriverValue(DirectValue, frozen=True):
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

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
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
