"""Taking kernel modules away. One that makes links takes them all along, whoever made them: rmmod(8) does not call it
in use, as the kernel counts no reference for a link (rtnl_link_unregister). So it is asked first whether there are any.
"""

from __future__ import annotations

from advisor.host import RunCommand

_KINDS = {
    **{name: (name,) for name in ("dummy", "ifb", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "team", "veth")},
    **{name: (name,) for name in ("amt", "bareudp", "bridge", "geneve", "gtp", "hsr", "nlmon", "tun", "vcan", "vrf")},
    **{name: (name,) for name in ("ipip", "sit", "vsockmon", "vxcan", "vxlan", "wireguard")},
    "8021q": ("vlan",),
    "batman_adv": ("batadv",),
    "bonding": ("bond",),
    "can_dev": ("can",),
    "ib_ipoib": ("ipoib",),
    "ieee802154_6lowpan": ("lowpan",),
    "ip6_gre": ("ip6gre", "ip6gretap", "ip6erspan"),
    "ip6_tunnel": ("ip6tnl",),
    "ip6_vti": ("vti6",),
    "ip_gre": ("gre", "gretap", "erspan"),
    "ip_vti": ("vti",),
    "ppp_generic": ("ppp",),
    "xfrm_interface": ("xfrm",),
}
"""Module → the kinds of links that are gone with it: its aliases rtnl-link-KIND (modules.alias), and tun."""

# Links that a module makes by itself when it is loaded: until one is up, nobody uses it.
_OWN = "((bond|dummy|ifb|ib|can)[0-9]+|(gre|gretap|erspan|ip6gre|ip6gretap|ip6erspan|sit|ip6tnl|tunl|ip_vti|ip6_vti)0)"
# Links of all network namespaces that have a process or a name; where ip does not know the kind, the module stays.
_PLACES = "stat -L -c '%i %n' /proc/[0-9]*/ns/net /run/netns/* 2>/dev/null | sort -u -k 1,1 | cut -d ' ' -f 2"
_USED = (
    f"sed -n -E -e '/[<,]UP[,>]/!{{/^[0-9]+: {_OWN}[:@]/d;}}' -e 's/^[0-9]+: ([^:@ ]+).*/\\1/p'"
)  # fmt: skip
_REMOVE = (
    f"for place in $({_PLACES}); do for kind in $0; do"
    ' links=$(nsenter --net="$place" ip -o link show type "$kind") || exit 1;'
    f' used=$(printf "%s\\n" "$links" | {_USED});'
    ' [ -z "$used" ] || { echo "module in use: $1 makes the link" $used >&2; exit 1; };'
    ' done; done; exec rmmod "$@"'
)


def removal_command(*modules: str) -> RunCommand:
    """Removes modules in this order; fails, and removes none, where one of them makes a link that is in use."""
    kinds = [kind for module in modules for kind in _KINDS.get(module, ())]
    return (
        RunCommand(("/bin/sh", "-c", _REMOVE, " ".join(kinds), *modules)) if kinds else RunCommand(("rmmod", *modules))
    )
