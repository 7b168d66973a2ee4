"""The file format of saptune's notes (saptune-note(5)): sections with tags, ``KEY OPERATOR VALUE`` lines, comments."""

from __future__ import annotations

import re

import msgspec

from advisor.host.patterns import lazy_regex

_SETTING = lazy_regex(r"([\w.+-]+)\s*([<=>]{1,2})\s*(.*)")
REMINDER = "reminder"
_VERSION_KEYS = ("VERSION", "DATE", "DESCRIPTION", "REFERENCES")
SECTIONS = frozenset(
    {
        *("version", "block", "cpu", "filesystem", "grub", "limits", "login", "mem", "pagecache"),
        *("reminder", "rpm", "service", "sysctl", "sys", "vm"),
    }
)


class NoteEntry(msgspec.Struct, frozen=True):
    """One line of a section; ``tags`` are those of the section. A line that is no setting is all ``key``; a
    paragraph of the section reminder is the ``value`` of a key of that name. ``fault`` says why a line cannot be read;
    without one, a line without a section stands before the first."""

    section: str
    tags: tuple[tuple[str, str], ...]
    key: str
    operator: str
    value: str
    line: int
    comment: str = ""
    fault: str = ""

    @property
    def is_setting(self) -> bool:
        return bool(self.operator)


class SaptuneNote(msgspec.Struct, frozen=True):
    """A note. ``version``, ``date``, ``name`` and ``references`` are those of its section version, in either syntax."""

    entries: tuple[NoteEntry, ...]
    version: str = ""
    date: str = ""
    name: str = ""
    references: tuple[str, ...] = ()


def parse_saptune_note(text: str) -> SaptuneNote:
    """The note that a file holds. Lines that belong to no section are among its entries."""
    entries: list[NoteEntry] = []
    reminder: list[str] = []
    said: dict[str, str] = {}
    section = ""
    tags: tuple[tuple[str, str], ...] = ()
    comment: list[str] = []
    # Why the lines of a section cannot be read.
    lost = ""
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        line = raw.strip()
        # What a line of the section reminder says; nothing for the end of a paragraph, and for a line that is none.
        if section == REMINDER and (words := (line.lstrip("# \t") if line.startswith("#") else "")):
            reminder.append(words)
            continue
        if reminder:
            entries.append(NoteEntry(REMINDER, tags, REMINDER, "", " ".join(reminder), number - len(reminder)))
            reminder = []
        if line.startswith("#") or not line:
            if section == "version" and (header := _parse_header(line)):
                said = header
            comment = [*comment, line.lstrip("# \t")] if line and section != "version" else []
            continue
        if line.startswith("["):
            section, tags = _parse_section(line)
            lost = "" if section else f"the header of its section, line {number}, cannot be read"
            fault = _header_fault(line, section)
            if fault:
                entries.append(NoteEntry("", (), line, "", "", number, fault=fault))
        else:
            entry = _parse_entry(section, tags, _without_comment(line), number, " ".join(filter(None, comment)), lost)
            if section == "version" and entry.key in _VERSION_KEYS:
                said[entry.key] = entry.value
            else:
                entries.append(entry)
        comment = []
    if reminder:
        entries.append(NoteEntry(REMINDER, tags, REMINDER, "", " ".join(reminder), number - len(reminder) + 1))
    references = tuple(said.get("REFERENCES", "").split())
    return SaptuneNote(
        tuple(entries), said.get("VERSION", ""), said.get("DATE", ""), said.get("DESCRIPTION", ""), references
    )


def _parse_header(line: str) -> dict[str, str]:
    """``# SAP-NOTE=1 CATEGORY=HANA VERSION=2 DATE=01.01.2020 NAME="…"``, the older syntax; empty for another line."""
    note, category, version, rest, *_ = (*line.lstrip("#").split(maxsplit=3), "", "", "", "")
    dated, mark, named = rest.partition('NAME="')
    name, end, _ = named.partition('"')
    begins = category.startswith("CATEGORY=") and version.startswith("VERSION=") and dated.startswith("DATE=")
    if not (begins and mark and end and note.partition("NOTE=")[2]):
        return {}
    date = dated.removeprefix("DATE=").strip()
    return {"VERSION": version.removeprefix("VERSION="), "DATE": date, "DESCRIPTION": name}


def _parse_section(line: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """``[block:blkpat=sd[ab]]``: the last bracket ends it."""
    name, *tags = line.removeprefix("[").rpartition("]")[0].split(":")
    # saptune passes over an empty tag.
    pairs = (tag.partition("=") for tag in tags if tag.strip())
    return name.strip(), tuple((key.strip(), value.strip()) for key, _, value in pairs)


def _header_fault(line: str, section: str) -> str:
    """What is wrong with a line that begins a section; empty where nothing is."""
    _, bracket, rest = line.rpartition("]")
    if not section:
        what = "name" if bracket else "closing bracket"
        return f"a header without a {what}: neither it nor what is below it can be read"
    if rest.strip() and not rest.lstrip().startswith("#"):
        return "text behind the header of a section cannot be read: write it on a line of its own"
    return ""


def _without_comment(line: str) -> str:
    """Without what follows a blank and a single ``#``; a doubled one stands for itself."""
    found = re.search(r"\s#(?!#)", line)
    return (line[: found.start()] if found else line).replace(" ##", " #").rstrip()


def _parse_entry(
    section: str, tags: tuple[tuple[str, str], ...], line: str, number: int, comment: str, fault: str
) -> NoteEntry:
    found = None if section in ("rpm", "reminder") else _SETTING.fullmatch(line)
    if found is None:
        return NoteEntry(section, tags, line, "", "", number, comment, fault)
    return NoteEntry(section, tags, found[1], found[2], found[3].strip("\"'").strip(), number, comment, fault)
