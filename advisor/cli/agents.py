"""``advisor mcp`` and ``advisor approve``: what a language model may ask for, and the person who decides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor import operations
from advisor.cli.output import print_text, say, terminal_width, wants_color
from advisor.cli.scan import Root, Snapshot
from advisor.report.format import clean

if TYPE_CHECKING:
    from advisor.operations.approvals import Approvable


def serve(root: Root = None, snapshot: Snapshot = None) -> int:
    """Answer agents over the Model Context Protocol. On standard input and output; they can look and plan, and to apply
    or roll back they need advisor approve. Needs host-advisor[mcp]."""
    from importlib.util import find_spec

    from advisor.errors import RefusedError, UsageError

    if str(snapshot) == "-":
        raise UsageError("--snapshot -: the protocol is on standard input", hint="--snapshot FILE")
    host = None if root is None and snapshot is None else operations.open_host(root, snapshot)
    if find_spec("mcp") is None:
        raise RefusedError(
            "advisor mcp needs host-advisor[mcp]: the Python package mcp is not installed here",
            hint="in a checkout: uv tool install '.[mcp]'; or into the environment of advisor: pip install 'mcp>=2,<3'",
        )
    if sys.stdin.isatty():
        raise UsageError(
            "advisor mcp speaks a protocol on standard input, which is a terminal here",
            hint="name it as the command of a server in the configuration of the program: docs/how-to/agents.md",
        )
    from advisor.cli.agent_server import serve_stdio
    from advisor.cli.agent_tools import ServedHost

    serve_stdio(ServedHost(host, snapshot))
    return 0


def approve(
    fingerprint: Annotated[
        str, Argument(metavar="FINGERPRINT", help="Of the plan: 12 digits or more, from what the program shows.")
    ],
    duration: Annotated[str, Option("--for", metavar="TIME", help="How long it holds: 90s, 10m; at most 1h.")] = "10m",
    rollback: Annotated[
        bool, Option("--rollback", help="Approve the rollback of the active transaction with this plan.")
    ] = False,
) -> int:
    """Approve one change that a program asks for, once. Shows the plan as it is now and prompts on a terminal; needs
    root."""
    from advisor.cli.change import ask_user
    from advisor.errors import RefusedError
    from advisor.operations.approvals import decline_approval, find_approvable, grant_approval, parse_duration
    from advisor.report.plan import plan_text

    seconds = parse_duration(duration)
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise RefusedError("an approval is given on a terminal, by a person", hint="run it in a terminal, with no pipe")
    found = find_approvable(fingerprint, rollback=rollback)
    if found.record is not None:
        print_text(_rollback_text(found))
        question = f"Approve the rollback of {found.record.id}, once, within {seconds:.0f} s?"
    else:
        print_text(plan_text(found.plan, width=terminal_width(), color=wants_color(), is_asked=True))
        if found.asked_by:
            program = clean(found.asked_by)[:60].replace('"', "'")
            say(f'asked for by a program that calls itself "{program}" (not verified)')
        question = f"Approve that this is applied, once, within {seconds:.0f} s?"
    try:
        ask_user(question, has_dry_run=False)
    except RefusedError:
        decline_approval(found)
        raise
    grant_approval(found, seconds=seconds)
    say(f"approved for {seconds:.0f} s: the program may go on")
    return 0


def _rollback_text(found: Approvable) -> str:
    """What a rollback restores, what it does not, and why."""

    def item(what: str, rest: str) -> str:
        return f"  {clean(what)}  {clean(rest)}"

    assert found.record is not None
    profiles = ", ".join(found.record.plan.profiles)
    lines = [clean(f"What the rollback of {found.record.id} ({profiles}) restores:")]
    drifted = {one.what: one for one in found.drift}
    restored = [one for one in found.plan.changes if one.tunable not in drifted]
    files = [one.path for one in found.plan.files if one.path not in drifted]
    lines += [item(one.tunable, f"{one.after} → {one.before}") for one in restored]
    lines += [f"  {clean(path)}" for path in files]
    if not restored and not files:
        lines.append("  nothing")
    if drifted:
        lines.append("Drifted since the apply:")
    for one in drifted.values():
        drift = "expected {wanted}, found {live} ({reason})"
        live = "unknown" if one.live is None else one.live
        lines.append(item(one.what, drift.format(wanted=one.wanted, live=live, reason=one.reason)))
    if drifted:
        lines.append("  A value that was modified externally is skipped.")
    if found.restored_above:
        lines.append("Held by upper layers:")
    lines += [item(what, reason) for what, reason in found.restored_above]
    return "".join(f"{line}\n" for line in lines)


COMMANDS = {"mcp": serve, "approve": approve}
