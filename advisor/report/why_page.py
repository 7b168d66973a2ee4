"""A span as an HTML page: the verdict, its evidence, each resource as a sparkline, the path coloured by use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from advisor.diagnosis.cause import BindingCause, percent
from advisor.diagnosis.diagnose import Diagnosis, measure_uses
from advisor.diagnosis.observation import DiagnosisContext, Observation
from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import parse_list
from advisor.facts.system.services import Service
from advisor.host.patterns import lazy_regex
from advisor.host.provenance import Provenance
from advisor.observe.rates import link_rates
from advisor.observe.sample import CounterSpan
from advisor.report.format import format_timestamp, natural
from advisor.report.html import render_page
from advisor.report.picture.content import LEVELS, add_loads, host_picture
from advisor.report.picture.drawing import draw_sheet, write_legend
from advisor.report.picture.page import SHEETS, describe_picture
from advisor.report.picture.scene import Place
from advisor.report.scan_summary import provenance_text
from advisor.report.why import HELPS, asker_text, evidence_rows, nothing_text, verdict_text

MAX_ROWS = 24
_WIDTH = 100.0
_HEIGHT = 24.0
_MADE = lazy_regex(r"disk (loop|zram|ram|nbd|fd|sr)[0-9]")
"""Devices of which a host has many that hold nothing: no row where they are at rest."""
_KINDS = ("cpu", "memory", "disk", "net")


class UseRow(msgspec.Struct, frozen=True):
    """A resource over a span; ``paths`` are the area and the line of each stretch in which its use is known."""

    name: str
    mean: str
    most: str
    binds: bool
    paths: tuple[tuple[str, str], ...]


def why_page(
    diagnosis: Diagnosis,
    span: CounterSpan,
    context: DiagnosisContext,
    facts: Facts,
    services: Sequence[Service],
    provenance: Provenance,
) -> str:
    """The page. ``facts`` are those of the context with what is unknown of ``services``. Without scripts."""
    devices, cpus = _measure_loads(span, context)
    picture = add_loads(host_picture(facts, (), services), devices, cpus)
    taken = format_timestamp(diagnosis.taken_at)
    ends = [*LEVELS[1:], 1.0]
    return render_page(
        "why",
        "proof",
        "host-page",
        "why",
        host=diagnosis.hostname or "host of unknown name",
        verdict=verdict_text(diagnosis.binds[0]) if diagnosis.binds else nothing_text(diagnosis),
        provenance=f"{provenance_text(provenance)} · {diagnosis.seconds:g} s of counters to {taken}",
        binds=[_describe_binding(one) for one in diagnosis.binds],
        near=diagnosis.near,
        well=diagnosis.well,
        uses=_list_uses(diagnosis, span, context),
        title=f"The host {picture.title}, each device coloured by its use",
        description=describe_picture(picture),
        drawings=[draw_sheet(picture, sheet) for sheet in SHEETS],
        legend=write_legend(picture).pieces,
        scale=[
            (at, f"{least * 100:.0f} to {end * 100:.0f} %")
            for at, (least, end) in enumerate(zip(LEVELS, ends, strict=True), 1)
        ],
        unknown=diagnosis.unknown,
        unjudged=diagnosis.unjudged,
    )


def _describe_binding(one: BindingCause) -> dict[str, object]:
    return {
        "id": one.id,
        "verdict": verdict_text(one),
        "is_error": one.is_error,
        "evidence": evidence_rows(one),
        "helps": HELPS[one.help],
        "advice": one.advice,
        "commands": one.commands,
        "asks": asker_text(one.asks) if one.asks else "",
        "sources": one.sources,
    }


def _measure_loads(span: CounterSpan, context: DiagnosisContext) -> tuple[dict[str, float], dict[Place, float]]:
    """The use of each disk and link by name, and of the CPUs of each node, and of all under -1 where there are none."""
    uses = {use.name: use.share for use in measure_uses(span, context)}
    devices = {name.partition(" ")[2]: share for name, share in uses.items() if name.startswith(("disk ", "net "))}
    shares = Observation(span, context).cpus
    cpus: dict[Place, float] = {}
    for node in context.facts.numa.nodes:
        busy = [
            share.busy
            for number in parse_list(node.cpus or "")
            if (share := shares.get(str(number))) is not None and share.busy is not None
        ]
        if busy:
            cpus[node.id] = sum(busy) / len(busy)
    if not context.facts.numa.nodes and (whole := uses.get("cpu busy")) is not None:
        cpus |= dict.fromkeys((0, -1), whole)
    return devices, cpus


def _list_uses(diagnosis: Diagnosis, span: CounterSpan, context: DiagnosisContext) -> list[UseRow]:
    """The resources in the order of the path; where there are many, those that were used most."""
    speeds = {name: one.speed_mbps for name, one in link_rates(span).items()}
    looks = []
    for step in span.steps():
        look = {use.name: use.share for use in measure_uses(step, context)}
        for name, link in link_rates(step).items():
            # Speeds are read at the ends of a span alone.
            if (speed := speeds.get(name)) and link.rx_bytes_per_s is not None and link.tx_bytes_per_s is not None:
                look[f"net {name}"] = max(link.rx_bytes_per_s, link.tx_bytes_per_s) * 8e-6 / speed
        looks.append(look)
    uses = measure_uses(span, context)
    whole = {use.name: use.share for use in uses if use.share >= 0.005 or not _MADE.match(use.name)}
    devices = {name.partition(" ")[2] for name in whole if name.startswith(("disk ", "net "))}
    # A cause of a device that has a row is marked there, any other at the rows of its resource.
    bound = {one.device if one.device in devices else one.resource for one in diagnosis.binds}
    most = {name: max([share, *(look[name] for look in looks if name in look)]) for name, share in whole.items()}
    shown = sorted(whole, key=lambda name: -most[name])[:MAX_ROWS]
    shown.sort(key=lambda name: (_KINDS.index(name.partition(" ")[0]), natural(name)))
    return [
        UseRow(
            name,
            percent(whole[name]),
            percent(most[name]),
            name.partition(" ")[2] in bound or (name.partition(" ")[0] in bound and name.endswith((" busy", " waits"))),
            tuple(_draw_stretches([look.get(name) for look in looks])),
        )
        for name in shown
    ] + [UseRow(f"net {name}", "unknown", "unknown", False, ()) for name in diagnosis.unjudged]


def _draw_stretches(shares: Sequence[float | None]) -> Iterator[tuple[str, str]]:
    """A step for each look: its share was measured over the whole of it. What is unknown is a gap."""
    width = _WIDTH / max(1, len(shares))
    stretch: list[str] = []
    start = 0.0
    for at, share in enumerate([*shares, None]):
        if share is None:
            if stretch:
                line = f"M{start:.2f} {' '.join(stretch)}"
                yield f"{line}V{_HEIGHT:g}H{start:.2f}Z", line
            stretch = []
            continue
        y = f"{(1 - min(1.0, share)) * (_HEIGHT - 1) + 0.5:.2f}"
        if not stretch:
            start = at * width
            stretch = [f"{y}H{(at + 1) * width:.2f}"]
        else:
            stretch.append(f"V{y}H{(at + 1) * width:.2f}")
