"""advisor's files in a directory of which one file for each name is read, in the order of names, each profile with one.

Where an earlier profile's file has the last word on a key, a later profile's line goes into a file whose name gives it
that word: ``90-advisor.0001-NAME.conf`` is read after ``90-advisor-NAME.conf`` (a full stop sorts after a dash), and
``advisor+9998-NAME.conf`` before ``advisor-NAME.conf``. Files of others keep their place before or after
all of advisor's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from advisor.host import Host, Missing
from advisor.tunables.edits import FileEdit, apply_edit, mentions_key

_HIGHEST = 9999


def with_last_word(
    host: Host, edit: FileEdit, profile: str, *, first_counts: bool = False, also: Iterable[FileEdit] = ()
) -> FileEdit:
    """The edit in the profile's file that has the last word among advisor's.

    ``first_counts`` where of several lines for one key the first is carried out (tmpfiles.d). ``also`` are edits whose
    keys undo this one wherever they come later.
    """
    directory, _, name = edit.path.rpartition("/")
    stem = name.removesuffix(f"-{profile}.conf")
    pattern = re.compile(rf"{re.escape(stem)}(?:[.+]([0-9]{{4}}))?-(.+)\.conf")
    found = {one: match for one in host.names(directory) if (match := pattern.fullmatch(one))}
    if not found.keys() - {name}:
        return edit
    contents = {one: host.read_bytes(f"{directory}/{one}") for one in found}
    readable = {one: content for one, content in contents.items() if isinstance(content, bytes)}
    own = [one for one, content in readable.items() if found[one][2] == profile and mentions_key(content, edit)]
    last = min if first_counts else max
    place = last(own, default=name)
    others = [one for one in readable if found[one][2] != profile and last(one, place) == one]
    if not any(_overrides(readable[one], edit, also) for one in others):
        return msgspec.structs.replace(edit, path=f"{directory}/{place}")
    numbers = (_file_number(match, first_counts=first_counts) for match in found.values() if match[2] != profile)
    number = 1 + max(numbers, default=0)
    sign = f"+{_HIGHEST - number:04d}" if first_counts else f".{number:04d}"
    return msgspec.structs.replace(edit, path=f"{directory}/{stem}{sign}-{profile}.conf")


def _file_number(match: re.Match[str], *, first_counts: bool) -> int:
    if match[1] is None:
        return 0
    return _HIGHEST - int(match[1]) if first_counts else int(match[1])


def _overrides(content: bytes | Missing, edit: FileEdit, also: Iterable[FileEdit]) -> bool:
    if isinstance(content, Missing):
        return False
    is_other = mentions_key(content, edit) and apply_edit(content, edit) != content
    return is_other or any(mentions_key(content, one) for one in also)
