"""Targets and observations → plan. Pure: touches no file, process or clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from advisor.facts.block.block_graph import BlockGraph
from advisor.facts.host_facts import Facts
from advisor.facts.settings import find_setting
from advisor.facts.settings.sysctl import SysctlSource, is_pattern, reads_later
from advisor.facts.settings.value import to_canonical
from advisor.facts.writers import Write, next_boot, overriding_write
from advisor.facts.writers.last_word import RANKS, SYSCTL_FILES
from advisor.host import Missing
from advisor.host.would_be import FIXED
from advisor.planning.comparison import (
    NOTHING_OWNED,
    Ownership,
    claim_notes,
    combine_values,
    is_comparable,
    would_lower,
)
from advisor.planning.guards import (
    check_guards,
    clock_clashes,
    clock_rank,
    container_notes,
    explain_foreign,
    explain_read_only,
    find_rivals,
    renumbered_irqs,
    twin_notes,
    twin_obstacle,
    without_files,
)
from advisor.planning.links import Neighbours, ipv6_notes, related_links
from advisor.planning.merging import merge_targets
from advisor.planning.mtu import explain_range, idle_notes, upper_notes
from advisor.planning.observations import FileState, Observations, ObservedTarget, layer_rank
from advisor.planning.records import SATISFIED, Change, FileChange, Plan, PlanTarget, Skipped, SkipState
from advisor.planning.remote import new_file, record_notes
from advisor.planning.selectors import class_clashes
from advisor.rules.queries import kernel_version
from advisor.rules.settings.sysctls import judge_value, machine_of
from advisor.tunables import FileEdit, Persisted, apply_edit, mentions_key, namespace_of, parse_tunable
from advisor.tunables.kind import Sense
from advisor.tunables.link_mtu import LinkMtu
from advisor.tunables.preflight import SideEffect, bind_probe, bind_steps, link_of
from advisor.tunables.sysctl import Sysctl
from advisor.tunables.sysctl_group import disables_ipv6


def make_plan(
    profiles: tuple[str, ...],
    targets: tuple[PlanTarget, ...],
    skipped: tuple[Skipped, ...],
    seen: Observations,
    facts: Facts,
    *,
    guards: tuple[str, ...] = (),
    runtime_only: bool = False,
    settings: Mapping[str, str] | None = None,
    neighbours: Neighbours | None = None,
    held: Ownership = NOTHING_OWNED,
    private: Mapping[str, int] | None = None,
) -> Plan:
    """The plan for these targets; ``private`` as `origin.private_namespaces` has it. Raises RefusedError where
    a guard (the memory budget) does not hold."""
    changes: list[Change] = []
    claims: list[Change] = []
    not_done = list(skipped)
    seen = without_files(seen, facts.container, private or ())
    opposed, reset, clashes = find_rivals(targets), _reset_by_others(seen), clock_clashes(seen) | class_clashes(targets)
    graph = BlockGraph(facts)

    def turn(target: PlanTarget) -> tuple[int, int, str]:
        layer = layer_rank(target.tunable, seen.values[target.tunable], graph) if target.tunable in seen.values else 0
        return target.rank + clock_rank(target, seen), layer, target.tunable

    for target in sorted(merge_targets(targets)[0], key=turn):
        if target.tunable in clashes:
            not_done.append(_skip_target(target, seen.values[target.tunable], "blocked", clashes[target.tunable]))
            continue
        if target.tunable in opposed:
            other = opposed[target.tunable]
            not_done.append(
                _skip_target(target, seen.values[target.tunable], "blocked", f"{_OPPOSED} {other}: ask for one")
            )
            continue
        outcome = _judge_target(target, seen, facts, runtime_only=runtime_only, is_reset=target.tunable in reset)
        if target.tunable not in reset and _is_claim(target, outcome, seen.values[target.tunable], held):
            claims.append(_make_change(target, seen.values[target.tunable], seen, facts, runtime_only=runtime_only))
        elif isinstance(outcome, Change):
            changes.append(outcome)
        else:
            not_done.append(outcome)
    renumbered = renumbered_irqs(changes, facts)
    not_done += [
        Skipped(one.tunable, one.before, one.after, renumbered[one.tunable], "blocked", one.profile)
        for one in changes
        if one.tunable in renumbered
    ]
    changes = [one for one in changes if one.tunable not in renumbered]
    found = [] if runtime_only else list(_make_files((*changes, *claims), seen))
    files = tuple(file for file in found if file.before != file.after)
    guard_notes = check_guards(guards, changes, facts)
    side_effects = _drop_repeated(
        *_mtu_side_effects(changes, facts),
        *_kernel_side_effects(changes, seen),
        *_neighbour_side_effects(changes, facts, neighbours or {}),
    )
    tunables = [one.tunable for one in (*changes, *claims)] + [one.tunable for one in side_effects]
    used, kinds = set(map(link_of, tunables)), set(map(namespace_of, tunables))
    return Plan(
        profiles=profiles,
        machine_id=facts.host.machine_id,
        changes=tuple(changes),
        files=files,
        side_effects=side_effects,
        links=tuple(mark for mark in seen.links if mark.name in used),
        skipped=tuple(sorted(not_done, key=lambda one: (one.tunable, one.reason))),
        notes=tuple(
            dict.fromkeys(
                (
                    *guard_notes,
                    *_link_notes(changes, facts),
                    *upper_notes(_mtu_links(changes), facts),
                    *idle_notes(changes, facts),
                    *record_notes(changes, facts),
                    *_make_notes(changes, seen, facts),
                    *claim_notes(claims, held),
                    *container_notes(changes, not_done, facts.container),
                )
            )
        ),
        settings=tuple(sorted((settings or {}).items())),
        runtime_only=runtime_only,
        claims=tuple(claims),
        claimed_files=tuple(file for file in found if file.before == file.after and file.path in held.files),
        namespace={kind: inode for kind, inode in (private or {}).items() if kind in kinds} or None,
    )


def _drop_repeated(*side_effects: SideEffect) -> tuple[SideEffect, ...]:
    """Each tunable once: links and sysctls can name the same one."""
    return tuple({one.tunable: one for one in reversed(side_effects)}.values())[::-1]


def _is_claim(target: PlanTarget, outcome: Change | Skipped, observed: ObservedTarget, held: Ownership) -> bool:
    """Whether the value is as wanted because another active transaction holds it."""
    is_there = outcome.before == outcome.after if isinstance(outcome, Change) else outcome.state in SATISFIED
    live = observed.live if isinstance(observed.live, str) and observed.live == observed.combined else None
    return is_there and held.is_claim(target.tunable, live, target.profile)


def _judge_target(
    target: PlanTarget, seen: Observations, facts: Facts, *, runtime_only: bool, is_reset: bool
) -> Change | Skipped:
    observed = seen.values[target.tunable]
    setting = find_setting(target.tunable.removeprefix("sysctl:"))
    foreign = explain_foreign(target.tunable, facts.container)
    if foreign:
        return _skip_target(target, observed, "not-applicable", foreign)
    if observed.sufficient is not None and observed.undecided is None:
        return _skip_target(target, observed, "in-place", observed.sufficient)
    if isinstance(observed.live, Missing):
        by_hand = new_file(target.tunable, target.value, observed.live)
        if by_hand:
            return _skip_target(target, observed, "by-hand", by_hand)
        state: SkipState = "not-applicable" if observed.live.is_absent else "unknown"
        is_gone = setting is not None and setting.is_gone(kernel_version(facts))
        went = f"; it {setting.went}" if setting is not None and is_gone and observed.live.is_absent else ""
        return _skip_target(target, observed, state, f"cannot be read: {observed.live.why}{went}")
    assert observed.combined is not None
    if observed.undecided is not None:
        return _skip_target(target, observed, "blocked", observed.undecided)
    if not is_comparable(observed.live, observed.wanted, target.sense):
        has, gets = len(observed.live.split()), len(observed.wanted.split())
        why = f"has {has} field{'' if has == 1 else 's'} now, and {gets} {'is' if gets == 1 else 'are'} wanted"
        return _skip_target(target, observed, "blocked", why)
    wrong = parse_tunable(target.tunable).check_value(observed.combined)
    if not wrong and observed.combined != observed.live:
        wrong = explain_range(target.tunable, observed.combined, facts)
    if wrong:
        return _skip_target(target, observed, "blocked", f"{observed.combined!r} {wrong}")
    unreadable = None if runtime_only else _unreadable_file(observed, seen)
    if unreadable:
        return _skip_target(target, observed, "blocked", unreadable)
    persisted = runtime_only or _is_persisted(target, observed, seen, facts)
    if observed.live == observed.combined and persisted and not is_reset:
        assert isinstance(observed.live, str)
        assert observed.combined is not None
        # Whether the profile names the value and leaves it alone.
        if (
            target.sense == "keep" or (isinstance(target.sense, tuple) and set(target.sense) == {"keep"})
        ) and observed.live != observed.wanted:
            return _skip_target(target, observed, "kept", "this profile does not change it, whatever it is")
        if would_lower(observed.live, observed.wanted, observed.combined):
            return _skip_target(target, observed, "would-lower", "already sufficient: higher than wanted")
        return _skip_target(target, observed, "in-place", "already set")
    if refusal := observed.preflight.refusal:
        refused = _refusal_state(target, observed)
        if refused == "by-hand" and setting is not None and setting.is_gone(kernel_version(facts)):
            return _skip_target(target, observed, "not-applicable", f"it {setting.went}")
        harm = f". When it hurts: {target.hurts_when}" if refused == "by-hand" else ""
        return _skip_target(target, observed, refused, f"{refusal}{harm}")
    if runtime_only and isinstance(observed.edit, Persisted):
        return _skip_target(
            target, observed, "not-applicable", "its steps change the next boot too, unlike --runtime-only"
        )
    if runtime_only and not parse_tunable(target.tunable).make_steps(observed.combined):
        return _skip_target(
            target, observed, "not-applicable", "only its file brings it about, which --runtime-only leaves"
        )
    obstacle = None if runtime_only else _find_override(target, observed, seen, facts)
    if obstacle:
        return _skip_target(target, observed, "overridden", obstacle)
    closed = explain_read_only(target.tunable, facts.container)
    if closed:
        return _skip_target(target, observed, "by-hand", closed)
    unwritable = _write_obstacle(observed, seen, runtime_only=runtime_only)
    if unwritable:
        return _skip_target(target, observed, "blocked", unwritable)
    return _make_change(target, observed, seen, facts, runtime_only=runtime_only)


def _write_obstacle(observed: ObservedTarget, seen: Observations, *, runtime_only: bool) -> str | None:
    """Why this process could not set the value, or not write the file that persists it."""
    if observed.obstacle:
        return f"{_NO_RIGHT}{observed.obstacle}"
    for edit in () if runtime_only else observed.file_edits:
        state = seen.files[edit.path]
        if isinstance(state, FileState) and state.obstacle and not _is_as_edited(edit, seen):
            return f"{edit.path}{_NO_FILE}{state.obstacle}; --runtime-only changes live values alone"
    return None


_NO_RIGHT, _NO_FILE = "cannot be set: ", " cannot be written: "


def lacks_right(reason: str) -> bool:
    """Return whether a value is blocked by what this process may do, not by the value."""
    return (reason.startswith(_NO_RIGHT) and not reason.endswith(FIXED)) or _NO_FILE in reason


def _refusal_state(target: PlanTarget, observed: ObservedTarget) -> SkipState:
    state = observed.preflight.state
    if state != "incapable":
        return state
    return "not-applicable" if target.may_be_left_out else "blocked"


def _skip_target(target: PlanTarget, observed: ObservedTarget, state: SkipState, reason: str) -> Skipped:
    before = None if isinstance(observed.live, Missing) else observed.live
    return Skipped(target.tunable, before, observed.wanted, reason, state, target.profile)


def _is_persisted(target: PlanTarget, observed: ObservedTarget, seen: Observations, facts: Facts) -> bool:
    """Whether the value survives a reboot. A value that is the kernel's default needs no file."""
    for edit in observed.file_edits:
        state = seen.files[edit.path]
        content = None if isinstance(state, Missing) else state.content
        if content is not None and mentions_key(content, edit):
            # A unit's script and what starts it are there for other values, too: they say nothing of this one.
            if edit is not observed.file_edits[0] and edit.form in ("word", "section") and _is_as_edited(edit, seen):
                continue
            return all(_is_as_edited(each, seen) for each in observed.file_edits)
    return not observed.file_edits or (not observed.ours and not _is_undone_at_boot(target, observed, facts))


