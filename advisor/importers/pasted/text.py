"""A pasted text as numbered lines: without the markup of a page, with lines joined that go on after a backslash."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import msgspec

from advisor.errors import InvalidInputError
from advisor.host.patterns import lazy_regex

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
