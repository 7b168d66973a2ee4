"""Storage that the kernel itself serves, with threads that no unit of systemd can bind: NFS, and iSCSI by SCST."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.printable import printable
from advisor.host import Host, Missing, lazy_regex

NFSD_THREADS = "/proc/fs/nfsd/threads"
EXPORTS = ("/var/lib/nfs/etab", "/proc/fs/nfs/exports", "/etc/exports")
"""What is exported, and where that is not listed what is to be (exports(5)): a path, blanks, clients."""
SCST = "/sys/kernel/scst_tgt"
MAX_EXPORTS = 64

_EXPORT = lazy_regex(r'^(?:"(/[^"\n]*)"|(/\S*))\s', re.MULTILINE)


class KernelServices(msgspec.Struct, frozen=True):
    """``nfs_exports`` are the paths that a running nfsd serves; ``nfsd`` is None where that it runs is unknown."""

    nfsd: bool | None = None
    nfs_exports: tuple[str, ...] = ()
    scst: bool = False


def read_kernel_services(host: Host) -> KernelServices:
    """From /proc and /sys; /etc/exports counts only where nfsd has threads."""
    threads = host.read_int(NFSD_THREADS)
    runs = None if isinstance(threads, Missing) else threads > 0
    if isinstance(threads, Missing) and threads.is_absent:
        runs = False
    return KernelServices(runs, _list_exports(host) if runs else (), host.exists(SCST))


def _list_exports(host: Host) -> tuple[str, ...]:
    for path in EXPORTS:
        text = host.read(path)
        if not isinstance(text, Missing) and (found := parse_exports(text)):
            return found
    return ()


def parse_exports(text: str) -> tuple[str, ...]:
    """The paths of an exports table, each once, in its order; octal escapes as the kernel writes them are undone."""
    paths = (first or second for first, second in _EXPORT.findall(text))
    plain = (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), path) for path in paths)
    return tuple(dict.fromkeys(map(printable, plain)))[:MAX_EXPORTS]
