"""The picture in words: the text for screen readers, and the list below it that can be searched and copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.report.layout import listed
from advisor.report.picture.records import Crossing, HostPicture, PictureBlock
from advisor.report.units import times

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
