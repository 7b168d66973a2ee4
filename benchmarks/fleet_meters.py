"""What a command over test hosts costs, on the controller's side and on that of the hosts.

A process belongs to the side that started it: a command runs below a process that takes in whatever its descendants
leave behind (``PR_SET_CHILD_SUBREAPER``), so that the kernel's own sum of CPU time holds Ansible's workers, ssh and the
masters of shared connections, which outlive the command. The hosts' side is what runs below the first process of each.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.fleet.hosts import Hosts
from tests.forked import forked

_PR_SET_CHILD_SUBREAPER: Final = 36
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_BETWEEN_SAMPLES_SECONDS: Final = 0.4
ROLES: Final = ("advisor", "ansible", "worker", "receiver", "ssh", "other")


class Memory(NamedTuple):
    """Proportional set size in bytes of the whole tree, and by role, at the moment at which the sum was largest.

    ``advisor`` and ``ansible`` (the one that forks the workers) are one process each; there are as many of the others
    as hosts at a time, and of ssh also the masters of connections that are kept open.
    """

    total: int
    roles: Mapping[str, int]
    processes: Mapping[str, int]
    highest: Mapping[str, int]
    """By role, the largest sum at any moment."""


class Cost(NamedTuple):
    """One command. CPU in seconds, of all processes together; bytes and files are sums over the hosts.

    ``sent`` and ``received`` are the controller's, with all headers; ``between`` is what hosts sent to each other.
    """

    code: int
    wall: float
    load: float
    cpu: float
    largest_process: int
    memory: Memory
    hosts_cpu: float
    hosts_memory: int
    sent: int
    received: int
    between: int
    kept_bytes: int
    kept_files: int
    said: str


def measure_cost(hosts: Hosts, words: Sequence[str | Path], more: Mapping[str, str] | None = None) -> Cost:
    """Run a program on the controller's side to its end, and what it leaves behind to theirs."""
    cpu, wire, kept = hosts_cpu(hosts), hosts.wire_bytes(), _kept_files(hosts)
    began = time.monotonic()
    code, controller_cpu, largest, memory, hosts_memory = forked(lambda: _watch_command(hosts, words, more or {}))
    wall = time.monotonic() - began
    sent, received, between = (after - before for after, before in zip(hosts.wire_bytes(), wire, strict=True))
    files, size = (after - before for after, before in zip(_kept_files(hosts), kept, strict=True))
    said = (hosts.home / "said.out").read_text() + (hosts.home / "said.err").read_text()[-2000:]
    return Cost(
        code, wall, os.getloadavg()[0], controller_cpu, largest, memory, hosts_cpu(hosts) - cpu, hosts_memory,
        sent, received, between, size, files, said,
    )  # fmt: skip


def _watch_command(
    hosts: Hosts, words: Sequence[str | Path], more: Mapping[str, str]
) -> tuple[int, float, int, Memory, int]:
    """In a process of its own: the exit code, CPU seconds, the largest resident set, the memory of both sides."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with (hosts.home / "said.out").open("wb") as out, (hosts.home / "said.err").open("wb") as err:
        process = subprocess.Popen(
            hosts.words(*words), env={**hosts.environment, **more}, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
    best, highest, on_hosts = Memory(0, {}, {}, {}), dict.fromkeys(ROLES, 0), 0
    while process.poll() is None:
        now = _measure_memory(os.getpid())
        highest = {role: max(highest[role], now.roles.get(role, 0)) for role in ROLES}
        if now.total > best.total:
            best, on_hosts = now, sum(_pss_bytes(pid) for top in hosts.tops() for pid in find_descendants(top))
        time.sleep(_BETWEEN_SAMPLES_SECONDS)
    _end_descendants()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, memory = used.ru_utime + used.ru_stime, best._replace(highest=highest)
    return process.returncode, cpu, used.ru_maxrss * 1024, memory, on_hosts


def _end_descendants() -> None:
    """End what the command left behind, and take it in, which adds its CPU time to ours."""
    for pid in find_descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            return
    raise AssertionError("something does not end on the controller's side")


def _measure_memory(top: int) -> Memory:
    roles, processes = dict.fromkeys(ROLES, 0), dict.fromkeys(ROLES, 0)
    playbooks: set[int] = set()
    for pid, parent in _with_parents(top):
        role = _process_role(_command_line(pid))
        if role == "ansible":
            role = "worker" if parent in playbooks else "ansible"
            playbooks.add(pid)
        # What has just been started shares the memory of who started it (vfork) until it is another program.
        is_one = role in ("advisor", "ansible")
        roles[role] = max(roles[role], _pss_bytes(pid)) if is_one else roles[role] + _pss_bytes(pid)
        processes[role] += 1
    return Memory(sum(roles.values()), roles, processes, {})


def _process_role(command: str) -> str:
    if "fleet receive" in command:
        return "receiver"
    if "-m advisor" in command:
        return "advisor"
    if "bin/ansible" in command:
        return "ansible"
    return "ssh" if command.startswith("ssh") else "other"


def hosts_cpu(hosts: Hosts) -> float:
    """CPU seconds that the hosts have used since they are up: what runs there, and what ended and was waited for."""
    return sum(_cpu_ticks(pid) for top in hosts.tops() for pid in find_descendants(top)) / _TICKS


def find_descendants(top: int) -> list[int]:
    """The processes below one, without it."""
    return [pid for pid, _ in _with_parents(top)]


def _with_parents(top: int) -> Iterator[tuple[int, int]]:
    waiting = [top]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                for child in Path(f"/proc/{parent}/task/{task}/children").read_text().split():
                    waiting.append(int(child))
                    yield int(child), parent


def _cpu_ticks(pid: int) -> int:
    """In ticks: utime, stime, cutime, cstime (proc_pid_stat(5), fields 14 to 17)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


def _pss_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def command_lines() -> Iterator[tuple[int, str]]:
    """Of every process of this machine but our own."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            yield int(name), _command_line(int(name))


def _kept_files(hosts: Hosts) -> tuple[int, int]:
    """Files in the controller's state directory, and their bytes."""
    sizes = [path.stat().st_size for path in (hosts.home / "state").rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)
