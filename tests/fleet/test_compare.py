"""One host of twelve is changed: it is found, what differs is named, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.errors import UsageError
from advisor.facts.clusters.llt import Llttab
from advisor.facts.host_facts import Facts
from advisor.facts.network.link_claim import Owners
from advisor.facts.network.links import Channels, Rings
from advisor.facts.processors.cpu import Cpu
from advisor.facts.processors.power import ClockGroup, Frequency
from advisor.facts.remote.iscsi import Iscsi
from advisor.facts.system.memory import HugePagePool, Memory, Sockets
from advisor.facts.unknown import Unknown
from advisor.fleet.compare.comparison import HeldValue
from advisor.fleet.compare.outliers import find_outliers
from advisor.fleet.compare.summary import AdvisorState
from advisor.operations.severity import has_severity
from tests.cases import read_cases
from tests.fleet.alike import (
    ODD,
    Change,
    compared,
    controller,
    fleet_of,
    only,
    session,
    twelve,
    with_link,
    with_part,
    with_sysctl,
)
from tests.rules import build

DATA = read_cases(__file__)

GIB = 1 << 30


def disks(**parts: Any) -> Change:
    """Changes one of the four drives."""
    return lambda facts: build.replaced(facts, {"disks": (build.replaced(facts.disks[0], parts), *facts.disks[1:])})


def array(**parts: Any) -> Change:
    return lambda facts: build.replaced(facts, {"arrays": (build.replaced(facts.arrays[0], parts),)})


def part(name: str, **parts: Any) -> Change:
    """Changes some fields of one record among a host's facts."""
    return lambda facts: build.replaced(facts, {name: build.replaced(getattr(facts, name), parts)})


def clocks(governor: str) -> Frequency:
    return Frequency("intel_pstate", "active", (ClockGroup("0-3", governor, None),))


def llt(**parts: Any) -> Change:
    return part("llt", **parts)


def infoscale(**parts: Any) -> Change:
    return part("infoscale", **parts)


def identity(**parts: Any) -> Change:
    return part("host", **parts)


def memory(**parts: Any) -> Change:
    return part("memory", **parts)


def llt_link_mtu(facts: Facts) -> Facts:
    assert facts.llt is not None
    links = (build.replaced(facts.llt.links[0], {"mtu": 1400}), facts.llt.links[1])
    return build.replaced(facts, {"llt": build.replaced(facts.llt, {"links": links})})


