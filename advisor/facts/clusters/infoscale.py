"""InfoScale (VxVM, LLT, VCS) on this host: what says which of the white paper's five configurations it is part of.

Read are /etc/llthosts, /etc/gabtab, main.cf and, where the volume manager is there, ``vxdisk -o alldgs list``.
"""

from __future__ import annotations

import ipaddress
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.facts.clusters.infoscale_configuration import Fit, InfoScaleSigns, Place, Recognition, recognised
from advisor.facts.clusters.llt import Llt
from advisor.facts.network.links import Link
from advisor.facts.system.identity import Cloud
from advisor.facts.text import printable
from advisor.facts.unknown import MAIN_CF, VOLUME_MANAGER, Unknowns
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

# What the files and commands of an InfoScale cluster say: llthosts, gabtab, main.cf and ``vxdisk list``.

MAX_TEXT = 1 << 20
"""Characters that are looked at: those of a snapshot may be made to cost time."""

_MAX_FOUND = 4096
_NAME = r"[\w.:@-]{1,128}"
_HOST = lazy_regex(rf"([0-9]{{1,5}})\s+({_NAME})", re.ASCII)
_COMMAND = lazy_regex(r"\bgabconfig\s", re.ASCII)
_SEEDS = lazy_regex(r"\s-n\s*([0-9]{1,5})\b", re.ASCII)
_BLOCK = lazy_regex(rf"({_NAME})\s+({_NAME})\s*\(\s*(\)?)", re.ASCII)
_ATTRIBUTE = lazy_regex(r"(\w{1,64})\s*=\s*(\S.*)", re.ASCII)
# What opens a block and is no resource.
_OTHER_BLOCKS = frozenset({"cluster", "group", "type", "heartbeat", "remotecluster", "clusterservice", "resource"})
# Of everything that a resource has, only this says which configuration it is; users and passwords are never kept.
_ATTRIBUTES = frozenset({"OverlayIP", "DiskGroup", "CVMDiskGroup", "BlockDevice"})
_VALUE = lazy_regex(r'"?([\w./:@-]{0,200})"?', re.ASCII)


class LltHost(msgspec.Struct, frozen=True):
    """A node of /etc/llthosts."""

    id: int
    name: str


class VcsResource(msgspec.Struct, frozen=True):
    """A resource of main.cf: its type (``CFSMount``, ``DiskGroup`` …), its name, and the few attributes that say what
    kind of storage it is. A value that is a list or a table is kept as an empty text."""

    type: str
    name: str
    attributes: Mapping[str, str]


class VcsConfig(msgspec.Struct, frozen=True):
    """main.cf: the systems of the cluster and its resources, in the order of the file."""

    systems: tuple[str, ...]
    resources: tuple[VcsResource, ...]


class VxDisk(msgspec.Struct, frozen=True):
    """A line of ``vxdisk list``. ``group`` is None where the disk is in none; ``status`` are its words (``online``,
    ``shared``, ``exported``, ``remote`` …)."""

    device: str
    type: str
    group: str | None
    status: tuple[str, ...]


def _clean_lines(text: str) -> Iterator[str]:
    for line in text[:MAX_TEXT].replace("\0", "").splitlines():
        bare = line.strip()
        if bare and not bare.startswith(("#", "//")):
            yield bare


def parse_llthosts(text: str) -> tuple[LltHost, ...]:
    """The nodes of /etc/llthosts, one for each number."""
    found = (_HOST.fullmatch(line) for line in _clean_lines(text))
    nodes = {int(one[1]): printable(one[2]) for one in found if one}
    return tuple(LltHost(number, name) for number, name in sorted(nodes.items())[:_MAX_FOUND])


def parse_gabtab(text: str) -> int | None:
    """How many nodes must be there before the cluster starts (``gabconfig -c -n2``); None where it does not say."""
    calls = ((line, _COMMAND.search(line)) for line in _clean_lines(text))
    # From the blank after the command's name on, each place once: the time is linear whatever the line holds.
    found = [
        one[1] for line, call in calls if call for one in list(deque(_SEEDS.finditer(line, call.end() - 1), maxlen=1))
    ]
    return int(found[-1]) if found else None


def parse_main_cf(text: str) -> VcsConfig:
    """Systems and resources of main.cf, without anything that its cluster and its users keep secret."""
    systems: list[str] = []
    resources: list[VcsResource] = []
    for kind, name, attributes in _parse_blocks(text):
        if kind == "system":
            systems.append(printable(name))
        elif kind not in _OTHER_BLOCKS and len(resources) < _MAX_FOUND:
            resources.append(VcsResource(printable(kind), printable(name), attributes))
    return VcsConfig(tuple(dict.fromkeys(systems))[:_MAX_FOUND], tuple(resources))


