"""What every exported file says at its head, and why a value is left out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from advisor.exporters.settings import Exported, ExportedSetting, SkippedSetting, is_own
from advisor.facts.writers import overriding_write
from advisor.host import Missing
from advisor.host.patterns import lazy_regex
from advisor.planning.comparison import combine_values
from advisor.tunables import FileEdit

_WIDTH = 100
# What udev rules and .link files match by, other than a name that every host may give.
_IDENTITY = lazy_regex(rb"(?m)^(?:MACAddress|Path)=|(?:ENV\{(?!DEVTYPE)\w+\}|ATTR\{[\w/]+\})==")


def file_head(wanted: Exported, *lines: str, place: str | None = None) -> str:
    """A comment with ``#`` at each line: what this is, for which host it was made, and what sets values of it again
    there. ``place`` is where the form goes, by default where this host keeps each value."""
    origin = f", made for {_plain_text(wanted.hostname)}" if wanted.hostname else ""
    text = [f"{_plain_text(wanted.name)}, exported by advisor{origin}.", *lines]
    head = "".join(f"# {line}\n" for one in text for line in textwrap.wrap(_plain_text(one), _WIDTH))
    return head + _comment_lines(_set_again(wanted, place))


def _set_again(wanted: Exported, place: str | None) -> list[str]:
    found = []
    for one in wanted.settings if wanted.boot else ():
        path = place or (one.edit.path if isinstance(one.edit, FileEdit) else None)
        write = overriding_write(wanted.boot, one.tunable, one.value, path) if wanted.boot and path else None
        is_enough = write and write.value and combine_values(write.value, one.value, one.sense) == write.value
        if write and not is_enough:
            found.append(f"- {_plain_text(one.tunable)} = {_plain_text(one.value)}: {_plain_text(write.sentence)}")
    return ["That host sets these again:", *found] if found else []


def reason_lines(setting: ExportedSetting) -> str:
    """Why the value is wanted, and when it would hurt, as comment lines."""
    said = [setting.why, f"Hurts when: {setting.hurts_when}" if setting.hurts_when else ""]
    said.append(f"Source: {'; '.join(setting.sources)}" if setting.sources else "")
    return "".join(f"# {line}\n" for one in said if one for line in textwrap.wrap(_plain_text(one), _WIDTH))


def left_out_words(left_out: tuple[SkippedSetting, ...]) -> str:
    """The values that are not carried, as comment lines."""
    if not left_out:
        return ""
    return _comment_lines(["Not in here:", *map(_one_line, left_out)])


def identity_words(wanted: Exported) -> tuple[str, ...]:
    """What is to be said about files that know disks and links by what another host has not."""
    if not any(_IDENTITY.search(kept.content) for kept in wanted.files):
        return ()
    host = wanted.hostname or "the host that this was made on"
    return (
        f"The files for disks and links know them by the serial numbers and addresses of {host}. On an instance with "
        "others they match nothing: what the commands set there is gone with a restart.",
    )


def elsewhere_words(wanted: Exported, exact: Iterable[ExportedSetting], *, where: str = "here") -> str:
    """Which values the profile wants at least or at most so, and the form says exactly ``where`` as they came out."""
    bounded = [one for one in exact if one.sense != "exactly"]
    if not bounded:
        return ""
    host = _plain_text(wanted.hostname) if wanted.hostname else "the host that this was made on"
    lines = [
        f"The profile wants these as the least or the most; {where} they stand as they came out on {host}, and on "
        "another host would lower what is larger there, or raise what is smaller."
    ]
    lines += [f"- {_plain_text(one.tunable)} = {_plain_text(one.value)}" for one in bounded]
    return _comment_lines(lines)


def _comment_lines(lines: Iterable[str]) -> str:
    return "".join(f"# {line}\n" for one in lines for line in textwrap.wrap(one, _WIDTH, subsequent_indent="  "))


def not_kept_words(not_kept: tuple[SkippedSetting, ...]) -> str:
    """The values that are set, and not kept, as comment lines."""
    if not not_kept:
        return ""
    return _comment_lines(["Set, but not kept over a restart:", *map(_one_line, not_kept)])


def _one_line(one: SkippedSetting) -> str:
    wanted = f" = {_plain_text(one.value)}" if one.value else ""
    return f"- {_plain_text(one.tunable)}{wanted}: {_plain_text(one.why)}"


def not_kept(setting: ExportedSetting) -> str | None:
    """Why no file of its own keeps the value over a reboot; None where one does, or what sets it keeps it."""
    if isinstance(setting.edit, Missing):
        return setting.edit.why
    if isinstance(setting.edit, FileEdit) and not is_own(setting.edit):
        return f"it is kept in {setting.edit.path}, the host's own file: --format shell edits it in its place"
    return None


def _plain_text(text: str) -> str:
    # A name or an error may hold what would end a comment.
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
