"""The ceiling in the picture: a bar for each stage, the binding one marked, in the drawing and in words."""

from __future__ import annotations

from pathlib import Path

from advisor.cli.pages import check_files, write_files
from advisor.facts.host_facts import scan
from advisor.limits.declared import parse_declared
from advisor.limits.records import Binding, HostCeiling, StageSum
from advisor.operations.pictures import find_services, host_ceiling
from advisor.report.picture.content import ceiling_picture
from advisor.report.picture.page import picture_page, picture_svg
from advisor.rules.judged import judge
from tests import beegfs_server
from tests.report.pictures import beegfs, judged

STAGES = (
    StageSum("media", ("nvme0n1",), 76_800, 31_200, "known", ""),
    StageSum("network", ("ib0", "ib1"), 24_842, 24_842, "known", ""),
    StageSum("memory", (), None, None, "unknown", ""),
)
BINDS = Binding("network", ("ib0", "ib1"), 76_800, "media")


def made(**parts: object) -> HostCeiling:
    whole = {"read_mb_s": 24_842.0, "write_mb_s": 24_842.0, "binds": BINDS, "write_binds": BINDS}
    return HostCeiling(**{**whole, "stages": STAGES, "role": "server", **parts})  # type: ignore[arg-type]


def test_the_stage_that_binds_is_marked_and_bars_have_one_scale() -> None:
    found = ceiling_picture(made())
    assert [(bar.title, bar.value, bar.is_binding) for bar in found.bars] == [
        ("drives and volumes, reads", "76,800 MB/s", False),
        ("drives and volumes, writes", "31,200 MB/s", False),
        ("links", "24,842 MB/s", True),
    ]
    assert found.bars[0].share == 1
    assert round(found.bars[2].share, 3) == round(24_842 / 76_800, 3)
    assert found.note == "Unknown, and perhaps lower: memory."
    assert "bound by links (ib0, ib1)" in found.title


def test_page_and_drawing_hold_it() -> None:
    for text in (picture_page(*judged(beegfs()), made()), picture_svg(*judged(beegfs()), made())):
        assert "links: 24,842 MB/s (binds)" in text
        assert "bar warn" in text
    assert "(binds)" not in picture_page(*judged(beegfs()))


def test_nothing_known_is_said() -> None:
    found = ceiling_picture(made(read_mb_s=None, write_mb_s=None, binds=None, write_binds=None, stages=STAGES[2:]))
    assert (found.title, found.bars) == ("Ceiling of the host: reads unknown; writes unknown", ())


def test_the_page_of_a_scan_has_the_ceiling_of_the_host(tmp_path: Path) -> None:
    host = beegfs_server.behind_switches(beegfs_server.tree()).host()
    facts, services = find_services(host, scan(host))
    ceiling = host_ceiling(host, facts, parse_declared(beegfs_server.volumes().encode(), "v.toml"))
    check_files({"--html": tmp_path / "h.html"}, printing=None)
    write_files(facts, judge(facts), services, ceiling=ceiling, svg=None, html=tmp_path / "h.html")
    assert "reads 24,842 MB/s, bound by links (ib0, ib1)" in (tmp_path / "h.html").read_text()
