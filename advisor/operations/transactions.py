"""From a profile's name to a host that is changed, verified or rolled back: what the command line and other programs
call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host, Missing, live_host
from advisor.host.numbers import is_count
from advisor.host.safe_open import need_root
from advisor.host.signals import Interrupted, interruptible
from advisor.planner import Asked, plan_profiles, profile_requests
from advisor.planning.records import Plan, refuse_warnings
from advisor.profiles.profile import load, profile_paths
from advisor.profiles.requested import is_file_word, is_value_word
from advisor.shell.plain_script import plain_script
from advisor.shell.rollback_script import rollback_script, self_contained_script
from advisor.transaction import status
from advisor.transaction.apply import apply_plan
from advisor.transaction.approvals import active_by_name, refuse_while_one_waits
from advisor.transaction.journal import Record, Store
from advisor.transaction.layers import data_of, is_below, preview_replaced
from advisor.transaction.origin import origin_of
from advisor.transaction.reachability import gate_for
from advisor.transaction.restore import Progress
from advisor.transaction.rollback import finish_switches, recover_unfinished, roll_back
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import ConfirmResult, RolledBack

# A transaction of this host on trial: confirmed, followed, cancelled.


def confirm_pending(identity: str | None, *, same_session: bool = False) -> ConfirmResult:
    """Confirm the pending transaction (by id, or the one there is), and roll back those that it replaces.

    Raises PermissionDeniedError without root, RefusedError if none is pending or its time is over.
    """
    need_root()
    return status.confirm_switch(live_host(), identity, same_session=same_session)


def read_transaction(identity: str) -> Record:
    """Return one transaction as its files have it now. Raises UsageError, InvalidInputError for a damaged journal."""
    return Store().find_record(identity)


def cancel_trial(identity: str, *, warn: Callable[[str], None]) -> RolledBack:
    """Roll back a transaction on trial for Ctrl-C. Raises Interrupted once nothing of it is left; return what became of
    each item where something could not be restored."""
    done = status.rollback_transactions(live_host(), identity, everything=False, force=False, warn=warn)
    if all(one.is_back for _record, outcomes in done for one in outcomes):
        raise Interrupted(rolled_back=identity)
    return done


def taken_out_by(host: Host, made: Plan, store: Store | None = None) -> tuple[tuple[Record, Plan], ...]:
    """What applying a plan will roll back of the transactions that it replaces. Changes nothing."""
    return preview_replaced(host, made, (store or Store()).read_records()) if made.instead_of else ()


class ApplyResult(msgspec.Struct, frozen=True):
    """The result of an apply; ``record`` is None if every value was already set."""

    plan: Plan
    record: Record | None
    taken_out: tuple[tuple[Record, tuple[ItemOutcome, ...]], ...] = ()
    """The transactions that it replaced, with the outcome of each of their items."""


def apply_profiles(
    host: Host,
    names: Asked,
    settings: Mapping[str, str],
    *,
    runtime_only: bool = False,
    agree: Callable[[Plan], bool] | None = None,
    force: bool = False,
    progress: Progress = lambda _: None,
    store: Store | None = None,
    peers: Sequence[str] = (),
    confirm_within: float = 60,
    instead_of: Sequence[str] = (),
    permit: Callable[[], object] = lambda: None,
) -> ApplyResult:
    """Plan and apply under the lock; an unfinished transaction is rolled back first. ``permit`` is called before that,
    under the lock as well; what it raises ends the call. Without ``agree``, a plan because of which a scan would newly
    warn needs ``force``, which the journal records.

    Where a link is at risk, ``peers`` and whoever else answers over it must answer again after the change, and the
    transaction waits ``confirm_within`` seconds for `confirm`; 0 keeps it at once. ``instead_of`` are active
    transactions, by id or by profile, that are removed below the new one as soon as that one is confirmed.
    """
    profile_requests(names, settings, only_trusted=True)  # a wrong call is refused before anything is prepared for it
    kept = store or Store()
    with kept.hold_lock():
        permit()
        refuse_while_one_waits(kept)
        for record, outcomes in recover_unfinished(host, kept, progress):
            progress(_describe_recovery(record, outcomes))
        replaced = active_by_name(kept, instead_of)
        made = plan_profiles(
            host, names, settings, runtime_only=runtime_only, store=kept, instead_of=replaced, only_trusted=True
        )
        if made.is_empty and not made.cannot_apply and not replaced:
            return ApplyResult(made, None)
        if not made.is_empty and not made.blocking:
            if agree is None:
                for note in made.notes:
                    if note.startswith("caution: "):
                        progress(note)
                if not force:
                    _refuse_new_warnings(host, made)
            elif agree is not None and not agree(made):
                raise RefusedError("cancelled; nothing was changed")
        if made.is_empty and not made.cannot_apply:
            return ApplyResult(
                made, None, tuple((one, roll_back(host, one, kept)) for one in _reread_records(kept, replaced))
            )
        with interruptible():
            gate = None if made.is_empty or made.blocking else gate_for(host, made, peers, progress)
            window = confirm_within if made.has_link_risk else 0
            forced = force and bool(made.warnings)
            record = apply_plan(host, made, kept, progress=progress, gate=gate, confirm_within=window, forced=forced)
            return ApplyResult(made, record, finish_switches(host, kept))


def _refuse_new_warnings(host: Host, made: Plan) -> None:
    """Raise RefusedError where a scan would newly warn after the plan of what is not muted here."""
    if not made.warnings:
        return
    from advisor.operations.muting import is_muted

    name = host.read("/proc/sys/kernel/hostname")
    names = () if isinstance(name, Missing) else (name,)
    refuse_warnings(
        [one for one in made.warnings if not is_muted(one.id, one.devices, names=names, is_live=host.is_live)]
    )


def _reread_records(store: Store, identities: Sequence[str]) -> Iterator[Record]:
    """Each as its journal is then: removing one may change the plan of the next."""
    return (store.find_record(identity) for identity in identities)


def _describe_recovery(record: Record, outcomes: Iterable[ItemOutcome]) -> str:
    """What became of a transaction that was not at its end; its watchdog may have seen to that long ago."""
    listed = tuple(outcomes)
    lost = [one for one in listed if not one.is_back]
    why, result = (record.why_undone or "interrupted", (f"not restored: {len(lost)}" if lost else "rolled back"))
    if record.by_watchdog:
        return f"{record.id} was rolled back by its watchdog ({why}): {result}"
    return f"{record.id} was not finished ({why}): {result}"


def script_for(host: Host, name: str | None, settings: Mapping[str, str], store: Store | None = None) -> str:
    """The rollback script of a transaction (by id, or the last active one), or of a profile applied to this host
    now."""
    kept = store or Store()
    if name is not None and (name in profile_paths() or is_value_word(name) or is_file_word(name)):
        made = plan_profiles(host, (name,), settings, store=kept)
        if made.is_empty:
            raise RefusedError(f"{name} would change nothing here: there is nothing to roll back")
        origin = origin_of(host)
        subject = f"{', '.join(made.profiles)}, applied as it would be now"
        if not _is_behind_link(host, made):
            plain = plain_script(made, {}, subject=subject, fingerprint=made.fingerprint, origin=origin)
            if plain is not None:
                return plain
        return rollback_script(made, origin)
    if name is None:
        active = [record for record in kept.read_records() if record.is_active]
        if not active:
            raise RefusedError("no active transaction", hint="name a profile to get the script beforehand")
        record = active[-1]
    else:
        record = _record_or_profile(kept, name)
    directory = str(kept.script_path(record.id).parent.absolute())
    records = kept.read_records()
    if not record.is_unfinished and not is_below(record, records) and not _is_behind_link(host, record.plan):
        subject = f"transaction {record.id}: {', '.join(record.plan.profiles)}"
        plain = plain_script(
            *(record.plan, record.side_effects_after),
            subject=subject, fingerprint=record.fingerprint, origin=record.origin, directory=directory,
        )  # fmt: skip
        if plain is not None:
            return plain
    data = data_of(record, records, directory=directory)
    return self_contained_script(data, record.plan.profiles, record.fingerprint)


def _is_behind_link(host: Host, plan: Plan) -> bool:
    """Whether a symbolic link leads to a file of the plan: the plain script writes through none."""
    directories = {file.path.rpartition("/")[0] for file in plan.files}
    return any(host.exists(one) and host.real(one) != one for one in directories)


def _record_or_profile(store: Store, name: str) -> Record:
    """A transaction by its id; what is neither that nor a profile is refused as a profile is. Raises UsageError."""
    if is_count(name):
        return store.find_record(name)
    load(name)
    raise AssertionError("a profile of that name was looked for first")
