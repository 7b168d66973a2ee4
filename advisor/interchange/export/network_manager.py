"""A script of nmcli commands (nmcli(1), nm-settings-nmcli(5)) that keeps MTU and what ethtool sets in the profiles of
NetworkManager, and has them taken up: without a break for an MTU, by activating the profile anew for the rest."""

from __future__ import annotations

from advisor.interchange.export.settings import Bundle, Exported, LeftOut
from advisor.interchange.export.words import head, left_out_words, reason
from advisor.script import shell_quote

# The kernel's names of offloads are those of nm-settings; ring, coalesce, channels and pause have names of their own.
_GROUPS = ("ring", "coalesce", "channels", "feature", "pause")


def script(wanted: Exported) -> Bundle:
    """``networkmanager.sh``: one ``nmcli connection modify`` for each value, then ``nmcli device reapply``."""
    lines: dict[str, list[str]] = {}
    left: list[LeftOut] = []
    for setting in wanted.settings:
        kind, _, rest = setting.tunable.partition(":")
        link, _, key = rest.partition(":")
        name = _property(key) if kind == "link" else None
        if name is None:
            why = "NetworkManager has no word for it" if kind == "link" else "NetworkManager sets links alone"
            left.append(LeftOut(setting.tunable, setting.value, why))
            continue
        command = f"modify {shell_quote(link)} {shell_quote(name)} {shell_quote(setting.value)}"
        lines.setdefault(link, []).append(reason(setting) + command)
    every = (*left, *wanted.left_out)
    if not lines:
        return Bundle({}, every, ())
    parts = ["#!/bin/sh\n" + head(wanted, "Commands of nmcli.") + left_out_words(every) + _MODIFY]
    for link, some in lines.items():
        parts += [*some, f"take_up {shell_quote(link)}"]
    name = "networkmanager.sh"
    return Bundle({name: ("\n".join(parts) + "\n").encode()}, every, (f"sh {name}",), (name,))


_MODIFY = """\
set -eu

active() {
    nmcli --get-values GENERAL.CON-UUID device show "$1"
}

# modify LINK PROPERTY VALUE: in the profile that is active on the link
modify() {
    uuid=$(active "$1")
    [ -n "$uuid" ] || { echo "$1: no profile of NetworkManager is active on it" >&2; exit 1; }
    nmcli connection modify uuid "$uuid" "$2" "$3"
}

# take_up LINK: without a break where NetworkManager can; it activates the profile anew for what ethtool sets
take_up() {
    nmcli device reapply "$1" >/dev/null 2>&1 || nmcli connection up uuid "$(active "$1")"
}
"""


def _property(key: str) -> str | None:
    if key == "mtu":
        return "802-3-ethernet.mtu"
    group, dot, name = key.partition(".")
    return f"ethtool.{group}-{name}" if dot and group in _GROUPS else None
