"""What sets a link up after the kernel has found it: .link files, and the network managers with their commands.

Sources: systemd.link(5), systemd.network(5) and src/network/networkd-sysctl.c, nm-settings-keyfile(5), interfaces(5)
with the hooks of Debian's ethtool package and the keys of ifupdown2, ifcfg(5), ifsysctl(5) and src/dhcp4/lease.c of
SUSE's wicked, sysconfig.txt of initscripts (ETHTOOL_OPTS), NetworkManager's src/core/nm-config.c (the options of a
lease among a device's state).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from advisor.facts.network.link_claim import LinkOwner, link_index, udev_property
from advisor.facts.network.link_files import NETWORK_SCRIPTS, WICKED, parse_assignments, read_ifcfg, read_stanzas
from advisor.facts.network.link_managers import (
    NETWORK_DIRECTORIES,
    bond_ports,
    network_files,
    profile_paths,
    read_definitions,
    read_link_owner,
    read_network_mtu,
)
from advisor.facts.text import parse_settings, read_settings
from advisor.facts.writers.commands import FEATURES, ethtool
from advisor.facts.writers.programs import LEASES, WICKED_LEASES, WICKED_SCRIPTS, Place, load_file, places_of
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

_SWITCHES: Mapping[str, str] = {
    **dict.fromkeys(("true", "yes", "on", "1"), "on"),
    **dict.fromkeys(("false", "no", "off", "0"), "off"),
}
_SWITCHED = lazy_regex(r"(feature|pause)\..*|coalesce\.adaptive-.*")
_OPTION = lazy_regex(
    r"(?:hardware-dma-)?ring-(?P<ring>(?:rx|tx)[a-z-]*)|(?P<plain>rx|tx)|hardware-irq-coalesce-(?P<coalesce>[a-z-]+)"
    r"|ethernet-pause-(?P<pause>rx|tx|autoneg)|offload-(?P<feature>[a-z0-9-]+)|(?P<offload>[a-z0-9]+)-offload"
)
_LINK_FILE: Mapping[str, str] = {
    **{"MTUBytes": "mtu", "TransmitQueueLength": "txqueuelen", "RxBufferSize": "ring.rx", "TxBufferSize": "ring.tx"},
    **{"RxMiniBufferSize": "ring.rx-mini", "RxJumboBufferSize": "ring.rx-jumbo", "RxChannels": "channels.rx"},
    **{"TxChannels": "channels.tx", "OtherChannels": "channels.other", "CombinedChannels": "channels.combined"},
    **{"RxFlowControl": "pause.rx", "TxFlowControl": "pause.tx", "AutoNegotiationFlowControl": "pause.autoneg"},
    **{"UseAdaptiveRxCoalesce": "coalesce.adaptive-rx", "UseAdaptiveTxCoalesce": "coalesce.adaptive-tx"},
    **{"RxMaxCoalescedFrames": "coalesce.rx-frames", "TxMaxCoalescedFrames": "coalesce.tx-frames"},
    **{"GenericReceiveOffload": "feature.rx-gro", "LargeReceiveOffload": "feature.rx-lro"},
    **{
        "GenericSegmentationOffload": "feature.tx-generic-segmentation",
        "ReceiveChecksumOffload": "feature.rx-checksum",
    },
    **{
        "TCPSegmentationOffload": "feature.tx-tcp-segmentation",
        "TCP6SegmentationOffload": "feature.tx-tcp6-segmentation",
    },
}
_FORWARDING = ("sysctl:net.ipv4.conf.{}.forwarding", "sysctl:net.ipv6.conf.{}.forwarding")
_FORWARDING_OF_ALL = ("sysctl:net.ipv4.ip_forward", "sysctl:net.ipv6.conf.all.forwarding")
_FAMILIES: Mapping[str, tuple[int, ...]] = {"yes": (0, 1), "both": (0, 1), "ipv4": (0,), "ipv6": (1,)}
_NETWORK: Mapping[tuple[str, str], str] = {
    ("Link", "MTUBytes"): "mtu",
    ("Network", "IPv4Forwarding"): _FORWARDING[0],
    ("Network", "IPv6Forwarding"): _FORWARDING[1],
    ("Network", "IPv4ReversePathFilter"): "sysctl:net.ipv4.conf.{}.rp_filter",
    ("Network", "IPv6MTUBytes"): "sysctl:net.ipv6.conf.{}.mtu",
    ("Network", "IPv4AcceptLocal"): "sysctl:net.ipv4.conf.{}.accept_local",
    ("Network", "IPv4RouteLocalnet"): "sysctl:net.ipv4.conf.{}.route_localnet",
    ("Network", "IPv4ProxyARP"): "sysctl:net.ipv4.conf.{}.proxy_arp",
    ("Network", "IPv6ProxyNDP"): "sysctl:net.ipv6.conf.{}.proxy_ndp",
    ("Network", "IPv6HopLimit"): "sysctl:net.ipv6.conf.{}.hop_limit",
    ("Network", "IPv6DuplicateAddressDetection"): "sysctl:net.ipv6.conf.{}.dad_transmits",
}
_PRIVACY: Mapping[str, str] = {"on": "2", "off": "0", "prefer-public": "1"}
_USE_TEMPADDR, _ACCEPT_RA = "sysctl:net.ipv6.conf.{}.use_tempaddr", "sysctl:net.ipv6.conf.{}.accept_ra"
_NUMBERS: Mapping[str, str] = {
    **{word: "0" if sign == "off" else "1" for word, sign in _SWITCHES.items()},
    **{"strict": "1", "loose": "2"},
}
_QDISCS: Mapping[str, str] = {
    **{"BFIFO": "bfifo", "CAKE": "cake", "ControlledDelay": "codel", "DeficitRoundRobinScheduler": "drr"},
    **{"EnhancedTransmissionSelection": "ets", "FairQueueing": "fq", "FairQueueingControlledDelay": "fq_codel"},
    **{"FlowQueuePIE": "fq_pie", "HeavyHitterFilter": "hhf", "HierarchyTokenBucket": "htb", "NetworkEmulator": "netem"},
    **{"PFIFO": "pfifo", "PFIFOFast": "pfifo_fast", "PFIFOHeadDrop": "pfifo_head_drop", "PIE": "pie"},
    **{"QuickFairQueueing": "qfq", "StochasticFairBlue": "sfb", "StochasticFairnessQueueing": "sfq"},
    **{"TokenBucketFilter": "tbf", "BandMultiQueueing": "multiq"},
}
"""Sections of systemd.network(5), each the root qdisc of its link unless it names another parent."""
_KEYFILE = {"link.tx-queue-length": "txqueuelen", "tc.qdisc.root": "qdisc", "ipv6.ip6-privacy": _USE_TEMPADDR}
_DHCP = "the DHCP server"
_COMMANDS = ("up", "post-up", "pre-up")
_MOST_LINKS = 128
_DEVICE = lazy_regex(r"\$(?:\{DEVICE\}|DEVICE\b)")


def _links(host: Host) -> list[str]:
    """Ports, and virtual links of the kinds that managers make; not the ends of containers and guests."""
    place = "/sys/class/net"
    return [
        name
        for name in host.names(place)
        if host.exists(f"{place}/{name}/device") or "DEVTYPE=" in host.read_or_empty(f"{place}/{name}/uevent")
    ][:_MOST_LINKS]


def _owners(host: Host) -> Iterator[tuple[str, LinkOwner]]:
    for link in _links(host):
        owner = read_link_owner(host, link)
        if not isinstance(owner, Missing):
            yield link, owner


def _value(name: str, value: str) -> str:
    return _SWITCHES.get(value.lower(), value) if _SWITCHED.fullmatch(name) else value


def _line_of(text: str, key: str, value: str = "") -> int | None:
    """The last line of a file that begins with this key, and gives it a value that begins so."""
    pattern = re.compile(rf"[ \t]*(?:export[ \t]+)?{re.escape(key)}[ \t]*=[ \t]*{re.escape(value)}")
    return max((number for number, line in enumerate(text.split("\n"), 1) if pattern.match(line)), default=None)


def read_link_files(host: Host) -> Iterator[Place]:
    """Yield what the .link file that udev found for each link sets."""
    for link in _links(host):
        file = udev_property(host, link, "ID_NET_LINK_FILE")
        text = host.read_or_empty(file) if file else ""
        for section, key, value in parse_settings(text, continued=True):
            if section == "Link" and (name := _LINK_FILE.get(key)):
                said = None if value == "max" else _value(name, value)
                yield Place(f"link:{link}:{name}", said, file, _line_of(text, key))


def read_managers(host: Host) -> Iterator[Place]:
    """Yield what the network manager of each link sets when it brings the link up, and the ports that the managers'
    files give to bonds of this host, as ``link:PORT:master``."""
    yield from _read_bond_ports(host)
    for link, owner in _owners(host):
        reader = _READERS.get(owner.manager)
        if reader is not None and (owner.profile or owner.file):
            for one in reader(host, link, owner):
                tunable = one.tunable if ":" in one.tunable else f"link:{link}:{one.tunable}"
                yield Place(tunable, one.value, one.file, one.line, one.by or owner.manager)


def read_manager_commands(host: Host) -> Iterator[Place]:
    """Yield what the commands of the stanzas in /etc/network/interfaces set, after the link is up."""
    for link, owner in _owners(host):
        for path, line, words in _options(host, owner) if owner.manager == "ifupdown" else ():
            if words[0] in _COMMANDS:
                yield from places_of(host, " ".join(words[1:]), path, line, "ifupdown", link)


def _options(host: Host, owner: LinkOwner) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    placed = read_stanzas(host)
    for one in () if isinstance(placed, Missing) else placed:
        if one.stanza.interface == owner.name:
            content = host.read_bytes(one.path)
            text = "" if isinstance(content, Missing) else content.decode("utf-8", "surrogateescape")
            for option in one.stanza.options:
                yield one.path, 1 + text.count("\n", 0, option.start), option.words


def _in_interfaces(host: Host, link: str, owner: LinkOwner) -> Iterator[Place]:
    for path, line, words in _options(host, owner):
        found = _OPTION.fullmatch(words[0]) if len(words) == 2 else None
        if len(words) == 2 and words[0] == "mtu":
            yield Place("mtu", words[1], path, line)
        elif found is not None:
            group = str(found.lastgroup).replace("plain", "ring").replace("offload", "feature")
            key = found[found.lastgroup or 0]
            for name in FEATURES.get(key, (key,)) if group == "feature" else (key,):
                yield Place(f"{group}.{name}", _value(f"{group}.{name}", words[1]), path, line)


def _leased(host: Host, pattern: str, path: str) -> Iterator[Place]:
    """The MTU that a DHCP server gave, where the link's own file sets none."""
    text = host.read_or_empty(path)
    if found := re.search(pattern, text):
        yield Place("mtu", found[1], path, 1 + text.count("\n", 0, found.start(1)), _DHCP)


