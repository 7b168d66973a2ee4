"""Hosts in memory for imports: a small machine, with files of other tools laid over it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.host import Host, MemoryFiles, NoCommands
from advisor.importers.records import Imported, ImportedSetting

CPU = "/sys/devices/system/cpu"
PROC = "/proc/sys"

MACHINE: Mapping[str, str] = {
    f"{CPU}/online": "0-3\n",
    f"{CPU}/present": "0-3\n",
    **{f"{CPU}/cpu{cpu}/topology/physical_package_id": f"{cpu // 2}\n" for cpu in range(4)},
    f"{CPU}/cpu0/cpuidle/state0/name": "POLL\n",
    f"{CPU}/cpu0/cpuidle/state0/latency": "0\n",
    f"{CPU}/cpu0/cpuidle/state1/name": "C1\n",
    f"{CPU}/cpu0/cpuidle/state1/latency": "2\n",
    f"{CPU}/cpu0/cpufreq/scaling_available_governors": "performance powersave\n",
    f"{CPU}/cpufreq/policy0/scaling_governor": "powersave\n",
    f"{CPU}/cpufreq/policy0/scaling_available_governors": "performance powersave\n",
    f"{CPU}/cpufreq/policy0/scaling_driver": "intel_pstate\n",
    f"{CPU}/intel_pstate/min_perf_pct": "10\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu cx8 hwp_epp\n",
    "/proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\n",
    "/proc/cmdline": "BOOT_IMAGE=/vmlinuz ro quiet\n",
    "/etc/os-release": 'ID=sles\nPRETTY_NAME="SUSE Linux Enterprise Server 15 SP5"\nVERSION="15-SP5"\n',
    f"{PROC}/kernel/hostname": "here\n",
    f"{PROC}/kernel/osrelease": "6.1.0\n",
    f"{PROC}/kernel/arch": "x86_64\n",
    f"{PROC}/kernel/version": "#1 SMP\n",
    f"{PROC}/kernel/numa_balancing": "1\n",
    f"{PROC}/kernel/pid_max": "4194304\n",
    f"{PROC}/net/core/somaxconn": "4096\n",
    f"{PROC}/net/core/rmem_max": "4194304\n",
    f"{PROC}/net/ipv4/tcp_rmem": "4096\t131072\t33554432\n",
    f"{PROC}/vm/swappiness": "60\n",
    f"{PROC}/vm/dirty_ratio": "20\n",
    f"{PROC}/vm/dirty_bytes": "0\n",
    f"{PROC}/vm/dirty_background_ratio": "10\n",
    f"{PROC}/vm/dirty_background_bytes": "0\n",
    "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "/sys/class/dmi/id/board_vendor": "Dell Inc.\n",
    "/sys/class/dmi/id/product_name": "PowerEdge R750\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never\n",
    "/sys/kernel/mm/ksm/run": "0\n",
    "/etc/tmpfiles.d/x.conf": "",
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
    "/sys/block/sda/device/vendor": "ATA\n",
    "/sys/block/sda/device/model": "ST4000NM\n",
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
