"""What a plan has to read from the host itself about a change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, runtime_checkable

import msgspec

from advisor.host import Host, Missing, Probe, ReadFile, Step, WriteFile
from advisor.host.identity import Identity
from advisor.tunables.link_identity import LinkMark

RefusalState = Literal["blocked", "not-applicable", "in-place", "by-hand", "incapable", "unknown"]


def bind_probe(probe: Probe, identity: Identity | None) -> Probe:
    """The probe, of the device of this identity alone."""
    return msgspec.structs.replace(probe, identity=identity) if isinstance(probe, ReadFile) else probe


def bind_steps(steps: Iterable[Step], identity: Identity | None) -> tuple[Step, ...]:
    """The steps, on the device of this identity alone."""
    return tuple(
        msgspec.structs.replace(step, identity=identity) if isinstance(step, WriteFile) else step for step in steps
    )


def list_choices(choices: Iterable[str]) -> str:
    """What a file offers, for a sentence. ``none`` is a choice, too, and as the first it would read as *nothing*."""
    *others, last = sorted(choices, key=lambda one: one == "none") or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last


class SideEffect(msgspec.Struct, frozen=True):
    """Another tunable that the kernel may change with a change (a bridge follows its ports); ``undo`` restores it.

    A rollback restores it if it changed. Without ``undo`` no command can do that.
    """

    tunable: str
    before: str
    probe: Probe
    undo: tuple[Step, ...]
    keeps: bool = False
    """Also while the plan is active: what a link lost with the change is restored at once, where that is possible."""
    resets: bool = False
    """The rollback of the change resets it, too: it is then restored and read back."""
    coupled: bool = False
    """A sysctl that the kernel changes together with another one, by the change and by its rollback: it is restored to
    what it was before, or to what it was set to since."""


class ClassMember(msgspec.Struct, frozen=True):
    """A device that a class had when a plan was made, and ``value``, what it had then. ``identity`` distinguishes a
    block device, ``link`` a link, from one that gets its name later."""

    path: str
    value: str
    identity: Identity | None = None
    link: LinkMark | None = None


class Preflight(msgspec.Struct, frozen=True):
    """What goes beyond probe, steps and edit. ``refusal``: why this host would not take the value. ``undo``: how to go
    back where writing the value before would not do. ``identity``: what distinguishes the device that is meant from one
    that gets its name later. ``state``: what the refusal amounts to; *blocked* holds up all of the plan, *incapable*
    does where a person named this device, the others this value alone. ``related``: values of other tunables that bear
    on it. ``members``: devices of a class that are there."""

    refusal: str | None = None
    state: RefusalState = "blocked"
    undo: tuple[Step, ...] | None = None
    identity: Identity | None = None
    side_effects: tuple[SideEffect, ...] = ()
    notes: tuple[str, ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    members: tuple[ClassMember, ...] = ()


@runtime_checkable
class ExpandsIds(Protocol):
    """A tunable that stands for others: those that a pattern fits, or the one that this kernel has in its place."""

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        """The ids that are meant on this host, its own where it is one of them; Missing says why there is none."""
        ...
