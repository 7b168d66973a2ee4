"""Capture what a scan reads into an archive, and open an archive as a `Host`.

A snapshot is a compressed tar: ``advisor-snapshot.json`` (links, directories, failed reads, command and ethtool
answers) and the files below ``root/``. An archive that holds nothing but a captured ``/proc`` and ``/sys`` opens too.
Archives are read into memory within bounds and never extracted, so no name in one can reach the file system.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar, cast

import msgspec

from advisor.errors import InvalidInputError
from advisor.facts.redaction import without_credentials, without_secrets
from advisor.host import Completed, DirectoryFiles, FileSource, Host, MemoryFiles, Missing, NoCommands, RecordedCommands
from advisor.host.commands import DEADLINE_SECONDS, MeteredCommands
from advisor.host.ethtool import Answer
from advisor.host.files import IS_DIRECTORY, UNRECORDED, ReadBudget, open_given
from advisor.host.patterns import lazy_regex
from advisor.observe.sample import CounterSpan, decode_span
from advisor.snapshot import tar as tarball
from advisor.snapshot.support.kinds import find_kind, is_wanted, siblings

if TYPE_CHECKING:
    from tarfile import TarFile

T = TypeVar("T")

SCHEMA = "advisor.snapshot/1"
INDEX = "advisor-snapshot.json"
MAX_MEMBERS = 400_000
MAX_TOTAL_BYTES = 512 * 1024 * 1024
MAX_MEMBER_BYTES = 32 * 1024 * 1024
MAX_DIRECTORIES = 400_000
MAX_READ_STEPS = 8_000_000
"""For a scan and plans of what an archive holds; hosts with hundreds of disks and links take some 200,000."""
MAX_DEPTH = 64
MAX_NAME_BYTES = 4096
MAX_PART = 255
MAX_SUPPORT_BYTES = 16 << 30
"""Of another tool's archive, decompressed; what is kept of it is bounded as that of our own."""
_HEADER_BYTES = 2048  # of a member with a long name, its padding included
_MAX_OWN_BYTES = MAX_TOTAL_BYTES + MAX_MEMBERS * _HEADER_BYTES
_MAX_LEFT_OUT = 200
_PLAIN_NAME = lazy_regex(r"[^/\0.][^/\0]{0,254}(?:/[^/\0.][^/\0]{0,254}){0,12}")
_KINDS_OF_FILES: Mapping[int, tarball.Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_NOTHING = Missing("absent", "not recorded")
_TAKEN = (
    "--snapshot takes what advisor snapshot -o FILE or the script of --script wrote, or a sosreport, supportconfig, "
    "insights archive or VRTSexplorer"
)


class CommandAnswer(msgspec.Struct, frozen=True):
    argv: tuple[str, ...]
    answer: Completed | None
    missing: Missing | None


class EthtoolAnswer(msgspec.Struct, frozen=True):
    link: str
    what: str
    answer: Answer | None
    missing: Missing | None


class Index(msgspec.Struct, frozen=True):
    """What of a snapshot is not a file's content.

    ``captured_at`` is when it was taken, in seconds since the epoch; earlier versions did not record it.
    """

    schema: str
    is_root: bool | None
    links: dict[str, str]
    directories: tuple[str, ...]
    unreadable: dict[str, str]
    commands: tuple[CommandAnswer, ...]
    ethtool: tuple[EthtoolAnswer, ...]
    captured_at: int | None = None


class _RecordingFiles:
    """A file source that remembers every answer that it gives, by the path behind all links."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self.contents: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.directories: set[str] = set()
        self.unreadable: dict[str, str] = {}
        self.seen: set[str] = set()
        """Files that were seen in a listing; those that nobody read are recorded as such, never as empty."""
        self._walked: set[str] = set()

    def read(self, path: str) -> bytes | Missing:
        answer = self._source.read(path)
        if answer == IS_DIRECTORY:
            # Its listing is another matter.
            self.real(path)
            return answer
        real = self._resolve_links(path, answer)
        if real is not None and isinstance(answer, bytes):
            # By both names: what /etc/iscsi leads to may lie anywhere.
            self.contents[real] = without_secrets(real, without_secrets(path, answer))
        return answer

    def listdir(self, path: str) -> tuple[str, ...] | Missing:
        answer = self._source.listdir(path)
        real = self._resolve_links(path, answer)
        if real is not None and isinstance(answer, tuple):
            self.directories.add(real)
            for name in answer:
                child = f"{real.rstrip('/')}/{name}"
                target = self._source.readlink(child)
                if not isinstance(target, Missing):
                    self.links[child] = target
                elif self._source.is_dir(child):
                    self.directories.add(child)
                else:
                    self.seen.add(child)
        return answer

    def readlink(self, path: str) -> str | Missing:
        answer = self._source.readlink(path)
        parent, _, name = path.rstrip("/").rpartition("/")
        real = self.real(parent or "/")
        if not isinstance(answer, Missing) and not isinstance(real, Missing):
            self.links[f"{real.rstrip('/')}/{name}"] = answer
        return answer

    def real(self, path: str) -> str | Missing:
        answer = self._source.real(path)
        self._record_links(path)
        if not isinstance(answer, Missing) and self._source.is_dir(answer):
            self.directories.add(answer)
        elif not isinstance(answer, Missing):
            self.seen.add(answer)
        return answer

    def is_dir(self, path: str) -> bool:
        return not isinstance(self.real(path), Missing) and self._source.is_dir(path)

    def _resolve_links(self, path: str, answer: object) -> str | None:
        """The path behind all links that an answer belongs to; a failed read is noted there, an absent one nowhere."""
        if isinstance(answer, Missing) and answer.is_absent:
            return None
        self._record_links(path)
        real = self._source.real(path)
        if isinstance(real, Missing):
            return None
        if isinstance(answer, Missing):
            self.unreadable[real] = answer.why
        return real

    def _record_links(self, path: str) -> None:
        """Keep every symbolic link on the way to ``path``."""
        pending = [path]
        while pending:
            here = pending.pop()
            if here in ("", "/") or here in self._walked:
                continue
            self._walked.add(here)
            parent, _, name = here.rstrip("/").rpartition("/")
            pending.append(parent)
            if name == "..":
                self._keep_place(parent)
            target = self._source.readlink(here)
            if isinstance(target, Missing):
                continue
            real = self._source.real(parent or "/")
            if isinstance(real, Missing):
                continue
            self.links[f"{real.rstrip('/')}/{name}"] = target
            self._keep_place(here)  # a ".." behind the link leads out of it again
            pending.append(os.path.normpath(target if target.startswith("/") else f"{real}/{target}"))

    def _keep_place(self, path: str) -> None:
        """A ``..`` leads out of what is there alone."""
        behind = self._source.real(path)
        if not isinstance(behind, Missing):
            (self.directories if self._source.is_dir(behind) else self.seen).add(behind)


class _RecordingHost(Host):
    def __init__(self, host: Host) -> None:
        self.recorded = _RecordingFiles(host.files)
        super().__init__(self.recorded, host.commands, is_live=host.is_live, is_root=host.is_root)
        self._host = host
        self.asks_kernel = False
        self.answers: dict[tuple[str, ...], Completed | Missing] = {}
        self.ethtool_asked: dict[tuple[str, str], Answer | Missing] = {}

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        answer = self._host.run(argv, timeout=timeout, stdin=stdin)
        if isinstance(answer, Completed):
            clean = without_credentials(answer.stdout.encode("utf-8", "surrogateescape"))
            answer = msgspec.structs.replace(answer, stdout=clean.decode("utf-8", "surrogateescape"))
        self.answers[tuple(argv)] = answer
        return answer

    def ethtool(self, link: str, what: str) -> Answer | Missing:
        answer = self._host.ethtool(link, what)
        self.ethtool_asked[link, what] = answer
        return answer


def capture_host(
    host: Host, read_all: Callable[[Host], object], attachments: Mapping[str, bytes] | None = None
) -> bytes:
    """A snapshot archive of everything that ``read_all`` (the scan) reads from ``host``, with ``attachments`` by their
    names, which are no files of the host."""
    recording = _RecordingHost(host)
    read_all(recording)
    files = recording.recorded
    for path in files.seen - files.contents.keys() - files.directories:
        files.unreadable.setdefault(path, UNRECORDED)
    index = Index(
        SCHEMA,
        host.is_root,
        dict(sorted(files.links.items())),
        tuple(sorted(files.directories)),
        dict(sorted(files.unreadable.items())),
        tuple(
            CommandAnswer(argv, None, answer) if isinstance(answer, Missing) else CommandAnswer(argv, answer, None)
            for argv, answer in sorted(recording.answers.items())
        ),
        tuple(
            EthtoolAnswer(*key, None, answer) if isinstance(answer, Missing) else EthtoolAnswer(*key, answer, None)
            for key, answer in sorted(recording.ethtool_asked.items())
        ),
        int(time.time()) if host.is_live else host.captured_at,
    )
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        # json, unlike msgspec, can write and read a file name that is not UTF-8 (a lone surrogate).
        _add_member(archive, INDEX, json.dumps(msgspec.to_builtins(index), indent=1).encode())
        for name, content in (attachments or {}).items():
            _add_member(archive, name, content)
        for path, content in sorted(files.contents.items()):
            _add_member(archive, f"root{path}", content)
    return buffer.getvalue()


def _add_member(archive: TarFile, name: str, content: bytes) -> None:
    member = archive.tarinfo(name)
    member.size = len(content)
    member.mode = 0o644
    archive.addfile(member, io.BytesIO(content))


def save_snapshot(data: bytes, path: Path) -> None:
    """Write an archive; the file is readable by its owner alone, for it names the host's devices and addresses."""
    from advisor.host.putfile import save_output

    save_output(str(path), data, mode=0o600)


def open_snapshot(path: Path) -> Host:
    """The host that an archive holds. Raises InvalidInputError naming the member that is wrong."""
    return _open_path(path, _make_host)


def open_unpacked(path: Path) -> Host:
    """The host of a support archive that somebody has unpacked. Raises InvalidInputError for any other directory."""
    members = _read_members(_Source.of_directory(path), str(path))
    kind = find_kind(members.contents)
    if kind is None:
        is_tree = any((path / name).is_dir() for name in ("proc", "sys"))
        raise InvalidInputError(
            f"{path}: a directory without the files of an unpacked sosreport or other support archive",
            hint=f"--root {path} reads a captured tree" if is_tree else _TAKEN,
        )
    if beside := siblings(*kind, members.contents):
        one, other = sorted((kind[1], *beside))[:2]
        raise InvalidInputError(
            f"{path}: holds several archives, as {one[1:]} and {other[1:]}", hint="give one of them"
        )
    return _make_host(members, str(path))


def read_attachment(path: Path, name: str) -> bytes | None:
    """What an archive holds besides the files of the host, by its name. Raises InvalidInputError."""
    return _open_path(path, lambda members, where: members[0].get(f"/{name}"))


def read_attachment_of(data: bytes, where: str, name: str) -> bytes | None:
    """As `read_attachment`, of an archive in memory that ``where`` names."""
    return _open_file(io.BytesIO(data), where, lambda members, where: members[0].get(f"/{name}"))


def _open_path(path: Path, use: Callable[[tarball.Members, str], T]) -> T:
    try:
        with open_given(path) as file:
            return _open_file(file, str(path), use)
    except FileNotFoundError as error:
        raise InvalidInputError(f"{path}: no such file", hint="advisor snapshot -o FILE makes one") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror or error}") from error


