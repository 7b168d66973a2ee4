"""Which profile a finding sends to, where a recognised system has one that holds all of its tunings.

On a node whose InfoScale configuration is certain, the profile of the configuration has MTU, buffers and flow control
that belong together: a finding names it instead of the single ones, with the size that it asks for. ``advisor fix``
sets what the finding is about all the same, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.infoscale_configuration import FSS_TCP, FSS_UDP, FSS_ZONES, SHARED_DISK, SINGLE_NODE
from advisor.host.patterns import lazy_regex
from advisor.rules.buffers import LLT_WINDOW_BYTES
from advisor.rules.finding import Finding
from advisor.rules.infoscale import profile_of, recognition
from advisor.rules.llt_path import private_carriers
from advisor.rules.queries import JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS, by_name, links_below
from advisor.rules.remedy import PlanProfile, Remedy, describe_remedy, list_commands
from advisor.rules.workload import DeclaredWorkload

PARTS: Mapping[str, tuple[str, ...]] = {
    SINGLE_NODE: (),
    SHARED_DISK: (),
    FSS_TCP: (JUMBO_FRAMES,),
    FSS_UDP: (JUMBO_FRAMES, NETWORK_BUFFERS),
    FSS_ZONES: (JUMBO_FRAMES, NETWORK_BUFFERS, LLT_FLOW_CONTROL),
}
"""Which of the three tunings the profile of each configuration has."""

_BYTES = lazy_regex(r"--set bytes=(\d{1,12})", re.ASCII)


def sent_whole(facts: Facts, workload: DeclaredWorkload | None, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, those about one tuning with the profile of the configuration that holds it."""
    found = recognition(facts, workload)
    name = found.configuration if found else None
    if name is None or not PARTS[name] or (workload is not None and not _may_mirror(workload)):
        return tuple(findings)
    return tuple(_with_profile(one, name, facts) if one.profile in PARTS[name] else one for one in findings)


def _may_mirror(workload: DeclaredWorkload) -> bool:
    """Whether writes of the declared workload may cross to the other node."""
    if workload.replication == "none" or (workload.transport == "local" and not workload.is_replicated):
        return False
    return workload.mirrors_writes or not workload.is_replicated


def _with_profile(one: Finding, configuration: str, facts: Facts) -> Finding:
    if one.profile == JUMBO_FRAMES and not _of_llt(one, facts):
        return one
    size = _BYTES.search(one.advice)
    larger = [size[1]] if size and int(size[1]) > LLT_WINDOW_BYTES else []
    profile = profile_of(configuration)
    single = next((step for step in one.remedy if isinstance(step, PlanProfile)), None)
    plan = PlanProfile(profile, (("bytes", larger[0]),) if larger else (), single.only if single else ())
    if single is None or single.only:
        remedy: tuple[Remedy, ...] = (plan,)
        text, commands = describe_remedy(remedy), list_commands(remedy)
    else:
        remedy = one.remedy
        text = f"{describe_remedy(remedy)} The profile {profile} sets all that belongs to it."
        commands = (*list_commands(remedy), plan.command)
    return msgspec.structs.replace(
        one, profile=profile, advice=plan.command, fix=text, commands=commands, remedy=remedy
    )


def _of_llt(one: Finding, facts: Facts) -> bool:
    """Whether all links of the finding carry LLT's private links."""
    named, links = one.evidence.get("links"), by_name(facts)
    carriers = {each.name for name in private_carriers(facts) for each in links_below(name, links)}
    return isinstance(named, tuple) and bool(named) and carriers.issuperset(named)
