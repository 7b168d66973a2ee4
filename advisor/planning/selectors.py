"""Whether a thing is one that a line's ``only`` asks for, and which a person asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

import msgspec

from advisor.errors import UsageError
from advisor.facts.network.links import Link
from advisor.planning.records import PlanTarget, SkipState
from advisor.profiles.profile import Only
from advisor.tunables import parse_tunable
from advisor.tunables.udev import DeviceClass

# What ``for-each`` selects: one link, unit or IRQ, with its value or the reason why it cannot have one.


class Selected(msgspec.Struct, frozen=True):
    """``names`` fill the places of the tunable's id; ``value`` is the computed value where the profile computes one."""

    names: Mapping[str, str]
    value: str | None = None
    why: str = ""
    rank: int = 0
    refusal: str | None = None
    state: SkipState = "not-applicable"
    before: str | None = None
    may_be_left_out: bool = False
    """The line is for all such devices, and nobody named this one: where it cannot take the value, the others go on."""


Thing = TypeVar("Thing")

# What is judged, and whether it fits; None where that is unknown.
Fit = tuple[str, bool | None]


def select_named(
    things: Sequence[Thing], names_of: Callable[[Thing], Iterable[str]], asked: object, what: str
) -> tuple[Thing, ...]:
    """Those that a pattern of ``asked`` fits; all where nothing is asked for. Raises UsageError for a name that is not
    there."""
    patterns = asked if isinstance(asked, tuple) else ()
    if not patterns:
        return tuple(things)
    for pattern in patterns:
        is_there = any(matches_any(names_of(thing), (pattern,)) for thing in things)
        if not is_there and not any(sign in pattern for sign in "*?["):
            listed = ", ".join(next(iter(names_of(thing))) for thing in things) or "none"
            raise UsageError(f"there is no {what} {pattern!r} on this host", hint=f"{what}s: {listed}")
    return tuple(thing for thing in things if matches_any(names_of(thing), patterns))


def matches_any(names: Iterable[str], patterns: Iterable[str]) -> bool:
    """Whether one of the names fits one of the shell patterns."""
    wanted = tuple(patterns)
    return any(fnmatchcase(name, pattern) for name in names for pattern in wanted)


def name_fit(names: Iterable[str], only: Only) -> Fit:
    return "its name", matches_any(names, only.names) if only.names else True


def word_fit(what: str, word: str | None, wanted: tuple[str, ...]) -> Fit:
    return f"its {what}", True if not wanted else None if word is None else word in wanted


def judge_link(link: Link, only: Only) -> str | None:
    """As `combine_fits`."""
    speed = link.speed_mbps
    is_fast = True if only.min_mbps is None else None if speed is None else speed >= only.min_mbps
    return combine_fits(
        name_fit((link.name,), only),
        word_fit("kind", None if link.kind == "unknown" else link.kind, only.kinds),
        word_fit("driver", link.driver, only.drivers),
        ("its speed", is_fast),
    )


def combine_fits(*judged: Fit) -> str | None:
    """None for what is not meant, the reason where that is unknown, else empty."""
    if any(fit is False for _, fit in judged):
        return None
    unknown = [what for what, fit in judged if fit is None]
    return f"{', '.join(unknown)} could not be read" if unknown else ""


# Classes of devices of one plan: two rules that would set one value of the same device.


def class_clashes(targets: Iterable[PlanTarget]) -> dict[str, str]:
    """Class settings of which a device could have two: id → the reason."""
    ids = dict.fromkeys(one.tunable for one in targets if one.tunable.startswith("udev:"))
    classes = [one for one in map(parse_tunable, ids) if isinstance(one, DeviceClass)]
    return {
        one.id: f"a device can be of this class and of {other.id}, and has one value: ask for one"
        for one in classes
        for other in classes
        if one is not other and one.overlaps(other)
    }
