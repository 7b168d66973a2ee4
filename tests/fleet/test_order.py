"""Who is changed before whom, which hosts stand in for one another, and whom a gate asks: all from facts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.facts.clusters.llt import parse_llttab
from advisor.facts.remote.iscsi import Iscsi, IscsiTarget
from advisor.fleet.runs.order import OrderSubject, find_segments, known_groups, mtu_order, mtu_warnings, subject_of
from advisor.fleet.runs.planning import (
    GateAnswer,
    baseline_questions,
    carried_by,
    find_neighbourhood,
    gate_script,
    judge_answers,
    make_baseline,
    parse_gate_answer,
    questions_after,
    targets_of,
)
from advisor.fleet.runs.waves import Batch, Canary, Candidate, make_waves
from advisor.host import Host, MemoryFiles, NoCommands, ReadFile
from advisor.planning.records import Change, Plan
from tests.rules import build

ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
ON_LINK = "eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"


def plan(before: int, after: int) -> Plan:
    change = Change(
        "link:eth1:mtu", str(before), str(after), None, "", "link", "now", "why", "hurts", ("source",), "jumbo-frames",
        ReadFile("/sys/class/net/eth1/mtu"), (), (),
    )  # fmt: skip
    return Plan(("jumbo-frames",), None, (change,), (), (), (), ())


def subject(number: int, *, mtu: int = 1500, to: int | None = 9000, mounts: str = "", **parts: Any) -> OrderSubject:
    """A host with eth1 in 10.0.0.0/24, and NFS mounts of others."""
    link = build.link("eth1", mtu=mtu, addresses=(f"10.0.0.{number}/24",))
    host = Host(
        MemoryFiles({"/proc/net/route": (ROUTES + ON_LINK).encode(), "/proc/self/mounts": mounts.encode()}),
        NoCommands(),
    )
    made = None if to is None else plan(mtu, to)
    return subject_of(f"n{number}", host, build.facts(links=(link,), **parts), made)


def nfs(server: int) -> str:
    return f"10.0.0.{server}:/srv /srv nfs4 rw,addr=10.0.0.{server} 0 0\n"


def test_servers_are_raised_before_their_clients_and_lowered_after_them() -> None:
    raised = [subject(1, mounts=nfs(2)), subject(2)]
    assert [(one.first, one.then) for one in mtu_order(raised)] == [("n2", "n1")]
    lowered = [subject(1, mtu=9000, to=1500, mounts=nfs(2)), subject(2, mtu=9000, to=1500)]
    assert [(one.first, one.then) for one in mtu_order(lowered)] == [("n1", "n2")]


def test_an_address_that_two_hosts_have_binds_neither() -> None:
    assert mtu_order([subject(1, mounts=nfs(2)), subject(2), msgspec.structs.replace(subject(2), name="copy")]) == ()


def llttab(cluster: int) -> Any:
    table = parse_llttab(f"set-node n1\nset-cluster {cluster}\nlink l1 udp - udp 50000 - 10.0.0.1 -\n")
    return build.llt(build.llt_link("l1", "eth1", type="udp"), llttab=table)


def test_hosts_of_one_llt_cluster_are_a_failover_group() -> None:
    found = known_groups([subject(1, llt=llttab(7)), subject(2, llt=llttab(7)), subject(3, llt=llttab(8)), subject(4)])
    assert {name: [group.name for group in groups] for name, groups in found.items()} == {
        "n1": ["LLT cluster 7"],
        "n2": ["LLT cluster 7"],
        "n3": ["LLT cluster 8"],
    }


def test_hosts_that_export_one_iscsi_target_are_a_failover_group() -> None:
    both = Iscsi(targets=(IscsiTarget("iqn.x", 1, True, (), (), {}),))
    found = known_groups([subject(1, iscsi=both), subject(2, iscsi=both), subject(3)])
    assert {name: [group.name for group in groups] for name, groups in found.items()} == {
        "n1": ["iSCSI target iqn.x"],
        "n2": ["iSCSI target iqn.x"],
    }


def warned(*subjects: OrderSubject) -> str:
    names = [one.name for one in subjects if one.plan]
    waves = make_waves([Candidate(name) for name in names], canary=Canary(), batch=Batch(count=1))
    return "\n".join(mtu_warnings(find_segments(subjects), waves))


def test_a_subnet_that_is_mixed_for_a_while_or_for_good_is_told() -> None:
    assert "mixed from wave 1 to wave 2" in warned(subject(1), subject(2))
    assert "mixed" not in warned(subject(1))
    assert "n2 (1500) stay below 9000" in warned(subject(1), subject(2, to=None))
    assert "stay below" not in warned(subject(1), subject(2, mtu=9000, to=None))


def test_llt_over_udp_is_told_that_it_loses_packets_meanwhile() -> None:
    assert "LLT runs over 10.0.0.0/24" in warned(subject(1, llt=llttab(7)), subject(2, llt=llttab(7)))
    assert "LLT" not in warned(subject(1), subject(2))


def answered(*sizes: int, lost: tuple[int, ...] = ()) -> GateAnswer:
    lines = [f"echo 10.0.0.2 {size} ok" for size in sizes] + [f"echo 10.0.0.2 {size} lost" for size in lost]
    return parse_gate_answer("\n".join([*lines, "llt", ""]))


def test_a_host_that_is_not_raised_yet_is_asked_at_its_own_size() -> None:
    fleet = [subject(1), subject(2)]
    targets = targets_of(fleet[0], find_neighbourhood(fleet))
    assert [(one.address, one.owner, one.before, one.after) for one in targets] == [("10.0.0.2", "n2", 1500, 9000)]
    before = make_baseline(targets, answered(84, 1500))
    assert [one.size for one in questions_after(before, carried_by(fleet, ["n1"]))] == [1500]
    assert [one.size for one in questions_after(before, carried_by(fleet, ["n1", "n2"]))] == [9000]


def test_who_is_none_of_ours_has_to_carry_the_new_size() -> None:
    fleet = [subject(1, mounts=nfs(9))]
    targets = targets_of(fleet[0], find_neighbourhood(fleet))
    assert [(one.address, one.owner) for one in targets] == [("10.0.0.9", None)]
    sizes = [one.size for one in baseline_questions(targets)]
    assert sizes == [84, 1500]
    answer = parse_gate_answer("echo 10.0.0.9 84 ok\necho 10.0.0.9 1500 ok\nllt\n")
    assert [one.size for one in questions_after(make_baseline(targets, answer), carried_by(fleet, ["n1"]))] == [9000]


@pytest.mark.parametrize(
    ("after", "holds"), [(answered(9000), True), (answered(lost=(9000,)), False), (answered(), False)]
)
def test_the_gate_holds_where_all_who_answered_answer_again(after: GateAnswer, holds: bool) -> None:
    fleet = [subject(1), subject(2)]
    before = make_baseline(targets_of(fleet[0], find_neighbourhood(fleet)), answered(84, 1500))
    _, failing = judge_answers(before, questions_after(before, carried_by(fleet, ["n1", "n2"])), after)
    assert (not failing) is holds


def test_who_was_silent_before_is_not_asked_again() -> None:
    fleet = [subject(1), subject(2)]
    before = make_baseline(targets_of(fleet[0], find_neighbourhood(fleet)), answered(lost=(84, 1500)))
    assert before.answered == ()
    assert questions_after(before, {}) == ()


def test_an_llt_link_that_was_up_must_be_up() -> None:
    up, down = "llt\n*0 a OPEN\n 1 b OPEN\n   l1 UP 10.0.0.2\n", "llt\n*0 a OPEN\n 1 b CONNWAIT\n   l1 DOWN\n"
    before = make_baseline((), parse_gate_answer(up))
    assert judge_answers(before, (), parse_gate_answer(up)) == ((), ())
    assert judge_answers(before, (), parse_gate_answer(down))[1] == (
        "LLT link l1 to node b was up before and is not now",
    )


def test_a_gate_script_quotes_what_it_asks() -> None:
    from advisor.fleet.runs.planning import EchoQuestion

    text = gate_script([EchoQuestion("10.0.0.2", 9000, "eth0; reboot")])
    assert "ask 10.0.0.2 9000 'eth0; reboot' &" in text
