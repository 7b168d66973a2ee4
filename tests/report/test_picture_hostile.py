"""Hostile words of a host on the picture: SVG, page and terminal show them and obey none."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import pytest

from advisor.facts.unknown import Unknown
from advisor.report.picture.page import picture_page, picture_svg, picture_text
from advisor.rules.rule import Decide, Rule, RunShell
from tests.each import for_each
from tests.hostile.test_outputs import TEXTS
from tests.report.pasted import lines_too_wide
from tests.report.pictures import beegfs, over, service
from tests.report.test_picture_page import Judged
from tests.report.test_proof_page import ATTACKS, Parsed
from tests.rules import build

replace = msgspec.structs.replace
RULE = Rule("x.y", "warning", "t", "w", "w", "h", "h", ("s",), lambda facts, workload: None, __name__)
SAFE = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "nav", "article", "table"),
    *("p", "h1", "h2", "h3", "bdi", "div", "span", "a", "ol", "ul", "li", "dl", "dt", "dd", "code", "details"),
    *("summary", "thead", "tbody", "tr", "th", "td", "svg", "desc", "rect", "text", "line", "circle", "g"),
}


def odd_host(text: str) -> Judged:
    """The text wherever a host has words."""
    base, _ = beegfs()
    ports = (build.link(text, addresses=(text,), driver=text, state=text, upper=("b",), detail={"id": text}),)
    bond = build.virtual("b", "bond", lower=(text, "eth9"), detail={"mode": text})
    other = build.link("eth9", numa_node=1, upper=("b",), pci=None, driver="vif")
    disks = (build.disk("nvme0n1", model=text, mountpoints=(text,), detail={"transport": text}), build.disk(text))
    array = replace(over("md0", "raid1", 0), name=text, level=text, state=text, mountpoints=(text,), failed=(text,))
    facts = replace(
        base,
        host=build.identity(hostname=text, os=text, kernel=text, vendor=text, product=text, virtualization=text),
        cpu=replace(base.cpu, model=text, online=text),
        links=(*ports, bond, other),
        disks=disks,
        arrays=(array, replace(array, name="md9", disks=(), device="md9")),
        filesystems=(build.filesystem("nvme0n1", kind=text, mountpoints=(text,)),),
        llt=build.llt(build.llt_link(text, text), build.llt_link(text, None)),
        unknown=(Unknown(text, text),),
    )
    found = replace(
        RULE.found(
            why=text, evidence={"links": (text,), "detail": (text,), text: text}, remedy=(Decide(text), RunShell(text))
        ),
        title=text,
        why=text,
        hurts_when=text,
        sources=(text,),
        id=text,
    )
    return facts, (found, found), (service(text, "0-3", "0", text, policy=text), service(text + "2", text, text))


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_names_are_text_and_nothing_else(name: str) -> None:
    host = odd_host(ATTACKS[name])
    page, svg = picture_page(*host), picture_svg(*host)
    for text in (page, svg):
        assert all(line.isprintable() for line in text.split("\n"))
        text.encode()
    ElementTree.fromstring(svg)
    ElementTree.fromstring(page)
    for tag, found in (*Parsed(page).elements, *Parsed(svg).elements):
        assert tag in SAFE
        assert not [key for key in found if key.startswith("on") or key in ("src", "style")]


def test_a_very_long_name_is_cut_and_still_there_to_be_read() -> None:
    text = "x" * 5000
    svg = picture_svg(build.facts(links=(build.link(text),)), ())
    assert len(svg) < 12_000
    assert f"<title>{'x' * 400}</title>" in svg


@pytest.mark.parametrize("name", TEXTS)
@for_each("is_plain", [False, True])
def test_hostile_names_move_no_cursor(name: str, is_plain: bool) -> None:
    host = odd_host(TEXTS[name])
    plain = picture_text(*host, width=80, color=False, is_plain=is_plain)
    assert plain.replace("\n", "").isprintable()
    assert lines_too_wide(plain, 80) == []
    coloured = picture_text(*host, width=80, color=True, is_plain=is_plain)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
