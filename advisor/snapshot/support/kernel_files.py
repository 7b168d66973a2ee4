"""Files of the kernel that an archive lacks, by what the outputs in it say they held.

A sosreport has little of /sys, but the outputs of tools that print it: udevadm, lsblk, lspci, numactl, dmsetup, sysctl.
What they print is put where the kernel has it, so that the same readers serve every kind of host. A file that is in
the archive itself is never replaced, and a size that a tool has rounded is not taken.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from advisor.facts.block.block import whole_of
from advisor.facts.settings.sysctl import key_path
from advisor.host import is_count, lazy_regex
from advisor.snapshot.support.commands import ArchiveCommands

_NODES = "/sys/devices/system/node"
_SECTOR_BYTES = 512
_DEVICE = lazy_regex(r"looking at (?:parent )?device '(/devices/[^']{1,1024})':")
_ATTRIBUTE = lazy_regex(r' {4}(ATTRS?\{([^}]{1,200})\}|SUBSYSTEMS?|DRIVERS?)=="(.*)"$')
_PAIR = lazy_regex(r'([A-Z][A-Z0-9:%_-]*)="([^"]*)"')
_NAME = lazy_regex(r"[\w.!:+@-]{1,128}")

_LSBLK_QUEUE = {
    "RA": "queue/read_ahead_kb",
    "ROTA": "queue/rotational",
    "SCHED": "queue/scheduler",
    "RQ-SIZE": "queue/nr_requests",
    "LOG-SEC": "queue/logical_block_size",
    "PHY-SEC": "queue/physical_block_size",
    "MIN-IO": "queue/minimum_io_size",
    "OPT-IO": "queue/optimal_io_size",
    "MODEL": "device/model",
    "VENDOR": "device/vendor",
    "STATE": "device/state",
    "MAJ:MIN": "dev",
}
_LEFT = frozenset({"KNAME", "PKNAME", "MODEL", "VENDOR", "SCHED", "STATE"})
"""Columns of lsblk's tree that hold words, and are never followed by one of numbers that may be empty."""
_ISCSI = {
    **{"Iface Name": "ifacename", "Iface Initiatorname": "initiatorname", "Recovery Timeout": "recovery_tmo"},
    **{"FirstBurstLength": "first_burst_len", "MaxBurstLength": "max_burst_len", "ImmediateData": "immediate_data"},
    **{"InitialR2T": "initial_r2t", "HeaderDigest": "header_digest", "DataDigest": "data_digest"},
    "MaxRecvDataSegmentLength": "max_recv_dlength",
}
_OF_CONNECTION = frozenset({"HeaderDigest", "DataDigest", "MaxRecvDataSegmentLength"})
_PCI_SPEEDS = {"LnkCap": "max_link", "LnkSta": "current_link"}


class KernelFiles:
    """Files and links below /proc and /sys, put together from texts. ``places`` are directories of devices by the
    kernel's name."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.directories: set[str] = set()

    def put(self, path: str, value: str) -> None:
        self.files.setdefault(path, value.encode("utf-8", "surrogateescape") + b"\n")

    def link(self, path: str, target: str) -> None:
        """A link to a directory, relative as the kernel's are."""
        self.links.setdefault(path, os.path.relpath(target, path.rpartition("/")[0]))
        self.directories.add(target)


