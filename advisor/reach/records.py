"""Peers, and what was learnt of the path to each. Sizes in bytes of the whole IP packet, times in milliseconds."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["named", "gateway", "llt", "iscsi", "nfs", "nvme", "neighbour"]

Limit = Literal["link", "too-big", "silent", "way-back", "unknown"]
"""What ends the path MTU.

``link``      the link of this host itself: nothing on the way is smaller
``too-big``   a router (or the peer) said that more is too big
``silent``    more vanishes without a word, while small packets are answered
``way-back``  more arrives, but the answer comes back in fragments
``unknown``   nothing answered, or the peer fell silent meanwhile
"""


class Peer(msgspec.Struct, frozen=True):
    """An address to ask. ``link`` is the link that the route to it takes, None where no route was found.

    A link-local IPv6 address carries its link as the scope (``fe80::1%eth1``). ``source`` is the address of this host
    that the peer's service is bound to, None where the kernel chooses; ``mtu`` is the present MTU of ``link``.
    """

    address: str
    role: Role
    link: str | None
    why: str
    source: str | None = None
    mtu: int | None = None


class Unprobeable(msgspec.Struct, frozen=True):
    """Somebody at the other end who cannot be asked, or is not asked, and why."""

    what: str
    role: Role
    link: str | None
    why: str


class Peers(msgspec.Struct, frozen=True):
    """Whom to ask, and who is left out."""

    asked: tuple[Peer, ...]
    unprobeable: tuple[Unprobeable, ...] = ()


class Reach(msgspec.Struct, frozen=True):
    """What is known of the path to a peer and back.

    ``sent`` and ``lost`` count the small echoes of the round-trip time. ``path_mtu`` is the largest packet that was
    answered whole while one byte more was not (or could not leave: ``limit`` is ``link``); None where that is
    unknown, and ``why_not`` says why. ``limited_by`` is the address that said *too big*; ``said_mtu`` the MTU that it
    named, or the size of the fragments of a way back.
    """

    peer: Peer
    rtt_ms_min: float | None
    rtt_ms_median: float | None
    lost: int
    sent: int
    path_mtu: int | None
    limit: Limit
    limited_by: str | None
    answered: bool
    why_not: str | None
    said_mtu: int | None = None
