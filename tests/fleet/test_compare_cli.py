"""``advisor fleet compare`` over snapshots, as it is typed."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import read_cases
from tests.cli.inside import call_inside
from tests.fleet.alike import snapshot
from tests.schemas import judge

DATA = read_cases(__file__)


def run(*arguments: str | Path, code: int, width: int = 100) -> tuple[str, str]:
    """Standard output and error of the command, which ends with ``code``."""
    done = call_inside("fleet", "compare", *arguments, COLUMNS=width)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots n1 … n5, alike; odd6 with another MTU, evil7 with hostile words."""
    where = tmp_path_factory.mktemp("fleet")
    for number in range(1, 6):
        snapshot(where, f"n{number}")
    snapshot(where, "odd6", mtu=1500)
    evil = {
        "/proc/sys/kernel/hostname": "<script>alert(1)</script>\x1b[31mred\u202e\n",
        "/proc/sys/vm/swappiness": "<b>&\x07\n",
    }
    snapshot(where, "evil7", files=evil)
    return where


def hosts(place: Path, *names: str) -> list[Path]:
    return [place / f"{name}.tar.gz" for name in names]


FIVE = ("n1", "n2", "n3", "n4", "n5")


def test_alike_hosts_exit_0(place: Path) -> None:
    text, _ = run(*hosts(place, *FIVE), code=0)
    assert text.startswith("5 hosts compared · alike in")
    assert "no host differs, as far as is known" in text


def test_a_host_that_differs_exits_1_and_is_named_after_the_difference(place: Path) -> None:
    text, _ = run(*hosts(place, *FIVE, "odd6"), code=1)
    lines = text.split("\n")
    assert lines[2].endswith("fleet.mtu-in-network")
    assert lines[lines.index("Who differs") + 1].split() == ["odd6", "warning", "mtu", "in", "network"]
    assert "1500 on odd6 · 9000 on 5 others" in text
    assert "advisor apply jumbo-frames --set links=eth1 --set mtu=9000" in text


def test_the_document(place: Path) -> None:
    text, _ = run(*hosts(place, *FIVE, "odd6"), "--json", code=1)
    document: dict[str, Any] = judge(text)
    assert document["schema"] == "advisor.fleet-comparison/1"
    assert [(one["name"], one["state"]) for one in document["hosts"]][-1] == ("odd6", "compared")
    assert document["failed"] == []
    worst = document["findings"][0]
    assert (worst["id"], worst["severity"], worst["hosts"]) == ("fleet.mtu-in-network", "warning", ["odd6"])
    assert worst["differences"][0]["majority"] == 9000
    assert {"why", "hurts_when", "sources", "advice", "commands"} <= worst.keys()


def test_a_damaged_snapshot_is_named_and_the_others_go_on(place: Path, tmp_path: Path) -> None:
    whole = (place / "n1.tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "none.tar.gz").write_bytes(b"<html>not found</html>")
    broken = [tmp_path / "cut.tar.gz", tmp_path / "none.tar.gz", tmp_path / "gone.tar.gz"]
    text, _ = run(*hosts(place, *FIVE), *broken, code=4)
    assert text.startswith("5 hosts compared, 3 failed")
    for name in ("cut", "none", "gone"):
        assert re.search(rf"^  {name} +\S", text, re.MULTILINE)
    document = json.loads(run(*hosts(place, *FIVE), *broken, "--json", code=4)[0])
    assert document["failed"] == ["cut", "gone", "none"]
    assert all(one["message"] for one in document["hosts"] if one["state"] == "failed")


@pytest.mark.parametrize(("arguments", "words"), DATA["bad_calls_exit_2"])
def test_bad_calls_exit_2(arguments: tuple[str, ...], words: str) -> None:
    _, error = run(*arguments, code=2)
    assert words in error


def test_the_page_needs_nothing_else_and_obeys_no_host(place: Path, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    run(*hosts(place, *FIVE, "odd6", "evil7"), "--html", page, code=1)
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<b>" not in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "Content-Security-Policy" in text
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'id="([^"]+)"', text))
    shown = html.unescape(re.sub(r"<[^>]*>", " ", text))
    assert "2 MTUs in one network: 10.1.0.0/24" in shown
    assert len(re.findall("<table", text)) == len(re.findall("</table>", text))


def test_what_advisor_set_and_has_drifted_is_seen_in_a_capture(place: Path) -> None:
    from advisor.fleet.compare.columns import read_source
    from advisor.fleet.compare.summary import CaptureSource

    path = str(place / "n1.tar.gz")
    plain, captured = read_source(CaptureSource("n1", path)), read_source(CaptureSource("n1", path, is_capture=True))
    assert "advisor.*" in plain.unknown
    assert "advisor.*" not in captured.unknown
