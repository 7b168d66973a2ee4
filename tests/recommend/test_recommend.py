"""Which profile fits which host and workload: the judgement, from facts, a workload and real plans."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.facts.system.memory import Counters, Sockets
from advisor.host import tree_host
from advisor.profiles.profile import load, profile_paths
from advisor.proof.workloads import WORKLOADS as PATTERNS
from advisor.recommend import Outlook, Recommendation, declared, outlooks, recommend
from advisor.recommend.figures import FIGURES
from advisor.rules.workload import WORKLOADS
from tests.report import plans
from tests.rules.build import SYSCTL, facts, link, llt, llt_link, numa, replaced
from tests.trees import make_tree

BUFFERS, JUMBO, LLT, NUMA = "socket-buffers-8m", "jumbo-frames", "llt-highwater-doubled", "numa-pinning"
PRIVATE = link("eth1", mtu=1500, addresses=("198.51.100.1/24",), mtu_max=9216)
CLUSTER: dict[str, Any] = {
    "links": (link("eth0", addresses=("192.0.2.10/24",), default_route=True), PRIVATE),
    "llt": llt(llt_link("link1", "eth1")),
    "sysctl": SYSCTL,
}
DROPS = Counters(udp_received=100_000, udp_receive_buffer_errors=1204)


def judged(root: Path, name: str, workload: str | None, found: Facts, **settings: str) -> Recommendation:
    """The judgement on one profile, with the plan that it really has on a tree like these facts."""
    files = plans.tree_files({**plans.SYSCTL, **found.sysctl}, **{one.name: one.mtu or 1500 for one in found.links})
    plan = plans.make(root, name, files=files, facts=found, settings=settings)
    (made,) = recommend(found, declared(workload) if workload else None, [Outlook(name, load(name), plan)])
    return made


@pytest.mark.parametrize(
    ("name", "workload", "parts", "fits", "standing"),
    [
        # The three tunings of the white paper, each in the case where it was best.
        (JUMBO, "fss-tcp", CLUSTER, "yes", "symptom"),
        (JUMBO, "fss-tcp", {**CLUSTER, "llt": None}, "yes", "workload"),
        (BUFFERS, "fss-udp", CLUSTER, "yes", "symptom"),
        (BUFFERS, "fss-udp", {**CLUSTER, "llt": None}, "perhaps", "workload"),
        (BUFFERS, "fss-udp,rtt=5ms", {**CLUSTER, "llt": None}, "yes", "workload"),
        (LLT, "fss-cross-zone", CLUSTER, "yes", "workload"),
        # What cannot gain.
        (JUMBO, "block=512,access=sequential,transport=tcp", {**CLUSTER, "llt": None}, "no", "unfit"),
        (JUMBO, "read=100%,access=random,block=8k,transport=tcp", CLUSTER, "perhaps", "symptom"),
        (JUMBO, "read=100%,access=random,block=8k,replication=sync", {**CLUSTER, "llt": None}, "no", "unfit"),
        # The exception is that of mirrored data: nothing of it is said about other networks.
        (JUMBO, "read=100%,access=random,block=8k,transport=tcp", {**CLUSTER, "llt": None}, "perhaps", "intent"),
        (JUMBO, "iris", {**CLUSTER, "llt": None}, "no", "unfit"),
        (BUFFERS, "iris", {**CLUSTER, "llt": None}, "no", "unfit"),
        (LLT, "iris,replication=none", CLUSTER, "no", "unfit"),
        (LLT, "read=90%,rtt=100us,replication=sync", CLUSTER, "no", "unfit"),
        # A symptom that the workload speaks against.
        (BUFFERS, "iris", {"sysctl": SYSCTL, "counters": DROPS}, "perhaps", "symptom"),
        # Symptoms alone.
        (BUFFERS, None, {"sysctl": SYSCTL, "counters": DROPS}, "yes", "symptom"),
        (
            BUFFERS,
            None,
            {"sysctl": SYSCTL, "counters": Counters(udp_received=10**9, udp_receive_buffer_errors=1)},
            "perhaps",
            "symptom",
        ),
        (JUMBO, None, CLUSTER, "yes", "symptom"),
        # Neither: a matter of intent.
        (BUFFERS, None, {"sysctl": SYSCTL}, "perhaps", "intent"),
        (LLT, None, CLUSTER, "perhaps", "intent"),
        (JUMBO, None, {**CLUSTER, "llt": None}, "perhaps", "intent"),
        # Not here.
        (LLT, "fss-cross-zone", {}, "no", "not-applicable"),
        (NUMA, None, {}, "no", "not-applicable"),
        (JUMBO, None, {}, "no", "not-applicable"),
    ],
)
def test_the_judgement(
    name: str, workload: str | None, parts: dict[str, Any], fits: str, standing: str, tmp_path: Path
) -> None:
    made = judged(tmp_path, name, workload, facts(**parts))
    assert (made.fits, made.standing) == (fits, standing), made.summary
    assert made.summary.endswith(".")
    # with the size that the offered command sets, where it sets one
    size = re.search(r"bytes=(\d+)", made.command or "")
    said = load(name).hurts_when
    assert made.hurts[-1] == (said.replace("8 MiB", f"{int(size[1]):,} bytes") if size else said)


def test_a_counter_comes_first_and_with_its_number(tmp_path: Path) -> None:
    made = judged(tmp_path, BUFFERS, None, facts(sysctl=SYSCTL, counters=DROPS))
    assert made.why[0].text == "UDP receive buffer errors since the host started: 1,204"
    assert made.why[0].evidence == {"udp_receive_buffer_errors": 1204}
    assert "buffers.udp-receive-errors" in [reason.rule for reason in made.why]


def test_the_size_of_buffers_follows_window_bandwidth_and_round_trip(tmp_path: Path) -> None:
    made = judged(tmp_path, BUFFERS, "fss-udp", facts(**CLUSTER))
    assert made.command == "advisor plan socket-buffers-8m --set bytes=851968"
    assert any("851,968" in reason.text and "8,388,608" in reason.text for reason in made.why)
    wide = {**CLUSTER, "llt": llt(llt_link("link1", "eth1"), flow_control={"highwater": 1000, "window": 100})}
    made = judged(tmp_path, BUFFERS, "fss-udp", facts(**wide))
    assert made.command == f"advisor plan socket-buffers-8m --set bytes={100 * 17_039}"
    made = judged(tmp_path, BUFFERS, "fss-udp,rtt=5ms", facts(**CLUSTER))
    # 25 Gbit/s × 5 ms, doubled, as the next power of two.
    assert made.command == "advisor plan socket-buffers-8m --set bytes=33554432"


def test_what_is_in_force_says_so(tmp_path: Path) -> None:
    large = {**plans.SYSCTL, "net.core.optmem_max": "8388608"}
    large |= {f"net.core.{end}_{what}": "8388608" for end in ("rmem", "wmem") for what in ("max", "default")}
    large |= {f"net.ipv4.tcp_{end}": "4096 131072 33554432" for end in ("rmem", "wmem")}
    made = judged(tmp_path, BUFFERS, None, facts(sysctl=large))
    assert (made.standing, made.command) == ("in-force", f"advisor plan {made.profile}")
    assert made.summary.startswith("All that it sets here is there already")


def test_a_budget_that_does_not_hold_is_told_with_what_would(tmp_path: Path) -> None:
    files = {
        **{f"/proc/sys/{key.replace('.', '/')}": value for key, value in plans.SYSCTL.items()},
        "/proc/meminfo": "MemTotal: 200000 kB\nMemAvailable: 100000 kB\n",
        "/proc/net/sockstat": "TCP: inuse 2 orphan 0 tw 0 alloc 2 mem 0\nUDP: inuse 90 mem 1\n",
    }
    host = tree_host(str(make_tree(tmp_path, files)))
    found = scan(host)
    made = {one.profile: one for one in recommend(found, None, outlooks(host, found))}[BUFFERS]
    assert (made.fits, made.standing) == ("no", "blocked")
    assert "memory budget" in made.summary
    assert made.command == "advisor plan socket-buffers-8m --set bytes=851968"


def test_the_cases_of_the_paper_are_told_one_by_one(tmp_path: Path) -> None:
    made = judged(tmp_path, JUMBO, "fss-tcp,block=8k", facts(**{**CLUSTER, "llt": None}))
    held = {case.text: case.holds for case in made.cases}
    assert held == {
        "data crosses the network": True,
        "sequential access, as in batch work": True,
        "half of it writes, or more": True,
        "blocks larger than today's MTU (8,192 against 1,500 bytes)": True,
    }
    undeclared = judged(tmp_path / "again", LLT, None, facts(**CLUSTER))
    assert {case.holds for case in undeclared.cases} == {None}


def test_what_it_costs_here_comes_before_what_it_costs_in_general(tmp_path: Path) -> None:
    sockets = replaced(facts().memory, {"sockets": Sockets(tcp=1, udp=100)})
    buffers = judged(tmp_path, BUFFERS, None, facts(sysctl=SYSCTL, memory=sockets))
    assert any(text.startswith("100 UDP sockets could hold 1600 MiB, 3.3%") for text in buffers.hurts)
    llt_made = judged(tmp_path / "llt", LLT, None, facts(**CLUSTER))
    assert llt_made.hurts[0] == "15.6 MiB for each peer once its queue is full."
    jumbo = judged(tmp_path / "jumbo", JUMBO, None, facts(**CLUSTER))
    assert jumbo.hurts[0].startswith("eth1: may lose its traffic")


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    made = judged(tmp_path, LLT, None, facts(**CLUSTER))
    assert any("lltstat" in text for text in made.unknown)
    assert any("--workload" in text for text in made.unknown)
    far = judged(tmp_path / "far", LLT, "fss-cross-zone", facts(**CLUSTER))
    assert not any("--workload" in text for text in far.unknown)


def test_several_nodes_without_units_named(tmp_path: Path) -> None:
    made = judged(tmp_path, NUMA, None, facts(numa=numa(2)))
    assert made.fits == "perhaps"
    assert [case.holds for case in made.cases] == [True]


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_figures_belong_to_profiles_and_carry_workload_and_source(name: str) -> None:
    assert name in profile_paths()
    assert all(each.text and each.workload and each.source for each in FIGURES[name])


def test_every_profile_is_judged_on_an_empty_tree_and_nothing_fits(tmp_path: Path) -> None:
    host = tree_host(str(make_tree(tmp_path, {"/proc/uptime": "1 1"})))
    found = scan(host)
    made = recommend(found, None, outlooks(host, found))
    assert {one.profile for one in made} == set(profile_paths())
    assert "yes" not in {one.fits for one in made}
    (pinning,) = (one for one in made if one.profile == NUMA)
    assert (pinning.standing, "could not be read" in pinning.summary) == ("unknown", True)
    assert recommend(found, None, outlooks(host, found)) == made


def test_llt_whose_values_cannot_be_read_is_not_said_to_be_absent(tmp_path: Path) -> None:
    files = {"/proc/uptime": "1 1", "/etc/llttab": "set-node n1\nlink a eth1 - udp 50000 - 192.0.2.1 -\n"}
    host = tree_host(str(make_tree(tmp_path, files)))
    found = scan(host)
    made = {one.profile: one for one in recommend(found, None, outlooks(host, found))}[LLT]
    assert (made.fits, made.standing) == ("no", "unknown")
    assert "LLT is set up here" in made.summary


def test_a_broken_profile_leaves_the_others_their_turn() -> None:
    made = recommend(facts(), None, [Outlook("a", why="a.toml: line 1: no"), Outlook(NUMA, load(NUMA), why="odd")])
    assert [(one.profile, one.fits, one.standing) for one in made] == [("a", "no", "broken"), (NUMA, "no", "unknown")]


def test_those_that_fit_come_first(tmp_path: Path) -> None:
    found = facts(**CLUSTER, counters=DROPS)
    known = []
    for name in (NUMA, LLT, BUFFERS):
        known.append(Outlook(name, load(name), plans.make(tmp_path / name, name, facts=found)))
    assert [one.fits for one in recommend(found, None, known)] == ["yes", "perhaps", "no"]


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_the_measured_patterns_can_be_declared(name: str) -> None:
    found = declared(name)
    assert found.name == name
    assert found.block_bytes is not None


@pytest.mark.parametrize(
    ("name", "write_share", "block", "access", "transport", "replication"),
    [
        ("infoscale.4k-seq-rw50", 0.5, 4096, "sequential", None, "sync"),
        ("infoscale.4k-rand-w100", 1.0, 4096, "random", None, "sync"),
        ("iometer.reallife", 0.35, 8192, "random", "tcp", None),
        ("iris.ranwrite", 1.0, 8192, "random", "local", None),
        ("beegfs.iozone-seq-read", 0.0, 1 << 20, "sequential", "rdma", None),
        ("net.udp-8k", 1.0, 8192, "sequential", "udp", None),
        ("net.tcp-64k-receive", 0.0, 65536, "sequential", "tcp", None),
        ("null.4k", 0.0, 4096, "random", "local", None),
    ],
)
def test_a_pattern_says_what_it_is(
    name: str, write_share: float, block: int, access: str, transport: str | None, replication: str | None
) -> None:
    found = declared(name)
    assert found.write_share == pytest.approx(write_share)
    assert (found.block_bytes, found.access, found.transport) == (block, access, transport)
    assert found.replication == replication


def test_a_pattern_with_exceptions() -> None:
    assert declared("infoscale.64k-seq-rw50,transport=udp,rtt=1ms").transport == "udp"


@pytest.mark.parametrize("text", ["infoscale.nothing", "speed=1", "", "read=2", "read=50%,write=50%"])
def test_what_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        declared(text)
    if "nothing" in text:
        assert "infoscale.…" in str(caught.value.hint)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_the_words_of_the_trade_can_be_declared(name: str) -> None:
    assert declared(name) == WORKLOADS[name]
