"""Which of a link's settings NetworkManager can keep, and nmstate through it; offloads by the kernel's names.

After the names of libnm 1.42.4 (nm-settings-nmcli(5), ethtool) and the source of nmstate 2.2.62.
"""

from __future__ import annotations

from advisor.exporters.settings import Exported, ExportedSetting

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
