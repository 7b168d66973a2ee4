"""Sysctl files: lines that the kernel refuses, that lose to a later writer, or that a boot would bring back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from advisor.facts.network.links import Link
from advisor.facts.processors.cpulist import format_list
from advisor.facts.settings import find_setting
from advisor.facts.settings.sysctl import SysctlSource
from advisor.facts.writers import Write, is_as_said, last_write
from advisor.facts.writers.last_word import LATE_MODULES, PACKAGE_FILES, RANKS, SYSCTL_FILES
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.rules import sources
from advisor.rules.queries import by_name, kernel_version
from advisor.rules.rule import (
    Decide,
    DeclaredWorkload,
    Facts,
    Finding,
    Remedy,
    SetTunable,
    comment_lines,
    edit_file,
    rule,
    set_sysctl,
)
from advisor.rules.settings.sysctls import judge_value

ORDER = 60

_BY_HAND = lazy_regex(r"kernel\.(core_pattern|modprobe|hotplug|poweroff_cmd|usermodehelper.*)|fs\.binfmt_misc.*")
"""Keys that have the kernel start programs, which advisor does not set."""
_OF_LINK = lazy_regex(r"net\.ipv[46]\.(?:conf|neigh)\.([^/]+\.[^/.]+)\.\w+")


def _fold_words(value: str) -> str:
    return " ".join(value.split())


def _refused_keys(facts: Facts) -> Iterable[tuple[str, SysctlSource]]:
    for key, origin in sorted(facts.sysctl_origin.items()):
        lines = (*origin.losers, origin.winner, *([origin.voided_by] if origin.voided_by else []))
        yield from ((key, line) for line in dict.fromkeys(lines) if line.rejected is not None)


@rule(
    id="sysctl.rejected",
    severity="warning",
    title="A sysctl file has a value that the kernel refuses",
    what="Lines of sysctl.d and sysctl.conf whose value cannot be written, such as tcp_rmem in quotes.",
    why='In a shell the quotes of sysctl -w k="a b c" are the shell\'s; in a file they are part of the value.',
    helps_when="Always: the line was meant to have an effect.",
    hurts_when="The value takes effect from then on: make sure that it is still wanted.",
    sources=(sources.MEASURED_QUOTES, sources.SYSCTL_D, sources.WHITE_PAPER),
)
def rejected(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    refused = tuple(_refused_keys(facts))
    if not refused:
        return None
    voided = tuple(
        f"{key}: because of it systemd does not write {origin.winner.place} either"
        for key, origin in sorted(facts.sysctl_origin.items())
        if origin.voided_by is not None and origin.voided_by.rejected is not None
    )
    # The value without the quotes for which the kernel refuses it; a line that it refuses otherwise goes.
    found: list[Remedy] = []
    for key, line in refused:
        if (value := _fold_words(line.value.replace('"', " ").replace("'", " "))) != _fold_words(line.value):
            found.append(set_sysctl(key, value))
    found += comment_lines(line for _, line in refused)
    return rejected.found(
        title=f"{refused[0][1].file} sets a value that the kernel refuses" if len(refused) == 1 else None,
        why="These lines have no effect at boot, and the tool that reads them reports an error: "
        + "; ".join(dict.fromkeys(f"{key}: {line.rejected}" for key, line in refused))
        + ".",
        evidence={
            "keys": tuple(dict.fromkeys(key for key, _ in refused)),
            "detail": (*(f"{line.place}: {key} = {line.value}" for key, line in refused), *voided),
        },
        remedy=tuple(found),
    )


@rule(
    id="sysctl.overridden",
    severity="advice",
    title="A sysctl setting loses to a later file",
    what="Keys that the administrator's files set more than once, to different values.",
    why="systemd-sysctl sorts the files of all directories by name; sysctl --system reads /etc/sysctl.conf last.",
    helps_when="The earlier line is believed to be active.",
    hurts_when="The later file is there to override on purpose.",
    sources=(sources.SYSCTL_D,),
)
def overridden(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    # Key, the line without effect, and what stands against it.
    lost: list[tuple[str, SysctlSource, str]] = []
    by: list[str] = []
    for key, origin in sorted(facts.sysctl_origin.items()):
        last = last_write(facts, f"sysctl:{key}")
        if last is not None and last.value is not None and last.rank > RANKS[SYSCTL_FILES] and not _is_late(last):
            losing = [
                line
                for line in (*origin.losers, origin.winner)
                if _is_own(line) and not is_as_said(key, last.value, line.value)
            ]
            where = "" if last.file is None else f" ({last.place})"
            lost += [(key, line, f"{last.writer} sets it to {last.value} later{where}") for line in losing]
            by += [last.writer] if losing else []
            continue
        winner = origin.winner
        lost += [
            (key, line, f"{winner.place} says {winner.value} and wins")
            for line in origin.losers
            if _is_own(line) and _fold_words(line.value) != _fold_words(winner.value)
        ]
        if origin.later is not None:
            how = "wins at boot; the first only under sysctl --system"
            lost.append((key, origin.later, f"{winner.place} says {winner.value} and {how}"))
    if not lost:
        return None
    by_others = tuple(dict.fromkeys(by))
    return overridden.found(
        title=f"A sysctl line loses to {by_others[0]}" if len(by_others) == 1 else None,
        why="The files are read in the order of their names and the last line wins, so what the earlier lines say does "
        "not hold." + (f" What {' and '.join(by_others)} set comes after all files." if by_others else ""),
        evidence={
            "keys": tuple(dict.fromkeys(key for key, _, _ in lost)),
            "detail": tuple(f"{key}: {line.place} says {line.value}, {other}" for key, line, other in lost),
        },
        remedy=(
            "keep the line that is meant; without those that lose, what holds now stays",
            *comment_lines(line for _, line, _ in lost),
        ),
    )


def _is_own(line: SysctlSource) -> bool:
    """Whether a line is of the administrator's, and the kernel takes it."""
    return line.path.startswith(("/etc/", "/run/")) and line.rejected is None


