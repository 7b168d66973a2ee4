"""What a source of peers hands on: an address as the host gives it, not yet checked."""

from __future__ import annotations

import msgspec

from advisor.reach.records import Role


class FoundAddress(msgspec.Struct, frozen=True):
    """``link`` is the link that the service is bound to, ``source`` its own address; None where the route decides."""

    address: str
    role: Role
    why: str
    link: str | None = None
    source: str | None = None
