"""Which host was measured: distinguishes a saved series of another machine or kernel from one of this host.

Source: machine-id(5), which asks that the id itself is not given away but a keyed hash of it.
"""

from __future__ import annotations

import msgspec

from advisor.host import Host
from advisor.version import __version__

_APPLICATION = b"advisor"


class HostIdentity(msgspec.Struct, frozen=True):
    """A host by its names; ``None`` is unknown. ``machine`` is a hash of /etc/machine-id, which stays when the host is
    renamed; ``version`` is that of advisor, whose workloads were run."""

    name: str | None = None
    machine: str | None = None
    kernel: str | None = None
    version: str = __version__


def read_identity(host: Host) -> HostIdentity:
    """Who the host is."""
    machine = host.read_text("/etc/machine-id")
    return HostIdentity(
        name=host.read_text("/proc/sys/kernel/hostname"),
        machine=None if machine is None else _hash_machine(machine),
        kernel=host.read_text("/proc/sys/kernel/osrelease"),
    )


def _hash_machine(machine: str) -> str:
    import hashlib
    import hmac

    return hmac.new(machine.encode("utf-8", "replace"), _APPLICATION, hashlib.sha256).hexdigest()[:32]
