"""Which of the five configurations of the InfoScale white paper a host is part of: what was seen → what it can be.

The paper compares a single node (1), a cluster that shares its disks (2), and three that mirror local disks to each
other over LLT (Flexible Storage Sharing): inside one zone over TCP (3) or over two UDP links (4), and over two UDP
links across zones (5). /etc/llttab alone names the links, and neither where the disks are nor where the peers are.
So each configuration is ruled out by what was seen, or stays possible; one is named only where it is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

SINGLE_NODE = "single-node"
SHARED_DISK = "shared-disk"
FSS_TCP = "fss-tcp"
FSS_UDP = "fss-udp"
FSS_ZONES = "fss-zones"

TITLES: Mapping[str, str] = {
    SINGLE_NODE: "a single node",
    SHARED_DISK: "a node of a cluster that shares its disks",
    FSS_TCP: "a node of a cluster that mirrors its disks over TCP inside one zone (FSS)",
    FSS_UDP: "a node of a cluster that mirrors its disks over UDP inside one zone (FSS)",
    FSS_ZONES: "a node of a cluster that mirrors its disks across zones (FSS)",
}
"""The five, in the order of the paper."""

MIRRORED = frozenset({FSS_TCP, FSS_UDP, FSS_ZONES})

LONG_ROUND_TRIP_SECONDS = 0.5e-3
"""Above it a peer is taken to stand in another zone: those of one region were measured at 1.12 and 1.16 ms."""

Fit = Literal["yes", "possible", "no"]
Place = Literal["one-zone", "several-zones"]


class InfoScaleSigns(msgspec.Struct, frozen=True):
    """What was seen, or declared; None and empty where nothing was.

    ``is_cluster`` is whether there are other nodes; ``transports`` are the types of LLT's links that are not of low
    priority; ``mirrors`` is whether disks are shipped between the nodes; ``place`` is whether the peers stand in one
    zone. ``seen`` says what each rests on, ``untold`` what else should be known.
    """

    is_cluster: bool | None = None
    transports: tuple[str, ...] = ()
    mirrors: bool | None = None
    place: Place | None = None
    seen: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


class Recognition(msgspec.Struct, frozen=True):
    """``configuration`` is the only one left and proven; None where several are left, or one that nothing proves.

    ``fits`` has all five. ``evidence`` is what it rests on, ``untold`` what is unknown and how to learn it.
    """

    configuration: str | None
    fits: Mapping[str, Fit]
    evidence: tuple[str, ...]
    untold: tuple[str, ...]


def recognised(signs: InfoScaleSigns) -> Recognition:
    """The configurations that the signs leave. Pure."""
    left = [name for name in TITLES if not _is_ruled_out(name, signs)]
    only = left[0] if len(left) == 1 and _is_proven(left[0], signs) else None
    fits: dict[str, Fit] = {name: "no" if name not in left else "yes" if only else "possible" for name in TITLES}
    return Recognition(only, fits, signs.seen, () if only else tuple(_list_unknown(signs, left)))


def _is_ruled_out(name: str, signs: InfoScaleSigns) -> bool:
    if name == SINGLE_NODE:
        return signs.is_cluster is True
    if signs.is_cluster is False:
        return True
    if name == SHARED_DISK:
        # A cloud volume belongs to one zone, so what spans zones mirrors.
        return signs.mirrors is True or signs.place == "several-zones"
    return signs.mirrors is False or not _is_over(name, signs) or _is_elsewhere(name, signs)


def _is_over(name: str, signs: InfoScaleSigns) -> bool:
    wanted = {"tcp"} if name == FSS_TCP else {"udp", "udp6"}
    if name == FSS_ZONES and signs.place == "several-zones":
        # The paper's ran over UDP; across zones the round trip is what counts.
        wanted.add("tcp")
    return not signs.transports or bool(wanted.intersection(signs.transports))


def _is_elsewhere(name: str, signs: InfoScaleSigns) -> bool:
    return signs.place == ("one-zone" if name == FSS_ZONES else "several-zones")


def _is_proven(name: str, signs: InfoScaleSigns) -> bool:
    """That no other is left proves nothing by itself: LLT runs over more kinds of link than the paper's."""
    if name == SINGLE_NODE:
        return signs.is_cluster is False
    return signs.is_cluster is True and signs.mirrors is (name != SHARED_DISK)


def _list_unknown(signs: InfoScaleSigns, left: list[str]) -> Iterator[str]:
    yield from signs.untold
    if not left:
        return
    if signs.is_cluster is None:
        yield "how many nodes there are: cat /etc/llthosts"
    if signs.mirrors is None:
        yield "whether the disks are shared or mirrored: vxdisk -o alldgs list, as root (exported and remote mean FSS)"
    if not signs.transports:
        yield "what LLT's links run over: cat /etc/llttab"
    if FSS_TCP in left and FSS_UDP in left and signs.transports:
        yield "which links carry the writes: LLT has some over TCP and some over UDP, and the paper one kind"
    if signs.place is None and FSS_ZONES in left:
        yield "whether the peers are in one zone: advisor probe measures the round trip; then --workload rtt=…"
