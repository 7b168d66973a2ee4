"""What is done to a host, as data: executed here, rendered as shell by ``advisor.shell.rollback_script``.

Apply, dry run, rollback, the rollback script and the documentation all print or execute the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.host.missing import Identity

DriverGroup = Literal["rings", "channels", "coalesce", "pause", "features"]

# The option of ethtool(8) that shows a group; the one that sets it is the same letter in capitals.
ETHTOOL_OPTIONS: Mapping[DriverGroup, str] = {
    "rings": "-g",
    "channels": "-l",
    "coalesce": "-c",
    "pause": "-a",
    "features": "-k",
}

# A qdisc under its handle here was attached by us, without parameters of its own. One for each kind: the kernel does
# not replace one kind by another under the same handle.
QDISC_HANDLES: Mapping[str, str] = {
    "bfifo": "ad1:",
    "cake": "ad2:",
    "codel": "ad3:",
    "fq": "ad4:",
    "fq_codel": "ad5:",
    "fq_pie": "ad6:",
    "pfifo": "ad7:",
    "pfifo_fast": "ad8:",
    "pie": "ad9:",
    "sfq": "ada:",
}


class WriteFile(msgspec.Struct, frozen=True, tag="write"):
    """Write ``value`` and a newline into an existing kernel attribute; never creates a file.

    With an ``identity``, into that of the device whatever its name is now.
    """

    path: str
    value: str
    identity: Identity | None = None


class SetMtu(msgspec.Struct, frozen=True, tag="mtu"):
    """Set a link's MTU in bytes (``ip link set dev LINK mtu MTU``)."""

    link: str
    mtu: int


class SetTxqueuelen(msgspec.Struct, frozen=True, tag="txqueuelen"):
    """Set the length of a link's transmit queue in packets (``ip link set dev LINK txqueuelen PACKETS``)."""

    link: str
    packets: int

    @property
    def argv(self) -> tuple[str, ...]:
        return ("ip", "link", "set", "dev", self.link, "txqueuelen", str(self.packets))


class SetEthtool(msgspec.Struct, frozen=True, tag="ethtool"):
    """Set one value of a link's driver (``ethtool -G|-L|-C|-A|-K LINK KEY VALUE``), by ethtool's or the kernel's name.

    ``value`` is a number, or ``on`` or ``off``.
    """

    link: str
    group: DriverGroup
    key: str
    value: str

    @property
    def argv(self) -> tuple[str, ...]:
        return ("ethtool", ETHTOOL_OPTIONS[self.group].upper(), self.link, self.key, self.value)


class SetQdisc(msgspec.Struct, frozen=True, tag="qdisc"):
    """Attach a root qdisc of a kind of `QDISC_HANDLES`, without parameters; for None, the kernel's own again."""

    link: str
    kind: str | None

    @property
    def argv(self) -> tuple[str, ...]:
        if self.kind is None:
            return ("tc", "qdisc", "del", "dev", self.link, "root")
        return ("tc", "qdisc", "replace", "dev", self.link, "root", "handle", QDISC_HANDLES[self.kind], self.kind)


class SetIrqs(msgspec.Struct, frozen=True, tag="irqs"):
    """Give each interrupt of a link its affinity: ``NAME=CPUS`` words of `link_irqs`, in its order."""

    link: str
    affinities: tuple[str, ...]


class RunCommand(msgspec.Struct, frozen=True, tag="run"):
    """Run a command; a return code other than 0 is a failure."""

    argv: tuple[str, ...]


class PutFile(msgspec.Struct, frozen=True, tag="put"):
    """Make a configuration file hold exactly ``content``, atomically; None removes it.

    ``prune`` are directories, innermost first, that are removed after it if they are empty.
    """

    path: str
    content: bytes | None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    prune: tuple[str, ...] = ()


Step = WriteFile | SetMtu | SetTxqueuelen | SetEthtool | SetQdisc | SetIrqs | RunCommand | PutFile
