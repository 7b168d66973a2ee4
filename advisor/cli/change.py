"""``advisor plan``, ``apply``, ``status``, ``verify``, ``rollback`` and ``rollback-script``."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from advisor.operations.transactions import ApplyResult
    from advisor.planner import Asked
    from advisor.planning.records import Plan
    from advisor.transaction.journal import Record
    from advisor.transaction.status import RolledBack, Status

from typer import Argument, Option

from advisor import operations
from advisor.cli.complete import profile_parameters, requestable_words, transaction_ids, transactions_or_profiles
from advisor.cli.monitored import (
    MetricFiles,
    Nagios,
    OpenMetrics,
    Prometheus,
    answer_nagios,
    check_forms,
    follow_trial,
    is_watched,
    one_host,
    verify_host,
)
from advisor.cli.output import parse_settings, print_json, print_result, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot

Names = Annotated[
    list[str],
    Argument(
        metavar="PROFILE…",
        help="Profiles by name or file (./own.toml), and values: sysctl:vm.swappiness=10. At least and at most are"
        " quoted for the shell: 'sysctl:net.core.rmem_max>=8388608'.",
        autocompletion=requestable_words,
    ),
]
ScriptOutput = Annotated[
    Path | None,
    Option("-o", "--output", metavar="FILE", help="Write the script here, mode 0700; without it, to stdout."),
]
Set = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="K=V",
        help="Set a parameter of the profile, or of one of several as PROFILE.NAME=VALUE; may be repeated.",
        autocompletion=profile_parameters,
    ),
]
MountedHost = Annotated[
    Path | None,
    Option("--root", metavar="DIR", help="Verify the host whose directories are mounted below DIR, as a container's."),
]
RuntimeOnly = Annotated[bool, Option("--runtime-only", help="Change live values only; a reboot reverts them.")]
Force = Annotated[
    bool, Option("--force", help="Apply although a scan would then report a new warning; --yes alone is refused.")
]
InsteadOf = Annotated[
    list[str] | None,
    Option(
        "--instead-of",
        metavar="PROFILE|ID",
        help="Replace this active transaction: only what differs is written; may be repeated.",
        autocompletion=transactions_or_profiles,
    ),
]


def plan(
    names: Names,
    pairs: Set = None,
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    runtime_only: RuntimeOnly = False,
    instead_of: InsteadOf = None,
) -> int:
    """Plan what profiles would change, live and on disk. Changes nothing and needs no root."""
    host = operations.open_host(root, snapshot)
    made = operations.plan(
        *names, host=host, settings=parse_settings(pairs), runtime_only=runtime_only, instead_of=instead_of or ()
    )
    if as_json:
        print_json(operations.document(made))
    else:
        from advisor.report.plan import plan_text

        print_text(plan_text(made, width=terminal_width(), color=wants_color(), is_live=host.is_live))
    return 3 if made.cannot_apply else 0


def apply(
    names: Names,
    pairs: Set = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print every step, do none.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not prompt.")] = False,
    runtime_only: RuntimeOnly = False,
    peers: Annotated[
        list[str] | None,
        Option(
            "--peer",
            metavar="ADDR",
            help="Require an answer of this address before and after a change of links; may be repeated.",
        ),
    ] = None,
    confirm_within: Annotated[
        int,
        Option(
            "--confirm-within",
            metavar="SECONDS",
            min=0,
            max=86400,
            help="Roll back a change of links automatically unless confirmed in time; 0 confirms it at once.",
        ),
    ] = 60,
    instead_of: InsteadOf = None,
    force: Force = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON document; do not prompt.")] = False,
) -> int:
    """Apply profiles as one transaction: all values or none. Each step is journalled first and read back."""
    from advisor.operations.transactions import taken_out_by
    from advisor.report.documents import transaction_document
    from advisor.report.fix import steps_text

    settings, replaced = parse_settings(pairs), instead_of or ()
    if dry_run:
        made = operations.plan(*names, settings=settings, runtime_only=runtime_only, instead_of=replaced)
        out = taken_out_by(operations.open_host(), made)
        print_json(transaction_document(None, made, foreseen=out)) if as_json else print_text(steps_text(made, out))
        return 3 if made.cannot_apply else 0
    done = apply_agreed(
        names,
        settings,
        is_agreed=yes or as_json,
        runtime_only=runtime_only,
        peers=peers or (),
        confirm_within=confirm_within,
        instead_of=replaced,
        force=force,
    )

    def show() -> None:
        if as_json:
            print_json(transaction_document(done.record, done.plan, done.taken_out))
        else:
            show_applied(done)

    print_result(show, remaining_state(done.record))
    if done.record is not None and done.record.seconds_left is not None and is_watched(yes=yes, as_json=as_json):
        return follow_trial(done.record)
    return _rollback_code(done.taken_out)


def apply_agreed(
    names: "Asked",
    given: Mapping[str, str],
    *,
    is_agreed: bool,
    shows_plan: bool = True,
    runtime_only: bool = False,
    peers: Sequence[str] = (),
    confirm_within: float = 60,
    instead_of: Sequence[str] = (),
    force: bool = False,
) -> "ApplyResult":
    """The result of an apply as root, after the plan has been shown and agreed to. Raises what `apply` raises."""
    from advisor.report.plan import plan_text

    def agree(made: "Plan") -> bool:
        if shows_plan:
            print_text(plan_text(made, width=terminal_width(), color=wants_color(), is_asked=True))
        return ask_user("Apply this?")

    return operations.apply(
        *names,
        settings=given,
        runtime_only=runtime_only,
        agree=None if is_agreed else agree,
        force=force,
        progress=say,
        peers=peers,
        confirm_within=confirm_within,
        instead_of=instead_of,
    )


def show_applied(done: "ApplyResult") -> None:
    """Print what an apply came to, and what became of the transactions whose place it took."""
    from advisor.report.transaction import applied_text, rollback_text

    print_text(applied_text(done.record, done.plan, width=terminal_width(), color=wants_color()))
    if done.taken_out:
        print_text(rollback_text(done.taken_out, width=terminal_width(), color=wants_color()))


def remaining_state(record: "Record | None") -> str:
    """What is there although it could not be printed."""
    if record is None:
        return "nothing was changed"
    state = record.state if record.seconds_left is None else f"{record.state}, {record.seconds_left:.0f} s left"
    return f"transaction {record.id} is {state}: advisor status"


def ask_user(question: str, *, has_dry_run: bool = True) -> bool:
    from advisor.errors import RefusedError, UsageError

    if not sys.stdin.isatty():
        raise UsageError(
            "no terminal for the prompt (use --yes)",
            hint="--yes applies without a prompt, --dry-run prints the steps" if has_dry_run else None,
        )
    # The English letter counts everywhere: it is what fingers know, and what a tool that types answers sends.
    answers = ("y", "yes", *["y", "yes"])
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in answers:
        raise RefusedError("cancelled; nothing was changed")
    return True


def confirm(
    identity: Annotated[
        str | None,
        Argument(
            metavar="[ID]",
            help="A transaction. Default: the one that awaits confirmation.",
            autocompletion=transaction_ids,
        ),
    ] = None,
    same_session: Annotated[
        bool, Option("--same-session", help="Confirm even over the ssh connection that the change was made over.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Confirm a transaction that awaits confirmation. It rolls back automatically unless confirmed in time."""
    from advisor.operations.transactions import confirm_pending
    from advisor.report.documents import transaction_document
    from advisor.report.transaction import confirmed_text, rollback_text

    kept = confirm_pending(identity, same_session=same_session)

    def show() -> None:
        if as_json:
            print_json(transaction_document(kept.record, kept.record.plan, kept.taken_out))
            return
        print_text(confirmed_text(kept.record, width=terminal_width(), color=wants_color()))
        if kept.taken_out:
            print_text(rollback_text(kept.taken_out, width=terminal_width(), color=wants_color()))

    print_result(show, remaining_state(kept.record))
    return _rollback_code(kept.taken_out)


