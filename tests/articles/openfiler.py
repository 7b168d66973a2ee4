"""The hosts of the Openfiler article (S003): a Linux initiator in place of the ESXi server, with four 1 GbE paths of a
VLAN and an address range each, and the storage server with eight SATA disks behind a 3ware controller."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from advisor.host import Host
from tests.cases import read_cases
from tests.facts.iscsi import IscsiTree
from tests.threeware import Unit, add_card, add_disk

IQN = "iqn.2006-01.com.openfiler:tsn.4f3a1c"
SECRET = "Chap-Secret-1234"
DATA = read_cases(__file__)

ISCSID = DATA["ISCSID"]
NEW_KERNEL = "5.14.0-427.13.1.el9_4.x86_64"
RHEL_8 = "4.18.0-553.el8_10.x86_64"
RHEL_5 = "2.6.18-419.el5"
RHEL_7 = "3.10.0-1160.el7.x86_64"
ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


class Machine(IscsiTree):
    """A host with a link for management, which carries the default route, and others for storage."""

    def __init__(self, kernel: str, memory_gib: int) -> None:
        super().__init__()
        self.entries: list[dict[str, object]] = []
        self.files |= {
            "/proc/sys/kernel/osrelease": f"{kernel}\n",
            "/proc/sys/kernel/hostname": "esx-linux\n",
            "/sys/devices/system/node/online": "0\n",
            "/sys/devices/system/cpu/online": "0-7\n",
            "/sys/devices/system/cpu/present": "0-7\n",
            "/sys/devices/system/node/node0/cpulist": "0-7\n",
            "/proc/meminfo": f"MemTotal: {memory_gib << 20} kB\nMemAvailable: {memory_gib << 19} kB\n",
        }
        for name in [one for one in self.files if "/node1/" in one]:
            del self.files[name]

    def link(self, name: str, address: str, *, mtu: int = 1500, mbps: int = 1000, default: bool = False) -> None:
        """A port of a card with one function for each."""
        number = len(self.entries) + 1
        pci = f"0000:{number:02x}:00.0"
        place = f"/sys/devices/pci0000:{number:02x}/{pci}"
        self.files |= {
            f"{place}/numa_node": "0\n",
            f"{place}/class": "0x020000\n",
            f"{place}/net/{name}/ifindex": f"{number}\n",
            f"{place}/net/{name}/speed": f"{mbps}\n",
            f"{place}/net/{name}/mtu": f"{mtu}\n",
            f"{place}/net/{name}/carrier": "1\n",
            f"{place}/net/{name}/operstate": "up\n",
        }
        self.links |= {
            f"{place}/net/{name}/device": "../..",
            f"/sys/class/net/{name}": f"../..{place.removeprefix('/sys')}/net/{name}",
            f"/sys/bus/pci/devices/{pci}": f"../../..{place.removeprefix('/sys')}",
        }
        local, _, length = address.partition("/")
        self.entries.append(
            {
                **{"ifindex": number, "ifname": name, "flags": ["BROADCAST", "UP", "LOWER_UP"], "mtu": mtu},
                **{"operstate": "UP", "link_type": "ether", "min_mtu": 68, "max_mtu": 9216},
                "addr_info": [{"family": "inet", "local": local, "prefixlen": int(length or 24)}],
            }
        )
        self.files.setdefault("/proc/net/route", ROUTES)
        if default:
            self.files["/proc/net/route"] += f"{name}\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        self.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(self.entries))

    def vlan(self, lower: str, tag: int, address: str, *, mtu: int = 1500) -> str:
        """A VLAN of a link, with its name."""
        name = self._stacked(f"{lower}.{tag}", "vlan", address, mtu)
        below = self.links[f"/sys/class/net/{lower}"].removeprefix("../../")
        self.links[f"/sys/devices/virtual/net/{name}/lower_{lower}"] = f"../../../{below.removeprefix('devices/')}"
        self.entries[-1]["link"] = lower
        self.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(self.entries))
        return name

    def bond(self, name: str, ports: Sequence[str], mtu: int = 1500) -> None:
        """A bond of links that are here."""
        self._stacked(name, "bond", None, mtu)
        for port in ports:
            below = self.links[f"/sys/class/net/{port}"].removeprefix("../../devices/")
            self.links[f"/sys/devices/virtual/net/{name}/lower_{port}"] = f"../../../{below}"
        for entry in self.entries:
            if entry["ifname"] in ports:
                entry |= {"master": name, "addr_info": []}
        self.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(self.entries))

    def _stacked(self, name: str, kind: str, address: str | None, mtu: int) -> str:
        place, number = f"/sys/devices/virtual/net/{name}", len(self.entries) + 1
        self.files |= {
            f"{place}/ifindex": f"{number}\n",
            f"{place}/mtu": f"{mtu}\n",
            f"{place}/carrier": "1\n",
            f"{place}/operstate": "up\n",
        }
        self.links[f"/sys/class/net/{name}"] = f"../../devices/virtual/net/{name}"
        local, _, length = (address or "").partition("/")
        self.entries.append(
            {
                **{"ifindex": number, "ifname": name, "flags": ["BROADCAST", "UP", "LOWER_UP"], "mtu": mtu},
                **{"operstate": "UP", "link_type": "ether", "min_mtu": 68, "max_mtu": 65535},
                "linkinfo": {"info_kind": kind},
                "addr_info": [{"family": "inet", "local": local, "prefixlen": int(length)}] if address else [],
            }
        )
        return name

    def mapped(
        self,
        name: str,
        disks: Sequence[str],
        *,
        selector: str = "service-time",
        per_path: Sequence[str] = ("1",),
        groups: int = 1,
    ) -> None:
        """A multipath map over these disks, in priority groups of equal size; ``per_path`` are the arguments of each
        path in its table."""
        self.dm(0, name, "mpath-36589cfc000000a1b2c3d4e5f60718293", disks)
        numbers = {disk: self.files[f"{self._block(disk)}/dev"].strip() for disk in disks}
        size = len(disks) // groups
        parts = [disks[at : at + size] for at in range(0, len(disks), size)]
        table = " ".join(
            f"{selector} 0 {len(part)} {len(per_path)} "
            + " ".join(f"{numbers[disk]} {' '.join(per_path)}" for disk in part)
            for part in parts
        )
        self.answer(("dmsetup", "table"), f"{name}: 0 8192 multipath 0 0 {len(parts)} 1 {table}\n")
        states = " ".join(
            f"{'A' if at == 0 else 'E'} 0 {len(part)} 1 " + " ".join(f"{numbers[disk]} A 0 0" for disk in part)
            for at, part in enumerate(parts)
        )
        self.answer(("dmsetup", "status", "--noflush"), f"{name}: 0 8192 multipath 2 0 0 0 {len(parts)} 1 {states}\n")

    def _block(self, disk: str) -> str:
        return "/sys" + self.links[f"/sys/block/{disk}"].removeprefix("..")

    def storage(self, number: int, vendor: str, model: str) -> None:
        """What the disks of a session say that they are."""
        for path in [one for one in self.files if f"/session{number}/target" in one and one.endswith("/vendor")]:
            self.files |= {path: f"{vendor:8}\n", path.replace("/vendor", "/model"): f"{model:16}\n"}

    def stat(self, disk: str, reads: int, writes: int = 0) -> str:
        """Counters since the host started: requests, and 64 sectors each. Returns the file."""
        path = f"{self._block(disk)}/stat"
        self.files[path] = f"{reads} 0 {64 * reads} 9 {writes} 0 {64 * writes} 9 0 9 9\n"
        return path


def initiator(
    *,
    names: Sequence[str] = ("eth1", "eth2", "eth3", "eth4"),
    mtu: int | Sequence[int] = 1500,
    kernel: str = NEW_KERNEL,
    maps: bool = True,
    conf: str | None = None,
    files: Mapping[str, str] | None = None,
    records: bool = False,
    selector: str = "service-time",
    per_path: Sequence[str] = ("1",),
    groups: int = 1,
    requests: Sequence[int] = (),
    sessions: Mapping[str, str] | None = None,
    subnets: Sequence[int] = (),
    mbps: Sequence[int] = (),
    timeout: str = "15",
    iqn: str = IQN,
) -> Machine:
    """Sessions by each of the links, each with a disk; with ``maps`` these are paths of one multipath map.

    ``requests`` are the reads of each path since the start; ``records`` makes a node record for each.
    """
    made = Machine(kernel, 48)
    made.link("eth0", "10.0.2.15/24", default=True)
    sizes = [mtu] * len(names) if isinstance(mtu, int) else list(mtu)
    disks = tuple(f"sd{'bcdefghijkl'[at]}" for at in range(len(names)))
    for at, name in enumerate(names):
        net = subnets[at] if subnets else at + 1
        own = f"10.20.{net}.{7 + at}"
        made.link(name, f"{own}/24", mtu=sizes[at], mbps=mbps[at] if mbps else 1000)
        where = {"local": own, "portal": f"10.20.{net}.20", "recovery_tmo": timeout, **(sessions or {})}
        made.session(at + 1, disks=(disks[at],), target=iqn, **where)
        made.storage(at + 1, "OPNFILER", "VIRTUAL-DISK")
        if records:
            place = f"/etc/iscsi/nodes/{iqn}/10.20.{at + 1}.20,3260,1/default"
            made.files[place] = record(f"10.20.{at + 1}.20", iqn=iqn)
    made.files["/etc/iscsi/iscsid.conf"] = ISCSID
    if maps:
        made.mapped("mpatha", disks, selector=selector, per_path=per_path, groups=groups)
        made.mount("253:0", "/vmfs/datastore1", "xfs")
        made.files["/etc/multipath.conf"] = "defaults {\n\tuser_friendly_names yes\n}\n" if conf is None else conf
        if conf == "":
            del made.files["/etc/multipath.conf"]
    for disk, count in zip(disks, requests, strict=False):
        made.stat(disk, count)
    made.files |= files or {}
    return made


def storage(
    *, kind: str = "RAID-10", drives: int = 8, gib: float = 7450.56, mtu: int = 1500, peers: int = 4, lio: bool = False
) -> Host:
    """The storage server: a 3ware unit that IET (LIO with ``lio``) exports, and four links towards the initiator."""
    made = Machine("2.6.29.6-0.24.smp.gcc3.4.x86_64" if not lio else NEW_KERNEL, 8)
    made.link("eth0", "10.0.2.20/24", default=True)
    for at in range(4):
        made.link(f"eth{at + 1}", f"10.20.{at + 1}.20/24", mtu=mtu)
    unit = Unit(0, kind, drives, gib, "9QG0C0JW1E8B8200B7E3")
    add_disk(made, "sdb", 6, unit, number="8:16")
    add_card(made, 0, [unit])
    if lio:
        made.export("sdb", *(f"10.20.{at + 1}.20:3260" for at in range(peers)))
        return made.host()
    lun = "lun:0 state:0 iotype:blockio iomode:wt blocks:15625000000 blocksize:512 path:/dev/sdb"
    made.files["/proc/net/iet/volume"] = f"tid:1 name:{IQN}\n\t{lun}\n"
    made.files["/proc/net/iet/session"] = f"tid:1 name:{IQN}\n" + "".join(
        f"\tsid:{at} initiator:iqn.1998-01.com.vmware:esx1\n"
        f"\t\tcid:0 ip:10.20.{at + 1}.7 state:active hd:none dd:none\n"
        for at in range(peers)
    )
    return made.host()


def record(address: str, *, iqn: str = IQN, **settings: str) -> str:
    """A node record as iscsiadm writes it, with a password of CHAP."""
    values = {"replacement_timeout": "120", "cmds_max": "128", "queue_depth": "32", **settings}
    return (
        "# BEGIN RECORD 6.2.1.9\n"
        f"node.name = {iqn}\nnode.tpgt = 1\nnode.startup = automatic\niface.iscsi_ifacename = default\n"
        f"node.conn[0].address = {address}\nnode.conn[0].port = 3260\n"
        f"node.session.auth.authmethod = CHAP\nnode.session.auth.password = {SECRET}\n"
        f"node.session.timeo.replacement_timeout = {values['replacement_timeout']}\n"
        f"node.session.cmds_max = {values['cmds_max']}\nnode.session.queue_depth = {values['queue_depth']}\n"
        "node.session.iscsi.FirstBurstLength = 262144\nnode.session.iscsi.MaxBurstLength = 16776192\n"
        "node.conn[0].iscsi.MaxRecvDataSegmentLength = 262144\n# END RECORD\n"
    )


def article(**parts: object) -> Host:
    """The host of `initiator`."""
    return initiator(**parts).host()  # type: ignore[arg-type]
