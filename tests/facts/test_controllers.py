"""RAID controllers from what their tools print; the texts are made up, in the shape of public ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.facts.block.controller import (
    Controller,
    data_disks,
    device_name,
    level_of,
    losses_of,
    losses_of_spans,
    media_of,
    size_bytes,
)
from advisor.facts.block.controllers import (
    ARCCONF,
    ARCCONF_LIST,
    SHOW,
    SHOW_DRIVES,
    SHOW_VOLUMES,
    SSACLI,
    controller_arrays,
    read_controllers,
)
from advisor.facts.block.smart_raid import parse_arcconf, parse_arcconf_numbers, parse_ssacli
from advisor.facts.block.storcli import parse_storcli, parse_storcli_drives, parse_storcli_volumes, with_details
from advisor.facts.block.three_ware import parse_tw_cli_controllers, parse_tw_cli_drives, parse_tw_cli_units
from advisor.facts.host_facts import scan
from advisor.facts.unknown import Unknown, Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from advisor.limits.paths import limits_of
from advisor.planning.devices import explain_none_chosen, select_arrays
from advisor.profiles.profile import Wanted
from advisor.rules.judged import count_judged
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.cases import read_cases
from tests.rules.build import disk, facts
from tests.trees import host_of, make_command, make_tree


def storcli(**parts: Any) -> str:
    """``/call show all J`` of a controller with a RAID 10 of 8 disks and a RAID 1 of SSDs."""
    drives = [{"EID:Slt": f"252:{n}", "DID": n, "State": "Onln", "DG": 0, "Med": "HDD"} for n in range(8)]
    drives += [{"EID:Slt": f"252:{n}", "DID": n, "State": "Onln", "DG": 1, "Med": "SSD"} for n in (8, 9)]
    data: dict[str, Any] = {
        "Basics": {"Controller": 0, "Model": "MegaRAID 9361-8i", "Serial Number": "SN1"},
        "Version": {"Firmware Version": "4.680.00-8563"},
        "Status": {"Controller Status": "Optimal"},
        "HwCfg": {"BBU": "Absent", "On Board Memory Size": "1024MB"},
        "VD LIST": [
            {"DG/VD": "0/0", "TYPE": "RAID10", "State": "Optl", "Cache": "RWBD", "Size": "7.276 TB", "Name": "data"},
            {"DG/VD": "1/1", "TYPE": "RAID1", "State": "Dgrd", "Cache": "NRWTD", "Size": "446 GB", "Name": "os"},
        ],
        "PD LIST": drives,
        "Cachevault_Info": [{"Model": "CVPM02", "State": "Optimal", "Temp": "28C"}],
    }
    status = {"Controller": 0, "Status": "Success"}
    return json.dumps({"Controllers": [{"Command Status": status, "Response Data": data | parts}]})


DATA = read_cases(__file__)

VOLUMES = DATA["VOLUMES"]
FAILED = json.dumps({"Controllers": [{"Command Status": {"Controller": 0, "Status": "Failure"}, "Response Data": {}}]})

TW_SHOW = DATA["TW_SHOW"]
TW_UNITS = DATA["TW_UNITS"]
TW_BATTERY = DATA["TW_BATTERY"]

SSACLI_TEXT = DATA["SSACLI_TEXT"]


def only(found: tuple[Controller, ...]) -> Controller:
    (one,) = found
    return one


def test_a_controller_of_storcli() -> None:
    one = with_details(only(parse_storcli(storcli())), parse_storcli_volumes(VOLUMES))
    assert (one.name, one.model, one.firmware) == ("0", "MegaRAID 9361-8i", "4.680.00-8563")
    assert one.protection is not None
    assert (one.protection.kind, one.protection.state, one.is_protected) == ("flash", "Optimal", True)
    data, system = one.volumes
    assert (data.name, data.level, data.state, data.write_policy) == ("0/0", "raid10", "active", "write-back")
    assert (data.drives, data.media, data.chunk_bytes, data.device) == (8, "hdd", 256 << 10, "sda")
    assert (system.level, system.state, system.write_policy) == ("raid1", "degraded", "write-through")
    assert (system.drives, system.media, system.chunk_bytes, system.device) == (2, "ssd", None, None)


@pytest.mark.parametrize(("parts", "has", "protected"), DATA["what_protects_the_cache"])
def test_what_protects_the_cache(parts: dict[str, Any], has: bool | None, protected: bool | None) -> None:
    one = only(parse_storcli(storcli(**parts)))
    assert (one.has_protection, one.is_protected) == (has, protected)


@pytest.mark.parametrize(("cache", "policy"), DATA["the_letters_of_the_cache"])
def test_the_letters_of_the_cache(cache: str, policy: str | None) -> None:
    one = only(parse_storcli(storcli(**{"VD LIST": [{"DG/VD": "0/0", "Cache": cache}]})))
    assert one.volumes[0].write_policy == policy


@pytest.mark.parametrize("text", [*DATA["what_is_no_answer_of_storcli"], "[" * 90_000])
def test_what_is_no_answer_of_storcli(text: str) -> None:
    assert (parse_storcli(text), parse_storcli_volumes(text), parse_storcli_drives(text)) == ((), (), {})


@pytest.mark.parametrize(("drives", "spans", "state", "missing", "left"), DATA["missing_drives"])
def test_missing_drives_by_their_span(
    drives: int, spans: list[str], state: str, missing: int | None, left: int
) -> None:
    """Each text is a span, each letter a drive: O online, M missing, R rebuilding."""
    states = {"O": "Onln", "M": "Msng", "R": "Rbld"}
    rows = [
        {"DG": 0, "Arr": number, "Type": "DRIVE", "State": states[letter], "EID:Slot": "252:0"}
        for number, span in enumerate(spans)
        for letter in span
    ]
    level = {0: "RAID6", 1: "RAID10", 5: "RAID50", 6: "RAID60"}[drives]
    volume = {"DG/VD": "0/0", "TYPE": level, "State": state, "Cache": "RWBD"}
    one = only(parse_storcli(storcli(**{"TOPOLOGY": rows, "VD LIST": [volume]}))).volumes[0]
    assert (one.missing, one.survives) == (missing, left)


def test_drives_behind_each_tool() -> None:
    """Name, group, whether it is lost, health passed, media errors, temperature, used endurance."""
    second = parse_storcli(DATA["STORCLI2"])[0]
    cache = second.protection
    assert (second.name, second.model, second.volumes[0].write_policy) == ("0", "MegaRAID 9660-16i", "write-back")
    assert cache is not None
    assert (cache.kind, cache.healthy, parse_storcli_volumes(DATA["STORCLI2_VOLUMES"])[0].device) == (
        *("flash", True),
        "sdb",
    )
    adaptec = parse_arcconf("1", DATA["ARCCONF"])
    assert adaptec is not None
    first, other = adaptec.volumes
    assert (first.level, first.state, first.missing, first.survives) == ("raid6", "degraded", 1, 1)
    assert (first.write_policy, other.write_policy, other.level) == ("write-through", "always-write-back", "raid10")
    assert (adaptec.is_protected, parse_arcconf_numbers(DATA["ARCCONF_LIST"])) == (True, ("1",))
    without = parse_arcconf("1", DATA["ARCCONF"].replace("Status        : Ready", "Status        : Not Installed"))
    assert without is not None
    assert without.is_protected is False
    found = {
        "storcli": parse_storcli_drives(DATA["STORCLI_DRIVES"])["0"],
        "storcli2": parse_storcli_drives(DATA["STORCLI2_DRIVES"])["0"],
        "ssacli": only(parse_ssacli(DATA["SSACLI_DRIVES"])).drives,
        "tw_cli": parse_tw_cli_drives(DATA["TW_DRIVES"]),
        "arcconf": adaptec.drives,
    }
    listed = {
        tool: tuple(
            (
                *(one.name, one.group, one.is_lost, one.health.passed, one.health.media_errors),
                *(one.health.temperature_celsius, one.health.percentage_used),
            )
            for one in drives
        )
        for tool, drives in found.items()
    }
    assert listed == DATA["drives"]


def test_losses_of_spans() -> None:
    assert losses_of_spans("raid60", [(8, 1), (8, 2)]) == 0
    assert losses_of_spans("raid10", [(2, 0), (2, 2)]) == -1
    assert losses_of_spans("raid50", [(3, 0)]) == 1
    assert (losses_of_spans("raid60", []), losses_of("raid60", None, 1), losses_of("raid10", 4, None)) == (
        None,
        1,
        None,
    )


def test_a_unit_of_tw_cli() -> None:
    assert parse_tw_cli_controllers(TW_SHOW) == (("0", "9650SE-8LPML"),)
    (first, second), has_protection, battery = parse_tw_cli_units(TW_UNITS + TW_BATTERY)
    assert (first.name, first.level, first.state, first.write_policy) == ("u0", "raid10", "active", "write-back")
    assert (first.drives, first.chunk_bytes, first.media) == (4, 256 << 10, None)
    assert (second.level, second.state, second.write_policy) == ("raid6", "degraded", "write-through")
    assert battery is not None
    assert (has_protection, battery.state, battery.healthy) == (True, "OK", True)
    assert parse_tw_cli_units(TW_UNITS)[1:] == (False, None)
    assert parse_tw_cli_units("") == ((), None, None)


@pytest.mark.parametrize(("line", "healthy"), DATA["a_battery_that_is_not_well"])
def test_a_battery_that_is_not_well(line: str, healthy: bool | None) -> None:
    battery = parse_tw_cli_units(TW_UNITS + line)[2]
    assert battery is not None
    assert battery.healthy is healthy


def test_a_controller_of_ssacli() -> None:
    one = only(parse_ssacli(SSACLI_TEXT))
    assert (one.name, one.model, one.firmware, one.is_protected) == ("0", "Smart Array P440ar", "6.60", True)
    first, second = one.volumes
    assert (first.level, first.state, first.write_policy) == ("raid10", "active", "write-back")
    assert first.chunk_bytes == 256 << 10
    assert (first.drives, first.media) == (2, "hdd")
    assert (second.level, second.state, second.write_policy) == ("raid5", "degraded", "write-through")
    assert (second.device, second.media, second.drives) == ("sdb", "ssd", 1)


@pytest.mark.parametrize(("old", "new", "policy"), DATA["the_write_cache_of_ssacli"])
def test_the_write_cache_of_ssacli(old: str, new: str, policy: str | None) -> None:
    assert only(parse_ssacli(SSACLI_TEXT.replace(old, new))).volumes[0].write_policy == policy


def test_no_battery_in_a_smart_array() -> None:
    without = SSACLI_TEXT.replace("Count: 1", "Count: 0").replace("   Battery/Capacitor Status: OK\n", "")
    one = only(parse_ssacli(without))
    assert (one.has_protection, one.is_protected) == (False, False)
    unknown = SSACLI_TEXT.replace("Battery/Capacitor", "Other")
    assert only(parse_ssacli(unknown)).is_protected is None


def test_words_that_all_tools_share() -> None:
    assert [level_of(text) for text in ("RAID10", "RAID-10", "1+0", "RAID-50", "JBOD", "", "RAID7")] == [
        *("raid10", "raid10", "raid10", "raid50"),
        *(None, None, None),
    ]
    assert [data_disks(level, 8) for level in ("raid0", "raid10", "raid5", "raid6", "raid50", None)] == [
        *(8, 4, 7, 6),
        *(None, None),
    ]
    assert (data_disks("raid6", 2), data_disks("raid10", 3), data_disks("raid0", None)) == (None, None, None)
    assert [size_bytes(text) for text in ("256 KB", "1.0 MB", "64K", "-", "256 B")] == [
        *(256 << 10, 1 << 20, 64 << 10),
        *(None, None),
    ]
    assert (device_name("/dev/sda"), device_name("None"), device_name("/dev/../x")) == ("sda", None, None)
    assert (media_of(frozenset({"hdd", "ssd"})), media_of(frozenset({""}))) == ("mixed", None)


def recorded(**answers: Completed | Missing) -> Host:
    """A host whose tools gave these answers, by the first word with _ for what no name can hold."""
    argvs = {
        "storcli": ("storcli64", *SHOW),
        "volumes": ("storcli64", *SHOW_VOLUMES),
        "drives": ("storcli64", *SHOW_DRIVES),
        "arcconf": ARCCONF_LIST,
        "arcconf1": (*ARCCONF, "1", "al", "nologs"),
        "perccli": ("/opt/MegaRAID/perccli/perccli64", *SHOW),
        "tw": ("tw_cli", "show"),
        "tw0": ("tw_cli", "/c0", "show"),
        "ssacli": SSACLI,
    }
    commands = RecordedCommands({argvs[name]: answer for name, answer in answers.items()})
    return Host(MemoryFiles({}), commands, is_root=True)


def read(host: Host) -> tuple[tuple[Controller, ...], dict[str, str]]:
    unknown = Unknowns()
    found = read_controllers(host, unknown)
    return found, {one.fact: one.why for one in unknown.listed()}


def test_a_host_without_tools() -> None:
    assert read(recorded()) == ((), {})


@pytest.mark.parametrize(
    ("driver", "kind", "vendor", "tool"),
    [
        *[("megaraid_sas", "0x010400", "0x1000", "storcli or perccli"), ("mpi3mr", "0x010700", "", "storcli2")],
        *[("smartpqi", "0x010700", "0x1590", "ssacli"), ("smartpqi", "0x010400", "0x9005", "arcconf")],
        *[("arcmsr", "0x010400", "", "cli64"), ("3w-9xxx", "0x010400", "", "tw_cli"), ("new", "0x010400", "", "maker")],
        *[("vmd", "0x010400", "", None), ("ahci", "0x010400", "", None), ("mpt3sas", "0x010700", "", None)],
    ],
)
def test_a_controller_that_no_tool_tells_of_is_unknown(driver: str, kind: str, vendor: str, tool: str | None) -> None:
    place = "/sys/bus/pci/devices/0000:5c:00.0"
    files = {f"{place}/class": kind.encode()} | ({f"{place}/subsystem_vendor": vendor.encode()} if vendor else {})
    links = {f"{place}/driver": f"../../../bus/pci/drivers/{driver}"}
    drives = Completed(0, DATA["STORCLI_DRIVES"], "")
    answers: dict[tuple[str, ...], Completed | Missing] = {("storcli64", *SHOW): Completed(0, storcli(), "")}
    answers["storcli64", *SHOW_DRIVES] = drives
    found, unknown = read(Host(MemoryFiles(files, links), RecordedCommands({})))
    assert [(one.name, one.tool) for one in found] == ([("0000:5c:00.0", "")] if tool else [])
    assert (tool or "") in (found[0].detail["install"] if found else "")
    assert list(unknown) == (["controllers"] if tool else [])
    # The tool of another controller tells nothing of this one.
    found, unknown = read(Host(MemoryFiles(files, links), RecordedCommands(answers)))
    assert [one.tool for one in found if not one.tool] == ([""] if tool and driver != "megaraid_sas" else [])
    by_host = {"/sys/class/scsi_host/host0/proc_name": f"{driver}\n".encode()}
    assert len(read(Host(MemoryFiles(by_host), RecordedCommands({})))[0]) == (tool is not None and driver != "new")


def test_without_its_tool_the_rules_of_a_controller_are_not_judged() -> None:
    judged = count_judged(facts(unknown=(Unknown("controllers", "no tool"),)), ())
    assert judged.unread == ("controllers",)
    assert judged.of - judged.rules > 0


def test_tools_are_asked_in_the_order_of_their_controllers(tmp_path: Path) -> None:
    tools = ("storcli64", "storcli2", "tw_cli", "arcconf", "ssacli")
    for tool in tools:
        make_command(tmp_path / "bin", tool, f'echo {tool} >> "{tmp_path}/asked"; exit 1')
    read(host_of(make_tree(tmp_path / "root", {}), tmp_path / "bin"))
    assert tuple((tmp_path / "asked").read_text().split()) == tools


def test_each_tool_is_asked_and_each_volume_is_an_array() -> None:
    host = recorded(
        storcli=Completed(0, storcli(), ""),
        volumes=Completed(0, VOLUMES, ""),
        tw=Completed(0, TW_SHOW, ""),
        tw0=Completed(0, TW_UNITS, ""),
        ssacli=Completed(0, SSACLI_TEXT, ""),
        arcconf=Completed(0, DATA["ARCCONF_LIST"], ""),
        arcconf1=Completed(0, DATA["ARCCONF"], ""),
    )
    found, unknown = read(host)
    assert [one.tool for one in found] == ["storcli", "tw_cli", "arcconf", "ssacli"]
    assert unknown == {"controllers.drives": "no recorded output of storcli64"}
    arrays = controller_arrays(found, (disk("sda", kind="scsi", mountpoints=("/srv",), numa_node=1),))
    assert [one.name for one in arrays] == [
        *("c0/v0", "c0/v1", "tw0/u0", "tw0/u1", "ctrl1/0", "ctrl1/1"),
        *("slot0/1", "slot0/2"),
    ]
    first = arrays[0]
    assert (first.manager, first.device, first.disks, first.mountpoints) == ("controller", "sda", ("sda",), ("/srv",))
    assert (first.level, first.chunk_bytes, first.data_disks, first.numa_nodes) == ("raid10", 256 << 10, 4, (1,))
    assert (arrays[1].device, arrays[1].disks, arrays[1].size_bytes) == ("c0/v1", (), None)


def test_perccli_is_asked_where_storcli_sees_nothing() -> None:
    found, unknown = read(recorded(storcli=Completed(0, FAILED, ""), perccli=Completed(0, storcli(), "")))
    assert [one.name for one in found] == ["0"]
    assert "storcli64 returned 0 and shows no controller" in unknown["controllers"]


def test_a_tool_that_may_not_or_does_not_answer_is_told() -> None:
    found, unknown = read(recorded(tw=Missing("unreadable", "tw_cli did not answer within 20 s")))
    assert (found, unknown) == ((), {"controllers": "tw_cli did not answer within 20 s"})
    found, unknown = read(recorded(ssacli=Completed(1, "", "Error: You need to have administrator rights")))
    assert found == ()
    assert "administrator rights" in unknown["controllers"]


def test_a_scan_asks_the_tool_itself_and_a_snapshot_replays_it(tmp_path: Path) -> None:
    (tmp_path / "call.json").write_text(storcli())
    (tmp_path / "vall.json").write_text(VOLUMES)
    log = tmp_path / "asked"
    script = f'echo "$*" >> {log}\ncase $1 in /call) cat {tmp_path}/call.json ;; *) cat {tmp_path}/vall.json ;; esac'
    make_command(tmp_path / "bin", "storcli64", script)
    host = host_of(make_tree(tmp_path / "root", {"/proc/self/mountinfo": ""}), tmp_path / "bin")
    data = capture_host(host, scan)
    assert log.read_text().splitlines() == [
        *("/call show all J nolog", "/call/vall show all J nolog"),
        "/call/eall/sall show all J nolog",
    ]
    (tmp_path / "snapshot").write_bytes(data)
    once, again = scan(host), scan(open_snapshot(tmp_path / "snapshot"))
    assert [one.name for one in once.arrays] == ["c0/v0", "c0/v1"]
    assert (again.controllers, again.arrays) == (once.controllers, once.arrays)


def test_a_volume_is_one_path_and_no_array_that_a_profile_selects() -> None:
    """To the kernel it is a disk: `limits` names it once, by that, and its queue is set as the disk's."""
    found, _ = read(recorded(storcli=Completed(0, storcli(), ""), volumes=Completed(0, VOLUMES, "")))
    disks = (disk("sda", kind="scsi", pci=None),)
    host = facts(disks=disks, arrays=controller_arrays(found, disks), links=())
    assert [(one.name, one.disks) for one in limits_of(host).paths] == [("sda", ("sda",))]
    wanted = Wanted("block:{array}:read_ahead_kb", "1024", "why", "when", ("source",), for_each="arrays")
    assert select_arrays(wanted, {}, host) == ()
    assert explain_none_chosen(wanted, {}, host) == "this host has no arrays that a scan knows"
