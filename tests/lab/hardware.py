"""What a guest is made of, as data, and the QEMU arguments that make it.

Nothing here starts a process or touches a file: `qemu_arguments` is a pure function of its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Bus numbers of the host bridges, one per NUMA node, far enough apart for 63 buses behind each.
_FIRST_BUS = 0x20
_BUSES_PER_NODE = 0x40
_PORTS_PER_SLOT = 8
_FREE_CHASSIS = 200
_FREE_SLOT = 0x1C

# Each of these saves emulated time, or lines that nobody reads; none changes what the guest's kernel can do.
KERNEL_COMMAND_LINE = (
    "console=ttyS0 quiet loglevel=3 mitigations=off nowatchdog audit=0 tsc=reliable no_timer_check "
    "cryptomgr.notests rcupdate.rcu_expedited=1 random.trust_cpu=1 8250.nr_uarts=1 i8042.noaux net.ifnames=0 "
    "systemd.show_status=no systemd.log_level=warning"
)


@dataclass(frozen=True)
class Link:
    """A network link.

    `node` is the NUMA node of its PCIe root port, None for a link on the root bus, whose numa_node the kernel
    gives as -1.

    `wire` says what the other end is: `hub:N`, all links of this guest with the same N see each other's
    frames; `user`, a private network 10.0.2.0/24 with a router at .2 that forwards nothing; `pair:STEM:0` or
    `:1`, the two ends of a cable between two guests, by unix sockets that begin with the path STEM.
    """

    driver: str = "vmxnet3"
    node: int | None = None
    wire: str = "hub:1"
    host_mtu: int | None = None  # bytes; virtio only


@dataclass(frozen=True)
class Hardware:
    """A machine: CPUs and memory are spread evenly over the NUMA nodes.

    `nvme` is a sequence of (node, number of drives), `virtio_disks` counts plain virtio disks besides the
    root disk. `dmi` sets SMBIOS strings, one per QEMU `-smbios` value, for instance
    "type=1,manufacturer=Amazon EC2,product=r5b.8xlarge".
    """

    nodes: int = 2
    cpus: int = 4
    memory_mib: int = 2048
    nvme: tuple[tuple[int, int], ...] = ((0, 3), (1, 3))
    nvme_mib: int = 12288
    virtio_disks: int = 0
    virtio_disk_mib: int = 1024
    links: tuple[Link, ...] = (Link(node=0), Link(node=1), Link("virtio-net-pci", wire="user"))
    distance: int = 21
    dmi: tuple[str, ...] = ()
    kernel_arguments: str = ""
    free_ports: int = 0
    """PCIe ports into which `Guest.plug_disk` and `Guest.plug_link` plug something while the guest runs."""


STORAGE_HOST = Hardware(free_ports=2)
"""Two NUMA nodes, four CPUs, three NVMe drives and one 10 Gbit/s link on each node, a management link; two ports are
free."""

SMALL = Hardware(
    nodes=1, cpus=2, memory_mib=1024, nvme=(), virtio_disks=1, links=(Link("virtio-net-pci", wire="user"),)
)
"""One node, two CPUs, one virtio disk, a management link. The eth0 of this guest is the management link."""

DENSE = Hardware(
    cpus=8,
    memory_mib=3072,
    nvme=((0, 12), (1, 12)),
    links=(Link(node=0), Link(node=0), Link(node=1), Link(node=1), Link("virtio-net-pci", wire="user")),
)
"""Twelve drives on each of two nodes, the articles' BeeGFS server. Starts fail more often with more devices."""

PRESETS = {"storage-host": STORAGE_HOST, "small": SMALL, "dense": DENSE}


@dataclass(frozen=True)
class Disk:
    """A drive's identity and where its data is kept on the host."""

    name: str
    node: int | None
    size_mib: int


def disks(hardware: Hardware) -> list[Disk]:
    """The data disks, in the order of their PCI functions; `name` is also the serial number the guest sees."""
    found = [
        Disk(f"LAB-N{node}-{index}", node, hardware.nvme_mib) for node, count in hardware.nvme for index in range(count)
    ]
    found += [Disk(f"LAB-V{index}", None, hardware.virtio_disk_mib) for index in range(hardware.virtio_disks)]
    return found


def qemu_arguments(hardware: Hardware, *, image: Path, work: Path, share: Path, accelerator: str) -> list[str]:
    """The arguments after `qemu-system-x86_64`.

    `image` holds the built vmlinux and initramfs, `work` the guest's own disks and sockets, `share` is
    exported read-only under the mount tag `src`.
    """
    append = f"{KERNEL_COMMAND_LINE} {hardware.kernel_arguments}".strip()
    arguments = ["-accel", accelerator, "-machine", "q35,usb=off,smbus=off,vmport=off,hpet=off", "-cpu", "max"]
    arguments += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-name", "advisor-lab"]
    arguments += ["-kernel", f"{image}/vmlinux", "-initrd", f"{image}/initramfs", "-append", append]
    arguments += ["-serial", f"file:{work}/console", "-device", "virtio-rng-pci"]
    arguments += ["-qmp", f"unix:{work}/qmp,server=on,wait=off"]
    arguments += _agent_port(work) + _share(share) + _root_disk(work)
    arguments += _nodes(hardware)
    ports = _Ports()
    for index, disk in enumerate(disks(hardware)):
        arguments += _data_disk(index, disk, work, ports)
    for index, link in enumerate(hardware.links):
        arguments += _link(index, link, ports)
    for index in range(hardware.free_ports):
        # Last and at addresses of their own: the numbers of all other devices stay.
        port = f"pcie-root-port,id=free{index},bus=pcie.0,chassis={_FREE_CHASSIS},slot={index}"
        arguments += ["-device", f"{port},addr={_FREE_SLOT:#x}.{index},multifunction=on,hotplug=on"]
    for smbios in hardware.dmi:
        arguments += ["-smbios", smbios]
    return arguments


