"""The ceilings of a host: as text for a person, and as the document of ``advisor limits --json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from advisor.ceilings.records import Bought, Bound, Ceiling, Known, Limits, Observed, Path, Rate
from advisor.report.layout import Page, Piece, Span, listed
from advisor.report.units import binary, decimal
from advisor.report.words import ranked, runs

_KNOWN: Final[dict[Known, str]] = {
    "host": "read from the host",
    "table": "from a table",
    "declared": "declared",
    "unknown": "not known",
}
_PLACES_SHOWN: Final = 6


def limits_document(limits: Limits) -> dict[str, object]:
    """``advisor.limits/1``."""
    return {"schema": "advisor.limits/1", **msgspec.to_builtins(limits)}


def limits_text(limits: Limits, *, width: int, color: bool) -> str:
    """Each path with its ceilings, the binding one below; paths that are alike are told once."""
    page = Page(width, color=color)
    page.add(Span(f"Ceilings of {limits.hostname or 'this host'}", "bold"), *_instance(limits), hang=2)
    page.add("Each path by itself, nothing else running. What is not known may lie lower; nothing is estimated.")
    page.add("Two figures are reads / writes.")
    for kind, title in (("storage", "Storage"), ("network", "Links")):
        paths = [path for path in limits.paths if path.kind == kind]
        page.heading(title, "" if paths else ": none found")
        for _, same in groupby(paths, key=_shape):
            page.blank()
            _add_path(page, list(same))
    _add_bought(page, limits.bought)
    page.heading("Not known of any path")
    page.labelled([(one.what, (one.why,)) for one in limits.unknown])
    sources = dict.fromkeys(one.source for path in limits.paths for one in path.ceilings if one.source)
    if sources:
        page.heading("Sources")
        for source in sources:
            page.bullet(source)
    if limits.notes:
        page.heading("Notes")
        for note in limits.notes:
            page.bullet(note)
    return page.text


def _instance(limits: Limits) -> tuple[Piece, ...]:
    return (f" · {limits.instance_type}",) if limits.instance_type else ()


def _shape(path: Path) -> object:
    """What paths have in common that are told once: only bare devices with the same figures, for the same reasons."""
    if path.layers or path.file_system or path.observed or path.holds or path.name != path.device:
        return path.kind, path.device
    ceilings = tuple(msgspec.structs.replace(one, where=(), why=_without(one.why, path.name)) for one in path.ceilings)
    return path.kind, ceilings, path.capacity, path.notes


def _without(text: str, name: str) -> str:
    return text.removeprefix(f"{name}: ")


def _add_path(page: Page, paths: Sequence[Path]) -> None:
    path = paths[0]
    names = [one.name for one in paths]
    title = runs(names, ranked(names)) if len(paths) > 1 else path.name
    count = f" · {len(paths)} alike" if len(paths) > 1 else ""
    page.add(Span(title, "bold"), count, _title_words(path), indent=2, hang=2)
    for layer in path.layers:
        page.add(Span(layer, "dim"), indent=4, hang=2)
    for kept in path.holds:
        page.add(kept, indent=4, hang=2)
    if path.ceilings:
        page.table([_HEAD, *(_row(one, many=len(paths) > 1) for one in path.ceilings)], indent=4)
    page.labelled(list(_binding_rows(path)), indent=4)
    for note in path.notes:
        page.add(note, indent=4, hang=2)


def _title_words(path: Path) -> str:
    words = []
    if path.file_system:
        words.append(f"{path.file_system} on {path.device}")
    elif path.name != path.device:
        words.append(path.device)
    if path.capacity:
        words.append(f"{decimal(path.capacity.raw_bytes)} raw, {binary(path.capacity.usable_bytes)} usable")
    return "".join(f" · {word}" for word in words)


_HEAD: Final = tuple(Span(word, "dim") for word in ("part", "MB/s", "IOPS", "known how"))


def _row(one: Ceiling, *, many: bool) -> tuple[Piece, ...]:
    known = Span(_KNOWN[one.known], "yellow" if one.known == "unknown" else "")
    where = "" if many else _where(one)
    why = f"{known.text}: {where}{one.why}"
    if one.known == "unknown":
        return one.what, Span("?", "yellow"), Span("?", "yellow"), why
    return one.what, _two(one.sustained, "mb_per_s"), _two(one.sustained, "iops"), why + _burst_words(one)


def _where(one: Ceiling) -> str:
    shown = one.where[:_PLACES_SHOWN]
    more = len(one.where) - len(shown)
    if not shown or one.stage in ("instance", "wire") or set(shown) & set(one.why.partition(":")[:1]):
        return ""
    return f"{', '.join(shown)}{f' and {more} more' if more else ''}; "


def _burst_words(one: Ceiling) -> str:
    if one.burst is None:
        return ""
    lasting = f" for {minutes(one.burst_seconds)}" if one.burst_seconds else ""
    parts = [
        f"{_two(one.burst, name)} {unit}"
        for name, unit in (("mb_per_s", "MB/s"), ("iops", "IOPS"))
        if _two(one.burst, name) != "-"
    ]
    return f"; from full credits {listed(parts)}{lasting}"


def _two(rate: Rate, measure: str) -> str:
    """One figure where reads and writes are alike, else both."""
    read, write = (getattr(rate, f"{way}_{measure}") for way in ("read", "write"))
    if read == write:
        return number(read)
    return f"{number(read)} / {number(write)}"


def number(value: float | None) -> str:
    """``12,420``; three digits where it is small; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percent(fraction: float) -> str:
    """``64 %``."""
    return f"{100 * fraction:.0f} %"


