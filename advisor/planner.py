"""Profiles to plans: what the named profiles mean on a host, now. Changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from advisor.errors import AdvisorError, PermissionDeniedError, RefusedError, UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.facts.settings import find_setting
from advisor.facts.settings.sysctl import KEYS, origins, read_sysctl_sources
from advisor.facts.settings.value import is_text_key
from advisor.facts.system.services import Service, read_services, read_storage_services, with_devices
from advisor.facts.unknown import Unknowns
from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.expansion import expand_targets, foresee, read_kernel_values
from advisor.planning.guards import is_foreign
from advisor.planning.links import read_neighbours
from advisor.planning.merging import drop_wider_twins, merge_targets
from advisor.planning.mtu import explain_range
from advisor.planning.observations import observe_targets
from advisor.planning.placement import memory_notes, unit_names
from advisor.planning.records import Plan
from advisor.planning.storage_units import found_note, storage_units
from advisor.planning.targets import Request, meets_condition, resolve_targets
from advisor.profiles.profile import Profile, load, profile_paths
from advisor.profiles.requested import RequestedProfile, known_ids, load_requested, nearest_ids
from advisor.transaction.conflicts import writers_beside_plan
from advisor.transaction.journal import Record, Store, first_seen
from advisor.transaction.layers import ownership_of, replacement_notes
from advisor.transaction.origin import private_namespaces
from advisor.tunables.catalogue import find_kind
from advisor.tunables.irq import explain_absent_cpus
from advisor.tunables.kind import NUMBERS
from advisor.tunables.sysctl import Sysctl, explain_commit_limit, sysctl_path

Asked = Sequence[str | RequestedProfile]
"""Names of profiles, profile files and values, as `load_requested` takes them, or profiles that are there already."""


def profile_requests(names: Asked, settings: Mapping[str, str], *, only_trusted: bool = False) -> tuple[Request, ...]:
    """Profiles with their parameters; each setting goes to the profiles that take it. Raises what `load_requested`
    raises."""
    asked = load_requested(names, only_trusted=only_trusted)
    profiles = [one.profile for one in asked]
    by_name = {profile.name: profile for profile in profiles}
    for key in settings:
        owner, dot, name = key.rpartition(".")
        if name not in _known_parameters([by_name[owner]] if owner in by_name else [] if dot else profiles):
            listed = ", ".join(f"{one}=" for one in _settable(profiles)) or "none"
            raise UsageError(f"--set {key}: no such parameter of {', '.join(by_name)}", hint=f"parameters: {listed}")
    _refuse_shared_number(profiles, settings)
    return tuple(Request.from_settings(one.profile, _own_settings(one.profile, settings), one.words) for one in asked)


def _known_parameters(profiles: Iterable[Profile]) -> set[str]:
    return {key for profile in profiles for key in profile.parameters}


def _settable(profiles: Sequence[Profile]) -> list[str]:
    """What ``--set`` takes: a parameter of one profile by its name, one of several also with each profile's name."""
    names = [key for profile in profiles for key in profile.parameters]
    several = {f"{one.name}.{key}" for one in profiles for key in one.parameters if names.count(key) > 1}
    return sorted({*names, *several})


def _refuse_shared_number(profiles: Sequence[Profile], settings: Mapping[str, str]) -> None:
    """One number for what several profiles need each for itself says too little. Raises UsageError."""
    for key in settings:
        having = [one.name for one in profiles if _fills_pool(one, key) and f"{one.name}.{key}" not in settings]
        if len(having) > 1:
            pairs = " ".join(f"--set {name}.{key}=NUMBER" for name in having)
            raise UsageError(
                f"--set {key}: {', '.join(having)} each need a number of their own", hint=f"they are added up: {pairs}"
            )


def _fills_pool(profile: Profile, key: str) -> bool:
    lines = (one for one in profile.tunables if one.value == f"{{{key}}}" and one.tunable.startswith("sysctl:"))
    return any(Sysctl(one.tunable.removeprefix("sysctl:")).is_pool for one in lines)


