"""How many rules had the facts that they need, by the table of the facts that each rule reads."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.unknown import Unknown
from advisor.rules.judged import RULES, count_judged, find_gate
from tests.rules.build import facts
from tests.rules.needs import TABLE, table_text


def test_the_table_has_what_the_rules_read() -> None:
    assert TABLE.read_text("utf-8") == table_text(), "python -m tests.rules.needs writes it"


def _judged(*unknown: str, **parts: Any) -> tuple[int, tuple[str, ...]]:
    """How many rules could not judge a host of which these facts are unknown, and which facts they lack."""
    host = facts(unknown=tuple(Unknown(fact, "test") for fact in unknown), **parts)
    found = count_judged(host, ())
    assert found.of == len(RULES)
    return found.of - found.rules, found.unread


@pytest.mark.parametrize("fact", ["host.machine_id", "host.boot_id", "cpu.model"])
def test_what_no_rule_reads_hinders_none(fact: str) -> None:
    assert _judged(fact) == (0, ())


@pytest.mark.parametrize(
    ("fact", "read"),
    [
        ("links.eth0.rings", "links.rings"),
        ("links.eth0.12.speed_mbps", "links.speed_mbps"),
        ("disks.health", "disks.health"),
        ("sysctl.net.ipv4.tcp_sack", "sysctl.net.ipv4.tcp_sack"),
        ("sysctl_origin./etc/sysctl.d/10-a.conf", "sysctl_origin"),
        ("links", "links"),
    ],
)
def test_a_fact_hinders_the_rules_that_read_it(fact: str, read: str) -> None:
    count, unread = _judged(fact)
    assert count > 0
    assert unread == (read,)


def test_more_is_hindered_by_a_subject_than_by_a_field_of_it() -> None:
    assert _judged("links")[0] > _judged("links.eth0.speed_mbps")[0] > _judged("links.eth0.rings")[0]


def test_rules_of_a_subject_that_a_host_lacks_are_judged() -> None:
    """Without IRIS its rules need nothing else; whether there is IRIS must be known."""
    rows = TABLE.read_text("utf-8").splitlines()
    readers = {row.split(",")[1] for row in rows if "disks.kind" in row.split(",")[2].split()}
    assert find_gate("clusters.iris", facts()) == frozenset({"iris"})
    assert find_gate("network.tcp", facts()) is None
    assert 0 < _judged("disks.sda.kind")[0] < len(readers)
    count, unread = _judged("iris")
    assert (count >= sum(row.startswith("clusters.iris") for row in rows), unread) == (True, ("iris",))


def test_a_rule_with_a_finding_was_judged() -> None:
    host = facts(unknown=(Unknown("links.eth0.rings", "test"),))
    (rule,) = (one for one in RULES if one.id == "network.ring-drops")
    finding = rule.found(why="test", evidence={}, remedy="test")
    assert [count_judged(host, some).rules for some in ((), (finding,))] == [len(RULES) - 1, len(RULES)]
