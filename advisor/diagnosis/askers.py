"""Who asks: the process and the service with the largest part of what binds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from advisor.diagnosis.cause import Asker
from advisor.diagnosis.observation import Observation
from advisor.observe.cgroups import unit_of_cgroup

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
