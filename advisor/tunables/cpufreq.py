"""Kind ``cpufreq:``: how clocks of CPUs are chosen, and whether they boost."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from advisor.host import Host, Missing, observe
from advisor.host.patterns import lazy_regex
from advisor.tunables.kernel_file import WrittenAtBoot
from advisor.tunables.kind import Capture, Kind, UnknownIdError
from advisor.tunables.preflight import Preflight, SideEffect

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
GOVERNOR = "governor"
PREFERENCE = "energy_performance_preference"
LOWEST = "scaling_min_freq"
HIGHEST = "scaling_max_freq"
_FILES = {GOVERNOR: "scaling_governor", PREFERENCE: PREFERENCE, LOWEST: LOWEST, HIGHEST: HIGHEST}
_OFFERS = {GOVERNOR: "scaling_available_governors", PREFERENCE: "energy_performance_available_preferences"}
_POLICY = lazy_regex(r"policy(0|[1-9][0-9]{0,4})")
_PATTERN = lazy_regex(r"[a-z0-9*?\[\]!-]{1,40}")


class CpuFrequency(WrittenAtBoot, frozen=True):
    """``cpufreq:POLICY:ATTRIBUTE`` — how the clock of a group of CPUs is chosen, persisted in a line of tmpfiles.d.

    POLICY is policy0, policy4 …, as /sys/devices/system/cpu/cpufreq lists them; in a profile a shell pattern, ``*`` for
    all, of which a plan makes one id each. The attributes are those of the kernel's
    Documentation/admin-guide/pm/cpufreq: governor and energy_performance_preference, of which a profile may give
    several with | between, the first that the driver offers is taken; scaling_min_freq and scaling_max_freq in kHz. A
    clock that is held up costs energy and heat at all times, and a package that is warm boosts single cores less. With
    the governor performance, drivers that have an energy_performance_preference take none but performance.
    """

    policy: str
    attribute: str

    holds_count = True
    id_form = "cpufreq:{self.policy}:{self.attribute}"

    @classmethod
    def parse(cls, rest: str) -> CpuFrequency:
        policy, _, attribute = rest.rpartition(":")
        is_pattern = bool(_PATTERN.fullmatch(policy)) and any(sign in policy for sign in "*?[")
        if attribute not in _FILES or not (_POLICY.fullmatch(policy) or is_pattern):
            raise UnknownIdError(
                rest,
                kind="cpufreq",
                hint=f"write cpufreq:policy0:ATTRIBUTE, or cpufreq:*:ATTRIBUTE for all, one of {', '.join(_FILES)}",
            )
        return cls(policy, attribute)

    @property
    def path(self) -> str:
        return f"{CPUFREQ}/{self.policy}/{_FILES[self.attribute]}"

    def other_attribute(self, attribute: str) -> CpuFrequency:
        """Another attribute of the same policy."""
        return CpuFrequency(self.policy, attribute)

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        if _POLICY.fullmatch(self.policy):
            return (self.id,)
        here = [name for name in host.names(CPUFREQ) if _POLICY.fullmatch(name)]
        found = sorted((name for name in here if fnmatchcase(name, self.policy)), key=lambda name: int(name[6:]))
        if found:
            return tuple(f"cpufreq:{name}:{self.attribute}" for name in found)
        if here:
            return Missing("absent", f"no policy fits; policies here: {', '.join(here)}")
        return self.explain_absence(host, Missing("absent", "does not exist"))

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        if not missing.is_absent:
            return missing
        if not any(_POLICY.fullmatch(name) for name in host.names(CPUFREQ)):
            why = "the kernel sets no clock here: no driver of cpufreq runs, as in most virtual machines"
            return Missing("absent", why)
        driver = host.read(f"{CPUFREQ}/{self.policy}/scaling_driver")
        if isinstance(driver, Missing):
            return missing
        return Missing("absent", f"the driver {driver} has no {self.attribute}")

    def check_value(self, value: str) -> str | None:
        if self.attribute in _OFFERS:
            return None if re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", value) else "is not a word such as performance"
        return None if re.fullmatch(r"[1-9][0-9]{0,9}", value) else "is not a whole number of kHz"

    def choose_value(self, host: Host, live: str, wanted: str) -> str:
        words = [word.strip() for word in wanted.split("|")]
        return next((word for word in words if word in self._read_offered(host)), words[0])

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        other = {PREFERENCE: GOVERNOR, LOWEST: HIGHEST, HIGHEST: LOWEST}.get(self.attribute)
        one = self.other_attribute(other) if other else None
        live = observe(host, one.probe) if one else Missing("absent", "")
        return Preflight(
            refusal=self.explain_unwritable(host) or self._not_offered(host, after) or self._out_of_range(host, after),
            state="not-applicable",
            side_effects=self._side_effects(host) if before != after else (),
            related=() if one is None or isinstance(live, Missing) else ((one.id, live),),
        )

    def list_values(self, host: Host) -> tuple[str, ...]:
        """What the driver offers; none of a frequency."""
        return tuple(self._read_offered(host))

    def _read_offered(self, host: Host) -> list[str]:
        file = _OFFERS.get(self.attribute)
        return host.read_or_empty(f"{CPUFREQ}/{self.policy}/{file}").split() if file else []

    def _not_offered(self, host: Host, wanted: str) -> str | None:
        offered = self._read_offered(host)
        if self.attribute not in _OFFERS or wanted in offered:
            return None
        driver = host.read_text(f"{CPUFREQ}/{self.policy}/scaling_driver")
        name = f"the driver {driver}" if driver else "its driver"
        return f"{name} offers {', '.join(offered)}" if offered else f"{name} offers nothing that could be read"

    def _out_of_range(self, host: Host, wanted: str) -> str | None:
        if self.attribute in _OFFERS:
            return None
        low, high = (host.read_int(f"{CPUFREQ}/{self.policy}/cpuinfo_{end}_freq") for end in ("min", "max"))
        if isinstance(low, Missing) or isinstance(high, Missing) or low <= int(wanted) <= high:
            return None
        return f"its hardware goes from {low} to {high} kHz"

    def _side_effects(self, host: Host) -> tuple[SideEffect, ...]:
        """intel_pstate and amd_pstate set the preference to performance with that governor."""
        if self.attribute != GOVERNOR:
            return ()
        one = self.other_attribute(PREFERENCE)
        live = observe(host, one.probe)
        return () if isinstance(live, Missing) else (SideEffect(one.id, live, one.probe, one.make_steps(live)),)


class CpuBoost(WrittenAtBoot, frozen=True):
    """``cpufreq:boost`` — whether CPUs may go above their nominal clock, 0 or 1, persisted in a line of tmpfiles.d.

    The switch of the drivers acpi-cpufreq, amd_pstate and cppc_cpufreq; that of intel_pstate is intel_pstate:no_turbo.
    """

    id_form = "cpufreq:boost"
    path_form = f"{CPUFREQ}/boost"

    kind = "cpufreq"
    id_pattern = lazy_regex("boost")
    id_hint = "write cpufreq:boost"
    accepted = lazy_regex("[01]")
    wrong = "is not 0 or 1"

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        if missing.is_absent and host.is_dir("/sys/devices/system/cpu/intel_pstate"):
            return Missing("absent", "the driver intel_pstate has intel_pstate:no_turbo in its place")
        return Missing("absent", "no driver with such a switch runs here") if missing.is_absent else missing

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        return Preflight(refusal=self.explain_unwritable(host), state="not-applicable")


KIND = Kind(
    name="cpufreq",
    order=100,
    parse=lambda rest: (CpuBoost if rest == "boost" else CpuFrequency).parse(rest),
    noun="clock setting",
    examples=(("cpufreq:policy0:governor", "performance"), ("cpufreq:boost", "1")),
    capture=Capture(
        files=(
            (CPUFREQ, ("boost",)),
            (
                f"{CPUFREQ}/policy*",
                (
                    *("scaling_driver", "scaling_governor", "scaling_available_governors"),
                    *("scaling_min_freq", "scaling_max_freq", "cpuinfo_min_freq", "cpuinfo_max_freq"),
                    *("energy_performance_preference", "energy_performance_available_preferences"),
                ),
            ),
        ),
        listed=(CPUFREQ,),
        values={
            "cpufreq:*:governor": "performance",
            "cpufreq:*:energy_performance_preference": "performance",
            "cpufreq:*:scaling_min_freq": "1",
            "cpufreq:*:scaling_max_freq": "1",
            "cpufreq:boost": "1",
        },
    ),
    written_by=frozenset({"tuned", "saptune", "power-profiles-daemon"}),
    sysfs=(
        (rf"{CPUFREQ}/(policy\d+)/(?:scaling_)?(governor|energy_performance_preference)", r"cpufreq:\1:\2"),
        (rf"{CPUFREQ}/(policy\d+)/(scaling_(?:min|max)_freq)", r"cpufreq:\1:\2"),
        (rf"{CPUFREQ}/boost", "cpufreq:boost"),
    ),
    units=((r".*_freq", "kHz"),),
)
