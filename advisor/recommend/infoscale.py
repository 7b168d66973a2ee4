"""The profiles of the five InfoScale configurations: whether a host is one, and what the white paper has on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.facts.clusters.infoscale_configuration import (
    FSS_TCP,
    FSS_UDP,
    FSS_ZONES,
    LONG_ROUND_TRIP_SECONDS,
    MIRRORED,
    SHARED_DISK,
    SINGLE_NODE,
    TITLES,
)
from advisor.facts.host_facts import Facts
from advisor.recommend.records import Case, Figure, Fits, Reason, Standing
from advisor.rules import sources
from advisor.rules.clusters.infoscale import MIRRORING_CPU_PERCENT, PROFILE_PREFIX, profile_of, recognition, stays_local
from advisor.rules.judged import PARTS as PARTS
from advisor.rules.queries import LLT_FLOW_CONTROL
from advisor.rules.workload import DeclaredWorkload

Verdict = tuple[Fits, Standing, str]

_RANDOM = "4 KiB random, half reads, half writes, on a t2.large with gp2 volumes of 5 GiB"
_SINGLE = Figure("About 2,000 IOPS, which is 8 MB/s, and next to no CPU; a chart.", _RANDOM, sources.WHITE_PAPER)
_MIRROR = Figure(
    f"About half of the IOPS of a local disk, and at most {MIRRORING_CPU_PERCENT:g} % of the CPUs, a little more over "
    "TCP; charts.",
    _RANDOM,
    sources.WHITE_PAPER,
)

FIGURES: Mapping[str, tuple[Figure, ...]] = {
    profile_of(SINGLE_NODE): (_SINGLE,),
    profile_of(SHARED_DISK): (
        Figure(
            "As a single node: about 2,000 IOPS, which is 8 MB/s, and next to no CPU; the small lead in the chart is "
            "within the error.",
            _RANDOM,
            sources.WHITE_PAPER,
        ),
    ),
    profile_of(FSS_TCP): (
        Figure(
            "MTU 9000 was the best of the three tunings; charts and no numbers.",
            "4 KiB sequential, half reads, half writes",
            sources.WHITE_PAPER,
        ),
        _MIRROR,
    ),
    profile_of(FSS_UDP): (
        Figure(
            "The buffers were slightly the best of the three tunings, with little difference; charts and no numbers.",
            "64 KiB sequential, half reads, half writes",
            sources.WHITE_PAPER,
        ),
        _MIRROR,
        Figure(
            "851,968 bytes hold 51 datagrams of 8 KiB at MTU 9000 and 61 at 1500, the default of 212,992 holds 12 and "
            "15. One LLT window is 50. At MTU 1500 each is cut into 6 fragments.",
            "bursts of 8 KiB datagrams to a receiver that does not read",
            sources.MEASURED_UDP,
        ),
    ),
    profile_of(FSS_ZONES): (
        Figure(
            "Doubled high-water marks of LLT (1,000 to 2,000 packets) were the best of the three tunings; charts and "
            "no numbers.",
            "4 KiB sequential, half reads, half writes",
            sources.WHITE_PAPER,
        ),
        Figure("Less than the half that mirroring leaves inside one zone; a chart.", _RANDOM, sources.WHITE_PAPER),
        Figure("Between two zones of one region the round trip took 1.16 ms and 1.12 ms.", "ping", sources.IRIS_GP3),
    ),
}

_FAIL_OVER = (
    "This host is a node of a cluster: one that is to notice a dead volume quickly and fail over keeps the 30 seconds."
)

READS_ALONE = "Reads alone: the local copy serves them, and nothing of them crosses to the mirror."


def configuration_of(profile: str) -> str | None:
    """The configuration that a profile is for; None for one that is for none."""
    name = profile.removeprefix(PROFILE_PREFIX)
    return name if profile.startswith(PROFILE_PREFIX) and name in TITLES else None


def recognised_as(facts: Facts, workload: DeclaredWorkload | None) -> str | None:
    """The configuration where it is certain."""
    found = recognition(facts, workload)
    return found.configuration if found else None


def own_case(configuration: str, facts: Facts, workload: DeclaredWorkload | None) -> Case:
    """Whether this host is such a one."""
    found = recognition(facts, workload)
    fit = found.fits[configuration] if found else "no"
    return Case(f"this host is {TITLES[configuration]}", {"yes": True, "no": False, "possible": None}[fit])


def contrary(configuration: str, workload: DeclaredWorkload) -> str | None:
    """Why the declared workload cannot gain by the profile of a mirrored configuration."""
    if configuration not in MIRRORED:
        return None
    if workload.replication == "none" or (workload.transport == "local" and not workload.is_replicated):
        return "The declared workload mirrors nothing, so LLT carries next to nothing of it."
    return READS_ALONE if workload.is_replicated and not workload.mirrors_writes else None


def doubt(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> str | None:
    """Why a profile that the host or the declared workload asks for may not be right in this configuration."""
    if profile == "ebs-volumes":
        is_cluster = facts.infoscale is not None and facts.infoscale.signs.is_cluster is True
        return _FAIL_OVER if is_cluster else None
    is_far = workload is not None and (workload.rtt_seconds or 0) > LONG_ROUND_TRIP_SECONDS
    best = {FSS_TCP: "MTU 9000 (TCP)", FSS_UDP: "the buffers (UDP)"}.get(recognised_as(facts, workload) or "")
    if profile != LLT_FLOW_CONTROL or is_far or best is None:
        return None
    return f"Inside one zone the white paper's best tuning was {best}; the marks were the best across zones."


def writes_stay_local(facts: Facts) -> str | None:
    """Why LLT carries no writes here, where that is certain without a declaration."""
    name = stays_local(facts)
    if name is None:
        return None
    return f"Recognised, not declared: this host is {TITLES[name]}, so LLT carries no writes."


def adjusted(configuration: str, verdict: Verdict, facts: Facts, workload: DeclaredWorkload | None) -> Verdict:
    """The verdict on the profile of a configuration, with how certain it is that the host is one."""
    fits, standing, summary = verdict
    found = recognition(facts, workload)
    if found is None or standing in ("blocked", "unknown", "unfit", "in-force"):
        return verdict
    fit, title = found.fits[configuration], TITLES[configuration]
    summary = summary.replace("It does not apply here: Sets nothing", "It sets nothing")
    if fit == "no":
        other = f": this is {TITLES[found.configuration]}" if found.configuration else ""
        by_facts = facts.infoscale is not None and facts.infoscale.configurations.get(configuration) == "no"
        return verdict if by_facts else ("no", "unfit", f"Another configuration{other}.")
    if fit == "possible":
        doubt = f"It is unknown whether this host is {title}. Missing: {found.untold[0]}."
        # A profile that sets nothing is none to plan, but what is unknown is not unfit.
        return ("perhaps", "unknown", f"{doubt} {summary}") if fits == "no" else ("perhaps", "intent", doubt)
    how = "Recognised, not declared" if workload is None else "Recognised, with what is declared"
    return fits, standing, f"{how}: this host is {title}. {summary}"


def reasons(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Reason]:
    """What the recognition rests on; and for a tuning, which profile has it along with what else belongs to it."""
    configuration, found = configuration_of(profile), recognition(facts, workload)
    if found is None:
        return
    if configuration is not None and found.fits[configuration] != "no":
        yield from (Reason("host", text, "infoscale.configuration") for text in found.evidence)
    name = found.configuration
    if name is not None and profile in PARTS[name]:
        yield Reason(
            "host", f"{profile_of(name)} has it along with all that this configuration gains by: plan one of them."
        )
    if configuration is not None and configuration == name and len(PARTS[name]) > 1:
        parts = ", ".join(PARTS[name])
        yield Reason("host", f"It has what these have, so plan it instead of them and not with them: {parts}.")


def untold(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> tuple[str, ...]:
    """What would make it certain whether this host is such a one."""
    configuration, found = configuration_of(profile), recognition(facts, workload)
    return () if configuration is None or found is None or found.fits[configuration] == "no" else found.untold
