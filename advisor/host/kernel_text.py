"""Text of modprobe, systemctl, the kernel (modules, command line, choices) and udev rules, as one value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.host.config_text import UNSET
from advisor.host.missing import Missing
from advisor.host.patterns import lazy_regex
from advisor.host.text_words import split_words

SET = "(set)"
"""What a word of the kernel's command line reads that has no value."""

_CHOSEN = lazy_regex(r"\[([^][()]+)\]|\(([^][()]+)\)")
# A unit that has failed is one that does not run; its own journal says why it failed.
_RUNS = {"active": "active", "reloading": "active", "inactive": "inactive", "failed": "inactive"}


def choice(text: str, _: str) -> str | Missing:
    """The chosen word of ``a [b] c`` or ``a (b) c`` where one is marked; else all words."""
    words = split_words(text)
    chosen = [found[1] or found[2] for word in words if (found := _CHOSEN.fullmatch(word))]
    return chosen[0] if len(chosen) == 1 else " ".join(words)


def number(text: str, _: str) -> str | Missing:
    """The only word, where it is a whole number."""
    words = split_words(text)
    if len(words) == 1 and re.fullmatch(r"-?[0-9]+", words[0]):
        return words[0]
    return Missing("unreadable", f"not a whole number: {text[:40]!r}")


def module(text: str, name: str) -> str | Missing:
    """``loaded`` or ``unloaded`` by /proc/modules; Missing while it is coming or going."""
    for line in text.split("\n"):
        words = split_words(line)
        if words and words[0] == name:
            state = words[4] if len(words) > 4 else "Live"
            return "loaded" if state == "Live" else Missing("unreadable", f"the module is {state.lower()} just now")
    return "unloaded"


def module_option(text: str, place: str) -> str | Missing:
    """What ``modprobe --showconfig`` gives the parameter of ``MODULE:PARAMETER``: the last ``options`` line wins."""
    name, _, parameter = place.partition(":")
    value = UNSET
    for line in text.split("\n"):
        words = split_words(line)
        if len(words) > 2 and words[0] == "options" and words[1].replace("-", "_") == name:
            for key, given in _parse_assignments(words[2:]):
                value = given if key == parameter else value
    return value


def cmdline(text: str, name: str) -> str | Missing:
    """The last value that a kernel command line gives a word, ``(set)`` where it has none."""
    value = UNSET
    for key, given in _parse_assignments(split_words(text)):
        value = given if key == name else value
    return value


def _parse_assignments(words: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        key, equals, value = word.partition("=")
        yield key, value or SET if equals else SET


def udev_class(text: str, record: str) -> str | Missing:
    """The value that the last rule which records into this property assigns, ``at-least`` before it where the rule
    leaves devices alone that have more."""
    value = UNSET
    for line in text.split("\n"):
        found = re.search(r'ATTR\{([^}]*)\}="([^"]*)"$', line)
        if found and f'ENV{{{record}}}="$attr{{' in line and not re.match(r"[ \t]*#", line):
            value = ("at-least " if f"ATTR{{{found[1]}}}==" in line else "") + found[2]
    return value


def unit_state(text: str, _: str) -> str | Missing:
    """``enabled active``: UnitFileState and ActiveState of what ``systemctl show`` prints.

    While the system starts, units have not come to their turn yet: there the second is what the start will make of it.
    """
    properties = dict(line.split("=", 1) for line in text.split("\n") if "=" in line)
    if properties.get("LoadState") not in ("loaded", "masked"):
        return Missing("absent", "systemd knows no such unit")
    active = properties.get("ActiveState", "")
    at_boot = properties.get("UnitFileState") or "static"
    if properties.get("SystemState") == "initializing" and at_boot in ("enabled", "disabled"):
        return "enabled active" if at_boot == "enabled" else "disabled inactive"
    if active not in _RUNS:
        return Missing("unreadable", f"the unit is {active or 'in no known state'} just now")
    return f"{at_boot} {_RUNS[active]}"
