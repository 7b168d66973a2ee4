"""Sysctls that the rules and profiles name: the live value, and which file sets it at boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from advisor.facts.printable import printable
from advisor.facts.settings import KEYS
from advisor.facts.sysctl_files import SysctlSource, is_pattern, key_path, list_files, parse_sysctl_file
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

__all__ = ["KEYS", "SysctlOrigin", "SysctlSource", "named_keys", "origins", "read_sysctl", "read_sysctl_sources"]


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

    See `advisor.facts.sysctl_files` for the order of the files.
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
