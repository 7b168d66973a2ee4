"""The choice of hardware: as text for a person, and as the document of ``advisor size --json``."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.i18n import N_, _, english_page, ngettext
from advisor.report.layout import Page, Span, listed
from advisor.report.limits import format_number, format_percent
from advisor.sizing.records import Choice, Short, Sizing, VolumePurchase

_UNITS = {"mb_s": "MB/s", "iops": "IOPS", "latency_ms": "ms"}
_CLOUDS = {"aws": "AWS", "azure": "Azure", "metal": N_("own hardware")}
_PER = {"month": N_("a month"), "hour": N_("an hour"), "once": N_("once")}


def size_document(sizing: Sizing) -> dict[str, object]:
    """``advisor.size/1``."""
    return {"schema": "advisor.size/1", **msgspec.to_builtins(sizing)}


@english_page
def size_text(sizing: Sizing, *, width: int, color: bool) -> str:
    """The choices, best first, each with what binds it; or what falls short."""
    page = Page(width, color=color)
    demand = sizing.demand
    parts: list[str] = []
    if demand.read_mb_s is not None:
        parts.append(_("{value} MB/s read").format(value=format_number(demand.read_mb_s)))
    if demand.write_mb_s is not None:
        parts.append(_("{value} MB/s written").format(value=format_number(demand.write_mb_s)))
    if demand.iops is not None:
        parts.append(f"{format_number(demand.iops)} IOPS")
    if demand.latency_ms is not None:
        parts.append(_("a latency of {value} ms").format(value=f"{demand.latency_ms:g}"))
    if demand.capacity_bytes is not None:
        parts.append(f"{format_number(demand.capacity_gib)} GiB")
    title = _("Hardware for {demand}").format(demand=listed(parts))
    page.add(Span(title, "bold"), hang=2)
    if sizing.demand.measured_from:
        page.add(_("From {file}.").format(file=sizing.demand.measured_from))
    if sizing.choices:
        page.add(*_count_words(sizing))
    for at, one in enumerate(sizing.choices, 1):
        page.blank()
        about = []
        if one.vcpus is not None:
            about.append(f"{one.vcpus} vCPUs")
        if one.memory_gib is not None:
            about.append(f"{one.memory_gib:,.10g} GiB")
        name = one.instance or _(_CLOUDS[one.cloud])
        page.add(f"{at}. ", Span(name, "bold"), *(f" · {', '.join(about)}" if about else ""), hang=3)
        page.labelled(list(_size_rows(one)), indent=4)
    if not sizing.choices:
        page.blank()
        page.add(Span(_("No choice carries it."), "yellow"))
    page.bulleted(_("What falls short"), (_short_words(short) for short in sizing.short))
    page.bulleted(_("Not considered"), (f"{one.kind}: {one.why} ({one.source})" for one in sizing.excluded))
    page.bulleted(_("Notes"), sizing.notes)
    page.bulleted(_("Sources"), sizing.sources)
    return page.text


def _count_words(sizing: Sizing) -> Iterator[str]:
    certain = sizing.found - sizing.undecided
    found = ngettext("{count} choice carries it", "{count} choices carry it", certain).format(count=certain)
    if not certain:
        found = _("No choice is known to carry it")
    shown = len(sizing.choices)
    more = (
        "; " + _("{count} of {total} are shown").format(count=shown, total=sizing.found) if shown < sizing.found else ""
    )
    order = _("by the smallest unusable share, then by the smallest machine")
    if sizing.prices:
        order = _("by the prices in {file}").format(file=sizing.prices)
    yield f"{found}{more}, {order}."
    if sizing.undecided:
        words = ngettext(
            "{count} may: something of it is unknown.", "{count} may: something of them is unknown.", sizing.undecided
        )
        yield " " + words.format(count=sizing.undecided)


def _size_rows(one: Choice) -> Iterator[tuple[str, tuple[str | Span, ...]]]:
    yield _("volumes") if one.instance else _("drives"), ("; ".join(map(_purchase_words, one.volumes)),)
    for link in one.links:
        words = _("{count} × {kind}, each {value} MB/s").format(
            count=link.count, kind=link.kind, value=format_number(link.mb_s)
        )
        yield _("links"), (words,)
    parts = []
    if one.read_mb_s is not None and one.read_mb_s == one.write_mb_s:
        parts.append(f"{format_number(one.read_mb_s)} MB/s")
    else:
        for value, way in ((one.read_mb_s, _("{value} MB/s read")), (one.write_mb_s, _("{value} MB/s written"))):
            if value:
                parts.append(way.format(value=format_number(value)))
    if one.iops is not None:
        parts.append(f"{format_number(one.iops)} IOPS")
    yield _("carries"), (", ".join(parts),)
    others = "; ".join(f"{part.what} {format_percent(part.headroom)}" for part in one.parts if part.what != one.binds)
    words = _("{part}, {share} headroom").format(part=one.binds, share=format_percent(one.headroom))
    yield _("bound by"), (f"{words}; {others}" if others else words,)
    if round(one.unusable, 2):
        share = format_percent(one.unusable)
        what = _("{share} of what these volumes promise cannot pass this instance")
        if not one.instance:
            what = _("{share} of what these drives read cannot pass the links")
        yield _("unusable"), (Span(what.format(share=share), "yellow"),)
    if one.unknown:
        yield _("not known"), (Span(", ".join(one.unknown), "yellow"),)
    if one.price is not None:
        yield _("price"), (f"{one.price.amount:,.2f} {one.price.currency} {_(_PER[one.price.per])}",)
    elif one.price_lacks:
        yield _("price"), (_("unknown: the file has none of {items}").format(items=", ".join(one.price_lacks)),)


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
    each = _("each {figures}").format(figures=", ".join(parts)) if one.count > 1 else ", ".join(parts)
    return f"{what}: {each}"


def _short_words(one: Short) -> str:
    unit = _UNITS[one.quantity]
    if one.quantity == "latency_ms":
        words = _("{cloud}: {asked} ms is asked for, the lowest documented class is {most} ms: {of}")
        return words.format(cloud=_(_CLOUDS[one.cloud]), asked=f"{one.asked:g}", most=f"{one.most:g}", of=one.of)
    words = _("{cloud}: {asked} {unit} asked for, {most} at most: {by} {unit} short; {of}")
    return words.format(
        cloud=_(_CLOUDS[one.cloud]),
        asked=format_number(one.asked),
        most=format_number(one.most),
        by=format_number(one.by),
        unit=unit,
        of=one.of,
    )
