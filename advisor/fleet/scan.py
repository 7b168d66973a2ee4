"""The scan of many hosts: Ansible captures each once, then the code of ``advisor scan`` reads them, one at a time."""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from advisor.errors import AdvisorError, InvalidInputError
from advisor.facts.host_facts import Facts
from advisor.facts.host_facts import scan as scan_host
from advisor.fleet import FORKS, MAX_SKEW_SECONDS, TIMEOUT_SECONDS
from advisor.fleet.engine import HostAnswer, HostJob, Progress, run_job
from advisor.fleet.inventory import Inventory, InventoryHost, find_duplicates
from advisor.fleet.inventory import read_hosts as inventory_hosts
from advisor.fleet.store import FleetStore
from advisor.host.grouping import group_pairs
from advisor.rules.finding import SEVERITIES, Finding, Severity
from advisor.rules.locality_score import locality
from advisor.rules.registry import judge
from advisor.rules.workload import DeclaredWorkload
from advisor.snapshot.archive import open_snapshot

Mute = Callable[[Sequence[str], tuple[Finding, ...]], tuple[Finding, ...]]
State = Literal["ok", "unreachable", "failed", "no-root", "timeout", "lost"]


class FoundHere(msgspec.Struct, frozen=True):
    """A finding of one host; what a rule says besides is in `RuleFinding`."""

    id: str
    severity: Severity
    title: str


class HostScan(msgspec.Struct, frozen=True):
    """A host of the fleet. All but name and state are unknown (None) where it was not captured; ``message`` says why.

    ``score`` is the locality score, ``unknown`` the number of facts that could not be read, ``skew_seconds`` how far
    the clock is ahead at least, ``is_root`` whether root captured it. ``seconds`` is how long the host took.
    """

    name: str
    state: State
    message: str = ""
    hostname: str | None = None
    os: str | None = None
    kernel: str | None = None
    machine_id: str | None = None
    is_root: bool | None = None
    score: int | None = None
    findings: tuple[FoundHere, ...] = ()
    unknown: int | None = None
    skew_seconds: float | None = None
    seconds: float | None = None
    archive: str | None = None
    muted: int | None = None
    """Findings that are accepted; they are in none of the lists."""

    @property
    def worst(self) -> Severity | None:
        """The highest severity among the findings."""
        return max((one.severity for one in self.findings), key=SEVERITIES.index, default=None)

    def count(self, severity: Severity) -> int:
        return sum(one.severity == severity for one in self.findings)


class RuleFinding(msgspec.Struct, frozen=True):
    """What one rule found: ``hosts`` in the order of the inventory, and the finding of the first of them, whole.

    ``is_alike`` says that every one of them has it in the same words and with the same evidence.
    """

    finding: Finding
    hosts: tuple[str, ...]
    is_alike: bool


class FleetScan(msgspec.Struct, frozen=True):
    """``hosts`` and ``findings`` (the most severe first); names that are one host by address, or by machine-id."""

    hosts: tuple[HostScan, ...]
    findings: tuple[RuleFinding, ...]
    same_address: tuple[tuple[str, ...], ...]
    same_machine: tuple[tuple[str, ...], ...]

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts if host.state != "ok")


def capture_hosts(
    inventory: Inventory,
    hosts: Sequence[InventoryHost],
    store: FleetStore,
    *,
    forks: int = FORKS,
    timeout_seconds: int = TIMEOUT_SECONDS,
    seconds: float | None = None,
    max_age_seconds: float | None = None,
    progress: Progress = lambda done, total, failed: None,
) -> Iterator[HostAnswer]:
    """Capture each of the hosts into the store; answers as they come, ``path`` is the archive. Raises as `run_job`.

    With ``seconds`` each capture holds the counters of that time, which ``timeout_seconds`` does not contain. With
    ``max_age_seconds`` a host is not asked whose stored capture is no older; those come first. Whatever ends this, the
    captures that have arrived are stored.
    """
    from advisor.snapshot.remote.capture import capture_script

    store.captures()
    recent = [] if max_age_seconds is None else [*_recent_captures(hosts, store, max_age_seconds)]
    yield from recent
    known = {answer.host for answer in recent}
    left = [host for host in hosts if host.name not in known]
    seconds_each = timeout_seconds + math.ceil(seconds or 0)

    def show(done: int, total: int, failed: int) -> None:
        progress(len(recent) + done, len(recent) + total, failed)

    yield from _ask_hosts(inventory, left, store, capture_script(seconds), forks, seconds_each, show)


def _ask_hosts(
    inventory: Inventory,
    hosts: Sequence[InventoryHost],
    store: FleetStore,
    content: str,
    forks: int,
    timeout_seconds: int,
    progress: Progress,
) -> Iterator[HostAnswer]:
    with tempfile.TemporaryDirectory(prefix="advisor-capture.") as place:
        script = Path(place, "capture.sh")
        script.write_text(content)
        keep = (sys.executable, "-P", "-m", "advisor", "fleet", "receive", "-o", str(store.directory))
        job = HostJob("capture", script, timeout_seconds=timeout_seconds, receiver=keep)
        yield from run_job(inventory, job, output=Path(place, "answers"), hosts=hosts, forks=forks, progress=progress)


