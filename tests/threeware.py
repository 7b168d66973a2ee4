"""Servers with 3ware controllers: disks as the drivers show them, and what tw_cli prints of each card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from advisor.host import Host
from tests.facts.storage import Tree

HEAD = """
Unit  UnitType  Status         %RCmpl  %V/I/M  Stripe  Size(GB)  Cache  AVrfy
------------------------------------------------------------------------------
"""
PORTS = """
VPort Status         Unit Size      Type  Phy Encl-Slot    Model
------------------------------------------------------------------------------
"""
BATTERY = """
Name  OnlineState  BBUReady  Status    Volt     Temp     Hours  LastCapTest
---------------------------------------------------------------------------
bbu   On           Yes       OK        OK       OK       212    03-Jan-2012
"""


class Unit(NamedTuple):
    """A unit of a card: its number, type and drives; ``gib`` as tw_cli prints it."""

    number: int
    kind: str
    drives: int
    gib: float
    serial: str = ""
    status: str = "OK"
    stripe: str = "256K"


def add_disk(
    tree: Tree,
    name: str,
    host: int,
    unit: Unit,
    *,
    lun: int = 0,
    model: str = "9650SE-8LP DISK",
    vendor: str = "AMCC",
    number: str = "",
    share: float = 1,
) -> None:
    """The disk of a unit: its target is the unit's number."""
    pci = tree.pci(f"0000:0{host}:00.0", host % 2)
    address = f"{host}:0:{unit.number}:{lun}"
    place = f"{pci}/host{host}/target{host}:0:{unit.number}/{address}"
    about = {"vendor": f"{vendor:8}", "model": f"{model:16}", "state": "running", "queue_depth": "254"}
    tree.files |= {f"{place}/{key}": f"{value}\n" for key, value in about.items()}
    sectors = round(unit.gib * (1 << 30) * share) // 512
    tree.block(name, f"{place}/block", sectors=sectors, number=number, queue={"rotational": "1"})
    tree.links[f"{place}/block/{name}/device"] = f"../../../{address}"
    if unit.serial:
        text = unit.serial.encode()
        tree.pages[f"{place}/vpd_pg80"] = bytes((0, 0x80, 0, len(text))) + text


def add_card(tree: Tree, number: int, units: Sequence[Unit], *, model: str = "9650SE-8LPML") -> None:
    """What tw_cli prints of a card; `show_cards` lists them."""
    rows = "".join(
        f"u{one.number}    {one.kind:9} {one.status:14} -       -       {one.stripe:7} {one.gib:<9} RiW    ON\n"
        for one in units
    )
    ports = [(at, one) for one in units for at in range(one.drives)]
    drives = "".join(
        f"p{at}    OK             u{one.number}   1.82 TB   SATA  {at}   -            WDC WD2003FYYS-02W0B0\n"
        for at, (_, one) in enumerate(ports)
    )
    tree.answer(("tw_cli", f"/c{number}", "show"), HEAD + rows + PORTS + drives + BATTERY)
    for one in units:
        words = f"/c{number}/u{one.number}"
        serial = f"{words} serial number = {one.serial}\n" if one.serial else ""
        lines = f"{words} status = {one.status}\n{words} name = vmstore\n{serial}{words} Write Cache = on\n"
        tree.answer(("tw_cli", words, "show", "all"), lines)
    found = tree.answers.get(("tw_cli", "show"))
    before = getattr(found, "stdout", "") or (
        "\nCtl   Model        (V)Ports  Drives   Units   NotOpt  RRate   VRate  BBU\n" + "-" * 72 + "\n"
    )
    tree.answer(
        ("tw_cli", "show"), f"{before}c{number}    {model:12} 8         8        2       0       1       1      OK\n"
    )


def openfiler_raid(kind: str, drives: int, gib: float) -> Callable[[], Host]:
    """The article's storage server: one unit of a 9650SE, XFS on its disk."""

    def host() -> Host:
        tree = Tree()
        unit = Unit(0, kind, drives, gib, "9QG0C0JW1E8B8200B7E3")
        tree.scsi("sda", tree.pci("0000:09:00.0", 0))
        add_disk(tree, "sdb", 6, unit, number="8:16")
        add_card(tree, 0, [unit])
        tree.mount("8:16", "/mnt/vmstore", "xfs")
        return tree.host()

    return host
