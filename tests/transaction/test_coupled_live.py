"""Sysctls of a network namespace that others change, judged by sysctl(8) and ip(8): a link's IPv6 MTU, layers over
``default`` and over a link, values that a later step resets, values that were modified externally, addresses."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exporters.apply_script.stage import SHELLS
from tests.exporters.apply_script.test_live import Place
from tests.running import network_namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

WAYS = [
    "rollback",
    " ".join(SHELLS[0]),
    *(pytest.param(" ".join(shell), marks=pytest.mark.thorough) for shell in SHELLS[1:2]),
]
MOVING = ("nf_conntrack_count", "ns_last_pid", "random", "stable_secret", ".pty.nr")


class Net(Place):
    """Links v0 and v1, both with IPv6 addresses and a route; v0 with settings of its own."""

    def sysctls(self) -> dict[str, str]:
        words = ["ip", "netns", "exec", self.name, "sysctl", "-a", "--pattern", r"^net\."]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        pairs = (line.partition(" = ") for line in said.splitlines())
        return {key: value for key, _, value in pairs if not any(word in key for word in MOVING)}

    def set(self, key: str, value: str) -> None:
        words = ["ip", "netns", "exec", self.name, "sysctl", "-qw", f"{key}={value}"]
        subprocess.run(words, check=True)

    def all(self) -> tuple[object, dict[str, str]]:
        state = self.settled()
        # With IPv6 the kernel gives lo a route to its own address, which it has not at first.
        state["routes"] = [one for one in state["routes"] if '"dst": "::1"' not in one]
        return state, self.sysctls()

    def apply(self, way: str, *pairs: str) -> None:
        """By advisor, or by a script that carries the plan out; to be undone by `back` in the same way."""
        if way == "rollback":
            self.run("apply", *pairs)
            return
        self.make(*pairs)
        done = self.call("apply", "--confirm-within", "0", under=way.split())
        assert (done.code, done.state) == (0, "applied"), done

    def back(self, way: str, *, code: int = 0) -> str:
        if way == "rollback":
            return self.run("rollback")
        path = sorted(self.store.glob("transactions/*"))[-1] / "rollback.sh"
        words = ["ip", "netns", "exec", self.name, *way.split(), str(path), "--any-host"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    name = f"coupled{os.getpid()}"
    with network_namespace(name):
        one = Net(name, tmp_path)
        one.ip("link add v0 type veth peer name v1")
        for number, link in enumerate(("lo", "v0", "v1")):
            one.ip(f"link set {link} up")
            one.ip(f"address add 2001:db8:{number + 1}::1/64 dev {link} nodad")
        one.ip("address add 192.0.2.1/24 dev v0")
        one.ip("route add 2001:db8:99::/48 via 2001:db8:2::fe dev v0 metric 9")
        one.ip("route add 2001:db8:98::/48 via 2001:db8:3::fe dev v1 metric 7")
        one.settled()
        yield one


@pytest.mark.repeats(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("own", "wanted"), [("1400", "9000"), ("1300", "1480"), ("1500", "1200")])
def test_a_link_that_has_an_ipv6_mtu_of_its_own_has_it_again(net: Net, way: str, own: str, wanted: str) -> None:
    net.set("net.ipv6.conf.v0.mtu", own)
    before = net.all()
    net.apply(way, f"link:v0:mtu={wanted}")
    assert net.mtus()["v0"] == int(wanted)
    if wanted != "1200":
        assert net.sysctl("net/ipv6/conf/v0/mtu") == wanted, "the kernel sets it to the link's"
    net.back(way)
    assert net.all() == before


@pytest.mark.repeats(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.v0.disable_ipv6"])
def test_addresses_and_routes_that_disable_ipv6_takes_come_back(net: Net, way: str, key: str) -> None:
    net.set("net.ipv6.conf.v0.mtu", "1400")
    before = net.all()
    net.apply(way, f"sysctl:{key}=1")
    left = net.state()["addresses"]
    assert left["v0"] == [("192.0.2.1", 24)]
    assert (left["v1"] == []) == ("all" in key)
    net.back(way)
    assert net.all() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_link_that_has_ipv6_while_all_have_none_keeps_its_addresses(net: Net, way: str) -> None:
    net.set("net.ipv6.conf.all.disable_ipv6", "1")
    net.set("net.ipv6.conf.v1.disable_ipv6", "0")
    net.ip("address add 2001:db8:3::1/64 dev v1 nodad")
    before = net.all()
    net.apply(way, "sysctl:net.ipv6.conf.all.disable_ipv6=0")
    net.back(way)
    assert net.all() == before


# What all or default is set to, and the link.
_KEYS = {
    "net.ipv4.conf.{}.accept_local": ("1", "1"),
    "net.ipv4.conf.{}.forwarding": ("1", "0"),
    "net.ipv6.conf.{}.hop_limit": ("77", "88"),
    "net.ipv4.neigh.{}.gc_stale_time": ("77", "88"),
    "net.ipv6.neigh.{}.base_reachable_time_ms": ("77000", "88000"),
    "net.ipv6.conf.{}.addr_gen_mode": ("1", "3"),
}


# In the short form, any two of the three come in each combination.
LAYERS = [
    pytest.param(*chosen, marks=[pytest.mark.thorough] * ((chosen[0] == "all") ^ chosen[1] ^ chosen[2]))
    for chosen in itertools.product(["default", "all"], [True, False], [True, False])
]


@pytest.mark.repeats(2)
@pytest.mark.parametrize(("wider", "wider_below", "lower_first"), LAYERS)
def test_a_layer_on_a_link_and_one_on_all_or_default_in_either_order(
    net: Net, wider: str, *, wider_below: bool, lower_first: bool
) -> None:
    net.set("net.ipv4.neigh.v1.gc_stale_time", "40")
    first = net.sysctls()
    wide = {key.format(wider): values[0] for key, values in _KEYS.items() if key.format(wider) in first}
    own = {key.format("v0"): values[1] for key, values in _KEYS.items()}
    states = [first]
    for layer in (wide, own) if wider_below else (own, wide):
        # What the layer below has brought about already is no change.
        wanted = {key: value for key, value in layer.items() if states[-1][key] != value}
        net.run("apply", *(f"sysctl:{key}={value}" for key, value in wanted.items()))
        states.append(net.sysctls())
        assert {key: states[-1][key] for key in wanted} == wanted
    net.run("rollback", "0001" if lower_first else "0002")
    if lower_first:
        upper = own if wider_below else wide
        assert {key: net.sysctls()[key] for key in upper} == upper, "what the upper one has set stays"
    else:
        assert net.sysctls() == states[1]
    net.run("rollback", "0002" if lower_first else "0001")
    assert net.sysctls() == first


_FALSE = {
    "redirects": ("sysctl:net.ipv4.conf.all.accept_redirects=1", "sysctl:net.ipv4.ip_forward=1"),
    "off": ("sysctl:net.ipv4.conf.v0.forwarding=0", "sysctl:net.ipv4.ip_forward=1"),
    "forwarding": ("sysctl:net.ipv4.conf.v0.forwarding=1", "sysctl:net.ipv4.ip_forward=0"),
    "ipv6": ("sysctl:net.ipv6.conf.v0.forwarding=0", "sysctl:net.ipv6.conf.all.forwarding=1"),
}


# In the short form each pair in both orders, in one of the ways.
_RESETS = [
    pytest.param(f"{name}{turned}", way, marks=[pytest.mark.thorough] * ((at + bool(turned) + number) % 3 > 0))
    for at, name in enumerate(_FALSE)
    for turned in ("", " turned")
    for number, way in enumerate(("rollback", *(" ".join(shell) for shell in SHELLS[:2])))
]


@pytest.mark.repeats(3)
@pytest.mark.parametrize(("name", "way"), _RESETS)
def test_what_a_later_step_resets_is_active_at_the_end(net: Net, name: str, way: str) -> None:
    name, _, turned = name.partition(" ")
    pairs = _FALSE[name][:: -1 if turned else 1]
    wanted = dict(pair.removeprefix("sysctl:").split("=") for pair in pairs)
    # So that every value of the plan is a change: what resets the other first.
    for key in sorted(wanted, key=lambda key: not key.endswith(("ip_forward", "all.forwarding"))):
        net.set(key, "10"[int(wanted[key])])
    before = net.sysctls()
    assert not [key for key, value in wanted.items() if before[key] == value]
    net.apply(way, *pairs)
    assert {key: net.sysctls()[key] for key in wanted} == wanted
    net.back(way)
    assert net.sysctls() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_member_of_the_group_that_was_modified_externally_stays_and_is_reported(net: Net, way: str) -> None:
    net.apply(way, "sysctl:net.ipv4.neigh.v0.base_reachable_time=70", "sysctl:net.ipv4.conf.all.forwarding=1")
    # A side effect of each of the two, and a link that its change does not reach.
    net.set("net.ipv4.neigh.v0.base_reachable_time_ms", "71500")
    net.set("net.ipv4.conf.v1.forwarding", "0")
    net.set("net.ipv4.conf.lo.rp_filter", "2")
    now = net.sysctls()
    said = net.back(way, code=5)
    after = net.sysctls()
    for key in ("neigh.v0.base_reachable_time_ms", "conf.v1.forwarding", "conf.lo.rp_filter", "neigh.v1.gc_stale_time"):
        assert after[f"net.ipv4.{key}"] == now[f"net.ipv4.{key}"]
    assert (after["net.ipv4.ip_forward"], after["net.ipv4.conf.v0.forwarding"]) == ("0", "0")
    assert "modified externally (71500)" in said
    assert "rp_filter" not in said


@pytest.mark.parametrize("way", WAYS)
def test_an_apply_that_its_own_values_end_is_rolled_back_whole(net: Net, way: str) -> None:
    """One value in two units, each wanted otherwise: what the first reads by then is nobody else's."""
    before = net.all()
    pairs = ("sysctl:net.ipv6.neigh.v0.retrans_time_ms=0", "sysctl:net.ipv6.neigh.v0.retrans_time=600")
    if way == "rollback":
        said = net.run("apply", *pairs, code=4)
        assert "everything has been rolled back" in said
    else:
        net.make(*pairs)
        assert net.call("apply", under=way.split()).code == 4
    assert net.all() == before
