"""Block devices of fake hosts, as files and links of a tree; and a host that holds them in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from tests.cases import read_cases

DATA = read_cases(__file__)

QUEUE = DATA["QUEUE"]


class Tree:
    """Files and links of a host; each method adds a device as the kernel would show it."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {
            "/sys/devices/system/node/online": "0-1\n",
            "/sys/devices/system/cpu/online": "0-3\n",
            "/sys/devices/system/node/node0/cpulist": "0-1\n",
            "/sys/devices/system/node/node1/cpulist": "2-3\n",
            "/proc/self/mountinfo": "",
        }
        self.pages: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.directories: set[str] = {"/sys/block"}
        self.answers: dict[tuple[str, ...], Completed | Missing] = {}

    def host(self, *, is_live: bool = False, is_root: bool = True, kind: type[MemoryFiles] = MemoryFiles) -> Host:
        contents = {path: text.encode() for path, text in self.files.items()} | self.pages
        files = kind(contents, self.links, frozenset(self.directories))
        return Host(files, RecordedCommands(self.answers), is_live=is_live, is_root=is_root)

    def answer(self, argv: Sequence[str], stdout: str, rc: int = 0) -> None:
        self.answers[tuple(argv)] = Completed(rc, stdout, "")

    def mount(self, number: str, target: str, kind: str, options: str = "rw", *, root: str = "/") -> None:
        line = f"30 1 {number} {root} {target} rw,noatime shared:1 - {kind} /dev/whatever {options}\n"
        self.files["/proc/self/mountinfo"] += line

    def pci(self, address: str, node: int, irqs: Sequence[int] = ()) -> str:
        place = f"/sys/devices/pci{address[:4]}:{address[5:7]}/{address}"
        self.files[f"{place}/numa_node"] = f"{node}\n"
        self.files[f"{place}/local_cpulist"] = {0: "0-1\n", 1: "2-3\n"}.get(node, "0-3\n")
        self.directories |= {f"{place}/msi_irqs"}
        self.files |= {f"{place}/msi_irqs/{irq}": "msix\n" for irq in irqs}
        return place

    def block(
        self,
        name: str,
        where: str,
        *,
        sectors: int = 2048,
        number: str = "",
        queue: Mapping[str, str] | None = None,
        partitions: Sequence[str] = (),
        device: Mapping[str, str] | None = None,
    ) -> str:
        """A block device below ``where`` in /sys/devices; returns its directory."""
        place = f"{where}/{name}"
        self.files[f"{place}/size"] = f"{sectors}\n"
        self.files |= {f"{place}/queue/{key}": f"{value}\n" for key, value in (QUEUE | dict(queue or {})).items()}
        self.files |= {f"{where}/{key}": f"{value}\n" for key, value in (device or {}).items()}
        self.directories |= {f"{place}/holders", f"{place}/slaves"}
        if "/virtual/block" not in where:
            self.links[f"{place}/device"] = ".."
        for index, part in enumerate(partitions):
            self.files[f"{place}/{part}/partition"] = f"{index + 1}\n"
            self.files[f"{place}/{part}/start"] = f"{2048 * (index + 1)}\n"
            self.directories.add(f"{place}/{part}/holders")
            self.links[f"/sys/class/block/{part}"] = f"../..{place.removeprefix('/sys')}/{part}"
        self.links[f"/sys/block/{name}"] = f"..{place.removeprefix('/sys')}"
        self.links[f"/sys/class/block/{name}"] = f"../..{place.removeprefix('/sys')}"
        if number:
            self.number(name, number)
        return place

    def number(self, name: str, number: str) -> None:
        link = self.links.get(f"/sys/class/block/{name}", f"../../class/block/{name}")
        self.files[f"/sys{link.removeprefix('../..')}/dev"] = f"{number}\n"
        self.links[f"/sys/dev/block/{number}"] = f"../../devices/x/{name}"

    def nvme(self, index: int, node: int, *, partitions: Sequence[str] = (), number: str = "") -> None:
        """A drive with one namespace and two interrupts, alone on its PCI function."""
        place = self.pci(f"0000:{0x20 + index:02x}:00.0", node, (100 + 2 * index, 101 + 2 * index))
        controller = f"{place}/nvme/nvme{index}"
        about = {"model": "Dell Ent NVMe v2 AGN RI U.2 3.84TB", "serial": f"S{index}", "state": "live"}
        self.block(
            f"nvme{index}n1",
            controller,
            sectors=7_501_476_528,
            number=number,
            partitions=partitions,
            device={key: f"{value}   " for key, value in about.items()},
        )

    def scsi(self, name: str, place: str, *, number: str = "", state: str = "running", **more: str) -> None:
        """A disk behind an adapter at ``place``."""
        where = f"{place}/host1/target1:0:0/{name}-address/block"
        directory = f"{place}/host1/target1:0:0/{name}-address"
        about = {"vendor": "SEAGATE ", "model": "ST12000NM0027   ", "state": state, "queue_depth": "254"}
        self.files |= {f"{directory}/{key}": f"{value}\n" for key, value in (about | more).items()}
        self.block(name, where, sectors=23_437_770_752, number=number, queue={"rotational": "1"})
        self.links[f"{where}/{name}/device"] = "../.."

    def virtual(self, name: str, *, number: str = "", lower: Sequence[str] = (), sectors: int = 8192) -> str:
        """A device of /sys/devices/virtual that lies on others."""
        place = self.block(name, "/sys/devices/virtual/block", sectors=sectors, number=number)
        self.directories |= {f"{place}/slaves/{one}" for one in lower}
        return place

    def dm(
        self, index: int, mapping: str, uuid: str, lower: Sequence[str], *, sectors: int = 8192, suspended: str = "0"
    ) -> None:
        name = f"dm-{index}"
        place = self.virtual(name, number=f"253:{index}", lower=lower, sectors=sectors)
        about = {"name": mapping, "uuid": uuid, "suspended": suspended}
        self.files |= {f"{place}/dm/{key}": f"{value}\n" for key, value in about.items()}

    def md(self, name: str, attributes: Mapping[str, str], devices: Mapping[str, tuple[str, str]]) -> None:
        """``devices``: name → (state, slot)."""
        place = self.virtual(name, lower=tuple(devices))
        self.files |= {f"{place}/md/{key}": f"{value}\n" for key, value in attributes.items()}
        for device, (state, slot) in devices.items():
            self.files[f"{place}/md/dev-{device}/state"] = f"{state}\n"
            self.files[f"{place}/md/dev-{device}/slot"] = f"{slot}\n"
