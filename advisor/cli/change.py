"""``advisor plan``, ``apply``, ``status``, ``verify``, ``rollback`` and ``rollback-script``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from advisor.plan.records import Plan

from advisor.cli.output import print_json, print_text, say, settings, terminal_width, the_host, wants_color
from advisor.cli.scan import Json, Root, Snapshot

Names = Annotated[list[str], typer.Argument(metavar="PROFILE…")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="K=V", help="A parameter of the profile; may be given again.")
]
RuntimeOnly = Annotated[bool, typer.Option("--runtime-only", help="Change live values only; a reboot undoes them.")]


def plan(
    names: Names,
    pairs: Set = None,
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    runtime_only: RuntimeOnly = False,
) -> int:
    """What profiles would change on this host, live and on disk. Changes nothing and needs no root."""
    from advisor.plan.records import plan_document
    from advisor.workflow import plan_profiles

    made = plan_profiles(the_host(root, snapshot), names, settings(pairs), runtime_only=runtime_only)
    if as_json:
        print_json(plan_document(made))
    else:
        from advisor.report.plan import plan_text

        print_text(plan_text(made, width=terminal_width(), color=wants_color()))
    return 3 if made.cannot_apply else 0


def apply(
    names: Names,
    pairs: Set = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print every step and do none.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    runtime_only: RuntimeOnly = False,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="ADDR", help="Must answer before and after a change of links; may be repeated."),
    ] = None,
    confirm_within: Annotated[
        int,
        typer.Option(
            "--confirm-within",
            metavar="SECONDS",
            min=0,
            max=86400,
            help="A change of links is put back unless `advisor confirm` comes in time; 0 keeps it at once.",
        ),
    ] = 60,
    as_json: Json = False,
) -> int:
    """Carry a plan out as one transaction: journalled, read back, all or nothing."""
    from advisor.host import live_host
    from advisor.report.documents import transaction_document
    from advisor.report.plan import plan_text
    from advisor.report.steps import steps_text
    from advisor.report.transaction import applied_text
    from advisor.workflow import apply_profiles, plan_profiles

    host = live_host()
    if dry_run:
        made = plan_profiles(host, names, settings(pairs), runtime_only=runtime_only)
        print_json(transaction_document(None, made)) if as_json else print_text(steps_text(made))
        return 3 if made.cannot_apply else 0
    need_root()

    def agree(made: Plan) -> bool:
        if yes or as_json or made.is_empty:
            return True
        print_text(plan_text(made, width=terminal_width(), color=wants_color()))
        return _asked("Apply this?")

    done = apply_profiles(
        host,
        names,
        settings(pairs),
        runtime_only=runtime_only,
        agree=agree,
        progress=say,
        peers=tuple(peers or ()),
        confirm_within=confirm_within,
    )
    if as_json:
        print_json(transaction_document(done.record, done.plan))
    else:
        print_text(applied_text(done.record, done.plan, width=terminal_width(), color=wants_color()))
    return 0


def need_root() -> None:
    from advisor.errors import PermissionDeniedError

    if os.geteuid() != 0:
        raise PermissionDeniedError("changing a host needs root", hint="run it with sudo; advisor plan needs no root")


def _asked(question: str) -> bool:
    from advisor.errors import RefusedError, UsageError

    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", hint="give --yes to go on without asking, or --dry-run to look")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError("not confirmed; nothing was changed")
    return True


def confirm(
    identity: Annotated[str | None, typer.Argument(metavar="[ID]", help="The one that waits without it.")] = None,
    same_session: Annotated[
        bool, typer.Option("--same-session", help="Also over the ssh connection that the change was made over.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Keep a transaction that waits for confirmation; without it, all is put back when its time is up."""
    from advisor.history import confirm_transaction
    from advisor.host import live_host
    from advisor.report.documents import transaction_document
    from advisor.report.transaction import confirmed_text

    need_root()
    record = confirm_transaction(live_host(), identity, same_session=same_session)
    if as_json:
        print_json(transaction_document(record, record.plan))
    else:
        print_text(confirmed_text(record, width=terminal_width(), color=wants_color()))
    return 0


def status(as_json: Json = False) -> int:
    """Transactions, what is in force, and drift."""
    from advisor.history import host_status
    from advisor.host import live_host

    found = host_status(live_host())
    if as_json:
        from advisor.report.documents import status_document

        print_json(status_document(found))
    else:
        from advisor.report.transaction import status_text

        print_text(status_text(found, width=terminal_width(), color=wants_color()))
    return 0


def verify(
    identity: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A transaction; all in force without it.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Is every value, live and persisted, as its transaction set it? Exit code 0 or 1."""
    from advisor.history import verify_transactions
    from advisor.host import live_host

    found = verify_transactions(live_host(), identity)
    if as_json:
        from advisor.report.documents import verify_document

        print_json(verify_document(found))
    else:
        from advisor.report.transaction import verify_text

        print_text(verify_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_as_set else 1


def rollback(
    identity: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A transaction; the last one without it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every transaction in force, the last one first.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Put back also what somebody else has changed since.")] = False,
    as_json: Json = False,
) -> int:
    """Put a transaction back, live and persisted."""
    from advisor.history import rollback_transactions
    from advisor.host import live_host

    need_root()
    found = rollback_transactions(live_host(), identity, everything=everything, force=force)
    if as_json:
        from advisor.report.documents import rollback_document

        print_json(rollback_document(found))
    else:
        from advisor.report.transaction import rollback_text

        print_text(rollback_text(found, width=terminal_width(), color=wants_color()))
    return 5 if any(not one.is_back for _, outcomes in found for one in outcomes) else 0


def rollback_script(
    name: Annotated[str | None, typer.Argument(metavar="[ID|PROFILE]", help="The last transaction without it.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there, mode 0700.")
    ] = None,
    pairs: Set = None,
) -> int:
    """A self-contained POSIX sh script that puts a transaction (or, beforehand, a profile) back, nothing installed."""
    from advisor.host import live_host
    from advisor.workflow import script_for, write_script

    text = script_for(live_host(), name, settings(pairs))
    if output is None:
        print_text(text)
    else:
        write_script(text, output)
        say(f"{output}: run it as root: sh {output}")
    return 0


COMMANDS: Final = {
    "plan": plan,
    "apply": apply,
    "confirm": confirm,
    "status": status,
    "verify": verify,
    "rollback": rollback,
    "rollback-script": rollback_script,
}