def minutes(seconds: float) -> str:
    """``47 min``, ``2 h 30 min``."""
    whole = int(seconds // 60)
    if whole < 60:
        return f"{whole} min" if whole else f"{seconds:.0f} s"
    return f"{whole // 60} h {whole % 60} min" if whole % 60 else f"{whole // 60} h"


def _binding_rows(path: Path) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    if not path.sustained:
        yield "bound by", ("no ceiling of it is known",)
    for measure, unit in (("mb_per_s", "MB/s"), ("iops", "IOPS")) if path.sustained else ():
        bound = [one for one in path.sustained if one.quantity.endswith(measure)]
        burst = [one for one in path.burst if one.quantity.endswith(measure)]
        words = _bound_words(bound, unit) if bound else f"no ceiling of {unit} is known"
        if burst:
            words += f"; in bursts {_bound_words(burst, unit)}"
        yield f"{unit} bound by", (words,)
    for one in path.observed:
        yield "measured", (_observed_words(one),)


def _bound_words(bounds: Sequence[Bound], unit: str) -> str:
    same = len({(one.value, one.ceiling) for one in bounds}) == 1
    if same:
        return f"{bounds[0].what}, {number(bounds[0].value)} {unit}"
    if len({one.ceiling for one in bounds}) == 1:
        each = ", ".join(f"{one.quantity.partition('_')[0]}s {number(one.value)}" for one in bounds)
        return f"{bounds[0].what}, {each} {unit}"
    return "; ".join(f"{one.quantity.partition('_')[0]}s {one.what}, {number(one.value)} {unit}" for one in bounds)


def _observed_words(one: Observed) -> str:
    unit = "IOPS" if one.measure == "iops" else "MB/s"
    words = f"{one.workload}: {number(one.value)} {unit}"
    if one.share is None or one.ceiling is None:
        return f"{words}; no ceiling of it is known"
    words += f", {percent(one.share)} of {number(one.ceiling)}{' in bursts' if one.in_burst else ''}"
    return f"{words}; a full bucket lasts {minutes(one.seconds)} at that" if one.seconds else words


def _add_bought(page: Page, bought: Sequence[Bought]) -> None:
    if not bought:
        return
    page.heading("All EBS volumes together against the instance")
    for one in bought:
        unit = "IOPS" if one.quantity.endswith("iops") else "MB/s"
        words = f"volumes {number(one.volumes)} {unit}, instance {number(one.instance)} {unit}"
        tail = f": {percent(one.unusable)} of that is not usable" if one.unusable else ": all of it is usable"
        page.bullet(words + tail)
