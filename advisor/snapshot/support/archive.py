"""A host of what a support archive holds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from advisor.facts.redaction import without_secrets
from advisor.host import Host, MemoryFiles, Missing, lazy_regex
from advisor.host.commands import MeteredCommands
from advisor.host.files import UNRECORDED, ReadBudget
from advisor.host.origin import Origin
from advisor.snapshot.support.commands import ArchiveCommands, mangled
from advisor.snapshot.support.kernel_files import read_kernel_files
from advisor.snapshot.support.kinds import NEEDED, Kind

if TYPE_CHECKING:
    from advisor.snapshot.tar import Members

_SECTION = lazy_regex(r"^#==\[ ([^\]\n]{1,80}) \]=+#?$", re.MULTILINE)
_TIMED_OUT = lazy_regex(r"command '([^'\n]{1,400})' (timed out after [0-9]{1,6}s)")
_TIME = r"([0-9:]{8})(?: ([AP]M))?(?: ([A-Z]{2,5}|[+-][0-9]{2,4}))?"
_DATE = lazy_regex(
    rf"\w{{3}} +(\w{{3}}) +([0-9]{{1,2}}) {_TIME} ([0-9]{{4}})|\w{{3}} +([0-9]{{1,2}}) (\w{{3}}) ([0-9]{{4}}) {_TIME}"
)
_LISTED = lazy_regex(r"/dev/.+|/sys/(?:block|bus/pci|class|devices|kernel/(?:iommu_groups|irq|mm))(?:/.+)?")
_MAKER = lazy_regex(r"[ /](?:sosreport|sos report|supportconfig|insights-client|VRTSexplorer)(?: |$)")
_ZONE_SECONDS = 15 * 3600
_MAX_SECTIONS = 20_000


def make_host(found: tuple[Kind, str], members: Members, budget: ReadBudget) -> Host:
    """The host that was captured, with the outputs in it as answers to commands."""
    kind, top = found
    contents = {path.removeprefix(top): data for path, data in members.contents.items() if path.startswith(f"{top}/")}
    links = {path.removeprefix(top): target for path, target in members.links.items() if path.startswith(f"{top}/")}
    directories = {path.removeprefix(top) for path in members.directories if path.startswith(f"{top}/")}
    files = dict(contents)
    outputs: dict[str, bytes] = {}
    failed: dict[str, str] = {}
    is_output = re.compile(f"(?:{kind.data})?{kind.outputs}" if kind.data else kind.outputs)
    for path, data in contents.items():
        if name := is_output.fullmatch(path):
            outputs[name[1]] = data
            files.pop(path, None)
    if kind.name == "supportconfig":
        for path, data in contents.items():
            if path.endswith(".txt") and path.count("/") == 1:
                _read_sections(data.decode("utf-8", "replace"), outputs, files)
    if kind.data:
        own = {path.removeprefix(kind.data): data for path, data in files.items() if path.startswith(f"{kind.data}/")}
        files = {**files, **own}
        moved = (path for path in links if path.startswith(f"{kind.data}/"))
        links = {**links, **{path.removeprefix(kind.data): links[path] for path in moved}}
    _read_failures(contents, failed)
    files = {path: without_secrets(path, data) if path.startswith("/etc/") else data for path, data in files.items()}
    commands = ArchiveCommands(outputs, failed)
    unreadable: dict[str, str] = {}
    _add_kernel(commands, files, links, directories, unreadable)
    links, files, unreadable = _without_strays(links, files, unreadable)
    source = MemoryFiles(files, links, frozenset(directories), unreadable, budget)
    captured_at = _read_date(commands, contents, members.modified, top)
    origin = _describe(kind, contents, members.left_out, commands, top, source)
    is_root = origin.user == "root" if origin.user else None
    metered = MeteredCommands(commands, budget)
    return Host(source, metered, is_root=is_root, captured_at=captured_at, origin=origin)


def _add_kernel(
    commands: ArchiveCommands,
    files: dict[str, bytes],
    links: dict[str, str],
    directories: set[str],
    unreadable: dict[str, str],
) -> None:
    """What the outputs say of the kernel's files, where the archive has none."""
    for text in commands.texts(r"find_\.sys_.*_ls_-ld.*"):
        _add_listing(text, "", links, directories, unreadable)
    partitions, meminfo = (
        files.get(f"/proc/{name}", b"").decode("utf-8", "replace") for name in ("partitions", "meminfo")
    )
    blocks = {
        path.rpartition("/")[2]: f"/sys/{target.lstrip('./')}"
        for path, target in links.items()
        if path.startswith("/sys/block/") and path.count("/") == 3
    }
    made = read_kernel_files(commands, partitions, meminfo, blocks)
    taken = MemoryFiles(files, links, frozenset(directories))
    for path, target in made.links.items():
        if taken.is_dir(path):
            continue
        above, _, name = path.rpartition("/")
        place = taken.real(above)
        if isinstance(place, str) and place != above:
            # The directory is there behind a link: a relative target means the same from there no more.
            links.setdefault(f"{place}/{name}", os.path.normpath(f"{above}/{target}"))
        else:
            links.setdefault(path, target)
    for path, data in made.files.items():
        if isinstance(taken.read(path), bytes):
            continue
        place = taken.real(path.rpartition("/")[0])
        files.setdefault(f"{place}/{path.rpartition('/')[2]}" if isinstance(place, str) else path, data)
    directories |= made.directories
    for path in links:
        if re.fullmatch(r"/sys/block/loop[0-9]+", path):
            # A loop device without its file would be a disk of its own.
            unreadable.setdefault(f"{os.path.normpath(f'/sys/block/{links[path]}')}/loop/backing_file", UNRECORDED)
    for top, text in commands.named_texts(r"ls_-\w*R\w*_(?:--time-style_long-iso_)?(\.dev(?:\.[\w.-]+)?)"):
        _add_listing(text, top.replace(".", "/"), links, directories, unreadable)


