"""Links that NetworkManager has in hand, and its profiles on disk (NetworkManager(8), nm-settings-keyfile(5))."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from urllib.parse import unquote

import msgspec

from advisor.facts.ini_text import last_value, read_settings
from advisor.facts.link_claim import LinkOwner, is_stopped, link_addresses, link_index, others_with
from advisor.facts.netplan import netplan_owner
from advisor.facts.sysconfig import NETWORK_SCRIPTS, find_ifcfg
from advisor.host import Host, Missing, lazy_regex

UNIT = "NetworkManager.service"
KEYFILES = "/etc/NetworkManager/system-connections"
VENDOR_KEYFILES = "/usr/lib/NetworkManager/system-connections"
_VOLATILE_KEYFILES = "/run/NetworkManager/system-connections"
_DEVICES = "/run/NetworkManager/devices"
# Of several profiles with one UUID, NetworkManager takes that of the first directory.
_DIRECTORIES = (_VOLATILE_KEYFILES, KEYFILES, VENDOR_KEYFILES)
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
    for directory in _DIRECTORIES:
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