def open_archive(data: bytes, where: str) -> Host:
    """As `open_snapshot`, of an archive in memory that ``where`` names."""
    return _open_file(io.BytesIO(data), where, _make_host)


def _make_host(members: tarball.Members, where: str) -> Host:
    contents, links, directories, *_ = members
    index_bytes = contents.pop(f"/{INDEX}", None)
    if index_bytes is None and (kind := find_kind(members.contents)):
        from advisor.snapshot.support.archive import make_host

        return make_host(kind, members, ReadBudget(where, MAX_READ_STEPS))
    if index_bytes is None:
        # A tree of /proc and /sys, at the top of the archive or in its only folder.
        tops = _top_directories(contents, links, directories)
        if not tops & {"proc", "sys"} and len(tops) == 1:
            top = f"/{tops.pop()}"
            contents = {name.removeprefix(top): data for name, data in contents.items()}
            links = {name.removeprefix(top): target for name, target in links.items()}
            directories = {name.removeprefix(top) or "/" for name in directories}
            tops = _top_directories(contents, links, directories)
        if not tops & {"proc", "sys"}:
            raise InvalidInputError(f"{where}: holds neither {INDEX} nor a /proc or /sys tree", hint=_TAKEN)
        source = MemoryFiles(contents, links, frozenset(directories), budget=ReadBudget(where, MAX_READ_STEPS))
        return Host(source, NoCommands(), is_root=True)
    index = _decode_index(index_bytes, f"{where}: {INDEX}")
    files = {name.removeprefix("/root"): data for name, data in contents.items() if name.startswith("/root/")}
    _list_directories((*index.links, *index.directories, *index.unreadable), f"{where}: {INDEX}")
    budget = ReadBudget(where, MAX_READ_STEPS)
    source = MemoryFiles(files, index.links, frozenset(index.directories), index.unreadable, budget)
    recorded = RecordedCommands({one.argv: one.answer or one.missing or _NOTHING for one in index.commands})
    commands = MeteredCommands(recorded, budget)
    asked = {(one.link, one.what): one.missing if one.answer is None else one.answer for one in index.ethtool}
    answers = {key: _NOTHING if answer is None else answer for key, answer in asked.items()}
    return Host(source, commands, is_root=index.is_root, ethtool_answers=answers, captured_at=index.captured_at)