def _add_listing(
    text: str, place: str, links: dict[str, str], directories: set[str], unreadable: dict[str, str]
) -> None:
    """What ``ls -l`` prints of directories below ``place``, or of paths there: links, and files that nobody took."""
    for line in text.splitlines():
        if line.startswith("/") and line.endswith(":"):
            place = line[:-1].rstrip("/")
            continue
        shown, arrow, target = line.partition(" -> ")
        name = shown.split()[-1] if shown.strip() else ""
        path = name if name.startswith("/") else f"{place}/{name}"
        if not _LISTED.fullmatch(path) or ".." in path.split("/") or path in links:
            continue
        if line[:1] == "l" and arrow and len(target) < 512:
            links[path] = target
        elif line[:1] == "d":
            directories.add(path)
        elif line[:1] in ("b", "c", "-"):
            unreadable.setdefault(path, UNRECORDED)


def _without_strays(
    links: Mapping[str, str], files: Mapping[str, bytes], unreadable: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, bytes], dict[str, str]]:
    """Without what lies below a file, and without files where there is a link: no file system could hold both."""
    kept = {path: data for path, data in files.items() if path not in links}
    ends = kept.keys()

    def is_sound(path: str) -> bool:
        while path.count("/") > 1:
            path = path.rpartition("/")[0]
            if path in ends:
                return False
        return True

    strays = {path for path in (*kept, *links) if not is_sound(path)}
    return (
        {path: target for path, target in links.items() if path not in strays},
        {path: data for path, data in kept.items() if path not in strays},
        {path: why for path, why in unreadable.items() if path not in links and path not in kept},
    )


def _read_sections(text: str, outputs: dict[str, bytes], files: dict[str, bytes]) -> None:
    """The sections of one text of supportconfig: a heading, ``# command`` or ``# path``, then what it printed or held.

    ``# path - File not found`` is none.
    """
    parts = _SECTION.split(text)
    for heading, body in list(zip(parts[1::2], parts[2::2], strict=False))[:_MAX_SECTIONS]:
        first, _, rest = body.lstrip("\n").partition("\n")
        if not first.startswith("# "):
            continue
        said = first[2:].strip()
        data = rest.strip("\n").encode("utf-8", "surrogateescape") + b"\n"
        printed = re.fullmatch(r"(?:/usr)?(?:/bin/)?cat (/[^ ]{1,400})", said)
        if printed:
            said = printed[1]
        elif heading.startswith("Command"):
            if re.fullmatch(r"(?:/usr)?/bin/systemctl show '[^']+' \| sort", said):
                # One unit each: together they are what is printed of all.
                said = "systemctl show service --all"
                data = outputs.pop(mangled(said), b"") + data + b"\n"
            outputs.setdefault(mangled(said), data)
            continue
        if said.startswith("/") and " " not in said and ".." not in said.split("/"):
            files.setdefault(said.rstrip("/"), data)


def _read_failures(contents: Mapping[str, bytes], failed: dict[str, str]) -> None:
    """Commands, by their mangled names, and plugins that sos' own log says timed out."""
    log = contents.get("/sos_logs/sos.log", b"")[: 8 << 20].decode("utf-8", "replace")
    for command, why in _TIMED_OUT.findall(log):
        failed.setdefault(mangled(command), f"{command[:80]} {why} as the archive was made")
    for plugin in re.findall(r" Plugin (\w{1,40}) timed out", log):
        failed.setdefault(f"plugin_{plugin}", f"sos' plugin {plugin} timed out as the archive was made")


