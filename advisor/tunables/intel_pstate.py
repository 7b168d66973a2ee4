"""``intel_pstate:NAME`` — a setting of Intel's clock driver for all CPUs, persisted in a line of tmpfiles.d.

NAME is no_turbo (0 or 1), min_perf_pct or max_perf_pct (percent of the highest clock, turbo included), as in the
kernel's Documentation/admin-guide/pm/intel_pstate. The driver rounds a percentage up to what its lowest clock is.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, observe
from advisor.tunables.kernel_file import NamedAttribute
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.preflight import Preflight, SideEffect

DIRECTORY = "/sys/devices/system/cpu/intel_pstate"
NO_TURBO = "no_turbo"
LOWEST = "min_perf_pct"
HIGHEST = "max_perf_pct"


class IntelPstate(NamedAttribute, frozen=True):
    kind = "intel_pstate"
    directory = DIRECTORY
    names = (NO_TURBO, LOWEST, HIGHEST)
    holds_count = True

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        if not missing.is_absent:
            return missing
        driver = host.read_text("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver")
        runs = f"{driver} does" if driver else "no driver of cpufreq does"
        return Missing("absent", f"the driver intel_pstate does not run here, {runs}")

    def check_value(self, value: str) -> str | None:
        if self.name == NO_TURBO:
            return None if value in ("0", "1") else "is not 0 or 1"
        fits = re.fullmatch(r"0|[1-9][0-9]?|100", value)
        return None if fits else "is not a percentage from 0 to 100"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        other = {LOWEST: HIGHEST, HIGHEST: LOWEST}.get(self.name)
        # Without turbo a higher minimum is cut down to the nominal clock, and does not rise again by itself.
        cut = self._read_live(host, LOWEST) if self.name == NO_TURBO and before != after else None
        minimum = IntelPstate(LOWEST)
        live = self._read_live(host, other) if other else None
        return Preflight(
            refusal=self.explain_unwritable(host),
            state="not-applicable",
            side_effects=() if cut is None else (SideEffect(minimum.id, cut, minimum.probe, minimum.make_steps(cut)),),
            related=() if other is None or live is None else ((f"intel_pstate:{other}", live),),
        )

    @staticmethod
    def _read_live(host: Host, name: str) -> str | None:
        live = observe(host, IntelPstate(name).probe)
        return None if isinstance(live, Missing) else live


KIND = Kind(
    name="intel_pstate",
    order=110,
    parse=IntelPstate.parse,
    noun="clock setting",
    examples=(("intel_pstate:min_perf_pct", "100"),),
    capture=Capture(
        files=((DIRECTORY, ("*",)),),
        marked=(DIRECTORY,),
        values={"intel_pstate:no_turbo": "0", "intel_pstate:min_perf_pct": "100", "intel_pstate:max_perf_pct": "100"},
    ),
    written_by=frozenset({"tuned", "power-profiles-daemon"}),
    sysfs=((rf"{DIRECTORY}/([^/]+)", r"intel_pstate:\1"),),
)
