"""A script of nmcli commands (nmcli(1), nm-settings-nmcli(5)) that keeps MTU and what ethtool sets in the profiles of
NetworkManager, and makes it apply them: without a break for an MTU, by activating the profile again for the rest."""

from __future__ import annotations

from advisor.exporters.ethtool_words import GROUPS, RENAMED, SWITCHES, why_unsaid
from advisor.exporters.settings import Bundle, Exported, ExportedSetting
from advisor.exporters.terms import elsewhere_words, file_head, left_out_words, reason_lines
from advisor.shell.quote import shell_quote


def make_nmcli_script(wanted: Exported) -> Bundle:
    """``networkmanager.sh``: one ``nmcli connection modify`` for each link, then ``nmcli device reapply``."""
    links: dict[str, list[ExportedSetting]] = {}
    left = []
    for setting in wanted.settings:
        why = why_unsaid(setting, wanted, "NetworkManager")
        if why is None and _nmcli_property(setting) is None:
            why = "NetworkManager has no word for it"
        if why:
            left.append(setting.skip(why))
            continue
        links.setdefault(setting.device, []).append(setting)
    every = (*left, *wanted.left_out)
    if not links:
        return Bundle({}, every, ())
    said = elsewhere_words(wanted, (one for some in links.values() for one in some))
    parts = ["#!/bin/sh\n" + file_head(wanted, "Commands of nmcli.") + said + left_out_words(every) + _MODIFY]
    parts += [_link_commands(link, some) for link, some in links.items()]
    name = "networkmanager.sh"
    return Bundle({name: ("\n".join(parts) + "\n").encode()}, every, (f"sh DIRECTORY/{name}",), (name,))


_MODIFY = """\
set -eu

active() {
    nmcli --get-values GENERAL.CON-UUID device show "$1"
}

# modify LINK PROPERTY VALUE...: in the profile that is active on the link, all of them or none
modify() {
    uuid=$(active "$1")
    [ -n "$uuid" ] || { echo "$1: no profile of NetworkManager is active on it" >&2; exit 1; }
    shift
    nmcli connection modify uuid "$uuid" "$@"
}

# take_up LINK: without a break where NetworkManager can; it activates the profile again for what ethtool sets
take_up() {
    nmcli device reapply "$1" >/dev/null 2>&1 || nmcli connection up uuid "$(active "$1")"
}
"""


def _link_commands(link: str, settings: list[ExportedSetting]) -> str:
    pairs = [words for setting in settings if (words := _nmcli_property(setting))]
    said = "".join(f" \\\n    {shell_quote(name)} {shell_quote(value)}" for name, value in pairs)
    return "".join(map(reason_lines, settings)) + f"modify {shell_quote(link)}{said}\ntake_up {shell_quote(link)}"


def _nmcli_property(setting: ExportedSetting) -> tuple[str, str] | None:
    """The property and its value, as nmcli takes them; None where it has none."""
    key = setting.tunable.rpartition(":")[2]
    if key == "mtu":
        return "802-3-ethernet.mtu", setting.value
    group, _, name = key.partition(".")
    if group not in (*GROUPS, "channels"):
        return None
    value = setting.value
    if group == "feature":
        name = RENAMED.get(name, name)
    elif name in SWITCHES:
        value = "1" if value == "on" else "0"
    return f"ethtool.{group}-{name}", value
