"""Network namespaces for one test: made, wired, entered by a child process, and removed."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from tests.forked import fork, forked

T = TypeVar("T")

_NEWNS, _NEWNET = 0x00020000, 0x40000000
_SLAVE_RECURSIVE, _DETACH = 1 << 19 | 1 << 14, 2
_numbers = itertools.count()
_libc = ctypes.CDLL(None, use_errno=True)


def can_have_namespaces() -> bool:
    """Root, and a kernel and sandbox that let it make one."""
    name = f"adv{os.getpid()}t"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return os.geteuid() == 0 and made


class Spaces:
    """Namespaces by short names; ``run("a", "ip link …")`` runs a command in one of them."""

    def __init__(self) -> None:
        self._prefix = f"adv{os.getpid()}x{next(_numbers)}"
        self._names: list[str] = []

    def name(self, space: str) -> str:
        return f"{self._prefix}{space}"

    def add(self, *spaces: str) -> None:
        for space in spaces:
            self._names.append(space)
            _run(["ip", "netns", "add", self.name(space)])
            # Addresses are usable at once, and nobody but the test sends anything.
            self.set(space, "net/ipv6/conf/all/accept_dad", "0")
            self.set(space, "net/ipv6/conf/default/accept_dad", "0")
            self.set(space, "net/ipv6/conf/default/router_solicitations", "0")
            self.run(space, "ip link set lo up")

    def run(self, space: str, command: str) -> str:
        words = command.split()
        if words[0] == "ip":
            return _run(["ip", "-n", self.name(space), *words[1:]])
        return _run(["ip", "netns", "exec", self.name(space), *words])

    def set(self, space: str, sysctl: str, value: str) -> None:
        """Write a file below /proc/sys as the namespace has it."""

        def write() -> None:
            Path("/proc/sys", sysctl).write_text(value)

        self.inside(space, write)

    def remove(self) -> None:
        for space in self._names:
            subprocess.run(["ip", "netns", "del", self.name(space)], capture_output=True, check=False)

    def wire(self, one: tuple[str, str], other: tuple[str, str], mtu: int = 1500) -> None:
        """A veth pair between two spaces, both ends up at this MTU; ``(space, link)`` each."""
        (space, link), (far_space, far_link) = one, other
        far = f"peer name {far_link} mtu {mtu} netns {self.name(far_space)}"
        self.run(space, f"ip link add {link} mtu {mtu} type veth {far}")
        self.run(space, f"ip link set {link} up")
        self.run(far_space, f"ip link set {far_link} up")

    def address(self, space: str, link: str, *addresses: str) -> None:
        for address in addresses:
            self.run(space, f"ip address add {address} dev {link}{' nodad' if ':' in address else ''}")

    def inside(self, space: str, function: Callable[[], T], *, uid: int = 0) -> T:
        """What the function returns (or raises) in a child process that is in the namespace, its own sysfs included."""

        def enter() -> None:
            self._enter(space)
            if uid:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)

        return forked(function, enter=enter)

    @contextlib.contextmanager
    def running(self, space: str, function: Callable[[Callable[[], None]], None]) -> Iterator[None]:
        """The function in a child process in the namespace, until the block ends; it calls its argument when ready."""
        reader, writer = os.pipe()
        pid = fork()
        if pid == 0:
            os.close(reader)
            with contextlib.suppress(BaseException):
                self._enter(space)
                function(lambda: os.close(writer))
            os._exit(1)
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _enter(self, space: str) -> None:
        fd = os.open(f"/run/netns/{self.name(space)}", os.O_RDONLY | os.O_CLOEXEC)
        _check(_libc.setns(fd, _NEWNET))
        _check(_libc.unshare(_NEWNS))
        _check(_libc.mount(b"none", b"/", None, _SLAVE_RECURSIVE, None))
        _check(_libc.umount2(b"/sys", _DETACH))
        _check(_libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))


def advisor(spaces: Spaces, space: str, store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a space, with a /run of its own and its state in ``store``."""
    call = f"mount -t tmpfs tmpfs /run && exec {sys.executable} -m advisor {' '.join(words)}"
    command = ["ip", "netns", "exec", spaces.name(space), "unshare", "-m", "sh", "-c", call]
    path = f"{Path(__file__).parents[2]}:{os.environ.get('PYTHONPATH', '')}"
    env = {**os.environ, "PYTHONPATH": path, "ADVISOR_STATE_DIR": str(store)}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
