"""The words for tunables: what a value counts, when it takes effect, and what a kind is called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from advisor.facts.settings import find_setting
from advisor.planning.records import Change
from advisor.report.layout import counted
from advisor.report.units import cpu_text, format_binary
from advisor.shell.rollback_script import hand_command
from advisor.tunables import Effect, Risk, find_kind, parse_tunable

EFFECTS: Mapping[Effect, str] = {
    "now": "at once",
    "new-sockets": "for new sockets; open ones keep their value",
    "new-links": "for links that first come up from then on; others keep their qdisc",
    "remount": "at the next mount",
    "service-restart": "when the service is restarted (manual step)",
    "reboot": "at the next boot",
}

RISKS: Mapping[Risk, str] = {
    "none": "",
    "link": "the link may lose frames for a moment while its driver applies the value",
    # When it takes effect says it already.
    "restart": "",
}

_FIELDS = ("first", "second", "third", "fourth")


def kind_of(identity: str) -> str:
    return identity.partition(":")[0]


def short_name(identity: str) -> str:
    """The id without its kind, for where the kind is known."""
    return identity.partition(":")[2]


def counted_kind(kind: str, count: int) -> str:
    """``7 kernel parameters``."""
    return counted(count, found.noun if (found := find_kind(f"{kind}:")) else "value")


def unit_word(identity: str) -> str:
    """What a value counts, where a word says it: ``bytes`` of an MTU, ``packets`` of LLT; else empty."""
    kind, rest = find_kind(identity), short_name(identity)
    units = kind.units if kind else ()
    return next((unit for pattern, unit in units if re.fullmatch(pattern, rest)), "")


def value_text(identity: str, value: str) -> str:
    """A value as people read it: the CPUs of an interrupt drawn together."""
    return cpu_text(value) if identity.startswith("irq:") else value


def human_change(identity: str, before: str, after: str) -> str:
    """What changes of a value in bytes: ``208 KiB → 8 MiB``, of a triple the fields that differ; else empty."""
    old, new = before.split(), after.split()
    numbers = all(re.fullmatch(r"\d{1,18}", field, re.ASCII) for field in (*old, *new))
    if not _is_in_bytes(identity) or not numbers or len(old) != len(new) or len(new) > len(_FIELDS):
        return ""
    names = _FIELDS if len(new) > 1 else ("",)
    return ", ".join(
        f"{name} {format_binary(int(one))} → {format_binary(int(two))}".strip()
        for name, one, two in zip(names, old, new, strict=False)
        if one != two
    )


def _is_in_bytes(identity: str) -> bool:
    key = identity.removeprefix("sysctl:")
    return ":" not in key and (setting := find_setting(key)) is not None and setting.is_in_bytes


def restart_commands(changes: Iterable[Change]) -> tuple[str, ...]:
    """What an administrator types so that services apply their values."""
    waiting = (parse_tunable(change.tunable) for change in changes if change.takes_effect == "service-restart")
    found = (one.restart_command for one in waiting)
    return tuple(hand_command(step) for step in dict.fromkeys(found) if step is not None)
