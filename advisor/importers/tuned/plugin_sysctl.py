"""``[sysctl]``: kernel parameters."""

from __future__ import annotations

from advisor.facts.settings.value import refusal
from advisor.facts.sysctl_files import key_path
from advisor.facts.tuned.reapplied import dotted_key
from advisor.host import Missing
from advisor.importers.growing import is_growing
from advisor.importers.made import LACKS_KEY, Found
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned.context import Given
from advisor.importers.tuned.operators import can_compare, parse_assignment, strip_quotes

_DEPRECATED = ("base_reachable_time", "retrans_time")


def convert_sysctl(given: Given) -> Found:
    key = dotted_key(given.key)
    text = strip_quotes(given.text)
    if key.rpartition(".")[2] in _DEPRECATED:
        return given.swallowed("TuneD refuses this key as deprecated", "unknown")
    current = given.host.read(key_path(key))
    live = None if isinstance(current, Missing) else current
    if given.is_faithful:
        found = _faithful_setting(given, key, text, live)
        if found is not None:
            return found
    written = parse_assignment(text)
    value = " ".join(written.value.strip("\"'").split() if not given.is_faithful else written.value.split())
    why = refusal(key, value)
    if why is not None:
        return given.swallowed(f"the kernel refuses the value: {why}")
    sense = written.sense
    if not given.is_faithful and sense == "exactly" and is_growing(key):
        sense = "at-least"
    note = "" if live is not None else LACKS_KEY
    return given.line.wanted(f"sysctl:{key}", value, sense=sense, note=note)


def _faithful_setting(given: Given, key: str, text: str, live: str | None) -> ImportedSetting | None:
    """What stands between the value and the kernel; None where nothing does."""
    if live is not None and "\n" in live:
        return given.line.ignored("the key has several lines, and TuneD leaves such keys alone", "refused")
    if not can_compare(text, live):
        return given.line.ignored(
            f"TuneD compares whole numbers only: it writes the text {text[:60]!r} as it is, operator and all, "
            "which the kernel refuses; TuneD passes over the error",
            "refused",
        )
    value, path, number = given.reapplied.get(key, (text, "", 0))
    if value != text:
        return given.line.ignored(
            f"{path} line {number} sets it to {value[:60]}, and TuneD applies that again afterwards (reapply_sysctl)",
            "overridden",
        )
    return None
