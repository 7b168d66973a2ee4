"""Runs one script on many hosts, by ``ansible-playbook``, and yields the result of each host.

Connections, becoming root, the number of hosts at a time and timeouts are Ansible's. What a host answered is on disk
before it is yielded here, so that whatever ends this process loses nothing that was finished.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from advisor.errors import InvalidInputError
from advisor.fleet import FORKS, TIMEOUT_SECONDS
from advisor.fleet.inventory import (
    Access,
    Inventory,
    InventoryHost,
    ansible_environment,
    configured_forks,
    file_name,
    find_ansible_program,
)
from advisor.fleet.inventory import read_hosts as inventory_hosts
from advisor.host.safe_open import make_own_directory
from advisor.host.signals import signal_group

State = Literal["ok", "unreachable", "failed", "no-root", "timeout", "lost"]
PLAYBOOKS = Path(__file__).parent / "ansible"
_TERMINATION_SECONDS = 5.0
_MAX_LINE = 65536
_MAX_NOTES = 8000

Progress = Callable[[int, int, int], None]
"""Called with how many hosts are done, of how many, and how many of them failed."""


class HostJob(msgspec.Struct, frozen=True):
    """One thing to do on every host.

    ``script`` is a file for all of them, or a directory with a file for each: its name quoted (`file_name`) and
    ``.sh``. ``receiver`` is a command of this machine that takes each answer on standard input, with the host's name
    and a JSON object of its facts behind its own words, and prints where it kept it; without one an answer is written
    as it is. A job that ``changes`` a host is never sent twice, and one that broke off is ``lost``, as something may
    have been done.
    """

    name: str
    script: Path
    arguments: tuple[str, ...] = ()
    needs_root: bool = False
    changes: bool = False
    timeout_seconds: int = TIMEOUT_SECONDS
    receiver: tuple[str, ...] = ()


class HostAnswer(msgspec.Struct, frozen=True):
    """What came of a job on one host.

    ok: the script ran to its end with ``rc``; ``path`` holds what it printed (or what the receiver said).
    unreachable: nothing was begun there. no-root: nothing was begun either, as it needs root. failed: it answered
    something else. timeout, lost: begun perhaps, the end is not known. ``message`` is Ansible's or ssh's word on it,
    for ok what the script wrote to standard error (its end). ``skew_seconds`` is how far the host's clock is ahead at
    least (negative: behind); 0 where the two may agree, None where the host reported no time.
    """

    host: str
    state: State
    rc: int | None = None
    path: Path | None = None
    message: str = ""
    uid: int | None = None
    seconds: float | None = None
    skew_seconds: float | None = None
    host_time: int | None = None


def run_job(
    inventory: Inventory,
    job: HostJob,
    *,
    output: Path,
    hosts: Sequence[InventoryHost] | None = None,
    forks: int = FORKS,
    progress: Progress = lambda done, total, failed: None,
) -> Iterator[HostAnswer]:
    """Do the job on the hosts of the inventory (or on ``hosts``, some of them); answers come as they are given.

    ``output`` is the directory for the answers, made if need be with mode 0700: ``HOST.json`` and ``HOST.out``. Every
    host is yielded exactly once. When the iterator is closed (or a signal raises in the caller), Ansible and all that
    it started here are ended first; on the hosts, what was begun goes on to its end. Raises InvalidInputError where
    Ansible itself did not start, RefusedError where it is not installed.
    """
    named = inventory_hosts(inventory) if hosts is None else tuple(hosts)
    if not named:
        return
    make_own_directory(str(output))
    waiting = {host.name: None for host in named}
    for name in waiting:
        # Of an earlier job in this directory: it must not be taken for an answer to this one.
        for end in (".json", ".out"):
            (output / (file_name(name) + end)).unlink(missing_ok=True)
    progress(0, len(named), 0)
    failed = 0
    with _Playbook(inventory, job, output, tuple(waiting), forks or configured_forks()) as playbook:
        for event in playbook.events():
            name = str(event.get("host"))
            if name in waiting:
                del waiting[name]
                answer = _read_answer(output, name, event)
                failed += answer.state != "ok"
                progress(len(named) - len(waiting), len(named), failed)
                yield answer
        notes = playbook.notes()
    left = [_read_answer(output, name, {"state": "none", "message": ""}) for name in waiting]
    if len(left) == len(named) and not any(answer.state == "ok" for answer in left):
        raise InvalidInputError(f"ansible-playbook: {notes or 'ended without a word'}")
    if left:
        progress(len(named), len(named), failed + len(left))
    for answer in left:
        unsaid = "" if answer.message else notes or "Ansible ended without an answer"
        yield msgspec.structs.replace(answer, message=unsaid) if unsaid else answer


class _Playbook:
    """ansible-playbook, in a session of its own, until the block ends: then nothing of it is left here."""

    def __init__(self, inventory: Inventory, job: HostJob, output: Path, names: Sequence[str], forks: int) -> None:
        self._stack = contextlib.ExitStack()
        self._inventory, self._job, self._output, self._names, self._forks = inventory, job, output, names, forks
        self._notes: list[str] = []

    def __enter__(self) -> _Playbook:
        with contextlib.ExitStack() as stack:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="advisor-fleet.")))
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            words = _playbook_words(self._inventory, self._job, self._output, self._names, self._forks, place)
            access = self._inventory.access
            env = ansible_environment({"ANSIBLE_STDOUT_CALLBACK": "advisor_events"})
            given = subprocess.DEVNULL if access.become_password is None else subprocess.PIPE
            process = subprocess.Popen(
                words, stdin=given, stdout=subprocess.PIPE, stderr=self._errors, env=env, start_new_session=True
            )
            if process.stdin is not None and access.become_password is not None:
                with contextlib.suppress(BrokenPipeError), process.stdin:
                    process.stdin.write(access.become_password.encode() + b"\n")
            self._process = process
            stack.callback(_end_group, self._process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def events(self) -> Iterator[Mapping[str, Any]]:
        """What the callback says, line by line, until all is done."""
        assert self._process.stdout is not None
        for line in _read_lines(self._process.stdout):
            event = parse_event(line)
            if event is not None:
                yield event
            elif sum(map(len, self._notes)) < _MAX_NOTES:
                self._notes.append(line.decode("utf-8", "replace").strip())

    def notes(self) -> str:
        """What Ansible said besides: warnings and what it could not do."""
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, end - _MAX_NOTES))
        said = self._errors.read().decode("utf-8", "replace").strip()
        return "\n".join(text for text in (*self._notes, said) if text)


def parse_event(line: bytes) -> Mapping[str, Any] | None:
    """A line of the callback ``advisor_events``; None for any other."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and event.get("advisor") == 1 else None


