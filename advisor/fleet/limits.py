"""Captures of many hosts become their ceilings, one host's facts in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advisor.ceilings.declared import Declared
from advisor.ceilings.front import read_front
from advisor.ceilings.host_ceiling import with_host
from advisor.ceilings.host_records import Ceiling
from advisor.ceilings.paths import limits_of
from advisor.ceilings.surroundings import read_surroundings
from advisor.errors import AdvisorError, InvalidInputError
from advisor.facts.whole import scan
from advisor.fleet.captures.capture import open_capture
from advisor.fleet.captures.stream import is_capture
from advisor.fleet.compare.gathering import Source
from advisor.host import tree_host
from advisor.snapshot import open_snapshot

Progress = Callable[[int, int], None]


def gather_ceilings(
    sources: Sequence[Source],
    declared: Declared,
    of_host: Mapping[str, Declared],
    progress: Progress = lambda done, total: None,
) -> tuple[tuple[tuple[str, Ceiling], ...], dict[str, str]]:
    """The ceiling of each host by its name, and those that could not be read with the reason. ``of_host`` is what is
    declared of one host, ``declared`` of all others."""
    found: list[tuple[str, Ceiling]] = []
    failed: dict[str, str] = {}
    for done, source in enumerate(sources, 1):
        try:
            one = read_ceiling(Path(source.path), of_host.get(source.name, declared))
        except AdvisorError as error:
            failed[source.name] = error.message
        except (OSError, MemoryError) as error:
            failed[source.name] = f"{source.path}: {error or 'too large for this memory'}"
        else:
            found.append((source.name, one))
        progress(done, len(sources))
    return tuple(found), failed


def read_ceiling(path: Path, declared: Declared) -> Ceiling:
    """Of a snapshot, of what the capture script printed, or of a tree of captured files."""
    if path.is_dir():
        if not any((path / name).is_dir() for name in ("proc", "sys")):
            raise InvalidInputError(f"{path}: holds neither proc nor sys")
        host = tree_host(str(path))
    else:
        host = open_capture(path) if is_capture(path) else open_snapshot(path)
    facts = scan(host)
    around = read_surroundings(host, facts)
    limits = with_host(limits_of(facts, around, declared), facts, around, declared, read_front(host, facts))
    assert limits.host is not None
    return limits.host