def _read_date(
    commands: ArchiveCommands, contents: Mapping[str, bytes], modified: Mapping[str, int], top: str
) -> int | None:
    """When the archive was made, in seconds since the epoch: by its own ``date``, whose zone may be known by its
    letters alone; then the time of the files that were written then says which it is."""
    newest = max(_written_at(contents, modified, top), default=0)
    for text in (
        *commands.texts("date_--utc"),
        *commands.texts("date"),
        contents.get("/date", b"").decode("utf-8", "replace"),
    ):
        found = _DATE.search(text[:400])
        if found is None:
            continue
        month, day, clock, half, zone, year = (
            found.groups()[:6] if found[1] else (found[8], found[7], found[10], found[11], found[12], found[9])
        )
        form = "%b %d %Y %I:%M:%S %p" if half else "%b %d %Y %H:%M:%S"
        try:
            local = datetime.strptime(f"{month} {day} {year} {clock} {half or ''}".strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
        if zone and zone[0] in "+-":
            hours = int(zone[1:3])
            offset = timedelta(hours=hours, minutes=int(zone[3:5] or 0)) * (-1 if zone[0] == "-" else 1)
            return int(local.replace(tzinfo=timezone(offset)).timestamp()) if hours < 24 else None
        at = int(local.timestamp())
        return newest if zone not in ("UTC", "GMT") and abs(newest - at) < _ZONE_SECONDS else at
    return newest or None


def _written_at(contents: Mapping[str, bytes], modified: Mapping[str, int], top: str) -> Iterator[int]:
    for path in contents:
        if path.startswith("/sos_reports/") or "_commands/" in path or path.count("/") == 1:
            yield modified.get(f"{top}{path}", 0)


def _read_user(commands: ArchiveCommands) -> str | None:
    """Who ran the tool that made the archive, by the list of processes that it took meanwhile."""
    users: set[str] = set()
    for text in commands.texts(r"ps_.*"):
        header, _, rest = text.partition("\n")
        at = next((at for at, name in enumerate(header.split()) if name in ("USER", "UID")), None)
        rows = (
            (line.split(maxsplit=at + 1) for line in rest.splitlines() if _MAKER.search(line)) if at is not None else ()
        )
        users |= {row[at] for row in rows if at is not None and len(row) > at}
    user = "root" if users & {"root", "0"} else users.pop() if len(users) == 1 else ""
    return user if re.fullmatch(r"[\w.+@-]{1,64}", user) else None


def _is_held(place: str, files: MemoryFiles, commands: ArchiveCommands) -> bool:
    """Whether a path is there, in which one ``*`` stands for any name, or an output of a program."""
    if not place.startswith("/"):
        return commands.has_program(place)
    above, star, below = place.partition("/*")
    if not star:
        return not isinstance(files.real(place), Missing)
    names = files.listdir(above)
    listed = () if isinstance(names, Missing) else names
    return any(not isinstance(files.real(f"{above}/{name}{below}"), Missing) for name in listed)


def _describe(
    kind: Kind,
    contents: Mapping[str, bytes],
    left_out: Mapping[str, str],
    commands: ArchiveCommands,
    top: str,
    files: MemoryFiles,
) -> Origin:
    place, pattern = kind.version
    version = re.search(pattern, contents.get(place, b"")[:65536].decode("utf-8", "replace"))
    unknown = [(f"archive.{path.removeprefix(top).lstrip('/')}", why) for path, why in left_out.items()]
    unknown += [(f"archive.{name}", why) for name, why in commands.failed.items()]
    for places, facts in NEEDED:
        if not any(_is_held(place, files, commands) for place in places.split()):
            unknown += [(fact, f"the archive holds no {' or '.join(places.split())}") for fact in facts.split()]
    is_masked = "obfuscated" in top or "/sos_logs/cleaner.log" in contents

    def ask() -> str:
        rows = [row for row in commands.unanswered.values() if not isinstance(files.real(row.sign), Missing)]
        plugins = ",".join(dict.fromkeys(row.plugin for row in rows if row.plugin))
        hint = f" (sos report -e {plugins})" if plugins and kind.name == "sosreport" else ""
        return ", ".join(row.ask for row in rows) + hint if rows else ""

    is_of_root = re.fullmatch(kind.of_root, version[1] if version else "")
    return Origin(
        kind.name,
        version[1] if version else None,
        "root" if is_of_root else _read_user(commands),
        tuple(unknown),
        "Names and addresses of this archive are obfuscated (sos clean)." if is_masked else "",
        ask,
    )
