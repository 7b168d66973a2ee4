"""InterSystems' configuration parameter file (``iris.cpf``): what storage and memory depend on, and nothing else.

Sections in brackets, ``key=value`` lines, comments after ``;`` or ``#``. Keys are compared without regard to case, as
guides spell them both ways; of a key that is given twice the last line counts. Sources: InterSystems Configuration
Parameter File Reference ([config], [Journal], [Databases]; globals, routines and jrnbufs in MB, gmheap in KB, locksiz
in bytes). A cpf may hold password hashes ([Startup] PasswordHash): see `only_known`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

MAX_TEXT = 1 << 20
"""Characters that are looked at: the directories of all databases may take 256 KB."""
MAX_LINE = 1024
MAX_DATABASES = 256

_NUMBERS = ("gmheap", "locksiz", "jrnbufs", "memlock", "asyncwij", "wduseasyncio")
_KNOWN: Mapping[str, frozenset[str] | None] = {
    "config": frozenset({"globals", "routines", "wdparm", "wijdir", *_NUMBERS}),
    "journal": frozenset({"currentdirectory", "alternatedirectory"}),
    "databases": None,
}
"""Sections and their keys that are read, in small letters; None for those that name a directory."""
_SPELT = {"config": "config", "journal": "Journal", "databases": "Databases"}


class Cpf(msgspec.Struct, frozen=True):
    """The settings that a scan keeps; None or an empty list where the file does not give one, or gives no number.

    ``globals_mb`` has one size for each block size from 2 to 64 KB; 0 leaves it to IRIS. ``routines_mb`` is one size or
    six. ``databases`` are those on this host, name and directory.
    """

    globals_mb: tuple[int, ...] = ()
    routines_mb: tuple[int, ...] = ()
    gmheap_kb: int | None = None
    locksiz_bytes: int | None = None
    jrnbufs_mb: int | None = None
    memlock: int | None = None
    asyncwij: int | None = None
    wduseasyncio: int | None = None
    wdparm: tuple[int, ...] = ()
    wijdir: str | None = None
    journal: str | None = None
    alternate_journal: str | None = None
    databases: Mapping[str, str] = {}


def parse_cpf(text: str) -> Cpf:
    """The settings of a cpf; what is not understood is left out."""
    found: dict[str, dict[str, str]] = {"config": {}, "journal": {}, "databases": {}}
    for section, key, value in _parse_settings(text):
        # The name of a database is its own, in the spelling of the file.
        found[section][key if section == "databases" else key.lower()] = value
    config, journal = found["config"], found["journal"]
    numbers = {name: _parse_number(config.get(name, "")) for name in _NUMBERS}
    return Cpf(
        globals_mb=_parse_numbers(config.get("globals", "")),
        routines_mb=_parse_numbers(config.get("routines", "")),
        gmheap_kb=numbers["gmheap"],
        locksiz_bytes=numbers["locksiz"],
        jrnbufs_mb=numbers["jrnbufs"],
        memlock=numbers["memlock"],
        asyncwij=numbers["asyncwij"],
        wduseasyncio=numbers["wduseasyncio"],
        wdparm=_parse_numbers(config.get("wdparm", "")),
        wijdir=_parse_directory(config.get("wijdir", "")),
        journal=_parse_directory(journal.get("currentdirectory", "")),
        alternate_journal=_parse_directory(journal.get("alternatedirectory", "")),
        databases=dict(_parse_databases(found["databases"])),
    )


def only_known(text: str) -> str:
    """A cpf without any line but those that `parse_cpf` reads: what else it holds may be secret."""
    kept: list[str] = []
    section = ""
    for section_of_line, key, value in _parse_settings(text):
        if section_of_line != section:
            section = section_of_line
            kept.append(f"[{_SPELT[section]}]")
        kept.append(f"{key}={value}")
    return "".join(f"{line}\n" for line in kept)


def _parse_settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Section in small letters, key and value of each line that is known."""
    section = ""
    for line in text[:MAX_TEXT].replace("\0", "").split("\n"):
        bare = line.strip()
        if bare.startswith("["):
            section = bare[1:-1].strip().lower() if bare.endswith("]") else ""
        elif section in _KNOWN and len(bare) <= MAX_LINE and not bare.startswith((";", "#")):
            key, equals, value = (part.strip() for part in bare.partition("="))
            known = _KNOWN[section]
            # Of [Databases] nothing but directories: a line that strayed there may be anything.
            if equals and key and (value.startswith("/") if known is None else key.lower() in known):
                yield section, key, value


def _parse_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _parse_numbers(text: str) -> tuple[int, ...]:
    """A list of numbers; empty where one of its fields is none. A field without a digit is 0 to IRIS."""
    fields = [field.strip() or "0" for field in text.split(",")] if text.strip() else []
    values = [_parse_number(field) for field in fields]
    return tuple(value for value in values if value is not None) if None not in values and len(values) <= 16 else ()


def _parse_directory(text: str) -> str | None:
    return text if text.startswith("/") else None


def _parse_databases(lines: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """``NAME=DIRECTORY,SERVER,…`` of those without a server, which would be elsewhere."""
    local = 0
    for name, value in lines.items():
        directory, _, rest = value.partition(",")
        if not rest.partition(",")[0].strip() and local < MAX_DATABASES:
            local += 1
            yield name, directory.strip()
