"""The screen of ``advisor why --watch``: a line for each resource of the path, with its last minute, and what binds.

Calm at 80 columns and 24 lines, and readable without colour: what binds is marked by ``>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from advisor.diagnosis.diagnose import Diagnosis, ResourceUse
from advisor.report.format import clean
from advisor.report.why import evidence_text, nothing_text, verdict_text

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
