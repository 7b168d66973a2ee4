"""Hosts with Veritas Volume Manager: what vxprint -ht, vxdisk and vxtunefs print, in the shapes of their manuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.facts.block.vxvm import DMP_PATHS, LIST, LIST_NATIVE, PATHS, VXPRINT
from tests.facts.storage import Tree

HEAD = """\
DG NAME         NCONFIG      NLOG     MINORS   GROUP-ID
ST NAME         STATE        DM_CNT   SPARE_CNT         APPVOL_CNT
DM NAME         DEVICE       TYPE     PRIVLEN  PUBLEN   STATE
RV NAME         RLINK_CNT    KSTATE   STATE    PRIMARY  DATAVOLS  SRL
RL NAME         RVG          KSTATE   STATE    REM_HOST REM_DG    REM_RLNK
CO NAME         CACHEVOL     KSTATE   STATE
VT NAME         RVG          KSTATE   STATE    NVOLUME
V  NAME         RVG/VSET/CO  KSTATE   STATE    LENGTH   READPOL   PREFPLEX UTYPE
PL NAME         VOLUME       KSTATE   STATE    LENGTH   LAYOUT    NCOL/WID MODE
SD NAME         PLEX         DISK     DISKOFFS LENGTH   [COL/]OFF DEVICE   MODE
SV NAME         PLEX         VOLNAME  NVOLLAYR LENGTH   [COL/]OFF AM/NM    MODE
SC NAME         PLEX         CACHE    DISKOFFS LENGTH   [COL/]OFF DEVICE   MODE
DC NAME         PARENTVOL    LOGVOL
SP NAME         SNAPVOL      DCO
EX NAME         ASSOC        VC                       PERMS    MODE     STATE
SR NAME         KSTATE

"""
LENGTH = 209715200


def group(name: str, media: Mapping[str, str], *records: str) -> str:
    """One disk group of ``vxprint -ht``: its head, disks (media name → access name) and records."""
    disks = "".join(f"dm {one:12} {access:12} auto     65536    2147417808 -\n" for one, access in media.items())
    return f"dg {name:12} default      default  55000    1741211310.10.node1\n\n{disks}\n" + "".join(
        f"{one}\n" for one in records
    )


def vxprint(*groups: str) -> str:
    return f"Disk group: {groups[0].split()[1]}\n\n{HEAD}" + "\n".join(groups)


def volume(name: str, *, kstate: str = "ENABLED", state: str = "ACTIVE", length: int = LENGTH) -> str:
    return f"v  {name:12} -            {kstate:8} {state:8} {length:<8} SELECT    -        fsgen"


def plex(
    name: str, of: str, layout: str = "CONCAT -", *, kstate: str = "ENABLED", state: str = "ACTIVE", mode: str = "RW"
) -> str:
    return f"pl {name:12} {of:12} {kstate:8} {state:8} {LENGTH:<8} {layout:18} {mode}"


def subdisk(of: str, disk: str, access: str, place: str = "0", *, mode: str = "ENA", offset: int = 0) -> str:
    return f"sd {disk}-01  {of:12} {disk:8} {offset:<8} {LENGTH:<8} {place:9} {access:8} {mode}"


def stripe(name: str, of: str, disks: Mapping[str, str], width: int = 128, **state: str) -> list[str]:
    """A striped plex with a column on each disk (media name → access name)."""
    columns = [subdisk(name, one, access, f"{at}/0") for at, (one, access) in enumerate(disks.items())]
    return [plex(name, of, f"STRIPE {len(disks)}/{width}", **state), *columns]


def dco(of: str, disk: str, access: str) -> list[str]:
    log = f"{of}_dcl"
    return [
        f"dc {of}_dco  {of}  {log}",
        f"v  {log} -            ENABLED  ACTIVE   67968    SELECT    -        gen",
        f"pl {log}-01 {log} ENABLED ACTIVE 67968 CONCAT - RW",
        f"sd {disk}-02 {log}-01 {disk} 377895168 67968 0 {access} ENA",
    ]


def nvme(count: int) -> Tree:
    """A host with NVMe disks, on node 0 and 1 by turns."""
    tree = Tree()
    for number in range(count):
        tree.nvme(number, number % 2, number=f"259:{number}")
    return tree


def mount(tree: Tree, source: str, target: str, kind: str = "vxfs", number: str = "199:55000") -> None:
    tree.files["/proc/self/mountinfo"] += (
        f"90 1 {number} / {target} rw,relatime shared:1 - {kind} {source} rw,largefiles,blkclear\n"
    )


def answer(tree: Tree, text: str, *disks: str, paths: str = "") -> None:
    """What the tools print. ``disks`` are lines of ``vxdisk -e list``: DEVICE TYPE DISK GROUP STATUS NATIVE ATTR."""
    tree.answer(VXPRINT, text)
    if disks:
        head = "DEVICE       TYPE           DISK        GROUP        STATUS               OS_NATIVE_NAME   ATTR\n"
        tree.answer(LIST_NATIVE, head + "".join(f"{one}\n" for one in disks))
        short = "DEVICE          TYPE            DISK         GROUP        STATUS\n"
        lines = (" ".join(one.split()[:-2]) for one in disks)
        tree.answer(LIST, short + "".join(f"{one}\n" for one in lines))
    if paths.startswith("SUBPATH"):
        tree.answer(PATHS, paths)
    elif paths:
        tree.answer(DMP_PATHS, paths)


def listed(access: str, media: str, native: str, *, of: str = "datadg", status: str = "online") -> str:
    return f"{access}  auto:cdsdisk  {media}  {of}  {status}  {native}  -"


def vxtunefs(tree: Tree, place: str, values: Mapping[str, int]) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in values.items())
    tree.answer(("vxtunefs", "-p", place), f"Filesystem i/o parameters for {place}\n{lines}")


def tuned(unit: int, columns: int) -> dict[str, int]:
    """The parameters that VxFS takes from stripes, and some others."""
    return {
        "read_pref_io": unit,
        "read_nstream": columns,
        "read_unit_io": unit,
        "write_pref_io": unit,
        "write_nstream": columns,
        "pref_strength": 10,
        "discovered_direct_iosz": 262144,
    }


def names(count: int, first: int = 0) -> dict[str, str]:
    """Media names and the access names of NVMe disks as DMP gives them."""
    return {f"datadg{at + 1:02}": f"nvme0_{at}" for at in range(first, first + count)}


def nvme_lines(count: int, of: str = "datadg") -> Sequence[str]:
    return [listed(f"nvme0_{at}", f"datadg{at + 1:02}", f"nvme{at}n1", of=of) for at in range(count)]
