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


def flows(host: Veth) -> list[str]:
    return [host.queue(f"rx-{number}/rps_flow_cnt") for number in range(4) if host.has(f"queues/rx-{number}")]


def test_channels_and_what_hangs_on_them(host: Veth) -> None:
    for number, value in enumerate(("16", "32", "64", "128")):
        host.queue(f"rx-{number}/rps_flow_cnt", value)
    before = host.everything()
    apply(host, "few", {"link:a0:channels.rx": "2"})
    assert flows(host) == ["16", "32"]
    apply(host, "flows", {"link:a0:rps-flow-cnt.rx-1": "256"})
    apply(host, "more", {"link:a0:channels.rx": "3"})
    assert flows(host) == ["16", "256", "0"]
    host.advisor("rollback", "1")
    assert flows(host) == ["16", "256", "0"], "the channels are another layer's"
    host.advisor("verify")
    host.advisor("rollback", "2")
    assert flows(host) == ["16", "32", "0"]
    host.advisor("rollback", "3")
    assert flows(host) == ["16", "32", "64", "128"]
    assert host.everything() == before


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
