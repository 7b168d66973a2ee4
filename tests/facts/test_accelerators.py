"""GPUs, DPUs, processing accelerators and QuickAssist by their PCI class and ids, on the node where they are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.processors.pci import Accelerator, kind_of_function
from advisor.host import tree_host
from advisor.report.picture.content import host_picture
from advisor.report.picture.page import picture_page, picture_text
from tests.captured import host
from tests.cases import read_cases
from tests.rules import build
from tests.trees import make_tree

DEVICES = "/sys/bus/pci/devices"
DATA = read_cases(__file__)


@pytest.mark.parametrize(("code", "vendor", "device", "address", "kind"), DATA["what_a_function"])
def test_what_a_function_is(code: str, vendor: str, device: str, address: str, kind: str | None) -> None:
    assert kind_of_function(code, vendor, device, address) == kind


def test_accelerators_of_a_host_with_their_node(tmp_path: Path) -> None:
    files = DATA["accelerators_of_a_host_with_their"]
    driver = {f"{DEVICES}/0000:3b:00.0/driver": "../../../bus/pci/drivers/nvidia"}
    found = scan(tree_host(str(make_tree(tmp_path, files, driver)))).accelerators
    assert [(one.address, one.kind, one.ids, one.driver, one.numa_node) for one in found] == [
        ("0000:3b:00.0", "gpu", "10de:20b0", "nvidia", 0),
        ("0000:76:00.0", "quickassist", "8086:4940", None, None),
        ("0000:d8:00.0", "gpu", "10de:20b0", None, 1),
    ]


def test_they_are_in_the_picture_on_their_node() -> None:
    cards = tuple(
        Accelerator(f"0000:{bus}:00.0", "gpu", "NVIDIA", "10de:20b0", "nvidia", node, build.pcie(16.0, 16))
        for bus, node in (("3b", 0), ("5e", 0), ("d8", 1), ("d9", None))
    )
    facts = build.facts(numa=build.numa(2), accelerators=cards, links=(), disks=())
    page, text = picture_page(facts, ()), picture_text(facts, (), width=100, color=False)
    assert page.count(">GPU NVIDIA 10de:20b0</text>") == 3 * page.count("<svg")
    assert "<bdi>4 accelerators</bdi>" in page
    assert "2 ×" in page
    for word in ("Node unknown", "0000:d9:00.0", "nvidia", "PCIe x16, 16 GT/s"):
        assert word in page
        assert word in text


@pytest.mark.captured
def test_those_of_a_captured_host_are_in_its_picture() -> None:
    picture = host_picture(scan(host("hwloc/32intel64-2p8co2t+8ve")), ())
    (block,) = (one for panel in picture.panels if panel.place == 0 for one in panel.blocks if one.lanes == 16)
    assert (block.title, block.aside, len(block.names)) == ("Accelerator NEC 1bcf:001c", "8 ×", 8)
    assert ("PCIe x16, 8 GT/s",) in [line.pieces for line in block.lines]
