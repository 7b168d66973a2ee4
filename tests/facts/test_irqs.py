"""Interrupts of links and disks, and which of them the kernel manages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.processors.pci import Irq, is_managed, parse_interrupts, read_irqs
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, Missing, NoCommands, tree_host
from tests import captured
from tests.cases import read_cases
from tests.trees import make_tree

PCI = "/sys/bus/pci/devices"
DEBUG = "/sys/kernel/debug/irq/irqs"


class CountedFiles(MemoryFiles):
    """Files in memory that count how often one is read."""

    reads = 0

    def read(self, path: str) -> bytes | Missing:
        self.reads += 1
        return super().read(path)


def device(address: str, code: str, numbers: tuple[int, ...]) -> dict[str, str]:
    return {f"{PCI}/{address}/class": f"{code}\n"} | {
        f"{PCI}/{address}/msi_irqs/{number}": "msix" for number in numbers
    }


def interrupt(number: int, action: str, affinity: str = "0-3", effective: str = "2", node: int = 0) -> dict[str, str]:
    return {
        f"/proc/irq/{number}/smp_affinity_list": f"{affinity}\n",
        f"/proc/irq/{number}/effective_affinity_list": f"{effective}\n",
        f"/proc/irq/{number}/node": f"{node}\n",
        f"/sys/kernel/irq/{number}/actions": f"{action}\n",
    }


def look(files: Mapping[str, str], links: Mapping[str, str] | None = None) -> tuple[tuple[Irq, ...], dict[str, str]]:
    unknown = Unknowns()
    memory = MemoryFiles({path: text.encode() for path, text in files.items()}, links)
    found = read_irqs(Host(memory, NoCommands(), is_root=True), unknown)
    return found, {entry.fact: entry.why for entry in unknown.listed()}


def test_interrupts_of_a_host(tmp_path: Path) -> None:
    files = {"/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n"}
    files |= device("0000:3b:00.0", "0x010802", (40, 41)) | device("0000:60:00.0", "0x020000", (30,))
    files |= device("0000:00:14.0", "0x0c0330", (20,)) | device("0000:00:02.0", "0x030000", (21,))
    files |= interrupt(20, "xhci_hcd") | interrupt(30, "eth0-TxRx-0", "1", "1", -1)
    files |= interrupt(40, "nvme0q0") | interrupt(41, "nvme0q1", "0-1", "")
    links = {f"{PCI}/0000:60:00.0/driver": "../../../bus/pci/drivers/ixgbe"}
    unknown = Unknowns()
    found = read_irqs(tree_host(str(make_tree(tmp_path, files, links))), unknown)
    assert found == (
        Irq(30, ("eth0-TxRx-0",), "1", "1", None, False, "0000:60:00.0"),
        Irq(40, ("nvme0q0",), "0-3", "2", 0, False, "0000:3b:00.0"),
        Irq(41, ("nvme0q1",), "0-1", None, 0, True, "0000:3b:00.0"),
    )
    assert not unknown.listed()


def test_a_line_shared_by_two_controllers_is_one_interrupt() -> None:
    files = {f"{PCI}/0000:00:1{place}.0/class": "0x010601" for place in (1, 2)}
    files |= {f"{PCI}/0000:00:1{place}.0/irq": "19" for place in (1, 2)} | interrupt(19, "ahci[0000:00:11.0], ahci1")
    (found,) = look(files)[0]
    assert (found.number, found.device, found.actions) == (19, "0000:00:11.0", ("ahci[0000:00:11.0]", "ahci1"))


def test_old_kernel_with_masks_and_interrupts_in_one_file() -> None:
    files = device("0000:01:00.0", "0x020000", (58,)) | {"/proc/irq/58/smp_affinity": "00000000,0000000c\n"}
    files["/proc/interrupts"] = "           CPU0       CPU1\n 58:        123          0   PCI-MSI  eth0\n"
    (found,) = look(files)[0]
    assert (found.actions, found.affinity, found.effective, found.node) == (("eth0",), "2-3", None, None)


def test_a_vector_that_nobody_uses_has_no_affinity() -> None:
    files = {"/sys/kernel/irq/70/actions": "\n", "/proc/irq/default_smp_affinity": "3"}
    (found,), unknown = look(device("0000:01:00.0", "0x020000", (70,)) | files)
    assert found == Irq(70, (), None, None, None, None, "0000:01:00.0")
    assert not unknown


def test_odd_affinity_is_unknown() -> None:
    files = device("0000:01:00.0", "0x020000", (70, 71)) | interrupt(70, "a", affinity="x") | interrupt(71, "b")
    del files["/proc/irq/71/smp_affinity_list"]
    files["/proc/irq/71/smp_affinity"] = "xx"
    found, unknown = look(files)
    assert [irq.affinity for irq in found] == [None, None]
    assert set(unknown) == {"irqs.70.affinity", "irqs.71.affinity"}


DATA = read_cases(__file__)


@pytest.mark.parametrize(("state", "managed"), DATA["the_kernels_own_word_where_root_may"])
def test_the_kernels_own_word_where_root_may_read_it(state: str, managed: bool | None) -> None:
    files = device("0000:01:00.0", "0x010700", (70,)) | interrupt(70, "mpt3sas0-msix0") | {f"{DEBUG}/70": state}
    assert look(files)[0][0].managed is managed


@pytest.mark.parametrize(("actions", "driver", "kernel", "managed"), DATA["managed_by_driver"])
def test_managed_by_driver(
    actions: tuple[str, ...], driver: str | None, kernel: tuple[int, ...], managed: bool | None
) -> None:
    assert is_managed(actions, driver, kernel) is managed


INTERRUPTS = DATA["INTERRUPTS"]


def test_proc_interrupts() -> None:
    assert parse_interrupts(INTERRUPTS) == DATA["proc_interrupts"]


def large_host(count: int) -> dict[str, str]:
    files = {"/proc/sys/kernel/osrelease": "6.1.0"}
    for controller in range(count // 100):
        numbers = tuple(range(1000 + controller * 100, 1100 + controller * 100))
        files |= device(f"0000:{controller:02x}:00.0", "0x010802", numbers)
        for number in numbers:
            files |= interrupt(number, f"nvme{controller}q{number % 100}", "0-575", "3")
    return files


def test_four_reads_per_interrupt() -> None:
    memory = CountedFiles({path: text.encode() for path, text in large_host(2000).items()})
    assert len(read_irqs(Host(memory, NoCommands()), Unknowns())) == 2000
    assert memory.reads <= 4 * 2000 + 100


@pytest.mark.captured
def test_a_captured_host_without_proc_irq_still_tells_whose_they_are() -> None:
    unknown = Unknowns()
    found = read_irqs(captured.host("hwloc/32intel64-2p8co2t+8ve"), unknown)
    assert len(found) == 270
    # Two InfiniBand adapters (mlx5, which has changed its mind about managed vectors) and two ports of an i40e.
    assert {(irq.device, irq.managed) for irq in found} == {
        ("0000:1a:00.0", None),
        ("0000:3e:00.0", None),
        ("0000:60:00.0", False),
        ("0000:60:00.1", False),
    }
    assert all(irq.affinity is None for irq in found)
    assert [entry.fact for entry in unknown.listed()] == ["irqs.affinity"]