KINDS: tuple[tuple[str, Change, str, str], ...] = (
    ("link state", with_link("eth2", state="down", addresses=()), "link.llt-2.state", "fleet.link-state"),
    ("firmware", with_link("eth1", firmware="16.28.1002"), "link.llt-1.firmware", "fleet.link-firmware"),
    ("rings", with_link("eth1", rings=Rings(512, 8192, 1024, 8192)), "link.llt-1.ring.rx", "fleet.link-rings"),
    ("channels", with_link("eth1", channels=Channels(0, 0, 0, 0, 4, 63, 0, 0)), "link.llt-1.channels.combined",
     "fleet.link-channels"),
    ("offload", with_link("eth2", features={"rx-gro": False, "tx-tcp-segmentation": True}), "link.llt-2.feature.rx-gro",
     "fleet.link-offloads"),
    ("txqueuelen", with_link("eth0", txqueuelen=10000), "link.default.txqueuelen", "fleet.link-settings"),
    ("bond mode", with_link("eth0", detail={"mode": "active-backup"}), "link.default.detail.mode", "fleet.link-mode"),
    ("kernel", identity(kernel="6.1.0-20-amd64"), "host.kernel", "fleet.kernel-and-system"),
    ("system", identity(os="Debian GNU/Linux 12.1"), "host.os", "fleet.kernel-and-system"),
    ("sysctl", with_sysctl(vm__swappiness="1"), "sysctl.vm.swappiness", "fleet.sysctl"),
    ("sysctl that only one has", with_sysctl(net__ipv4__tcp_fack="1"), "sysctl.net.ipv4.tcp_fack", "fleet.sysctl"),
    ("set, not derived", with_sysctl(net__ipv4__tcp_mem="1 2 3"), "sysctl.net.ipv4.tcp_mem", "fleet.sysctl"),
    ("LLT flow control", llt(flow_control={**build.FLOW, "window": 100}), "llt.flow.window", "fleet.llt-flow-control"),
    ("LLT timer", llt(timers={"peerinact": 3200}), "llt.timer.peerinact", "fleet.llt"),
    ("LLT MTU", llt_link_mtu, "llt.link_mtu", "fleet.llt"),
    ("llthosts", infoscale(hosts=()), "infoscale.llthosts", "fleet.cluster-membership"),
    ("gabtab", infoscale(seed_nodes=11), "infoscale.seed_nodes", "fleet.cluster-membership"),
    ("NUMA distances", with_part(numa=build.replaced(build.numa(2), {"nodes": tuple(
        build.replaced(node, {"distances": (10, 31)}) for node in build.numa(2).nodes)})), "numa.distances",
     "fleet.processors-and-nodes"),
    ("chunk", array(chunk_bytes=64 << 10), "array./data.chunk_bytes", "fleet.arrays"),
    ("array state", array(state="degraded"), "array./data.state", "fleet.array-state"),
    ("scheduler", disks(scheduler="mq-deadline"), "disk.INTEL SSDPE2KE016T7.scheduler", "fleet.disk-settings"),
    ("queue", disks(queue={"read_ahead_kb": "4096", "io_timeout": "30000"}),
     "disk.INTEL SSDPE2KE016T7.queue.read_ahead_kb", "fleet.disk-settings"),
    ("a disk is missing", lambda facts: build.replaced(facts, {"disks": facts.disks[1:]}),
     "disk.INTEL SSDPE2KE016T7.count", "fleet.disks"),
    ("mount option", with_part(filesystems=(build.filesystem(options="rw,relatime"),)), "filesystem./data.options",
     "fleet.file-systems"),
    ("iSCSI setting", with_part(iscsi=Iscsi(sessions=(session(),),
     settings={"node.session.timeo.replacement_timeout": "5"})),
     "iscsi.file.node.session.timeo.replacement_timeout", "fleet.iscsi"),
    ("iSCSI session", part("iscsi", sessions=(session(recovery_seconds=15),)), "iscsi.session.recovery_seconds",
     "fleet.iscsi"),
    ("battery", with_part(controllers=(controller(protection=None, has_protection=False),)),
     "controller.c0.protection_healthy", "fleet.controller-cache"),
    ("huge pages", memory(thp_enabled="always"), "memory.thp_enabled", "fleet.transparent-huge-pages"),
    ("pool of huge pages", memory(hugepages=(HugePagePool(2 << 20, 512, 0),)), "memory.hugepages.2048kB",
     "fleet.huge-pages"),
    ("governor", part("cpu", frequency=clocks("powersave")), "cpu.frequency.governor", "fleet.processor-clocks"),
    ("TuneD", with_part(owners=Owners(tuned_profile="throughput-performance")), "owner.tuned_profile",
     "fleet.who-sets-values"),
    ("network manager", with_part(owners=Owners(network_managers=("NetworkManager",))), "owner.network_managers",
     "fleet.who-sets-values"),
)  # fmt: skip


def test_hosts_that_are_alike_have_no_finding() -> None:
    comparison = compared()
    assert comparison.findings == ()
    assert comparison.alike == comparison.attributes > 80
    assert [len(one.hosts) for one in comparison.types] == [12]


@pytest.mark.parametrize(
    ("change", "attribute", "identity_of"), [one[1:] for one in KINDS], ids=[one[0] for one in KINDS]
)
def test_the_odd_one_of_twelve(change: Change, attribute: str, identity_of: str) -> None:
    finding = only(compared(change))
    assert finding.id == identity_of
    assert finding.hosts == (ODD,)
    reported = {one.attribute: one for one in finding.differences}
    assert attribute in reported
    assert reported[attribute].has_majority
    assert reported[attribute].majority_count == 11
    assert reported[attribute].outliers == (ODD,)
    assert finding.why
    assert finding.hurts_when
    assert finding.sources
    assert finding.advice


