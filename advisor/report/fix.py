"""What fixes findings, as text and as a document: the findings, manual steps, what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from advisor.host import Step
from advisor.host.config_text import or_empty
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change, FileChange, Plan, plan_document
from advisor.recommend.fixes import Fix, LeftOut, ManualStep
from advisor.report.format import clean
from advisor.report.layout import Page, Piece, Span, counted
from advisor.report.plan import FINGERPRINT_DIGITS, add_trial, apply_command, cannot_apply_reason
from advisor.rules.rule import is_alternative
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import hand_command, printf_lines
from advisor.transaction.journal import Record

# A plan as the shell commands that do the same by hand: what ``advisor apply --dry-run`` prints.

ROOT = (0, 0)


TakenOut = Sequence[tuple[Record, Plan]]
"""The transactions that a plan replaces, and what is rolled back of each."""


def steps_text(plan: Plan, taken_out: TakenOut = ()) -> str:
    """Every step in the order in which apply does them; only comments where nothing would be done."""
    return "\n".join(_script_lines(plan, taken_out)) + "\n"


class StepBlock(NamedTuple):
    """What is done, in words, and the commands that do it; a here-document is one command."""

    what: str
    commands: tuple[str, ...]


def step_blocks(plan: Plan, taken_out: TakenOut = ()) -> tuple[StepBlock, ...]:
    """Every step in order; none where the plan cannot be applied or nothing is left to do."""
    if cannot_apply_reason(plan) is not None:
        return ()
    found = [*map(_change_block, plan.changes), *map(_file_block, plan.files), *_reload_blocks(plan)]
    for record, remaining in taken_out:
        # What is rolled back of a transaction, files first, as a rollback does it.
        place = f"of {record.id} ({', '.join(record.plan.profiles)}), which is rolled back once this is confirmed"
        for file in reversed(remaining.files):
            path = visible_command(shell_quote(file.path))
            if file.before is None:
                found.append(StepBlock(f"{file.path}: removed, {place}", (f"rm -f {path}",)))
            else:
                found.append(StepBlock(f"{file.path}: as it was, {place}", (_write_command(file.before, path),)))
        found += _reload_blocks(remaining)
        for change in reversed(remaining.changes):
            back = f"{change.tunable}: {or_empty(change.after)} → {or_empty(change.before)}"
            found.append(StepBlock(f"{back}, {place}", tuple(map(step_command, change.undo))))
    return tuple(found)


def _reload_blocks(plan: Plan) -> tuple[StepBlock, ...]:
    reloads = tuple(dict.fromkeys(step for file in plan.files for step in file.reload))
    return (StepBlock("so that the files are read", tuple(map(step_command, reloads))),) if reloads else ()


def _script_lines(plan: Plan, taken_out: TakenOut) -> Iterator[str]:
    yield _comment_line(f"Plan {plan.fingerprint[:FINGERPRINT_DIGITS]} of {', '.join(plan.profiles)}")
    reason = cannot_apply_reason(plan)
    if reason:
        yield _comment_line(f"Cannot be applied: {reason}")
    elif plan.is_empty and not step_blocks(plan, taken_out):
        yield _comment_line("Nothing to do: everything is already set.")
    else:
        yield _comment_line(
            "Every step in order, for root. advisor apply reads each value back, and rolls all back if one fails."
        )
    for one in plan.foreseen:
        yield _comment_line(f"A scan would then report {one.id} ({one.severity}): {one.title}")
    for block in step_blocks(plan, taken_out):
        yield ""
        yield _comment_line(block.what)
        yield from block.commands


def _comment_line(text: str) -> str:
    return f"# {clean(text)}"


def _change_block(change: Change) -> StepBlock:
    by_file = "" if change.steps else ", by the file below"
    what = f"{change.tunable}: {or_empty(change.before)} → {or_empty(change.after)}{by_file}"
    return StepBlock(what, tuple(map(step_command, change.steps)))


def _file_block(file: FileChange) -> StepBlock:
    path = visible_command(shell_quote(file.path))
    commands = [_write_command(file.after, path)]
    if file.new_directories:
        commands.insert(0, f"mkdir -p {visible_command(shell_quote(file.new_directories[0]))}")
    if file.before is None:
        commands.append(f"chmod {file.mode:04o} {path}")
    if file.before is None and (file.uid, file.gid) != ROOT:
        commands.append(f"chown {file.uid}:{file.gid} {path}")
    state = "new" if file.before is None else "changed"
    return StepBlock(f"{file.path}: {state}, mode {file.mode:04o}", tuple(commands))


def _write_command(content: bytes, path: str) -> str:
    """A here-document where the content is plain text, else ``printf`` lines, which hold any bytes."""
    text = content.decode("utf-8", "replace")
    is_plain = all(line.isprintable() and "\ufffd" not in line for line in text.split("\n"))
    if not text.endswith("\n") or not is_plain:
        return f"{{ {'; '.join(printf_lines(content))}; }} > {path}"
    lines = text[:-1].split("\n")
    end = next(word for word in ("EOF", *(f"EOF{n}" for n in range(len(lines)))) if word not in lines)
    return "\n".join((f"cat > {path} <<'{end}'", *lines, end))


def step_command(step: Step) -> str:
    """The command for a step, with nothing in it that a terminal would obey."""
    return visible_command(hand_command(step))


def visible_command(command: str) -> str:
    """The same command with what does not print as ``printf`` escapes, substituted inside the quotes around it.

    A newline stays, as a substitution would drop it.
    """
    return command if command.isprintable() else _QUOTED.sub(_without_controls, command)


_QUOTED = lazy_regex(r"""'[^']*'|"(?:\\.|[^"\\])*"|[^'"]+|.""", re.DOTALL)


