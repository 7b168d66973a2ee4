"""The words for tunables: what a value counts, when it takes effect, and what a kind is called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from advisor.facts.processors.cpulist import fold_list, parse_list
from advisor.facts.settings import find_setting
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change
from advisor.report.layout import Cell, Span, Style, counted
from advisor.shell.rollback_script import hand_command
from advisor.tunables import Effect, Risk, find_kind, parse_tunable

if TYPE_CHECKING:
    from advisor.rules.rule import Severity

# Numbers as a person reads them. Sizes of memory and buffers count in 1024s, of disks and speeds in 1000s.

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


# How a severity looks, the same on every page: a word, a style of the terminal, and colours of pages and pictures.


class SeverityLook(NamedTuple):
    """``light`` and ``dark`` are colours on light and dark paper, each with a contrast of at least 4.5 (WCAG 2.2)."""

    name: Severity
    title: str
    style: Style
    light: str
    dark: str


LOOKS = (
    SeverityLook("critical", "Critical", "bold red", "#b3131f", "#ff7b72"),
    SeverityLook("warning", "Warnings", "bold yellow", "#7a5b00", "#e6c14c"),
    SeverityLook("advice", "Advice", "bold cyan", "#00687a", "#4cc9dc"),
    SeverityLook("info", "Info", "bold blue", "#4a5fb0", "#a3b4ff"),
)
"""The gravest first."""
SEVERITY_STYLE: dict[str, Style] = {look.name: look.style for look in LOOKS}


_COUNT = lazy_regex(r"(\b[0-9]+ (?:critical|warnings?|advice|info)\b)")


def split_counts(text: str) -> Iterator[tuple[str, str]]:
    """The text in parts, each with the severity that it counts, or none."""
    for part in _COUNT.split(text):
        yield (part.rpartition(" ")[2].removesuffix("s") if _COUNT.fullmatch(part) else ""), part


def paint_counts(text: str, style: Style = "") -> list[Span]:
    """A text with its counts of severities in their colours, the rest in ``style``."""
    return [Span(part, SEVERITY_STYLE.get(severity, style)) for severity, part in split_counts(text)]


def severity_span(severity: str) -> Span:
    """Return the word in its colour."""
    return Span(severity, SEVERITY_STYLE[severity])


def count_severities(severities: Iterable[Severity]) -> list[tuple[Severity, str]]:
    """Return each severity that occurs with its count, the gravest first: ``critical``, ``1 critical``."""
    found = list(severities)
    # Only a warning has a plural.
    return [
        (look.name, counted(count, look.name, None if look.name == "warning" else look.name))
        for look in LOOKS
        if (count := found.count(look.name))
    ]


def count_spans(severities: Iterable[Severity]) -> list[Cell]:
    """Return the counts in their colours."""
    return [Span(text, SEVERITY_STYLE[name]) for name, text in count_severities(severities)]


EFFECTS: Mapping[Effect, str] = {
    "now": "at once",
    "new-sockets": "for new sockets; open ones keep their value",
    "new-links": "for links that first come up from then on; others keep their qdisc",
    "remount": "at the next mount",
    "service-restart": "when the service is restarted (manual step)",
    "reboot": "at the next boot",
}

RISKS: Mapping[Risk, str] = {
    "none": "",
    "link": "the link may lose frames for a moment while its driver applies the value",
    # When it takes effect says it already.
    "restart": "",
}

_FIELDS = ("first", "second", "third", "fourth")


def kind_of(identity: str) -> str:
    return identity.partition(":")[0]


def short_name(identity: str) -> str:
    """The id without its kind, for where the kind is known."""
    return identity.partition(":")[2]


def counted_kind(kind: str, count: int) -> str:
    """``7 kernel parameters``."""
    return counted(count, found.noun if (found := find_kind(f"{kind}:")) else "value")


def unit_word(identity: str) -> str:
    """What a value counts, where a word says it: ``bytes`` of an MTU, ``packets`` of LLT; else empty."""
    kind, rest = find_kind(identity), short_name(identity)
    units = kind.units if kind else ()
    return next((unit for pattern, unit in units if re.fullmatch(pattern, rest)), "")


def value_text(identity: str, value: str) -> str:
    """A value as people read it: the CPUs of an interrupt drawn together."""
    return cpu_text(value) if identity.startswith("irq:") else value


def human_change(identity: str, before: str, after: str) -> str:
    """What changes of a value in bytes: ``208 KiB → 8 MiB``, of a triple the fields that differ; else empty."""
    old, new = before.split(), after.split()
    numbers = all(re.fullmatch(r"\d{1,18}", field, re.ASCII) for field in (*old, *new))
    if not _is_in_bytes(identity) or not numbers or len(old) != len(new) or len(new) > len(_FIELDS):
        return ""
    names = _FIELDS if len(new) > 1 else ("",)
    return ", ".join(
        f"{name} {format_binary(int(one))} → {format_binary(int(two))}".strip()
        for name, one, two in zip(names, old, new, strict=False)
        if one != two
    )


def _is_in_bytes(identity: str) -> bool:
    key = identity.removeprefix("sysctl:")
    return ":" not in key and (setting := find_setting(key)) is not None and setting.is_in_bytes


def restart_commands(changes: Iterable[Change]) -> tuple[str, ...]:
    """What an administrator types so that services apply their values."""
    waiting = (parse_tunable(change.tunable) for change in changes if change.takes_effect == "service-restart")
    found = (one.restart_command for one in waiting)
    return tuple(hand_command(step) for step in dict.fromkeys(found) if step is not None)
