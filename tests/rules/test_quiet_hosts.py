"""Hosts outside the articles' systems, as their distributions install them: at most one advice, and that one right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from advisor import operations as api
from tests import captured
from tests.cases import read_cases
from tests.each import for_each
from tests.quiet_hosts import ALL, EBS, KINDS, quiet_host
from tests.whole_hosts import DISTRIBUTIONS, WholeHost

# What a specialist would say about them: volumes of EBS are to be waited for longer than 30 seconds (AWS).
DATA = read_cases(__file__)

RIGHT: Final[Mapping[str, frozenset[str]]] = DATA["RIGHT"]
# A distribution's default is no reason for any of these.
DEFAULTS: Final = frozenset(
    {"buffers.below-profile", "network.reverse-path-filter", "network.mtu-probing", "vm.huge-pages-always"}
)
# Captured hosts: what was found there is there.
CAPTURED: Final[Mapping[str, frozenset[str]]] = DATA["CAPTURED"]


def advised(findings: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in findings if one["severity"] != "info"]


def scanned(host: Any) -> dict[str, Any]:
    document: dict[str, Any] = api.document(api.scan(host))
    return document


@for_each("kind distribution", ALL)
def test_a_host_outside_the_articles_gets_one_advice_at_most_and_that_one_is_right(
    kind: str, distribution: str
) -> None:
    found = advised(scanned(quiet_host(kind, distribution))["findings"])
    assert len(found) <= 1
    assert set(found) <= RIGHT.get(kind, frozenset())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_what_a_distribution_installs_is_no_finding(distribution: str) -> None:
    """Without a counter not even an information."""
    made = WholeHost(DISTRIBUTIONS[distribution], gib=16, cpus=8)
    made.ec2("m6i.large")
    made.link("ens5", "10.0.0.5/24", driver="ena", mtu=9001, speed=None, route=True)
    made.link("ens6", "10.0.1.5/24", driver="ena", mtu=9001, speed=None)
    made.drive(0, EBS, gib=100, at=("/",))
    assert not {one["id"] for one in scanned(made.host())["findings"]} & DEFAULTS


@pytest.mark.parametrize("kind", KINDS)
def test_the_hosts_are_whole(kind: str) -> None:
    """A scan that learnt nothing would be silent as well."""
    document = scanned(quiet_host(kind, "rhel-9"))
    assert document["host"]["os"].startswith("Red Hat Enterprise Linux 9.4")
    assert [one["name"] for one in document["links"] if one["default_route"]]
    assert any("/" in one["mountpoints"] for one in document["disks"])
    assert document["sysctl"]["net.core.rmem_max"] == "212992"
    assert document["memory"]["total_bytes"]


@pytest.mark.captured
@pytest.mark.parametrize(
    "name", [*(f"hwloc/{one}" for one in captured.HWLOC_HOSTS), *(f"pepc/{one}" for one in captured.PEPC_HOSTS)]
)
def test_a_captured_host_gets_one_advice_at_most(name: str) -> None:
    assert set(advised(scanned(captured.host(name))["findings"])) == CAPTURED.get(name, frozenset())
