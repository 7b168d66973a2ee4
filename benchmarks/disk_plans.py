"""What a plan of block queue values costs where there are many disks: CPU time and reads of one plan.

    python -m benchmarks.disk_plans [DISKS…]      needs no root; works on a made-up tree below a temporary directory

Three values are planned for each disk (scheduler, read-ahead, requests), with udev's data and identities of all disks.
Prints a Markdown table.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from advisor.host import Host, tree_host
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget

VALUES = {"scheduler": "none", "read_ahead_kb": "1024", "nr_requests": "512"}


def build_tree(root: Path, disks: int) -> Host:
    """A host with so many disks, each with a WWID, udev's data and a place of its own."""
    for number in range(disks):
        name = f"sd{number:04d}"
        place = root / f"sys/devices/pci0000:00/host{number}/block/{name}"
        (place / "queue").mkdir(parents=True)
        (place / "device").mkdir()
        (place / "device/wwid").write_text(f"naa.5000c500{number:08x}\n")
        (place / "dev").write_text(f"8:{number}\n")
        (place / "diskseq").write_text(f"{number + 1}\n")
        (place / "queue/scheduler").write_text("[mq-deadline] none\n")
        (place / "queue/read_ahead_kb").write_text("128\n")
        (place / "queue/nr_requests").write_text("256\n")
        (root / "sys/block").mkdir(exist_ok=True)
        (root / "sys/block" / name).symlink_to(f"../devices/pci0000:00/host{number}/block/{name}")
        data = root / f"run/udev/data/b8:{number}"
        data.parent.mkdir(parents=True, exist_ok=True)
        data.write_text(f"E:ID_PATH=pci-0000:00-{number}\nE:ID_SERIAL=S{number}\nE:ID_WWN=0x5000c500{number:08x}\n")
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("00000000-0000-4000-8000-000000000000\n")
    return tree_host(str(root))


def measure_plan(disks: int) -> tuple[float, float]:
    """CPU seconds of the observations of a plan, and milliseconds for each value."""
    with tempfile.TemporaryDirectory() as place:
        host = build_tree(Path(place), disks)
        names = [f"sd{number:04d}" for number in range(disks)]
        targets = tuple(
            PlanTarget(f"block:{name}:{key}", value, "exactly", "test", "test", ("test",), "test", rank=rank)
            for rank, (name, (key, value)) in enumerate((name, one) for name in names for one in VALUES.items())
        )
        began = time.process_time()
        observe_targets(host, targets, {})
        seconds = time.process_time() - began
        return seconds, seconds * 1000 / len(targets)


def main(arguments: Sequence[str]) -> None:
    print("| disks | values | CPU time of the plan | for each value |")
    print("|---|---|---|---|")
    for disks in [int(one) for one in arguments] or [10, 50, 200]:
        seconds, each = measure_plan(disks)
        print(f"| {disks} | {disks * len(VALUES)} | {seconds:.2f} s | {each:.2f} ms |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
