"""What ``advisor profiles import`` is given: ``tuned:NAME``, ``saptune:NOTE``, ``sysctl:PLACE`` or a file."""

from __future__ import annotations

import html
import os.path
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.tuned.files import MAX_BYTES as INI_MAX_BYTES
from advisor.facts.tuned.files import installed_profiles
from advisor.host import Host
from advisor.host.files import open_given
from advisor.host.patterns import lazy_regex
from advisor.importers.records import Imported, Mode

# A pasted text as numbered lines: without the markup of a page, with lines joined that go on after a backslash.

MAX_BYTES = 1 << 20
MAX_LINE = 4096
"""Characters of a line that are read; a longer one holds no setting that a person typed."""

_TAGS = (
    "a|abbr|article|aside|b|blockquote|body|br|button|center|code|col|dd|div|dl|dt|em|figure|font|footer|form|h[1-6]|head"
    "|header|hr|html|i|img|input|kbd|label|li|link|main|meta|nav|ol|p|pre|samp|section|small|span|strong|sub|sup|svg|table"
    "|tbody|td|tfoot|th|thead|title|tr|tt|u|ul|var"
)
_IS_PAGE = lazy_regex(rf"(?i)</(?:{_TAGS})>")
_ENDS = lazy_regex(r"(?i)<(?:br|/p|/div|/li|/tr|/pre|/h[1-6]|/code></pre|hr)\s{0,3}/?>")
_CODE = lazy_regex(r"(?i)</?code(?:\s[^<>]{0,2000})?>")
_CELL = lazy_regex(r"(?i)</(?:t[dh]|dt)\s{0,3}>")
_TAG = lazy_regex(rf"(?i)</?(?:{_TAGS})(?:\s[^<>]{{0,2000}})?/?>|<!--[^<>]{{0,2000}}-->")
_UNSEEN = lazy_regex(r"(?i)(<(?:script|style)\b|</(?:script|style)\s{0,3}>)")
_MARK = lazy_regex(r"(?:>\s+)?(?:(?:\*(?!\s+(?:soft|hard|-)\s)|[+•·-]|[0-9]{1,3}[.)])\s+)?")
_PROMPT = lazy_regex(
    r"(?:\([\w.-]+\)\s?)?\[?[\w.-]{1,40}@[\w.-]{1,60}(?:[ :][^\s#$%\]]{0,80})?\]?\s?[#$%]\s*|[\w-]{0,20}[$%]\s+"
)


class Line(msgspec.Struct, frozen=True):
    """A line by its number in the text; ``indent`` in characters, those of a YAML list's mark among them."""

    number: int
    text: str
    indent: int = 0
    is_item: bool = False
    """A mark of a list stood before it."""


