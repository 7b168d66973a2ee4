"""Transactions in force as layers: of those that set one tunable, or a line of one file, the last counts.

Taking one out from under others writes nothing that a later one holds: the later one goes back, when its turn comes, to
what was there before the one that was taken out. Its plan is journalled anew for that, and its rollback script written
anew, before the first step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host, Missing
from advisor.host.missing import ABSENT
from advisor.i18n import N_, msg
from advisor.planning.ownership import Held, Holding
from advisor.planning.records import Bystander, Change, FileChange, Plan
from advisor.planning.unmerge import settings_of, withdrawn
from advisor.shell.rollback_script import Above, rollback_script
from advisor.transaction.journal import Record, sequence
from advisor.transaction.layer_ownership import Later, beside, files_of, moves, values_of
from advisor.transaction.layer_side_effects import LayerSideEffects, hangs_on, put_beside
from advisor.transaction.side_effects import ItemOutcome
from advisor.tunables import FileEdit, tunable
from advisor.tunables.sysctl import Sysctl

_replace = msgspec.structs.replace


class TakenOut(msgspec.Struct, frozen=True):
    """What taking out one transaction comes to.

    ``remaining`` is what it has to put back itself, and ``beside`` what goes along with that; ``later`` are those later
    transactions that come to something else without it. ``outcomes`` tell of what is not its to put back, ``passed`` of
    what it leaves to whom. ``cut_off`` is what whoever ends it has to put back, should it be cut off.
    """

    remaining: Plan
    beside: LayerSideEffects
    cut_off: LayerSideEffects
    later: tuple[Record, ...] = ()
    outcomes: tuple[ItemOutcome, ...] = ()
    passed: tuple[tuple[str, str], ...] = ()


def stacks(records: Iterable[Record]) -> Mapping[str, tuple[tuple[str, Change], ...]]:
    """Each tunable that a transaction in force holds: those transactions, the oldest first, with their changes."""
    found: dict[str, list[tuple[str, Change]]] = {}
    for record in records:
        if record.is_in_force:
            for name, change in values_of(record).items():
                found.setdefault(name, []).append((record.id, change))
    return {name: tuple(layers) for name, layers in found.items()}


def held_by(records: Sequence[Record], instead_of: Collection[str] = ()) -> Held:
    """What the transactions in force hold, for a plan that takes the place of ``instead_of``."""
    profiles = {record.id: ", ".join(record.plan.profiles) for record in records}
    values: dict[str, Holding] = {}
    for name, layers in stacks(records).items():
        identity, top = layers[-1]
        staying = [change.profile for one, change in _alike(layers) if one not in instead_of]
        underneath = top.after
        for one, change in reversed(layers):
            if one not in instead_of:
                break
            underneath = change.before
        by = f"{identity} ({profiles[identity]})"
        values[name] = Holding(top.after, underneath, by, frozenset(staying))
    files = {path for record in records if record.is_in_force for path in files_of(record)}
    return Held(values, frozenset(files))


def replacement_notes(records: Sequence[Record], made: Plan) -> Iterator[str]:
    """A line for each transaction that a plan takes the place of, with what then goes back, and to what."""
    taken = {one.tunable for one in (*made.changes, *made.claims)}
    taken |= {file.path for file in (*made.files, *made.claimed_files)}
    staying = {path for one in records if one.is_in_force and one.id not in made.instead_of for path in files_of(one)}
    layered, held = stacks(records), held_by(records, made.instead_of).values
    for record in records:
        if record.id in made.instead_of:
            tops = (name for name in values_of(record) if layered[name][-1][0] == record.id and name not in taken)
            back = [f"{name} {held[name].value} → {held[name].underneath}" for name in tops]
            back += [_file_back(file) for file in record.plan.files if file.path not in taken | staying]
            listed = ", ".join(back)
            what = (
                msg("what it alone holds goes back ({listed})", listed=listed)
                if back
                else N_("nothing goes back with it")
            )
            profiles = ", ".join(record.plan.profiles)
            yield msg(
                "takes the place of {id} ({profiles}), which is taken out once this is kept; {what}",
                id=record.id,
                profiles=profiles,
                what=what,
            )


def _file_back(file: FileChange) -> str:
    return f"{file.path} {'is removed' if file.before is None else 'as it was'}"


class _Foreseen(Host):
    """A host whose files are as they will be; for looking only."""

    def __init__(self, host: Host, files: Mapping[str, bytes | None]) -> None:
        super().__init__(host.files, host.commands, is_root=host.is_root)
        self._foreseen = files

    def read_bytes(self, path: str) -> bytes | Missing:
        if path not in self._foreseen:
            return super().read_bytes(path)
        content = self._foreseen[path]
        return ABSENT if content is None else content


def foreseen(host: Host, made: Plan, records: Sequence[Record]) -> tuple[tuple[Record, Plan], ...]:
    """What taking out each transaction that a plan takes the place of will put back, once the plan is in force, in the
    order in which that is done. Reads, and changes nothing."""
    last = max((sequence(record.id) for record in records), default=0)
    new = Record(f"{last + 1:04d}", made, "applied", 0.0, None, None, (), {}, (), None)
    standing = {record.id: record for record in (*records, new)}
    files: dict[str, bytes | None] = {file.path: file.after for file in made.files}
    found: list[tuple[Record, Plan]] = []
    for identity in made.instead_of:
        record = standing.pop(identity)
        taken = take_out(_Foreseen(host, files), record, (*standing.values(),))
        files |= {file.path: file.before for file in taken.remaining.files}
        standing |= {later.id: later for later in taken.later}
        found.append((record, taken.remaining))
    return tuple(found)


def _alike(layers: Sequence[tuple[str, Change]]) -> Iterator[tuple[str, Change]]:
    """The last layer, and those right below it that hold the same value."""
    return takewhile(lambda layer: layer[1].after == layers[-1][1].after, reversed(layers))


def later_in_force(record: Record, records: Iterable[Record]) -> tuple[Record, ...]:
    """The transactions in force that came after this one, the oldest first."""
    return tuple(one for one in records if one.is_in_force and sequence(one.id) > sequence(record.id))


def held_above(record: Record, records: Iterable[Record]) -> Mapping[str, str]:
    """What of a transaction a later one in force holds, or has moved along: values by tunable, files by path, with that
    one's id."""
    found: dict[str, str] = {}
    values, files = values_of(record), files_of(record)
    for upper in later_in_force(record, records):
        names = {*values_of(upper), *filter(None, map(_twin, values_of(upper)))}
        names |= {name for name in beside(upper) if moves(upper, name)}
        for name in (*(names & values.keys()), *(files_of(upper).keys() & files.keys())):
            found[name] = upper.id
    return found


