"""``unit:NAME.service:numa`` — NUMA policy, nodes and CPU affinity of a systemd service (systemd.exec(5)).

The value is the one line that the probe gives: ``NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa``. It is brought about by
a drop-in and ``systemctl daemon-reload``; a running service takes it up when it is restarted.
"""

from __future__ import annotations

import re

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, ReadCommand, Run, Step
from advisor.tunables.edits import FileEdit
from advisor.tunables.tunable import Effect, Risk

_UNIT = re.compile(r"[\w:.\\@-]{1,247}\.service", re.ASCII)
_PROPERTIES = "LoadState,NUMAPolicy,NUMAMask,CPUAffinity,CPUAffinityFromNUMA"
DEFAULT = "NUMAPolicy=default NUMAMask= CPUAffinity="


def bound(node: int, *, policy: str = "bind") -> str:
    """The value that places a service on one node's memory and CPUs."""
    return f"NUMAPolicy={policy} NUMAMask={node} CPUAffinity=numa"


class UnitNuma(msgspec.Struct, frozen=True):
    unit: str

    @classmethod
    def parse(cls, rest: str) -> UnitNuma:
        unit, _, attribute = rest.rpartition(":")
        if attribute != "numa" or not _UNIT.fullmatch(unit):
            raise UsageError(f"'unit:{rest}' is not a tunable", hint="write unit:NAME.service:numa")
        return cls(unit)

    @property
    def id(self) -> str:
        return f"unit:{self.unit}:numa"

    @property
    def risk(self) -> Risk:
        return "restart"

    @property
    def takes_effect(self) -> Effect:
        return "service-restart"

    @property
    def probe(self) -> Probe:
        return ReadCommand(("systemctl", "show", f"--property={_PROPERTIES}", "--", self.unit), "unit-numa")

    def check(self, value: str) -> str | None:
        known = r"NUMAPolicy=(default|preferred|bind|interleave|local) NUMAMask=[\d,-]* CPUAffinity=(numa|[\d,-]*)"
        return None if re.fullmatch(known, value, re.ASCII) else "is not a placement such as " + bound(0)

    def steps(self, value: str) -> tuple[Step, ...]:
        return ()

    def edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        path = f"/etc/systemd/system/{self.unit}.d/50-advisor-numa.conf"
        return FileEdit(path, "section", "Service/", value, b"", reload=(Run(("systemctl", "daemon-reload")),))
