"""``llt:timer.NAME`` — a Veritas LLT timer in hundredths of a second (lltconfig -T), kept as set-timer in llttab."""

from __future__ import annotations

import re

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, ReadCommand, Run, Step
from advisor.tunables.edits import FileEdit
from advisor.tunables.llt import LLTTAB
from advisor.tunables.tunable import Effect, Risk


class LltTimer(msgspec.Struct, frozen=True):
    name: str

    @classmethod
    def parse(cls, rest: str) -> LltTimer:
        found = re.fullmatch(r"timer\.([a-z][a-z0-9_]*)", rest)
        if not found:
            raise UsageError(f"'llt:{rest}' is not a tunable", hint="write llt:timer.peerinact")
        return cls(found[1])

    @property
    def id(self) -> str:
        return f"llt:timer.{self.name}"

    @property
    def risk(self) -> Risk:
        return "none"

    @property
    def takes_effect(self) -> Effect:
        return "now"

    @property
    def probe(self) -> Probe:
        return ReadCommand(("lltconfig", "-T", "query"), f"timer:{self.name}")

    def check(self, value: str) -> str | None:
        return None if re.fullmatch(r"[1-9][0-9]{0,8}", value) else "is not a number of hundredths of a second"

    def steps(self, value: str) -> tuple[Step, ...]:
        return (Run(("lltconfig", "-T", f"{self.name}:{value}")),)

    def edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        if not host.exists(LLTTAB):
            return Missing("absent", f"{LLTTAB} does not exist, so the value lasts until LLT is restarted")
        return FileEdit(LLTTAB, "llttab-timer", self.name, value)