def script_of(record: Record, records: Iterable[Record], *, directory: str | None = None) -> str:
    """The rollback script of a transaction: for as long as a later one holds something, it keeps that, and says so.

    ``directory`` is the transaction's, where the script is to lie elsewhere.
    """
    above = _above(record, later_in_force(record, records))
    after, fingerprint = record.bystanders_after, record.fingerprint
    return rollback_script(record.plan, after, above=above, fingerprint=fingerprint, directory=directory)


def _above(record: Record, later: tuple[Record, ...]) -> Above | None:
    """What later transactions share with this one; None where there is nothing."""
    sharing = _sharing(record, later)
    if not sharing:
        return None
    plan, top = record.plan, held_above(record, later)
    own = [one.tunable for one in plan.changes] + [one.path for one in plan.files]
    above = {upper.id: held_above(record, (upper,)) for upper in later}
    held = {name: tuple(one for one in above if name in above[one]) for name in own if name in top}
    values = {upper.id: _set_otherwise(plan, upper) for upper in later if upper.id in sharing}
    changes = tuple(one for one in plan.changes if one.tunable not in top)
    along = put_beside(record, Later(later), changes, top, again=False)
    ids = tuple(upper.id for upper in later if upper.id in sharing)
    return Above(ids, held, values, along.bystanders, along.after)


