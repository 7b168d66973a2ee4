"""Attributes of one host while they are collected: values by dotted name, and what is unknown of them; those of storage
(disks, arrays, file systems and RAID controllers) and of services (LLT and InfoScale, iSCSI, BeeGFS, IRIS).

Names of disks are a matter of the order in which they were found, so disks are compared by kind and model: how many,
and which settings they have. An array or a file system is known by where it is mounted, else by its name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import TypeVar

import msgspec

from advisor.facts.block.block import Array
from advisor.facts.block.controller import Controller
from advisor.facts.block.disks import Disk
from advisor.facts.clusters.iris import Iris
from advisor.facts.clusters.llt import Llt
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.remote.iscsi import Iscsi
from advisor.facts.text import printable
from advisor.host.numbers import group_pairs, is_count
from advisor.host.patterns import lazy_regex

Value = str | int

MAX_TEXT = 200
MAX_ATTRIBUTES = 4000
MAX_UNKNOWN = 400


def shorten_text(text: str) -> str:
    """The text, or its beginning and a digest of it all where it is longer than 200 characters."""
    shown = printable(text)
    if len(shown) <= MAX_TEXT:
        return shown
    digest = hashlib.blake2b(shown.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{shown[: MAX_TEXT - 20]}… #{digest}"


class Collected:
    """What one host has. A host with more attributes than any honest one keeps the first, and the rest is unknown."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self._unknown: dict[str, None] = {}

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(sorted(self._unknown))

    def put(self, name: str, value: Value | None) -> None:
        """An attribute; None is one that the host does not have."""
        if value is None:
            return
        if len(self.values) >= MAX_ATTRIBUTES:
            self._unknown.setdefault("*")
            return
        # True and 1 would be one value.
        self.values[shorten_text(name)] = shorten_text(value) if isinstance(value, str) else int(value)

    def known(self, name: str, value: Value | None) -> None:
        """An attribute that every host has: None is unknown."""
        self.put(name, value)
        if value is None:
            self.unknown(name)

    def fields(self, base: str, record: object, *names: str) -> None:
        """Attributes of the same names as the fields of a record; what a mapping has besides is `entries`."""
        for name in names:
            self.put(f"{base}.{name}", getattr(record, name))

    def entries(self, base: str, mapping: Mapping[str, Value | None], without: Container[str] = ()) -> None:
        for name, value in mapping.items():
            if name not in without:
                self.put(f"{base}.{name}", value)

    def flag(self, name: str, value: bool | None) -> None:
        self.put(name, None if value is None else "yes" if value else "no")

    def unknown(self, *patterns: str) -> None:
        for pattern in patterns:
            if len(self._unknown) < MAX_UNKNOWN:
                self._unknown.setdefault(shorten_text(pattern))
            else:
                self._unknown.setdefault("*")

    def several(self, name: str, values: Iterable[Value | None]) -> None:
        """One attribute of things that are alike: the value that all have, or each value and how many have it."""
        counts = Counter("unset" if value is None else shorten_text(str(value)) for value in values)
        if len(counts) == 1 and "unset" not in counts:
            self.put(name, next(iter(counts)))
        elif len(counts) > 1:
            self.put(name, ", ".join(f"{value} ×{count}" for value, count in sorted(counts.items())))


MAX_OBJECTS = 64
# What a package mounts comes and goes with its version.
_PASSING = frozenset({"squashfs", "iso9660"})
_PASSING_DISKS = frozenset({"loop", "zram", "ram", "nbd"})
OWN_DETAIL = frozenset({"backing_file", "path_states", "wwid", "dm_name"})
"""Keys of `Disk.detail` and `Array.detail` that are of one host: names of devices, states, numbers that move."""
# What names a device or a place of one host.
_OWN_OPTION = lazy_regex(r"(journal_path|logdev|rtdev|subvolid)=.*", re.DOTALL)

T = TypeVar("T")


