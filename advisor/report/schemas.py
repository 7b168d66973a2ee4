"""Records that are composed of the fields of other records, as documents are."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal, get_args

import msgspec

from advisor.diagnosis.cause import BindingCause
from advisor.errors import UsageError, near_names
from advisor.exporters import SkippedSetting
from advisor.facts.clusters.infoscale_configuration import Recognition
from advisor.facts.host_facts import Facts
from advisor.facts.record_types import field_types
from advisor.facts.unknown import Unknown
from advisor.fleet.compare.comparison import HostComparison, HostLine
from advisor.fleet.runs.journal import GateDone, HostState, PlannedState, ProofDone
from advisor.fleet.runs.status import HostState as StandingState
from advisor.fleet.runs.waves import Wave
from advisor.fleet.scan import HostScan
from advisor.fleet.why import Outlier, PeerGroup
from advisor.host.provenance import Source
from advisor.importers.records import Imported, Outcome
from advisor.limits.cluster import Cluster
from advisor.limits.records import Limits
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile
from advisor.proof.arms import ProofCheck
from advisor.proof.comparison import SeriesComparison
from advisor.proof.pattern import WorkloadFile
from advisor.proof.records import Proof
from advisor.proof.series import Bench
from advisor.proof.tuning.records import Tuned
from advisor.reach.addresses import Peer, Reach, Unprobeable
from advisor.recommend.fixes import LeftOut, ManualStep
from advisor.recommend.records import Recommendation
from advisor.recommend.verdicts import JudgedText
from advisor.report.explain import Explanation
from advisor.rules.processors.locality_score import Locality
from advisor.rules.rule import Finding, Severity
from advisor.rules.workload import DeclaredWorkload
from advisor.shell.state_table import State
from advisor.sizing.records import Sizing
from advisor.transaction.conflicts import OtherWriter
from advisor.transaction.journal import Damaged
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Drift

Field = tuple[str, Any] | tuple[str, Any, Any]
Fields = list[Field]


def record(name: str, fields: Fields, doc: str = "") -> type[msgspec.Struct]:
    """Return a record of these fields, whose names are the keys of the document."""
    renamed = {key.replace("-", "_"): key for key, *_ in fields if "-" in key}
    return msgspec.defstruct(
        name,
        [(key.replace("-", "_"), *rest) for key, *rest in fields],
        frozen=True,
        namespace={"__doc__": doc} if doc else None,
        rename=renamed or None,
    )


def fields_of(kind: type[msgspec.Struct], *without: str) -> Fields:
    """Return a record's fields and their types, for a document that carries them among its own."""
    types = field_types(kind)
    names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return [(encoded, types[name]) for encoded, name in names if name not in without]


# The keys of each document that ``--json`` prints, and their types: of the records that it is printed from.