def _set_otherwise(plan: Plan, upper: Record) -> dict[str, str]:
    """Values of a plan that a later transaction has set to something else."""
    own, theirs = {one.tunable: one.after for one in plan.changes}, values_of(upper)
    return {name: theirs[name].after for name in own if name in theirs and theirs[name].after != own[name]}


def _sharing(record: Record, later: Iterable[Record]) -> set[str]:
    """Ids of the later transactions that have something to do with what this one holds, or moved along."""
    sharing = {upper.id for upper in later if touched(record) & touched(upper)}
    return sharing | set(held_above(record, later).values())


def set_again(record: Record, records: Iterable[Record]) -> Plan | None:
    """What a transaction comes to that has set again what its own profile holds already: it holds that as well, and
    goes back to it, not to what somebody else had made of it in between. None where it has set nothing again."""
    lower = _lower(record, records)
    plan, below = record.plan, {name: one for other in lower for name, one in values_of(other).items()}
    # What another one has moved along is nobody's wish: it goes from layer to layer.
    moved = {name for other in lower for name in beside(other)}
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
        bystanders=tuple(one for one in plan.bystanders if hangs_on(one, changes)),
    )


def _lower(record: Record, records: Iterable[Record]) -> tuple[Record, ...]:
    """The transactions in force that came before this one, the oldest first."""
    return tuple(one for one in records if one.is_in_force and sequence(one.id) < sequence(record.id))


def _is_same(one: Change, below: Change | None) -> bool:
    return below is not None and (one.profile, one.after) == (below.profile, below.after)


def left_in_force(record: Record, records: Iterable[Record]) -> tuple[ItemOutcome, ...]:
    """What a transaction has set again, and holds along with an earlier one: it stays once this one is put back."""
    applied = {one.tunable for one in (record.applied_plan or record.plan).changes}
    below = {name: (other.id, one) for other in _lower(record, records) for name, one in values_of(other).items()}
    both = ((one, below[one.tunable]) for one in record.plan.claims if one.tunable in applied & below.keys())
    return tuple(
        ItemOutcome(
            one.tunable,
            "already",
            msg("{identity}, which came earlier, holds it at {after}", identity=identity, after=other.after),
        )
        for one, (identity, other) in both
        if other.after == one.after
    )


def touched(record: Record) -> set[str]:
    """All that a transaction holds, or that may have moved along with it."""
    return {*values_of(record), *files_of(record), *beside(record)}


def take_out(host: Host, record: Record, records: Iterable[Record], *, force: bool = False) -> TakenOut:
    """What putting ``record`` back comes to while later ones are in force. Reads, and changes nothing.

    Raises RefusedError where one of those still waits for confirmation.
    """
    later = later_in_force(record, records)
    sharing = _sharing(record, later)
    if not sharing:
        along = LayerSideEffects(record.plan.bystanders, record.bystanders_after)
        return TakenOut(record.plan, along, along)
    for upper in later:
        if upper.state == "awaiting-confirmation" and upper.id in sharing:
            raise RefusedError(
                msg(
                    "transaction {id} came later, holds some of the same things and waits for confirmation", id=upper.id
                ),
                hint=msg("advisor confirm {id}, or advisor rollback {id}", id=upper.id),
            )
    return _Taking(host, record, later, force=force).taken()


def _twin(identity: str) -> str | None:
    one = tunable(identity) if identity.startswith("sysctl:vm.") else None
    return f"sysctl:{one.twin}" if isinstance(one, Sysctl) and one.twin else None


