"""Tuning daemons that set their own values whenever they start: TuneD and saptune.

Of TuneD's values those of sysctl, sysfs and vm are read here. With ``reapply_sysctl`` it reads the files of
/run/sysctl.d and /etc/sysctl.d again after its own values, so that these win.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.network.link_claim import active_tuned, applied_notes
from advisor.facts.writers.commands import written_file
from advisor.facts.writers.programs import Place
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

# The file format of saptune's notes (saptune-note(5)): sections with tags, ``KEY OPERATOR VALUE`` lines, comments.

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


NOTE_PLACES = ("/var/lib/saptune/working/notes", "/usr/share/saptune/notes", "/etc/saptune/extra")
OVERRIDES = "/etc/saptune/override"
_OPERATOR = lazy_regex(r"[<>=|&].*")


def read_tuned(host: Host) -> Iterator[Place]:
    """Yield what TuneD sets with the last word: the files that it reads again or, where it reads none, its profile."""
    main, names = _settings_of_tuned(host)
    if names:
        from advisor.facts.tuned.files import read_reapplied

        for key, (value, path, line) in read_reapplied(host, main).items():
            yield Place(f"sysctl:{key}", value, path, line, f"TuneD (profile {names})")
    yield from _profile_values(host, gives_way=False)


def read_tuned_before_files(host: Host) -> Iterator[Place]:
    """Yield what TuneD's profile sets and gives way to the administrator's files."""
    yield from _profile_values(host, gives_way=True)


def _settings_of_tuned(host: Host) -> tuple[dict[str, str], str | None]:
    names = active_tuned(host)
    if names is None:
        return {}, None
    from advisor.facts.tuned.files import main_settings

    return dict(main_settings(host)), names


def _profile_values(host: Host, *, gives_way: bool) -> Iterator[Place]:
    main, names = _settings_of_tuned(host)
    if names is None:
        return
    # Loaded only where TuneD runs.
    from advisor.facts.tuned.files import dotted_key, is_on
    from advisor.facts.tuned.profile import load_tuned

    is_reapplied = is_on(main, "reapply_sysctl")
    try:
        profile = load_tuned(names, host, host)
    except AdvisorError:
        # A plan says so: what it sets cannot be known.
        return
    for unit in profile.units.values():
        for key, option in unit.options.items() if unit.enabled else ():
            value = profile.variables.expand(option.value or "")
            said = None if value.unresolved or _OPERATOR.fullmatch(value.text) else value.text.strip("\"'")
            pairs: Iterator[tuple[str, str]] = iter(())
            if unit.type == "sysctl" and gives_way is is_reapplied:
                pairs = iter([(f"sysctl:{dotted_key(key)}", said or "")])
            elif unit.type == "sysfs" and not gives_way:
                pairs = written_file(key, said or "")
            elif unit.type == "vm" and key in ("transparent_hugepages", "transparent_hugepage") and not gives_way:
                pairs = iter([("thp:enabled", said or "")])
            for tunable, _ in pairs:
                yield Place(tunable, said, option.path, option.line, f"TuneD (profile {names})")


def read_saptune(host: Host) -> Iterator[Place]:
    """Yield the kernel parameters of the notes that saptune has applied; of those with conditions no value."""
    for note in applied_notes(host):
        found: dict[str, Place] = {}
        for path in (_note_file(host, note), f"{OVERRIDES}/{note}"):
            text = host.read(path) if path else Missing("absent", "no such note")
            for one in () if isinstance(text, Missing) else parse_saptune_note(text).entries:
                if one.section == "sysctl" and one.is_setting and re.fullmatch(r"[\w./-]+", one.key):
                    value = one.value if one.operator == "=" and not one.tags else None
                    found[one.key] = Place(f"sysctl:{one.key}", value, path, one.line, f"saptune ({note})")
                    if not one.value.strip():
                        # An override without a value leaves the key alone.
                        del found[one.key]
        yield from found.values()


def _note_file(host: Host, note: str) -> str | None:
    paths = [path for place in NOTE_PLACES for path in (f"{place}/{note}", f"{place}/{note}.conf")]
    return next((path for path in paths if host.exists(path)), None)
