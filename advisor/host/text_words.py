"""Words as the kernel's files, awk and sh separate them; ``str.split`` also splits at U+00A0, U+2028 and their like."""

from __future__ import annotations

from advisor.host.config_text import EMPTY
from advisor.host.patterns import lazy_regex

WHITE_SPACE = " \t\n\r\v\f"
"""What ``[:space:]`` is in the POSIX locale."""

_WORD = lazy_regex(rf"[^{WHITE_SPACE}]+")


def split_words(text: str) -> list[str]:
    """The words of a text between white space of the POSIX locale."""
    return _WORD.findall(text)


def or_empty(value: str) -> str:
    """A value as a line shows it: one of blanks alone is a word that can be seen."""
    return value if value.strip() else EMPTY
