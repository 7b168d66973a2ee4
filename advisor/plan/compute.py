"""Targets and observations → plan. Pure: touches no file, process or clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.errors import UsageError
from advisor.facts.sysctl import SysctlOrigin, SysctlSource
from advisor.facts.whole import Facts
from advisor.host import Missing
from advisor.plan.guards import check_guards
from advisor.plan.links import bystander_links
from advisor.plan.observations import FileState, Observations, Observed
from advisor.plan.records import Bystander, Change, FileChange, Plan, Skipped, SkipState, Target
from advisor.plan.senses import combine, is_comparable, would_lower
from advisor.tunables import FileEdit, edited, mentions, tunable
from advisor.tunables.link import LinkMtu
from advisor.tunables.sysctl import Sysctl
from advisor.tunables.tunable import Sense


def make_plan(
    profiles: tuple[str, ...],
    targets: tuple[Target, ...],
    skipped: tuple[Skipped, ...],
    seen: Observations,
    facts: Facts,
    *,
    guards: tuple[str, ...] = (),
    runtime_only: bool = False,
    notes: tuple[str, ...] = (),
    settings: Mapping[str, str] | None = None,
) -> Plan:
    """The plan for these targets. Raises RefusedError where a guard (the memory budget) does not hold."""
    changes: list[Change] = []
    not_done = list(skipped)
    for target in sorted(_unique(targets), key=lambda one: (one.rank, one.tunable)):
        outcome = _judge(target, seen, facts, runtime_only=runtime_only)
        if isinstance(outcome, Change):
            changes.append(outcome)
        else:
            not_done.append(outcome)
    files = () if runtime_only else _files(changes, seen)
    guard_notes = check_guards(guards, changes, facts)
    return Plan(
        profiles=profiles,
        machine_id=facts.host.machine_id,
        changes=tuple(changes),
        files=files,
        bystanders=_bystanders(changes, facts),
        skipped=tuple(sorted(not_done, key=lambda one: (one.tunable, one.reason))),
        notes=(*notes, *guard_notes, *_link_notes(changes, facts)),
        settings=tuple(sorted((settings or {}).items())),
        runtime_only=runtime_only,
    )


def _unique(targets: Iterable[Target]) -> list[Target]:
    """One target per tunable. Raises UsageError where two profiles want different things of it."""
    kept: dict[str, Target] = {}
    for target in targets:
        other = kept.setdefault(target.tunable, target)
        if (other.value, other.sense, other.multiply) != (target.value, target.sense, target.multiply):
            raise UsageError(
                f"{target.tunable}: {other.profile} wants {other.value}, {target.profile} wants {target.value}",
                hint="apply one of the two, or bring them together with --set",
            )
    return list(kept.values())


def _judge(target: Target, seen: Observations, facts: Facts, *, runtime_only: bool) -> Change | Skipped:
    observed = seen.values[target.tunable]
    if isinstance(observed.live, Missing):
        state: SkipState = "not-applicable" if observed.live.is_absent else "unknown"
        return _skip(target, observed, state, f"cannot be read: {observed.live.why}")
    assert observed.combined is not None
    if not is_comparable(observed.live, observed.wanted, target.sense):
        return _skip(target, observed, "blocked", _misfit(observed.live, observed.wanted))
    wrong = tunable(target.tunable).check(observed.combined)
    if wrong:
        return _skip(target, observed, "blocked", f"{observed.combined!r} {wrong}")
    unreadable = None if runtime_only else _unreadable_file(observed, seen)
    if unreadable:
        return _skip(target, observed, "blocked", unreadable)
    persisted = runtime_only or _is_persisted(observed, seen)
    if observed.live == observed.combined and persisted:
        return _already(target, observed)
    obstacle = None if runtime_only else _overridden(target, observed, facts.sysctl_origin)
    if obstacle:
        return _skip(target, observed, "overridden", obstacle)
    return _change(target, observed, runtime_only=runtime_only)


def _misfit(live: str, wanted: str) -> str:
    has, gets = len(live.split()), len(wanted.split())
    return f"has {has} field{'' if has == 1 else 's'} now, and {gets} {'is' if gets == 1 else 'are'} wanted"


def _skip(target: Target, observed: Observed, state: SkipState, reason: str) -> Skipped:
    before = None if isinstance(observed.live, Missing) else observed.live
    return Skipped(target.tunable, before, observed.wanted, reason, state, target.profile)


def _already(target: Target, observed: Observed) -> Skipped:
    assert isinstance(observed.live, str)
    assert observed.combined is not None
    if would_lower(observed.live, observed.wanted, observed.combined):
        return _skip(target, observed, "would-lower", "is higher already; lowering it would take something away")
    return _skip(target, observed, "in-place", "is there already")


def _is_persisted(observed: Observed, seen: Observations) -> bool:
    """Whether a reboot would bring the value back as it is. A value that the kernel has by itself needs no file."""
    if isinstance(observed.edit, Missing):
        return True
    state = seen.files[observed.edit.path]
    content = None if isinstance(state, Missing) else state.content
    if content is not None and mentions(content, observed.edit):
        return edited(content, observed.edit) == content
    return not observed.ours


def _unreadable_file(observed: Observed, seen: Observations) -> str | None:
    """Why the file that would persist the value cannot be edited: it exists and cannot be read."""
    if isinstance(observed.edit, Missing):
        return None
    state = seen.files[observed.edit.path]
    if not isinstance(state, Missing):
        return None
    return f"{observed.edit.path} cannot be read ({state.why}), so it cannot be changed: use --runtime-only"


def _overridden(target: Target, observed: Observed, origins: Mapping[str, SysctlOrigin]) -> str | None:
    one = tunable(target.tunable)
    if not isinstance(one, Sysctl) or not isinstance(observed.edit, FileEdit) or one.key not in origins:
        return None
    origin = origins[one.key]
    for line in (origin.winner, origin.voided_by):
        if line is not None and line.path != observed.edit.path and _reads_later(line.path, observed.edit.path):
            obstacle = _obstacle(line, target, observed)
            if obstacle:
                return obstacle
    return None


def _obstacle(line: SysctlSource, target: Target, observed: Observed) -> str | None:
    """Why a line that is read after our file undoes what we would write, or None if it does not."""
    value = " ".join(line.value.split())
    if line.rejected:
        what = f"gives it a value that is refused at boot ({line.rejected}), and ours is then not set either"
    elif observed.combined is not None and _satisfies(value, observed.combined, target.sense):
        return None
    else:
        what = f"sets it to {value} at boot, after our file"
    return f"{line.path} line {line.line} {what}: remove that line, or use --runtime-only"


def _satisfies(value: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> bool:
    return combine(value, wanted, sense) == value


def _reads_later(path: str, ours: str) -> bool:
    """sysctl.d(5): sorted by file name across the directories; /etc/sysctl.conf comes last."""
    name, own = path.rpartition("/")[2], ours.rpartition("/")[2]
    return path == "/etc/sysctl.conf" or name > own


def _change(target: Target, observed: Observed, *, runtime_only: bool) -> Change:
    one = tunable(target.tunable)
    assert isinstance(observed.live, str)
    assert observed.combined is not None
    note = observed.edit.why if isinstance(observed.edit, Missing) else None
    if runtime_only:
        note = "--runtime-only"
    return Change(
        tunable=target.tunable,
        before=observed.live,
        after=observed.combined,
        persist=observed.edit.path if isinstance(observed.edit, FileEdit) and not runtime_only else None,
        persist_note=note,
        risk=one.risk,
        takes_effect=one.takes_effect,
        why=target.why,
        hurts_when=target.hurts_when,
        sources=target.sources,
        profile=target.profile,
        probe=one.probe,
        steps=one.steps(observed.combined),
        undo=one.steps(observed.live),
    )


def _files(changes: Iterable[Change], seen: Observations) -> tuple[FileChange, ...]:
    by_path: dict[str, list[tuple[str, FileEdit]]] = {}
    for change in changes:
        edit = seen.values[change.tunable].edit
        if isinstance(edit, FileEdit):
            by_path.setdefault(edit.path, []).append((change.tunable, edit))
    found = (_file_change(path, edits, seen.files[path]) for path, edits in sorted(by_path.items()))
    return tuple(one for one in found if one is not None)


def _file_change(path: str, edits: list[tuple[str, FileEdit]], state: FileState | Missing) -> FileChange | None:
    if isinstance(state, Missing):
        return None
    content = state.content
    for _, edit in edits:
        content = edited(content, edit)
    if content is None or content == state.content:
        return None
    return FileChange(
        path=path,
        before=state.content,
        after=content,
        mode=edits[0][1].mode if state.mode is None else state.mode,
        uid=state.uid,
        gid=state.gid,
        mode_before=state.mode,
        reload=tuple(dict.fromkeys(step for _, edit in edits for step in edit.reload)),
        tunables=tuple(identity for identity, _ in edits),
        edits=tuple(edit for _, edit in edits),
        new_directories=state.missing_parents,
    )


def _link_notes(changes: Iterable[Change], facts: Facts) -> tuple[str, ...]:
    changed = {change.tunable.split(":")[1] for change in changes if change.risk == "link"}
    if not changed:
        return ()
    routes = sorted(link.name for link in facts.links if link.name in changed and link.default_route)
    warnings = [
        f"{name} carries the default route: a peer or router that does not carry the new MTU cuts this host off"
        for name in routes
    ]
    return (
        *warnings,
        "what peers and switches carry cannot be seen from here: probe with don't-fragment packets first",
    )


def _bystanders(changes: Iterable[Change], facts: Facts) -> tuple[Bystander, ...]:
    changed = [change.tunable.split(":")[1] for change in changes if change.tunable.startswith("link:")]
    found: list[Bystander] = []
    for link in bystander_links(changed, facts.links):
        if link.mtu is not None:
            one = LinkMtu(link.name)
            found.append(Bystander(one.id, str(link.mtu), one.probe, one.steps(str(link.mtu))))
    return tuple(found)
