"""What follows from a proof: a proven gain is applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from advisor.host import Host
from advisor.i18n import msg
from advisor.operations.transactions import apply_profiles
from advisor.profiles.requested import RequestedProfile
from advisor.proof.records import Proof
from advisor.transaction.journal import Store


def keep_gain(
    host: Host,
    proof: Proof,
    values: Mapping[str, str],
    asked: RequestedProfile | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> Proof:
    """Apply and persist the profile of a proven gain as a transaction of its own; ``kept`` of the result says so.

    ``values`` are the settings that the profile was measured with, ``asked`` is the profile where it has no name of the
    library. Any other verdict changes nothing. Raises what
    `apply_profiles` raises.
    """
    if not proof.is_gain:
        return proof
    record = apply_profiles(host, [asked or proof.profile], values, progress=say, store=store).record
    if record is not None and record.seconds_left is not None:
        say(
            msg(
                "{id} rolls back automatically in {seconds:.0f} s unless confirmed: advisor confirm {id}",
                id=record.id,
                seconds=record.seconds_left,
            )
        )
    return msgspec.structs.replace(proof, kept=True)
