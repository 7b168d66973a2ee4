"""Facts of attached storage and of what fills up: Fibre Channel, dm-crypt, ZFS, modules, formats, bonds, NFS."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor.facts.block.disks import read_disks
from advisor.facts.block.dm import EncryptedDevice, list_crypt_options, read_encrypted
from advisor.facts.block.drive_health import (
    LbaFormat,
    parse_identify_namespace,
    parse_write_ordering,
    with_formats,
    with_write_ordering,
)
from advisor.facts.block.filesystems import read_filesystems
from advisor.facts.block.mounts import DF
from advisor.facts.block.stacked import ZPOOL, ZfsPool, read_zfs_pools
from advisor.facts.network.ethtool_text import best_advertised_mbps, parse_ethtool_settings
from advisor.facts.network.ip_text import parse_ip_links
from advisor.facts.remote.network_storage import (
    FcPort,
    RemotePort,
    parse_fc_speeds,
    read_fibre_channel,
    read_network_storage,
)
from advisor.facts.system.memory import DMIDECODE, MemoryModule, parse_dmidecode, read_memory_modules
from advisor.facts.system.roles import CEPH_CONFIG, OsdCapacity, StorageSoftware, parse_osd_capacities, read_software
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from advisor.host.ethtool import best_mode_mbps
from advisor.host.trace_instance import pack_identify
from tests.cases import read_cases
from tests.rules.build import disk, link


def host_of(
    files: Mapping[str, str | bytes], commands: Mapping[tuple[str, ...], str] | None = None, **how: bool
) -> Host:
    data = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    answers = {argv: Completed(0, text, "") for argv, text in (commands or {}).items()}
    return Host(MemoryFiles(data), RecordedCommands(answers), is_root=how.get("is_root", True))


def test_ports_of_fibre_channel() -> None:
    remote = "/sys/class/fc_remote_ports"
    files = {
        "/sys/class/fc_host/host10/port_state": "Online\n",
        "/sys/class/fc_host/host10/speed": "16 Gbit\n",
        "/sys/class/fc_host/host10/supported_speeds": "8 Gbit, 16 Gbit, 32 Gbit\n",
        "/sys/class/fc_host/host1/port_state": "Linkdown\n",
        "/sys/class/fc_host/host1/speed": "unknown\n",
        f"{remote}/rport-10:0-2/port_state": "Online\n",
        f"{remote}/rport-10:0-2/roles": "FCP Target\n",
        f"{remote}/rport-10:0-2/fast_io_fail_tmo": "off\n",
        f"{remote}/rport-10:0-2/dev_loss_tmo": "30\n",
    }
    assert read_fibre_channel(host_of(files)) == (
        FcPort("host1", "Linkdown", 0, 0, ()),
        FcPort("host10", "Online", 16, 32, (RemotePort("rport-10:0-2", "Online", True, "off", 30),)),
    )
    assert read_fibre_channel(host_of({})) == ()
    assert parse_fc_speeds("4 Gbit, x Gbit, 8 Gbit") == (4, 8)


DATA = read_cases(__file__)


def test_a_lun_names_its_port_and_its_access_state() -> None:
    place = "/sys/devices/pci0000:00/0000:00:03.0/host1/rport-1:0-2/target1:0:0/1:0:0:0"
    inquiry = bytes([0, 0, 6, 0x12, 0x20, 0x30]) + b"VENDOR".ljust(30)
    files: dict[str, str | bytes] = {
        f"{place}/block/sdb/size": "2000\n",
        f"{place}/block/sdb/device/queue_depth": "64\n",
        f"{place}/block/sdb/device/dh_state": "alua\n",
        f"{place}/block/sdb/device/access_state": "active/optimized\n",
        f"{place}/block/sdb/device/inquiry": inquiry,
        f"{place}/block/sdb/queue/discard_max_bytes": "0\n",
    }
    data = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    links = {"/sys/block/sdb": f"..{place.removeprefix('/sys')}/block/sdb"}
    found = read_disks(Host(MemoryFiles(data, links), RecordedCommands({})), Unknowns())[0]
    assert dict(found.detail) == DATA["a_lun_names_its_port_and_its_access"]
    assert found.queue["discard_max_bytes"] == "0"


def test_queues_of_nvme_over_tcp() -> None:
    files = DATA["queues_of_nvme_over_tcp"]
    found = read_disks(host_of(files), Unknowns())[0].detail
    assert (found["transport"], found["queue_count"], found["sqsize"]) == ("tcp", "5", "127")


def test_options_of_dm_crypt() -> None:
    head = "luks-1: 0 2097152 crypt aes-xts-plain64 :64:logon:cryptsetup:x 0 259:1 32768"
    table = f"{head} 2 allow_discards no_read_workqueue\n"
    files = DATA["options_of_dm_crypt"]
    unknown = Unknowns()
    assert read_encrypted(host_of(files, {("dmsetup", "table"): table}), unknown) == (
        EncryptedDevice("luks-1", "dm-0", ("nvme0n1p2",), ("allow_discards", "no_read_workqueue")),
    )
    assert not unknown.listed()
    plain = read_encrypted(host_of(files), unknown)
    assert plain[0].options is None
    assert [one.fact for one in unknown.listed()] == ["encrypted.options"]
    assert list_crypt_options(("aes", "0" * 64, "0", "259:1", "0")) == ()
    assert list_crypt_options(("aes", "key", "0", "8:1", "0", "x", "no_read_workqueue")) == ()


DMI = DATA["DMI"]


def test_modules_of_memory() -> None:
    assert parse_dmidecode(DMI) == (
        MemoryModule("CPU1_DIMM_A1", "NODE 1", 32 << 30, "DDR5", 4800, 4400),
        MemoryModule("CPU1_DIMM_A2", "", 0, None, None, None),
        MemoryModule("A3", "", 16 << 30, None, 2400, 2133),
    )
    host = host_of({}, {DMIDECODE: DMI})
    assert len(read_memory_modules(host, is_virtual=False, unknown=Unknowns())) == 3
    assert read_memory_modules(host, is_virtual=True, unknown=Unknowns()) == ()


def identify_page(*formats: tuple[int, int, int], used: int = 0) -> bytes:
    """struct nvme_id_ns: nlbaf at 25, flbas at 26, LBA formats of 4 bytes from 128 on."""
    page = bytearray(4096)
    page[25], page[26] = len(formats) - 1, used
    for at, (metadata, shift, performance) in enumerate(formats):
        page[128 + 4 * at : 132 + 4 * at] = bytes((metadata & 0xFF, metadata >> 8, shift, performance))
    return bytes(page)


def test_formats_of_a_namespace() -> None:
    page = identify_page((0, 9, 2), (8, 9, 0), (0, 12, 0))
    assert parse_identify_namespace(page) == (
        LbaFormat(512, 0, 2),
        (LbaFormat(512, 0, 2), LbaFormat(512, 8, 0), LbaFormat(4096, 0, 0)),
    )
    assert parse_identify_namespace(bytes(4096)) is None
    assert parse_identify_namespace(page[:4000]) is None
    high = identify_page(*[(0, 12, 0)] * 16, (0, 9, 1), used=0x20)
    found = parse_identify_namespace(high)
    assert found is not None
    assert found[0] == LbaFormat(512, 0, 1)
    assert len(pack_identify(0x1000, 1)) == 72
    assert pack_identify(0x1000, 1)[0] == 6


def test_a_drive_with_a_better_format_says_so() -> None:
    root = Host(MemoryFiles({}), RecordedCommands({}), is_live=True, is_root=True)

    def formats_of(page: bytes | Missing, host: Host = root) -> Mapping[str, str]:
        return with_formats(host, (disk("nvme0n1"),), lambda name: page)[0].detail

    assert formats_of(identify_page((0, 9, 2), (0, 12, 0))) == {
        "lba_format": "512 bytes (good)",
        "better_lba_format": "4096 bytes (best)",
    }
    # One with metadata is no alternative.
    assert formats_of(identify_page((0, 9, 2), (8, 12, 0))) == {"lba_format": "512 bytes (good)"}
    assert formats_of(Missing("unreadable", "Permission denied")) == {}
    assert formats_of(identify_page((0, 9, 2), (0, 12, 0)), Host(MemoryFiles({}), RecordedCommands({}))) == {}


@pytest.mark.parametrize(("text", "found"), DATA["write_ordering_of_an_adapter"])
def test_write_ordering_of_an_adapter(text: str, found: str | None) -> None:
    assert parse_write_ordering(text) == found
    own = link("eth0", detail={"rdma_device": "mlx5_0"})
    host = host_of({}, {("mlxconfig", "-d", str(own.pci), "query", "PCI_WR_ORDERING"): text})
    assert with_write_ordering(host, (own,))[0].detail.get("pci_write_ordering") == found


def test_modes_of_a_link() -> None:
    assert best_mode_mbps(1 << 5 | 1 << 12, 1 << 5 | 1 << 12) == 10_000
    assert best_mode_mbps(1 << 5 | 1 << 12, 1 << 5) == 1000
    assert best_mode_mbps(1 << 31 | 1 << 93, ~0) == 800_000
    assert best_mode_mbps(1 << 6 | 1 << 49, ~0) == 0
    text = (
        "Settings for eth0:\n\tSupported link modes:   100baseT/Full\n\t                        10000baseKR/Full\n"
        "\tAdvertised link modes:  100baseT/Full\n\tSpeed: 100Mb/s\n"
    )
    settings = parse_ethtool_settings(text)
    assert not isinstance(settings, Missing)
    assert best_advertised_mbps(settings) == 100
    assert best_advertised_mbps({}) is None


def test_partners_of_a_bond() -> None:
    text = """[{"ifname":"bond0","flags":["UP"],"linkinfo":{"info_kind":"bond","info_data":{"mode":"802.3ad",
    "ad_info":{"aggregator":1,"num_ports":2,"partner_mac":"00:00:00:00:00:00"}}}},
    {"ifname":"eth0","linkinfo":{"info_slave_kind":"bond","info_slave_data":{"state":"ACTIVE","ad_aggregator_id":2}}}]"""
    found = parse_ip_links(text)
    assert found["bond0"].detail == {"mode": "802.3ad", "ad_aggregator": "1", "ad_partner_mac": "00:00:00:00:00:00"}
    assert found["eth0"].detail["port_ad_aggregator_id"] == "2"


def test_space_of_a_file_system() -> None:
    files = {
        "/proc/self/mountinfo": "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
        "/sys/block/sda/size": "100\n",
        "/sys/class/block/sda1/dev": "8:1\n",
    }
    table = "Type 1B-blocks Used Avail Inodes IFree Mounted on\next4 1000 919 81 1000 50 /\n"
    found = read_filesystems(host_of(files, {DF: table}), Unknowns())[0]
    assert (found.used_percent, found.inodes_used_percent) == (91, 95)
    bare = read_filesystems(host_of(files), Unknowns())[0]
    assert (bare.used_percent, bare.inodes_used_percent) == (None, None)


def test_connections_of_an_nfs_mount() -> None:
    options = "rw,vers=4.1,nconnect=8,proto=tcp,clientaddr=10.0.0.1,addr=10.0.0.9"
    files = {
        "/proc/self/mountinfo": f"30 1 0:50 / /mnt rw - nfs4 filer:/vol {options}\n"
        "31 1 0:51 / /old rw - nfs filer:/old rw,vers=3,proto=tcp,addr=10.0.0.9\n"
    }
    found = {one.name: one for one in read_network_storage(host_of(files), (), (), None)}
    assert (found["/mnt"].version, found["/mnt"].connections) == ("4.1", 8)
    assert (found["/old"].version, found["/old"].connections) == ("3", 1)


def test_pools_of_zfs() -> None:
    files = {"/proc/spl/kstat/zfs/tank/state": "ONLINE\n", "/proc/spl/kstat/zfs/arcstats": "x\n"}
    unknown = Unknowns()
    assert read_zfs_pools(host_of(files, {ZPOOL: "tank\tONLINE\t91\n"}), unknown) == (ZfsPool("tank", "ONLINE", 91),)
    assert read_zfs_pools(host_of(files), unknown) == (ZfsPool("tank", "ONLINE", None),)
    assert [one.fact for one in unknown.listed()] == ["zfs.used_percent"]
    assert read_zfs_pools(host_of({}), Unknowns()) == ()


CEPH = """[{"section":"osd.3","name":"osd_mclock_max_capacity_iops_ssd","value":"240000.5","level":"basic"},
{"section":"mgr","name":"mgr/dashboard/password","value":"secret"},
{"section":"osd.4","name":"osd_mclock_max_capacity_iops_hdd","value":"x"}]"""


def test_software_with_rules_of_its_own() -> None:
    assert parse_osd_capacities(CEPH) == (OsdCapacity("osd.3", "ssd", 240000.5),)
    with pytest.raises(ValueError, match="no list"):
        parse_osd_capacities("{}")
    assert read_software(host_of({}), Unknowns()) is None
    files = {
        "/var/lib/ceph/osd/ceph-3/block": "",
        "/usr/lpp/mmfs/bin/mmvdisk": "",
        "/etc/cassandra/cassandra.yaml": "keystore_password: secret",
    }
    found = read_software(host_of(files, {CEPH_CONFIG: CEPH}), Unknowns())
    assert found == StorageSoftware(
        declustered_raid=True,
        cassandra="/var/lib/cassandra/data",
        osd_capacities=(OsdCapacity("osd.3", "ssd", 240000.5),),
    )
    unknown = Unknowns()
    read_software(host_of(files, {CEPH_CONFIG: "nonsense"}), unknown)
    assert [one.why for one in unknown.listed()] == ["ceph printed no JSON"]
