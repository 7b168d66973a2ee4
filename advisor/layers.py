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
from advisor.journal import Record, sequence
from advisor.plan.held import Held, Holding
from advisor.plan.records import Bystander, Change, FileChange, Plan
from advisor.plan.withdrawal import settings_of, withdrawn
from advisor.script import rollback_script
from advisor.surroundings import Outcome
from advisor.tunables import FileEdit, tunable
from advisor.tunables.sysctl import Sysctl

_replace = msgspec.structs.replace


class TakenOut(msgspec.Struct, frozen=True):
    """What taking out one transaction comes to.

    ``remaining`` is what it has to put back itself, ``plans`` are later transactions with what they come to without it,
    ``outcomes`` tell of what is not its to put back, ``passed`` of what it leaves to whom.
    """

    remaining: Plan
    plans: tuple[tuple[Record, Plan], ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    passed: tuple[tuple[str, str], ...] = ()


def values_of(record: Record) -> Mapping[str, Change]:
    """Each tunable that a transaction holds, made or claimed; not what the kernel kept to itself."""
    left = dict(record.left)
    return {one.tunable: one for one in (*record.plan.changes, *record.plan.claims) if one.tunable not in left}


def files_of(record: Record) -> Mapping[str, FileChange]:
    """Each file that a transaction holds lines of."""
    return {file.path: file for file in (*record.plan.claimed_files, *record.plan.files)}


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
    """A line for each transaction that a plan takes the place of, with what then goes back."""
    taken = {one.tunable for one in (*made.changes, *made.claims)}
    layered = stacks(records)
    for record in records:
        if record.id in made.instead_of:
            tops = {name for name in values_of(record) if layered[name][-1][0] == record.id}
            own = [one for name, one in values_of(record).items() if name in tops - taken]
            back = ", ".join(f"{one.tunable} {one.after} → {one.before}" for one in own)
            what = f"what it alone holds goes back ({back})" if back else "it alone holds nothing"
            profiles = ", ".join(record.plan.profiles)
            yield f"takes the place of {record.id} ({profiles}), which is taken out once this is kept; {what}"


def _alike(layers: Sequence[tuple[str, Change]]) -> Iterator[tuple[str, Change]]:
    """The last layer, and those right below it that hold the same value."""
    return takewhile(lambda layer: layer[1].after == layers[-1][1].after, reversed(layers))


def later_in_force(record: Record, records: Iterable[Record]) -> tuple[Record, ...]:
    """The transactions in force that came after this one, the oldest first."""
    return tuple(one for one in records if one.is_in_force and sequence(one.id) > sequence(record.id))


def held_above(record: Record, records: Iterable[Record]) -> Mapping[str, str]:
    """What of a transaction a later one in force holds: values by tunable, files by path, with that one's id."""
    found: dict[str, str] = {}
    values, files = values_of(record), files_of(record)
    for upper in later_in_force(record, records):
        names = {*values_of(upper), *filter(None, map(_twin, values_of(upper)))}
        for name in (*(names & values.keys()), *(files_of(upper).keys() & files.keys())):
            found[name] = upper.id
    return found


def script_of(record: Record, records: Iterable[Record]) -> str:
    """The rollback script of a transaction: what a later one holds is none of its business, and it says so."""
    later = later_in_force(record, records)
    held = held_above(record, later)
    made = {one.tunable for one in record.plan.changes} | {one.path for one in record.plan.files}
    told = {name: identity for name, identity in held.items() if name in made}
    remaining = _without_names(record.plan, held, later)
    return rollback_script(remaining, record.bystanders_after, held=told, fingerprint=record.fingerprint)


def _without_names(plan: Plan, names: Collection[str], later: Collection[Record]) -> Plan:
    """The plan without the values and files of these names, and without what goes along with later transactions."""
    changes = tuple(one for one in plan.changes if one.tunable not in names)
    theirs = {name for upper in later for name in _moved_by(upper.plan)}
    bystanders = tuple(
        one
        for one in plan.bystanders
        if (_hangs_on(one, changes) if one.keeps or one.resets else one.tunable not in theirs)
    )
    files = tuple(one for one in plan.files if one.path not in names)
    return _replace(plan, changes=changes, files=files, bystanders=bystanders)


def _hangs_on(one: Bystander, changes: Iterable[Change]) -> bool:
    """Whether one of the changes is what takes it along."""
    if one.keeps:
        return any(change.risk == "link" for change in changes)
    return any(change.tunable.startswith(_channels_of(one)) for change in changes)


def _channels_of(one: Bystander) -> str:
    return f"{one.tunable.rpartition(':')[0]}:channels."


def take_out(host: Host, record: Record, records: Iterable[Record], *, force: bool = False) -> TakenOut:
    """What putting ``record`` back comes to while later ones are in force. Reads, and changes nothing.

    Raises RefusedError where one of those still waits for confirmation.
    """
    later = later_in_force(record, records)
    above = held_above(record, later)
    if not later or not (above or _shares_bystanders(record, later)):
        return TakenOut(record.plan)
    for upper in later:
        if upper.state == "awaiting-confirmation" and upper.id in above.values():
            raise RefusedError(
                f"transaction {upper.id} came later, holds some of the same things and waits for confirmation",
                hint=f"advisor confirm {upper.id}, or advisor rollback {upper.id}",
            )
    return _Taking(host, record, later, force=force).taken()


def _shares_bystanders(record: Record, later: Iterable[Record]) -> bool:
    own = {one.tunable for one in record.plan.bystanders}
    return any(own & _moved_by(upper.plan) for upper in later)


def _moved_by(plan: Plan) -> set[str]:
    return {one.tunable for one in plan.changes} | {one.tunable for one in plan.bystanders}


def _twin(identity: str) -> str | None:
    one = tunable(identity) if identity.startswith("sysctl:vm.") else None
    return f"sysctl:{one.twin}" if isinstance(one, Sysctl) and one.twin else None


class _Taking:
    """The work on one `take_out`: plans of the later transactions as they become."""

    def __init__(self, host: Host, record: Record, later: tuple[Record, ...], *, force: bool) -> None:
        self._host = host
        self._record = record
        self._later = later
        self._force = force
        self._plans = {upper.id: upper.plan for upper in later}
        self._outcomes: list[Outcome] = []
        self._passed: list[tuple[str, str]] = []

    def taken(self) -> TakenOut:
        plan = self._record.plan
        changes = tuple(change for change in plan.changes if self._remains(change))
        files = tuple(one for file in plan.files if (one := self._remaining_file(file)) is not None)
        bystanders = tuple(one for one in plan.bystanders if self._remains_beside(one, changes))
        remaining = _replace(plan, changes=changes, files=files, bystanders=bystanders)
        plans = tuple((upper, self._plans[upper.id]) for upper in self._later if self._plans[upper.id] != upper.plan)
        return TakenOut(remaining, plans, tuple(self._outcomes), tuple(self._passed))

    # -- values ---------------------------------------------------------------------------------------------------

    def _remains(self, change: Change) -> bool:
        """Whether the transaction has to put this value back itself; if not, who does is settled."""
        name = change.tunable
        for upper in self._later:
            above = values_of(upper).get(name)
            twin = _twin(name)
            if above is not None:
                self._pass_value(upper, change, above)
                return False
            if twin is not None and twin in values_of(upper):
                self._pass_pair(upper, change, twin)
                return False
        return True

    def _pass_value(self, upper: Record, change: Change, above: Change) -> None:
        name = change.tunable
        is_passed = self._record.id in upper.without and above.before == change.before
        if self._is_given_up(name) or name in dict(self._record.left):
            self._outcomes.append(Outcome(name, "already", f"{upper.id} holds it"))
        elif above.before == change.after or self._force or is_passed:
            self._set_value(upper, _replace(above, before=change.before, undo=change.undo))
            self._say_passed(name, upper, f"{upper.id} holds it at {above.after}")
        else:
            self._keep(name, f"somebody else had set it to {above.before} before {upper.id} came")

    def _pass_pair(self, upper: Record, change: Change, twin: str) -> None:
        """The later one set the same limit in another unit: it goes back to the pair as it was."""
        own = next((one for one in self._record.plan.bystanders if one.tunable == twin), None)
        plan = self._plans[upper.id]
        beside = next((one for one in plan.bystanders if one.tunable == change.tunable), None)
        if own is not None and beside is not None and (beside.before in (change.after, change.before) or self._force):
            above = values_of(_replace(upper, plan=plan))[twin]
            self._set_value(upper, _replace(above, before=own.before, undo=change.undo))
            self._set_bystander(upper, _replace(beside, before=change.before, undo=change.undo))
            self._say_passed(change.tunable, upper, f"{upper.id} holds {twin}, which is the same in another unit")
        else:
            self._keep(change.tunable, f"{upper.id} came later and set {twin}, which is the same in another unit")

    def _is_given_up(self, name: str) -> bool:
        """An earlier rollback has put this one back already."""
        record = self._record
        return record.state == "rolled-back" or (
            record.state == "partly-rolled-back" and name not in {what for what, _ in record.kept}
        )

    def _set_value(self, upper: Record, change: Change) -> None:
        plan = self._plans[upper.id]
        made = {one.tunable for one in plan.changes}
        if change.tunable in made:
            changes = tuple(change if one.tunable == change.tunable else one for one in plan.changes)
            self._plans[upper.id] = _replace(plan, changes=changes)
        elif change.before != change.after:
            # What it only claimed is its own from now on.
            claims = tuple(one for one in plan.claims if one.tunable != change.tunable)
            self._plans[upper.id] = _replace(plan, changes=(*plan.changes, change), claims=claims)

    def _say_passed(self, name: str, upper: Record, words: str) -> None:
        self._passed.append((name, upper.id))
        self._outcomes.append(Outcome(name, "passed", words))

    def _keep(self, name: str, why: str) -> None:
        self._outcomes.append(Outcome(name, "kept", why, f"advisor rollback {self._record.id} --force"))

    # -- files ----------------------------------------------------------------------------------------------------

    def _remaining_file(self, file: FileChange) -> FileChange | None:
        """What has to be done to a file: as it was, without this transaction's lines, or nothing at all."""
        uppers = [upper for upper in self._later if file.path in files_of(upper)]
        if not uppers:
            return file
        if self._is_given_up(file.path):
            self._outcomes.append(Outcome(file.path, "already", "its lines are taken out"))
            return None
        live = self._host.read_bytes(file.path)
        keep = [edit for upper in uppers for edit in files_of(upper)[file.path].edits]
        wanted = live if isinstance(live, Missing) else withdrawn(live, file, keep)
        plans = self._plans_without(file, uppers)
        if isinstance(wanted, Missing) or isinstance(plans, Missing):
            why = wanted.why if isinstance(wanted, Missing) else plans.why if isinstance(plans, Missing) else ""
            lines = ", ".join(sorted({f"{edit.key} {edit.value}" for edit in file.edits}))
            by_hand = f"edit {file.path}: take out {lines}"
            self._outcomes.append(Outcome(file.path, "kept", why, by_hand))
            return None
        self._plans |= plans
        names = ", ".join(upper.id for upper in uppers)
        if wanted == live:
            self._say_passed(file.path, uppers[-1], f"holds what {names} wrote, and nothing else of this one")
            return None
        self._passed.append((file.path, uppers[-1].id))
        mode = file.mode_before if wanted is None else file.mode
        assert isinstance(live, bytes)
        return _replace(file, before=wanted, after=live, mode_before=mode, edits=())

    def _plans_without(self, file: FileChange, uppers: Sequence[Record]) -> dict[str, Plan] | Missing:
        """Plans of the later ones with the file as each would have found and left it without this transaction."""
        found: dict[str, Plan] = {}
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
                return after or Missing("unreadable", "nothing would be left of it")
            new = _replace(theirs, before=before, after=after)
            if before is None and theirs.before is not None:
                new = _replace(new, mode_before=file.mode_before, new_directories=file.new_directories)
            found[upper.id] = _with_file(self._plans[upper.id], new)
        return found

    # -- what moves along -----------------------------------------------------------------------------------------

    def _remains_beside(self, one: Bystander, changes: Collection[Change]) -> bool:
        if one.keeps or one.resets:
            is_own = _hangs_on(one, changes)
            if not is_own and one.resets and any(name.startswith(_channels_of(one)) for name, _ in self._passed):
                self._pass_beside(one)
            return is_own
        return not self._pass_beside(one)

    def _pass_beside(self, one: Bystander) -> bool:
        """Whether a later transaction holds it, or puts it back with what it holds."""
        after = self._record.bystanders_after.get(one.tunable)
        for upper in self._later:
            plan = self._plans[upper.id]
            change = next((other for other in plan.changes if other.tunable == one.tunable), None)
            beside = next((other for other in plan.bystanders if other.tunable == one.tunable), None)
            if change is not None:
                if change.before == after and one.undo:
                    self._set_value(upper, _replace(change, before=one.before, undo=one.undo))
                return True
            if beside is not None:
                if beside.before == after:
                    self._set_bystander(upper, _replace(beside, before=one.before, undo=one.undo))
                return True
        return False

    def _set_bystander(self, upper: Record, one: Bystander) -> None:
        plan = self._plans[upper.id]
        bystanders = tuple(one if other.tunable == one.tunable else other for other in plan.bystanders)
        self._plans[upper.id] = _replace(plan, bystanders=bystanders)


def _with_file(plan: Plan, new: FileChange) -> Plan:
    if any(file.path == new.path for file in plan.files):
        return _replace(plan, files=tuple(new if file.path == new.path else file for file in plan.files))
    claimed = tuple(file for file in plan.claimed_files if file.path != new.path)
    if new.before == new.after:
        return _replace(plan, claimed_files=(*claimed, new))
    return _replace(plan, claimed_files=claimed, files=(*plan.files, new))


def overlaid(records: Iterable[Record], record: Record, path: str) -> frozenset[tuple[str, ...]]:
    """Settings of a file that transactions in force after ``record`` have set since."""
    found: frozenset[tuple[str, ...]] = frozenset()
    for upper in later_in_force(record, records):
        file = files_of(upper).get(path)
        if file is not None:
            found = found.union(*(settings_of(edit) for edit in file.edits))
    return found
