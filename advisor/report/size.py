"""The choice of hardware: as text for a person, and as the document of ``advisor size --json``."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.report.layout import Page, Span, listed
from advisor.report.limits import format_number, format_percent
from advisor.sizing.records import Choice, Short, Sizing, VolumePurchase

_UNITS = {"mb_s": "MB/s", "iops": "IOPS", "latency_ms": "ms"}
_CLOUDS = {"aws": "AWS", "azure": "Azure", "metal": "own hardware"}
_PER = {"month": "a month", "hour": "an hour", "once": "once"}


def size_document(sizing: Sizing) -> dict[str, object]:
    """``advisor.size/1``."""
    return {"schema": "advisor.size/1", **msgspec.to_builtins(sizing)}


def size_text(sizing: Sizing, *, width: int, color: bool) -> str:
    """The choices, best first, each with what binds it; or what falls short."""
    page = Page(width, color=color)
    demand = sizing.demand
    parts = _known_parts(
        (demand.read_mb_s, "{} MB/s read"), (demand.write_mb_s, "{} MB/s written"), (demand.iops, "{} IOPS")
    )
    if demand.latency_ms is not None:
        parts.append(f"a latency of {demand.latency_ms:g} ms")
    if demand.capacity_bytes is not None:
        parts.append(f"{format_number(demand.capacity_gib)} GiB")
    page.add(Span(f"Hardware for {listed(parts)}", "bold"), hang=2)
    if sizing.demand.measured_from:
        page.add(f"From {sizing.demand.measured_from}.")
    if sizing.choices:
        page.add(*_count_words(sizing))
    for at, one in enumerate(sizing.choices, 1):
        page.blank()
        about = []
        if one.vcpus is not None:
            about.append(f"{one.vcpus} vCPUs")
        if one.memory_gib is not None:
            about.append(f"{one.memory_gib:,.10g} GiB")
        name = one.instance or _CLOUDS[one.cloud]
        page.add(f"{at}. ", Span(name, "bold"), *(f" · {', '.join(about)}" if about else ""), hang=3)
        page.labelled(list(_size_rows(one)), indent=4)
    if not sizing.choices:
        page.blank()
        page.add(Span("No choice carries it.", "yellow"))
    page.bulleted("What falls short", (_short_words(short) for short in sizing.short))
    page.bulleted("Not considered", (f"{one.kind}: {one.why} ({one.source})" for one in sizing.excluded))
    page.bulleted("Notes", sizing.notes)
    page.bulleted("Sources", sizing.sources)
    return page.text


def _known_parts(*parts: tuple[float | None, str]) -> list[str]:
    """The numbers that are known, each in its words."""
    return [words.format(format_number(value)) for value, words in parts if value is not None]


def _count_words(sizing: Sizing) -> Iterator[str]:
    certain = sizing.found - sizing.undecided
    found = f"{certain} choice carries it" if certain == 1 else f"{certain} choices carry it"
    if not certain:
        found = "No choice is known to carry it"
    shown = len(sizing.choices)
    more = f"; {shown} of {sizing.found} are shown" if shown < sizing.found else ""
    order = "by the smallest unusable share, then by the smallest machine"
    if sizing.prices:
        order = f"by the prices in {sizing.prices}"
    yield f"{found}{more}, {order}."
    if sizing.undecided:
        yield f" {sizing.undecided} may: something of {'it' if sizing.undecided == 1 else 'them'} is unknown."


def _size_rows(one: Choice) -> Iterator[tuple[str, tuple[str | Span, ...]]]:
    yield "volumes" if one.instance else "drives", ("; ".join(map(_purchase_words, one.volumes)),)
    for link in one.links:
        yield "links", (f"{link.count} × {link.kind}, each {format_number(link.mb_s)} MB/s",)
    rates = (
        ((one.read_mb_s, "{} MB/s"),)
        if one.read_mb_s == one.write_mb_s
        else ((one.read_mb_s or None, "{} MB/s read"), (one.write_mb_s or None, "{} MB/s written"))
    )
    parts = _known_parts(*rates, (one.iops, "{} IOPS"))
    yield "carries", (", ".join(parts),)
    others = "; ".join(f"{part.what} {format_percent(part.headroom)}" for part in one.parts if part.what != one.binds)
    words = f"{one.binds}, {format_percent(one.headroom)} headroom"
    yield "bound by", (f"{words}; {others}" if others else words,)
    if round(one.unusable, 2):
        whose = "promise cannot pass this instance" if one.instance else "read cannot pass the links"
        what = f"{format_percent(one.unusable)} of what these {'volumes' if one.instance else 'drives'} {whose}"
        yield "unusable", (Span(what, "yellow"),)
    if one.unknown:
        yield "not known", (Span(", ".join(one.unknown), "yellow"),)
    if one.price is not None:
        yield "price", (f"{one.price.amount:,.2f} {one.price.currency} {_PER[one.price.per]}",)
    elif one.price_lacks:
        yield "price", (f"unknown: the file has none of {', '.join(one.price_lacks)}",)


def _purchase_words(one: VolumePurchase) -> str:
    parts = [] if one.gib is None else [f"{one.gib:,} GiB"]
    parts += _known_parts(
        (one.iops, "{} IOPS"), (one.mib_s, "{} MiB/s"), (None if one.mib_s is not None else one.mb_s, "{} MB/s")
    )
    layout = "" if one.layout == "single" else f", {one.layout}"
    what = f"{one.count} × {one.kind}{layout}"
    if not parts:
        return what
    each = f"each {', '.join(parts)}" if one.count > 1 else ", ".join(parts)
    return f"{what}: {each}"


def _short_words(one: Short) -> str:
    unit = _UNITS[one.quantity]
    if one.quantity == "latency_ms":
        lowest = f"the lowest documented class is {one.most:g} ms: {one.of}"
        return f"{_CLOUDS[one.cloud]}: {one.asked:g} ms is asked for, {lowest}"
    asked, most, by = (format_number(number) for number in (one.asked, one.most, one.by))
    return f"{_CLOUDS[one.cloud]}: {asked} {unit} asked for, {most} at most: {by} {unit} short; {one.of}"
