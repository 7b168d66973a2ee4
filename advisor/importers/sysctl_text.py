"""sysctl.conf and directories of it → imported profiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from advisor.errors import InvalidInputError
from advisor.facts.settings.sysctl import SysctlSource, is_pattern, key_path, parse_sysctl_file
from advisor.facts.settings.value import kernel_number, out_of_bounds, refusal
from advisor.facts.text import printable
from advisor.facts.tuned.files import MAX_BYTES, decode_text
from advisor.host import Host, Missing
from advisor.host.files import open_given
from advisor.host.missing import from_os_error
from advisor.importers.records import (
    LACKS_KEY,
    ImportDifference,
    Imported,
    ImportedSense,
    ImportedSetting,
    Mode,
    SourceLine,
    as_the_kernel_reads,
    is_growing,
    without_rivals,
)
from advisor.importers.to_profile import profile_name
from advisor.importers.tuned.differences import find_lowering
from advisor.importers.tuned.plugin_devices import match_files

_MAX_FILES = 500
_MAX_KEYS = 512


def import_sysctl(place: str, host: Host, mode: Mode, *, files: Host | None = None) -> Imported:
    """A sysctl file, or the ``*.conf`` of a directory in the order of their names. The last line of a key counts.

    Raises InvalidInputError for what cannot be read, naming file and line.
    """
    source = host if files is None else files
    paths = _list_paths(source, place)
    lines, strays = _read_lines(source, paths, is_alone=not source.is_dir(place))
    if not lines:
        first = next((one for one in strays if one.line), next(iter(strays), None))
        if first is None:
            why = f"{place}: no KEY = VALUE in it"
        else:
            reason = f"line {first.line}: no KEY = VALUE" if first.line else first.why
            why = f"{first.file}: {reason}"
        raise InvalidInputError(why, hint="is this a file of sysctl(8)?")
    if not any(_is_decoded(one) for one, _ in lines):
        broken = lines[0][0]
        raise InvalidInputError(f"{broken.path}: line {broken.line}: {_UNDECODED}")
    settings = _convert_lines(lines, host, mode)
    faithful = settings if mode == "faithful" else _convert_lines(lines, host, "faithful")
    return Imported(
        name=profile_name(f"sysctl-{place.rstrip('/').rpartition('/')[2].removesuffix('.conf')}"),
        origin=f"sysctl:{place}",
        mode=mode,
        title=f"Kernel parameters of {place}",
        about="",
        sources=tuple(paths),
        settings=_in_order((*settings, *strays), paths),
        differences=(
            *(
                ImportDifference("refused", one.section, one.key, one.file, one.line, "nothing", one.raw, one.why)
                for one in faithful
                if one.departs == "refused"
            ),
            *find_lowering(host, faithful),
        ),
    )


def _read_lines(
    files: Host, paths: Sequence[str], *, is_alone: bool
) -> tuple[list[tuple[SysctlSource, SourceLine]], list[ImportedSetting]]:
    """The lines that set something, and those that are nothing of sysctl's."""
    lines: list[tuple[SysctlSource, SourceLine]] = []
    strays = []
    for path in paths:
        # A file's bytes. On this machine a FIFO or a device may be at the place, which holds no lines.
        if not files.is_live:
            data = files.read_bytes(path)
        elif files.real(path) == "/dev/null":
            # How a file of another directory is switched off: sysctl.d(5).
            data = b""
        else:
            try:
                with open_given(Path(path)) as file:
                    data = file.read(MAX_BYTES + 1)
            except InvalidInputError:
                data = Missing("unreadable", _NO_FILE)
            except OSError as error:
                data = from_os_error(error)
        if isinstance(data, Missing):
            why = "" if is_alone else _no_file_reason(files, path, data)
            if not why:
                raise InvalidInputError(f"{path}: {data.why}")
            strays.append(SourceLine("", "", "", printable(path), 0, written=printable(path)).ignored(why))
            continue
        text = decode_text(data, path, "file of sysctl(8)", is_strict=False)
        found = parse_sysctl_file(text, path)
        shown = printable(text)
        lines.extend((one, _source_line(one, shown)) for one in found)
        strays.extend(_stray_lines(shown, printable(path), {one.line for one in found}))
    return lines, strays


def _source_line(one: SysctlSource, text: str) -> SourceLine:
    raw = text.split("\n")[one.line - 1].strip(" \t")
    key, value = printable(one.key), printable(one.value)
    is_plain = re.sub(r"\s*=\s*", " = ", raw, count=1) == f"{key} = {value}"
    # The comment above a line.
    found = []
    for line in reversed(text.split("\n")[max(0, one.line - 12) : one.line - 1]):
        if not line.strip().startswith(("#", ";")):
            break
        found.append(line.strip().lstrip("#; \t"))
    return SourceLine("", key, value, one.path, one.line, " ".join(filter(None, found[::-1])), "" if is_plain else raw)


