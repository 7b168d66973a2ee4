"""Disks, file systems and arrays of a real kernel, judged by lsblk, mdadm, lvs, xfs_info and dumpe2fs."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import cases

CASES = cases(__file__)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .guest import Machine

SCAN = CASES["SCAN"]
ENVIRONMENT = "PYTHONPATH=/src:/opt/advisor-deps PYTHONPYCACHEPREFIX=/var/cache/pycache"


def scan(guest: Machine, user: str = "root") -> dict[str, dict[str, Any]]:
    done = guest.run(f"{ENVIRONMENT} python3 -c '{SCAN}'", user=user).check()
    found = json.loads(done.stdout)
    named = {key: {one["name"]: one for one in found[key]} for key in ("disks", "arrays")}
    named["filesystems"] = {one["device"]: one for one in found["filesystems"]}
    return named | {"unknown": {one["fact"]: one["why"] for one in found["unknown"]}}


def ask(guest: Machine, command: str) -> Any:
    return json.loads(guest.run(command).check().stdout)


def drive(guest: Machine, serial: str) -> str:
    rows = ask(guest, "lsblk --json --nodeps -o NAME,SERIAL")["blockdevices"]
    return next(str(row["name"]) for row in rows if (row["serial"] or "").strip() == serial)


@pytest.fixture(scope="module")
def names(guest: Machine) -> dict[str, str]:
    return {
        serial: drive(guest, serial) for serial in (f"LAB-N{node}-{index}" for node in (0, 1) for index in range(3))
    }


@pytest.fixture(scope="module")
def arrays(guest: Machine, names: dict[str, str]) -> Iterator[dict[str, str]]:
    """md5 over three drives, and a volume group over the other three; taken away afterwards."""
    five = " ".join(f"/dev/{names[one]}" for one in ("LAB-N0-0", "LAB-N0-1", "LAB-N1-0"))
    group = " ".join(f"/dev/{names[one]}" for one in ("LAB-N0-2", "LAB-N1-1", "LAB-N1-2"))
    guest.run(
        "mdadm --quiet --create /dev/md5 --run --assume-clean --level=5 --chunk=128 --size=768M"
        f" --raid-devices=3 {five}"
        " && mkfs.xfs -q -f /dev/md5 && mkdir -p '/mnt/a b' /mnt/s && mount /dev/md5 '/mnt/a b'"
        f" && vgcreate -q vg-x {group}"
        " && lvcreate -q -y -n stri-ped -i 2 -I 256k -L 400m vg-x"
        " && mkfs.ext4 -q -F /dev/vg-x/stri-ped && mount /dev/vg-x/stri-ped /mnt/s"
        " && lvcreate -q -y --type raid5 --nosync -i 2 -I 64k -n five -L 120m vg-x"
        " && lvcreate -q -y --type raid1 -m 1 --nosync -n mirror -L 60m vg-x"
        " && lvcreate -q -y --type thin-pool -n pool -L 200m vg-x && lvcreate -q -y -V 1g --thinpool pool -n thin vg-x"
        " && lvcreate -q -y -s -n snap -L 40m vg-x/mirror; udevadm settle",
        timeout=300,
    ).check()
    yield names
    guest.run(
        "umount '/mnt/a b' /mnt/s; vgchange -q -an vg-x; vgremove -q -ff -y vg-x; mdadm --quiet --stop /dev/md5;"
        f" wipefs -qa {five} {group}; udevadm settle",
        timeout=300,
    )


@pytest.fixture(scope="module")
def found(guest: Machine, arrays: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Root's scan of them, before anything fails."""
    return scan(guest)


