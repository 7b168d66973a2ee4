"""The pages of apply, confirm, status, verify and rollback."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from advisor.host.safe_open import named_directory
from advisor.planning.records import Change, FileChange, Plan
from advisor.report.format import fold_alike
from advisor.report.layers import add_layers
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, counted_values, listed, value_words
from advisor.report.plan import add_values, apply_command, folded_changes, skipped_counts
from advisor.report.terms import restart_commands
from advisor.shell.quote import shell_quote
from advisor.shell.state_table import State
from advisor.transaction.journal import BY_SCRIPT, CLOSED_DAYS, MOST_CLOSED, Damaged, Record, Store
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Drift, RolledBack, Status, count_values

_RECENT = 5
"""Transactions that are over of which the page of status names each."""

# What advisor.script says where no command does it.
_PROSE = ("restore the earlier content of ", "set it to ")


_STATES: Mapping[State, tuple[str, Style]] = {
    "applying": ("interrupted during apply", "red"),
    "applied": ("active", "green"),
    "awaiting-confirmation": ("active, awaiting confirmation", "yellow"),
    "rolling-back": ("interrupted during rollback", "red"),
    "rolled-back": ("rolled back", ""),
    "unfinished": ("not rolled back as a whole", "red"),
    "kept-external": ("rolled back but for external changes", "yellow"),
}


def applied_text(record: Record | None, plan: Plan, *, width: int, color: bool) -> str:
    """What an apply did: values read back, files, what is left to do, and how to roll it all back."""
    page = Page(width, color=color)
    if record is None:
        counts = skipped_counts(plan.skipped)
        said = f"{counts}." if counts else "everything is already set."
        page.add(Span("Unchanged", "bold"), ": ", said, hang=2)
        _add_notes(page, plan)
        return page.text
    left = dict(record.left)
    made = [change for change in plan.changes if change.tunable not in left]
    values, files = counted(len(made), "value"), counted(len(plan.files), "file")
    done = f"{values} set and read back, {files} written."
    if not plan.files:
        done = f"{values} set and read back."
    elif not made:
        done = f"{files} written."
    page.add(Span(f"Applied {record.id}", "green"), ": ", done, hang=2)
    page.blank()
    _add_changes(page, made, plan.files)
    for folded in fold_alike(left, lambda what: what, same=lambda what: left[what].rpartition(": ")[2]):
        why = f"skipped: the kernel manages it ({left[folded.items[0]]})"
        page.add(Span(folded.title, "bold"), f": {why}", indent=2, hang=2)
    before = {one.tunable: one.before for one in record.plan.side_effects if not one.resets}
    for name, live in sorted(record.side_effects_after.items()):
        if before.get(name, live) != live:
            text = f"side effect: {value_words(before[name])} → {value_words(live)}"
            page.add(Span(name, "bold"), f" {text}", indent=2, hang=2)
    counts = skipped_counts(plan.skipped)
    if counts:
        page.blank()
        page.add(f"Unchanged: {counts}.")
    _add_notes(page, plan)
    _add_consequences(page, plan)
    _add_way_back(page, record)
    # Last of all, as it is what has to be done now.
    if record.seconds_left is not None:
        page.blank()
        trial = f"{round(record.seconds_left)} s left; confirm from a new login, or everything rolls back:"
        page.add(Span("Applied on trial", "yellow"), ": ", trial, hang=2)
        page.command(f"advisor confirm {record.id}")
    return page.text


def confirmed_text(record: Record, *, width: int, color: bool) -> str:
    """That a transaction stays, and how to roll it back."""
    page = Page(width, color=color)
    title = f"Confirmed {record.id}"
    page.add(Span(title, "green"), f" ({listed(record.plan.profiles)}): ", "it stays active.", hang=2)
    if record.peers == 0:
        page.add("No peer was asked, as none answered before: only this login shows that the path works.", hang=2)
    _add_way_back(page, record)
    return page.text


def _add_changes(page: Page, changes: Sequence[Change], files: Iterable[FileChange]) -> None:
    folded = folded_changes(changes)
    size = max((columns(one.title) for one in folded), default=0)
    for one in folded:
        add_values(page, Span(one.title, "bold"), one.items[0], size)
    for file in files:
        words = f"is new, mode {file.mode:04o}" if file.before is None else "is changed"
        page.add(Span(file.path, "bold"), f" {words}", indent=2, hang=2)


def _add_notes(page: Page, plan: Plan) -> None:
    for note in plan.notes:
        page.add(note)


def _add_consequences(page: Page, plan: Plan) -> None:
    """What the host still does not do, and what undoes it."""
    if any(one.takes_effect == "new-sockets" and one.tunable.startswith("sysctl:") for one in plan.changes):
        page.blank()
        page.add("Open sockets keep their value: programs use the new one with the next connection.")
    _add_restarts(page, "Restart these services to apply the placement:", plan.changes)
    found: dict[str, list[str]] = {}
    for change in plan.changes:
        if change.persist is None:
            found.setdefault(change.persist_note or "no file sets them again", []).append(change.tunable)
    for note, names in found.items():
        page.blank()
        page.add(f"{counted(len(names), 'value')} will not survive a reboot: {note}.")


def _add_restarts(page: Page, text: str, changes: Iterable[Change]) -> None:
    commands = restart_commands(changes)
    if commands:
        page.blank()
        page.add(text)
        for command in commands:
            page.command(command)


def _add_way_back(page: Page, record: Record) -> None:
    page.blank()
    page.add("To roll back:")
    page.command(f"advisor rollback {record.id}")
    page.add("or, in a shell without advisor:")
    page.command(f"sh {Store().script_path(record.id)}")


def status_text(status: Status, *, width: int, color: bool, everything: bool = False) -> str:
    """The transactions that are active, pending or unfinished, the last one first, then the last five others (all with
    ``everything``), and the drift of the active ones."""
    page = Page(width, color=color)
    if not status.records and not status.damaged:
        named = named_directory()
        page.add(
            "No transactions: advisor has changed nothing on this host."
            if named is None
            else f"No transactions in {named}, which ADVISOR_STATE_DIR names."
        )
        return page.text
    _add_damaged(page, status.damaged)
    drifted = {one.transaction for one in status.drift}
    current = [record for record in status.records if record.is_active or record.is_unfinished]
    over = [record for record in status.records if not (record.is_active or record.is_unfinished)]
    shown = over if everything else over[-_RECENT:]
    for record in (*reversed(current), *reversed(shown)):
        _add_record(page, record, is_drifted=record.id in drifted, is_held=status.lock_holder is not None)
    if len(over) > len(shown):
        page.blank()
        page.add(f"{counted(len(over) - len(shown), 'more transaction')}:")
        page.command("advisor status --all")
    elif everything and over:
        page.blank()
        page.add(f"Kept of what is rolled back: {MOST_CLOSED:,} transactions at most, each for {CLOSED_DAYS} days.")
    add_layers(page, status.records)
    if status.records:
        page.blank()
        _add_verdict(page, status)
    return page.text


def _add_damaged(page: Page, damaged: Iterable[Damaged]) -> None:
    """Transactions with an unreadable journal: which file it is, and what still rolls them back."""
    for one in damaged:
        page.blank()
        words = _WHY[BY_SCRIPT] if one.by_script else "presumably active"
        page.add(Span(one.id, "bold"), ": ", Span("damaged", "red"), ", ", words, hang=2)
        page.add(one.message, indent=2, hang=2)
        if one.by_script:
            continue
        if one.script is None:
            page.add("no rollback script is left", indent=2)
        else:
            page.add("its rollback script rolls it back:", indent=2)
            page.command(f"sh {shell_quote(one.script)}", indent=4)
        page.add("what is left of it:", indent=2)
        page.command(one.look_command, indent=4)
        page.add("to keep its values, and set its records aside:", indent=2)
        page.command(one.settle_commands[-1], indent=4)


def _add_record(page: Page, record: Record, *, is_drifted: bool, is_held: bool) -> None:
    """``is_held``: a process holds the store, and so works on what is unfinished."""
    is_running = record.is_unfinished and (record.process is not None or is_held)
    running: tuple[str, Style] = ("running", "yellow")
    words, style = running if is_running else _STATES[record.state]
    drifted: list[Piece] = [", ", Span("drifted", "red")] if is_drifted else []
    page.blank()
    page.add(Span(record.id, "bold"), " ", listed(record.plan.profiles), ": ", Span(words, style), *drifted, hang=2)
    size = [counted_values(len(record.plan.changes), len(record.plan.files))]
    if record.plan.claims:
        shared = counted(len(record.plan.claims), "value")
        size.append(f"{shared} shared with other transactions")
    page.add("; ".join((", ".join(size), _last_event(record))), indent=2, hang=2)
    if record.why_undone in _WHY:
        page.add(_WHY[record.why_undone], indent=2, hang=2)
    elif record.why_undone and record.why_undone != "asked for":
        page.add(f"rolled back because: {record.why_undone}", indent=2, hang=2)
    if record.is_unfinished and record.pending:
        page.add(f"the last step announced: {record.pending}", indent=2, hang=2)
    for what, why in record.kept:
        text = f"not restored: {why}"
        page.add(Span(what, "yellow"), f" {text}", indent=2, hang=2)
    if record.seconds_left is not None:
        page.add(_seconds_left(record.seconds_left), indent=2)
        page.command(f"advisor confirm {record.id}", indent=4)
    if record.process is not None and record.is_unfinished:
        page.add(f"running, process {record.process}", indent=2)
    elif record.is_unfinished and not is_running:
        page.add("to go on:" if record.state == "unfinished" else "to roll back:", indent=2)
        page.command(f"advisor rollback {record.id}", indent=4)


def _seconds_left(seconds: float) -> str:
    return f"rolls back automatically in {round(seconds)} s unless confirmed:"


def _last_event(record: Record) -> str:
    """What happened to it last, and when; of one that never ended, when it began."""
    if record.ended is None:
        return f"started {format_time(record.began)}"
    if record.confirmed is not None and record.is_active:
        return f"applied {format_time(record.ended)}, confirmed {format_time(record.confirmed)}"
    is_back = record.state in ("rolled-back", "unfinished", "kept-external")
    return f"{'rolled back' if is_back else 'applied'} {format_time(record.ended)}"


WATCHDOG_REASONS = (
    "nobody confirmed it in time",
    "its client ended half-way",
    "its client hung",
    "the client that rolled it back ended half-way",
    "the client that rolled it back hung",
    "the host was restarted before it was confirmed",
    "the host went down before it was done",
)
"""What templates/watch.sh.j2 notes as the reason for which it rolled back: for the catalogues."""

# The reasons that are no error's message.
_WHY: Mapping[str | None, str] = {
    "trial": "a trial of its live values, for a measurement",
    "interrupted": "rolled back after an interruption",
    BY_SCRIPT: "rolled back by its rollback script",
}


def format_time(seconds: float) -> str:
    """``2026-03-01 14:05:09 UTC``."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"


