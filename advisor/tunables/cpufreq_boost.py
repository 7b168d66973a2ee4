"""``cpufreq:boost`` — whether CPUs may go above their nominal clock, 0 or 1, persisted in a line of tmpfiles.d.

The switch of the drivers acpi-cpufreq, amd_pstate and cppc_cpufreq; that of intel_pstate is intel_pstate:no_turbo.
"""

from __future__ import annotations

from advisor.host import Host, Missing
from advisor.tunables.cpufreq_policy import CPUFREQ
from advisor.tunables.preflight import Preflight
from advisor.tunables.tmpfiles_line import WrittenAtBoot
from advisor.tunables.tunable import UnknownIdError


class CpuBoost(WrittenAtBoot, frozen=True):
    id_form = "cpufreq:boost"

    @classmethod
    def parse(cls, rest: str) -> CpuBoost:
        if rest != "boost":
            raise UnknownIdError(rest, kind="cpufreq", hint="write cpufreq:boost")
        return cls()

    @property
    def path(self) -> str:
        return f"{CPUFREQ}/boost"

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        if missing.is_absent and host.is_dir("/sys/devices/system/cpu/intel_pstate"):
            return Missing("absent", "the driver intel_pstate has intel_pstate:no_turbo in its place")
        return Missing("absent", "no driver with such a switch runs here") if missing.is_absent else missing

    def check_value(self, value: str) -> str | None:
        return None if value in ("0", "1") else "is not 0 or 1"

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        return Preflight(refusal=self.explain_unwritable(host), state="not-applicable")