class _Ports:
    """Hands out PCIe root ports behind each node's host bridge."""

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}

    def take(self, node: int) -> tuple[list[str], str]:
        """Arguments for a new port on a node's bridge, and the name of its bus."""
        index = self._taken.get(node, 0)
        self._taken[node] = index + 1
        slot, function = divmod(index, _PORTS_PER_SLOT)
        name = f"rp{node}_{index}"
        # x-speed and x-width are what the port could do; what sits behind it trains lower, as it does in
        # QEMU.
        device = f"pcie-root-port,id={name},bus=px{node},chassis={node + 1},slot={index},addr={slot:#x}.{function}"
        return ["-device", f"{device},multifunction=on,io-reserve=0,hotplug=off,x-speed=8,x-width=4"], name


def _nodes(hardware: Hardware) -> list[str]:
    per_node, memory = hardware.cpus // hardware.nodes, hardware.memory_mib // hardware.nodes
    arguments = ["-smp", f"{hardware.cpus},sockets={hardware.nodes},cores={per_node},threads=1"]
    arguments += ["-m", f"{memory * hardware.nodes}M"]
    used = {node for node, _ in hardware.nvme} | {link.node for link in hardware.links if link.node is not None}
    for node in range(hardware.nodes):
        first = node * per_node
        arguments += ["-object", f"memory-backend-ram,id=m{node},size={memory}M"]
        arguments += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={first}-{first + per_node - 1}"]
    # The firmware lists the bridge that was made last first; made from the highest node down, drives and
    # links are numbered from node 0 up.
    for node in sorted(used, reverse=True):
        bus = _FIRST_BUS + node * _BUSES_PER_NODE
        arguments += ["-device", f"pxb-pcie,id=px{node},bus=pcie.0,bus_nr={bus:#x},numa_node={node}"]
    for here in range(hardware.nodes):
        for there in range(here):
            arguments += ["-numa", f"dist,src={here},dst={there},val={hardware.distance}"]
    return arguments


def _agent_port(work: Path) -> list[str]:
    return [
        *("-device", "virtio-serial-pci,max_ports=2"),
        *("-chardev", f"socket,id=agent,path={work}/agent,server=on,wait=off"),
        *("-device", "virtserialport,chardev=agent,name=advisor.lab"),
    ]


def _share(share: Path) -> list[str]:
    return [
        *("-fsdev", f"local,id=src,path={share},security_model=none,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=src,mount_tag=src"),
    ]


def _root_disk(work: Path) -> list[str]:
    drive = _drive("root", work / "root.qcow2", "qcow2")
    return [*drive, "-device", "virtio-blk-pci,drive=root,serial=LAB-ROOT"]


def _drive(name: str, path: Path, form: str) -> list[str]:
    # cache=unsafe only omits fsync on the host. A guest's flush still pushes QEMU's own buffers (qcow2
    # tables) into the host's page cache, and that survives the killing of QEMU, which is the only power cut
    # there is here. The guest sees a disk with a volatile write cache and therefore sends flushes.
    return ["-drive", f"if=none,id={name},format={form},file={path},cache=unsafe,aio=threads,discard=unmap"]


def _data_disk(index: int, disk: Disk, work: Path, ports: _Ports) -> list[str]:
    arguments = _drive(f"d{index}", work / f"{disk.name}.raw", "raw")
    if disk.node is None:
        return [*arguments, "-device", f"virtio-blk-pci,drive=d{index},serial={disk.name},bus=pcie.0"]
    port, bus = ports.take(disk.node)
    return [*arguments, *port, "-device", f"nvme,serial={disk.name},drive=d{index},max_ioqpairs=4,bus={bus}"]


def _link(index: int, link: Link, ports: _Ports) -> list[str]:
    kind, _, rest = link.wire.partition(":")
    if kind == "hub":
        wire = f"hubport,id=l{index},hubid={rest}"
    elif kind == "user":
        wire = f"user,id=l{index},restrict=on,ipv6=off"
    elif kind == "pair":
        stem, _, end = rest.rpartition(":")
        local, remote = f"{stem}.{end}", f"{stem}.{1 - int(end)}"
        wire = f"dgram,id=l{index},local.type=unix,local.path={local},remote.type=unix,remote.path={remote}"
    else:
        raise ValueError(f"unknown wire {link.wire!r}: hub:N, user or pair:STEM:0|1")
    device = f"{link.driver},netdev=l{index},mac=52:54:00:1a:b0:{index:02x}"
    if link.host_mtu is not None:
        device += f",host_mtu={link.host_mtu}"
    if link.node is None:
        return ["-netdev", wire, "-device", f"{device},bus=pcie.0"]
    port, bus = ports.take(link.node)
    return ["-netdev", wire, *port, "-device", f"{device},bus={bus}"]
