"""Accelerators as blocks of the picture: alike ones of a panel together."""

from __future__ import annotations

from typing import Final

from advisor.facts.accelerators import Accelerator
from advisor.report.picture.links import bound_blocks
from advisor.report.picture.places import PictureFacts
from advisor.report.picture.records import PictureBlock, Place, Words
from advisor.report.picture.wording import first_names, is_below, pcie_words

MAX_BLOCKS: Final = 8
_MAX_NAMED: Final = 4
_KINDS: Final = {"gpu": "GPU", "dpu": "DPU", "accelerator": "Accelerator", "quickassist": "QuickAssist"}


def accelerator_title(one: Accelerator) -> str:
    """``GPU NVIDIA 10de:20b0``."""
    return " ".join(filter(None, (_KINDS[one.kind], one.vendor, one.ids)))


def accelerator_blocks(around: PictureFacts, place: Place) -> tuple[PictureBlock, ...]:
    """Those of a panel; cards of one model, driver and width are one block."""
    groups: dict[tuple[str, str | None, str], list[Accelerator]] = {}
    for one in around.facts.accelerators:
        if around.place(one.numa_node) == place:
            words = pcie_words(one.pcie, real=around.is_real)
            groups.setdefault((accelerator_title(one), one.driver, words), []).append(one)
    blocks = []
    for (title, driver, words), alike in groups.items():
        addresses = tuple(one.address for one in alike)
        low = around.is_real and is_below(alike[0].pcie)
        lines = (
            Words((driver or "no driver",)),
            Words((words,) if words else (), "warn" if low else "quiet"),
            Words(first_names(addresses, _MAX_NAMED), "quiet"),
        )
        blocks.append(
            PictureBlock(
                key=f"accelerator:{addresses[0]}",
                title=title,
                names=addresses,
                aside=f"{len(alike)} ×" if len(alike) > 1 else "",
                lines=tuple(line for line in lines if line.pieces),
                look="warn" if low else "",
                lanes=alike[0].pcie.width if alike[0].pcie else None,
                is_below=low,
                marks=around.marked(addresses),
                folded=len(addresses) > _MAX_NAMED,
            )
        )
    return bound_blocks(around, blocks, MAX_BLOCKS, "accelerator")
