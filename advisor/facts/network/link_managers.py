"""netplan's YAML files: where a link is defined, and which file has the last word on its MTU (netplan(5))."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from advisor.facts.network.link_claim import (
    LinkOwner,
    is_plain,
    is_stopped,
    link_addresses,
    link_index,
    others_with,
    udev_property,
)
from advisor.facts.network.link_files import NETWORK_SCRIPTS, find_ifcfg, read_ifupdown_owner, read_sysconfig_owner
from advisor.facts.text import as_mapping, as_scalar, child, compose, descend, items, last_value, pairs, read_settings
from advisor.host import Host, Missing, lazy_regex

if TYPE_CHECKING:
    from yaml import Node

__all__ = ["LinkOwner", "read_link_owner"]

# A file hides its namesakes in the directories after its own.
_DIRECTORIES = ("/run/netplan", "/etc/netplan", "/lib/netplan", "/usr/lib/netplan")
_OF_DEVICES = lazy_regex(r"[a-z]+(-[a-z]+)*")
_NO_DEVICES = frozenset({"version", "renderer", "openvswitch"})


class Definition(msgspec.Struct, frozen=True):
    """A definition in one file: its type (``ethernets``, ``bonds`` …), and the MTU that it sets in a line there, if
    any."""

    kind: str
    path: str
    mtu: str | None
    line: int | None


def list_files(host: Host) -> tuple[str, ...]:
    """The files that netplan reads, in the order in which they amend each other: by name, whatever the directory."""
    found: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for name in host.names(directory):
            if name.endswith(".yaml") and not name.startswith("."):
                found.setdefault(name, f"{directory}/{name}")
    return tuple(found[name] for name in sorted(found))


def read_definitions(host: Host, identity: str) -> tuple[Definition, ...] | Missing:
    """Every definition with this ID, in the order in which the files are read. Missing where one cannot be read."""
    found: list[Definition] = []
    for path in list_files(host):
        content = host.read_bytes(path)
        if isinstance(content, Missing):
            return Missing("unreadable", f"{path}: {content.why}")
        here = _in_file(content, identity, path)
        if isinstance(here, Missing):
            return Missing("unreadable", f"{path}: {here.why}")
        found += here
    return tuple(found)


def _in_file(content: bytes, identity: str, path: str) -> list[Definition] | Missing:
    network = _network_of(content)
    if isinstance(network, Missing):
        return network
    if network is None or as_mapping(network) is None:
        return []
    kinds = ((kind, child(node, identity)) for kind, node in pairs(network) if kind not in _NO_DEVICES)
    found = [(kind, as_scalar(child(node, "mtu"))) for kind, node in kinds if node and _OF_DEVICES.fullmatch(kind)]
    return [
        Definition(kind, path, mtu.value if mtu else None, mtu.start_mark.line + 1 if mtu else None)
        for kind, mtu in found
    ]


def _network_of(content: bytes) -> Node | Missing | None:
    try:
        root = compose(content.decode())
    except UnicodeDecodeError:
        return Missing("unreadable", "not UTF-8")
    return root if isinstance(root, Missing) else descend(root, ("network",))


def bond_ports(host: Host) -> Iterator[tuple[str, str, str]]:
    """Yield port, bond and file of each port that a file gives to a bond; of one that is found by ``match``, under its
    ``set-name`` alone."""
    for path in list_files(host):
        content = host.read_bytes(path)
        network = None if isinstance(content, Missing) else _network_of(content)
        if network is None or isinstance(network, Missing):
            continue
        matched = {name: node for _, kind in pairs(network) for name, node in pairs(kind) if child(node, "match")}
        names = {name: as_scalar(child(node, "set-name")) for name, node in matched.items()}
        for bond, node in pairs(descend(network, ("bonds",))):
            for port in map(as_scalar, items(child(node, "interfaces"))):
                known = names.get(port.value, port) if port else None
                if known:
                    yield known.value, bond, path


def netplan_owner(
    host: Host, identity: str, shared_with: tuple[str, ...], *, profile: str | None = None
) -> LinkOwner | Missing:
    """The owner of a link that netplan has set up under this ID: by systemd-networkd, or by NetworkManager after the
    ``profile`` that it made."""
    found = read_definitions(host, identity)
    if isinstance(found, Missing):
        return found
    kinds = {one.kind for one in found}
    if len(kinds) != 1:
        return Missing("unreadable", f"netplan made its settings from {identity!r}, and its files define no such thing")
    kind = kinds.pop()
    where = found[0].path
    renderer = "NetworkManager" if profile else "systemd-networkd"
    evidence = f"netplan defines it as {kind}/{identity} in {where}, for {renderer} to set up"
    return LinkOwner("netplan", where, f"{kind}/{identity}", evidence, shared_with, profile)


# Links that NetworkManager has in hand, and its profiles on disk (NetworkManager(8), nm-settings-keyfile(5)).

UNIT = "NetworkManager.service"
KEYFILES = "/etc/NetworkManager/system-connections"
VENDOR_KEYFILES = "/usr/lib/NetworkManager/system-connections"
_VOLATILE_KEYFILES = "/run/NetworkManager/system-connections"
_DEVICES = "/run/NetworkManager/devices"
# Of several profiles with one UUID, NetworkManager takes that of the first directory.
_KEYFILE_DIRECTORIES = (_VOLATILE_KEYFILES, KEYFILES, VENDOR_KEYFILES)
_LEFT_BEHIND = lazy_regex(r"\..*|.*(~|\.bak|\.rpm(new|save|orig)|\.dpkg-\w+|\.sw.)")
_OF_NETPLAN = lazy_regex(rf"{_VOLATILE_KEYFILES}/netplan-(.+)\.nmconnection")
_TRUE = frozenset({"true", "1"})


class ConnectionProfile(msgspec.Struct, frozen=True):
    """A connection profile. ``is_external``: NetworkManager wrote down what it found and sets nothing of it.
    ``is_automatic``: it is activated as soon as its link is there."""

    path: str
    uuid: str | None
    link: str | None
    patterns: tuple[str, ...]
    mac: str | None
    is_external: bool
    is_automatic: bool


class _Device(msgspec.Struct, frozen=True):
    uuid: str | None
    line: str


def read_network_manager_owner(host: Host, link: str) -> LinkOwner | Missing | None:
    """None where NetworkManager leaves the link to others. Missing where its settings lie in no file to be edited."""
    index = link_index(host, link)
    if index is None or is_stopped(host, UNIT):
        device: _Device | Missing | None = None
    else:
        text = host.read(f"{_DEVICES}/{index}")
        if isinstance(text, Missing):
            device = None if text.is_absent else Missing("unreadable", f"{_DEVICES}/{index}: {text.why}")
        elif last_value(text, "device", "managed", continued=False) not in _TRUE:
            device = None
        else:
            uuid = last_value(text, "device", "connection-uuid", continued=False)
            device = _Device(uuid or None, f"connection-uuid={uuid}")
    if device is None or isinstance(device, Missing):
        return device
    profiles = _read_profiles(host)
    if isinstance(profiles, Missing):
        return profiles
    if device.uuid is None:
        # A link without an active profile: the only one that is made for it will be active at the next start.
        own = [one for one in profiles if one.link == link and one.is_automatic and not one.is_external]
        return _profile_owner(host, link, own[0], ()) if len(own) == 1 else None
    profile = _active_profile(host, link, profiles, device.uuid)
    shared = tuple(others_with(host, link, _DEVICES, device.line))
    if profile is not None:
        return None if profile.is_external else _profile_owner(host, link, profile, shared)
    return _ifcfg_owner(host, link, device.uuid) or _in_no_file(device.uuid)


def _read_profiles(host: Host) -> tuple[ConnectionProfile, ...] | Missing:
    found: list[ConnectionProfile] = []
    for path in profile_paths(host):
        text = host.read(path)
        if isinstance(text, Missing):
            return Missing("unreadable", f"NetworkManager has it in hand, and {path} cannot be read: {text.why}")
        said = read_settings(text, continued=False)
        found.append(
            ConnectionProfile(
                path=path,
                uuid=said.get(("connection", "uuid")),
                link=said.get(("connection", "interface-name")),
                patterns=tuple(said.get(("match", "interface-name"), "").split(";")),
                mac=said.get(("ethernet", "mac-address"), said.get(("802-3-ethernet", "mac-address"), "")).lower()
                or None,
                is_external=said.get((".nmmeta", "nm-generated")) in _TRUE,
                is_automatic=said.get(("connection", "autoconnect"), "true") in _TRUE,
            )
        )
    return tuple(found)


def _active_profile(
    host: Host, link: str, profiles: tuple[ConnectionProfile, ...], uuid: str
) -> ConnectionProfile | None:
    for one in profiles:
        if one.uuid == uuid:
            return one
    # One without a UUID, as netplan writes them, gets one that is reckoned from its path, by version in its own way.
    own = [one for one in profiles if one.uuid is None and _is_made_for(host, link, one)]
    return own[0] if len(own) == 1 else None


def _is_made_for(host: Host, link: str, profile: ConnectionProfile) -> bool:
    if profile.link is not None:
        return profile.link == link
    return profile.mac in link_addresses(host, link) or any(fnmatchcase(link, one) for one in profile.patterns)


def profile_paths(host: Host) -> Iterator[str]:
    for directory in _KEYFILE_DIRECTORIES:
        for name in host.names(directory):
            is_profile = name.endswith(".nmconnection") or directory == KEYFILES
            if is_profile and not _LEFT_BEHIND.fullmatch(name) and not host.is_dir(f"{directory}/{name}"):
                yield f"{directory}/{name}"


def _profile_owner(host: Host, link: str, profile: ConnectionProfile, shared: tuple[str, ...]) -> LinkOwner | Missing:
    generated = _OF_NETPLAN.fullmatch(profile.path)
    if generated:
        return netplan_owner(host, unquote(generated[1]), shared, profile=profile.path)
    if profile.path.startswith(_VOLATILE_KEYFILES):
        return _in_no_file(profile.uuid)
    evidence = f"NetworkManager has it in hand, by the profile {profile.path}"
    return LinkOwner("NetworkManager", profile.path, profile.uuid or link, evidence, shared)


def _ifcfg_owner(host: Host, link: str, uuid: str) -> LinkOwner | Missing | None:
    path = find_ifcfg(host, NETWORK_SCRIPTS, link, uuid)
    if path is None or isinstance(path, Missing):
        return path
    return LinkOwner("NetworkManager", path, uuid, f"NetworkManager has it in hand, by the profile {path}")


def _in_no_file(uuid: str | None) -> Missing:
    return Missing(
        "unreadable",
        f"NetworkManager has it in hand by a profile that lies in no file of {KEYFILES}: "
        f"make one with nmcli connection modify {uuid or 'UUID'}",
    )


# Links that systemd-networkd configures, its own and those that netplan hands it (systemd.network(5)).

_LINKS = "/run/systemd/netif/links"
# What is found in an earlier one hides its namesakes in later ones.
NETWORK_DIRECTORIES = (
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
)
_NETWORK_OF_NETPLAN = lazy_regex(r"/run/systemd/network/10-netplan-(.+)\.network")
_SYSTEMD_TRUE = frozenset({"1", "yes", "y", "true", "t", "on"})


class NetworkMtu(msgspec.Struct, frozen=True):
    """What a .network file and its drop-ins say about the MTU.

    ``files`` are those that set MTUBytes=, in the order in which they are read: the last one counts.
    ``from_dhcp``: the server's MTU is taken where none is set.
    """

    files: tuple[str, ...]
    from_dhcp: bool


def read_networkd_owner(host: Host, link: str) -> LinkOwner | Missing | None:
    """None where systemd-networkd has no hand in the link. Missing where netplan's own files cannot be read."""
    index = link_index(host, link)
    state = None if index is None else host.read(f"{_LINKS}/{index}")
    if not isinstance(state, str) or is_stopped(host, "systemd-networkd.service"):
        return None
    found = re.search(r"^NETWORK_FILE=(/.+\.network)$", state, re.MULTILINE)
    if not found:
        return None
    shared = tuple(others_with(host, link, _LINKS, found[0]))
    generated = _NETWORK_OF_NETPLAN.fullmatch(found[1])
    if generated:
        return netplan_owner(host, generated[1], shared)
    return LinkOwner("systemd-networkd", found[1], link, f"systemd-networkd configures it after {found[1]}", shared)