def _is_decoded(one: SysctlSource) -> bool:
    return printable(one.key) == one.key and printable(one.value) == one.value


_UNDECODED = "not UTF-8: no profile can hold it"
_NO_FILE = "not a regular file"


def _no_file_reason(files: Host, path: str, missing: Missing) -> str:
    """Why a name of a directory is that of no file; empty for a file that cannot be read."""
    if missing.why == _NO_FILE or files.is_dir(path):
        return _NO_FILE
    is_link = not isinstance(files.readlink(path), Missing)
    return "a symbolic link to a file that does not exist" if is_link and missing.is_absent else ""


def _stray_lines(text: str, path: str, known: set[int]) -> Iterator[ImportedSetting]:
    """The lines that are neither a comment nor a setting."""
    for number, raw in enumerate(text.replace("\0", "").split("\n"), 1):
        line = raw.strip(" \t")
        if line.strip() and line[0] not in "#;" and number not in known:
            yield SourceLine("", "", line, path, number, written=line).ignored(_STRAY)


_STRAY = "no KEY = VALUE: sysctl(8) reports it and passes over it"


def _in_order(settings: Iterable[ImportedSetting], paths: Sequence[str]) -> tuple[ImportedSetting, ...]:
    places = {printable(path): place for place, path in enumerate(paths)}
    return tuple(sorted(settings, key=lambda one: (places.get(one.file, 0), one.line)))


def _list_paths(files: Host, place: str) -> Sequence[str]:
    if not files.is_dir(place):
        return (place,)
    names = [name for name in files.names(place) if name.endswith(".conf") and not name.startswith(".")]
    if not names:
        raise InvalidInputError(f"{place}: holds no *.conf")
    if len(names) > _MAX_FILES:
        raise InvalidInputError(f"{place}: holds more than {_MAX_FILES} files")
    return [f"{place.rstrip('/')}/{name}" for name in sorted(names)]


def _convert_lines(
    lines: Sequence[tuple[SysctlSource, SourceLine]], host: Host, mode: Mode
) -> tuple[ImportedSetting, ...]:
    last = {one.key: one for one, _ in lines if not one.excludes}
    excluded = {one.key for one, _ in lines if one.excludes}
    found = []
    for one, line in lines:
        if one.excludes:
            found.append(line.ignored("it only keeps patterns from the key", sets_nothing=True))
        elif last[one.key] is not one:
            again = last[one.key]
            found.append(line.ignored(f"{again.path} line {again.line} sets it again"))
        elif not _is_decoded(one):
            found.append(line.manual(_UNDECODED))
        elif is_pattern(one.key):
            found.extend(_expand_pattern(one, line, host, mode, {*last, *excluded}))
        else:
            found.append(_make_setting(one.key, one.value, line, host, mode))
    return without_rivals(found)


def _expand_pattern(
    one: SysctlSource, line: SourceLine, host: Host, mode: Mode, named: set[str]
) -> Iterator[ImportedSetting]:
    """A pattern, for the keys of this host that no line names by itself."""
    found = 0
    for path in match_files(host, key_path(one.key)):
        key = path.removeprefix("/proc/sys/").translate({ord("."): "/", ord("/"): "."})
        if key in named:
            continue
        found += 1
        if found > _MAX_KEYS:
            break
        yield _make_setting(key, one.value, line, host, mode)
    if not found:
        yield line.ignored("no key of this host fits the pattern")


def _make_setting(key: str, value: str, line: SourceLine, host: Host, mode: Mode) -> ImportedSetting:
    # How many numbers the key holds on this host, where it holds nothing else.
    words = host.read_or_empty(key_path(key)).split()
    numbers = len(words) if words and all(re.fullmatch(r"-?[0-9]{1,20}", word) for word in words) else None
    plain, note = as_the_kernel_reads(key, " ".join(value.split()), numbers=numbers)
    why = refusal(key, plain) or out_of_bounds(key, plain)
    if why is not None and mode == "faithful":
        return line.ignored(f"the kernel refuses the value: {why}", "refused")
    if why is not None:
        plain, note = as_the_kernel_reads(key, re.sub(r"[\"']", "", plain), numbers=numbers)
        why = refusal(key, plain) or out_of_bounds(key, plain)
    if why is not None:
        return line.manual(f"the kernel refuses the value: {why}", "refused")
    words = plain.split()
    if numbers is not None and len(words) < numbers and None not in map(kernel_number, words):
        return line.manual(f"the kernel keeps what the line does not say about its {numbers} numbers: say all of them")
    if isinstance(host.read(key_path(key)), Missing):
        note = "; ".join(filter(None, (note, LACKS_KEY)))
    sense: ImportedSense = "at-least" if mode == "intent" and is_growing(key) else "exactly"
    return line.wanted(f"sysctl:{key}", plain, sense=sense, note=note)
