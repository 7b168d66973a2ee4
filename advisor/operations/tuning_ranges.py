"""Ranges of a search: ``sysctl:vm.swappiness=10..60`` as a finite list of candidates, within limits that are cited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from advisor.errors import UsageError
from advisor.facts.settings import find_setting
from advisor.host import Host, observe
from advisor.host.patterns import lazy_regex
from advisor.profiles.profile import Parameter, Profile, Wanted, load, profile_paths
from advisor.profiles.requested import is_line_about, load_requested
from advisor.proof.tuning_arms import Offer
from advisor.tunables import parse_tunable

MAX_VALUES = 16
"""Of one range."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NUMBER = r"([0-9]{1,15})([kmgKMG]?)"
_RANGE = lazy_regex(rf"([^=<>\s]{{1,200}})={_NUMBER}\.\.{_NUMBER}(?:/([x+]){_NUMBER})?", re.ASCII)
_DIGITS = lazy_regex(r"[0-9]{1,15}", re.ASCII)
_PLACE = lazy_regex(r"\{(\w+)\}")


class ValueRange(msgspec.Struct, frozen=True):
    """A range as it was asked for: ``step`` is a factor or, with ``is_linear``, a difference."""

    tunable: str
    low: int
    high: int
    step: int
    is_linear: bool

    @property
    def values(self) -> tuple[int, ...]:
        """Each value from ``low`` on by the step, and ``high``."""
        found = [self.low]
        while found[-1] < self.high and len(found) <= MAX_VALUES:
            found.append(min(self.high, found[-1] + self.step if self.is_linear else found[-1] * self.step))
        return tuple(found)


class CitedLimit(msgspec.Struct, frozen=True):
    """The numbers that a source allows for a tunable."""

    low: int
    high: int
    source: str


def parse_range(word: str) -> ValueRange:
    """Return ``TUNABLE=LOW..HIGH``, by default doubling, with ``/xFACTOR`` or ``/+STEP``; units K, M, G are binary.
    Raises UsageError."""
    found = _RANGE.fullmatch(word)
    if found is None:
        raise UsageError(
            f"--range {word[:80]}: expected TUNABLE=LOW..HIGH",
            hint="such as sysctl:net.core.rmem_max=1M..16M, sysctl:vm.swappiness=10..60/+10 or …=1M..16M/x4",
        )
    parse_tunable(found[1])
    low, high = (int(found[at]) * _UNITS[found[at + 1].lower()] for at in (2, 4))
    is_linear = found[6] == "+"
    step = int(found[7]) * _UNITS[found[8].lower()] if found[6] else 2
    if low >= high:
        raise UsageError(f"--range {word}: expected the smaller value first")
    if step < (1 if is_linear else 2) or (low == 0 and not is_linear):
        raise UsageError(
            f"--range {word}: these steps do not lead from {low} to {high}",
            hint="/x2 doubles from a value above 0; /+10 adds 10",
        )
    asked = ValueRange(found[1], low, high, step, is_linear)
    if len(asked.values) > MAX_VALUES:
        raise UsageError(f"--range {word}: expected at most {MAX_VALUES} values", hint="larger steps: /x4, or /+STEP")
    return asked


def range_offers(word: str, host: Host) -> Iterator[Offer]:
    """Yield a candidate for each value of a range, with the source of its limits. Raises UsageError for a range that
    is not inside the limits of one source, with those that there are."""
    asked = parse_range(word)
    limits = list(cited_limits(asked.tunable, host))
    inside = next((one for one in limits if one.low <= asked.low and asked.high <= one.high), None)
    if inside is None:
        raise UsageError(
            f"--range {word}: no source allows all of it"
            if limits
            else f"--range {word}: no source says which values it may have",
            hint="; ".join(f"{one.low} to {one.high}: {one.source}" for one in limits)
            or f"name the values: --candidates {asked.tunable}=VALUE",
        )
    source = f"range {asked.low} to {asked.high}, within {inside.low} to {inside.high}: {inside.source}"
    for value in asked.values:
        text = f"{asked.tunable}={value}"
        yield Offer(text, load_requested([text])[0], source)


def cited_limits(tunable: str, host: Host) -> Iterable[CitedLimit]:
    """Yield the limits of a tunable of one number: those that the kernel documents, those of the parameter by which a
    profile sets it, and the numbers between the present one and those that profiles set."""
    key = tunable.removeprefix("sysctl:")
    setting = find_setting(key) if key != tunable else None
    if setting is not None and setting.low is not None and setting.high is not None:
        yield CitedLimit(setting.low, setting.high, setting.bounds_source)
    lines = [
        (profile, line)
        for profile in map(load, profile_paths())
        for line in profile.tunables
        if is_line_about(line, tunable) and isinstance(line.value, str)
    ]
    for profile, line in lines:
        limit = _parameter_limit(profile, line)
        if limit is not None:
            yield limit
    live = observe(host, parse_tunable(tunable).probe)
    fixed = {int(str(line.value)): profile for profile, line in lines if _is_number(str(line.value))}
    if isinstance(live, str) and _is_number(live) and fixed:
        numbers = [int(live), *fixed]
        named = ", ".join(f"profile {profile.name} ({value})" for value, profile in sorted(fixed.items()))
        yield CitedLimit(min(numbers), max(numbers), f"from the present value {live} to {named}")


def _is_number(text: str) -> bool:
    return bool(_DIGITS.fullmatch(text))


def _parameter_limit(profile: Profile, line: Wanted) -> CitedLimit | None:
    place = _PLACE.fullmatch(str(line.value))
    parameter: Parameter | None = profile.parameters.get(place[1]) if place else None
    if parameter is None or parameter.minimum is None or parameter.maximum is None:
        return None
    sources = line.sources or profile.sources
    source = f"profile {profile.name}, parameter {place[1] if place else ''} ({'; '.join(sources)})"
    return CitedLimit(parameter.minimum, parameter.maximum, source)
