"""An md array, apart from where it was read: its health, its geometry, its record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from advisor.facts.block.block import PARITY_DISKS, Array, losses_left, natural
from advisor.host.patterns import lazy_regex

# The texts about md: ``/proc/mdstat`` (kernel: md_seq_show and the personalities' status) and ``mdadm --detail``.

KIB = 1024
_ARRAY = lazy_regex(r"(\S+) : (active|inactive|broken)\b(.*)", re.ASCII)
_MEMBER = lazy_regex(r"(.+?)\[(\d{1,9})\]((?:\([A-Z]\))*)", re.ASCII)
_BLOCKS = lazy_regex(r"\s*(\d{1,18}) blocks\b(.*)", re.ASCII)
_ACTION = lazy_regex(r"\b(resync|recovery|reshape|check|repair)\s*=\s*(?:(\d{1,3}(?:\.\d+)?)%|([A-Z]+))", re.ASCII)
# mdadm(8), --layout; the algorithm numbers are the kernel's (raid5.h). RAID 6 has further ones that it shares with DDF.
PARITY_LAYOUTS = {
    0: "left-asymmetric",
    1: "right-asymmetric",
    2: "left-symmetric",
    3: "right-symmetric",
    4: "parity-first",
    5: "parity-last",
}
_DETAIL_HEAD = lazy_regex(r"^(/dev/\S+):[ \t]*$", re.MULTILINE)
_DETAIL_FIELD = lazy_regex(r"^[ \t]*([A-Z][A-Za-z -]*?) : (.*?)[ \t]*$", re.MULTILINE)
_SLOT = lazy_regex(r"\d{1,9}|-", re.ASCII)
_UNITS = {"": 1, "K": KIB, "M": KIB**2, "G": KIB**3, "T": KIB**4}


class MdMember(msgspec.Struct, frozen=True):
    """A device of an array. ``number`` is the descriptor number in brackets, which is not the slot."""

    name: str
    number: int
    flags: str
    """Letters: F faulty, S spare, J journal, W write-mostly, R replacement."""


class MdstatArray(msgspec.Struct, frozen=True):
    """One array in ``/proc/mdstat``. What a personality does not print is None.

    ``state``: active, inactive or broken; ``read_only``: read-only, auto-read-only or None. ``disks`` and ``up`` are
    the two numbers of ``[6/5]``, ``pattern`` is the text of ``[UUUUU_]``. ``metadata`` is 0.90 where none is printed.
    ``action`` is resync, recovery, reshape, check or repair, ``waiting`` DELAYED, PENDING or REMOTE.
    """

    name: str
    state: str
    read_only: str | None
    level: str | None
    members: tuple[MdMember, ...]
    size_bytes: int | None = None
    metadata: str | None = None
    chunk_bytes: int | None = None
    algorithm: int | None = None
    layout: str | None = None
    disks: int | None = None
    up: int | None = None
    pattern: str | None = None
    action: str | None = None
    waiting: str | None = None
    progress_percent: float | None = None
    finish_minutes: float | None = None
    speed_kib: int | None = None
    bitmap: str | None = None

    def having(self, flag: str) -> tuple[str, ...]:
        """Names of the members with a flag."""
        return tuple(member.name for member in self.members if flag in member.flags)

    @property
    def is_container(self) -> bool:
        """Whether it only holds the metadata that other arrays share (IMSM, DDF): these are never active themselves."""
        return self.state == "inactive" and bool(re.match(r"external:[^/]", self.metadata or ""))


def parse_mdstat(text: str) -> tuple[MdstatArray, ...]:
    """Arrays in the kernel's order; a text that is cut gives what it still says."""
    return tuple(_mdstat_array(head, body) for head, body in _split_sections(text.replace("\0", " ")))


def _split_sections(text: str) -> Iterator[tuple[re.Match[str], str]]:
    lines = text.splitlines()
    heads = [(index, found) for index, line in enumerate(lines) if (found := _ARRAY.match(line))]
    for position, (index, found) in enumerate(heads):
        end = heads[position + 1][0] if position + 1 < len(heads) else len(lines)
        body = [line for line in lines[index + 1 : end] if not line.startswith(("unused devices", "Personalities"))]
        yield found, "\n".join(body)


def _mdstat_array(head: re.Match[str], body: str) -> MdstatArray:
    name, state, rest = head.groups()
    mode = re.match(r"\s*\(((?:auto-)?read-only)\)", rest)
    words = (rest[mode.end() :] if mode else rest).split()
    level = words[0] if words and "[" not in words[0] else None
    found = [one for word in words if (one := _MEMBER.fullmatch(word))]
    members = tuple(MdMember(one[1], int(one[2]), re.sub(r"[()]", "", one[3])) for one in found)
    array = MdstatArray(name, state, mode[1] if mode else None, level, members)
    blocks = next((one for line in body.splitlines() if (one := _BLOCKS.match(line))), None)
    fields: dict[str, object] = {**(_parse_geometry(blocks) if blocks else {}), **_parse_progress(body)}
    return msgspec.structs.replace(array, **fields)


