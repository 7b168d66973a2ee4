"""The picture in words: what a screen reader says for it, and the list below it that can be searched and copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from advisor.report.layout import listed
from advisor.report.picture.records import Crossing, HostPicture, Panel, PictureBlock
from advisor.report.units import times

LONGEST: Final = 1500


class DescribedBlock(msgspec.Struct, frozen=True):
    """A heading and the lines below it."""

    heading: str
    lines: tuple[str, ...]


def describe_picture(picture: HostPicture) -> str:
    """A few sentences: the nodes, how much is on each, and what crosses nodes."""
    sentences = [f"{times(len(picture.panels), 'part')} side by side."]
    for panel in picture.panels:
        chips = [f"{chip.label} {chip.value}" for chip in panel.chips]
        counts = [
            f"{section.title.lower()}: {', '.join(block.title for block in section.blocks[:6])}"
            for section in panel.sections
        ]
        sentences.append(f"{panel.title}: {'; '.join([*chips, *counts]) or 'no devices'}.")
    crossing = [one.title for one in picture.crossings]
    sentences.append(f"Across nodes: {'; '.join(crossing)}." if crossing else "Nothing crosses nodes.")
    sentences += [f"{picture.ceiling.title}."] if picture.ceiling else []
    text = " ".join(sentences)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def describe_blocks(picture: HostPicture) -> tuple[DescribedBlock, ...]:
    """Everything that is drawn, panel by panel, then what crosses nodes and what lies on none."""
    found = [
        DescribedBlock(f"{panel.title} ({panel.note})" if panel.note else panel.title, tuple(_panel_lines(panel)))
        for panel in picture.panels
    ]
    if picture.crossings:
        found.append(DescribedBlock("Across nodes", tuple(map(crossing_line, picture.crossings))))
    if picture.loose:
        found.append(DescribedBlock("On no node", tuple(" ".join(words.pieces) for words in picture.loose)))
    if picture.ceiling:
        ceiling = picture.ceiling
        bars = (bar.words for bar in ceiling.bars)
        ceiling_lines = (ceiling.title, *bars, *([ceiling.note] if ceiling.note else []))
        found.append(DescribedBlock("Ceiling", ceiling_lines))
    return tuple(found)


def _panel_lines(panel: Panel) -> Iterator[str]:
    for chip in panel.chips:
        yield f"{chip.label}: {chip.value}" + (f" ({chip.note})" if chip.note else "")
    for block in panel.blocks:
        yield block_line(block)


def block_line(block: PictureBlock) -> str:
    """A block in one line."""
    parts = [block.title, block.aside, *(piece for line in block.lines for piece in line.pieces)]
    drives = [f"{tile.name} ({tile.state})" if tile.state else tile.name for tile in block.tiles]
    parts += [f"drives {' '.join(drives)}"] if drives else []
    parts += [f"see {listed([f'finding {mark}' for mark in block.marks])}"] if block.marks else []
    return ", ".join(part for part in parts if part)


def crossing_line(crossing: Crossing) -> str:
    """A crossing in one line."""
    return f"{crossing.title}: {', '.join(crossing.words)}"
