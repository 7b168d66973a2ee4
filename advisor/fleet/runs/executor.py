"""What a run does on hosts, each by one script over Ansible, and their answers; every answer is kept with the run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError
from advisor.fleet.engine import HostAnswer, HostJob, run_job
from advisor.fleet.inventory import Inventory, InventoryHost, command_on, file_name, rollback_command
from advisor.fleet.runs.journal import HostState, Verb
from advisor.fleet.runs.planning import CapturedHost
from advisor.fleet.runs.wave_gate import EchoQuestion, GateAnswer, gate_script, parse_gate_answer
from advisor.fleet.scan import capture_hosts
from advisor.fleet.store import FleetStore, put_own
from advisor.host.numbers import is_count
from advisor.host.trusted_files import make_own_directory

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
