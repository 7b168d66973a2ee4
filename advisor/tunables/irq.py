"""``irq:N:affinity`` — the CPUs that an interrupt may run on, as a kernel list string."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from advisor.errors import UsageError
from advisor.facts.cpulist import parse_list
from advisor.host import Host, Missing, Probe, ReadFile, Step, WriteFile
from advisor.i18n import msg, noun
from advisor.tunables.edits import FileEdit
from advisor.tunables.kind import Kind
from advisor.tunables.tunable import Effect, Risk


class IrqAffinity(msgspec.Struct, frozen=True):
    number: int

    @classmethod
    def parse(cls, rest: str) -> IrqAffinity:
        found = re.fullmatch(r"(0|[1-9]\d{0,6}):affinity", rest, re.ASCII)
        if not found:
            raise UsageError(msg("'irq:{rest}' is not a tunable", rest=rest), hint="write irq:42:affinity")
        return cls(int(found[1]))

    @property
    def id(self) -> str:
        return f"irq:{self.number}:affinity"

    @property
    def risk(self) -> Risk:
        return "none"

    @property
    def takes_effect(self) -> Effect:
        return "now"

    @property
    def probe(self) -> Probe:
        return ReadFile(f"/proc/irq/{self.number}/smp_affinity_list")

    def check_value(self, value: str) -> str | None:
        try:
            return None if parse_list(value) else "names no CPU"
        except ValueError:
            return "is not a list of CPUs such as 0-3,8"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (WriteFile(f"/proc/irq/{self.number}/smp_affinity_list", value),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return Missing("absent", "interrupt numbers are assigned at each boot, so the affinity lasts until then")


KIND: Final = Kind(
    name="irq",
    order=30,
    parse=IrqAffinity.parse,
    noun=noun("interrupt"),
    examples=(("irq:42:affinity", "0-3"),),
    capture=None,
    written_by=frozenset({"tuned", "irqbalance"}),
)