def network_files(host: Host, file: str) -> tuple[str, ...]:
    """A .network file and its drop-ins, in the order in which they are read."""
    name = file.rpartition("/")[2]
    found: dict[str, str] = {}
    for directory in NETWORK_DIRECTORIES:
        for each in host.names(f"{directory}/{name}.d"):
            if each.endswith(".conf"):
                found.setdefault(each, f"{directory}/{name}.d/{each}")
    return (file, *tuple(found[each] for each in sorted(found)))


def read_network_mtu(host: Host, file: str) -> NetworkMtu | Missing:
    """What a .network file and its drop-ins say about the MTU. Missing where one of them cannot be read."""
    setting: list[str] = []
    from_dhcp = False
    for path in network_files(host, file):
        text = host.read(path)
        if isinstance(text, Missing):
            return Missing("unreadable", f"{path}: {text.why}")
        if last_value(text, "Link", "MTUBytes", continued=True) is not None:
            setting.append(path)
        said = [last_value(text, section, "UseMTU", continued=True) for section in ("DHCP", "DHCPv4")]
        from_dhcp = next((one.lower() in _SYSTEMD_TRUE for one in reversed(said) if one is not None), from_dhcp)
    return NetworkMtu(tuple(setting), from_dhcp)


# Which network manager owns a link, and in which file it keeps the link's settings.


def read_link_owner(host: Host, link: str) -> LinkOwner | Missing:
    """The owner of a link. Missing where it is unknown, or where nothing would configure the link at boot."""
    for ask in _IN_TURN:
        found = ask(host, link)
        if isinstance(found, LinkOwner) and not is_plain(found.evidence):
            return Missing("unreadable", f"{found.manager} has it in hand, by a name that cannot be written")
        if found is not None:
            return found
    return Missing("absent", "udev does not run here, so no .link file would be read")


def _read_udev_owner(host: Host, link: str) -> LinkOwner | None:
    if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
        return None
    file = udev_property(host, link, "ID_NET_LINK_FILE")
    kind = "a port" if host.exists(f"/sys/class/net/{link}/device") else "a virtual link that others make"
    reads = f"udev reads {file} for it" if file else "udev knows no .link file for it"
    return LinkOwner("udev", file, link, f"no network manager claims it; it is {kind}, and {reads}")


_IN_TURN: tuple[Callable[[Host, str], LinkOwner | Missing | None], ...] = (
    read_network_manager_owner,
    read_networkd_owner,
    read_ifupdown_owner,
    read_sysconfig_owner,
    _read_udev_owner,
)
