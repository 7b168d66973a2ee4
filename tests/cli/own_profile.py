"""A profile of values that a test sets in namespaces of its own."""

from __future__ import annotations

from collections.abc import Mapping

_HEAD = """name = "{name}"
title = "{name}"
summary = "Values."
helps-when = "Here."
hurts-when = "Elsewhere."
sources = ["a test"]

[proof]
toggle = "T0"
claims = ["{claim}"]
where = "Here."
"""
_VALUE = """
[[tunables]]
tunable = "{tunable}"
value = "{value}"
why = "A test."
hurts-when = "Elsewhere."
sources = ["a test"]
"""


def profile_text(name: str, values: Mapping[str, object], claim: str = "infoscale.4k-rand-r100") -> str:
    rows = (_VALUE.format(tunable=tunable, value=value) for tunable, value in values.items())
    return _HEAD.format(name=name, claim=claim) + "".join(rows)
