"""Hosts for a test, on this machine: each in namespaces of its own (network, mounts, processes, hostname), with an sshd
of its own, and a controller's side on the same wire.

Nothing of the machine's own is changed and nothing is named system-wide: a host is a process, and when it ends the
kernel takes all of it away. What a host may write to is its own: /etc, /var/lib, /root, /home, /run, /tmp and the
settings of its network. There is no Python on it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from tests.cases import read_cases
from tests.forked import forked
from tests.waiting import until

DATA = read_cases(__file__)

T = TypeVar("T")

BOOT: Final = Path(__file__).parent / "boot.sh"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIRST: Final = 11  # 192.0.2.11 is the first host; .1 the controller
_NEWNET: Final = 0x40000000
_LEARNING_AT_MOST: Final = 16
"""More hosts than this are given each other's cards: the kernel has one table of neighbours for all namespaces of a
machine (1,024 of them, neigh/default/gc_thresh3), and hosts that learn of each other fill it for everybody."""
_libc = ctypes.CDLL(None, use_errno=True)

_SSHD = DATA["_SSHD"]
_SSH = DATA["_SSH"]

# Login shells that interfere, as $SHELL -c COMMAND.
SHELLS: Final = DATA["SHELLS"]


@dataclass(frozen=True)
class Kind:
    """How a host differs from a plain one.

    ``fault``: "unreachable" (an address that nobody has), "refuses" (no sshd), "slow", "garbage", "truncated",
    "endless", "noise" or "silent" (what the login shell does). ``user`` other than root has neither sudo nor a
    password; with ``sudo_password`` the stand-in for sudo asks for it, "" asks for none. ``files`` lie over the
    machine's own, by path; ``etc`` are files of its /etc. ``links`` are more links with their MTU. ``clock`` is how
    many seconds its clock is ahead.
    """

    fault: str | None = None
    user: str = "root"
    sudo_password: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    etc: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, int] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    clock: int = 0
    machine_id: str | None = None
    has_python: bool = False
    variables: str = ""


def why_not() -> str | None:
    """Why there can be no test hosts here; None where there can."""
    missing = [name for name in ("ssh", "ssh-keygen", "unshare", "nsenter", "ip") if shutil.which(name) is None]
    if not os.path.exists("/usr/sbin/sshd"):
        missing.append("sshd (package openssh-server)")
    if missing:
        return f"not installed: {', '.join(missing)}"
    words = ["unshare", "--net", "--mount", "--uts", "--pid", "--ipc", "--fork", "true"]
    return None if subprocess.run(words, capture_output=True, check=False).returncode == 0 else "no namespaces here"


class Hosts:
    """``node01`` … ``nodeNN``, up when the block begins and gone without a trace when it ends."""

    def __init__(self, number: int, **kinds: Kind) -> None:
        assert FIRST + number < 255, "one subnet holds no more"
        self.names = tuple(f"node{index:02}" for index in range(1, number + 1))
        assert set(kinds) <= {*self.names}, kinds
        self.kinds = {name: kinds.get(name, Kind()) for name in self.names}
        self._numbers = {name: FIRST + place for place, name in enumerate(self.names)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._neighbours = ""

    def __enter__(self) -> Hosts:
        # A short path: a control socket of ssh has to fit into 108 bytes.
        self.home = Path(tempfile.mkdtemp(prefix="advh.", dir="/tmp"))
        self._undo = contextlib.ExitStack()
        self._undo.callback(shutil.rmtree, self.home, ignore_errors=True)
        try:
            self._make_keys()
            self._start_controller()
            self._make_homes()
            self.start(*(name for name in self.names if self.kinds[name].fault != "unreachable"))
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in [*self._processes]:
            self._end(name)
        self._undo.close()

    # The controller's side

    @property
    def environment(self) -> dict[str, str]:
        """For what runs on the controller: nothing of the caller's own home is read or written."""
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TERM", "PYTHONPATH") if name in os.environ}
        return {
            **kept,
            "PATH": PATH,
            "HOME": str(self.home),
            "ANSIBLE_HOME": str(self.home / "a"),
            "ANSIBLE_CONFIG": str(self.home / "ansible.cfg"),
            "ANSIBLE_LOCAL_TEMP": str(self.home / "a/tmp"),
            "ANSIBLE_TIMEOUT": "3",
            "ADVISOR_STATE_DIR": str(self.home / "state"),
            "TMPDIR": str(self.home / "tmp"),
        }

    def inside(self, function: Callable[[], T]) -> T:
        """What the function returns (or raises) in a child process on the controller's side of the wire."""

        def enter() -> None:
            self._enter_network()
            os.environ.clear()
            os.environ.update(self.environment)
            tempfile.tempdir = None

        return forked(function, enter=enter)

    def run(
        self, *words: str | Path, stdin: str | None = None, more: Mapping[str, str] | None = None, timeout: float = 400
    ) -> subprocess.CompletedProcess[str]:
        """A program on the controller's side, to its end."""
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run(
            self.words(*words),
            env={**self.environment, **(more or {})},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
            **given,
        )

    def popen(self, *words: str | Path, more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """A program on the controller's side, in a session of its own; the caller ends it."""
        return subprocess.Popen(
            self.words(*words),
            env={**self.environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def inventory(self, *, more: str = "", names: Sequence[str] | None = None) -> Path:
        """An inventory of all hosts (or of those named), in the group ``storage``; ``more`` are further lines."""
        lines = [self._inventory_line(name) for name in names or self.names]
        path = self.home / "inventory.ini"
        path.write_text("[storage]\n" + "\n".join(lines) + f"\n{more}\n")
        return path

    def _inventory_line(self, name: str) -> str:
        kind = self.kinds[name]
        become = " ansible_become=true" if kind.sudo_password is not None else ""
        return f"{name} ansible_host={self.address(name)} ansible_user={kind.user}{become} {kind.variables}".rstrip()

    def address(self, name: str) -> str:
        return f"192.0.2.{self._number(name)}"

    def controller_processes(self) -> list[int]:
        """Processes on the controller's side, without the one that holds it open."""
        space = os.stat(f"/proc/{self._controller}/ns/net").st_ino
        return [pid for pid in _pids() if pid != self._controller and _namespace(pid, "net") == space]

    # The hosts

    def start(self, *names: str) -> None:
        """Bring hosts up, all at a time."""
        for name in names:
            self._launch(name)
        for name in names:
            self._wire(name)
        for name in names:
            self._await(name)

    def pid(self, name: str) -> int:
        """The first process of a host, as this machine numbers it."""
        parent = self._processes[name].pid
        return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])

    def root(self, name: str) -> Path:
        """The files of a host that is up."""
        return Path(f"/proc/{self.pid(name)}/root")

    def tops(self) -> list[int]:
        """The processes of this machine below which the hosts that are up run, one for each."""
        return [process.pid for process in self._processes.values()]

    def wire_bytes(self) -> tuple[int, int, int]:
        """Bytes since the wires are there, with Ethernet headers: those that the controller sent, those that it
        received, and those that the hosts sent to each other (or to all, which reaches the controller as well)."""
        lines = (line.partition(":") for line in Path(f"/proc/{self._controller}/net/dev").read_text().splitlines()[2:])
        counted = {name.strip(): [int(text) for text in counters.split()] for name, _, counters in lines}
        received, sent = counted["br0"][0], counted["br0"][8]
        return sent, received, sum(one[0] for name, one in counted.items() if name[1:].isdecimal()) - received

    def shell(self, name: str, command: str, *, check: bool = True) -> str:
        """What a command of root prints on a host."""
        words = ["nsenter", "-t", str(self.pid(name)), "--all", "/bin/sh", "-c", command]
        env = {"PATH": PATH, "HOME": "/root"}
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, f"{name}: {command}: {done.stderr}"
        return done.stdout

    def processes(self, name: str) -> list[str]:
        """The command lines of what runs on a host."""
        space = _namespace(self.pid(name), "pid")
        return [_command_line(pid) for pid in _pids() if _namespace(pid, "pid") == space]

    def kill(self, name: str) -> None:
        """The power goes: every process of it is gone at once, and its end of the wire with it."""
        self._end(name)
        # The kernel takes a namespace apart in its own time.
        self._ip("link", "delete", f"h{self._number(name)}", check=False)

    def _end(self, name: str) -> None:
        process = self._processes.pop(name)
        with contextlib.suppress(OSError, IndexError, ValueError):
            os.kill(
                int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]), signal.SIGKILL
            )
        process.kill()
        process.wait()

    def reboot(self, name: str) -> None:
        """As after a power cut: /etc, /var/lib and /root are as they were, /run, /tmp and live settings are not."""
        if name in self._processes:
            self.kill(name)
        self.start(name)

    def kill_sshd(self, name: str) -> None:
        """The server and every session of it; what they started goes on."""
        space = _namespace(self.pid(name), "pid")
        for pid in _pids():
            if _namespace(pid, "pid") == space and _command_line(pid).split(" ")[0].lstrip("/").startswith(
                ("usr/sbin/sshd", "sshd", "usr/lib/openssh/sshd")
            ):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def start_sshd(self, name: str) -> None:
        self.shell(name, "setsid /usr/sbin/sshd -E /mnt/base/sshd.log -f /mnt/base/sshd_config")

    # How they are made

    def _number(self, name: str) -> int:
        return self._numbers[name]

    def words(self, *words: str | Path) -> list[str]:
        """The arguments that start a program on the controller's side."""
        # Python starts it from inside the network namespace alone: files and processes are the machine's.
        return ["nsenter", "-t", str(self._controller), "--net", "--", *map(str, words)]

    _words = words

    def _enter_network(self) -> None:
        fd = os.open(f"/proc/{self._controller}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if _libc.setns(fd, _NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        os.close(fd)

    def _ip(self, *words: str, check: bool = True) -> None:
        done = subprocess.run(self.words("ip", *words), capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, f"ip {' '.join(words)}: {done.stderr}"

    def _make_keys(self) -> None:
        for name in ("host_key", "client_key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.home / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        public = " ".join((self.home / "host_key.pub").read_text().split()[:2])
        (self.home / "known_hosts").write_text(f"192.0.2.*,2001:db8:77::* {public}\n")
        (self.home / "ssh_config").write_text(_SSH.format(home=self.home))
        (self.home / "tmp").mkdir()
        (self.home / "ansible.cfg").write_text(f"[ssh_connection]\nssh_common_args = -F {self.home}/ssh_config\n")

    def _start_controller(self) -> None:
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "100000"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        self._undo.callback(process.wait)
        self._undo.callback(process.kill)
        self._controller = process.pid
        own = os.stat("/proc/self/ns/net").st_ino
        until(lambda: _namespace(process.pid, "net") not in (own, None) and "sleep" in _command_line(process.pid))
        self._undo.callback(self._end_controller_processes)
        self._ip("link", "set", "lo", "up")
        self._ip("link", "add", "br0", "address", _card(1), "type", "bridge")
        self._ip("address", "add", "192.0.2.1/24", "dev", "br0")
        self._ip("address", "add", "2001:db8:77::1/64", "dev", "br0", "nodad")
        self._ip("link", "set", "br0", "up")
        if len(self.names) > _LEARNING_AT_MOST:
            numbers = [self._number(name) for name in self.names]
            self._neighbours = "".join(f"{_neighbour(number)} dev eth0 nud permanent\n" for number in (1, *numbers))
            for number in numbers:
                self._ip("neighbour", "replace", *_neighbour(number).split()[2:], "dev", "br0", "nud", "permanent")

    def _end_controller_processes(self) -> None:
        """Masters of shared connections, which ssh leaves behind for a while."""
        for pid in self.controller_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _make_homes(self) -> None:
        for name in self.names:
            _make_home(self.home / name, self.home, self.kinds[name], name)

    def _launch(self, name: str) -> None:
        home = self.home / name
        (home / "up").unlink(missing_ok=True)
        boot_id = Path("/proc/sys/kernel/random/uuid").read_text()
        (home / "boot").mkdir(exist_ok=True)
        (home / "boot/boot_id").write_text(boot_id)
        (home / "neighbours").write_text(self._neighbours)
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--uts", "--pid", "--ipc", "--fork"]
        words += ["--kill-child", "--mount-proc", "/bin/sh", str(BOOT), str(home), name, str(self._number(name))]
        with (home / "boot.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": PATH}, start_new_session=True
            )

    def _wire(self, name: str) -> None:
        own = os.stat("/proc/self/ns/net").st_ino
        until(lambda: self._has_child(name) and _namespace(self.pid(name), "net") not in (own, None))
        end = f"h{self._number(name)}"
        # The wire itself takes large packets; how large ones a host sends is its own setting.
        words = ["link", "add", end, "mtu", "9000", "master", "br0", "up", "type", "veth"]
        # The same card after a reboot, as the neighbours remember it.
        card = ("eth0", "address", _card(self._number(name)), "mtu", "1500")
        self._ip(*words, "peer", "name", *card, "netns", str(self.pid(name)))

    def _has_child(self, name: str) -> bool:
        parent = self._processes[name].pid
        assert self._processes[name].poll() is None, (self.home / name / "boot.log").read_text()
        return bool(Path(f"/proc/{parent}/task/{parent}/children").read_text().split())

    def _await(self, name: str) -> None:
        home = self.home / name

        def is_up() -> bool:
            assert self._processes[name].poll() is None, (home / "boot.log").read_text()
            return (home / "up").exists() and (
                (home / "no-sshd").exists() or self.inside(lambda: _answers(self.address(name)))
            )

        until(is_up)


def _make_home(home: Path, common: Path, kind: Kind, name: str) -> None:
    """The files of a host, before it is up."""
    home.mkdir()
    subprocess.run(["cp", "-a", "/etc", str(home / "etc")], check=True)
    for directory in ("lib/advisor", "root", "over", "bin"):
        (home / directory).mkdir(parents=True)
    for key in ("host_key", "client_key.pub"):
        shutil.copy(common / key, home / key)
    (home / "host_key").chmod(0o600)
    (home / "client_key.pub").chmod(0o644)
    (home / "sshd_config").write_text(_SSHD)
    (home / "links").write_text("".join(f"{link} {mtu}\n" for link, mtu in kind.links.items()))
    etc = {
        "machine-id": f"{kind.machine_id or os.urandom(16).hex()}\n",
        "hostname": f"{name}\n",
        "motd": "",
        **_accounts(kind),
        **kind.etc,
    }
    for relative, content in etc.items():
        place = home / "etc" / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    if kind.fault == "refuses":
        (home / "no-sshd").touch()
    _make_overlays(home, kind)


def _accounts(kind: Kind) -> dict[str, str]:
    shell = "/etc/advisor-test-shell" if kind.fault in SHELLS else "/bin/sh"
    passwd = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
    shadow = [line for line in Path("/etc/shadow").read_text().splitlines() if not line.startswith("root:")]
    found = {
        "passwd": "\n".join(
            [f"root:x:0:0:root:/root:{shell}", *passwd, f"keeper:x:1234:1234::/home/keeper:{shell}", ""]
        ),
        # One whose password is locked may not log in, not even by key.
        "shadow": "\n".join(["root:*:19000:0:99999:7:::", *shadow, "keeper:*:19000:0:99999:7:::", ""]),
    }
    if kind.sudo_password is not None:
        found["pam.d/su"] = "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n"
    return found


# What Ansible asks of sudo: -H -S [-n] -p PROMPT -u root COMMAND. The password comes on standard input.
_SUDO = DATA["_SUDO"]

# The clock of a namespace cannot be set: what is asked for the time says another one.
_DATE = DATA["_DATE"]


def _make_overlays(home: Path, kind: Kind) -> None:
    """Files that lie over the machine's own, and programs: on the search path first."""
    over = {**kind.files}
    if not kind.has_python:
        for path in (*Path("/usr/bin").glob("python3*"), *Path("/usr/local/bin").glob("python*")):
            if not path.is_symlink():
                over[str(path)] = "#!/bin/sh\necho 'there is no Python here' >&2\nexit 127\n"
    if kind.clock:
        shutil.copy("/usr/bin/date", home / "over/real-date")
        over["/usr/bin/date"] = _DATE.format(ahead=kind.clock)
    lines = []
    for number, (covered, content) in enumerate(over.items()):
        (home / f"over/{number}").write_text(content)
        (home / f"over/{number}").chmod(0o755)
        lines.append(f"{covered} {number}\n")
    programs = dict(kind.programs)
    if kind.sudo_password is not None:
        programs["sudo"] = _SUDO.format(password=shlex.quote(kind.sudo_password))
    if programs:
        for name, content in programs.items():
            (home / "bin" / name).write_text(content)
            (home / "bin" / name).chmod(0o755)
        lines.append("/usr/local/bin ../bin\n")
    (home / "over.list").write_text("".join(lines))
    if kind.fault in SHELLS:
        shell = home / "etc/advisor-test-shell"
        shell.write_text(f"#!/bin/sh\n{SHELLS[kind.fault]}\n")
        shell.chmod(0o755)


def _card(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def _neighbour(number: int) -> str:
    return f"neighbour replace 192.0.2.{number} lladdr {_card(number)}"


def _answers(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=1):
            return True
    except OSError:
        return False


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _namespace(pid: int, kind: str) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except OSError:
        return None


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