def _in_ifcfg(host: Host, link: str, owner: LinkOwner) -> Iterator[Place]:
    path = str(owner.file)
    text = host.read_or_empty(path)
    if owner.manager == "wicked":
        yield from _leased(host, r"<mtu>([0-9]+)</mtu>", f"{WICKED_LEASES}/lease-{link}-dhcp-ipv4.xml")
        yield from _wicked_scripts(host, link, path)
        for file in (f"{WICKED}/ifsysctl", f"{WICKED}/ifsysctl-{link}"):
            yield from load_file(host, file)
    for name, value in parse_assignments(text).items():
        line = _line_of(text, name)
        if name == "MTU" and value:
            yield Place("mtu", value, path, line)
        elif re.fullmatch(r"ETHTOOL_OPT(S|IONS(_\w+)?)", name):
            for part in _DEVICE.sub(link, value).split(";"):
                for tunable, said in ethtool(part.split(), link):
                    yield Place(tunable.partition(f"link:{link}:")[2], said, path, line)


def _wicked_scripts(host: Host, link: str, path: str) -> Iterator[Place]:
    """What the scripts of ifcfg(5) set: ``wicked:`` and ``compat:suse:``, each a path or a name below a directory."""
    common, own = (parse_assignments(host.read_or_empty(one)) for one in (f"{WICKED}/config", path))
    for name in ("PRE_UP_SCRIPT", "POST_UP_SCRIPT"):
        for word in (own.get(name) or common.get(name, "")).split():
            scheme, _, script = word.rpartition(":")
            for place in WICKED_SCRIPTS if scheme in ("", "wicked", "compat:suse") else ():
                file = script if script.startswith("/") else f"{place}/{script}"
                if host.exists(file):
                    yield from places_of(host, host.read_or_empty(file), file, None, "wicked", link)
                    break