def collect_storage(facts: Facts, found: Collected) -> None:
    """Attributes ``disk.MODEL.…``, ``array.ROLE.…``, ``filesystem.MOUNTPOINT.…`` and ``controller.NAME.…``."""
    noted = {one.fact for one in facts.unknown}
    _collect_disks([disk for disk in facts.disks if disk.kind not in _PASSING_DISKS], noted, found)
    for array in _first_objects(facts.arrays, "array.*", found):
        _collect_array(array, noted, found)
    mounted = [one for one in facts.filesystems if one.mountpoints and one.kind not in _PASSING]
    for filesystem in _first_objects(mounted, "filesystem.*", found):
        base = f"filesystem.{filesystem.mountpoints[0]}"
        found.put(f"{base}.present", "yes")
        found.put(f"{base}.kind", filesystem.kind)
        if filesystem.options is not None:
            words = {word for word in filesystem.options.split(",") if not _OWN_OPTION.fullmatch(word)}
            found.put(f"{base}.options", ",".join(sorted(words)))
        found.fields(base, filesystem, "block_bytes", "stripe_unit_bytes", "stripe_width_bytes")
    for controller in _first_objects(facts.controllers, "controller.*", found):
        _collect_controller(controller, found)


def _first_objects(objects: Sequence[T], pattern: str, found: Collected) -> Sequence[T]:
    if len(objects) > MAX_OBJECTS:
        found.unknown(pattern)
    return objects[:MAX_OBJECTS]


def _collect_disks(disks: Sequence[Disk], noted: Collection[str], found: Collected) -> None:
    models = group_pairs((disk.model or disk.kind, disk) for disk in disks)
    for model, alike in _first_objects(sorted(models.items()), "disk.*", found):
        base = f"disk.{model}"
        found.put(f"{base}.present", "yes")
        found.put(f"{base}.count", len(alike))
        found.several(f"{base}.size_bytes", [disk.size_bytes for disk in alike])
        found.several(f"{base}.scheduler", [disk.scheduler for disk in alike])
        names = {name for disk in alike for name in disk.queue if name != "scheduler"}
        for name in sorted(names):
            found.several(f"{base}.queue.{name}", [disk.queue.get(name) for disk in alike])
        details = {name for disk in alike for name in disk.detail if name not in OWN_DETAIL}
        for name in sorted(details):
            found.several(f"{base}.detail.{name}", [disk.detail.get(name) for disk in alike])
        found.several(f"{base}.pcie", [f"x{one.pcie.width} {one.pcie.speed_gts} GT/s" for one in alike if one.pcie])
        for disk in alike:
            prefix = f"disks.{disk.name}."
            leaves = (fact[len(prefix) :] for fact in noted if fact.startswith(prefix))
            found.unknown(*(pattern for leaf in leaves for pattern in (f"{base}.{leaf}", f"{base}.{leaf}.*")))


def _collect_array(array: Array, noted: Collection[str], found: Collected) -> None:
    role = array.mountpoints[0] if array.mountpoints else array.name
    base = f"array.{role}"
    found.put(f"{base}.present", "yes")
    found.fields(base, array, "manager", "level", "chunk_bytes", "data_disks", "state", "missing")
    for name in ("members", "spares", "failed", "journal"):
        found.put(f"{base}.{name}", len(getattr(array, name)))
    found.put(f"{base}.numa_nodes", ", ".join(map(str, array.numa_nodes)) or None)
    found.entries(f"{base}.queue", array.queue)
    found.entries(f"{base}.detail", array.detail, OWN_DETAIL)
    prefix = f"arrays.{array.name}."
    found.unknown(*(f"{base}.{fact[len(prefix) :]}" for fact in noted if fact.startswith(prefix)))


def _collect_controller(controller: Controller, found: Collected) -> None:
    base = f"controller.{controller.name}"
    found.put(f"{base}.present", "yes")
    found.fields(base, controller, "model", "firmware")
    found.flag(f"{base}.protection_healthy", controller.is_protected)
    found.put(f"{base}.volumes", len(controller.volumes))
    for name in ("level", "state", "write_policy", "cache", "chunk_bytes", "drives"):
        found.several(f"{base}.volume.{name}", [getattr(one, name) for one in controller.volumes])