def _is_late(write: Write) -> bool:
    return write.rank == RANKS[LATE_MODULES]


def _is_moot(facts: Facts, key: str) -> bool:
    # Writing one of a pair sets the other to 0, so what the files say about the other is not what a boot gives.
    setting = find_setting(key)
    counterpart = setting.twin if setting else ""
    return bool(counterpart) and facts.sysctl.get(counterpart, "0") != "0" and counterpart in facts.sysctl_origin


def _is_without_effect(facts: Facts, key: str) -> bool:
    setting = find_setting(key)
    return setting is not None and setting.is_gone(kernel_version(facts))


class _Drift(NamedTuple):
    """A live value, and what will be instead; ``line`` is the sysctl file's, where one names the key."""

    key: str
    live: str
    write: Write
    line: SysctlSource | None

    @property
    def is_lost(self) -> bool:
        """Whether the line of a file has no effect, neither now nor after a boot."""
        return _is_late(self.write) and self.line is not None and not is_as_said(self.key, self.live, self.line.value)

    @property
    def is_of_file(self) -> bool:
        """Whether a line of a sysctl file has the last word."""
        return self.line is not None and self.write.rank in (RANKS[PACKAGE_FILES], RANKS[SYSCTL_FILES])

    @property
    def detail(self) -> str:
        if self.line is not None and _is_late(self.write):
            what = f"{self.write.writer} brings it along after systemd-sysctl has read the files"
            return f"{self.key}: live {self.live}, {self.line.place} says {self.line.value}, but {what}"
        place = self.line.place if self.line is not None and self.is_of_file else self.write.place
        return f"{self.key}: live {self.live}, {place} says {self.write.value}"


