"""The plan of many hosts as a page and as a document: what changes, printed once for hosts alike, then the waves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor.fleet.runs.journal import PlannedHost, PlannedState
from advisor.fleet.runs.planning import FleetPlan
from advisor.host.grouping import group_pairs
from advisor.planning.records import Plan, plan_document
from advisor.report.encode import encode_document
from advisor.report.format import ranked, runs
from advisor.report.layout import Page, Piece, Span, Style, counted, listed
from advisor.report.plan import add_plan

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
