"""``pm-qos:NAME`` — the time in which a CPU wakes up, in microseconds, held by a unit of systemd that we write.

NAME is cpu_dma_latency (the kernel's Documentation/power/pm_qos_interface). The kernel keeps a value as long as a
process holds /dev/cpu_dma_latency open, and goes by the least of all that are held: one that is larger than what
another process holds would have no effect, and is not planned. 2000000000 is what it reads when nobody holds any. A low
value keeps all CPUs out of their deep idle states: they draw more power at all times and boost less.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, Probe, ReadCommand, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kind import Capture, Kind, Tunable
from advisor.tunables.preflight import Preflight

NAME = "cpu_dma_latency"
DEVICE = f"/dev/{NAME}"
NOBODY = 2_000_000_000
"""PM_QOS_CPU_LATENCY_DEFAULT_VALUE of the kernel, in microseconds."""

_UNIT = "advisor-cpu-dma-latency"
_PATH = f"/etc/systemd/system/{_UNIT}.service"
_TARGET = f"/etc/systemd/system/multi-user.target.d/50-{_UNIT}.conf"
# Type=forking: when systemd calls it started, the value is written and a process of its own holds the file.
_HOLD = f"exec 3> {DEVICE} && printf {{}} >&3 && {{{{ sleep infinity & }}}}"
_SLICES = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
_FRESH = f"""\
# Holds a limit on the time in which CPUs wake up: the kernel keeps it as long as a process has the file open.
[Unit]
Description=Limit of the wake-up latency of CPUs

[Service]
Type=forking
ExecStart=/bin/sh -c '{_HOLD.format('"$$CPU_DMA_LATENCY"')}'
"""
_STOP = (RunCommand(("systemctl", "stop", f"{_UNIT}*.service")),)


class PmQos(Tunable, frozen=True):
    name: str

    kind = "pm-qos"
    id_form = "pm-qos:{self.name}"

    id_pattern = lazy_regex(f"(?P<name>{NAME})")
    id_hint = f"write pm-qos:{NAME}"

    @property
    def probe(self) -> Probe:
        # Four bytes in the host's own order; reading asks the kernel for nothing.
        return ReadCommand(("od", "-A", "n", "-t", "d4", DEVICE), "number")

    def check_value(self, value: str) -> str | None:
        fits = re.fullmatch(r"0|[1-9][0-9]{0,9}", value) and int(value) <= NOBODY
        return None if fits else f"is not a whole number of microseconds from 0 to {NOBODY}"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        words = ("/bin/sh", "-c", _HOLD.format(_to_hexadecimal(value)))
        unit = (f"--unit={_UNIT}-now", "--property=Type=forking", "--property=DefaultDependencies=no")
        return (*_STOP, RunCommand(("systemd-run", "--quiet", "--collect", *unit, *words)))

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        reload = (RunCommand(("systemctl", "daemon-reload")),)
        pulled = FileEdit(_TARGET, "section", "Unit/", f"Wants={_UNIT}.service", reload=reload)
        setting = f"Environment=CPU_DMA_LATENCY={_to_hexadecimal(value)}"
        return FileEdit(_PATH, "section", "Service/", setting, _FRESH.encode(), reload=reload, also=(pulled,))

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        if host.is_live and not host.exists(DEVICE):
            return Missing("absent", f"this kernel has no {DEVICE}")
        return missing

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if not host.is_dir("/run/systemd/system"):
            why = "systemd does not run here, and nothing else would hold the file open"
            return Preflight(refusal=why, state="not-applicable")
        is_ours = any(name.startswith(_UNIT) for directory in _SLICES for name in host.names(directory))
        if int(before) < int(after) and not is_ours:
            why = f"another process holds {before} µs, and the least counts: {after} µs would have no effect"
            return Preflight(refusal=why, state="not-applicable")
        return Preflight(undo=self.make_steps(before) if is_ours else _STOP)


def _to_hexadecimal(value: str) -> str:
    """As the kernel reads it from text: four bytes would be taken for a binary number."""
    return f"0x{int(value):08x}"


KIND = Kind(
    name="pm-qos",
    order=120,
    parse=PmQos.parse,
    noun="latency limit",
    examples=(("pm-qos:cpu_dma_latency", "10"),),
    capture=Capture(root_commands=(("od", "-A", "n", "-t", "d4", DEVICE),), values={"pm-qos:cpu_dma_latency": "0"}),
    written_by=frozenset({"tuned", "saptune"}),
    units=((r".*", "µs"),),
)
