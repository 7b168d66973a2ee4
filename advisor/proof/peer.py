"""The second host of a network measurement: one fio there at a time, started over the system's own ``ssh``.

What is started there ends by itself, whatever becomes of this side. fio runs below ``timeout``; a watcher process
ends it as soon as the standard input that ssh hands on is at its end, and that is when this process dies. ssh never
asks, forwards nothing, and leaves no master connection behind; for the rest the user's own configuration holds.

Sources: ssh(1), ssh_config(5), timeout(1), proc_pid_net(5).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Missing
from advisor.host.commands import SAFE_ENVIRONMENT, find_program
from advisor.host.patterns import lazy_regex
from advisor.proof.interrupt import Stop
from advisor.proof.process import EndedProcess, FioError

CONNECT_SECONDS = 10
PORTS = tuple(range(28700, 28716))
"""Where the receiving end listens, on the first that is free: below every ephemeral range, assigned to nobody."""
_ALIVE_SECONDS, _ALIVE_COUNT = 5, 3
_POLL_SECONDS = 0.05
_END_SECONDS = 5.0
_MAX_OUTPUT_BYTES = 16 << 20
_SSH_FAILED = 255
_NO_TOOL, _NO_PORT, _NO_WORD = 41, 43, 45
_NAME = lazy_regex(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@)?(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:]{2,39})")

_OPTIONS = (
    *("BatchMode=yes", f"ConnectTimeout={CONNECT_SECONDS}", "ForwardAgent=no", "ForwardX11=no"),
    *("ClearAllForwardings=yes", "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no", "EscapeChar=none"),
    # not the master of others: such a one stays, and holds our pipes
    *("ControlMaster=no", f"ServerAliveInterval={_ALIVE_SECONDS}", f"ServerAliveCountMax={_ALIVE_COUNT}"),
)

# In one line and without single quotes, so that csh takes it as well. A busy port is one that is bound: TCP states
# 0A (listening) and 01, UDP states 07 and 01.
_SCRIPT = " ".join(
    (
        'mode=$1; bound=$2; ports=$3; shift 3; port=""; pid="";',
        "for need in fio timeout; do command -v $need >/dev/null 2>&1 ||",
        f'{{ echo "advisor-missing $need" >&2; exit {_NO_TOOL}; }}; done;',
        'if [ "$mode" = check ]; then exec fio --version; fi;',
        "exec 3<&0;",
        'bound_port() { grep -sqiE "^ *[0-9]+: [0-9A-F]+:$1 [0-9A-F]+:[0-9A-F]+ (0A|07|01)"',
        "/proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6; };",
        "nap() { sleep 0.05 2>/dev/null || sleep 1; };",
        'if [ "$mode" = listen ]; then',
        'for one in $ports; do hex=$(printf %04X "$one"); bound_port $hex || { port=$one; break; }; done;',
        f'[ -n "$port" ] || exit {_NO_PORT};',
        f'else read -r port <&3 || exit {_NO_WORD}; case $port in ""|*[!0-9]*) exit {_NO_WORD};; esac; fi;',
        'timeout -k 2 "$bound" "$@" "--port=$port" & pid=$!;',
        'trap "kill $pid 2>/dev/null" HUP INT TERM;',
        "( cat <&3 >/dev/null; kill $pid ) >/dev/null 2>&1 & watcher=$!;",
        'if [ "$mode" = listen ]; then tries=0; while [ $tries -lt 100 ]; do bound_port $hex && break;',
        "kill -0 $pid 2>/dev/null || break; nap; tries=$((tries + 1)); done;",
        'echo "advisor-listening $port"; fi;',
        "wait $pid; result=$?; kill $watcher 2>/dev/null; exit $result",
    )
)


class SecondHostPeer(msgspec.Struct, frozen=True):
    """The second host: how ssh calls it, the address that is measured, this host's own towards it, and the link."""

    ssh: str
    address: str
    source: str
    link: str | None = None
    fio_version: str = ""

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.address


class PeerError(FioError):
    """The second host did not do its part."""

    kind = "peer"


