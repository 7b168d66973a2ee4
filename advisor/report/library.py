"""The profile library as text."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.profiles.profile import Profile, Wanted
from advisor.report.layout import Page, Span, columns, padded
from advisor.report.profile_words import (
    GUARDS,
    condition_words,
    fill_template,
    parameter_words,
    proof_words,
    wanted_value,
)


def profile_list_text(profiles: Sequence[Profile], *, width: int, color: bool) -> str:
    """Each profile with its title and what it does."""
    page = Page(width, color=color)
    if not profiles:
        page.add("There are no profiles.")
        return page.text
    size = max(columns(profile.name) for profile in profiles) + 2
    for profile in profiles:
        page.add_cells((padded(Span(profile.name, "bold"), size),), (profile.title,), indent=0)
        page.add_cells((" " * size,), (Span(profile.summary, "dim"),), indent=0)
    page.blank()
    page.add("All of one:", " ", Span("advisor profiles show NAME", "cyan"), hang=2)
    page.add("What it means on this host:", " ", Span("advisor plan NAME", "cyan"), hang=2)
    return page.text


def profile_text(profile: Profile, *, width: int, color: bool) -> str:
    """One profile whole."""
    page = Page(width, color=color)
    page.add(Span(profile.name, "bold"), f": {profile.title}", hang=2)
    page.add(profile.summary)
    page.blank()
    page.labelled([("helps when", (profile.helps_when,)), ("hurts when", (profile.hurts_when,))], indent=0)
    if profile.tunables:
        page.heading("Sets")
    for wanted in profile.tunables:
        _add_tunable(page, profile, wanted)
    if profile.parameters:
        page.heading("Parameters", " (--set NAME=VALUE)")
    for name, parameter in profile.parameters.items():
        page.add(Span(name, "bold"), f": {parameter_words(parameter)}", indent=2, hang=4)
        page.add(parameter.about, indent=6)
    page.bulleted(
        "Does not apply where",
        (
            [condition.reason, Span(" " + f"(needs {condition_words(condition)})", "dim")]
            for condition in profile.conditions
        ),
    )
    page.bulleted("Budget", (GUARDS[guard] for guard in profile.guards))
    page.heading("Proof")
    if profile.proof is None:
        page.add("None is declared: advisor prove needs --workload.", indent=2, hang=2)
    else:
        page.labelled(
            [
                ("claims", (", ".join(profile.proof.claims) or "none",)),
                ("shows on", (profile.proof.where,)),
                ("how", (proof_words(profile.proof),)),
            ]
        )
    if profile.notes:
        page.heading("Notes")
        page.add(profile.notes, indent=2)
    page.heading("Sources")
    for source in profile.sources:
        page.bullet(source)
    page.blank()
    page.add("What it means on this host:", " ", Span(f"advisor plan {profile.name}", "cyan"), hang=2)
    return page.text


def _add_tunable(page: Page, profile: Profile, wanted: Wanted) -> None:
    each = f", for each of the {wanted.for_each.replace('_', ' ')}" if wanted.for_each else ""
    value = Span(wanted_value(profile, wanted), "green")
    page.add(Span(fill_template(profile, wanted.tunable), "bold"), ": ", value, each, indent=2, hang=4)
    page.labelled(
        [("why", (wanted.why,)), ("hurts when", (wanted.hurts_when,)), ("sources", ("; ".join(wanted.sources),))],
        indent=6,
    )
