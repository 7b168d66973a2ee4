"""Archives of other tools as hosts: recognised by content, read by what was asked, honest about what is missing."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import scan
from advisor.host import Completed, Host, Missing
from advisor.host.provenance import read_provenance
from advisor.rules.judged import count_judged, judge
from advisor.snapshot.open import open_host
from tests.cli.inside import call_inside

MULTIPATH = """\
mpatha (360014380125989a10000400000480000) dm-0 HP,HSV450
size=100G features='1 queue_if_no_path' hwhandler='0' wp=rw
`-+- policy='round-robin 0' prio=50 status=active
  |- 1:0:0:1 sda 8:0  active ready running
  `- 2:0:0:1 sdb 8:16 failed faulty offline
"""
IP = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0
2: ens1: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP group default qlen 1000
    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 9978
    bond_slave state ACTIVE mii_status UP perm_hwaddr 52:54:00:00:00:01 queue_id 0 ad_aggregator_id 2
3: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP group default qlen 1000
    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535
    bond mode 802.3ad miimon 100 lacp_rate fast ad_aggregator 2 ad_num_ports 1 ad_partner_mac 00:11:22:33:44:55
    inet 10.1.0.7/24 brd 10.1.0.255 scope global bond0
"""
LVS = """\
  WARNING: File locking is disabled.
  LV   VG  Attr       LSize Pool Data%  Cpy%Sync LV Tags Devices                 KRahead Rahead #Str Stripe
  data vg0 -wi-ao---- 4.00t                              /dev/sdc(0),/dev/sdd(0)   2.00m   auto    2 64.00k
"""
COMMON = {
    "/proc/meminfo": "MemTotal: 16384000 kB\nMemFree: 1000000 kB\n",
    "/proc/partitions": "major minor  #blocks  name\n\n"
    + "".join(f"   8 {16 * number:8d} 104857600 sd{letter}\n" for number, letter in enumerate("abcd"))
    + "   8       49   1048576 sdd1\n 253        0 104857600 dm-0\n",
    "/proc/mounts": "/dev/sdd1 / xfs rw 0 0\n",
    "/etc/hostname": "db7\n",
    "/etc/multipath.conf": "defaults {\n}\n",
}
COMMANDS = {
    "/sbin/multipath -ll": MULTIPATH,
    "/sbin/ip -d address": IP,
    "/sbin/lvs -a -o +devices,stripes,stripesize": LVS,
    "/usr/bin/numactl --hardware": "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 8000 MB\n"
    "node 0 free: 1 MB\nnode 1 cpus: 2 3\nnode 1 size: 8000 MB\nnode 1 free: 9 MB\n"
    "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n",
    "/usr/sbin/sysctl -a": "vm.swappiness = 60\nnet.ipv4.conf.eth0/5.rp_filter = 2\n",
    "/usr/sbin/dmsetup info -c": "Name   Maj Min Stat Open Targ Event  UUID\n"
    "mpatha 253   0 L--w    1    1      2 mpath-3600\n",
    "/usr/sbin/ethtool -g ens1": "Ring parameters for ens1:\nPre-set maximums:\nRX: 4096\nTX: 4096\n"
    "Current hardware settings:\nRX: 512\nTX: 512\n",
    "/bin/lsblk -O -P": "".join(
        f'NAME="{name}" KNAME="{name}" PKNAME="" MAJ:MIN="8:{minor}" TYPE="disk" ROTA="0" SCHED="none" RA="128"'
        f' RQ-SIZE="256" SIZE="100G" MODEL="HSV450" VENDOR="HP" \n'
        for minor, name in ((0, "sda"), (16, "sdb"), (32, "sdc"), (48, "sdd"))
    ),
}


def mangled(command: str) -> str:
    """As sos names an output."""
    return re.sub(r"[^\w\-./]+", "_", re.sub(r"^/(usr/)?s?bin/", "", command)).replace("/", ".").strip("._")


def sosreport(commands: Mapping[str, str] = COMMANDS) -> dict[str, str]:
    outputs = {f"/sos_commands/plugin/{mangled(command)}": text for command, text in commands.items()}
    date = {"/sos_commands/date/date": "Wed Mar  4 11:20:05 UTC 2026\n", "/version.txt": "sosreport: 4.5\n"}
    return {f"/sosreport-db7-2026{path}": text for path, text in {**COMMON, **outputs, **date}.items()}