def _find_drift(facts: Facts) -> Iterator[_Drift]:
    named = {one.tunable.removeprefix("sysctl:") for one in facts.writes if "*" not in one.tunable}
    for key in sorted(named.union(facts.sysctl_origin) & facts.sysctl.keys()):
        live, write, origin = facts.sysctl[key], last_write(facts, f"sysctl:{key}"), facts.sysctl_origin.get(key)
        if write is None or _is_moot(facts, key) or _is_without_effect(facts, key):
            continue
        # What packages bring is for systemd to read, which may lie there without having started the host.
        if write.rank == RANKS[PACKAGE_FILES] and not (facts.systemd and facts.systemd.is_running):
            continue
        found = _Drift(key, live, write, origin.winner if origin else None)
        if found.is_lost or (write.value is not None and not is_as_said(key, live, write.value)):
            yield found


@rule(
    id="sysctl.differs-at-boot",
    severity="advice",
    title="The next boot would change a sysctl value",
    what="Live values against what has the last word at boot: a line of a file, a program, or a module loaded later.",
    why="A value set with sysctl -w lives until the next boot only.",
    helps_when="The host must come back from a reboot as it ran before.",
    hurts_when="A program that is not known here sets the live value on purpose after boot.",
    sources=(sources.SYSCTL_D,),
)
def differs_at_boot(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_find_drift(facts))
    if not found:
        return None
    changing = [one for one in found if not one.is_lost]
    count = len(changing or found)
    plural = "s" if count > 1 else ""
    verb = "come" if count > 1 else "comes"
    return differs_at_boot.found(
        title=f"The next boot would change {count} sysctl value{plural}"
        if changing
        else f"{count} sysctl line{plural} {verb} too early for {'their' if count > 1 else 'its'} kernel module",
        why="The live value is not what has the last word at boot: either it was set by hand and will be lost, or the "
        "file was changed and never loaded."
        if changing
        else "systemd-sysctl reads the files before the module is loaded: there is no such key yet, and nothing writes "
        "it afterwards.",
        evidence={"keys": tuple(one.key for one in found), "detail": tuple(one.detail for one in found)},
        remedy=tuple(_remedies(facts, found)),
        hurts_when=f"The live value is the right one: {flips}." if (flips := _flips(found)) else None,
    )


def _flips(found: Iterable[_Drift]) -> str:
    """What a boot changes once the modules are there before the files are read; empty where it changes nothing."""
    keys: dict[tuple[str, str], list[str]] = {}
    for one in found:
        if one.is_lost and one.line is not None:
            keys.setdefault((one.line.value, one.live), []).append(one.key)
    sets = [f"{', '.join(names)} to {said} (live {live})" for (said, live), names in keys.items()]
    return f"with the module loaded early, the next boot sets {', '.join(sets)}" if sets else ""


def _remedies(facts: Facts, found: Iterable[_Drift]) -> Iterator[Remedy | str]:
    """Each value by itself: what loads all files would change other keys as well, and what programs need."""
    found = tuple(found)
    if flips := _flips(found):
        # Lines without effect come to have one: until that is wanted, nothing is to load the module early.
        yield Decide(f"decide which values are meant: {flips}", is_prerequisite=True)
    late = {one.write.writer.rpartition(" ")[2] for one in found if _is_late(one.write)}
    for module in sorted(late):
        yield SetTunable(f"module:{module}", "loaded")
    for one in (each for each in found if each.is_of_file):
        judged = judge_value(facts, one.key, one.write.value or "")
        is_harmful = any(each.severity != "info" for each in judged)
        if one.line is not None and (is_harmful or _BY_HAND.fullmatch(one.key)):
            yield edit_file(one.line.file, one.line.line, f"correct {one.key}, or load it")
        elif one.write.value is not None:
            yield set_sysctl(one.key, one.write.value)
    numbers: dict[str, set[int]] = {}
    for one in found:
        if one.line is not None and (one.is_of_file or one.is_lost):
            numbers.setdefault(one.line.file, set()).add(one.line.line)
    if numbers:
        places = (f"{path}:{format_list(lines)}" for path, lines in numbers.items())
        yield f"or, where the live value is the right one, correct the line of the file: {', '.join(places)}"
    for one in found:
        if not one.is_of_file and not _is_late(one.write):
            yield f"{one.key}: {one.write.change} ({one.write.place}), or set the live value to {one.write.value}"


