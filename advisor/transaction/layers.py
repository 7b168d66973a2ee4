"""Active transactions as layers: of those that set one tunable, or a line of one file, the uppermost counts.

The rollback of a lower layer writes nothing that an upper layer holds. The upper layer is then rolled back to the value
before the lower one: its plan is journalled again for that, and its rollback script is written again, before the first
step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host, Missing
from advisor.host.missing import ABSENT
from advisor.planning.comparison import OwnedValue, Ownership
from advisor.planning.records import Change, FileChange, Plan
from advisor.planning.unmerge import remove_edits, settings_of
from advisor.shell.rollback_script import UpperLayersData, rollback_data
from advisor.transaction.journal import Record, sequence_of
from advisor.transaction.layer_ownership import (
    LayerSideEffects,
    UpperLayers,
    depends_on,
    files_of,
    is_side_effect,
    side_effects_of,
    split_side_effects,
    values_of,
)
from advisor.transaction.side_effects import ItemOutcome
from advisor.tunables import FileEdit, parse_tunable
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl import Sysctl
from advisor.tunables.udev import RULES as APPEARING

_replace = msgspec.structs.replace


class LayerRollback(msgspec.Struct, frozen=True):
    """What the rollback of one layer does.

    ``remaining`` is what it restores itself, ``side_effects`` are those of that; ``upper`` are the upper layers whose
    plans change with it. ``outcomes`` are the items that it does not restore, ``passed`` the layer that restores them.
    ``cut_off`` are the side effects to restore if the rollback is interrupted.
    """

    remaining: Plan
    side_effects: LayerSideEffects
    cut_off: LayerSideEffects
    upper: tuple[Record, ...] = ()
    outcomes: tuple[ItemOutcome, ...] = ()
    passed: tuple[tuple[str, str], ...] = ()


def layers_by_tunable(records: Iterable[Record]) -> Mapping[str, tuple[tuple[str, Change], ...]]:
    """Each tunable that an active transaction holds: those transactions, the oldest first, with their changes."""
    found: dict[str, list[tuple[str, Change]]] = {}
    for record in records:
        if record.is_active:
            for name, change in values_of(record).items():
                found.setdefault(name, []).append((record.id, change))
    return {name: tuple(layers) for name, layers in found.items()}


def ownership_of(records: Sequence[Record], instead_of: Collection[str] = ()) -> Ownership:
    """What the active transactions hold, for a plan that replaces ``instead_of``."""
    profiles = {record.id: ", ".join(record.plan.profiles) for record in records}
    values: dict[str, OwnedValue] = {}
    for name, layers in layers_by_tunable(records).items():
        identity, top = layers[-1]
        staying = [change.profile for one, change in _equal_layers(layers) if one not in instead_of]
        underneath = top.after
        for one, change in reversed(layers):
            if one not in instead_of:
                break
            underneath = change.before
        by = f"{identity} ({profiles[identity]})"
        every = frozenset(change.profile for one, change in layers if one not in instead_of)
        values[name] = OwnedValue(top.after, underneath, by, frozenset(staying), every)
    files = {path for record in records if record.is_active for path in files_of(record)}
    return Ownership(values, frozenset(files))


def replacement_notes(records: Sequence[Record], made: Plan) -> Iterator[str]:
    """A line for each transaction that a plan replaces, with the values that its rollback restores."""
    taken = {one.tunable for one in (*made.changes, *made.claims)}
    taken |= {file.path for file in (*made.files, *made.claimed_files)}
    staying = {path for one in records if one.is_active and one.id not in made.instead_of for path in files_of(one)}
    layered, held = layers_by_tunable(records), ownership_of(records, made.instead_of).values
    for record in records:
        if record.id in made.instead_of:
            tops = (name for name in values_of(record) if layered[name][-1][0] == record.id and name not in taken)
            back = [f"{name} {held[name].value} → {held[name].underneath}" for name in tops]
            files = [file for file in record.plan.files if file.path not in taken | staying]
            back += [f"{file.path} {'is removed' if file.before is None else 'is restored'}" for file in files]
            listed = ", ".join(back)
            what = f"what it alone holds is restored ({listed})" if back else "nothing is restored"
            profiles = ", ".join(record.plan.profiles)
            yield f"replaces {record.id} ({profiles}), which is rolled back once this one is confirmed; {what}"


class _PreviewHost(Host):
    """A host with the files that a plan will write; read-only."""

    def __init__(self, host: Host, files: Mapping[str, bytes | None]) -> None:
        super().__init__(host.files, host.commands, is_root=host.is_root)
        self._foreseen = files

    def read_bytes(self, path: str) -> bytes | Missing:
        if path not in self._foreseen:
            return super().read_bytes(path)
        content = self._foreseen[path]
        return ABSENT if content is None else content


def preview_replaced(host: Host, made: Plan, records: Sequence[Record]) -> tuple[tuple[Record, Plan], ...]:
    """What the rollback of each transaction that a plan replaces will restore, in the order in which it happens.

    Reads the host, changes nothing.
    """
    last = max((sequence_of(record.id) for record in records), default=0)
    new = Record(f"{last + 1:04d}", made, "applied", 0.0, None, None, (), {}, (), None)
    standing = {record.id: record for record in (*records, new)}
    files: dict[str, bytes | None] = {file.path: file.after for file in made.files}
    found: list[tuple[Record, Plan]] = []
    for identity in made.instead_of:
        record = standing.pop(identity)
        taken = plan_layer_rollback(_PreviewHost(host, files), record, (*standing.values(),))
        files |= {file.path: file.before for file in taken.remaining.files}
        standing |= {later.id: later for later in taken.upper}
        found.append((record, taken.remaining))
    return tuple(found)


def _equal_layers(layers: Sequence[tuple[str, Change]]) -> Iterator[tuple[str, Change]]:
    """The uppermost layer, and those right below it that hold the same value."""
    return takewhile(lambda layer: layer[1].after == layers[-1][1].after, reversed(layers))


def active_above(record: Record, records: Iterable[Record]) -> tuple[Record, ...]:
    """The upper layers of a transaction: active ones that began after it, the oldest first."""
    return tuple(one for one in records if one.is_active and sequence_of(one.id) > sequence_of(record.id))


def owned_above(record: Record, records: Iterable[Record]) -> Mapping[str, str]:
    """What of a transaction an upper layer holds, or changed as a side effect: tunable or path → id of that layer."""
    found: dict[str, str] = {}
    values, files = values_of(record), files_of(record)
    for upper in active_above(record, records):
        names = {*values_of(upper), *filter(None, map(_twin_id, values_of(upper)))}
        names |= {name for name in side_effects_of(upper) if is_side_effect(upper, name)}
        theirs = files_of(upper)
        shared = (path for path in files.keys() & theirs.keys() if _shares_lines(files[path], theirs[path]))
        for name in (*(names & values.keys()), *shared):
            found[name] = upper.id
    return found


def data_of(record: Record, records: Iterable[Record], *, directory: str | None = None) -> bytes:
    """The data of the rollback script of a transaction, which skips what an upper layer holds, and reports that.

    ``directory`` is that of the transaction, for a script that is stored elsewhere.
    """
    above = _script_layers(record, active_above(record, records))
    after, fingerprint = record.side_effects_after, record.fingerprint
    return rollback_data(
        record.plan, after, above=above, fingerprint=fingerprint, directory=directory, origin=record.origin
    )


def _script_layers(record: Record, later: tuple[Record, ...]) -> UpperLayersData | None:
    """What upper layers share with this transaction; None where they share nothing."""
    sharing = _sharing_ids(record, later)
    if not sharing:
        return None
    plan, top = record.plan, owned_above(record, later)
    own = [one.tunable for one in plan.changes] + [one.path for one in plan.files]
    above = {upper.id: owned_above(record, (upper,)) for upper in later}
    held = {name: tuple(one for one in above if name in above[one]) for name in own if name in top}
    values = {upper.id: _set_otherwise(plan, upper) for upper in later if upper.id in sharing}
    changes = tuple(one for one in plan.changes if one.tunable not in top)
    along = split_side_effects(record, UpperLayers(later), changes, top, again=False)
    ids = tuple(upper.id for upper in later if upper.id in sharing)
    return UpperLayersData(ids, held, values, along.side_effects, along.after)


def _set_otherwise(plan: Plan, upper: Record) -> dict[str, str]:
    """Values of a plan that an upper layer has set to something else."""
    own, theirs = {one.tunable: one.after for one in plan.changes}, values_of(upper)
    return {name: theirs[name].after for name in own if name in theirs and theirs[name].after != own[name]}


def is_below(record: Record, records: Iterable[Record]) -> bool:
    """Whether an upper layer shares something with this transaction."""
    return bool(_sharing_ids(record, active_above(record, records)))


def _sharing_ids(record: Record, later: Iterable[Record]) -> set[str]:
    """Ids of the upper layers that share a value, a file or a side effect with this transaction."""
    sharing = {upper.id for upper in later if touched_items(record) & touched_items(upper)}
    return sharing | set(owned_above(record, later).values())


def claim_owned(record: Record, records: Iterable[Record]) -> Plan | None:
    """The plan of a transaction that restored drifted values of its own profile's earlier layer.

    Such values become claims: the rollback leaves them to the lower layer, and does not restore what another process
    had set in between. None where there are none.
    """
    lower = _active_below(record, records)
    plan, below = record.plan, {name: one for other in lower for name, one in values_of(other).items()}
    # A side effect of another layer was wanted by nobody: it is passed from layer to layer.
    moved = {name for other in lower for name in side_effects_of(other)}
    own = [one for one in plan.changes if one.tunable not in moved and _is_same(one, below.get(one.tunable))]
    found = {one.tunable: below[one.tunable] for one in own}
    alike = [other for other in lower if set(plan.profiles) & set(other.plan.profiles)]
    edits = {path: file.edits for other in alike for path, file in files_of(other).items()}
    files = {file.path for file in plan.files if file.edits and set(file.edits) <= set(edits.get(file.path, ()))}
    if not found and not files:
        return None
    claims = (
        _replace(one, before=one.after, undo=found[one.tunable].steps) for one in plan.changes if one.tunable in found
    )
    changes = tuple(one for one in plan.changes if one.tunable not in found)
    return _replace(
        plan,
        changes=changes,
        claims=(*plan.claims, *claims),
        files=tuple(file for file in plan.files if file.path not in files),
        claimed_files=(
            *plan.claimed_files,
            *(_replace(file, before=file.after, mode_before=file.mode) for file in plan.files if file.path in files),
        ),
        side_effects=tuple(one for one in plan.side_effects if depends_on(one, changes)),
    )


def _active_below(record: Record, records: Iterable[Record]) -> tuple[Record, ...]:
    """The lower layers of a transaction: active ones that began before it, the oldest first."""
    return tuple(one for one in records if one.is_active and sequence_of(one.id) < sequence_of(record.id))


def _is_same(one: Change, below: Change | None) -> bool:
    return below is not None and (one.profile, one.after) == (below.profile, below.after)


def still_active(record: Record, records: Iterable[Record]) -> tuple[ItemOutcome, ...]:
    """What a transaction set again and a lower layer holds as well: it stays set after the rollback."""
    applied = {one.tunable for one in (record.applied_plan or record.plan).changes}
    below = {
        name: (other.id, one) for other in _active_below(record, records) for name, one in values_of(other).items()
    }
    both = ((one, below[one.tunable]) for one in record.plan.claims if one.tunable in applied & below.keys())
    return tuple(
        ItemOutcome(one.tunable, "already", f"lower layer {identity} holds it at {other.after}")
        for one, (identity, other) in both
        if other.after == one.after
    )


def touched_items(record: Record) -> set[str]:
    """Everything that a transaction holds, and its possible side effects. Not the file of rules for classes: each rule
    is a value, and a rollback removes its own lines alone."""
    files = (path for path in files_of(record) if path != APPEARING)
    return {*values_of(record), *files, *side_effects_of(record)}


def _shares_lines(file: FileChange, other: FileChange) -> bool:
    """Whether two transactions that wrote one file belong together in it."""
    if file.path != APPEARING:
        return True
    return any(settings_of(one) & settings_of(two) for one in file.edits for two in other.edits)


def plan_layer_rollback(host: Host, record: Record, records: Iterable[Record], *, force: bool = False) -> LayerRollback:
    """What the rollback of ``record`` does below its upper layers. Reads the host, changes nothing.

    Raises RefusedError where one of these still awaits confirmation.
    """
    later = active_above(record, records)
    sharing = _sharing_ids(record, later)
    if not sharing:
        along = LayerSideEffects(record.plan.side_effects, record.side_effects_after)
        return LayerRollback(record.plan, along, along)
    for upper in later:
        if upper.state == "awaiting-confirmation" and upper.id in sharing:
            raise RefusedError(
                f"upper layer {upper.id} holds some of the same items and awaits confirmation",
                hint=f"advisor confirm {upper.id}, or advisor rollback {upper.id}",
            )
    return _LayerPlanner(host, record, later, force=force).make_plan()


def _twin_id(identity: str) -> str | None:
    one = parse_tunable(identity) if identity.startswith("sysctl:vm.") else None
    return f"sysctl:{one.twin}" if isinstance(one, Sysctl) and one.twin else None


class _LayerPlanner:
    """Collects the parts of one `plan_layer_rollback`."""

    def __init__(self, host: Host, record: Record, later: tuple[Record, ...], *, force: bool) -> None:
        self._host = host
        self._record = record
        self._later = UpperLayers(later)
        self._force = force
        self._outcomes: list[ItemOutcome] = []
        self._passed: list[tuple[str, str]] = []

    def make_plan(self) -> LayerRollback:
        plan = self._record.plan
        changes = tuple(change for change in plan.changes if self._restores_value(change))
        files = tuple(one for file in plan.files if (one := self._remaining_file(file)) is not None)
        along, cut_off = (
            split_side_effects(self._record, self._later, changes, dict(self._passed), again=again)
            for again in (self._record.is_unfinished, True)
        )
        remaining = _replace(plan, changes=changes, files=files, side_effects=along.side_effects)
        outcomes, passed = tuple(self._outcomes), tuple(self._passed)
        return LayerRollback(remaining, along, cut_off, self._later.changed_records, outcomes, passed)

    # -- values ---------------------------------------------------------------------------------------------------

    def _restores_value(self, change: Change) -> bool:
        """Whether the transaction restores this value itself; otherwise an upper layer is noted that does."""
        name = change.tunable
        for upper in self._later.records:
            above, along = values_of(upper).get(name), side_effects_of(upper).get(name)
            twin = _twin_id(name)
            if above is not None:
                self._pass_value(upper, change, above)
                return False
            if twin is not None and twin in values_of(upper):
                self._pass_pair(upper, change, twin)
                return False
            if along is not None and is_side_effect(upper, name):
                # The upper layer changed it as a side effect, and restores it with the cause.
                if self._is_restored_already(name) or name in dict(self._record.left):
                    self._outcomes.append(ItemOutcome(name, "already", f"{upper.id} restores it"))
                elif self._is_passable(upper, change, along.before):
                    self._pass_side_effect(upper, change, along)
                    self._pass_item(name, upper, f"side effect of {upper.id}, which restores it")
                else:
                    self._skip_item(name, f"modified externally ({along.before}) before {upper.id} was applied")
                return False
            if along is not None and along.before == change.after:
                # It did not change then: the upper layer now starts from the value before this one.
                unmoved = _replace(along, before=change.before, undo=change.undo)
                self._later.set_side_effect(upper.id, unmoved, change.before)
        return True

    def _pass_value(self, upper: Record, change: Change, above: Change) -> None:
        name = change.tunable
        if self._is_restored_already(name) or name in dict(self._record.left):
            self._outcomes.append(ItemOutcome(name, "already", f"{upper.id} holds it"))
        elif self._is_passable(upper, change, above.before):
            members = change.members or above.members
            self._later.set_value(upper.id, _replace(above, before=change.before, undo=change.undo, members=members))
            along = side_effects_of(upper).get(name)
            if along is not None and along.before == change.after:
                self._pass_side_effect(upper, change, along)
            self._pass_item(name, upper, f"{upper.id} holds it at {above.after}")
        else:
            self._skip_item(name, f"modified externally ({above.before}) before {upper.id} was applied")

    def _is_passable(self, upper: Record, change: Change, found: str) -> bool:
        """Whether the upper layer found what this one had set, or is treated so."""
        return found == change.after or self._force or (self._record.id in upper.without and found == change.before)

    def _pass_side_effect(self, upper: Record, change: Change, along: SideEffect) -> None:
        after = upper.side_effects_after.get(change.tunable)
        self._later.set_side_effect(upper.id, _replace(along, before=change.before, undo=change.undo), after)

    def _pass_pair(self, upper: Record, change: Change, twin: str) -> None:
        """The upper layer set the same limit in another unit: it is rolled back to the pair before this one."""
        own, along = side_effects_of(self._record).get(twin), side_effects_of(upper).get(change.tunable)
        if own is not None and along is not None and (along.before in (change.after, change.before) or self._force):
            above = values_of(upper)[twin]
            self._later.set_value(upper.id, _replace(above, before=own.before, undo=change.undo))
            self._pass_side_effect(upper, change, along)
            self._pass_item(change.tunable, upper, f"{upper.id} holds {twin}, the same limit in another unit")
        else:
            self._skip_item(change.tunable, f"upper layer {upper.id} set {twin}, the same limit in another unit")

    def _is_restored_already(self, name: str) -> bool:
        """An earlier rollback restored it."""
        record = self._record
        return record.state == "rolled-back" or (
            record.state in ("unfinished", "kept-external") and name not in {what for what, _ in record.kept}
        )

    def _pass_item(self, name: str, upper: Record, words: str) -> None:
        self._passed.append((name, upper.id))
        self._outcomes.append(ItemOutcome(name, "passed", words))

    def _skip_item(self, name: str, why: str) -> None:
        self._outcomes.append(ItemOutcome(name, "kept", why, f"advisor rollback {self._record.id} --force"))

    # -- files ----------------------------------------------------------------------------------------------------

    def _remaining_file(self, file: FileChange) -> FileChange | None:
        """The change that restores a file or removes this transaction's lines; None where nothing is to be done."""
        uppers = [upper for upper in self._later.records if file.path in files_of(upper)]
        if not any(_shares_lines(file, files_of(upper)[file.path]) for upper in uppers):
            return file
        if self._is_restored_already(file.path):
            self._outcomes.append(ItemOutcome(file.path, "already", "its lines are removed"))
            return None
        live = self._host.read_bytes(file.path)
        keep = [edit for upper in uppers for edit in files_of(upper)[file.path].edits]
        wanted = live if isinstance(live, Missing) else remove_edits(live, file, keep)
        plans = self._files_without(file, uppers)
        if isinstance(wanted, Missing) or isinstance(plans, Missing):
            why = wanted.why if isinstance(wanted, Missing) else plans.why if isinstance(plans, Missing) else ""
            lines = ", ".join(sorted({f"{edit.key} {edit.value}" for edit in file.edits}))
            by_hand = f"edit {file.path}: remove {lines}"
            self._outcomes.append(ItemOutcome(file.path, "kept", why, by_hand))
            return None
        for identity, new in plans.items():
            self._later.set_file(identity, new)
        names = ", ".join(upper.id for upper in uppers)
        if wanted == live:
            self._pass_item(file.path, uppers[-1], f"holds what {names} wrote, and nothing else of this transaction")
            return None
        self._passed.append((file.path, uppers[-1].id))
        mode = file.mode_before if wanted is None else file.mode
        assert isinstance(live, bytes)
        return _replace(file, before=wanted, after=live, mode_before=mode, edits=())

    def _files_without(self, file: FileChange, uppers: Sequence[Record]) -> dict[str, FileChange] | Missing:
        """The file before and after each upper layer, without this transaction."""
        found: dict[str, FileChange] = {}
        below: list[FileEdit] = []
        for upper in uppers:
            theirs = files_of(upper)[file.path]
            if self._record.id in upper.without:
                # An interrupted attempt had come as far as this one.
                below += theirs.edits
                continue
            before = None if theirs.before is None else remove_edits(theirs.before, file, below)
            below += theirs.edits
            after = remove_edits(theirs.after, file, below)
            if isinstance(before, Missing):
                return before
            if isinstance(after, Missing) or after is None:
                return after or Missing("unreadable", "nothing would be left of it")
            new = _replace(theirs, before=before, after=after)
            if before is None and theirs.before is not None:
                new = _replace(new, mode_before=file.mode_before, new_directories=file.new_directories)
            found[upper.id] = new
        return found


def overlaid_settings(records: Iterable[Record], record: Record, path: str) -> frozenset[tuple[str, ...]]:
    """Settings of a file that upper layers of ``record`` have set since."""
    found: frozenset[tuple[str, ...]] = frozenset()
    for upper in active_above(record, records):
        file = files_of(upper).get(path)
        if file is not None:
            found = found.union(*(settings_of(edit) for edit in file.edits))
    return found