def _without_controls(found: re.Match[str]) -> str:
    part = found[0]
    # Nothing is substituted between single quotes: they are closed around it.
    before, after = ("'\"", "\"'") if part.startswith("'") else ("", "")
    runs = re.split(r"([^\n -~]+)", part)
    return "".join(
        f"{before}{_octal_escape(run)}{after}" if (not run.replace("\n", "").isprintable()) else run for run in runs
    )


def _octal_escape(run: str) -> str:
    octal = "".join(f"\\{byte:03o}" for byte in run.encode("utf-8", "surrogateescape"))
    return f"$(printf '{octal}')"


_SHOWN = 3


def fix_text(fix: Fix, *, width: int, color: bool, is_live: bool = True) -> str:
    """The findings, what a person has to do about them, and what the plan leaves out; the plan itself follows."""
    page = Page(width, color=color)
    title = f"Fix of {counted(len(fix.findings), 'finding')}" if fix.findings else "Nothing to fix"
    page.add(Span(title, "bold"))
    page.table([(Span(one.id, "bold"), one.title) for one in fix.findings])
    where = "" if is_live else " on the captured host"
    alternatives = [one for one in fix.manual if one.command is None and is_alternative(one.text)]
    if steps := [one for one in fix.manual if one not in alternatives]:
        page.heading(f"Manual steps{where}, in this order")
        _add_steps(page, steps)
    if alternatives:
        page.heading(f"Alternatives{where}, in place of the rest of a fix")
        _add_steps(page, alternatives)
    if fix.left_out:
        page.heading("Left out")
        for names, reason in _group_left(fix.left_out):
            page.bullet(*names, f": {reason}")
    if fix.undecided:
        _add_decisions(page, fix, is_live=is_live)
    elif not fix.asked:
        page.blank()
        if fix.findings:
            page.add("advisor itself has nothing to set.")
        else:
            no_safe = "No finding can be fixed without a decision or an interruption: advisor fix ID fixes one."
            page.add(no_safe if fix.left_out else "This host has no findings.")
    return page.text


def _add_decisions(page: Page, fix: Fix, *, is_live: bool) -> None:
    """What decides the values that ``--yes`` leaves out: a person at a terminal, or a command that names them."""
    asked = " ".join(["advisor fix", *dict.fromkeys(one.finding for one in fix.undecided)])
    applied = " ".join(["advisor apply", *dict.fromkeys(shell_quote(one.what) for one in fix.undecided)])
    page.heading(f"What --yes leaves out, a person decides{'' if is_live else ' on the captured host'}")
    page.bullet("print the plan, and be asked on a terminal:")
    page.command(asked, indent=4)
    page.bullet("set what has been decided:")
    page.command(applied, indent=4)
    if not fix.asked:
        page.blank()
        page.add("Nothing has been changed.")


def _group_left(left: Sequence[LeftOut]) -> Iterator[tuple[list[Piece], str]]:
    """The findings of each reason; what was found where the reason is that of one finding alone."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for one in left:
        by_reason.setdefault(one.reason, {}).setdefault(one.finding, []).append(one.what)
    for reason, found in by_reason.items():
        if len(found) > 1:
            yield [Span(", ".join(found), "bold")], reason
            continue
        ((finding, names),) = found.items()
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield [Span(finding, "bold"), f": {', '.join(names[:_SHOWN])}{more}"], reason


def _add_steps(page: Page, steps: Sequence[ManualStep]) -> None:
    for (finding, text), run in groupby(steps, lambda one: (one.finding, one.text.rstrip("."))):
        page.bullet(Span(finding, "bold"), f": {text}" if text else "")
        for one in run:
            if one.command is not None:
                page.command(one.command, indent=4)
            if one.interrupts:
                page.add(Span(f"interrupts: {one.interrupts}", "yellow"), indent=4)


def waits_for_steps(fix: Fix, plan: Plan) -> bool:
    """Whether lines of other files, which the manual steps are about, are all that keeps the plan from applying."""
    is_overridden = bool(plan.blocking) and all(one.state == "overridden" for one in plan.blocking)
    return is_overridden and any(one.command is not None for one in fix.manual)


def after_steps_text(plan: Plan, *, width: int, color: bool) -> str:
    """Return what to type once the manual steps are done: the values, as the findings may be gone by then."""
    page = Page(width, color=color)
    page.add("Take the manual steps above first, then apply:")
    page.command(apply_command(plan))
    return page.text


def next_text(plan: Plan, record: Record | None, *, width: int, color: bool) -> str:
    """What to type after the fix: verify, and prove that it helped."""
    page = Page(width, color=color)
    if record is not None:
        page.blank()
        page.add("To check that it stays:")
        page.command(f"advisor verify {record.id}")
        add_trial(page, plan, "After a rollback, to keep it only if a gain is measured:")
    return page.text


def fix_document(fix: Fix, plan: Plan | None, record: Record | None) -> dict[str, Any]:
    """``advisor.fix/1``: plan is null where nothing is to be planned, transaction where nothing was applied."""
    return {
        "schema": "advisor.fix/1",
        "findings": [{"id": one.id, "severity": one.severity, "title": one.title} for one in fix.findings],
        "manual": list(fix.manual),
        "left_out": list(fix.left_out),
        "plan": None if plan is None else plan_document(plan),
        "transaction": None if record is None else {"id": record.id, "state": record.state},
    }