def check_destination(text: str) -> str:
    """``[USER@]HOST`` as ssh takes it. Raises UsageError for anything that ssh or a shell could take otherwise."""
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"--peer-ssh {text[:200]!r} is not [USER@]HOST",
            hint="letters, digits, dots, hyphens and underscores; port and keys belong into ~/.ssh/config",
        )
    return text


class RemoteProcess:
    """What was started over ssh, until its end."""

    def __init__(self, process: subprocess.Popen[bytes], destination: str, errors: IO[bytes]) -> None:
        self._process = process
        self._destination = destination
        self._errors = errors
        self._output = bytearray()
        assert process.stdout is not None
        self._stdout = process.stdout
        self._is_open = True

    def port(self, *, seconds: float, stop: Stop) -> int:
        """The port that the fio there listens on, once it does. Raises PeerError."""
        deadline = time.monotonic() + seconds
        while (found := re.search(rb"^advisor-listening (\d{1,5})$", self._output, re.MULTILINE)) is None:
            if not self._read_output(stop):
                raise explain_failure(self._destination, self._ended_process())
            if time.monotonic() > deadline:
                raise PeerError(f"{self._destination}: its fio did not listen within {seconds:g} s")
        return int(found[1])

    def send_port(self, port: int) -> None:
        """Start the sending fio on the peer, towards this local port."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{port}\n".encode())
            self._process.stdin.flush()

    def finish(self, *, seconds: float, stop: Stop) -> EndedProcess | None:
        """What it printed, once it has ended; ``None`` where it has not by then. Raises PeerError."""
        deadline = time.monotonic() + seconds
        while self._read_output(stop):
            if time.monotonic() > deadline:
                return None
        done = self._ended_process()
        if done.returncode in (_SSH_FAILED, _NO_TOOL, _NO_PORT, _NO_WORD):
            raise explain_failure(self._destination, done)
        return done

    def _read_output(self, stop: Stop) -> bool:
        """Take in what has come meanwhile; False at the end of it."""
        stop.check()
        ready, _, _ = select.select([self._stdout], [], [], _POLL_SECONDS) if self._is_open else ([], [], [])
        if ready:
            chunk = os.read(self._stdout.fileno(), 65536)
            self._output += chunk
            self._is_open = bool(chunk)
        if len(self._output) > _MAX_OUTPUT_BYTES:
            raise PeerError(f"{self._destination}: printed more than {_MAX_OUTPUT_BYTES >> 20} MiB")
        return self._is_open

    def _ended_process(self) -> EndedProcess:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_SECONDS)
        self._errors.seek(0)
        words = self._errors.read(65536).decode("utf-8", "replace")
        code = self._process.returncode
        out = self._output.decode("utf-8", "replace")
        return EndedProcess(_SSH_FAILED if code is None else code, out, words, False, 0.0)

    def close(self) -> None:
        """End it: the end of its standard input ends fio there, and ssh with it."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_END_SECONDS if self._process.poll() is None else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()


