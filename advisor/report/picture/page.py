"""The picture as a file: an SVG that stands alone, and an HTML page with the findings and what is unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from advisor.facts.host_facts import Facts
from advisor.facts.system.services import Service
from advisor.facts.unknown import Unknown
from advisor.host.patterns import lazy_regex
from advisor.host.provenance import Provenance
from advisor.limits.records import HostCeiling
from advisor.report.findings import value_text
from advisor.report.format import clean, format_minute
from advisor.report.html import Raw, cut_text, flow_pieces, html_environment, render_page
from advisor.report.layout import Piece, Span, Style, columns, listed, padded, paint_text, width_of, wrap_pieces
from advisor.report.picture.content import host_picture
from advisor.report.picture.drawing import Sheet, draw_sheet, share_out, write_legend
from advisor.report.picture.scene import Crossing, HostPicture, Panel, PictureBlock, by_key
from advisor.report.scan_summary import NEED, devices_text, host_roles, provenance_text, whose_commands
from advisor.report.severities import LOOKS, SEVERITY_STYLE, severity_span
from advisor.report.units import format_binary, times
from advisor.rules.judged import number_findings
from advisor.rules.rule import Finding

if TYPE_CHECKING:
    from jinja2 import Environment

# The picture in words: the text for screen readers, and the list below it that can be searched and copied.

LONGEST = 1500


def describe_picture(picture: HostPicture) -> str:
    """Return a few sentences: the nodes, how much is on each, and what crosses nodes."""
    sentences = [f"{times(len(picture.panels), 'part')} side by side."]
    for panel in picture.panels:
        parts = [f"{chip.label} {chip.value}" for chip in panel.chips]
        for section in panel.sections:
            parts.append(f"{section.title.lower()}: {', '.join(block.title for block in section.blocks[:6])}")
        sentences.append(f"{panel.title}: {'; '.join(parts) or 'no devices'}.")
    crossing = "; ".join(crossing.title for crossing in picture.crossings)
    sentences.append(f"Across nodes: {crossing}." if crossing else "Nothing crosses nodes.")
    sentences += [f"{picture.ceiling.title}."] if picture.ceiling else []
    text = " ".join(sentences)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def describe_blocks(picture: HostPicture) -> Iterator[tuple[str, Sequence[str]]]:
    """Return headings with lines: panel by panel, then all that crosses nodes, lies on no node, or bounds the host."""
    for panel in picture.panels:
        chips = [
            f"{chip.label}: {chip.value} ({chip.note})" if chip.note else f"{chip.label}: {chip.value}"
            for chip in panel.chips
        ]
        title = f"{panel.title} ({panel.note})" if panel.note else panel.title
        yield title, [*chips, *map(_block_line, panel.blocks)]
    if picture.crossings:
        yield "Across nodes", [*map(crossing_line, picture.crossings)]
    if picture.loose:
        yield "On no node", [" ".join(words.pieces) for words in picture.loose]
    if (ceiling := picture.ceiling) is not None:
        yield "Ceiling", [*filter(None, (ceiling.title, *(bar.words for bar in ceiling.bars), ceiling.note))]


def _block_line(block: PictureBlock) -> str:
    drives = " ".join(f"{tile.name} ({tile.state})" if tile.state else tile.name for tile in block.tiles)
    parts = (
        block.title,
        block.aside,
        *(piece for line in block.lines for piece in line.pieces),
        f"drives {drives}" if drives else "",
        f"see {listed([f'finding {mark}' for mark in block.marks])}" if block.marks else "",
    )
    return ", ".join(filter(None, parts))


def crossing_line(crossing: Crossing) -> str:
    """Return a crossing in one line."""
    return f"{crossing.title}: {', '.join(crossing.words)}"


# The picture in a terminal: a box for each node, side by side as room allows, and all that crosses nodes below.

MIN_BOX = 38
MAX_BOX = 78
MIN_WIDTH = 40
_GAP = 2
_STYLES: dict[str, Style] = {"": "", "quiet": "dim", **SEVERITY_STYLE}
_ASCII = ((" · ", ", "), ("·", ","), ("…", "..."), ("×", "x"), ("└ ", "- "))


def picture_text(
    facts: Facts,
    findings: Sequence[Finding],
    services: Sequence[Service] = (),
    *,
    width: int,
    color: bool,
    is_plain: bool = False,
) -> str:
    """Return the drawing, no line wider than ``width`` (40 at least). ``is_plain`` draws with ASCII alone."""
    page = _Page(max(width, MIN_WIDTH), color=color, is_plain=is_plain)
    return "\n".join(line.rstrip() for line in page.lines(host_picture(facts, findings, services))) + "\n"


def _numbers(marks: Sequence[int]) -> str:
    return "".join(f" [{mark}]" for mark in marks)


class _Page:
    def __init__(self, width: int, *, color: bool, is_plain: bool) -> None:
        self.width = width
        self.color = color
        self.is_plain = is_plain

    def lines(self, picture: HostPicture) -> Iterator[str]:
        yield from self._paragraph(picture.title, "bold")
        yield from self._paragraph(" · ".join(picture.about), "dim")
        yield ""
        yield from self._panels(picture.panels)
        if picture.crossings:
            yield ""
            yield from self._paragraph("Across nodes", "bold")
            for crossing in picture.crossings:
                text, style = crossing_line(crossing) + _numbers(crossing.marks), _STYLES[picture.look(crossing.marks)]
                yield from self._paragraph(text, style, ("  ",), 4)
        for words in picture.loose:
            yield from self._paragraph(" ".join(words.pieces), "dim")
        yield ""
        yield from self._paragraph(picture.summary, "bold")
        size = len(f"  [{len(picture.notes)}] ")
        for note in picture.notes:
            first = (padded(f"  [{note.number}]", size), padded(severity_span(note.severity), 9))
            yield from self._paragraph(note.title, "", first, width_of(first))

    def _paragraph(self, text: str, style: Style, first: Sequence[Piece] = (), indent: int = 0) -> list[str]:
        said = Span(self._plain(text), style)
        return wrap_pieces([said], self.width, first=first, indent=indent, color=self.color)

    def _plain(self, text: str) -> str:
        """Return a text in characters that this terminal has."""
        text = clean(text)
        for sign, other in _ASCII if self.is_plain else ():
            text = text.replace(sign, other)
        return text.encode("ascii", "backslashreplace").decode() if self.is_plain else text

    def _measure(self, text: str) -> float:
        return columns(self._plain(text))

    def _panels(self, panels: Sequence[Panel]) -> Iterator[str]:
        count = max(1, min((self.width + _GAP) // (MIN_BOX + _GAP), len(panels)))
        width = min((self.width - _GAP * (count - 1)) // count, MAX_BOX)
        boxes = [[*self._box(panel, width)] for panel in panels]
        columns = [[line for at in column for line in boxes[at]] for column in share_out([*map(len, boxes)], count)]
        yield from map((" " * _GAP).join, zip_longest(*columns, fillvalue=" " * width))

    def _box(self, panel: Panel, width: int) -> Iterator[str]:
        left, right, low, end, across, down = "++++-|" if self.is_plain else "┌┐└┘─│"
        head = f"{left}{across} {self._fitted(panel.title, width - 6)} "
        yield paint_text(f"{head}{across * (width - columns(head) - 1)}{right}", "bold", color=self.color)
        for spans in self._inside(panel, width - 4):
            used = sum(columns(span.text) for span in spans)
            text = "".join(paint_text(span.text, span.style, color=self.color) for span in spans)
            yield f"{down} {text}{' ' * (width - 4 - used)} {down}"
        yield low + across * (width - 2) + end

    def _inside(self, panel: Panel, room: int) -> Iterator[list[Span]]:
        for chip in panel.chips:
            words = " · ".join(filter(None, (f"{chip.label} {chip.value}", chip.note)))
            yield self._cell(words, _STYLES[chip.look], room)
        if panel.note:
            yield self._cell(panel.note, "dim", room)
        for section in panel.sections:
            yield self._cell(section.title, "bold", room)
            if section.note:
                yield self._cell(" · ".join(section.note), "dim", room, 2)
            for block in section.blocks:
                yield from self._block(block, room)

    def _cell(self, text: str, style: Style, room: int, indent: int = 0) -> list[Span]:
        return [Span(" " * indent), Span(self._fitted(text, room - indent), style)]

    def _block(self, block: PictureBlock, room: int) -> Iterator[list[Span]]:
        indent = 2 + 2 * min(block.depth, 4)
        style = _STYLES[block.look]
        head = self._cell(("└ " if block.depth else "") + block.title, style or "bold", room, indent)
        aside = Span(self._fitted(block.aside + _numbers(block.marks), room - indent - 2), style)
        gap = room - sum(columns(span.text) for span in (*head, aside))
        if gap > 0:
            yield [*head, Span(" " * gap), aside]
        else:
            yield head
            yield [Span(" " * (indent + 2)), aside]
        drives = [f"{tile.name} {tile.state}".rstrip() for tile in block.tiles]
        parts = [*((line.pieces, _STYLES[line.look], " · ") for line in block.lines), (drives, "", "  ")]
        for pieces, look, between in parts:
            for line in flow_pieces(pieces, room - indent - 2, between, self._measure):
                yield self._cell(line, look, room, indent + 2)

    def _fitted(self, text: str, room: int) -> str:
        """Return the text in ``room`` columns, cut short if it takes more."""
        return self._plain(cut_text(text, room, self._measure))


PHONE_WIDTH = 328.0
"""A phone of 360 pixels less its margins."""

PAPER_WIDTH = 668.0
SCREEN_WIDTH = 1184.0
_MAX_LINES = 40
_MAX_FACTS = 3
SHEETS = (Sheet("narrow", PHONE_WIDTH), Sheet("medium", PAPER_WIDTH), Sheet("wide", SCREEN_WIDTH))
"""A drawing for a phone, one for paper, and one for a screen."""
_VARIABLE = lazy_regex(r"var\((--\w+)\)")


def picture_svg(
    facts: Facts, findings: Sequence[Finding], services: Sequence[Service] = (), ceiling: HostCeiling | None = None
) -> str:
    """The host as one SVG file: with its name, the titles of the findings, and what the lines mean."""
    picture = host_picture(facts, findings, services, ceiling)
    sheet = Sheet("host-picture", SCREEN_WIDTH if len(picture.panels) > 2 else PAPER_WIDTH, whole=True)
    made = html_environment()
    drawn = made.get_template("host.svg.j2").module.drawn  # type: ignore[attr-defined]
    style = Raw(_own_style(made))
    return f"{drawn(draw_sheet(picture, sheet), _page_title(picture), describe_picture(picture), style)}\n".lstrip()


def picture_page(
    facts: Facts,
    findings: Sequence[Finding],
    services: Sequence[Service] = (),
    ceiling: HostCeiling | None = None,
    *,
    provenance: Provenance | None = None,
    muted: Sequence[Finding] = (),
) -> str:
    """The page: when and of what it is, the facts of the machine, the findings in short, the picture as it fits a
    phone, paper or a screen, the findings with their reasons, what is muted, and the unknown."""
    picture = host_picture(facts, findings, services, ceiling)
    # Findings with the numbers of the scan page, and whether each is the first of its number; the gravest first.
    numbered = [(group, at == 0, one) for group in number_findings(findings) for at, one in enumerate(group.findings)]
    groups = (
        (look, [(group.number, first, one) for group, first, one in numbered if group.severity == look.name])
        for look in LOOKS
    )
    return render_page(
        "host",
        "proof",
        "host-page",
        picture=picture,
        title=_page_title(picture),
        description=describe_picture(picture),
        drawings=[draw_sheet(picture, sheet) for sheet in SHEETS],
        provenance=provenance_text(provenance) if provenance else "",
        whose=_whose_host(provenance) if provenance else None,
        facts_table=list(_facts_table(facts)),
        muted=muted,
        legend=write_legend(picture).pieces,
        groups=[(look, found) for look, found in groups if found],
        evidence=evidence_rows,
        unknown=_unknown_rows(facts.unknown),
        count_unknown=len(facts.unknown),
        described=describe_blocks(picture),
    )


def _whose_host(provenance: Provenance) -> tuple[str, str] | None:
    """That the page is of a captured host and of when; and the words that advisor's commands need here. None for this
    host as it is."""
    words = whose_commands(provenance, 1000)
    if not words:
        return None
    if provenance.source == "live" or provenance.is_this_host:
        text = words
    else:
        when = format_minute(provenance.captured_at)
        taken = f"captured on {when}" if when else "captured at a time that is not known"
        text = f"The host of this page was {taken}; the commands are for it, and {words.partition(': ')[2]}"
    before, sign, options = text.partition(f"{NEED} ")
    return (f"{before}{sign}", options) if sign else (f"{text}.", "")


def _page_title(picture: HostPicture) -> str:
    # A host without a name is called just that: "host of unknown name".
    return f"The {'' if picture.title.startswith('host ') else 'host '}{picture.title}, drawn by its NUMA nodes"


def _own_style(made: Environment) -> str:
    """The style sheet of a file of its own: colours written out, for viewers that know no variables."""
    style = made.get_template("host.css.j2").render()
    blocks = re.findall(r":root \{([^}]*)\}", made.get_template("colours.css.j2").render() + style)
    light, dark, *_, more, dark_more = (dict(re.findall(r"(--\w+): ([^;]+);", block)) for block in blocks)
    rules = [line for line in style.splitlines() if ":root" not in line and "@media" not in line]

    def filled(lines: Iterable[str], colours: Mapping[str, str]) -> str:
        return _VARIABLE.sub(lambda name: colours[name[1]], "\n".join(lines))

    in_dark = filled((line for line in rules if "var(" in line), dark | dark_more)
    return f"{filled(rules, light | more).strip()}\n@media (prefers-color-scheme: dark) {{\n{in_dark}\n}}"


def _facts_table(facts: Facts) -> Iterator[tuple[str, str]]:
    """What the machine is, a row for each thing that is known."""
    host, cpu, memory = facts.host, facts.cpu, facts.memory
    counts = ((cpu.packages, "socket"), (cpu.cores, "core"), (cpu.threads, "thread"))
    virtual = "" if host.virtualization in (None, "", "none") else f"{host.virtualization} virtual machine"
    virtual = facts.container.words.removeprefix("a ") if facts.container.is_inside else virtual
    machine = " ".join(filter(None, (host.vendor, host.product)))
    sizes = [times(count, what) for count, what in counts if count is not None]
    rows = {
        "role": ", ".join(host_roles(facts)),
        "system": host.os,
        "kernel": " ".join(filter(None, (host.kernel, host.architecture))),
        "machine": ", ".join(filter(None, (machine, virtual))),
        "cloud": host.cloud and f"{host.cloud.provider} {host.cloud.instance_type or 'instance type unknown'}",
        "cpu": ", ".join(filter(None, (cpu.model, *sizes))),
        "memory": None if memory.total_bytes is None else format_binary(memory.total_bytes),
        "nodes": str(len(facts.numa.nodes) or ""),
        "devices": devices_text(facts.links, facts.disks, facts.arrays, (), facts.accelerators),
    }
    return ((name, text) for name, text in rows.items() if text)


def evidence_rows(finding: Finding) -> list[str]:
    """What was seen: the sentences of ``detail`` where there are some, else every name with its value."""
    detail = finding.evidence.get("detail")
    if isinstance(detail, tuple):
        more = [f"and {len(detail) - _MAX_LINES} more; --json lists all"] if len(detail) > _MAX_LINES else []
        return [*detail[:_MAX_LINES], *more]
    return [f"{key} {value_text(value)}" for key, value in finding.evidence.items() if value not in (None, ())]


def _unknown_rows(unknown: Sequence[Unknown]) -> list[tuple[str, str]]:
    """Facts and why they are unknown; those of one kind and for one reason in one row."""
    rows = by_key(unknown, lambda entry: (entry.fact.partition(".")[0], entry.why))
    return [
        (
            ", ".join(entry.fact for entry in group[:_MAX_FACTS])
            + (f" and {len(group) - _MAX_FACTS} more" if len(group) > _MAX_FACTS else ""),
            group[0].why,
        )
        for group in rows
    ]
