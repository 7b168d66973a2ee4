"""Capture a host without advisor: one shell script, and what it prints as an ordinary snapshot.

`capture_script` gives the script, the same for every host; `decode_capture` reads its stream, as it comes over a
connection, into a `RemoteCapture` whose archive `advisor.snapshot.archive.open_snapshot` opens. What the script takes
is listed in `advisor.snapshot.remote.manifest`. Nothing of a stream is kept but what a scan and the plans of all
profiles read of it, with its secrets removed (`advisor.facts.redaction`).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
from msgspec.structs import replace

from advisor.diagnosis.observation import read_context
from advisor.errors import AdvisorError, InvalidInputError
from advisor.facts.block.dm import STATUS
from advisor.facts.block.drive_health import SMARTCTL
from advisor.facts.block.filesystems import FSTYP, VXTUNEFS
from advisor.facts.block.mounts import DF
from advisor.facts.redaction import without_secrets
from advisor.facts.settings.sysctl import DIRECTORIES, SYSCTL_CONF
from advisor.host import Completed, Host, MemoryFiles, Missing, lazy_regex
from advisor.host.commands import SAFE_PATH, MeteredCommands
from advisor.host.files import UNRECORDED, ReadBudget, open_given
from advisor.observe.network import CONNECTIONS
from advisor.observe.rates import take_sample
from advisor.observe.sample import CounterSpan, encode_span
from advisor.planner import read_for_scan_and_plans
from advisor.planning.records import FileChange, Plan
from advisor.shell.quote import shell_quote
from advisor.shell.state_table import CLOSED
from advisor.snapshot import archive as snapshot
from advisor.snapshot import tar as tarball
from advisor.snapshot.archive import SPAN
from advisor.snapshot.remote import manifest
from advisor.snapshot.remote.store import CapturedCommands, captured_status, ethtool_answers, parse_copy_errors
from advisor.snapshot.remote.stream import Stream, read_stream
from advisor.transaction.journal import Begun, decode_journal, encode_entry, unpack_journal
from advisor.tunables import FileEdit

PHASE_SECONDS = 90
MAX_TREE_BYTES = 256 << 20
MAX_MEMBERS = 400_000

_ABSENT = ("No such file or directory", "Not a directory", "No such device", "No such device or address")
_GLOB = lazy_regex(r"[*?\[]")
_JOURNAL = lazy_regex(rf"{manifest.TRANSACTIONS}/[^/]+/(?:journal|{CLOSED})", re.DOTALL)
_ANSWER = lazy_regex(r"/commands/([a-z][0-9]+)\.(argv|out|err|rc|astray)")


class RemoteCapture(msgspec.Struct, frozen=True):
    """A host as it was captured. ``time`` is its own clock, in seconds since the epoch; None where it is unknown.

    ``archive`` is what `advisor snapshot` would have written there.
    """

    hostname: str
    machine_id: str
    boot_id: str
    time: int | None
    uid: int | None
    archive: bytes


class _Directory(NamedTuple):
    """A pattern as the template needs it: a shell word, its wildcards bare."""

    pattern: str
    has_glob: bool


def capture_script(seconds: float | None = None) -> str:
    """The script: POSIX sh, read-only, the same for any host; as an ordinary user it takes what that user may read.

    With ``seconds`` it takes the counters of that time as well, rounded up to whole seconds.
    """
    from advisor.shell.templates import make_environment

    plain = {
        "path": SAFE_PATH,
        "places": SAFE_PATH.split(":"),
        "programs": manifest.wanted_programs(),
        "seconds": manifest.SECONDS,
        "controller_seconds": manifest.CONTROLLER_SECONDS,
        "phase_seconds": PHASE_SECONDS,
        "max_links": manifest.MAX_LINKS,
        "max_total_kb": manifest.MAX_TOTAL_KB,
        "max_file_bytes": manifest.MAX_FILE_BYTES,
        "max_file_blocks": manifest.MAX_FILE_BYTES // 512,
        "transactions": manifest.TRANSACTIONS,
        "transaction_files": " ".join(manifest.TRANSACTION_FILES),
        "cpuset_files": _shell_patterns(_files_of("/sys/fs/cgroup")),
        "pci_files": _shell_patterns(_files_of("/sys/bus/pci/devices/*")),
        "vxtunefs": " ".join(VXTUNEFS),
        "fstyp": " ".join(FSTYP),
        "smartctl": " ".join(map(shell_quote, SMARTCTL)),
        "unit_properties": ",".join(manifest.UNIT_PROPERTIES),
        **_span_words(seconds),
    }
    paths = {
        "attributes": _make_directories((*manifest.ATTRIBUTES, *manifest.wanted_sysctls())),
        "configuration": _make_directories(manifest.CONFIGURATION),
        "listed": [_Directory(place, bool(_GLOB.search(place))) for place in manifest.LISTED],
        "marked": " ".join(f'"$root"{place}' for place in manifest.MARKED),
        "sysctl_files": " ".join(
            f'"$root"{place}' for place in (*(f"{one}/*.conf" for one in DIRECTORIES), SYSCTL_CONF)
        ),
    }
    commands = {
        name: [" ".join('"$link"' if word == "{link}" else shell_quote(word) for word in argv) for argv in listed]
        for name, listed in {
            "network_commands": manifest.NETWORK_COMMANDS,
            "link_commands": manifest.LINK_COMMANDS,
            "port_commands": manifest.PORT_COMMANDS,
            "storage_commands": manifest.STORAGE_COMMANDS,
            "root_commands": manifest.ROOT_COMMANDS,
            "controller_commands": manifest.CONTROLLER_COMMANDS,
            "system_commands": manifest.SYSTEM_COMMANDS,
        }.items()
    }
    return make_environment(escape_html=False).get_template("capture.sh.j2").render({**plain, **paths, **commands})


def _span_words(seconds: float | None) -> dict[str, object]:
    """What the template needs to take a span; ``moments`` is 0 for none."""
    whole = math.ceil(seconds or 0)
    interval = max(1, math.ceil(whole / manifest.MOST_MOMENTS))
    return {
        "moments": max(1, whole // interval) if seconds else 0,
        "interval": interval,
        "span_seconds": whole + PHASE_SECONDS,
        "each_moment": " ".join(f".{pattern}" for pattern in manifest.EACH_MOMENT),
        "at_the_ends": " ".join(f".{pattern}" for pattern in manifest.AT_THE_ENDS),
        "cgroup_files": " -o ".join(f"-name {shell_quote(name)}" for name in manifest.CGROUP_FILES),
        "connections": " ".join(map(shell_quote, CONNECTIONS)),
        "spaces": " ".join(map(shell_quote, DF)),
        "dm_status": " ".join(map(shell_quote, STATUS)),
    }


def _files_of(place: str) -> Iterator[str]:
    return (name for directory, names in manifest.ATTRIBUTES if directory == place for name in names)


def _make_directories(listed: Iterable[tuple[str, tuple[str, ...]]]) -> list[tuple[_Directory, str]]:
    return [(_Directory(place, bool(_GLOB.search(place))), _shell_patterns(names)) for place, names in listed]


def _shell_patterns(names: Iterable[str]) -> str:
    return " ".join(f"'{name}'" if _GLOB.search(name) or "|" in name else name for name in names)


def decode_capture(stream: IO[bytes] | bytes, where: str) -> RemoteCapture:
    """What a run of the script printed; ``where`` names the host in errors.

    Raises InvalidInputError for a stream that is none, truncated, damaged or of another version.
    """
    found = _read_whole(stream, where)
    host, span = _captured_host(found, where, with_secrets=False)
    archive = snapshot.capture_host(host, _read_all if span is None else _read_all_and_map, _attach_span(span, host))
    header = found.header
    return RemoteCapture(
        header.get("hostname", ""),
        header.get("machine-id", ""),
        header.get("boot-id", ""),
        _parse_number(header.get("time", "")),
        _parse_number(header.get("uid", "")),
        archive,
    )


def open_capture(path: Path) -> Host:
    """The host of a file that holds what a run of the script printed. Raises InvalidInputError."""
    return snapshot.open_archive(read_capture(path), str(path))


def read_capture(path: Path) -> bytes:
    """The archive of a file that holds what a run of the script printed. Raises InvalidInputError."""
    try:
        with open_given(path) as file:
            return decode_capture(file, str(path)).archive
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror or error}") from error


def capture_host(stream: IO[bytes] | bytes, where: str) -> Host:
    """The host that a stream describes, as `decode_capture` reads it, secrets included: for use in memory alone."""
    return _captured_host(_read_whole(stream, where), where, with_secrets=True)[0]


def _read_whole(stream: IO[bytes] | bytes, where: str) -> Stream:
    return read_stream(io.BytesIO(stream) if isinstance(stream, bytes) else stream, where)


def _parse_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) else None


def _attach_span(span: CounterSpan | None, host: Host) -> dict[str, bytes]:
    return {} if span is None else {SPAN: encode_span(span, float(host.captured_at or 0))}


def _read_all_and_map(host: Host) -> None:
    _read_all(host)
    read_context(host)


def _read_all(host: Host) -> None:
    """Read all that is asked of a captured host afterwards: a scan, plans, and what status and verify say about it."""
    read_for_scan_and_plans(host)
    for name in host.names(manifest.TRANSACTIONS):
        for file in manifest.TRANSACTION_FILES:
            host.read_bytes(f"{manifest.TRANSACTIONS}/{name}/{file}")
    # One that is damaged is reported where the capture is read.
    with contextlib.suppress(AdvisorError):
        captured_status(host)


def _captured_host(found: Stream, where: str, *, with_secrets: bool) -> tuple[Host, CounterSpan | None]:
    members = dict(_named_members(found, where))
    first, last = (_parse_answers(members, letter) for letter in "xy")
    answers = _parse_answers(members, "a-w")
    if DF in answers and DF not in last:
        # Scripts of earlier versions asked it once, before the span.
        first = {**first, DF: Missing("absent", "asked once, so how fast they fill is unknown")}
        last = {**last, DF: answers[DF]}
    limit = _parse_number(found.header.get("file-limit", "")) or manifest.MAX_FILE_BYTES
    budget = ReadBudget(where, snapshot.MAX_READ_STEPS)
    files, is_root = _memory_files(members, limit, budget, with_secrets=with_secrets), found.header.get("uid") == "0"
    host = Host(
        files,
        MeteredCommands(CapturedCommands(answers), budget),
        is_root=is_root,
        ethtool_answers=ethtool_answers(answers),
        captured_at=_parse_number(found.header.get("time", "")),
    )
    return host, read_moments(members, files, (first, last), is_root=is_root)


def _named_members(found: Stream, where: str) -> Iterator[tuple[str, bytes | str]]:
    """Content by path below the archive's top, target for a symbolic link."""
    packed = io.BytesIO(found.data)
    file: IO[bytes] = packed
    if found.header.get("encoding") == "gzip":
        file = gzip.GzipFile(fileobj=packed)  # type: ignore[assignment]
    reader = tarball.TarReader(tarball.BoundedStream(file, packed, MAX_TREE_BYTES))
    try:
        for number, member in enumerate(reader):
            if number >= MAX_MEMBERS:
                raise InvalidInputError(f"{where}: more than {MAX_MEMBERS} files")
            path = "/" + "/".join(part for part in member.name.split("/") if part not in ("", "."))
            if path != "/" and not snapshot.is_host_path(path):
                raise InvalidInputError(f"{where}: {member.name[:80]!r}: no path of a captured host")
            if member.kind == "file":
                yield path, reader.content()
            elif member.kind == "link":
                yield path, member.target
    except (EOFError, OSError, ValueError, zlib.error, tarball.DamagedError) as error:
        raise InvalidInputError(f"{where}: damaged capture: {error}") from error


