"""The contract of every kind of tunable."""

from __future__ import annotations

import re
from typing import ClassVar, Literal, Self

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit, Persisted
from advisor.tunables.preflight import Preflight

_SHOWN = 40
# A tab parts the numbers of a sysctl; U+FFFD stands where bytes were no text.
_NO_TEXT = lazy_regex(r"[\0-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
NUMBERS = lazy_regex(r"-?[0-9]{1,20}(?:[ \t]+-?[0-9]{1,20})*")
_COUNT = lazy_regex(r"[0-9]{1,20}")

Risk = Literal["none", "link", "restart"]
Sense = Literal["exactly", "at-least", "at-most", "within", "keep"]
Effect = Literal["now", "new-sockets", "new-links", "remount", "service-restart", "reboot"]


class Tunable(msgspec.Struct, frozen=True):
    """One thing that can be set; base of every kind. Values are canonical single-line strings, as `probe` gives them.

    It takes effect at once and disturbs nobody, unless the kind says otherwise. A kind gives ``id_pattern``, the
    pattern of what follows its name in an id, with the fields in groups, and ``id_hint``, how to write one; or its own
    ``parse``. ``holds_count``: whether it is a number from 0 on; what is no number is then never taken for its live
    value.
    """

    kind: ClassVar[str]
    id_pattern: ClassVar[re.Pattern[str]]
    id_hint: ClassVar[str]
    accepted: ClassVar[re.Pattern[str]]
    """Pattern of its values, and ``wrong``: why another cannot be one."""
    wrong: ClassVar[str]
    holds_count: ClassVar[bool] = False
    id_form: ClassVar[str]
    """The id, with the fields of ``self`` in it."""

    @classmethod
    def parse(cls, rest: str) -> Self:
        """The tunable of what follows ``KIND:`` in an id. Raises UsageError for another form, and where none is
        offered."""
        found = cls.id_pattern.fullmatch(rest)
        if found is None:
            raise UnknownIdError(rest, kind=cls.kind, hint=cls.id_hint)
        one = cls(**found.groupdict())
        if one.why_refused:
            raise RefusedIdError(rest, kind=cls.kind, hint=one.why_refused)
        return one

    @property
    def why_refused(self) -> str | None:
        """Why no profile sets it, though it has the form of its kind; None where one may."""
        return None

    @property
    def id(self) -> str:
        return self.id_form.format(self=self)

    @property
    def risk(self) -> Risk:
        return "none"

    @property
    def takes_effect(self) -> Effect:
        return "now"

    @property
    def probe(self) -> Probe:
        """How the live value is read."""
        raise NotImplementedError

    def can_read(self, live: str) -> bool:
        """Whether ``live`` can be a value of it, where a number is wanted."""
        return not self.holds_count or _COUNT.fullmatch(live) is not None

    def check_value(self, value: str) -> str | None:
        """Why ``value`` cannot be a value of this tunable at all; None where it can."""
        return None if self.accepted.fullmatch(value) else self.wrong

    def make_steps(self, value: str) -> tuple[Step, ...]:
        """What to do now. None at all where only the persisted file and its reload bring the value about."""
        raise NotImplementedError

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Persisted | Missing:
        """What to leave on disk so that the value is there after a reboot; Missing says why nothing can be."""
        raise NotImplementedError

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        """What a change depends on besides its own value. Reads the host, changes nothing. ``after`` is a value that
        `check_value` has let pass."""
        return Preflight()

    def list_values(self, host: Host) -> tuple[str, ...]:
        """The values that the host's kernel offers, or that there are at all; none where they are many or unknown."""
        return ()

    def choose_value(self, host: Host, live: str, wanted: str) -> str:
        """``wanted`` as this host has it; as it stands where the host says nothing of it."""
        return wanted

    def measure_twin(self, host: Host, live: str) -> tuple[str, str] | Missing | None:
        """What another tunable that holds the value in another unit amounts to in this one's, and in words; Missing
        where that cannot be known, None where this one holds the value itself."""
        return None

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        """``missing`` with a reason that says more."""
        return missing

    def explain_given(self, host: Host, wanted: str) -> str | None:
        """Why nothing is to be done for ``wanted``, whatever the probe reads; None where the value decides."""
        return None

    @property
    def restart_command(self) -> RunCommand | None:
        """The command that makes a service read the value; None where that is more than one command, or none."""
        return None


class StoredValue(Tunable, frozen=True):
    """A value without steps: only the persisted file brings it about."""

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return ()


def explain_misread(one: Tunable, live: str, wanted: str) -> str | None:
    """Why the live value is none of this tunable's, and so never restored; None where it may be one.

    Where a number is wanted, the kernel's own value is a number too, in ASCII digits; -5 is no count of anything.
    """
    if _NO_TEXT.search(live):
        return f"not a value: {live[:_SHOWN]!r}"
    is_wrong = NUMBERS.fullmatch(wanted) and not one.can_read(live)
    return f"not a number: {live[:_SHOWN]!r}" if is_wrong else None


class UnknownIdError(UsageError):
    """An id that no kind understands."""

    def __init__(self, rest: str, *, kind: str = "", hint: str) -> None:
        super().__init__(f"{f'{kind}:{rest}' if kind else rest!r} is not a tunable", hint=hint)


class RefusedIdError(UsageError):
    """An id that has the form of its kind, and is not offered."""

    def __init__(self, rest: str, *, kind: str, hint: str) -> None:
        super().__init__(f"{f'{kind}:{rest}'!r} is not a tunable here", hint=hint)
