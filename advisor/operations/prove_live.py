"""Proofs under live traffic: nothing is run, a profile's values are switched and what the host does is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advisor.errors import UsageError
from advisor.host import live_host
from advisor.host.trusted_files import need_root
from advisor.operations.prove import check_directory, check_user, keep_gain, parse_variable
from advisor.profiles.requested import RequestedProfile
from advisor.proof import live
from advisor.proof.live import LiveOptions, LivePlan
from advisor.proof.own_command import LIVE_KINDS, parse_metrics
from advisor.proof.records import Proof
from advisor.proof.session_runner import ProgressEvent, Settings

_METRIC_SECONDS_MAX = 60.0


def choose_live(
    metric: Sequence[str] = (),
    *,
    abort_if: Sequence[str] = (),
    period: float | None = None,
    tau: float | None = None,
    as_user: str | None = None,
    command_timeout: float | None = None,
    directory: Path | None = None,
    env: Sequence[str] = (),
) -> LiveOptions:
    """Return how live traffic is to be measured. Runs nothing.

    Each ``metric`` is ``[NAME=]KIND:EXPRESSION`` of the kinds command, counter, prom and host; the first judges, the
    others must not get worse. ``abort_if`` are such as ``p99 > 20``: beyond them the change is withdrawn. ``period``
    (40), ``tau`` (measured) and ``command_timeout`` of a metric's command (10) are in seconds. Raises UsageError.
    """
    parse_metrics(metric, LIVE_KINDS)
    seconds = live.METRIC_SECONDS if command_timeout is None else command_timeout
    if not 0 < seconds <= _METRIC_SECONDS_MAX:
        raise UsageError(f"--command-timeout {seconds:g}: expected seconds above 0, up to {_METRIC_SECONDS_MAX:g}")
    if as_user is not None:
        check_user(as_user)
    place = check_directory(directory or Path("/"), as_user)
    return LiveOptions(
        metrics=tuple(metric),
        limits=tuple(abort_if),
        period_seconds=live.PERIOD_SECONDS if period is None else period,
        tau_seconds=tau,
        metric_timeout=seconds,
        user=as_user,
        directory=str(place),
        environment=dict(parse_variable(one) for one in env),
    )


def prove_live(
    asked: RequestedProfile,
    settings: Settings,
    options: LiveOptions,
    *,
    consent: Callable[[LivePlan], None],
    values: Mapping[str, str],
    words: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Switch a profile's values under the traffic that is there, and judge them; with ``keep_if_gain`` of the settings
    a proven gain is applied.

    ``consent`` is shown what would be switched, and raises RefusedError where that may not be. Changes the host and
    rolls it back.
    """
    need_root()
    proof = live.prove_live(
        live_host(), asked, values, settings, options, consent=consent, words=words, progress=progress, say=say
    )
    return keep_gain(live_host(), proof, values, asked, say=say) if settings.keep_if_gain else proof
