"""What is asked for: throughput, operations, latency and capacity, from the words of the command line."""

from __future__ import annotations

import re

import msgspec

from advisor.errors import UsageError
from advisor.host.patterns import lazy_regex
from advisor.limits.measured import UNITS, parse_throughput

_COUNT = lazy_regex(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?([kKM]?)", re.ASCII)
_TIME = lazy_regex(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?(us|µs|μs|ms|s)", re.ASCII)
_SIZE = lazy_regex(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?(GB|TB|PB|GiB|TiB|PiB)", re.ASCII)
_MS = {"us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3}
_BYTES = {"GB": 1e9, "TB": 1e12, "PB": 1e15, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50}
_THOUSANDS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}


class Demand(msgspec.Struct, frozen=True):
    """MB/s (10^6 bytes) of reads and of writes at the same time, operations a second of both together, and the latency
    of one; None for what is not asked for. ``measured_from``: the saved series that it is from."""

    read_mb_s: float | None = None
    write_mb_s: float | None = None
    iops: float | None = None
    latency_ms: float | None = None
    capacity_bytes: float | None = None
    measured_from: str | None = None

    @property
    def mb_s(self) -> float | None:
        """Reads and writes together, as a volume and a machine count them; None where neither is asked for."""
        if self.read_mb_s is None and self.write_mb_s is None:
            return None
        return (self.read_mb_s or 0) + (self.write_mb_s or 0)

    @property
    def write_share(self) -> float:
        """The fraction of operations that write: as the throughput is divided; all of them where none is asked for,
        which is the worse case of every array."""
        if self.read_mb_s is None or self.write_mb_s is None or not self.mb_s:
            return 1.0 if self.read_mb_s is None else 0.0
        return self.write_mb_s / self.mb_s

    def divided(self, servers: int) -> Demand:
        """The part of one of several servers that share it evenly."""
        names = ("read_mb_s", "write_mb_s", "iops", "capacity_bytes")
        asked = {name: value / servers for name in names if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(self, **asked)

    @property
    def capacity_gib(self) -> float:
        return (self.capacity_bytes or 0) / 2**30


def parse_demand(
    read: str | None = None,
    write: str | None = None,
    iops: str | None = None,
    latency: str | None = None,
    capacity: str | None = None,
) -> Demand:
    """From the values of the options. Raises UsageError that names the option and the value."""
    found = _parse_scaled("--capacity", capacity, _SIZE, _BYTES, "a size, as 10TiB or 500GB")
    return Demand(
        read_mb_s=_parse_throughput("--read", read),
        write_mb_s=_parse_throughput("--write", write),
        iops=_parse_scaled("--iops", iops, _COUNT, _THOUSANDS, "a number, as 200000, 200k or 1.5M"),
        latency_ms=_parse_scaled("--latency", latency, _TIME, _MS, "a time, as 1ms or 500us"),
        capacity_bytes=None if found is None else round(found),
    )


def _parse_throughput(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    value = parse_throughput(text)
    if value is None or not 0 < value < 1e9:
        raise UsageError(f"{option} {text}: expected a throughput above 0, as 8GB/s; units: {', '.join(UNITS)}")
    return value


def _parse_scaled(
    option: str, text: str | None, form: re.Pattern[str], units: dict[str, float] | dict[str, int], what: str
) -> float | None:
    if text is None:
        return None
    found = form.fullmatch(text.strip().replace(",", ""))
    value = float(found[1]) * units[found[2]] if found else 0.0
    if not value:
        raise UsageError(f"{option} {text}: expected {what}, above 0")
    return value
