"""A TuneD profile (tuned.conf(5), TuneD 2.20): what its plugins have words for.

TuneD takes values back when another profile is chosen or its daemon is stopped in order; after a kill of the daemon it
does not (the earlier values are in its memory alone). Its net plugin reads ``ethtool -k``, ``-g``, ``-l`` and ``-a``
and passes over every name that it does not find there; the indented lines below a summary
(``tcp-segmentation-offload``) are none of them.
"""

from __future__ import annotations

import re

from advisor.exporters.network_manager import RENAMED
from advisor.exporters.settings import (
    Bundle,
    Exported,
    ExportedSetting,
    elsewhere_words,
    file_head,
    left_out_words,
    reason_lines,
)
from advisor.host import WriteFile

_OPTIONS = {"ring": "ring", "channels": "channels", "feature": "features", "pause": "pause"}
_NUMBERS = ("mtu", "txqueuelen")
_BELOW_A_SUMMARY = ("tx-checksum-", "tx-scatter-gather", "tx-tcp", "tx-udp-fragmentation")
# It makes "rx" of RX before it comes to RX Mini.
_UNREAD_RINGS = ("rx-mini", "rx-jumbo")

Option = tuple[str, str]
"""TuneD's option and its text."""


def option_of(setting: ExportedSetting, wanted: Exported) -> Option | str:
    """The option for a ``link:`` setting; or why TuneD has none."""
    _, link, key = setting.tunable.split(":", 2)
    if link in wanted.virtual_links:
        return "TuneD's net plugin leaves virtual links alone"
    if key in _NUMBERS:
        return key, setting.value
    group, _, name = key.partition(".")
    if group == "coalesce":
        why = "TuneD gives up on coalescing where ethtool prints a line that it does not know, as CQE mode"
    elif group not in _OPTIONS:
        why = "TuneD's net plugin has no word for it"
    elif group == "feature" and name.startswith(_BELOW_A_SUMMARY):
        why = "TuneD has a word for it and others together alone"
    elif group == "ring" and name in _UNREAD_RINGS:
        why = "TuneD does not find it in what ethtool prints"
    elif group == "channels" and _has_none(link, wanted):
        why = "the link has no channels of a kind that is wanted now, and TuneD then sets the other kind"
    else:
        why = None
    return why or (_OPTIONS[group], f"{RENAMED.get(name, name) if group == 'feature' else name} {setting.value}")


def _has_none(link: str, wanted: Exported) -> bool:
    """Whether the link has none at present of some channels that are wanted: all go to ethtool in one command."""
    before = {one.tunable: one.before for one in wanted.plan.skipped}
    before |= {one.tunable: one.before for one in wanted.plan.changes}
    start = f"link:{link}:channels."
    return any(before.get(one.tunable, one.value) == "0" for one in wanted.settings if one.tunable.startswith(start))


_DISK_OPTIONS = {"scheduler": "elevator", "read_ahead_kb": "readahead"}
_VM_OPTIONS = {"enabled": "transparent_hugepages", "defrag": "transparent_hugepage.defrag"}
_STATIC = "dynamic=0"
"""Else TuneD slows idle links down, and sends idle disks to sleep, where dynamic_tuning is on (tuned-main.conf)."""
_OPERATORS = {"at-least": ">", "at-most": "<"}
_BY_NAME = (
    "Disks are known by the kernel's names of that host, which a restart may give to others, not by serial numbers."
)

Placed = tuple[str, list[str], str]
"""The section, the lines that begin it, and the setting's line."""


