"""What every exported file says at its head, and why a value is left out."""

from __future__ import annotations

import textwrap

from advisor.host import Missing
from advisor.interchange.export.settings import Exported, LeftOut, Setting, is_own
from advisor.tunables import FileEdit

_WIDTH = 100


def head(wanted: Exported, *lines: str) -> str:
    """A comment with ``#`` at each line: what this is, for which host it was made, and what is not in it."""
    origin = f", made for {_plain(wanted.hostname)}" if wanted.hostname else ""
    text = [f"{_plain(wanted.name)}, exported by advisor{origin}.", *lines]
    return "".join(f"# {line}\n" for one in text for line in textwrap.wrap(_plain(one), _WIDTH))


def reason(setting: Setting) -> str:
    """Why the value is wanted, and when it would hurt, as comment lines."""
    said = [setting.why, f"Hurts when: {setting.hurts_when}" if setting.hurts_when else ""]
    said.append(f"Source: {'; '.join(setting.sources)}" if setting.sources else "")
    return "".join(f"# {line}\n" for one in said if one for line in textwrap.wrap(_plain(one), _WIDTH))


def left_out_words(left_out: tuple[LeftOut, ...]) -> str:
    """The values that are not carried, as comment lines."""
    if not left_out:
        return ""
    lines = ["Not in here:"]
    lines += [f"- {_plain(one.tunable)} = {_plain(one.value)}: {_plain(one.why)}" for one in left_out]
    return "".join(f"# {line}\n" for one in lines for line in textwrap.wrap(one, _WIDTH, subsequent_indent="  "))


def not_kept(setting: Setting) -> str | None:
    """Why no file of its own keeps the value over a reboot; None where one does, or what sets it keeps it."""
    if isinstance(setting.edit, Missing):
        return setting.edit.why
    if isinstance(setting.edit, FileEdit) and not is_own(setting.edit):
        return f"it is kept in {setting.edit.path}, the host's own file: --format shell edits it in its place"
    return None


def _plain(text: str) -> str:
    # A name may hold what would end a comment.
    return "".join(char if char.isprintable() else "?" for char in text)
