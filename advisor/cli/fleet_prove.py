"""``advisor fleet prove``: whether a profile helps a fleet, with its hosts as units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from advisor.cli.change import Set, ask_user
from advisor.cli.fleet_change import BatchSize, CanaryHosts, Failover, SomeInventory, SomeProfiles
from advisor.cli.fleet_options import Forks, Limit, Login, logs_in
from advisor.cli.output import parse_settings, print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json
from advisor.fleet import FORKS

if TYPE_CHECKING:
    from advisor.fleet.runs.host_trial import TrialResult
    from advisor.fleet.runs.planning import FleetPlan
    from advisor.fleet.runs.trial_records import TrialTerms
    from advisor.proof.host_units import Design


@logs_in
def prove(
    names: SomeProfiles = None,
    inventory: SomeInventory = None,
    limit: Limit = None,
    pairs: Set = None,
    metrics: Annotated[
        list[str] | None,
        Option(
            "--metric",
            metavar="[NAME=]KIND:EXPR",
            help="Judge by this figure of each host: command:CMD, counter:CMD, host:NAME or prom:URL:QUERY; with "
            "--command also regex:, json: or time. The first is the claim, others are guardrails.",
        ),
    ] = None,
    command: Annotated[
        str | None, Option("--command", metavar="CMD", help="Run this on each host for each reading, by its shell.")
    ] = None,
    period: Annotated[
        float, Option("--period", metavar="SECONDS", min=0, max=43200, help="Measure so long before, and after.")
    ] = 300.0,
    readings: Annotated[
        int, Option("--readings", metavar="N", min=1, max=1000, help="Read each figure so often in a period.")
    ] = 5,
    settle: Annotated[
        float, Option("--settle", metavar="SECONDS", min=0, max=43200, help="Wait so long after the change.")
    ] = 10.0,
    timeout: Annotated[
        int, Option("--command-timeout", metavar="SECONDS", min=1, max=3600, help="End a command after this time.")
    ] = 60,
    block: Annotated[
        str, Option("--block", metavar="hardware|none|var=NAME", help="Toss among hosts that are alike in this.")
    ] = "hardware",
    seed: Annotated[
        int | None, Option("--seed", metavar="N", min=0, help="Toss by this seed. Default: drawn.", show_default=False)
    ] = None,
    keep_if_gain: Annotated[
        bool, Option("--keep-if-gain", help="Keep the values on the treated hosts if a gain is proven.")
    ] = False,
    canary: CanaryHosts = None,
    batch: BatchSize = None,
    failover: Failover = None,
    forks: Forks = FORKS,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not prompt.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print plan and design, measure nothing.")] = False,
    resume: Annotated[
        str | None, Option("--resume", metavar="RUN|last", help="Resume a trial that was interrupted.")
    ] = None,
    as_json: Json = False,
    *,
    login: Login,
) -> int:
    """Prove a gain with the hosts of a fleet as units. A coin decides who is treated; the change of the treated hosts
    is compared with that of the others. Exit code 0 for a gain, 1 for any other verdict."""
    from advisor.errors import UsageError
    from advisor.operations.fleet_runs import make_wish
    from advisor.operations.fleet_trials import make_terms, plan_trial, prove_on_fleet, resume_trial

    if resume is not None and (names or inventory or pairs or metrics or command):
        raise UsageError("--resume takes profiles, inventory and metrics from the trial", hint="leave them out")
    if resume is None and not (names and inventory):
        raise UsageError(
            "neither profiles with an inventory nor --resume",
            hint="advisor fleet prove PROFILE -i HOSTS --metric command:CMD",
        )
    meant = login(inventory, limit)
    if resume is not None:
        return _print_trial(
            resume_trial(
                resume, meant.access, agree=lambda plan, design: yes or as_json or ask_user("Resume it?"), say=say
            ),
            as_json=as_json,
        )
    terms = make_terms(
        metrics or (), command, readings=readings, period_seconds=period, settle_seconds=settle,
        timeout_seconds=timeout, seed=seed, blocks=block, keep_if_gain=keep_if_gain,
    )  # fmt: skip
    wish = make_wish(
        meant, names or [], parse_settings(pairs), canary=canary or (), batch=batch, failover=failover, forks=forks
    )
    if dry_run:
        planned = plan_trial(wish, terms, say=say)
        if as_json:
            return _print_trial(planned, as_json=True)
        assert planned.plan is not None
        assert planned.design is not None
        _print_design(planned.plan, planned.design, terms)
        return planned.code

    def agree(plan: FleetPlan, design: Design) -> bool:
        if yes or as_json:
            return True
        _print_design(plan, design, terms)
        return ask_user("Carry it out?")

    return _print_trial(prove_on_fleet(wish, terms, agree=agree, say=say), as_json=as_json)


def _print_design(plan: FleetPlan, design: Design, terms: TrialTerms) -> None:
    from advisor.report.fleet_plan import fleet_plan_text
    from advisor.report.fleet_trial import trial_design_text

    width, color = terminal_width(), wants_color()
    print_text(fleet_plan_text(plan, width=width, color=color, shows_waves=False))
    print_text("\n" + trial_design_text(design, terms, width=width, color=color))


def _print_trial(result: TrialResult, *, as_json: bool) -> int:
    from advisor.report.fleet_trial import fleet_trial_document, fleet_trial_text

    if as_json:
        print_json(fleet_trial_document(result))
    else:
        print_text(fleet_trial_text(result, width=terminal_width(), color=wants_color()))
    return result.code


COMMANDS: Final = {"prove": prove}
