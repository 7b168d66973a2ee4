"""The first page of a scan fits a window of 80 columns and 24 lines on every host, and says when it was taken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from advisor.facts.host_facts import scan
from advisor.facts.unknown import Unknown
from advisor.host import Host
from advisor.host.provenance import Provenance, read_provenance
from advisor.report.findings import finding_text, is_settable, short_names
from advisor.report.layout import columns
from advisor.report.scan_summary import ScanSummary, brief_text, host_roles, list_text, summary_text, whose_commands
from advisor.rules.judged import NumberedFindings, count_judged, judge
from advisor.rules.rule import Finding, finding_devices
from tests import captured
from tests.each import for_each
from tests.fuzz.hosts import ARTICLES, CAPTURED, HOSTS
from tests.golden import assert_golden
from tests.report.test_text import two_nodes
from tests.rules.build import array, facts, identity, nothing_known, numa

LIVE = Provenance("live", 1_795_460_340)
ONE_OF_EACH = {name: HOSTS[name] for name in (*list(ARTICLES)[::7], *[one for one in HOSTS if one not in ARTICLES])}


def summary(host: Any, findings: tuple[Finding, ...] | None = None, **parts: Any) -> ScanSummary:
    return ScanSummary(host, judge(host) if findings is None else findings, **{"provenance": LIVE, **parts})


def page(found: ScanSummary, width: int = 80) -> list[str]:
    return summary_text(found, width=width, color=False).split("\n")[:-1]


def check_page(make: Callable[[], Host]) -> None:
    host = make()
    whole = scan(host)
    found = ScanSummary(whole, judge(whole), read_provenance(host, "/a/long/way/down/to/where/the/captured/tree/lies"))
    lines = page(found)
    assert len(lines) <= 24
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", lines[0])
    assert "live" in lines[0] or "--root" in lines[0] or "snapshot" in lines[0]
    words = _words_of(found)
    for line in lines:
        assert columns(line) <= 80
        assert line == line.rstrip()
        assert set(line.replace("…", " ").split()) <= words, line
    fixed = [f"advisor fix {one.number}" for one in shown_in(found)[:12] if is_settable(one)]
    assert [one for one in fixed if not any(line.endswith(one) for line in lines)] == []
    assert brief_text(found).count("\n") == 1


def shown_in(found: ScanSummary) -> list[NumberedFindings]:
    """What has a line of its own on the page."""
    return [one for one in found.numbered if not one.is_maxim]


def _words_of(found: ScanSummary) -> set[str]:
    """Every word that a window without an edge shows: one that is in a narrow one alone was broken."""
    text = summary_text(found, width=2000, color=False) + list_text(found, width=2000, color=False)
    text += whose_commands(found.provenance, 60)
    parts = [*text.split(), *(word for group in found.numbered for word in finding_text(group).split())]
    return {*parts, *(part.rstrip(",;:") for part in parts), *_places(found)}


def _places(found: ScanSummary) -> set[str]:
    # A directory is cut at its beginning, and the sign of a cut stands for it.
    place = found.provenance.place
    more = {f"{len(shown_in(found)) - 12}", "more:"}
    return {place[at:] for at in range(len(place))} | more | {word for words in _NODE_WORDS for word in words.split()}


_NODE_WORDS = ("nodes: no devices, links, disks, arrays, link, disk, array,", "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16")


@pytest.mark.captured
@pytest.mark.parametrize("name", CAPTURED)
def test_the_page_of_a_captured_host_fits_a_window(name: str) -> None:
    check_page(CAPTURED[name])


@pytest.mark.captured
@pytest.mark.parametrize("name", ["procfs/procfs-fixtures", "hwloc/32intel64-2p8co2t+8ve"])
def test_the_page_of_a_tree_names_it(name: str) -> None:
    check_page(lambda: captured.on_disk(name))


@for_each("name", ONE_OF_EACH)
def test_the_page_of_a_whole_host_fits_a_window(name: str) -> None:
    check_page(ONE_OF_EACH[name])


def test_what_is_worth_knowing_has_one_line_and_keeps_its_numbers() -> None:
    (first, *_) = many_findings(1)
    maxims = tuple(
        msgspec.structs.replace(first, id=f"maxim.{number}", severity="info", intent=True, title=f"Maxim {number}")
        for number in range(2)
    )
    found = summary(facts(), (first, *maxims))
    text = "\n".join(page(found))
    assert text.count("Worth knowing") == text.count("Maxim 0") == 1
    assert "Worth knowing, 2 to 3: Maxim 0" in text
    assert [one.number for one in found.numbered] == [1, 2, 3]
    assert {"Maxim 0", "Maxim 1"} <= set(re.findall(r"Maxim \d", list_text(found, width=80, color=False)))
    whole = list_text(found, width=80, color=False)
    assert ["2 worth knowing" in shown for shown in (text, brief_text(found), whole)] == [True, True, False]
    only = summary(facts(), maxims)
    assert "no findings" in brief_text(only)
    assert "Maxim" not in brief_text(only)


@pytest.mark.parametrize("width", [30, 40, 59, 60, 80])
def test_a_window_cuts_no_finding_while_it_has_lines_and_colours_its_count(width: int) -> None:
    title = "A sysctl line loses to TuneD, which sets it again whenever it starts, and to the units"
    (first,) = many_findings(1)
    found = summary(facts(), (msgspec.structs.replace(first, title=title),))
    lines = page(found, width)
    assert [line for line in lines if columns(line) > width] == []
    assert "…" not in "".join(lines)
    assert set(title.split()) <= set(" ".join(lines).split())
    assert "\x1b[1;31m1 critical" in summary_text(found, width=width, color=True)


def test_advice_alone_is_named_in_the_brief_line() -> None:
    advice = tuple(msgspec.structs.replace(one, severity="advice", title="Told of one") for one in many_findings(1))
    assert "Told of one" in brief_text(summary(facts(), advice))


def test_no_findings_says_how_much_was_judged() -> None:
    known, unread = facts(unknown=()), nothing_known()
    total = count_judged(known, ()).of
    assert f"{total} of {total} rules" in brief_text(summary(known, ()))
    judged = summary(unread, ()).judged
    assert judged.rules < total
    for text in (brief_text(summary(unread, ())), " ".join(page(summary(unread, ())))):
        assert f"{judged.rules} of {total} rules" in text
        assert judged.unread[0] in text


def test_what_a_host_serves_is_in_its_headline() -> None:
    host = facts(roles={"postgresql": ("postgresql.service",), "nfs-server": ("nfs-server.service",)})
    assert host_roles(host)[-2:] == ("PostgreSQL", "NFS server")
    assert "PostgreSQL, NFS server" in "\n".join(page(summary(host, ()))[:2])


def many_findings(count: int) -> tuple[Finding, ...]:
    (one,) = (
        found for found in judge(facts(arrays=(array("md0", level="raid5", missing=1),))) if "degraded" in found.id
    )
    return tuple(msgspec.structs.replace(one, id=f"rule.{number}") for number in range(count))


@for_each("width", [60, 80, 160])
@for_each("name", list(ARTICLES)[::5])
def test_the_commands_of_a_page_begin_in_one_column(name: str, width: int) -> None:
    lines = page(summary(scan(HOSTS[name]())), width)
    places = {line.index("  advisor fix ") for line in lines if re.search(r"  advisor fix \d+$", line)}
    assert len(places) <= 1, lines


@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 8, 64])
@pytest.mark.parametrize("count", [0, 1, 12, 13, 21, 200])
def test_the_page_has_at_most_24_lines(nodes: int, count: int) -> None:
    host = nothing_known() if not nodes else facts(numa=numa(nodes), unknown=nothing_known().unknown)
    lines = page(summary(host, many_findings(count), muted=2, notes=("no longer muted: x",)))
    assert len(lines) <= 23
    assert ("more: advisor scan --all" in "\n".join(lines)) is (count > 12)
    assert sum("rule" in line or "md0" in line for line in lines) >= min(count, 12)


def degraded(*numbers: int, state: str = "degraded") -> Any:
    return facts(arrays=tuple(array(f"md{number}", level="raid5", state=state, missing=1) for number in numbers))


def test_the_pages_of_summaries() -> None:
    (finding,) = many_findings(1)
    long = msgspec.structs.replace(
        finding, severity="info", title="word " * 11 + "end", commands=("advisor probe",), remedy=(), evidence={}
    )
    many = tuple(msgspec.structs.replace(long, id=f"rule.{number}") for number in range(12))
    nothing = msgspec.structs.replace(nothing_known(), unknown=())
    unread = tuple(Unknown(kind, "does not exist") for kind in ("links", "disks"))
    taken = Provenance("snapshot", 1_795_460_340, 1_795_200_000, "host.tar.gz")
    found = {
        "two nodes": summary(two_nodes()),
        "five of the same": summary(degraded(0, 3, 6, 9, 12)),
        "a range": summary(degraded(*range(8))),
        "gaps": summary(degraded(0, 2, 5)),
        "one line of two, two muted": summary(degraded(0, 1, state="recovering"), muted=2),
        "a name": summary(facts(host=identity(hostname="stor1", os="Debian GNU/Linux 12 (bookworm)"))),
        "a snapshot": summary(two_nodes(), provenance=taken),
        "an undated snapshot": summary(two_nodes(), provenance=msgspec.structs.replace(taken, captured_at=None)),
        "a tree": summary(two_nodes(), provenance=Provenance("root", LIVE.scanned_at, None, "/srv/capture")),
        "a long text": summary(facts(), (long,)),
        "many long texts": summary(facts(), many),
        "no devices": summary(nothing, ()),
        "unknown devices": summary(msgspec.structs.replace(nothing, unknown=unread), ()),
    }
    pages = {name: page(one) for name, one in found.items()}
    assert max(map(len, pages.values())) <= 23
    for one in found.values():
        assert max(map(columns, page(one, 60))) <= 60
    text = "\n".join(line for name, lines in pages.items() for line in (f"== {name}", *lines))
    assert_golden("scan-summary", re.sub(r"\d+ of \d+ rules", "N of N rules", text))
    (group,) = found["five of the same"].numbered
    assert [finding_devices(one)[0] for one in group.findings] == ["md0", "md3", "md6", "md9", "md12"]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("md3", "md1", "md2"), "md1 … md3"),
        (("sda1", "sdd1", "sde1"), "sda1, sdd1, sde1"),
        (("a", "c", "e", "g", "i"), "a, c, e and 2 more"),
        (("md0", "md3", "md6", "md42"), "md0, md3, md6, md42"),
        (("sda", "sdb", "sdc", "sdf", "sdh", "sdj", "sdl"), "sda … sdc, sdf, sdh and 2 more"),
    ],
)
def test_names_of_a_line(names: tuple[str, ...], text: str) -> None:
    assert short_names(names) == text


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_long_directory_does_not_crowd_out_the_name(width: int) -> None:
    host = facts(host=identity(hostname="storage-server-01.example.com"))
    tree = Provenance("root", LIVE.scanned_at, None, "/srv/captures/2026/november/storage-server-01")
    lines = page(summary(host, (), provenance=tree), width)
    assert lines[0].startswith("storage-server-01.example.com")
    assert "-01" in "".join(lines[:2]).partition("--root ")[2]
    assert max(map(columns, lines)) <= width


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize(
    "name",
    [
        "storage-server-01",
        "storage-server-number-seventeen.rack-12.dc3.prod.example.com",
        f"{'s' * 60}.example",
        "s" * 64,
    ],
)
def test_the_first_line_says_of_when_whatever_the_name(name: str, width: int) -> None:
    host = facts(host=identity(hostname=name))
    sources = (
        LIVE,
        Provenance("root", LIVE.scanned_at, None, "/srv/captures/2026/november"),
        Provenance("snapshot", LIVE.scanned_at, None, "host.tar.gz"),
    )
    for provenance in sources:
        lines = page(summary(host, (), provenance=provenance), width)
        assert "2026-11-23 18:59 UTC" in lines[0]
        assert name.split(".")[0] in re.split(r"[ .]", " ".join(lines[:2]))
        assert max(map(columns, lines)) <= width


def test_a_hostile_name_moves_nothing() -> None:
    hostile = "x" * 300 + "\x1b[2J\u202e"
    host = facts(host=identity(hostname=hostile, os=hostile), arrays=(array(hostile, state="degraded", missing=1),))
    for line in page(summary(host)):
        assert columns(line) <= 80
        assert line.isprintable()


def test_colour_only_colours() -> None:
    found = summary(two_nodes())
    coloured = summary_text(found, width=80, color=True)
    assert "\x1b[" in coloured
    assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).split("\n")][:-1] == page(found)
