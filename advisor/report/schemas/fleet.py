"""The keys of the documents of ``advisor fleet``, of import and of export."""

from __future__ import annotations

from typing import Any, Literal, get_args

from advisor.exporters import SkippedSetting
from advisor.fleet.compare.comparison import HostComparison, HostLine
from advisor.fleet.peers import Outlier, PeerGroup
from advisor.fleet.runs.journal import GateDone, HostState, PlannedState, ProofDone
from advisor.fleet.runs.status import HostState as StandingState
from advisor.fleet.runs.waves import Wave
from advisor.fleet.scan import HostScan
from advisor.importers.records import Imported, Outcome
from advisor.limits.cluster import Cluster
from advisor.report.schemas.records import Fields, fields_of, record
from advisor.rules.finding import Finding, Severity
from advisor.transaction.verify import Drift

_NAMES = tuple[str, ...]

_SCANNED = record(
    "ScannedHost", [*fields_of(HostScan), ("worst", Severity | None), ("counts", dict[str, int]), ("hint", str | None)]
)
_FIRST = record(
    "FirstHost",
    [
        ("host", str),
        *[field for field in fields_of(Finding) if field[0] in ("why", "evidence", "advice", "fix", "commands")],
    ],
    "The finding as the first of the hosts has it.",
)
_KEPT = ("id", "severity", "title")
_MORE = ("profile", "hurts_when", "sources", "intent")
_RULE = record(
    "RuleOnHosts",
    [
        *[field for field in fields_of(Finding) if field[0] in _KEPT],
        ("hosts", _NAMES),
        ("is_alike", bool),
        ("first", _FIRST),
        *[field for field in fields_of(Finding) if field[0] in _MORE],
    ],
)
_HOST_PLAN = record(
    "PlannedHost",
    [
        ("name", str),
        ("state", PlannedState),
        ("message", str),
        ("wave", int | None),
        ("failover_groups", _NAMES),
        ("plan", dict[str, Any] | None),
    ],
    "A host; ``plan`` is advisor.plan/1.",
)
_WAVE_PLAN = record("PlannedWave", [("number", int), ("hosts", _NAMES), ("is_canary", bool)])
_HOST_RUN = record(
    "HostOfRun",
    [
        ("name", str),
        ("state", Literal[(*get_args(HostState), *get_args(PlannedState))]),
        ("wave", int | None),
        ("transaction", str | None),
        ("message", str),
        ("by_hand", str | None),
    ],
)
_WAVE_RUN = record("WaveOfRun", [*fields_of(Wave), ("outcome", Literal["confirmed", "rolled-back", "open"] | None)])
_GATE_RUN = record("GateOfRun", fields_of(GateDone, "time"))
_PROOF_RUN = record("ProofOfRun", fields_of(ProofDone, "time"))
_STANDING = record(
    "HostStanding",
    [
        ("name", str),
        ("state", StandingState),
        ("message", str),
        ("transactions", _NAMES),
        ("profiles", _NAMES),
        ("waiting", _NAMES),
        ("unfinished", _NAMES),
        ("drift", tuple[Drift, ...]),
        ("taken", float | None),
    ],
)
_SHORT_HOST = record("ShortHost", [("name", str), ("state", HostState), ("transaction", str | None)])
_RUN_STATE = Literal["planned", "interrupted", "done", "nothing", "stopped", "rolled-back"]
_RUN = record(
    "Run",
    [
        ("id", str),
        ("state", _RUN_STATE),
        ("code", int | None),
        ("profiles", _NAMES),
        ("began", float),
        ("inventory", _NAMES),
        ("hosts", tuple[_SHORT_HOST, ...]),  # type: ignore[valid-type]
    ],
)
_OUTLIER = record("FleetOutlier", [*fields_of(Outlier), ("title", str), ("commands", _NAMES)])
_WHY_HOST = record("ObservedHost", [("name", str), ("why", dict[str, Any])], "A host; ``why`` is advisor.why/1.")
_SOURCE = record("ImportableSource", [("source", str), ("file", str)])

FLEET_DOCUMENTS: dict[str, Fields] = {
    "advisor.fleet-scan/1": [
        ("hosts", tuple[_SCANNED, ...]),  # type: ignore[valid-type]
        ("findings", tuple[_RULE, ...]),  # type: ignore[valid-type]
        ("failed", _NAMES),
        ("same_address", tuple[_NAMES, ...]),
        ("same_machine", tuple[_NAMES, ...]),
        ("clock_off", _NAMES),
    ],
    "advisor.fleet-comparison/1": [
        ("hosts", tuple[HostLine, ...]),
        ("failed", _NAMES),
        *fields_of(HostComparison, "hosts"),
    ],
    "advisor.fleet-why/1": [
        ("outliers", tuple[_OUTLIER, ...]),  # type: ignore[valid-type]
        ("hosts", tuple[_WHY_HOST, ...]),  # type: ignore[valid-type]
        ("groups", tuple[PeerGroup, ...]),
        ("failed", dict[str, str]),
    ],
    "advisor.fleet-limits/1": [*fields_of(Cluster), ("failed", dict[str, str])],
    "advisor.fleet-plan/1": [
        ("dry_run", bool),
        ("hosts", tuple[_HOST_PLAN, ...]),  # type: ignore[valid-type]
        ("waves", tuple[_WAVE_PLAN, ...]),  # type: ignore[valid-type]
        ("notes", _NAMES),
        ("failed", _NAMES),
    ],
    "advisor.fleet-run/1": [
        ("id", str | None),
        ("state", Literal["unchanged"] | _RUN_STATE),
        ("code", int),
        ("message", str),
        ("hosts", tuple[_HOST_RUN, ...]),  # type: ignore[valid-type]
        ("waves", tuple[_WAVE_RUN, ...]),  # type: ignore[valid-type]
        ("gates", tuple[_GATE_RUN, ...]),  # type: ignore[valid-type]
        ("proofs", tuple[_PROOF_RUN, ...]),  # type: ignore[valid-type]
        ("failed", _NAMES),
    ],
    "advisor.fleet-verify/1": [
        ("run", str | None),
        ("ok", bool),
        ("hosts", tuple[_STANDING, ...]),  # type: ignore[valid-type]
        ("failed", _NAMES),
    ],
    "advisor.fleet-status/1": [
        ("runs", tuple[_RUN, ...]),  # type: ignore[valid-type]
        ("hosts", tuple[_STANDING, ...]),  # type: ignore[valid-type]
        ("failed", _NAMES),
    ],
    "advisor.import/1": [("counts", dict[Outcome, int]), *fields_of(Imported), ("toml", str)],
    "advisor.importable/1": [("sources", tuple[_SOURCE, ...])],  # type: ignore[valid-type]
    "advisor.export/1": [
        ("format", str),
        ("profiles", _NAMES),
        ("files", dict[str, str]),
        ("left_out", tuple[SkippedSetting, ...]),
        ("not_kept", tuple[SkippedSetting, ...]),
        ("use", _NAMES),
    ],
}