def read_kernel_files(
    commands: ArchiveCommands, partitions: str, meminfo: str, blocks: Mapping[str, str]
) -> KernelFiles:
    """Everything that the outputs say. ``partitions`` and ``meminfo`` are files of /proc; ``blocks`` are the
    places of the block devices whose directories the archive has itself, by name."""
    made = KernelFiles()
    _add_sysctl(made, commands)
    places = dict(blocks)
    for text in commands.texts(r"ls_-\w*l\w*_(?:--time-style_long-iso_)?\.?sys\.block"):
        for target in re.findall(r" -> \.\./(devices/[\w./:@!+,-]{1,1000})$", text, re.MULTILINE):
            if ".." not in target.split("/"):
                _place_block(made, f"/sys/{target}", places, is_partition=False)
    for text in commands.texts(r"udevadm_info_(?:--export-db|-e)"):
        _add_udev_database(made, text, places)
    for text in commands.texts(r"udevadm_info_(-\w+_)*-\w*a\w*_.*"):
        _add_udev_walk(made, text, places)
    for text in commands.texts(r"iscsiadm_-m_session_-P_?[123]"):
        _add_iscsi(made, text, places)
    _add_partitions(made, partitions, places)
    for text in commands.texts(r"lsblk_.*-\w*P.*"):
        _add_lsblk(made, [dict(_PAIR.findall(line)) for line in text.splitlines()], places)
    for text in commands.texts(r"lsblk(?:_-[ait]+)*(?:_-o_.*)?"):
        _add_lsblk(made, list(_rows_of_tree(text)), places)
    _add_mappings(made, commands, places)
    for text in commands.texts(r"losetup_-a"):
        for name, path in re.findall(r"^/dev/(loop[0-9]+): \S+ \((/.{0,1000}[^*\n])\)", text, re.MULTILINE):
            if name in places:
                made.put(f"{places[name]}/loop/backing_file", path)
    for text in commands.texts(r"grep_\.sys\.block\..*"):
        for name, path, value in re.findall(r"^/sys/block/([^/:]+)(/[\w/-]+):(.*)$", text, re.MULTILINE):
            if name in places:
                made.put(f"{places[name]}{path}", value)
    for text in commands.texts(r"systool_-v[bc]_\w+"):
        _add_systool(made, text)
    for text in commands.texts(r"lspci_-\w*vv\w*"):
        _add_lspci(made, text)
    for name, text in commands.named_texts(r"ethtool_-i_(.+)"):
        _add_adapter(made, name, text)
    for text in commands.texts(r"numactl_(--hardware|-H)"):
        _add_numactl(made, text)
    for text in commands.texts(r"lscpu"):
        _add_lscpu(made, text)
    for text in commands.texts(r"ip_route(_show|_list)?(_table_(all|main))?"):
        _add_routes(made, text)
    for text in commands.texts(r"nstat_-\w*a\w*"):
        _add_counters(made, text)
    for text in commands.texts(r"systemctl_(--[a-z-]+_)*list-units.*"):
        for unit in re.findall(r"^\W*([\w:.@\\-]+\.(?:service|scope)) +loaded +active +running\b", text, re.MULTILINE):
            # As systemd keeps them; where a link leads, which is the id of the run, no table says.
            made.links.setdefault(f"/run/systemd/units/invocation:{unit}", "unknown")
    for text in commands.texts(r"systemctl_(--[a-z-]+_)*list-unit-files"):
        units = re.findall(r"^([\w:.@\\-]+\.timer) +(enabled|disabled|static)\b", text, re.MULTILINE)
        for unit, state in units:
            # That it could be asked says that systemd is the init of this host, as sd_booted(3) tells by the directory.
            made.directories.add("/run/systemd/system")
            if state == "enabled":
                made.links.setdefault(
                    f"/etc/systemd/system/timers.target.wants/{unit}", f"/usr/lib/systemd/system/{unit}"
                )
    for text in commands.texts(r"saptune_(.*_)?status.*"):
        for notes in re.findall(r'^applied Notes: +(.*)$|"Notes applied": *\[([^\]]*)\]', text, re.MULTILINE):
            for note in re.findall(r"\w[\w.-]{0,63}", "".join(notes)):
                made.put(f"/run/saptune/saved_state/{note}", "")
    for text in commands.texts(r"mount(_-l)?"):
        rows = re.findall(r"^(\S+) on (/\S*) type (\S+) \(([^\s)]+)\)", text, re.MULTILINE)
        # Every host has a root: an output without a row says nothing.
        if rows:
            made.put("/proc/mounts", "\n".join(f"{' '.join(row)} 0 0" for row in rows))
    for text in commands.texts(r"free(_-k)?"):
        for kind, total, free in re.findall(r"^(Mem|Swap): +([0-9]+) +[0-9]+ +([0-9]+)\b", text, re.MULTILINE):
            meminfo += f"{kind}Total: {total} kB\n{kind}Free: {free} kB\n"
        made.put("/proc/meminfo", meminfo)
    for text in commands.texts(r"lsb_release_-a"):
        if name := re.search(r"^Description:\s+(\S.{0,100})$", text, re.MULTILINE):
            made.put("/usr/lib/os-release", f'PRETTY_NAME="{name[1]}"')
    for text in commands.texts(r"tuned-adm_active"):
        if profile := re.search(r"^Current active profile: (\S.{0,200})$", text, re.MULTILINE):
            # It says this only where the daemon runs.
            made.put("/etc/tuned/active_profile", profile[1])
            made.links.setdefault("/run/systemd/units/invocation:tuned.service", "unknown")
    for text in commands.texts(r"uname_-a|uname"):
        words = re.match(r"Linux (\S{1,64}) (\S{1,64}) ", text)
        for number, name in enumerate(("hostname", "osrelease"), start=1):
            if words:
                made.put(f"/proc/sys/kernel/{name}", words[number])
    if any(re.search(r"\bx86_64\b", text) for text in commands.texts(r"uname_-a|uname")):
        # AT_PAGESZ of getauxval(3); this architecture has one size.
        made.files["/proc/self/auxv"] = b"".join(word.to_bytes(8, "little") for word in (6, 4096, 0, 0))
    if made.files.get(f"{_NODES}/online") == b"0\n":
        # The only node has all of the memory, and is at the distance that ACPI (6.2.15) gives a node to itself.
        made.put(f"{_NODES}/node0/distance", "10")
        lines = re.findall(r"^(?:MemTotal|MemFree):.*$", meminfo, re.MULTILINE)
        made.put(f"{_NODES}/node0/meminfo", "\n".join(f"Node 0 {line}" for line in lines))
    return made