class _Taking:
    """The work on one `take_out`."""

    def __init__(self, host: Host, record: Record, later: tuple[Record, ...], *, force: bool) -> None:
        self._host = host
        self._record = record
        self._later = Later(later)
        self._force = force
        self._outcomes: list[ItemOutcome] = []
        self._passed: list[tuple[str, str]] = []

    def taken(self) -> TakenOut:
        plan = self._record.plan
        changes = tuple(change for change in plan.changes if self._remains(change))
        files = tuple(one for file in plan.files if (one := self._remaining_file(file)) is not None)
        along, cut_off = (
            put_beside(self._record, self._later, changes, dict(self._passed), again=again)
            for again in (self._record.is_unfinished, True)
        )
        remaining = _replace(plan, changes=changes, files=files, bystanders=along.bystanders)
        outcomes, passed = tuple(self._outcomes), tuple(self._passed)
        return TakenOut(remaining, along, cut_off, self._later.changed, outcomes, passed)

    # -- values ---------------------------------------------------------------------------------------------------

    def _remains(self, change: Change) -> bool:
        """Whether the transaction has to put this value back itself; if not, who does is settled."""
        name = change.tunable
        for upper in self._later.records:
            above, along = values_of(upper).get(name), beside(upper).get(name)
            twin = _twin(name)
            if above is not None:
                self._pass_value(upper, change, above)
                return False
            if twin is not None and twin in values_of(upper):
                self._pass_pair(upper, change, twin)
                return False
            if along is not None and moves(upper, name):
                self._pass_moved(upper, change, along)
                return False
            if along is not None and along.before == change.after:
                # It did not move then: that one finds what is there from now on.
                unmoved = _replace(along, before=change.before, undo=change.undo)
                self._later.set_beside(upper.id, unmoved, change.before)
        return True

    def _pass_value(self, upper: Record, change: Change, above: Change) -> None:
        name = change.tunable
        if self._is_given_up(name) or name in dict(self._record.left):
            self._outcomes.append(ItemOutcome(name, "already", msg("{id} holds it", id=upper.id)))
        elif self._is_passable(upper, change, above.before):
            self._later.set_value(upper.id, _replace(above, before=change.before, undo=change.undo))
            along = beside(upper).get(name)
            if along is not None and along.before == change.after:
                self._pass_beside(upper, change, along)
            self._say_passed(name, upper, msg("{id} holds it at {after}", id=upper.id, after=above.after))
        else:
            self._keep(
                name, msg("somebody else had set it to {before} before {id} came", before=above.before, id=upper.id)
            )

    def _pass_moved(self, upper: Record, change: Change, along: Bystander) -> None:
        """The later one has moved it along with something else, and puts it back with that."""
        name = change.tunable
        if self._is_given_up(name) or name in dict(self._record.left):
            self._outcomes.append(ItemOutcome(name, "already", msg("{id} puts it back", id=upper.id)))
        elif self._is_passable(upper, change, along.before):
            self._pass_beside(upper, change, along)
            self._say_passed(name, upper, msg("{id} moved it along, and puts it back", id=upper.id))
        else:
            self._keep(
                name, msg("somebody else had set it to {before} before {id} came", before=along.before, id=upper.id)
            )

    def _is_passable(self, upper: Record, change: Change, found: str) -> bool:
        """Whether the later one found what this one had set, or is to be treated so."""
        return found == change.after or self._force or (self._record.id in upper.without and found == change.before)

    def _pass_beside(self, upper: Record, change: Change, along: Bystander) -> None:
        after = upper.bystanders_after.get(change.tunable)
        self._later.set_beside(upper.id, _replace(along, before=change.before, undo=change.undo), after)

    def _pass_pair(self, upper: Record, change: Change, twin: str) -> None:
        """The later one set the same limit in another unit: it goes back to the pair as it was."""
        own, along = beside(self._record).get(twin), beside(upper).get(change.tunable)
        if own is not None and along is not None and (along.before in (change.after, change.before) or self._force):
            above = values_of(upper)[twin]
            self._later.set_value(upper.id, _replace(above, before=own.before, undo=change.undo))
            self._pass_beside(upper, change, along)
            self._say_passed(
                change.tunable,
                upper,
                msg("{id} holds {twin}, which is the same in another unit", id=upper.id, twin=twin),
            )
        else:
            self._keep(
                change.tunable,
                msg("{id} came later and set {twin}, which is the same in another unit", id=upper.id, twin=twin),
            )

    def _is_given_up(self, name: str) -> bool:
        """An earlier rollback has put this one back already."""
        record = self._record
        return record.state == "rolled-back" or (
            record.state == "partly-rolled-back" and name not in {what for what, _ in record.kept}
        )

    def _say_passed(self, name: str, upper: Record, words: str) -> None:
        self._passed.append((name, upper.id))
        self._outcomes.append(ItemOutcome(name, "passed", words))

    def _keep(self, name: str, why: str) -> None:
        self._outcomes.append(ItemOutcome(name, "kept", why, f"advisor rollback {self._record.id} --force"))

    # -- files ----------------------------------------------------------------------------------------------------

    def _remaining_file(self, file: FileChange) -> FileChange | None:
        """What has to be done to a file: as it was, without this transaction's lines, or nothing at all."""
        uppers = [upper for upper in self._later.records if file.path in files_of(upper)]
        if not uppers:
            return file
        if self._is_given_up(file.path):
            self._outcomes.append(ItemOutcome(file.path, "already", N_("its lines are taken out")))
            return None
        live = self._host.read_bytes(file.path)
        keep = [edit for upper in uppers for edit in files_of(upper)[file.path].edits]
        wanted = live if isinstance(live, Missing) else withdrawn(live, file, keep)
        plans = self._files_without(file, uppers)
        if isinstance(wanted, Missing) or isinstance(plans, Missing):
            why = wanted.why if isinstance(wanted, Missing) else plans.why if isinstance(plans, Missing) else ""
            lines = ", ".join(sorted({f"{edit.key} {edit.value}" for edit in file.edits}))
            by_hand = msg("edit {path}: take out {lines}", path=file.path, lines=lines)
            self._outcomes.append(ItemOutcome(file.path, "kept", why, by_hand))
            return None
        for identity, new in plans.items():
            self._later.set_file(identity, new)
        names = ", ".join(upper.id for upper in uppers)
        if wanted == live:
            self._say_passed(
                file.path, uppers[-1], msg("holds what {names} wrote, and nothing else of this one", names=names)
            )
            return None
        self._passed.append((file.path, uppers[-1].id))
        mode = file.mode_before if wanted is None else file.mode
        assert isinstance(live, bytes)
        return _replace(file, before=wanted, after=live, mode_before=mode, edits=())

    def _files_without(self, file: FileChange, uppers: Sequence[Record]) -> dict[str, FileChange] | Missing:
        """The file as each of the later ones would have found and left it without this transaction."""
        found: dict[str, FileChange] = {}
        below: list[FileEdit] = []
        for upper in uppers:
            theirs = files_of(upper)[file.path]
            if self._record.id in upper.without:
                # An attempt that was cut off had come as far as this one.
                below += theirs.edits
                continue
            before = None if theirs.before is None else withdrawn(theirs.before, file, below)
            below += theirs.edits
            after = withdrawn(theirs.after, file, below)
            if isinstance(before, Missing):
                return before
            if isinstance(after, Missing) or after is None:
                return after or Missing("unreadable", N_("nothing would be left of it"))
            new = _replace(theirs, before=before, after=after)
            if before is None and theirs.before is not None:
                new = _replace(new, mode_before=file.mode_before, new_directories=file.new_directories)
            found[upper.id] = new
        return found


def overlaid(records: Iterable[Record], record: Record, path: str) -> frozenset[tuple[str, ...]]:
    """Settings of a file that transactions in force after ``record`` have set since."""
    found: frozenset[tuple[str, ...]] = frozenset()
    for upper in later_in_force(record, records):
        file = files_of(upper).get(path)
        if file is not None:
            found = found.union(*(settings_of(edit) for edit in file.edits))
    return found
