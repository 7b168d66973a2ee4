"""Devices of dm-crypt, and whether their requests go through queues of its own.

Source: Linux Documentation/admin-guide/device-mapper/dm-crypt.rst: no_read_workqueue, no_write_workqueue (5.9).
"""

from __future__ import annotations

import msgspec

from advisor.facts.block import natural
from advisor.facts.dm import TABLE
from advisor.facts.dm_text import parse_dm_lines
from advisor.facts.printable import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count


class EncryptedDevice(msgspec.Struct, frozen=True):
    """``device`` is the kernel's name (dm-2), ``name`` the mapping's. ``options`` are those of its table; None where
    that could not be read (it needs root)."""

    name: str
    device: str
    below: tuple[str, ...]
    options: tuple[str, ...] | None


def list_crypt_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """The optional parameters of a crypt target: behind cipher, key, IV offset, device and offset their count."""
    return () if len(words) < 6 or not is_count(words[5]) else words[6 : 6 + min(int(words[5][:4]), 32)]


def read_encrypted(host: Host, unknown: Unknowns) -> tuple[EncryptedDevice, ...]:
    """Every mapping of dm-crypt; the key of a table is neither asked for nor kept."""
    names = [name for name in sorted(host.names("/sys/block"), key=natural) if name.startswith("dm-")]
    uuids = {name: host.read(f"/sys/block/{name}/dm/uuid") for name in names}
    own = [name for name, uuid in uuids.items() if not isinstance(uuid, Missing) and uuid.startswith("CRYPT-")]
    if not own:
        return ()
    tables = None
    if host.is_root or not host.is_live:
        done = host.run(TABLE)
        tables = None if isinstance(done, Missing) or not done.ok else parse_dm_lines(done.stdout)
    if tables is None:
        unknown.note("encrypted.options", "dmsetup table needs root: how dm-crypt queues requests is unknown")
    found = []
    for name in own:
        mapping = (host.read_text(f"/sys/block/{name}/dm/name") or name).strip()
        words = next((one.words for one in (tables or {}).get(mapping, ()) if one.kind == "crypt"), None)
        found.append(
            EncryptedDevice(
                printable(mapping),
                name,
                host.names(f"/sys/block/{name}/slaves"),
                None if words is None else tuple(map(printable, list_crypt_options(words))),
            )
        )
    return tuple(found)
