"""The profile library as text."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.i18n import _, english_page
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


@english_page
def profile_list_text(profiles: Sequence[Profile], *, width: int, color: bool) -> str:
    """Each profile with its title and what it does."""
    page = Page(width, color=color)
    if not profiles:
        page.add(_("There are no profiles."))
        return page.text
    size = max(columns(profile.name) for profile in profiles) + 2
    for profile in profiles:
        page.add_cells((padded(Span(profile.name, "bold"), size),), (profile.title,), indent=0)
        page.add_cells((" " * size,), (Span(profile.summary, "dim"),), indent=0)
    page.blank()
    page.add(_("All of one:"), " ", Span("advisor profiles show NAME", "cyan"), hang=2)
    page.add(_("What it means on this host:"), " ", Span("advisor plan NAME", "cyan"), hang=2)
    return page.text


@english_page
def profile_text(profile: Profile, *, width: int, color: bool) -> str:
    """One profile whole."""
    page = Page(width, color=color)
    page.add(Span(profile.name, "bold"), f": {profile.title}", hang=2)
    page.add(profile.summary)
    page.blank()
    page.labelled([(_("helps when"), (profile.helps_when,)), (_("hurts when"), (profile.hurts_when,))], indent=0)
    if profile.tunables:
        page.heading(_("Sets"))
    for wanted in profile.tunables:
        _add_tunable(page, profile, wanted)
    if profile.parameters:
        page.heading(_("Parameters"), " (--set NAME=VALUE)")
    for name, parameter in profile.parameters.items():
        page.add(Span(name, "bold"), f": {parameter_words(parameter)}", indent=2, hang=4)
        page.add(parameter.about, indent=6)
    page.bulleted(
        _("Does not apply where"),
        (
            [condition.reason, Span(" " + _("(needs {condition})").format(condition=condition_words(condition)), "dim")]
            for condition in profile.conditions
        ),
    )
    page.bulleted(_("Budget"), (GUARDS[guard] for guard in profile.guards))
    page.heading(_("Proof"))
    if profile.proof is None:
        page.add(_("None is declared: advisor prove needs --workload."), indent=2, hang=2)
    else:
        page.labelled(
            [
                (_("claims"), (", ".join(profile.proof.claims) or _("none"),)),
                (_("shows on"), (profile.proof.where,)),
                (_("how"), (proof_words(profile.proof),)),
            ]
        )
    if profile.notes:
        page.heading(_("Notes"))
        page.add(profile.notes, indent=2)
    page.heading(_("Sources"))
    for source in profile.sources:
        page.bullet(source)
    page.blank()
    page.add(_("What it means on this host:"), " ", Span(f"advisor plan {profile.name}", "cyan"), hang=2)
    return page.text


def _add_tunable(page: Page, profile: Profile, wanted: Wanted) -> None:
    each = _(", for each of the {devices}").format(devices=wanted.for_each.replace("_", " ")) if wanted.for_each else ""
    value = Span(wanted_value(profile, wanted), "green")
    page.add(Span(fill_template(profile, wanted.tunable), "bold"), ": ", value, each, indent=2, hang=4)
    page.labelled(
        [
            (_("why"), (wanted.why,)),
            (_("hurts when"), (wanted.hurts_when,)),
            (_("sources"), ("; ".join(wanted.sources),)),
        ],
        indent=6,
    )
