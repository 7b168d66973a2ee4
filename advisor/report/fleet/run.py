"""The plan of many hosts as a page and as a document: what changes, printed once for hosts alike, then the waves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.fleet.runs.journal import HostDone, HostState, PlannedHost, PlannedState, RunRecord
from advisor.fleet.runs.planning import FleetPlan
from advisor.fleet.runs.status import FleetStanding, HostStanding
from advisor.fleet.runs.status import HostState as StandingState
from advisor.host.numbers import group_pairs
from advisor.planning.records import Plan, plan_document
from advisor.report.encode import encode_document
from advisor.report.format import ranked, runs
from advisor.report.layout import Page, Piece, Span, Style, counted, listed
from advisor.report.plan import add_plan
from advisor.report.transaction import format_time
from advisor.transaction.status import Drift

SCHEMA = "advisor.fleet-plan/1"

_STATES: Mapping[PlannedState, tuple[str, Style]] = {
    "failed": ("Could not be asked", "red"),
    "cannot": ("Cannot be done", "red"),
    "unfit": ("Does not apply there", ""),
    "nothing": ("Already set", ""),
    "done": ("Done by an earlier part of the run", ""),
    "same": ("Another name of a host, which is planned for once", ""),
}


def fleet_plan_document(plan: FleetPlan, *, dry_run: bool = True) -> bytes:
    """``advisor.fleet-plan/1``: every host with its plan (null where it has none), the waves, notes in sentences."""
    waves = plan.waves.numbers()
    return encode_document(
        {
            "schema": SCHEMA,
            "dry_run": dry_run,
            "hosts": [_host_document(plan, one, waves.get(one.name)) for one in plan.hosts],
            "waves": [_wave_document(plan, number) for number in range(len(plan.waves.waves))],
            "notes": list(plan.notes),
            "failed": [one.name for one in plan.hosts if one.state in ("failed", "cannot")],
        }
    )


def _host_document(plan: FleetPlan, one: PlannedHost, wave: int | None) -> dict[str, object]:
    made = plan.subjects[one.name].plan if one.name in plan.subjects else None
    return {
        "name": one.name,
        "state": one.state,
        "message": one.message,
        "wave": wave,
        "failover_groups": [group.name for group in plan.groups.get(one.name, ())],
        "plan": None if made is None else plan_document(made),
    }


def _wave_document(plan: FleetPlan, at: int) -> dict[str, object]:
    wave = plan.waves.waves[at]
    return {"number": wave.number, "hosts": list(wave.hosts), "is_canary": wave.is_canary}


def fleet_plan_text(
    plan: FleetPlan, *, width: int, color: bool, command: str | None = None, shows_waves: bool = True
) -> str:
    """The whole plan for a person; ends with ``command``, what to type to carry it out. Without waves where it is not
    known yet which of the hosts will be changed."""
    page = Page(width, color=color)
    changing = plan.changing
    profiles = listed(plan.profiles)
    page.add(Span(f"Plan of {profiles} on {counted(len(plan.hosts), 'host')}", "bold"))
    waves = f", in {counted(len(plan.waves.waves), 'wave')}" if shows_waves else ""
    parts = [f"{counted(len(changing), 'host')} would change{waves}" if changing else "Nothing would change"]
    for state, (words, _) in _STATES.items():
        count = sum(one.state == state for one in plan.hosts)
        if count:
            parts.append(f"{count}: {words[0].lower()}{words[1:]}")
    page.add("; ".join(parts) + ". Nothing has been changed.")
    for hosts in alike_hosts(plan):
        page.heading(f"{counted(len(hosts), 'host')}: ", _host_names(plan, hosts))
        add_plan(page, plan.plan(hosts[0]))
    for state, (words, style) in _STATES.items():
        those = [one for one in plan.hosts if one.state == state]
        if not those:
            continue
        page.heading("")
        page.add(Span(words, style or "bold"))
        for reason, names in group_pairs((one.message, one.name) for one in those).items():
            page.add(Span(_host_names(plan, names), "bold"), f": {reason}" if reason else "", indent=2, hang=4)
    if shows_waves:
        _add_waves(page, plan)
    page.bulleted("To know before", plan.notes)
    if command and changing:
        page.blank()
        page.add("To carry it out:")
        page.command(command)
    return page.text


def alike_hosts(plan: FleetPlan) -> list[tuple[str, ...]]:
    """The hosts that are to be changed, those together for which the plan reads the same; the most first."""
    groups = group_pairs((_plan_shape(plan.plan(name)), name) for name in plan.changing)
    return sorted((tuple(names) for names in groups.values()), key=lambda names: -len(names))


def _plan_shape(plan: Plan) -> object:
    changes = tuple((one.tunable, one.before, one.after, one.persist, one.why) for one in plan.changes)
    files = tuple((one.path, one.before, one.after) for one in plan.files)
    skipped = tuple((one.tunable, one.state, one.reason) for one in plan.skipped)
    return changes, files, skipped, plan.notes, plan.foreseen


def _host_names(plan: FleetPlan, hosts: Iterable[str]) -> str:
    return runs([*hosts], ranked(one.name for one in plan.hosts))


def _add_waves(page: Page, plan: FleetPlan) -> None:
    if not plan.waves.waves:
        return
    page.heading("Waves")
    rows: list[Sequence[Piece]] = []
    for wave in plan.waves.waves:
        word = "canary" if wave.is_canary else ""
        rows.append([str(wave.number), Span(word, "cyan"), counted(len(wave.hosts), "host"), ", ".join(wave.hosts)])
    page.table(rows)
    groups: dict[str, tuple[str, list[str]]] = {}
    for name in plan.changing:
        for group in plan.groups.get(name, ()):
            groups.setdefault(group.name, (group.why, []))[1].append(name)
    for label, (why, names) in sorted(groups.items()):
        if len(names) > 1:
            text = f": never two at a time of {_host_names(plan, names)} ({why})"
            page.add(Span(label, "bold"), text, indent=2, hang=4)


# What became of a run, what is active on each host, and drift: as pages and as documents.

RUN_SCHEMA = "advisor.fleet-run/1"
VERIFY_SCHEMA = "advisor.fleet-verify/1"
STATUS_SCHEMA = "advisor.fleet-status/1"

_HOSTS: Mapping[HostState, tuple[str, Style]] = {
    "applied": ("changed and kept", "green"),
    "awaiting-confirmation": ("waits for its confirmation", "yellow"),
    "unchanged": ("all was there already", ""),
    "rolled-back": ("rolled back", ""),
    "refused": ("refused; nothing was changed", "red"),
    "failed": ("not begun", ""),
    "unreachable": ("could not be reached; nothing was begun", "red"),
    "unknown": ("not known to be back", "red"),
}
_RUNS: Mapping[str, tuple[str, Style]] = {
    "done": ("done", "green"),
    "nothing": ("nothing to change", ""),
    "stopped": ("stopped", "red"),
    "rolled-back": ("rolled back", ""),
    "interrupted": ("interrupted, or still at it", "red"),
    "planned": ("never begun", ""),
}
_STANDINGS: Mapping[StandingState, tuple[str, Style]] = {
    "as-set": ("match", "green"),
    "drifted": ("drift", "red"),
    "nothing": ("nothing active", ""),
    "waiting": ("waits for confirmation", "yellow"),
    "unfinished": ("interrupted", "red"),
    "failed": ("not asked", "red"),
}


def fleet_run_document(run: RunRecord | None, plan: FleetPlan | None, code: int) -> bytes:
    """``advisor.fleet-run/1``: every host, what became of it and, where that is not known, what to do by hand."""
    known: dict[str, PlannedHost | HostDone] = {one.name: one for one in _planned_hosts(run, plan)}
    known |= run.hosts if run else {}
    fields = ("state", "wave", "transaction", "message", "by_hand")
    hosts = [{"name": name, **{key: getattr(one, key, None) for key in fields}} for name, one in known.items()]
    return encode_document(
        {
            "schema": RUN_SCHEMA,
            "id": run and run.id,
            "state": run.state if run else "unchanged",
            "code": code,
            "message": run.ended.message if run and run.ended else "",
            "hosts": hosts,
            "waves": [_wave_dict(run, one) for one in run.waves] if run else [],
            "gates": [_gate_dict(one) for one in run.gates] if run else [],
            "proofs": [_gate_dict(one) for one in run.proofs] if run else [],
            "failed": [one["name"] for one in hosts if one["state"] in _BAD],
        }
    )


_BAD = ("refused", "unreachable", "unknown", "cannot", "failed")


def _planned_hosts(run: RunRecord | None, plan: FleetPlan | None) -> Sequence[PlannedHost]:
    return plan.hosts if plan is not None else run.planned.hosts if run is not None and run.planned else ()


def _wave_dict(run: RunRecord, wave: object) -> dict[str, object]:
    body: dict[str, object] = msgspec.to_builtins(wave)
    return {**body, "outcome": run.outcomes.get(int(str(body["number"])))}


def _gate_dict(gate: object) -> dict[str, object]:
    return {key: value for key, value in msgspec.to_builtins(gate).items() if key not in ("event", "time")}


def fleet_run_text(run: RunRecord | None, plan: FleetPlan | None, *, width: int, color: bool) -> str:
    """What became of each host, what stopped the run, and what to type next."""
    page = Page(width, color=color)
    if run is None:
        page.add(Span("Unchanged", "bold"), ": there is nothing to change on any host that could be asked.", hang=2)
        _add_hosts(page, "Left out", _planned_hosts(run, plan))
        return page.text
    words, style = _RUNS[run.state]
    profiles = listed(run.asked.profiles)
    page.add(Span(f"Run {run.id}", "bold"), f" ({profiles}): ", Span(words, style), f"; {_count_words(run)}.")
    if run.ended is not None and run.ended.message:
        page.add(f"{run.ended.message}.", indent=2, hang=2)
    _add_run_waves(page, run)
    _add_failing(page, run)
    _add_unknown(page, run)
    _add_hosts(page, "Left out", _planned_hosts(run, plan))
    _add_next(page, run)
    return page.text


def _count_words(run: RunRecord) -> str:
    states = [one.state for one in run.hosts.values()]
    parts = [f"{states.count(state)} {words}" for state, (words, _) in _HOSTS.items() if state in states]
    return ", ".join(parts) or ", ".join(_proof_words(run)) or "no host was touched"


def _proof_words(run: RunRecord) -> Iterator[str]:
    """What a run that changed no host for good did to those on which it proved the profile."""
    last = {**{one.host: one.state for one in run.proofs}, **dict.fromkeys(run.open_proofs, "unknown")}
    for state, words in _PROVEN.items():
        if names := [name for name, known in last.items() if known == state]:
            yield f"{words} {listed(names)}"


_PROVEN: Mapping[str, str] = {
    "rolled-back": "for its proof the profile was set and rolled back on",
    "unknown": "what its proof left is not known on",
}


def _add_run_waves(page: Page, run: RunRecord) -> None:
    order = ranked(run.hosts)
    rows: list[Sequence[Piece]] = []
    for wave in run.waves:
        groups = group_pairs((run.hosts[name].state, name) for name in wave.hosts if name in run.hosts)
        for number, (state, names) in enumerate(groups.items()):
            words, style = _HOSTS[state]
            first = f"wave {wave.number}" if number == 0 else ""
            rows.append([first, Span(words, style), runs(names, order)])
        if not groups:
            rows.append([f"wave {wave.number}", "not begun", runs(wave.hosts, ranked(wave.hosts))])
    in_waves = {name for wave in run.waves for name in wave.hosts}
    if earlier := [name for name in run.hosts if name not in in_waves]:
        # A resumed run counts its waves again, without those that were done by then.
        for state, names in group_pairs((run.hosts[name].state, name) for name in earlier).items():
            words, style = _HOSTS[state]
            rows.append(["before that", Span(words, style), runs(names, order)])
    page.blank()
    page.table(rows)


def _add_failing(page: Page, run: RunRecord) -> None:
    # Where a host was to be rolled back, what is active there is the bad news; elsewhere, that it was not done.
    bad = [
        one
        for one in run.hosts.values()
        if one.message and (one.state in ("applied", "unknown") if one.verb == "rollback" else one.state in _BAD)
    ]
    failing = [why for gate in run.gates[-1:] if not gate.held for why in gate.failing]
    if not bad and not failing:
        return
    page.heading("Why")
    for why in failing:
        page.bullet(f"gate: {why}")
    for one in bad:
        page.bullet(Span(one.host, "bold"), f": {one.message}")


_KEPT = ("kept: modified externally", "kept: somebody else set it")
"""How a host reports a value that it does not restore; the last one is that of older versions."""


def _is_kept(one: HostDone) -> bool:
    """Whether a value was modified externally, so that the host did not restore it."""
    return any(kept in one.message for kept in _KEPT)


def _add_unknown(page: Page, run: RunRecord) -> None:
    unknown = [one for one in run.hosts.values() if one.state == "unknown"]
    unproven = {one.host: one.by_hand for one in run.proofs}
    looks = [by_hand for by_hand in unproven.values() if by_hand is not None]
    if looks:
        page.heading("Not known to be back")
        page.add(
            "A watchdog there ends a proof that hangs. When the host can be reached again, this shows it:", indent=2
        )
        for look in looks:
            page.command(look, indent=4)
    if not unknown:
        return
    page.heading("Not known to be back")
    page.add("What their watchdogs make of it cannot be seen from here. When a host can be reached again:", indent=2)
    for one in unknown:
        page.command(one.by_hand or f"advisor fleet rollback {run.id}", indent=4)
    if any(map(_is_kept, unknown)):
        page.add("Values that were modified externally were skipped. To restore them as well:", indent=2)
        page.command(f"advisor fleet rollback {run.id} --force", indent=4)


def _add_hosts(page: Page, title: str, hosts: Iterable[PlannedHost | HostStanding]) -> None:
    """Those that could not be asked, or done, and other names of a host, with the reason."""
    left = [one for one in hosts if one.state in ("failed", "cannot", "same")]
    page.bulleted(title, ([Span(one.name, "bold"), f": {one.message}"] for one in left))


def _add_next(page: Page, run: RunRecord) -> None:
    kept = [one for one in run.hosts.values() if one.state == "applied"]
    page.blank()
    stopped = run.state in ("interrupted", "stopped")
    if run.is_going_back and run.touched:
        if any(not _is_kept(run.hosts[name]) for name in run.touched):
            page.add("To roll back what is left:")
            page.command(f"advisor fleet rollback {run.id}")
        return
    again = "To prove it again on the canary, and go on where that shows a gain:" if run.is_to_be_proven else ""
    if stopped and (run.planned or again):
        page.add("To resume it:" if run.planned else again)
        page.command(f"advisor fleet apply --resume {run.id}")
    if kept:
        page.add("To roll it back on every host:" if run.state == "done" else "To roll back what is kept:")
        page.command(f"advisor fleet rollback {run.id}")


def fleet_verify_document(found: FleetStanding) -> bytes:
    """``advisor.fleet-verify/1``: ``ok`` where every host was asked and nothing has drifted or is half-done."""
    return encode_document(
        {
            "schema": VERIFY_SCHEMA,
            "run": found.run and found.run.id,
            "ok": found.code == 0,
            "hosts": [_standing_document(one) for one in found.hosts],
            "failed": list(found.failed),
        }
    )


def _standing_document(one: HostStanding) -> dict[str, object]:
    return {
        "name": one.name,
        "state": one.state,
        "message": one.message,
        "transactions": [record.id for record in one.in_force],
        "profiles": sorted({name for record in one.in_force for name in record.plan.profiles}),
        "waiting": [record.id for record in one.records if record.state == "awaiting-confirmation"],
        "unfinished": [record.id for record in one.records if record.is_unfinished],
        "drift": [msgspec.to_builtins(drift) for drift in one.drift],
        "taken": one.taken,
    }


def fleet_verify_text(found: FleetStanding, *, width: int, color: bool) -> str:
    """Drift by what has drifted, with the hosts on which it has; then who could not be asked."""
    page = Page(width, color=color)
    states = [one.state for one in found.hosts]
    parts = [f"{states.count(state)} {words}" for state, (words, _) in _STANDINGS.items() if state in states]
    title = f"Run {found.run.id} on " if found.run else ""
    page.add(Span(f"{title}{counted(len(found.hosts), 'host')}", "bold"), f": {', '.join(parts)}.")
    _add_drift(page, found.hosts)
    for state in ("waiting", "unfinished"):
        for one in found.hosts:
            if one.state == state:
                open_ones = [
                    record.id for record in one.records if record.is_unfinished or record.seconds_left is not None
                ]
                page.add(Span(one.name, "bold"), f": {listed(open_ones)} {_STANDINGS[one.state][0]}", indent=2, hang=2)
    _add_hosts(page, "Not asked", found.hosts)
    if any(one.state == "drifted" for one in found.hosts) and found.run is not None:
        page.blank()
        page.add("To restore the values from before the run:")
        page.command(f"advisor fleet rollback {found.run.id}")
    return page.text


def _add_drift(page: Page, hosts: Sequence[HostStanding]) -> None:
    order = ranked(one.name for one in hosts)
    groups = group_pairs(((drift.what, _drift_words(drift)), one.name) for one in hosts for drift in one.drift)
    if not groups:
        return
    page.heading("Drift")
    for (what, words), names in sorted(groups.items()):
        page.add(Span(what, "bold"), f": {words}", indent=2, hang=4)
        page.add(f"on {runs(names, order)}", indent=6, hang=2)


def _drift_words(one: Drift) -> str:
    if one.what.startswith("/"):
        return one.reason
    return f"set to {one.wanted}, {'' if one.live is None else f'is {one.live}, '}{one.reason}"


def fleet_status_document(found: FleetStanding) -> bytes:
    """``advisor.fleet-status/1``: the runs of this controller, oldest first, and what is active on each host."""
    return encode_document(
        {
            "schema": STATUS_SCHEMA,
            "runs": [_run_document(one) for one in found.runs],
            "hosts": [_standing_document(one) for one in found.hosts],
            "failed": list(found.failed),
        }
    )


def _run_document(run: RunRecord) -> dict[str, object]:
    return {
        "id": run.id,
        "state": run.state,
        "code": run.ended.code if run.ended is not None else None,
        "profiles": list(run.asked.profiles),
        "began": run.began,
        "inventory": list(run.asked.inventory),
        "hosts": [{"name": one.host, "state": one.state, "transaction": one.transaction} for one in run.hosts.values()],
    }


def fleet_status_text(found: FleetStanding, *, width: int, color: bool) -> str:
    """The runs, the latest first, and a line for each host."""
    page = Page(width, color=color)
    if not found.runs:
        page.add("No runs: advisor has changed no fleet from here.")
    for run in reversed(found.runs):
        words, style = _RUNS[run.state]
        page.add(
            Span(run.id, "bold"),
            f" {listed(run.asked.profiles)}: ",
            Span(words, style),
            f"; begun {format_time(run.began)}",
        )
        page.add(_count_words(run), indent=2, hang=2)
        if run.state == "interrupted":
            page.command(f"advisor fleet {'rollback' if run.is_going_back else 'apply --resume'} {run.id}", indent=4)
    if not found.hosts:
        return page.text
    page.heading("Hosts")
    page.table([_standing_row(one) for one in found.hosts])
    _add_drift(page, found.hosts)
    _add_hosts(page, "Not asked", found.hosts)
    return page.text


def _standing_row(one: HostStanding) -> Sequence[Piece]:
    words, style = _STANDINGS[one.state]
    force = ", ".join(f"{record.id} {listed(record.plan.profiles)}" for record in one.in_force)
    asked = "" if one.taken is None else f"seen {format_time(one.taken)}"
    return [one.name, Span(words, style), force or "-", asked]
