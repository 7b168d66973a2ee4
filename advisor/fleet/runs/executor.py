"""What a run does on hosts, each by one script over Ansible, and their answers; every answer is kept with the run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError
from advisor.fleet.engine import HostAnswer, HostJob, run_job
from advisor.fleet.inventory import Inventory, InventoryHost, command_on, file_name, rollback_command
from advisor.fleet.runs.journal import HostDone, HostState, Resumed, RunJournal, RunRecord, Verb, WaveEnded
from advisor.fleet.runs.planning import CapturedHost, EchoQuestion, GateAnswer, gate_script, parse_gate_answer
from advisor.fleet.scan import FleetStore, capture_hosts, put_own
from advisor.host.numbers import count_noun, is_count
from advisor.host.safe_open import make_own_directory
from advisor.shell.state_table import State
from advisor.snapshot.archive import open_snapshot
from advisor.snapshot.remote.store import CapturedStore, Sought
from advisor.transaction.journal import Record

GATE_SECONDS = 10
"""For everybody to answer again."""
_SLACK_SECONDS = 60
_CHANGE_SECONDS = 300
_MAX_ANSWER_BYTES = 4 << 20
_MARK = "ADVISOR_FLEET_RUN"
_SCHEMA = "advisor.transaction/1"

_COUNTED = {"apply": "changed", "confirm": "confirmed", "rollback": "rolled back", "proof": "proven"}


class Say(msgspec.Struct, frozen=True):
    """Tell a line about a step; ``count`` returns a counter (hosts done, of all, failed) for a word as ``captured``."""

    tell: Callable[[str], None] = lambda line: None
    count: Callable[[str], Callable[..., None]] = lambda word: lambda *counts: None

    def __call__(self, line: str) -> None:
        self.tell(line)


SILENT = Say()


class ScriptAnswer(msgspec.Struct, frozen=True):
    """The last line of a transaction script: ``advisor.transaction/1``."""

    schema: str
    state: str
    code: int
    id: str | None = None
    message: str | None = None


class Result(msgspec.Struct, frozen=True):
    """What became of a host in one step. Where ``is_sure`` is false, it may also be otherwise: it is to be asked."""

    host: str
    state: HostState
    transaction: str | None = None
    message: str = ""
    is_sure: bool = True


class Hands:
    """One run's hands: its inventory, its directory, and as many hosts at a time as Ansible's forks."""

    def __init__(
        self, inventory: Inventory, hosts: Sequence[InventoryHost], store: FleetStore, directory: Path, say: Say, *,
        forks: int,
    ) -> None:  # fmt: skip
        self.inventory = inventory
        self.hosts = {host.name: host for host in hosts}
        self.store = store
        self.directory = directory
        self._forks = forks
        self.say = say
        self.wave = ""

    # -- what is kept ---------------------------------------------------------------------------------------------

    @property
    def scripts(self) -> Path:
        """The transaction script of each host."""
        return self._own_directory("scripts")

    def by_hand(self, name: str) -> str:
        """The command that rolls a host back when it can be reached again. The script knows its own transaction."""
        return rollback_command(self.hosts[name], self.inventory, str(self.scripts / (file_name(name) + ".sh")))

    def look_by_hand(self, name: str) -> str:
        """The command that shows, on a host with advisor, what is active or unfinished there."""
        return command_on(self.hosts[name], self.inventory, "advisor status")

    def _own_directory(self, *names: str) -> Path:
        path = self.directory.joinpath(*names)
        make_own_directory(str(path))
        return path

    # -- connections ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _new_connections(self) -> Iterator[Inventory]:
        """Connections of its own for each step, where Ansible would share them.

        One that was made before an MTU was raised proves nothing about new ones. One that was made before it was
        lowered goes on sending segments of the old size, which vanish: it hangs.
        """
        # A control socket's whole path must fit into 108 bytes.
        place = tempfile.mkdtemp(prefix="advf.", dir="/tmp")
        words = msgspec.json.encode({"ansible_control_path_dir": place}).decode()
        access = self.inventory.access
        try:
            yield msgspec.structs.replace(
                self.inventory, access=msgspec.structs.replace(access, extra_vars=(*access.extra_vars, words))
            )
        finally:
            # End the masters of shared connections, which ssh would leave behind for a minute; each names its socket.
            for pid, command in _running_commands():
                if command.startswith(os.fsencode(f"ssh: {place}/")):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGTERM)
            shutil.rmtree(place, ignore_errors=True)

    # -- what is done ---------------------------------------------------------------------------------------------

    def capture(self, names: Sequence[str]) -> dict[str, CapturedHost]:
        """Each host as it is now, asked as root; the captures replace those that the store kept."""
        found = {}
        with _marked_environment(self.directory), self._new_connections() as inventory:
            hosts, progress = [self.hosts[name] for name in names], self.count("captured")
            for answer in capture_hosts(inventory, hosts, self.store, forks=self._forks, progress=progress):
                # A host out of what its capture came to, which `fleet receive` read through before it kept it.
                # One that was not captured by root cannot be changed or judged.
                why, machine_id, boot_id = "", "", ""
                if answer.state != "ok" or answer.path is None:
                    why = answer.message or answer.state
                elif answer.uid != 0:
                    why = "not root there: give --become, or ansible_become in the inventory"
                else:
                    try:
                        header = self.store.header(answer.host)
                        machine_id, boot_id = (header.machine_id, header.boot_id) if header else ("", "")
                    except AdvisorError as error:
                        why = error.message
                found[answer.host] = CapturedHost(answer.host, None if why else answer.path, machine_id, why, boot_id)
        return found

    def ask(
        self, questions: Mapping[str, Iterable[EchoQuestion]], *, seconds: int, label: str
    ) -> dict[str, GateAnswer]:
        """What the gate scripts of these hosts print; hosts that did not answer are left out."""
        scripts = self._own_directory("gate")
        for name, those in questions.items():
            put_own(scripts / (file_name(name) + ".sh"), gate_script(those).encode())
        job = HostJob(label, scripts, (str(seconds),), timeout_seconds=seconds + _SLACK_SECONDS)
        found = {}
        for answer in self._run_job(job, [*questions], label):
            if answer.state == "ok" and answer.path is not None:
                found[answer.host] = parse_gate_answer(_read_text(answer.path))
        return found

    def do(self, verb: Verb, names: Sequence[str], *arguments: str) -> Iterator[Result]:
        """A verb of each host's transaction script, which changes it; answers come as they are given."""
        job = HostJob(
            verb, self.scripts, (verb, *arguments), needs_root=True, changes=True, timeout_seconds=_CHANGE_SECONDS
        )
        for answer in self._run_job(job, names, verb):
            yield result_of(answer)

    def run_text(
        self,
        text: str,
        names: Sequence[str],
        label: str = "gate-command",
        *,
        seconds: int,
        needs_root: bool = False,
        changes: bool = False,
    ) -> dict[str, HostAnswer]:
        """A command line or a script on each host, by its shell; one that ``changes`` it is never sent twice."""
        script = self._own_directory("gate") / "command"
        put_own(script, f"{text}\n".encode("utf-8", "surrogateescape"))
        job = HostJob(label, script, needs_root=needs_root, changes=changes, timeout_seconds=seconds)
        return {answer.host: answer for answer in self._run_job(job, names, label)}

    def _run_job(self, job: HostJob, names: Sequence[str], label: str) -> Iterator[HostAnswer]:
        with _marked_environment(self.directory), self._new_connections() as inventory:
            # A directory of its own for each step: what a host said is never replaced by what it says later.
            place = self._own_directory("answers")
            number = 1 + max((int(path.name[:4]) for path in place.iterdir() if is_count(path.name[:4])), default=0)
            output = self._own_directory("answers", f"{number:04d}-{label}")
            hosts, progress = [self.hosts[name] for name in names], self.count(_COUNTED.get(label, "asked"))
            yield from run_job(inventory, job, output=output, hosts=hosts, forks=self._forks, progress=progress)

    def count(self, word: str) -> Callable[..., None]:
        """Return a counter of the hosts that are done."""
        return self.say.count(f"{word} in {self.wave}" if self.wave else word)


