"""LLT's high-water marks: what their default is, where that can be known.

The default differs between releases: the manuals of 7.0 to 7.4 say 200 packets, 7.4.2 prints 1,000. A live value is
the default only where nothing in /etc/llttab sets the mark; a set-flow line is a value of the administrator's.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.llt import Llttab
from advisor.facts.rare_subjects import LLTTAB
from advisor.host.lltconfig_text import FLOW_ALIASES

HIGH_WATER_MARKS = ("highwater", "rporthighwater")
KNOWN_DEFAULTS = frozenset({200, 1000})
"""In packets, of both marks: the manuals of 7.0 to 7.4, and what 7.4.2 prints."""
_DOUBLED = frozenset(2 * one for one in KNOWN_DEFAULTS)
_KNOWN_TEXT = " and ".join(f"{one:,}" for one in sorted(KNOWN_DEFAULTS))


class MarkDefault(msgspec.Struct, frozen=True):
    """The default of a mark in packets; None where it cannot be known, ``why`` says the reason then."""

    packets: int | None
    why: str = ""


def mark_defaults(
    live: Mapping[str, int], llttab: Llttab | None, first: Mapping[str, int] = {}
) -> dict[str, MarkDefault]:
    """The default of each mark of ``live``, all in packets. ``first`` are the values before advisor's own transactions
    changed them. One release has one default for both marks: where they disagree, it is known for neither.
    """
    found = {
        name: _odd_default(name, llttab)
        or _mark_default(name, value, llttab.flow.get(name) if llttab else None, first.get(name))
        for name, value in live.items()
    }
    known = {name: one.packets for name, one in found.items() if one.packets is not None}
    if len(set(known.values())) > 1:
        shown = " and ".join(f"{name} {packets:,}" for name, packets in known.items())
        split = _unknown_default(f"a release has one default for both marks, and this host points to two ({shown})")
        return {name: split if name in known else one for name, one in found.items()}
    return found


def _odd_default(name: str, llttab: Llttab | None) -> MarkDefault | None:
    """Where a set-flow line of this mark is not understood; None where there is no such line."""
    for line in llttab.other if llttab else ():
        directive, *settings = line.split()
        names = [one.partition(":")[0] for one in settings]
        if directive == "set-flow" and name in [FLOW_ALIASES.get(one, one) for one in names]:
            return _unknown_default(f'the line "{line[:80]}" of {LLTTAB} does not set a number of packets')
    return None


def _mark_default(name: str, live: int, in_file: int | None, first: int | None) -> MarkDefault:
    """The default of a mark, by its live value and its set-flow line. A value that is twice a known default counts as
    that default doubled.
    """
    if live < 1:
        return _unknown_default(f"lltconfig prints {live} for {name}, which is not a number of packets")
    if first is not None and first != live:
        if first in KNOWN_DEFAULTS or live == 2 * first:
            return MarkDefault(first)
        return MarkDefault(first // 2) if first in _DOUBLED else _mark_default(name, live, in_file, None)
    if in_file is None:
        return MarkDefault(live) if live in KNOWN_DEFAULTS else _unknown_default(_describe_unsaved(name, live))
    if in_file == live:
        return MarkDefault(live // 2) if live in _DOUBLED else _unknown_default(_by_hand(name, live))
    lower, higher = sorted((live, in_file))
    if lower in KNOWN_DEFAULTS and higher == 2 * lower:
        return MarkDefault(lower)
    return _unknown_default(f"{name} is {live:,} live and {in_file:,} in /etc/llttab")


def _unknown_default(why: str) -> MarkDefault:
    return MarkDefault(None, f"{why}, so LLT's default cannot be known from this host (known defaults: {_KNOWN_TEXT})")


def _describe_unsaved(name: str, live: int) -> str:
    return f"{name} was set to {live:,} with lltconfig, and no set-flow line of /etc/llttab keeps it"


def _by_hand(name: str, live: int) -> str:
    return f"the administrator set {name} to {live:,} in /etc/llttab"