def _memory_files(
    members: Mapping[str, bytes | str], limit: int, budget: ReadBudget, *, with_secrets: bool
) -> MemoryFiles:
    below = {path.removeprefix("/files"): data for path, data in members.items() if path.startswith("/files/")}
    contents = {path: data for path, data in below.items() if isinstance(data, bytes)}
    links = {path: data for path, data in below.items() if isinstance(data, str)}
    noted: list[tuple[str, str]] = []
    for record in _record_lines(members, "/notes/names"):
        path = _absolute_path(record[1:])
        # What no file system could hold was not found on one.
        if path == "/" or snapshot.is_host_path(path):
            noted.append((record[:1], path))
    unreadable = {path: "Permission denied" for kind, path in noted if kind == "p"}
    unreadable |= {path: "not a regular file" for kind, path in noted if kind == "s"}
    unreadable |= {path: f"larger than {limit >> 20} MiB" for path, data in contents.items() if len(data) >= limit}
    unreadable |= {_absolute_path(text[1:]): "the capture was full" for text in _record_lines(members, "/notes/left")}
    for path in [path for path in contents if _JOURNAL.fullmatch(path)]:
        place, _, name = path.rpartition("/")
        written = contents.pop(path)
        # An empty mark is of a version that left the journal beside it.
        if written or name != CLOSED:
            journal = kept_journal(written, is_packed=name == CLOSED, with_secrets=with_secrets)
            if isinstance(journal, Missing):
                unreadable[f"{place}/journal"] = journal.why
            else:
                contents[f"{place}/journal"] = journal
    # What cp could not read is unreadable with its words, or gone: never empty.
    data = members.get("/notes/errors", b"")
    errors = parse_copy_errors(data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else "")
    for text, why in errors.reasons.items():
        failed_path = _absolute_path(text[1:])
        contents.pop(failed_path, None)
        if why not in _ABSENT:
            unreadable.setdefault(failed_path, why)
    if errors.pathless is not None:
        for failed_path in [
            path for path, content in contents.items() if not content and path.startswith(("/sys/", "/proc/"))
        ]:
            del contents[failed_path]
            unreadable[failed_path] = f"it is empty, or cannot be read: {errors.pathless}"
    for path in unreadable:
        contents.pop(path, None)
    directories = {path for kind, path in noted if kind == "d"}
    for kind, path in noted:
        if kind == "f" and path not in contents and path not in links:
            unreadable.setdefault(path, UNRECORDED)
    return MemoryFiles(contents | _shared_sockets(noted, contents), links, frozenset(directories), unreadable, budget)


