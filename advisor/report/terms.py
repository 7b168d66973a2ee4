"""The words for tunables: what a value counts, when it takes effect, and what a kind is called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from advisor.host import RunCommand
from advisor.host.patterns import lazy_regex
from advisor.i18n import N_, _, noun
from advisor.planning.records import Change
from advisor.report.layout import counted
from advisor.report.units import binary
from advisor.shell.rollback_script import hand_command
from advisor.tunables import Effect, Risk, Tunable, tunable
from advisor.tunables.file_key import FileKey
from advisor.tunables.unit_numa import UnitNuma
from advisor.tunables.unit_setting import UnitSetting

EFFECTS: Final[Mapping[Effect, str]] = {
    "now": N_("at once"),
    "new-sockets": N_("for sockets made from now on; those that are open keep what they have"),
    "remount": N_("at the next mount"),
    "service-restart": N_("when the service is started again, which is left to you"),
    "reboot": N_("at the next boot"),
}

RISKS: Final[Mapping[Risk, str]] = {
    "none": "",
    "link": N_("the link may lose frames for a moment while its driver takes the value up"),
    # When it takes effect says it already.
    "restart": "",
}

_NOUNS: Final[Mapping[str, str]] = {
    "sysctl": noun("kernel parameter"),
    "link": noun("link"),
    "irq": noun("interrupt"),
    "block": noun("block device setting"),
    "md": noun("md array setting"),
    "thp": noun("huge page setting"),
    "llt": noun("LLT value"),
    "unit": noun("service"),
    "file": noun("configuration key"),
    "cpufreq": noun("clock setting"),
    "intel_pstate": noun("clock setting"),
    "pm-qos": noun("latency limit"),
    "sched": noun("scheduler value"),
    "sysfs": noun("kernel attribute"),
    "module": noun("module setting"),
    "cmdline": noun("boot parameter"),
}

_BYTES = lazy_regex(
    r"sysctl:(net\.core\.([rw]mem_(default|max)|optmem_max)|net\.ipv4\.(tcp_[rw]mem|udp_[rw]mem_min)|vm\.\w+_bytes)"
)
_PACKETS = lazy_regex(r"llt:\w*(water|window)")
_FIELDS: Final = (N_("first"), N_("second"), N_("third"), N_("fourth"))


def kind_of(identity: str) -> str:
    return identity.partition(":")[0]


def short_name(identity: str) -> str:
    """The id without its kind, for where the kind is known."""
    return identity.partition(":")[2]


def counted_kind(kind: str, count: int) -> str:
    """``7 kernel parameters``."""
    return counted(count, _NOUNS.get(kind, "value"))


def unit_word(identity: str) -> str:
    """What a value counts, where a word says it: ``bytes`` of an MTU, ``packets`` of LLT; else empty."""
    if identity.startswith("link:") and identity.endswith(":mtu"):
        return _("bytes")
    if identity.startswith("pm-qos:"):
        return "µs"
    if identity.startswith("cpufreq:") and identity.endswith("_freq"):
        return "kHz"
    return _("packets") if _PACKETS.fullmatch(identity) else ""


def human_change(identity: str, before: str, after: str) -> str:
    """What changes of a value in bytes: ``208 KiB → 8 MiB``, of a triple the fields that differ; else empty."""
    old, new = before.split(), after.split()
    numbers = all(re.fullmatch(r"\d{1,18}", field, re.ASCII) for field in (*old, *new))
    if not _BYTES.fullmatch(identity) or not numbers or len(old) != len(new) or len(new) > len(_FIELDS):
        return ""
    names = _FIELDS if len(new) > 1 else ("",)
    return ", ".join(
        f"{_(name)} {binary(int(one))} → {binary(int(two))}".strip()
        for name, one, two in zip(names, old, new, strict=False)
        if one != two
    )


def restart_commands(changes: Iterable[Change]) -> tuple[str, ...]:
    """What an administrator types so that services take their values up."""
    waiting = (tunable(change.tunable) for change in changes if change.takes_effect == "service-restart")
    found = (_restart(one) for one in waiting)
    return tuple(hand_command(step) for step in dict.fromkeys(found) if step is not None)


def _restart(one: Tunable) -> RunCommand | None:
    if isinstance(one, UnitNuma | UnitSetting):
        return RunCommand(("systemctl", "restart", one.unit))
    return one.restart if isinstance(one, FileKey) else None
