"""iSCSI: sessions and connections of this host as an initiator, its node records and iscsid.conf, and what it exports.

Sessions are those of the kernel's transport class (scsi_transport_iscsi), records and settings those of open-iscsi
(iscsiadm(8), iscsid.conf), targets those of LIO in configfs (kernel: Documentation/target). User names and passwords
of CHAP are in the same places: only named attributes and keys are ever read or kept.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from advisor.facts.block.block import Array, BlockNames, natural
from advisor.facts.block.disks import Disk
from advisor.facts.network.links import Link
from advisor.facts.text import parse_settings, printable
from advisor.facts.unknown import IET, ISCSI_RECORDS, ISCSI_SESSIONS, ISCSID_CONF, LIO_TARGETS, Unknowns
from advisor.host import Host, Missing, lazy_regex

# What this host exports over iSCSI: the targets of LIO in configfs, and those of IET (Openfiler 2).

MAX_TARGETS = 256
MAX_LUNS = 1024
_MAX_TEXT = 256
_PARAMETERS = (
    *("FirstBurstLength", "MaxBurstLength", "MaxRecvDataSegmentLength", "ImmediateData", "InitialR2T"),
    *("HeaderDigest", "DataDigest"),
)
_WILDCARDS = frozenset({"0.0.0.0", "::"})

FindLink = Callable[[str], str | None]
_IET_TARGET = lazy_regex(r"tid:\d{1,9} name:(\S{1,256})", re.ASCII)


class TargetPortal(msgspec.Struct, frozen=True):
    """Where a target listens. ``link`` is the link with that address; None also for an address that means all."""

    address: str
    port: int
    link: str | None


class IscsiTarget(msgspec.Struct, frozen=True):
    """A portal group of a target. ``disks`` are the kernel names of the block devices behind its LUNs."""

    name: str
    group: int
    enabled: bool | None
    portals: tuple[TargetPortal, ...]
    disks: tuple[str, ...]
    parameters: Mapping[str, str]


def read_targets(
    host: Host, find_link: FindLink, find_link_towards: FindLink, unknown: Unknowns
) -> tuple[IscsiTarget, ...]:
    """Portal groups by name; none where neither LIO nor IET is there. ``find_link`` names the link that has an address,
    ``find_link_towards`` the one in whose network an address lies."""
    listed = unknown.value("iscsi.targets", host.listdir(LIO_TARGETS)) or ()
    groups = [place for name in listed for place in _find_groups(host, name)]
    if len(groups) > MAX_TARGETS:
        unknown.note("iscsi.targets", f"there are {len(groups)}: those after the first {MAX_TARGETS} are not read")
    devices = BlockNames(host)
    found = [_make_target(host, *place, find_link, devices, unknown) for place in groups[:MAX_TARGETS]]
    return (*found, *_read_iet(host, find_link_towards, devices, unknown))


def _find_groups(host: Host, name: str) -> Iterator[tuple[str, int]]:
    # The directory also holds discovery_auth, lio_version and the like.
    if name.startswith(("iqn.", "eui.", "naa.")):
        found = (re.fullmatch(r"tpgt_(\d{1,5})", one, re.ASCII) for one in host.names(f"{LIO_TARGETS}/{name}"))
        yield from sorted((name, int(one[1])) for one in found if one)


def _make_target(
    host: Host, name: str, group: int, find_link: FindLink, devices: BlockNames, unknown: Unknowns
) -> IscsiTarget:
    base, fact = f"{LIO_TARGETS}/{name}/tpgt_{group}", f"iscsi.targets.{printable(name)}"
    enabled = unknown.value(f"{fact}.enabled", host.read(f"{base}/enable"))
    found = (parse_portal(one) for one in host.names(f"{base}/np"))
    texts = {key: host.read(f"{base}/param/{key}") for key in _PARAMETERS}
    return IscsiTarget(
        name=printable(name[:_MAX_TEXT]),
        group=group,
        enabled={"0": False, "1": True}.get(enabled or ""),
        portals=tuple(TargetPortal(*one, None if one[0] in _WILDCARDS else find_link(one[0])) for one in found if one),
        disks=tuple(sorted(set(_exported_devices(host, base, devices)), key=natural)),
        parameters={key: printable(text[:_MAX_TEXT]) for key, text in texts.items() if isinstance(text, str) and text},
    )


def parse_portal(text: str) -> tuple[str, int] | None:
    """Address and port of ``192.0.2.1:3260`` or ``[2001:db8::1]:3260``; None for anything else."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]{2,64})\]|([0-9.]{7,15})):([0-9]{1,5})", text, re.ASCII)
    return (found[1] or found[2], int(found[3])) if found else None


