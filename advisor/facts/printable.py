"""Names that are not UTF-8: the kernel lets links and files be called anything, JSON does not."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text with U+FFFD for each byte of a name that is not UTF-8."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
