"""``unit:NAME.service:numa`` — NUMA policy, nodes and CPU affinity of a systemd service (systemd.exec(5)).

The value is the one line that the probe gives: ``NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa``, or
``CPUAffinity=0-23,48-71`` alone where systemd has no NUMAPolicy= (before 243): memory cannot be bound there. It is
brought about by a drop-in and ``systemctl daemon-reload``; a running service applies it when it is restarted.
"""

from __future__ import annotations

import re

from advisor.facts.cpulist import parse_list
from advisor.host import Host, Missing, Probe, ReadCommand
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.tunable import UnknownIdError
from advisor.tunables.unit_setting import RELOAD, UNIT, ServiceValue

_PROPERTIES = "LoadState,NUMAPolicy,NUMAMask,CPUAffinity,CPUAffinityFromNUMA"
DEFAULT = "NUMAPolicy=default NUMAMask= CPUAffinity="


_ALONE = "CPUAffinity="
_PLACEMENT = lazy_regex(
    r"NUMAPolicy=(default|preferred|bind|interleave|local) NUMAMask=[\d,-]* CPUAffinity=(numa|[\d,-]*)"
    r"|CPUAffinity=[\d,-]*",
    re.ASCII,
)


def binding_value(node: int, *, policy: str = "bind", cpus: str = "numa") -> str:
    """The value that places a service on one node's memory and CPUs; ``cpus`` by number where systemd cannot derive
    them from the node (before 244)."""
    return f"NUMAPolicy={policy} NUMAMask={node} CPUAffinity={cpus}"


def bound_cpus(cpus: str) -> str:
    """The value that places a service on CPUs, where systemd cannot bind memory (before 243)."""
    return _ALONE + cpus


class UnitNuma(ServiceValue, frozen=True):
    id_form = "unit:{self.unit}:numa"

    @classmethod
    def parse(cls, rest: str) -> UnitNuma:
        unit, _, attribute = rest.rpartition(":")
        if attribute != "numa" or not UNIT.fullmatch(unit):
            raise UnknownIdError(rest, kind="unit", hint="write unit:NAME.service:numa")
        return cls(unit)

    @property
    def probe(self) -> Probe:
        return ReadCommand(("systemctl", "show", f"--property={_PROPERTIES}", "--", self.unit), "unit-numa")

    def check_value(self, value: str) -> str | None:
        return None if _PLACEMENT.fullmatch(value) else f"is not a placement such as {binding_value(0)}"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        path = f"/etc/systemd/system/{self.unit}.d/50-advisor-numa.conf"
        if value.startswith(_ALONE):
            # systemd before 228 takes single numbers with blanks between them, and neither ranges nor commas.
            numbers = " ".join(map(str, parse_list(value.removeprefix(_ALONE))))
            return FileEdit(path, "unit-list", "Service/CPUAffinity", numbers, reload=RELOAD)
        return FileEdit(path, "section", "Service/", value, b"", reload=RELOAD)
