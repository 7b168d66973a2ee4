"""Where PCI devices sit, and how wide the way to them is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.processors.pci import (
    PcieLink,
    PciPlace,
    PlaceReader,
    functions_above,
    lane_mbps,
    parse_speed,
    parse_width,
    read_device_irqs,
    read_place,
)
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, Missing, NoCommands, tree_host
from tests.cases import read_cases
from tests.trees import make_tree

ROOT = "/sys/devices/pci0000:5d"
PORT = f"{ROOT}/0000:5d:02.0"
UP = f"{PORT}/0000:5e:00.0"
DOWN = f"{UP}/0000:5f:03.0"
NIC = f"{DOWN}/0000:60:00.0"
ONLINE = {"/sys/devices/system/cpu/online": "0-7", "/sys/devices/system/node/online": "0-1"}
NODES = {"/sys/devices/system/node/node0/cpulist": "0-3", "/sys/devices/system/node/node1/cpulist": "4-7"}


def link(place: str, speed: str, width: str, speed_max: str = "", width_max: str = "") -> dict[str, str]:
    return {
        f"{place}/current_link_speed": f"{speed}\n",
        f"{place}/current_link_width": f"{width}\n",
        f"{place}/max_link_speed": f"{speed_max or speed}\n",
        f"{place}/max_link_width": f"{width_max or width}\n",
    }


class CountedFiles(MemoryFiles):
    """Files in memory that count how often one is read."""

    reads = 0

    def read(self, path: str) -> bytes | Missing:
        self.reads += 1
        return super().read(path)


def look(files: Mapping[str, str], device: str = NIC) -> tuple[PciPlace | None, dict[str, str]]:
    contents = {path: text.encode() for path, text in (ONLINE | NODES | dict(files)).items()}
    unknown = Unknowns()
    place = read_place(Host(MemoryFiles(contents), NoCommands()), device, "links.eth0", unknown)
    return place, {entry.fact: entry.why for entry in unknown.listed()}


def locality(node: str, cpus: str) -> tuple[int | None, str | None, dict[str, str]]:
    place, unknown = look({f"{NIC}/numa_node": node, f"{NIC}/local_cpulist": cpus})
    assert place is not None
    return place.numa_node, place.local_cpus, unknown


def pcie(files: Mapping[str, str]) -> PcieLink | None:
    place, unknown = look({f"{NIC}/irq": "0"} | dict(files))
    assert place is not None
    assert not unknown
    return place.pcie


DATA = read_cases(__file__, PciPlace, PcieLink)


def test_place_of_a_link_below_a_switch(tmp_path: Path) -> None:
    files = {f"{NIC}/numa_node": "1\n", f"{NIC}/local_cpulist": "4-7\n", f"{NIC}/net/eth0/mtu": "1500"}
    files |= {f"{NIC}/msi_irqs/{number}": "msix\n" for number in (100, 99, 101)} | {f"{NIC}/irq": "45"}
    files |= link(NIC, "8.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16")
    files |= link(DOWN, "8.0 GT/s PCIe", "8") | link(UP, "8.0 GT/s PCIe", "4") | link(PORT, "8.0 GT/s PCIe", "4")
    links = {"/sys/class/net/eth0": f"../../..{NIC}/net/eth0", f"{NIC}/net/eth0/device": "../.."}
    root = make_tree(tmp_path, ONLINE | NODES | files, links)
    unknown = Unknowns()
    assert (
        read_place(tree_host(str(root)), "/sys/class/net/eth0/device", "links.eth0", unknown)
        == DATA["place_of_a_link_below_a_switch"]
    )
    assert not unknown.listed()


def test_a_device_below_a_pci_function_belongs_to_it() -> None:
    place, _ = look({f"{NIC}/virtio0/net/eth0/mtu": "1500", f"{NIC}/irq": "10"}, f"{NIC}/virtio0/net/eth0")
    assert place is not None
    assert (place.address, place.irqs) == ("0000:60:00.0", (10,))


@pytest.mark.parametrize("device", ["/sys/devices/virtual/net/lo", "/sys/class/net/lo/device", "", "/", "a\0b"])
def test_no_pci_device(device: str) -> None:
    assert look({"/sys/devices/virtual/net/lo/mtu": "65536"}, device) == (None, {})


def test_functions_up_to_the_root_of_a_domain() -> None:
    """Behind Intel VMD a domain with a 32-bit number begins; the VMD function is no bridge of it."""
    vmd = "/sys/devices/pci0000:b2/0000:b2:05.5/pci10000:00/10000:00:02.0/10000:01:00.0"
    assert functions_above(f"{vmd}/nvme/nvme0") == (vmd, vmd.rpartition("/")[0])
    assert functions_above(NIC) == (NIC, DOWN, UP, PORT)
    assert functions_above(f"{PORT}/0000:5d:02.0:pcie010") == (PORT,)
    assert functions_above("/sys/devices/platform/eth0") == ()


def test_place_behind_vmd() -> None:
    vmd = "/sys/devices/pci0000:b2/0000:b2:05.5/pci10000:00/10000:00:02.0/10000:01:00.0"
    files = link(vmd, "16.0 GT/s PCIe", "4") | link(vmd.rpartition("/")[0], "16.0 GT/s PCIe", "4")
    place, _ = look(files | {f"{vmd}/nvme/nvme0/model": "x"}, f"{vmd}/nvme/nvme0")
    assert place is not None
    assert place.address == "10000:01:00.0"
    assert place.pcie is not None
    assert (place.pcie.bandwidth_mbps, place.pcie.limiting) == (4 * 15753, None)


@pytest.mark.parametrize(
    ("node", "cpus", "expected"),
    DATA["locality"],
    ids=["both", "no node", "no node and no CPUs", "CPUs that do not exist"],
)
def test_locality(node: str, cpus: str, expected: tuple[int | None, str | None]) -> None:
    assert locality(node, cpus) == (*expected, {})


def test_a_node_beside_all_cpus_is_kept_and_the_cpus_are_not() -> None:
    node, cpus, unknown = locality("1", "0-7")
    assert (node, cpus) == (1, None)
    assert unknown == {"links.eth0.local_cpus": "0-7 although it is at node 1 (4-7)"}


def test_a_node_whose_cpus_are_not_local_is_unknown() -> None:
    node, cpus, unknown = locality("1", "0-3")
    assert (node, cpus) == (None, None)
    assert unknown == {"links.eth0.numa_node": "1 (4-7) contradicts local CPUs 0-3"}


def test_a_node_that_is_not_online_is_unknown() -> None:
    node, cpus, unknown = locality("2", "0-7")
    assert (node, cpus) == (None, "0-7")
    assert unknown == {"links.eth0.numa_node": "2 is not an online node"}


def test_a_node_that_is_no_number_is_noted() -> None:
    node, _, unknown = locality("x", "0-7")
    assert node is None
    assert "links.eth0.numa_node" in unknown


def test_a_node_without_cpus_contradicts_nothing() -> None:
    files = {"/sys/devices/system/node/node1/cpulist": "\n", f"{NIC}/numa_node": "1", f"{NIC}/local_cpulist": ""}
    place, unknown = look(files)
    assert place is not None
    assert (place.numa_node, place.local_cpus, unknown) == (1, "", {})


def test_local_cpus_from_the_mask_of_an_old_kernel() -> None:
    place, _ = look({f"{NIC}/local_cpus": "00000000,0000000f\n"})
    assert place is not None
    assert (place.numa_node, place.local_cpus) == (None, "0-3")


def test_no_pcie_link_inside_a_guest() -> None:
    assert pcie({}) is None


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "0"), ("Unknown speed", "255"), ("Unknown", "63")])
def test_an_unknown_link_takes_its_bandwidth_from_the_bridge(speed: str, width: str) -> None:
    """A virtual function has no link of its own."""
    own = link(NIC, speed, width)
    assert pcie(own) == PcieLink(None, None, None, None, None, None)
    assert pcie(own | link(DOWN, "5.0 GT/s PCIe", "8")) == PcieLink(
        None, None, None, None, 32000, "0000:5f:03.0", {"0000:5f:03.0": 32000}
    )


def test_of_equally_narrow_hops_the_device_counts() -> None:
    found = pcie(link(NIC, "8 GT/s", "8") | link(DOWN, "8 GT/s", "8") | link(PORT, "8 GT/s", "8"))
    assert found is not None
    assert (found.bandwidth_mbps, found.limiting) == (8 * 7876, None)


def test_a_hop_without_speed_sets_no_limit() -> None:
    found = pcie(link(NIC, "8 GT/s", "8") | link(DOWN, "Unknown", "0") | link(UP, "8 GT/s", "0") | {f"{PORT}/x": ""})
    assert found is not None
    assert (found.bandwidth_mbps, found.limiting) == (8 * 7876, None)


@pytest.mark.parametrize(("text", "gts"), DATA["speed"])
def test_speed(text: str, gts: float | None) -> None:
    assert parse_speed(text) == gts


@pytest.mark.parametrize(("text", "lanes"), [("1", 1), ("16", 16), ("32", 32), ("0", None), ("255", None), ("x", None)])
def test_width(text: str, lanes: int | None) -> None:
    assert parse_width(text) == lanes


@pytest.mark.parametrize(
    ("gts", "mbps"), [(2.5, 2000), (5.0, 4000), (8.0, 7876), (16.0, 15753), (32.0, 31507), (64.0, 64000)]
)
def test_line_coding(gts: float, mbps: int) -> None:
    assert lane_mbps(gts) == mbps


@pytest.mark.parametrize(("files", "irqs"), DATA["interrupts_of_a_function"])
def test_interrupts_of_a_function(files: dict[str, str], irqs: tuple[int, ...]) -> None:
    contents = {f"{NIC}/{name}": text.encode() for name, text in files.items()}
    assert read_device_irqs(Host(MemoryFiles(contents), NoCommands()), NIC) == irqs


def test_what_functions_share_is_read_once() -> None:
    """Sixty-four virtual functions below one switch: each costs its own seven files, not the bridges' six."""
    files = ONLINE | NODES | link(DOWN, "8 GT/s", "8") | link(UP, "8 GT/s", "8") | link(PORT, "8 GT/s", "8")
    places = [f"{DOWN}/0000:60:{number // 8:02x}.{number % 8}" for number in range(64)]
    for place in places:
        files |= link(place, "Unknown", "0") | {f"{place}/numa_node": "1", f"{place}/local_cpulist": "4-7"}
    memory = CountedFiles({path: text.encode() for path, text in files.items()})
    reader = PlaceReader(Host(memory, NoCommands()), Unknowns())
    found = [reader.read(place, "links.vf") for place in places]
    assert {(place.numa_node, place.pcie and place.pcie.bandwidth_mbps) for place in found if place} == {(1, 8 * 7876)}
    assert memory.reads <= 7 * 64 + 20
