"""``sched:KEY`` — a value of the kernel's scheduler below /sys/kernel/debug/sched, persisted in a line of tmpfiles.d.

Until Linux 5.12 these were sysctls, kernel.sched_KEY (kernel.numa_balancing_KEY for numa_balancing/KEY): a plan for
such a kernel has the sysctl in its place. debugfs is for root alone, and closed where the kernel is locked down (Secure
Boot). Linux 6.6 dropped latency_ns, wakeup_granularity_ns and idle_min_granularity_ns with the CFS scheduler, and has
base_slice_ns for min_granularity_ns, which counts otherwise. At boot systemd-tmpfiles writes the line where debugfs is
mounted by then; systemd mounts it early, but nothing orders the two.
"""

from __future__ import annotations

import re

import msgspec

from advisor.host import Host, Missing
from advisor.tunables.kernel_file import NamedAttribute
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.preflight import Preflight
from advisor.tunables.sysctl import sysctl_path

DIRECTORY = "/sys/kernel/debug/sched"
_BALANCING = "numa_balancing/"
_DROPPED = {
    "latency_ns": "nothing has its place",
    "wakeup_granularity_ns": "nothing has its place",
    "idle_min_granularity_ns": "nothing has its place",
    "min_granularity_ns": "sched:base_slice_ns is nearest, and counts otherwise",
}
_NUMBERS = (
    *("migration_cost_ns", "nr_migrate", "base_slice_ns", "tunable_scaling", *_DROPPED),
    *(f"{_BALANCING}{name}" for name in ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "scan_size_mb")),
)
_PREEMPT = "preempt"
KEYS = (*_NUMBERS, _PREEMPT)


class SchedDebug(NamedAttribute, frozen=True):
    kind = "sched"
    directory = DIRECTORY
    names = KEYS
    holds_count = True

    @property
    def value_form(self) -> str:
        return "choice" if self.name == _PREEMPT else "words"

    @property
    def sysctl(self) -> str:
        """The key that it was until Linux 5.12."""
        if self.name.startswith(_BALANCING):
            return f"kernel.numa_balancing_{self.name.removeprefix(_BALANCING)}"
        return f"kernel.sched_{self.name}"

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        return (f"sysctl:{self.sysctl}",) if host.exists(sysctl_path(self.sysctl)) else (self.id,)

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        lockdown = host.read_or_empty("/sys/kernel/security/lockdown")
        if re.search(r"\[(integrity|confidentiality)\]", lockdown):
            return Missing("unreadable", f"debugfs is closed, as the kernel is locked down: {lockdown}")
        if not missing.is_absent:
            return Missing(missing.state, f"{missing.why} (debugfs is for root alone)")
        if not host.names("/sys/kernel/debug"):
            if not host.is_root:
                return Missing("unreadable", "debugfs is for root alone")
            return Missing("absent", "debugfs is not mounted: mount -t debugfs none /sys/kernel/debug")
        if self.name in _DROPPED and host.exists(f"{DIRECTORY}/base_slice_ns"):
            why = "this kernel's scheduler (EEVDF, since Linux 6.6) has dropped it"
            return Missing("absent", f"{why}; {_DROPPED[self.name]}")
        return Missing("absent", "this kernel has no such value of its scheduler")

    def check_value(self, value: str) -> str | None:
        if self.name == _PREEMPT:
            return None if value in ("none", "voluntary", "full", "lazy") else "is not none, voluntary, full or lazy"
        return None if re.fullmatch(r"0|[1-9][0-9]{0,12}", value) else "is not a whole number"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        masked = host.readlink("/etc/systemd/system/sys-kernel-debug.mount")
        note = "sys-kernel-debug.mount is masked: at boot debugfs is not there to write into, unless fstab mounts it"
        found = super().run_preflight(host, before, after)
        return msgspec.structs.replace(found, state="not-applicable", notes=(note,) if masked == "/dev/null" else ())


KIND = Kind(
    name="sched",
    order=130,
    parse=SchedDebug.parse,
    noun="scheduler value",
    examples=(("sched:migration_cost_ns", "5000000"),),
    capture=Capture(
        files=(
            (DIRECTORY, ("*_ns", "*_us", "tunable_scaling", "nr_migrate", _PREEMPT)),
            (f"{DIRECTORY}/numa_balancing", ("*_ms", "*_mb")),
        ),
        listed=("/sys/kernel/debug", DIRECTORY),
        values={f"sched:{key}": "full" if key == _PREEMPT else "1" for key in KEYS},
    ),
    written_by=frozenset({"tuned"}),
)