def _open_file(file: IO[bytes], where: str, use: Callable[[tarball.Members, str], T]) -> T:
    try:
        with _decompress_file(file) as stream:
            measured = tarball.BoundedStream(stream, file, MAX_SUPPORT_BYTES)
            return use(_read_members(_Source.of_tar(measured), where), where)
    except RecursionError as error:
        raise InvalidInputError(f"{where}: nested too deeply") from error
    except OSError as error:
        raise InvalidInputError(f"{where}: {error.strerror or error}") from error
    except (EOFError, ValueError) as error:
        raise InvalidInputError(f"{where}: not a snapshot archive: {error!s}", hint=_TAKEN) from error
    except _damage_errors() as error:
        raise InvalidInputError(f"{where}: damaged archive: {error}", hint="copy or capture it again") from error


def _damage_errors() -> tuple[type[Exception], ...]:
    import lzma
    import zlib

    return (tarball.DamagedError, zlib.error, lzma.LZMAError)


def _decompress_file(file: IO[bytes]) -> IO[bytes]:
    import bz2
    import gzip
    import lzma

    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if magic == b"\xfd7zXZ\0" else file


def _decode_index(data: bytes, where: str) -> Index:
    index = _decode_at_once(data) or _decode_with_reasons(data, where)
    for path in (*index.links, *index.directories, *index.unreadable):
        if path != "/" and not is_host_path(path):
            raise InvalidInputError(f"{where}: {path[:80]!r}: no path of a captured host")
    for path, target in index.links.items():
        if len(target) > MAX_NAME_BYTES:
            raise InvalidInputError(f"{where}: {path!r}: its link is longer than any path")
    return index