def _rollback_code(found: "RolledBack") -> int:
    """5 where an item of what was rolled back does not have its old value."""
    return 5 if any(not one.is_back for _record, outcomes in found for one in outcomes) else 0


def status(
    identity: Annotated[
        str | None,
        Argument(metavar="[ID|PROFILE]", help="A transaction. Default: all of them.", autocompletion=transaction_ids),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="Every transaction, not only the last five that are over.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List transactions, which of them are active, and drift."""
    from advisor.errors import UsageError

    if identity and everything:
        raise UsageError("name a transaction or --all, not both", hint=f"advisor status {identity} is of one")
    found = operations.status(identity)
    if as_json:
        from advisor.report.documents import status_document

        print_json(status_document(found))
    else:
        from advisor.report.transaction import status_text

        text = status_text(found, width=terminal_width(), color=wants_color(), everything=everything)
        print_text(text)
    return 2 if found.unreadable else 0


def verify(
    identity: Annotated[
        str | None,
        Argument(
            metavar="[ID|PROFILE]", help="A transaction. Default: every active one.", autocompletion=transaction_ids
        ),
    ] = None,
    prometheus: Prometheus = None,
    openmetrics: OpenMetrics = None,
    nagios: Nagios = False,
    as_json: Json = False,
    root: MountedHost = None,
) -> int:
    """Compare values, live and on disk, with what was applied. Exit code 0 where all match, 1 for drift, 2 where a
    journal is damaged; with --nagios, a plugin's."""

    files = MetricFiles(prometheus, openmetrics)

    def look() -> "Status":
        check_forms(files, nagios=nagios, as_json=as_json)
        return verify_host(lambda: _verified(files.is_asked or nagios), files)

    def _verified(is_monitored: bool) -> "Status":
        # A plugin's answer and metrics have no place for others, and are asked for every minute.
        found = operations.verify(identity, with_others=not nagios and not files.takes_output, root=root)
        if is_monitored and found.unreadable:
            # Numbers of the others would read as if they were of all.
            raise found.unreadable[0].as_error
        return found

    if nagios:
        return answer_nagios(lambda: one_host(look()))
    found = look()
    if as_json:
        from advisor.report.documents import verify_document

        print_json(verify_document(found))
    elif not files.takes_output:
        from advisor.report.transaction import verify_text

        print_text(verify_text(found, width=terminal_width(), color=wants_color()))
    return 2 if found.unreadable else 0 if found.is_as_set else 1


def rollback(
    identity: Annotated[
        str | None,
        Argument(metavar="[ID|PROFILE]", help="A transaction. Default: the last one.", autocompletion=transaction_ids),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="Roll back every active transaction, the last one first.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Restore values that were modified externally, too.")] = False,
    any_host: Annotated[bool, Option("--any-host", help="Obey a store that another machine has left.")] = False,
    as_json: Json = False,
) -> int:
    """Roll back a transaction, live and persisted."""
    found = operations.rollback(identity, everything=everything, force=force, any_host=any_host, warn=say)

    def show() -> None:
        if as_json:
            from advisor.report.documents import rollback_document

            print_json(rollback_document(found))
        else:
            from advisor.report.transaction import rollback_text

            print_text(rollback_text(found, width=terminal_width(), color=wants_color()))

    names = ", ".join(record.id for record, _outcomes in found)
    print_result(show, f"rolled back: {names}: advisor status" if found else "nothing was changed")
    return _rollback_code(found)


def rollback_script(
    name: Annotated[
        str | None,
        Argument(
            metavar="[ID|PROFILE]",
            help="A transaction or a profile. Default: the last transaction.",
            autocompletion=transactions_or_profiles,
        ),
    ] = None,
    output: ScriptOutput = None,
    pairs: Set = None,
) -> int:
    """Print a POSIX sh script that rolls back a transaction. It needs nothing installed. Of a profile: the script that
    rolls back what applying it would change now."""
    from advisor.operations.files import write_output

    text = operations.rollback_script(name, settings=parse_settings(pairs))
    if output is None:
        print_text(text)
    else:
        write_output(output, text, mode=0o700)
        say(f"{output}: run it as root: sh {output}")
    return 0


COMMANDS = {
    "plan": plan,
    "apply": apply,
    "confirm": confirm,
    "status": status,
    "verify": verify,
    "rollback": rollback,
    "rollback-script": rollback_script,
}