# What names this host, its addresses or its places.
_OWN_DIRECTIVES = ("set-node", "set-addr", "link", "set-cluster")
_OWN_BEEGFS = frozenset({"connInterfacesFile", "connNetFilterFile", "connTcpOnlyFilterFile", "connAuthFile"})
_OWN_NODE = ("iface.", "node.name", "node.tpgt", "node.conn[0].address", "node.discovery")
_SESSION = (
    *("recovery_seconds", "first_burst_bytes", "max_burst_bytes", "immediate_data", "initial_r2t", "can_queue"),
    "state",
)


def llt_cluster(facts: Facts) -> str | None:
    """The id of the host's LLT cluster, by /etc/llttab."""
    return facts.llt.llttab.cluster if facts.llt and facts.llt.llttab else None


def llt_node(facts: Facts) -> str | None:
    """The host's id in its LLT cluster: as LLT itself says, or by /etc/llttab and /etc/llthosts."""
    if facts.llt is None:
        return None
    own = next((str(node.id) for node in facts.llt.nodes if node.is_self), None)
    name = facts.llt.llttab.node if facts.llt.llttab else None
    if own or name is None or is_count(name):
        return own or name
    hosts = facts.infoscale.hosts if facts.infoscale else ()
    return next((str(one.id) for one in hosts if one.name == name), None)


def collect_services(facts: Facts, found: Collected) -> None:
    found.put("llt.present", "yes" if facts.llt else None)
    if facts.llt:
        _collect_llt(facts.llt, found)
    if facts.infoscale:
        infoscale = facts.infoscale
        found.fields("infoscale", infoscale, "configuration", "seed_nodes")
        hosts = sorted((one.id, one.name) for one in infoscale.hosts)
        found.put("infoscale.llthosts", "; ".join(f"{number} {name}" for number, name in hosts) or None)
        if infoscale.vcs:
            found.put("infoscale.systems", ", ".join(sorted(infoscale.vcs.systems)) or None)
            found.put("infoscale.resources", len(infoscale.vcs.resources))
        if infoscale.disks is None:
            found.unknown("infoscale.disks")
        elif infoscale.disks:
            found.several("infoscale.disks", [" ".join((one.type, *sorted(one.status))) for one in infoscale.disks])
    if facts.iscsi:
        _collect_iscsi(facts.iscsi, found)
    if facts.beegfs:
        for service in facts.beegfs.services:
            base = f"beegfs.{service.kind}" + (f".{service.instance}" if service.instance else "")
            found.put(f"{base}.targets", len(service.targets))
            found.several(f"{base}.level", [target.level for target in service.targets])
            found.several(f"{base}.filesystem", [target.filesystem for target in service.targets])
            for name, value in service.settings.items():
                if name not in _OWN_BEEGFS and not name.startswith("store"):
                    found.put(f"{base}.{name}", value)
            if service.service:
                found.put(f"{base}.numa_policy", service.service.numa_policy)
        found.several(
            "beegfs.stripe", [f"{one.entry.chunk_bytes}×{one.entry.targets}" for one in facts.beegfs.patterns]
        )
    for number, instance in enumerate(facts.iris, 1):
        _collect_iris(instance, f"iris.{instance.name or number}", found)


def _collect_llt(llt: Llt, found: Collected) -> None:
    found.flag("llt.running", llt.running)
    if llt.running is None:
        found.unknown("llt.running")
    if not llt.running:
        found.unknown("llt.flow.*", "llt.timer.*", "llt.nodes")
    found.entries("llt.flow", llt.flow_control)
    found.entries("llt.timer", llt.timers)
    found.put("llt.links", sum(not one.low_priority for one in llt.links))
    found.put("llt.links_low_priority", sum(one.low_priority for one in llt.links))
    found.several("llt.link_type", [one.type for one in llt.links if not one.low_priority])
    found.several("llt.link_mtu", ["default" if one.mtu is None else one.mtu for one in llt.links])
    found.put("llt.nodes", len(llt.nodes) or None)
    if llt.llttab:
        found.entries("llt.file.flow", llt.llttab.flow)
        found.entries("llt.file.timer", llt.llttab.timers)
        words = sorted(line for line in llt.llttab.other if not line.startswith(_OWN_DIRECTIVES))
        found.put("llt.file.other", "; ".join(words) or None)


