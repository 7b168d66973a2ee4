"""What a host prints when it is captured, for fuzzing: the frame as it comes, and what a right frame may hold."""

from __future__ import annotations

import base64
import contextlib
import io
import tarfile
from typing import Final

from advisor.errors import InvalidInputError
from advisor.snapshot.remote.capture import capture_host, kept_journal
from advisor.snapshot.remote.stream import Checksum, Stream, read_stream

_HEADER: Final = b"advisor-capture 1\nhostname a\ntime 1\nuid 0\nfile-limit 4096\nencoding none\n\n"
_FILES: Final = {
    "files/./sys/class/net/lo/mtu": b"65536\n",
    "files/./var/lib/advisor/transactions/0001/journal": b"00000000 {}\n",
    "notes/names": b"d/sys/class/net/lo\0f/run/x\0p/etc\0s/dev/null\0n/proc/7\0",
    "notes/errors": b"cp: error reading './a': Invalid argument\ncp: can't open './b': Permission denied\n",
    "notes/left": b"./c\0",
    "commands/n1.argv": b"10\0ethtool\0-k\0lo\0",
    "commands/n1.rc": b"0\n",
    "commands/n1.out": b"Features for lo:\ntx-checksum-ip-generic: on [fixed]\nrx-gro: off [requested on]\n",
    "commands/u1.argv": b"10\0systemctl\0show\0--no-pager\0--property=Id\0--\0*.service\0",
    "commands/u1.rc": b"0\n",
    "commands/u1.out": b"Id=a.service\nLoadState=loaded\n\nId=b.service\n",
    "commands/s1.argv": b"10\0stat\0--file-system\0--format=%S %n\0--\0/a\0/b\0",
    "commands/s1.rc": b"0\n",
    "commands/s1.out": b"4096 /a\n512 /b\n",
}


def framed(data: bytes) -> bytes:
    """A stream whose checksum is right, whatever it holds."""
    body = _HEADER + base64.encodebytes(data)
    checksum = Checksum()
    checksum.add(body)
    return body + b"end %d %d\n" % (checksum.length, checksum.value)


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in _FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("files/./sys/class/net/lo")
        link.type, link.linkname = tarfile.SYMTYPE, "../../devices/virtual/net/lo"
        archive.addfile(link)
    return buffer.getvalue()


HELD: Final = (_tar(), *(content for content in _FILES.values()))
STREAMS: Final = (framed(HELD[0]), b"Welcome\r\n" + framed(HELD[0]).replace(b"\n", b"\r\n"), framed(b""))


def read(data: bytes) -> Stream | None:
    """The frame."""
    with contextlib.suppress(InvalidInputError):
        return read_stream(io.BytesIO(data), "fuzz")
    return None


def hold(data: bytes) -> object:
    """A host out of what a frame holds, asked a few things."""
    kept_journal(data)
    kept_journal(data, is_packed=True)
    try:
        host = capture_host(framed(data), "fuzz")
    except InvalidInputError:
        return None
    shown = ("systemctl", "show", "--property=Id,LoadState", "--", "a.service", "c.service")
    stat = ("stat", "--file-system", "--format=%S %n", "--", "/b")
    return [
        *(host.ethtool("lo", what) for what in ("features", "changeable", "requested", "rings")),
        *(host.run(argv) for argv in (shown, stat, ("iris", "qlist"))),
        *(host.read(path) for path in ("/sys/class/net/lo/mtu", "/a", "/c", "/etc", "/dev/null", "/run/x")),
        host.listdir("/var/lib/advisor/transactions"),
    ]
