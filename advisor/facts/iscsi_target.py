"""What this host exports over iSCSI: the targets of LIO in configfs, and those of IET (Openfiler 2).

``/sys/kernel/config/target/iscsi/NAME/tpgt_N`` holds portals (``np``), LUNs (links into ``core``) and parameters
(kernel: Documentation/target). Access lists and authentication next to them hold passwords: they are not listed.

The iSCSI Enterprise Target shows its targets and LUNs in /proc/net/iet/volume and who is logged in by which address in
/proc/net/iet/session (ietd(8)); neither holds a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from advisor.facts.block import BlockNames, natural
from advisor.facts.printable import printable
from advisor.facts.rare_subjects import IET, LIO_TARGETS
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

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