def _in_keyfile(host: Host, link: str, owner: LinkOwner) -> Iterator[Place]:
    path = owner.profile or str(owner.file)
    device = f"/run/NetworkManager/devices/{link_index(host, link)}"
    yield from _leased(host, r"(?m)^dhcp4\.interface_mtu=([0-9]+)$", device)
    if "/ifcfg-" in path:
        yield from _in_ifcfg(host, link, owner)
        return
    text = host.read_or_empty(path)
    for section, key, value in parse_settings(text, continued=False):
        group, _, name = key.partition("-")
        if section == "ethtool" and group in ("ring", "channels", "coalesce", "pause", "feature"):
            for one in FEATURES.get(name, (name,)) if group == "feature" else (name,):
                yield Place(f"{group}.{one}", _value(f"{group}.{one}", value), path, _line_of(text, key))
        elif key == "mtu" and value != "0":
            yield Place("mtu", value, path, _line_of(text, key))
        elif (name := _KEYFILE.get(f"{section}.{key}", "")) and value not in ("", "-1"):
            yield Place(name.format(link), value.split()[0], path, _line_of(text, key))
        elif (section, key, value) == ("ipv6", "method", "disabled"):
            yield Place(f"sysctl:net.ipv6.conf.{link}.disable_ipv6", "1", path, _line_of(text, key, value))