def _record_lines(members: Mapping[str, bytes | str], name: str) -> list[str]:
    data = members.get(name, b"")
    return data.decode("utf-8", "surrogateescape").split("\0")[:-1] if isinstance(data, bytes) else []


def _absolute_path(text: str) -> str:
    return "/" + "/".join(part for part in text.split("/") if part)


def _shared_sockets(noted: Iterable[tuple[str, str]], contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Sockets of processes in the network namespace of the capture: one table for all of them."""
    tables = {name: contents[f"/proc/net/{name}"] for name in ("tcp", "udp") if f"/proc/net/{name}" in contents}
    return {f"{place}/net/{name}": data for kind, place in noted if kind == "n" for name, data in tables.items()}


def _parse_answers(members: Mapping[str, bytes | str], phases: str) -> dict[tuple[str, ...], Completed | Missing]:
    """Of the phases of these letters, a class of a regular expression."""
    parts: dict[str, dict[str, bytes]] = {}
    for path, data in members.items():
        found = _ANSWER.fullmatch(path)
        if found and isinstance(data, bytes) and re.match(f"[{phases}]", found[1]):
            parts.setdefault(found[1], {})[found[2]] = data
    return dict(_parse_answer(part) for part in parts.values() if part.get("argv", b"").count(b"\0") > 1)


def _parse_answer(part: Mapping[str, bytes]) -> tuple[tuple[str, ...], Completed | Missing]:
    seconds, *argv = part["argv"].decode("utf-8", "surrogateescape").split("\0")[:-1]
    if "astray" in part:
        place = part["astray"].decode("utf-8", "replace").strip()
        return tuple(argv), Missing("unreadable", f"{argv[0]} is not run: others than root can change {place}")
    code = _parse_number(part.get("rc", b"").decode("ascii", "replace").strip())
    if code is None or code in (124, 137):
        return tuple(argv), Missing("unreadable", f"{argv[0]} did not answer within {seconds} s")
    out, err = (part.get(name, b"") for name in ("out", "err"))
    if len(out) + len(err) >= manifest.MAX_FILE_BYTES:
        return tuple(argv), Missing("unreadable", f"{argv[0]} printed more than {manifest.MAX_FILE_BYTES >> 20} MiB")
    return tuple(argv), Completed(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


# Journals of transactions as a capture keeps them: whole but for the secrets in the files that they hold.
#
# A journal holds each file that a transaction wrote, before and after, so also iscsid.conf with its passwords. A plan
# that was made from a capture never held them, so that its fingerprint stays what it was; that of another may change.


def kept_journal(data: bytes, *, is_packed: bool = False, with_secrets: bool = False) -> bytes | Missing:
    """The journal, unpacked, without secrets; unreadable where it is damaged, since its content is unknown then."""
    try:
        data = unpack_journal(data, CLOSED) if is_packed else data
        if with_secrets:
            return data
        entries = decode_journal(data, "journal")
    except InvalidInputError as error:
        return Missing("unreadable", error.message)
    return b"".join(
        encode_entry(replace(one, plan=_redact_plan(one.plan)) if isinstance(one, Begun) else one) for one in entries
    )


def _redact_plan(plan: Plan) -> Plan:
    return replace(plan, files=tuple(_redact_file(one) for one in plan.files))


def _redact_file(one: FileChange) -> FileChange:
    return replace(
        one,
        before=None if one.before is None else without_secrets(one.path, one.before),
        after=without_secrets(one.path, one.after),
        edits=tuple(_redact_edit(edit) for edit in one.edits),
    )


def _redact_edit(one: FileEdit) -> FileEdit:
    return replace(one, fresh=without_secrets(one.path, one.fresh), also=tuple(_redact_edit(also) for also in one.also))


# The counters over time in what the capture script printed: its moments become the samples of a span.

Answers = Mapping[tuple[str, ...], Completed | Missing]

_TIME = lazy_regex(r"/span/([0-9]{1,4})\.time", re.ASCII)
_UPTIME = lazy_regex(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)


def read_moments(
    members: Mapping[str, bytes | str], files: MemoryFiles, ends: tuple[Answers, Answers], *, is_root: bool
) -> CounterSpan | None:
    """The span of a capture; None where it has none, or where its clock stood still.

    ``files`` are those of the whole capture; ``ends`` what commands answered at the first and at the last moment.
    """
    times: dict[int, float] = {}
    for path, data in members.items():
        found = _TIME.fullmatch(path)
        text = data.decode("ascii", "replace").strip() if isinstance(data, bytes) else ""
        if found and _UPTIME.fullmatch(text):
            times[int(found[1])] = float(text)
    numbers = sorted(times)
    if len(numbers) < 2 or len(numbers) > manifest.MOST_MOMENTS + 1:
        return None
    contents: dict[str, dict[str, bytes]] = {str(number): {} for number in numbers}
    for path, data in members.items():
        name, slash, below = path.removeprefix("/span/").partition("/")
        # What is empty could not be read to its end: a counter is never printed as nothing.
        if slash and data and isinstance(data, bytes) and path.startswith("/span/") and name in contents:
            contents[name][f"/{below}"] = data
    samples = []
    for number in numbers:
        is_end = number in (numbers[0], numbers[-1])
        answers = ends[number != numbers[0]] if is_end else {}
        here = files.with_contents(contents[str(number)]) if is_end else MemoryFiles(contents[str(number)])
        host = Host(here, CapturedCommands(answers), is_root=is_root)
        samples.append(take_sample(host, whole=is_end, clock=partial(float, times[number])))
    try:
        return CounterSpan(samples)
    except ValueError:
        return None