def _add_sysctl(made: KernelFiles, commands: ArchiveCommands) -> None:
    for text in commands.texts(r"sysctl_-\w*[aA]\w*"):
        for line in text.splitlines():
            key, sign, value = line.partition(" = ")
            if sign and re.fullmatch(r"[\w./@:-]{1,200}", key) and ".." not in key:
                made.put(key_path(key), value)


def _place_block(made: KernelFiles, path: str, places: dict[str, str], *, is_partition: bool) -> None:
    """The links by which the kernel shows a block device, which lies at ``path`` below /sys."""
    name = path.rpartition("/")[2]
    if name in places or not _NAME.fullmatch(name):
        return
    places[name] = path
    made.link(f"/sys/class/block/{name}", path)
    if is_partition:
        return
    made.link(f"/sys/block/{name}", path)
    parent = re.sub(r"/(?:block/)?[^/]+$", "", path)
    if not path.startswith("/sys/devices/virtual/"):
        made.link(f"{path}/device", parent)


def _add_udev_database(made: KernelFiles, text: str, places: dict[str, str]) -> None:
    for block in text.split("\n\n"):
        words = dict(re.findall(r"^E: ?([A-Z_0-9]+)=(.*)$", block, re.MULTILINE))
        path = words.get("DEVPATH", "")
        if not path.startswith("/devices/") or ".." in path.split("/") or len(path) > 1024:
            continue
        _add_device(made, f"/sys{path}", words.get("SUBSYSTEM", ""), words.get("DRIVER", ""), places, words)