def _playbook_words(
    inventory: Inventory, job: HostJob, output: Path, names: Sequence[str], forks: int, place: Path
) -> list[str]:
    only = place / "hosts"
    only.write_text("".join(f"{name}\n" for name in names))
    (place / "job.json").write_bytes(msgspec.json.encode(_action_arguments(job, output)))
    variables = {"advisor_job": str(place / "job.json"), "advisor_timeout": job.timeout_seconds}
    if job.changes:
        # What changes a host must not be sent again by ssh's own retries.
        variables["ansible_ssh_retries"] = 0
    words = [
        find_ansible_program("ansible-playbook"),
        *(word for source in inventory.sources for word in ("-i", source)),
    ]
    words += ["--limit", f"@{only}", "--forks", str(forks), *_access_words(inventory.access)]
    return [*words, "-e", json.dumps(variables), str(PLAYBOOKS / "run.yml")]


def _action_arguments(job: HostJob, output: Path) -> dict[str, object]:
    """Those of the action plugin. In a file: Ansible takes braces in a variable for a template."""
    return {
        "scripts" if job.script.is_dir() else "script": str(job.script.absolute()),
        "arguments": job.arguments,
        "output": str(output.absolute()),
        "receiver": job.receiver,
        "needs_root": job.needs_root,
        "changes": job.changes,
    }


def _access_words(access: Access) -> list[str]:
    words = [word for pair in access.extra_vars for word in ("-e", pair)]
    if access.become is not None:
        words += ["-e", json.dumps({"ansible_become": access.become})]
    if access.user is not None:
        words += ["-e", json.dumps({"ansible_user": access.user})]
    if access.private_key is not None:
        words += ["--private-key", access.private_key]
    return [*words, "--become-password-file", "-"] if access.become_password is not None else words


def _read_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Whole lines; one that is longer than any that the callback writes is dropped. Signals are seen between them."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(stream, selectors.EVENT_READ)
        rest = b""
        while True:
            waiting.select()
            chunk = os.read(stream.fileno(), _MAX_LINE)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            rest = rest[-_MAX_LINE:]
    if rest:
        yield rest


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole group, politely first; members that stayed behind (an ssh that waits) as well."""
    deadline = time.monotonic() + _TERMINATION_SECONDS
    if process.poll() is None:
        signal_group(process.pid, signal.SIGTERM)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    signal_group(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


class CaptureTimes(msgspec.Struct, frozen=True):
    """When the host was asked and answered, by the controller's clock, and its own time at these two moments."""

    started: float | None = None
    ended: float | None = None
    host_started: int | None = None
    host_ended: int | None = None

    @property
    def skew_seconds(self) -> float | None:
        """How far a host's clock is ahead of the controller's, at least; 0 where the two may agree.

        The host looked at its clock (whole seconds) twice between the controller's ``started`` and ``ended``, so its
        lead lies between ``host_ended - ended`` and ``host_started + 1 - started``.
        """
        if self.started is None or self.ended is None or self.host_started is None:
            return None
        low = (self.host_started if self.host_ended is None else self.host_ended) - self.ended
        high = self.host_started + 1 - self.started
        return max(low, 0.0) + min(high, 0.0)


class _Kept(CaptureTimes, frozen=True, kw_only=True):
    """What the action plugin writes for a host."""

    host: str
    state: State
    rc: int | None = None
    message: str = ""
    uid: int | None = None
    path: str | None = None


def _read_answer(output: Path, name: str, event: Mapping[str, Any]) -> HostAnswer:
    """Out of the file that the action plugin wrote; where there is none, out of what Ansible said."""
    try:
        kept = msgspec.json.decode((output / (file_name(name) + ".json")).read_bytes(), type=_Kept)
    except FileNotFoundError:
        state: State = "unreachable" if event.get("state") == "unreachable" else "failed"
        return HostAnswer(name, state, message=str(event.get("message") or ""))
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        return HostAnswer(name, "failed", message=f"the answer that was kept cannot be read: {error}")
    seconds = None if kept.started is None or kept.ended is None else kept.ended - kept.started
    return HostAnswer(
        name,
        kept.state,
        kept.rc,
        None if kept.path is None else Path(kept.path),
        kept.message or (str(event.get("message") or "") if kept.state != "ok" else ""),
        kept.uid,
        seconds,
        kept.skew_seconds,
        kept.host_started,
    )
