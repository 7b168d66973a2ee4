"""Hosts in memory for imports: a small machine, with files of other tools laid over it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.host import Host, MemoryFiles, NoCommands
from advisor.importers.records import Imported, ImportedSetting
from tests.cases import read_cases

CPU = "/sys/devices/system/cpu"
PROC = "/proc/sys"

DATA = read_cases(__file__)

MACHINE: Mapping[str, str] = {
    **DATA["MACHINE"],
    **{f"{CPU}/cpu{cpu}/topology/physical_package_id": f"{cpu // 2}\n" for cpu in range(4)},
    **{
        f"/sys/block/{name}/{file}": text
        for name, scheduler in (
            ("sda", "[mq-deadline] kyber none"),
            ("nvme0n1", "[none] mq-deadline"),
            ("nvme1n1", "[none] mq-deadline"),
            ("vda", "[none]"),
            ("dm-0", "[none]"),
        )
        for file, text in (
            ("removable", "0\n"),
            ("queue/scheduler", f"{scheduler}\n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/rotational", "1\n" if name == "sda" else "0\n"),
            ("size", "2097152\n"),
        )
    },
}
LINKS: Mapping[str, str] = {
    "/sys/class/net/eth0": "../../devices/pci0000:00/0000:00:03.0/net/eth0",
    "/sys/class/net/eth1": "../../devices/pci0000:00/0000:00:04.0/net/eth1",
    "/sys/class/net/lo": "../../devices/virtual/net/lo",
    **{
        f"/sys/block/{name}/device/subsystem": f"../../../bus/{bus}"
        for name, bus in (("sda", "scsi"), ("nvme0n1", "nvme"), ("nvme1n1", "nvme"), ("vda", "virtio"))
    },
}
NETWORK: Mapping[str, str] = {
    **{f"/sys/devices/pci0000:00/0000:00:0{3 + number}.0/net/eth{number}/mtu": "1500\n" for number in (0, 1)},
    "/sys/devices/virtual/net/lo/mtu": "65536\n",
    **{f"/sys/bus/{bus}/drivers_autoprobe": "1\n" for bus in ("scsi", "nvme", "virtio")},
}


def machine(
    files: Mapping[str, str | bytes] | None = None,
    *,
    without: tuple[str, ...] = (),
    links: Mapping[str, str] | None = None,
) -> Host:
    """The machine, with files and links laid over it, and some paths not there."""
    merged: dict[str, str | bytes] = {**MACHINE, **NETWORK, **(files or {})}
    content = {
        path: data if isinstance(data, bytes) else data.encode()
        for path, data in merged.items()
        if not path.startswith(without or ("\0",))
    }
    return Host(MemoryFiles(content, {**LINKS, **(links or {})}), NoCommands(), is_root=True)


def tuned(**profiles: str) -> dict[str, str | bytes]:
    """Profiles of TuneD by name; an underscore stands for a hyphen."""
    return {f"/usr/lib/tuned/{name.replace('_', '-')}/tuned.conf": text for name, text in profiles.items()}


def became(found: Imported, key: str, section: str | None = None) -> list[ImportedSetting]:
    """What became of a setting."""
    return [one for one in found.settings if one.key == key and section in (None, one.section)]


def values(found: Imported) -> dict[str, str | None]:
    """Tunable, and whom it is for, → value."""
    return {
        f"{one.tunable}{'' if one.only is None else ' ' + ','.join(one.only.names)}": one.value
        for one in found.settings
        if one.outcome == "tunable"
    }