@pytest.mark.parametrize(
    ("extra", "attribute", "identity_of"),
    [
        ({"command_line": "root=/dev/vdb2 ro mitigations=off"}, "cmdline.isolcpus", "fleet.kernel-command-line"),
        ({"standing": AdvisorState(())}, "advisor.profiles", "fleet.profiles-in-force"),
        (
            {"standing": AdvisorState(("socket-buffers-8m",), ("sysctl:net.core.rmem_max",))},
            "advisor.drift",
            "fleet.drift",
        ),
        ({"skew_seconds": 40.0}, "clock.skew", "fleet.clock"),
    ],
)
def test_what_is_known_besides_the_facts(extra: dict[str, Any], attribute: str, identity_of: str) -> None:
    finding = only(compared(extra={ODD: extra}))
    assert (finding.id, finding.hosts) == (identity_of, (ODD,))
    assert [one.attribute for one in finding.differences] == [attribute]


def test_differences_of_one_topic_are_one_finding() -> None:
    finding = only(compared(with_sysctl(vm__swappiness="1", net__core__rmem_max="212992", vm__dirty_ratio="40")))
    assert len(finding.differences) == 3
    assert finding.commands == (
        f"advisor apply socket-buffers-8m sysctl:vm.dirty_ratio=20 sysctl:vm.swappiness=60  # on {ODD}",
    )