SYSFS = """\
lrwxrwxrwx 1 root root    0 2026-03-04 11:20 /sys/block/sda -> ../devices/pci0000:00/0000:00:05.0/block/sda
lrwxrwxrwx 1 root root    0 2026-03-04 11:20 /sys/class/block/sda -> ../../devices/pci0000:00/0000:00:05.0/block/sda
drwxr-xr-x 1 root root    0 2026-03-04 11:20 /sys/devices/pci0000:00/0000:00:05.0/block/sda/queue
-rw-r--r-- 1 root root 4096 2026-03-04 11:20 /sys/devices/pci0000:00/0000:00:05.0/block/sda/queue/nomerges
"""
SUSE = {
    "/sbin/dmsetup info": "Name:              mpatha\nState:             ACTIVE\nOpen count:        1\n"
    "Major, minor:      253, 0\nNumber of targets: 1\nUUID: mpath-3600\n",
    "/bin/lsblk -i -o NAME,KNAME,MAJ:MIN,RO,MODEL,SIZE,ROTA,SCHED": "NAME KNAME MAJ:MIN RO MODEL    SIZE ROTA SCHED\n"
    + "".join(f"sd{one}  sd{one}   8:{'abcd'.index(one) * 16:<3}    0 HSV450   100G    0 none\n" for one in "abcd"),
    "/bin/find /sys | sed -e 's/\\\\/\\\\\\\\/g' | xargs ls -ld --time-style=long-iso": SYSFS,
    "/usr/bin/systool -vb pci": '  Device = "0000:00:05.0"\n  Device path = "/sys/devices/pci0000:00/0000:00:05.0"\n'
    '    numa_node           = "1"\n    uevent              = "DRIVER=ahci\nPCI_CLASS=10601"\n',
    "/bin/grep '' /sys/block/sda/queue/rq_affinity": "/sys/block/sda/queue/rq_affinity:2\n",
    "/usr/sbin/saptune status": "enabled Notes:            1 2\napplied Notes:            900929 941735\n",
    "/bin/systemctl --no-pager --all list-units": "\N{BLACK CIRCLE} a.service loaded failed failed A\n"
    "  redis.service loaded active running R\n  minio.service loaded active exited M\n",
    **{f"/bin/systemctl show '{one}.service' | sort": f"Id={one}.service\nMainPID=7\n" for one in ("redis", "minio")},
    "/usr/sbin/tuned-adm active": "Current active profile: sapconf\n",
    "/bin/systemctl --no-pager show | sort": "Tainted=\nVersion=254.5+suse.29\n",
    "/bin/systemctl --no-pager list-unit-files": "a.timer disabled enabled\nfstrim.timer enabled enabled\n",
    "/usr/sbin/nvme list": "ERROR: Command not found or not executable\n",
}


def supportconfig() -> dict[str, str]:
    commands = {name: text for name, text in COMMANDS.items() if "dmsetup" not in name and "lsblk" not in name}
    sections = [
        f"#==[ Command ]======================================#\n# {one}\n{text}"
        for one, text in {**commands, **SUSE}.items()
    ]
    sections += [
        f"#==[ {'Configuration' if path.startswith('/etc') else 'Log'} File ]===================#\n# {path}\n{text}"
        for path, text in COMMON.items()
    ]
    sections.append("#==[ Configuration File ]===================#\n# /etc/none - File not found\n")
    sections.append("#==[ Command ]===================#\n# /bin/cat /proc/version\nLinux version 5.14\n")
    sections.append("#==[ Command ]===================#\n# /bin/uname -a\nLinux db7 5.14.21 #1 SMP x86_64 GNU/Linux\n")
    return {
        "/scc_db7/basic-environment.txt": "\n".join(sections[::2]),
        "/scc_db7/storage.txt": "\n".join(sections[1::2]),
        "/scc_db7/supportconfig.txt": "Script Version:  3.2.1\n",
    }


def insights() -> dict[str, str]:
    ps = "F UID  PID COMMAND\n4   0    1 init\n0 1000 4242 python3 /usr/bin/insights-client --offline\n"
    commands = {**COMMANDS, "/bin/ps alxwww": ps}
    outputs = {f"/data/insights_commands/{mangled(command)}": text for command, text in commands.items()}
    return {f"/insights-db7{path}": text for path, text in outputs.items()} | {
        f"/insights-db7/data{path}": text for path, text in COMMON.items()
    }


