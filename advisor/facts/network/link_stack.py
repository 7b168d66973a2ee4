"""Links in their stack: whose a link is, what its encapsulation takes, the port that a function is part of.

Names and kinds by the programs that make them: Open vSwitch, the CNI plugins, Docker, Podman, libvirt, LXD, Proxmox and
OpenStack. Overheads by the headers of each encapsulation (RFC 791, 2784, 2890, 7348, 8200, 8926; wireguard.com).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Interface

import msgspec

from advisor.facts.network.links import Link
from advisor.host import Host, Missing

IPOIB_DATAGRAM_MTU = 4092
"""The most that IPoIB takes in datagram mode: an InfiniBand MTU of 4096 less its header (kernel: ipoib.h)."""
_DRIVER_MTU = {"gve": 8896}
"""Drivers with a known largest MTU, where the kernel reports none."""


class Keeper(msgspec.Struct, frozen=True):
    """A program that makes links and sets their MTU by its own configuration. ``change`` says where to change it."""

    name: str
    change: str


_OVS = Keeper("Open vSwitch", "ovs-vsctl set Interface {link} mtu_request={mtu}")
_CNI = Keeper("the container network (CNI)", "the MTU in the configuration of the CNI plugin, on every node")
_DOCKER = Keeper("Docker or Podman", "the MTU of its network: --opt com.docker.network.driver.mtu or mtu")
_LIBVIRT = Keeper("libvirt", "<mtu size='{mtu}'/> in the network or in the guest's interface")
_LXD = Keeper("LXD or Incus", "bridge.mtu of its network")
_XAPI = Keeper("XenServer or XCP-ng", "xe network-param-set uuid=UUID MTU={mtu}")
_VIRTUAL = Keeper("VMware, VirtualBox or a VPN client", "the MTU in its own settings")
_GUEST = Keeper("a guest or container of this host", "the MTU in its definition, and inside it")

# Name of the link, its kind (an empty set for any), the program.
_KEEPERS: tuple[tuple[str, frozenset[str], Keeper], ...] = (
    (r"", frozenset({"openvswitch"}), _OVS),
    (r"(vxlan|genev|gre|erspan|gtp)_sys(_\d+)?|ovs-\w+|br-(int|tun)", frozenset(), _OVS),
    (
        r"cni\d+|cbr0|flannel[.-].+|cali[0-9a-f]{6,}|vxlan(-v6)?\.calico|wireguard\.cali|tunl0|cilium_\w+",
        frozenset(),
        _CNI,
    ),
    (
        r"lxc[0-9a-f]{8,}|lxc_health|antrea-\w+|ovn-k8s-\w+|ovn\d+|weave|vethwe-\w+|kube-\w+|nodelocaldns",
        frozenset(),
        _CNI,
    ),
    (
        r"azv[0-9a-f]+|eni[0-9a-f]{8,}|gke[0-9a-f]{8,}|cilium\w*|kube_\w+|vmi\d+|vxlan-6784|pod-id-link\d+|vlan\.eth\.\d+"
        r"|tap\d+_kata|vhost0",
        frozenset(),
        _CNI,
    ),
    (r"docker\d+|docker_gwbridge|br-[0-9a-f]{12}|(cni-)?podman\d+|nerdctl\d+", frozenset(), _DOCKER),
    (r"virbr\d+(-nic)?|vnet\d+", frozenset(), _LIBVIRT),
    (r"(lxd|lxc|incus)br\d+(-mtu)?", frozenset(), _LXD),
    (r"xenbr\d+|xapi\d+", frozenset(), _XAPI),
    (r"vmnet\d+|vboxnet\d+|tailscale\d+|zt[a-z0-9]{8,}", frozenset(), _VIRTUAL),
    (
        r"(tap|veth)\d+i\d+|fw(br|pr|ln)\d+[pi]\d+|(tap|qvo|qvb|qbr)[0-9a-f]{8}-[0-9a-f]{2}|vif\d+\.\d+(-emu)?"
        r"|v[ebz]-.+|veth[0-9a-f]{7,8}",
        frozenset(),
        _GUEST,
    ),
)
_HAND_DOWN = frozenset({"hv_netvsc", "net_failover"})
"""Drivers of a pair of links that give their MTU to the virtual function below them."""
_GUESTS = frozenset({"tap", "macvtap", "vhost"})

_OVERHEADS: Mapping[str, tuple[int, int]] = {
    "vxlan": (50, 70),
    "geneve": (50, 70),
    "gretap": (38, 58),
    "ip6gretap": (58, 58),
    "gre": (24, 44),
    "ip6gre": (44, 44),
    "ipip": (20, 20),
    "sit": (20, 20),
    "ip6tnl": (40, 40),
    "wireguard": (60, 80),
    "macsec": (32, 32),
}
"""What each kind adds to a packet of its own at least, over IPv4 and over IPv6, in bytes."""
ENCAPSULATIONS = frozenset(_OVERHEADS)


def ports_of(link: Link, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The links directly below a link that are known."""
    return tuple(links[name] for name in link.lower if name in links)


def leader_of(link: Link, links: Mapping[str, Link]) -> str | None:
    """The team or paired link that a link is a port of: it hands its MTU down, and takes a port's from nobody."""
    above = (links[name] for name in link.upper if name in links)
    return next((one.name for one in above if one.kind == "team" or one.driver in _HAND_DOWN), None)


