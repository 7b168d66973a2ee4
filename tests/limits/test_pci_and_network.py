"""What is read besides a scan: hops above disks, and the links of networked storage. Trees as the kernel shows them."""

from __future__ import annotations

import pytest

from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.limits.links import PciHop, read_pci_and_network
from advisor.limits.paths import limits_of
from tests.facts.storage import Tree

FLAGS = "flags : fpu cx8\n"


def link_of(tree: Tree, place: str, speed: str, width: str) -> None:
    for when in ("current", "max"):
        tree.files |= {f"{place}/{when}_link_speed": f"{speed} GT/s PCIe\n", f"{place}/{when}_link_width": f"{width}\n"}


def switched(host: str = FLAGS) -> Tree:
    """Two drives of x4 Gen3 behind one bridge of x4."""
    tree = Tree()
    tree.files["/proc/cpuinfo"] = host
    bridge = "/sys/devices/pci0000:10/0000:10:01.0"
    link_of(tree, bridge, "8.0", "4")
    for index in range(2):
        place = f"{bridge}/0000:2{index}:00.0"
        link_of(tree, place, "8.0", "4")
        about = {"model": "drive", "serial": f"S{index}", "state": "live"}
        tree.block(f"nvme{index}n1", f"{place}/nvme/nvme{index}", device=about)
    return tree


def around(host: Host) -> dict[str, tuple[PciHop, ...]]:
    return dict(read_pci_and_network(host, scan(host)).hops)


def test_hops_from_the_drive_to_the_root() -> None:
    found = around(switched().host())
    assert [hop.address for hop in found["nvme1n1"]] == ["0000:21:00.0", "0000:10:01.0"]
    assert {hop.mbps for hop in found["nvme1n1"]} == {4 * 7876}


def test_an_array_behind_one_bridge_is_bound_by_the_bridge() -> None:
    tree = switched()
    attributes = {"level": "raid0", "raid_disks": "2", "array_state": "clean", "chunk_size": "65536", "degraded": "0"}
    tree.md("md0", attributes, {"nvme0n1": ("in_sync", "0"), "nvme1n1": ("in_sync", "1")})
    host = tree.host()
    facts = scan(host)
    (path,) = limits_of(facts, read_pci_and_network(host, facts)).paths
    assert path.device == "md0"
    assert path.sustained[0].value == pytest.approx(4 * 7876 / 8)
    assert "2 disks behind one link" in path.ceilings[0].why


@pytest.mark.parametrize("text", ["Unknown", "", "999999999999 GT/s", "\x1b[2J"])
def test_a_hop_that_does_not_tell_its_speed_is_no_hop(text: str) -> None:
    tree = switched()
    tree.files["/sys/devices/pci0000:10/0000:10:01.0/current_link_speed"] = text
    assert [hop.address for hop in around(tree.host())["nvme0n1"]] == ["0000:20:00.0"]


def headed(paths: int) -> Tree:
    tree = Tree()
    tree.files["/proc/cpuinfo"] = FLAGS
    tree.block("nvme0n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys0", device={"model": "m", "serial": "s"})
    for controller in range(paths):
        place = f"/sys/devices/pci0000:10/0000:1{controller}:00.0"
        link_of(tree, place, "16.0", "4")
        tree.block(f"nvme0c{controller}n1", f"{place}/nvme/nvme{controller}", device={"state": "live"})
        tree.files[f"/sys/class/nvme/nvme{controller}/transport"] = "pcie\n"
    return tree


def test_a_multipath_head_is_where_its_one_path_is() -> None:
    assert [hop.address for hop in around(headed(1).host())["nvme0n1"]] == ["0000:10:00.0"]
    host = headed(2).host()
    facts = scan(host)
    (path,) = limits_of(facts, read_pci_and_network(host, facts)).paths
    assert {one.stage: one.known for one in path.ceilings} == {"pcie": "unknown", "medium": "unknown"}


def test_nvme_over_tcp_is_bound_by_the_link_that_it_uses() -> None:
    tree = Tree()
    tree.files |= {"/proc/cpuinfo": FLAGS, "/sys/class/nvme/nvme5/transport": "tcp\n"}
    tree.files["/sys/class/nvme/nvme5/address"] = "traddr=10.0.0.9,trsvcid=4420,host_iface=eth0\n"
    fabric = "/sys/devices/virtual/nvme-fabrics/ctl/nvme5"
    tree.block("nvme5n1", fabric, device={"model": "Linux", "serial": "s", "transport": "tcp", "state": "live"})
    host = tree.host()
    facts = scan(host)
    found = read_pci_and_network(host, facts)
    assert (found.far, found.portals) == (frozenset({"nvme5n1"}), {"nvme": ("eth0",)})
    (path,) = limits_of(facts, found).paths
    network = path.ceilings[0]
    assert (network.stage, network.known) == ("network", "unknown")
    assert "eth0" in network.why