def verify_text(status: Status, *, width: int, color: bool) -> str:
    """A line for each value and file that is no longer as it was set, or how many are; and who else writes them."""
    page = Page(width, color=color)
    _add_damaged(page, status.unreadable)
    if status.records or not status.unreadable:
        page.blank()
        _add_verdict(page, status)
    for record in status.records:
        if record.seconds_left is not None:
            page.blank()
            title = f"{record.id} awaits confirmation"
            page.add(Span(title, "yellow"), ": ", _seconds_left(record.seconds_left), hang=2)
            page.command(f"advisor confirm {record.id}")
    for other in status.others:
        page.blank()
        page.add(other.note)
    return page.text


def _add_verdict(page: Page, status: Status) -> None:
    if status.stopped_holder is not None:
        number = status.stopped_holder
        stopped = f"Process {number} works on this host and is stopped."
        page.add(Span(f"{stopped} To let it go on, or to end it and roll back:", "red"))
        page.command(f"kill -CONT {number}")
        page.command("advisor rollback")
    elif status.lock_holder is not None:
        page.add(Span(f"Running: the lock is held by {status.lock_holder}", "yellow"))
    running = [record for record in status.unfinished if record.process is not None]
    for record in running:
        page.add(Span(f"{record.id}: running since {format_time(record.began)}, process {record.process}", "yellow"))
    is_held = status.lock_holder is not None
    idle = [] if is_held else [record for record in status.unfinished if record.process is None]
    interrupted = [record.id for record in idle if record.state != "unfinished"]
    if len(idle) > len(interrupted):
        names = listed([record.id for record in idle if record.state == "unfinished"])
        page.add(Span("Not restored as a whole:", "red"), f" {names}. To go on:")
        page.command("advisor rollback")
    if interrupted:
        page.add(Span("Interrupted:", "red"), f" {listed(interrupted)}: neither applied nor rolled back. To roll back:")
        page.command("advisor rollback")
    in_force = [record for record in status.records if record.is_active]
    if not in_force:
        if not status.unfinished and not is_held:
            page.add("No transaction is active: nothing to verify.")
        return
    values, files = count_values(in_force)
    paths = {file.path for record in in_force for file in record.plan.files}
    drifted_files = len({drift.what for drift in status.drift} & paths)
    drifted_values = len(status.drift) - drifted_files
    if status.drift:
        _add_drift(page, status.drift, values + files)
    count = values + files - drifted_values - drifted_files
    verb = "matches" if count == 1 else "match"
    matching = f"{counted_values(values - drifted_values, files - drifted_files)} {verb}."
    page.add(*(() if status.drift else (Span("Active:", "green"), " ")), matching)
    if status.next_boot:
        page.add(Span("The next boot would change:", "red"))
        for one in status.next_boot:
            page.add(Span(one.what, "bold"), f": {one.wanted} → {one.live}, {one.reason}", indent=2, hang=4)
    if status.drift:
        drifted = {one.transaction for one in status.drift}
        page.add("To apply them again:")
        for command in dict.fromkeys(apply_command(record.plan) for record in in_force if record.id in drifted):
            page.command(command)
        page.add("To restore the earlier values:")
        for record in reversed(in_force):
            if record.id in drifted:
                page.command(f"advisor rollback {record.id}")


