"""Kind ``llt:``: values of Veritas LLT, of flow control and timers."""

from __future__ import annotations

from typing import ClassVar

from advisor.host import Host, Missing, Probe, ReadCommand, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit, Form
from advisor.tunables.kind import Kind, Tunable
from advisor.tunables.preflight import Preflight

LLTTAB = "/etc/llttab"
ONE_VALUE = (
    "LLT's flow control is one setting for the cluster: set the same value on every node; advisor fleet compare lists "
    "nodes that differ"
)


class LltValue(Tunable, frozen=True):
    """A number that lltconfig sets at once; a kind gives its option, its word in a probe, and its line of llttab."""

    name: str

    kind = "llt"
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
    """``llt:NAME`` — a Veritas LLT flow control value in packets (lltconfig -F), persisted with set-flow in
    /etc/llttab."""

    option = "-F"
    word = "flow"
    line = "llttab-flow"
    id_form = "llt:{self.name}"
    id_pattern = lazy_regex(r"(?P<name>[a-z][a-z0-9_]*)")
    id_hint = "write llt:highwater"
    accepted = lazy_regex(r"[0-9]{1,9}")
    wrong = "is a number of packets"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        return Preflight(notes=(ONE_VALUE,))


class LltTimer(LltValue, frozen=True):
    """``llt:timer.NAME`` — a Veritas LLT timer in hundredths of a second (lltconfig -T),
    kept with set-timer in llttab."""

    option = "-T"
    word = "timer"
    line = "llttab-timer"
    id_form = "llt:timer.{self.name}"
    id_pattern = lazy_regex(r"timer\.(?P<name>[a-z][a-z0-9_]*)")
    id_hint = "write llt:timer.peerinact"
    accepted = lazy_regex(r"[1-9][0-9]{0,8}")
    wrong = "is not a number of hundredths of a second"


KIND = Kind(
    name="llt",
    order=70,
    parse=lambda rest: (LltTimer if rest.startswith("timer.") else LltFlow).parse(rest),
    noun="LLT value",
    examples=(("llt:highwater", "2000"), ("llt:timer.peerinact", "3200")),
    capture=None,
    written_by=frozenset(),
    units=((r"\w*(water|window)", "packets"),),
)
