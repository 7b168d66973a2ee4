"""Control groups that wait for their share of a device: io.cost and its weights, io.latency, the weights of BFQ.

Source: Linux Documentation/admin-guide/cgroup-v2.rst (IO), block/bfq-iosched.rst; block/blk-iocost.c, blk-iolatency.c.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.diagnosis.cause import BINDS_FROM, device_of, is_below, name_group, stalled_share
from advisor.diagnosis.observation import Observation

USED_UP_FROM = 0.9
FULL_FROM = 0.3
"""Of the time and the requests of a device: what is more is no limit of a group, but the device itself."""
BFQ_WAITS_FROM = 0.5
BFQ_TIMES = 2
"""How much heavier the other group is: with like weights BFQ shares a device out evenly."""


class HeldGroup(msgspec.Struct, frozen=True):
    """A group that waits for its share of the device of a number; ``file`` of its directory holds what decides it."""

    path: str
    number: str
    share: float
    title: str
    advice: str
    properties: str
    file: str
    evidence: dict[str, float | int | str | None]


def find_held_groups(seen: Observation) -> tuple[HeldGroup, ...]:
    """Each group and device once; of a group and one below it the lower one, which is what waits."""
    found: dict[tuple[str, str], HeldGroup] = {}
    for find in (_held_by_cost, _held_for_latency, _held_by_model, _held_by_bfq):
        for one in find(seen):
            found.setdefault((one.path, one.number), one)
    return tuple(
        one
        for one in found.values()
        if not any(other is not one and is_below(other.path, one.path) for other in found.values())
    )


def _names(seen: Observation) -> Iterator[tuple[str, str, str]]:
    """Each group and device: the name of both in the span, the path, the number."""
    for name in seen.span.names("cgroup-io"):
        path, _, number = name.rpartition(" ")
        yield name, path, number


def _moved(seen: Observation, name: str) -> int:
    return sum(seen.rose("cgroup-io", name, field) or 0 for field in ("read_bytes", "write_bytes"))


def _is_full(seen: Observation, number: str) -> bool:
    """Whether requests wait in the device itself for most of the time."""
    load = seen.loads.get(device_of(seen, number))
    return load is not None and load.utilisation * load.excess >= FULL_FROM and load.utilisation >= USED_UP_FROM


def _largest_other(seen: Observation, path: str, number: str) -> str | None:
    """The group that moved the most on a device, of those that are neither above nor below this one."""
    others = {
        other: moved
        for name, other, its in _names(seen)
        if its == number and other != path and not is_below(path, other) and not is_below(other, path)
        if (moved := _moved(seen, name))
    }
    # A group counts what those below it move, too.
    deepest = {one: moved for one, moved in others.items() if not any(is_below(lower, one) for lower in others)}
    return max(deepest, key=lambda one: deepest[one], default=None)


def _weights(seen: Observation, path: str, other: str, number: str, field: str) -> tuple[float | None, float | None]:
    """The weights of two groups where their ways part: weights count among the groups of one directory."""
    ours, theirs = path.split("/"), other.split("/")
    parts = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if parts is None:
        return None, None
    heads = ("/".join(words[: parts + 1]) for words in (ours, theirs))
    first, second = (seen.level("cgroup-io", f"{head} {number}", field) for head in heads)
    return first, second


def _held_by_cost(seen: Observation) -> Iterator[HeldGroup]:
    """Groups whose requests io.cost held back, by its own account."""
    seconds = seen.span.seconds_of("cgroup-io")
    for name, path, number in _names(seen):
        rises = {what: seen.rose("cgroup-io", name, f"cost_{what}_us") for what in ("wait", "indebt", "indelay")}
        # A group that is in debt waits until it has paid; what it waits is in the first or the last figure.
        held = max(rises["wait"] or 0, rises["indelay"] or 0)
        if path == "/" or not seconds or held / (seconds * 1e6) < BINDS_FROM:
            continue
        other = _largest_other(seen, path, number)
        weights = _weights(seen, path, other, number, "weight") if other else (None, None)
        usage = seen.rose("cgroup-io", name, "cost_usage_us")
        yield HeldGroup(
            path,
            number,
            min(1.0, held / (seconds * 1e6)),
            f"{name_group(path)} waits for its share of {device_of(seen, number)}, which io.cost gives out by weights",
            "Raise the weight of the service (IOWeight=), or lower that of the other one; if the device has room, "
            "io.cost.model or io.cost.qos is too low for it.",
            "IOWeight,IODeviceWeight",
            "io.weight",
            {
                **{f"{what}_s": None if rise is None else rise / 1e6 for what, rise in rises.items()},
                "used_share": None if usage is None else usage / (seconds * 1e6),
                "weight": weights[0],
                "other_group": other,
                "other_weight": weights[1],
                **_cost_words(seen, number),
            },
        )


def _cost_words(seen: Observation, number: str) -> dict[str, float | int | str | None]:
    words = {f"io_cost_{what}": seen.word("io-cost", number, what) for what in ("qos", "model")}
    return {"vrate_percent": seen.level("io-cost", number, "vrate_percent"), **words}


def _held_for_latency(seen: Observation) -> Iterator[HeldGroup]:
    """Groups whose queue io.latency made shorter, since another group misses its target."""
    for name, path, number in _names(seen):
        depth, delay_ns = (seen.level("cgroup-io", name, field) for field in ("depth", "delay_ns"))
        # What io.cost delays is in its own account.
        is_delayed = bool(delay_ns) and seen.rose("cgroup-io", name, "cost_wait_us") is None
        stall = stalled_share(seen, path)
        if not (depth or is_delayed) or path == "/" or (stall is not None and stall < BINDS_FROM):
            continue
        targets = {
            other: target
            for its, other, same in _names(seen)
            if same == number and other != path and (target := seen.level("cgroup-io", its, "latency_target_us"))
        }
        if not targets:
            continue
        protected = min(targets, key=lambda one: targets[one])
        yield HeldGroup(
            path,
            number,
            stall if stall is not None else 0.5,
            f"{name_group(path)} is held back on {device_of(seen, number)} for the latency of {name_group(protected)}",
            "Raise the target of the other service (IODeviceLatencyTargetSec=, io.latency) to what the device can "
            "give, if this one is as important.",
            "IODeviceLatencyTargetUSec",
            "io.latency",
            {
                "depth": depth or None,
                "delay_ms": delay_ns / 1e6 if delay_ns else None,
                "stalled_share": stall,
                "for_group": protected,
                "target_us": targets[protected],
            },
        )


def _held_by_model(seen: Observation) -> Iterator[HeldGroup]:
    """Groups that wait for a device of which io.cost has given out all that its model has, and which is not full. For
    kernels that do not show what each group waits."""
    seconds = seen.span.seconds_of("cgroup-io")
    for number in seen.span.names("io-cost"):
        names = [(name, path) for name, path, its in _names(seen) if its == number]
        used = max((seen.rose("cgroup-io", name, "cost_usage_us") or 0 for name, _ in names), default=0)
        is_shown = any(seen.rose("cgroup-io", name, "cost_wait_us") is not None for name, _ in names)
        if not seconds or is_shown or used < USED_UP_FROM * seconds * 1e6 or _is_full(seen, number):
            continue
        for name, path in names:
            stall = stalled_share(seen, path)
            if path == "/" or stall is None or stall < BFQ_WAITS_FROM or not _moved(seen, name):
                continue
            device = device_of(seen, number)
            yield HeldGroup(
                path,
                number,
                stall,
                f"{name_group(path)} waits for {device}: io.cost has given out all that its model has, and the device "
                "has room",
                "Measure the device again for io.cost.model (resctl-bench, iocost_coef_gen.py), or raise max= of "
                "io.cost.qos.",
                "IOWeight,IODeviceWeight",
                "io.weight",
                {"given_out_share": used / (seconds * 1e6), "stalled_share": stall, **_cost_words(seen, number)},
            )


def _held_by_bfq(seen: Observation) -> Iterator[HeldGroup]:
    """Groups that wait at a full device with the scheduler BFQ, while a heavier one moves far more."""
    chosen = {disk.name: disk.scheduler for disk in seen.facts.disks}
    for name, path, number in _names(seen):
        device, stall = device_of(seen, number), stalled_share(seen, path)
        load = seen.loads.get(device)
        if chosen.get(device) != "bfq" or load is None or load.utilisation < USED_UP_FROM or not _moved(seen, name):
            continue
        other = _largest_other(seen, path, number)
        ours, theirs = _weights(seen, path, other, number, "bfq_weight") if other else (None, None)
        if stall is None or stall < BFQ_WAITS_FROM or not ours or not theirs or theirs < BFQ_TIMES * ours:
            continue
        if _moved(seen, f"{other} {number}") < BFQ_TIMES * _moved(seen, name):
            continue
        yield HeldGroup(
            path,
            number,
            stall,
            f"{name_group(path)} waits for its share of {device}: BFQ gives it a weight of {ours:.0f}, and "
            f"{name_group(other or '')} one of {theirs:.0f}",
            "Raise the weight of the service (IOWeight=), or lower that of the other one; both wait less for a device "
            "with room.",
            "IOWeight,IODeviceWeight",
            "io.bfq.weight",
            {"stalled_share": stall, "weight": ours, "other_group": other, "other_weight": theirs},
        )