class Ssh:
    """Starts commands on a host by the system's ssh, in a session of its own so that no key press reaches it."""

    def __init__(self, *, search_path: str | None = None) -> None:
        self._search_path = os.environ.get("PATH", os.defpath) if search_path is None else search_path

    @contextlib.contextmanager
    def started(
        self, destination: str, mode: str, argv: Sequence[str] = (), *, bound: int = 0
    ) -> Iterator[RemoteProcess]:
        """fio there, ``argv`` without its port, for ``bound`` seconds at most; it is ended when the block ends."""
        ports = " ".join(map(str, PORTS))
        words = ["sh", "-c", _SCRIPT, "advisor", mode, str(bound), ports, *argv]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [*self._ssh_command(), "--", check_destination(destination), shlex.join(words)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_ssh_environment(),
                cwd="/",
                start_new_session=True,
            )
            remote = RemoteProcess(process, destination, errors)
            try:
                yield remote
            finally:
                remote.close()

    def _ssh_command(self) -> list[str]:
        program = find_program("ssh", self._search_path)
        if isinstance(program, Missing):
            raise RefusedError(program.why, hint="install the package openssh-client (openssh-clients on RHEL)")
        return [program, *(word for option in _OPTIONS for word in ("-o", option))]

    def version_there(self, destination: str, stop: Stop) -> str:
        """What ``fio --version`` prints there. Raises PeerError that says why it cannot be asked, and what helps."""
        with self.started(destination, "check") as remote:
            done = remote.finish(seconds=CONNECT_SECONDS + 2 * _END_SECONDS, stop=stop)
        if done is None:
            raise PeerError(f"{destination} did not answer over ssh in time", hint=_try_by_hand(destination))
        if done.returncode != 0 or not done.stdout.startswith("fio-"):
            said = (done.stderr or done.stdout).strip()[:200] or "nothing"
            raise PeerError(f"{destination}: fio --version failed: {said}", hint=_try_by_hand(destination))
        return done.stdout.split("\n", 1)[0].strip()[:40]

    def host_name(self, destination: str) -> str:
        """The name or address that the user's configuration has for this destination (``ssh -G``).

        Raises UsageError where there is none, PeerError where ssh does not answer.
        """
        try:
            asked = subprocess.run(
                [*self._ssh_command(), "-G", "--", check_destination(destination)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CONNECT_SECONDS,
                env=_ssh_environment(),
                cwd="/",
                check=False,
            )
        except subprocess.TimeoutExpired:
            # a command of the configuration itself (Match exec) hangs
            raise PeerError(f"ssh -G {destination} did not answer in time", hint="give --peer-address") from None
        found = re.search(r"^hostname (\S+)$", asked.stdout.decode("utf-8", "replace"), re.MULTILINE)
        if asked.returncode != 0 or found is None:
            said = asked.stderr.decode("utf-8", "replace").strip()[:200] or "no host name"
            raise UsageError(f"--peer-ssh {destination}: {said}", hint="mend ~/.ssh/config, or give --peer-address")
        return found[1]


def _ssh_environment() -> dict[str, str]:
    # the user's agent may hold the key; it is asked here and not forwarded
    agent = os.environ.get("SSH_AUTH_SOCK")
    return {**SAFE_ENVIRONMENT, **({"SSH_AUTH_SOCK": agent} if agent else {})}


def _try_by_hand(destination: str) -> str:
    return f"ssh {destination} fio --version must work without a question"


_REASONS: tuple[tuple[str, str, str], ...] = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is another one than before",
        "if that is known to be right: ssh-keygen -R {host}, then log in once by hand",
    ),
    (
        "Host key verification failed",
        "its host key is not known here",
        "log in once by hand and compare the fingerprint: ssh {destination}",
    ),
    ("Permission denied", "no key of this user is accepted there", "ssh-copy-id {destination}"),
    ("Connection refused", "ssh is refused: no server listens there", "on that host: systemctl start sshd"),
    ("Could not resolve hostname", "there is no host of that name", "getent hosts {host}"),
    ("timed out", "it does not answer", "ping {host}"),
    ("No route to host", "no route leads there", "ip route get {host}"),
    ("Network is unreachable", "no route leads there", "ip route get {host}"),
)


def explain_failure(destination: str, done: EndedProcess) -> PeerError:
    """Why nothing was measured there, from what ssh or the script said, with the one command that helps."""
    host = destination.rpartition("@")[2]
    said = " ".join(done.stderr.split())[-300:] or "without a word"
    if done.returncode == _NO_TOOL:
        tool = "coreutils" if "advisor-missing timeout" in done.stderr else "fio"
        how = f"ssh {destination} apt-get install {tool}, or dnf install {tool}"
        return PeerError(f"{destination}: {tool} is not installed there", hint=how)
    if done.returncode == _NO_PORT:
        taken = f"ports {PORTS[0]}-{PORTS[-1]} are all in use there"
        return PeerError(f"{destination}: {taken}", hint=f"ssh {destination} ss -lntup shows by whom")
    if done.returncode != _SSH_FAILED:
        return PeerError(f"{destination}: fio there ended with status {done.returncode}: {said}")
    for words, reason, hint in _REASONS:
        if words in done.stderr:
            how = hint.format(destination=destination, host=host)
            return PeerError(f"{destination}: {reason} ({said})", hint=how)
    return PeerError(f"{destination}: the ssh connection was lost ({said})", hint=_try_by_hand(destination))
