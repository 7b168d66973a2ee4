"""What ``lvs`` and ``pvs`` print: JSON (also broken by warnings, or cut), ``--nameprefixes`` lines, and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from advisor.host.patterns import lazy_regex

UNITS = {"": 1, "b": 1, "s": 512, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5, "e": 1024**6}
# Written so that its answer is exact: bytes, no suffix. Used for captured hosts only.
LVS = (
    "lvs",
    "--all",
    "--reportformat=json",
    "--units=b",
    "--nosuffix",
    "--options=lv_name,vg_name,lv_attr,lv_size,segtype,stripes,data_stripes,stripe_size,chunk_size,devices",
)
PVS = ("pvs", "--reportformat=json", "--options=pv_name,vg_name")
_HIDDEN = lazy_regex(
    r"_(?:rimage|rmeta|mimage)_[0-9]+$|_(?:mlog|tdata|tmeta|cdata|cmeta|corig|wcorig|cvol|vdata|pmspare|imeta|iorig)$"
)
_COLUMNS = {
    **{"LV": "lv_name", "VG": "vg_name", "Attr": "lv_attr", "LSize": "lv_size", "Type": "segtype", "#Str": "stripes"},
    **{"#DStr": "data_stripes", "Stripe": "stripe_size", "Chunk": "chunk_size", "Devices": "devices"},
}
_HEADING = lazy_regex(r"LV Tags|LV UUID|(?:Seg|PE) Ranges|\S+")
_NUMERIC = lazy_regex(r"L?S?Size|(?:Data|Meta|Snap|Copy)%|Cpy%Sync|K?Rahead|#D?Str|Stripe|Chunk|Start|K?Maj|K?Min|#Seg")


class LogicalVolume(msgspec.Struct, frozen=True):
    """One segment of a logical volume. ``size_bytes`` is None where lvs rounded it.

    ``devices`` are kernel names of physical volumes, or names of hidden volumes. ``is_hidden`` is true of the volumes
    that LVM keeps for itself.
    """

    group: str | None
    name: str
    attributes: str | None
    level: str | None
    size_bytes: int | None
    stripes: int | None
    stripe_bytes: int | None
    chunk_bytes: int | None
    devices: tuple[str, ...]
    is_hidden: bool


def parse_lvs(text: str) -> tuple[LogicalVolume, ...]:
    """Segments of logical volumes in the order of the text; nothing for a text that holds none."""
    text = text.replace("\0", " ")
    rows = _json_rows(text, "lv_name") or _prefixed_rows(text, "lv_name") or _column_rows(text)
    return tuple(_parse_volume(row) for row in rows if row.get("lv_name"))


def parse_pvs(text: str) -> Mapping[str, tuple[str, ...]]:
    """Kernel names of the physical volumes of each volume group, by ``pvs`` as JSON, with prefixes or in columns; one
    that is missing has an empty name."""
    lines = re.findall(r"^ *(/\S+|\[?unknown(?: device)?\]?) +(\S+) +lvm[12] ", text, re.MULTILINE)
    rows = _json_rows(text, "pv_name") or _prefixed_rows(text, "pv_name")
    groups: dict[str, tuple[str, ...]] = {}
    for device, group in [(row["pv_name"], row.get("vg_name", "")) for row in rows] or lines:
        name = device.removeprefix("/dev/") if device.startswith("/") else ""
        groups[group] = (*groups.get(group, ()), name)
    groups.pop("", None)
    return groups


def is_hidden(name: str) -> bool:
    """Whether LVM keeps this volume for itself (the images of a RAID volume, the parts of a pool)."""
    return bool(_HIDDEN.search(name))


def parse_size(text: str, *, exact: bool = False) -> int | None:
    """Bytes of a size such as ``<6.59g``; None for what is no size or, if it must be exact, for a rounded one."""
    found = re.fullmatch(r"<?(\d{1,15})(\.\d{1,6})?([bskmgtpe]?)", text.strip().lower(), re.ASCII)
    if not found or (exact and (found[2] or "<" in text)):
        return None
    return round(float(found[1] + (found[2] or "")) * UNITS[found[3]]) if found[2] else int(found[1]) * UNITS[found[3]]


def _json_rows(text: str, key: str) -> list[dict[str, str]]:
    """Objects that have this key. A warning in the middle breaks the document, not its objects: each is one line."""
    rows: list[dict[str, str]] = []
    for part in re.findall(r"\{[^{}]*\}", text):
        try:
            row = msgspec.json.decode(part)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            row = dict(re.findall(r'"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)"', part))
        if isinstance(row, dict) and isinstance(row.get(key), str):
            rows.append({str(key): value for key, value in row.items() if isinstance(value, str)})
    return rows


def _prefixed_rows(text: str, key: str) -> list[dict[str, str]]:
    rows = (
        {name.lower(): value for name, value in re.findall(r"LVM2_(\w+)='([^']*)'", line)} for line in text.splitlines()
    )
    return [row for row in rows if key in row]


def _column_rows(text: str) -> list[dict[str, str]]:
    """Rows of the table, of which each cell lies where its heading does: columns of words begin there, those of numbers
    end there (lvmreport(7), report.c)."""
    rows: list[dict[str, str]] = []
    columns: list[tuple[str, int, int]] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["LV"] and "Attr" in words:
            columns = [(found[0], found.start(), found.end()) for found in _HEADING.finditer(line)]
        elif columns and len(words) >= 4:
            cells = _cut_cells(line, columns)
            # Never empty, and devices look like nothing else: right in a text without its blanks, too.
            cells |= {name: word for (name, _, _), word in zip(columns[:4], words, strict=False)}
            if columns[-1][0] == "Devices" and re.fullmatch(r"\S+\([0-9]+\)", words[-1]):
                cells["Devices"] = words[-1]
            rows.append({_COLUMNS[name]: cell for name, cell in cells.items() if name in _COLUMNS and cell})
    return rows


def _cut_cells(line: str, columns: list[tuple[str, int, int]]) -> dict[str, str]:
    """The cells of a row by their headings; none of a row that is not in line with them."""
    cells: dict[str, str] = {}
    at = 0
    words: list[str] = []
    for number, (name, _start, end) in enumerate(columns):
        following = columns[number + 1] if number + 1 < len(columns) else None
        if _NUMERIC.fullmatch(name):
            if line[end - 1 : end + 1].strip() and len(line[end - 1 : end + 1].split()[0]) == 2:
                return {}  # It goes through a word: the blanks are not those that lvs printed.
            # Up to its end: what is left of the number there belongs to the columns of words before it.
            rest, cell = line[at:end], ""
            if rest and not rest[-1].isspace():
                cell = rest.split()[-1]
                rest = rest[: -len(cell)]
            cells[name] = cell
            if words:
                cells[words.pop()] = rest.strip()
            at = end
        elif following is None or not _NUMERIC.fullmatch(following[0]):
            until = following[1] if following else len(line)
            cells[name] = line[at:until].strip()
            at = until
        else:
            words.append(name)
    return cells


def _parse_volume(row: Mapping[str, str]) -> LogicalVolume:
    shown = row["lv_name"].strip()
    name = shown.strip("[]")
    stripes = re.fullmatch(r"\d{1,6}", row.get("data_stripes") or row.get("stripes") or "", re.ASCII)
    # The segment type; for thin volumes and pools the first attribute says it too (lvs(8), Lv attributes).
    marked = {"t": "thin-pool", "V": "thin"}.get(row.get("lv_attr", "")[:1])
    if row.get("lv_attr", "")[:1] == "-" and "segtype" not in row and stripes:
        marked = "striped" if int(stripes[0]) > 1 else "linear"
    names = (re.sub(r"\([0-9]+\)$", "", part.strip()) for part in row.get("devices", "").split(","))
    return LogicalVolume(
        group=row.get("vg_name", "").strip() or row.get("lv_full_name", "").rpartition("/")[0] or None,
        name=name,
        attributes=row.get("lv_attr") or None,
        level=marked or row.get("segtype") or row.get("lv_layout", "").partition(",")[0] or None,
        size_bytes=parse_size(row.get("lv_size", ""), exact=True),
        stripes=int(stripes[0]) if stripes else None,
        stripe_bytes=parse_size(row.get("stripe_size", "")) or None,
        chunk_bytes=parse_size(row.get("chunk_size", "")) or None,
        devices=tuple(dict.fromkeys(name.removeprefix("/dev/") for name in names if name)),
        is_hidden=shown.startswith("[") or is_hidden(name),
    )


# What ``multipath -ll`` prints, at any verbosity, in the form of today and in those of RHEL 4 and 5 (multipath(8)).

_MAP = lazy_regex(
    r"(?:\w+: )?(?:(?P<alias>\S+) \((?P<wwid>[^()]+)\)|(?P<only>\S(?:[^()]*\S)?(?= dm-\d)|\w+?(?=dm-\d)|\S+)) ?"
    r"(?:(?P<dm>dm-\d+) ?(?P<product>[^=]*))?",
    re.ASCII,
)
_DM = lazy_regex(r"dm-\d+( |$)", re.ASCII)
_PROPERTIES = lazy_regex(r"\s*\[?size=")
# A blank lies within the checker's words "i/o pending" and "i/o timeout".
_STATE = lazy_regex(r"\[([^\]]*)\]|(i/o \w+|[^\s\[\]]+)")
_SOUND = frozenset({"", "ready", "ghost", "undef", "running", "unknown", "up"})
_PATH = lazy_regex(
    r"[|\s]*(?:[`|]-|\\_) (?P<hctl>[\d#]+(?::[\d#]+){3}) +(?P<device>\S+) +(?P<number>[\d#]+:[\d#]+) +(?P<states>.*)",
    re.ASCII,
)
_GROUP = lazy_regex(
    r"[|\s]*(?:[`|]-\+-|\\_) (?:policy='(?P<policy>[^']*)'|(?P<old>[a-z-]+ \d+) )(?P<rest>.*)", re.ASCII
)


class MultipathPath(msgspec.Struct, frozen=True):
    """One path: state by device-mapper (active, failed), by the checker (ready, faulty, ghost …), of the device.

    An empty text stands for a state that is not printed.
    """

    device: str
    hctl: str
    number: str
    dm_state: str
    check_state: str
    device_state: str

    @property
    def is_usable(self) -> bool:
        """Whether it leads to a device, device-mapper would send I/O over it, and neither checker nor kernel doubts it.

        A word that is not known is taken for the worse. A device that is gone is printed as ``-``.
        """
        return (
            self.device not in {"-", "#"}
            and self.dm_state in {"", "active"}
            and {self.check_state, self.device_state} <= _SOUND
        )


class MultipathGroup(msgspec.Struct, frozen=True):
    """A priority group; ``state`` is active, enabled or disabled."""

    policy: str
    priority: int | None
    state: str
    paths: tuple[MultipathPath, ...]


class MultipathMap(msgspec.Struct, frozen=True):
    """One map. ``name`` is the alias, or the WWID where there is none; ``size`` as printed (``54T``)."""

    name: str
    wwid: str
    device: str
    vendor: str | None
    product: str | None
    size: str | None
    features: str | None
    hwhandler: str | None
    access: str | None
    groups: tuple[MultipathGroup, ...]

    @property
    def paths(self) -> tuple[MultipathPath, ...]:
        return tuple(path for group in self.groups for path in group.paths)


def parse_multipath(text: str) -> tuple[MultipathMap, ...]:
    """Maps in the order of the text; debug lines and the list of paths before them are passed over."""
    return tuple(_parse_map(head, body) for head, body in _split_sections(text.replace("\0", " ")))


def count_unread(text: str) -> int:
    """How many maps the text has, by their sizes, whose first line is of no form that is known."""
    heads = sum(1 for _ in _split_sections(text))
    return max(sum(1 for line in text.splitlines() if _PROPERTIES.match(line)) - heads, 0)


def _split_sections(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """The first line of each map and what follows it; RHEL 4 names no dm-N there, but the size follows."""
    head: re.Match[str] | None = None
    body: list[str] = []
    lines = text.splitlines()
    for line, following in zip(lines, (*lines[1:], ""), strict=False):
        is_head = len(line) < 1000 and (_DM.search(line) or _PROPERTIES.match(following))
        found = _MAP.fullmatch(line.rstrip()) if is_head else None
        if found is None:
            body.append(line)
            continue
        if head is not None:
            yield head, body
        head, body = found, []
    if head is not None:
        yield head, body


def _parse_map(head: re.Match[str], body: list[str]) -> MultipathMap:
    properties = next((line for line in body if _PROPERTIES.match(line)), "")
    vendor, _, product = (part.strip() for part in (head["product"] or "").partition(","))
    found = re.search(r"\bwp=(\w+)|\[(r[owx])\]", properties)
    return MultipathMap(
        name=(head["alias"] or head["only"]).strip(),
        wwid=(head["wwid"] or head["only"]).strip(),
        device=head["dm"] or (head["alias"] or head["only"]).strip(),
        vendor=vendor or None,
        product=product or None,
        size=_parse_property(properties, "size"),
        features=_parse_property(properties, "features"),
        hwhandler=_parse_property(properties, "hwhandler"),
        access=(found[1] or found[2]) if found else None,
        groups=_parse_groups(body),
    )


def _parse_property(line: str, name: str) -> str | None:
    """The value in ``name='value'``, ``name=value`` or ``[name=value]``."""
    found = re.search(rf"\b{name}=(?:'([^']*)'|([^\]\s][^\]]*)\]|(\S+))", line)
    return next((value for value in found.groups() if value is not None), None) if found else None


def _parse_groups(body: list[str]) -> tuple[MultipathGroup, ...]:
    groups: list[tuple[re.Match[str], list[MultipathPath]]] = []
    for line in body:
        path = _PATH.fullmatch(line.rstrip())
        group = None if path else _GROUP.fullmatch(line.rstrip())
        if group:
            groups.append((group, []))
        elif path and groups:
            words = _STATE.findall(path["states"])
            dm_state, check_state, device_state, *_ = [*(old or new for old, new in words), "", "", ""]
            groups[-1][1].append(
                MultipathPath(path["device"], path["hctl"], path["number"], dm_state, check_state, device_state)
            )
    return tuple(_make_group(found, paths) for found, paths in groups)


def _make_group(found: re.Match[str], paths: list[MultipathPath]) -> MultipathGroup:
    rest = found["rest"]
    priority = re.search(r"prio=(-?[0-9]{1,9})", rest)
    state = re.search(r"status=(\w+)|\[(\w+)\]$", rest)
    return MultipathGroup(
        policy=found["policy"] or found["old"] or "",
        priority=int(priority[1]) if priority else None,
        state=(state[1] or state[2]) if state else "",
        paths=tuple(paths),
    )