def _collect_iscsi(iscsi: Iscsi, found: Collected) -> None:
    found.put("iscsi.sessions", len(iscsi.sessions))
    found.put("iscsi.disks_with_multipath", len(iscsi.multipath_disks))
    found.entries("iscsi.file", iscsi.settings)
    for name in _SESSION:
        found.several(f"iscsi.session.{name}", [_text_or_none(getattr(session, name)) for session in iscsi.sessions])
    connections = [one for session in iscsi.sessions for one in session.connections]
    for name in ("header_digest", "data_digest", "max_recv_bytes"):
        found.several(f"iscsi.connection.{name}", [_text_or_none(getattr(one, name)) for one in connections])
    names = sorted({name for node in iscsi.nodes for name in node.settings if not name.startswith(_OWN_NODE)})
    for name in names:
        found.several(f"iscsi.node.{name}", [node.settings.get(name) for node in iscsi.nodes])


def _text_or_none(value: str | int | bool | None) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else str(value)


def _collect_iris(instance: Iris, base: str, found: Collected) -> None:
    found.put(f"{base}.version", instance.version)
    found.flag(f"{base}.running", instance.running)
    if instance.settings is None:
        found.unknown(f"{base}.cpf.*")
        return
    for name in instance.settings.__struct_fields__:
        value = getattr(instance.settings, name)
        if name == "databases":
            continue
        found.put(f"{base}.cpf.{name}", ", ".join(map(str, value)) or None if isinstance(value, tuple) else value)


# Links as a fleet compares them: which link of one host is which of another, and what must be alike on both.

MAX_LINKS = 64
MAX_MEMBERSHIPS = 128
_PASSING_KINDS = frozenset({"veth", "tap", "tun", "dummy", "ifb", "macvtap", "sit", "ip6tnl", "gre", "gretap", "ipip"})
OWN_LINK_DETAIL = frozenset(
    {"id", "bridge_id", "root_id", "active_slave", "local", "remote", "local6", "remote6", "link", "group", "user"}
    | {"rdma_device", "rdma_state", "port_state"}
)


class Membership(msgspec.Struct, frozen=True):
    """An address of a link in a network. ``role`` is what the fleet knows the link by, ``mtu`` in bytes."""

    network: str
    address: str
    link: str
    role: str
    mtu: int | None
    speed_mbps: int | None
    carries_llt: bool


def link_roles(facts: Facts) -> dict[str, str]:
    """What each link that is compared is known by."""
    links = {link.name: link for link in facts.links if link.kind != "loopback"}
    roles: dict[str, str] = {}
    for title, names in _links_by_function(facts, links):
        free = [name for name in dict.fromkeys(names) if name in links and name not in roles]
        ordered = free if title.startswith("llt") else _by_network(free, links)
        roles |= {name: f"{title}-{number}" for number, name in enumerate(ordered, 1)}
    for name in sorted(links):
        if links[name].default_route and name not in roles:
            roles[name] = "default" if "default" not in roles.values() else name
    for name in tuple(roles):
        _name_below(name, links, roles)
    for name in sorted(links):
        if name not in roles and _is_counted(links[name], links):
            roles[name] = name
    return dict(tuple(roles.items())[:MAX_LINKS])


def _links_by_function(facts: Facts, links: Mapping[str, Link]) -> Iterator[tuple[str, list[str]]]:
    llt = facts.llt.links if facts.llt else ()
    yield "llt", [one.link for one in llt if one.link and not one.low_priority]
    yield "llt-low", [one.link for one in llt if one.link and one.low_priority]
    yield "iscsi", [name for session in (facts.iscsi.sessions if facts.iscsi else ()) for name in session.links]
    services = facts.beegfs.services if facts.beegfs else ()
    yield "beegfs", sorted({name for service in services for name in service.interfaces or () if name in links})


