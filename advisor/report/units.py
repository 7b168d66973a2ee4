"""Numbers as a person reads them. Sizes of memory and buffers count in 1024s, of disks and speeds in 1000s."""

from __future__ import annotations

from advisor.facts.processors.cpulist import fold_list, parse_list
from advisor.report.layout import counted

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_SPEED = ("Mbit/s", "Gbit/s", "Tbit/s")


def _scale_value(value: float, base: int, units: tuple[str, ...]) -> str:
    """Three significant digits at least, none of them a trailing zero behind the point."""
    for unit in units[:-1]:
        digits = _format_digits(value)
        if float(digits) < base:
            return f"{digits} {unit}"
        value /= base
    return f"{_format_digits(value)} {units[-1]}"


def _format_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def format_binary(size_bytes: int) -> str:
    """Memory, buffers, chunks: ``208 KiB``."""
    return _scale_value(size_bytes, 1024, _BINARY)


def format_decimal(size_bytes: int) -> str:
    """Disks, as their makers count: ``1.6 TB``."""
    return _scale_value(size_bytes, 1000, _DECIMAL)


def format_speed(mbps: int) -> str:
    """A link's speed from Mbit/s: ``25 Gbit/s``."""
    return _scale_value(mbps, 1000, _SPEED)


def times(count: int, noun: str) -> str:
    """``no links``, ``1 link``, ``2 links``."""
    return counted(count, noun) if count else f"no {noun}s"


def cpu_text(cpus: str) -> str:
    """A kernel list of CPUs, exact and short: ``0-3, 8``, ``0, 8, 16 … 568 (72 CPUs)``; as it is where it is none."""
    try:
        ids = parse_list(cpus)
    except ValueError:
        return cpus
    folded = fold_list(ids)
    return f"{folded} ({counted(len(ids), 'CPU')})" if "…" in folded else folded