def make_tuned_profile(wanted: Exported) -> Bundle:
    """``NAME/tuned.conf``, for /etc/tuned (or /etc/tuned/profiles of newer versions)."""
    sections: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    left = []
    exact = []
    for setting in wanted.settings:
        placed = _place_setting(setting, wanted)
        if isinstance(placed, str):
            left.append(setting.skip(placed))
            continue
        section, first, line = placed
        if not line.partition("=")[2].startswith(tuple(_OPERATORS.values())):
            exact.append(setting)
        heads.setdefault(section, first)
        sections.setdefault(section, []).append(reason_lines(setting) + line)
    every = (*left, *wanted.left_out)
    about = ["A profile of TuneD; tuned-adm profile NAME activates it."]
    lines = [line for some in (*heads.values(), *sections.values()) for line in some]
    if any("/sys/block/" in line or "type=disk" in line for line in lines):
        about.append(_BY_NAME)
    head = file_head(wanted, *about, place=f"/etc/tuned/{wanted.name}/tuned.conf")
    text = head + elsewhere_words(wanted, exact) + left_out_words(every)
    text += f"\n[main]\nsummary=Exported by advisor: {wanted.name}\n"
    for section, lines in sections.items():
        text += "\n" + "\n".join([f"[{section}]", *heads[section], *_join_options(lines)]) + "\n"
    use = (f"cp -r DIRECTORY/{wanted.name} /etc/tuned/", f"tuned-adm profile {wanted.name}", "tuned-adm verify")
    return Bundle({f"{wanted.name}/tuned.conf": text.encode()}, every, use)


def _place_setting(setting: ExportedSetting, wanted: Exported) -> Placed | str:
    """The section, the lines that begin it, and the setting's line; or why TuneD has no word for it."""
    kind, _, rest = setting.tunable.partition(":")
    value = setting.value
    if "${" in value or "\\" in value:
        return "TuneD would read its value as a variable"
    match kind:
        case "sysctl":
            # The separator of TuneD's sysctl plugin is the dot alone; a name with a dot in it cannot be said.
            if "/" in rest:
                return "its key holds a name with a dot"
            return "sysctl", [], f"{rest}={_with_operator(setting)}"
        case "link":
            return _place_link(setting, wanted)
        case "block":
            device, _, attribute = rest.rpartition(":")
            option = _DISK_OPTIONS.get(attribute)
            if option is None:
                return _place_attribute(setting)
            head = ["type=disk", f"devices={device}", _STATIC]
            return f"disk_{device}", head, f"{option}={_with_operator(setting)}"
        case "thp" if rest in _VM_OPTIONS:
            return "vm", [], f"{_VM_OPTIONS[rest]}={value}"
        case _:
            return _place_attribute(setting)


def _with_operator(setting: ExportedSetting) -> str:
    """The value with the operator of its sense. TuneD compares single whole numbers; of others it would write the
    operator, too. A limit that is 0 where it is not set would be below any other, and stay so."""
    is_number = re.fullmatch(r"-?[0-9]{1,20}", setting.value)
    if not is_number or not isinstance(setting.sense, str) or setting.is_none_at_zero:
        return setting.value
    return _OPERATORS.get(setting.sense, "") + setting.value


def _place_attribute(setting: ExportedSetting) -> Placed | str:
    """A value that is one attribute below /sys, which TuneD's sysfs plugin takes whatever it means."""
    match setting.steps:
        case (WriteFile(path=path, value=value),) if path.startswith("/sys/"):
            return "sysfs", [], f"{path}={value}"
        case _:
            return "this form has no line for it"


def _place_link(setting: ExportedSetting, wanted: Exported) -> Placed | str:
    option = option_of(setting, wanted)
    if isinstance(option, str):
        return option
    key, text = option
    return (
        f"net_{setting.device}",
        ["type=net", f"devices={setting.device}", _STATIC],
        f"{key}={_with_operator(setting) if text == setting.value else text}",
    )


def _join_options(lines: list[str]) -> list[str]:
    """Options that TuneD takes once for all: ``ring=rx 4096`` and ``ring=tx 4096`` become ``ring=rx 4096 tx 4096``."""
    merged: dict[str, tuple[str, str]] = {}
    for one in lines:
        comment, end, line = one.rpartition("\n")
        key, _, value = line.partition("=")
        said, before = merged.get(key, ("", ""))
        merged[key] = said + comment + end, f"{before} {value}".strip()
    return [f"{said}{key}={value}" for key, (said, value) in merged.items()]
