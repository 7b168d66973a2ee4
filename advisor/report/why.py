"""What binds a host: as text for a person and a ticket, and as the document of ``advisor why --json``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import wrap

import msgspec

from advisor.diagnosis.cause import Asker, BindingCause, Help, percent
from advisor.diagnosis.diagnose import Diagnosis, ResourceUse
from advisor.observe.load import DIRECTIONS, LoadFigures
from advisor.proof.pattern import DiskMeans, JobSection, WorkloadFile, is_workload_path
from advisor.proof.twin import ORDER_BOUND, READ_BOUND, SIZES_BOUND
from advisor.report.format import clean, format_timestamp
from advisor.report.layout import COMMAND, HEADING, Page, Piece, Span
from advisor.report.units import format_binary, format_decimal
from advisor.shell.quote import shell_quote

# An observed load and its twin, as text.

_SHOWN_SIZES = 6
Rows = Iterable[tuple[str, Piece]]


def twin_text(found: WorkloadFile, path: Path, *, width: int, color: bool) -> str:
    """What was observed, and the twin with its error; ``path`` is the file that it is written to."""
    page = Page(width, color=color)
    page.add(Span(found.title, HEADING), hang=2)
    page.labelled([(label, [piece]) for label, piece in _twin_rows(found, path)])
    return page.text


def _twin_rows(found: WorkloadFile, path: Path) -> Rows:
    observed, error = found.observed, found.error
    if observed is not None:
        where = observed.device if observed.unit is None else f"{observed.device}, {observed.unit}"
        if observed.figures is not None:
            count = f"{observed.figures.requests:,} requests in {observed.seconds:.1f} s on {where}"
            yield "observed", f"{count}; {observed.lost:,} events lost"
            yield from _figure_rows(observed.figures)
        elif observed.means is not None:
            yield "observed", f"counters of {where} for {observed.seconds:.1f} s: means alone"
            yield from _mean_rows(observed.means)
    for section in found.sections:
        yield "twin", _section_words(section)
    if error is None:
        yield "error", "not known: no distribution was observed"
    else:
        yield (
            "error",
            f"sizes {error.sizes:.3f} (bound {SIZES_BOUND}) · reads {100 * error.read_share:.1f} points"
            f" (bound {100 * READ_BOUND:.0f}) · order {100 * error.sequential:.1f} points"
            f" (bound {100 * ORDER_BOUND:.0f})",
        )
    for note in found.notes:
        yield "note", note
    name = shell_quote(str(path) if is_workload_path(str(path)) else f"./{path}")
    yield "next", Span(f"advisor bench --workload {name} --target DIR", COMMAND, is_whole=True)


def _figure_rows(load: LoadFigures) -> Rows:
    for name, share in zip(DIRECTIONS, (load.read_share, 1 - load.read_share), strict=True):
        if load.sizes[name]:
            ranked = sorted(load.sizes[name].items(), key=lambda one: -one[1])
            parts = [f"{format_binary(int(size))} {part / share:.0%}" for size, part in ranked[:_SHOWN_SIZES]]
            if len(ranked) > _SHOWN_SIZES:
                parts.append(f"{len(ranked) - _SHOWN_SIZES} more sizes")
            yield f"{name}s", f"{share:.0%}: {', '.join(parts)} · {load.sequential[name]:.0%} in order"
    rate = f"{load.iops:,.0f} requests/s, {format_decimal(round(load.bytes_per_s))}/s"
    yield "rate", f"{rate} · depth {load.depth_mean:.1f} in the mean, {load.depth_high} at p95"
    latency = load.latency["all"]
    yield "latency", f"p50 {latency.p50_us:,.0f} µs · p95 {latency.p95_us:,.0f} µs · p99 {latency.p99_us:,.0f} µs"
    if load.flushes_per_write >= 0.002:
        yield "flushes", f"{load.flushes_per_write:.3g} for each write"


def _mean_rows(means: DiskMeans) -> Rows:
    pairs = (
        ("reads", means.reads_per_s, means.read_size_bytes, means.read_wait_ms),
        ("writes", means.writes_per_s, means.write_size_bytes, means.write_wait_ms),
    )
    for label, rate, size, wait in pairs:
        if size is not None and wait is not None:
            yield label, f"{rate:,.0f}/s, {format_binary(round(size))} in the mean, wait {wait:.3g} ms in the mean"
    yield "queue", f"{means.queue:.1f} in the mean · {means.merged_share:.0%} merged"


def _section_words(section: JobSection) -> str:
    arrival = section.arrival
    words = {
        "closed": "each asks again at once",
        "steady": f"{arrival.rate:,.0f} requests/s for each job, evenly",
        "poisson": f"{arrival.rate:,.0f} requests/s for each job, at independent times",
        "think": f"a pause of {arrival.think_us:,} µs after each request",
        "bursts": f"a pause of {arrival.think_us:,} µs after {arrival.think_blocks:,} requests",
    }[arrival.kind]
    flush = f", a flush after {section.flush_every} writes" if section.flush_every else ""
    durable = ", durable writes" if section.durable else ""
    jobs = f"{section.jobs} jobs" if section.jobs > 1 else "1 job"
    return f"fio {section.pattern}, {jobs}, depth {section.depth}: {words}{flush}{durable}"


HELPS: dict[Help, str] = {
    "tuning": "tuning",
    "hardware": "hardware or plan; tuning the kernel cannot help",
    "application": "the application; tuning the kernel cannot help",
    "tenant": "the provider or another tenant; tuning the kernel cannot help",
    "repair": "repair first; tuning the kernel cannot help",
}
_SHOWN = 5
_LARGE_SHARE = 0.2


def why_document(diagnosis: Diagnosis) -> dict[str, object]:
    """``advisor.why/1``."""
    return {
        "schema": "advisor.why/1",
        "hostname": diagnosis.hostname,
        "seconds": diagnosis.seconds,
        "taken_at": format_timestamp(diagnosis.taken_at),
        "binds": [_binding_document(one) for one in diagnosis.binds],
        "near": list(diagnosis.near),
        "well": list(diagnosis.well),
        "unknown": [{"fact": one.fact, "why": one.why} for one in diagnosis.unknown],
    }


def _binding_document(one: BindingCause) -> dict[str, object]:
    document: dict[str, object] = msgspec.to_builtins(one)
    del document["explains"]
    return document


def why_text(diagnosis: Diagnosis, *, width: int, color: bool) -> str:
    """The verdict, its evidence, what would help, and what was found well."""
    page = Page(width, color=color)
    host = diagnosis.hostname or "this host"
    if not diagnosis.binds:
        page.add(Span(f"{host}: {nothing_text(diagnosis)}", HEADING), hang=2)
    rows: list[tuple[str, list[Piece]]] = []
    for number, one in enumerate(diagnosis.binds[:_SHOWN]):
        if number == 0:
            page.add(Span(f"{host}: {verdict_text(one)}", "bold red" if one.is_error else "bold yellow"), hang=2)
        else:
            label = "equally" if number < diagnosis.equal and not diagnosis.binds[0].is_error else "also"
            rows.append((label, [Span(verdict_text(one), "bold")]))
        rows.append(("evidence", [evidence_text(one)]))
        rows.append(("helps", [f"{HELPS[one.help]}. {one.advice}"]))
        rows += [
            ("next" if not at else "", [Span(command, COMMAND, is_whole=True)])
            for at, command in enumerate(one.commands)
        ]
        if one.asks:
            rows.append(("asks", [asker_text(one.asks)]))
    if diagnosis.near:
        rows.append(("near", [" · ".join(diagnosis.near)]))
    if diagnosis.well:
        rows.append(("well", [" · ".join(diagnosis.well)]))
    left = len(diagnosis.binds) - _SHOWN
    if left > 0:
        rows.append(("more", [f"{left} further causes: advisor why --json"]))
    for unknown in diagnosis.unknown[:_SHOWN]:
        rows.append(("unknown", [f"{unknown.fact}: {unknown.why}"]))
    if len(diagnosis.unknown) > _SHOWN:
        rows.append(("unknown", [f"{len(diagnosis.unknown) - _SHOWN} more: advisor why --json"]))
    rows.append(("observed", [f"{diagnosis.seconds:g} s to {format_timestamp(diagnosis.taken_at)}"]))
    page.labelled(rows)
    return page.text


def nothing_text(diagnosis: Diagnosis) -> str:
    """The verdict where nothing binds: that there is room everywhere only where nothing is near a threshold, and
    each link that carries traffic has a known speed."""
    if diagnosis.near:
        return f"Nothing binds by the thresholds; nearest: {diagnosis.near[0]}."
    if diagnosis.unjudged:
        names = " and ".join(diagnosis.unjudged)
        return f"Nothing whose use is known is saturated; how full {names} is cannot be said: the speed is unknown."
    return "Nothing on this host is saturated; the application asks for no more."


def verdict_text(one: BindingCause) -> str:
    """One line: what binds, and the share that it accounts for."""
    if one.is_error and one.share < 0.005:
        return f"{one.title}."
    return f"{one.title} ({percent(one.share)} of the {one.of})." if one.share >= 0.1 else f"{one.title}."


def asker_text(asks: Asker) -> str:
    """The service, its share and its largest process, and what is left of the whole where that is much."""
    if asks.share is None:
        return " · ".join(one for one in (asks.unit, asks.process) if one)
    many = "" if asks.share >= _LARGE_SHARE else "many processes; the largest is "
    inner = f", its largest process {asks.process}" if asks.unit and asks.process else ""
    rest = "; the rest: processes that began or ended meanwhile, or others" if (asks.unseen_share or 0.0) >= 0.1 else ""
    return f"{many}{asks.unit or asks.process}: {percent(asks.share)} of it{inner}{rest}"


_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("bytes_per_s", lambda value: f"{format_decimal(round(value))}/s"),
    ("_bytes", lambda value: format_binary(round(value))),
    ("_share", percent),
    ("_ms", lambda value: f"{value:.3g} ms"),
    ("_mbps", lambda value: f"{value:g} Mbit/s"),
    ("_per_s", lambda value: f"{value:,.0f}/s"),
    ("_s", lambda value: f"{value:.3g} s"),
)


def evidence_text(one: BindingCause) -> str:
    """The figures with their units, which their keys name."""
    return " · ".join(f"{label} {value}" for label, value in evidence_rows(one))


def evidence_rows(one: BindingCause) -> list[tuple[str, str]]:
    """Each figure: its name, and its value with the unit."""
    return [(_label(key), _value(key, value)) for key, value in one.evidence.items()]


def _label(key: str) -> str:
    if key == "bytes_per_s":
        return "throughput"
    for ending in ("bytes_per_s", "_bytes", "_share", "_ms", "_mbps", "_per_s", "_s"):
        if key.endswith(ending) and key != ending:
            return key.removesuffix(ending).strip("_").replace("_", " ")
    return key.replace("_", " ")


def _value(key: str, value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    for ending, form in _UNITS:
        if key.endswith(ending):
            return form(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


# The screen of ``advisor why --watch``: a line for each resource of the path, with its last minute, and what binds.

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=+*%#"
_KEPT = 40
_MOST_LINES = 22
_ROOM = {"cpu": 1, "memory": 1, "disk": 4, "net": 3}
"""The resources in the order of their rows, and how many of each besides the waits for it."""
_BEFORE_BARS = 34
LOOK_SECONDS = 2.0
KEYS = "q quit   p pause   s save a snapshot"


class WatchScreen:
    """The use of each resource since the start, and the last diagnosis. ``unicode`` chooses the bars.

    All rows have one column for each look, so that what happened at one time stands in one column; a blank is a look
    at which a resource was not measured, or a pause.
    """

    def __init__(self, *, unicode: bool) -> None:
        self._bars = _BARS if unicode else _PLAIN_BARS
        self._looks: list[dict[str, float]] = []

    def add_uses(self, uses: Sequence[ResourceUse]) -> None:
        """Keep what was just measured."""
        self._looks.append({use.name: use.share for use in uses})
        del self._looks[:-_KEPT]

    def add_gap(self, looks: int) -> None:
        """Leave room for so many looks that were not taken."""
        self._looks += [{}] * min(looks, _KEPT)
        del self._looks[:-_KEPT]

    def _list_rows(self) -> list[str]:
        """The names to show: of disks and links those that were used most in the time that is shown, no idle disks."""
        most: dict[str, float] = {}
        for look in self._looks:
            for name, share in look.items():
                most[name] = max(most.get(name, 0.0), share)
        rows: list[str] = []
        for kind, room in _ROOM.items():
            names = [one for one in most if one.partition(" ")[0] == kind]
            waits = [one for one in names if one.endswith(" waits")]
            others = [one for one in names if one not in waits and (kind != "disk" or most[one])]
            busiest = sorted(others, key=lambda one: -most[one])[:room]
            rows += sorted(busiest) + waits if kind == "cpu" else waits + sorted(busiest)
        return rows

    def render_text(
        self,
        diagnosis: Diagnosis,
        *,
        width: int,
        note: str = "",
        whole: Sequence[ResourceUse] = (),
        look_seconds: float = LOOK_SECONDS,
    ) -> str:
        """At most 22 lines of at most ``width`` columns. A note stands in the place of the keys, line by line.

        Two columns of figures, each under its time: the last look, and ``whole``, the span over which what binds is
        judged, so that a figure of the verdict stands in its column."""
        bound = {one.resource for one in diagnosis.binds} | {one.device for one in diagnosis.binds}
        over = {use.name: use.share for use in whole}
        span = f"{diagnosis.seconds:.0f} s"
        lines = [f"{diagnosis.hostname or 'this host'}: judged over the last {span}"]
        lines.append(f"{'':19}{f'{look_seconds:.0f} s':>5} {span:>7}  a bar for each {look_seconds:.0f} s")
        looks = self._looks[-max(1, width - _BEFORE_BARS) :]
        for name in self._list_rows():
            mark = ">" if bound & set(name.split()) else " "
            shares = [look.get(name) for look in looks]
            bars = "".join(" " if share is None else self._bars[min(7, int(share * 8))] for share in shares)
            now, mean = (_percent(share) for share in (shares[-1], over.get(name)))
            lines.append(f"{mark} {name:<16.16} {now} {mean:>7}  {bars}")
        lines += ["", f"Over {span}:"] if diagnosis.binds else [""]
        for one in diagnosis.binds[:3]:
            lines += [verdict_text(one), f"    {evidence_text(one)}"]
        if not diagnosis.binds:
            lines += wrap(nothing_text(diagnosis), width)
        last = (note or KEYS).split("\n")
        lines = [*lines[: _MOST_LINES - 1 - len(last)], "", *last]
        return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in map(clean, lines))


def _percent(share: float | None) -> str:
    return "    -" if share is None else f"{share * 100:3.0f} %"


def saved_note(place: Path) -> str:
    """Where a snapshot was saved, and on a line of its own the command that judges it."""
    return f"saved {place}\nadvisor why --snapshot {place}"
