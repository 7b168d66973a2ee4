"""The page of a proof: well formed, whole in itself, and nothing on it that the record does not hold."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest

from advisor.proof.covariates import CalmGate
from advisor.proof.metrics import HostIdentity
from advisor.proof.records import ArmSetting, Claim, Proof
from advisor.proof.verdict import decide_session
from advisor.report.proof.page import proof_page
from advisor.report.proof.result import cells_of, groups_of
from advisor.report.proof.words import host_rows, notes_of, reasons_of, session_rows, verdict_words, write_headlines
from advisor.shell.quote import shell_quote
from tests.hostile.test_outputs import TEXTS
from tests.proof.sessions import WORKLOAD, pair, run, session
from tests.report.test_proof import GAIN, OTHER, PROOFS, controlled, extra, pairs, proof_of
from tests.report.test_proof_charts import ALL

replace = msgspec.structs.replace
THIRD = "infoscale.4k-seq-rw50"
SETTINGS = (ArmSetting("sysctl:vm.swappiness", "60", "10", "less"),)


class Parsed(HTMLParser):
    """Text, elements and attributes of a page; fails where an end tag does not belong to the last open element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("dt", "th", "td"):
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def table(self, *head: str) -> list[list[str]]:
        """The rows of the first table whose head begins so."""
        return next(rows[1:] for rows in self.tables if rows[0][: len(head)] == list(head))


def parsed(proof: Proof) -> Parsed:
    return Parsed(proof_page(proof))


@cache
def page_of(name: str) -> str:
    """The page of a proof of the matrix, made once."""
    return proof_page(replace(ALL[name], values=SETTINGS))


@cache
def parsed_of(name: str) -> Parsed:
    """The same, parsed once."""
    return Parsed(page_of(name))


def drawings(page: str) -> Iterator[ElementTree.Element]:
    for text in re.findall(r"<svg .*?</svg>", page, re.DOTALL):
        yield ElementTree.fromstring(text)


# -- a page that stands alone --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_well_formed_and_so_is_each_picture(name: str) -> None:
    page = page_of(name)
    assert page.startswith("<!DOCTYPE html>\n")
    assert ElementTree.fromstring(page).tag == "html"
    assert len(list(drawings(page))) >= 1
    found = parsed_of(name)
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not re.search(r"\b(nan|inf|None|True|False)\b", found.text)


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_fetched_and_nothing_is_run(name: str) -> None:
    page, found = page_of(name), parsed_of(name)
    assert not {tag for tag, _ in found.elements} & {"script", "link", "img", "image", "iframe", "object", "base", "a"}
    ids = {attributes.get("id") for _, attributes in found.elements}
    for _, attributes in found.elements:
        assert not {key for key in attributes if key.startswith("on") or key in ("src", "style", "srcset")}
        if "href" in attributes:
            assert (attributes["href"] or "").removeprefix("#") in ids
    # the policy names the style sheet by its hash, in base64, which may hold two slashes
    text = re.sub(r"'sha256-[A-Za-z0-9+/=]+'", "", page.replace("<!DOCTYPE html>", ""))
    assert not re.search(r"url\(|@import|https?:|//", text)


def test_the_policy_allows_this_style_sheet_and_nothing_else() -> None:
    page = proof_page(PROOFS["gain"])
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    found = [attributes for tag, attributes in Parsed(page).elements if tag == "meta" and "http-equiv" in attributes]
    assert [one["http-equiv"] for one in found] == ["Content-Security-Policy"]
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in (found[0]["content"] or "")
    assert page.index("Content-Security-Policy") < page.index("<style>")


@pytest.mark.parametrize("name", ALL)
def test_every_picture_has_a_name_a_description_and_no_fixed_colour(name: str) -> None:
    for drawing in drawings(page_of(name)):
        if drawing.get("aria-hidden") == "true":
            continue
        assert drawing.get("role") == "img"
        labels = (drawing.get("aria-labelledby") or "").split()
        titles = [child for child in drawing if child.tag in ("title", "desc")]
        assert [child.get("id") for child in titles] == labels
        assert all(len(child.text or "") > 10 for child in titles)
        assert not [child for child in drawing.iter() if child.get("fill") or child.get("stroke")]


def test_the_page_of_a_long_session_is_small() -> None:
    """48 pairs of three workloads, all repeats used, a control."""
    made = extra(controlled(pairs(1.1, 48), 1.0), 0.9)
    made = tuple(replace(one, runs=(*one.runs, run("A", 700.0, THIRD), run("B", 720.0, THIRD))) for one in made)
    spoilt = tuple(
        replace(one, runs=tuple(replace(run, lamps=("disk", "cpu-pressure")) for run in one.runs), superseded=True)
        for one in made[::2]
    )
    claims = (Claim(WORKLOAD), Claim(OTHER), Claim(THIRD))
    proof = decide_session(session((*spoilt, *made), *claims, mode="deep", control="null.4k"))
    assert len(proof_page(replace(proof, values=SETTINGS)).encode()) < 200_000


