"""Another program that writes what a plan or a transaction writes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class OtherWriter(msgspec.Struct, frozen=True):
    """Another program at work here that writes values or files of the kinds that ours are of.

    ``otherwise`` are the tunables of the plan that it sets to another value, with that value; None where what it sets
    could not be found out. ``note`` says what it does, and how to resolve the conflict.
    """

    who: str
    note: str
    otherwise: Mapping[str, str] | None = msgspec.field(default_factory=dict)
    files: tuple[str, ...] = ()
