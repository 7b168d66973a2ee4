"""``unit:NAME.service:DIRECTIVE`` — a limit, weight or priority of a systemd service (systemd.exec(5)).

Also systemd.resource-control(5): LimitNOFILE, LimitMEMLOCK, LimitNPROC, LimitSTACK, LimitCORE, CPUAffinity, CPUWeight,
IOWeight, TasksMax, Nice and OOMScoreAdjust. Limits are in bytes or a number, ``infinity`` for none, ``1024:4096`` where
the soft one differs. Like ``numa`` it is a drop-in that a running service reads when it is restarted.
"""

from __future__ import annotations

import re

from advisor.facts.cpulist import format_list, parse_list
from advisor.host import Host, Missing, Probe, ReadCommand, RunCommand
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.tunable import StoredValue, UnknownIdError

UNIT = lazy_regex(r"[\w:.\\@-]{1,247}\.service", re.ASCII)
RELOAD = (RunCommand(("systemctl", "daemon-reload")),)
_LIMITS = ("LimitNOFILE", "LimitMEMLOCK", "LimitNPROC", "LimitSTACK", "LimitCORE")
_BOUNDS = {"CPUWeight": (1, 10000), "IOWeight": (1, 10000), "Nice": (-20, 19), "OOMScoreAdjust": (-1000, 1000)}
DIRECTIVES = (*_LIMITS, *_BOUNDS, "TasksMax", "CPUAffinity")
_COUNT = lazy_regex(r"0|[1-9][0-9]{0,17}")


class ServiceValue(StoredValue, frozen=True):
    """What a running service reads when it is restarted."""

    unit: str

    risk = "restart"
    takes_effect = "service-restart"

    @property
    def restart_command(self) -> RunCommand:
        return RunCommand(("systemctl", "restart", self.unit))


class UnitSetting(ServiceValue, frozen=True):
    directive: str

    id_form = "unit:{self.unit}:{self.directive}"

    @classmethod
    def parse(cls, rest: str) -> UnitSetting:
        unit, _, directive = rest.rpartition(":")
        if directive not in DIRECTIVES or not UNIT.fullmatch(unit):
            hint = f"write unit:NAME.service:DIRECTIVE, one of {', '.join(('numa', *DIRECTIVES))}"
            raise UnknownIdError(rest, kind="unit", hint=hint)
        return cls(unit, directive)

    @property
    def probe(self) -> Probe:
        more = (f"{self.directive}Soft",) if self.directive in _LIMITS else ()
        more = ("CPUAffinityFromNUMA",) if self.directive == "CPUAffinity" else more
        properties = ",".join(("LoadState", self.directive, *more))
        words = ("systemctl", "show", f"--property={properties}", "--", self.unit)
        return ReadCommand(words, f"unit-setting:{self.directive}")

    def check_value(self, value: str) -> str | None:
        if self.directive == "CPUAffinity":
            try:
                is_canonical = bool(value) and format_list(parse_list(value)) == value
            except ValueError:
                is_canonical = False
            return None if is_canonical else "is not a list of CPUs such as 0-3,8"
        if self.directive in _BOUNDS:
            low, high = _BOUNDS[self.directive]
            fits = re.fullmatch(r"0|-?[1-9][0-9]{0,4}", value) and low <= int(value) <= high
            return None if fits else f"is not a whole number from {low} to {high}"
        # As systemd shows it again: plain numbers, and one alone where both limits are the same.
        has_soft = self.directive in _LIMITS
        soft, colon, hard = value.partition(":")
        if not all(one == "infinity" or _COUNT.fullmatch(one) for one in ((soft, hard) if colon else (soft,))):
            return "is not a whole number or infinity"
        if not colon:
            return None
        if not has_soft:
            return "has no soft limit with it"
        is_lower = soft != "infinity" and (hard == "infinity" or int(soft) < int(hard))
        return None if is_lower else "has a soft limit that is not below the hard one"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        path = f"/etc/systemd/system/{self.unit}.d/50-advisor.conf"
        if self.directive == "CPUAffinity":
            return FileEdit(path, "unit-list", f"Service/{self.directive}", value, reload=RELOAD)
        return FileEdit(path, "section", "Service/", f"{self.directive}={value}", reload=RELOAD)