def _add_device(
    made: KernelFiles, path: str, subsystem: str, driver: str, places: dict[str, str], words: Mapping[str, str]
) -> None:
    name = path.rpartition("/")[2]
    if subsystem == "block":
        is_partition = words.get("DEVTYPE") == "partition" or "PARTN" in words
        _place_block(made, path, places, is_partition=is_partition)
        if is_partition and is_count(words.get("PARTN", "")):
            made.put(f"{path}/partition", words["PARTN"])
        if "MAJOR" in words and "MINOR" in words:
            made.put(f"{path}/dev", f"{words['MAJOR']}:{words['MINOR']}")
        for own, attribute in (("DM_NAME", "dm/name"), ("DM_UUID", "dm/uuid")):
            if own in words:
                made.put(f"{path}/{attribute}", words[own])
    elif subsystem == "net" and "/net/" in path:
        made.link(f"/sys/class/net/{name}", path)
        if is_count(words.get("IFINDEX", "")):
            made.put(f"{path}/ifindex", words["IFINDEX"])
        if "/virtual/" not in path:
            made.link(f"{path}/device", path.rpartition("/net/")[0])
    elif subsystem == "pci":
        made.link(f"/sys/bus/pci/devices/{name}", path)
        vendor, _, device = words.get("PCI_ID", "").lower().partition(":")
        for attribute, value in (("vendor", vendor), ("device", device), ("class", words.get("PCI_CLASS", ""))):
            if value:
                made.put(f"{path}/{attribute}", f"0x{value.zfill(6 if attribute == 'class' else 4)}")
    if driver and _NAME.fullmatch(driver) and subsystem in ("pci", "virtio"):
        made.link(f"{path}/driver", f"/sys/bus/{subsystem}/drivers/{driver}")


def _add_udev_walk(made: KernelFiles, text: str, places: dict[str, str]) -> None:
    """What ``udevadm info -a`` prints: a device and its parents, each with all of its attributes."""
    for part in text.split("\n\n"):
        lines = part.strip("\n").splitlines()
        head = _DEVICE.search(lines[0]) if lines else None
        if head is None or ".." in head[1].split("/"):
            continue
        path = f"/sys{head[1]}"
        values = {(found[2] or found[1].rstrip("S")): found[3] for line in lines if (found := _ATTRIBUTE.match(line))}
        subsystem, driver = values.pop("SUBSYSTEM", ""), values.pop("DRIVER", "")
        words = {"DEVTYPE": "partition"} if "partition" in values else {}
        _add_device(made, path, subsystem, driver, places, words)
        for attribute, value in values.items():
            # Udevadm cannot print what is no text, and says so in the place of the value.
            if ".." not in attribute and not value.startswith("("):
                made.put(f"{path}/{attribute}", value)


