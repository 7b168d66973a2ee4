"""The system's sysctl files, as TuneD reads them again after it has set its own values (``reapply_sysctl``)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.tuned.places import is_on
from advisor.host import Host, Missing

# A file in the first hides one of its name in the next.
_REAPPLIED = ("/run/sysctl.d", "/etc/sysctl.d")
_MAX_LINES = 20_000


def dotted_key(key: str) -> str:
    """TuneD's key, in which every dot and every slash parts two names, as ours."""
    return ".".join(re.split(r"[./]", key))


def read_reapplied(files: Host, main: Mapping[str, str]) -> Mapping[str, tuple[str, str, int]]:
    """Dotted key → value, file and line of what TuneD takes from the system's sysctl files after its own values."""
    if not is_on(main, "reapply_sysctl"):
        return {}
    by_name: dict[str, str] = {}
    for directory in _REAPPLIED:
        for name in files.names(directory):
            if name.endswith(".conf"):
                by_name.setdefault(name, f"{directory}/{name}")
    found: dict[str, tuple[str, str, int]] = {}
    for path in (*(by_name[name] for name in sorted(by_name)), "/etc/sysctl.conf"):
        text = files.read(path)
        if isinstance(text, Missing):
            continue
        for number, line in enumerate(text.split("\n")[:_MAX_LINES], 1):
            key, equals, value = line.strip().partition("=")
            if equals and key.strip() and line.strip()[0] not in "#;":
                found[dotted_key(key.strip())] = " ".join(value.split()), path, number
    return found