def _in_network(host: Host, link: str, owner: LinkOwner) -> Iterator[Place]:
    yield from _in_network_file(host, link, str(owner.file))


def _in_network_file(host: Host, link: str, file: str) -> Iterator[Place]:
    said = read_network_mtu(host, file)
    if isinstance(said, Missing):
        return
    if said.from_dhcp and not said.files:
        lease = re.search(r"(?m)^MTU=([0-9]+)$", host.read_or_empty(f"{LEASES[0]}/{link_index(host, link)}"))
        if lease:
            yield Place("mtu", lease[1], file, _line_of(host.read_or_empty(file), "UseMTU"), _DHCP)
    has_ipv6 = True
    for path in network_files(host, file):
        text = host.read_or_empty(path)
        for section, key, value in parse_settings(text, continued=True):
            if (section, key) == ("Network", "LinkLocalAddressing"):
                has_ipv6 = _SWITCHES.get(value.lower(), value) in ("on", "ipv6")
            for tunable, number in _of_network(section, key, value):
                yield Place(tunable.format(link), number, path, _line_of(text, key, value))
    if has_ipv6:
        # It takes routers' advertisements itself, whatever IPv6AcceptRA= says, and keeps the kernel from it.
        yield Place(_ACCEPT_RA.format(link), "0", file)


def _of_network(section: str, key: str, value: str) -> Iterator[tuple[str, str]]:
    if name := _NETWORK.get((section, key)):
        yield name, value if key == "MTUBytes" else _NUMBERS.get(value.lower(), value)
    elif (section, key) == ("Network", "IPv6PrivacyExtensions"):
        if number := _PRIVACY.get(_SWITCHES.get(value.lower(), value)):
            yield _USE_TEMPADDR, number
    elif section == "Network" and key in ("IPForward", "IPMasquerade"):
        for family in _FAMILIES.get(value.lower().replace("true", "yes"), ()):
            yield _FORWARDING_OF_ALL[family], "1"
            yield _FORWARDING[family], "1"
    elif section in _QDISCS and (key != "Parent" or value == "root"):
        yield "qdisc", _QDISCS[section]


def _read_bond_ports(host: Host) -> Iterator[Place]:
    place = "/sys/class/net"
    bonds = {name for name in host.names(place) if host.exists(f"{place}/{name}/bonding")}
    for by, read in _PORT_READERS.items() if bonds else ():
        for port, bond, file in read(host):
            if bond in bonds and re.fullmatch(r"[\w.:-]+", port) and port != "none":
                yield Place(f"link:{port}:master", bond, file, by=by)


