"""``advisor observe`` as a command: what a wrong call prints, a workload file in the other commands, a live run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.operations.files import check_output
from advisor.proof.pattern import JobSection, WorkloadFile, encode_workload
from tests.cli.inside import call_inside

LOAD = WorkloadFile(title="Twin of all on sda", sections=(JobSection("twin", "randread", 8192, depth=4),))


def test_a_place_that_cannot_be_written_to_is_found_before(tmp_path: Path) -> None:
    """As root a permission binds nobody, so the directory is on a file system that takes no files."""
    place = Path("/sys/kernel")
    with pytest.raises(UsageError) as caught:
        check_output(place / "load.json")
    assert caught.value.message.startswith("/sys/kernel/load.json: ")
    check_output(tmp_path / "load.json")
    assert list(tmp_path.iterdir()) == []


def test_a_workload_file_is_recommended_for(tmp_path: Path) -> None:
    place = tmp_path / "load.json"
    place.write_bytes(encode_workload(LOAD))
    done = call_inside("recommend", "--json", "--workload", place)
    assert done.returncode == 0
    found = json.loads(done.stdout)["workload"]
    assert (found["name"], found["block_bytes"], found["access"]) == (str(place), 8192, "random")


@pytest.mark.parametrize(
    "command", [("recommend",), ("bench", "--target", "."), ("prove", "--self-test", "--target", ".")]
)
def test_a_bad_file_is_named_with_its_field(command: tuple[str, ...], tmp_path: Path) -> None:
    place = tmp_path / "load.json"
    place.write_text('{"title": "t", "sections": [{"name": "a", "pattern": "randread", "block_bytes": 1000}]}')
    done = call_inside(*command, "--workload", place)
    assert done.returncode == 2
    assert f"{place}: field sections[0].block_bytes: expected a multiple of 512" in done.stderr
    assert "advisor observe -o FILE" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_disk_that_is_not_used_has_no_twin(tmp_path: Path) -> None:
    disks = [name for name in os.listdir("/sys/block") if not Path(f"/sys/block/{name}/slaves").exists()]
    idle = sorted(name for name in os.listdir("/sys/block") if name.startswith("loop") and name not in disks)
    if not idle:
        pytest.skip("no loop device is there")
    done = call_inside("observe", "--device", idle[-1], "--seconds", "1", "-o", tmp_path / "load.json")
    assert done.returncode in (3, 6)
    assert list(tmp_path.iterdir()) == []
