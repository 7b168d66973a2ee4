"""What `advisor limits` says of arrays on throttled drives against what fio reaches there: a table in Markdown.

    python -m benchmarks.limit_figures [CASE…]

QEMU throttles the drives of a lab guest (`tests/lab`), its own or the one that ADVISOR_LAB_SOCKET names, and their
contents are lost. All arrays lie side by side on partitions; `advisor limits` is asked once, with the drives declared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.lab_claims import ENVIRONMENT, machine
from tests.lab.guest import Machine

MB_S: Final = (8, 8, 8, 8, 8, 4)
IOPS: Final = (200, 200, 200, 200, 200, 100)
"""Of each drive, reads and writes together."""
PART_MIB: Final = 96
VOLUMES: Final = "/tmp/drives.toml"
CLEAN: Final = (
    "vgchange -q -an lab; vgremove -q -ff -y lab; dmsetup remove secret; for one in /dev/md[12]?; do"
    " mdadm --quiet --stop $one; done; for one in /sys/block/bcache*/bcache; do echo 1 >$one/stop; done;"
    " for one in /sys/fs/bcache/*/stop; do echo 1 >$one; done; udevadm settle"
)
FIO: Final = (
    "fio --name=x --direct=1 --ioengine=libaio --iodepth=32 --ramp_time=1 --runtime=3 --time_based"
    " --randrepeat=1 --norandommap --output-format=json"
)
MD: Final = "mdadm --quiet --create /dev/{name} --run --assume-clean --metadata=1.2 --homehost=lab --chunk=64"
MIRROR: Final = MD.replace(" --chunk=64", "")
LV: Final = "lvcreate -q -y -Wn -an -L 64m -n"


class Case(NamedTuple):
    """How a device is made of partitions ``{p[0]}`` … of the drives, its path, and bytes of one full stripe."""

    title: str
    make: str
    path: str
    stripe_kib: int = 64


def md(name: str, title: str, options: str, drives: Sequence[int], stripe: int = 64, after: str = "") -> Case:
    """An md array over these drives."""
    parts = " ".join(f"{{p[{one}]}}" for one in drives)
    start = MIRROR if "level=1 " in f"{options} " else MD
    return Case(title, f"{start.format(name=name)} {options} {parts}{after}", f"/dev/{name}", stripe)


CASES: Final = (
    md("md10", "RAID 0 of 4", "--level=0 --raid-devices=4", range(4), 256),
    md("md11", "RAID 1 of 2", "--level=1 --raid-devices=2", range(2)),
    md("md12", "RAID 1, write-mostly", "--level=1 --raid-devices=2", (0,), after=" --write-mostly {p[1]}"),
    md("md13", "RAID 1, one drive of half the speed", "--level=1 --raid-devices=2", (0, 5)),
    md("md14", "RAID 5 of 3", "--level=5 --raid-devices=3", range(3), 128),
    md("md15", "RAID 5 of 5", "--level=5 --raid-devices=5", range(5), 256),
    md("md16", "RAID 6 of 5", "--level=6 --raid-devices=5", range(5), 192),
    md("md17", "RAID 10 near of 4", "--level=10 --layout=n2 --raid-devices=4", range(4), 128),
    md("md18", "RAID 10 far of 4", "--level=10 --layout=f2 --raid-devices=4", range(4), 128),
    md("md19", "RAID 10 offset of 4", "--level=10 --layout=o2 --raid-devices=4", range(4), 128),
    md("md20", "RAID 10 near of 3", "--level=10 --layout=n2 --raid-devices=3", range(3), 192),
    md(
        *("md21", "RAID 5 of 4, one failed", "--level=5 --raid-devices=4", range(4), 192),
        after=" && mdadm --quiet /dev/md21 --fail {p[3]}",
    ),
    md(*("md22", "RAID 5 of 3 with a journal", "--level=5 --raid-devices=3 --write-journal={p[3]}", range(3), 128)),
    Case(
        "RAID 1, rebuilding",
        f"{MIRROR.format(name='md23')} --level=1 --raid-devices=2 {{p[0]}} missing"
        " && echo 1 >/sys/block/md23/md/sync_speed_min && echo 1 >/sys/block/md23/md/sync_speed_max"
        " && mdadm --quiet /dev/md23 --add {p[1]}",
        "/dev/md23",
    ),
    Case("LVM linear", f"{LV} linear lab {{p[0]}}", "/dev/lab/linear"),
    Case("LVM striped over 4", f"{LV} striped -i 4 -I 64k lab", "/dev/lab/striped", 256),
    Case("LVM RAID 1", f"{LV} mirror --type raid1 -m 1 --nosync lab", "/dev/lab/mirror"),
    Case("LVM RAID 5 of 4", f"{LV} five --type raid5 -i 3 -I 64k --nosync lab", "/dev/lab/five", 192),
    Case("LVM RAID 10 of 4", f"{LV} ten --type raid10 -m 1 -i 2 -I 64k --nosync lab", "/dev/lab/ten", 128),
    Case(
        "LVM thin in a striped pool",
        "lvcreate -q -y -L 64m --poolmetadatasize 4m -i 4 -I 64k -c 64k -T lab/pool"
        " && lvcreate -q -y -V 48m -T lab/pool -n thin && dd if=/dev/zero of=/dev/lab/thin bs=1M count=48 oflag=direct",
        "/dev/lab/thin",
        256,
    ),
    Case(
        "LVM cache (writethrough)",
        f"{LV} cached lab {{p[0]}} && lvcreate -q -y -L 64m -n quick lab {{p[1]}}"
        " && lvconvert -q -y --type cache --cachevol quick --cachemode writethrough lab/cached",
        "/dev/lab/cached",
    ),
    Case(
        "LVM with a snapshot",
        f"{LV} origin lab {{p[0]}} && lvchange -ay lab/origin && lvcreate -q -y -s -c 64k -L 72m -n snap lab/origin",
        "/dev/lab/origin",
    ),
    Case(
        "crypt",
        "dmsetup create secret --table"
        " \"0 $(blockdev --getsz {p[0]}) crypt aes-xts-plain64 $(printf '00%.0s' $(seq 64)) 0 {p[0]} 0\"",
        "/dev/mapper/secret",
    ),
    Case(
        "bcache (writethrough)",
        "modprobe bcache && make-bcache -q -B {p[0]} -C {p[1]} ; udevadm settle; for one in {p[0]} {p[1]}; do"
        " echo $one >/sys/fs/bcache/register; done 2>/dev/null; sleep 2; [ -b /dev/bcache0 ]",
        "/dev/bcache0",
    ),
)


def main() -> int:
    """Make the arrays, ask for the figures, measure each and print the table."""
    wanted = set(sys.argv[1:])
    cases = [one for one in CASES if not wanted or one.title in wanted]
    with machine() as guest:
        drives = prepare(guest)
        made = []
        for case in cases:
            number = 1 if case.path.startswith("/dev/lab/") else CASES.index(case) + 2
            done = guest.run(case.make.format(p=[f"/dev/{one}p{number}" for one in drives]), timeout=120)
            if done.rc:
                print(f"{case.title}: not made: {done.stdout}{done.stderr}".strip(), file=sys.stderr, flush=True)
            else:
                made.append(case)
        guest.run("vgchange -q -ay lab; udevadm settle")
        told = guest.run(f"{ENVIRONMENT} advisor limits --json --volumes {VOLUMES}", timeout=300).check().stdout
        paths = {one["device"]: one for one in json.loads(told)["paths"]}
        print("| device | read MB/s | write MB/s | read IOPS | write IOPS |\n|---|---|---|---|---|", flush=True)
        for case in made:
            print(f"| {case.title} | {' | '.join(row(guest, case, paths))} |", flush=True)
    return 0


def prepare(guest: Machine) -> list[str]:
    """Partition the drives and declare them; their names in the order of `MB_S`."""
    rows = json.loads(guest.run("lsblk --json --nodeps -o NAME,SERIAL").check().stdout)["blockdevices"]
    by_serial = {(one["serial"] or "").strip(): str(one["name"]) for one in rows}
    drives = [by_serial[f"LAB-N{node}-{index}"] for node in (0, 1) for index in range(3)]
    throttle(guest, (0,) * len(drives), (0,) * len(drives))
    guest.run(CLEAN, timeout=120)
    table = "label: gpt\nsize=768MiB\n" + f"size={PART_MIB}MiB\n" * len(CASES)
    for one in drives:
        guest.run(f"wipefs -qa /dev/{one}; sfdisk -q --wipe=always /dev/{one}", input=table, timeout=120).check()
    guest.run(
        "udevadm settle; modprobe -a raid0 raid1 raid10 raid456; echo 'AUTO -all' >>/etc/mdadm/mdadm.conf;"
        " sed -i 's/# *\\(\\(thin\\|cache\\)_check_executable\\) *=.*/\\1 = \"\"/' /etc/lvm/lvm.conf;"
        f" vgcreate -q -y lab {' '.join(f'/dev/{one}p1' for one in drives[:4])}",
        timeout=120,
    ).check()
    words = ("read-mb-per-s", "write-mb-per-s"), ("read-iops", "write-iops")
    declared = ""
    for name, *figures in zip(drives, MB_S, IOPS, strict=True):
        pairs = [f"{word} = {figure}" for both, figure in zip(words, figures, strict=True) for word in both]
        declared += "\n".join(("[[volume]]", f'device = "{name}"', 'type = "drive"', *pairs, ""))
    guest.put(VOLUMES, declared)
    return drives


def throttle(guest: Machine, mb_s: Sequence[int], iops: Sequence[int]) -> None:
    """Limit each drive, reads and writes together; 0 is no limit."""
    none = dict.fromkeys(("bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)
    for number, (rate, operations) in enumerate(zip(mb_s, iops, strict=True)):
        limits = {"device": f"d{number}", "bps": rate * 10**6, "iops": operations, **none}
        guest.monitor("block_set_io_throttle", limits)


def row(guest: Machine, case: Case, paths: dict[str, Any]) -> Iterator[str]:
    """The cells of one device: the figure, what was measured, and how far it is from it."""
    device = guest.run(["readlink", "-f", case.path]).check().stdout.strip()
    bounds = {
        one["quantity"]: one["value"] for one in paths.get(device.removeprefix("/dev/"), {"sustained": ()})["sustained"]
    }
    none = (0,) * len(MB_S)
    for measure, limits in (("mb_per_s", (MB_S, none)), ("iops", (none, IOPS))):
        throttle(guest, *limits)
        for way in ("read", "write"):
            is_large = measure == "mb_per_s"
            pattern = "write" if is_large and way == "write" else f"rand{way}"
            size = (case.stripe_kib if way == "write" else 64) if is_large else 4
            done = guest.run(f"{FIO} --filename={device} --rw={pattern} --bs={size}k --blockalign={size}k", timeout=120)
            found = json.loads(done.check().stdout)["jobs"][0][way]
            value = found["bw_bytes"] / 1e6 if is_large else found["iops"]
            told = bounds.get(f"{way}_{measure}")
            share = f" ({value / told - 1:+.0%})" if told else ""
            yield f"{told or '?'} → {value:.3g}{share}"
    throttle(guest, none, none)


if __name__ == "__main__":
    sys.exit(main())
