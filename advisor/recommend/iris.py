"""The profiles of InterSystems IRIS: in which cases the article's settings help, and what it measured with them."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.recommend.records import Case, Figure
from advisor.rules import sources
from advisor.rules.clusters.iris import WRITE_DAEMONS_PROFILE, write_volumes
from advisor.rules.workload import DeclaredWorkload

_LOAD = "RANREAD and RANWRITE on a r5b.24xlarge, Asyncwij=16, wdparm=16,32,512,128, wduseasyncio=1"

FIGURES = {
    WRITE_DAEMONS_PROFILE: (
        Figure(
            "Random writes of the databases took about 1 ms on one io2 Block Express volume and on sixteen striped gp3 "
            "volumes; reads from gp3 took twice as long, below 0.8 ms. What the settings gain was not measured.",
            _LOAD,
            sources.IRIS_GP3,
        ),
    )
}


def cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    """An instance, many random writes, and volumes below its databases and WIJ that take many at a time."""
    volumes = [write_volumes(facts, one) for one in facts.iris]
    names = tuple(dict.fromkeys(name for all_of_one, _turning in volumes for name in all_of_one))
    turning = any(slow for _all_of_one, slow in volumes)
    many = None if not names else len(names) > 1 and not turning
    random = None if workload.access is None else workload.access == "random"
    return (
        Case("an InterSystems IRIS instance", bool(facts.iris)),
        Case("half of it writes, or more", None if workload.write_share is None else workload.is_write_heavy),
        Case("random access, as by write daemons", random),
        Case("several volumes below databases and WIJ, striped or apart", many if many or turning else None),
    )


def contrary(facts: Facts, workload: DeclaredWorkload | None) -> str | None:
    """Why the declared workload cannot gain by more write daemons; None where it may, or nothing was declared."""
    if workload is None or not facts.iris:
        return None
    if workload.write_share == 0:
        return "The declared workload only reads: write daemons have nothing to write."
    if workload.is_sequential:
        return "The declared workload is sequential, as of backups; write daemons write databases at random."
    slow = [name for one in facts.iris for name in write_volumes(facts, one)[1]]
    if slow:
        return f"Databases or WIJ lie on rotating disks ({', '.join(dict.fromkeys(slow))}): more writes only queue."
    return None
