"""A host of a network namespace with a pair of veth links and an /etc of its own, on which the real command runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from advisor.transaction.journal import Store
from tests.running import network_namespace, run_text
from tests.transaction.test_stacked_links import Namespace
from tests.trees import make_command
from tests.waiting import PATIENCE_SECONDS, until

ADVISOR: Final = str(Path(sys.executable).with_name("advisor"))

_PROFILE: Final = """\
name = "{name}"
title = "{name}"
summary = "A profile of a test."
helps-when = "In a test."
hurts-when = "Nowhere else."
sources = ["the test"]
"""
_VALUE: Final = """
[[tunables]]
tunable = "{tunable}"
value = "{value}"
why = "The test asks for it."
hurts-when = "Nowhere."
sources = ["the test"]
"""


class Done(subprocess.CompletedProcess[str]):
    """How a command ended; ``said`` is all that it printed."""

    @property
    def said(self) -> str:
        return self.stdout + self.stderr


class Veth(Namespace):
    """Links a0 (with addresses and routes) and b0, four queues each; profiles of any values in its own /etc."""

    def __init__(self, name: str, where: Path) -> None:
        super().__init__(name, where / "state")
        self.where = where
        subprocess.run(["cp", "-a", "/etc", str(where / "etc")], check=True)
        self.profiles = where / "etc/advisor/profiles"
        self.profiles.mkdir(parents=True, exist_ok=True)
        self.programs = where / "programs"
        # The daemon of this machine is not to read files that are not its own.
        make_command(self.programs, "udevadm", "exit 0")

    def profile(self, name: str, values: Mapping[str, str]) -> None:
        parts = (_VALUE.format(tunable=tunable, value=value) for tunable, value in values.items())
        (self.profiles / f"{name}.toml").write_text(_PROFILE.format(name=name) + "".join(parts))

    def words(self, *command: str) -> list[str]:
        """The command in the namespace, with its own /etc: ip-netns(8) gives each one its own mounts."""
        own = 'mount --bind "$0/etc" /etc && mount --bind "$0/programs" /usr/local/bin && exec "$@"'
        return ["ip", "netns", "exec", self.name, "sh", "-c", own, str(self.where), *command]

    def environment(self) -> dict[str, str]:
        return {"ADVISOR_STATE_DIR": str(self.store), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "COLUMNS": "80"}

    def call(self, *command: str) -> Done:
        done = subprocess.run(
            self.words(*command),
            capture_output=True, text=True, env=self.environment(), timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        return Done(done.args, done.returncode, done.stdout, done.stderr)

    def advisor(self, *words: str, code: int = 0) -> str:
        """What the command says; it has to end with ``code``."""
        done = self.call(ADVISOR, *words)
        assert done.returncode == code, done.said
        return done.said

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(ADVISOR, *words),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment(),
            start_new_session=True,
        )  # fmt: skip

    def sysctl(self, key: str) -> str:
        return run_text(["ip", "netns", "exec", self.name, "sysctl", "-n", key], check=True).stdout.strip()

    def ethtool(self, *words: str) -> str:
        command = ["ip", "netns", "exec", self.name, "ethtool", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def queue(self, name: str, value: str | None = None) -> str:
        """An attribute below ``/sys/class/net/a0/queues``; set first where a value is given."""
        path = f"/sys/class/net/a0/queues/{name}"
        command = f"cat {path}" if value is None else f"echo {value} > {path}; cat {path}"
        words = ["ip", "netns", "exec", self.name, "sh", "-c", command]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def has(self, name: str) -> bool:
        """Whether a0 has this below its directory in sysfs."""
        words = ["ip", "netns", "exec", self.name, "test", "-e", f"/sys/class/net/a0/{name}"]
        return subprocess.run(words, check=False).returncode == 0

    def standings(self) -> dict[str, str]:
        """The state of each transaction, by its id."""
        return {record.id: record.state for record in Store(str(self.store)).read_records()}

    def files(self) -> dict[str, bytes]:
        """What is below /etc, but for the profiles."""
        places = (path for path in sorted((self.where / "etc").rglob("*")) if path.is_file() and not path.is_symlink())
        return {str(path): path.read_bytes() for path in places if self.profiles not in path.parents}

    @contextlib.contextmanager
    def monitored(self, *links: str) -> Iterator[dict[str, list[int]]]:
        """The MTUs of links as the kernel announces them, filled when the block ends (rtnetlink(7), ``ip monitor``)."""
        found: dict[str, list[int]] = {}
        log = self.where / "monitor"
        with log.open("w") as file:
            process = subprocess.Popen(["ip", "-n", self.name, "-o", "monitor", "link"], stdout=file)
            try:
                # The MTU of another link says when it listens, and when it has heard all.
                until(lambda: self._is_heard(log, 65001))
                yield found
                until(lambda: self._is_heard(log, 65002))
            finally:
                process.terminate()
                process.wait()
        for link in links:
            said = re.findall(rf"^\d+: {link}[@:].*?\bmtu (\d+)", log.read_text(), re.MULTILINE)
            found[link] = [int(mtu) for mtu in said]

    def _is_heard(self, log: Path, mtu: int) -> bool:
        for one in (mtu, 65536):
            self.ip(f"link set lo mtu {one}")
        return f"mtu {mtu} " in log.read_text()

    def is_watched(self) -> bool:
        """Whether a watchdog of any of the transactions runs."""
        for path in self.store.glob("transactions/*/watching"):
            # Its watchdog removes it while it ends.
            with contextlib.suppress(FileNotFoundError):
                if Path(f"/proc/{path.read_text().strip()}").exists():
                    return True
        return False

    def forget(self) -> None:
        """All transactions, which are rolled back."""
        shutil.rmtree(self.store)

    def everything(self) -> dict[str, Any]:
        """All that a test may change, as the kernel and the files have it."""
        return {**self.settled(), "files": self.files()}


@contextlib.contextmanager
def veth(where: Path) -> Iterator[Veth]:
    """The host, for as long as the block lasts."""
    name = f"layers{os.getpid()}"
    with network_namespace(name):
        one = Veth(name, where)
        queues = "numtxqueues 4 numrxqueues 4"
        one.ip(f"link add a0 mtu 1500 {queues} type veth peer name b0 mtu 9000 {queues}")
        for link in ("lo", "a0", "b0"):
            one.ip(f"link set {link} up")
        one.ip("address add 192.0.2.1/24 dev a0")
        one.ip("address add 2001:db8:1::1/64 dev a0 nodad")
        one.ip("route add 198.51.100.0/24 via 192.0.2.254 dev a0 metric 7")
        one.ip("route add 2001:db8:99::/48 via 2001:db8:1::fe dev a0 metric 9")
        yield one
