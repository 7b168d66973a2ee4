"""``advisor prove --html`` as a process, with an fio that only pretends: where the page goes, and where it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from advisor.cli.pages import check_page, write_page
from advisor.errors import UsageError
from tests.proof.conftest import disk, fake_fio
from tests.proof.fakes import FakeFio
from tests.report.test_proof import PROOFS

__all__ = ["disk", "fake_fio"]

ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="advisor prove needs root")


@pytest.fixture
def tmp_path(disk: Path) -> Path:
    """On a real file system: /tmp may be one in memory, which is no storage to measure."""
    return disk


def started(fio: FakeFio, tmp_path: Path, *words: str | Path) -> subprocess.Popen[str]:
    (tmp_path / "target").mkdir()
    call = ["prove", "--self-test", "--quick", "--force", "--workload=null.4k", f"--target={tmp_path / 'target'}"]
    environment = {
        **os.environ,
        "PATH": f"{fio.directory}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "ADVISOR_STATE_DIR": str(tmp_path / "state"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "advisor", *call, *map(str, words)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@as_root
def test_the_page_is_written_beside_the_result(fake_fio: FakeFio, tmp_path: Path) -> None:
    process = started(fake_fio, tmp_path, "--html", "page.html")
    output, said = process.communicate(timeout=60)
    assert "self-test" in output
    assert "page.html: the result as a page" in said
    assert process.returncode in (0, 1)
    page = (tmp_path / "page.html").read_text()
    assert ElementTree.fromstring(page).tag == "html"
    assert os.uname().nodename in page
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")], "no temporary file is left"


@as_root
def test_a_page_that_cannot_be_written_at_the_end_leaves_the_result(fake_fio: FakeFio, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    process = started(fake_fio, tmp_path, "--html", "place/page.html", "--json")
    wait_for_fio(fake_fio, process)
    (tmp_path / "place").rmdir()
    output, said = process.communicate(timeout=60)
    assert json.loads(output)["schema"] == "advisor.proof/1"
    assert "the page was not written: place/page.html: there is no such directory" in said
    assert "Traceback" not in said
    assert process.returncode == 4


@as_root
def test_an_interrupted_session_has_its_page(fake_fio: FakeFio, tmp_path: Path) -> None:
    fake_fio.plan(sleep=0.1)
    process = started(fake_fio, tmp_path, "--html", "page.html")
    wait_for_fio(fake_fio, process)
    process.send_signal(signal.SIGTERM)
    output, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the session was interrupted" in output
    assert "page.html: the result as a page" in said
    assert "the session was interrupted" in (tmp_path / "page.html").read_text()


def wait_for_fio(fio: FakeFio, process: subprocess.Popen[str]) -> None:
    """Until the session has made a run."""
    while not (fio.directory / "log").exists():
        assert process.poll() is None
        time.sleep(0.02)


@pytest.mark.parametrize(("name", "message"), [("none/page.html", "no such directory"), (".", "no regular file")])
def test_what_can_never_be_written_is_refused_before_the_measurement(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_page(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_link_is_not_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "page.html").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no regular file"):
        check_page(tmp_path / "page.html")
    assert not write_page(tmp_path / "page.html", PROOFS["gain"])
    assert "the page was not written" in capfd.readouterr().err
    assert (tmp_path / "elsewhere").read_text() == "kept"


def test_an_earlier_page_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text("x" * 1_000_000)
    with place.open() as earlier:
        assert write_page(place, PROOFS["gain"])
        assert earlier.read() == "x" * 1_000_000, "a reader keeps what it opened"
    assert place.read_text().startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["page.html"]
