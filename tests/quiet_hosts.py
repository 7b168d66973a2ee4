"""Hosts that have nothing to do with the systems of the articles, each on several distributions as installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from advisor.host import Host
from tests.whole_hosts import DISTRIBUTIONS, Distribution, WholeHost

EBS: Final = "Amazon Elastic Block Store"


def laptop(one: Distribution) -> Host:
    """Wireless and a dock with Ethernet in the same network, a VPN, one NVMe drive, twenty days without a restart."""
    made = WholeHost(one, gib=16, cpus=8)
    made.firmware("LENOVO", "20XW005AGE", board_vendor="LENOVO")
    made.link("wlp0s20f3", "192.168.1.40/24", driver="iwlwifi", speed=None, route=True, wireless=True, most=2304)
    made.link("enp0s31f6", "192.168.1.41/24", driver="e1000e", route=True)
    made.virtual_link("virbr0", "bridge", "192.168.122.1/24")
    made.virtual_link("tun0", "tun", "10.8.0.6/24", 1420)
    made.drive(0, "SAMSUNG MZVL21T0HCLR-00BL7", gib=953, at=("/boot/efi", "/"), kind="ext4")
    made.counters(stalls=640, faults=212_000, direct=4_000, kswapd=812_000, swapped=31_000, collapsed=3, filtered=18)
    return made.host()


def desktop(one: Distribution) -> Host:
    """One Ethernet link, an NVMe drive for the system."""
    made = WholeHost(one, gib=32, cpus=16)
    made.firmware("ASUS", "System Product Name", board_vendor="ASUSTeK COMPUTER INC.")
    made.link("enp5s0", "192.168.178.20/24", driver="igb", route=True)
    made.drive(0, "WDS100T1X0E-00AFY0", gib=931, at=("/boot", "/"))
    made.counters(stalls=91, faults=640_000, direct=900, kswapd=91_000)
    return made.host()


def web_server(one: Distribution) -> Host:
    """A virtual machine of a VMware cluster that serves pages: a few overflows, some pruned receive queues."""
    made = WholeHost(one, gib=8, cpus=4)
    made.firmware("VMware, Inc.", "VMware Virtual Platform")
    made.link("ens192", "10.20.30.40/24", driver="vmxnet3", speed=10_000, route=True)
    made.plain_disk("sda", gib=60, at=("/boot", "/"), kind="xfs")
    made.counters(pruned=4, collapsed=212)
    return made.host()


def kubernetes_node(one: Distribution) -> Host:
    """An EC2 node with containerd and flannel: MTU 9001, many virtual links, forwarding, filtered packets."""
    made = WholeHost(one, gib=32, cpus=8, net__ipv4__ip_forward="1")
    made.ec2("m6i.2xlarge")
    made.link("ens5", "10.0.12.34/20", driver="ena", mtu=9001, speed=None, route=True)
    made.virtual_link("cni0", "bridge", "10.244.3.1/24", 8951)
    made.virtual_link("flannel.1", "vxlan", "10.244.3.0/32", 8951)
    made.virtual_link("docker0", "bridge", "172.17.0.1/16")
    made.virtual_link("kube-ipvs0", "dummy", "10.96.0.1/32")
    for number in range(12):
        made.virtual_link(f"veth{number:08x}", "veth", None, 8951, master="cni0")
    made.drive(0, EBS, gib=100, at=("/",), kind="xfs")
    made.counters(udp=81_234_567, udp_errors=3, filtered=4_120, collapsed=90, stalls=60, faults=912_000)
    return made.host()


def postgresql(one: Distribution) -> Host:
    """A managed database's virtual machine: one root volume, one for data, nothing of its type or size known inside."""
    made = WholeHost(one, gib=64, cpus=8)
    made.ec2("r6i.2xlarge")
    made.link("ens5", "172.31.5.6/20", driver="ena", mtu=9001, speed=None, route=True)
    made.drive(0, EBS, gib=20, at=("/",), kind="xfs")
    made.drive(1, EBS, gib=500, at=("/var/lib/postgresql",), kind="ext4")
    made.counters(stalls=30, faults=310_000, kswapd=9_123_456, direct=20_000)
    return made.host()


def build_server(one: Distribution) -> Host:
    """Two sockets, 128 GiB, local NVMe drives without RAID, one 10 Gbit/s link."""
    made = WholeHost(one, gib=128, cpus=64, nodes=2)
    made.firmware("Dell Inc.", "PowerEdge R640")
    made.link("eno1", "10.1.2.3/24", driver="ixgbe", speed=10_000, route=True, node=0)
    made.link("eno2", None, driver="ixgbe", speed=None, up=False, node=0)
    made.drive(0, "Dell Ent NVMe AGN MU U.2 1.6TB", gib=1490, at=("/boot", "/"), kind="xfs", node=0)
    made.drive(1, "Dell Ent NVMe AGN MU U.2 1.6TB", gib=1490, at=("/build",), kind="xfs", node=1)
    made.counters(stalls=300, faults=4_120_000, kswapd=88_123_456, direct=120_000)
    return made.host()


def raspberry_pi(one: Distribution) -> Host:
    """An SD card, Ethernet and wireless, 4 GiB."""
    made = WholeHost(one, gib=4, cpus=4, vm__min_free_kbytes="16384")
    made.files["/proc/device-tree/model"] = "Raspberry Pi 4 Model B Rev 1.4\0"
    made.link("eth0", "192.168.1.60/24", driver="bcmgenet", route=True, most=1500)
    made.link("wlan0", None, driver="brcmfmac", speed=None, wireless=True, up=False, most=1500)
    made.plain_disk("mmcblk0", gib=29, at=("/boot/firmware", "/"))
    made.counters(direct=2_000, kswapd=120_000, swapped=4_000)
    return made.host()


def cloud_shell(one: Distribution) -> Host:
    """A small virtual machine on KVM with virtio links and disks."""
    made = WholeHost(one, gib=2, cpus=1)
    made.firmware("QEMU", "Standard PC (i440FX + PIIX, 1996)")
    made.link("enp1s0", "203.0.113.9/24", driver="virtio_net", speed=None, route=True, most=65_535)
    made.link("enp7s0", "10.0.0.3/24", driver="virtio_net", speed=None, mtu=1450, most=65_535)
    made.plain_disk("vda", gib=40, at=("/boot/efi", "/"), kind="ext4")
    made.counters(swapped=900)
    return made.host()


KINDS: Final[Mapping[str, Callable[[Distribution], Host]]] = {
    "laptop": laptop,
    "desktop": desktop,
    "web-server": web_server,
    "kubernetes-node": kubernetes_node,
    "postgresql": postgresql,
    "build-server": build_server,
    "raspberry-pi": raspberry_pi,
    "cloud-shell": cloud_shell,
}
ALL: Final = [(kind, name) for kind in KINDS for name in DISTRIBUTIONS]


def quiet_host(kind: str, distribution: str) -> Host:
    """One of `ALL`."""
    return KINDS[kind](DISTRIBUTIONS[distribution])
