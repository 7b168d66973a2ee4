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
    parts: list[str] = []
    if demand.read_mb_s is not None:
        parts.append(f"{format_number(demand.read_mb_s)} MB/s read")
    if demand.write_mb_s is not None:
        parts.append(f"{format_number(demand.write_mb_s)} MB/s written")
    if demand.iops is not None:
        parts.append(f"{format_number(demand.iops)} IOPS")
    if demand.latency_ms is not None:
        parts.append(f"a latency of {demand.latency_ms:g} ms")
    if demand.capacity_bytes is not None:
        parts.append(f"{format_number(demand.capacity_gib)} GiB")
    title = f"Hardware for {listed(parts)}"
    page.add(Span(title, "bold"), hang=2)
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


def _count_words(sizing: Sizing) -> Iterator[str]:
    certain = sizing.found - sizing.undecided
    found = f"{certain} choice carries it" if certain == 1 else f"{certain} choices carry it"
    if not certain:
        found = "No choice is known to carry it"
    shown = len(sizing.choices)
    more = "; " + f"{shown} of {sizing.found} are shown" if shown < sizing.found else ""
    order = "by the smallest unusable share, then by the smallest machine"
    if sizing.prices:
        order = f"by the prices in {sizing.prices}"
    yield f"{found}{more}, {order}."
    if sizing.undecided:
        words = (
            "{count} may: something of it is unknown."
            if sizing.undecided == 1
            else "{count} may: something of them is unknown."
        )
        yield " " + words.format(count=sizing.undecided)


def _size_rows(one: Choice) -> Iterator[tuple[str, tuple[str | Span, ...]]]:
    yield "volumes" if one.instance else "drives", ("; ".join(map(_purchase_words, one.volumes)),)
    for link in one.links:
        words = f"{link.count} × {link.kind}, each {format_number(link.mb_s)} MB/s"
        yield "links", (words,)
    parts = []
    if one.read_mb_s is not None and one.read_mb_s == one.write_mb_s:
        parts.append(f"{format_number(one.read_mb_s)} MB/s")
    else:
        for value, way in ((one.read_mb_s, "{value} MB/s read"), (one.write_mb_s, "{value} MB/s written")):
            if value:
                parts.append(way.format(value=format_number(value)))
    if one.iops is not None:
        parts.append(f"{format_number(one.iops)} IOPS")
    yield "carries", (", ".join(parts),)
    others = "; ".join(f"{part.what} {format_percent(part.headroom)}" for part in one.parts if part.what != one.binds)
    words = f"{one.binds}, {format_percent(one.headroom)} headroom"
    yield "bound by", (f"{words}; {others}" if others else words,)
    if round(one.unusable, 2):
        share = format_percent(one.unusable)
        what = "{share} of what these volumes promise cannot pass this instance"
        if not one.instance:
            what = "{share} of what these drives read cannot pass the links"
        yield "unusable", (Span(what.format(share=share), "yellow"),)
    if one.unknown:
        yield "not known", (Span(", ".join(one.unknown), "yellow"),)
    if one.price is not None:
        yield "price", (f"{one.price.amount:,.2f} {one.price.currency} {_PER[one.price.per]}",)
    elif one.price_lacks:
        yield "price", (f"unknown: the file has none of {', '.join(one.price_lacks)}",)


def _purchase_words(one: VolumePurchase) -> str:
    parts = []
    if one.gib is not None:
        parts.append(f"{one.gib:,} GiB")
    if one.iops is not None:
        parts.append(f"{format_number(one.iops)} IOPS")
    if one.mib_s is not None:
        parts.append(f"{format_number(one.mib_s)} MiB/s")
    elif one.mb_s is not None:
        parts.append(f"{format_number(one.mb_s)} MB/s")
    layout = "" if one.layout == "single" else f", {one.layout}"
    what = f"{one.count} × {one.kind}{layout}"
    if not parts:
        return what
    each = f"each {', '.join(parts)}" if one.count > 1 else ", ".join(parts)
    return f"{what}: {each}"


def _short_words(one: Short) -> str:
    unit = _UNITS[one.quantity]
    if one.quantity == "latency_ms":
        words = "{cloud}: {asked} ms is asked for, the lowest documented class is {most} ms: {of}"
        return words.format(cloud=_CLOUDS[one.cloud], asked=f"{one.asked:g}", most=f"{one.most:g}", of=one.of)
    words = "{cloud}: {asked} {unit} asked for, {most} at most: {by} {unit} short; {of}"
    return words.format(
        cloud=_CLOUDS[one.cloud],
        asked=format_number(one.asked),
        most=format_number(one.most),
        by=format_number(one.by),
        unit=unit,
        of=one.of,
    )
