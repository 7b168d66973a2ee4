"""Two hosts for one test: namespaces ``here`` and ``far``, a wire between them, and a real sshd in ``far``.

Keys, known hosts and the ssh configuration are the test's own: an ``ssh`` on the search path hands them to the real
one. Nothing of this machine's is touched; what sshd needs in /run and of the passwords is mounted in its own mount
namespace.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from advisor.host import live_host
from advisor.proof.interrupt import Stop
from advisor.proof.network import NetworkFio
from advisor.proof.path import find_peer
from advisor.proof.peer import SecondHostPeer, Ssh
from tests.reach.space import Spaces

T = TypeVar("T")

HERE, FAR = "192.0.2.1", "192.0.2.2"
HERE6, FAR6 = "2001:db8:5::1", "2001:db8:5::2"
SSHD = "/usr/sbin/sshd"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_SSHD = """\
ListenAddress 0.0.0.0
ListenAddress ::
HostKey {home}/host_key
AuthorizedKeysFile {home}/client_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PidFile none
"""
_CLIENT = """\
Host far
  HostName {address}
  User root
Host *
  UserKnownHostsFile {home}/known_hosts
  GlobalKnownHostsFile /dev/null
  IdentityFile {home}/{key}
  IdentitiesOnly yes
"""


def why_not() -> str | None:
    """Why no second host can be had here; None where it can."""
    missing = [name for name in ("fio", "ssh", "ssh-keygen") if shutil.which(name) is None]
    if not os.path.exists(SSHD):
        missing.append("sshd (package openssh-server)")
    return f"not installed: {', '.join(missing)}" if missing else None


SSH_SERVERS: Final = ("sshd", "sshd-session", "sshd-auth")
"""The server and its sessions, which are programs of their own from OpenSSH 9.8 and 10."""


class SecondHost:
    """``inside(function)`` calls it in ``here``; ``far`` is how ssh calls the other host."""

    def __init__(self, spaces: Spaces, home: Path) -> None:
        self.spaces = spaces
        self.home = home
        self._sshd: subprocess.Popen[bytes] | None = None
        spaces.add("here", "far")
        spaces.wire(("here", "h0"), ("far", "f0"))
        spaces.address("here", "h0", f"{HERE}/24", f"{HERE6}/64")
        spaces.address("far", "f0", f"{FAR}/24", f"{FAR6}/64")
        self._make_keys()
        self.configure()
        self.start_sshd()

    @property
    def search_path(self) -> str:
        return f"{self.home}/bin:{PATH}"

    def _make_keys(self) -> None:
        (self.home / "bin").mkdir(parents=True)
        for name in ("host_key", "client_key", "other_key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.home / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        (self.home / "client_key.pub").chmod(0o644)
        shadow = Path("/etc/shadow").read_text().splitlines()
        fields = next(line for line in shadow if line.startswith("root:")).split(":")
        # a root whose password is locked may not log in, not even by key
        (self.home / "shadow").write_text(":".join([fields[0], "*", *fields[2:]]) + "\n")
        wrapper = self.home / "bin/ssh"
        wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.home}/config "$@"\n')
        wrapper.chmod(0o755)

    def configure(
        self, *, host_key: str | None = "host_key", key: str = "client_key", client: str = "", address: str = FAR
    ) -> None:
        """Which host key is known here (None: none at all), the key to log in with, and more for the client."""
        words = (self.home / f"{host_key}.pub").read_text().split()[:2] if host_key else []
        known = f"{FAR},{FAR6} {' '.join(words)}\n" if words else ""
        (self.home / "known_hosts").write_text(known)
        (self.home / "config").write_text(client + _CLIENT.format(address=address, home=self.home, key=key))

    def start_sshd(self, more: str = "") -> None:
        (self.home / "sshd_config").write_text(_SSHD.format(home=self.home) + more)
        shadow, log, config = (shlex.quote(str(self.home / name)) for name in ("shadow", "sshd.log", "sshd_config"))
        script = (
            "mount -t tmpfs none /run && mkdir -p /run/sshd && "
            f"mount --bind {shadow} /etc/shadow && exec {SSHD} -D -E {log} -f {config}"
        )
        words = ["ip", "netns", "exec", self.spaces.name("far"), "sh", "-c", script]
        self._sshd = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        for _ in range(200):
            if self.inside(answers):
                return
            time.sleep(0.05)
        raise AssertionError((self.home / "sshd.log").read_text())

    def stop_sshd(self) -> None:
        """The server, and every session of it."""
        if self._sshd is None:
            return
        self._sshd.kill()
        self._sshd.wait()
        self._sshd = None
        for name in SSH_SERVERS:
            for pid in self.processes(name):
                os.kill(pid, signal.SIGKILL)

    def inside(self, function: Callable[[], T], space: str = "here") -> T:
        return self.spaces.inside(space, function)

    def peer(self, address: str = FAR) -> SecondHostPeer:
        """As `find_peer` finds it from ``here``."""
        return self.inside(lambda: find_peer(live_host(), self.ssh(), "far", address, Stop()))

    def ssh(self) -> Ssh:
        return Ssh(search_path=self.search_path)

    def runner(self, peer: SecondHostPeer | None = None) -> NetworkFio:
        made = peer or SecondHostPeer("far", FAR, HERE, "h0", "fio-3.33")
        return NetworkFio(live_host(), made, self.ssh(), search_path=PATH)

    def processes(self, name: str, space: str = "far") -> list[int]:
        """Processes of that name in the space."""
        words = ["ip", "netns", "pids", self.spaces.name(space)]
        found = []
        for word in subprocess.run(words, capture_output=True, text=True, check=True).stdout.split():
            try:
                state = Path(f"/proc/{word}/stat").read_text()
            except OSError:
                continue
            if state[state.find("(") + 1 : state.rfind(")")] == name and state.rpartition(")")[2].split()[0] != "Z":
                found.append(int(word))
        return found

    def open_ports(self, space: str = "far") -> set[int]:
        """Local ports in use in the space, but for ssh's own."""
        from advisor.proof.network import parse_bound_ports

        def read() -> set[int]:
            tables = [Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6", "udp", "udp6")]
            return {port for table in tables for port in parse_bound_ports(table)}

        return self.inside(read, space) - {22}

    def left_over(self) -> list[str]:
        """fio processes and open ports at either end."""
        found = [f"{space}: fio {pid}" for space in ("here", "far") for pid in self.processes("fio", space)]
        return found + [f"{space}: port {port}" for space in ("here", "far") for port in self.open_ports(space)]

    def remove(self) -> None:
        self.stop_sshd()
        for space in ("here", "far"):
            for name in ("fio", "timeout", "ssh", "sh", "cat"):
                for pid in self.processes(name, space):
                    os.kill(pid, signal.SIGKILL)


def answers() -> bool:
    """Whether ssh's port of the far host can be reached from here."""
    try:
        with socket.create_connection((FAR, 22), timeout=1):
            return True
    except OSError:
        return False


def eventually(holds: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait until it holds; fails where that never comes."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)