def _decode_at_once(data: bytes) -> Index | None:
    """The index where nothing is wrong with it. What is wrong, the longer way below names."""
    try:
        index = msgspec.json.decode(data, type=Index)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return index if index.schema == SCHEMA else None


def _decode_with_reasons(data: bytes, where: str) -> Index:
    try:
        document = json.loads(data)
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise InvalidInputError(f"{where}: schema is {str(schema)[:80]!r}, this version reads {SCHEMA}")
        return msgspec.convert(document, Index)
    except (ValueError, msgspec.ValidationError) as error:
        raise InvalidInputError(f"{where}: {error}") from error
    except RecursionError as error:
        raise InvalidInputError(f"{where}: nested too deeply") from error


@lru_cache(maxsize=2048)
def is_host_path(text: str) -> bool:
    """Whether a text is the path of something on a host: absolute, plain, and of a length that a file system takes."""
    root, *names = text.split("/")
    is_short = len(names) <= MAX_DEPTH and len(text) <= MAX_NAME_BYTES
    return not root and is_short and not {"", ".", ".."}.intersection(names)


class _Source(NamedTuple):
    """Members, and how to have the content of the one that was given last. ``bound`` makes it refuse what is larger
    than a snapshot of this program's own can be."""

    members: Iterable[tarball.Member]
    content: Callable[[], bytes]
    bound: Callable[[], None]

    @classmethod
    def of_tar(cls, stream: tarball.BoundedStream) -> _Source:
        reader = tarball.TarReader(stream)
        return cls(reader, reader.content, lambda: setattr(stream, "limit", _MAX_OWN_BYTES))

    @classmethod
    def of_directory(cls, top: Path) -> _Source:
        """What lies in a directory; no link is followed, no device or pipe opened."""
        files = DirectoryFiles(str(top))
        last = ""
        name_of_top = os.path.basename(os.path.abspath(top))
        # Of some kinds the folder's own name is what says it.
        above = f"{name_of_top}/" if "VRTSexplorer" in name_of_top else ""

        def members() -> Iterator[tarball.Member]:
            nonlocal last
            for directory, below, names in os.walk(top):
                below.sort()
                for name in sorted((*below, *names)):
                    path = os.path.join(directory, name)
                    last = f"/{os.path.relpath(path, top)}"
                    with contextlib.suppress(OSError):
                        status = os.lstat(path)
                        kind = _KINDS_OF_FILES.get(stat.S_IFMT(status.st_mode), "other")
                        target = os.readlink(path) if kind == "link" else ""
                        size = status.st_size if kind == "file" else 0
                        yield tarball.Member(f"{above}{last[1:]}", kind, size, target, int(status.st_mtime))

        def content() -> bytes:
            data = files.read(last)
            return b"" if isinstance(data, Missing) else data

        return cls(members(), content, lambda: None)


