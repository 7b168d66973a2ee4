"""``advisor explain ID``: a rule, a profile or a tunable, told the same way."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from advisor.errors import UsageError
from advisor.profiles import Profile, Wanted, load, profile_paths
from advisor.report.handling import Handling, handling
from advisor.report.layout import Page, Span
from advisor.report.profile_words import (
    GUARDS,
    condition_words,
    filled,
    matches,
    parameter_words,
    proof_words,
    wanted_value,
)
from advisor.rules import RULES, Rule
from advisor.tunables import KINDS

MAX_MATCHES: Final = 3


class Explanation(msgspec.Struct, frozen=True):
    """What an id stands for. ``details`` are further labels and texts, in order; a label may come again."""

    id: str
    kind: Literal["rule", "profile", "tunable"]
    title: str
    what: str
    why: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    details: tuple[tuple[str, str], ...]


def explain(identity: str) -> Explanation:
    """What this id stands for. Raises UsageError, whose hint names the closest ids, where it stands for nothing."""
    if identity.partition(":")[0] in KINDS and ":" in identity:
        return _tunable(identity)
    rule = next((rule for rule in RULES if rule.id == identity), None)
    if rule is not None:
        return _rule(rule)
    if identity in profile_paths():
        return _profile(load(identity))
    raise UsageError(f"{identity!r} is no rule, profile or tunable", hint=_suggestion(identity))


def _suggestion(identity: str) -> str:
    close = _close(identity, (*(rule.id for rule in RULES), *profile_paths(), *_known_tunables()))
    if close:
        return f"did you mean {' or '.join(close)}?"
    kinds = ", ".join(f"{kind}:" for kind in KINDS)
    return f"advisor profiles lists the profiles, advisor scan names rules, a tunable begins with one of {kinds}"


def _close(identity: str, known: Iterable[str], *, cutoff: float = 0.5) -> list[str]:
    return difflib.get_close_matches(identity, dict.fromkeys(known), n=MAX_MATCHES, cutoff=cutoff)


def _all_profiles() -> tuple[Profile, ...]:
    return tuple(map(load, profile_paths()))


def _known_tunables() -> tuple[str, ...]:
    return tuple(wanted.tunable for profile in _all_profiles() for wanted in profile.tunables if not wanted.for_each)


def _rule(rule: Rule) -> Explanation:
    return Explanation(
        id=rule.id,
        kind="rule",
        title=rule.title,
        what=rule.what,
        why=rule.why,
        helps_when=rule.helps_when,
        hurts_when=rule.hurts_when,
        sources=rule.sources,
        details=(),
    )


def _profile(profile: Profile) -> Explanation:
    return Explanation(
        id=profile.name,
        kind="profile",
        title=profile.title,
        what=profile.summary,
        why=" ".join(dict.fromkeys(wanted.why for wanted in profile.tunables)),
        helps_when=profile.helps_when,
        hurts_when=profile.hurts_when,
        sources=profile.sources,
        details=_profile_details(profile),
    )


def _profile_details(profile: Profile) -> tuple[tuple[str, str], ...]:
    sets = [("sets", f"{filled(profile, one.tunable)}: {wanted_value(profile, one)}") for one in profile.tunables]
    parameters = [
        ("parameter", f"{name}: {parameter_words(one)}. {one.about}") for name, one in profile.parameters.items()
    ]
    conditions = [("needs", f"{condition_words(one)}; else: {one.reason}") for one in profile.conditions]
    guards = [("budget", GUARDS[guard]) for guard in profile.guards]
    proof = [] if profile.proof is None else [("proof", f"{profile.proof.where} {proof_words(profile.proof)}")]
    notes = [("notes", profile.notes)] if profile.notes else []
    return (*sets, *parameters, *conditions, *guards, *proof, *notes)


def _tunable(identity: str) -> Explanation:
    wanting = [(profile, one) for profile in _all_profiles() for one in profile.tunables if matches(one, identity)]
    return Explanation(
        id=identity,
        kind="tunable",
        title=handling(identity).what,
        what="",
        why=_by_profile((profile, one.why) for profile, one in wanting) or "No profile of this host sets it.",
        helps_when=_by_profile((profile, profile.helps_when) for profile, _ in wanting),
        hurts_when=_by_profile((profile, one.hurts_when) for profile, one in wanting),
        sources=tuple(dict.fromkeys(source for _, one in wanting for source in one.sources)),
        details=_tunable_details(identity, wanting),
    )


def _by_profile(texts: Iterable[tuple[Profile, str]]) -> str:
    """The text; where several profiles have one, each after its profile's name."""
    listed = list(texts)
    if len(listed) == 1:
        return listed[0][1]
    return " ".join(f"{profile.name}: {text}" for profile, text in listed)


def _tunable_details(identity: str, wanting: list[tuple[Profile, Wanted]]) -> tuple[tuple[str, str], ...]:
    # A sysctl's file is named after the profile that sets it.
    handled = [_handled(identity, *both) for both in wanting] or [handling(identity)]
    one = handled[0]
    set_by = [("profile", f"{profile.name} wants {wanted_value(profile, wanted)}") for profile, wanted in wanting]
    similar = [] if wanting else [("similar", name) for name in _close(identity, _known_tunables(), cutoff=0.75)]
    rows = (
        ("takes effect", one.takes_effect),
        ("risk", one.risk),
        ("read by", one.read_by),
        ("set by", one.setting()),
        *(("persists", _persists(each)) for each in handled),
    )
    return (*set_by, *similar, *((label, text) for label, text in rows if text))


def _handled(identity: str, profile: Profile, wanted: Wanted) -> Handling:
    value = filled(profile, wanted.value) if isinstance(wanted.value, str) else None
    return handling(identity, profile=profile.name, value=value)


def _persists(one: Handling) -> str:
    return f"in {one.persists_in}, as: {one.line}" if one.persists_in else f"no: {one.persist_note}"


def explanation_text(found: Explanation, *, width: int, color: bool) -> str:
    """The explanation for a person, in at most ``width`` columns."""
    page = Page(width, color=color)
    page.add(Span(found.id, "bold"), Span(f" ({found.kind})", "dim"), hang=2)
    page.add(found.title)
    page.blank()
    rows = (
        ("what", found.what),
        ("why", found.why),
        ("helps when", found.helps_when),
        ("hurts when", found.hurts_when),
    )
    page.labelled([(label, (text,)) for label, text in rows if text], indent=0)
    page.blank()
    page.labelled([(label, (text,)) for label, text in _without_repeats(found.details)], indent=0)
    if found.sources:
        page.heading("Sources")
        for source in found.sources:
            page.bullet(source)
    return page.text


def _without_repeats(details: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """A label is shown where it comes first."""
    rows: list[tuple[str, str]] = []
    last = ""
    for label, text in details:
        rows.append(("" if label == last else label, text))
        last = label
    return rows
