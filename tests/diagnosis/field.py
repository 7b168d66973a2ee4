"""Situations as administrators meet them, and busy hosts that resemble them: the counters as their kernels print them.

Unlike `tests.diagnosis.hidden` these were written from what the kernel documents of each file, without a look at what
the causes ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.diagnosis.hidden import Hidden
from tests.diagnosis.moments import Machine, Process

Made = Callable[[float], Machine]


def since_boot(make: Made) -> Made:
    """A machine by the seconds since its counters began: a span has those since its own beginning."""
    return lambda at: make(1000 + at)


def _kernel_thread(name: str, cpu: float = 0.99) -> Process:
    return Process(name, "", cpu=cpu, chars=0, read=0, cgroup="/", of_kernel=True)


MET: dict[str, Hidden] = {
    "one thread on one CPU, by a kernel that knows no PSI": Hidden(
        Machine(
            cpus=8,
            psi=False,
            version1=True,
            users=(0.02, 0.02, 0.99, 0.02, 0.02, 0.02, 0.02, 0.02),
            system=0,
            running=2,
            processes=(Process(), Process("perl", "batch.service", cpu=1.0)),
        ),
        "application.single-thread",
        never="cpu.affinity",
    ),
    "twice as many tasks as CPUs, by a kernel that knows no PSI": Hidden(
        Machine(cpus=8, psi=False, version1=True, user=0.97, running=17), "cpu.saturated"
    ),
}

LOOK_ALIKES: dict[str, Machine | Made] = {
    "a build with as many jobs as CPUs, by a kernel that knows no PSI": Machine(
        cpus=8, psi=False, version1=True, user=0.96, system=0.02, running=9
    ),
    "64 busy CPUs and one task more": Machine(cpus=64, psi=False, version1=True, user=0.95, system=0.02, running=66),
    "a build with as many jobs as CPUs": Machine(cpus=8, user=0.95, cpu_some=0.07, running=9),
}
