"""``llt:timer.NAME`` — a Veritas LLT timer in hundredths of a second (lltconfig -T), kept with set-timer in llttab."""

from __future__ import annotations

import re
from typing import ClassVar

from advisor.tunables.edits import Form
from advisor.tunables.llt_flow import LltValue
from advisor.tunables.tunable import UnknownIdError


class LltTimer(LltValue, frozen=True):
    """A timer, in hundredths of a second."""

    option: ClassVar[str] = "-T"
    word: ClassVar[str] = "timer"
    line: ClassVar[Form] = "llttab-timer"
    id_form = "llt:timer.{self.name}"

    @classmethod
    def parse(cls, rest: str) -> LltTimer:
        found = re.fullmatch(r"timer\.([a-z][a-z0-9_]*)", rest)
        if not found:
            raise UnknownIdError(rest, kind="llt", hint="write llt:timer.peerinact")
        return cls(found[1])

    def check_value(self, value: str) -> str | None:
        return None if re.fullmatch(r"[1-9][0-9]{0,8}", value) else "is not a number of hundredths of a second"
