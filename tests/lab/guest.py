"""A throw-away machine with a real Debian kernel, run by QEMU without hardware acceleration.

    with Guest(STORAGE_HOST) as guest:
        guest.run("ip link set eth0 mtu 9000").check()
        guest.power_cut()
        guest.boot()                      # the same disks: what was flushed is there, what was running is not

Errors:

    LabError
    ├── CannotRunError    this computer cannot run the lab (no QEMU, no root to build the image): a reason to skip
    ├── StartError        no answer from the guest after all attempts; the message ends with its console's last lines
    ├── GuestGoneError    the guest is off, went off, or does not answer any more
    ├── AgentError        the agent could not carry out the request (no such file, no such program); has `errno`
    └── CommandError      raised by `Result.check` for a command that did not exit with 0
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .hardware import STORAGE_HOST, Hardware, disks, qemu_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
ACCELERATOR = "tcg,thread=multi,tb-size=512"

ATTEMPTS = 3
# With many emulated devices, a few starts in a hundred crash or hang in the first seconds. A guest that has
# not reached its initramfs by the first deadline never does. ADVISOR_LAB_PATIENCE stretches both on a slow
# computer; other load on it stretches them anyway.
PATIENCE = float(os.environ.get("ADVISOR_LAB_PATIENCE", "1"))
INITRAMFS_SECONDS = 40 * PATIENCE
ANSWER_SECONDS = 90 * PATIENCE
SETTLE_SECONDS = 90 * PATIENCE
SHUTDOWN_SECONDS = 60 * PATIENCE
IDLE_BOOT_SECONDS = 25.0
"""On two idle cores a guest is up after 20 to 25 s; `Machine.slowness` is this much more."""
# How much later than the guest's own timeout a reply may come: the clocks differ and base64 takes its time.
REPLY_GRACE_SECONDS = 20 * PATIENCE

TIMED_OUT = 124  # as of timeout(1)


class LabError(Exception):
    """The base of the lab's errors."""


class CannotRunError(LabError):
    """The lab cannot run on this computer."""


class StartError(LabError):
    """The guest did not come up."""


class GuestGoneError(LabError):
    """The guest is off or silent."""


class AgentError(LabError):
    """A request that the agent refused; `errno` is the guest's, None if there was no system error."""

    def __init__(self, message: str, errno: int | None) -> None:
        super().__init__(message)
        self.errno = errno


class CommandError(LabError):
    """A command that failed although it had to succeed."""


@dataclass(frozen=True)
class Result:
    """The outcome of a command; `rc` is as a shell sees it: 128 + N for signal N, 124 for a timeout."""

    command: str
    rc: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    timed_out: bool
    seconds: float

    @property
    def stdout(self) -> str:
        """Standard output as text; bytes that are not UTF-8 become replacement characters."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; bytes that are not UTF-8 become replacement characters."""
        return self.stderr_bytes.decode(errors="replace")

    def check(self) -> Self:
        """Itself, for chaining; raises CommandError with both outputs unless the command exited with 0."""
        if self.rc != 0:
            raise CommandError(f"{self.command!r} exited with {self.rc}\n{self.stdout}{self.stderr}")
        return self


