"""Less to read, never a wrong answer: no root, no PSI, control groups of version 1, a container, a kernel of 2.6."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import read_context
from advisor.host import Host, MemoryFiles, Missing, RecordedCommands
from advisor.observe.network import CONNECTIONS
from advisor.observe.rates import take_sample
from advisor.observe.sample import CounterSpan
from tests.cases import read_cases
from tests.diagnosis.cases import CASES, WELL, Case
from tests.diagnosis.moments import Machine, diagnose_machine, files_at, host_at

DATA = read_cases(__file__)

Files = dict[str, str]


def as_container(files: Mapping[str, str]) -> Files:
    """No block devices, no interrupts of the host, the links of its own namespace; the rest is the host's."""
    hidden = ("/sys/block", "/proc/interrupts", "/sys/devices/system/edac", "/sys/class/infiniband")
    return {path: text for path, text in files.items() if not path.startswith(hidden)}


def as_kernel_26(files: Mapping[str, str]) -> Files:
    """What RHEL 5 prints: no PSI, no cgroups, fewer counters, 11 figures a disk, softnet without the CPU's number."""
    old = {path: text for path, text in files.items() if not path.startswith(("/proc/pressure", "/sys/fs/cgroup"))}
    old["/proc/version"] = "Linux version 2.6.18-398.el5\n"
    wanted = ("pgpg", "pswp", "pgmajfault", "nr_dirty ", "nr_writeback ")
    old["/proc/vmstat"] = "".join(f"{line}\n" for line in old["/proc/vmstat"].splitlines() if line.startswith(wanted))
    old["/proc/meminfo"] = "MemTotal: 16000000 kB\nMemFree: 2000000 kB\n"
    rows = (line.split()[:14] for line in old["/proc/diskstats"].splitlines())
    old["/proc/diskstats"] = "".join(f"{' '.join(row)}\n" for row in rows)
    rows = (line.split()[:9] for line in old["/proc/net/softnet_stat"].splitlines())
    old["/proc/net/softnet_stat"] = "".join(f"{' '.join(row)}\n" for row in rows)
    old["/proc/stat"] = re.sub(r"^softirq.*\n", "", old["/proc/stat"], flags=re.MULTILINE)
    return old


def diagnose_files(machine: Machine, change: Callable[[Mapping[str, str]], Files], *, tools: bool) -> Diagnosis:
    """The machine with other files and without instruments; ``tools`` says whether ss and ethtool answer."""

    def host(at: float) -> Host:
        whole = host_at(machine, at)
        files = {path: text.encode() for path, text in change(files_at(machine, at)).items()}
        commands = whole.commands if tools else RecordedCommands({CONNECTIONS: Missing("absent", "ss: not found")})
        return Host(MemoryFiles(files), commands)

    samples = [
        take_sample(host(1000.0 + second), whole=second in (0, 10), clock=lambda at=float(second): at)  # type: ignore[misc]
        for second in range(11)
    ]
    return diagnose(CounterSpan(samples), read_context(host(1000)), 0.0)


NARROWER = DATA["NARROWER"]
"""What may be answered where what is narrower cannot be seen: it is true of the same thing, and less exact."""

DEGRADED: dict[str, Callable[[Machine], Diagnosis]] = {
    "no PSI": lambda machine: diagnose_machine(replace(machine, psi=False)),
    "cgroups of version 1, no PSI": lambda machine: diagnose_machine(replace(machine, psi=False, version1=True)),
    "ordinary user": lambda machine: diagnose_files(machine, dict, tools=True),
    "container": lambda machine: diagnose_files(machine, as_container, tools=False),
    "kernel 2.6": lambda machine: diagnose_files(machine, as_kernel_26, tools=False),
}


@pytest.mark.parametrize("how", DEGRADED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_answered_is_right(case: Case, how: str) -> None:
    found = DEGRADED[how](case.machine)
    right = case.right.union(*(NARROWER.get(identity, set()) for identity in case.right))
    first = found.binds[0].id if found.binds else None
    assert first is None or first in right, [(one.id, one.device, one.share) for one in found.binds]


@pytest.mark.parametrize("how", DEGRADED)
@pytest.mark.parametrize(("name", "machine"), WELL, ids=[name for name, _ in WELL])
def test_less_to_read_is_no_alarm(name: str, machine: Machine, how: str) -> None:
    assert DEGRADED[how](machine).binds == ()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no PSI", "stalls (PSI)"),
        ("ordinary user", "processes"),
        ("container", "waits of TCP connections"),
        ("kernel 2.6", "stalls (PSI)"),
    ],
)
def test_what_could_not_be_read_is_said(how: str, says: str) -> None:
    assert says in {one.fact for one in DEGRADED[how](Machine()).unknown}


def test_controllers_that_are_mounted_together() -> None:
    """RHEL 7 mounts cpu,cpuacct; in a captured tree the links of each name may be missing."""
    case = next(one for one in CASES if one.name == "CPU quota of a service (version 1, no PSI)")

    def together(files: Mapping[str, str]) -> Files:
        return {path.replace("/cgroup/cpu/", "/cgroup/cpu,cpuacct/"): text for path, text in files.items()}

    assert [one.id for one in diagnose_files(case.machine, together, tools=True).binds] == ["cpu.quota"]
