"""A TuneD profile (tuned.conf(5), TuneD 2.20): what its plugins have words for.

TuneD takes values back when another profile is chosen or its daemon is stopped in order; after a kill of the daemon it
does not (the earlier values are in its memory alone).
"""

from __future__ import annotations

from advisor.host import WriteFile
from advisor.interchange.export.settings import Bundle, Exported, LeftOut, Setting
from advisor.interchange.export.words import head, left_out_words, reason

_NET_OPTIONS = {"ring": "ring", "channels": "channels", "coalesce": "coalesce", "feature": "features", "pause": "pause"}
_DISK_OPTIONS = {"scheduler": "elevator", "read_ahead_kb": "readahead"}
_VM_OPTIONS = {"enabled": "transparent_hugepages", "defrag": "transparent_hugepage.defrag"}

Placed = tuple[str, list[str], str]
"""The section, the lines that begin it, and the setting's line."""


def profile(wanted: Exported) -> Bundle:
    """``NAME/tuned.conf``, for /etc/tuned (or /etc/tuned/profiles of newer versions)."""
    sections: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    left: list[LeftOut] = []
    for setting in wanted.settings:
        placed = _placed(setting)
        if isinstance(placed, str):
            left.append(LeftOut(setting.tunable, setting.value, placed))
            continue
        section, first, line = placed
        heads.setdefault(section, first)
        sections.setdefault(section, []).append(reason(setting) + line)
    every = (*left, *wanted.left_out)
    text = head(wanted, "A profile of TuneD; tuned-adm profile NAME puts it in force.") + left_out_words(every)
    text += f"\n[main]\nsummary=Exported by advisor: {wanted.name}\n"
    for section, lines in sections.items():
        text += "\n" + "\n".join([f"[{section}]", *heads[section], *_joined(lines)]) + "\n"
    use = (f"cp -r DIRECTORY/{wanted.name} /etc/tuned/", f"tuned-adm profile {wanted.name}", "tuned-adm verify")
    return Bundle({f"{wanted.name}/tuned.conf": text.encode()}, every, use)


def _placed(setting: Setting) -> Placed | str:
    """The section, the lines that begin it, and the setting's line; or why TuneD has no word for it."""
    kind, _, rest = setting.tunable.partition(":")
    value = setting.value
    if "${" in value or "\\" in value:
        return "TuneD would read its value as a variable"
    match kind:
        case "sysctl":
            # The separator of TuneD's sysctl plugin is the dot alone; a name with a dot in it cannot be said.
            return "its key holds a name with a dot" if "/" in rest else ("sysctl", [], f"{rest}={value}")
        case "link":
            return _link(rest, value)
        case "block":
            return _block(setting, rest)
        case "thp" if rest in _VM_OPTIONS:
            return "vm", [], f"{_VM_OPTIONS[rest]}={value}"
        case _:
            return _attribute(setting)


def _attribute(setting: Setting) -> Placed | str:
    """A value that is one attribute below /sys, which TuneD's sysfs plugin takes whatever it means."""
    match setting.steps:
        case (WriteFile(path=path, value=value),) if path.startswith("/sys/"):
            return "sysfs", [], f"{path}={value}"
        case _:
            return "this form has no line for it"


def _link(rest: str, value: str) -> Placed | str:
    link, _, setting = rest.partition(":")
    group, _, key = setting.partition(".")
    section, first = f"net_{link}", ["type=net", f"devices={link}"]
    if setting in ("mtu", "txqueuelen"):
        return section, first, f"{setting}={value}"
    if group in _NET_OPTIONS:
        return section, first, f"{_NET_OPTIONS[group]}={key} {value}"
    return "TuneD's net plugin has no word for it"


def _block(setting: Setting, rest: str) -> Placed | str:
    device, _, attribute = rest.partition(":")
    option = _DISK_OPTIONS.get(attribute)
    if option is None:
        return _attribute(setting)
    return f"disk_{device}", ["type=disk", f"devices={device}"], f"{option}={setting.value}"


def _joined(lines: list[str]) -> list[str]:
    """Options that TuneD takes once for all: ``ring=rx 4096`` and ``ring=tx 4096`` become ``ring=rx 4096 tx 4096``."""
    merged: dict[str, str] = {}
    for one in lines:
        comment, _, line = one.rpartition("\n")
        key, _, value = line.partition("=")
        before = merged.get(key)
        text = f"{comment}\n" if comment else ""
        if before is None:
            merged[key] = f"{text}{key}={value}"
        else:
            merged[key] = f"{before} {value}"
    return list(merged.values())
