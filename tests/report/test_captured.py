"""Real machines: their scan can be judged and shown, whatever is missing from the capture."""

from __future__ import annotations

import json

import pytest

from advisor.facts.host_facts import scan
from advisor.report.json import scan_document
from advisor.report.scan_page import scan_text
from advisor.rules.judged import judge
from advisor.rules.workload import parse_workload
from tests.captured import HWLOC_HOSTS, PEPC_HOSTS, host
from tests.report.pasted import lines_too_wide, lines_without_commands

HOSTS = [*(f"hwloc/{name}" for name in HWLOC_HOSTS), *(f"pepc/{name}" for name in PEPC_HOSTS)]


@pytest.mark.captured
@pytest.mark.parametrize("name", HOSTS)
def test_can_be_judged_and_shown(name: str) -> None:
    facts = scan(host(name))
    findings = judge(facts, parse_workload("replicated-writes,rtt=1.16ms"))
    text = scan_text(facts, findings, width=80, color=False)
    assert lines_too_wide("\n".join(lines_without_commands(text, findings)), 80) == []
    for node in facts.numa.nodes:
        assert f"Node {node.id}" in text
    for link in facts.links:
        assert link.name in text
    assert "None" not in text
    assert json.loads(scan_document(facts, findings))["schema"] == "advisor.scan/1"


@pytest.mark.captured
@pytest.mark.parametrize("name", HOSTS)
def test_nothing_is_claimed_of_what_was_not_captured(name: str) -> None:
    facts = scan(host(name))
    for finding in judge(facts):
        # Of memory only the pools of huge pages were captured; some of these hosts had them all free.
        # Mounts and units in control groups are part of them, too.
        known = ("vm.huge-pages-unused", "services.profile")
        assert finding.id.partition(".")[0] in ("pcie", "numa", "links") or finding.id in known, finding
