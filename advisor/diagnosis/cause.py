"""A cause: one decorated function that judges a span, with the threshold and where it comes from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from advisor.diagnosis.observation import Observation
from advisor.host.numbers import count_of

Resource = Literal["disk", "array", "net", "cpu", "memory", "cloud", "clock", "application"]
Help = Literal["tuning", "hardware", "application", "tenant", "repair"]
Evidence = Mapping[str, str | float | int]

BINDS_FROM = 0.1
"""A cause that accounts for less of the time or the requests is not reported: everything waits a little."""

STEAL_FROM = 0.05
"""Of all CPU time; less of it is no sign of another tenant."""

BUSY_NEAR_FROM = 0.75
"""netdata's alarm on the use of all CPUs ends below it."""
UNANSWERED_FROM = 0.5
"""So many segments sent again for each that is sent are no loss on a way: nothing comes through."""


class Asker(msgspec.Struct, frozen=True):
    """Who asks most of what binds: the service, or the process without one, its share of all that is asked (0 to 1),
    and the share of which nobody is known to have asked it. ``process`` is the largest of the service."""

    unit: str | None
    process: str | None
    share: float | None
    unseen_share: float | None = None


class BindingCause(msgspec.Struct, frozen=True):
    """What binds: ``share`` of what ``of`` names (time, requests, packets …), from 0 to 1.

    ``is_error`` is a part that fails: it comes before any performance. ``explains`` names the causes, as ``ID`` or
    ``ID DEVICE``, that follow from this one. Evidence has plain figures, their unit in the key.
    """

    id: str
    resource: Resource
    device: str | None
    share: float
    of: str
    help: Help
    title: str
    evidence: Evidence
    advice: str
    commands: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    asks: Asker | None = None
    is_error: bool = False
    explains: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """Errors come before performance, and what holds nothing up (a clock, niced work) comes last."""
        return 2 if self.is_error else 0 if self.resource == "clock" or self.id == "cpu.niced" else 1


def probe_command(peer: str) -> str:
    """The command that looks at the way to ``ADDRESS:PORT`` or ``[ADDRESS]:PORT``."""
    return f"advisor probe {peer.rpartition(':')[0].strip('[]')}"


def percent(share: float, digits: int = 0) -> str:
    """``12 %``."""
    return f"{share * 100:.{digits}f} %"


def plan_at_least(seen: Observation, key: str, least: int) -> tuple[str, ...]:
    """The plan that raises a sysctl; none where it is as large already."""
    now = count_of(seen.facts.sysctl.get(key))
    return () if now is not None and now >= least else (f"advisor plan 'sysctl:{key}>={least}'",)


Find = Callable[[Observation], Iterator[BindingCause]]


class Cause(msgspec.Struct, frozen=True):
    """``what`` is what is read, ``threshold`` from when it counts; ``hurts_when`` is when the verdict misleads."""

    id: str
    resource: Resource
    help: Help
    what: str
    threshold: str
    sources: tuple[str, ...]
    find: Find
    is_error: bool = False
    explains: tuple[str, ...] = ()

    def bind(
        self,
        share: float,
        title: str,
        *,
        advice: str,
        evidence: Mapping[str, str | float | int | None],
        device: str | None = None,
        of: str = "time",
        commands: tuple[str, ...] = (),
        asks: Asker | None = None,
        explains: tuple[str, ...] = (),
        help: Help | None = None,  # noqa: A002
    ) -> BindingCause:
        """A binding of this cause; it explains what the cause does, and ``explains``. None as evidence is unknown."""
        return BindingCause(
            id=self.id,
            resource=self.resource,
            device=device,
            share=round(min(1.0, max(0.0, share)), 4),
            of=of,
            help=help or self.help,
            title=title,
            evidence={
                key: "unknown" if value is None else round(value, 4) if isinstance(value, float) else value
                for key, value in evidence.items()
            },
            advice=advice,
            commands=commands,
            sources=self.sources,
            asks=asks,
            is_error=self.is_error,
            explains=(*self.explains, *explains),
        )


_registered: dict[str, Cause] = {}

REGISTERED: Mapping[str, Cause] = MappingProxyType(_registered)
"""The causes of all modules that have been imported, by id."""


def cause(
    *,
    id: str,  # noqa: A002
    resource: Resource,
    help: Help,  # noqa: A002
    what: str,
    threshold: str,
    sources: tuple[str, ...],
    is_error: bool = False,
    explains: tuple[str, ...] = (),
) -> Callable[[Find], Cause]:
    """Makes the function below a registered cause. Raises ValueError for an id that is taken or an empty field."""

    def register(function: Find) -> Cause:
        path = getattr(sys.modules.get(function.__module__), "__file__", None) or function.__module__
        if id in _registered:
            raise ValueError(f"{path}: cause {id!r} is already defined")
        if not (what and threshold and sources):
            raise ValueError(f"{path}: cause {id!r} has no what, threshold or sources")
        new = Cause(id, resource, help, what, threshold, sources, function, is_error, explains)
        _registered[id] = new
        return new

    return register