def _own_settings(profile: Profile, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that are for a profile; what names it stands before what is for all."""
    own = {
        key.removeprefix(f"{profile.name}."): value
        for key, value in settings.items()
        if "." in key and key.startswith(f"{profile.name}.")
    }
    return {key: value for key, value in {**settings, **own}.items() if key in profile.parameters}


def plan_profiles(
    host: Host,
    names: Asked,
    settings: Mapping[str, str],
    *,
    runtime_only: bool = False,
    store: Store | None = None,
    facts: Facts | None = None,
    instead_of: Sequence[str] = (),
    only_trusted: bool = False,
    foresees: bool = True,
) -> Plan:
    """What the profiles mean on this host, now. Changes nothing.

    ``only_trusted``: for a plan that will be applied, as `load_requested` has it. ``foresees`` lets the rules judge the
    host as it would be (`Plan.foreseen`). ``instead_of`` are active
    transactions, by id, that they replace: values are computed from what will be there without those. Raises UsageError
    for an unknown profile or a bad setting, RefusedError where a budget does not hold.
    """
    if instead_of and not (host.is_live or store):
        raise UsageError("--instead-of replaces a transaction of this host, not of another", hint="leave it out")
    # The host as it is and as it would be are compared by the same readings.
    host = host.remembering()
    found = scan(host) if facts is None else facts
    asked = _with_found_units(host, profile_requests(names, settings, only_trusted=only_trusted), found)
    services = _find_services(host, asked, found)
    outcomes = [resolve_targets(request, found, services) for request in asked]
    expanded, nowhere = expand_targets(host, (target for some, _ in outcomes for target in some))
    skipped = (*(one for _, some in outcomes for one in some), *nowhere)
    records = _read_journals(store or Store()) if host.is_live or store else ()
    held = ownership_of(records or (), instead_of)
    of_values = {request.profile.name for request in asked if request.is_of_values}
    merged, merge_notes = merge_targets(expanded, held, of_values=of_values)
    targets, twin_notes = drop_wider_twins(merged, found.memory.total_bytes)
    found = _with_origins(host, found, (target.tunable for target in targets))
    seen = observe_targets(host, targets, None if records is None else first_seen(records), held)
    guards = tuple(dict.fromkeys(guard for request in asked for guard in request.profile.guards))
    made = make_plan(
        tuple(request.profile.name for request in asked),
        targets,
        skipped,
        seen,
        found,
        guards=guards,
        runtime_only=runtime_only,
        settings=settings,
        neighbours=read_neighbours(host, (target.tunable for target in targets), found.links),
        held=held,
        private=private_namespaces(host),
    )
    _refuse_mistakes(host, made, of_values, found)
    why = explain_commit_limit(host, {one.tunable.removeprefix("sysctl:"): one.after for one in made.changes})
    if why:
        raise RefusedError(why)
    words = tuple(word for request in asked for word in request.words)
    notes = [one.note for one in writers_beside_plan(host, found, made)]
    made = msgspec.structs.replace(
        made, instead_of=tuple(instead_of), notes=(*notes, *made.notes), words=() if words == made.profiles else words
    )
    here = (note for request in asked for note in found_note(request.found, found))
    said = (
        *here,
        *merge_notes,
        *twin_notes,
        *made.notes,
        *memory_notes(made.changes, found),
        *replacement_notes(records or (), made),
    )
    foreseen = foresee(host, found, made) if foresees and not made.blocking else ()
    return msgspec.structs.replace(made, notes=said, foreseen=foreseen)


def _with_origins(host: Host, facts: Facts, tunables: Iterable[str]) -> Facts:
    """The facts, with the files that set the keys of a plan: a scan looks for those that rules or files name."""
    keys = {one.removeprefix("sysctl:") for one in tunables if one.startswith("sysctl:")} - {
        *KEYS,
        *facts.sysctl_origin,
    }
    if not keys:
        return facts
    more = origins(read_sysctl_sources(host, Unknowns()), keys)
    return msgspec.structs.replace(facts, sysctl_origin={**facts.sysctl_origin, **more})


def _refuse_mistakes(host: Host, made: Plan, names: Collection[str], facts: Facts) -> None:
    """A value whose tunable is not on this host is a mistake, where a profile's line would only not apply; so is a word
    for a number, and an MTU outside its driver's range. Raises UsageError."""
    planned = [(one.profile, one.tunable, one.before, one.after) for one in made.changes]
    # Whatever else forbids it here (a file that overrides it, for one), a word for a number is the mistake.
    planned += [(one.profile, one.tunable, one.before or "", one.wanted or "") for one in made.skipped]
    for profile, tunable, before, after in planned:
        key = tunable.removeprefix("sysctl:")
        is_word = profile in names and tunable != key and not is_text_key(key)
        if is_word and after and NUMBERS.fullmatch(before) and not NUMBERS.fullmatch(after):
            raise UsageError(f"{tunable}: expected a number such as {before}, found {after!r}")
    for one in made.skipped:
        wrong = None
        if one.profile in names and one.state == "blocked" and one.wanted:
            is_irq = one.tunable.startswith("irq:")
            wrong = explain_absent_cpus(host, one.wanted) if is_irq else explain_range(one.tunable, one.wanted, facts)
        if wrong:
            raise UsageError(f"{one.tunable}: {one.wanted!r} {wrong}")
        if one.profile in names and one.state == "not-applicable" and one.before is None and not is_foreign(one):
            key = one.tunable.removeprefix("sysctl:")
            is_known = key != one.tunable and find_setting(key) is not None
            close = () if is_known else nearest_ids(one.tunable, _ids_like(host, one.tunable, facts))
            raise UsageError(
                f"{one.tunable}: {one.reason}", hint=f"did you mean {', '.join(close)}?" if close else None
            )


def _ids_like(host: Host, identity: str, facts: Facts) -> Iterable[str]:
    """Ids on this host of the same kind: of sysctls those in the same directory, of devices their settings."""
    kind, _, rest = identity.partition(":")
    if kind == "sysctl":
        yield from (f"sysctl:{key}" for key in facts.sysctl)
        parent = rest.rpartition(".")[0]
        yield from (f"sysctl:{parent}.{name}" for name in host.names(sysctl_path(parent)))
        return
    found = find_kind(identity)
    setting = rest.partition(":")[2]
    for device in found.devices(host) if found else ():
        yield f"{kind}:{device}:{setting}"
        yield from known_ids(device)


def _read_journals(store: Store) -> tuple[Record, ...] | None:
    """Every transaction; None where only root may read them."""
    try:
        return store.read_records(with_closed=False)
    except PermissionDeniedError:
        return None


def read_for_scan_and_plans(host: Host) -> None:
    """Read what a scan, limits and the plans of all profiles read, every link included, so that a snapshot can answer
    them all."""
    from advisor.limits.storage_use import read_front

    facts = scan(host, with_drives=True)
    read_front(host, facts)
    read_storage_services(host, Unknowns())
    links = ",".join(link.name for link in facts.links if link.kind != "loopback")
    for name in profile_paths():
        # A profile that does not fit or is broken leaves the others their turn.
        with contextlib.suppress(AdvisorError):
            settings = {"links": links} if links and "links" in load(name).parameters else {}
            plan_profiles(host, [name], settings, facts=facts, foresees=False)
    read_kernel_values(host)


def _with_found_units(host: Host, asked: Sequence[Request], facts: Facts) -> tuple[Request, ...]:
    """The requests, of which those that bind services and name none get the storage services of this host."""
    looking = any(
        one.looks_for_units and all(meets_condition(each, facts) for each in one.profile.conditions) for one in asked
    )
    if not looking:
        return tuple(asked)
    from advisor.facts.system.roles import read_kernel_services

    found = storage_units(facts, read_storage_services(host, Unknowns()), read_kernel_services(host))
    return tuple(one.with_units(found, facts) if one.looks_for_units else one for one in asked)


def _find_services(host: Host, asked: Iterable[Request], facts: Facts) -> tuple[Service, ...]:
    named = (request for request in asked if not request.found)
    units = tuple(dict.fromkeys(unit for request in named for unit in unit_names(request.values, facts)))
    if not units:
        return ()

    unknown = Unknowns()
    return with_devices(host, read_services(host, units, unknown))
