"""What only the host itself can tell of a change that is about to be planned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import msgspec

from advisor.host import Host, Probe, ReadFile, Step, WriteFile
from advisor.host.located import Identity


def bound_probe(probe: Probe, identity: Identity | None) -> Probe:
    """The probe, of the device of this identity alone."""
    return msgspec.structs.replace(probe, identity=identity) if isinstance(probe, ReadFile) else probe


def bound_steps(steps: Iterable[Step], identity: Identity | None) -> tuple[Step, ...]:
    """The steps, on the device of this identity alone."""
    return tuple(
        msgspec.structs.replace(step, identity=identity) if isinstance(step, WriteFile) else step for step in steps
    )


class Sibling(msgspec.Struct, frozen=True):
    """Another tunable that the kernel moves along with a change; ``undo`` brings ``before`` back, where anything does.

    ``resets``: it is set anew both ways, by the change and by going back.
    """

    tunable: str
    before: str
    probe: Probe
    undo: tuple[Step, ...]
    resets: bool = False


class Circumstances(msgspec.Struct, frozen=True):
    """What goes beyond probe, steps and edit. ``refusal``: why this host would not take the value. ``overridden``: what
    undoes it at the next boot. ``undo``: how to go back where writing the value before would not do. ``identity``: what
    tells the device that is meant from one that gets its name later."""

    refusal: str | None = None
    overridden: str | None = None
    undo: tuple[Step, ...] | None = None
    identity: Identity | None = None
    siblings: tuple[Sibling, ...] = ()
    notes: tuple[str, ...] = ()


@runtime_checkable
class Circumstantial(Protocol):
    """A tunable whose change depends on more than its own value."""

    def circumstances(self, host: Host, before: str, after: str, *, profile: str) -> Circumstances:
        """Reads the host, changes nothing. ``after`` is a value that `Tunable.check` has let pass."""
        ...