def only_resources(text: str) -> str:
    """main.cf with nothing left but what `parse_main_cf` reads, which then reads the same."""
    config = parse_main_cf(text)
    lines = [f"system {name} (\n\t)" for name in config.systems]
    for one in config.resources:
        lines.append(f"{one.type} {one.name} (")
        lines += [f'\t{key} = "{value}"' for key, value in one.attributes.items()]
        lines.append("\t)")
    return "".join(f"{line}\n" for line in lines)


def _parse_blocks(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Kind, name and attributes of each block ``KIND NAME (`` … ``)``; comments begin with //."""
    block: tuple[str, str, dict[str, str]] | None = None
    for line in _clean_lines(text):
        opened = _BLOCK.fullmatch(line)
        if opened:
            if block:
                yield block
            block = (opened[1], opened[2], {})
        elif block and (given := _ATTRIBUTE.fullmatch(line)) and given[1] in _ATTRIBUTES:
            value = _VALUE.fullmatch(given[2])
            block[2][given[1]] = value[1] if value else ""
        if block and (line == ")" or (opened and opened[3])):
            yield block
            block = None
    if block:
        yield block


def parse_vxdisk_list(text: str) -> tuple[VxDisk, ...]:
    """The disks of ``vxdisk list``, with or without ``-o alldgs``: then a group that is not imported is in brackets."""
    return tuple(_parse_disks(_clean_lines(text)))[:_MAX_FOUND]


def _parse_disks(lines: Iterable[str]) -> Iterator[VxDisk]:
    for line in lines:
        words = printable(line).split()
        if len(words) < 5 or words[0] == "DEVICE":
            continue
        device, kind, _, group, *status = words
        yield VxDisk(device, kind, None if group == "-" else group.strip("()"), tuple(status))


LLTHOSTS = "/etc/llthosts"
GABTAB = "/etc/gabtab"
DISK_LIST = ("vxdisk", "-o", "alldgs", "list")

_MIRRORING_WORDS = frozenset({"exported", "remote"})
_CLUSTER_VOLUMES = frozenset({"CVMCluster", "CVMVolDg", "CFSMount"})
_MOVING_VOLUMES = frozenset({"EBSVol", "AzureDisk", "GoogleDisk", "DiskGroup"})


class InfoScale(msgspec.Struct, frozen=True):
    """InfoScale on this host. ``configuration`` is the recognised one of the five, None where none is proven;
    ``configurations`` says about each whether it fits; ``signs`` is what that rests on.

    ``hosts`` are those of /etc/llthosts; ``seed_nodes`` how many /etc/gabtab waits for; ``vcs`` is main.cf; ``disks``
    None where the volume manager was not asked or did not answer.
    """

    configuration: str | None
    configurations: Mapping[str, Fit]
    signs: InfoScaleSigns
    hosts: tuple[LltHost, ...] = ()
    seed_nodes: int | None = None
    vcs: VcsConfig | None = None
    disks: tuple[VxDisk, ...] | None = None


def read_infoscale(
    host: Host, llt: Llt | None, links: tuple[Link, ...], cloud: Cloud | None, unknown: Unknowns
) -> InfoScale | None:
    """None where there is neither LLT, nor main.cf, nor the volume manager."""
    has_volumes = any(host.exists(place) for place in VOLUME_MANAGER)
    main_cf = unknown.value("infoscale.vcs", host.read(MAIN_CF))
    if llt is None and main_cf is None and not has_volumes:
        return None
    hosts = unknown.value("infoscale.hosts", host.read(LLTHOSTS))
    gabtab = unknown.value("infoscale.seed_nodes", host.read(GABTAB))
    read = InfoScale(
        configuration=None,
        configurations={},
        signs=InfoScaleSigns(),
        hosts=() if hosts is None else parse_llthosts(hosts),
        seed_nodes=None if gabtab is None else parse_gabtab(gabtab),
        vcs=None if main_cf is None else parse_main_cf(main_cf),
        disks=_read_disks(host, unknown) if has_volumes else None,
    )
    return judged(read, llt, links, cloud)


def judged(read: InfoScale, llt: Llt | None, links: tuple[Link, ...], cloud: Cloud | None) -> InfoScale:
    """What was read, with the configuration that it makes. Pure."""
    # What was seen, each with the place where it was.
    is_cluster, counted = _is_cluster(read, llt)
    mirrors, stored = _judge_mirroring(read)
    place, placed, unplaced = _find_place(llt, links, cloud)
    own = tuple(one for one in (llt.links if llt else ()) if not one.low_priority)
    transports = tuple(dict.fromkeys(one.type if one.type != "-" else "ether" for one in own))
    tagged = ", ".join(f"{one.tag} {one.type}" for one in own)
    seen = (counted, stored, f"LLT links: {tagged} (/etc/llttab)" if own else "", placed, _describe_overlay(read))
    signs = InfoScaleSigns(
        is_cluster=is_cluster,
        transports=transports,
        mirrors=mirrors,
        place=place,
        seen=tuple(one for one in seen if one),
        untold=(unplaced,) if unplaced and is_cluster is not False else (),
    )
    found: Recognition = recognised(signs)
    return msgspec.structs.replace(read, configuration=found.configuration, configurations=found.fits, signs=signs)


def _read_disks(host: Host, unknown: Unknowns) -> tuple[VxDisk, ...] | None:
    done = host.run(DISK_LIST)
    if isinstance(done, Missing):
        unknown.note("infoscale.disks", done)
        return None
    if not done.ok:
        unknown.note("infoscale.disks", done.failure("vxdisk list"))
        return None
    return parse_vxdisk_list(done.stdout)


def _is_cluster(read: InfoScale, llt: Llt | None) -> tuple[bool | None, str]:
    counts = (
        (len(read.hosts), LLTHOSTS),
        (sum(1 for one in llt.nodes if one.name) if llt else 0, "lltstat"),
        (len(read.vcs.systems) if read.vcs else 0, "main.cf"),
    )
    for count, where in counts:
        if count:
            return count > 1, f"{count} node{'' if count == 1 else 's'} ({where})"
    # One is no count: a cluster of two may be configured to start with one.
    if read.seed_nodes and read.seed_nodes > 1:
        return True, f"{read.seed_nodes} nodes to start with ({GABTAB})"
    if llt and llt.llttab and llt.llttab.peers:
        return True, f"LLT peers: {', '.join(sorted(set(llt.llttab.peers))[:4])} (/etc/llttab)"
    is_alone = (llt is None or (llt.running is False and llt.llttab is None)) and read.vcs is None
    return (False, "no cluster: neither LLT nor main.cf is set up") if is_alone else (None, "")


def _judge_mirroring(read: InfoScale) -> tuple[bool | None, str]:
    """FSS ships what ``vxdisk list`` calls exported or remote; a list without either has none."""
    shipped = [one for one in read.disks or () if _MIRRORING_WORDS.intersection(one.status)]
    if shipped:
        names = ", ".join(f"{one.device} {' '.join(one.status)}" for one in shipped[:4])
        return True, f"disks are shipped between the nodes: {names} (vxdisk list)"
    types = {one.type for one in read.vcs.resources} if read.vcs else set()
    if any(one.group for one in read.disks or ()):
        return False, "no disk is exported or remote (vxdisk list)"
    moving, shared = sorted(types & _MOVING_VOLUMES), sorted(types & _CLUSTER_VOLUMES)
    if moving and not shared:
        return False, f"volumes that move between the nodes: {', '.join(moving)} (main.cf)"
    return None, f"cluster volumes, shared or mirrored: {', '.join(shared)} (main.cf)" if shared else ""


def _find_place(llt: Llt | None, links: Iterable[Link], cloud: Cloud | None) -> tuple[Place | None, str, str]:
    """Where the peers of set-addr lines are: a subnet of a VPC of AWS lies in one zone, those of others do not say."""
    peers = sorted(set(llt.llttab.peers)) if llt and llt.llttab else []
    own: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
    for text in (address for link in links for address in link.addresses):
        try:
            network = ipaddress.ip_interface(text).network
        except ValueError:
            continue
        if not network.is_loopback and not network.is_link_local:
            own.append(network)
    outside = [peer for peer in peers if own and not any(_is_in(peer, network) for network in own)]
    if outside:
        return None, f"LLT peers in another subnet: {', '.join(outside[:4])}", "whether that subnet is in another zone"
    if peers and own and cloud is not None and cloud.provider == "aws":
        return "one-zone", "LLT peers in this host's own subnets, each of which AWS keeps in one zone", ""
    return None, "", ""


def _describe_overlay(read: InfoScale) -> str:
    resources = read.vcs.resources if read.vcs else ()
    names = [one.name for one in resources if one.attributes.get("OverlayIP")]
    return f"an address that moves across subnets or zones: OverlayIP of {', '.join(names)} (main.cf)" if names else ""


def _is_in(text: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(text) in network
    except ValueError:
        return False