def keeper_of(link: Link, links: Mapping[str, Link]) -> Keeper | None:
    """The program that makes a link and sets its MTU; None for one of the administrator's."""
    own = _keeper_by_name(link)
    if own is not None:
        return own
    masters = [links[name] for name in link.upper if name in links]
    above = next((found for master in masters if master.kind != "vlan" and (found := _keeper_by_name(master))), None)
    if above is not None and (above is _OVS or link.pci is None):
        return above
    return _GUEST if link.kind in _GUESTS and masters and not link.addresses else None


def _keeper_by_name(link: Link) -> Keeper | None:
    # A card is no program's by its name; to compile all patterns for it takes a hundredth of a scan.
    is_made = link.pci is None and link.name != "lo"
    for pattern, kinds, keeper in _KEEPERS:
        if link.kind in kinds or (is_made and pattern and re.fullmatch(pattern, link.name, re.ASCII)):
            return keeper
    return None


def explain_keeper(link: Link, links: Mapping[str, Link], mtu: int | str) -> str | None:
    """Why an MTU is not planned for a link that belongs to a program, and where to change it; None for others."""
    keeper = keeper_of(link, links)
    if keeper is None:
        return None
    return f"belongs to {keeper.name}: change it there ({keeper.change.format(link=link.name, mtu=mtu)})"


def overhead_bytes(link: Link) -> int:
    """Bytes that a link adds to each packet that it hands down; 0 for what encapsulates nothing."""
    v4, v6 = _OVERHEADS.get(link.kind, (0, 0))
    ends = (value for key, value in link.detail.items() if key.rpartition("_")[2].rstrip("6") in _ENDS)
    return v6 if any(":" in end for end in ends) else v4


_ENDS = frozenset({"local", "remote", "group"})


def underlays(link: Link, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The links that carry an encapsulation: those below it, else the link with its local address, else those with a
    default route; none for what encapsulates nothing, and where that is unknown."""
    if link.kind not in _OVERHEADS:
        return ()
    local = {value for key, value in link.detail.items() if key in ("local", "local6")}
    by_address = (other for other in links.values() if local & {text.partition("/")[0] for text in other.addresses})
    outward = (other for other in links.values() if other.default_route and other is not link)
    return ports_of(link, links) or tuple(by_address) or tuple(outward)


def mode_mtu(link: Link) -> int | None:
    """The most that the link's mode or driver takes, in bytes, whatever the kernel reports; None if unknown."""
    if link.kind == "infiniband" and link.detail.get("mode") == "datagram":
        return IPOIB_DATAGRAM_MTU
    return _DRIVER_MTU.get(link.driver or "")


def physical_ports(links: Iterable[Link]) -> dict[str, str]:
    """The port of each virtual function and representor, by name: the link of its physical function, or its address."""
    known = tuple(links)
    return {link.name: port for link in known if link.port_of and (port := _port_name(link, known))}


def _port_name(function: Link, links: Iterable[Link]) -> str:
    own = [link.name for link in links if link.pci == function.port_of and link.port_of is None]
    return min(own, key=len, default=function.port_of or "")


# Networks in which this host has more than one link, and how it answers ARP and checks sources there.

SETTINGS = ("rp_filter", "arp_filter", "arp_ignore", "arp_announce")
RULES = ("ip", "-j", "rule", "show")


class SubnetLink(msgspec.Struct, frozen=True):
    """A link with an address in the network; the settings as they take effect, None where unknown."""

    link: str
    rp_filter: int | None
    arp_filter: int | None
    arp_ignore: int | None
    arp_announce: int | None


class SharedSubnet(msgspec.Struct, frozen=True):
    """An IPv4 network with several links of this host. ``source_rules`` is whether routing goes by the source address
    somewhere on this host (``ip rule`` with ``from``), None where that could not be asked."""

    network: str
    links: tuple[SubnetLink, ...]
    source_rules: bool | None


def read_shared_subnets(host: Host, links: Iterable[Link]) -> tuple[SharedSubnet, ...]:
    """Networks with two links and more that are up, by address; none where there are none."""
    found: dict[str, list[str]] = {}
    for link in links:
        if link.kind == "loopback" or link.state == "down":
            continue
        for address in link.addresses:
            network = _network_of(address)
            names = found.setdefault(network, []) if network else []
            if link.name not in names:
                names.append(link.name)
    shared = {network: names for network, names in found.items() if len(names) > 1}
    if not shared:
        return ()
    done = host.run(RULES)
    rules = None if isinstance(done, Missing) or not done.ok else parse_source_rules(done.stdout)
    everywhere = {key: host.read_int(f"/proc/sys/net/ipv4/conf/all/{key}") for key in SETTINGS}
    return tuple(
        SharedSubnet(network, tuple(_subnet_link(host, name, everywhere) for name in names), rules)
        for network, names in sorted(shared.items())
    )


def _network_of(address: str) -> str | None:
    try:
        network = IPv4Interface(address).network
    except ValueError:
        return None
    # Every link may have 169.254.0.0/16, service processors' links first of all.
    return str(network) if network.prefixlen < 31 and not network.is_link_local else None


def _subnet_link(host: Host, name: str, everywhere: dict[str, int | Missing]) -> SubnetLink:
    return SubnetLink(name, *(_in_effect(host, name, key, everywhere[key]) for key in SETTINGS))


def _in_effect(host: Host, name: str, key: str, everywhere: int | Missing) -> int | None:
    own = host.read_int(f"/proc/sys/net/ipv4/conf/{name}/{key}")
    return None if isinstance(own, Missing) or isinstance(everywhere, Missing) else max(own, everywhere)


def parse_source_rules(text: str) -> bool | None:
    """Whether ``ip -j rule show`` lists one that goes by the source address; None where it is no such list."""
    import json

    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(listed, list):
        return None
    return any(isinstance(one, dict) and one.get("src") not in (None, "all") for one in listed)
