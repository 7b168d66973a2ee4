"""The page of a span: verdict first, a sparkline for each resource, the picture coloured by use, no scripts."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from advisor.diagnosis.diagnose import diagnose
from advisor.diagnosis.observation import read_context
from advisor.host.provenance import Provenance
from advisor.report.picture.content import LEVELS, load_level
from advisor.report.why_page import why_page
from tests.diagnosis.cases import CASES
from tests.diagnosis.moments import Disk, Link, Machine, host_at, span_of
from tests.fleet.test_why import save_machine

SLOW = next(case.machine for case in CASES if case.name.startswith("slow member"))


def page_of(machine: Machine, seconds: int = 4) -> str:
    span, context = span_of(machine, seconds), read_context(host_at(machine, 1000))
    found = diagnose(span, context, 1.7e9)
    return why_page(found, span, context, context.facts, (), Provenance("snapshot", 0, 1_700_000_000))


def test_a_link_of_unknown_speed_has_a_row() -> None:
    page = page_of(Machine(links=(Link(rx_bytes=5e9, speed=-1),)))
    parse_page(page)
    assert '<th scope="row">net eth0</th><td class="number">unknown</td>' in page
    assert '<div class="verdict green">' not in page
    assert "how full eth0 is cannot be said" in page


def parse_page(page: str) -> ElementTree.Element:
    """The page is well-formed: the declaration of the type apart, it is XML."""
    return ElementTree.fromstring(page.replace("<!DOCTYPE html>", "").strip())


def test_the_verdict_comes_first_then_the_evidence_and_the_resources() -> None:
    page = page_of(SLOW)
    places = [
        page.index(text)
        for text in (
            "snapshot of 2023-11-14",
            "<strong>sde is 4",
            "<h2>sde",
            "peers wait",
            "<h2>Resources",
            "<h2>The path",
        )
    ]
    assert places == sorted(places)


def test_every_resource_has_a_sparkline_with_a_step_for_each_look() -> None:
    tree = parse_page(page_of(SLOW, 5))
    rows = tree.findall(".//table[@class='uses']/tbody/tr")
    names = [row.findtext("th") or "" for row in rows]
    assert {"cpu busy", "> disk sde", "disk sdb", "net eth0"} <= set(names)
    for row in rows:
        (line,) = [path.get("d", "") for path in row.iter() if path.get("class") == "line"]
        ends = [float(number) for number in re.findall(r"H([0-9.]+)", line)]
        assert ends == pytest.approx([20, 40, 60, 80, 100])


def test_the_picture_is_coloured_by_use_and_says_it_in_words() -> None:
    page = page_of(SLOW)
    assert 'class="tile load4"' in page
    assert ">100 %</text>" in page
    assert [load_level(share) for share in (None, 0.05, *LEVELS, 1.0)] == [0, 0, 1, 2, 3, 4, 4]
    idle = page_of(Machine(user=0.0, system=0.0))
    assert "load1" not in idle.partition("<body>")[2].replace('class="swatch load1"', "")


def test_a_host_that_nothing_binds_says_so() -> None:
    page = page_of(Machine())
    assert '<div class="verdict green">' in page
    assert "Nothing on this host is saturated" in page
    assert "<article" not in page


def test_hostile_names_are_text_and_nothing_runs() -> None:
    disk = Disk('nvme0<img src=x onerror="alert(1)">', 4000, 0, 256, 16, 8.0, number="259:0")
    page = page_of(replace(SLOW, disks=(*SLOW.disks, disk)))
    assert "<img" not in page
    assert "<script" not in page
    assert "default-src 'none'" in page
    parse_page(page)


def test_the_command_writes_the_page_and_prints_the_text(tmp_path: Path) -> None:
    save_machine(tmp_path / "h.tar.gz", SLOW)
    command = [sys.executable, "-m", "advisor", "why", "--snapshot", str(tmp_path / "h.tar.gz"), "--html"]
    done = subprocess.run([*command, str(tmp_path / "h.html")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0][:10]) == (1, "db-07: sde")
    printed = subprocess.run([*command, "-"], capture_output=True, text=True, check=False)
    assert printed.returncode == 1
    cut = re.compile(r"read [^<]*? UTC")
    assert cut.sub("", printed.stdout) == cut.sub("", (tmp_path / "h.html").read_text())
    wrong = subprocess.run([*command, "-", "--json"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
