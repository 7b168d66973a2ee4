"""Links for other tools: a script of nmcli commands (nmcli(1), nm-settings-nmcli(5)) that keeps MTU and what ethtool
sets in the profiles of NetworkManager, and makes it apply them: without a break for an MTU, by activating the profile
again for the rest; and a desired state for nmstate (nmstatectl apply).

After the names of libnm 1.42.4 (nm-settings-nmcli(5), ethtool) and the source of nmstate 2.2.62.
"""

from __future__ import annotations

from typing import Any

from advisor.exporters.files import dump_yaml
from advisor.exporters.settings import (
    Bundle,
    Exported,
    ExportedSetting,
    elsewhere_words,
    file_head,
    left_out_words,
    reason_lines,
)
from advisor.host.numbers import is_count
from advisor.shell.quote import shell_quote

GROUPS = ("ring", "coalesce", "feature", "pause")
SWITCHES = frozenset({"adaptive-rx", "adaptive-tx"})
"""Coalescing's switches, which are numbers to NetworkManager."""

RENAMED = {
    "rx-checksum": "rx",
    "rx-gro": "gro",
    "rx-hashing": "rxhash",
    "rx-lro": "lro",
    "rx-ntuple-filter": "ntuple",
    "rx-vlan-hw-parse": "rxvlan",
    "tx-generic-segmentation": "gso",
    "tx-vlan-hw-insert": "txvlan",
}
"""Offloads that NetworkManager calls as ethtool(8) does, and what it calls them."""

_SAME = (
    *("esp-hw-offload", "esp-tx-csum-hw-offload", "fcoe-mtu", "highdma", "hw-tc-offload", "l2-fwd-offload"),
    *("loopback", "macsec-hw-offload", "rx-all", "rx-fcs", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding"),
    *("rx-udp_tunnel-port-offload", "rx-vlan-filter", "rx-vlan-stag-filter", "rx-vlan-stag-hw-parse"),
    *("tls-hw-record", "tls-hw-rx-offload", "tls-hw-tx-offload", "tx-checksum-fcoe-crc", "tx-checksum-ip-generic"),
    *("tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-sctp", "tx-esp-segmentation", "tx-fcoe-segmentation"),
    *("tx-gre-csum-segmentation", "tx-gre-segmentation", "tx-gso-list", "tx-gso-partial", "tx-gso-robust"),
    *("tx-ipxip4-segmentation", "tx-ipxip6-segmentation", "tx-nocache-copy", "tx-scatter-gather"),
    *("tx-scatter-gather-fraglist", "tx-sctp-segmentation", "tx-tcp-ecn-segmentation"),
    *("tx-tcp-mangleid-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation"),
    *("tx-tunnel-remcsum-segmentation", "tx-udp-segmentation", "tx-udp_tnl-csum-segmentation"),
    *("tx-udp_tnl-segmentation", "tx-vlan-stag-hw-insert"),
)
_FEATURES = frozenset({*RENAMED, *_SAME})


def why_unsaid(setting: ExportedSetting, wanted: Exported, tool: str) -> str | None:
    """Why ``tool`` is not asked for a value of ``GROUPS`` or an MTU; None where it can be."""
    kind, _, rest = setting.tunable.partition(":")
    if kind != "link":
        return f"{tool} sets links alone"
    link, _, key = rest.partition(":")
    group, _, name = key.partition(".")
    if group == "feature" and name not in _FEATURES:
        return f"{tool} has no word for it"
    by_hand = any(one.tunable == f"link:{link}:pause.autoneg" and one.value == "off" for one in wanted.settings)
    if group == "pause" and name != "autoneg" and not by_hand:
        return f"{tool} sets it with the negotiation switched off alone, and pause.autoneg is not wanted off"
    return None


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


# Handed on as NetworkManager's tso and sg, each of which switches several of the kernel's features.
_WIDENED = ("feature.tx-tcp-segmentation", "feature.tx-scatter-gather")


def make_state(wanted: Exported) -> Bundle:
    """``state.yaml`` with each link that something is wanted of; all else of the links stays as it is."""
    links: dict[str, dict[str, Any]] = {}
    left = []
    for setting in wanted.settings:
        why = _why_unsaid(setting, wanted)
        if why:
            left.append(setting.skip(why))
            continue
        _, link, key = setting.tunable.split(":")
        found = links.setdefault(link, {"name": link})
        if key == "mtu":
            found["mtu"] = int(setting.value)
            continue
        group, _, name = key.partition(".")
        found.setdefault("ethtool", {}).setdefault(group, {})[name] = _yaml_value(setting.value)
    every = (*left, *wanted.left_out)
    said = (one for one in wanted.settings if _why_unsaid(one, wanted) is None)
    text = file_head(wanted, "A desired state of nmstate.") + elsewhere_words(wanted, said) + left_out_words(every)
    text += dump_yaml({"interfaces": list(links.values())})
    use = ("nmstatectl apply --no-commit --timeout 60 DIRECTORY/state.yaml", "nmstatectl commit")
    return Bundle({"state.yaml": text.encode()} if links else {}, every, use if links else ())


def _why_unsaid(setting: ExportedSetting, wanted: Exported) -> str | None:
    key = setting.tunable.rpartition(":")[2]
    if key in _WIDENED:
        return "nmstate switches others along with it"
    why = why_unsaid(setting, wanted, "nmstate")
    return why or (None if key == "mtu" or key.partition(".")[0] in GROUPS else "nmstate has no word for it")


def _yaml_value(text: str) -> bool | int | str:
    if text in ("on", "off"):
        return text == "on"
    return int(text) if is_count(text) else text
