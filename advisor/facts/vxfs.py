"""VxFS: what ``vxtunefs -p`` and ``fstyp -v`` print of a mounted file system (vxtunefs(1M), fstyp(1M))."""

from __future__ import annotations

import re

from advisor.facts.mounts import Mount
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

TOOLS = "/opt/VRTS/bin"
# By name on the search path, then where the package puts them.
VXTUNEFS = ("vxtunefs", f"{TOOLS}/vxtunefs")
FSTYP = (f"{TOOLS}/fstyp", "fstyp")
TUNABLES = (
    *("read_pref_io", "read_nstream", "read_unit_io", "write_pref_io", "write_nstream", "write_unit_io"),
    *("discovered_direct_iosz", "max_direct_iosz", "buf_breakup_size", "max_diskq", "initial_extent_size"),
    *("max_seqio_extent_size", "qio_cache_enable", "read_ahead"),
)
"""Those that are kept: sizes in bytes, numbers of requests, switches."""


def parse_vxtunefs(text: str) -> dict[str, int]:
    """Parameters of one file system: ``read_pref_io = 65536``."""
    found = re.findall(r"^[ \t]*(\w{1,40}) = (\d{1,18})[ \t\r]*$", text[: 1 << 16], re.MULTILINE | re.ASCII)
    return {name: int(value) for name, value in found if name in TUNABLES}


def parse_fstyp(text: str) -> int | None:
    """The block size in the superblock that ``fstyp -v`` prints: ``bsize  8192 size  2621440 …``."""
    found = re.search(r"\b(?:f_)?bsize:?\s+(\d{3,6})\b", text[: 1 << 16], re.ASCII)
    return int(found[1]) if found else None


def read_tunables(host: Host, device: str, mount: Mount, unknown: Unknowns) -> dict[str, int]:
    """What the file system does now; why it could not be read is noted."""
    fact = f"filesystems.{device}.tunables"
    for program in VXTUNEFS:
        done = host.run((program, "-p", mount.target))
        if isinstance(done, Missing) and done.is_absent:
            continue
        found = {} if isinstance(done, Missing) else parse_vxtunefs(done.stdout)
        if not found:
            why = done.why if isinstance(done, Missing) else f"vxtunefs returned {done.rc}: {done.stderr.strip()[:200]}"
            unknown.note(fact, why)
        return found
    unknown.note(fact, "vxtunefs is not there")
    return {}


def read_block_bytes(host: Host, device: str, mount: Mount, unknown: Unknowns) -> int | None:
    """The block size of a mounted VxFS; why it is not known is noted."""
    for program in FSTYP:
        done = host.run((program, "-v", mount.source))
        if isinstance(done, Missing):
            continue
        size = parse_fstyp(done.stdout)
        if size is not None:
            return size
    unknown.note(f"filesystems.{device}.block_bytes", "fstyp -v does not print it; reading the superblock needs root")
    return None
