"""The text of /etc/network/interfaces and the files that it includes (interfaces(5))."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from advisor.host.patterns import lazy_regex

_LINE = lazy_regex(r"[^\n]*\n|[^\n]+")
_CONTINUED = lazy_regex(r"\\\n")
# Words that begin a stanza; any other first word is an option of the one before.
_STANZAS = lazy_regex(
    r"iface|mapping|auto|allow-\S+|no-auto-down|no-scripts|rename|template|source|source-directory|source-dir"
)


class JoinedLine(msgspec.Struct, frozen=True):
    """A line with those that continue it. ``text`` has a blank for each character of a line break inside, so that an
    offset in it, added to ``start``, is one in the file. ``end`` is after the line's end."""

    start: int
    end: int
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text.split())


class Stanza(msgspec.Struct, frozen=True):
    """A first line and the options below it."""

    head: JoinedLine
    options: tuple[JoinedLine, ...]

    @property
    def kind(self) -> str:
        return self.head.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.head.words[1:]

    @property
    def interface(self) -> str | None:
        """The logical interface that an ``iface`` stanza defines."""
        return self.arguments[0] if self.kind == "iface" and self.arguments else None

    @property
    def family(self) -> str:
        """``inet`` where none is given, as ifupdown2 and ifupdown-ng allow."""
        return self._plain[1] if len(self._plain) > 1 else "inet"

    @property
    def method(self) -> str:
        return self._plain[2] if len(self._plain) > 2 else "static"

    @property
    def inherits(self) -> tuple[str, ...]:
        """Stanzas whose options are this one's as well."""
        return tuple(after for word, after in pairwise(self.arguments) if word == "inherits")

    @property
    def _plain(self) -> tuple[str, ...]:
        words = self.arguments
        return words[: words.index("inherits")] if "inherits" in words else words

    @property
    def takes_mtu(self) -> bool:
        """Whether ``mtu`` is an option that sets the link's MTU here: that of inet6 may set IPv6's alone."""
        return self.family == "inet" and self.method in {"static", "manual", "tunnel"}


def parse_interfaces(text: str) -> Iterator[Stanza]:
    """The stanzas of one file, in order. Lines before the first are no one's."""
    head: JoinedLine | None = None
    options: list[JoinedLine] = []
    for line in _logical_lines(text):
        if not _STANZAS.fullmatch(line.words[0]):
            options.append(line)
            continue
        if head is not None:
            yield Stanza(head, tuple(options))
        head, options = line, []
    if head is not None:
        yield Stanza(head, tuple(options))


def _logical_lines(text: str) -> Iterator[JoinedLine]:
    pieces = _LINE.finditer(text)
    for piece in pieces:
        start = piece.start()
        # A comment is not continued.
        if not piece[0].strip() or piece[0].lstrip().startswith("#"):
            continue
        while piece[0].endswith("\\\n"):
            following = next(pieces, None)
            if following is None:
                break
            piece = following
        line = _CONTINUED.sub("  ", text[start : piece.end()]).removesuffix("\n")
        # The file may end where a line was to be continued.
        line = f"{line[:-1]} " if line.endswith("\\") else line
        if line.strip():
            yield JoinedLine(start, piece.end(), line)
