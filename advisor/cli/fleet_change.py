"""``advisor fleet plan``, ``apply``, ``verify``, ``rollback`` and ``status``."""

from __future__ import annotations

import functools
import inspect
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from typer import Argument, Option

from advisor.cli.change import Set, ask_user
from advisor.cli.monitored import (
    MetricFiles,
    Nagios,
    OpenMetrics,
    Prometheus,
    answer_nagios,
    check_forms,
    fleet_hosts,
    verified_fleet,
)
from advisor.cli.output import parse_settings, print_json, print_text, say, terminal_width, wants_color
from advisor.cli.progress import run_progress
from advisor.cli.scan import Json
from advisor.fleet import FORKS
from advisor.host.numbers import count_noun

if TYPE_CHECKING:
    from advisor.fleet.inventory import Access, Inventory
    from advisor.fleet.runs.journal import RunRecord
    from advisor.fleet.runs.planning import FleetPlan
    from advisor.fleet.runs.status import FleetStanding

# What the commands of ``advisor fleet`` have in common: options, and the inventory that they mean.

InventorySources = Annotated[
    list[str],
    Option(
        "-i",
        "--inventory",
        metavar="INVENTORY",
        help="Read this inventory, as Ansible does: a file, a directory, or h1,h2,",
    ),
]
HostSources = Annotated[
    list[str] | None,
    Option(
        "-i",
        "--inventory",
        metavar="INVENTORY",
        help="Read this inventory, as Ansible does: a file, a directory, or h1,h2,",
    ),
]
Limit = Annotated[str | None, Option("--limit", metavar="PATTERN", help="Use only these hosts or groups of it.")]
Forks = Annotated[
    int,
    Option(
        "--forks",
        min=0,
        max=1000,
        metavar="N",
        help="Work on so many hosts at a time; 0: as ansible.cfg says, else 20.",
    ),
]
Timeout = Annotated[
    int, Option("--timeout", min=1, max=86400, metavar="SECONDS", help="Wait at most this long for one host.")
]
Keep = Annotated[
    Path | None, Option("-o", "--output", metavar="DIR", help="Store the captures here. Default: the state directory.")
]
MaxAge = Annotated[
    str | None,
    Option(
        "--max-age",
        metavar="30m|2h|SECONDS",
        help="Connect only to hosts whose stored capture is older, or that have none.",
    ),
]
Kept = Annotated[bool, Option("--kept", help="Read the stored captures; connect to no host.")]


class Login(Protocol):
    """Makes the inventory that a command means of its sources and limit, with the login that the command was given."""

    def __call__(self, sources: list[str] | None, limit: str | None) -> Inventory: ...