def _exported_devices(host: Host, base: str, devices: BlockNames) -> Iterator[str]:
    """Devices of the LUNs' back ends; files and RAM disks have none."""
    for lun in host.names(f"{base}/lun")[:MAX_LUNS]:
        for name in host.names(f"{base}/lun/{lun}"):
            place = f"{base}/lun/{lun}/{name}"
            if isinstance(host.readlink(place), Missing):
                continue
            path = host.read(f"{place}/udev_path")
            device = None if isinstance(path, Missing) else devices.by_path(path)
            if device is not None:
                yield printable(device)


class IetTarget(msgspec.Struct, frozen=True):
    """A target of IET: the paths of its LUNs, and the addresses from which initiators are logged in."""

    name: str
    paths: tuple[str, ...] = ()
    initiators: tuple[str, ...] = ()


def parse_iet(text: str) -> dict[str, IetTarget]:
    """Targets by name, from /proc/net/iet/volume or /proc/net/iet/session; other lines are left out."""
    found: dict[str, IetTarget] = {}
    name = ""
    for line in text.split("\n"):
        bare = line.strip()
        if target := _IET_TARGET.fullmatch(bare):
            name = target[1]
            found.setdefault(name, IetTarget(name))
        elif name and (path := re.fullmatch(r"lun:[0-9]{1,9} .*?\bpath:(\S.{0,4095})", bare)):
            found[name] = msgspec.structs.replace(found[name], paths=(*found[name].paths, path[1]))
        elif name and (peer := re.match(r"cid:\d{1,9} ip:([0-9A-Fa-f:.%\w\[\]]{2,64}) ", bare, re.ASCII)):
            initiators = dict.fromkeys((*found[name].initiators, peer[1].strip("[]")))
            found[name] = msgspec.structs.replace(found[name], initiators=tuple(initiators))
    return found


def _read_iet(host: Host, find_link_towards: FindLink, devices: BlockNames, unknown: Unknowns) -> Iterator[IscsiTarget]:
    """IET listens on every address: a portal is the link towards each initiator that is logged in."""
    volumes = parse_iet(unknown.value("iscsi.targets", host.read(f"{IET}/volume")) or "")
    sessions = parse_iet(unknown.value("iscsi.targets", host.read(f"{IET}/session")) or "")
    for name, one in list(volumes.items())[:MAX_TARGETS]:
        peers = sessions[name].initiators if name in sessions else ()
        disks = (devices.by_path(path) for path in one.paths[:MAX_LUNS])
        yield IscsiTarget(
            name=printable(name[:_MAX_TEXT]),
            group=1,
            enabled=True,
            portals=tuple(
                TargetPortal("0.0.0.0", 3260, link)
                for link in tuple(dict.fromkeys(link for link in map(find_link_towards, peers) if link))
            ),
            disks=tuple(sorted({printable(disk) for disk in disks if disk}, key=natural)),
            parameters={},
        )


MAX_SESSIONS = 512
MAX_RECORDS = 512
"""Sessions and node records that are read: a host has a few dozen at most."""
MAX_TEXT = 256
"""Characters of a name or value that are kept; an iSCSI name has 223 at most (RFC 7143, 4.2.7.1)."""

_CONNECTIONS = "/sys/class/iscsi_connection"
_HOSTS = "/sys/class/iscsi_host"
_KEPT = frozenset(
    {
        *("node.name", "node.startup", "node.conn[0].address", "node.conn[0].port"),
        *("iface.iscsi_ifacename", "iface.net_ifacename"),
        *("node.session.timeo.replacement_timeout", "node.session.cmds_max", "node.session.queue_depth"),
        *("node.session.nr_sessions", "node.session.iscsi.FirstBurstLength", "node.session.iscsi.MaxBurstLength"),
        *("node.session.iscsi.ImmediateData", "node.session.iscsi.InitialR2T"),
        *("node.conn[0].iscsi.MaxRecvDataSegmentLength", "node.conn[0].iscsi.MaxXmitDataSegmentLength"),
        *("node.conn[0].iscsi.HeaderDigest", "node.conn[0].iscsi.DataDigest"),
        *("node.conn[0].timeo.noop_out_interval", "node.conn[0].timeo.noop_out_timeout"),
    }
)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class IscsiConnection(msgspec.Struct, frozen=True):
    """A TCP connection of a session. ``link`` is the kernel link that carries it, None where that is unknown.

    ``persistent_address`` is what the connection was made with, ``address`` where it leads now; ``local_address`` is
    this host's end. ``max_recv_bytes`` is the negotiated MaxRecvDataSegmentLength.
    """

    name: str
    state: str | None
    address: str | None
    port: int | None
    persistent_address: str | None
    persistent_port: int | None
    local_address: str | None
    link: str | None
    max_recv_bytes: int | None
    header_digest: bool | None
    data_digest: bool | None


