"""From findings to what fixes them: one plan of values and profiles, and the steps that only a person can take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from advisor.planning.comparison import combine_values
from advisor.profiles.profile import load
from advisor.profiles.requested import RequestedProfile, WantedValue, is_line_about, values_profile
from advisor.rules.judged import find_numbered, number_findings
from advisor.rules.rule import SIGNS, Decide, Finding, PlanProfile, RunShell, SetTunable
from advisor.tunables import parse_tunable


class ManualStep(msgspec.Struct, frozen=True):
    """What only a person can do about a finding: a command, with what it does and interrupts, or a text."""

    finding: str
    command: str | None
    text: str
    interrupts: str = ""


class LeftOut(msgspec.Struct, frozen=True):
    """A finding, or a value of it, that the plan does not hold, and why."""

    finding: str
    what: str
    reason: str


class Fix(msgspec.Struct, frozen=True):
    """What fixes the findings: profiles to plan together with their parameters, manual steps in order, and the rest."""

    findings: tuple[Finding, ...]
    asked: tuple[RequestedProfile, ...]
    settings: tuple[tuple[str, str], ...]
    manual: tuple[ManualStep, ...]
    left_out: tuple[LeftOut, ...]
    undecided: tuple[LeftOut, ...] = ()
    """Those of ``left_out`` that are values which advisor can set, left out because nobody decides."""


WhyAbsent = Callable[[str], str | None]
"""Why a host does not have a tunable, by its id; None where it may have it."""


def make_fix(
    findings: Sequence[Finding], why_absent: WhyAbsent = lambda _: None, *, is_unattended: bool = False
) -> Fix:
    """What fixes all of these findings. What two of them contradict each other in is left out, with the reason; so is
    a value whose tunable the host does not have, as a capture that holds a part of a host.

    ``is_unattended``: nobody looks at the plan before it is applied. What is right only after somebody has decided
    something is then left out as well.
    """
    return _joined(findings, (), why_absent, is_unattended=is_unattended)


def make_safe_fix(findings: Sequence[Finding], why_absent: WhyAbsent = lambda _: None) -> Fix:
    """What fixes those findings whose whole remedy is values that interrupt nothing and that no other finding
    contradicts."""
    chosen: list[Finding] = []
    left_out: list[LeftOut] = []
    for one in findings:
        reason = _unsafe_reason(one) or _contradicted(one, findings)
        if reason:
            left_out.append(LeftOut(one.id, one.title, reason))
        else:
            chosen.append(one)
    return _joined(chosen, left_out, why_absent)


def _unsafe_reason(finding: Finding) -> str | None:
    """Why a finding is not for a plan that nobody has looked at."""
    if not any(isinstance(step, SetTunable | PlanProfile) for step in finding.remedy):
        is_named = finding.profile is not None and not finding.remedy
        return f"it is fixed by the profile {finding.profile}" if is_named else "to be fixed by hand"
    if finding.intent:
        return "it is a matter of what this host is for, not a fault"
    for step in finding.remedy:
        match step:
            case PlanProfile(profile, only=only) if not only:
                return f"it is fixed by the profile {profile}"
            case RunShell() | Decide():
                return "a part of it is done by hand"
    for value in _values_of(finding):
        one = parse_tunable(value.tunable)
        if one.risk != "none" or one.takes_effect not in ("now", "new-sockets", "new-links"):
            return f"{value.tunable} interrupts what uses it, or takes effect later"
    return None


def _values_of(finding: Finding) -> Iterator[SetTunable]:
    """The values of its remedy, those that it takes from a profile among them."""
    for step in finding.remedy:
        match step:
            case SetTunable():
                yield step
            case PlanProfile(only=only):
                yield from only


def _contradicted(finding: Finding, findings: Iterable[Finding]) -> str | None:
    own = {one.tunable: one.argument for one in _values_of(finding)}
    for other in findings:
        for one in _values_of(other):
            if own.get(one.tunable, one.argument) != one.argument and not _are_least(own[one.tunable], one.argument):
                return f"{own[one.tunable]} contradicts {one.argument} of {other.id}"
    return None


def _are_least(*arguments: str) -> bool:
    """Whether a plan can hold both: the larger of two values that are to be reached at least."""
    return all(SIGNS["at-least"] in one for one in arguments)


def _joined(
    findings: Sequence[Finding], left_out: Iterable[LeftOut], why_absent: WhyAbsent, *, is_unattended: bool = False
) -> Fix:
    values: dict[str, WantedValue] = {}
    profiles: dict[str, RequestedProfile] = {}
    settings: dict[str, str] = {}
    manual: list[ManualStep] = []
    rest = list(left_out)
    undecided: list[LeftOut] = []
    for finding in findings:
        steps = finding.remedy or ((PlanProfile(finding.profile),) if finding.profile else ())
        if not steps:
            manual += _written_steps(finding)
        is_undecided = is_unattended and any(isinstance(one, Decide) and one.is_prerequisite for one in steps)
        for step in steps:
            match step:
                case SetTunable(tunable, argument=argument) if absent := why_absent(tunable):
                    rest.append(LeftOut(finding.id, argument, absent))
                case SetTunable(argument=argument) if is_undecided:
                    reason = f"--yes does not decide that; advisor fix {finding.id} without it prints the plan and asks"
                    undecided.append(LeftOut(finding.id, argument, reason))
                    rest.append(undecided[-1])
                case SetTunable():
                    rest += _add_value(values, _wanted(step, finding), finding)
                case PlanProfile(only=only) if only:
                    for one in only:
                        rest += _add_value(values, _wanted(one, finding), finding)
                case PlanProfile(profile, given):
                    clash = next((name for name, text in given if settings.get(name, text) != text), None)
                    if clash is not None:
                        reason = f"{clash}={settings[clash]} is planned already: {step.command} plans it alone"
                        rest.append(LeftOut(finding.id, profile, reason))
                        continue
                    profiles[profile] = RequestedProfile(load(profile, only_trusted=True), (profile,))
                    settings.update(given)
                case RunShell(command, purpose, interrupts):
                    manual.append(ManualStep(finding.id, command, purpose, interrupts))
                case Decide(text):
                    manual.append(ManualStep(finding.id, None, text))
    for value in tuple(values.values()):
        lines = ((one.profile.name, line) for one in profiles.values() for line in one.profile.tunables)
        owner = next((name for name, line in lines if is_line_about(line, value.tunable)), None)
        if owner is not None:
            # What the profile wants of it comes from the whole host, and may differ from what one finding asks for.
            identity = next(one.id for one in findings if _sets(one, value.tunable))
            rest.append(LeftOut(identity, value.word, f"the profile {owner} sets such values"))
            del values[value.tunable]
    asked = tuple(profiles.values())
    if values:
        made = tuple(values.values())
        asked = (*asked, RequestedProfile(values_profile(made), tuple(one.word for one in made)))
    return Fix(
        tuple(findings),
        asked,
        tuple(sorted(settings.items())),
        tuple(dict.fromkeys(manual)),
        tuple(rest),
        tuple(undecided),
    )


def _add_value(values: dict[str, WantedValue], value: WantedValue, finding: Finding) -> Iterable[LeftOut]:
    """Adds a value to those that are planned: of two that are to be reached at least, the larger."""
    first = values.setdefault(value.tunable, value)
    if first.operator == value.operator == SIGNS["at-least"]:
        larger = combine_values(first.value, value.value, "at-least")
        values[value.tunable] = msgspec.structs.replace(first, value=larger)
    elif first.word != value.word:
        yield LeftOut(finding.id, value.word, f"{first.word} is planned already")


def _sets(finding: Finding, identity: str) -> bool:
    return any(one.tunable == identity for one in _values_of(finding))


def _written_steps(finding: Finding) -> Iterable[ManualStep]:
    """Of a finding whose remedy is not data: its commands, else its text."""
    if not finding.commands:
        yield ManualStep(finding.id, None, finding.fix or finding.advice)
    for command in finding.commands:
        yield ManualStep(finding.id, command, "")


def _wanted(step: SetTunable, finding: Finding) -> WantedValue:
    why = f"{finding.title.rstrip('.')}. {finding.why}"
    return WantedValue(step.tunable, SIGNS[step.operator], step.value, why, finding.hurts_when, finding.sources)


def select_findings(findings: Sequence[Finding], names: Sequence[str]) -> tuple[Finding, ...]:
    """The findings of these numbers of the scan page or rule ids, each once. Raises UsageError for a name that no
    finding has; muted findings have none."""
    numbered = number_findings(findings)
    meant = (one for name in names for group in find_numbered(numbered, name) for one in group.findings)
    chosen: list[Finding] = []
    for one in meant:
        if one not in chosen:
            chosen.append(one)
    return tuple(chosen)
