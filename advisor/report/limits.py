"""The ceilings of a host: as text for a person, and as the document of ``advisor limits --json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from advisor.limits.records import Bound, Known, Limits, ObservedShare, PathCeiling, Rate, StoragePath
from advisor.report.format import ranked, runs
from advisor.report.host_ceiling import add_ceiling, add_what_if, ceiling_rows, members_words
from advisor.report.layout import Page, Piece, Span, command_span, listed
from advisor.report.severities import severity_span
from advisor.report.units import format_binary, format_decimal
from advisor.sizing.records import Choice, Short, Sizing, VolumePurchase

_KNOWN: dict[Known, str] = {
    "host": "read from the host",
    "table": "from a table",
    "declared": "declared",
    "measured": "measured",
    "unknown": "unknown",
}
_PLACES_SHOWN = 6
_MOST_COPIES = 5
"""A volume of less than a fifth of its disks is no arrangement of all of them, but a part."""


def limits_document(limits: Limits) -> dict[str, object]:
    """``advisor.limits/1``."""
    return {"schema": "advisor.limits/1", **msgspec.to_builtins(limits)}


def limits_text(limits: Limits, *, width: int, color: bool, everything: bool = True) -> str:
    """Each path with its ceilings, the binding one below; paths that are alike are printed once. Unless
    ``everything``, a path is a line: a common host takes a screen."""
    page = Page(width, color=color)
    title = f"Ceilings of {limits.hostname or 'this host'}"
    page.add(Span(title, "bold"), *((f" · {limits.instance_type}",) if limits.instance_type else ()), hang=2)
    if not everything:
        return _short_text(page, limits)
    page.add("Each path by itself, nothing else running. What is not known may lie lower; nothing is estimated.")
    page.add("Two figures are reads / writes.")
    for kind, title in (("storage", "Storage"), ("network", "Links")):
        paths = [path for path in limits.paths if path.kind == kind]
        page.heading(title, "" if paths else ": none found")
        for same in (list(run) for _shape_of, run in groupby(paths, key=_path_shape)):
            page.blank()
            _add_path(page, same)
        _add_unknown(page, [path for path in paths if _is_unknown(path)])
    if limits.bought:
        page.heading("All volumes together against the instance")
        for one in limits.bought:
            unit = "IOPS" if one.quantity.endswith("iops") else "MB/s"
            words = f"volumes {format_number(one.volumes)} {unit}, instance {format_number(one.instance)} {unit}"
            share = format_percent(one.unusable)
            tail = "all of it is usable"
            if one.unusable:
                tail = f"{share} of what these volumes promise cannot pass this instance"
            page.bullet(f"{words}: {tail}")
    page.heading("Unknown of any path")
    page.labelled([(one.what, (one.why,)) for one in limits.unknown])
    sources = dict.fromkeys(one.source for path in limits.paths for one in path.ceilings if one.source)
    page.bulleted("Sources", sources)
    page.bulleted("Notes", limits.notes)
    for finding in limits.findings:
        page.heading("Findings")
        page.bullet(Span(finding.title, "bold"), f" ({finding.severity}, {finding.id})")
        page.add(finding.advice, indent=4)
    if limits.host:
        add_ceiling(page, limits.host, "The whole host")
        if limits.what_if:
            add_what_if(page, limits.host, limits.what_if)
    return page.text


def _short_text(page: Page, limits: Limits) -> str:
    for kind, title in (("storage", "Storage"), ("network", "Links")):
        alike: dict[tuple[str, ...], list[str]] = {}
        for path in limits.paths:
            if path.kind == kind:
                alike.setdefault(_short_cells(path), []).append(path.name)
        page.heading(title, "" if alike else ": none found")
        if alike:
            head = [Span(word, "dim") for word in ("path", "MB/s", "IOPS", "bound by")]
            page.table([head, *((members_words(names), *cells) for cells, names in alike.items())])
    parts = [one for path in limits.paths for one in path.ceilings if one.known == "unknown"]
    # The drives of each array count themselves: they are named once.
    words = ("drives" if one.stage == "medium" else one.what for one in parts)
    unknown = dict.fromkeys((*words, *(one.what for one in limits.unknown)))
    page.blank()
    page.add(Span("Unknown", "yellow"), f", and may lie lower: {', '.join(unknown)}.", hang=2)
    for finding in limits.findings:
        page.add(severity_span(finding.severity), f" {finding.title}", hang=2)
    if limits.host:
        page.labelled([(f"Host: {label}", words) for label, words in ceiling_rows(limits.host)], indent=0)
    page.add(Span("Each part, why it is unknown, and the sources: ", "dim"), command_span("advisor limits --all"))
    page.add(Span("To read unknown drives with fio: ", "dim"), command_span("advisor limits --measure"))
    return page.text


def _short_cells(path: StoragePath) -> tuple[str, ...]:
    """MB/s and IOPS, reads / writes, and what binds them; what is unknown is a question mark."""
    figures: dict[str, Bound] = {one.quantity: one for one in path.sustained}
    pairs = [[figures.get(f"{way}_{unit}") for way in ("read", "write")] for unit in ("mb_per_s", "iops")]
    words = (dict.fromkeys(format_number(one.value) if one else "?" for one in pair) for pair in pairs)
    bound = dict.fromkeys(one.what for one in path.sustained)
    by = ", ".join(bound) or "unknown"
    return *(" / ".join(pair) for pair in words), f"{by}; more in bursts" if path.burst else by


def _is_unknown(path: StoragePath) -> bool:
    """Whether nothing is known of any of its ceilings: then one line says so of all such paths."""
    return not path.observed and all(one.known == "unknown" for one in path.ceilings)


def _add_unknown(page: Page, paths: Sequence[StoragePath]) -> None:
    """Why no ceiling of these paths is known: one line for all that are alike."""
    names: dict[str, dict[str, None]] = {}
    for path in paths:
        for one in path.ceilings:
            where = one.where if one.stage in ("medium", "volume", "wire") else (one.what, *one.where)
            own = next((name for name in one.where if one.why.startswith(f"{name}: ")), "")
            names.setdefault(one.why.removeprefix(f"{own}: "), {}).update(dict.fromkeys(where or (one.what,)))
    for at, (why, those) in enumerate(names.items()):
        if not at:
            page.blank()
        page.add(Span("unknown", "yellow"), f"  {members_words(tuple(those))}: {why}", indent=2, hang=2)
    if any(path.kind == "storage" for path in paths):
        page.add("advisor limits --measure reads such drives with fio, and asks first.", indent=2)


def _path_shape(path: StoragePath) -> object:
    """What paths share that are printed once: only bare devices with the same figures, for the same reasons."""
    if path.layers or path.file_system or path.observed or path.holds or path.name != path.device:
        return path.kind, path.device
    ceilings = tuple(
        msgspec.structs.replace(one, where=(), why=one.why.removeprefix(f"{path.name}: ")) for one in path.ceilings
    )
    return path.kind, ceilings, path.capacity, path.notes


def _add_path(page: Page, paths: Sequence[StoragePath]) -> None:
    path = paths[0]
    names = [one.name for one in paths]
    title = runs(names, ranked(names)) if len(paths) > 1 else path.name
    count = " · " + f"{len(paths)} alike" if len(paths) > 1 else ""
    words = []
    if path.file_system:
        words.append(f"{path.file_system} on {path.device}")
    elif path.name != path.device:
        words.append(path.device)
    if path.capacity:
        raw, usable = format_decimal(path.capacity.raw_bytes), format_binary(path.capacity.usable_bytes)
        is_part = path.capacity.usable_bytes * _MOST_COPIES < path.capacity.raw_bytes
        words.append(f"{usable} usable, a part of {raw} of disks" if is_part else f"{raw} raw, {usable} usable")
    page.add(Span(title, "bold"), count, "".join(f" · {word}" for word in words), indent=2, hang=2)
    for layer in path.layers:
        page.add(Span(layer, "dim"), indent=4, hang=2)
    for kept in path.holds:
        page.add(kept, indent=4, hang=2)
    if not _is_unknown(path):
        head = [Span(word, "dim") for word in ("part", "MB/s", "IOPS", "known how")]
        page.table([head, *(_limit_row(one, many=len(paths) > 1) for one in path.ceilings)], indent=4)
        page.labelled(list(_binding_rows(path)), indent=4)
    for note in path.notes:
        page.add(note, indent=4, hang=2)


def _limit_row(one: PathCeiling, *, many: bool) -> tuple[Piece, ...]:
    known = Span(_KNOWN[one.known], "yellow" if one.known == "unknown" else "")
    where = "" if many else _where_words(one)
    why = f"{known.text}: {where}{one.why}"
    if one.known == "unknown":
        return one.what, Span("?", "yellow"), Span("?", "yellow"), why
    return (
        one.what,
        _two_figures(one.sustained, "mb_per_s"),
        _two_figures(one.sustained, "iops"),
        why + _burst_words(one),
    )


def _where_words(one: PathCeiling) -> str:
    shown = one.where[:_PLACES_SHOWN]
    more = len(one.where) - len(shown)
    if not shown or one.stage in ("instance", "wire") or set(shown) & set(one.why.partition(":")[:1]):
        return ""
    names = ", ".join(shown)
    return (f"{names} and {more} more" if more else names) + "; "


def _burst_words(one: PathCeiling) -> str:
    if one.burst is None:
        return ""
    lasting = " " + f"for {format_minutes(one.burst_seconds)}" if one.burst_seconds else ""
    parts = [
        f"{_two_figures(one.burst, name)} {unit}"
        for name, unit in (("mb_per_s", "MB/s"), ("iops", "IOPS"))
        if _two_figures(one.burst, name) != "-"
    ]
    return "; " + f"from full credits {listed(parts)}" + lasting


def _two_figures(rate: Rate, measure: str) -> str:
    """One figure where reads and writes are alike, else both."""
    read, write = (getattr(rate, f"{way}_{measure}") for way in ("read", "write"))
    if read == write:
        return format_number(read)
    return f"{format_number(read)} / {format_number(write)}"


def format_number(value: float | None) -> str:
    """``12,420``; three digits where it is small; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def format_percent(fraction: float) -> str:
    """``64 %``."""
    return f"{100 * fraction:.0f} %"