# The keys of the documents of ``advisor fleet``, of import and of export.

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
_FLEET_KEPT = ("id", "severity", "title")
_MORE = ("profile", "hurts_when", "sources", "intent")
_RULE = record(
    "RuleOnHosts",
    [
        *[field for field in fields_of(Finding) if field[0] in _FLEET_KEPT],
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


_FINGERPRINT = msgspec.Meta(pattern="^[0-9a-f]{64}$")

_PLANNED = [("fingerprint", str), ("would_report", tuple[str, ...]), *fields_of(Plan)]
_JUDGED = record(
    "Judged",
    [("rules", int), ("of", int), ("unread", tuple[str, ...])],
    "Rules that had their facts, and what was unread.",
)
_STEPS = record("Steps", [("what", str), ("commands", tuple[str, ...])], "An item with its commands, as shell.")
_SHORT_CHANGE = record(
    "ShortChange", [("tunable", str), ("before", str), ("after", str), ("persist", str | None)], "A change in short."
)
_KEPT = record("Kept", [("what", str), ("reason", str)], "What is not as it was before, and why.")
_CLAIM = record("Claim", [("tunable", str), ("after", str)], "A value that is there already and is held as well.")
_PASSED = record("Passed", [("what", str), ("to", str)], "What an upper layer holds when a lower one is rolled back.")
_LAYER = record("Layer", [("id", str), ("profile", str), ("after", str)])
_STACK = record(
    "Stack",
    [("tunable", str), ("before", str), ("layers", tuple[_LAYER, ...])],  # type: ignore[valid-type]
    "A tunable that several transactions hold, the oldest first: the last one is active.",
)
_ENTRY = record(
    "Transaction",
    [
        ("id", str),
        ("state", State),
        ("in_force", bool),
        ("unfinished", bool),
        ("process", int | None),
        ("profiles", tuple[str, ...]),
        ("fingerprint", str),
        ("began", str | None),
        ("ended", str | None),
        ("deadline", str | None),
        ("confirmed", str | None),
        ("changes", tuple[_SHORT_CHANGE, ...]),  # type: ignore[valid-type]
        ("files", tuple[str, ...]),
        ("claims", tuple[_CLAIM, ...]),  # type: ignore[valid-type]
        ("instead_of", tuple[str, ...]),
        ("without", tuple[str, ...]),
        ("would_report", tuple[str, ...]),
        ("forced", bool),
        ("peers", int | None),
        ("passed", tuple[_PASSED, ...]),  # type: ignore[valid-type]
        ("why_undone", str | None),
        ("pending", str | None),
        ("kept", tuple[_KEPT, ...]),  # type: ignore[valid-type]
        ("rollback_script", str),
    ],
)
_WAITING = record("Waiting", [("id", str), ("deadline", str | None), ("seconds_left", int)])
_UNDONE = record(
    "RolledBack",
    [
        ("id", str),
        ("state", Literal["rolled-back", "unfinished", "kept-external"]),
        ("profiles", tuple[str, ...]),
        ("outcomes", tuple[ItemOutcome, ...]),
    ],
)
_PROBED = record(
    "ProbedPeer", [*fields_of(Peer), *fields_of(Reach, "peer"), ("carries", bool | None)], "A peer and the path to it."
)
_ITEM = record("NotRestored", [("what", str), ("by_hand", str)])
_ERROR = msgspec.defstruct(
    "Error",
    [
        ("code", Literal[1, 2, 3, 4, 5, 6, 130]),
        ("kind", str),
        ("message", str),
        ("hint", str | None),
        ("items", tuple[_ITEM, ...], ()),  # type: ignore[valid-type]
    ],
)
ERROR_DOCUMENT = record("ErrorDocument", [("error", _ERROR)])
"""What any command prints under ``--json`` in place of its own document."""

_PLAN = record("PlanDocument", [("schema", str), *_PLANNED], "As of advisor plan --json.")
_FIXED = record("FixedFinding", [("id", str), ("severity", Severity), ("title", str)], "A finding that is fixed.")
_FIX_APPLIED = record("FixTransaction", [("id", str), ("state", State)], "The transaction of the plan.")
_CHANGED = record(
    "ChangedFinding",
    [("id", str), ("severity", Severity), ("title", str), ("evidence", dict[str, Any])],
    "A finding of which the earlier or the later scan has less, or nothing.",
)
_SINCE = record(
    "ScanSince",
    [
        ("hostname", str | None),
        ("time", str | None),
        *((name, tuple[_CHANGED, ...]) for name in ("new", "worse", "gone")),  # type: ignore[valid-type]
    ],
    "With --since: the earlier scan, and what has changed; new and worse are of this scan, gone of the earlier one.",
)
_ARCHIVE = record(
    "SupportArchive",
    [("kind", str), ("version", str | None), ("user", str | None)],
    "Of a support archive: the tool that made it, and who ran it: root, or another user's name or number.",
)
_RANKED = record("RankedFinding", [("rule", str), ("severity", Severity)])
_NAMED_CAUSE = record("NamedCause", [("cause", str), ("resource", str), ("share", float)])
_NAMED_TRANSACTION = record(
    "NamedTransaction",
    [("transaction", str), ("state", State), ("active", bool), ("fingerprint", Annotated[str, _FINGERPRINT])],
)
_AGENT_WORDS = record(
    "AgentWords",
    [
        ("next_step", str, ""),
        ("left_out", int, 0),
        ("refused", str, ""),
        ("exit_code", Literal[2, 3, 4, 5, 6, 70], 2),
        ("findings", tuple[_RANKED, ...], ()),  # type: ignore[valid-type]
        ("findings_in_all", int, 0),
        ("muted", int, 0),
        ("unknown", int, 0),
        ("binds", tuple[_NAMED_CAUSE, ...], ()),  # type: ignore[valid-type]
        ("paths", int, 0),
        ("rule", Explanation | None, None),
        ("fingerprint", Annotated[str, _FINGERPRINT], "0" * 64),
        ("changes", int, 0),
        ("files", int, 0),
        ("blocked", int, 0),
        ("cannot_apply", bool, False),
        ("may_cut_off_this_host", bool, False),
        ("changed_anything", Literal[False], False),
        ("transactions", tuple[_NAMED_TRANSACTION, ...], ()),  # type: ignore[valid-type]
        ("drifted", int, 0),
        ("matches", bool, False),
        ("transaction", str | None, None),
        ("state", Literal["unchanged"] | State, "unchanged"),
        ("rolled_back", tuple[str, ...], ()),
        ("partly_rolled_back", tuple[str, ...], ()),
    ],
    "What advisor itself says, each key where the tool has it; next_step is for a person.",
)
_TOOL = Literal["scan", "why", "limits", "explain", "plan", "status", "verify", "apply", "rollback"]
_BINDS = record("Binds", fields_of(BindingCause, "explains"), BindingCause.__doc__ or "")

DOCUMENTS: dict[str, Fields] = {
    "advisor.scan/1": [
        ("scanned_at", str | None),
        ("captured_at", str | None),
        ("source", Literal["live", "root", "snapshot"] | None),
        *fields_of(Facts, "unknown"),
        ("locality", Locality),
        ("judged", _JUDGED),
        ("findings", tuple[Finding, ...]),
        *[field for field in fields_of(Facts) if field[0] == "unknown"],
        ("since", _SINCE, None),
        ("archive", _ARCHIVE, None),
    ],
    "advisor.recommendation/1": [
        ("workload", DeclaredWorkload | None),
        ("recognised", Recognition | None),
        ("recommendations", tuple[Recommendation, ...]),
    ],
    "advisor.limits/1": fields_of(Limits),
    "advisor.size/1": fields_of(Sizing),
    "advisor.why/1": [
        ("hostname", str | None),
        ("seconds", float),
        ("taken_at", str),
        ("binds", tuple[_BINDS, ...]),  # type: ignore[valid-type]
        ("near", tuple[str, ...]),
        ("well", tuple[str, ...]),
        ("unknown", tuple[Unknown, ...]),
    ],
    "advisor.workload/1": fields_of(WorkloadFile, "schema"),
    "advisor.profiles/1": [("profiles", tuple[Profile, ...])],
    "advisor.profile/1": fields_of(Profile),
    "advisor.explanation/1": [*fields_of(Explanation), ("number", int | None), ("findings", tuple[Finding, ...])],
    "advisor.plan/1": _PLANNED,
    "advisor.judge/1": [("hostname", str | None), ("source", Source), *fields_of(JudgedText)],
    "advisor.fix/1": [
        ("findings", tuple[_FIXED, ...]),  # type: ignore[valid-type]
        ("manual", tuple[ManualStep, ...]),
        ("left_out", tuple[LeftOut, ...]),
        ("plan", _PLAN | None),
        ("transaction", _FIX_APPLIED | None),
    ],
    "advisor.transaction/1": [
        ("id", str | None),
        ("state", Literal["unchanged"] | State),
        ("deadline", str | None),
        ("dry_run", bool),
        ("cannot_apply", str | None),
        ("began", str | None),
        ("ended", str | None),
        ("rollback_script", str | None),
        ("taken_out", tuple[_UNDONE, ...]),  # type: ignore[valid-type]
        ("forced", bool),
        ("peers", int | None),
        ("steps", tuple[_STEPS, ...]),  # type: ignore[valid-type]
        *_PLANNED,
    ],
    "advisor.status/1": [
        ("transactions", tuple[_ENTRY, ...]),  # type: ignore[valid-type]
        ("in_force", tuple[str, ...]),
        ("layers", tuple[_STACK, ...]),  # type: ignore[valid-type]
        ("awaiting_confirmation", tuple[_WAITING, ...]),  # type: ignore[valid-type]
        ("drift", tuple[Drift, ...]),
        ("damaged", tuple[Damaged, ...]),
        ("stopped_process", int | None),
        ("lock_holder", str | None),
    ],
    "advisor.verify/1": [
        ("ok", bool),
        ("unfinished", tuple[str, ...]),
        ("transactions", tuple[str, ...]),
        ("values", int),
        ("files", int),
        ("awaiting_confirmation", tuple[_WAITING, ...]),  # type: ignore[valid-type]
        ("drift", tuple[Drift, ...]),
        ("next_boot", tuple[Drift, ...]),
        ("others", tuple[OtherWriter, ...]),
        ("damaged", tuple[Damaged, ...]),
        ("stopped_process", int | None),
    ],
    "advisor.rollback/1": [("ok", bool), ("transactions", tuple[_UNDONE, ...])],  # type: ignore[valid-type]
    "advisor.probe/1": [
        ("mtu", int | None),
        ("carried", bool | None),
        ("peers", tuple[_PROBED, ...]),  # type: ignore[valid-type]
        ("unprobeable", tuple[Unprobeable, ...]),
    ],
    "advisor.proof-check/1": fields_of(ProofCheck, "schema"),
    "advisor.proof/1": fields_of(Proof, "schema"),
    "advisor.bench/1": fields_of(Bench, "schema"),
    "advisor.tune/1": fields_of(Tuned, "schema"),
    "advisor.comparison/1": fields_of(SeriesComparison, "schema"),
    # What is untrusted follows the document of the command of the same name, with every text escaped and bounded.
    "advisor.mcp/1": [("tool", Literal[_TOOL, ""]), ("advisor", _AGENT_WORDS), ("notice", str), ("untrusted", Any)],
    **FLEET_DOCUMENTS,
    "advisor.schemas/1": [("schemas", tuple[str, ...])],
}


# Build the JSON Schema of a document by the name in its ``schema`` key (https://json-schema.org/, 2020-12).

ERROR = "advisor.error/1"
PROFILE_FILE = "advisor.profile-file/1"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EDITORS_DIALECT = "http://json-schema.org/draft-07/schema#"

SCHEMA_NAMES = tuple(sorted((*DOCUMENTS, ERROR, PROFILE_FILE)))


def short_name(name: str) -> str:
    """Return the word of a document's name: ``scan`` of ``advisor.scan/1``."""
    return name.removeprefix("advisor.").partition("/")[0]


def build_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, named in whole or by its word. Raises UsageError for an unknown name."""
    whole = name if name in SCHEMA_NAMES else next((one for one in SCHEMA_NAMES if short_name(one) == name), None)
    if whole is None:
        near = near_names(short_name(name), map(short_name, SCHEMA_NAMES))
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"{name!r} is no document of advisor", hint=f"{guess}advisor schema lists them")
    identity = f"urn:{whole.replace('.', ':').replace('/', ':')}"
    if whole == PROFILE_FILE:
        return _build_file_schema(identity)
    if whole == ERROR:
        return _build(ERROR_DOCUMENT, identity)
    title = short_name(whole).title().replace("-", "")
    return _build(record(title, [("schema", Literal[whole]), *DOCUMENTS[whole]]), identity)


def _build_file_schema(identity: str) -> dict[str, Any]:
    """Return the schema of a profile's TOML file, in the dialect that editors of TOML (taplo, VS Code) read."""
    own, definitions = _split(Profile, "#/definitions/{name}")
    return {"$schema": _EDITORS_DIALECT, "$id": identity, **own, "definitions": definitions}


def _build(document: type[msgspec.Struct], identity: str) -> dict[str, Any]:
    own, definitions = _split(document, "#/$defs/{name}")
    return {"$schema": _DIALECT, "$id": identity, **own, "$defs": definitions}


def _split(document: type[msgspec.Struct], template: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a record, and those of the records in it by name."""
    (top,), definitions = msgspec.json.schema_components([document], ref_template=template)
    own = definitions.pop(top["$ref"].rpartition("/")[2])
    return _clean(own), _clean(definitions)


def _clean(node: Any) -> Any:
    """Return a schema without OpenAPI's ``discriminator``, which ajv's strict mode refuses."""
    if isinstance(node, list | tuple):
        return [_clean(one) for one in node]
    if not isinstance(node, dict):
        return node
    is_openapi = isinstance(node.get("discriminator"), dict) and "propertyName" in node["discriminator"]
    kept = {key: _clean(value) for key, value in node.items() if not (is_openapi and key == "discriminator")}
    if isinstance(kept.get("description"), str):
        # Python 3.13 and later compile a docstring without its indentation.
        kept["description"] = inspect.cleandoc(kept["description"])
    return kept
