"""States and synchronisation of md arrays: kind ``array``. Source: Linux Documentation/admin-guide/md.rst."""

from __future__ import annotations

import re

from advisor.host import Host, Missing
from advisor.observe.sample import Reading, parse_counts

_WORDS = {"array_state": "state", "sync_action": "sync_action"}
_LEVELS = {"degraded": "degraded", "sync_speed": "sync_kib_per_s", "mismatch_cnt": "mismatched_sectors"}


def parse_sync_completed(text: str) -> tuple[int, int] | None:
    """``sync_completed``: sectors done and all; None for ``none``, ``delayed`` and what is no progress."""
    counts = parse_counts(text.replace("/", " ").split()) if "/" in text else None
    return (counts[0], counts[1]) if counts and len(counts) == 2 else None


def read_arrays(host: Host, reading: Reading) -> None:
    reading.ask("array")
    for name in host.names("/sys/block"):
        if not re.match(r"md[0-9_]", name):
            continue
        texts = {file: host.read(f"/sys/block/{name}/md/{file}") for file in (*_WORDS, *_LEVELS, "sync_completed")}
        known = {file: text for file, text in texts.items() if not isinstance(text, Missing) and text}
        counts = {field: parse_counts([known[file]]) for file, field in _LEVELS.items() if file in known}
        levels: dict[str, float] = {field: count[0] for field, count in counts.items() if count}
        progress = parse_sync_completed(known.get("sync_completed", ""))
        if progress:
            levels |= {"sync_done_sectors": progress[0], "sync_all_sectors": progress[1]}
        words = {field: known[file][:40] for file, field in _WORDS.items() if file in known}
        reading.add("array", name, gauges=levels, words=words)
