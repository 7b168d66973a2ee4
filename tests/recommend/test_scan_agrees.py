"""Scan and recommend agree: what a finding sends to, recommend does not advise against."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pytest

from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.recommend import Recommendation, declared, outlooks, recommend
from advisor.rules.judged import judge
from tests.articles.table import SYSTEMS, cases
from tests.quiet_hosts import KINDS, quiet_host

# For each system the loads of its article, and one of another.
WORKLOADS: Final[Mapping[str, tuple[str | None, ...]]] = {
    "infoscale": (None, "fss-udp", "fss-tcp", "fss-cross-zone", "single-node", "infoscale.4k-seq-rw50", "backup"),
    "iris": (None, "iris", "iris.ranwrite", "iris,rtt=1.16ms,replication=sync"),
    "iscsi": (None, "iscsi-vm", "iometer.reallife", "streaming-read"),
    "beegfs": (None, "beegfs", "streaming-write"),
    "ebs": (None, "iris", "oltp"),
}
DECLARED: Final = re.compile("The declared (?:workload|replication)")
QUIET: Final = (None, "oltp", "backup", "replicated-writes")


def hosts(system: str) -> Mapping[str, Callable[[], Host]]:
    """The hosts of a system's cases, each once."""
    return {repr(case.host): case.host for case in cases(system)}


def disagreements(host: Host, workloads: Sequence[str | None]) -> Iterator[str]:
    """Findings of advice or more that send to a profile which recommend calls unfit, or says to plan with another; and
    texts that call something declared where nothing was."""
    facts = scan(host)
    known = outlooks(host, facts)
    for text in workloads:
        workload = declared(text) if text else None
        advised = {one.profile: one for one in recommend(facts, workload, known)}
        if text is None:
            texts = [*(reason.text for one in advised.values() for reason in one.why)]
            yield from (said for said in texts if DECLARED.search(said))
        whole = {name for name, one in advised.items() if one.fits == "yes"}
        for one in judge(facts, workload):
            if text is None and DECLARED.search(one.why):
                yield one.why
            if one.severity != "info" and one.profile is not None:
                for reason in _against(advised[one.profile], whole):
                    yield f"{one.id} sends to {one.profile}, with {text}: {reason}"


def _against(judged: Recommendation, whole: set[str]) -> Iterator[str]:
    # What has no room for its memory now is refused with what to do first, and scan reports that, too.
    if judged.fits == "no" and judged.standing != "blocked":
        yield f"{judged.standing}: {judged.summary}"
    for reason in judged.why:
        if reason.text.partition(" has it along with all that this configuration")[0] in whole:
            yield reason.text


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("system", SYSTEMS)
def test_scan_sends_only_to_what_recommend_takes_and_calls_declared_what_was(system: str, step: int) -> None:
    """On each host of the articles' cases; in the common run on every fourth."""
    made = list(hosts(system).values())[::step]
    assert made
    assert [text for host in made for text in disagreements(host(), WORKLOADS[system])] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distribution", ["rhel-8", "ubuntu-24.04"])
def test_nor_on_a_host_outside_the_articles(kind: str, distribution: str) -> None:
    assert list(disagreements(quiet_host(kind, distribution), QUIET)) == []