@contextlib.contextmanager
def _marked_environment(directory: Path) -> Iterator[None]:
    """What is started here is recognisable as part of this run, also after this process has ended."""
    os.environ[_MARK] = str(directory)
    try:
        yield
    finally:
        os.environ.pop(_MARK, None)


def _running_commands() -> Iterator[tuple[int, bytes]]:
    for name in os.listdir("/proc"):
        if is_count(name) and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                yield int(name), Path(f"/proc/{name}/cmdline").read_bytes()


def end_orphans(directory: Path) -> int:
    """End what an earlier process of this run left behind here (a killed controller does not take Ansible with it).

    What those had begun on hosts goes on there to its end. Returns how many there were.
    """
    wanted = os.fsencode(f"{_MARK}={directory}")
    found = 0
    for pid, command in _running_commands():
        # By name as well: over a local connection what runs for a host has our environment, too.
        if b"ansible-playbook" in command:
            with contextlib.suppress(OSError):
                if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    found += 1
    return found


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_ANSWER_BYTES).decode("utf-8", "replace")


def parse_script_answer(text: str) -> ScriptAnswer | None:
    """The last line of what a transaction script printed; None where it is no such document."""
    lines = text.strip().splitlines()
    try:
        answer = msgspec.json.decode(lines[-1] if lines else "", type=ScriptAnswer)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return answer if answer.schema == _SCHEMA else None


