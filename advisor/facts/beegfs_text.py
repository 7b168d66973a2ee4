"""What BeeGFS' own files and tools print: configuration, interfaces file, the entry information of a directory."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.printable import printable
from advisor.host.patterns import lazy_regex

MAX_FILE_TEXT = 1 << 20
MAX_VALUE = 16 * 1024
MAX_INTERFACES = 256
"""Characters and entries that are looked at: a snapshot's files may be made to cost time."""

# Never what authenticates, and no user's or server's name.
_KEY = lazy_regex(r"store(Storage|Meta|Mgmtd)Directory|(tune|conn(?!Auth|DisableAuth))[A-Z]\w{0,60}", re.ASCII)
_INTERFACE = lazy_regex(r"[\w.:@-]{1,32}", re.ASCII)
_SIZE = lazy_regex(r"([0-9]{1,15})([kKmMgGtT]?)(?:i?[bB])?", re.ASCII)
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_PATTERN = lazy_regex(r"^\+ Type: ([\w -]{1,40})$", re.MULTILINE)
_CHUNK = lazy_regex(r"^\+ Chunksize: ([0-9]{1,12}[kKmMgGtT]?)\b", re.MULTILINE)
_DESIRED = lazy_regex(r"^\+ Number of (?:storage targets|buddy groups): desired: ([0-9]{1,6})\b", re.MULTILINE)


class EntryInfo(msgspec.Struct, frozen=True):
    """Stripe pattern of a directory: ``pattern`` is RAID0 or Buddy Mirror, ``chunk_bytes`` what one target gets in a
    row, ``targets`` over how many a file is striped. None where it is not printed."""

    pattern: str | None
    chunk_bytes: int | None
    targets: int | None


def parse_beegfs_conf(text: str) -> dict[str, str]:
    """Keys and values of ``KEY = VALUE`` lines that say how a service is tuned and connected; the last one counts.

    Left out is all else, the authentication first of all. A key with an empty value is kept as "".
    """
    found: dict[str, str] = {}
    for line in text[:MAX_FILE_TEXT].replace("\0", "").split("\n"):
        key, equals, value = (part.strip() for part in line.partition("="))
        if equals and _KEY.fullmatch(key) and len(value) <= MAX_VALUE:
            found[key] = printable(value)
    return found


def parse_interfaces_file(text: str) -> tuple[str, ...]:
    """Names of the links that a connInterfacesFile allows, in order of preference; ``*`` stands for all.

    A line is a name, or as newer releases have it ``[!] NAME|* ADDRESS|* 4|6|*``; those that forbid (``!``) are no
    names that are allowed.
    """
    found: dict[str, None] = {}
    for line in text[:MAX_FILE_TEXT].replace("\0", "").split("\n"):
        words = line.split()
        if words and (words[0] == "*" or _INTERFACE.fullmatch(words[0])):
            found[words[0]] = None
    return tuple(found)[:MAX_INTERFACES]


def parse_entry_info(text: str) -> EntryInfo | None:
    """Of ``beegfs-ctl --getentryinfo``, or ``beegfs entry info --retro``; None where it prints no stripe pattern."""
    pattern, chunk, desired = (one.search(text) for one in (_PATTERN, _CHUNK, _DESIRED))
    if not (pattern or chunk or desired):
        return None
    return EntryInfo(
        pattern[1].strip() if pattern else None,
        size_bytes(chunk[1]) if chunk else None,
        int(desired[1]) if desired else None,
    )


def size_bytes(text: str) -> int | None:
    """Bytes of ``4m``, ``512k`` or ``8192``, in powers of 1024 as BeeGFS has them; None for anything else."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _BINARY[found[2].lower()] if found else None