def format_minutes(seconds: float) -> str:
    """``47 min``, ``2 h 30 min``."""
    whole = int(seconds // 60)
    if whole < 60:
        return f"{whole} min" if whole else f"{seconds:.0f} s"
    return f"{whole // 60} h {whole % 60} min" if whole % 60 else f"{whole // 60} h"


def _binding_rows(path: StoragePath) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    if not path.sustained:
        yield "bound by", ("no ceiling of it is known",)
    for measure, unit in (("mb_per_s", "MB/s"), ("iops", "IOPS")) if path.sustained else ():
        bound = [one for one in path.sustained if one.quantity.endswith(measure)]
        burst = [one for one in path.burst if one.quantity.endswith(measure)]
        words = _bound_words(bound, unit) if bound else f"no ceiling of {unit} is known"
        if burst:
            words += "; " + f"in bursts {_bound_words(burst, unit)}"
        yield f"{unit} bound by", (words,)
    for one in path.observed:
        yield "measured", (_observed_words(one),)


def _bound_words(bounds: Sequence[Bound], unit: str) -> str:
    same = len({(one.value, one.ceiling) for one in bounds}) == 1
    if same:
        return f"{bounds[0].what}, {format_number(bounds[0].value)} {unit}"
    if len({one.ceiling for one in bounds}) == 1:
        each = ", ".join(f"{_way_words(one)} {format_number(one.value)}" for one in bounds)
        return f"{bounds[0].what}, {each} {unit}"
    return "; ".join(f"{_way_words(one)} {one.what}, {format_number(one.value)} {unit}" for one in bounds)


def _way_words(one: Bound) -> str:
    return "reads" if one.quantity.startswith("read") else "writes"


def _observed_words(one: ObservedShare) -> str:
    unit = "IOPS" if one.measure == "iops" else "MB/s"
    words = f"{one.workload}: {format_number(one.value)} {unit}"
    if one.share is None or one.ceiling is None:
        return f"{words}; no ceiling of it is known"
    share = "{share} of {ceiling} in bursts" if one.in_burst else "{share} of {ceiling}"
    words += ", " + share.format(share=format_percent(one.share), ceiling=format_number(one.ceiling))
    lasting = "a full bucket lasts {time} at that"
    return f"{words}; {lasting.format(time=format_minutes(one.seconds))}" if one.seconds else words


# The choice of hardware: as text for a person, and as the document of ``advisor size --json``.

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