def _parse_geometry(blocks: re.Match[str]) -> dict[str, object]:
    text = blocks[2]
    metadata = re.match(r" super (\S+)", text)
    found = re.search(r"\b(\d{1,12})k chunks?\b", text, re.IGNORECASE | re.ASCII)
    fields: dict[str, object] = {
        "size_bytes": int(blocks[1]) * KIB,
        "metadata": metadata[1] if metadata else "0.90",
        "chunk_bytes": int(found[1]) * KIB if found else None,
    }
    algorithm = re.search(r"\balgorithm ([0-9]{1,9})\b", text)
    if algorithm:
        number = int(algorithm[1])
        fields["algorithm"] = number
        fields["layout"] = PARITY_LAYOUTS.get(number)
    copies = re.findall(r"\b[0-9]{1,9} (?:near|far|offset)-copies\b", text)
    if copies:
        fields["layout"] = ", ".join(copies)
    counts = re.search(r"\[([0-9]{1,9})/([0-9]{1,9})\](?: \[([U_]+)\])?", text)
    if counts:
        fields |= {"disks": int(counts[1]), "up": int(counts[2]), "pattern": counts[3]}
    return fields


def _parse_progress(body: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    action = _ACTION.search(body)
    if action:
        fields |= {"action": action[1], "waiting": action[3]}
        fields["progress_percent"] = float(action[2]) if action[2] else None
    finish = re.search(r"\bfinish=(\d{1,15}(?:\.\d{1,9})?)min", body, re.ASCII)
    speed = re.search(r"\bspeed=(\d{1,15})K/sec", body, re.ASCII)
    bitmap = re.search(r"^[ \t]*bitmap: (.*\S)", body, re.MULTILINE)
    if finish:
        fields["finish_minutes"] = float(finish[1])
    if speed:
        fields["speed_kib"] = int(speed[1])
    if bitmap:
        fields["bitmap"] = bitmap[1]
    return fields


class DetailDevice(msgspec.Struct, frozen=True):
    """A row of the device table: ``slot`` is the RaidDevice number, ``state`` the words, ``path`` None if removed."""

    path: str | None
    slot: int | None
    state: str


class MdadmDetail(msgspec.Struct, frozen=True):
    """What ``mdadm --detail`` says about one array; a field that it does not print is None (mdadm(8))."""

    device: str
    level: str | None
    size_bytes: int | None
    raid_devices: int | None
    total_devices: int | None
    state: str | None
    active: int | None
    working: int | None
    failed: int | None
    spare: int | None
    layout: str | None
    chunk_bytes: int | None
    consistency: str | None
    metadata: str | None
    container: str | None
    progress_percent: float | None
    uuid: str | None
    devices: tuple[DetailDevice, ...]


def parse_mdadm_detail(text: str) -> tuple[MdadmDetail, ...]:
    """Arrays in a text that may name several and may hold messages between them."""
    text = text.replace("\0", " ")
    parts = _DETAIL_HEAD.split(text)  # what comes before, then name and body in turn
    bodies = zip(parts[1::2], parts[2::2], strict=True)
    # A magic number stands in what --examine says about a member, which is no array.
    return tuple(
        _parse_detail(device, body) for device, body in bodies if not re.search(r"^[ \t]*Magic : ", body, re.MULTILINE)
    )


def _parse_detail(device: str, text: str) -> MdadmDetail:
    fields: dict[str, str] = {}
    for name, value in _DETAIL_FIELD.findall(text):
        fields.setdefault(name.strip(), value)
    size, percent = _parse_number(fields, "Array Size"), re.match(r"([0-9]{1,3})%", _rebuild_status(fields))
    return MdadmDetail(
        device=device,
        level=fields.get("Raid Level"),
        size_bytes=None if size is None else size * KIB,
        raid_devices=_parse_number(fields, "Raid Devices"),
        total_devices=_parse_number(fields, "Total Devices"),
        state=fields.get("State"),
        active=_parse_number(fields, "Active Devices"),
        working=_parse_number(fields, "Working Devices"),
        failed=_parse_number(fields, "Failed Devices"),
        spare=_parse_number(fields, "Spare Devices"),
        layout=fields.get("Layout"),
        chunk_bytes=_parse_chunk(fields.get("Chunk Size", "")),
        consistency=fields.get("Consistency Policy"),
        metadata=fields.get("Version"),
        container=fields.get("Container"),
        progress_percent=float(percent[1]) if percent else None,
        uuid=fields.get("UUID", "").partition(" ")[0] or None,
        devices=tuple(row for line in text.splitlines() if (row := _parse_row(line.split()))),
    )


def _rebuild_status(fields: Mapping[str, str]) -> str:
    names = ("Rebuild Status", "Resync Status", "Reshape Status", "Check Status")
    return next((fields[name] for name in names if name in fields), "")


def _parse_number(fields: Mapping[str, str], name: str) -> int | None:
    found = re.match(r"\d{1,18}", fields.get(name, ""), re.ASCII)
    return int(found[0]) if found else None


def _parse_chunk(text: str) -> int | None:
    found = re.fullmatch(r"(\d{1,15})([KMGT]?)", text, re.ASCII)
    return int(found[1]) * _UNITS[found[2]] if found else None


def _parse_row(words: list[str]) -> DetailDevice | None:
    """A row of ``Number Major Minor RaidDevice State``; the last word is the device node, unless it was removed."""
    if len(words) < 4 or not all(_SLOT.fullmatch(word) for word in words[:4]):
        return None
    path = words[-1] if len(words) > 4 and words[-1].startswith("/dev/") else None
    state = words[4:-1] if path else words[4:]
    return DetailDevice(path, None if words[3] == "-" else int(words[3]), " ".join(state))


DOING = {
    "recover": "recovering",
    "recovery": "recovering",
    "resync": "resyncing",
    "reshape": "reshaping",
    "check": "checking",
    "repair": "repairing",
}


class Device(msgspec.Struct, frozen=True):
    """A device of an array: its slot, None where it has none, and the kernel's words for its state."""

    name: str
    slot: int | None
    words: frozenset[str]


class Md(msgspec.Struct, frozen=True):
    """What is known of an array, from whichever source. During a reshape ``disks`` is what it will have."""

    name: str
    level: str | None
    at_rest: str | None
    """``clean``, ``active``, ``inactive`` …: the state apart from health and from work in progress."""
    disks: int | None = None
    missing: int | None = None
    contradicts: str | None = None
    """What its source says that cannot all be true of ``missing``."""
    chunk_bytes: int | None = None
    near_copies: int | None = None
    far_copies: int | None = None
    size_bytes: int | None = None
    action: str | None = None
    progress_percent: float | None = None
    devices: tuple[Device, ...] = ()
    detail: Mapping[str, str] = {}

    def having(self, word: str) -> tuple[str, ...]:
        return tuple(sorted((one.name for one in self.devices if word in one.words), key=natural))


def state_of(md: Md) -> str | None:
    """One word for the health and work of an array; see `Array`."""
    if md.at_rest in ("inactive", "failed", None):
        return md.at_rest
    left = losses(md)
    if md.missing and left is not None and left < 0:
        return "failed"
    doing = DOING.get(md.action or "")
    if md.missing or md.contradicts:
        return "recovering" if doing == "recovering" else "degraded"
    return doing or md.at_rest


def losses(md: Md) -> int | None:
    """How many more members it can lose, as `losses_left` has it."""
    serving = {one.slot for one in md.devices if one.slot is not None and "in_sync" in one.words}
    serving = serving or {slot for slot, letter in enumerate(md.detail.get("pattern", "")) if letter == "U"}
    return losses_left(
        md.level, md.disks, md.missing, serving=serving, near_copies=md.near_copies, far_copies=md.far_copies
    )


def data_disks(md: Md) -> int | None:
    """Members that carry data in one stripe; RAID 10 as the kernel advertises it (raid10.c, raid10_nr_stripes)."""
    if not md.disks or not md.chunk_bytes or md.level is None:
        return None
    if md.level == "raid0":
        return md.disks
    if md.level in PARITY_DISKS:
        return max(md.disks - PARITY_DISKS[md.level], 1)
    if md.level == "raid10" and md.near_copies:
        return md.disks // md.near_copies if md.disks % md.near_copies == 0 else md.disks
    return None


def to_array(
    md: Md,
    *,
    disks: tuple[str, ...],
    numa_nodes: tuple[int, ...],
    mountpoints: tuple[str, ...],
    queue: Mapping[str, str],
) -> Array:
    """The array's record; where it lies and what is mounted from it is for the caller to know."""
    marks = ("write_mostly", "replacement", "want_replacement", "blocked")
    detail = {**md.detail, **{word: " ".join(names) for word in marks if (names := md.having(word))}}
    if md.disks is not None:
        detail.setdefault("raid_disks", str(md.disks))
    return Array(
        name=md.name,
        manager="md",
        device=md.name,
        level=md.level,
        chunk_bytes=md.chunk_bytes,
        data_disks=data_disks(md),
        state=state_of(md),
        missing=md.missing,
        members=tuple(sorted((one.name for one in md.devices), key=natural)),
        spares=md.having("spare"),
        failed=md.having("faulty"),
        journal=md.having("journal"),
        numa_nodes=numa_nodes,
        size_bytes=md.size_bytes,
        progress_percent=md.progress_percent if md.action else None,
        mountpoints=mountpoints,
        detail=detail,
        disks=disks,
        queue=queue,
        expected=md.disks,
        survives=losses(md),
    )