KINDS = {"sosreport 4.5": sosreport, "supportconfig 3.2.1": supportconfig, "insights archive": insights}


def packed(files: Mapping[str, str], *more: tarfile.TarInfo, form: str = "w:xz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=form) as archive:  # type: ignore[call-overload]
        for path, text in files.items():
            member = tarfile.TarInfo(path[1:])
            member.size, member.mtime = len(text.encode()), 1_772_623_205
            archive.addfile(member, io.BytesIO(text.encode()))
        for member in more:
            archive.addfile(member, io.BytesIO(bytes(member.size)) if member.size else None)
    return buffer.getvalue()


def opened(tmp_path: Path, data: bytes) -> Host:
    path = tmp_path / "archive"
    path.write_bytes(data)
    return open_host(snapshot=path)


def unpacked(tmp_path: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        place = tmp_path / "unpacked" / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "unpacked"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["w:xz", "w:gz", "w:bz2", "w:", "directory", "two streams"])
def test_each_kind_in_each_form_is_the_same_host(tmp_path: Path, kind: str, form: str) -> None:
    files = KINDS[kind]()
    if form == "directory":
        host = open_host(snapshot=unpacked(tmp_path, files))
    elif form == "two streams":
        import lzma

        plain = packed(files, form="w:")
        host = opened(tmp_path, lzma.compress(plain[:1024]) + lzma.compress(plain[1024:]))
    else:
        host = opened(tmp_path, packed(files, form=form))
    facts = scan(host)
    assert (host.origin and host.origin.title, facts.host.hostname) == (kind, "db7")
    assert (host.origin and host.origin.user, host.is_root) == (
        ("1000", False) if "insights" in kind else ("root", True)
    )
    if form != "directory":
        assert read_provenance(host).captured_at == 1_772_623_205
    links = {link.name: link for link in facts.links}
    assert (links["bond0"].mtu_max, links["bond0"].detail["ad_aggregator"]) == (65535, "2")
    assert links["bond0"].detail["ad_partner_mac"] == "00:11:22:33:44:55"
    assert links["ens1"].rings
    assert links["ens1"].rings.rx == 512
    disks = {disk.name: disk for disk in facts.disks}
    assert sorted(disks) == ["sda", "sdb", "sdc", "sdd"]
    assert (disks["sda"].size_bytes, disks["sda"].scheduler, disks["sda"].model) == (100 << 30, "none", "HSV450")
    assert disks["sdd"].partitions == ("sdd1",)
    assert [(node.cpus, node.distances) for node in facts.numa.nodes] == [("0-1", (10, 21)), ("2-3", (21, 10))]
    assert host.read("/proc/sys/net/ipv4/conf/eth0.5/rp_filter") == "2"
    arrays = {array.name: array for array in facts.arrays}
    assert (arrays["mpatha"].state, arrays["mpatha"].failed) == ("degraded", ("sdb",))
    assert "arrays.degraded" in {finding.id for finding in judge(facts)}


def test_a_supportconfig_has_the_kernels_files_as_commands(tmp_path: Path) -> None:
    host = opened(tmp_path, packed(supportconfig()))
    assert host.read("/proc/version") == "Linux version 5.14"
    answers = (host.read("/sys/block/sda/queue/nomerges"), host.run(("nvme", "list")))
    assert [one.state for one in answers if isinstance(one, Missing)] == ["unreadable", "unreadable"]
    facts = scan(host)
    (disk,) = (disk for disk in facts.disks if disk.name == "sda")
    assert disk.model == "HSV450"
    assert facts.systemd
    assert (facts.systemd.version, facts.systemd.is_running, facts.systemd.trims) == (254, True, True)
    assert (disk.numa_node, disk.pci, disk.queue["rq_affinity"]) == (1, "0000:00:05.0", "2")
    assert (facts.owners.saptune_notes, facts.owners.tuned_profile) == (("900929", "941735"), "sapconf")
    assert {role: signs for role, signs in facts.roles.items() if signs} == {"redis": ("redis.service",)}
    shown = host.run(("systemctl", "show", "--property=MainPID", "--", "redis.service"))
    assert isinstance(shown, Completed)
    assert shown.stdout.split() == ["Id=redis.service", "MainPID=7"]
    assert (facts.host.kernel, facts.host.architecture) == ("5.14.21", "x86_64")


PVS = "  PV       VG  Fmt  Attr PSize PFree\n  /dev/sdc vg0 lvm2 a--  4.00t    0\n  /dev/sda         ---  1.00t    0\n"


@pytest.mark.parametrize(("asked", "members"), [("", ("sdc", "sdd")), ("plain", ("sdc",))])
def test_volumes_of_columns(tmp_path: Path, asked: str, members: tuple[str, ...]) -> None:
    commands = {name: text for name, text in COMMANDS.items() if "dmsetup" not in name}
    if asked:
        commands = {name: text for name, text in commands.items() if "lvs" not in name}
        commands |= {"/sbin/lvs": "\n".join(line[:40] for line in LVS.splitlines()), "/sbin/pvs -a": PVS}
    files = {path: text for path, text in sosreport(commands).items() if not path.endswith("partitions")}
    arrays = {array.name: array for array in scan(opened(tmp_path, packed(files))).arrays}
    volume = arrays["vg0/data"]
    shape = (None, None, None) if asked else ("striped", 65536, 2)
    assert (volume.level, volume.chunk_bytes, volume.data_disks) == shape
    assert volume.members == members
    assert arrays["mpatha"].failed == ("sdb",)


def test_what_is_missing_is_unknown_and_asked_for(tmp_path: Path) -> None:
    files = sosreport({name: text for name, text in COMMANDS.items() if "multipath" not in name and "lvs" not in name})
    files["/sosreport-db7-2026/sos_logs/sos.log"] = (
        "2026-03-04 11:21:00,1 WARNING: [plugin:lvm2] command '/sbin/dmsetup table' timed out after 300s\n"
        "2026-03-04 11:26:00,1 INFO: Plugin block timed out\n"
    )
    files["/sosreport-db7-2026/sos_commands/lvm2/lvs"] = "bash: lvs: command not found\n"
    host = opened(tmp_path, packed(files))
    facts = scan(host)
    unknown = {one.fact: one.why for one in facts.unknown}
    assert "timed out after 300s" in unknown["arrays.device-mapper.table"]
    assert "archive.plugin_block" in unknown
    assert any(fact.startswith("arrays.mpatha") and fact.endswith(".state") for fact in unknown)
    answer = host.run(("lvs", "--all"))
    assert isinstance(answer, Missing)
    assert "command not found" in answer.why
    page = call_inside("scan", "--snapshot", tmp_path / "archive").stdout
    assert "sosreport 4.5 of 2026-03-04 11:20 UTC, as root" in page.splitlines()[0]
    assert "ask for: dmsetup table, multipath -ll (sos report -e devicemapper,multipath)" in page


def test_odd_members_are_left_out_and_named(tmp_path: Path) -> None:
    top = "sosreport-db7-2026"
    odd = []
    for name, kind, target in (
        ("proc/fifo", tarfile.FIFOTYPE, ""),
        ("sys/null", tarfile.CHRTYPE, ""),
        ("../../etc/passwd", tarfile.REGTYPE, ""),
        ("etc/shadow", tarfile.SYMTYPE, "/etc/shadow"),
        ("etc/out", tarfile.SYMTYPE, "../../../../../../etc/hostname"),
        ("etc/hard", tarfile.LNKTYPE, f"{top}/etc/hostname"),
        ("proc/" + "d/" * 80 + "x", tarfile.REGTYPE, ""),
        ("etc/\x1b[31mred", tarfile.FIFOTYPE, ""),
    ):
        member = tarfile.TarInfo(f"{top}/{name}")
        member.type, member.linkname = kind, target
        odd.append(member)
    host = opened(tmp_path, packed(sosreport(), *odd))
    assert host.read("/etc/hard") == "db7"
    # Clamped to the archive: never this machine's.
    assert host.read("/etc/out") == "db7"
    assert isinstance(host.read("/etc/shadow"), Missing)
    facts = scan(host)
    left_out = {one.fact for one in facts.unknown if one.fact.startswith("archive.")}
    assert {"archive.proc/fifo", "archive.sys/null"} <= left_out
    page = call_inside("scan", "--all", "--snapshot", tmp_path / "archive").stdout
    assert "\x1b" not in page


@pytest.mark.parametrize("form", ["gnu", "posix --sparse-version=0.0", "posix --sparse-version=0.1", "posix", "oldgnu"])
def test_a_sparse_member_is_left_out_and_what_follows_it_is_read(tmp_path: Path, form: str) -> None:
    top = unpacked(tmp_path, sosreport())
    proc, long = top / "sosreport-db7-2026/proc", "long" * 30
    with (proc / "aaa").open("wb") as file:
        for number in range(60):
            file.seek(number << 20)
            file.write(b"x")
    (proc / long).mkdir()
    (proc / long / "z").write_text("1\n")
    path = tmp_path / "archive"
    # By name: the sparse file comes first.
    command = f"tar -cSf {path} --sort=name --format={form} -C {top} sosreport-db7-2026".split()
    subprocess.run(command, check=True)
    host = open_host(snapshot=path)
    assert host.read(f"/proc/{long}/z") == "1"
    assert host.origin
    assert [why for name, why in host.origin.unknown if name == "archive.proc/aaa"] == [
        "'sosreport-db7-2026/proc/aaa': a sparse file"
    ]
    assert {disk.name for disk in scan(host).disks} == {"sda", "sdb", "sdc", "sdd"}


def test_a_large_file_is_left_out_in_bounded_memory(tmp_path: Path) -> None:
    files = {**sosreport(), "/sosreport-db7-2026/proc/noise": "".join(map(str, range(1_000_000)))}
    member = tarfile.TarInfo("sosreport-db7-2026/proc/zeros")
    member.size = 200 << 20
    path = tmp_path / "big.tar.gz"
    path.write_bytes(packed(files, member, form="w:gz"))
    code = (
        "import re, sys; from advisor.snapshot.open import open_host\n"
        "h = open_host(snapshot=sys.argv[1]); print(h.origin.unknown)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    unknown, kib = done.stdout.splitlines()
    assert "archive.proc/zeros" in unknown
    assert int(kib) < 200 << 10


@pytest.mark.parametrize("cut", [0, 1, 100, 1000, -1])
def test_a_truncated_archive_is_refused_in_words(tmp_path: Path, cut: int) -> None:
    whole = packed(sosreport())
    path = tmp_path / "cut.tar.xz"
    path.write_bytes(whole[:cut] if cut >= 0 else whole[: len(whole) // 2])
    with pytest.raises(InvalidInputError):
        open_host(snapshot=path)
    done = call_inside("scan", "--snapshot", path)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)


def test_an_exact_command_of_an_obfuscated_archive_is_found_in_any_order_of_its_words(tmp_path: Path) -> None:
    files = sosreport({"/usr/sbin/xfs_info /srv": "x", "/usr/sbin/ethtool -S --all ens1": "y"})
    host = opened(tmp_path, packed({path.replace("db7-2026", "host0-obfuscated"): files[path] for path in files}))
    assert host.origin
    assert "obfuscated" in host.origin.note
    answers = [host.run(words) for words in (("xfs_info", "/srv"), ("ethtool", "--all", "-S", "ens1"), ("nothing",))]
    assert [one.stdout if isinstance(one, Completed) else one.state for one in answers] == ["x", "y", "absent"]


LSBLK = """\
NAME          MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINT
sda             8:0    0   100G  0 disk
|-sda1          8:1    0     1G  0 part  /boot
`-sda2          8:2    0    99G  0 part
  `-vg0-root  253:0    0    50G  0 lvm   /
sdb             8:16   0   100G  0 disk
`-mpatha      253:1    0   100G  0 mpath
nvme0n1       259:0    0   1.8T  0 disk
"""
LSBLK_T = """\
NAME    ALIGNMENT MIN-IO OPT-IO PHY-SEC LOG-SEC ROTA SCHED    RQ-SIZE   RA WSAME
nvme0n1         0   4096      0    4096     512    0 none        1023  128    0B
sda             0    512      0     512     512    1 mq-deadline  256 4096    0B
"""
ISCSI = """\
Target: iqn.2003-01.org.example:t1 (non-flash)
\tCurrent Portal: 10.1.0.9:3260,1
\tPersistent Portal: 10.1.0.9:3260,1
\t\tIface Name: default
\t\tIface IPaddress: 10.1.0.7
\t\tIface Netdev:
\t\tSID: 4
\t\tiSCSI Connection State: LOGGED IN
\t\tiSCSI Session State: LOGGED_IN
\t\tRecovery Timeout: 120
\t\tHeaderDigest: CRC32C
\t\tDataDigest: None
\t\tMaxRecvDataSegmentLength: 262144
\t\tFirstBurstLength: 65536
\t\tImmediateData: Yes
\t\tInitialR2T: No
\t\tHost Number: 3\tState: running
\t\tscsi3 Channel 00 Id 0 Lun: 1
\t\t\tAttached scsi disk sdb\t\tState: running
"""
UDEV = """\
  looking at device '/devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1':
    KERNEL=="nvme0n1"
    SUBSYSTEM=="block"
    DRIVER==""
    ATTR{size}=="3750748848"
    ATTR{queue/scheduler}=="[none] mq-deadline"

  looking at parent device '/devices/pci0000:00/0000:00:05.0/nvme/nvme0':
    KERNELS=="nvme0"
    SUBSYSTEMS=="nvme"
    DRIVERS==""
    ATTRS{model}=="KIOXIA"

  looking at parent device '/devices/pci0000:00/0000:00:05.0':
    KERNELS=="0000:00:05.0"
    SUBSYSTEMS=="pci"
    DRIVERS=="nvme"
    ATTRS{numa_node}=="1"
    ATTRS{vendor}=="0x1e0f"
"""
LSPCI = """\
00:05.0 Non-Volatile memory controller [0108]: KIOXIA [1e0f:0001] (prog-if 02 [NVM Express])
\tNUMA node: 1
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x4, ASPM not supported
\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x4
"""


def test_devices_by_the_outputs_of_tools(tmp_path: Path) -> None:
    outputs = {"lsblk": LSBLK, "lsblk -t": LSBLK_T, "iscsiadm -m session -P 3": ISCSI, "lspci -nnvv": LSPCI}
    outputs["numactl --hardware"] = COMMANDS["/usr/bin/numactl --hardware"]
    outputs |= {"udevadm info -a /dev/nvme0n1": UDEV, "ip -d address": IP, "losetup -a": "/dev/loop0: [7]:2 (/srv/a)\n"}
    loops = COMMON["/proc/partitions"] + "   7        0     1024 loop0\n   7        1     1024 loop1\n"
    host = opened(tmp_path, packed({**sosreport(outputs), "/sosreport-db7-2026/proc/partitions": loops}))
    assert host.read("/sys/block/dm-0/dm/name") == "vg0-root"
    assert host.names("/sys/block/dm-0/slaves") == ("sda2",)
    assert host.names("/sys/block/dm-1/slaves") == ("sdb",)
    facts = scan(host)
    disks = {disk.name: disk for disk in facts.disks}
    nvme, disk = disks["nvme0n1"], disks["sda"]
    assert (nvme.size_bytes, nvme.pci, nvme.numa_node) == (3750748848 * 512, "0000:00:05.0", 1)
    assert nvme.pcie
    assert (nvme.pcie.speed_gts, nvme.pcie.speed_max_gts, nvme.pcie.width) == (8.0, 16.0, 4)
    assert (disk.queue["read_ahead_kb"], disk.queue["nr_requests"]) == ("4096", "256")
    assert disk.partitions == ("sda1", "sda2")
    assert disks["loop0"].detail["backing_file"] == "/srv/a"
    assert [one.fact for one in facts.unknown if "backing" in one.fact] == ["disks.loop1.backing_file"]
    assert facts.iscsi
    (session,) = facts.iscsi.sessions
    assert (session.name, session.target, session.disks) == ("session4", "iqn.2003-01.org.example:t1", ("sdb",))
    assert (session.state, session.recovery_seconds, session.immediate_data) == ("LOGGED_IN", 120, True)
    (connection,) = session.connections
    assert (connection.address, connection.port, connection.link) == ("10.1.0.9", 3260, "bond0")
    assert (connection.header_digest, connection.data_digest) == (True, False)


def test_a_folder_of_archives_is_none_of_them(tmp_path: Path) -> None:
    files = sosreport()
    more = {path.replace("db7-2026", "db8-2026"): text for path, text in files.items()}
    with pytest.raises(InvalidInputError, match="several"):
        open_host(snapshot=unpacked(tmp_path, files | more))
    host = open_host(snapshot=unpacked(tmp_path, {f"/case{path}": text for path, text in files.items()}) / "case")
    assert host.origin
    assert host.origin.title == "sosreport 4.5"


@pytest.mark.parametrize("text", ["", "\n", "bash: line 1: x: command not found\n"])
def test_outputs_that_say_nothing_leave_everything_unknown(tmp_path: Path, text: str) -> None:
    silent = dict.fromkeys((*COMMANDS, "mount -l", "df -aliT", "df -al", "smartctl -a /dev/sda", "ip route"), text)
    top = "/sosreport-db7-2026"
    files = {
        path: text for path, text in sosreport(silent).items() if path.startswith((f"{top}/sos_", f"{top}/version"))
    }
    facts = scan(opened(tmp_path, packed(files)))
    unknown = {one.fact for one in facts.unknown}
    assert {"links", "disks", "filesystems", "filesystems.used_percent", "disks.health", "sysctl", "numa"} <= unknown
    assert not any((facts.links, facts.disks, facts.filesystems, facts.sysctl))


def test_a_number_behind_a_dot_is_a_vlan_and_no_copy(tmp_path: Path) -> None:
    outputs = {f"ethtool {option}{link}": f"{link}\n" for link in ("p.9", "p", "q.9") for option in ("", "-i ")}
    host = opened(tmp_path, packed(sosreport(outputs)))
    answers = [host.run(("ethtool", *asked)) for asked in (("-i", "p"), ("-i", "p.9"), ("p",), ("-i", "q"))]
    said = [one.stdout.split()[0] if isinstance(one, Completed) else one.state for one in answers]
    assert said == ["p", "p.9", "p", "absent"]


ROUTES = """\
default proto static metric 100
\tnexthop via 10.1.0.1 dev bond0 weight 1
\tnexthop via 10.1.0.2 dev ens1 weight 1
unreachable 10.9.0.0/16 metric 4278198272
default via 10.9.0.1 dev ens1 table 7
"""
NSTAT = "TcpInSegs 9 0.0\nUdp6RcvbufErrors 7 0.0\nUdpRcvbufErrors 3 0.0\nTcpExtPruneCalled 5 0.0\n"


def test_routes_and_counters_by_the_outputs_of_tools(tmp_path: Path) -> None:
    host = opened(tmp_path, packed(sosreport({**COMMANDS, "ip route show table all": ROUTES, "nstat -zas": NSTAT})))
    facts = scan(host)
    assert {link.name: link.default_route for link in facts.links} == {"bond0": True, "ens1": False, "lo": False}
    routes = host.read("/proc/net/route")
    assert isinstance(routes, str)
    assert routes.split()[:4] == ["bond0", "00000000", "0100010A", "0003"]
    assert (facts.counters.tcp_pruned, facts.counters.udp_receive_buffer_errors) == (5, 3)


@pytest.mark.parametrize("inodes", ["df -ali -x autofs", "df -aliT -x autofs"])
def test_how_full_file_systems_are(tmp_path: Path, inodes: str) -> None:
    outputs = {
        "df -al -x autofs": "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sdd1 100 20 60 25% /\n",
        inodes: "Filesystem      Inodes IUsed IFree IUse% Mounted on\n/dev/sdd1           10     2     8   20% /\n",
        "mount -l": "/dev/sdd1 on / type xfs (rw) [root]\n",
    }
    (one,) = scan(opened(tmp_path, packed(sosreport({**COMMANDS, **outputs})))).filesystems
    assert (one.used_percent, one.inodes_used_percent) == (25, 19)


def test_secrets_reach_no_page(tmp_path: Path) -> None:
    files = sosreport({**COMMANDS, "ipmitool lan print": "x", "xfs_info /srv": "password: hunter2\n"})
    top = "/sosreport-db7-2026"
    files[f"{top}/etc/iscsi/iscsid.conf"] = "node.session.auth.password = hunter2\nnode.session.timeo.x = 5\n"
    files[f"{top}/etc/fstab"] = "//nas/x /x cifs username=u,password=hunter2 0 0\n"
    host = opened(tmp_path, packed(files))
    own = tmp_path / "own.tar.gz"
    done = call_inside("snapshot", "--from", tmp_path / "archive", "-o", own)
    assert done.returncode == 0
    texts = [host.read(path) for path in ("/etc/iscsi/iscsid.conf", "/etc/fstab")]
    answer = host.run(("xfs_info", "/srv"))
    assert isinstance(answer, Completed)
    with tarfile.open(own) as archive:
        texts += [file.read().decode() for member in archive if (file := archive.extractfile(member))]
    assert "hunter2" not in "".join(map(str, (*texts, answer.stdout)))
    again, first = (scan(one) for one in (open_host(snapshot=own), host))
    assert {one.id for one in judge(again)} == {one.id for one in judge(first)}
    assert open_host(snapshot=own).captured_at == host.captured_at


def test_a_fleet_of_mixed_archives(tmp_path: Path) -> None:
    for name, make in KINDS.items():
        (tmp_path / f"{name.partition(' ')[0]}.tar.xz").write_bytes(packed(make()))
    unpacked(tmp_path, sosreport())
    done = call_inside("fleet", "compare", *sorted(tmp_path.glob("*.tar.xz")), tmp_path / "unpacked", "--json")
    import json

    assert len(json.loads(done.stdout)["hosts"]) == 4
    document = json.loads(call_inside("scan", "--snapshot", tmp_path / "supportconfig.tar.xz", "--json").stdout)
    assert document["archive"] == {"kind": "supportconfig", "version": "3.2.1", "user": "root"}
    assert (document["captured_at"], document["source"]) == ("2026-03-04T11:20:05Z", "snapshot")


@pytest.mark.parametrize("seed", range(12))
def test_what_is_no_whole_archive_ends_in_words(tmp_path: Path, seed: int) -> None:
    """Bytes changed at random, archives within archives, and renamed files."""
    import random

    chance = random.Random(seed)
    data = bytearray(packed(sosreport(), form=chance.choice(["w:", "w:gz"])))
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if seed % 4 == 0:
        data = bytearray(packed({"/inner.tar": "x"}) + bytes(data))
    (tmp_path / "archive").write_bytes(bytes(data))
    done = call_inside("scan", "--all", "--snapshot", tmp_path / "archive")
    assert done.returncode in (0, 2)
    assert "\x1b" not in done.stdout


def test_what_an_archive_holds_nothing_of_is_no_absence(tmp_path: Path) -> None:
    top = "/sosreport-db7-2026"
    files = {f"{top}/version.txt": "sosreport: 3.9\n", f"{top}/sos_commands/date/date": "Wed 4 Mar 11:20:05 CET 2026\n"}
    files[f"{top}/sos_commands/memory/free"] = "       total used free\nMem:   16393164 7474740 185156\n"
    files[f"{top}/sos_commands/filesys/mount_-l"] = "/dev/sda1 on /data type xfs (rw,noatime) [data]\n"
    files[f"{top}/sos_commands/release/lsb_release_-a"] = "Description:\tUbuntu 20.04.3 LTS\n"
    facts = scan(opened(tmp_path, packed(files)))
    unknown = {one.fact for one in facts.unknown}
    assert {"links", "links.pci", "disks", "disks.health", "arrays", "irqs", "fibre_channel", "sysctl"} <= unknown
    judged = count_judged(facts, judge(facts))
    assert judged.rules < judged.of * 0.6
    assert (facts.host.os, facts.memory.total_bytes) == ("Ubuntu 20.04.3 LTS", 16393164 << 10)
    assert [(one.mountpoints, one.options) for one in facts.filesystems] == [(("/data",), "rw,noatime")]


@pytest.mark.parametrize("form", ["archive", "named", "renamed", "above"])
def test_vrtsexplorer(tmp_path: Path, form: str) -> None:
    top = "/VRTSexplorer_db7" if form != "renamed" else "/db7"
    files = {
        f"{top}/vxvm/vxdisk_path.out": "SUBPATH DANAME DMNAME GROUP STATE\nsda disk_0 dg1 dg ENABLED\n",
        f"{top}/llt/lltstat_-nvv": "LLT node information:\n",
        f"{top}/etc/llttab": "set-node db7\nset-cluster 7\nlink eth1 eth1 - ether - -\n",
    }
    if form == "archive":
        host = opened(tmp_path, packed(files))
    else:
        host = open_host(snapshot=unpacked(tmp_path, files) / (top[1:] if form != "above" else ""))
    assert host.origin
    assert host.origin.kind == "VRTSexplorer"
    facts = scan(host)
    assert facts.llt
    assert facts.llt.llttab
    assert facts.llt.llttab.node == "db7"
    answer = host.run(("vxdisk", "path"))
    assert isinstance(answer, Completed)
    assert "SUBPATH" in answer.stdout