# -- what the page says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_page_says_in_words_what_the_text_says(name: str) -> None:
    proof = ALL[name]
    said = parsed_of(name).text
    rows = [*host_rows(proof), *session_rows(proof)]
    details = ["".join(piece if isinstance(piece, str) else piece.text for piece in pieces) for _, pieces in rows]
    wanted = [verdict_words(proof)[0], *write_headlines(proof), *reasons_of(proof), *notes_of(proof), *details]
    assert [one for one in wanted if " ".join(one.split()) not in said] == []


@pytest.mark.parametrize("name", ALL)
def test_the_table_of_figures_is_that_of_the_text(name: str) -> None:
    proof = ALL[name]
    rows = [row for row in parsed_of(name).table("metric", "before → after") if len(row) > 1]
    wanted = [[*cells_of(row), row.says.text] for group in groups_of(proof) for row in group.rows]
    assert rows == wanted


def test_host_values_and_kept_runs_are_told_where_they_are_known_and_else_are_unknown() -> None:
    known = replace(PROOFS["gain"].session, host=HostIdentity("db1", None, "6.1.0"))
    said = parsed(replace(PROOFS["gain"], session=known, values=SETTINGS, saved_to="/root/a b.gz")).text
    assert "name db1 kernel 6.1.0" in said
    assert "sysctl:vm.swappiness 60 10 less" in said
    assert said.endswith(f"advisor compare {shell_quote('/root/a b.gz')}")
    bare = parsed(PROOFS["gain"]).text
    assert "name unknown kernel unknown" in bare
    assert "The values are not recorded with this proof." in bare
    assert "The runs are not kept." in bare
    assert "both arms were the host as it is" in parsed(PROOFS["self-test"]).text


def test_an_interrupted_session_has_its_page_with_and_without_a_pair() -> None:
    assert "no figures" in parsed(PROOFS["interrupted"]).text
    cut = replace(pair(9, 1000.0, 1200.0), whole=False, runs=(run("A", 1000.0),), order="A")
    said = parsed(proof_of(GAIN, pairs=(*GAIN.pairs[:9], cut), ended="interrupted")).text
    assert "indicative, no proof" in said
    assert "the session was interrupted" in said


# -- hostile names -------------------------------------------------------------------------------------------------

ATTACKS = {
    **TEXTS,
    "element": "<script>alert(1)</script>",
    "closing": "</style></svg></title><img src=x onerror=alert(1)>",
    "attribute": "\" onload='alert(1)' x=\"",
    "comment": "--><!-- ]]>",
    "entity": "&lt;script&gt;&#60;",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_names_are_text_and_nothing_else(name: str) -> None:
    text = ATTACKS[name]
    base = PROOFS["forced"]
    odd = tuple(replace(claim, name=text, unit=text) for claim in base.workloads)
    lit = tuple(replace(run, lamps=(text,), workload=text) for run in base.session.pairs[0].runs)
    said = replace(
        base.session,
        target=text,
        file_system=text,
        device=text,
        fio_version=text,
        started=text,
        notes=(text,),
        host=HostIdentity(text, text, text),
        pairs=(replace(base.session.pairs[0], runs=lit, order=text), *base.session.pairs[1:]),
    )
    made = replace(
        base,
        profile=text,
        workloads=(*base.workloads, *odd),
        reasons=(text,),
        notes=(text,),
        gate=CalmGate((text,), (text,)),
        session=said,
        saved_to=text,
        values=(ArmSetting(text, text, text, text),),
    )
    page = proof_page(made)
    assert all(line.isprintable() for line in page.split("\n"))
    elements = Parsed(page).elements
    assert {tag for tag, _ in elements} <= SAFE
    assert not [key for _, found in elements for key in found if key.startswith("on") or key == "src"]
    ElementTree.fromstring(page)
    page.encode()


SAFE = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "p",
        "h1",
        "h2",
        "h3",
        "bdi",
        "div",
        "strong",
    ),
    *("ul", "li", "figure", "figcaption", "table", "thead", "tbody", "tr", "th", "td", "span", "details", "summary"),
    *("dl", "dt", "dd", "pre", "code", "svg", "defs", "circle", "path", "line", "rect", "use", "text", "desc"),
}