_STATES: Mapping[str, HostState] = {
    "applied": "applied",
    "confirmed": "applied",
    "awaiting-confirmation": "awaiting-confirmation",
    "unchanged": "unchanged",
    "rolled-back": "rolled-back",
    "refused": "refused",
}


def result_of(answer: HostAnswer) -> Result:
    """What a host's answer to a verb says about it."""
    if answer.state in ("unreachable", "no-root"):
        return Result(answer.host, "unreachable", message=answer.message or answer.state)
    said = parse_script_answer(_read_text(answer.path)) if answer.state == "ok" and answer.path is not None else None
    if said is None:
        message = answer.message or f"ended with {answer.rc} and printed no answer"
        return Result(answer.host, "unknown", message=message, is_sure=False)
    state = _STATES.get(said.state, "unknown")
    return Result(answer.host, state, said.id, said.message or "", is_sure=state != "unknown")


# What state a host is really in, asked of the host itself: by its capture, and by nothing that was only remembered;
# and a run that was cut short (its controller killed, the network gone), resumed.

MARGIN_SECONDS = 30.0
"""For a watchdog to roll back, after its window is over."""
_PAUSE_SECONDS = 2.0
_ATTEMPTS = 3

_STATES_BY_RECORD: Mapping[State, HostState] = {
    "applied": "applied",
    "awaiting-confirmation": "awaiting-confirmation",
    "rolled-back": "rolled-back",
    "unfinished": "unknown",
    "kept-external": "unknown",
}


def settle_transactions(hands: Hands, wanted: Mapping[str, Sought], *, seconds: float) -> Iterator[Result]:
    """What became of these transactions, by host.

    A host that is still at it is asked again for a while. With ``seconds``, so is one that does not answer or waits for
    a confirmation, until that time and a margin for its watchdog are over.
    """
    end = time.monotonic() + seconds + MARGIN_SECONDS
    left = [*wanted]
    while left:
        found = hands.capture(left)
        is_over = time.monotonic() >= end
        again = []
        for name in left:
            result = find_result(found[name], wanted[name])
            waits = result.state == "awaiting-confirmation" or found[name].archive is None
            if not is_over and (seconds > 0 if waits else not result.is_sure):
                again.append(name)
            else:
                yield result
        left = again
        if left:
            time.sleep(_PAUSE_SECONDS)


def find_result(captured: CapturedHost, sought: Sought) -> Result:
    """What a capture says about a transaction. Not sure where the host is silent, or still at it."""
    if captured.archive is None:
        return Result(captured.name, "unknown", message=captured.message, is_sure=False)
    try:
        host = open_snapshot(captured.archive)
    except AdvisorError as error:
        return Result(captured.name, "unknown", message=error.message, is_sure=False)
    try:
        record = sought.among(CapturedStore(host).read_records())
    except AdvisorError as error:
        return Result(captured.name, "unknown", message=error.message)
    if record is None:
        return Result(captured.name, "failed", message="nothing was begun there")
    state = _STATES_BY_RECORD.get(record.state)
    if state is None:
        return Result(captured.name, "unknown", record.id, f"{record.state} still", is_sure=False)
    return Result(captured.name, state, record.id, _describe_record(record))


def _describe_record(record: Record) -> str:
    if record.state in ("unfinished", "kept-external"):
        return "; ".join(f"{what} is not as before: {why}" for what, why in record.kept)
    return f"rolled back: {record.why_undone}" if record.state == "rolled-back" and record.why_undone else ""


