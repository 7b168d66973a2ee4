"""Runs a script of POSIX sh on a host over the connection that Ansible has, with nothing else needed there.

The script travels over standard input into a private directory of the host, is compared (cksum), run, and removed.
Its answer is separated from what a login shell prints around it and written to a file here; of all that only small
facts become the task's result. Arguments of the task are described in the role's README.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import secrets
import shlex
import subprocess
import tempfile
import time
from typing import Any
from urllib.parse import quote

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

MAX_BYTES = 64 << 20
_KEEP_ALIVE = "-o ServerAliveInterval=15 -o ServerAliveCountMax=4"
_ROOM = 8  # the answer is held as bytes, as text and in lines for a moment
_TAIL = 2000

# One line, and no sign that a login shell such as csh takes for its own. $1 token, $2 cksum of the script, $3 whether
# root is needed, the rest are the script's arguments.
_RECEIVER = (
    "umask 077; token=$1 sum=$2 root=$3; shift 3; uid=$(id -u); "
    'for place in "${TMPDIR:-/tmp}" /run /dev/shm /var/tmp; do '
    'dir=$(mktemp -d "$place/advisor.XXXXXX" 2>/dev/null) && cat >"$dir/script" 2>/dev/null && break; '
    'rm -rf "${dir:-/nonexistent/advisor}"; dir=; done; '
    'report() { printf "\\n%s %s %s %s %s\\n" "$token" "$1" "$2" "$uid" "$(date +%s)"; }; '
    'leave() { [ -z "$dir" ] || rm -rf "$dir"; }; trap "leave; exit 129" HUP INT TERM; '
    'if [ -z "$dir" ]; then report refused no-room; exit 0; fi; '
    'if [ "$(cksum <"$dir/script")" != "$sum" ]; then leave; report refused damaged; exit 0; fi; '
    'if [ "$root" = yes ] && [ "$uid" != 0 ]; then leave; report refused no-root; exit 0; fi; '
    'report begin 0; /bin/sh "$dir/script" "$@" </dev/null; code=$?; leave; report end $code'
)

_REFUSALS = {
    "no-room": "no directory in which to put the script: /tmp, /run, /dev/shm and /var/tmp are full or read-only",
    "damaged": "the script did not arrive whole",
    "no-root": "not root there: the inventory says nothing of ansible_become, and --become was not given",
}


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """``advisor_run``: see the role's README."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset(
        ("job", "script", "scripts", "arguments", "check_arguments", "output", "receiver", "needs_root", "changes")
    )

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        # The arguments of the task. Those in the file `job` are as they are: Ansible reads no templates there.
        given = dict(self._task.args)
        if given.get("job"):
            with open(str(given["job"])) as file:
                given.update(json.load(file))
        self._given = given
        name = str((task_vars or {}).get("inventory_hostname", ""))
        directory = str(self._given.get("scripts") or "")
        own = os.path.join(directory, _file_name(name) + ".sh")
        if bool(directory) and os.path.isdir(directory) and not os.path.exists(own):
            return {**result, "skipped": True, "msg": f"{self._given['scripts']}: no script for {name}"}
        answer: dict[str, Any] = {"host": name, "state": "unreachable", "message": "", "started": time.time()}
        try:
            self._ask_host(name, answer)
        except AnsibleConnectionFailure as error:
            answer.update(message=_error_text(error))
            if _is_about_root(answer["message"]) and answer["state"] == "unreachable":
                answer["state"] = "no-root"
            raise
        except MemoryError:
            answer.update(state="failed", message=f"printed more than {MAX_BYTES >> 20} MiB")
        except AnsibleActionFail:
            answer = {}
            raise
        except AnsibleError as error:
            answer.update(
                state="no-root" if _is_about_root(_error_text(error)) else "failed", message=_error_text(error)
            )
            raise
        except BaseException as error:
            # The task's timeout comes as one, and so does an interrupt.
            timed_out = "Timeout" in type(error).__name__
            answer.update(state="timeout" if timed_out else "lost", message=f"no answer: {_error_text(error)}")
            raise
        finally:
            if answer:
                answer["ended"] = time.time()
                self._write_file(name + ".json", json.dumps(answer).encode())
        return {**result, **_task_result(answer)}

    def _keep_alive(self) -> None:
        """Let ssh notice a host that lost its power or its cable while a script runs there.

        A connection on which nothing is sent waits for ever otherwise. Behind the user's own arguments, as the first
        value that ssh reads counts.
        """
        if getattr(self._connection, "transport", "") == "ssh":
            given = self._connection.get_option("ssh_extra_args") or ""
            self._connection.set_option("ssh_extra_args", f"{given} {_KEEP_ALIVE}".strip())

    def _ask_host(self, name: str, answer: dict[str, Any]) -> None:
        self._keep_alive()
        script = self._read_script(name)
        if self._is_set("changes"):
            # What fails from here on may have begun there; what fails here has not.
            self._run_command("exit 0", None)
            answer["state"] = "lost"
        token = secrets.token_hex(8)
        in_check = self._task.check_mode and self._is_set("changes")
        given = self._given.get("check_arguments" if in_check else "arguments") or ()
        if in_check and not given:
            raise AnsibleActionFail("check_arguments: what changes a host needs them under --check")
        done = self._run_command(
            _command_line(token, script, [str(word) for word in given], needs_root=self._is_set("needs_root")), script
        )
        output = done["stdout"].encode("utf-8", "surrogateescape")
        noise = str(done["stderr"])[-_TAIL:].strip()
        body = _extract_answer(output, token, answer, noise)
        if body is not None:
            if transaction := _read_transaction(body):
                if self._task.diff and (lines := _show_planned(transaction)):
                    answer["diff"] = {"prepared": lines}
                answer["transaction"] = {key: transaction[key] for key in _KEPT if key in transaction}
            self._store_answer(name, body, answer)

    def _run_command(self, command: str, script: bytes | None) -> dict[str, Any]:
        """What the connection brings back, in bounded memory; this process is a fork for this one task."""
        before = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        room = now + _ROOM * MAX_BYTES + (64 << 20)
        if before[1] != resource.RLIM_INFINITY:
            room = min(room, before[1])
        resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
        try:
            # Never in a terminal, which would change line ends: what is sent over standard input forbids one.
            return dict(
                self._low_level_execute_command(command, in_data=script or b"\n", encoding_errors="surrogateescape")
            )
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    def _store_answer(self, name: str, body: bytes, answer: dict[str, Any]) -> None:
        """Write the answer, or hand it to the receiver, which writes what may be kept of it."""
        answer["bytes"] = len(body)
        receiver = [str(word) for word in self._given.get("receiver") or ()]
        if not receiver:
            answer["path"] = self._write_file(name + ".out", body)
            return
        facts = json.dumps({**answer, "ended": time.time()})
        done = subprocess.run([*receiver, name, facts], input=body, capture_output=True, cwd="/", check=False)
        if done.returncode == 0:
            answer["path"] = done.stdout.decode("utf-8", "surrogateescape").strip()
        else:
            said = done.stderr.decode("utf-8", "replace").strip() or f"{receiver[0]} ended with {done.returncode}"
            answer.update(state="failed", message=said[-_TAIL:].removeprefix("advisor: "))

    def _write_file(self, name: str, content: bytes) -> str:
        """A file of the output directory, whole or not at all, for its owner alone."""
        host, dot, kind = name.rpartition(".")
        path = os.path.join(self._output_directory(), _file_name(host) + dot + kind)
        fd, temporary = tempfile.mkstemp(dir=self._output_directory(), prefix=".new")
        try:
            with open(fd, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return path

    def _output_directory(self) -> str:
        path = os.path.abspath(os.path.expanduser(str(self._given.get("output") or "")))
        if not self._given.get("output"):
            raise AnsibleActionFail("output: names no directory")
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def _read_script(self, name: str) -> bytes:
        path = self._given.get("script")
        if not path:
            directory = self._given.get("scripts")
            if not directory:
                raise AnsibleActionFail("neither script nor scripts is given")
            path = os.path.join(str(directory), _file_name(name) + ".sh")
        try:
            with open(os.path.expanduser(str(path)), "rb") as file:
                return file.read()
        except OSError as error:
            raise AnsibleActionFail(f"{path}: {error.strerror}") from error

    def _is_set(self, name: str) -> bool:
        return str(self._given.get(name, False)).lower() in ("true", "yes", "1")


def _command_line(token: str, script: bytes, arguments: list[str], *, needs_root: bool) -> str:
    # As POSIX cksum prints it on the host: CRC and size.
    words = [
        "/bin/sh",
        "-c",
        _RECEIVER,
        "advisor",
        token,
        subprocess.run(["cksum"], input=script, capture_output=True, check=True).stdout.decode().strip(),
        "yes" if needs_root else "no",
        *arguments,
    ]
    return " ".join(shlex.quote(word) for word in words)


def _extract_answer(output: bytes, token: str, answer: dict[str, Any], noise: str) -> bytes | None:
    """What the script printed; the answer says how it went. None where there is nothing to keep."""
    mark = re.compile(rb"\r?\n" + token.encode() + rb" (\S+) (\S+) ([0-9]*) ([0-9]*)\r?\n")
    first = mark.search(output)
    if first is None:
        said = (output[:_TAIL].decode("utf-8", "replace").strip() or noise)[:200]
        answer.update(state="failed", message=f"answered with something else: {said!r}" if said else "no answer at all")
        return None
    kind, detail, uid, clock = (group.decode() for group in first.groups())
    answer.update(uid=int(uid) if uid else None, host_started=int(clock) if clock else None)
    if kind == "refused":
        answer.update(state="no-root" if detail == "no-root" else "failed", message=_REFUSALS.get(detail, detail))
        return None
    last = mark.search(output, first.end() - 1)
    if last is None:
        answer.update(state="lost", message=f"the answer breaks off after {len(output) - first.end()} bytes")
        return None
    ended = last.group(4).decode()
    answer.update(state="ok", rc=int(last.group(2)), host_ended=int(ended) if ended else None, message=noise)
    return output[first.end() : last.start()]


def _task_result(answer: dict[str, Any]) -> dict[str, Any]:
    """Small facts alone. ``transaction`` is what a transaction script said in its last line, without its items."""
    went_well = answer["state"] == "ok"
    found = {"changed": False, "failed": not went_well, "msg": "" if went_well else answer["message"]}
    return {**found, **{key: answer[key] for key in ("state", "rc", "path", "transaction", "diff") if key in answer}}


def _read_transaction(body: bytes) -> dict[str, Any]:
    last = body.rstrip().rpartition(b"\n")[2]
    try:
        said = json.loads(last) if last.startswith(b"{") else {}
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


_KEPT = ("id", "state", "code", "message", "deadline")
_MAX_LINES = 500


def _show_planned(transaction: dict[str, Any]) -> str:
    """What --diff prints: each value that would change, or has changed."""
    items = transaction.get("items")
    lines = [
        f"{one.get('what')}: {one.get('detail')}"[:300]
        for one in (items if isinstance(items, list) else [])[:_MAX_LINES]
        if isinstance(one, dict) and one.get("state") in ("planned", "applied")
    ]
    return "".join(f"{line}\n" for line in lines)


def _file_name(host: str) -> str:
    quoted = quote(host, safe="")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


# What Ansible puts before ssh's own words; that it was over ssh is known.
_PREFACE = re.compile(
    r"(Task failed: |Failed to connect to the host via \w+: |Data could not be sent to .*?over ssh: )+", re.I
)


def _error_text(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    return (_PREFACE.sub("", text, count=1).strip() or text)[:_TAIL]


def _is_about_root(message: str) -> bool:
    return bool(re.search(r"(Missing|Incorrect) \S+ password|privilege escalation", message))
