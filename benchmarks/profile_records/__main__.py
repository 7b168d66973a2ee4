"""Run one record of a general profile in the lab guest and print its table.

    python -m benchmarks.profile_records                       what there is
    python -m benchmarks.profile_records ceph-osd              in a guest of its own, which is thrown away
    python -m benchmarks.profile_records ceph-osd --socket S   in a guest that `python -m tests.lab serve` keeps up

Debian's packages that a record needs are downloaded by apt-get (a Debian 12 machine with root), and reach the guest
on a drive that is plugged in for it. Each record restores the values that it sets.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.lab.guest import Guest, Machine
from tests.lab.hardware import STORAGE_HOST, Hardware
from tests.lab.serve import ServedGuest

LARGE = replace(STORAGE_HOST, memory_mib=36864)
"""Memory of a size at which the limits of dirty memory differ. QEMU takes what is touched, some 10 GiB of it."""


_SERIAL = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_"


@dataclass(frozen=True)
class Record:
    """A module of this package that runs in the guest, with what it needs there."""

    module: str
    packages: tuple[str, ...] = ()
    hardware: Hardware = STORAGE_HOST
    seconds: int = 1500
    drive_bytes_per_second: int = 0
    """A limit of the first NVMe drive, by QEMU; 0 is none."""


RECORDS = {
    "ceph-osd": Record("ceph_osd", ("ceph-osd",)),
    "kafka": Record("kafka", ("openjdk-17-jdk-headless",)),
    "swapping": Record("swapping"),
    "cloud-guest": Record("keepalive"),
    "disk-timeout": Record("disk_timeout"),
    "dirty-pages": Record("dirty_pages", hardware=LARGE, drive_bytes_per_second=100 << 20),
    "postgresql": Record("postgresql", ("postgresql-15",)),
    "mysql": Record("mysql", ("mariadb-server",)),
    "nfs": Record("nfs", ("nfs-kernel-server",)),
    "kvm-host": Record("kvm_host", ("qemu-system-x86",)),
    "low-latency": Record("low_latency"),
}


def main() -> int:
    """The exit status: that of the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_records", description=__doc__)
    parser.add_argument("name", nargs="?", choices=RECORDS)
    parser.add_argument("--socket", type=Path, help="of a served guest")
    options = parser.parse_args()
    if options.name is None:
        print("\n".join(RECORDS))
        return 0
    record = RECORDS[options.name]
    with _machine(options.socket, record.hardware) as machine, plugged_packages(machine, record):
        if record.drive_bytes_per_second == 0:
            return run(machine, record)
        limit_drive(machine, record.drive_bytes_per_second)
        try:
            return run(machine, record)
        finally:
            limit_drive(machine, 0)


@contextmanager
def _machine(path: Path | None, hardware: Hardware) -> Iterator[Machine]:
    if path is not None:
        yield ServedGuest(path)
        return
    with Guest(hardware) as guest:
        yield guest


def run(machine: Machine, record: Record) -> int:
    """Run it in the background of the guest, whose agent answers one request at a time, and print what it printed."""
    unit = f"record-{record.module.replace('_', '-')}"
    output = f"/run/{unit}"
    command = f"cd /src && python3 -u -m benchmarks.profile_records.{record.module}"
    if record.packages:
        options = f"lowerdir={output}.packages/$one:/$one,upperdir={output}.upper/$one,workdir={output}.upper/.$one"
        overlay = f"mkdir -p {output}.upper/$one {output}.upper/.$one && mount -t overlay overlay -o {options} /$one"
        overlays = f"for one in usr etc; do [ ! -d {output}.packages/$one ] || {{ {overlay} || exit 1; }}; done"
        command = f"mount -r {_SERIAL}{record.module} {output}.packages && {overlays} && {command}"
    machine.run(f"rm -f {output}.out {output}.err {output}.rc; mkdir -p {output}.packages").check()
    # In a mount namespace of its own: nothing of the packages is left when it ends.
    unit_options = ["LimitNOFILE=1048576", "TasksMax=infinity", "LimitMEMLOCK=infinity", "OOMPolicy=continue"]
    start = ["systemd-run", "--quiet", "--collect", f"--unit={unit}", *(f"--property={one}" for one in unit_options)]
    shell = f"({command}) >{output}.out 2>{output}.err; echo $? >{output}.rc"
    machine.run([*start, "--setenv=HOME=/root", "unshare", "--mount", "sh", "-c", shell]).check()
    deadline = time.monotonic() + record.seconds
    while time.monotonic() < deadline:
        time.sleep(2)
        if (code := machine.run(f"cat {output}.rc 2>/dev/null").stdout.strip()) != "":
            break
    else:
        machine.run(f"systemctl stop {unit}")
        code = "124"
    sys.stdout.write(machine.get(f"{output}.out").decode())
    sys.stderr.write(machine.get(f"{output}.err").decode())
    return int(code)


def limit_drive(machine: Machine, bytes_per_second: int) -> None:
    """Let QEMU hold up what goes to the first NVMe drive (`d0`); 0 lets everything go that waits."""
    rates = {"bps": bytes_per_second} | dict.fromkeys(("bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr"), 0)
    machine.monitor("block_set_io_throttle", {"device": "d0", **rates})


@contextmanager
def plugged_packages(machine: Machine, record: Record) -> Iterator[None]:
    """A drive with the files of Debian's packages and of what they depend on. They are unpacked on the host and not
    installed: an emulated CPU would take minutes."""
    if not record.packages:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="records-") as name:
        work = Path(name)
        work.chmod(0o755)
        (work / "status").write_bytes(machine.get("/var/lib/dpkg/status"))
        debs, tree, disk = work / "debs", work / "tree", work / "disk"
        (debs / "partial").mkdir(parents=True)
        tree.mkdir()
        options = [f"Dir::State::status={work}/status", f"Dir::Cache::archives={debs}", "Debug::NoLocking=1"]
        options += ["APT::Sandbox::User=root"]
        command = ["apt-get", "-qq", "-y", *(word for one in options for word in ("-o", one))]
        command += ["install", "--no-install-recommends", "--download-only", *record.packages]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for deb in sorted(debs.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(deb), str(tree)], check=True)
        for merged in ("bin", "sbin", "lib", "lib64"):
            if (tree / merged).is_dir():
                subprocess.run(["cp", "-a", f"{tree}/{merged}", f"{tree}/usr/"], check=True)
        with disk.open("wb") as file:
            file.truncate(1 << 30)
        subprocess.run(["mke2fs", "-q", "-F", "-d", str(tree), str(disk)], check=True)
        port = int(
            any(one["name"] == "plugged0" for one in machine.monitor("qom-list", {"path": "/machine/peripheral"}))
        )
        backing = {
            "driver": "raw",
            "node-name": f"{record.module}{time.time_ns()}",
            "file": {"driver": "file", "filename": str(disk)},
        }
        machine.monitor("blockdev-add", backing)
        device = {"driver": "nvme", "drive": backing["node-name"], "serial": record.module, "id": f"plugged{port}"}
        machine.monitor("device_add", {**device, "bus": f"free{port}"})
        try:
            machine.run(f"until [ -e {_SERIAL}{record.module} ]; do sleep 0.2; done").check()
            yield
        finally:
            machine.unplug(port)


if __name__ == "__main__":
    sys.exit(main())
