"""``advisor limits`` as a command: live, snapshot and tree, declared volumes, a saved series, bad input."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.proof.archive import save_result
from advisor.proof.series import summarise_series
from tests.cli.inside import call_inside
from tests.proof.benches import series
from tests.proof.sessions import WORKLOAD
from tests.trees import make_tree

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "tests/fixtures/storage-host-root.tar.gz"
NVME = "/sys/devices/pci0000:00/0000:00:1f.0/nvme/nvme1"
EC2 = {
    "/proc/sys/kernel/hostname": "ip-10-0-0-1\n",
    "/sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
    "/sys/class/dmi/id/product_name": "r5b.24xlarge\n",
    f"{NVME}/model": "Amazon Elastic Block Store      \n",
    f"{NVME}/serial": "vol0123456789abcdef0\n",
    f"{NVME}/nvme1n1/size": "209715200\n",
    f"{NVME}/nvme1n1/dev": "259:1\n",
    f"{NVME}/nvme1n1/queue/rotational": "0\n",
    "/proc/self/mountinfo": "30 1 259:1 / /db rw - xfs /dev/nvme1n1 rw\n",
}
LINKS = {
    f"{NVME}/nvme1n1/device": "..",
    "/sys/block/nvme1n1": f"../devices{NVME.removeprefix('/sys/devices')}/nvme1n1",
    "/sys/class/block/nvme1n1": f"../../devices{NVME.removeprefix('/sys/devices')}/nvme1n1",
    "/sys/dev/block/259:1": f"../../devices{NVME.removeprefix('/sys/devices')}/nvme1n1",
}
VOLUME = '[[volume]]\nvolume-id = "vol-0123456789abcdef0"\ntype = "gp3"\ngib = 100\niops = 4000\n'


def advisor(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call_inside("limits", *words, **environment)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema"] == "advisor.limits/1"
    return found


@pytest.fixture
def ec2(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "host", EC2, LINKS)


def test_this_machine() -> None:
    assert document(advisor("--json"))["paths"]
    done = advisor(COLUMNS="80")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_snapshot_and_the_paths_in_it() -> None:
    found = document(advisor("--json", "--snapshot", SNAPSHOT))
    paths = {path["name"]: path for path in found["paths"]}
    assert paths["/srv/node0"]["disks"] == ["nvme1n1", "nvme2n1"]
    assert paths["/srv/node0"]["layers"] == ["md0: raid0 of nvme1n1, nvme2n1"]
    assert round(paths["eth0"]["sustained"][0]["value"], 1) == 117.7


def test_an_instance_by_its_firmware_and_a_volume_by_its_serial_number(ec2: Path, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(VOLUME)
    found = document(advisor("--json", "--root", ec2, "--volumes", tmp_path / "v.toml"))
    (path,) = [one for one in found["paths"] if one["kind"] == "storage"]
    assert (found["instance_type"], path["name"]) == ("r5b.24xlarge", "/db")
    assert {one["quantity"]: (one["stage"], one["value"]) for one in path["sustained"]}["read_iops"] == ("volume", 4000)
    assert {one["stage"] for one in path["ceilings"]} == {"instance", "volume"}


def test_a_saved_series_against_the_ceiling(ec2: Path, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(VOLUME)
    measured = msgspec.structs.replace(series([2000.0] * 24), device="nvme1n1")
    save_result(tmp_path / "saved", summarise_series(measured), {})
    words = ("--root", ec2, "--volumes", tmp_path / "v.toml", "--bench", tmp_path / "saved")
    (path,) = [one for one in document(advisor("--json", *words))["paths"] if one["kind"] == "storage"]
    iops = [one for one in path["observed"] if one["measure"] == "iops"]
    assert [(one["workload"], one["value"], one["share"]) for one in iops] == [(WORKLOAD, 2000, 0.5)]
    assert "50 % of 4,000" in " ".join(advisor(*words).stdout.split())


def test_bad_input_is_told_with_its_field(ec2: Path, tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text(VOLUME.replace("4000", "90000"))
    done = advisor("--root", ec2, "--volumes", tmp_path / "v.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "field volume[0].iops" in done.stderr
    done = advisor("--json", "--volumes", tmp_path / "absent")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "invalid-input"
    (tmp_path / "junk").write_bytes(b"\x1f\x8bjunk")
    assert advisor("--bench", tmp_path / "junk").returncode == 2
    assert advisor("--snapshot", SNAPSHOT, "--root", ec2).returncode == 2


def test_a_file_of_the_provider_goes_before_the_tables(ec2: Path, tmp_path: Path) -> None:
    ebs = {"BaselineThroughputInMBps": 5000.0, "BaselineIops": 100_000}
    types = {"InstanceTypes": [{"InstanceType": "r5b.24xlarge", "EbsInfo": {"EbsOptimizedInfo": ebs}}]}
    (tmp_path / "types.json").write_text(json.dumps(types))
    found = document(advisor("--json", "--root", ec2, "--instance-types", tmp_path / "types.json"))
    (path,) = [one for one in found["paths"] if one["kind"] == "storage"]
    (one,) = [one for one in path["ceilings"] if one["stage"] == "instance"]
    assert (one["known"], one["sustained"]["read_iops"]) == ("declared", 100_000)
    assert "types.json of 20" in one["source"]
    (tmp_path / "types.json").write_text('{"InstanceTypes": [{}]}')
    done = advisor("--root", ec2, "--instance-types", tmp_path / "types.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "types.json: field InstanceTypes[0].InstanceType: it is missing" in done.stderr


def test_a_link_of_unknown_speed_is_named_once(tmp_path: Path) -> None:
    place = tmp_path / "sys/class/net/eth0"
    (place / "device").mkdir(parents=True)
    (tmp_path / "sys/bus/virtio/drivers/virtio_net").mkdir(parents=True)
    (place / "device/driver").symlink_to("../../../../bus/virtio/drivers/virtio_net")
    (tmp_path / "proc").mkdir()
    for name, text in (("type", "1"), ("operstate", "up"), ("carrier", "1"), ("mtu", "1500"), ("speed", "-1")):
        (place / name).write_text(f"{text}\n")
    done = advisor("--all", "--root", tmp_path, COLUMNS="160")
    assert "eth0: its driver reports no speed" in done.stdout, done.stdout + done.stderr
    assert "not known of eth0" not in done.stdout
    assert "eth0: eth0" not in done.stdout
