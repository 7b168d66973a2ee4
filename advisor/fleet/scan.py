"""The scan of many hosts: Ansible captures each once, then the code of ``advisor scan`` reads them, one at a time."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, TypeVar
from urllib.parse import unquote

import msgspec

from advisor.errors import AdvisorError, InvalidInputError
from advisor.facts.host_facts import Facts
from advisor.facts.host_facts import scan as scan_host
from advisor.fleet import FORKS, MAX_SKEW_SECONDS, TIMEOUT_SECONDS
from advisor.fleet.engine import CaptureTimes, HostAnswer, HostJob, Progress, run_job
from advisor.fleet.inventory import Inventory, InventoryHost, file_name, find_duplicates
from advisor.fleet.inventory import read_hosts as inventory_hosts
from advisor.host.numbers import group_pairs
from advisor.host.putfile import put_file
from advisor.host.safe_open import FILE_MODE, check_own_directory, make_own_directory, named_directory, read_own_file
from advisor.rules.judged import judge
from advisor.rules.processors.locality_score import locality
from advisor.rules.rule import SEVERITIES, Finding, Severity
from advisor.rules.workload import DeclaredWorkload
from advisor.snapshot.archive import open_snapshot

# What the controller keeps: the last capture of each host, and the runs. Only its owner can go in there.

ARCHIVE = ".tar.gz"
HEADER = ".json"
MAX_HEADER_BYTES = 1 << 20

T = TypeVar("T")


class CaptureHeader(msgspec.Struct, frozen=True):
    """What is known of a kept capture in addition to its content.

    ``taken`` is in seconds since 1970 by the controller's clock, ``host_time`` by the host's; ``skew_seconds`` how far
    the host's clock is ahead (negative: behind) at the least, None where it is unknown.
    """

    host: str
    hostname: str
    machine_id: str
    boot_id: str
    uid: int | None
    taken: float
    host_time: int | None
    skew_seconds: float | None = None


def default_directory() -> Path:
    """``$ADVISOR_STATE_DIR/fleet``, else ``/var/lib/advisor/fleet`` for root, else below ``$XDG_STATE_HOME``."""
    state = named_directory()
    if state:
        return Path(state) / "fleet"
    if os.geteuid() == 0:
        return Path("/var/lib/advisor/fleet")
    # A relative one is none (XDG Base Directory Specification).
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local/state"
    return base / "advisor/fleet"


class FleetStore:
    """The state of the controller below one directory; nothing is made before something is written."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = (directory or default_directory()).absolute()

    def captures(self) -> Path:
        """The directory of the captures, made if need be. Raises RefusedError where others can write to it."""
        return self._own_directory("captures")

    def run(self, run_id: str) -> Path:
        """The directory of one run, made if need be."""
        self._own_directory("runs")
        return self._own_directory("runs", file_name(run_id))

    def runs(self) -> tuple[str, ...]:
        """The ids of the runs that are kept, in the order of their names."""
        return tuple(sorted(unquote(path.name) for path in _list_directory(self.directory / "runs") if path.is_dir()))

    def archive(self, host: str) -> Path:
        """Where the last capture of a host lies, if there is one."""
        return self.directory / "captures" / (file_name(host) + ARCHIVE)

    def keep_capture(self, header: CaptureHeader, archive: bytes) -> Path:
        """Replace the capture of a host. The header comes last: one without the other is as none."""
        place = self.captures()
        path = place / (file_name(header.host) + ARCHIVE)
        header_path = place / (file_name(header.host) + HEADER)
        put_own(header_path, None)
        put_own(path, archive)
        put_own(header_path, msgspec.json.encode(header) + b"\n")
        return path

    def header(self, host: str) -> CaptureHeader | None:
        """The header of the last capture of a host; None where there is none. Raises InvalidInputError."""
        return read_own(self.directory / "captures" / (file_name(host) + HEADER), CaptureHeader)

    def headers(self) -> Iterator[CaptureHeader]:
        """Those of all captures that are kept, by file name."""
        for path in sorted(_list_directory(self.directory / "captures")):
            if path.name.endswith(HEADER) and not path.name.startswith("."):
                found = read_own(path, CaptureHeader)
                if found is not None:
                    yield found

    def _own_directory(self, *names: str) -> Path:
        make_own_directory(str(self.directory))
        path = self.directory.joinpath(*names)
        make_own_directory(str(path))
        return path


def put_own(path: Path, content: bytes | None) -> None:
    """Replace (None: remove) a file of the store, whole or not at all, readable by its owner alone. Raises OSError."""
    put_file(str(path), content, mode=FILE_MODE, uid=os.geteuid(), gid=os.getegid())


def read_own(path: Path, kind: type[T], *, limit: int = MAX_HEADER_BYTES) -> T | None:
    """A JSON record of the store; None where there is no such file.

    Raises RefusedError where others could have written it, InvalidInputError where it is none.
    """
    try:
        content = read_own_file(str(path), limit=limit)
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{path}: {error}", hint="it is damaged: remove it and run the command again"
        ) from error


def _list_directory(directory: Path) -> list[Path]:
    try:
        check_own_directory(str(directory))
        return list(directory.iterdir())
    except FileNotFoundError:
        return []


def parse_facts(text: str) -> CaptureTimes:
    """The JSON object that Ansible's worker adds; other keys are not looked at. Raises InvalidInputError."""
    try:
        return msgspec.json.decode(text, type=CaptureTimes)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(f"facts of a capture: {error}") from error


def receive_capture(stream: IO[bytes], host: str, facts: CaptureTimes, store: FleetStore) -> Path:
    """Keep the capture of ``host``. Raises InvalidInputError for a stream that is none, RefusedError, OSError."""
    from advisor.snapshot.remote.capture import decode_capture

    captured = decode_capture(stream, host)
    header = CaptureHeader(
        host,
        captured.hostname,
        captured.machine_id,
        captured.boot_id,
        captured.uid,
        facts.started or time.time(),
        captured.time,
        facts.skew_seconds,
    )
    return store.keep_capture(header, captured.archive)


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