def _read_members(source: _Source, where: str) -> tarball.Members:
    """Everything that is wanted. A member that cannot be taken is left out where this is another tool's archive, and
    refuses one of our own and a bare tree."""
    found = tarball.Members({}, {}, set(), {}, {}, {})
    try:
        is_own = _take_all(found, source, where)
        is_strict = is_own or find_kind(found.contents) is None
    except tarball.DamagedError:
        # What was wrong before it says more.
        if not found.left_out or find_kind(found.contents):
            raise
        is_own, is_strict = False, True
    if found.left_out and is_strict:
        raise InvalidInputError(f"{where}: {next(iter(found.left_out.values()))}")
    if is_strict:
        _refuse_strays(found, where)
    # Another name for a file that came before it (tar(5), type 1), as sos' writer makes them.
    for path, target in found.hard_links.items():
        if target in found.contents and path not in found.contents:
            found.contents[path] = found.contents[target]
            found.left_out.pop(path, None)
    return found


def _take_all(found: tarball.Members, source: _Source, where: str) -> bool:
    """Take the members one after the other; whether they are those of our own snapshot, of which one that cannot be
    taken ends it."""
    is_own = False
    total = 0
    for number, member in enumerate(source.members):
        if number >= MAX_MEMBERS:
            raise InvalidInputError(f"{where}: more than {MAX_MEMBERS} members")
        path, fault = _path_of(member.name)
        if path == f"/{INDEX}" and not total:
            is_own = True
            source.bound()
        if not fault and not is_own and not is_wanted(path):
            continue
        fault = fault or _take(found, path, member, total, source)
        if not fault:
            total += member.size
        elif len(found.left_out) < _MAX_LEFT_OUT:
            name = member.name[:80]
            found.left_out[path or f"/{name}"] = f"{name!r}: {fault}"
        if fault and is_own:
            break
    return is_own


