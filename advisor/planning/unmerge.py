"""A shared configuration file without what one of several transactions wrote into it.

The lines in which the file before differs from the file after are undone in the file as it is now; every other line
stays byte for byte, whoever wrote it. What comes of it is then read again, key by key. Where a key does not read as it
must, the file is left alone: nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

from advisor.host import Missing
from advisor.host.patterns import lazy_regex
from advisor.planning.records import FileChange
from advisor.tunables import FileEdit, apply_edit, mentions_key

Lines = list[bytes]

_LINE = lazy_regex(rb"[^\n]*\n|[^\n]+")


def settings_of(edit: FileEdit) -> frozenset[tuple[str, ...]]:
    """What an edit sets, as something that can be compared with what another one sets."""
    if edit.form == "section":
        names = (setting.partition("=")[0] for setting in edit.value.split(" "))
        return frozenset((edit.form, edit.key.partition("/")[0], name) for name in names)
    if edit.form == "udev-rule":
        return frozenset({(edit.form, edit.key, edit.value.partition("=")[0])})
    return frozenset({(edit.form, edit.key)})


def holds_edit(content: bytes | None, edit: FileEdit) -> bool:
    """Whether the file says what the edit says."""
    return content is not None and apply_edit(content, edit) == content


def remove_edits(content: bytes, file: FileChange, keep: Collection[FileEdit]) -> bytes | Missing | None:
    """``content`` without what ``file`` wrote, with what the edits ``keep`` say; None where no file is left.

    Missing says why it cannot be done exactly.
    """
    if content == file.after and (not keep or all(holds_edit(file.before, edit) for edit in keep)):
        return file.before
    # Whether nothing of the file's edits is left but what others set as well.
    kept = frozenset[tuple[str, ...]]().union(*(settings_of(edit) for edit in keep))
    own = [edit for edit in file.edits if not settings_of(edit) <= kept]
    if all(holds_edit(content, edit) for edit in keep) and all(_is_as_before(content, file, edit) for edit in own):
        return content
    if any(edit.form == "netplan" for edit in file.edits) and not (
        file.before is not None and file.before.count(b"\n") == file.after.count(b"\n")
    ):
        return Missing("unreadable", "its nested sections are shared with an upper layer")
    new = _undo_lines(content, file)
    for edit in keep:
        new = apply_edit(new, edit)
    wrong = _wrong_key(new, file, keep)
    if wrong is not None:
        return Missing("unreadable", f"{wrong} was modified externally since")
    return new


def _is_as_before(content: bytes, file: FileChange, edit: FileEdit) -> bool:
    before = file.before if file.before is not None else edit.fresh
    is_said = mentions_key(content, edit) == mentions_key(before, edit) and holds_edit(content, edit) == holds_edit(
        before, edit
    )
    return is_said and _own_lines(content, edit) == _own_lines(before, edit)


def _own_lines(content: bytes, edit: FileEdit) -> Counter[bytes]:
    """The lines that the edit would change."""
    return Counter(_split_lines(content)) - Counter(_split_lines(apply_edit(content, edit)))


def _wrong_key(new: bytes, file: FileChange, keep: Iterable[FileEdit]) -> str | None:
    """A key of the file's edits that does not read as it did before them, and that no upper layer sets."""
    kept = frozenset[tuple[str, ...]]().union(*(settings_of(edit) for edit in keep))
    own = (edit for edit in file.edits if not settings_of(edit) & kept)
    return next((edit.key for edit in own if not _is_as_before(new, file, edit)), None)


def _undo_lines(content: bytes, file: FileChange) -> bytes:
    before = file.before if file.before is not None else file.edits[0].fresh if file.edits else b""
    old, new, now = _split_lines(before), _split_lines(file.after), _split_lines(content)
    # Which line now is which line of then.
    blocks = SequenceMatcher(None, new, now, autojunk=False).get_matching_blocks()
    places = {block.a + n: block.b + n for block in blocks for n in range(block.size)}
    replaced: dict[int, Lines] = {}
    inserted: dict[int, Lines] = {}
    for word, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if word == "insert" or (word == "replace" and i2 - i1 != j2 - j1):
            # Headers of sections stay: settings of an upper layer may follow them.
            numbers = range(j1, j2)
            for number in numbers:
                is_header = new[number].lstrip().startswith(b"[") or new[number].rstrip().endswith((b"{", b"}"))
                if number in places and not is_header:
                    replaced[places[number]] = []
        if word == "replace" and i2 - i1 == j2 - j1:
            replaced.update(
                {places[j]: [old[i]] for i, j in zip(range(i1, i2), range(j1, j2), strict=True) if j in places}
            )
        elif word in ("delete", "replace"):
            # Before which line now the lines belong that stood at this place before.
            at: int | None
            if j1 < j2 and j1 in places:
                at = places[j1]
            elif j1 - 1 in places:
                at = places[j1 - 1] + 1
            elif j2 in places:
                at = places[j2]
            else:
                at = 0 if j1 == 0 else None
            if at is not None:
                inserted.setdefault(at, []).extend(old[i1:i2])
    found = [line for n in range(len(now) + 1) for line in (*inserted.get(n, ()), *replaced.get(n, now[n : n + 1]))]
    joined = b"".join(found)
    has_open_end = bool(content) and not content.endswith(b"\n") and found[-1:] == now[-1:]
    return joined[:-1] if has_open_end else joined


def _split_lines(content: bytes) -> Lines:
    """The lines, each with its end."""
    found = _LINE.findall(content)
    return [line if line.endswith(b"\n") else line + b"\n" for line in found]