class Machine(ABC):
    """What tests see: commands, files, power. `Guest` runs one itself, `ServedGuest` reaches one run
    elsewhere.
    """

    @abstractmethod
    def call(self, request: Mapping[str, Any], *, timeout: float) -> dict[str, Any]:
        """The agent's reply to one request; raises AgentError, GuestGoneError."""

    @property
    @abstractmethod
    def is_on(self) -> bool:
        """Is the machine switched on?"""

    @abstractmethod
    def boot(self) -> None:
        """Switch on; returns when systemd has finished starting. Raises StartError, CannotRunError."""

    @abstractmethod
    def power_cut(self) -> None:
        """Switch off at once, with nothing flushed that the guest has not flushed itself."""

    @abstractmethod
    def reboot(self) -> None:
        """An orderly shutdown, then a start from the same disks."""

    @abstractmethod
    def stop(self) -> None:
        """Switch off and forget the disks."""

    @property
    def slowness(self) -> float:
        """How many times longer a step takes than on an idle computer, by what is known of it; at least 1."""
        return max(PATIENCE, _crowding())

    @abstractmethod
    def monitor(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """What QEMU returns to a command of its machine protocol (QMP). Raises LabError."""

    def plug_disk(self, port: int, serial: str, *, mib: int = 64) -> None:
        """Plug an NVMe drive, which reads as zeros, into a free port; `unplug` removes it."""
        backing = {"driver": "null-co", "node-name": f"free{port}-disk", "size": mib << 20, "read-zeroes": True}
        self.monitor("blockdev-add", backing)
        device = {"driver": "nvme", "drive": backing["node-name"], "serial": serial}
        self.monitor("device_add", {**device, "id": f"plugged{port}", "bus": f"free{port}"})

    def plug_link(self, port: int, *, mac: str, driver: str = "virtio-net-pci") -> None:
        """Plug a link to nowhere into a free port."""
        self.monitor("netdev_add", {"type": "user", "id": f"free{port}-wire", "restrict": True, "ipv6": False})
        device = {"driver": driver, "netdev": f"free{port}-wire", "mac": mac}
        self.monitor("device_add", {**device, "id": f"plugged{port}", "bus": f"free{port}"})

    def unplug(self, port: int) -> None:
        """Ask the guest to give up what is in a port, and wait until it has. Nothing where nothing is there."""
        deadline = time.monotonic() + 60 * self.slowness
        asked = 0.0
        while any(one["name"] == f"plugged{port}" for one in self.monitor("qom-list", {"path": "/machine/peripheral"})):
            if time.monotonic() > deadline:
                raise LabError(f"the guest does not give up what is in port {port}")
            if time.monotonic() > asked + 10:
                # A port that is still busy with the plugging refuses, or does not hear.
                with contextlib.suppress(LabError):
                    self.monitor("device_del", {"id": f"plugged{port}"})
                asked = time.monotonic()
            time.sleep(0.2)
        for command, argument, name in (("blockdev-del", "node-name", "disk"), ("netdev_del", "id", "wire")):
            with contextlib.suppress(LabError):
                self.monitor(command, {argument: f"free{port}-{name}"})

    def run(
        self,
        cmd: str | Sequence[str],
        *,
        timeout: float = 60,
        input: bytes | str | None = None,  # noqa: A002  # the name subprocess.run uses
        env: Mapping[str, str] | None = None,
        user: str = "root",
        cwd: str | None = None,
    ) -> Result:
        """Run a command to its end, or kill it and its session after `timeout` seconds times `slowness`.

        A string goes to the guest's /bin/sh, a sequence is executed as it is. A process left in the
        background is not waited for. `env` is added to a login's environment; `user` may be `plain`, who is
        an ordinary one. Raises AgentError if the program does not exist, GuestGoneError.
        """
        data = input.encode() if isinstance(input, str) else input or b""
        timeout *= self.slowness
        argv = ["/bin/sh", "-c", cmd] if isinstance(cmd, str) else list(cmd)
        request = {
            "op": "run",
            "argv": argv,
            "timeout": timeout,
            "input": base64.b64encode(data).decode(),
            "env": dict(env or {}),
            "user": user,
            "cwd": cwd,
        }
        reply = self.call(request, timeout=timeout + REPLY_GRACE_SECONDS)
        rc = TIMED_OUT if reply["timed_out"] else int(reply["rc"])
        return Result(
            command=cmd if isinstance(cmd, str) else " ".join(cmd),
            rc=128 - rc if rc < 0 else rc,
            stdout_bytes=base64.b64decode(reply["stdout"]),
            stderr_bytes=base64.b64decode(reply["stderr"]),
            timed_out=bool(reply["timed_out"]),
            seconds=float(reply["seconds"]),
        )

    def put(self, path: str, data: bytes | str, mode: int = 0o644) -> None:
        """Write a file, flushed to the disk and renamed whole; directories are made. Raises AgentError."""
        raw = data.encode() if isinstance(data, str) else data
        request = {"op": "put", "path": path, "data": base64.b64encode(raw).decode(), "mode": mode}
        self.call(request, timeout=60 * PATIENCE)

    def get(self, path: str) -> bytes:
        """A file's content, also of files in /proc and /sys. Raises AgentError."""
        return base64.b64decode(self.call({"op": "get", "path": path}, timeout=60 * PATIENCE)["data"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def build_image() -> Path:
    """The directory of the lab image, built if it is not there yet (minutes, once).

    Raises CannotRunError if it cannot be built on this computer, LabError if building failed.
    """
    environment = {**os.environ, "ADVISOR_LAB_PYTHON": sys.executable}
    built = subprocess.run([str(HERE / "build.sh")], env=environment, capture_output=True, text=True, check=False)
    if built.returncode == 0:
        return Path(built.stdout.strip().splitlines()[-1])
    why = "\n".join(built.stderr.strip().splitlines()[-15:])
    if built.returncode == 3:
        raise CannotRunError(why)
    raise LabError(f"build.sh failed with {built.returncode}:\n{why}")


class Guest(Machine):
    """A machine run by this process. It starts with `boot`, or on entering a `with` block.

    Its disks live in a directory of their own until `stop`; a copy-on-write layer over the image holds the
    root file system, so that /etc and /var survive `reboot` and `power_cut` and nothing survives `stop`.

    After `boot`: `attempts` is how many starts it took, `answer_seconds` the time from the successful start
    to the agent's first word, `boot_seconds` to the end of systemd's start, both wall-clock.
    """

    def __init__(self, hardware: Hardware = STORAGE_HOST, *, image: Path | None = None, share: Path = PROJECT) -> None:
        self.hardware = hardware
        self.attempts = 0
        self.answer_seconds = 0.0
        self.boot_seconds = 0.0
        self._image = image
        self._share = share
        self._work: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: _Agent | None = None
        atexit.register(self.stop)

    def __enter__(self) -> Self:
        self.boot()
        return self

    @property
    def is_on(self) -> bool:
        """See `Machine.is_on`; false also if QEMU ended by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def slowness(self) -> float:
        """See `Machine.slowness`; how long it took to start is the first measurement."""
        return max(super().slowness, self.boot_seconds / IDLE_BOOT_SECONDS)

    def boot(self) -> None:
        """Switch on; see `Machine.boot`. A start that fails is tried again, and the number of attempts is
        printed.
        """
        if self.is_on:
            raise LabError("the guest is on already")
        self._prepare_disks()
        failures = []
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._start()
            except StartError as error:
                self.power_cut()
                failures.append(f"attempt {attempt}: {error}")
                _say(failures[-1])
                continue
            self.attempts = attempt
            break
        else:
            raise StartError("\n".join(failures))
        self._wait_until_up()
        _say(f"guest answered after {self.answer_seconds:.0f} s, up after {self.boot_seconds:.0f} s, attempt {attempt}")

    def power_cut(self) -> None:
        """Kill QEMU; see `Machine.power_cut`."""
        if self._agent is not None:
            self._agent.close()
            self._agent = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def reboot(self) -> None:
        """Shut down in order, then start; see `Machine.reboot`. Raises GuestGoneError if shutting down hangs."""
        # QEMU runs with -no-reboot: it ends where a machine would reset. A new process takes its place,
        # because the first seconds are where a start can fail, and there it can be tried again.
        with contextlib.suppress(GuestGoneError):
            self.run(["systemctl", "--no-block", "reboot"]).check()
        if self._process is not None:
            try:
                self._process.wait(SHUTDOWN_SECONDS)
            except subprocess.TimeoutExpired:
                self.power_cut()
                raise GuestGoneError(f"no orderly shutdown within {SHUTDOWN_SECONDS:.0f} s\n{self.console()}") from None
        self.power_cut()
        self.boot()

    def stop(self) -> None:
        """Switch off and delete the disks; a guest that is stopped may boot again, as new."""
        self.power_cut()
        if self._work is not None:
            shutil.rmtree(self._work, ignore_errors=True)
            self._work = None

    def console(self, lines: int = 20) -> str:
        """The last lines of the serial console, for error messages."""
        if self._work is None:
            return ""
        try:
            text = (self._work / "console").read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def call(self, request: Mapping[str, Any], *, timeout: float) -> dict[str, Any]:
        """See `Machine.call`."""
        if self._agent is None or not self.is_on:
            raise GuestGoneError("the guest is off")
        return self._agent.call(request, timeout=timeout)

    def monitor(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """See `Machine.monitor`."""
        if self._work is None or not self.is_on:
            raise GuestGoneError("the guest is off")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30 * PATIENCE)
            connection.connect(str(self._work / "qmp"))
            lines = connection.makefile("rb")
            for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": dict(arguments)}):
                connection.sendall(json.dumps(request).encode() + b"\n")
                # The greeting and events come in between.
                reply: dict[str, Any] = next(one for one in map(json.loads, lines) if {"return", "error"} & one.keys())
        if "error" in reply:
            raise LabError(f"{command}: {reply['error']['desc']}")
        return reply["return"]

    def _prepare_disks(self) -> None:
        if self._work is not None:
            return
        if shutil.which("setpriv") is None:
            raise CannotRunError("setpriv (util-linux) is missing")
        image = self._image or build_image()
        self._image = image
        # A short path: the sockets in it may have no more than 107 characters.
        self._work = Path(tempfile.mkdtemp(prefix="lab-"))
        base = f"{image}/root.ext4"
        layer = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, f"{self._work}/root.qcow2"]
        subprocess.run(layer, check=True)
        for disk in disks(self.hardware):
            with (self._work / f"{disk.name}.raw").open("wb") as file:
                file.truncate(disk.size_mib << 20)

    def _start(self) -> None:
        assert self._work is not None
        assert self._image is not None
        for stale in ("agent", "console", "qmp"):
            (self._work / stale).unlink(missing_ok=True)
        arguments = qemu_arguments(
            self.hardware, image=self._image, work=self._work, share=self._share, accelerator=ACCELERATOR
        )
        # The guest must not outlive the test run, however that ends.
        command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", *arguments]
        started = time.monotonic()
        with (self._work / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        stretch = _crowding()
        self._await_initramfs(started + INITRAMFS_SECONDS * stretch)
        try:
            self._agent = _Agent(self._work / "agent", deadline=started + ANSWER_SECONDS * stretch)
        except GuestGoneError as error:
            raise self._start_error(str(error)) from None
        self.answer_seconds = time.monotonic() - started
        self.boot_seconds = self.answer_seconds

    def _await_initramfs(self, deadline: float) -> None:
        assert self._process is not None
        while "lab: initramfs" not in self.console(1000):
            if self._process.poll() is not None:
                raise self._start_error(f"QEMU ended with {self._process.returncode}")
            if time.monotonic() > deadline:
                raise self._start_error("the kernel did not reach its initramfs")
            time.sleep(0.1)

    def _start_error(self, what: str) -> StartError:
        assert self._work is not None
        said = (self._work / "qemu.log").read_text(errors="replace")[-2000:]
        return StartError(f"{what}\n{said}{self.console()}".strip())

    def _wait_until_up(self) -> None:
        asked = time.monotonic()
        self.run(["systemctl", "is-system-running", "--wait"], timeout=SETTLE_SECONDS)
        # The kernel looks for namespaces in the background; systemd does not wait for a disk that nobody mounts.
        count = len(disks(self.hardware))
        ready = f'until [ "$(ls -d /sys/block/nvme*n1 /sys/block/vd[b-z] | wc -l)" -ge {count} ]; do sleep 0.1; done'
        try:
            self.run(f"({ready}) 2>/dev/null && udevadm settle", timeout=SETTLE_SECONDS).check()
        except CommandError as error:
            raise StartError(f"not all of {count} disks appeared: {error}") from None
        # Where the computer is crowded, the share's device can come after the mount that wants it.
        mounted = "for _ in 1 2 3 4 5; do mountpoint -q /src && exit; systemctl restart src.mount; sleep 1; done"
        try:
            self.run(f"{mounted}; exit 1", timeout=SETTLE_SECONDS).check()
        except CommandError as error:
            raise StartError(f"the working tree was not mounted: {error}") from None
        self.boot_seconds = self.answer_seconds + time.monotonic() - asked


class _TooLateError(GuestGoneError):
    """The deadline passed; the guest may still be there."""


class _Agent:
    """The host's end of the agent's port."""

    def __init__(self, path: Path, *, deadline: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._pending = b""
        self._last_id = 0
        self._socket.connect(str(path))
        try:
            self._await_first_word(deadline)
        except BaseException:
            self.close()
            raise

    def call(self, request: Mapping[str, Any], *, timeout: float) -> dict[str, Any]:
        self._last_id += 1
        try:
            self._socket.sendall(json.dumps({**request, "id": self._last_id}).encode() + b"\n")
        except OSError as error:
            raise GuestGoneError(f"the guest went off: {error}") from None
        deadline = time.monotonic() + timeout
        while True:
            reply = self._reply(deadline)
            # Replies to requests that were given up on may still come in.
            if reply.get("id") == self._last_id:
                break
        if "error" in reply:
            raise AgentError(reply["error"], reply.get("errno"))
        return reply

    def close(self) -> None:
        self._socket.close()

    def _await_first_word(self, deadline: float) -> None:
        """Wait for the agent's greeting, or for its answer to a question, should the greeting get lost."""
        while True:
            with contextlib.suppress(_TooLateError):
                self._reply(min(deadline, time.monotonic() + 5))
                return
            if time.monotonic() >= deadline:
                raise GuestGoneError("no answer from the guest's agent in time")
            self._socket.sendall(b'{"op": "ping"}\n')

    def _reply(self, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._socket], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise _TooLateError("no answer from the guest's agent in time")
            try:
                chunk = self._socket.recv(1 << 16)
            except OSError:
                chunk = b""
            if not chunk:
                raise GuestGoneError("the guest went off")
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        reply: dict[str, Any] = json.loads(line)
        return reply


def _crowding() -> float:
    """How many times longer things take here because others use the CPUs: 1 to 3."""
    return min(3.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _say(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)
