"""The contract of every kind of tunable."""

from __future__ import annotations

from typing import Literal, Protocol

from advisor.host import Host, Missing, Probe, Step
from advisor.tunables.edits import FileEdit, Persisted

Risk = Literal["none", "link", "restart"]
Sense = Literal["exactly", "at-least", "at-most", "within", "keep"]
Effect = Literal["now", "new-sockets", "remount", "service-restart", "reboot"]


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

    def check_value(self, value: str) -> str | None:
        """Why ``value`` cannot be a value of this tunable at all; None where it can."""
        ...

    def make_steps(self, value: str) -> tuple[Step, ...]:
        """What to do now. None at all where only the persisted file and its reload bring the value about."""
        ...

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Persisted | Missing:
        """What to leave on disk so that the value is there after a reboot; Missing says why nothing can be."""
        ...
