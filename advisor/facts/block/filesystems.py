"""File systems on block devices, and the stripe geometry that they were made with.

XFS shows ``sunit`` and ``swidth`` among its mount options, in units of 512 bytes, whenever they are not 0 (xfs(5)).
ext4 shows ``stripe``, in its own blocks, whenever its allocator uses one; the stride stands in the superblock only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from advisor.facts.block.block import BlockNames, natural, node_path
from advisor.facts.block.mounts import Mount, Space, mounts_by_device, read_mounts, read_spaces
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count

# VxFS: what ``vxtunefs -p`` and ``fstyp -v`` print of a mounted file system (vxtunefs(1M), fstyp(1M)).

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


XFS_UNIT_BYTES = 512
MAX_SUPERBLOCKS = 8  # a process for each: no more than a handful in one scan
_EXT = ("ext2", "ext3", "ext4")


class FileSystem(msgspec.Struct, frozen=True):
    """A mounted or recognised file system on a block device (whole disk, partition, array or volume).

    ``device`` is the kernel's name (``sda2``, ``md0``, ``dm-3``). ``stripe_unit_bytes``/``stripe_width_bytes`` are XFS
    sunit/swidth or ext4 stride/stripe-width in bytes; 0 means that it was made without any, None that it is unknown or
    has no meaning for this kind. Block size and ext4 stride are looked up where the file system has a stripe or lies
    on a striped array; elsewhere they are None.
    """

    device: str
    kind: str
    mountpoints: tuple[str, ...]
    options: str | None
    block_bytes: int | None
    stripe_unit_bytes: int | None
    stripe_width_bytes: int | None
    tunables: Mapping[str, int] = {}
    """VxFS: what vxtunefs shows (``read_pref_io``, ``read_nstream`` …), in bytes and numbers of requests."""
    used_percent: int | None = None
    """Of what ordinary users may have, as df prints it, rounded down; None where it is unknown or not mounted."""
    inodes_used_percent: int | None = None
    """None too where the file system has no fixed number of inodes."""


class Geometry(msgspec.Struct, frozen=True):
    """Block size, stripe unit and stripe width in bytes; None where unknown."""

    block_bytes: int | None = None
    unit_bytes: int | None = None
    width_bytes: int | None = None


def parse_xfs_info(text: str) -> Geometry:
    """Geometry of the data section that ``xfs_info`` (xfs_growfs -n) prints; sunit and swidth there are blocks."""
    data = re.search(r"^data\s.*?(?=^\w|\Z)", text, re.MULTILINE | re.DOTALL)
    fields = {name: int(value) for name, value in re.findall(r"(\w+)=([0-9]{1,18})", data[0])} if data else {}
    block = fields.get("bsize")
    if not block or "sunit" not in fields or "swidth" not in fields:
        return Geometry(block or None)
    return Geometry(block, fields["sunit"] * block, fields["swidth"] * block)


def parse_dumpe2fs(text: str) -> Geometry:
    """Geometry in what ``dumpe2fs -h`` or ``tune2fs -l`` prints: no line for a stride or width that is 0."""
    fields = dict(
        re.findall(r"^(Block size|RAID stride|RAID stripe width):[ \t]*([0-9]{1,18})[ \t\r]*$", text, re.MULTILINE)
    )
    if "Block size" not in fields:
        return Geometry()
    block = int(fields["Block size"])
    return Geometry(block, int(fields.get("RAID stride", 0)) * block, int(fields.get("RAID stripe width", 0)) * block)


def parse_block_sizes(text: str) -> dict[str, int]:
    """Block size by mount point, from ``stat --file-system --format='%S %n'``."""
    return {name: int(size) for size, name in re.findall(r"^([0-9]{1,9}) (.+)$", text, re.MULTILINE) if int(size)}


def option_number(options: str, *names: str) -> int | None:
    """The number that the first of these mount options carries; None where none is among them."""
    # Without an expression for each name: compiling those takes a fiftieth of a scan.
    given = (option.partition("=") for option in options.split(","))
    return next(
        (int(value) for name, _, value in given if name in names and is_count(value) and len(value) <= 12), None
    )


def read_filesystems(host: Host, unknown: Unknowns) -> tuple[FileSystem, ...]:
    """Mounted file systems on block devices, and those not mounted that udev recognised, by device."""
    names = BlockNames(host)
    mounts = read_mounts(host)
    if isinstance(mounts, Missing):
        unknown.note("filesystems", mounts)
        mounts = ()
    mounted = mounts_by_device(mounts, names)
    geometry = _read_geometry(host, mounted, unknown)
    tunables = _read_tunables(host, mounted, unknown)
    space = _read_space(host) if mounted else {}
    found = [
        _make_filesystem(device, those, geometry.get(device, Geometry()), tunables.get(device, {}), space)
        for device, those in mounted.items()
    ]
    # What udev recognised on devices that are not mounted (`/run/udev/data/b8:1`: E:ID_FS_TYPE).
    mounted_numbers = {mount.number for mount in mounts if mount.number}
    unmounted: list[FileSystem] = []
    for entry in host.names("/run/udev/data"):
        if not entry.startswith("b") or entry[1:] in mounted_numbers:
            continue
        text = host.read(f"/run/udev/data/{entry}")
        kind = None if isinstance(text, Missing) else parse_udev_kind(text)
        name = names.by_number(entry[1:]) if kind else None
        if kind and name:
            unmounted.append(FileSystem(name, kind, (), None, None, None, None))
            if kind in ("xfs", *_EXT) and _is_striped(host, name):
                unknown.note(f"filesystems.{name}.stripe_unit_bytes", "it is not mounted")
    found += unmounted
    return tuple(sorted(found, key=lambda one: natural(one.device)))


def _read_tunables(
    host: Host, mounted: Mapping[str, tuple[Mount, ...]], unknown: Unknowns
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for device, mounts in mounted.items():
        if mounts[0].kind == "vxfs" and len(found) < MAX_SUPERBLOCKS:
            found[device] = read_tunables(host, device, mounts[0], unknown)
        elif mounts[0].kind == "vxfs":
            unknown.note(f"filesystems.{device}.tunables", "too many file systems to look at each")
    return found


def _read_space(host: Host) -> dict[str, Space]:
    # A df without --output (before coreutils 8.21, busybox) leaves it unknown without a word: few will miss it.
    found = read_spaces(host)
    return {} if isinstance(found, Missing) else found


def _make_filesystem(
    device: str, mounts: Sequence[Mount], geometry: Geometry, tunables: Mapping[str, int], spaces: Mapping[str, Space]
) -> FileSystem:
    space = next((spaces[mount.target] for mount in mounts if mount.target in spaces), None)
    inodes = space.inodes_used_share if space else None
    return FileSystem(
        device=device,
        kind=mounts[0].kind,
        mountpoints=tuple(dict.fromkeys(mount.target for mount in mounts)),
        options=mounts[0].options,
        block_bytes=geometry.block_bytes,
        stripe_unit_bytes=geometry.unit_bytes,
        stripe_width_bytes=geometry.width_bytes,
        tunables=tunables,
        used_percent=int(space.used_share * 100) if space else None,
        inodes_used_percent=None if inodes is None else int(inodes * 100),
    )


def _read_geometry(host: Host, mounted: Mapping[str, tuple[Mount, ...]], unknown: Unknowns) -> dict[str, Geometry]:
    striped = {device for device in mounted if _is_striped(host, device)}
    # Block sizes of the file systems with a stripe, from one process for them all.
    wanted = {
        device: mounts[0].target
        for device, mounts in sorted(mounted.items())
        if mounts[0].kind in ("xfs", *_EXT)
        and (device in striped or option_number(mounts[0].options, "stripe", "sunit"))
    }
    if not wanted:
        blocks = {}
    else:
        done = host.run(["stat", "--file-system", "--format=%S %n", "--", *wanted.values()])
        sizes = {} if isinstance(done, Missing) else parse_block_sizes(done.stdout)
        blocks = {device: sizes[target] for device, target in wanted.items() if target in sizes}
    superblocks = 0
    found: dict[str, Geometry] = {}
    for device, mounts in mounted.items():
        first = mounts[0]
        if first.kind == "xfs":
            found[device] = _read_xfs(host, device, first, blocks.get(device), unknown)
        elif first.kind in _EXT and device in striped:
            superblocks += 1
            found[device] = _ext_superblock(host, device, first, blocks.get(device), superblocks, unknown)
        elif first.kind == "vxfs" and len(found) < MAX_SUPERBLOCKS:
            found[device] = Geometry(read_block_bytes(host, device, first, unknown))
        elif first.kind in _EXT:
            found[device] = _ext_options(first, blocks.get(device))
    return found


def _is_striped(host: Host, device: str) -> bool:
    # A striped array reports its chunk and its full stripe to the block layer; one without passes on, for both, what
    # the device below it says.
    if not device.startswith(("md", "dm-")):
        return False
    whole = re.sub(r"(?<=[0-9])p[0-9]+$", "", device)
    chunk, full = (host.read_int(f"/sys/block/{whole}/queue/{one}_io_size") for one in ("minimum", "optimal"))
    return not isinstance(chunk, Missing) and not isinstance(full, Missing) and full > chunk


def _read_xfs(host: Host, device: str, mount: Mount, block: int | None, unknown: Unknowns) -> Geometry:
    unit, width = (option_number(mount.options, name) for name in ("sunit", "swidth"))
    if unit is not None and width is not None:
        return Geometry(block, unit * XFS_UNIT_BYTES, width * XFS_UNIT_BYTES)
    if "noalign" not in mount.options.split(","):
        return Geometry(block, 0, 0)
    # Mounted with noalign, it shows no geometry even where it has one.
    done = host.run(["xfs_info", mount.target])
    geometry = Geometry() if isinstance(done, Missing) else parse_xfs_info(done.stdout)
    if geometry.unit_bytes is None:
        unknown.note(f"filesystems.{device}.stripe_unit_bytes", "mounted with noalign, which hides it")
    return geometry


def _ext_options(mount: Mount, block: int | None) -> Geometry:
    stripe = option_number(mount.options, "stripe")
    if stripe is None:
        # The drivers of ext2 and ext3 that are not ext4's show no stripe at all.
        return Geometry(block, None, 0 if mount.kind == "ext4" else None)
    return Geometry(block, None, stripe * block if block else None)


def _ext_superblock(
    host: Host, device: str, mount: Mount, block: int | None, count: int, unknown: Unknowns
) -> Geometry:
    geometry = (
        _read_superblock(host, device)
        if count <= MAX_SUPERBLOCKS
        else "too many file systems on arrays to look at each"
    )
    if isinstance(geometry, Geometry):
        return geometry
    unknown.note(f"filesystems.{device}.stripe_unit_bytes", geometry)
    return _ext_options(mount, block)


def _read_superblock(host: Host, device: str) -> Geometry | str:
    """Geometry from the superblock, or why it cannot be had."""
    if host.is_live and not host.is_root:
        return "reading the superblock of ext4 needs root"
    done = host.run(["dumpe2fs", "-h", node_path(device)])
    if isinstance(done, Missing):
        return done.why
    geometry = parse_dumpe2fs(done.stdout)
    return geometry if geometry.block_bytes else f"dumpe2fs returned {done.rc}: {done.stderr.strip()[:200]}"


def parse_udev_kind(text: str) -> str | None:
    """The file system (or swap area) in a udev database entry; None for members of arrays, keys and bare devices."""
    fields = dict(re.findall(r"^E:(ID_FS_TYPE|ID_FS_USAGE)=([^\n]*)$", text, re.MULTILINE))
    kind: str = fields.get("ID_FS_TYPE", "").strip()
    if fields.get("ID_FS_USAGE", "filesystem") != "filesystem" and kind != "swap":
        return None
    return None if kind.endswith("_member") else kind or None
