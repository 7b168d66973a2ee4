"""How a scan grows with the host: CPU time of reading, judging and printing, from 100 disks and 50 links up.

    python -m benchmarks.large_host [DISKS…]     by default 100, 300 and 1,000; half as many links

A made-up host in memory: four of five disks are paths of multipath maps, the others NVMe drives with a file system or
in md arrays; ports with eight interrupts each, bonds of two, and a VLAN with an address on each. One of ten has a fault
of its kind: a path is offline, a drive has half of its lanes, an array lacks a member. Prints a Markdown table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.host.provenance import read_provenance
from advisor.report.json import scan_document
from advisor.report.scan_page import scan_text
from advisor.report.scan_summary import ScanSummary, summary_text
from advisor.rules.judged import judge
from tests.whole_hosts import DISTRIBUTIONS, WholeHost

T = TypeVar("T")

_QUEUES = 8
_MEMBERS = 8
_ONE_OF = 10


class LargeHost(WholeHost):
    """Of so many disks, and half as many links."""

    def __init__(self, disks: int) -> None:
        super().__init__(DISTRIBUTIONS["debian-12"], gib=1024, cpus=128, nodes=2)
        self.functions = 0
        for number in range(disks * 2 // 5):
            self._add_map(number)
        for number in range(disks // 5):
            self._add_drive(number)
        self._add_arrays(disks // 10)
        for number in range(disks // 8):
            self._add_bond(number)
        self.link_order()

    def _add_function(self, kind: str) -> tuple[str, int]:
        """A PCI function with its interrupts: its place and its node."""
        number, node = self.functions, self.functions % 2
        self.functions += 1
        irqs = range(100 + number * _QUEUES, 100 + (number + 1) * _QUEUES)
        address = f"{number // 200:04x}:{16 + number % 200:02x}:00.0"
        place = self.pci(address, node, irqs)
        self.files |= {f"{place}/class": f"{kind}\n", f"{place}/vendor": "0x15b3\n"}
        self.files |= {f"{place}/current_link_speed": "8.0 GT/s PCIe\n", f"{place}/max_link_speed": "8.0 GT/s PCIe\n"}
        width = 4 if number % _ONE_OF == 0 else 8
        self.files |= {f"{place}/current_link_width": f"{width}\n", f"{place}/max_link_width": "8\n"}
        self.files[f"{place}/local_cpulist"] = ("0-63\n", "64-127\n")[node]
        self.links[f"/sys/bus/pci/devices/{address}"] = f"../../..{place.removeprefix('/sys')}"
        for irq in irqs:
            self.files |= {f"/proc/irq/{irq}/smp_affinity_list": f"{irq % 128}\n", f"/proc/irq/{irq}/node": f"{node}\n"}
            self.files[f"/sys/kernel/irq/{irq}/actions"] = f"queue-{irq}\n"
        return place, node

    def _add_map(self, number: int) -> None:
        """Two paths of a multipath map."""
        paths = [f"sd{_letters(2 * number + path)}" for path in range(2)]
        for path, name in enumerate(paths):
            place = f"/sys/devices/pci0000:00/0000:00:0{path + 1}.0"
            state = "offline" if number % _ONE_OF == path else "running"
            self.scsi(name, f"{place}/host{path}/rport-{number}", number=f"{65 + path}:{number}", state=state)
        self.dm(number, f"mpath{number}", f"mpath-3{number:032x}", paths, sectors=23_437_770_752)

    def _add_drive(self, number: int) -> None:
        place, _ = self._add_function("0x010802")
        name = f"nvme{number}n1"
        about = {"model": "Dell Ent NVMe v2 AGN RI U.2 3.84TB", "serial": f"S{number}", "state": "live"}
        self.block(
            *(name, f"{place}/nvme/nvme{number}"),
            sectors=7_501_476_528,
            number=f"259:{number}",
            partitions=[f"{name}p1"],
            device=about,
        )
        self.number(f"{name}p1", f"260:{number}")
        if number % 2:
            self.mount(f"260:{number}", f"/data/{number}", "xfs", "rw,discard,sunit=1024,swidth=8192")

    def _add_arrays(self, drives: int) -> None:
        """Of the drives without a file system: every second one."""
        for number in range(drives // _MEMBERS):
            names = [f"nvme{2 * (number * _MEMBERS + one)}n1p1" for one in range(_MEMBERS)]
            attributes = {"level": "raid6", "raid_disks": str(_MEMBERS), "array_state": "clean", "chunk_size": "131072"}
            members = {name: ("in_sync", str(slot)) for slot, name in enumerate(names)}
            if number % _ONE_OF == 0:
                members[names[0]] = ("faulty", "none")
            self.md(f"md{number}", attributes, members)

    def _add_bond(self, number: int) -> None:
        """Two ports, their bond and a VLAN on it: four links."""
        bond = f"bond{number}"
        for port in range(2):
            place, _ = self._add_function("0x020000")
            name, files = f"ens{number}p{port}", {"ifindex": self.index, "mtu": 9000, "speed": 25000}
            self.files |= {f"{place}/net/{name}/{key}": f"{value}\n" for key, value in files.items()}
            self.links |= {
                f"{place}/net/{name}/device": "../..",
                f"{place}/driver": "../../../bus/pci/drivers/mlx5_core",
                f"/sys/class/net/{name}": f"../..{place.removeprefix('/sys')}/net/{name}",
            }
            self._add_entry(name, 9000, master=bond)
        self._add_virtual(bond, "bond", info_data={"mode": "802.3ad", "miimon": 100, "xmit_hash_policy": "layer3+4"})
        local = {"family": "inet", "local": f"10.{number // 200}.{number % 200}.1", "prefixlen": 24}
        self._add_virtual(f"{bond}.{number + 1}", "vlan", link=bond, info_data={"id": number + 1}, addr_info=[local])

    def _add_virtual(self, name: str, kind: str, *, info_data: dict[str, object], **more: object) -> None:
        directory = f"/sys/devices/virtual/net/{name}"
        self.files |= {f"{directory}/ifindex": f"{self.index}\n", f"{directory}/mtu": "9000\n"}
        self.links[f"/sys/class/net/{name}"] = f"../../devices/virtual/net/{name}"
        self._add_entry(name, 9000, linkinfo={"info_kind": kind, "info_data": info_data}, **more)

    def _add_entry(self, name: str, mtu: int, **more: object) -> None:
        """As `WholeHost._entry`, without writing ip's answer each time."""
        self.entries.append(
            {
                **{"ifindex": self.index, "ifname": name, "mtu": mtu, "link_type": "ether", "txqlen": 1000},
                **{"flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"], "operstate": "UP", "addr_info": []},
                **{"min_mtu": 68, "max_mtu": 9978},
                **more,
            }
        )
        self.index += 1