def _ports_in_networks(host: Host) -> Iterator[tuple[str, str, str]]:
    for directory in NETWORK_DIRECTORIES:
        for name in host.names(directory):
            path = f"{directory}/{name}"
            if name.endswith(".network"):
                said = read_settings(host.read_or_empty(path), continued=True)
                for port in said.get(("Match", "Name"), "").split():
                    yield port, said.get(("Network", "Bond"), ""), path


def _ports_in_keyfiles(host: Host) -> Iterator[tuple[str, str, str]]:
    profiles = {path: read_settings(host.read_or_empty(path), continued=False) for path in profile_paths(host)}
    names = {said.get(("connection", "uuid"), ""): said.get(_OWN_NAME, "") for said in profiles.values()}
    for path, said in profiles.items():
        master = said.get(("connection", "controller")) or said.get(("connection", "master"), "")
        yield said.get(_OWN_NAME, ""), names.get(master) or master, path


def _ports_in_ifcfg(host: Host) -> Iterator[tuple[str, str, str]]:
    for directory in (NETWORK_SCRIPTS, WICKED):
        files = read_ifcfg(host, directory)
        for path, said in () if isinstance(files, Missing) else files.items():
            name = said.get("DEVICE") or path.partition("/ifcfg-")[2]
            yield name, said.get("MASTER", ""), path
            yield from ((port, name, path) for key, port in said.items() if key.startswith("BONDING_SLAVE"))


def _ports_in_interfaces(host: Host) -> Iterator[tuple[str, str, str]]:
    placed = read_stanzas(host)
    for one in () if isinstance(placed, Missing) else placed:
        name = one.stanza.interface or ""
        for option in one.stanza.options:
            key, *words = option.words
            if key.replace("_", "-") in ("bond-slaves", "slaves"):
                yield from ((port, name, one.path) for port in words)
            elif key.replace("_", "-") == "bond-master":
                yield from ((name, bond, one.path) for bond in words)


def _in_netplan(host: Host, link: str, owner: LinkOwner) -> Iterator[Place]:
    kind, _, identity = owner.name.partition("/")
    if owner.profile:
        yield from _in_keyfile(host, link, owner)
    else:
        yield from _in_network_file(host, link, f"/run/systemd/network/10-netplan-{identity}.network")
    defined = read_definitions(host, identity)
    for one in () if isinstance(defined, Missing) else defined:
        # Both renderers' files are made of these lines.
        if one.kind == kind and one.mtu is not None:
            yield Place("mtu", one.mtu, one.path, one.line)


def read_leases(host: Host) -> Iterator[Place]:
    """Yield the MTU that a DHCP server gave dhclient for links of ifupdown and of network scripts (dhclient-script(8));
    of several leases the last counts."""
    texts = [
        (path, host.read_or_empty(path))
        for place in LEASES[1:]
        for path in (f"{place}/{name}" for name in host.names(place))
    ]
    for link, owner in _owners(host) if texts else ():
        for path, text in texts if owner.manager in ("ifupdown", "network-scripts") else ():
            for lease in text.split("lease {") if f'interface "{link}"' in text else ():
                mtu = re.search(r"option interface-mtu ([0-9]+);", lease)
                if mtu and f'interface "{link}"' in lease:
                    yield Place(f"link:{link}:mtu", mtu[1], path)


_OWN_NAME = ("connection", "interface-name")
_PORT_READERS: Mapping[str, Callable[[Host], Iterator[tuple[str, str, str]]]] = {
    "NetworkManager": _ports_in_keyfiles,
    "systemd-networkd": _ports_in_networks,
    "netplan": bond_ports,
    "ifupdown": _ports_in_interfaces,
    "ifcfg files": _ports_in_ifcfg,
}
"""What names the ports of bonds: port, bond and file."""
_READERS: Mapping[str, Callable[[Host, str, LinkOwner], Iterator[Place]]] = {
    "NetworkManager": _in_keyfile,
    "systemd-networkd": _in_network,
    "netplan": _in_netplan,
    "ifupdown": _in_interfaces,
    "network-scripts": _in_ifcfg,
    "wicked": _in_ifcfg,
}
