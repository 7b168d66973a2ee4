"""Figures that a host counts by itself: wait and rate of disks, TCP retransmissions and round trip, pressure.

A reading is what happened since the one before, as a numerator and a denominator: milliseconds waited and requests,
segments sent again and segments sent. Sums over a period then give the figure of the period. Sources: Linux
Documentation/admin-guide/iostats.rst, accounting/psi.rst, networking/snmp_counter.rst; ss(8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from advisor.facts.counters import parse_paired
from advisor.host import Host, Missing
from advisor.observe.disks import parse_diskstats
from advisor.observe.memory import parse_pressure
from advisor.observe.network import CONNECTIONS, parse_connections
from advisor.proof.metrics import Metric

Reading = Mapping[str, tuple[float, float]]
"""Numerator and denominator of each metric, by its name."""

HOST_METRICS: Mapping[str, Metric] = {
    one.name: one
    for one in (
        Metric("disk-wait", "ms", "lower"),
        Metric("disk-rate", "I/O per s", "higher"),
        Metric("tcp-rtt", "ms", "lower"),
        Metric("tcp-retransmits", "%", "lower"),
        Metric("cpu-pressure", "%", "lower"),
        Metric("io-pressure", "%", "lower"),
        Metric("memory-pressure", "%", "lower"),
    )
}
"""The disk ones are of the disks in question, the others of the whole host (TCP: of its network namespace)."""
DISK_METRICS = ("disk-wait", "disk-rate")
NETWORK_METRICS = ("tcp-rtt", "tcp-retransmits")
PRESSURE_METRICS = ("cpu-pressure", "io-pressure", "memory-pressure")
_REQUESTS = ("reads", "writes")
_WAITED = ("read_ms", "write_ms")


class _Counted(NamedTuple):
    at_seconds: float
    counters: Mapping[str, float]


class HostCounters:
    """Reads the metrics of those names; ``disks`` are kernel names, such as sda. Changes nothing."""

    def __init__(self, host: Host, names: Iterable[str], disks: Sequence[str] = ()) -> None:
        self._host = host
        self._names = tuple(dict.fromkeys(names))
        self._disks = tuple(disks)
        self._before: _Counted | None = None

    def read_since(self, now: float) -> Reading:
        """What happened since the call before, nothing at the first one; ``now`` is in seconds of a steady clock.

        Raises ValueError where a counter is not there, or is smaller than it was.
        """
        before, after = self._before, _Counted(now, self._read_counters())
        self._before = after
        found: dict[str, tuple[float, float]] = {}
        if before is not None:
            gone = {name: value - before.counters.get(name, 0) for name, value in after.counters.items()}
            for name, value in gone.items():
                if value < 0:
                    raise ValueError(
                        f"{name} fell from {before.counters.get(name, 0):g} to {after.counters[name]:g}: the "
                        "counter was reset"
                    )
            found = self._figures(gone, now - before.at_seconds)
        if "tcp-rtt" in self._names:
            found["tcp-rtt"] = self._read_round_trip()
        return found

    def _figures(self, gone: Mapping[str, float], seconds: float) -> dict[str, tuple[float, float]]:
        requests = sum(value for name, value in gone.items() if name.endswith(_REQUESTS))
        waited = sum(value for name, value in gone.items() if name.endswith(_WAITED))
        whole = {
            "disk-wait": (waited, requests),
            "disk-rate": (requests, seconds),
            "tcp-retransmits": (100 * gone.get("RetransSegs", 0), gone.get("OutSegs", 0)),
            # microseconds of a second that some task waited, in percent
            **{
                f"{what}-pressure": (gone.get(f"{what} pressure", 0) / 1e4, seconds) for what in ("cpu", "io", "memory")
            },
        }
        return {name: whole[name] for name in self._names if name in whole}

    def _read_counters(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if set(DISK_METRICS) & set(self._names):
            found |= self._read_disks()
        if "tcp-retransmits" in self._names:
            counted = parse_paired(self._require("/proc/net/snmp")).get("Tcp", {})
            found |= {name: counted[name] for name in ("RetransSegs", "OutSegs") if name in counted}
        for name in set(PRESSURE_METRICS) & set(self._names):
            what = name.partition("-")[0]
            found[f"{what} pressure"] = parse_pressure(self._require(f"/proc/pressure/{what}")).get("some_us", 0)
        return found

    def _read_disks(self) -> dict[str, float]:
        all_disks = parse_diskstats(self._require("/proc/diskstats"))
        found: dict[str, float] = {}
        for disk in self._disks:
            if disk not in all_disks:
                raise ValueError(f"{disk} is no longer in /proc/diskstats")
            counters = all_disks[disk].counters
            found |= {f"{disk} {name}": counters.get(name, 0) for name in (*_REQUESTS, *_WAITED)}
        return found

    def _require(self, path: str) -> str:
        text = self._host.read(path)
        if isinstance(text, Missing):
            raise ValueError(f"{path}: {text.why}")
        return text

    def _read_round_trip(self) -> tuple[float, float]:
        """The sum of the smoothed round trips of all established connections, and how many there are."""
        done = self._host.run(CONNECTIONS)
        if isinstance(done, Missing) or not done.ok:
            raise ValueError(f"the round trip is not known: {done.why if isinstance(done, Missing) else 'ss failed'}")
        trips = [one.gauges["rtt_ms"] for one in parse_connections(done.stdout).values() if "rtt_ms" in one.gauges]
        return sum(trips), len(trips)
