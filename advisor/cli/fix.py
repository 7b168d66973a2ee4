"""``advisor fix``: from findings to one plan that fixes them, and on to its transaction."""

from __future__ import annotations

import os
from typing import Annotated

from typer import Argument, Option

from advisor import operations
from advisor.cli.change import Force, RuntimeOnly, apply_agreed, remaining_state, show_applied
from advisor.cli.complete import finding_ids
from advisor.cli.output import print_json, print_result, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot, Volumes, Workload
from advisor.errors import PermissionDeniedError, as_root
from advisor.shell.quote import shell_quote


def fix(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[N|ID…]", help="Findings, by number of the scan page or rule id.", autocompletion=finding_ids
        ),
    ] = None,
    all_safe: Annotated[
        bool, Option("--all-safe", help="All findings whose remedy is values that interrupt nothing.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the plan and the manual steps; apply nothing.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask. Leaves out what needs a decision.")] = False,
    force: Force = False,
    runtime_only: RuntimeOnly = False,
    workload: Workload = None,
    volumes: Volumes = None,
    root: Root = None,
    snapshot: Snapshot = None,
    as_json: Json = False,
) -> int:
    """Fix findings as one transaction. Plans all that advisor can set, prompts, applies it; prints the manual steps."""
    from advisor.host.provenance import is_own_tree
    from advisor.operations.findings import find_fix
    from advisor.report.fix import after_steps_text, fix_document, fix_text, next_text, waits_for_steps
    from advisor.report.plan import plan_text

    host = operations.open_host(root, snapshot)
    made = find_fix(
        names or (), all_safe=all_safe, host=host, workload=workload, volumes=volumes, is_unattended=yes and not dry_run
    )
    if yes and not host.is_live:
        say("--yes: nothing is applied to a capture; this is the plan")
    settings = dict(made.settings)
    is_here = host.is_live or is_own_tree(root)
    if not as_json:
        text = fix_text(made, width=terminal_width(), color=wants_color(), is_live=is_here)
        print_text(f"{text}\n" if made.asked else text)
    planned = None
    if made.asked:
        planned = operations.plan(*made.asked, host=host, settings=settings, runtime_only=runtime_only)
    is_done = planned is None or (planned.is_empty and not planned.cannot_apply)
    if host.is_live and not dry_run and os.geteuid() != 0:
        unread = planned is not None and any(one.state == "unknown" for one in planned.skipped)
        if made.undecided or unread or not is_done:
            flags = {"--yes": yes and not made.undecided, "--force": force, "--runtime-only": runtime_only}
            flags["--json"] = as_json
            words = ["--all-safe"] if all_safe else list(dict.fromkeys(one.id for one in made.findings))
            words += [flag for flag, is_given in flags.items() if is_given]
            given = {"--workload": workload, "--volumes": volumes}
            words += [word for option, value in given.items() if value is not None for word in (option, str(value))]
            raise PermissionDeniedError(
                "setting these values needs root", hint=as_root(f"advisor fix {' '.join(map(shell_quote, words))}")
            )
    if planned is None or is_done or dry_run or not host.is_live:
        if as_json:
            print_json(fix_document(made, planned, None))
        elif planned is not None:
            print_text(plan_text(planned, width=terminal_width(), color=wants_color(), is_live=is_here))
            if waits_for_steps(made, planned):
                print_text("\n" + after_steps_text(planned, width=terminal_width(), color=wants_color()))
        is_refused = bool(made.undecided) if is_done else planned is not None and planned.cannot_apply
        return 3 if is_refused else 0
    if not as_json and waits_for_steps(made, planned):
        print_text(after_steps_text(planned, width=terminal_width(), color=wants_color()))
    done = apply_agreed(
        made.asked, settings, is_agreed=yes, shows_plan=not as_json, runtime_only=runtime_only, force=force
    )

    def show() -> None:
        if as_json:
            print_json(fix_document(made, done.plan, done.record))
        else:
            show_applied(done)
            print_text("\n" + next_text(done.plan, done.record, width=terminal_width(), color=wants_color()))

    print_result(show, remaining_state(done.record))
    return 0


COMMANDS = {"fix": fix}
