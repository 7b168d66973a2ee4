"""sysctl.conf and directories of it → imported profiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from advisor.errors import InvalidInputError
from advisor.facts.sysctl_files import SysctlSource, is_pattern, key_path, parse_sysctl_file
from advisor.facts.sysctl_keys import refusal
from advisor.host import Host, Missing
from advisor.interchange.growing import is_growing
from advisor.interchange.made import Line
from advisor.interchange.records import Difference, Imported, ImportedSense, ImportedSetting, Mode
from advisor.interchange.to_profile import profile_name
from advisor.interchange.tuned.differences import lowering
from advisor.interchange.tuned.ini import decode
from advisor.interchange.tuned.plugin_files import matches
from advisor.interchange.twins import without_rivals

_MAX_FILES: Final = 500
_MAX_KEYS: Final = 512


def import_sysctl(place: str, host: Host, mode: Mode, *, files: Host | None = None) -> Imported:
    """A sysctl file, or the ``*.conf`` of a directory in the order of their names. The last line of a key counts.

    Raises InvalidInputError for what cannot be read, naming file and line.
    """
    source = host if files is None else files
    paths = _paths(source, place)
    lines: list[tuple[SysctlSource, str]] = []
    for path in paths:
        data = source.read_bytes(path)
        if isinstance(data, Missing):
            raise InvalidInputError(f"{path}: {data.why}")
        text = decode(data, path)
        lines.extend((one, _comment(text, one.line)) for one in parse_sysctl_file(text, path))
    settings = _converted(lines, host, mode)
    faithful = settings if mode == "faithful" else _converted(lines, host, "faithful")
    return Imported(
        name=profile_name(f"sysctl-{place.rstrip('/').rpartition('/')[2].removesuffix('.conf')}"),
        origin=f"sysctl:{place}",
        mode=mode,
        title=f"Kernel parameters of {place}",
        about="",
        sources=tuple(paths),
        settings=settings,
        differences=(*_refused(faithful), *lowering(host, faithful)),
    )


def _paths(files: Host, place: str) -> Sequence[str]:
    if not files.is_dir(place):
        return (place,)
    names = [name for name in files.names(place) if name.endswith(".conf") and not name.startswith(".")]
    if not names:
        raise InvalidInputError(f"{place}: holds no *.conf")
    if len(names) > _MAX_FILES:
        raise InvalidInputError(f"{place}: holds more than {_MAX_FILES} files")
    return [f"{place.rstrip('/')}/{name}" for name in sorted(names)]


def _comment(text: str, number: int) -> str:
    """The comment above a line."""
    found: list[str] = []
    for line in reversed(text.split("\n")[max(0, number - 12) : number - 1]):
        if not line.strip().startswith(("#", ";")):
            break
        found.append(line.strip().lstrip("#; \t"))
    return " ".join(filter(None, found[::-1]))


def _converted(lines: Sequence[tuple[SysctlSource, str]], host: Host, mode: Mode) -> tuple[ImportedSetting, ...]:
    last = {one.key: one for one, _ in lines if not one.excludes}
    excluded = {one.key for one, _ in lines if one.excludes}
    found: list[ImportedSetting] = []
    for one, comment in lines:
        line = Line("", one.key, one.value, one.path, one.line, comment)
        if one.excludes:
            found.append(line.ignored("it only keeps patterns from the key", sets_nothing=True))
        elif last[one.key] is not one:
            again = last[one.key]
            found.append(line.ignored(f"{again.path} line {again.line} sets it again"))
        elif is_pattern(one.key):
            found.extend(_expanded(one, line, host, mode, {*last, *excluded}))
        else:
            found.append(_setting(one.key, one.value, line, mode))
    return without_rivals(found)


def _expanded(one: SysctlSource, line: Line, host: Host, mode: Mode, named: set[str]) -> Iterator[ImportedSetting]:
    """A pattern, for the keys of this host that no line names by itself."""
    found = 0
    for path in matches(host, key_path(one.key)):
        key = path.removeprefix("/proc/sys/").translate({ord("."): "/", ord("/"): "."})
        if key in named:
            continue
        found += 1
        if found > _MAX_KEYS:
            break
        yield _setting(key, one.value, line, mode)
    if not found:
        yield line.ignored("no key of this host fits the pattern")


def _setting(key: str, value: str, line: Line, mode: Mode) -> ImportedSetting:
    plain = " ".join(value.split())
    why = refusal(key, plain)
    if why is not None and mode == "faithful":
        return line.ignored(f"the kernel refuses the value: {why}", "refused")
    if why is not None:
        plain = re.sub(r"[\"']", "", plain)
        why = refusal(key, plain)
    if why is not None:
        return line.manual(f"the kernel refuses the value: {why}", "refused")
    sense: ImportedSense = "at-least" if mode == "intent" and is_growing(key) else "exactly"
    return line.wanted(f"sysctl:{key}", plain, sense=sense)


def _refused(faithful: Sequence[ImportedSetting]) -> Iterator[Difference]:
    for one in faithful:
        if one.departs == "refused":
            yield Difference("refused", one.section, one.key, one.file, one.line, "nothing", one.raw, one.why)
