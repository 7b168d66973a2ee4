"""What both actions do: find the program, take a capture, run a script on the host."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.advisor.host.plugins.module_utils.program import (
    DIRECTORIES,
    HOW_TO_INSTALL,
    AdvisorError,
    parse_answer,
)

_STATE = "/var/lib/advisor"
_MARK = "advisor-program:"
_FIND = (
    'for one in "$(command -v advisor 2>/dev/null)" {}; do '
    'if [ -n "$one" ] && [ -x "$one" ]; then printf "\\n{}%s\\n" "$one"; break; fi; done'.format(
        " ".join(f"{one}/advisor" for one in DIRECTORIES), _MARK
    )
)
# A Python that every ansible-core can send modules to: the module for the host's program is one.
_FIND_PYTHON = (
    "for one in {} python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3; do "
    "if \"$one\" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then "
    f'printf "\\n{_MARK}python\\n"; break; fi; done'
)
# Journals alone: what rolls back stays where it is.
_PACK = (
    f"cd {_STATE}/transactions 2>/dev/null || exit 0; set --; "
    "for one in */journal */length */put-back; do "
    'if [ -f "$one" ]; then set -- "$@" "$one"; fi; done; '
    f'if [ $# -gt 0 ]; then printf "\\n{_MARK}\\n"; tar cf - "$@" | base64; fi'
)
_MEMBER = re.compile(r"[0-9]{1,9}/(journal|length|put-back)")
_MAX_BYTES = 64 << 20
_KEEP_ALIVE = "-o ServerAliveInterval=5 -o ServerAliveCountMax=4"


def describe_connection_failure(error):
    """The words of a failed connection in one line."""
    return " ".join(str(getattr(error, "message", None) or error).split())


class Place:
    """A directory of the controller for one task, and the controller's program in it."""

    def __init__(self, path, program):
        self._path, self._program = path, program
        self.capture = None

    def file(self, *names):
        return os.path.join(self._path, *names)

    def run(self, words, given=b""):
        """What a command printed. Raises AdvisorError where it failed."""
        # Its own state: what was applied to the controller has nothing to do with the host.
        environment = dict(
            os.environ, LC_ALL="C.UTF-8", LANGUAGE="", NO_COLOR="1", ADVISOR_STATE_DIR=self.file("state")
        )
        done = subprocess.run(
            [self._program, *list(words)],
            input=given,
            capture_output=True,
            env=environment,
            cwd=self._path,
            check=False,
        )
        if done.returncode and "--json" not in words:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise AdvisorError(said.replace("advisor: ", "", 1), rc=done.returncode)
        return done

    def ask(self, words):
        """The document that a command prints. Raises AdvisorError."""
        done = self.run([*list(words), "--json"])
        return parse_answer(
            done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        )

    def write_script(self, words):
        self.run([*list(words), "-o", self.file("apply.sh")])
        return self.file("apply.sh")


