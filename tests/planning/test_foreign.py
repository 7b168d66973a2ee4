"""No plan on a captured host names a link of another program, or gives an interrupt to an isolated CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import AdvisorError
from advisor.facts.cpulist import parse_list
from advisor.facts.host_facts import scan
from advisor.facts.link_stack import keeper_of
from advisor.planner import plan_profiles
from advisor.snapshot.open import open_host

SHARED = Path(__file__).parents[3] / "shared"
CAPTURED = sorted([*SHARED.glob("same-output/hosts/*.tar.gz"), *SHARED.glob("cases/*/host*.tar.gz")])
PROFILES = ("jumbo-frames", "iscsi", "numa-pinning", "beegfs-nvme", "infoscale-fss-udp", "low-latency")


@pytest.mark.captured
@pytest.mark.skipif(not CAPTURED, reason="the captured hosts do not lie next to the project")
def test_plans_leave_links_of_others_and_isolated_cpus() -> None:
    found, planned = [], 0
    for path in CAPTURED:
        host = open_host(snapshot=path)
        facts = scan(host)
        links = {link.name: link for link in facts.links}
        isolated = set(parse_list(facts.cpu.sets.isolated))
        for profile in PROFILES:
            try:
                plan = plan_profiles(host, [profile], {}, facts=facts, foresees=False)
            except AdvisorError:
                continue
            planned += 1
            for change in plan.changes:
                kind, name = change.tunable.split(":")[:2]
                link = links.get(name) if kind == "link" else None
                if link and keeper_of(link, links) and (link.pci is None or change.tunable.endswith(":mtu")):
                    found.append((path.name, profile, change.tunable))
                if kind == "irq" and isolated & set(parse_list(change.after)):
                    found.append((path.name, profile, change.tunable))
    assert planned > len(CAPTURED)
    assert found == []