def _recent_captures(hosts: Sequence[InventoryHost], store: FleetStore, seconds: float) -> Iterator[HostAnswer]:
    """Answers of hosts whose capture is kept and no older. One that is damaged, or of the future, is none."""
    now = time.time()
    for host in hosts:
        with contextlib.suppress(InvalidInputError):
            header = store.header(host.name)
            if header is not None and 0 <= now - header.taken <= seconds and store.archive(host.name).is_file():
                yield HostAnswer(
                    *(host.name, "ok"), rc=0, path=store.archive(host.name), uid=header.uid,
                    skew_seconds=header.skew_seconds, host_time=header.host_time,
                )  # fmt: skip


def scan_fleet(
    inventory: Inventory,
    store: FleetStore,
    *,
    workload: DeclaredWorkload | None = None,
    mute: Mute = lambda names, findings: findings,
    forks: int = FORKS,
    timeout_seconds: int = TIMEOUT_SECONDS,
    max_age_seconds: float | None = None,
    progress: Progress = lambda done, total, failed: None,
) -> FleetScan:
    """Capture and judge every host of the inventory. A host that fails is in the result like the others.

    ``mute`` returns the findings of a host, known by its name in the inventory and its own, with their muting.

    Raises InvalidInputError for an inventory that cannot be read, RefusedError without Ansible.
    """
    named = inventory_hosts(inventory)
    gathered = _Gathered(named)
    answers = capture_hosts(
        inventory, named, store, forks=forks, timeout_seconds=timeout_seconds, max_age_seconds=max_age_seconds,
        progress=progress,
    )  # fmt: skip
    for answer in answers:
        gathered.add(*read_answer(answer, workload, mute))
    return gathered.result(named)


def read_answer(
    answer: HostAnswer, workload: DeclaredWorkload | None, mute: Mute
) -> tuple[HostScan, tuple[Finding, ...]]:
    """What the capture of one host says, and its findings; a capture that cannot be read is a failed host."""
    if answer.state != "ok" or answer.path is None:
        state = "failed" if answer.state == "ok" else answer.state
        failed = HostScan(answer.host, state, answer.message or "no capture", seconds=answer.seconds)
        return msgspec.structs.replace(failed, skew_seconds=answer.skew_seconds), ()
    try:
        facts = scan_host(open_snapshot(answer.path))
        found = mute((answer.host, facts.host.hostname or ""), judge(facts, workload))
    except (AdvisorError, OSError) as error:
        message = error.message if isinstance(error, AdvisorError) else str(error)
        return HostScan(answer.host, "failed", message, seconds=answer.seconds), ()
    findings = tuple(one for one in found if one.muted is None)
    scanned = _scan_result(answer, facts, findings)
    return msgspec.structs.replace(scanned, muted=len(found) - len(findings)), findings


def _scan_result(answer: HostAnswer, facts: Facts, findings: Sequence[Finding]) -> HostScan:
    return HostScan(
        answer.host,
        "ok",
        "",
        facts.host.hostname,
        facts.host.os,
        facts.host.kernel,
        facts.host.machine_id,
        answer.uid == 0,
        locality(facts).score,
        tuple(FoundHere(one.id, one.severity, one.title) for one in findings),
        len(facts.unknown),
        answer.skew_seconds,
        answer.seconds,
        str(answer.path),
    )


class _Gathered:
    """Hosts as they come in. Of each rule's findings only one is held whole, however many hosts have it."""

    def __init__(self, named: Sequence[InventoryHost]) -> None:
        self._ranks = {host.name: rank for rank, host in enumerate(named)}
        self._hosts: dict[str, HostScan] = {}
        self._first: dict[str, tuple[int, Finding]] = {}
        self._having: dict[str, set[str]] = {}
        self._differing: set[str] = set()

    def add(self, host: HostScan, findings: Sequence[Finding]) -> None:
        rank = self._ranks[host.name]
        self._hosts[host.name] = host
        for finding in findings:
            first = self._first.setdefault(finding.id, (rank, finding))
            if finding != first[1]:
                self._differing.add(finding.id)
            if rank < first[0]:
                # Whichever host answers first: the same hosts give the same document.
                self._first[finding.id] = rank, finding
            self._having.setdefault(finding.id, set()).add(host.name)

    def result(self, named: Sequence[InventoryHost]) -> FleetScan:
        hosts = tuple(self._hosts[one.name] for one in named if one.name in self._hosts)
        rules = [self._rule_finding(finding, hosts) for _, finding in self._first.values()]
        return FleetScan(hosts, tuple(sorted(rules, key=_rule_order)), find_duplicates(named), same_machine(hosts))

    def _rule_finding(self, finding: Finding, hosts: Sequence[HostScan]) -> RuleFinding:
        having = self._having[finding.id]
        names = tuple(host.name for host in hosts if host.name in having)
        return RuleFinding(finding, names, finding.id not in self._differing)


def _rule_order(rule: RuleFinding) -> tuple[int, int, str]:
    return -SEVERITIES.index(rule.finding.severity), -len(rule.hosts), rule.finding.id


def same_machine(hosts: Sequence[HostScan]) -> tuple[tuple[str, ...], ...]:
    """Names whose hosts have one machine-id: one host twice, or clones whose machine-id was copied."""
    found = group_pairs((host.machine_id, host.name) for host in hosts if host.machine_id)
    return tuple(tuple(names) for names in found.values() if len(names) > 1)


def is_off(host: HostScan) -> bool:
    """Whether the host's clock is off by more than `MAX_SKEW_SECONDS`."""
    return host.skew_seconds is not None and abs(host.skew_seconds) > MAX_SKEW_SECONDS
