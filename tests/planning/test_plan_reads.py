"""What a plan reads: each file once, however many values need it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from advisor.host import Host, Missing, NoCommands
from advisor.host.files import DirectoryFiles
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget
from benchmarks.disk_plans import VALUES, build_tree


class CountingFiles(DirectoryFiles):
    """Counts how often each file is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.seen: Counter[str] = Counter()

    def read(self, path: str) -> bytes | Missing:
        self.seen[path] += 1
        return super().read(path)


def observe_disks(host: Host, disks: int) -> None:
    pairs = [(f"sd{number:04d}", key, value) for number in range(disks) for key, value in VALUES.items()]
    targets = tuple(
        PlanTarget(f"block:{name}:{key}", value, "exactly", "test", "test", ("test",), "test", rank=rank)
        for rank, (name, key, value) in enumerate(pairs)
    )
    observe_targets(host, targets, {})


def test_the_identity_of_many_disks_is_read_once(tmp_path: Path) -> None:
    build_tree(tmp_path, 8)
    files = CountingFiles(tmp_path)
    observe_disks(Host(files, NoCommands(), is_root=True), 8)
    assert files.seen["/sys/block/sd0003/device/wwid"] == 1
    assert files.seen["/run/udev/data/b8:3"] == 1
    assert {path: count for path, count in files.seen.items() if path.startswith("/sys/block") and count > 1} == {}
