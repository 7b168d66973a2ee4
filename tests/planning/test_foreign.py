"""No plan on a captured host names a link of another program, or an isolated CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.errors import AdvisorError
from advisor.facts.host_facts import Facts, scan
from advisor.facts.network.link_stack import keeper_of
from advisor.facts.processors.cpulist import parse_list
from advisor.host import Host, tree_host
from advisor.planner import plan_profiles
from advisor.planning.records import Change
from advisor.profiles.profile import shipped_directory
from advisor.snapshot.open import open_host
from tests.captured import FIXTURES, tree

SHARED = FIXTURES.parent
HOSTS = [
    *sorted(Path(__file__).parents[1].glob("fixtures/*.tar.gz")),
    *sorted(SHARED.glob("cases/*/host*.tar.gz")),
    *sorted(SHARED.glob("same-output/hosts/*.tar.gz")),
    *sorted(FIXTURES.glob("*/*.tar.xz")),
]
PROFILES = sorted(path.stem for path in shipped_directory().glob("*.toml"))


def opened(path: Path) -> Host:
    if path.suffix == ".xz":
        return tree_host(str(tree(f"{path.parent.name}/{path.name.removesuffix('.tar.xz')}")))
    return open_host(snapshot=path)


def is_wrong(change: Change, facts: Facts) -> bool:
    kind, name = change.tunable.split(":")[:2]
    if kind == "link":
        links = {link.name: link for link in facts.links}
        link = links.get(name)
        is_theirs = link is not None and keeper_of(link, links) is not None
        return is_theirs and (links[name].pci is None or change.tunable.endswith(":mtu"))
    if kind not in ("irq", "unit"):
        return False
    cpus = change.after if kind == "irq" else "".join(re.findall(r"CPUAffinity=([0-9,-]+)", change.after))
    return bool(cpus and set(parse_list(facts.cpu.sets.isolated)) & set(parse_list(cpus)))


@pytest.mark.captured
@pytest.mark.repeats(70)
@pytest.mark.parametrize("path", HOSTS, ids=[path.name for path in HOSTS])
def test_plans_leave_links_of_others_and_isolated_cpus(path: Path) -> None:
    host = opened(path)
    facts = scan(host)
    wrong = []
    for profile in PROFILES:
        try:
            plan = plan_profiles(host, [profile], {}, facts=facts, foresees=False)
        except AdvisorError:
            continue
        wrong += [(profile, change.tunable, change.after) for change in plan.changes if is_wrong(change, facts)]
    assert wrong == []
