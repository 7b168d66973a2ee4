"""Whether a profile helps a fleet: a trial with its hosts as units, from a controller with Ansible.

The trials are kept with the runs in the state directory of the controller; `advisor.operations.fleet_runs` lists them
and rolls them back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.errors import UsageError
from advisor.fleet.inventory import Access
from advisor.fleet.runs import host_trial
from advisor.fleet.runs.changes import Wish
from advisor.fleet.runs.host_trial import AgreeTrial, TrialResult, draw_seed
from advisor.fleet.runs.trial_records import TrialTerms
from advisor.fleet.store import FleetStore
from advisor.proof.own_command import MetricKind, parse_metrics

_OUTPUT_KINDS: tuple[MetricKind, ...] = ("regex", "json", "time", "command", "counter", "prom", "host")
_KINDS: tuple[MetricKind, ...] = ("command", "counter", "prom", "host")


def make_terms(
    metrics: Sequence[str],
    command: str | None = None,
    *,
    readings: int = 5,
    period_seconds: float = 300.0,
    settle_seconds: float = 10.0,
    timeout_seconds: int = 60,
    seed: int | None = None,
    blocks: str = "hardware",
    keep_if_gain: bool = False,
) -> TrialTerms:
    """Return what is measured on each host; ``metrics`` are as after ``--metric``, the first one is the claim.

    ``blocks`` is ``hardware``, ``none`` or ``var=NAME``. Raises UsageError.
    """
    if not metrics:
        raise UsageError("--metric: expected at least one", hint="--metric 'command:/usr/local/bin/p99:lower:ms'")
    if blocks not in ("hardware", "none") and not (blocks.startswith("var=") and blocks.removeprefix("var=").strip()):
        raise UsageError(f"--block {blocks}: expected hardware, none or var=NAME")
    found = parse_metrics(metrics, _KINDS if command is None else _OUTPUT_KINDS)
    if command is not None and not command.strip():
        raise UsageError("--command: no command")
    return TrialTerms(
        found,
        command,
        readings,
        period_seconds,
        settle_seconds,
        timeout_seconds,
        draw_seed() if seed is None else seed,
        blocks,
        keeps_gain=keep_if_gain,
    )


def plan_trial(wish: Wish, terms: TrialTerms, *, say: Callable[[str], None] = lambda _: None) -> TrialResult:
    """Return the plan of each host and who would be compared with whom; captures every host, changes nothing. Raises
    RefusedError where so few hosts cannot show anything."""
    return host_trial.plan_trial(wish, terms, FleetStore(), say)


def prove_on_fleet(
    wish: Wish,
    terms: TrialTerms,
    *,
    agree: AgreeTrial = lambda plan, design: True,
    say: Callable[[str], None] = lambda _: None,
) -> TrialResult:
    """Measure every host, treat those that a coin names, measure again, judge, and roll back.

    ``agree`` is called once before anything is measured. Changes the hosts; what was measured is in the record, with
    the verdict. Raises UsageError, RefusedError with nothing changed, NotRestoredError where a host is not known to be
    back.
    """
    return host_trial.prove_on_fleet(wish, terms, FleetStore(), agree=agree, say=say)


def resume_trial(
    run: str,
    access: Access,
    *,
    agree: AgreeTrial = lambda plan, design: True,
    say: Callable[[str], None] = lambda _: None,
) -> TrialResult:
    """Resume a trial (by number, or ``last``) that was interrupted, with its own toss: what is active is rolled back
    first. Changes the hosts. Raises UsageError for a run that there is not, RefusedError for one that has ended."""
    return host_trial.resume_trial(run, FleetStore(), access, agree=agree, say=say)