class FleetRollback:
    """Rolls hosts back and journals the result of each."""

    def __init__(self, hands: Hands, journal: RunJournal, states: dict[str, Result], *, window_seconds: float) -> None:
        self._hands = hands
        self._journal = journal
        self._states = states
        self._window = window_seconds

    def run(self, wave: int, wanted: Mapping[str, Sought], *, force: bool = False) -> None:
        """Hosts by name, each with the transaction to roll back.

        Who is busy is asked again; who does not answer is waited for until its own watchdog has had its time.
        """
        left = self._request_rollback(wave, [*wanted], force=force)
        for _ in range(_ATTEMPTS):
            found = (
                [*settle_transactions(self._hands, {name: wanted[name] for name in left}, seconds=0)] if left else []
            )
            left = []
            for result in found:
                if result.state in ("rolled-back", "failed"):
                    self._note_result(wave, result)
                else:
                    left.append(result.host)
            in_force = [one.host for one in found if one.state in ("applied", "awaiting-confirmation")]
            if not in_force:
                break
            kept = self._request_rollback(wave, in_force, force=force)
            left = [name for name in left if name not in in_force or name in kept]
        for result in settle_transactions(self._hands, {name: wanted[name] for name in left}, seconds=self._window):
            self._note_result(wave, self._judge_result(result))

    def _request_rollback(self, wave: int, names: Sequence[str], *, force: bool) -> list[str]:
        """Those of the hosts that do not say that they are back."""
        left = []
        for result in self._hands.do("rollback", names, *(["--force"] if force else [])):
            if result.state == "rolled-back" and result.is_sure:
                self._note_result(wave, result)
            else:
                left.append(result.host)
                self._states[result.host] = msgspec.structs.replace(result, is_sure=False)
        return left

    def _judge_result(self, result: Result) -> Result:
        """On a host that refuses the rollback it is still active; on one that is silent, or half-way, it may be."""
        if result.state in ("rolled-back", "failed"):
            return result
        before = self._states.get(result.host)
        said = [before.message if before else "", result.message]
        why = " · ".join(dict.fromkeys(filter(None, said))) or result.state
        state: HostState = "applied" if result.state == "applied" else "unknown"
        return Result(result.host, state, result.transaction or (before.transaction if before else None), why)

    def _note_result(self, wave: int, result: Result) -> None:
        self._states[result.host] = result
        entry = make_host_done(self._hands, wave, "rollback", result)
        self._journal.note(entry)
        if result.state == "applied":
            self._hands.say(f"{result.host}: still active: {result.message}")
        elif entry.by_hand:
            self._hands.say(f"{result.host}: not known to be back: {result.message}; by hand: {entry.by_hand}")
        else:
            self._hands.say(f"{result.host}: rolled back")


def make_host_done(hands: Hands, wave: int, verb: Verb, result: Result) -> HostDone:
    """A result as the journal of a run has it."""
    command = hands.by_hand(result.host) if result.state == "unknown" else None
    return HostDone(
        time.time(), wave, result.host, verb, result.state, result.transaction, result.message, by_hand=command
    )


def take_up(hands: Hands, journal: RunJournal, run: RunRecord) -> frozenset[str]:
    """Settle the wave that was open. Returns the hosts that are done; raises nothing for hosts that cannot be settled,
    which are named and journalled as unknown."""
    ended = end_orphans(hands.directory)
    if ended:
        hands.say(f"ended {count_noun(ended, 'process')} of the interrupted run")
    journal.write(Resumed(time.time()))
    states = {name: Result(name, one.state, one.transaction, one.message) for name, one in run.hosts.items()}
    # The hosts of the open wave, and those that an earlier part of the run left open.
    named = list(run.open_wave.hosts) if run.open_wave else []
    more = [name for name, one in run.hosts.items() if one.state in ("unknown", "awaiting-confirmation")]
    names = list(dict.fromkeys([*named, *more]))
    if names:
        wave = run.open_wave.wave if run.open_wave else 0
        hands.say(f"asking the hosts of wave {wave}: {', '.join(names)}")
        _settle_wave(hands, journal, run, wave, {name: run.sought[name] for name in names}, states)
        is_open = any(states[name].state == "unknown" for name in names)
        is_kept = any(states[name].state == "applied" for name in names)
        journal.write(WaveEnded(time.time(), wave, "open" if is_open else "confirmed" if is_kept else "rolled-back"))
    return frozenset(name for name, one in states.items() if one.state == "applied")


def _settle_wave(
    hands: Hands,
    journal: RunJournal,
    run: RunRecord,
    wave: int,
    wanted: Mapping[str, Sought],
    states: dict[str, Result],
) -> None:
    # Whether the gate of the open wave had held before the run was cut short.
    gates = [gate for gate in run.gates if gate.wave == wave and run.open_wave is not None]
    began = run.open_wave.time if run.open_wave else 0.0
    last = gates[-1] if gates else None
    held = last is not None and last.held and last.time >= began
    for result in settle_transactions(hands, wanted, seconds=0):
        states[result.host] = result
        hands.say(f"{result.host}: {_WORDS.get(result.state, result.state)}")
        if result.state != "awaiting-confirmation":
            journal.write(make_host_done(hands, wave, "apply", result))
    waiting = [name for name in wanted if states[name].state == "awaiting-confirmation"]
    if held and waiting:
        for result in hands.do("confirm", waiting):
            states[result.host] = result
            if result.state == "applied":
                journal.write(make_host_done(hands, wave, "confirm", result))
                hands.say(f"{result.host}: kept")
    left = {name: known for name, known in wanted.items() if states[name].state not in _SETTLED}
    window = float(run.asked.confirm_within)
    FleetRollback(hands, journal, states, window_seconds=window).run(wave, left)


_SETTLED = ("applied", "rolled-back", "failed", "unchanged", "refused")
_WORDS = {
    "applied": "changed, and kept",
    "awaiting-confirmation": "changed, awaiting confirmation",
    "rolled-back": "rolled back",
    "failed": "not begun",
}
