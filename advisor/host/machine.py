"""`Host`: one machine, live or captured."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from advisor.errors import CommandError
from advisor.host import ethtool as ethtool_ioctl
from advisor.host.commands import DEADLINE_SECONDS, CommandRunner, Completed, LiveCommands, NoCommands
from advisor.host.files import DirectoryFiles, FileSource, RememberedFiles
from advisor.host.missing import ABSENT, Missing
from advisor.host.numbers import whole_number
from advisor.host.origin import Origin

if TYPE_CHECKING:
    from advisor.host.steps import PutFile, SetEthtool, SetQdisc, Step

T = TypeVar("T")

MAX_TEXT_BYTES = 1 << 20
"""The longest file that is read as text: no configuration file is as long."""
# Those of /proc grow with the machine: interrupts by CPUs times lines, kallsyms not at all asked for.
_MAX_PROC_BYTES = 16 << 20

EthtoolAnswers = Mapping[tuple[str, str], "ethtool_ioctl.Answer | Missing"]


def _most_text(path: str) -> int:
    return _MAX_PROC_BYTES if path.startswith("/proc/") else MAX_TEXT_BYTES


class Host:
    """A machine to read from and, where it is a directory or live, to change.

    ``is_live`` is true for the machine that this process runs on; ``is_root`` says whether its reads had root's rights,
    None where a support archive does not tell.
    ``asks_kernel`` says whether the kernel is asked where a capture has a command's answer: on a live host, unless it
    is being captured. ``captured_at`` is when a snapshot was taken, in seconds since the epoch; None where that is
    unknown, and live. ``origin`` is that of a support archive.
    """

    def __init__(
        self,
        files: FileSource,
        commands: CommandRunner,
        *,
        is_live: bool = False,
        is_root: bool | None = False,
        ethtool_answers: EthtoolAnswers | None = None,
        captured_at: int | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.files = files
        self._source = files
        self.commands = commands
        self.is_live = self.asks_kernel = is_live
        self.is_root = is_root
        self.captured_at = captured_at
        self.origin = origin
        self._ethtool = ethtool_answers
        self._drivers = ethtool_ioctl.Ethtool()
        self._answers: dict[str, Any] | None = None

    def remembering(self) -> Self:
        """The same host, of which each file is read once: what is asked again is as it was then.

        For the reads of one scan or plan; whoever changes a value reads it by the host itself.
        """
        again = object.__new__(type(self))
        vars(again).update(vars(self))
        again.files = RememberedFiles(self.files)
        again._answers = {}
        return again

    def read_once(self, name: str, read: Callable[[], T]) -> T:
        """What ``read`` makes of files; where this host remembers them, made once for each ``name``."""
        if self._answers is None:
            return read()
        if name not in self._answers:
            self._answers[name] = read()
        found: T = self._answers[name]
        return found

    def read(self, path: str) -> str | Missing:
        """Text of a file without trailing white space and NUL bytes; bytes that are not UTF-8 become U+FFFD.

        Unreadable beyond 1 MiB, or beyond what the kernel prints (`_most_text`): a capture may hold anything.
        """
        data = self.files.read(path)
        if isinstance(data, Missing):
            return data
        if len(data) > _most_text(path):
            return Missing("unreadable", f"longer than {_most_text(path) >> 20} MiB")
        return data.decode("utf-8", "replace").rstrip(" \t\r\n\0")

    def read_or_empty(self, path: str) -> str:
        """A file's text; ``""`` where it is missing or cannot be read, which then says no more than an empty file."""
        text = self.read(path)
        return "" if isinstance(text, Missing) else text

    def is_script(self, path: str) -> bool:
        """Whether a file names its interpreter in its first line; of a program on a live host no more is read."""
        if not self.is_live:
            data = self.files.read(path)
            return isinstance(data, bytes) and data.startswith(b"#!")
        try:
            # A FIFO must not hang a scan.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError):
            return False
        try:
            return os.read(fd, 2) == b"#!"
        except OSError:
            return False
        finally:
            os.close(fd)

    def read_text(self, path: str) -> str | None:
        """A file's text without blanks at its ends; None where it is missing, cannot be read or is blank."""
        return self.read_or_empty(path).strip() or None

    def read_bytes(self, path: str) -> bytes | Missing:
        """The exact content of a file."""
        return self.files.read(path)

    def read_int(self, path: str, base: int = 10) -> int | Missing:
        """An integer attribute; unreadable where the text is not one."""
        text = self.read(path)
        if isinstance(text, Missing):
            return text
        number = whole_number(text, base)
        return Missing("unreadable", f"not a number: {text[:40]!r}") if number is None else number

    def listdir(self, path: str) -> tuple[str, ...] | Missing:
        """Names in a directory, sorted."""
        return self.files.listdir(path)

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; none where there is no such directory or it cannot be read."""
        found = self.files.listdir(path)
        return () if isinstance(found, Missing) else found

    def readlink(self, path: str) -> str | Missing:
        """The text of a symbolic link; absent where the path is no link."""
        return self.files.readlink(path)

    def real(self, path: str) -> str | Missing:
        """The path with every symbolic link resolved, inside the host's own root."""
        return self.files.real(path)

    def is_dir(self, path: str) -> bool:
        return self.files.is_dir(path)

    def exists(self, path: str) -> bool:
        return not isinstance(self.files.real(path), Missing)

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        """Run a command that only reads. ``timeout`` in seconds; a hanging command becomes `Missing`."""
        return self.commands.run(argv, timeout=timeout, stdin=stdin)

    def ethtool(self, link: str, what: str) -> ethtool_ioctl.Answer | Missing:
        """Driver facts of a link, as `ethtool.Ethtool.query` names them; not to be changed."""
        if self.is_live and self._ethtool is None:
            if what == "coalesce":
                # Nothing that a scan asks for: pyroute2 takes its time to load.
                from advisor.host.netlink import read_coalesce

                return read_coalesce(link)
            return self._drivers.query(link, what)
        return (self._ethtool or {}).get((link, what), ethtool_ioctl.NOT_RECORDED)

    def locate(self, path: str) -> str:
        """Where a host path lies on this machine, for writing; directories on the way need not exist yet.

        Raises CommandError for a host that cannot be written to.
        """
        if not isinstance(self._source, DirectoryFiles):
            raise CommandError(f"{path}: a snapshot cannot be changed")
        parent, _, name = path.rpartition("/")
        place = self._source.locate(parent or "/")
        if isinstance(place, Missing):
            if not place.is_absent:
                raise CommandError(f"{path}: the directory {parent}: {place.why}")
            if not isinstance(self.files.readlink(parent), Missing):
                # On this machine it may well lead somewhere.
                raise CommandError(f"{path}: the directory {parent}: a symbolic link to what is not there")
            place = self.locate(parent)
        return f"{place.rstrip('/')}/{name}"

    def do(self, step: Step) -> None:
        """Carry one step out. Raises CommandError with the kernel's or the tool's own words; nothing is retried."""
        from advisor.host.device_identity import located
        from advisor.host.steps import (
            PutFile,
            RunCommand,
            SetEthtool,
            SetIrqs,
            SetMtu,
            SetQdisc,
            SetTxqueuelen,
            WriteFile,
        )

        match step:
            case WriteFile(path, value, identity):
                place = located(self, path, identity)
                if isinstance(place, Missing):
                    raise CommandError(f"{path}: {place.why}")
                self._write_attribute(place, value)
            case SetMtu(link, mtu):
                self._set_link(link, attribute="mtu", file="mtu", value=mtu)
            case SetTxqueuelen(link, packets):
                self._set_link(link, attribute="txqlen", file="tx_queue_len", value=packets)
            case SetEthtool() | SetQdisc():
                self._set_live(step)
            case SetIrqs():
                from advisor.host.irqs import set_irqs

                set_irqs(self, step, self.do)
            case RunCommand(argv):
                done = self.commands.run(argv, timeout=60.0)
                if isinstance(done, Missing):
                    raise CommandError(f"{argv[0]}: {done.why}")
                if not done.ok:
                    raise CommandError(f"{' '.join(argv)}: returned {done.rc}: {done.stderr.strip() or 'no message'}")
            case PutFile():
                self._put_file(step)

    def _root_directory(self, path: str) -> str:
        if not isinstance(self._source, DirectoryFiles):
            raise CommandError(f"{path}: a snapshot cannot be changed")
        return self._source.root

    def _write_attribute(self, path: str, value: str) -> None:
        from advisor.host.safe_open import AstrayError, existing_file

        # O_TRUNC and O_NONBLOCK matter in a captured tree only; without O_CREAT a mistyped path cannot become a file.
        flags = os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | os.O_NONBLOCK
        data = value.encode("utf-8", "surrogateescape") + b"\n"
        try:
            with existing_file(path, flags, root=self._root_directory(path)) as fd:
                self._write_value(fd, data, path, value)
        except AstrayError as error:
            raise CommandError(error.why, errno=error.errno) from error
        except (FileNotFoundError, ValueError) as error:
            raise CommandError(f"{path}: {ABSENT.why}") from error
        except OSError as error:
            why = os.strerror(error.errno or errno.EIO)
            raise CommandError(f"{path}: writing {value!r}: {why}", errno=error.errno) from error

    @staticmethod
    def _write_value(fd: int, data: bytes, path: str, value: str) -> None:
        # Apart from opening: a value may be refused with any error, also with ENOENT (no such algorithm).
        try:
            os.write(fd, data)
        except OSError as error:
            why = os.strerror(error.errno or errno.EIO)
            raise CommandError(f"{path}: writing {value!r}: {why}", errno=error.errno) from error

    def _set_link(self, link: str, *, attribute: str, file: str, value: int) -> None:
        if not self.is_live:
            self._write_attribute(f"/sys/class/net/{link}/{file}", str(value))
            return
        from advisor.host.netlink import set_link

        set_link(link, attribute, value)

    def _set_live(self, step: SetEthtool | SetQdisc) -> None:
        if not self.is_live:
            raise CommandError(f"link {step.link}: only the running kernel can set this, and here is a captured host")
        from advisor.host import netlink
        from advisor.host.steps import SetQdisc

        if isinstance(step, SetQdisc):
            netlink.set_qdisc(step)
        else:
            netlink.set_ethtool(step)

    def _put_file(self, step: PutFile) -> None:
        from advisor.host.putfile import put_file, remove_empty
        from advisor.host.safe_open import AstrayError

        root = self._root_directory(step.path)
        try:
            put_file(step.path, step.content, mode=step.mode, uid=step.uid, gid=step.gid, root=root, is_alone=True)
        except AstrayError as error:
            raise CommandError(f"{step.path}: the directory {error.why}", errno=error.errno) from error
        except OSError as error:
            raise CommandError(f"{step.path}: {os.strerror(error.errno or errno.EIO)}", errno=error.errno) from error
        except ValueError as error:
            raise CommandError(f"{step.path}: {error}") from error
        for directory in step.prune:
            with contextlib.suppress(OSError):
                remove_empty(directory, root=root)

    def remove_leftovers(self, step: PutFile, *, prune: bool) -> None:
        """Remove what a process that was killed while it replaced a file has left: a temporary file, and with ``prune``
        the empty directories that were made for it. What cannot be removed stays."""
        from advisor.host.putfile import remove_empty, remove_temporary

        root = self._root_directory(step.path)
        with contextlib.suppress(OSError):
            remove_temporary(step.path, root=root)
        for directory in step.prune if prune else ():
            with contextlib.suppress(OSError):
                remove_empty(directory, root=root)

    def owner(self, path: str) -> tuple[int, int, int] | Missing:
        """Mode bits, uid and gid of a regular file."""
        try:
            status = os.lstat(self.locate(path))
        except (OSError, CommandError):
            return ABSENT
        if not stat.S_ISREG(status.st_mode):
            return Missing("unreadable", "not a regular file")
        return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid


def live_host() -> Host:
    """The machine that this process runs on."""
    return Host(DirectoryFiles("/"), LiveCommands(), is_live=True, is_root=os.geteuid() == 0)


def tree_host(root: str, commands: CommandRunner | None = None) -> Host:
    """A directory that holds a captured ``/proc`` and ``/sys`` (and ``/etc`` where it was captured)."""
    return Host(DirectoryFiles(root), commands or NoCommands(), is_root=True)
