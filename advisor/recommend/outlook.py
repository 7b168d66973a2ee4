"""What each profile would do on this host: its plan, or why there is none."""

from __future__ import annotations

import msgspec

from advisor.errors import AdvisorError, InvalidInputError, RefusedError
from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile, load, profile_paths


class Outlook(msgspec.Struct, frozen=True):
    """A profile and its plan here. Without one, ``why`` says why there is none, and ``hint`` what would help.

    ``profile`` is None where its file is broken; ``is_refused`` where a budget of this host does not hold.
    """

    name: str
    profile: Profile | None = None
    plan: Plan | None = None
    why: str = ""
    hint: str | None = None
    is_refused: bool = False


def outlooks(host: Host, facts: Facts) -> tuple[Outlook, ...]:
    """The outlook of every profile of the library, by name. Changes nothing."""
    return tuple(_profile_outlook(host, facts, name) for name in profile_paths())


def _profile_outlook(host: Host, facts: Facts, name: str) -> Outlook:
    try:
        profile = load(name)
    except InvalidInputError as error:
        return Outlook(name, why=error.message, hint=error.hint)
    try:
        return Outlook(name, profile, plan_profiles(host, [name], {}, facts=facts, foresees=False))
    except AdvisorError as error:
        # A memory budget that does not hold, or a parameter without a default: the others still have their turn.
        is_refused = isinstance(error, RefusedError)
        return Outlook(name, profile, why=error.message, hint=error.hint, is_refused=is_refused)
