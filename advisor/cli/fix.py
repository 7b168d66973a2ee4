"""``advisor fix``: from findings to one plan that fixes them, and on to its transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.change import RuntimeOnly, apply_agreed, remaining_state, show_applied
from advisor.cli.complete import finding_ids
from advisor.cli.output import print_json, print_result, print_text, terminal_width, the_host, wants_color
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json, Root, Snapshot
from advisor.errors import UsageError

if TYPE_CHECKING:
    from advisor.planning.records import Plan
    from advisor.recommend.fixes import Fix


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
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    runtime_only: RuntimeOnly = False,
    workload: Annotated[
        str | None,
        Option("--workload", metavar="NAME|K=V,…", help="Declare what runs here, as for advisor scan."),
    ] = None,
    root: Root = None,
    snapshot: Snapshot = None,
    as_json: Json = False,
) -> int:
    """Fix findings as one transaction. Plans all that advisor can set, prompts, applies it; prints the manual steps."""
    from advisor.operations import scan
    from advisor.planner import plan_profiles
    from advisor.recommend.fixes import make_fix, make_safe_fix, select_findings
    from advisor.report.fix import fix_document, fix_text, next_text

    if bool(names) == all_safe:
        raise UsageError("expected findings or --all-safe", hint="advisor scan lists the findings with their numbers")
    host = the_host(root, snapshot)
    found = tuple(one for one in scan(host, workload=workload).findings if one.muted is None)
    made = make_safe_fix(found) if all_safe else make_fix(select_findings(found, names or ()))
    if not as_json:
        print_text(fix_text(made, width=terminal_width(), color=wants_color()) + "\n")
    planned = plan_profiles(host, made.asked, dict(made.settings), runtime_only=runtime_only) if made.asked else None
    if planned is None or dry_run or not host.is_live or (planned.is_empty and not planned.cannot_apply):
        _show(made, planned, as_json=as_json)
        return 3 if planned is not None and planned.cannot_apply else 0
    done = apply_agreed(
        made.asked, dict(made.settings), is_agreed=yes, shows_plan=not as_json, runtime_only=runtime_only
    )

    def show() -> None:
        if as_json:
            print_json(fix_document(made, done.plan, done.record))
        else:
            show_applied(done)
            print_text("\n" + next_text(done.plan, done.record, width=terminal_width(), color=wants_color()))

    print_result(show, remaining_state(done.record))
    return 0


def _show(made: Fix, planned: Plan | None, *, as_json: bool) -> None:
    from advisor.report.fix import fix_document
    from advisor.report.plan import plan_text

    if as_json:
        print_json(fix_document(made, planned, None))
    elif planned is not None:
        print_text(plan_text(planned, width=terminal_width(), color=wants_color()))


COMMANDS: Final = {"fix": fix}