def _is_as_edited(edit: FileEdit, seen: Observations) -> bool:
    state = seen.files[edit.path]
    return (
        isinstance(state, FileState) and state.content is not None and apply_edit(state.content, edit) == state.content
    )


def _is_undone_at_boot(target: PlanTarget, observed: ObservedTarget, facts: Facts) -> bool:
    """Whether the value was set by hand and what has the last word sets it to less at the next boot."""
    if observed.at_start is not None:
        return observed.at_start != observed.combined
    boot = next_boot(facts, target.tunable)
    if boot is None:
        return False
    value = to_canonical(target.tunable.removeprefix("sysctl:"), boot) if target.tunable.startswith("sysctl:") else boot
    return not _is_satisfied(value, observed.wanted, target.sense)


def _unreadable_file(observed: ObservedTarget, seen: Observations) -> str | None:
    """Why the file that would persist the value cannot be edited: it exists and cannot be read."""
    for edit in observed.file_edits:
        state = seen.files[edit.path]
        if isinstance(state, Missing):
            return f"{edit.path} cannot be read ({state.why}), so it cannot be changed: use --runtime-only"
    return None


def _find_override(target: PlanTarget, observed: ObservedTarget, seen: Observations, facts: Facts) -> str | None:
    one = parse_tunable(target.tunable)
    if not isinstance(observed.edit, FileEdit):
        return None
    if isinstance(one, Sysctl):
        by_twin = twin_obstacle(one, observed.edit, facts.sysctl_origin)
        origin = facts.sysctl_origin.get(one.key)
        for line in (origin.winner, origin.voided_by) if origin and not by_twin else ():
            if line is not None and not is_pattern(line.key) and _is_later(line.path, observed.edit.path):
                by_twin = by_twin or _explain_override(line, target, observed)
        if by_twin:
            return by_twin
    write = _later_write(target, observed, seen, facts, observed.edit.path)
    if write is None or write.value is None or write.is_program or write.rank <= RANKS[SYSCTL_FILES]:
        return None
    if observed.combined is None or _is_satisfied(write.value, observed.combined, target.sense):
        return None
    return f"{write.sentence}, or use --runtime-only"


