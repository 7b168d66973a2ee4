"""What the files and commands of an InfoScale cluster say: llthosts, gabtab, main.cf and ``vxdisk list``.

After llthosts(4), gabconfig(1M), the main.cf chapter of the Cluster Server administrator's guide and vxdisk(1M). Each
reader passes over what it does not know.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.facts.printable import printable
from advisor.host.patterns import lazy_regex

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