def _add_drift(page: Page, drift: Sequence[Drift], total: int) -> None:
    page.add(Span(f"Drift: {len(drift)} of {counted(total, 'item')}", "red"))
    for one in fold_alike(drift, lambda one: one.what, same=lambda one: (_drift_words(one), one.transaction)):
        first = one.items[0]
        where = Span(f"({first.transaction})", "dim")
        page.add(Span(one.title, "bold"), f": {_drift_words(first)} ", where, indent=2, hang=4)
    page.blank()


def _drift_words(one: Drift) -> str:
    if one.what.startswith("/"):
        return one.reason
    parts = [f"expected {one.wanted}"]
    parts += [] if one.live is None else [f"found {one.live}"]
    return ", ".join((*parts, one.reason))


def rollback_text(found: RolledBack, *, width: int, color: bool) -> str:
    """What became of each item of each transaction that was rolled back."""
    page = Page(width, color=color)
    for record, outcomes in found:
        lost = [one for one in outcomes if not one.is_back]
        force = f"advisor rollback {record.id} --force"
        page.blank()
        words = "Partially rolled back" if lost else "Rolled back"
        if lost and not any(one.state in ("restored", "passed") for one in outcomes):
            words = "Not rolled back:"
        title = Span(f"{words} {record.id}", "yellow" if lost else "green")
        states = [one.state for one in outcomes]
        counts = (words.format(count=states.count(state)) for state, words in _OUTCOMES.items() if state in states)
        page.add(title, f" ({listed(record.plan.profiles)}): ", f"{', '.join(counts) or 'no items'}.", hang=2)
        for folded in fold_alike(outcomes, lambda one: one.what, same=lambda one: (one.state, one.detail, one.by_hand)):
            _add_outcome(page, folded.title, folded.items[0], force)
        if any(one.state == "kept" for one in lost):
            page.blank()
            page.add("To restore also what was modified externally:")
            page.command(force)
        restored = {one.what for one in outcomes if one.state == "restored"}
        changes = [change for change in record.plan.changes if change.tunable in restored]
        _add_restarts(page, "Restart these services to apply the earlier placement:", changes)
    return page.text


_OUTCOMES = {
    "restored": "{count} restored",
    "already": "{count} already restored",
    "passed": "{count} held by an upper layer",
    "kept": "{count} skipped",
    "failed": "{count} failed",
}
_NOT_BACK = {"kept": "skipped", "failed": "failed"}


def _add_outcome(page: Page, title: str, one: ItemOutcome, force: str) -> None:
    """``force`` is the command that is printed once, below all of them."""
    style: Style = "" if one.is_back else "red" if one.state == "failed" else "yellow"
    if one.is_back:
        page.add(Span(title, "bold"), f": {one.detail}", indent=2, hang=4)
        return
    state = _NOT_BACK.get(one.state, one.state)
    page.add(Span(title, "bold"), " ", Span(state, style), f": {one.detail}", indent=2, hang=4)
    if one.by_hand and one.by_hand != force:
        by_hand = one.by_hand
        if by_hand.startswith(_PROSE):
            page.add(f"by hand: {by_hand}", indent=6, hang=2)
        else:
            page.add("by hand:", indent=6)
            page.command(by_hand, indent=8)
