"""Queue settings of block devices: the rule that keeps one, what it knows the device by, and what goes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Host, MemoryFiles, Missing, NoCommands, WriteFile
from advisor.tunables import FileEdit, apply_edit, parse_tunable
from advisor.tunables.block import later_rules
from advisor.tunables.preflight import Preflight
from tests.cases import cases
from tests.trees import host_of, make_tree

CASES = cases(__file__)

HOST = CASES["HOST"]
RULE = 'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", '


def written(root: Path, identity: str = "block:sda:scheduler", value: str = "none") -> str:
    """The rule without what all of them begin with, or why there is none."""
    edit = parse_tunable(identity).make_edit(host_of(root), value, profile="p")
    if isinstance(edit, Missing):
        return edit.why
    assert isinstance(edit, FileEdit)
    assert edit.path == "/etc/udev/rules.d/90-advisor-block.rules"
    header, line = apply_edit(None, edit).decode().splitlines()
    assert header.startswith("# ")
    return line.removeprefix(RULE)


def around(root: Path, identity: str, before: str, after: str) -> Preflight:
    one = parse_tunable(identity)
    return one.run_preflight(host_of(root), before, after)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        *CASES["a disk is known by what it alone has"],
        *(
            (
                {"/run/udev/data/b8:0": f"E:ID_SERIAL={sign}\n", "/sys/block/sda/device/wwid": f"x{sign}"},
                f"its serial number holds signs that a udev rule could not carry: {sign!r}",
            )
            for sign in ("a*", "a|b", "a[1]", "a\\x20", "$x", "%k")
        ),
    ],
)
def test_a_disk_is_known_by_what_it_alone_has(changed: dict[str, str], rule: str, tmp_path: Path) -> None:
    assert written(make_tree(tmp_path, {**HOST, **changed})) == rule


def test_arrays_are_known_by_their_uuid(tmp_path: Path) -> None:
    files = {
        **HOST,
        "/sys/block/md0/dev": "9:0\n",
        "/sys/block/md0/md/level": "raid5\n",
        "/run/udev/data/b9:0": "E:MD_UUID=1:2:3:4\n",
        "/sys/block/md1/dev": "9:1\n",
        "/sys/block/md1/md/level": "raid5\n",
        "/sys/block/dm-0/dev": "253:0\n",
        "/sys/block/dm-0/dm/name": "vg-data\n",
        "/sys/block/dm-0/dm/uuid": "LVM-abc\n",
        "/run/udev/data/b253:0": "E:DM_NAME=vg-data\n",
        "/sys/block/dm-1/dev": "253:1\n",
        "/sys/block/dm-1/dm/name": "plain\n",
        "/sys/block/dm-1/dm/uuid": "\n",
        "/sys/block/dm-2/dm/name": "a b\\x22\n",
    }
    root = make_tree(tmp_path, files)
    ahead = 'ATTR{queue/read_ahead_kb}="4096"'
    assert written(root, "block:md0:read_ahead_kb", "4096") == f'KERNEL=="md*", ENV{{MD_UUID}}=="1:2:3:4", {ahead}'
    cache = 'ATTR{md/stripe_cache_size}="4096"'
    assert written(root, "md:md0:stripe_cache_size", "4096") == f'KERNEL=="md*", ENV{{MD_UUID}}=="1:2:3:4", {cache}'
    assert written(root, "block:md1:read_ahead_kb", "4096").startswith("udev has no MD_UUID of it")
    assert written(root, "block:dm-0:read_ahead_kb", "4096") == f'ENV{{DM_UUID}}=="LVM-abc", {ahead}'
    assert written(root, "block:dm-1:read_ahead_kb", "4096") == f'ENV{{DM_NAME}}=="plain", {ahead}'
    assert written(root, "block:dm-2:read_ahead_kb", "4096").startswith("its DM_NAME holds signs")


def test_without_udev_nothing_would_carry_a_rule_out(tmp_path: Path) -> None:
    assert written(make_tree(tmp_path, {"/sys/block/sda/serial": "x"})).startswith("udev does not run here")


def test_the_scheduler_brings_the_queue_length_along(tmp_path: Path) -> None:
    root = make_tree(tmp_path, HOST)
    found = around(root, "block:sda:scheduler", "mq-deadline", "none")
    assert (found.refusal, found.notes) == (None, ())
    assert found.undo == (
        WriteFile("/sys/block/sda/queue/scheduler", "mq-deadline"),
        WriteFile("/sys/block/sda/queue/nr_requests", "64"),
    )
    assert [(one.tunable, one.before) for one in found.side_effects] == [
        ("block:sda:nr_requests", "64"),
        ("block:sda:wbt_lat_usec", "75000"),
    ]
    assert around(root, "block:sda:scheduler", "none", "none").side_effects == ()
    assert around(root, "block:sda:nr_requests", "64", "32").side_effects == ()


@pytest.mark.parametrize(("scheduler", "changed", "refusal", "note"), CASES["which schedulers a device takes"])
def test_which_schedulers_a_device_takes(
    scheduler: str, changed: dict[str, str], refusal: str | None, note: str | None, tmp_path: Path
) -> None:
    found = around(make_tree(tmp_path, {**HOST, **changed}), "block:sda:scheduler", "mq-deadline", scheduler)
    assert (refusal or "") in (found.refusal or "")
    assert bool(refusal) == bool(found.refusal)
    assert [line for line in found.notes if note and line.startswith(note)] == list(found.notes)


def test_no_request_is_larger_than_the_hardware_takes(tmp_path: Path) -> None:
    root = make_tree(tmp_path, HOST)
    assert around(root, "block:sda:max_sectors_kb", "512", "1024").refusal is None
    refusal = around(root, "block:sda:max_sectors_kb", "512", "1028").refusal
    assert refusal == "its hardware takes at most 1024 (max_hw_sectors_kb)"


@pytest.mark.parametrize(("files", "named"), CASES["a rule of a package that is read later is named"])
def test_a_rule_of_a_package_that_is_read_later_is_named(files: dict[str, str], named: list[str]) -> None:
    host = Host(MemoryFiles({path: text.encode() for path, text in files.items()}), NoCommands())
    assert [one.partition(" ")[0] for one in later_rules(host, "queue/scheduler")] == named
