"""What lvs prints, whole, broken and cut."""

from __future__ import annotations

import pytest

from advisor.facts.block.lvm_text import LogicalVolume, is_hidden, parse_lvs, parse_pvs, parse_size
from tests.facts.test_mdstat import command_texts

STRIPED = (
    '{"lv_name":"data", "vg_name":"vg0", "lv_attr":"-wi-ao----", "lv_size":"8585740288", "segtype":"striped", '
    '"stripes":"2", "data_stripes":"2", "stripe_size":"65536", "chunk_size":"0", '
    '"devices":"/dev/nvme0n1(0),/dev/nvme1n1(0)"}'
)
HIDDEN = '{"lv_name":"[pool_tdata]", "vg_name":"vg0", "segtype":"linear", "devices":"/dev/sdb1(5)"}'
JSON = f"""\
  {{ "report": [ {{ "lv": [
                  {STRIPED},
  WARNING: PV /dev/sdc in VG vg0 is using an old PV header, modify the VG to update.
                  {HIDDEN}
      ] }} ] }}
"""
DEVICES = ("nvme0n1", "nvme1n1")
DATA = LogicalVolume(
    "vg0", "data", "-wi-ao----", "striped", 8585740288, 2, 65536, None, devices=DEVICES, is_hidden=False
)


def test_json_with_a_warning_in_the_middle() -> None:
    first, second = parse_lvs(JSON)
    assert first == DATA
    assert (second.name, second.is_hidden, second.devices) == ("pool_tdata", True, ("sdb1",))
    assert parse_lvs(JSON[: JSON.index("WARNING")]) == (DATA,)


def test_json_with_a_bad_escape() -> None:
    (volume,) = parse_lvs('{"lv_name":"data", "vg_name":"v\\x", "lv_size":"5", "stripes":"two"}')
    assert (volume.name, volume.size_bytes, volume.stripes) == ("data", 5, None)


def test_lines_with_prefixed_names() -> None:
    line = (
        "LVM2_LV_NAME='pool'|LVM2_VG_NAME='vg'|LVM2_LV_SIZE='<6.59g'|LVM2_LV_ATTR='twi-aot---'|LVM2_SEGTYPE='linear'\n"
    )
    (volume,) = parse_lvs(f"WARNING: Locking disabled.\n  {line}")
    assert (volume.name, volume.group, volume.size_bytes) == ("pool", "vg", None)
    assert volume.level == "thin-pool"  # its attributes say so, whatever the segment type


def test_columns() -> None:
    text = "  LV   VG Attr       LSize Pool LV Tags Devices\n  root v  -wi-ao---- 5.00g x y /dev/sda2(0)\n  cut v\n"
    (volume,) = parse_lvs(text)
    assert (volume.name, volume.group, volume.attributes, volume.devices) == ("root", "v", "-wi-ao----", ("sda2",))


@pytest.mark.captured
@pytest.mark.parametrize("name", ["lvs/LVS_HEADER_1", "lvm/LVS_HAEADING_OUTUPT"])
def test_captured_columns(name: str) -> None:
    found = parse_lvs(command_texts()[f"{name}.txt"])
    assert [volume.name for volume in found] == [
        *(f"lv_{name}" for name in ("app", "home", "opt", "root", "tmp", "usr", "usrlocal", "var")),
        "swap",
    ]
    assert {(volume.group, volume.devices) for volume in found} == {("vg_root", ("sda2",))}


@pytest.mark.captured
@pytest.mark.parametrize(
    ("name", "volumes"),
    [
        ("lvs/LVS_INFO", [("home", "linear"), ("root", "raid1"), ("swap", "linear")]),
        ("lvs/LVS_INFO_1", [("docker-pool", "thin-pool"), ("root", "linear"), ("swap", "linear")]),
        ("lvs/LVS_INFO_2", [("docker-pool", "thin-pool"), ("root", "linear"), ("swap", "linear")]),
        ("lvs/LVS_INFO_ERROR", []),
        ("lvm/LVM_FULLREPORT", [("root", None), ("lvraid1", None)]),
        ("lvm/LVM_FULLREPORT_EMPTY", []),
        ("lvm/LVM_FULLREPORT_WARNING", [("root", None), ("lvraid1", None)]),
        ("lvm/LVM_FULLREPORT_WARNING_IN_JSON_MIDDLE", [("root", None), ("lvraid1", None)]),
        ("lvm/LVM_FULLREPORT_SPECIAL_KEYWORDS", [("lv_d", "linear"), ("lv_e", "linear")]),
        ("lvm/CONTENT_WITH_EXTRA_LOCK_TIPS", []),
        ("lvm/WARNINGS_CONTENT", []),
        ("lvm/VGS_OUTPUT", []),
    ],
)
def test_captured_reports(name: str, volumes: list[tuple[str, str | None]]) -> None:
    found = parse_lvs(command_texts()[f"{name}.txt"])
    assert [(one.name, one.level) for one in found if not one.is_hidden] == volumes


@pytest.mark.parametrize(
    ("text", "size", "exact"),
    [
        *[("1024", 1024, 1024), ("64.00k", 65536, None), ("<6.59g", 7075958620, None), ("0 ", 0, 0), ("5B", 5, 5)],
        *[("", None, None), ("g", None, None), ("1.2.3", None, None), ("-1", None, None), ("2s", 1024, 1024)],
    ],
)
def test_sizes(text: str, size: int | None, exact: int | None) -> None:
    assert (parse_size(text), parse_size(text, exact=True)) == (size, exact)


def test_physical_volumes_in_each_form() -> None:
    columns = "  PV VG Fmt Attr\n  /dev/sda2 v lvm2 a--\n  unknown device w lvm2 a-m\n  /dev/loop0 --- 0 0\n"
    rows = [("/dev/sda2", "v"), ("[unknown]", "w"), ("/dev/sdb", "")]
    as_json = "".join(f'{{"pv_name":"{device}", "vg_name":"{group}"}},\n' for device, group in rows)
    prefixed = "".join(f"LVM2_PV_NAME='{device}' LVM2_VG_NAME='{group}'\n" for device, group in rows)
    assert [parse_pvs(text) for text in (columns, as_json, prefixed)] == [{"v": ("sda2",), "w": ("",)}] * 3


def test_volumes_that_lvm_keeps_for_itself() -> None:
    hidden = ["lv_rimage_0", "lv_rmeta_11", "p_tdata", "p_tmeta", "c_corig", "c_cdata", "lvol0_pmspare", "m_mlog"]
    assert all(map(is_hidden, hidden))
    assert not any(map(is_hidden, ["data", "rimage", "my_tdata2", "lv_rimage_x"]))
