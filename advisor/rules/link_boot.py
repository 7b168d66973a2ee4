"""Links against their configuration: values that are not in force, or that the next boot would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from advisor.facts.links import Link
from advisor.facts.writers import last_write
from advisor.facts.writers.record import Write
from advisor.host.numbers import is_count
from advisor.rules import sources
from advisor.rules.queries import by_name
from advisor.rules.remedy import SetTunable
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

ORDER = 61

_LIVE: Mapping[str, Callable[[Link], int | None]] = {
    "mtu": lambda link: link.mtu,
    "txqueuelen": lambda link: link.txqueuelen,
    "ring.rx": lambda link: link.rings.rx if link.rings else None,
    "ring.tx": lambda link: link.rings.tx if link.rings else None,
    "channels.combined": lambda link: link.channels.combined if link.channels else None,
    "channels.rx": lambda link: link.channels.rx if link.channels else None,
    "channels.tx": lambda link: link.channels.tx if link.channels else None,
}
"""What a scan reads of a link that files set, too."""


class _Drift(NamedTuple):
    tunable: str
    live: int
    write: Write


def _find_drift(facts: Facts) -> Iterator[_Drift]:
    links = by_name(facts)
    for tunable in sorted({one.tunable for one in facts.writes if one.tunable.startswith("link:")}):
        _, name, attribute = (*tunable.split(":", 2), "", "")[:3]
        read, link, write = _LIVE.get(attribute), links.get(name), last_write(facts, tunable)
        live = read(link) if read and link else None
        # A running program may have set the live value since.
        if live is None or write is None or write.is_program or write.value is None or not is_count(write.value):
            continue
        if live != int(write.value):
            yield _Drift(tunable, live, write)


@rule(
    id="links.differs-at-boot",
    severity="advice",
    title="A link differs from its configuration",
    what="MTU, queue length, rings and channels of links against the file that has the last word at boot.",
    why="A value that was set by hand lasts until the link is set up again; a line that its driver refused, or that "
    "came too late, never had an effect.",
    helps_when="The host must come back from a reboot as it ran before.",
    hurts_when="The live value was set on purpose and is to go with the next boot.",
    sources=(sources.IP_LINK,),
)
def differs_at_boot(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_find_drift(facts))
    if not found:
        return None
    return differs_at_boot.found(
        why="The file and the link disagree: the next time the link is set up decides.",
        evidence={
            "links": tuple(dict.fromkeys(one.tunable.split(":")[1] for one in found)),
            "detail": tuple(
                f"{one.tunable}: live {one.live}, {one.write.place} says {one.write.value}" for one in found
            ),
        },
        remedy=(
            *(SetTunable(one.tunable, one.write.value or "") for one in found),
            "or correct the lines of the files, where the live values are right",
        ),
    )
