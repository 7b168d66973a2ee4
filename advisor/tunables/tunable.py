"""The contract of every kind of tunable."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, runtime_checkable

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit, Persisted

_SHOWN = 40
# A tab parts the numbers of a sysctl; U+FFFD stands where bytes were no text.
_NO_TEXT = lazy_regex(r"[\0-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
NUMBERS = lazy_regex(r"-?[0-9]{1,20}(?:[ \t]+-?[0-9]{1,20})*")
_COUNT = lazy_regex(r"[0-9]{1,20}")

Risk = Literal["none", "link", "restart"]
Sense = Literal["exactly", "at-least", "at-most", "within", "keep"]
Effect = Literal["now", "new-sockets", "new-links", "remount", "service-restart", "reboot"]


class Tunable(Protocol):
    """One thing that can be set. Values are canonical single-line strings, as `probe` gives them."""

    @property
    def id(self) -> str: ...

    @property
    def risk(self) -> Risk: ...

    @property
    def takes_effect(self) -> Effect: ...

    @property
    def probe(self) -> Probe:
        """How the live value is read."""
        ...

    def can_read(self, live: str) -> bool:
        """Whether ``live`` can be a value of it, where a number is wanted."""
        ...

    def check_value(self, value: str) -> str | None:
        """Why ``value`` cannot be a value of this tunable at all; None where it can."""
        ...

    def make_steps(self, value: str) -> tuple[Step, ...]:
        """What to do now. None at all where only the persisted file and its reload bring the value about."""
        ...

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Persisted | Missing:
        """What to leave on disk so that the value is there after a reboot; Missing says why nothing can be."""
        ...


@runtime_checkable
class DeclaresValues(Protocol):
    """A tunable whose values are few and known on a host."""

    def list_values(self, host: Host) -> tuple[str, ...]:
        """The values that the host's kernel offers, or that there are at all; none where that is unknown."""
        ...


class DirectValue(msgspec.Struct, frozen=True):
    """Base of every kind: a value that takes effect at once and disturbs nobody, unless the kind says otherwise."""

    holds_count: ClassVar[bool] = False
    """Whether it is a number from 0 on: what is no number is then never taken for its live value."""

    id_form: ClassVar[str]
    """The id, with the fields of ``self`` in it."""

    @property
    def id(self) -> str:
        return self.id_form.format(self=self)

    @property
    def risk(self) -> Risk:
        return "none"

    @property
    def takes_effect(self) -> Effect:
        return "now"

    def can_read(self, live: str) -> bool:
        """Whether ``live`` can be a value of it, where a number is wanted."""
        return not self.holds_count or _COUNT.fullmatch(live) is not None


class StoredValue(DirectValue, frozen=True):
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
