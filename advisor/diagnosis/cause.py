"""A cause: one decorated function that judges a span, with the threshold and where it comes from."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from advisor.diagnosis.observation import Observation
from advisor.host.numbers import count_of
from advisor.observe.cgroups import unit_of_cgroup

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


# Who asks: the process and the service with the largest part of what binds.

ONE_DEVICE_FROM = 0.9
"""Processes are counted over all devices together: their share says something of one that moves so much of all."""


def largest_process(seen: Observation, measure: Callable[[str], int | None], total: float | None) -> Asker | None:
    """The process with the most; processes of one service are counted together in its share of ``total``.

    What is missing of ``total`` was asked by processes that began or ended during the span, or that are hidden.
    """
    amounts = {name: amount for name in seen.span.names("process") if (amount := measure(name))}
    if not amounts:
        return None
    units: dict[str, int] = {}
    for name, amount in amounts.items():
        group = seen.word("process", name, "unit") or name
        units[group] = units.get(group, 0) + amount
    group, most = max(units.items(), key=lambda one: one[1])
    name = max(
        (one for one in amounts if (seen.word("process", one, "unit") or one) == group), key=lambda one: amounts[one]
    )
    process = seen.word("process", name, "name")
    known = sum(amounts.values())
    # Both are read a moment apart, and a page counts as written before it is: never more than the whole.
    whole = None if total is None else max(total, known)
    return Asker(
        seen.word("process", name, "unit"),
        f"{process} ({name.partition('@')[0]})" if process else None,
        None if whole is None else round(most / whole, 4),
        None if whole is None else round(1 - known / whole, 4),
    )


def asks_storage(seen: Observation, device: str | None = None) -> Asker | None:
    """Who read and wrote the most, as a share of what ``device`` (or all devices) moved.

    By control groups where processes are hidden or not recorded, or where they moved much on other devices.
    """

    def moved(name: str) -> int | None:
        counts = [seen.rose("process", name, field) for field in ("read_bytes", "write_bytes")]
        return sum(one for one in counts if one is not None)

    def below(name: str) -> frozenset[str]:
        # What a loop device moves is counted at the device of its file as well, with what others move there.
        return seen.stack.lowest(name, through_files=False)

    covered = {one for name in seen.stack.devices for one in below(name)}
    own_file = {name for name, one in seen.stack.devices.items() if one.file_devices and name != device}
    tops = [name for name in seen.stack.devices if name not in covered | own_file]
    own = [name for name in tops if device is None or device in (name, *below(name))]
    rate, every = _sum_rates(seen, own), _sum_rates(seen, tops)
    # A watch reads control groups less often than processes: over another time.
    by_processes, by_groups = (
        None if rate is None else rate * seen.span.seconds_of(kind) for kind in ("process", "cgroup-io")
    )
    if rate and every and rate < ONE_DEVICE_FROM * every:
        # Only who moved more than all other devices together has certainly used this one.
        elsewhere = (every - rate) * seen.span.seconds_of("process")

        def moved_here(name: str) -> int | None:
            amount = moved(name)
            return amount if amount is not None and amount > elsewhere else None

        return _largest_unit(seen, own, by_groups) or largest_process(seen, moved_here, None)
    return largest_process(seen, moved, by_processes) or _largest_unit(seen, own, by_groups)


def _sum_rates(seen: Observation, names: Iterable[str]) -> float | None:
    """Bytes that devices read and wrote each second; None where none of them is counted."""
    rates = [seen.disks[name] for name in names if name in seen.disks]
    known = [one.read_bytes_per_s + (one.write_bytes_per_s or 0.0) for one in rates if one.read_bytes_per_s is not None]
    return sum(known) if known else None


def _largest_unit(seen: Observation, tops: Iterable[str], total: float | None) -> Asker | None:
    """The service that moved the most on some devices and what lies below them."""
    tree = {
        seen.stack.devices[one].number: top
        for top in tops
        for one in (top, *seen.stack.lowest(top, through_files=False))
    }
    amounts: dict[str, dict[str, int]] = {}
    for name in seen.span.names("cgroup-io"):
        path, _, number = name.rpartition(" ")
        unit = unit_of_cgroup(path)
        counts = [seen.rose("cgroup-io", name, field) for field in ("read_bytes", "write_bytes")]
        amount = sum(one for one in counts if one is not None)
        if unit and amount and number in tree:
            # A group counts what those below it move, too; and an array what its members do.
            by_top = amounts.setdefault(unit, {})
            by_top[tree[number]] = max(by_top.get(tree[number], 0), amount)
    if not amounts:
        return None
    units = {unit: sum(by_top.values()) for unit, by_top in amounts.items()}
    unit, most = max(units.items(), key=lambda one: one[1])
    return Asker(unit, None, round(min(1.0, most / total), 4) if total else None)


def asks_cpu(seen: Observation) -> Asker | None:
    """Who used the most CPU time, as a share of the time in which any CPU was busy."""
    whole = seen.cpus.get("all")
    seconds = seen.span.seconds_of("process")
    busy_ms = None if whole is None or whole.busy is None else whole.busy * seen.cpu_count * seconds * 1000
    return largest_process(seen, lambda name: seen.rose("process", name, "cpu_ms"), busy_ms)


def asks_memory(seen: Observation) -> Asker | None:
    """The service that reached a limit of its memory most often, or stalled for it longest."""
    best: tuple[int, str] | None = None
    for name in seen.span.names("cgroup"):
        unit = unit_of_cgroup(name)
        stalled = seen.rose("cgroup", name, "memory_some_us")
        if unit and stalled and (best is None or stalled > best[0]):
            best = stalled, unit
    return Asker(best[1], None, None) if best else None


# Control groups that reach a limit of their own: who is in one, and how its limit is read.


def name_group(path: str) -> str:
    """The service or scope of a group; of a group of neither its path. The top one has limits in a container alone."""
    return unit_of_cgroup(path) or (path if path != "/" else "This container")


def is_below(path: str, top: str) -> bool:
    """Whether a group lies below another one, which counts what it does, too."""
    return path != top and f"{path}/".startswith(f"{top.rstrip('/')}/")


def stalled_share(seen: Observation, path: str) -> float | None:
    """The share of the time in which tasks of a group waited for storage; None where that is not counted."""
    stalled, seconds = seen.rose("cgroup", path, "io_some_us"), seen.span.seconds_of("cgroup")
    return None if stalled is None or not seconds else min(1.0, stalled / (seconds * 1e6))


def device_of(seen: Observation, number: str) -> str:
    """The name of a device; its number where that is not known."""
    return seen.stack.named(number) or number


def asks_group(seen: Observation, path: str, *fields: str) -> Asker | None:
    """The service or scope of a group; for a group of neither its process with the most of ``fields``, None if unknown.

    Under version 1 the path of a process is that of systemd's own tree, so that a group made by hand is not found.
    """
    unit = unit_of_cgroup(path)
    if unit:
        return Asker(unit, None, None)

    def measure(name: str) -> int | None:
        group = seen.word("process", name, "cgroup") or ""
        if not f"{group}/".startswith(f"{path}/"):
            return None
        return sum(seen.rose("process", name, field) or 0 for field in fields)

    return largest_process(seen, measure, None)


def limit_command(
    seen: Observation, path: str, properties: str, *, file: str, controller: str, file_v1: str
) -> tuple[str, ...]:
    """Prints the limit of a group: ``properties`` of its unit; without one ``file`` of version 2, or ``file_v1`` of a
    controller of version 1."""
    unit = unit_of_cgroup(path)
    if unit:
        return (f"systemctl show {unit} --property={properties}",)
    tree = seen.word("cgroups", "trees", controller)
    below = path.rstrip("/")
    place = f"{tree}{below}/{file_v1}" if tree else f"/sys/fs/cgroup{below}/{file}"
    return (f"cat {shlex.quote(place)}",)
