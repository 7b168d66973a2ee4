"""How much of each device of a picture was used over a span: as a word in its block, and as a colour behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from advisor.report.picture.records import Chip, HostPicture, Panel, PictureBlock, Place, Tile, Words

LEVELS: Final = (0.1, 0.4, 0.7, 0.9)
"""The shares from which a device has the next colour."""


def load_level(share: float | None) -> int:
    """0 for what is hardly used or not known, up to 4."""
    return 0 if share is None else sum(share >= least for least in LEVELS)


def add_loads(picture: HostPicture, devices: Mapping[str, float], cpus: Mapping[Place, float]) -> HostPicture:
    """The picture with the use of its devices, by name, and of the CPUs of each panel: shares from 0 to 1."""
    panels = tuple(_load_panel(panel, devices, cpus.get(panel.place)) for panel in picture.panels)
    return msgspec.structs.replace(picture, panels=panels)


def _load_panel(panel: Panel, devices: Mapping[str, float], busy: float | None) -> Panel:
    sections = tuple(
        msgspec.structs.replace(section, blocks=tuple(_load_block(block, devices) for block in section.blocks))
        for section in panel.sections
    )
    chips = tuple(_load_chip(chip, busy) if chip.label == "CPUs" else chip for chip in panel.chips)
    return msgspec.structs.replace(panel, sections=sections, chips=chips)


def _load_chip(chip: Chip, busy: float | None) -> Chip:
    if busy is None:
        return chip
    note = " · ".join(one for one in (chip.note, f"{busy * 100:.0f} % busy") if one)
    return msgspec.structs.replace(chip, note=note, load=load_level(busy))


def _load_block(block: PictureBlock, devices: Mapping[str, float]) -> PictureBlock:
    """Tiles have their own share each; a block has that of its busiest device, and says which where it has several."""
    tiles = tuple(_load_tile(tile, devices) for tile in block.tiles)
    known = {name: devices[name] for name in block.names if name in devices}
    if not known:
        return msgspec.structs.replace(block, tiles=tiles)
    busiest = max(known, key=lambda name: known[name])
    share = known[busiest]
    named = f" ({busiest})" if len(known) > 1 else ""
    words = Words((f"{share * 100:.0f} % used{named}",))
    level = 0 if tiles else load_level(share)
    return msgspec.structs.replace(block, tiles=tiles, lines=(*block.lines, words), load=level)


def _load_tile(tile: Tile, devices: Mapping[str, float]) -> Tile:
    share = devices.get(tile.name)
    if share is None:
        return tile
    return msgspec.structs.replace(tile, state=tile.state or f"{share * 100:.0f} %", load=load_level(share))