def _take(found: tarball.Members, path: str, member: tarball.Member, total: int, source: _Source) -> str:
    """Put a member where it belongs; why it cannot be taken, or nothing."""
    contents, links, directories, _, modified, hard_links = found
    if path in contents or path in links or (path in directories and member.kind != "directory"):
        return "is there twice"
    if member.kind == "directory":
        directories.add(path)
    elif member.kind == "link":
        links[path] = member.target
    elif member.kind == "file":
        if member.size > MAX_MEMBER_BYTES or total + member.size > MAX_TOTAL_BYTES:
            return "too large; a captured host is never so big"
        contents[path] = source.content()
        modified[path] = member.modified
    else:
        if member.kind == "hard link":
            hard_links[path] = _path_of(member.target)[0]
        return "a sparse file" if member.kind == "sparse" else "neither a file, a directory nor a symbolic link"
    return ""


def _refuse_strays(found: tarball.Members, where: str) -> None:
    """Raise InvalidInputError for a link that leaves the archive, and for what lies below a file or a link: it has no
    place that a file system could have given it."""
    for path in [path for path, target in found.links.items() if not _keep_link(path, target, where)]:
        del found.links[path]
    paths = (*found.contents, *found.links, *found.directories)
    for parent, child in _list_directories(paths, where).items():
        if parent in found.contents or parent in found.links:
            raise InvalidInputError(f"{where}: {child[1:]!r}: lies below what is no directory")


def _list_directories(paths: tuple[str, ...], where: str) -> Mapping[str, str]:
    """Every directory above the paths, and the first path below it. Raises InvalidInputError for too many."""
    found = _find_directories(paths)
    if len(found) > MAX_DIRECTORIES:
        raise InvalidInputError(f"{where}: more than {MAX_DIRECTORIES} directories")
    return found


@lru_cache(maxsize=4)
def _find_directories(paths: tuple[str, ...]) -> Mapping[str, str]:
    """As above, cut off once they are too many: the archives of like hosts hold the same names."""
    found: dict[str, str] = {}
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found[parent] = path
            parent = parent.rpartition("/")[0]
        if len(found) > MAX_DIRECTORIES:
            break
    return found


def _path_of(name: str) -> tuple[str, str]:
    """The path of a member, and what is wrong with it."""
    if _PLAIN_NAME.fullmatch(name):
        return "/" + name, ""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        return "", "a name must lie inside the archive"
    if len(parts) > MAX_DEPTH or len(name) > MAX_NAME_BYTES or any(len(part) > MAX_PART for part in parts):
        return "", "nested too deeply, or too long a name"
    if "\0" in name:
        return "", "no file can have such a name"
    return "/" + "/".join(parts), ""


def _keep_link(path: str, target: str, where: str) -> bool:
    """Whether to keep a link. Those that leave the archive are refused, but for the kernel's own.

    Links below /proc/PID are dropped. Those of the device tree are relative and clamped to the archive when they are
    resolved; a capture that was moved climbs one step too far with them, which is no attack.
    """
    if len(target) > MAX_NAME_BYTES or "\0" in target:
        raise InvalidInputError(f"{where}: {path[1:]!r}: its link is none that a file system can hold")
    if "/sys/devices/" in f"/{path}" and not target.startswith("/"):
        return True
    if "/proc/" in path and (target.startswith("/") or ":[" in target):
        return False
    depth = path.count("/") - 1
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            break
    if target.startswith("/") or depth < 0:
        raise InvalidInputError(f"{where}: {path[1:]!r}: its link leads out of the archive to {target!r}")
    return True


def _top_directories(*names: Iterable[str]) -> set[str]:
    return {name.split("/")[1] for some in names for name in some if name not in ("", "/")}


# The span of counters that a snapshot may hold.

SPAN = "advisor-span.json"


def read_span(path: Path, archive: bytes | None = None) -> tuple[CounterSpan, float]:
    """The span of an archive and when it was taken, in seconds since the epoch; of ``archive`` where that is given,
    which ``path`` then only names.

    Raises InvalidInputError for what is no archive, one without a span, and a span that is none.
    """
    data = read_attachment(path, SPAN) if archive is None else read_attachment_of(archive, str(path), SPAN)
    if data is None:
        raise InvalidInputError(
            f"{path}: holds no counters over time", hint="advisor snapshot --seconds 30 -o FILE records them"
        )
    try:
        return decode_span(data)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise InvalidInputError(f"{path}: {SPAN}: {error}") from error
