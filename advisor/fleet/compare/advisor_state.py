"""What advisor itself has applied on a captured host: active profiles, and what drifted from them."""

from __future__ import annotations

import msgspec

from advisor.errors import AdvisorError
from advisor.host import Host
from advisor.snapshot.remote.store import CapturedStore
from advisor.transaction.journal import STATE_DIRECTORY
from advisor.transaction.verify import find_drift


class AdvisorState(msgspec.Struct, frozen=True):
    """Active ``profiles``, by name; ``drifted`` the tunables and files that drifted, None where unknown;
    ``unfinished`` the transactions that were interrupted and are not rolled back."""

    profiles: tuple[str, ...] = ()
    drifted: tuple[str, ...] | None = ()
    unfinished: tuple[str, ...] = ()


def read_standing(host: Host, *, has_looked: bool) -> AdvisorState | None:
    """By the journals in a capture; None where nothing is known.

    That is so where the capture was not made by root, or holds no journal and was made by something that does not look
    for one: ``advisor snapshot`` (then ``has_looked`` is False).
    """
    if not has_looked and not host.is_dir(f"{STATE_DIRECTORY}/transactions"):
        return None
    try:
        records = CapturedStore(host).read_records()
    except AdvisorError:
        return None
    in_force = [record for record in records if record.is_active]
    profiles = sorted({name for record in in_force for name in record.plan.profiles})
    unfinished = tuple(record.id for record in records if record.is_unfinished)
    # What differs for certain; None where nothing does and something could not be read.
    drift = find_drift(host, in_force)
    certain = tuple(sorted({one.what for one in drift if one.live is not None}))
    return AdvisorState(tuple(profiles), None if drift and not certain else certain, unfinished)