@rule(
    id="sysctl.names-nothing",
    severity="advice",
    title="A sysctl line misses the link that it means",
    what="Lines for a link whose name has a dot, such as a VLAN, written with that dot between dots.",
    why="In a dotted key each dot parts two directories: net.ipv4.conf.eth0.10.rp_filter is looked for in eth0, not in "
    "eth0.10.",
    helps_when="Always: the line has no effect.",
    hurts_when="The value takes effect from then on: make sure that it is still wanted.",
    sources=(sources.SYSCTL_D,),
)
def names_nothing(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = {one.name for one in facts.links}
    found = [
        (key, link[1], line)
        for key, origin in sorted(facts.sysctl_origin.items())
        if (link := _OF_LINK.fullmatch(key)) and link[1] in links
        for line in dict.fromkeys((*origin.losers, origin.winner))
    ]
    if not found:
        return None
    meant = {key: key.replace(link, link.replace(".", "/")) for key, link, _ in found}
    return names_nothing.found(
        why="In a dotted key each dot parts two directories; a dot of a link's name is written as a slash.",
        evidence={
            "keys": tuple(meant),
            "detail": tuple(f"{line.place}: {key} is no key; write {meant[key]}" for key, _, line in found),
        },
        remedy=tuple(edit_file(line.file, line.line, f"write {meant[key]} for {key}") for key, _, line in found),
    )


# Links against their configuration: values that are not in force, or that the next boot would change.

_LIVE: Mapping[str, Callable[[Link], int | None]] = {
    "mtu": lambda link: link.mtu,
    "txqueuelen": lambda link: link.txqueuelen,
    "ring.rx": lambda link: link.rings.rx if link.rings else None,
    "ring.tx": lambda link: link.rings.tx if link.rings else None,
    "channels.combined": lambda link: link.channels.combined if link.channels else None,
    "channels.rx": lambda link: link.channels.rx if link.channels else None,
    "channels.tx": lambda link: link.channels.tx if link.channels else None,
}
"""What a scan reads of a link that files set, too."""


class _LinkDrift(NamedTuple):
    tunable: str
    live: int
    write: Write


def _find_link_drift(facts: Facts) -> Iterator[_LinkDrift]:
    links = by_name(facts)
    for tunable in sorted({one.tunable for one in facts.writes if one.tunable.startswith("link:")}):
        _, name, attribute = (*tunable.split(":", 2), "", "")[:3]
        read, link, write = _LIVE.get(attribute), links.get(name), last_write(facts, tunable)
        live = read(link) if read and link else None
        # A running program may have set the live value since.
        if live is None or write is None or write.is_program or write.value is None or not is_count(write.value):
            continue
        if live != int(write.value):
            yield _LinkDrift(tunable, live, write)


@rule(
    id="links.differs-at-boot",
    severity="advice",
    title="A link differs from its configuration",
    what="MTU, queue length, rings and channels of links against the file that has the last word at boot.",
    why="A value that was set by hand lasts until the link is set up again; a line that its driver refused, or that "
    "came too late, never had an effect.",
    helps_when="The host must come back from a reboot as it ran before.",
    hurts_when="The live value was set on purpose and is to go with the next boot.",
    sources=(sources.IP_LINK,),
)
def link_differs_at_boot(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_find_link_drift(facts))
    if not found:
        return None
    return link_differs_at_boot.found(
        why="The file and the link disagree: the next time the link is set up decides.",
        evidence={
            "links": tuple(dict.fromkeys(one.tunable.split(":")[1] for one in found)),
            "detail": tuple(
                f"{one.tunable}: live {one.live}, {one.write.place} says {one.write.value}" for one in found
            ),
        },
        remedy=(
            *(SetTunable(one.tunable, one.write.value or "") for one in found),
            "or correct the lines of the files, where the live values are right",
        ),
    )
