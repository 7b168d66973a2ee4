"""What a session cannot show is no claim: devices elsewhere, the page cache, the network of a local disk; and a
change is toggled as its tunables need, whatever the profile declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.errors import RefusedError
from advisor.host.probes import ReadFile
from advisor.planning.records import Change, Plan
from advisor.profiles.lint import lint_profile
from advisor.profiles.profile import load, shipped_directory
from advisor.proof.relevance import class_of, find_unseen, laxer_than_needed, require_visible, stack_of, toggle_class
from advisor.proof.target import MeasuredTarget, is_remote, read_target
from advisor.proof.workloads import get_workload
from tests.cases import read_cases
from tests.cli.inside import call_inside
from tests.facts.storage import Tree
from tests.trees import host_of, make_tree

DATA = read_cases(__file__)

DIRECT, BUFFERED = (get_workload(name) for name in ("infoscale.4k-rand-r100", "buffered.seq-1m-r100"))


def change(tunable: str, **parts: Any) -> Change:
    bare = Change(
        tunable=tunable,
        before="1",
        after="2",
        persist=None,
        persist_note=None,
        risk="none",
        takes_effect="now",
        why="",
        hurts_when="",
        sources=(),
        profile="own",
        probe=ReadFile("/x"),
        steps=(),
        undo=(),
    )
    return msgspec.structs.replace(bare, **parts)


def plan(*tunables: str) -> Plan:
    return msgspec.structs.replace(EMPTY, changes=tuple(map(change, tunables)))


EMPTY = Plan(("own",), None, (), (), (), (), ())


def target(device: str | None, **parts: Any) -> MeasuredTarget:
    bare = MeasuredTarget(
        path="/data",
        file_system="xfs",
        mount_point="/data",
        source=f"/dev/{device}",
        device=device,
        is_network=False,
        size_bytes=1 << 40,
        free_bytes=1 << 39,
    )
    return msgspec.structs.replace(bare, **parts)


def storage() -> Tree:
    """md0 of two partitions, LVM on multipath of two paths, and a disk that is none of these."""
    made = Tree()
    for name in ("sda", "sdb", "sdc", "sdd", "sde"):
        made.scsi(name, f"/sys/devices/pci0000:00/0000:00:0{'abcde'.index(name[2])}.0", number=f"8:{ord(name[2])}")
    for disk in ("sda", "sdb"):
        place = next(path for path in made.links if path == f"/sys/class/block/{disk}")
        real = "/sys/" + made.links[place].removeprefix("../../")
        made.files[f"{real}/{disk}1/partition"] = "1\n"
        made.links[f"/sys/class/block/{disk}1"] = f"../..{real.removeprefix('/sys')}/{disk}1"
    made.virtual("md0", lower=("sda1", "sdb1"))
    made.dm(0, "mpatha", "mpath-1", ("sdc", "sdd"))
    made.dm(1, "vg-lv", "LVM-1", ("dm-0",))
    return made


@pytest.mark.parametrize(
    ("device", "below"),
    [
        ("md0", {"md0", "sda1", "sdb1", "sda", "sdb"}),
        ("dm-1", {"dm-1", "dm-0", "sdc", "sdd"}),
        ("sda1", {"sda1", "sda"}),
        ("sde", {"sde"}),
        ("gone", {"gone"}),
    ],
)
def test_a_stack_is_everything_that_a_device_lies_on(device: str, below: set[str]) -> None:
    assert stack_of(storage().host(), device) == below


@pytest.mark.parametrize(("device", "tunables", "hidden"), DATA["what_cannot_show_is_named"])
def test_what_cannot_show_is_named(device: str, tunables: list[str], hidden: list[str]) -> None:
    host = storage().host()
    notes = require_visible(host, plan(*tunables), target(device), [DIRECT])
    assert [tunable for tunable, _ in find_unseen(host, plan(*tunables), target(device), [DIRECT])] == hidden
    assert all(any(one in note for note in notes) for one in hidden)
    assert len(notes) == len(hidden)


@pytest.mark.parametrize(("device", "tunables", "hint"), DATA["where_nothing_can_show_the_session_is_refused"])
def test_where_nothing_can_show_the_session_is_refused(device: str, tunables: list[str], hint: str) -> None:
    with pytest.raises(RefusedError) as refused:
        require_visible(storage().host(), plan(*tunables), target(device), [DIRECT])
    assert tunables[0] in refused.value.message
    assert refused.value.exit_code == 3
    assert hint in (refused.value.hint or "")


def test_read_ahead_shows_in_reads_through_the_page_cache() -> None:
    host = storage().host()
    assert require_visible(host, plan("block:sde:read_ahead_kb"), target("sde"), [DIRECT, BUFFERED]) == ()


def test_the_network_shows_over_the_network() -> None:
    mounted = target("sde", is_network=True)
    assert require_visible(storage().host(), plan("sysctl:net.ipv4.tcp_rmem"), mounted, [DIRECT]) == ()


@pytest.mark.parametrize("source", ["/dev/vx/dsk/datadg/vol1", "/dev/drbd0"])
def test_a_mirrored_volume_may_cross_the_network(tmp_path: Path, source: str) -> None:
    line = f"27 1 199:1 / / rw - vxfs {source} rw\n"
    host = host_of(make_tree(tmp_path / "tree", {"/proc/self/mountinfo": line}))
    assert read_target(host, str(tmp_path)).is_network


@pytest.mark.parametrize(("parts", "needed"), DATA["the_stricter_of_declaration_and_tunable_counts"])
def test_the_stricter_of_declaration_and_tunable_counts(parts: dict[str, str], needed: str) -> None:
    one = change("sysctl:x", **parts)
    assert class_of(one) == needed
    assert toggle_class("T0", [change("sysctl:y"), one]) == needed
    assert toggle_class("T3", [one]) == "T3"


LAX = DATA["LAX"]


@pytest.mark.parametrize(("tunable", "value", "toggle", "needed"), DATA["lint_names_a_declaration_that_is_too_lax"])
def test_lint_names_a_declaration_that_is_too_lax(
    tmp_path: Path, tunable: str, value: str, toggle: str, needed: str | None
) -> None:
    path = tmp_path / "lax.toml"
    path.write_text(LAX.format(tunable=tunable, value=value, toggle=toggle))
    found = laxer_than_needed(lint_profile(path))
    assert found == (None if needed is None else (tunable, needed))
    done = call_inside("profiles", "lint", path)
    assert done.returncode == 0, done.stderr
    assert ("needs" in done.stdout) == (needed is not None)


@pytest.mark.parametrize("path", sorted(shipped_directory().glob("*.toml")), ids=lambda path: path.stem)
def test_no_shipped_profile_declares_too_little(path: Path) -> None:
    assert laxer_than_needed(load(path.stem)) is None


def fabric() -> Tree:
    """NVMe/TCP with native multipath and a partition, volumes on DRBD and NBD, loop devices, a btrfs of two disks."""
    made = storage()
    place = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    made.files |= {
        f"{place}/nvme0n1/size": "1\n",
        f"{place}/nvme0n1/nvme0n1p1/partition": "1\n",
        f"{place}/nvme0/x": "",
        "/sys/class/nvme/nvme0/transport": "tcp\n",
        "/sys/devices/pci0000:00/nvme0c1n1/size": "1\n",
    }
    made.links |= {
        "/sys/class/block/nvme0n1": f"../..{place.removeprefix('/sys')}/nvme0n1",
        "/sys/class/block/nvme0n1p1": f"../..{place.removeprefix('/sys')}/nvme0n1/nvme0n1p1",
        "/sys/class/block/nvme0c1n1": "../../devices/pci0000:00/nvme0c1n1",
        f"{place}/nvme0n1/device": "../../nvme-subsys0",
    }
    for name in ("drbd0", "nbd0", "rbd0"):
        made.virtual(name)
    made.dm(2, "vg-drbd", "LVM-2", ("drbd0",))
    made.dm(3, "vg-local", "LVM-3", ("sde",))
    for name, path in (("loop0", "/srv/a.img"), ("loop1", "/nas/b.img")):
        made.virtual(name)
        made.files[f"/sys/devices/virtual/block/{name}/loop/backing_file"] = f"{path}\n"
    made.files["/proc/self/mountinfo"] = (
        "30 1 8:101 / /srv rw - ext4 /dev/sde rw\n31 1 0:50 / /nas rw - nfs4 nas:/x rw\n"
    )
    made.files["/proc/diskstats"] = "8 101 sde 0 0 0\n"
    made.directories |= {f"/sys/fs/btrfs/1f/devices/{one}" for one in ("sda", "sdb")}
    return made


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        *((name, True) for name in ("nvme0n1", "nvme0n1p1", "drbd0", "nbd0", "rbd0", "dm-2", "loop1")),
        *((name, False) for name in ("sda", "sda1", "dm-3", "dm-1", "loop0", "md0")),
    ],
)
def test_a_device_is_remote_where_what_it_lies_on_is(device: str, expected: bool) -> None:
    assert is_remote(fabric().host(), device) is expected


@pytest.mark.parametrize(
    ("device", "below"),
    [("loop0", {"loop0", "sde"}), ("sda", {"sda", "sdb"}), ("nvme0n1p1", {"nvme0n1p1", "nvme0n1", "nvme0c1n1"})],
)
def test_loops_btrfs_and_nvme_paths_are_followed(device: str, below: set[str]) -> None:
    assert stack_of(fabric().host(), device) == below


@pytest.mark.parametrize(
    ("device", "source", "kind"),
    [
        (None, "tank/data", "zfs"),
        (None, "/dev/vx/dsk/dg/v", "vxfs"),
        ("VxVM50000", "/dev/vx/dsk/dg/v", "vxfs"),
        (None, "/dev/sda:/dev/sdb", "bcachefs"),
    ],
)
def test_a_volume_that_does_not_show_its_disks_is_no_reason_to_refuse(
    device: str | None, source: str, kind: str
) -> None:
    """Whether a disk is below is unknown there: said in a note, never taken for "not below"."""
    there = target(device, source=source, file_system=kind, is_network=kind == "vxfs")
    notes = require_visible(fabric().host(), plan("block:sda:nr_requests"), there, [DIRECT])
    assert len(notes) == 1
    assert "whether sda is below /data is unknown" in notes[0]


def test_a_network_file_system_is_on_no_disk_of_this_host() -> None:
    there = target(None, source="nas:/x", file_system="nfs4", is_network=True)
    with pytest.raises(RefusedError, match="sda is not below"):
        require_visible(fabric().host(), plan("block:sda:nr_requests"), there, [DIRECT])


def test_written_pages_do_not_show_in_buffered_reads() -> None:
    with pytest.raises(RefusedError, match="reads only") as refused:
        require_visible(storage().host(), plan("sysctl:vm.dirty_ratio"), target("sde"), [DIRECT, BUFFERED])
    assert "leave the tunable out" in (refused.value.hint or "")
