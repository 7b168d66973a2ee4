"""How full file systems are: those of kinds that lie on devices of one host, as others may not answer.

Source: statvfs(3); of a captured host df(1) of GNU coreutils 8.21 and later, --output. A kind that is always full
(squashfs, iso9660) or lies in memory is left out.
"""

from __future__ import annotations

import msgspec

from advisor.facts.mounts import Mount, read_mounts
from advisor.host import Host, Missing, is_count, lazy_regex
from advisor.host.space import read_statvfs

DF = ("df", "--local", "--block-size=1", "--output=fstype,size,used,avail,itotal,iavail,target")
KINDS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs"})
_ROW = lazy_regex(r"(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(/.*)")
_MAX_ROWS = 4096


class Space(msgspec.Struct, frozen=True):
    """Bytes and inodes of a file system; inodes are 0 where it has no fixed number of them. ``available_bytes`` is
    what an ordinary user may still write."""

    kind: str
    used_bytes: int
    available_bytes: int
    inodes: int
    free_inodes: int

    @property
    def used_share(self) -> float:
        """As df prints it: of what ordinary users may have."""
        whole = self.used_bytes + self.available_bytes
        return self.used_bytes / whole if whole else 0.0

    @property
    def inodes_used_share(self) -> float | None:
        return 1 - self.free_inodes / self.inodes if self.inodes else None


def read_spaces(
    host: Host, mounts: tuple[Mount, ...] | Missing | None = None, kinds: frozenset[str] = KINDS
) -> dict[str, Space] | Missing:
    """File systems of these kinds by mount point; why none is known of a captured host without an answer of df.
    ``mounts`` are those of the host, where they have been read."""
    if not host.asks_kernel:
        done = host.run(DF)
        return done if isinstance(done, Missing) else parse_df(done.stdout, kinds)
    mounts = read_mounts(host) if mounts is None else mounts
    if isinstance(mounts, Missing):
        return mounts
    found = {}
    seen: set[str | None] = set()
    for mount in mounts[:_MAX_ROWS]:
        if mount.kind in kinds and mount.number not in seen:
            seen.add(mount.number)
            space = read_statvfs(mount.target)
            if not isinstance(space, Missing):
                found[mount.target] = Space(mount.kind, *space)
    return found


def parse_df(text: str, kinds: frozenset[str] = KINDS) -> dict[str, Space]:
    """File systems by mount point, from `DF`; rows of other kinds, and those that df could not fill, are left out."""
    found = {}
    for line in text.split("\n")[: _MAX_ROWS + 1]:
        row = _ROW.fullmatch(line) if len(line) < 5000 else None
        if row is None or row[1] not in kinds or not all(map(is_count, row.groups()[2:4])):
            continue
        inodes, free = (int(word) if is_count(word) else 0 for word in row.groups()[4:6])
        used, available = int(row[3]), int(row[4])
        if max(used, available, inodes, free) < 1 << 63 and free <= inodes:
            found[row[7]] = Space(row[1], used, available, inodes, free)
    return found