def logs_in(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of a login, after its own; its parameter ``login`` is a `Login` made of them."""
    own = inspect.signature(command, eval_str=True)
    # what it returns is a class that is imported only when it is used: its name alone does here
    options = inspect.signature(_make_access, locals={"Access": object}, eval_str=True).parameters

    @functools.wraps(command)
    def run(**given: Any) -> int:
        access = {name: given.pop(name) for name in options}

        def login(sources: list[str] | None, limit: str | None) -> Inventory:
            from advisor.fleet.inventory import Inventory

            return Inventory(tuple(sources or ()), limit, _make_access(**access))

        return command(**given, login=login)

    kept = [one for one in own.parameters.values() if one.name != "login"]
    run.__signature__ = own.replace(parameters=[*kept, *options.values()])  # type: ignore[attr-defined]
    return run


def _make_access(
    become: Annotated[
        bool | None,
        Option(
            "--become/--no-become",
            help="Become root there (or not). Default: as the inventory says.",
            show_default=False,
        ),
    ] = None,
    ask_become_pass: Annotated[
        bool, Option("--ask-become-pass", "-K", help="Prompt once for the password of sudo; it is stored nowhere.")
    ] = False,
    user: Annotated[str | None, Option("--user", "-u", metavar="NAME", help="Log in as this user.")] = None,
    private_key: Annotated[
        Path | None, Option("--private-key", metavar="FILE", help="Log in with this key.", exists=True, dir_okay=False)
    ] = None,
    extra_vars: Annotated[
        list[str] | None, Option("-e", "--extra-vars", metavar="K=V|@FILE", help="Set variables, as for Ansible.")
    ] = None,
) -> Access:
    """How to get in. Asks for the password of sudo where that is wanted. Raises UsageError."""
    from advisor.fleet.inventory import Access

    key = None if private_key is None else str(private_key.absolute())
    password = _ask_password() if ask_become_pass else None
    is_root = True if ask_become_pass and become is None else become
    return Access(is_root, user, key, password, tuple(extra_vars or ()))


def _ask_password() -> str:
    from getpass import getpass

    from advisor.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("--ask-become-pass: no terminal for the prompt")
    password = getpass("password for sudo: ")
    if not password:
        raise UsageError("--ask-become-pass: no password was given")
    return password


Profiles = Annotated[list[str], Argument(metavar="PROFILE…", help="Profiles by name or file.")]
SomeProfiles = Annotated[
    list[str] | None, Argument(metavar="PROFILE…", show_default=False, help="Profiles by name or file.")
]
SomeInventory = Annotated[
    list[str] | None,
    Option(
        "-i", "--inventory", metavar="INVENTORY", help="Read this inventory, as Ansible does. Default: that of the run."
    ),
]
CanaryHosts = Annotated[
    list[str] | None,
    Option(
        "--canary",
        metavar="HOST|N",
        help="Change these hosts, or so many, first and alone; 0 for none; may be repeated. Default: 1.",
        show_default=False,
    ),
]
BatchSize = Annotated[
    str | None,
    Option(
        "--batch", metavar="N|P%",
        help="Change so many hosts in each wave after that. Default: 10%, 50%, then the rest.",
        show_default=False,
    ),
]  # fmt: skip
Failover = Annotated[
    str | None,
    Option(
        "--failover-group",
        metavar="GROUP|var=NAME",
        help="Never change hosts of this group, or with the same value of this variable, at the same time.",
    ),
]
RunId = Annotated[str | None, Argument(metavar="[RUN]", help="A run by its number.", show_default=False)]


@logs_in
def plan(
    names: Profiles,
    inventory: InventorySources,
    limit: Limit = None,
    pairs: Set = None,
    canary: CanaryHosts = None,
    batch: BatchSize = None,
    failover: Failover = None,
    forks: Forks = FORKS,
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="DIR", help="Write a script for each host here, and waves.json.")
    ] = None,
    as_json: Json = False,
    *,
    login: Login,
) -> int:
    """Plan what profiles would change on each host, in waves. Changes nothing there."""
    from advisor.operations.fleet import make_wish, plan_fleet, write_fleet_plan

    meant = login(inventory, limit)
    wish = make_wish(
        meant, names, parse_settings(pairs), canary=canary or (), batch=batch, failover=failover, forks=forks
    )
    with run_progress() as steps:
        found = plan_fleet(wish, say=steps)
    shape = {
        "--canary": canary,
        "--batch": [batch] if batch else None,
        "--failover-group": [failover] if failover else None,
    }
    _print_plan(found.plan, as_json=as_json, command=_apply_command(names, inventory, limit, {"--set": pairs, **shape}))
    if output is not None:
        count = write_fleet_plan(found.plan, output)
        whose = "its" if count == 1 else "each"
        say(f"{output}: {count_noun(count, 'script')} and waves.json; on {whose} host, as root: sh HOST.sh apply")
    return found.code


def _apply_command(
    names: list[str], inventory: list[str], limit: str | None, more: Mapping[str, list[str] | None]
) -> str:
    """What to type to carry the plan out; how to get in is the caller's to add."""
    words = ["advisor", "fleet", "apply", *names, *(word for one in inventory for word in ("-i", one))]
    words += ["--limit", limit] if limit else []
    return shlex.join(
        [*words, *(word for option, given in more.items() for one in given or () for word in (option, one))]
    )


def _print_plan(made: FleetPlan, *, as_json: bool, command: str | None = None) -> None:
    from advisor.report.fleet.run import fleet_plan_document, fleet_plan_text

    if as_json:
        print_json(fleet_plan_document(made))
    else:
        print_text(fleet_plan_text(made, width=terminal_width(), color=wants_color(), command=command))


@logs_in
def apply(
    names: SomeProfiles = None,
    inventory: SomeInventory = None,
    limit: Limit = None,
    pairs: Set = None,
    canary: CanaryHosts = None,
    batch: BatchSize = None,
    failover: Failover = None,
    forks: Forks = FORKS,
    confirm_within: Annotated[
        int,
        Option(
            "--confirm-within",
            metavar="SECONDS",
            min=1,
            max=86400,
            help="Roll back each host automatically unless its wave is applied and passes its gate in this time.",
        ),
    ] = 300,
    gate_command: Annotated[
        str | None,
        Option(
            "--gate-command",
            metavar="COMMAND",
            help="Run this on each host of a wave, by its shell; any exit code but 0 fails the wave.",
        ),
    ] = None,
    prove_canary: Annotated[
        str | None,
        Option(
            "--prove-canary",
            metavar="DIR|-",
            help="Run advisor prove in DIR on the canary first; needs advisor there. - for no directory, with "
            "--command or --live.",
        ),
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Let that proof measure 8 pairs of 1 s.")] = False,
    force: Annotated[
        bool,
        Option(
            "--force",
            help="Apply although a scan would then report a new warning; also let that proof toggle a link "
            "that its ssh session needs.",
        ),
    ] = False,
    allow_link_flap: Annotated[
        bool, Option("--allow-link-flap", help="Permit it to toggle what interrupts a link.")
    ] = False,
    command: Annotated[
        str | None, Option("--command", metavar="CMD", help="Let it run this in place of fio, in DIR on the canary.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        Option("--metric", metavar="[NAME=]KIND:EXPR", help="Judge a run of --command by this, as advisor prove does."),
    ] = None,
    live: Annotated[
        bool, Option("--live", help="Let it switch the values under the canary's own traffic, in place of a load.")
    ] = False,
    rollback_all: Annotated[
        bool, Option("--rollback-all", help="Roll back the waves before a failed one, too.")
    ] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not prompt.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print plan and waves, do nothing.")] = False,
    resume: Annotated[
        str | None, Option("--resume", metavar="RUN|last", help="Resume a run that was interrupted.")
    ] = None,
    as_json: Json = False,
    *,
    login: Login,
) -> int:
    """Apply profiles on every host, wave by wave. Each host rolls back automatically unless its wave passes its
    gate."""
    from advisor.errors import UsageError
    from advisor.operations.fleet import apply_fleet, make_wish, plan_fleet, resume_fleet

    if resume is not None and (names or inventory or pairs or prove_canary):
        raise UsageError("--resume takes profiles and inventory from the run", hint="leave them out")
    if resume is None and not (names and inventory):
        raise UsageError("neither profiles with an inventory nor --resume", hint="advisor fleet apply PROFILE -i HOSTS")
    proof_options = _proof_options(
        prove_canary,
        command,
        metrics,
        {"quick": quick, "force": force and prove_canary is not None, "allow_link_flap": allow_link_flap},
        live=live,
    )
    meant = login(inventory, limit)

    def ask(made: FleetPlan) -> bool:
        _print_plan(made, as_json=False)
        return ask_user("Carry it out?")

    agree = None if yes or as_json else ask
    if resume is not None:
        with run_progress() as steps:
            found = resume_fleet(resume, meant.access, agree=agree, force=force, say=steps, rollback_all=rollback_all)
        return _print_run(found.record, found.plan, found.code, as_json=as_json)
    wish = make_wish(
        meant, names or [], parse_settings(pairs), canary=canary or (), batch=batch, failover=failover, forks=forks,
        confirm_within=confirm_within, gate_command=gate_command, rollback_all=rollback_all, prove=prove_canary,
        prove_options=proof_options,
    )  # fmt: skip
    with run_progress() as steps:
        found = plan_fleet(wish, say=steps) if dry_run else apply_fleet(wish, agree=agree, force=force, say=steps)
    if dry_run:
        _print_plan(found.plan, as_json=as_json)
        return found.code
    return _print_run(found.record, found.plan, found.code, as_json=as_json)


def _proof_options(
    directory: str | None, command: str | None, metrics: list[str] | None, flags: Mapping[str, bool], *, live: bool
) -> tuple[str, ...]:
    """The options of a proof on the canary as words. Raises UsageError for one that cannot be."""
    from advisor.cli.measuring import repeated_options
    from advisor.errors import UsageError
    from advisor.operations.prove import choose_command

    given = {**flags, "command": command, "metric": metrics}
    words = repeated_options(given, "--quick --force --allow-link-flap --command --metric")
    if directory is None:
        if words or live:
            option = words[0].partition("=")[0] if words else "--live"
            raise UsageError(f"{option} belongs to --prove-canary")
        return ()
    if live:
        if directory != "-":
            raise UsageError("--live measures no directory", hint="--prove-canary - --live")
        # Whoever agrees to the run agrees to the switching; there is nobody on the canary to be asked.
        return (*words, "--live", "--yes")
    choose_command(command, metrics or ())
    if directory == "-" and command is None:
        raise UsageError("--prove-canary -: there is nothing to measure on", hint="name a directory, or --command")
    return words


def _print_run(record: RunRecord | None, made: FleetPlan | None, code: int, *, as_json: bool) -> int:
    from advisor.report.fleet.run import fleet_run_document, fleet_run_text

    if as_json:
        print_json(fleet_run_document(record, made, code))
    else:
        print_text(fleet_run_text(record, made, width=terminal_width(), color=wants_color()))
    return code


@logs_in
def verify(
    run: RunId = None,
    inventory: SomeInventory = None,
    limit: Limit = None,
    forks: Forks = FORKS,
    prometheus: Prometheus = None,
    openmetrics: OpenMetrics = None,
    nagios: Nagios = False,
    as_json: Json = False,
    *,
    login: Login,
) -> int:
    """Compare the values of every host with what was applied. By all its transactions, or by those of one run. Exit
    code 0 where all match, 1 for drift, 4 for hosts that gave no answer; with --nagios, a plugin's."""
    from advisor.operations.fleet import verify_fleet
    from advisor.report.fleet.run import fleet_verify_document, fleet_verify_text

    meant = login(inventory, limit)
    files = MetricFiles(prometheus, openmetrics)

    def look() -> FleetStanding:
        check_forms(files, nagios=nagios, as_json=as_json)
        asked_for = meant if inventory else None
        with run_progress() as steps:
            return verified_fleet(lambda: verify_fleet(asked_for, meant.access, run, forks=forks, say=steps), files)

    if nagios:
        return answer_nagios(lambda: fleet_hosts(look()))
    found = look()
    if as_json:
        print_json(fleet_verify_document(found))
    elif not files.takes_output:
        print_text(fleet_verify_text(found, width=terminal_width(), color=wants_color()))
    return found.code


@logs_in
def rollback(
    run: RunId = None,
    inventory: SomeInventory = None,
    limit: Limit = None,
    force: Annotated[bool, Option("--force", help="Restore values that were modified externally, too.")] = False,
    as_json: Json = False,
    *,
    login: Login,
) -> int:
    """Roll back a run on every host, its last wave first. Without a number: the last run. With an inventory: only on
    hosts that are in that one, too."""
    from advisor.operations.fleet import roll_back_fleet

    meant = login(inventory, limit)
    asked_for = meant if inventory else None
    with run_progress() as steps:
        found = roll_back_fleet(run, meant.access, inventory=asked_for, only=limit, force=force, say=steps)
    code = found.ended.code if found.ended is not None else 5
    return _print_run(found, None, code, as_json=as_json)


@logs_in
def status(
    inventory: SomeInventory = None,
    limit: Limit = None,
    kept: Annotated[
        bool, Option("--kept", help="Read the stored captures, with their times; connect to no host.")
    ] = False,
    forks: Forks = FORKS,
    as_json: Json = False,
    *,
    login: Login,
) -> int:
    """List the runs of this controller. With an inventory (or --kept): also the active transactions of each host, and
    drift."""
    from advisor.operations.fleet import read_fleet_status
    from advisor.report.fleet.run import fleet_status_document, fleet_status_text

    meant = login(inventory, limit)
    with run_progress() as steps:
        found = read_fleet_status(meant if inventory else None, kept=kept, forks=forks, say=steps)
    if as_json:
        print_json(fleet_status_document(found))
    else:
        print_text(fleet_status_text(found, width=terminal_width(), color=wants_color()))
    return 4 if found.failed else 0


COMMANDS: dict[str, Callable[..., int]] = {
    "plan": plan,
    "apply": apply,
    "verify": verify,
    "rollback": rollback,
    "status": status,
}
