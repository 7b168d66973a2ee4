"""Sysctls that the rules and profiles name: the live value, and which file sets it at boot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from advisor.facts.settings import KEYS
from advisor.facts.settings.value import refusal
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

__all__ = ["KEYS", "SysctlOrigin", "SysctlSource", "named_keys", "origins", "read_sysctl", "read_sysctl_sources"]

# The sysctl files: which are read, in which order, and what their lines mean (sysctl.d(5), sysctl.conf(5)).

DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
SYSCTL_CONF = "/etc/sysctl.conf"
# What systemd-sysctl strips from lines, keys and values.
_BLANKS = " \t\r\n"
KERNEL_FILES = ("/boot/sysctl.conf-", "/usr/lib/modules/")
_SYSTEMD = ("/run/systemd/system", "/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl")
_SWAPPED = {ord("."): "/", ord("/"): "."}


class SysctlSource(msgspec.Struct, frozen=True):
    """A line of a sysctl file. ``rejected`` says why the kernel would refuse the value (quoted triples), else None.

    ``key`` is dotted; a dot inside a name stands as a slash (``net.ipv4.conf.eth0/10.rp_filter``). It may be a
    pattern (glob(7)).
    """

    key: str
    value: str
    path: str
    line: int
    rejected: str | None = None
    excludes: bool = False
    """``-key`` without a value: patterns do not touch the key."""
    ignores_failure: bool = False
    """``-key = value``: a refusal is not reported."""
    at_boot: bool = True
    """False for /etc/sysctl.conf where only ``sysctl --system`` reads it."""
    target: str | None = None
    """The file that holds the line, where ``path`` is a symbolic link to it."""

    @property
    def file(self) -> str:
        """The file to edit: an editor that puts a new file in the place of a link leaves the line as it was."""
        return self.target or self.path

    @property
    def place(self) -> str:
        """File and line to edit, and of a link the name in whose order the line counts."""
        return f"{self.file}:{self.line}{self.reading}"

    @property
    def reading(self) -> str:
        """The name that a file is read by, in brackets, where it is that of a link; else empty."""
        return "" if self.file == self.path else f" (read as {self.path})"


def reads_later(path: str, ours: str) -> bool:
    """Return whether a file is read after ours: sysctl.d(5) sorts by file name across the directories; that of a kernel
    package comes first, /etc/sysctl.conf last."""
    is_named_later = path.rpartition("/")[2] > ours.rpartition("/")[2]
    return not path.startswith(KERNEL_FILES) and (path == "/etc/sysctl.conf" or is_named_later)


def key_path(key: str) -> str:
    """The file of a dotted key below /proc/sys."""
    return "/proc/sys/" + key.translate(_SWAPPED)


def dotted_key(written: str) -> str:
    """A key as it is written in a file, in dotted form.

    Where the first separator is a slash, the key is a path, and dots in it belong to names.
    """
    first = next((sign for sign in written if sign in "./"), "")
    dotted = written.translate(_SWAPPED) if first == "/" else written
    return (re.sub(r"\.{2,}", ".", dotted) if ".." in dotted else dotted).strip(".")


def is_pattern(key: str) -> bool:
    return any(sign in key for sign in "*?[")


def list_files(host: Host) -> tuple[tuple[str, bool], ...]:
    """The files in the order they are read, each with whether boot reads it."""
    by_name: dict[str, str] = {}
    for directory in DIRECTORIES:
        for name in host.names(directory):
            if name.endswith(".conf") and not name.startswith("."):
                by_name.setdefault(name, f"{directory}/{name}")
    files = [by_name[name] for name in sorted(by_name, key=lambda name: name.encode("utf-8", "surrogateescape"))]
    is_linked = any(
        (not isinstance(host.readlink(path), Missing) and host.real(path) == host.real(SYSCTL_CONF)) for path in files
    )
    by_itself = not is_linked and not any(host.exists(sign) for sign in _SYSTEMD)
    kernel = host.read_or_empty("/proc/sys/kernel/osrelease").strip()
    of_kernel = [
        path
        for path in (f"/boot/sysctl.conf-{kernel}", f"/usr/lib/modules/{kernel}/sysctl.conf")
        if kernel and host.exists(path)
    ]
    return (*((path, True) for path in (*of_kernel[:1], *files)), (SYSCTL_CONF, by_itself))


def parse_sysctl_file(
    text: str, path: str, *, at_boot: bool = True, target: str | None = None
) -> tuple[SysctlSource, ...]:
    """The lines that set a key or remove it (``-key``); comments and other lines are skipped.

    As both readers do: a comment is a whole line, and what follows a value on its line belongs to the value.
    """
    numbered = enumerate(text.replace("\0", "").split("\n"), 1)
    lines = (_parse_line(line.strip(_BLANKS), path, number, at_boot, target) for number, line in numbered)
    return tuple(line for line in lines if line is not None)


def _parse_line(line: str, path: str, number: int, at_boot: bool, target: str | None) -> SysctlSource | None:
    if not line or line[0] in "#;":
        return None
    written, equals, value = line.partition("=")
    has_dash = written.startswith("-")
    key = dotted_key(written.removeprefix("-").strip(_BLANKS))
    if not key or not (equals or has_dash):
        return None
    value = value.strip(_BLANKS)
    return SysctlSource(
        key=key,
        value=value,
        path=printable(path),
        line=number,
        rejected=refusal(key, value) if equals else None,
        excludes=not equals,
        ignores_failure=has_dash and bool(equals),
        at_boot=at_boot,
        target=target,
    )


MAX_LINES = 10_000
"""Settings of all files together. A file beyond it is unreadable as a whole: half of it would name a wrong winner."""
MAX_PATTERNS = 256
_NAME_MAX = 255
# Secrets, commands to the kernel, and what changes by itself.
_UNREAD = lazy_regex(
    r".*(?:secret|_key|\.flush)|vm\.(?:drop_caches|compact_memory)"
    r"|kernel\.(?:random\..*|hostname|domainname|ns_last_pid|perf_event_max_sample_rate)"
)


class SysctlOrigin(msgspec.Struct, frozen=True):
    """Where a key is set at boot: the line that wins, and those that lose to it, in the order they are read.

    The winner is the last line that the kernel accepts; where it refuses all of them, the last one (see its
    ``rejected``). Refused lines are among the losers.
    """

    winner: SysctlSource
    losers: tuple[SysctlSource, ...] = ()
    voided_by: SysctlSource | None = None
    """A later line because of which systemd-sysctl does not write the winner either: it keeps one line per key, and
    that one is refused or removes the key (``-key``). ``sysctl --system``, which writes each in turn, does."""
    later: SysctlSource | None = None
    """A line of /etc/sysctl.conf that boot does not read, and that ``sysctl --system`` would apply."""


def read_sysctl(host: Host, unknown: Unknowns, named: Iterable[str] = ()) -> dict[str, str]:
    """Live values by dotted key, white space folded to single blanks. A key the kernel lacks is left out.

    ``named`` are keys of files, which are read as well.
    """
    readings = [(key, unknown.value(f"sysctl.{key}", host.read(key_path(key)))) for key in KEYS]
    others = ((key, host.read(key_path(key))) for key in sorted({*named} - {*KEYS}))
    readings += [(key, text) for key, text in others if not isinstance(text, Missing)]
    return {key: " ".join(text.split()) for key, text in readings if text is not None}


def named_keys(sources: Iterable[SysctlSource]) -> frozenset[str]:
    """The keys that lines name exactly and that hold a setting, no secret."""
    return frozenset(
        one.key
        for one in sources
        if not (is_pattern(one.key) or _UNREAD.fullmatch(one.key) or len(one.key) > _NAME_MAX)
        and not {"", ".", ".."}.intersection(key_path(one.key).split("/")[1:])
    )


def read_sysctl_sources(host: Host, unknown: Unknowns) -> tuple[SysctlSource, ...]:
    """Every line that sets or removes a key, in the order in which boot and then ``sysctl --system`` read them.

    See `advisor.facts.settings.sysctl` for the order of the files.
    """
    sources: list[SysctlSource] = []
    for path, at_boot in list_files(host):
        found = _read_file(host, path, at_boot=at_boot)
        if not isinstance(found, Missing) and len(sources) + len(found) > MAX_LINES:
            found = Missing("unreadable", f"the files hold more than {MAX_LINES} settings together")
        if not isinstance(found, Missing):
            sources.extend(found)
        elif not found.is_absent:
            unknown.note(f"sysctl_origin.{printable(path)}", found)
    return tuple(sources)


def _read_file(host: Host, path: str, *, at_boot: bool) -> tuple[SysctlSource, ...] | Missing:
    text = host.read(path)
    if isinstance(text, Missing):
        return text
    if text.count("=") > MAX_LINES and sum("=" in line for line in text.split("\n")) > MAX_LINES:
        return Missing("unreadable", f"holds more than {MAX_LINES} settings")
    real = path if isinstance(host.readlink(path), Missing) else host.real(path)
    target = None if isinstance(real, Missing) or real == path else printable(real)
    found = parse_sysctl_file(text, path, at_boot=at_boot, target=target)
    if sum(is_pattern(one.key) for one in found) > MAX_PATTERNS:
        return Missing("unreadable", f"holds more than {MAX_PATTERNS} patterns")
    return found


def origins(sources: Iterable[SysctlSource], keys: Iterable[str]) -> Mapping[str, SysctlOrigin]:
    """Who sets each key at boot; a key that no file sets, or that only a file unread at boot sets, is left out.

    A line that names a key exactly goes before every pattern, wherever they stand (sysctl.d(5)).
    """
    exact: dict[str, list[SysctlSource]] = {}
    matching: dict[str, list[SysctlSource]] = {}
    paths = {key: tuple(key_path(key).split("/")) for key in keys}

    @cache
    def covered(pattern: str) -> tuple[str, ...]:
        wanted = key_path(pattern).split("/")
        return tuple(key for key, names in paths.items() if _matches_key(wanted, names))

    for source in sources:
        if is_pattern(source.key):
            for key in covered(source.key):
                matching.setdefault(key, []).append(source)
        else:
            exact.setdefault(source.key, []).append(source)
    found = {key: _find_origin(exact.get(key, []), matching.get(key, [])) for key in paths}
    return {key: origin for key, origin in found.items() if origin is not None}


def _matches_key(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """glob(7) over the parts of a path, whose stars stop at slashes. No part of a key is as long as `NAME_MAX`."""
    is_alike = len(wanted) == len(names) and all(len(part) <= _NAME_MAX for part in wanted)
    return is_alike and all(map(fnmatchcase, names, wanted))


def _find_origin(exact: list[SysctlSource], patterns: list[SysctlSource]) -> SysctlOrigin | None:
    lines = [line for line in exact if line.at_boot] or [
        line for line in patterns if line.at_boot and not line.excludes
    ]
    assigned = [line for line in lines if not line.excludes]
    if not assigned:
        return None
    winner = next((line for line in reversed(assigned) if line.rejected is None), assigned[-1])
    last = lines[-1]
    afterwards = [line for line in exact if not line.at_boot and not line.excludes and line.rejected is None]
    return SysctlOrigin(
        winner=winner,
        losers=tuple(line for line in assigned if line is not winner),
        voided_by=last if last is not winner and not is_pattern(last.key) else None,
        later=afterwards[-1] if afterwards and (afterwards[-1].value.split() != winner.value.split()) else None,
    )