def test_a_multipath_map(guest: Machine, names: dict[str, str]) -> None:
    """Two drives stand for two paths to one. Comes first: the arrays below take these drives."""
    if guest.run("modprobe -q dm-multipath && modprobe -q dm-round-robin").rc != 0:
        pytest.skip("the guest's kernel has no dm-multipath")
    paths = [names["LAB-N0-0"], names["LAB-N1-0"]]
    numbers = [guest.run(f"cat /sys/block/{path}/dev").check().stdout.strip() for path in paths]
    table = "0 2048 multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1 " + " ".join(f"{one} 1" for one in numbers)
    # multipath-tools' rule asks multipath(8) about every map so named, which fails paths that it did not set up itself.
    rule = "/run/udev/rules.d/56-dm-mpath.rules"
    guest.run(f"mkdir -p {rule.rpartition('/')[0]} && ln -s /dev/null {rule} && udevadm control --reload").check()
    try:
        guest.run(f"dmsetup create mptest --uuid mpath-lab --table '{table}'").check()
        array = scan(guest)["arrays"]["mptest"]
        assert (array["manager"], array["state"], array["members"]) == ("dm-multipath", "active", paths)
        guest.run(f"dmsetup message mptest 0 fail_path {numbers[1]}").check()
        array = scan(guest)["arrays"]["mptest"]
        assert (array["state"], array["failed"], array["numa_nodes"]) == ("degraded", [paths[1]], [0, 1])
    finally:
        guest.run(f"dmsetup remove mptest; rm -f {rule}; udevadm control --reload")


HEALTH = CASES["HEALTH"]


def test_log_page_0x02_over_the_ioctl(guest: Machine, names: dict[str, str]) -> None:
    """The emulated controller's page: 323 K and no error; it fills in no spare."""
    asked = f"{ENVIRONMENT} python3 -c '{HEALTH}'"
    counters, gauges, missing = json.loads(guest.run(asked).check().stdout)
    assert missing == {}
    assert len(names) == len(counters["smart"]) == len(gauges["smart"])
    for name in counters["smart"]:
        assert {*counters["smart"][name].values()} == {0}
        levels = gauges["smart"][name]
        assert (levels["temperature_celsius"], levels["critical_warning"]) == (50, 0), levels
    _, gauges, missing = json.loads(guest.run(asked, user="plain").check().stdout)
    assert gauges == {}
    assert "root reads log pages" in missing["smart"]


def test_an_md_array_as_mdadm_sees_it(guest: Machine, found: dict[str, dict[str, Any]]) -> None:
    array = found["arrays"]["md5"]
    export = guest.run("mdadm --detail --export /dev/md5").check().stdout
    judged = dict(line.split("=", 1) for line in export.splitlines())
    assert (array["level"], array["missing"], array["state"]) == (judged["MD_LEVEL"], 0, "clean")
    assert set(array["members"]) == {value[5:] for key, value in judged.items() if key.endswith("_DEV")}
    assert (array["chunk_bytes"], array["data_disks"], array["numa_nodes"]) == (128 << 10, 2, [0, 1])
    assert array["mountpoints"] == ["/mnt/a b"]
    assert array["queue"]["optimal_io_size"] == str(256 << 10)
    assert found["unknown"] == {}


def test_the_geometry_of_file_systems(guest: Machine, found: dict[str, dict[str, Any]]) -> None:
    xfs = found["filesystems"]["md5"]
    info = guest.run("xfs_info '/mnt/a b'").check().stdout
    data = re.search(r"^data .*?bsize=(\d+).*?sunit=(\d+)\s+swidth=(\d+)", info, re.MULTILINE | re.DOTALL)
    assert data is not None
    block, unit, width = (int(number) for number in data.groups())
    assert (xfs["block_bytes"], xfs["stripe_unit_bytes"]) == (block, unit * block)
    assert (xfs["stripe_width_bytes"], xfs["stripe_unit_bytes"]) == (width * block, 128 << 10)
    ext4 = found["filesystems"][found["arrays"]["vg-x/stri-ped"]["device"]]
    dump = guest.run("dumpe2fs -h /dev/vg-x/stri-ped").check().stdout
    fields = dict(re.findall(r"^([\w ]+):\s+(\d+)$", dump, re.MULTILINE))
    size = int(fields["Block size"])
    assert (ext4["block_bytes"], ext4["mountpoints"]) == (size, ["/mnt/s"])
    assert ext4["stripe_unit_bytes"] == int(fields["RAID stride"]) * size == 256 << 10
    assert ext4["stripe_width_bytes"] == int(fields["RAID stripe width"]) * size == 512 << 10


