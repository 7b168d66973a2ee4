"""Services and interrupts on the node of their own devices."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.planning.placement import node_of
from tests.cases import cases
from tests.planning.system import ETH0, LOOPBACK, Link, applied, planned, skipped, states, system, systemctl, values
from tests.rules.build import array, bond, disk, facts, link
from tests.trees import make_tree

CASES = cases(__file__)

PINNING = "numa-pinning"
BOUND = "NUMAPolicy=bind NUMAMask=1 CPUAffinity=numa"
NONE = "NUMAPolicy=default NUMAMask= CPUAffinity="
LINKS = (
    LOOPBACK,
    ETH0,
    Link("eth1", address="192.0.2.1", node=0),
    Link("eth2", address="192.0.2.2", node=1),
    Link("eth3", address="192.0.2.3", node=-1),
)


def test_a_service_goes_where_its_link_is(tmp_path: Path) -> None:
    system(tmp_path, LINKS, commands=systemctl(tmp_path, a=""))
    plan = applied(tmp_path, PINNING, units="a=eth2")
    assert values(plan) == {"sysctl:kernel.numa_balancing": ("1", "0"), "unit:a.service:numa": (NONE, BOUND)}
    drop_in = tmp_path / "root/etc/systemd/system/a.service.d/50-advisor-numa.conf"
    assert drop_in.read_text() == "[Service]\nNUMAPolicy=bind\nNUMAMask=1\nCPUAffinity=numa\n"
    again = planned(tmp_path, PINNING, units="a.service=eth2")
    assert again.is_empty
    assert states(again)["unit:a.service:numa"] == "in-place"
    preferred = planned(tmp_path, PINNING, units="a=eth2", policy="preferred")
    assert values(preferred)["unit:a.service:numa"][1] == BOUND.replace("bind", "preferred")


@pytest.mark.parametrize(("units", "reason"), CASES["a service whose place is not clear stands in the way"])
def test_a_service_whose_place_is_not_clear_stands_in_the_way(units: str, reason: str, tmp_path: Path) -> None:
    system(tmp_path, LINKS, commands=systemctl(tmp_path, a=""))
    (found,) = planned(tmp_path, PINNING, units=units).blocking
    assert found.reason.startswith(reason)


def with_irqs(where: Path, files: dict[str, str] | None = None) -> None:
    """Of eth2, on node 1: one anywhere, one within, one across; and two of a drive, the second its queue's own."""
    drive = Link("eth9", node=1, irqs={50: "0", 51: "1"}, actions="nvme0q0")
    more = {"/sys/kernel/irq/51/actions": "nvme0q1\n", "/proc/sys/kernel/osrelease": "6.1.0\n"}
    port = msgspec.structs.replace(LINKS[3], irqs={40: "0-7", 41: "5", 42: "3-4"}, actions="eth2-rx")
    system(where, (LOOPBACK, ETH0, port, drive), {**more, **(files or {})})


def test_interrupts_go_to_their_devices_node(tmp_path: Path) -> None:
    with_irqs(tmp_path)
    plan = planned(tmp_path, PINNING)
    moved = {tunable: value for tunable, value in values(plan).items() if tunable.startswith("irq:")}
    assert moved == {
        "irq:40:affinity": ("0-7", "4-7"),
        "irq:42:affinity": ("3-4", "4-7"),
        "irq:50:affinity": ("0", "4-7"),
    }
    assert states(plan)["irq:41:affinity"] == "in-place"
    managed = skipped(plan, "irq:51:affinity")
    assert (managed.state, managed.before, managed.wanted) == ("not-applicable", "1", "4-7")
    assert "managed by the kernel" in managed.reason
    assert not plan.cannot_apply
    applied(tmp_path, PINNING)
    assert planned(tmp_path, PINNING).is_empty
    assert (tmp_path / "root/proc/irq/40/smp_affinity_list").read_text() == "4-7\n"
    assert (tmp_path / "root/proc/irq/51/smp_affinity_list").read_text() == "1\n"


def test_irqbalance_sets_again_what_its_options_do_not_exclude(tmp_path: Path) -> None:
    with_irqs(tmp_path, {"/run/irqbalance.pid": "7\n", "/proc/7/comm": "irqbalance\n"})
    options = '# --banirq=42\nOPTIONS="--banirq=40 -i 50 --hintpolicy=exact"\n'
    make_tree(tmp_path / "root", {"/etc/default/irqbalance": options})
    moved = {one.tunable: one for one in planned(tmp_path, PINNING).changes}
    # One judgement for a profile and for a finding's fix: planned, with who sets it again.
    assert {name: one.last_word is not None for name, one in moved.items()} == {
        "irq:40:affinity": False,
        "irq:42:affinity": True,
        "irq:50:affinity": False,
    }


def test_balancing_is_left_on_where_nothing_is_bound(tmp_path: Path) -> None:
    with_irqs(tmp_path)
    plan = planned(tmp_path, PINNING)
    assert not any(name.startswith("sysctl:") for name in values(plan))
    assert skipped(plan, "sysctl:kernel.numa_balancing").reason.startswith("has no sense without units")


HOST = facts(
    links=(*bond("bond0", "eth0@0", "eth1@0"), *bond("bond1", "eth2@0", "eth3@1"), link("loop", lower=("loop",))),
    disks=(
        disk("nvme0n1", numa_node=1, partitions=("nvme0n1p1",), mountpoints=("/data",)),
        disk("sda", numa_node=None),
    ),
    arrays=(array("md0", mountpoints=("/md",)), array("md1", numa_nodes=(0, 1)), array("md2", numa_nodes=())),
)


@pytest.mark.parametrize(
    ("device", "node"),
    [
        *(("eth0", 0), ("bond0", 0), ("bond1", None), ("loop", None)),
        *(("nvme0n1", 1), ("/dev/nvme0n1", 1), ("nvme0n1p1", 1), ("/dev/nvme0n1p1", 1), ("/data", 1), ("sda", None)),
        *(("md0", 0), ("/dev/md0", 0), ("/md", 0), ("md1", None), ("md2", None)),
    ],
)
def test_the_node_of_a_device(device: str, node: int | None) -> None:
    assert node_of(device, HOST) == node