class IscsiSession(msgspec.Struct, frozen=True):
    """A session. ``state`` is the kernel's word: LOGGED_IN, FAILED, FREE.

    ``recovery_seconds`` is how long I/O waits for a lost connection (replacement_timeout; negative: for ever),
    ``can_queue`` the commands that the session holds at once, ``initiator_interface`` the name of the iscsiadm iface.
    """

    name: str
    target: str | None
    initiator: str | None
    initiator_interface: str | None
    state: str | None
    recovery_seconds: int | None
    first_burst_bytes: int | None
    max_burst_bytes: int | None
    immediate_data: bool | None
    initial_r2t: bool | None
    can_queue: int | None
    connections: tuple[IscsiConnection, ...]
    disks: tuple[str, ...]
    """By `Disk.name`."""

    @property
    def links(self) -> tuple[str, ...]:
        """The links that are known to carry it, each once."""
        return tuple(dict.fromkeys(one.link for one in self.connections if one.link is not None))


class IscsiNode(msgspec.Struct, frozen=True):
    """A node record of open-iscsi: what the next login to this portal uses. Only settings that rules look at."""

    path: str
    target: str
    portal: str
    interface: str
    settings: Mapping[str, str]


class Iscsi(msgspec.Struct, frozen=True):
    """All of it. ``settings`` are those of iscsid.conf, which new node records are made with."""

    sessions: tuple[IscsiSession, ...] = ()
    nodes: tuple[IscsiNode, ...] = ()
    settings: Mapping[str, str] = {}
    targets: tuple[IscsiTarget, ...] = ()
    multipath_disks: tuple[str, ...] = ()
    """Disks of sessions that a multipath map lies on."""
    unread_nodes: Mapping[str, str] = {}
    """Node records, or directories of them, that could not be read, with the reason."""


def parse_iscsi_settings(text: str) -> Mapping[str, str]:
    """The settings of iscsid.conf or of a node record that rules look at; the last line of a key counts.

    What belongs to authentication is never kept.
    """
    found = ((key, value) for _, key, value in parse_settings(text, continued=False) if key in _KEPT)
    return {key: printable(value[:MAX_TEXT]) for key, value in found}


def read_iscsi(
    host: Host, links: tuple[Link, ...], disks: tuple[Disk, ...], arrays: tuple[Array, ...], unknown: Unknowns
) -> Iscsi | None:
    """None where the host shows nothing of iSCSI. ``links``, ``disks`` and ``arrays`` are the host's."""
    text = unknown.value("iscsi.settings", host.read(ISCSID_CONF))
    sessions = _read_sessions(host, links, disks, unknown)
    unread: dict[str, str] = {}
    nodes = tuple(_read_nodes(host, unread))
    for path, why in unread.items():
        unknown.note("iscsi.nodes" if path in ISCSI_RECORDS else f"iscsi.nodes.{path}", why)
    own = {disk for session in sessions for disk in session.disks}
    paths = (name for array in arrays if array.manager == "dm-multipath" for name in array.members)
    found = Iscsi(
        sessions=sessions,
        nodes=nodes,
        unread_nodes=unread,
        settings={} if text is None else parse_iscsi_settings(text),
        targets=read_targets(
            host, lambda address: link_at(address, links), lambda address: link_towards(address, links), unknown
        ),
        multipath_disks=tuple(sorted(own.intersection(paths), key=natural)),
    )
    return None if found == Iscsi() and text is None else found


def link_at(address: str | None, links: Iterable[Link]) -> str | None:
    """The one link that has this address of the host; None where none or several have it."""
    wanted = _parse_ip(address)
    if wanted is None:
        return None
    found = [link.name for link in links if wanted in (_parse_ip(one) for one in link.addresses)]
    return found[0] if len(found) == 1 else None


