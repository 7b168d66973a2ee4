"""netplan's YAML files: where a link is defined, and which file has the last word on its MTU (netplan(5))."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from advisor.facts.link_claim import LinkOwner
from advisor.facts.yaml_tree import as_mapping, as_scalar, child, compose, descend, items, pairs
from advisor.host import Host, Missing, lazy_regex

if TYPE_CHECKING:
    from yaml import Node

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
