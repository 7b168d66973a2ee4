"""Quoting words for POSIX sh."""

from __future__ import annotations

import re

from advisor.host.patterns import lazy_regex

LINK = "\0"
"""Stands for the name of a link, which the script finds out when it comes to it; no name and no path can hold it."""

_PLAIN = lazy_regex(r"[A-Za-z0-9_@%+=:,./-]+")
_SPECIAL = lazy_regex(r"['$`]")


def shell_quote(text: str) -> str:
    """``text`` as one shell word, whatever it holds; `LINK` stays as it is between what is quoted."""
    if LINK in text:
        return LINK.join(shell_quote(part) if part else "" for part in text.split(LINK))
    if _PLAIN.fullmatch(text):
        return text
    if _SPECIAL.search(text):
        return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'
    return f"'{text}'"