def link_towards(address: str | None, links: Iterable[Link]) -> str | None:
    """The one link in whose network an address lies; None where none or several are."""
    wanted = _parse_ip(address)
    if wanted is None:
        return None
    found = [link.name for link in links if any(wanted in network for network in networks_of(link))]
    return found[0] if len(found) == 1 else None


def networks_of(link: Link) -> tuple[Network, ...]:
    """The networks of a link's addresses; those of link-local and of single-host addresses are left out."""
    found: list[Network] = []
    for address in link.addresses:
        try:
            one = ipaddress.ip_interface(address)
        except ValueError:
            continue
        if not one.ip.is_link_local and one.network.num_addresses > 1:
            found.append(one.network)
    return tuple(found)


def _parse_ip(text: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    bare = (text or "").strip("[]").partition("/")[0].partition("%")[0]
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None


def _read_sessions(
    host: Host, links: tuple[Link, ...], disks: tuple[Disk, ...], unknown: Unknowns
) -> tuple[IscsiSession, ...]:
    names = _bound_names(host.names(ISCSI_SESSIONS), "iscsi.sessions", unknown)
    if not names:
        return ()
    # `connection3:0` is the first connection of `session3`.
    connections: dict[str, tuple[str, ...]] = {}
    for name in sorted(host.names(_CONNECTIONS), key=natural)[: 4 * MAX_SESSIONS]:
        session_number = re.fullmatch(r"connection(\d{1,9}):\d{1,9}", name, re.ASCII)
        if session_number:
            session = f"session{session_number[1]}"
            connections[session] = (*connections.get(session, ()), name)
    # By the session in a disk's place below /sys/devices: `…/host3/session1/target3:0:0/…`.
    by_session: dict[str, tuple[str, ...]] = {}
    for disk in disks:
        if disk.detail.get("transport") != "iscsi":
            continue
        place = host.readlink(f"/sys/block/{disk.name}")
        number = None if isinstance(place, Missing) else re.search(r"/(session\d{1,9})/", place, re.ASCII)
        if number:
            by_session[number[1]] = (*by_session.get(number[1], ()), disk.name)
    reader = _Reader(host, links, unknown)
    return tuple(reader.session(name, connections.get(name, ()), by_session.get(name, ())) for name in names)


def _bound_names(names: Iterable[str], fact: str, unknown: Unknowns) -> list[str]:
    listed = sorted(names, key=natural)
    if len(listed) > MAX_SESSIONS:
        unknown.note(fact, f"there are {len(listed)}: those after the first {MAX_SESSIONS} are not read")
    return listed[:MAX_SESSIONS]


class _Reader:
    def __init__(self, host: Host, links: tuple[Link, ...], unknown: Unknowns) -> None:
        self.host = host
        self.links = links
        self.unknown = unknown

    def session(self, name: str, connections: Iterable[str], disks: tuple[str, ...]) -> IscsiSession:
        base, fact = f"{ISCSI_SESSIONS}/{name}", f"iscsi.sessions.{printable(name)}"
        place = self.host.real(base)
        parts = [] if isinstance(place, Missing) else place.split("/")
        scsi_host = next((part for part in parts if re.fullmatch(r"host\d{1,9}", part, re.ASCII)), None)
        return IscsiSession(
            name=printable(name),
            target=self._read_word(f"{base}/targetname", f"{fact}.target"),
            initiator=self._read_word(f"{base}/initiatorname", f"{fact}.initiator"),
            initiator_interface=self._read_word(f"{base}/ifacename", f"{fact}.initiator_interface"),
            state=self._read_word(f"{base}/state", f"{fact}.state"),
            recovery_seconds=self._read_number(f"{base}/recovery_tmo", f"{fact}.recovery_seconds"),
            first_burst_bytes=self._read_number(f"{base}/first_burst_len", f"{fact}.first_burst_bytes"),
            max_burst_bytes=self._read_number(f"{base}/max_burst_len", f"{fact}.max_burst_bytes"),
            immediate_data=self._read_flag(f"{base}/immediate_data", f"{fact}.immediate_data"),
            initial_r2t=self._read_flag(f"{base}/initial_r2t", f"{fact}.initial_r2t"),
            can_queue=self._read_number(f"/sys/class/scsi_host/{scsi_host}/can_queue", f"{fact}.can_queue")
            if scsi_host
            else None,
            connections=tuple(self.connection(one, scsi_host) for one in connections),
            disks=tuple(sorted(disks, key=natural)),
        )

    def connection(self, name: str, scsi_host: str | None) -> IscsiConnection:
        base, fact = f"{_CONNECTIONS}/{name}", f"iscsi.connections.{name}"
        address = self._read_word(f"{base}/address", f"{fact}.address")
        persistent = self._read_word(f"{base}/persistent_address", f"{fact}.persistent_address")
        local = self._read_word(f"{_HOSTS}/{scsi_host}/ipaddress", f"{fact}.local_address") if scsi_host else None
        netdev = self._read_word(f"{_HOSTS}/{scsi_host}/netdev", f"{fact}.link") if scsi_host else None
        # By the host's end of the connection, by the link it is bound to, or by the one network of the target.
        target = address or persistent
        names = {link.name for link in self.links}
        link = link_at(local, self.links) or (netdev if netdev in names else None) or link_towards(target, self.links)
        if link is None and self.links:
            self.unknown.note(
                f"{fact}.link", f"neither {local or 'its own address'} nor its target's belongs to one link"
            )
        return IscsiConnection(
            name=name,
            state=self._read_word(f"{base}/state", f"{fact}.state"),
            address=address,
            port=self._read_number(f"{base}/port", f"{fact}.port"),
            persistent_address=persistent,
            persistent_port=self._read_number(f"{base}/persistent_port", f"{fact}.persistent_port"),
            local_address=local,
            link=link,
            max_recv_bytes=self._read_number(f"{base}/max_recv_dlength", f"{fact}.max_recv_bytes"),
            header_digest=self._read_flag(f"{base}/header_digest", f"{fact}.header_digest"),
            data_digest=self._read_flag(f"{base}/data_digest", f"{fact}.data_digest"),
        )

    def _read_word(self, path: str, fact: str) -> str | None:
        text = self.unknown.value(fact, self.host.read(path))
        # The kernel prints a string that was never set in its own way.
        return None if text in (None, "", "(null)", "<NULL>") else printable(str(text)[:MAX_TEXT])

    def _read_number(self, path: str, fact: str) -> int | None:
        text = self._read_word(path, fact)
        if text is None:
            return None
        if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
            self.unknown.note(fact, f"not a number: {text[:40]!r}")
            return None
        return int(text)

    def _read_flag(self, path: str, fact: str) -> bool | None:
        number = self._read_number(path, fact)
        return None if number is None else number != 0


def _read_nodes(host: Host, unread: dict[str, str]) -> Iterator[IscsiNode]:
    """Records are files ``TARGET/ADDRESS,PORT,TPGT/INTERFACE``, with old open-iscsi ``TARGET/ADDRESS,PORT``.

    ``unread`` gets what could not be read, with the reason.
    """
    seen: set[object] = set()
    left = MAX_RECORDS
    for directory in ISCSI_RECORDS:
        for path in _record_paths(host, directory, unread):
            if host.real(path) in seen:
                continue
            if left == 0:
                unread[directory] = f"more than {MAX_RECORDS} records: the others are not read"
                return
            left -= 1
            seen.add(host.real(path))
            text = host.read(path)
            if not isinstance(text, Missing):
                yield _make_node(path, parse_iscsi_settings(text))
            elif not text.is_absent:
                unread[printable(path)] = text.why


def _record_paths(host: Host, directory: str, unread: dict[str, str]) -> Iterator[str]:
    for target in _list_names(host, directory, unread):
        for portal in _list_names(host, f"{directory}/{target}", unread):
            place = f"{directory}/{target}/{portal}"
            if host.is_dir(place):
                yield from (f"{place}/{one}" for one in _list_names(host, place, unread))
            else:
                yield place


def _list_names(host: Host, directory: str, unread: dict[str, str]) -> tuple[str, ...]:
    found = host.listdir(directory)
    if not isinstance(found, Missing):
        return tuple(found)
    if not found.is_absent:
        unread[printable(directory)] = found.why
    return ()


def _make_node(path: str, settings: Mapping[str, str]) -> IscsiNode:
    target, portal, *interface = path.split("/nodes/", 1)[1].split("/")
    return IscsiNode(
        path=printable(path),
        target=settings.get("node.name", printable(target[:MAX_TEXT])),
        portal=printable(portal[:MAX_TEXT]),
        interface=settings.get("iface.iscsi_ifacename", printable("/".join(interface)[:MAX_TEXT]) or "default"),
        settings=settings,
    )
