"""Drives of unknown ceiling that are read by fio: asked first, bounded, never written to, kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.media import Media
from advisor.limits.paths import limits_of
from advisor.operations.drive_readings import SECONDS, predicted_seconds, read_drives, unknown_drives
from tests.cli.inside import call_inside
from tests.facts.storage import Tree
from tests.limits.hosts import array, disk, facts
from tests.proof.conftest import fake_fio
from tests.proof.fakes import FakeFio

__all__ = ["fake_fio"]
SNAPSHOT = Path(__file__).parents[2] / "tests/fixtures/storage-host-root.tar.gz"


def test_only_what_is_unknown_is_read_and_what_was_read_is_known() -> None:
    host = facts([disk("sda"), disk("sdb"), disk("sdc")], [array("md0", "raid1", ["sda", "sdb"])])
    declared = Declared((DeclaredVolume("drive", "sdc", read_mb_per_s=100),))
    assert unknown_drives(limits_of(host, declared=declared)) == ("sda", "sdb")
    assert predicted_seconds(("sda", "sdb")) == 4 * SECONDS


def test_each_run_is_for_reading_only_and_the_result_is_kept(
    fake_fio: FakeFio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    tree = Tree()
    tree.nvme(0, 0, number="259:0")
    found, kept = read_drives(tree.host(is_live=True), ["nvme0n1", "gone"], runner=fake_fio.runner)
    assert [one.device for one in found.drives] == ["nvme0n1"]
    assert set(found.failed) == {"gone"}
    runs = [argv for argv in fake_fio.calls() if "--version" not in argv]
    assert len(runs) == 2
    for argv in runs:
        assert "--readonly" in argv
        assert not any(word.startswith("--rw=") and "write" in word for word in argv)
        assert "--filename=nvme0n1" in argv
        assert f"--runtime={round(SECONDS * 1000)}ms" in argv
    assert set(fake_fio.directories()[-2:]) == {"/dev"}
    (file,) = (tmp_path / "state/proofs").iterdir()
    assert str(file) in kept
    assert json.loads(gzip.decompress(file.read_bytes()))["drives"][0]["device"] == "nvme0n1"
    medium = Media(facts([disk("nvme0n1")]), Declared(measured=found.figures())).figures("nvme0n1")
    assert medium is not None
    assert (medium.known, medium.sustained.read_mb_per_s) == ("measured", found.drives[0].read_mb_per_s)


def test_a_captured_host_is_not_measured_and_nothing_is_measured_unasked() -> None:
    with pytest.raises(RefusedError):
        read_drives(Tree().host(), ["sda"])
    assert call_inside("limits", "--measure", "--snapshot", SNAPSHOT).returncode != 0
    assert call_inside("limits", "--measure", "--yes", "--snapshot", SNAPSHOT).returncode != 0
