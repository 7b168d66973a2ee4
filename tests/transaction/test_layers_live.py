"""Layers over side effects of links, on a real kernel: queues, addresses, routes; judged by ``ip`` and sysfs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transaction.veth import Veth, veth

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")
V6 = ("2001:db8:1::1", 64)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Veth]:
    with veth(tmp_path) as one:
        yield one


def apply(host: Veth, name: str, values: dict[str, str], *words: str) -> None:
    host.profile(name, values)
    host.advisor("apply", name, "--yes", "--confirm-within", "0", *words)


def test_addresses_that_a_small_mtu_took_come_back_once_the_layer_is_out(host: Veth) -> None:
    before = host.everything()
    apply(host, "small", {"link:a0:mtu": "1200"})
    assert V6 not in host.state()["addresses"]["a0"]
    apply(host, "large", {"link:a0:mtu": "4000"}, "--instead-of", "small")
    now = host.settled()
    assert (now["mtus"]["a0"], now["addresses"], now["routes"]) == (4000, before["addresses"], before["routes"])
    host.advisor("rollback")
    assert host.everything() == before


@pytest.mark.parametrize("order", ["12", "21"])
def test_what_cannot_be_had_yet_comes_back_with_the_later_layer(host: Veth, order: str) -> None:
    before = host.everything()
    apply(host, "small", {"link:a0:mtu": "1200"})
    apply(host, "middle", {"link:a0:mtu": "1270"})
    for number in order:
        host.advisor("rollback", number)
    assert host.everything() == before
