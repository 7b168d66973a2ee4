"""Whether the profile beegfs-nvme fits: on the article's servers, and elsewhere."""

from __future__ import annotations

import pytest

from advisor.facts.host_facts import scan
from advisor.recommend import Outlook, Recommendation, declared, recommend
from advisor.recommend.records import outlooks
from tests.beegfs_server import tree
from tests.facts.storage import Tree

PROFILE = "beegfs-nvme"
QUIET_ARP = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}


def judged(made: Tree, workload: str | None) -> Recommendation:
    host = made.host()
    facts = scan(host)
    own: tuple[Outlook, ...] = tuple(one for one in outlooks(host, facts) if one.name == PROFILE)
    (found,) = recommend(facts, declared(workload) if workload else None, own)
    return found


@pytest.mark.parametrize(
    ("made", "workload", "fits", "standing"),
    [
        (tree(bound=False), None, "yes", "symptom"),
        (tree(bound=False), "beegfs", "yes", "symptom"),
        # Bound, and each link in charge of itself: what is left are the memory settings, for who declares BeeGFS.
        (tree(arp=QUIET_ARP), "beegfs", "yes", "workload"),
        (tree(arp=QUIET_ARP), None, "perhaps", "intent"),
        (Tree(), "beegfs", "no", "not-applicable"),
    ],
)
def test_whether_it_fits(made: Tree, workload: str | None, fits: str, standing: str) -> None:
    found = judged(made, workload)
    assert (found.fits, found.standing) == (fits, standing)


def test_it_says_why_with_the_article_s_cases_and_figures() -> None:
    found = judged(tree(bound=False), "beegfs")
    assert found.command == "advisor plan beegfs-nvme"
    assert {one.rule for one in found.why} >= {"beegfs.not-bound", "beegfs.links-in-one-subnet"}
    assert {one.text: one.holds for one in found.cases} == {
        "two NUMA nodes or more": True,
        "BeeGFS metadata or storage services with targets": True,
        "targets on NVMe drives alone": True,
        "targets on each of the nodes": True,
    }
    assert any("132 GB/s" in one.text for one in found.measured)