class HostAction(ActionBase):
    """An action with a program on the host, or with one on the controller and scripts on the host."""

    ARGUMENTS = None
    TRANSFERS_FILES = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _unused, params = self.validate_argument_spec(self.ARGUMENTS)
        self._params = params
        self._keep_alive()
        try:
            program = self._choose(params, task_vars or {})
            if program is None:
                found = dict(self.act_from_controller(params, task_vars or {}), via="controller")
            else:
                found = self.act_on_host(dict(params, executable=program), task_vars or {})
        except AdvisorError as error:
            found = dict(error.fields, failed=True, msg=str(error))
        result.update(found)
        if not self._task.diff:
            result.pop("diff", None)
        return result

    def act_on_host(self, params, task_vars):
        raise NotImplementedError

    def act_from_controller(self, params, task_vars):
        raise NotImplementedError

    def _keep_alive(self):
        """Let ssh notice that nothing passes any more: a link whose MTU is rolled back drops what a login still sends.

        Behind the user's own arguments, as the first value that ssh reads counts.
        """
        if getattr(self._connection, "transport", "") == "ssh":
            given = self._connection.get_option("ssh_extra_args") or ""
            self._connection.set_option("ssh_extra_args", f"{given} {_KEEP_ALIVE}".strip())

    # Programs

    def _choose(self, params, task_vars):
        """The program on the host. None for the one on the controller."""
        if params["via"] == "controller":
            return None
        if params["executable"]:
            return params["executable"]
        named = shlex.quote(str(task_vars.get("ansible_python_interpreter") or "python3"))
        find_python = _FIND_PYTHON.replace("{}", "python3" if named.startswith("auto") else named)
        lines = self.run_command(f"{_FIND}; {find_python}").splitlines()
        found = [line[len(_MARK) :] for line in lines if line.startswith(_MARK + "/")]
        is_reachable = _MARK + "python" in lines or params["via"] == "host" or self._controller_program() is None
        if found and is_reachable:
            return found[0]
        if params["via"] == "host" or self._controller_program() is None:
            raise AdvisorError("advisor is not installed on this host. " + HOW_TO_INSTALL, kind="not-installed")
        return None

    def _controller_program(self):
        named = self._params["controller_executable"]
        neighbour = os.path.join(os.path.dirname(sys.executable), "advisor")
        return named or (neighbour if os.access(neighbour, os.X_OK) else shutil.which("advisor"))

    # What is done on the host

    def run_command(self, command, is_checked=True):
        """What a command of the shell prints on the host, as the user that the task becomes."""
        # Never in a terminal, which would change line ends, and where a script prints for people alone: what is sent
        # over standard input forbids one.
        given = b"\n" if getattr(self._connection, "has_pipelining", False) else None
        done = self._low_level_execute_command(command, in_data=given, encoding_errors="surrogateescape")
        if is_checked and done["rc"] != 0:
            raise AdvisorError((done["stderr"] or done["stdout"]).strip()[-500:], rc=done["rc"])
        return done["stdout"] if is_checked else done

    def _send(self, path):
        if not self._connection._shell.tmpdir:
            self._make_tmp_path()
        place = self._connection._shell.tmpdir
        there = self._connection._shell.join_path(place, os.path.basename(path))
        self._transfer_file(path, there)
        self._fixup_perms2((place, there), execute=False)
        return there

    def run_script(self, path, arguments):
        """The document in the last line of what a transaction script prints. Raises AdvisorError where it failed."""
        words = " ".join(shlex.quote(str(one)) for one in ["/bin/sh", self._send(path), *list(arguments)])
        done = self.run_command(words, is_checked=False)
        lines = [line for line in done["stdout"].splitlines() if line.startswith('{"schema":"advisor.transaction/')]
        try:
            document = json.loads(lines[-1]) if lines else {}
        except ValueError:
            document = {}
        if done["rc"] == 0 and document:
            return document
        failed = [
            "{}: {}".format(one["what"], one["detail"])
            for one in document.get("items", [])
            if one["state"] not in ("planned", "applied")
        ]
        said = document.get("message") or (done["stderr"] or done["stdout"]).strip()[-500:]
        raise AdvisorError(
            "; ".join([said, *failed[:20]]), rc=done["rc"], changed=done["rc"] == 5, script_state=document.get("state")
        )

    @contextlib.contextmanager
    def capture(self, task_vars, is_needed=True):
        """A place with a capture of the host, without passwords and keys."""
        program = self._controller_program()
        if program is None:
            raise AdvisorError(
                "advisor is not on the controller; name it with controller_executable", kind="not-installed"
            )
        with tempfile.TemporaryDirectory(prefix="advisor.") as path:
            place = Place(path, program)
            os.mkdir(place.file("state"), 0o700)
            if is_needed:
                place.run(["fleet", "capture-script", "-o", place.file("capture.sh")])
                output = self.run_command("/bin/sh {}".format(shlex.quote(self._send(place.file("capture.sh")))))
                begin = output.find("advisor-capture ")
                name = str(task_vars.get("inventory_hostname") or "host")
                words = ["fleet", "receive", "-o", place.file("store"), name]
                done = place.run(words, output[max(begin, 0) :].encode("utf-8", "surrogateescape"))
                place.capture = done.stdout.decode("utf-8", "surrogateescape").strip()
            yield place

    def read_status(self, place):
        """The transactions of the host, read by the controller's program from copies of their journals."""
        packed = self.run_command(_PACK).partition(f"\n{_MARK}\n")[2]
        if len(packed) > _MAX_BYTES:
            raise AdvisorError(f"the journals of this host are larger than {_MAX_BYTES >> 20} MiB")
        if packed:
            try:
                _unpack(base64.b64decode(packed), place.file("state", "transactions"))
            except (ValueError, OSError, tarfile.TarError) as error:
                raise AdvisorError(f"the journals of this host did not arrive whole: {error}") from error
        return place.ask(["status"])

    def roll_back_by_script(self, identity, is_forced, is_begun):
        """Roll a transaction back by the script that is with its journal."""
        words = ["/bin/sh", f"{_STATE}/transactions/{identity}/rollback.sh"] + (["--force"] if is_forced else [])
        done = self.run_command(" ".join(words), is_checked=False)
        if done["rc"] != 0:
            said = (done["stdout"] + done["stderr"]).strip()[-1500:]
            raise AdvisorError(
                f"transaction {identity} is not rolled back: {said}", rc=done["rc"], changed=is_begun or done["rc"] == 5
            )

    def reconnect(self):
        """Leave this login. The next command makes a new connection."""
        with contextlib.suppress(AttributeError, NotImplementedError, AnsibleConnectionFailure):
            self._connection.reset()


def _unpack(archive, directory):
    """Journals alone, whatever a host sends."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for member in packed:
            if not member.isreg() or not _MEMBER.fullmatch(member.name):
                raise ValueError(f"{member.name!r} is no journal")
            path = os.path.join(directory, member.name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "wb") as file:
                shutil.copyfileobj(packed.extractfile(member), file)
