"""The judgement itself. Pure: facts, workload and outlooks in, recommendations out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.clusters.infoscale_configuration import MIRRORED, TITLES
from advisor.facts.host_facts import Facts
from advisor.host.numbers import count_noun
from advisor.planning.guards import is_foreign
from advisor.planning.records import SATISFIED, Plan
from advisor.planning.storage_units import FOUND_HERE
from advisor.planning.targets import meets_condition
from advisor.profiles.profile import Profile
from advisor.recommend import infoscale, iscsi
from advisor.recommend.cases import cases, contrary
from advisor.recommend.figures import FIGURES, hurts, unknown
from advisor.recommend.records import Fits, Outlook, Reason, Recommendation, Standing
from advisor.rules.clusters.infoscale import DATAGRAMS, as_seen, private_links, recognised_workload, stays_local
from advisor.rules.judged import judge_singly
from advisor.rules.network.buffers import LLT_WINDOW_BYTES, path_bytes
from advisor.rules.queries import JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS, NUMA_PINNING
from advisor.rules.rule import Finding, PlanProfile, at_or_above
from advisor.rules.workload import DeclaredWorkload

_USUAL_DEFAULT_BYTES = 212_992
# The white paper saw little difference by its buffers, and its own reference advises to keep the defaults.
_MILD = "buffers.below-profile"

# Counters of the kernel that are symptoms for a profile: the field of the facts, and its name.
_COUNTERS = {
    NETWORK_BUFFERS: (
        ("udp_receive_buffer_errors", "UDP receive buffer errors"),
        ("udp_send_buffer_errors", "UDP send buffer errors"),
        ("tcp_pruned", "TCP receive queues pruned"),
    ),
    JUMBO_FRAMES: (
        ("ip_reassembly_failures", "IP packets that could not be put together"),
        ("ip_fragments_created", "IP fragments made"),
    ),
}


# Findings that name a profile which takes this one over, and that are symptoms for this one as well.
_ALSO: Mapping[str, frozenset[str]] = {
    NUMA_PINNING: frozenset({"beegfs.not-bound", "beegfs.wrong-node", "beegfs.memory-not-bound"})
}
_FOUR_TIMES = (
    f"One LLT window of 50 packets takes {LLT_WINDOW_BYTES:,} bytes, which is four times the usual default of "
    f"{_USUAL_DEFAULT_BYTES:,}; the paper says four times and prints 8,388,608, which is 39 times. The window does not "
    "need more."
)


class _Signs(msgspec.Struct, frozen=True):
    """What speaks for a profile: ``certain`` and ``faint`` are symptoms, ``asked`` rests on the workload alone."""

    certain: tuple[Finding, ...]
    faint: tuple[Finding, ...]
    asked: tuple[Finding, ...]
    against: str | None


def recommend(facts: Facts, workload: DeclaredWorkload | None, known: Sequence[Outlook]) -> tuple[Recommendation, ...]:
    """A judgement on each profile: those that fit first, then those that may, by name."""
    # What a recognised configuration says about the load; a declaration is never put in its place without a word.
    plain, declared = judge_singly(facts), judge_singly(facts, workload or recognised_workload(facts))
    # The names of each profile and of all that it has whole, through every generation.
    direct = {one.name: one.profile.inherits for one in known if one.profile is not None}
    parts: dict[str, frozenset[str]] = {}
    for name in direct:
        pending, own = [name], set[str]()
        while pending:
            part = pending.pop()
            pending += () if part in own else direct.get(part, ())
            own.add(part)
        parts[name] = frozenset(own)
    made = [_of_one(one, parts.get(one.name, frozenset()), facts, workload, plain, declared) for one in known]
    return tuple(sorted(made, key=lambda one: (("yes", "perhaps", "no").index(one.fits), one.profile)))


def _of_one(
    outlook: Outlook,
    parts: frozenset[str],
    facts: Facts,
    workload: DeclaredWorkload | None,
    plain: Iterable[Finding],
    declared: Iterable[Finding],
) -> Recommendation:
    profile = outlook.profile
    if profile is None:
        return Recommendation(
            outlook.name, outlook.name, "no", "broken", f"Its file is broken: {outlook.why}", (), (), (), (), (), None
        )
    # `names`: what speaks for a profile speaks for one that has it whole.
    also = _ALSO.get(profile.name, frozenset())
    symptoms = [one for one in plain if (one.profile in parts or one.id in also) and not one.intent]
    seen = {one.id for one in symptoms}
    asked = (one for one in declared if one.profile in parts and not one.intent and one.id not in seen)
    signs = _Signs(
        certain=tuple(one for one in symptoms if at_or_above(one.severity, "advice")),
        faint=tuple(one for one in symptoms if not at_or_above(one.severity, "advice")),
        asked=tuple(one for one in asked if at_or_above(one.severity, "advice")),
        against=contrary(profile.name, facts, workload),
    )
    fits, standing, summary = _judge_profile(outlook, signs, facts, workload)
    configuration = infoscale.configuration_of(profile.name)
    if configuration is not None:
        fits, standing, summary = infoscale.adjusted(configuration, (fits, standing, summary), facts, workload)
    unread = _find_unread(profile.name, facts) if standing == "not-applicable" else None
    if unread:
        standing, summary = "unknown", f"Unknown: {unread}."
    command = _choose_command(profile, outlook, facts, workload, signs, standing)
    return Recommendation(
        profile=profile.name,
        title=profile.title,
        fits=fits,
        standing=standing,
        summary=summary,
        why=tuple(_list_reasons(profile, outlook, facts, signs, workload)),
        cases=cases(profile.name, facts, workload),
        measured=FIGURES.get(profile.name, ()),
        hurts=hurts(profile, outlook, facts, command),
        unknown=unknown(profile, outlook, facts, workload),
        command=command,
    )


def _find_unread(name: str, facts: Facts) -> str | None:
    """What of the host would decide whether a profile applies, and could not be read."""
    if name == NUMA_PINNING and not facts.numa.nodes:
        return "the NUMA nodes of this host could not be read"
    if name == LLT_FLOW_CONTROL and facts.llt is not None and facts.llt.running is not False:
        return "LLT is set up here, but its values could not be read" if not facts.llt.flow_control else None
    return None


def _judge_profile(
    outlook: Outlook, signs: _Signs, facts: Facts, workload: DeclaredWorkload | None
) -> tuple[Fits, Standing, str]:
    fits, standing, summary = _with_doubt(
        outlook.name, _by_signs(signs, facts, workload, facts.roles.get(outlook.name, ())), facts, workload
    )
    plan = outlook.plan
    if plan is None:
        word: Standing = "blocked" if outlook.is_refused else "unknown"
        return "no", word, f"No plan can be made of it here: {outlook.why}."
    if plan.blocking:
        first = plan.blocking[0]
        return "no", "blocked", f"Something stands in its way: {first.tunable}: {first.reason}."
    if not plan.is_empty or _waits_for_names(outlook.profile, facts):
        return fits, standing, summary
    if any(one.state == "unknown" for one in plan.skipped):
        skipped = next(one for one in plan.skipped if one.state == "unknown")
        return ("no" if fits == "no" else "perhaps"), "unknown", f"Unknown: {skipped.tunable}: {skipped.reason}."
    if any(one.state in SATISFIED for one in plan.skipped):
        if standing == "intent" and _is_case(outlook.name, facts, workload):
            summary, fits = "The declared workload is one of its cases.", "yes"
        return fits, "in-force", f"All that it sets here is there already. {summary}"
    if standing == "unfit" and stays_local(facts) and outlook.name == JUMBO_FRAMES:
        return fits, standing, summary
    return "no", "not-applicable", f"It does not apply here: {_not_applicable(plan)}."


def _with_doubt(
    name: str, verdict: infoscale.Verdict, facts: Facts, workload: DeclaredWorkload | None
) -> infoscale.Verdict:
    """The verdict, with what of the host's configuration makes it less certain."""
    fits, standing, summary = verdict
    doubt = infoscale.doubt(name, facts, workload) if fits == "yes" else None
    return ("perhaps", standing, f"{doubt} {summary}") if doubt else verdict