def test_volumes_as_lvs_sees_them(guest: Machine, arrays: dict[str, str], found: dict[str, dict[str, Any]]) -> None:
    options = "lv_name,lv_size,segtype,stripe_size,chunk_size,data_stripes,lv_kernel_minor,lv_health_status"
    rows = ask(guest, f"lvs --reportformat json --units b --nosuffix -o {options} vg-x")["report"][0]["lv"]
    volumes = found["arrays"]
    assert {name for name, one in volumes.items() if one["manager"] == "lvm"} == {
        f"vg-x/{row['lv_name']}" for row in rows
    }
    judged = {row["lv_name"]: row for row in rows}
    for name, row in judged.items():
        array = volumes[f"vg-x/{name}"]
        level = {"linear": "snapshot"}.get(row["segtype"], row["segtype"]).partition("_")[0]
        assert array["level"] == level, name
        assert array["size_bytes"] == int(row["lv_size"]) or level == "snapshot", name
        chunk = int(row["stripe_size"]) or int(row["chunk_size"]) or None
        assert array["chunk_bytes"] == chunk, name
        assert array["state"] == "active", name
        if name != "pool":  # lvs gives the pool's minor, the array is the device that does the work
            assert array["device"] == f"dm-{row['lv_kernel_minor']}", name
    assert volumes["vg-x/five"]["data_disks"] == int(judged["five"]["data_stripes"]) == 2
    assert volumes["vg-x/stri-ped"]["data_disks"] == 2
    physical = {arrays[one] for one in ("LAB-N0-2", "LAB-N1-1", "LAB-N1-2")}
    assert set(volumes["vg-x/five"]["members"]) == physical
    assert all(physical >= set(volumes[f"vg-x/{name}"]["members"]) for name in judged)
    assert volumes["vg-x/five"]["disks"] == volumes["vg-x/five"]["members"]
    assert volumes["vg-x/five"]["numa_nodes"] == [0, 1]


def test_a_member_fails_is_replaced_and_comes_back(guest: Machine, arrays: dict[str, str]) -> None:
    one = arrays["LAB-N1-0"]
    guest.run(f"mdadm --quiet /dev/md5 --fail /dev/{one}").check()
    array = scan(guest)["arrays"]["md5"]
    assert (array["state"], array["missing"], array["failed"]) == ("degraded", 1, [one])
    guest.run(
        "echo 200 >/sys/block/md5/md/sync_speed_max; echo 100 >/sys/block/md5/md/sync_speed_min;"
        f" mdadm --quiet /dev/md5 --remove /dev/{one} && mdadm --zero-superblock /dev/{one}"
        f" && mdadm --quiet /dev/md5 --add /dev/{one}"
    ).check()
    array = scan(guest)["arrays"]["md5"]
    assert (array["state"], array["missing"], array["spares"]) == ("recovering", 1, [one])
    assert array["detail"]["rebuilding"] == one
    assert array["progress_percent"] is not None
    assert array["progress_percent"] < 90
    guest.run("echo 9000000 >/sys/block/md5/md/sync_speed_max; echo 9000000 >/sys/block/md5/md/sync_speed_min").check()
    guest.run("mdadm --wait /dev/md5", timeout=300).check()
    array = scan(guest)["arrays"]["md5"]
    assert (array["missing"], array["failed"], array["spares"]) == (0, [], [])
    assert array["state"] in ("clean", "active")


def test_a_volume_loses_a_leg(guest: Machine, arrays: dict[str, str]) -> None:
    leg = "vg--x-five_rimage_1"
    guest.run(
        f"dmsetup table {leg} >/run/leg && dmsetup suspend {leg}"
        f" && awk '{{print $1, $2, \"error\"}}' /run/leg | dmsetup load {leg} && dmsetup resume {leg}"
    ).check()
    try:
        guest.run("dd if=/dev/zero of=/dev/vg-x/five bs=1M count=8 oflag=direct")
        for _ in range(20):
            array = scan(guest)["arrays"]["vg-x/five"]
            if array["state"] != "active":
                break
            time.sleep(0.5)
        assert (array["state"], array["missing"], array["detail"]["health"]) == ("degraded", 1, "ADA")
        assert array["level"] == "raid5"
    finally:
        guest.run(f"dmsetup suspend {leg} && dmsetup load {leg} </run/leg && dmsetup resume {leg}")
