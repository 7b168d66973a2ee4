"""The ceiling of the host in its picture: a bar for each stage, the one that binds marked."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.limits.host_records import Binding, HostCeiling, StageSum
from advisor.report.format import clean
from advisor.report.host_ceiling import members_words, stage_words
from advisor.report.picture.records import CeilingBar, CeilingPicture


def ceiling_picture(ceiling: HostCeiling) -> CeilingPicture:
    """The stages of which a sum is known, as bars to one scale; the others by name."""
    most = max((value for one in ceiling.stages for value in (one.read_mb_s, one.write_mb_s) if value), default=0.0)
    known = [one for one in ceiling.stages if one.read_mb_s is not None or one.write_mb_s is not None]
    silent = [
        stage_words(one.stage, ceiling.machine)
        for one in ceiling.stages
        if one.known in ("unknown", "partly") and one not in known
    ]
    reads = _bound_words(
        "reads", ceiling.read_mb_s, ceiling.binds if ceiling.read_mb_s is not None else None, ceiling.machine
    )
    writes = _bound_words("writes", ceiling.write_mb_s, ceiling.write_binds, ceiling.machine)
    return CeilingPicture(
        title=f"Ceiling of the host: {reads}; {writes}",
        bars=tuple(bar for one in known for bar in _stage_bars(one, ceiling, most)),
        note=f"Unknown, and perhaps lower: {', '.join(silent)}." if silent else "",
    )


def _bound_words(way: str, value: float | None, one: Binding | None, machine: str | None) -> str:
    if value is None or one is None:
        return f"{way} unknown"
    return (
        f"{way} {value:,.0f} MB/s, bound by {stage_words(one.stage, machine)} ({clean(members_words(one.members, 3))})"
    )


def _stage_bars(one: StageSum, ceiling: HostCeiling, most: float) -> Iterator[CeilingBar]:
    """One bar where reads and writes are alike and bound alike, else two."""
    ways = (
        ("reads", one.read_mb_s, ceiling.binds if ceiling.read_mb_s is not None else None),
        ("writes", one.write_mb_s, ceiling.write_binds),
    )
    bars = [
        CeilingBar(
            title=f"{stage_words(one.stage, ceiling.machine)}, {way}",
            value=f"{value:,.0f} MB/s",
            share=value / most if most else 0.0,
            is_binding=binding is not None and binding.stage == one.stage,
        )
        for way, value, binding in ways
        if value is not None
    ]
    if len(bars) == 2 and (bars[0].value, bars[0].is_binding) == (bars[1].value, bars[1].is_binding):
        yield CeilingBar(stage_words(one.stage, ceiling.machine), bars[0].value, bars[0].share, bars[0].is_binding)
    else:
        yield from bars
