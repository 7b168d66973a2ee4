"""Metrics of a host as text: Prometheus' format 0.0.4, for node_exporter's textfile collector, and OpenMetrics 1.0.

Neither has timestamps: the textfile collector refuses a file that has some. All are gauges, in base units that their
names end in, but for those that end in ``_info``, which OpenMetrics has a type of its own for.

Sources: prometheus.io/docs/instrumenting/exposition_formats; the OpenMetrics specification, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.report.format import clean

MAX_LABEL = 200
"""Characters of a label's value; tunables and paths are shorter, bytes of a damaged journal may not be."""

MAX_SERIES = 100
"""Series of one name for one host. More are counted only: a name that is in a label makes a series each."""

MetricForm = Literal["prometheus", "openmetrics"]
Labels = tuple[tuple[str, str], ...]
Series = tuple[Labels, float]
UNITS = ("seconds", "ratio", "bytes")


class Gauge(msgspec.Struct, frozen=True):
    """A name, which ends in its unit where it has one, and what it means."""

    name: str
    help: str


Families = Mapping[Gauge, Sequence[Series]]


def render_metrics(families: Families, form: MetricForm = "prometheus") -> str:
    """All metrics with their series; a metric without series is left out. Labels that are alike are there once."""
    lines = [line for metric, series in families.items() for line in _metric_lines(metric, series, form)]
    if form == "openmetrics":
        lines.append("# EOF")
    return "".join(f"{line}\n" for line in lines)


def _metric_lines(metric: Gauge, series: Sequence[Series], form: MetricForm) -> Iterator[str]:
    # Names that are alike once they are cut: a series that is there twice makes node_exporter refuse the whole file.
    lines = {f"{metric.name}{_format_labels(labels)}": value for labels, value in series}
    if not lines:
        return
    is_open = form == "openmetrics"
    is_info = is_open and metric.name.endswith("_info")
    family = metric.name.removesuffix("_info") if is_info else metric.name
    text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {family} {text.replace(chr(34), chr(92) + chr(34)) if is_open else text}"
    yield f"# TYPE {family} {'info' if is_info else 'gauge'}"
    unit = metric.name.rpartition("_")[2]
    if is_open and unit in UNITS:
        yield f"# UNIT {family} {unit}"
    for name, value in lines.items():
        digits = 6 if unit == "ratio" else 3
        yield f"{name} {value:.{digits}f}" if value % 1 else f"{name} {value:.0f}"


def _format_labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escape_label(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escape_label(value: str) -> str:
    """A label's value as the formats want it. What is not printable is spelt out, but for line ends, for which they
    have a form of their own."""
    shown = "\n".join(map(clean, (value if len(value) <= MAX_LABEL else f"{value[: MAX_LABEL - 1]}…").split("\n")))
    return shown.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