def _later_write(
    target: PlanTarget, observed: ObservedTarget, seen: Observations, facts: Facts, path: str | None
) -> Write | None:
    """What sets the value after the file at ``path``. A plan that loads a module early brings its keys along before the
    sysctl files are read."""
    write = overriding_write(facts, target.tunable, observed.combined or "", path)
    is_early = write is not None and f"module:{write.writer.rpartition(' ')[2]}" in seen.values
    return None if is_early and path is not None else write


def _is_later(path: str, ours: str) -> bool:
    return path != ours and reads_later(path, ours)


def _explain_override(line: SysctlSource, target: PlanTarget, observed: ObservedTarget) -> str | None:
    """Why a line that is read after advisor's file overrides it; None where it does not."""
    value = to_canonical(line.key, line.value)
    if line.rejected:
        what = (
            f"gives it a value that is refused at boot ({line.rejected}), and advisor's line is then not applied either"
        )
    elif observed.combined is not None and _is_satisfied(value, observed.combined, target.sense):
        return None
    else:
        what = f"sets it to {value} at boot, after advisor's file"
    return f"{line.file} line {line.line}{line.reading} {what}: remove that line, or use --runtime-only"


def _is_satisfied(value: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> bool:
    return combine_values(value, wanted, sense) == value


def _make_change(
    target: PlanTarget, observed: ObservedTarget, seen: Observations, facts: Facts, *, runtime_only: bool
) -> Change:
    one = parse_tunable(target.tunable)
    assert isinstance(observed.live, str)
    assert observed.combined is not None
    around = observed.preflight
    note = observed.edit.why if isinstance(observed.edit, Missing) else None
    if runtime_only:
        note = "--runtime-only"
    persist = None if isinstance(observed.edit, Missing) or runtime_only else observed.edit.path
    write = _later_write(target, observed, seen, facts, persist)
    if write is not None and persist is not None:
        note = write.sentence
    return Change(
        tunable=target.tunable,
        before=observed.live,
        after=observed.combined,
        persist=persist,
        persist_note=note,
        risk=one.risk,
        takes_effect=one.takes_effect,
        why=target.why,
        hurts_when=_harm_words(target, observed.live, observed.combined, facts),
        sources=target.sources,
        profile=target.profile,
        probe=bind_probe(one.probe, around.identity),
        steps=bind_steps(one.make_steps(observed.combined), around.identity),
        undo=bind_steps(one.make_steps(observed.live) if around.undo is None else around.undo, around.identity),
        members=around.members,
        next_boot=write.value if write else observed.combined if persist else None,
        last_word=write.word if write else None,
    )


_NO_HARM = "No harm is known in this direction."


def _harm_words(target: PlanTarget, before: str, after: str, facts: Facts) -> str:
    """When the change hurts: what the record of a sysctl says of this very value on this host, then what the profile
    says; of what it knows of the key, the direction in which the value goes."""
    key = target.tunable.removeprefix("sysctl:")
    setting = find_setting(key)
    if setting is None:
        return target.hurts_when
    judged, known = judge_value(facts, key, after), target.hurts_when
    if known == setting.harm_of(target.value) or (judged and known.startswith("Not known")):
        is_ample = setting.is_ample(after, machine_of(facts))
        known = "" if judged else (not is_ample and setting.harm_of(after, before)) or _NO_HARM
    said = [f"{one.title}: {one.why} ({one.id})" for one in judged]
    return " ".join(filter(None, (*said, known))) or target.hurts_when


def _make_files(changes: Iterable[Change], seen: Observations) -> Iterator[FileChange]:
    """Each file that the changes are written into, also where it says all of it already."""
    by_path: dict[str, list[tuple[str, FileEdit]]] = {}
    for change in changes:
        for edit in seen.values[change.tunable].file_edits:
            by_path.setdefault(edit.path, []).append((change.tunable, edit))
    for path, edits in sorted(by_path.items()):
        file = _file_change(path, edits, seen.files[path])
        if file is not None:
            yield file


def _file_change(path: str, edits: list[tuple[str, FileEdit]], state: FileState | Missing) -> FileChange | None:
    if isinstance(state, Missing):
        return None
    content = state.content
    for _, edit in edits:
        content = apply_edit(content, edit)
    if content is None:
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


def _link_notes(changes: Sequence[Change], facts: Facts) -> tuple[str, ...]:
    at_risk = {change.tunable.split(":")[1] for change in changes if change.risk == "link"}
    routes = sorted(link.name for link in facts.links if link.name in at_risk and link.default_route)
    mtus = _mtu_links(changes)
    warnings = [f"{name} carries the default route: {_CUT if name in mtus else _INTERRUPTED}" for name in routes]
    if not mtus:
        return tuple(warnings)
    return (
        *warnings,
        "what peers and switches carry cannot be seen from here: apply asks those who answer before and after, and "
        "rolls back where one no longer does; advisor probe asks them now",
    )


_CUT = "a peer or router that does not carry the new MTU cuts this host off"
_INTERRUPTED = "this host is cut off while its driver applies the value"


def _mtu_links(changes: Iterable[Change]) -> dict[str, int]:
    """The MTU of each link that gets one."""
    words = ((change.tunable.split(":"), change.after) for change in changes)
    return {name: int(mtu) for (kind, name, *rest), mtu in words if kind == "link" and rest == ["mtu"]}


_OPPOSED = "cannot be set along with"


def _reset_by_others(seen: Observations) -> set[str]:
    """What the kernel resets when another target changes: it is written again even where it is as wanted now."""
    return {one.tunable for observed in seen.values.values() for one in observed.preflight.side_effects}


def _kernel_side_effects(changes: Sequence[Change], seen: Observations) -> Iterator[SideEffect]:
    own = {change.tunable for change in changes}
    seen_names: set[str] = set()
    for change in changes:
        around = seen.values[change.tunable].preflight
        for one in around.side_effects:
            # A change of its own is rolled back before this one, whose rollback then resets it.
            if one.tunable not in seen_names and (one.resets or one.tunable not in own):
                seen_names.add(one.tunable)
                probe, undo = bind_probe(one.probe, around.identity), bind_steps(one.undo, around.identity)
                yield SideEffect(one.tunable, one.before, probe, undo, resets=one.resets, coupled=one.coupled)


def _make_notes(changes: Sequence[Change], seen: Observations, facts: Facts) -> Iterator[str]:
    reset = _reset_by_others(seen)
    for change in changes:
        yield from seen.values[change.tunable].preflight.notes
        if change.before == change.after and change.tunable in reset:
            yield f"{change.tunable} is as wanted, but the kernel resets it with another change: it is set once more"
    yield from twin_notes(changes, facts.sysctl_origin)
    yield from ipv6_notes(changes)


def _mtu_side_effects(changes: Iterable[Change], facts: Facts) -> tuple[SideEffect, ...]:
    changed = _mtu_links(changes)
    found: list[SideEffect] = []
    for link in related_links(changed, facts.links):
        if link.mtu is not None:
            one = LinkMtu(link.name)
            found.append(SideEffect(one.id, str(link.mtu), one.probe, one.make_steps(str(link.mtu))))
    return tuple(found)


def _neighbour_side_effects(changes: Iterable[Change], facts: Facts, neighbours: Neighbours) -> Iterator[SideEffect]:
    """Addresses and routes of the links that could lose them."""
    made = list(changes)
    changed = {change.tunable.split(":")[1] for change in made if change.risk == "link"}
    changed |= {link.name for link in related_links(changed, facts.links)}
    disabling = [change.tunable for change in made if disables_ipv6(change.tunable)]
    changed |= {link.name for link in facts.links if any(disables_ipv6(one, link.name) for one in disabling)}
    for name in sorted(changed):
        yield from neighbours.get(name, ())
