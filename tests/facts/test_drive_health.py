"""The health of drives by smartctl: parsed, asked of several drives at once, of sleeping ones not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.facts.block.disks import Disk, read_disks
from advisor.facts.block.drive_health import SMARTCTL, with_health
from advisor.facts.block.smart import DriveHealth, parse_smartctl
from advisor.facts.host_facts import scan
from advisor.facts.unknown import Unknown, Unknowns
from advisor.host import DirectoryFiles, Host, LiveCommands, Missing
from advisor.rules.judged import judge
from advisor.snapshot.archive import capture_host, open_archive
from tests import smart_documents as smart
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.trees import STANDARD_PATH, make_command, make_tree


def parsed(text: str) -> DriveHealth:
    health = parse_smartctl(text)
    assert isinstance(health, DriveHealth), health
    return health


def test_an_ata_drive() -> None:
    health = parsed(smart.ata(smart.attribute(5, "Reallocated_Sector_Ct", "12 (0 0)"), **smart.error_recovery(70)))
    assert (health.protocol, health.passed, health.power_on_hours) == ("ATA", True, 31234)
    assert health.temperature_celsius == 33
    assert (health.reallocated_sectors, health.pending_sectors, health.uncorrectable_sectors) == (12, 0, 0)
    assert (health.read_limit_seconds, health.write_limit_seconds, health.failed_attributes) == (7.0, 7.0, ())
    assert parsed(smart.ata(**smart.error_recovery(None))).read_limit_seconds == 0
    assert parsed(smart.ata()).read_limit_seconds is None


def test_an_nvme_drive() -> None:
    health = parsed(smart.nvme(critical_warning=1, available_spare=4, percentage_used=140, media_errors=1 << 70))
    assert (health.protocol, health.passed, health.critical_warning) == ("NVMe", False, 1)
    assert (health.available_spare_percent, health.spare_threshold_percent, health.percentage_used) == (4, 10, 140)
    assert (health.temperature_celsius, health.temperature_limit_celsius) == (37, 80)
    # A counter of 128 bits that no drive has reached.
    assert health.media_errors is None


def test_a_sas_drive() -> None:
    health = parsed(smart.scsi(defects=260, uncorrected=2, status=smart.FAILURE_PREDICTED))
    assert (health.protocol, health.passed, health.grown_defects, health.uncorrected_errors) == ("SCSI", False, 260, 2)
    assert health.status == "HARDWARE IMPENDING FAILURE GENERAL HARD DRIVE FAILURE (asc 5dh, ascq 10h)"
    assert not health.is_only_warning
    assert parsed(smart.scsi(status=smart.TOO_HOT)).is_only_warning


DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "why"), [*DATA["what_is_no_health_says_why"], ("[" * 100_000, "no JSON")])
def test_what_is_no_health_says_why(text: str, why: str) -> None:
    found = parse_smartctl(text)
    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize("odd", [-1, 1.5, "3", True, None, [], {}, 1 << 80, "٣"])
def test_an_odd_value_is_unknown(odd: Any) -> None:
    health = parsed(smart.nvme(percentage_used=odd, media_errors=odd, power_on_hours=odd))
    assert (health.percentage_used, health.media_errors, health.power_on_hours) == (None, None, None)
    row = smart.attribute(197, "Current_Pending_Sector") | {"raw": {"string": odd if odd != "3" else "x3"}}
    assert parsed(smart.ata(row)).pending_sectors is None


def tree_of(*names: str, **parts: Any) -> Tree:
    tree = Tree()
    for name in names:
        place = f"/sys/block/{name}"
        tree.directories.add(place)
        tree.files |= {f"{place}/size": "7814037168\n", f"{place}/device/model": "x", f"{place}/queue/rotational": "1"}
    return tree


def asked(host: Host) -> tuple[tuple[Disk, ...], tuple[Unknown, ...]]:
    unknown = Unknowns()
    disks = with_health(host, read_disks(host, Unknowns()), unknown)
    return disks, unknown.listed()


def test_each_drive_has_its_own_health_and_each_failure_its_reason() -> None:
    tree = tree_of("sda", "sdb", "sdc", "sdd")
    tree.answer((*SMARTCTL, "/dev/sda"), smart.ata())
    tree.answer((*SMARTCTL, "/dev/sdb"), smart.BEHIND_A_CONTROLLER, 2)
    tree.answer((*SMARTCTL, "/dev/sdc"), smart.ASLEEP, 2)
    tree.answers[(*SMARTCTL, "/dev/sdd")] = Missing("unreadable", "smartctl did not answer within 10 s")
    disks, unknown = asked(tree.host())
    assert [disk.health is not None for disk in disks] == [True, False, False, False]
    assert [(one.fact, one.why) for one in unknown] == [
        ("disks.sdb.health", "Smartctl open device: /dev/sda failed: DELL or MegaRaid controller"),
        ("disks.sdc.health", "the drive sleeps and is not woken"),
        ("disks.sdd.health", "smartctl did not answer within 10 s"),
    ]


def test_a_drive_that_the_kernel_has_powered_down_is_not_asked() -> None:
    tree = tree_of("sda")
    tree.files["/sys/block/sda/device/power/runtime_status"] = "suspended\n"
    tree.answer((*SMARTCTL, "/dev/sda"), smart.ata())
    disks, unknown = asked(tree.host())
    assert disks[0].health is None
    assert unknown == (Unknown("disks.health", "the drive sleeps and is not woken"),)


def test_without_root_it_says_so_once_and_the_kernel_still_gives_temperatures() -> None:
    tree = tree_of("sda", "sdb")
    tree.files["/sys/block/sdb/queue/rotational"] = "0"
    for name in ("sda", "sdb"):
        tree.files[f"/sys/block/{name}/device/hwmon/hwmon3/temp1_input"] = "31000\n"
    disks, unknown = asked(tree.host(is_root=False))
    assert unknown == (Unknown("disks.health", "smartctl needs root to read the drive's health"),)
    # The one that turns is not asked: that would keep it from sleeping.
    assert [disk.health and disk.health.temperature_celsius for disk in disks] == [None, 31]


def test_without_smartctl_it_says_so_once() -> None:
    tree = tree_of("sda", "sdb")
    assert asked(tree.host())[1] == (Unknown("disks.health", "no recorded output of smartctl"),)


def test_luns_of_other_machines_are_not_asked() -> None:
    tree = tree_of()
    place = "/sys/devices/platform/host3/session1/target3:0:0/3:0:0:1/block/sda"
    tree.files |= {f"{place}/size": "2048", f"{place}/device/model": "LUN"}
    tree.links["/sys/block/sda"] = f"..{place.removeprefix('/sys')}"
    disks, unknown = asked(tree.host())
    assert [disk.detail["transport"] for disk in disks] == ["iscsi"]
    assert unknown == ()


def test_drives_are_asked_at_the_same_time(tmp_path: Path) -> None:
    """Each stand-in answers only once all four run."""
    names = [f"sd{letter}" for letter in "abcde"]
    root = make_tree(tmp_path / "root", {f"/sys/block/{name}/size": "2048\n" for name in names})
    (tmp_path / "sda.json").write_text(smart.ata())
    make_command(
        tmp_path / "bin",
        "smartctl",
        f'for last; do :; done; [ "$last" = /dev/sda ] || : >{tmp_path}/running.${{last##*/}}\n'
        f'while [ "$last" != /dev/sda ] && [ "$(ls {tmp_path} | grep -c running)" -lt 4 ]; do sleep 0.05; done\n'
        f"cat {tmp_path}/sda.json",
    )
    commands = LiveCommands(path=f"{tmp_path}/bin:{STANDARD_PATH}")
    host = Host(DirectoryFiles(str(root)), commands, is_live=True, is_root=True)
    disks, unknown = asked(host)
    assert [disk.health is not None for disk in disks] == [True] * 5
    assert unknown == ()


def test_a_snapshot_replays_it() -> None:
    tree = tree_of("sda")
    tree.answer((*SMARTCTL, "/dev/sda"), smart.ata(passed=False))
    host = open_archive(capture_host(tree.host(), scan), "x")
    facts = scan(host)
    assert facts.disks[0].health == parsed(smart.ata(passed=False))
    found = [one for one in judge(facts) if one.id == "disks.failing"]
    assert [one.severity for one in found] == ["critical"]
    assert found[0].commands == ("smartctl -a /dev/sda",)


def test_the_command_reads_and_wakes_nothing() -> None:
    assert "--nocheck=standby" in SMARTCTL
    assert not [word for word in SMARTCTL if word.startswith(("--test", "-t", "--set", "-s", "--smart", "--offline"))]
