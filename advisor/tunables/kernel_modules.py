"""What there is of a kernel module on a host, by /proc/modules and what depmod(8) wrote, and how it is taken away."""

from __future__ import annotations

from advisor.host import Host, Missing, RunCommand

BUILT_IN = "is built into this kernel"
"""Why nothing is to be done to load a module."""

NAME = "[A-Za-z0-9_]{1,60}"


def module_name(name: str) -> str:
    """A module's name as /proc/modules has it: its file may be named with hyphens."""
    return name.replace("-", "_")


def is_built_in(host: Host, name: str) -> bool:
    """Whether the kernel itself holds the module, or a part of it that has parameters is called so."""
    if host.is_dir(f"/sys/module/{name}") and (host.exists("/proc/modules") or not loads_modules(host)):
        return name not in read_loaded(host)
    index = host.read_or_empty(f"{_module_directory(host)}/modules.builtin")
    return any(_module_of(line) == name for line in index.split("\n"))


def read_dependencies(host: Host, name: str) -> tuple[str, ...] | None:
    """The modules that modprobe loads along with one, in the order in which they can be removed after it; None where
    modules.dep does not list the module, or cannot be read."""
    for line in host.read_or_empty(f"{_module_directory(host)}/modules.dep").split("\n"):
        own, colon, others = line.partition(":")
        if colon and _module_of(own) == name:
            return tuple(_module_of(one) for one in others.split())
    return None


def read_loaded(host: Host) -> frozenset[str]:
    """Names of the modules that are loaded."""
    return frozenset(line.split()[0] for line in host.read_or_empty("/proc/modules").split("\n") if line.strip())


def loads_modules(host: Host) -> bool:
    """Whether this kernel can load modules: one without CONFIG_MODULES has no /proc/modules, and depmod(8) has nothing
    to list for it. A capture that lacks the file does not say so."""
    if not host.is_live:
        return True
    modules = host.read("/proc/modules")
    return not isinstance(modules, Missing) or not modules.is_absent or has_index(host)


def has_index(host: Host) -> bool:
    """Whether the list of the kernel's modules is there."""
    return host.exists(f"{_module_directory(host)}/modules.dep")


def _module_directory(host: Host) -> str:
    release = host.read("/proc/sys/kernel/osrelease")
    return "/lib/modules/none" if isinstance(release, Missing) else f"/lib/modules/{release}"


def _module_of(path: str) -> str:
    return module_name(path.rpartition("/")[2].partition(".ko")[0])


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