def _is_case(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> bool:
    """Whether the declared workload is one for which the source names the profile: none of its cases is denied."""
    held = [case.holds for case in cases(profile, facts, workload)] if workload is not None else []
    return held.count(True) > 1 and False not in held


def _waits_for_names(profile: Profile | None, facts: Facts) -> bool:
    """Whether what the profile is for has to be named with --set, and nothing else keeps it from applying."""
    if profile is None or not all(meets_condition(one, facts) for one in profile.conditions):
        return False
    return any(one.needs and not profile.parameters[one.needs].default for one in profile.tunables)


def _not_applicable(plan: Plan) -> str:
    reasons = list(dict.fromkeys(one.reason for one in plan.skipped))
    ends = {reason.partition("; ")[2] for reason in reasons}
    if len(reasons) > 1 and len(ends) == 1:
        # What the reasons end with alike, as the disks that are here, is said once.
        reasons = [*(reason.partition("; ")[0] for reason in reasons), *filter(None, ends)]
    return "; ".join(reasons) or "there is nothing that it could set"


def _by_signs(
    signs: _Signs, facts: Facts, workload: DeclaredWorkload | None, role: tuple[str, ...]
) -> tuple[Fits, Standing, str]:
    """``role``: what shows that the host serves what the profile is for."""
    if signs.certain and signs.against:
        return "perhaps", "symptom", f"The host shows a symptom, but: {signs.against}"
    if signs.certain:
        return "yes", "symptom", "The host shows a symptom of it."
    if signs.against:
        return "no", "unfit", signs.against
    if signs.asked and workload is None:
        return "perhaps", "intent", _recognised_words(facts)
    if signs.asked and all(one.id == _MILD for one in signs.asked):
        return "perhaps", "workload", "The declared workload is one of its cases, but nothing here is short of it yet."
    if signs.asked:
        return "yes", "workload", "The declared workload is one of its cases; no symptom of the host asks for it yet."
    if signs.faint:
        return "perhaps", "symptom", "The host shows a faint symptom: see whether it goes on."
    if role:
        shown = ", ".join(role)
        return "perhaps", "intent", f"Recognised: {shown}. Whether its load gains by the profile cannot be seen."
    if workload is None:
        return "perhaps", "intent", "A matter of intent: no counter speaks for it, and no workload is declared."
    return "perhaps", "intent", "A matter of intent: neither a counter nor the declared workload speaks for it."


def _recognised_words(facts: Facts) -> str:
    name = infoscale.recognised_as(facts, None)
    if name not in MIRRORED:
        return (
            "What is seen of this host speaks for it. No workload is declared: whether its load is a case is unknown."
        )
    return (
        f"Recognised, not declared: this host is {TITLES[name]}, one of its cases. Whether its load is one cannot be "
        "seen."
    )


def _list_reasons(
    profile: Profile, outlook: Outlook, facts: Facts, signs: _Signs, workload: DeclaredWorkload | None
) -> Iterator[Reason]:
    for field, words in _COUNTERS.get(profile.name, ()):
        count = getattr(facts.counters, field)
        if count:
            yield Reason("counter", f"{words} since the host started: {count:,}", None, {field: count})
    for one in (*signs.certain, *signs.faint):
        yield Reason("finding", _finding_words(one, profile), one.id, one.evidence)
    for one in signs.asked:
        yield Reason("host" if workload is None else "workload", _finding_words(one, profile), one.id, one.evidence)
    if signs.against:
        yield Reason("host" if workload is None else "workload", signs.against)
    if profile.name == NUMA_PINNING:
        notes = outlook.plan.notes if outlook.plan else ()
        yield from (Reason("host", f"{one[:1].upper()}{one[1:]}.") for one in notes if one.startswith(FOUND_HERE))
    foreign = sum(map(is_foreign, outlook.plan.skipped)) if outlook.plan else 0
    if foreign:
        count = count_noun(foreign, "value")
        yield Reason("host", f"This runs in {facts.container.words}: {count} of it can be set on its host only.")
    yield from infoscale.reasons(profile.name, facts, workload)
    yield from iscsi.reasons(profile.name, facts, workload)
    path = path_bytes(facts, as_seen(facts, workload or recognised_workload(facts)))
    if NETWORK_BUFFERS in (profile.name, *profile.inherits) and path is not None:
        yield Reason("host", f"The size of this path: {path.formula}.", None, {"size_bytes": path.size})
    if profile.name == NETWORK_BUFFERS and _over_udp(facts) and path is not None and path.size <= LLT_WINDOW_BYTES:
        yield Reason("host", _FOUR_TIMES, "buffers.below-llt-window", {"llt_window_bytes": LLT_WINDOW_BYTES})


def _finding_words(one: Finding, profile: Profile) -> str:
    """What is found and why; the advice too, where it is more than the command that is to be pasted."""
    more = _plan_command(one, profile) is not None and len(one.remedy) > 1
    return f"{one.title}. {one.why}" + (f" What to do: {one.fix}" if more else "")


def _plan_command(one: Finding, profile: Profile) -> str | None:
    """The command by which a finding plans the profile; None where it plans none, or another."""
    planned = (part for part in one.remedy if isinstance(part, PlanProfile) and part.profile == profile.name)
    return next((part.command for part in planned), None)


def _over_udp(facts: Facts) -> bool:
    return bool(private_links(facts, *DATAGRAMS)) and not stays_local(facts)


def _choose_command(
    profile: Profile,
    outlook: Outlook,
    facts: Facts,
    workload: DeclaredWorkload | None,
    signs: _Signs,
    standing: Standing,
) -> str | None:
    if standing == "in-force":
        return f"advisor plan {profile.name}"
    if standing == "not-applicable":
        return f"advisor plan {profile.name} --set links=LINK" if profile.name == JUMBO_FRAMES else None
    sets_nothing = outlook.plan is None or not profile.tunables
    if standing in ("unfit", "broken") or (standing == "unknown" and sets_nothing):
        return None
    if standing == "blocked" and profile.name == NETWORK_BUFFERS and outlook.is_refused:
        return f"advisor plan {profile.name} --set bytes={LLT_WINDOW_BYTES}"
    begun = f"advisor plan {profile.name}"
    path = path_bytes(facts, as_seen(facts, workload or recognised_workload(facts)))
    if infoscale.configuration_of(profile.name) is not None:
        has_more = NETWORK_BUFFERS in profile.inherits and path is not None and path.size > LLT_WINDOW_BYTES
        return f"{begun} --set bytes={path.size}" if path is not None and has_more else begun
    pasted = (_plan_command(one, profile) for one in (*signs.certain, *signs.asked, *signs.faint))
    ready = [one for one in pasted if one is not None]
    if profile.name == NETWORK_BUFFERS:
        return f"{begun} --set bytes={path.size}" if path is not None else next(iter(ready), begun)
    return max(ready, key=len, default=begun)
