"""Secrets in configuration files, taken out before a file goes into an archive that is handed on."""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = b"redacted"

# Where network managers and iSCSI keep passwords and keys beside what a plan has to know.
_HOLDING_SECRETS: Final = re.compile(
    r"/(etc|run|lib|usr/lib)/(NetworkManager|netplan)/.*|/etc/(network|iscsi)/.*|/etc/sysconfig/network(-scripts)?/.*"
)
_CERTAIN: Final = (
    rb"[\w.-]*(?:pass(?:word|wd|phrase)(?:-?all|_in)?|psk|secret|pin"
    rb"|(?:pre-?shared|private|wep|wireless)[_-]?key[\d_]*)"
)
_LIKELY: Final = rb"key[\d_]*|private|shared"
_NAMED: Final = (
    rb"(?i)((?<![\w.-])[\"']?(?:(?:" + _CERTAIN + rb")[\"']?[ \t]*[:= \t]|(?:" + _LIKELY + rb")[\"']?[ \t]*[:=])[ \t]*)"
)
_IN_LINE: Final = re.compile(_NAMED + rb"[^\s][^\n]*")
_IN_YAML: Final = re.compile(_NAMED + rb"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,}{\"'][^\n,}]*)")


def without_secrets(path: str, content: bytes) -> bytes:
    """The content of a file with each password and key in it replaced by a word; other files as they are."""
    if not _HOLDING_SECRETS.fullmatch(path):
        return content
    pattern = _IN_YAML if path.endswith(".yaml") else _IN_LINE
    return pattern.sub(rb"\g<1>" + REDACTED, content)
