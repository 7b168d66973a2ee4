"""Where a rule tips over, and what it then advises."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.clusters.llt import parse_llttab
from advisor.facts.system.memory import Counters
from advisor.rules.judged import judge
from advisor.rules.network.buffers import bandwidth_delay_bytes
from advisor.rules.network.mtu import fragments
from advisor.rules.rule import Finding, PlanProfile, set_sysctl
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.rules.build import (
    FLOW,
    SYSCTL,
    array,
    bond,
    disk,
    disks,
    facts,
    filesystem,
    link,
    llt,
    llt_link,
    llttab,
    numa,
    on_cloud,
    origin,
    pcie,
    replaced,
    virtual,
)
from tests.rules.cases import buffers, over_udp
from tests.rules.test_rules import findings_of


def only(rule: str, workload: str | None = None, **parts: Any) -> Finding:
    found = findings_of(rule, workload, parts)
    assert len(found) == 1
    return found[0]


def severities(rule: str, workload: str | None = None, **parts: Any) -> list[str]:
    return [finding.severity for finding in findings_of(rule, workload, parts)]


DATA = read_cases(__file__)


@pytest.mark.parametrize(("payload", "mtu", "kind", "count"), DATA["fragments"])
def test_fragments(payload: int, mtu: int, kind: str, count: int) -> None:
    assert fragments(payload, mtu, kind) == count


@pytest.mark.parametrize(("mbps", "rtt", "expected"), [(10_000, 0.00116, 1_450_000), (25_000, 0.00116, 3_625_000)])
def test_bandwidth_delay(mbps: int, rtt: float, expected: int) -> None:
    assert bandwidth_delay_bytes(mbps, rtt) == expected


def test_mtu_on_a_cloud_goes_as_far_as_its_network() -> None:
    one: dict[str, Any] = {"links": (link("eth1", mtu=1460),)}
    assert "8896" in str(only("links.mtu-below-range", host=on_cloud("gcp"), **one).evidence)
    assert "unknown" in str(only("links.mtu-below-range", host=on_cloud("azure"), **one).evidence)


def test_ports_of_a_bridge_are_lowered_and_of_a_bond_raised() -> None:
    ports = (link("eth1"), link("eth2", mtu=1500))
    for mtu, advice in ((1500, "advisor apply 'link:eth1:mtu<=1500'"), (9000, "advisor apply 'link:eth2:mtu>=9000'")):
        br0 = virtual("br0", "bridge", mtu=mtu, lower=("eth1", "eth2"))
        bridge = only("links.mtu-differs-in-stack", links=(*ports, br0))
        assert (bridge.advice, bridge.profile) == (advice, None)
    team = only("links.mtu-differs-in-stack", links=(*ports, virtual("bond0", "bond", lower=("eth1", "eth2"))))
    assert (team.advice, team.profile) == ("advisor plan jumbo-frames --set links=bond0", "jumbo-frames")


def test_a_vxlan_that_is_too_large_is_made_smaller() -> None:
    too_large = virtual("vx", "vxlan", mtu=1451, lower=("eth0",))
    found = only("links.vxlan-mtu-above-underlay", links=(link("eth0", mtu=1500), too_large))
    assert found.advice == "advisor apply 'link:vx:mtu<=1450'"


def test_llt_raises_the_link_where_it_can_and_lowers_its_own_field_where_not() -> None:
    raised = only("llt.mtu-fragments", **over_udp("eth1", mtu=1500))
    assert raised.advice == "advisor plan jumbo-frames --set links=eth1"
    leads_out = link("eth1", mtu=1500, default_route=True)
    lowered = only("llt.mtu-fragments", links=(leads_out,), llt=llt(llt_link("a", "eth1")))
    assert lowered.commands == ("advisor apply file:/etc/llttab:link.a.mtu=1472",)
    assert lowered.profile is None
    small = only("llt.mtu-fragments", links=(link("eth1", mtu=1500, mtu_max=8219),), llt=llt(llt_link("a", "eth1")))
    assert small.profile is None
    enough = only("llt.mtu-fragments", links=(link("eth1", mtu=1500, mtu_max=8220),), llt=llt(llt_link("a", "eth1")))
    assert enough.profile == "jumbo-frames"


def test_udp_is_bound_by_other_limits_than_tcp() -> None:
    udp = only("buffers.below-bandwidth-delay", "transport=udp,rtt=2ms", sysctl=SYSCTL)
    tcp = only("buffers.below-bandwidth-delay", "transport=tcp,rtt=2ms", sysctl=SYSCTL)
    assert "net.core.rmem_max" in udp.evidence
    assert "net.ipv4.tcp_rmem" in tcp.evidence
    assert udp.advice == tcp.advice == "advisor plan socket-buffers-8m --set bytes=16777216"


def test_a_window_that_does_not_fit_by_a_byte() -> None:
    found = only("buffers.below-llt-window", **over_udp("eth1"), sysctl=buffers(net__core__rmem_default="851949"))
    assert found.advice == "advisor plan socket-buffers-8m --set bytes=851968"


def test_a_default_is_raised_with_its_maximum() -> None:
    """Alone it would be above it, which is the next finding."""
    short = only("buffers.below-llt-window", **over_udp("eth1"), sysctl=buffers(net__core__rmem_default="212992"))
    (profile,) = short.remedy
    assert isinstance(profile, PlanProfile)
    assert [one.tunable for one in profile.only] == ["sysctl:net.core.rmem_max", "sysctl:net.core.rmem_default"]


@pytest.mark.parametrize(("default", "advice"), [("212992", " --set bytes=851968"), ("851968", ""), ("many", "")])
def test_drops_ask_for_one_step_more(default: str, advice: str) -> None:
    counters = Counters(udp_received=1, udp_receive_buffer_errors=1)
    found = only("buffers.udp-receive-errors", counters=counters, sysctl=buffers(net__core__rmem_default=default))
    assert found.advice == f"advisor plan socket-buffers-8m{advice}"


def test_a_long_listen_queue_is_not_made_longer() -> None:
    found = only("network.listen-overflows", counters=Counters(listen_overflows=1))
    assert found.commands == ("ss -ltn",)
    short = only(
        "network.listen-overflows", counters=Counters(listen_overflows=1), sysctl=buffers(net__core__somaxconn="4095")
    )
    assert short.commands[0] == "advisor apply 'sysctl:net.core.somaxconn>=4096'"


def test_several_refused_lines_are_one_finding() -> None:
    keys = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
    found = only("sysctl.rejected", sysctl_origin={key: origin(key, '"1 2 3"', rejected="quotes") for key in keys})
    assert found.title == "A sysctl file has a value that the kernel refuses"
    assert set_sysctl("net.ipv4.tcp_rmem", (1, 2, 3)) in found.remedy
    command = "f=/etc/sysctl.d/10-site.conf; cp -p $f $f.before && sed '3s/^/# /' $f.before >$f"
    assert command in found.commands


def test_half_of_a_pair_that_no_file_sets_is_not_moot() -> None:
    found = only(
        "sysctl.differs-at-boot",
        sysctl={"vm.dirty_ratio": "0", "vm.dirty_bytes": "1000000"},
        sysctl_origin={"vm.dirty_ratio": origin("vm.dirty_ratio", "20")},
    )
    assert "1 sysctl value" in found.title


def test_flow_control_in_the_file_alone() -> None:
    empty = llt(flow_control={}, llttab=llttab(lowwater=500, highwater=400))
    assert "/etc/llttab: lowwater 500" in str(only("llt.flow-control-order", llt=empty).evidence)
    live_only = llt(flow_control={**FLOW, "window": 10}, llttab=llttab())
    assert str(only("llt.flow-control-order", llt=live_only).evidence).count("ackval") == 1


def by_broadcast(*pairs: tuple[str | None, str | None], **parts: Any) -> list[str]:
    lines = (llt_link(f"l{n}", None, address=pair[0], broadcast=pair[1], **parts) for n, pair in enumerate(pairs))
    return severities("llt.same-subnet", llt=llt(*lines))


def test_links_of_llttab_with_one_broadcast_are_in_one_subnet() -> None:
    same = "192.0.2.255"
    assert by_broadcast(("192.0.2.1", same), ("192.0.2.2", same)) == ["warning"]
    assert by_broadcast(("192.0.2.1", same), ("198.51.100.2", "198.51.100.255")) == []
    assert by_broadcast(("192.0.2.1", None), ("192.0.2.2", None)) == []
    assert by_broadcast(("192.0.2.1", same), ("192.0.2.1", same)) == []
    assert by_broadcast(("192.0.2.1", same), (None, same)) == []
    assert by_broadcast(("192.0.2.1", same), ("192.0.2.2", same), type="ether") == []
    for reports_nothing in ("255.255.255.255", "0.0.0.0", "nonsense"):
        assert by_broadcast(("192.0.2.1", reports_nothing), ("192.0.2.2", reports_nothing)) == []


def test_the_broadcast_is_read_from_the_line_of_llttab() -> None:
    table = parse_llttab(
        "link a udp - udp 50000 - 192.0.2.1 192.0.2.255\nlink b udp - udp 50000 - 192.0.2.2 192.0.2.255\n"
    )
    found = only("llt.same-subnet", llt=llt(*table.links))
    assert found.evidence["detail"] == ("broadcast 192.0.2.255: a at 192.0.2.1, b at 192.0.2.2",)


@pytest.mark.parametrize(("port", "reserved", "fires"), DATA["reserved_ports"])
def test_reserved_ports(port: str | None, reserved: str, fires: bool) -> None:
    keys = buffers(net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports=reserved)
    found = severities("llt.port-not-reserved", sysctl=keys, llt=llt(llt_link("a", None, port=port)))
    assert bool(found) == fires


def test_a_bond_over_a_bond_and_a_vlan_is_followed_down() -> None:
    ports = bond("bond0", "eth1@0", "eth2@1")
    top = virtual("bond0.7", "vlan", lower=("bond0",))
    assert only("numa.bond-spans-nodes", numa=numa(2), links=(*ports, top)).evidence["links"] == ("eth1", "eth2")


def test_each_manager_has_its_own_tool() -> None:
    managers = {"md": "mdadm", "lvm": "lvs", "dm-multipath": "multipath -ll", "controller": "controller's own tool"}
    for manager, tool in managers.items():
        assert tool in only("arrays.degraded", arrays=(array(manager=manager, missing=1),)).advice
    assert "has failed" in only("arrays.degraded", arrays=(array(state="failed"),)).title


def test_how_a_file_system_is_aligned() -> None:
    parity = array(level="raid5", data_disks=3)
    bare = {"stripe_unit_bytes": 0, "stripe_width_bytes": 0}

    def aligned(**parts: Any) -> Finding:
        return only("filesystems.not-aligned", arrays=(parity,), filesystems=(filesystem(**{**bare, **parts}),))

    (once,) = aligned().commands
    assert once == "umount /data && mount -o sunit=1024,swidth=3072 /dev/md0 /data"
    assert aligned().interrupts == ("everything that uses /data",)
    assert aligned(kind="ext4", block_bytes=1024).commands == ("tune2fs -E stride=512,stripe_width=1536 /dev/md0",)
    assert aligned(kind="ext4", block_bytes=None).commands == ("tune2fs -E stride=128,stripe_width=384 /dev/md0",)
    assert "512 KiB and 3 data disks" in str(aligned(kind="btrfs").fix)


def test_like_drives_are_one_finding() -> None:
    slow = pcie(8.0, 2, width_max=4)
    found = judge(facts(disks=(*disks(12, pcie=slow), disk("nvme12n1", pcie=replaced(slow, {"width": 1})))))
    titles = [finding.title for finding in found if finding.id == "pcie.below-maximum"]
    assert len(titles) == 2
    assert any("and 10 more" in title for title in titles)


def test_a_workload_is_only_used_where_it_is_declared() -> None:
    host = facts(sysctl=SYSCTL, llt=llt())
    assert {finding.severity for finding in judge(host) if finding.intent} == {"info"}
    assert not [finding for finding in judge(host, parse_workload("replicated-writes")) if finding.intent]
