"""A profile of an untrusted author: whatever it says, planning it reads, writes nothing, and ends in a plan or an error
that is documented."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import AdvisorError
from advisor.facts.system.services import Service
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.planning.compute import make_plan
from advisor.planning.guards import socket_memory_bytes
from advisor.planning.observations import observe_targets
from advisor.planning.records import plan_document
from advisor.planning.targets import Request, meets_condition, resolve_targets
from advisor.profiles.profile import Condition, parse_profile
from advisor.tunables import parse_tunable
from tests.cases import cases
from tests.profiles.build import document, toml, wanted
from tests.rules.build import LARGE_BUFFERS, bond, facts, irqs, link, llt, llt_link, nothing_known, numa

CASES = cases(__file__)

FACTS = facts(
    numa=numa(2),
    links=(*bond("bond0", "eth1", "eth2"), link("eth3", irqs=(40,), addresses=("192.0.2.1/24",))),
    irqs=irqs(40, 1, on="0-7"),
    llt=llt(llt_link("a", "bond0")),
    sysctl={**LARGE_BUFFERS, "net.ipv4.udp_mem": "1 2 ²", "net.ipv4.tcp_mem": "9" * 5000},
)
TREE = {
    "/proc/sys/vm/swappiness": b"60\n",
    "/proc/sys/net/ipv4/tcp_rmem": b"4096\t131072\t6291456\n",
    "/proc/irq/40/smp_affinity_list": b"0-7\n",
    **{f"/sys/class/net/{name}/mtu": b"1500\n" for name in ("eth1", "eth2", "eth3", "bond0")},
    "/run/udev/data/n1": b"",
}
SERVICE = Service("a.service", None, None, None, None, None, None, devices=("eth3", "/unknown"))

WORDS = ["10", "-1", "4096 87380 8388608", "0-3", "--5", "9" * 30, "a\0b", "é", "", " ", "x", "1\rx", "|/bin/sh"]
VALUES = st.sampled_from([*WORDS, "{n}", "{w}", "4096 {w} {n}", "{w}{w}"])
TIMES = st.sampled_from([0, 2, -1, 10**9, "{n}", "3"])
SENSES = st.sampled_from(["exactly", "at-least", "at-most", "within", "keep"])
IDS = [
    *("sysctl:vm.swappiness", "sysctl:net.ipv4.tcp_rmem", "sysctl:vm.{w}", "sysctl:{w}", "llt:{w}", "link:eth3:mtu"),
    *("link:{w}:mtu", "irq:{n}:affinity", "irq:40:affinity", "unit:{w}.service:numa", "unit:a.service:numa"),
]
PLAIN = st.builds(
    wanted,
    tunable=st.sampled_from(IDS),
    value=VALUES | TIMES.map(lambda times: {"multiply": times, "of": "value-before-us"}),
    sense=SENSES,
)
LINKS = {"for_each": "links", "tunable": "link:{link}:mtu"}
CHOSEN = [
    *(
        wanted(**LINKS, value=value, sense=sense)
        for value in ("{n}", "9", "999999999")
        for sense in ("at-least", "exactly")
    ),
    wanted(for_each="units", tunable="unit:{unit}:numa", value={"placement": "unit"}),
    wanted(for_each="irqs", tunable="irq:{irq}:affinity", value={"placement": "cpus"}, sense="within"),
]
TYPES = {"n": "integer", "w": "word", "links": "names", "units": "names", "policy": "word"}
PARAMETERS = {name: {"type": type_, "about": "a"} for name, type_ in TYPES.items()}
FACT_PATHS = CASES["FACT_PATHS"]
CONDITIONS = st.fixed_dictionaries(
    {
        "fact": st.sampled_from(FACT_PATHS),
        "op": st.sampled_from(["is", "is-not", "at-least", "at-most", "exists", "count-at-least"]),
        "reason": st.just("r"),
    },
    optional={"value": st.integers(0, 3) | st.sampled_from([*WORDS, True])},
)
NAMES = ["eth1", "eth3,bond0", "a=eth3", "a", "net.core.rmem_max", "../../x", "//.//.x", "", "é", "swappiness"]
SETTINGS = st.fixed_dictionaries(
    {"n": st.sampled_from(["5", "40", "9000", "-7"]), "w": st.sampled_from([*NAMES, *WORDS])},
    optional={name: st.sampled_from(NAMES) for name in ("links", "units", "policy")},
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PLAIN | st.sampled_from(CHOSEN), min_size=1, max_size=2),
    st.lists(CONDITIONS, max_size=1),
    SETTINGS,
    st.booleans(),
)
def test_any_profile(tunables: list[Any], conditions: list[Any], given: dict[str, str], runtime: bool) -> None:
    body = document("mine", *tunables, parameters=PARAMETERS, conditions=conditions, guards=["socket-memory"])
    host = Host(MemoryFiles(TREE), NoCommands())
    # Any other exception fails the test.
    with suppress(AdvisorError):
        request = Request.from_settings(parse_profile(toml(body), "x"), given)
        targets, skipped = resolve_targets(request, FACTS, (SERVICE,))
        seen = observe_targets(host, targets, {})
        plan = make_plan(("mine",), targets, skipped, seen, FACTS, guards=("socket-memory",), runtime_only=runtime)
        assert plan_document(plan)["fingerprint"] == plan.fingerprint
        assert all(one.before != one.after or one.persist for one in plan.changes)
        assert all(parse_tunable(one.tunable).check_value(one.after) is None for one in plan.changes)
        assert all(file.path.startswith("/etc/") and ".." not in file.path for file in plan.files)


def test_the_worst_case_is_bounded_by_what_the_kernel_hands_out() -> None:
    sysctl = {
        **{"net.core.rmem_default": "1000", "net.core.wmem_default": "1000", "net.ipv4.udp_mem": "1 2 3"},
        **{"net.ipv4.tcp_rmem": "1 2 1000", "net.ipv4.tcp_wmem": "1 2 1000", "net.ipv4.tcp_mem": "1 2 5"},
    }
    assert socket_memory_bytes(sysctl, tcp=1, udp=1, page_bytes=4096) == 4000
    assert socket_memory_bytes(sysctl, tcp=100, udp=100, page_bytes=4096) == (3 + 5) * 4096
    assert socket_memory_bytes({}, tcp=100, udp=100, page_bytes=4096) == 0


def condition(fact: str, op: Any, value: Any = None) -> bool:
    return meets_condition(Condition(fact, op, "r", value), FACTS)


def test_conditions() -> None:
    assert condition("numa.nodes", "count-at-least", 2)
    assert not condition("numa.nodes", "count-at-least", 3)
    assert not meets_condition(Condition("numa.nodes", "count-at-least", "r", 1), nothing_known())
    assert condition("llt", "exists")
    assert not condition("llt.nowhere", "exists")
    assert not condition("__class__", "exists")
    assert not condition("llt.__class__.__name__", "exists")
    assert condition("llt.running", "is", True)
    assert not condition("llt.running", "is-not", True)
    assert condition("llt.flow_control.highwater", "at-least", 1000)
    assert not condition("llt.flow_control.highwater", "at-most", 999)
    assert not condition("host.hostname", "at-least", 1)
    # The keys of sysctl hold dots themselves.
    assert condition("sysctl.vm.swappiness", "is", "60")
    # What is unknown meets none but is-not.
    assert condition("host.boot_id", "is-not", "x")
    assert not condition("host.boot_id", "at-most", 5)
