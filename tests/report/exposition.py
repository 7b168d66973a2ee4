"""A strict reader of Prometheus' text format, written from its specification and not from what writes it here.

prometheus.io/docs/instrumenting/exposition_formats: each line ends with a line feed; HELP and TYPE stand once before a
metric's first sample; all lines of a metric stand together; no series twice; label values escape backslash, double
quote and line feed. Timestamps are refused, as node_exporter's textfile collector does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.report.monitoring import VerifyState, render_metrics, verify_metrics

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? ([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|[+-]Inf)")

Sample = tuple[str, tuple[tuple[str, str], ...]]


def metrics_text(hosts: Mapping[str | None, VerifyState]) -> str:
    """What ``advisor verify --prometheus`` writes of these hosts."""
    return render_metrics(verify_metrics(hosts))


def samples(text: str) -> dict[Sample, float]:
    """Every sample by name and labels. Fails for a text that breaks a rule."""
    assert text.endswith("\n") or not text, "the last line must end with a line feed"
    text.encode("utf-8")
    found: dict[Sample, float] = {}
    seen: list[str] = []
    described: dict[str, set[str]] = {}
    for line in text.split("\n")[:-1]:
        assert line == line.strip(" \t"), repr(line)
        assert line, "an empty line"
        if line.startswith("#"):
            word, name, rest = line.removeprefix("# ").split(" ", 2)
            assert word in ("HELP", "TYPE"), line
            assert word not in described.setdefault(name, set()), f"{word} of {name} twice"
            assert name not in seen, f"{word} after the first sample of {name}"
            assert word != "TYPE" or rest in ("counter", "gauge", "histogram", "summary", "untyped"), line
            described[name].add(word)
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, repr(line)
        name, labels, value = match[1], match[2] or "", match[3]
        assert described.get(name) == {"HELP", "TYPE"}, f"{name} is not described"
        assert name not in seen[:-1], f"the lines of {name} do not stand together"
        if not seen or seen[-1] != name:
            seen.append(name)
        key = (name, _labels(labels))
        assert key not in found, f"twice: {line}"
        found[key] = float(value)
    assert set(described) == set(seen), "described, but without a sample"
    return found


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    pairs, at = [], 0
    while at < len(text):
        match = _LABEL.match(text, at)
        assert match, repr(text[at:])
        pairs.append((match[1], re.sub(r"\\(.)", lambda one: "\n" if one[1] == "n" else one[1], match[2])))
        at = match.end()
    assert len({name for name, _ in pairs}) == len(pairs), f"a label twice: {text}"
    return tuple(sorted(pairs))
