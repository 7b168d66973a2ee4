"""``llt:NAME`` — a Veritas LLT flow control value in packets (lltconfig -F), persisted with set-flow in /etc/llttab."""

from __future__ import annotations

import re
from typing import ClassVar

from advisor.host import Host, Missing, Probe, ReadCommand, RunCommand, Step
from advisor.tunables.edits import FileEdit, Form
from advisor.tunables.preflight import Preflight
from advisor.tunables.tunable import DirectValue, UnknownIdError

LLTTAB = "/etc/llttab"
ONE_VALUE = (
    "LLT's flow control is one setting for the cluster: set the same value on every node; advisor fleet compare lists "
    "nodes that differ"
)


class LltValue(DirectValue, frozen=True):
    """A number that lltconfig sets at once; a kind gives its option, its word in a probe, and its line of llttab."""

    name: str

    holds_count = True

    option: ClassVar[str]
    word: ClassVar[str]
    line: ClassVar[Form]

    @property
    def probe(self) -> Probe:
        return ReadCommand(("lltconfig", self.option, "query"), f"{self.word}:{self.name}")

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (RunCommand(("lltconfig", self.option, f"{self.name}:{value}")),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        if not host.exists(LLTTAB):
            return Missing("absent", f"{LLTTAB} does not exist, so the value lasts until LLT is restarted")
        return FileEdit(LLTTAB, self.line, self.name, value)


class LltFlow(LltValue, frozen=True):
    """A flow control value, in packets."""

    option: ClassVar[str] = "-F"
    word: ClassVar[str] = "flow"
    line: ClassVar[Form] = "llttab-flow"
    id_form = "llt:{self.name}"

    @classmethod
    def parse(cls, rest: str) -> LltFlow:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", rest):
            raise UnknownIdError(rest, kind="llt", hint="write llt:highwater")
        return cls(rest)

    def check_value(self, value: str) -> str | None:
        return None if re.fullmatch(r"[0-9]{1,9}", value) else "is a number of packets"

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        return Preflight(notes=(ONE_VALUE,))