def _add_iscsi(made: KernelFiles, text: str, places: dict[str, str]) -> None:
    """Sessions, their connections and disks by ``iscsiadm -m session -P 3`` (open-iscsi, session_mgmt.c)."""
    target = ""
    for block in re.split(r"\n(?=Target: |\s+Current Portal: )", f"\n{text}"):
        pairs = re.findall(r"^\s*([A-Za-z][^:\n]{1,60}): *(.*)$", block, re.MULTILINE)
        fields = {name.strip(): value.strip() for name, value in pairs}
        target = fields.get("Target", target).split(" ")[0]
        number, host = fields.get("SID", ""), fields.get("Host Number", "").partition("\t")[0].strip() or "0"
        if not is_count(number) or not is_count(host):
            continue
        place = f"/sys/devices/platform/host{host}/session{number}"
        session, connection = f"{place}/iscsi_session/session{number}", f"{place}/iscsi_connection/connection{number}:0"
        made.link(f"/sys/class/iscsi_session/session{number}", session)
        made.link(f"/sys/class/iscsi_connection/connection{number}:0", connection)
        made.put(f"{session}/targetname", target)
        made.put(f"{session}/state", fields.get("iSCSI Session State", ""))
        for way, name in (("", "Current Portal"), ("persistent_", "Persistent Portal")):
            portal = re.match(r"\[?([0-9a-fA-F:.]+?)\]?:([0-9]{1,5}),", fields.get(name, ""))
            if portal:
                made.put(f"{connection}/{way}address", portal[1])
                made.put(f"{connection}/{way}port", portal[2])
        made.put(f"{connection}/state", "up" if fields.get("iSCSI Connection State") == "LOGGED IN" else "failed")
        for name, path in _ISCSI.items():
            value = {"Yes": "1", "No": "0", "None": "0", "CRC32C": "1"}.get(fields.get(name, ""), fields.get(name, ""))
            if value[:1] not in ("", "<"):
                made.put(f"{connection if name in _OF_CONNECTION else session}/{path}", value)
        for name, path in (("Iface IPaddress", "ipaddress"), ("Iface Netdev", "netdev")):
            if fields.get(name, "<")[:1] not in ("", "<"):
                made.put(f"/sys/class/iscsi_host/host{host}/{path}", fields[name])
        attached = re.findall(r"Id ([0-9]+) Lun: ([0-9]+)\s+Attached scsi disk (\w+)\s+State: (\w+)", block)
        for identity, lun, disk, state in attached:
            path = f"{place}/target{host}:0:{identity}/{host}:0:{identity}:{lun}"
            _place_block(made, f"{path}/block/{disk}", places, is_partition=False)
            if places.get(disk) == f"{path}/block/{disk}":
                made.put(f"{path}/state", state)


