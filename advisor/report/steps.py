"""A plan as the shell commands that do the same by hand: what ``advisor apply --dry-run`` prints.

The text is itself a POSIX ``sh`` script: what is no command is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from advisor.host import Step
from advisor.host.patterns import lazy_regex
from advisor.host.text_words import or_empty
from advisor.planning.records import Change, FileChange, Plan
from advisor.report.format import clean
from advisor.report.plan import FINGERPRINT_DIGITS, cannot_apply_reason
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import hand_command, printf_lines
from advisor.transaction.journal import Record

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
