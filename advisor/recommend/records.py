"""The records of a recommendation; their JSON is ``advisor.recommendation/1``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.errors import AdvisorError, InvalidInputError, RefusedError
from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile, load, profile_paths
from advisor.proof import workloads as measured
from advisor.proof.pattern import is_workload_path
from advisor.rules.rule import Evidence
from advisor.rules.workload import Access, DeclaredWorkload, Replication, Transport, parse_workload

Fits = Literal["yes", "perhaps", "no"]
Standing = Literal[
    "symptom", "workload", "intent", "in-force", "not-applicable", "blocked", "unfit", "unknown", "broken"
]
"""What the judgement rests on: a symptom of the host, the declared workload, or neither (a matter of intent); or that
the profile is active, does not apply here, is blocked, does not suit the workload, is unknown, or is broken."""


class Reason(msgspec.Struct, frozen=True):
    """One reason, the strongest first. ``rule`` is what `advisor explain` describes."""

    kind: Literal["counter", "finding", "workload", "host"]
    text: str
    rule: str | None = None
    evidence: Evidence = {}


class Case(msgspec.Struct, frozen=True):
    """A case in which the source says that the profile helps, and whether it is this one; None: not declared."""

    text: str
    holds: bool | None


class Figure(msgspec.Struct, frozen=True):
    """What somebody measured, with which workload, and who."""

    text: str
    workload: str
    source: str


class Recommendation(msgspec.Struct, frozen=True):
    """The judgement on one profile. ``command`` is what to do next; None where there is nothing to do."""

    profile: str
    title: str
    fits: Fits
    standing: Standing
    summary: str
    why: tuple[Reason, ...]
    cases: tuple[Case, ...]
    measured: tuple[Figure, ...]
    hurts: tuple[str, ...]
    unknown: tuple[str, ...]
    command: str | None


# What each profile would do on this host: its plan, or why there is none.


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


# ``--workload`` with the names of the measured patterns besides those of the trade.

# What an article's pattern ran over: transport and replication. Nothing is said where it has both forms.
_GROUPS: Mapping[str, tuple[Transport | None, Replication | None]] = {
    "infoscale": (None, "sync"),
    "iometer": ("tcp", None),
    "iris": ("local", None),
    "beegfs": ("rdma", None),
}


_ON_SERVERS = ("beegfs.dd", "beegfs.storagebench")
"""What the article runs on the storage servers themselves: nothing of it crosses the network."""


def declared(text: str) -> DeclaredWorkload:
    """The workload of a command line: a name, a workload file, values. Raises UsageError, which names what is known,
    and InvalidInputError for a file that is none."""
    first = text.partition(",")[0].strip()
    files = {first: measured.get_workload(first)} if is_workload_path(first) else {}
    return parse_workload(text, {name: _as_declared(one) for name, one in {**measured.WORKLOADS, **files}.items()})


def _as_declared(one: measured.Pattern) -> DeclaredWorkload:
    """The last of its jobs, which is the one for the data itself, not the one for a journal."""
    main = one.sections[-1]
    transport, replication = _GROUPS.get(one.name.partition(".")[0], (None, None))
    if one.name.startswith(_ON_SERVERS):
        transport = "local"
    is_random = main.pattern.startswith("rand") and (main.random_percent is None or main.random_percent >= 50)
    access: Access = "random" if is_random else "sequential"
    sends = main.pattern == "write"
    return DeclaredWorkload(
        name=one.name,
        write_share=main.write_share if main.engine != "net" else float(sends),
        block_bytes=main.block_bytes,
        access=access,
        transport="local" if main.engine == "null" else main.protocol or transport,
        replication=replication,
    )
