"""Whatever stands in the files of a host, its disks, file systems and arrays are read to the end."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.facts.arrays import read_arrays
from advisor.facts.disks import read_disks, read_filesystems
from advisor.facts.dm import STATUS, TABLE
from advisor.facts.storage import MAX_DEPTH
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, RecordedCommands
from tests.facts.storage import Tree
from tests.facts.test_dm import MULTIPATH_STATUS, MULTIPATH_TABLE, multipath, uuid
from tests.facts.test_md import HEALTHY, IN_SYNC
from tests.facts.test_mdstat import MDSTAT

ODD = ("", "\0", "-1", "99999999999999999999999", "none", "1 / 0", "0 (0)", "[", "x" * 5000, "\udcff", "1\n2", "٣")


def host_with_everything() -> Tree:
    tree = multipath()
    for index in range(3):
        tree.nvme(index, index % 2, partitions=(f"nvme{index}n1p1",), number=f"259:{index}")
    tree.md("md0", HEALTHY, IN_SYNC)
    tree.dm(2, "vg0-data", uuid(1), ("md0",))
    tree.mount("253:2", "/srv", "ext4", "rw,stripe=8")
    tree.files["/proc/mdstat"] = MDSTAT
    tree.files["/run/udev/data/b259:1"] = "E:ID_FS_TYPE=xfs\n"
    tree.answer(TABLE, MULTIPATH_TABLE + "vg0-data: 0 8192 striped 2 128 9:0 0 9:0 8\n")
    tree.answer(STATUS, MULTIPATH_STATUS.format("A", "F"))
    return tree


FILES = sorted(path for path in host_with_everything().files if path.startswith(("/sys/devices", "/proc", "/run")))


def read_all(host: Host) -> int:
    unknown = Unknowns()
    disks = read_disks(host, unknown)
    return len(disks) + len(read_filesystems(host, unknown)) + len(read_arrays(host, disks, unknown))


def test_the_whole_host_reads_well() -> None:
    assert read_all(host_with_everything().host()) == 7 + 3 + 6


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(FILES), st.one_of(st.sampled_from(ODD), st.text()), min_size=1, max_size=8))
def test_odd_contents(changed: dict[str, str]) -> None:
    tree = host_with_everything()
    contents = {path: text.encode() for path, text in tree.files.items()}
    contents |= {path: text.encode("utf-8", "surrogateescape") for path, text in changed.items()}
    files = MemoryFiles(contents, tree.links, frozenset(tree.directories))
    read_all(Host(files, RecordedCommands(tree.answers), is_root=True))


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(FILES), min_size=1), st.booleans())
def test_files_that_are_gone_or_not_to_be_read(gone: set[str], unreadable: bool) -> None:
    tree = host_with_everything()
    contents = {path: text.encode() for path, text in tree.files.items() if path not in gone}
    reasons = dict.fromkeys(gone, "Input/output error") if unreadable else {}
    files = MemoryFiles(contents, tree.links, frozenset(tree.directories), reasons)
    read_all(Host(files, RecordedCommands(tree.answers), is_root=True))


@settings(max_examples=60, deadline=None)
@given(st.text(), st.integers(-1, 3))
def test_tools_that_answer_anything(text: str, rc: int) -> None:
    tree = host_with_everything()
    tree.answers = {argv: Completed(rc, text, text) for argv in tree.answers}
    read_all(tree.host())


@pytest.mark.parametrize("link", ["/sys/block/dm-0", "/sys/block/nvme0n1", "/sys/block/md0"])
def test_links_that_lead_nowhere_or_round_in_circles(link: str) -> None:
    for target in ("../devices/nothing", "dm-0", "md0", "."):
        tree = host_with_everything()
        tree.links[link] = target
        read_all(tree.host())


@pytest.mark.parametrize(("layers", "disks"), [(MAX_DEPTH - 1, ("nvme0n1",)), (1000, ())])
def test_volumes_one_on_the_other(layers: int, disks: tuple[str, ...]) -> None:
    tree = Tree()
    tree.nvme(0, 1, number="259:0")
    tree.dm(0, "vg0-v0", uuid(0), ("nvme0n1",))
    for index in range(1, layers):
        tree.dm(index, f"layer{index}", "", (f"dm-{index - 1}",))
    tree.dm(layers, "vg1-top", "LVM-" + "x" * 64, (f"dm-{layers - 1}",))
    unknown = Unknowns()
    host = tree.host()
    arrays = {array.name: array for array in read_arrays(host, read_disks(host, unknown), unknown)}
    assert arrays["vg1/top"].disks == disks