def _letters(number: int) -> str:
    """As the kernel letters its disks: a … z, aa …"""
    rest, last = divmod(number, 26)
    return (_letters(rest - 1) if rest else "") + chr(ord("a") + last)


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """The result, and the milliseconds of CPU time of the quickest of three runs."""
    times = []
    for _ in range(3):
        began = time.process_time()
        result = run()
        times.append((time.process_time() - began) * 1000)
    return result, min(times)


def measure_scan(host: Host) -> tuple[int, dict[str, float]]:
    """How many findings a host has, and the milliseconds of CPU time of each part of a scan."""
    cost: dict[str, float] = {}
    provenance = read_provenance(host, "")
    facts, cost["read"] = timed(lambda: scan(host))
    findings, cost["judge"] = timed(lambda: judge(facts))
    summary = ScanSummary(facts, findings, provenance, 0, ())
    _, cost["page"] = timed(lambda: summary_text(summary, width=100, color=False))
    _, cost["--all"] = timed(lambda: scan_text(facts, findings, width=100, color=False, provenance=provenance))
    _, cost["--json"] = timed(lambda: scan_document(facts, findings, provenance))
    return len(findings), cost


def main(arguments: Sequence[str]) -> None:
    parts = ", ms | ".join(("read", "judge", "page", "`--all`", "`--json`"))
    print(f"| disks | links | findings | {parts}, ms | read and judge, for each device |")
    print("|---|---|---|---|---|---|---|---|---|")
    judge(scan(LargeHost(20).host()))
    for disks in [int(one) for one in arguments] or [100, 300, 1000]:
        count, cost = measure_scan(LargeHost(disks).host())
        each = (cost["read"] + cost["judge"]) / (disks + disks // 2) * 1000
        times = " | ".join(f"{ms:,.0f}" for ms in cost.values())
        print(f"| {disks:,} | {disks // 2:,} | {count} | {times} | {each:.0f} µs |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
