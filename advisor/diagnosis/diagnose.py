"""A span and its context → what binds, most binding first, what is well and what is not known."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import msgspec

from advisor.diagnosis.cause import BINDS_FROM, BUSY_NEAR_FROM, REGISTERED, STEAL_FROM, BindingCause, Cause, percent
from advisor.diagnosis.observation import DiagnosisContext, Observation
from advisor.facts.unknown import Unknown
from advisor.host.numbers import count_noun
from advisor.observe.processes import HIDDEN_STORAGE
from advisor.observe.sample import CounterSpan

MODULES = (
    *("failures", "cloud", "storage", "standstill", "memory", "processors", "network", "exhausted", "network_storage"),
    "clock",
)


class Diagnosis(msgspec.Struct, frozen=True):
    """``binds`` has what no narrower cause explains; ``equal`` is how many of its first account for about as much.

    ``near`` are the figures that bind by no threshold and yet are no sign of rest, nearest first; ``well`` are the
    others that were looked at. ``taken_at`` is when the span ended, in seconds since the epoch. ``unjudged`` are links
    that carry traffic and whose speed is unknown: whether they are full cannot be said.
    """

    hostname: str | None
    seconds: float
    taken_at: float
    binds: tuple[BindingCause, ...]
    equal: int
    near: tuple[str, ...]
    well: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    unjudged: tuple[str, ...] = ()


class ResourceUse(msgspec.Struct, frozen=True):
    """How much of a resource is used, or how long tasks wait for it: 0 to 1. The first word of ``name`` says which."""

    name: str
    share: float


def measure_uses(span: CounterSpan, context: DiagnosisContext) -> tuple[ResourceUse, ...]:
    """The resources of the path over a span: CPUs, memory, disks and links whose use is known."""
    seen = Observation(span, context)
    found = []
    whole = seen.cpus.get("all")
    if whole is not None and whole.busy is not None:
        found.append(ResourceUse("cpu busy", whole.busy))
    stalls = (("cpu", "cpu"), ("memory", "memory"), ("disk", "io"))
    found += [ResourceUse(f"{label} waits", share) for label, name in stalls if (share := seen.stall(name)) is not None]
    disks = {name: one.utilisation for name, one in seen.disks.items() if name in seen.stack.devices}
    links = {name: one.utilisation for name, one in seen.links.items()}
    for label, shares in (("disk", disks), ("net", links)):
        known = ((name, share) for name, share in sorted(shares.items()) if share is not None)
        found += [ResourceUse(f"{label} {name}", share) for name, share in known]
    return tuple(found)


def list_causes() -> tuple[Cause, ...]:
    """Every cause, in the order of the path and then as they stand in their module."""
    for name in MODULES:
        importlib.import_module(f"advisor.diagnosis.{name}")
    return tuple(REGISTERED.values())


def diagnose(span: CounterSpan, context: DiagnosisContext, taken_at: float) -> Diagnosis:
    """What binds over the span. Every cause is asked; those that a narrower one explains are left out."""
    seen = Observation(span, context)
    found = [binding for cause in list_causes() for binding in cause.find(seen)]
    binds = sorted(leave_narrowest(found), key=lambda one: (-one.rank, -one.share, one.id, one.device or ""))
    levels = sorted(_list_levels(seen, binds), key=lambda one: -one.near)
    return Diagnosis(
        hostname=seen.facts.host.hostname,
        seconds=round(span.seconds, 3),
        taken_at=taken_at,
        binds=tuple(binds),
        equal=sum(not one.is_error and one.share >= 0.9 * binds[0].share for one in binds) if binds else 0,
        near=tuple(one.text for one in levels if one.near),
        well=tuple(one.text for one in levels if not one.near),
        unknown=tuple(_list_unknown(seen, binds)),
        unjudged=tuple(_measure_unjudged(seen)),
    )


def leave_narrowest(found: list[BindingCause]) -> list[BindingCause]:
    """The bindings that no other one explains. Two that explain each other both stay."""

    def is_explained(one: BindingCause, by: BindingCause) -> bool:
        return by is not one and bool({one.id, f"{one.id} {one.device}"} & set(by.explains))

    return [
        one
        for one in found
        if not any(is_explained(one, by=other) and not is_explained(other, by=one) for other in found)
    ]


WAITS_NEAR_FROM = 0.25
DISK_NEAR_FROM = 0.5
LINK_NEAR_FROM = 0.7
MEMORY_NEAR_FROM = BINDS_FROM / 2
QUIET_BYTES_PER_S = 1.25e6
"""A tenth of 100 Mbit/s, the slowest link that a storage host has: any link has room for it, whatever its speed."""


def _measure_unjudged(seen: Observation) -> dict[str, float]:
    """Bytes a second of the busier direction of each link whose use is unknown and that carries more than any link
    has room for. A bridge or tunnel above a device carries what the device does, which is judged by itself."""
    found = {
        name: busier
        for name, one in seen.links.items()
        if name != "lo"
        and one.utilisation is None
        and (busier := max(one.rx_bytes_per_s or 0.0, one.tx_bytes_per_s or 0.0)) > QUIET_BYTES_PER_S
    }
    # Errors by kind are read of links that have a device alone.
    devices = {name for name in seen.links if seen.rose("link-errors", name, "rx_crc_errors") is not None}
    return {name: busier for name, busier in found.items() if name in devices or not devices}


class _Level(msgspec.Struct, frozen=True):
    """What was looked at of a resource that does not bind; ``near`` is the figure that is no sign of rest, or 0."""

    text: str
    near: float = 0.0


def _list_levels(seen: Observation, binds: list[BindingCause]) -> Iterator[_Level]:
    """What was looked at and does not bind, by resource."""
    bound = {one.resource for one in binds}
    if "cpu" not in bound:
        yield from _list_cpu_level(seen)
    stall = seen.stall("memory")
    if "memory" not in bound and stall is not None:
        yield _Level(f"memory stalls {percent(stall, 1)} of the time", stall if stall >= MEMORY_NEAR_FROM else 0.0)
    if not {"disk", "array", "application"} & bound:
        yield from _list_disk_level(seen)
    if "net" not in bound and seen.links:
        used = max((one.utilisation for one in seen.links.values() if one.utilisation is not None), default=None)
        parts = [] if used is None else [f"{percent(used)} used"]
        if seen.resent_share is not None:
            parts.append(f"{percent(seen.resent_share, 3)} retransmitted")
        is_near = used is not None and used >= LINK_NEAR_FROM
        if parts:
            yield _Level(f"links: {', '.join(parts)}", used if used and is_near else 0.0)
        elif not _measure_unjudged(seen) and all(one.unknown is None for one in seen.links.values()):
            yield _Level("links quiet")
    arrays = [one for one in seen.facts.arrays if one.state in ("clean", "active")]
    if arrays and "array" not in bound:
        yield _Level(f"{len(arrays)} arrays clean" if len(arrays) > 1 else "1 array clean")


def _list_cpu_level(seen: Observation) -> Iterator[_Level]:
    whole = seen.cpus.get("all")
    if whole is None or whole.busy is None:
        return
    stall, stolen = seen.stall("cpu") or 0.0, whole.steal or 0.0
    steal = "no steal" if stolen < 0.005 else f"{percent(stolen, 1)} stolen"
    if whole.busy >= BUSY_NEAR_FROM or stall >= WAITS_NEAR_FROM or stolen >= STEAL_FROM:
        waited = f", tasks waited {percent(stall)} of the time" if seen.stall("cpu") is not None else ""
        niced = f" ({percent(seen.niced)} niced)" if seen.niced >= BINDS_FROM else ""
        yield _Level(f"CPU {percent(whole.busy)} busy{niced}{waited}, {steal}", max(whole.busy, stall))
    else:
        yield _Level(f"CPU {percent(whole.busy)} busy, {steal}")


def _list_disk_level(seen: Observation) -> Iterator[_Level]:
    stall = seen.stall("io") or 0.0
    waited = f"tasks waited {percent(stall)} of the time for storage" if stall >= BINDS_FROM else ""
    near = stall if waited else 0.0
    if seen.loads:
        busiest = max(seen.loads.values(), key=lambda one: one.utilisation)
        near = max(near, busiest.utilisation) if waited or busiest.utilisation >= DISK_NEAR_FROM else 0.0
        text = f"disks: {busiest.name} busiest with {percent(busiest.utilisation)}, queue {busiest.queue:.1f}"
        yield _Level(f"{text}, {waited}" if waited else text, near)
    elif waited:
        yield _Level(f"disks: {waited}", near)
    elif seen.disks:
        yield _Level("disks idle")


_NEEDED = {
    "disk": "block devices",
    "cpu": "CPU times",
    "pressure": "stalls (PSI)",
    "protocol": "TCP counters",
    "softnet": "receive queues",
    "vm": "memory counters",
    "cgroup": "control groups",
    "io-cost": "what control groups wait for at their devices",
    "process": "processes",
    "tcp": "waits of TCP connections",
    "conntrack": "tracked connections",
    "link": "links",
    "irq": "interrupts",
    "path": "multipath paths",
    "ebs": "limits of EBS volumes",
    "allowance": "network limits of the instance",
    "clock": "synchronisation of the clock",
    "kill": "names of processes that the kernel killed",
    "log-error": "errors of devices in the kernel's log",
    "smart": "health of NVMe drives",
    "space": "space of file systems",
    "nfsd": "threads of the NFS server",
    "pause": "pause frames",
}


def _list_unknown(seen: Observation, binds: list[BindingCause]) -> Iterator[Unknown]:
    """What could not be read, or says nothing over the span, with the reason.

    Processes whose storage is hidden count only where somebody asks for storage, names of killed ones where some were.
    """
    why: dict[str, str] = {}
    asks_storage = any(one.resource not in ("cpu", "net", "clock") for one in binds)
    killed = seen.rose("vm", "host", "oom_kill")
    for sample in seen.span.samples:
        for key, reason in sample.missing.items():
            kind, _, name = key.partition(" ")
            if (key == HIDDEN_STORAGE and not asks_storage) or (kind == "kill" and not killed):
                continue
            label = _NEEDED.get(kind, kind)
            why[f"{label}: {name}" if name and name != "others" else label] = reason
    yield from (Unknown(fact, reason) for fact, reason in why.items())
    others = seen.level("network-spaces", "host", "others")
    if others:
        fact = f"network of {count_noun(others, 'other namespace')}"
        yield Unknown(fact, "containers and guests count for themselves: ip netns exec NAME, or nsenter --net, sees it")
    for name, busier in _measure_unjudged(seen).items():
        yield Unknown(f"use of link {name}", f"it carries {busier / 1e6:,.1f} MB/s, and its speed is unknown")
    for kind in ("disk", "link", "cpu", "protocol", "vm"):
        for name in seen.span.names(kind):
            unknown = seen.span.why_unknown(kind, name)
            if unknown is not None and not (kind == "disk" and name not in seen.stack.devices):
                yield Unknown(f"{_NEEDED[kind]}: {name}", unknown)
    if not seen.span.names("pressure") and "stalls (PSI)" not in why:
        yield Unknown("stalls (PSI)", "this kernel has no /proc/pressure (before 4.20, or switched off)")