def _add_partitions(made: KernelFiles, text: str, places: dict[str, str]) -> None:
    rows = [line.split() for line in text.splitlines()]
    sizes = {row[3]: row for row in rows if len(row) == 4 and is_count(row[2]) and _NAME.fullmatch(row[3])}
    for name, row in sizes.items():
        whole = whole_of(name, sizes)
        place = places.get(whole or "", f"/sys/devices/virtual/block/{whole or name}")
        path = places.get(name) or (f"{place}/{name}" if whole else place)
        _place_block(made, path, places, is_partition=bool(whole))
        if whole:
            made.put(f"{path}/partition", row[3][len(whole) :].lstrip("p"))
        made.put(f"{path}/dev", f"{row[0]}:{row[1]}")
        # Of 1 KiB, rounded down: exact for every device of whole KiB.
        made.put(f"{path}/size", str(int(row[2]) * 1024 // _SECTOR_BYTES))
    for name in places if sizes else ():
        # The kernel lists none without a medium or a file behind it (block/genhd.c, show_partition).
        if name not in sizes and re.fullmatch(r"(loop|zram|nbd|ram|sr|fd)[0-9]+", name):
            made.put(f"{places[name]}/size", "0")


def _rows_of_tree(text: str) -> Iterator[dict[str, str]]:
    """The rows of lsblk's tree, each with the device above it: ``PKNAME``. Columns before the first that may be empty
    are kept; sizes are rounded there, and left out."""
    columns: list[tuple[str, int, int]] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if line.startswith("NAME "):
            columns = [(found[0], *found.span()) for found in re.finditer(r"\S+", line)] + [("", len(line), 1 << 20)]
            continue
        drawn = re.match(r"[^\w/]*", line)
        words = line[drawn.end() :].split() if drawn else []
        if not columns or not words or drawn is None or not _NAME.fullmatch(words[0]):
            continue
        while above and above[-1][0] >= drawn.end():
            above.pop()
        row = {"NAME": words[0], "KNAME": words[0], "PKNAME": above[-1][1] if above else ""}
        for (name, start, end), (following, begin, last) in pairwise(columns[1:]):
            if name in _LEFT:
                # Words begin below their heading, and end where a word of the next column begins or its number ends.
                until = begin if not following or following in _LEFT or following == "MOUNTPOINT" else last
                cell = line[start:until].strip() if line[start - 1 : start] == " " else ""
                row |= {name: cell if until == begin else cell.rpartition(" ")[0].strip()} if cell else {}
                continue
            # Numbers end below the end of their heading; one that is cut there is no cell of this table.
            cell = line[:end].split()[-1] if len(line) >= end and not line[end - 1].isspace() else ""
            if cell and (len(line) == end or line[end].isspace()) and cell != words[0]:
                row[name] = cell
        if "TYPE" in (name for name, _, _ in columns):
            kinds = [word for word in words[1:] if word in ("disk", "part", "lvm", "mpath", "loop", "crypt", "rom")]
            row["TYPE"] = kinds[0] if kinds else "disk"
        number = re.search(r"(?<!\S)([0-9]{1,4}:[0-9]{1,7})(?!\S)", line)
        if number:
            row["MAJ:MIN"] = number[1]
            if row.get("TYPE") in ("lvm", "mpath", "crypt"):
                row["KNAME"] = f"dm-{number[1].partition(':')[2]}"
        above.append((drawn.end(), row["KNAME"]))
        row.pop("SIZE", None)
        yield row


def _add_lsblk(made: KernelFiles, rows: list[dict[str, str]], places: dict[str, str]) -> None:
    for row in rows:
        name, below = row.get("KNAME") or row.get("NAME", ""), row.get("PKNAME", "")
        if not _NAME.fullmatch(name):
            continue
        if "TYPE" not in row and name not in places:
            continue
        is_partition = row.get("TYPE") == "part"
        if is_partition and below in places:
            _place_block(made, f"{places[below]}/{name}", places, is_partition=True)
        elif not is_partition:
            _place_block(made, f"/sys/devices/virtual/block/{name}", places, is_partition=False)
        path = places.get(name)
        if path is None:
            continue
        if is_partition:
            number = re.search(r"[0-9]+$", name)
            made.put(f"{path}/partition", number[0] if number else "1")
        elif below:
            _stack(made, name, below, places)
        if name.startswith("dm-") and row.get("NAME") != name:
            made.put(f"{path}/dm/name", row.get("NAME", ""))
        if is_count(row.get("SIZE", "")):
            made.put(f"{path}/size", str(int(row["SIZE"]) // _SECTOR_BYTES))
        for column, attribute in _LSBLK_QUEUE.items():
            value = row.get(column, "").strip()
            if value and not (is_partition and column != "MAJ:MIN"):
                device = made.links.get(f"{path}/device", "device")
                # Behind a link the file is at its target.
                place = os.path.normpath(f"{path}/{attribute.replace('device', device, 1)}")
                made.put(place, f"[{value}]" if column == "SCHED" else value)


def _stack(made: KernelFiles, name: str, below: str, places: Mapping[str, str]) -> None:
    if name in places and below in places:
        made.link(f"{places[name]}/slaves/{below}", places[below])
        made.link(f"{places[below]}/holders/{name}", places[name])


def _add_mappings(made: KernelFiles, commands: ArchiveCommands, places: dict[str, str]) -> None:
    """Names, ids and layers of device-mapper's devices, by ``dmsetup info`` and ``dmsetup table``."""
    by_number = {
        value.decode().strip(): path.split("/")[-2] for path, value in made.files.items() if path.endswith("/dev")
    }
    by_name: dict[str, str] = {}
    rows: list[dict[str, str]] = []
    for text in commands.texts(r"dmsetup_info(?:_-[cC]\w*)?"):
        header: list[str] = []
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["Name"]:
                header = words
            elif len(words) >= 3 and header:
                row = dict(zip(header, words, strict=False))
                rows.append(row if len(words) == len(header) else row | {"UUID": ""})
        for block in text.split("\n\n"):
            fields = dict(re.findall(r"^([A-Z][\w ,]{1,20}): +(\S.*)$", block, re.MULTILINE))
            major, _, minor = fields.get("Major, minor", "").partition(", ")
            rows.append({**fields, "Maj": major, "Min": minor, "Stat": fields.get("State", "")})
    for row in rows:
        if not is_count(row.get("Min", "")) or "Name" not in row:
            continue
        name = f"dm-{row['Min']}"
        _place_block(made, f"/sys/devices/virtual/block/{name}", places, is_partition=False)
        by_name[row["Name"]] = name
        by_number[f"{row.get('Maj', '')}:{row['Min']}"] = name
        made.put(f"{places[name]}/dev", f"{row.get('Maj', '')}:{row['Min']}")
        made.put(f"{places[name]}/dm/name", row["Name"])
        # In a table the state is letters, of which s says it; else a word.
        state = row.get("Stat", "")
        made.put(f"{places[name]}/dm/suspended", str(int("s" in state[1:] or state == "SUSPENDED")))
        if row.get("UUID"):
            made.put(f"{places[name]}/dm/uuid", row["UUID"])
    for text in commands.texts(r"dmsetup_table"):
        for line in text.splitlines():
            mapping, _, rest = line.partition(": ")
            for number in re.findall(r"(?<= )[0-9]{1,4}:[0-9]{1,7}\b", rest):
                if mapping in by_name and number in by_number:
                    _stack(made, by_name[mapping], by_number[number], places)


def _add_systool(made: KernelFiles, text: str) -> None:
    """Attributes of devices as ``systool -v`` prints them; those of several lines are left out."""
    place = ""
    for line in text.splitlines():
        if head := re.fullmatch(r' +(?:Class )?Device path = "(/sys/devices/[^"]{1,1024})"', line):
            place = head[1] if ".." not in head[1].split("/") else ""
        elif place and (value := re.fullmatch(r' {4}(\w{1,64}) *= "(.*)"', line)):
            made.put(f"{place}/{value[1]}", value[2])


def _add_adapter(made: KernelFiles, name: str, text: str) -> None:
    """The PCI function of a link, by the bus-info of ``ethtool -i``."""
    found = re.search(r"^bus-info: ((?:[0-9a-f]{4}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$", text, re.MULTILINE)
    if not found or not _NAME.fullmatch(name) or f"/sys/class/net/{name}" in made.links:
        return
    device = f"/sys/bus/pci/devices/{found[1]}"
    if device in made.links:
        place = os.path.normpath(f"/sys/bus/pci/devices/{made.links[device]}")
    else:
        place = f"/sys/devices/pci{found[1][:7]}/{found[1]}"
        made.link(device, place)
    made.link(f"/sys/class/net/{name}", f"{place}/net/{name}")
    # Where the archive has the link's directory itself, this is what it lacks.
    for above in (f"{place}/net/{name}", f"/sys/class/net/{name}"):
        made.link(f"{above}/device", place)


def _add_lspci(made: KernelFiles, text: str) -> None:
    for block in text.split("\n\n"):
        head = re.match(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ", block)
        if head is None:
            continue
        address = f"{head[1] or '0000'}:{head[2]}"
        path = f"/sys/bus/pci/devices/{address}"
        path = os.path.normpath(f"/sys/bus/pci/devices/{made.links[path]}") if path in made.links else path
        node = re.search(r"^\s+NUMA node: ([0-9]{1,4})$", block, re.MULTILINE)
        if node:
            made.put(f"{path}/numa_node", node[1])
        for name, attribute in _PCI_SPEEDS.items():
            found = re.search(rf"^\s+{name}:.*?Speed ([0-9.]+)GT/s.*?Width x([0-9]+)", block, re.MULTILINE)
            if found:
                made.put(f"{path}/{attribute}_speed", f"{float(found[1]):.1f} GT/s PCIe")
                made.put(f"{path}/{attribute}_width", found[2])


def _add_numactl(made: KernelFiles, text: str) -> None:
    nodes = re.findall(r"^node ([0-9]{1,4}) cpus:(.*)$", text, re.MULTILINE)
    sizes = dict(re.findall(r"^node ([0-9]{1,4}) size: ([0-9]{1,10}) MB", text, re.MULTILINE))
    free = dict(re.findall(r"^node ([0-9]{1,4}) free: ([0-9]{1,10}) MB", text, re.MULTILINE))
    for node, cpus in nodes:
        made.put(f"{_NODES}/node{node}/cpulist", ",".join(cpus.split()))
        for name, figures in (("MemTotal", sizes), ("MemFree", free)):
            if node in figures:
                path = f"{_NODES}/node{node}/meminfo"
                line = f"Node {node} {name}: {int(figures[node]) * 1024} kB\n".encode()
                made.files[path] = made.files.get(path, b"") + line
        row = re.search(rf"^ *{node}: +([0-9 ]+)$", text, re.MULTILINE)
        if row:
            made.put(f"{_NODES}/node{node}/distance", row[1].strip())
    if nodes:
        made.put(f"{_NODES}/online", ",".join(node for node, _ in nodes))


def _add_lscpu(made: KernelFiles, text: str) -> None:
    nodes = re.findall(r"^NUMA node([0-9]{1,4}) CPU\(s\): *([0-9,-]*)$", text, re.MULTILINE)
    for node, cpus in nodes:
        made.put(f"{_NODES}/node{node}/cpulist", cpus)
    if nodes:
        made.put(f"{_NODES}/online", ",".join(node for node, _ in nodes))
    online = re.search(r"^On-line CPU\(s\) list: *([0-9,-]+)$", text, re.MULTILINE)
    if online:
        made.put("/sys/devices/system/cpu/online", online[1])


def _add_routes(made: KernelFiles, text: str) -> None:
    """The main IPv4 table as ``ip route`` prints it: of a route with several next hops the kernel lists the first."""
    rows: list[str] = []
    for line in text.replace("\n\t", " ").splitlines():
        found = re.match(
            r"(default|[0-9.]{7,15}(?:/[0-9]{1,2})?) .*?(?:via ([0-9.]{7,15}) )?dev (\S{1,15})(?: |$)", line
        )
        if found is None or " table " in line:
            continue
        metric = re.search(r" metric ([0-9]{1,9})\b", line)
        try:
            network = ipaddress.IPv4Network(found[1].replace("default", "0.0.0.0/0"), strict=False)
            numbers = [network.network_address, ipaddress.IPv4Address(found[2] or 0), network.netmask]
        except ValueError:
            continue
        to, gateway, mask = (f"{int.from_bytes(number.packed, 'little'):08X}" for number in numbers)
        flags = "0003" if found[2] else "0001"
        rows.append(
            "\t".join((found[3], to, gateway, flags, "0", "0", metric[1] if metric else "0", mask, "0", "0", "0"))
        )
    if rows:
        made.put("/proc/net/route", "\n".join(rows))


def _add_counters(made: KernelFiles, text: str) -> None:
    """Counters of the protocols since the start, as ``nstat -a`` prints them: protocol and name in one word."""
    named = r"^(TcpExt|IpExt|MPTcpExt|IcmpMsg|Icmp|UdpLite|Udp|Tcp|Ip)([A-Z]\w*) +([0-9]{1,20}) "
    tables: dict[str, list[tuple[str, str]]] = {}
    for protocol, name, count in re.findall(named, text, re.MULTILINE):
        tables.setdefault(protocol, []).append((name, count))
    for path in ("netstat", "snmp") if tables else ():
        lines = [
            " ".join((f"{protocol}:", *words))
            for protocol, pairs in tables.items()
            if protocol.endswith("Ext") == (path == "netstat")
            for words in zip(*pairs, strict=True)
        ]
        made.put(f"/proc/net/{path}", "\n".join(lines))