@pytest.mark.parametrize(("flow", "in_file", "expected"), DATA["flow_control_is_one_setting_for_the_cluster"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_flow_control_is_one_setting_for_the_cluster(
    flow: dict[str, int], in_file: dict[str, int], expected: list[str], count: int
) -> None:
    def change(facts: Facts) -> Facts:
        table = Llttab(None, "7", (), (), in_file, {}, ())
        return llt(flow_control={**build.FLOW, **flow}, llttab=table)(facts)

    hosts = [
        (name, change(facts) if name == "n1" else llt(llttab=Llttab(None, "7", (), (), {}, {}, ()))(facts))
        for name, facts in twelve(count=count)
    ]
    finding = only(find_outliers(fleet_of(hosts)))
    assert (finding.id, finding.severity) == ("fleet.llt-flow-control", "advice")
    assert "n1" in finding.hosts
    assert [one.attribute for one in finding.differences] == expected
    assert "one setting for the cluster" in finding.why


def test_values_derived_from_memory_are_no_outliers() -> None:
    comparison = compared(with_sysctl(net__ipv4__tcp_mem="45000 60000 90000"))
    assert comparison.findings == ()


@pytest.mark.parametrize(("maximum", "differs"), [("16777216", True), ("6291456", False), ("33554432", False)])
def test_sizes_of_tcp_that_a_kernel_derives_are_no_outliers(maximum: str, *, differs: bool) -> None:
    # A 128th of 64 GiB is above each of them: 16 MiB is what a person has set.
    comparison = compared(with_sysctl(net__ipv4__tcp_rmem=f"4096 131072 {maximum}"))
    assert bool(comparison.findings) is differs


def test_a_small_host_has_its_own_sizes_of_tcp() -> None:
    def shrink(facts: Facts) -> Facts:
        small = with_sysctl(net__ipv4__tcp_rmem="4096 131072 16252928")(facts)
        return build.replaced(small, {"memory": build.replaced(facts.memory, {"total_bytes": 2 << 30})})

    differences = [one.attribute for finding in compared(shrink).findings for one in finding.differences]
    assert "sysctl.net.ipv4.tcp_rmem" not in differences


def test_a_value_that_harms_is_no_remedy_however_many_have_it() -> None:
    others = [name for name, _ in twelve() if name != ODD]
    hosts = fleet_of(twelve(with_sysctl(vm__zone_reclaim_mode="1", vm__swappiness="1"), odd=others))
    finding = only(find_outliers(hosts))
    assert finding.commands == (f"advisor apply sysctl:vm.swappiness=1  # on {ODD}",)


def test_without_a_majority_the_groups_are_told() -> None:
    half = [f"n{number}" for number in range(1, 7)]
    finding = only(find_outliers(fleet_of(twelve(with_sysctl(vm__swappiness="1"), odd=half))))
    (reported,) = finding.differences
    assert not reported.has_majority
    assert {(held.value, len(held.hosts)) for held in reported.groups} == {("1", 6), ("60", 6)}
    assert finding.commands == ()


def test_unknown_never_counts_as_differing() -> None:
    def change(facts: Facts) -> Facts:
        left = {key: value for key, value in facts.sysctl.items() if key != "vm.swappiness"}
        return build.replaced(
            facts, {"sysctl": left, "unknown": (Unknown("sysctl.vm.swappiness", "Permission denied"),)}
        )

    comparison = compared(change)
    assert comparison.findings == ()
    assert [(one.hosts, one.attributes) for one in comparison.unknown] == [((ODD,), ("sysctl.vm.swappiness",))]


def test_unknown_is_named_beside_a_difference() -> None:
    rings = Unknown("links.eth1.rings", "Operation not permitted")
    hosts = twelve(with_link("eth1", rings=Rings(512, 8192, 1024, 8192)))
    hosts = [(n, build.replaced(f, {"unknown": (rings,)}) if n == "n2" else f) for n, f in hosts]
    hosts = [(n, with_link("eth1", rings=None)(f) if n == "n2" else f) for n, f in hosts]
    (reported,) = only(find_outliers(fleet_of(hosts))).differences
    assert (reported.outliers, reported.unknown, reported.majority_count) == ((ODD,), ("n2",), 10)


def test_another_kernel_takes_its_defaults_with_it() -> None:
    def change(facts: Facts) -> Facts:
        other = identity(kernel="6.18.0", os="Debian GNU/Linux 13 (trixie)")(facts)
        return with_sysctl(net__core__rmem_max="4194304", net__core__optmem_max="131072")(other)

    finding = only(compared(change))
    assert [one.attribute for one in finding.differences] == ["host.kernel"]
    assert {*finding.goes_with} == {"host.os", "sysctl.net.core.rmem_max", "sysctl.net.core.optmem_max"}


def test_what_a_file_sets_is_no_consequence_of_the_kernel() -> None:
    key = "net.core.rmem_max"
    origin = {key: build.origin(key, "8388608")}
    hosts = [(name, build.replaced(facts, {"sysctl_origin": origin})) for name, facts in twelve()]
    hosts = [
        (n, with_sysctl(net__core__rmem_max="212992")(identity(kernel="6.18.0")(f)) if n == ODD else f)
        for n, f in hosts
    ]
    comparison = find_outliers(fleet_of(hosts))
    assert [one.id for one in comparison.findings] == ["fleet.sysctl", "fleet.kernel-and-system"]


def other_type(facts: Facts) -> Facts:
    """Another machine on purpose: its disks, rings and nodes are its own."""
    machine = identity(product="PowerEdge R750")(facts)
    cpu = Cpu("0-63", None, "0-63", 64, 32, 2, 2, "Intel(R) Xeon(R) Gold 6338", "0-63")
    size = Memory(512 * GIB, 400 * GIB, 4096, "madvise", "madvise", (HugePagePool(2 << 20, 0, 0),), Sockets(20, 6))
    parts = {"cpu": cpu, "memory": size, "numa": build.numa(4), "disks": build.disks(8, model="KIOXIA CM7")}
    faster = with_link("eth1", rings=Rings(2048, 8192, 2048, 8192), speed_mbps=25_000)
    return faster(build.replaced(machine, parts))


def test_other_hardware_is_told_once() -> None:
    comparison = find_outliers(fleet_of(twelve(other_type, odd=("n3", "n4", "n5"))))
    finding = only(comparison)
    assert (finding.id, finding.severity, finding.hosts) == ("fleet.hardware", "info", ("n3", "n4", "n5"))
    assert [len(one.hosts) for one in comparison.types] == [9, 3]
    assert not has_severity(comparison.findings, "advice")


def test_an_outlier_within_its_type_is_found() -> None:
    hosts = twelve(other_type, odd=("n3", "n4", "n5"))
    hosts = [
        (name, with_link("eth1", rings=Rings(512, 8192, 512, 8192))(facts) if name == "n4" else facts)
        for name, facts in hosts
    ]
    rings = [one for one in find_outliers(fleet_of(hosts)).findings if one.id == "fleet.link-rings"]
    assert [one.hosts for one in rings] == [("n4",)]
    assert "PowerEdge R750" in rings[0].scope


def test_less_memory_in_the_same_product_is_advice() -> None:
    finding = only(compared(memory(total_bytes=32 * GIB)))
    assert (finding.id, finding.severity, finding.hosts) == ("fleet.hardware", "advice", (ODD,))


def test_a_pair_is_told_with_both_values() -> None:
    comparison = find_outliers(fleet_of(twelve(with_sysctl(vm__swappiness="1"))), pair=("n1", ODD))
    (reported,) = only(comparison).differences
    assert not reported.has_majority
    assert reported.groups == (HeldValue("1", (ODD,)), HeldValue("60", ("n1",)))
    assert comparison.compared == ("n1", ODD)


@pytest.mark.parametrize("pair", [("n1", "n99"), ("n1", "n1")])
def test_a_pair_that_is_none(pair: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="--pair"):
        find_outliers(fleet_of(twelve()), pair=pair)


def test_groups_are_compared_apart() -> None:
    web = [f"n{number}" for number in range(1, 7)]
    extra = {f"n{n}": {"group": "web" if f"n{n}" in web else "db"} for n in range(1, 13)}
    hosts = twelve(with_sysctl(vm__swappiness="1"), odd=web)
    assert find_outliers(fleet_of(hosts, extra), group_by="role").findings == ()
    hosts = [(n, with_sysctl(vm__swappiness="5")(f) if n == "n2" else f) for n, f in hosts]
    finding = only(find_outliers(fleet_of(hosts, extra), group_by="role"))
    assert (finding.hosts, finding.scope) == (("n2",), "web")


def test_clusters_are_told_apart_by_their_id() -> None:
    def second(facts: Facts) -> Facts:
        assert facts.llt is not None
        assert facts.llt.llttab is not None
        table = build.replaced(facts.llt.llttab, {"cluster": "9"})
        flow = {**build.FLOW, "highwater": 5000}
        changed = llt(llttab=table, flow_control=flow)(facts)
        moved = with_link("eth1", addresses=(facts.links[1].addresses[0].replace("10.1", "10.8"),))(changed)
        return with_link("eth2", addresses=(facts.links[2].addresses[0].replace("10.2", "10.9"),))(moved)

    half = [f"n{number}" for number in range(1, 7)]
    hosts = twelve(second, odd=half)
    assert find_outliers(fleet_of(hosts)).findings == ()
    hosts = [(n, llt(flow_control=build.FLOW)(f) if n == "n2" else f) for n, f in hosts]
    finding = only(find_outliers(fleet_of(hosts)))
    assert (finding.hosts, finding.scope) == (("n2",), "cluster 9")


def test_a_link_with_another_name_is_the_same_link() -> None:
    def renamed(facts: Facts) -> Facts:
        links = tuple(build.replaced(one, {"name": f"ens{one.name}"}) for one in facts.links)
        names = (build.llt_link("link1", "enseth1"), build.llt_link("link2", "enseth2"))
        return llt(links=names)(build.replaced(facts, {"links": links}))

    finding = only(compared(renamed))
    assert (finding.id, finding.severity) == ("fleet.link-names-and-limits", "info")
    assert [one.attribute for one in finding.differences] == [
        f"link.{one}.name" for one in ("default", "llt-1", "llt-2")
    ]


def test_containers_links_are_not_compared() -> None:
    def with_containers(facts: Facts) -> Facts:
        bridge = build.virtual("docker0", "bridge", addresses=("172.17.0.1/16",), lower=("veth1a2b",))
        port = build.virtual("veth1a2b", "veth", upper=("docker0",))
        return build.replaced(facts, {"links": (*facts.links, bridge, port)})

    comparison = find_outliers(fleet_of(twelve(with_containers, odd=("n1", "n2", "n8"))))
    assert comparison.findings == ()


def test_nothing_known_of_a_host_is_no_difference() -> None:
    hosts = [(name, build.nothing_known() if name == ODD else facts) for name, facts in twelve()]
    comparison = find_outliers(fleet_of(hosts, {ODD: {"standing": None, "command_line": None, "skew_seconds": None}}))
    assert [one.id for one in comparison.findings] == []
    assert [one.hosts for one in comparison.unknown] == [(ODD,)]
