"""What binds a host: as text for a person and a ticket, and as the document of ``advisor why --json``."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from advisor.diagnosis.cause import Asker, BindingCause, Help, percent
from advisor.diagnosis.diagnose import Diagnosis
from advisor.report.format import format_timestamp
from advisor.report.layout import COMMAND, HEADING, Page, Piece, Span
from advisor.report.units import format_binary, format_decimal

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