def _by_network(names: list[str], links: Mapping[str, Link]) -> list[str]:
    networks = {name: next(_link_networks(links[name]), None) for name in names}
    if None in networks.values() or len(set(networks.values())) < len(names):
        return names
    return sorted(names, key=lambda name: _network_order(networks[name]))


def _network_order(network: str | None) -> tuple[int, int]:
    place = ip_interface(network or "0.0.0.0/0")
    return place.version, int(place)


def _name_below(name: str, links: Mapping[str, Link], roles: dict[str, str]) -> None:
    pending = [name]
    while pending:
        above = pending.pop()
        free = [one for one in links[above].lower if one in links and one not in roles]
        word = "parent" if links[above].kind in ("vlan", "macvlan", "ipvlan") else "port"
        for number, one in enumerate(sorted(free), 1):
            roles[one] = f"{roles[above]}.{word}-{number}"
            pending.append(one)


def _is_counted(link: Link, links: Mapping[str, Link]) -> bool:
    if link.kind == "bridge":
        # Whether a bridge leads out of the host: one of containers alone has the same address on every host.
        return any(name in links and links[name].kind not in _PASSING_KINDS for name in link.lower)
    return link.kind not in _PASSING_KINDS or any(_link_networks(link))


def _link_networks(link: Link) -> Iterator[str]:
    yield from (network for network, _ in _link_addresses(link))


def _link_addresses(link: Link) -> Iterator[tuple[str, str]]:
    """Network and address of each address that others can be in one network with."""
    for text in link.addresses:
        try:
            place: IPv4Interface | IPv6Interface = ip_interface(text)
        except ValueError:
            continue
        is_single = place.network.prefixlen == place.max_prefixlen
        if not (is_single or place.is_link_local or place.is_loopback or place.is_multicast):
            yield str(place.network), str(place.ip)


def memberships_of(facts: Facts, roles: Mapping[str, str]) -> tuple[Membership, ...]:
    """Networks of the links that are compared and not down."""
    found = (
        Membership(
            network,
            address,
            link.name,
            role,
            link.mtu,
            link.speed_mbps,
            carries_llt=re.fullmatch(r"llt-(low-)?\d+", role, re.ASCII) is not None,
        )
        for link in facts.links
        if (role := roles.get(link.name)) is not None and link.state != "down"
        for network, address in _link_addresses(link)
    )
    return tuple(sorted(found, key=lambda one: (one.network, one.address, one.link)))[:MAX_MEMBERSHIPS]


def collect_links(facts: Facts, roles: Mapping[str, str], found: Collected) -> None:
    """Attributes ``link.ROLE.…`` of every link that is compared."""
    links = {link.name: link for link in facts.links}
    if len(roles) >= MAX_LINKS:
        found.unknown("link.*")
    for name, role in roles.items():
        _collect_link(links[name], f"link.{role}", found)
    found.put("link.count", sum(link.pci is not None for link in facts.links) if facts.links else None)


def _collect_link(link: Link, base: str, found: Collected) -> None:
    found.put(f"{base}.present", "yes")
    names = ("name", "kind", "mtu", "speed_mbps", "state", "driver", "firmware", "numa_node", "txqueuelen", "mtu_max")
    found.fields(base, link, *names)
    found.flag(f"{base}.carrier", link.carrier)
    if link.rings:
        found.fields(f"{base}.ring", link.rings, "rx", "tx", "rx_max", "tx_max")
    if link.channels:
        found.fields(f"{base}.channels", link.channels, "rx", "tx", "combined", "combined_max")
    if link.pcie:
        found.put(f"{base}.pcie", f"x{link.pcie.width} {link.pcie.speed_gts} GT/s")
    for name, is_on in (link.features or {}).items():
        found.put(f"{base}.feature.{name}", "on" if is_on else "off")
    found.entries(f"{base}.detail", link.detail, OWN_LINK_DETAIL)
    if link.rps_cpus and link.rps_cpus.strip("0,"):
        found.put(f"{base}.rps_cpus", link.rps_cpus)
