"""The road from a profile's name to a host that is changed, verified or put back: what the command line and other
programs call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from advisor.coexistence import writers_beside_plan
from advisor.errors import AdvisorError, PermissionDeniedError, RefusedError, UsageError
from advisor.facts.services import Service, read_services
from advisor.facts.unknown import Unknowns
from advisor.facts.whole import Facts, scan
from advisor.gate import gate_for
from advisor.host import Host
from advisor.host.numbers import is_count
from advisor.i18n import N_, msg
from advisor.journal import Record, Store, first_seen, sequence, waiting_of
from advisor.layers import foreseen, held_by, replacement_notes, script_of
from advisor.planning.compute import make_plan
from advisor.planning.expansion import expand_targets
from advisor.planning.kernel_values import read_kernel_values
from advisor.planning.neighbours import read_neighbours
from advisor.planning.observations import observe_targets
from advisor.planning.placement import memory_notes, unit_names
from advisor.planning.records import Plan
from advisor.planning.storage_units import found_note, storage_units
from advisor.planning.targets import Request, holds, resolve_targets
from advisor.profiles import Profile, load, profile_paths
from advisor.script import rollback_script
from advisor.signals import interruptible
from advisor.transaction import Outcome, Progress, apply_plan, finish_switches, recover, roll_back

CONFIRM_SECONDS: Final = 60
"""How long a change that could cut the host off waits for somebody to say that it did not."""


def _quiet(_: str) -> None:
    return None


def requests(names: Sequence[str], settings: Mapping[str, str]) -> tuple[Request, ...]:
    """Profiles with their parameters; each setting goes to the profiles that take it. Raises UsageError."""
    profiles = [load(name) for name in dict.fromkeys(names)]
    known = {key for profile in profiles for key in profile.parameters}
    for key in settings:
        if key not in known:
            listed = ", ".join(f"{one}=" for one in sorted(known)) or "none"
            raise UsageError(
                msg("--set {key}: no such parameter of {names}", key=key, names=", ".join(names)),
                hint=msg("parameters: {listed}", listed=listed),
            )
    return tuple(Request.of(profile, _own(profile, settings)) for profile in profiles)


def _own(profile: Profile, settings: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key in profile.parameters}


def plan_profiles(
    host: Host,
    names: Sequence[str],
    settings: Mapping[str, str],
    *,
    runtime_only: bool = False,
    store: Store | None = None,
    facts: Facts | None = None,
    instead_of: Sequence[str] = (),
) -> Plan:
    """What the profiles mean on this host, now. Changes nothing.

    ``instead_of`` are transactions in force, by id, that they are to take the place of: values are made of what will be
    there without those. Raises UsageError for an unknown profile or a bad setting, RefusedError where a budget does not
    hold.
    """
    if instead_of and not (host.is_live or store):
        raise UsageError("--instead-of is about what is in force on this host, not on another", hint="leave it out")
    found = scan(host) if facts is None else facts
    asked = _with_found_units(host, requests(names, settings), found)
    services = _services(host, asked, found)
    outcomes = [resolve_targets(request, found, services) for request in asked]
    targets, nowhere = expand_targets(host, (target for some, _ in outcomes for target in some))
    skipped = (*(one for _, some in outcomes for one in some), *nowhere)
    records = _journals(store or Store()) if host.is_live or store else ()
    held = held_by(records or (), instead_of)
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
    )
    notes = [one.note for one in writers_beside_plan(host, found, made)]
    made = msgspec.structs.replace(made, instead_of=tuple(instead_of), notes=(*notes, *made.notes))
    here = (note for request in asked for note in found_note(request.found, found))
    said = (*here, *made.notes, *memory_notes(made.changes, found), *replacement_notes(records or (), made))
    return msgspec.structs.replace(made, notes=said)


def taken_out_by(host: Host, made: Plan, store: Store | None = None) -> tuple[tuple[Record, Plan], ...]:
    """What applying a plan will put back of the transactions whose place it takes. Changes nothing."""
    return foreseen(host, made, (store or Store()).records()) if made.instead_of else ()


def _journals(store: Store) -> tuple[Record, ...] | None:
    """Every transaction; None where only root can tell."""
    try:
        return store.records()
    except PermissionDeniedError:
        return None


def read_for_scan_and_plans(host: Host) -> None:
    """Read what a scan, limits and the plans of all profiles read, every link included, so that a snapshot can answer
    them all."""
    from advisor.ceilings.front import read_front
    from advisor.facts.storage_services import read_storage_services

    facts = scan(host)
    read_front(host, facts)
    read_storage_services(host, Unknowns())
    links = ",".join(link.name for link in facts.links if link.kind != "loopback")
    for name in profile_paths():
        # A profile that does not fit or is broken leaves the others their turn.
        with contextlib.suppress(AdvisorError):
            settings = {"links": links} if links and "links" in load(name).parameters else {}
            plan_profiles(host, [name], settings, facts=facts)
    read_kernel_values(host)


def _with_found_units(host: Host, asked: Sequence[Request], facts: Facts) -> tuple[Request, ...]:
    """The requests, of which those that bind services and name none get the storage services of this host."""
    looking = any(one.looks_for_units and all(holds(each, facts) for each in one.profile.conditions) for one in asked)
    if not looking:
        return tuple(asked)
    from advisor.facts.kernel_services import read_kernel_services
    from advisor.facts.storage_services import read_storage_services

    found = storage_units(facts, read_storage_services(host, Unknowns()), read_kernel_services(host))
    return tuple(one.with_units(found, facts) if one.looks_for_units else one for one in asked)


def _services(host: Host, asked: Iterable[Request], facts: Facts) -> tuple[Service, ...]:
    named = (request for request in asked if not request.found)
    units = tuple(dict.fromkeys(unit for request in named for unit in unit_names(request.values, facts)))
    if not units:
        return ()
    from advisor.facts.service_devices import with_devices

    unknown = Unknowns()
    return with_devices(host, read_services(host, units, unknown))


class Done(msgspec.Struct, frozen=True):
    """What apply came to: no record where everything was there already."""

    plan: Plan
    record: Record | None
    taken_out: tuple[tuple[Record, tuple[Outcome, ...]], ...] = ()
    """The transactions whose place it took, and what became of each item of theirs."""


def apply_profiles(
    host: Host,
    names: Sequence[str],
    settings: Mapping[str, str],
    *,
    runtime_only: bool = False,
    agree: Callable[[Plan], bool] = lambda _: True,
    progress: Progress = _quiet,
    store: Store | None = None,
    peers: Sequence[str] = (),
    confirm_within: float = CONFIRM_SECONDS,
    instead_of: Sequence[str] = (),
) -> Done:
    """Plan and apply under the lock; a transaction that was left unfinished is put back first.

    Where a link is at risk, ``peers`` and whoever else answers over it must answer again after the change, and the
    transaction waits ``confirm_within`` seconds for `confirm`; 0 keeps it at once. ``instead_of`` are transactions in
    force, by id or by profile, that are taken out from under the new one as soon as that one is kept.
    """
    requests(names, settings)  # a call that is wrong is told before anything is made for it
    kept = store or Store()
    with kept.lock():
        refuse_while_one_waits(kept)
        for record, outcomes in recover(host, kept, progress):
            progress(_recovered(record, outcomes))
        replaced = in_force_by_name(kept, instead_of)
        made = plan_profiles(host, names, settings, runtime_only=runtime_only, store=kept, instead_of=replaced)
        if made.is_empty and not made.cannot_apply and not replaced:
            return Done(made, None)
        if not made.is_empty and not made.blocking and not agree(made):
            raise RefusedError("not agreed to; nothing was changed")
        if made.is_empty and not made.cannot_apply:
            return Done(made, None, tuple((one, roll_back(host, one, kept)) for one in _each_anew(kept, replaced)))
        with interruptible():
            gate = None if made.is_empty or made.blocking else gate_for(host, made, peers, progress)
            window = confirm_within if made.has_link_risk else 0
            record = apply_plan(host, made, kept, progress=progress, gate=gate, confirm_within=window)
            return Done(made, record, finish_switches(host, kept))


def _each_anew(store: Store, identities: Sequence[str]) -> Iterator[Record]:
    """Each as its journal is then: taking one out may change what the next comes to."""
    return (store.record(identity) for identity in identities)


def replaced_by(names: Sequence[str] | None, store: Store | None = None) -> tuple[str, ...]:
    """Ids of the transactions in force that a plan is to take the place of.

    Raises UsageError for a name that means none, PermissionDeniedError where only root can tell.
    """
    return in_force_by_name(store or Store(), tuple(names or ()))


def in_force_by_name(store: Store, names: Sequence[str]) -> tuple[str, ...]:
    """Ids of transactions in force that ids or names of profiles mean, the oldest first. Raises UsageError."""
    if not names:
        return ()
    in_force = [record for record in store.records() if record.is_in_force]
    found: set[str] = set()
    for name in names:
        meant = {one.id for one in in_force if name in one.plan.profiles or sequence(one.id) == (sequence(name) or -1)}
        if not meant:
            raise UsageError(
                msg("--instead-of {name}: no transaction in force is or holds that", name=name), hint="advisor status"
            )
        found |= meant
    return tuple(record.id for record in in_force if record.id in found)


def refuse_while_one_waits(store: Store) -> None:
    """Raises RefusedError: what comes after a change that may yet be rolled back has no firm ground.

    Nor has it on a damaged transaction, of which nobody knows what it has set.
    """
    records, damaged = store.survey()
    broken = next((one for one in damaged if not one.by_script), None)
    if broken is not None:
        raise RefusedError(broken.message, hint=broken.hint)
    waiting = waiting_of(records)
    if waiting is not None:
        raise RefusedError(
            msg(
                "transaction {id} waits for confirmation, {seconds_left:.0f} s left",
                id=waiting.id,
                seconds_left=waiting.seconds_left or 0,
            ),
            hint=msg("advisor confirm {id}, or advisor rollback {id}", id=waiting.id),
        )


def _recovered(record: Record, outcomes: Iterable[Outcome]) -> str:
    """What became of a transaction that was not at its end; its watchdog may have seen to that long ago."""
    why, result = record.why_undone or "interrupted", _summary(outcomes)
    if record.by_watchdog:
        return msg("{id} had been taken back by its watchdog ({why}): {result}", id=record.id, why=why, result=result)
    return msg("{id} was not finished ({why}): {result}", id=record.id, why=why, result=result)


def _summary(outcomes: Iterable[Outcome]) -> str:
    listed = tuple(outcomes)
    lost = [one for one in listed if not one.is_back]
    return msg("{count} item(s) could not be put back", count=len(lost)) if lost else N_("put back")


def script_for(host: Host, name: str | None, settings: Mapping[str, str], store: Store | None = None) -> str:
    """The rollback script of a transaction (by id, or the last in force), or of a profile applied to this host now."""
    kept = store or Store()
    if name in profile_paths():
        assert name is not None
        made = plan_profiles(host, (name,), settings, store=kept)
        if made.is_empty:
            raise RefusedError(msg("{name} would change nothing here, so there is nothing to put back", name=name))
        return rollback_script(made)
    if name is None:
        in_force = [record for record in kept.records() if record.is_in_force]
        if not in_force:
            raise RefusedError("no transaction is in force", hint="name a profile to get the script beforehand")
        record = in_force[-1]
    else:
        record = _record_or_profile(kept, name)
    directory = str(kept.script_path(record.id).parent.absolute())
    return script_of(record, kept.records(), directory=directory)


def _record_or_profile(store: Store, name: str) -> Record:
    """A transaction by its id; what is neither that nor a profile is refused as a profile is. Raises UsageError."""
    if is_count(name):
        return store.record(name)
    load(name)
    raise AssertionError("a profile of that name was looked for first")


def write_script(text: str, path: Path) -> None:
    """Write a script that its owner alone may read and run. Raises UsageError."""
    from advisor.host.putfile import save_output

    save_output(str(path), text.encode("utf-8", "surrogateescape"), mode=0o700)
