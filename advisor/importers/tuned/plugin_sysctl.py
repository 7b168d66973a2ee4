"""``[sysctl]``: kernel parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from advisor.facts.settings.value import refusal
from advisor.facts.sysctl_files import key_path
from advisor.host import Host, Missing
from advisor.importers.growing import is_growing
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned.context import Context, Given
from advisor.importers.tuned.operators import can_compare, parse_assignment, strip_quotes
from advisor.importers.tuned.places import is_on

_DEPRECATED: Final = ("base_reachable_time", "retrans_time")
# TuneD applies these again after its own values; a file in the first hides one of its name in the next.
_REAPPLIED: Final = ("/run/sysctl.d", "/etc/sysctl.d")
_MAX_LINES: Final = 20_000


def dotted_key(key: str) -> str:
    """TuneD's key, in which every dot and every slash parts two names, as ours."""
    return ".".join(re.split(r"[./]", key))


def convert_sysctl(context: Context, given: Given) -> list[ImportedSetting]:
    key = dotted_key(given.key)
    text = strip_quotes(given.text)
    if key.rpartition(".")[2] in _DEPRECATED:
        return [given.swallowed(context, "TuneD refuses this key as deprecated", "unknown")]
    current = context.host.read(key_path(key))
    live = None if isinstance(current, Missing) else current
    if context.is_faithful:
        found = _faithful_setting(context, given, key, text, live)
        if found is not None:
            return [found]
    written = parse_assignment(text)
    value = " ".join(written.value.strip("\"'").split() if not context.is_faithful else written.value.split())
    why = refusal(key, value)
    if why is not None:
        return [given.swallowed(context, f"the kernel refuses the value: {why}")]
    sense = written.sense
    if not context.is_faithful and sense == "exactly" and is_growing(key):
        sense = "at-least"
    note = "" if live is not None else "this host has no such key now: TuneD and a plan pass over it"
    return [given.line.wanted(f"sysctl:{key}", value, sense=sense, note=note)]


def _faithful_setting(context: Context, given: Given, key: str, text: str, live: str | None) -> ImportedSetting | None:
    """What stands between the value and the kernel; None where nothing does."""
    if live is not None and "\n" in live:
        return given.line.ignored("the key has several lines, and TuneD leaves such keys alone", "refused")
    if not can_compare(text, live):
        return given.line.ignored(
            f"TuneD compares whole numbers only: it writes the text {text[:60]!r} as it is, operator and all, "
            "which the kernel refuses; TuneD passes over the error",
            "refused",
        )
    value, place = context.reapplied.get(key, (text, ""))
    if value != text:
        return given.line.ignored(
            f"{place} sets it to {value[:60]}, and TuneD applies that again afterwards (reapply_sysctl)", "overridden"
        )
    return None


def read_reapplied(files: Host, main: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Dotted key → value and place of what TuneD takes from the system's sysctl files after its own values."""
    if not is_on(main, "reapply_sysctl"):
        return {}
    by_name: dict[str, str] = {}
    for directory in _REAPPLIED:
        for name in files.names(directory):
            if name.endswith(".conf"):
                by_name.setdefault(name, f"{directory}/{name}")
    found: dict[str, tuple[str, str]] = {}
    for path in (*(by_name[name] for name in sorted(by_name)), "/etc/sysctl.conf"):
        text = files.read(path)
        if isinstance(text, Missing):
            continue
        for number, line in enumerate(text.split("\n")[:_MAX_LINES], 1):
            key, equals, value = line.strip().partition("=")
            if equals and key.strip() and line.strip()[0] not in "#;":
                found[dotted_key(key.strip())] = " ".join(value.split()), f"{path} line {number}"
    return found