def decode(data: bytes, name: str) -> str:
    """Return the text of a file. Raises InvalidInputError for what is larger than 1 MiB or no text."""
    if len(data) > MAX_BYTES:
        raise InvalidInputError(
            f"{name}: larger than {MAX_BYTES >> 20} MiB: no list of settings is", hint="paste a part"
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InvalidInputError(f"{name}: line {line}: a NUL byte: expected text", hint="paste the lines themselves")
    else:
        text = data.decode("utf-8-sig", "replace")
    return re.sub(r"\r\n?", "\n", text)


def read_lines(text: str) -> list[Line]:
    """Return the lines that are not blank; a page's row, paragraph and list item is a line of its own."""
    is_page = _IS_PAGE.search(text) is not None
    found: list[Line] = []
    begun: tuple[int, str] | None = None
    for number, raw in enumerate((_shown_text(text) if is_page else text).split("\n"), 1):
        for piece in raw.split("\v") if is_page else (raw,):
            if len(piece) > MAX_LINE:
                continue
            shown = html.unescape(piece).replace("\xa0", " ").replace("\u200b", "") if is_page else piece
            shown = shown.rstrip()
            if begun is not None:
                number_of, before = begun
                shown, begun = f"{before} {shown.lstrip()}", None
            else:
                number_of = number
            if shown.endswith("`\\"):
                # A line break of Markdown, behind code.
                shown = shown[:-1]
            if shown.endswith("\\") and len(shown) <= MAX_LINE and not shown.lstrip().startswith("#"):
                begun = (number_of, shown[:-1].rstrip())
                continue
            if shown.strip():
                found.append(_make_line(number_of, shown))
    if begun is not None and begun[1].strip():
        found.append(_make_line(*begun))
    return found


def _make_line(number: int, raw: str) -> Line:
    bare = raw.lstrip()
    mark = _MARK.match(bare)
    rest = bare[mark.end() :] if mark else bare
    return Line(number, rest.strip().strip("`").strip(), len(raw) - len(rest), is_item=len(rest) < len(bare))


def _shown_text(text: str) -> str:
    """What a page shows, each line in its place; ``\\v`` ends a line within one."""
    parts: list[str] = []
    is_unseen = False
    for part in _UNSEEN.split(text):
        is_mark = _UNSEEN.match(part) is not None
        is_unseen = not part.startswith("</") if is_mark else is_unseen
        parts.append("\n" * part.count("\n") if is_unseen or is_mark else part)
    shown = _CODE.sub("`", _CELL.sub(" | ", _ENDS.sub("\v", "".join(parts))))
    return _TAG.sub(lambda tag: "\n" * tag[0].count("\n"), shown)


def without_prompt(text: str) -> str:
    """Return a command without the prompt of the shell that stands before it."""
    found = _PROMPT.match(text)
    return text[found.end() :] if found else text


def walk_block(lines: list[Line], place: int) -> Iterator[Line]:
    """Yield the lines beside the one at ``place`` in the same mapping of a YAML text, those that follow it first."""
    own = lines[place]
    for step in (1,) if own.is_item else (1, -1):
        for line in lines[place + 1 : place + 9] if step == 1 else reversed(lines[max(0, place - 8) : place]):
            begins = line.is_item and line.indent == own.indent
            if line.indent < own.indent or (begins and step == 1):
                break
            if line.indent == own.indent:
                yield line
            if begins:
                break


Kind = Literal["tuned", "saptune", "sysctl"]
KINDS: tuple[Kind, ...] = ("tuned", "saptune", "sysctl")


class ImportSource(msgspec.Struct, frozen=True):
    """``name`` of a profile, a note or a place, a path where a slash is in it; ``path`` where it is a file of this
    machine."""

    kind: Kind
    name: str
    path: str | None = None


def find_source(text: str) -> ImportSource:
    """What is to be imported; the kind of a file follows from its content. Raises UsageError and InvalidInputError."""
    if not text.strip():
        raise UsageError(
            "the source is empty: a variable that is not set?", hint="write tuned:NAME, saptune:NOTE or sysctl:FILE"
        )
    kind, colon, name = text.partition(":")
    for known in KINDS:
        if colon and kind == known:
            if not name:
                raise UsageError(f"{text}: names nothing", hint="write tuned:NAME, saptune:NOTE or sysctl:FILE")
            return ImportSource(known, name)
    place = Path(text)
    if not place.exists():
        raise UsageError(
            f"{text[:120]}: no such file",
            hint="write tuned:NAME, saptune:NOTE, sysctl:FILE or a file; --list shows what is installed",
        )
    path = os.path.abspath(text)
    if place.is_dir():
        inside = os.path.join(path, "tuned.conf")
        return (
            ImportSource("tuned", os.path.basename(path), inside)
            if os.path.isfile(inside)
            else ImportSource("sysctl", path, path)
        )
    found = kind_of_text(_read_head(place))
    name = os.path.basename(os.path.dirname(path)) if os.path.basename(path) == "tuned.conf" else Path(path).stem
    return ImportSource(found, path if found == "sysctl" else name, path)


def _read_head(path: Path) -> str:
    if path.suffix == ".toml":
        raise UsageError(f"{path}: already a profile of advisor", hint=f"advisor profiles lint {path}")
    try:
        with open_given(path) as file:
            return file.read(INI_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error


def kind_of_text(text: str) -> Kind:
    """Whose file it is: saptune's notes have a section version, TuneD's profiles sections, sysctl's none."""
    sections = re.findall(r"(?m)^\s*\[([^\]\n]+)", text)
    if not sections:
        return "sysctl"
    return "saptune" if "version" in sections else "tuned"


def import_source(
    source: ImportSource, host: Host, files: Host, mode: Mode, *, tuned_version: str | None = None
) -> Imported:
    """The profile as it comes over to ``host``; ``files`` is the machine whose files are read, ``tuned_version`` that
    of TuneD to judge by instead of the one that is installed there.

    Raises UsageError for what is not there, InvalidInputError naming file and line for what is broken.
    """
    if source.kind != "sysctl" and "/" in source.name:
        # A profile or a note that is named by its path on the machine whose files are read.
        path = source.name.rstrip("/") or "/"
        if source.kind == "saptune":
            source = ImportSource("saptune", os.path.basename(path).removesuffix(".conf"), path)
        else:
            path = f"{path}/tuned.conf" if files.is_dir(path) else path
            source = ImportSource("tuned", os.path.basename(os.path.dirname(path)), path)
    if source.kind == "tuned":
        from advisor.importers.tuned.convert import import_tuned
        from advisor.importers.tuned.differences import parse_tuned_version

        version = None if tuned_version is None else parse_tuned_version(tuned_version)
        return import_tuned(source.name, host, mode, files=files, path=source.path, version=version)
    if source.kind == "saptune":
        from advisor.importers.saptune import import_saptune

        found = import_saptune(source.name, host, mode, files=files, path=source.path)
    else:
        from advisor.importers.sysctl_text import import_sysctl

        found = import_sysctl(source.path or source.name, host, mode, files=files)
    # After what is wrong with the file: that may be why it is taken for no profile of TuneD.
    if tuned_version is not None:
        raise UsageError(f"{found.origin}: --tuned-version is for profiles of TuneD", hint="leave it out")
    return found


def list_installed(files: Host) -> Mapping[str, str]:
    """Source → file of everything that can be imported by name, sorted."""
    from advisor.importers.saptune import installed_notes

    found = {f"tuned:{name}": path for name, path in installed_profiles(files).items()}
    found |= {f"saptune:{name}": path for name, path in installed_notes(files).items()}
    for path in ("/etc/sysctl.conf", "/etc/sysctl.d"):
        if files.exists(path):
            found[f"sysctl:{path}"] = path
    return found
