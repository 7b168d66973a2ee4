"""Sysctl files: lines that the kernel refuses, that lose to a later one, or that a boot would bring back."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.facts.settings import find_setting
from advisor.facts.sysctl import SysctlSource
from advisor.rules import sources
from advisor.rules.queries import kernel_version
from advisor.rules.remedy import Remedy, RunShell, comment_out, set_sysctl
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

ORDER = 60


def _fold_words(value: str) -> str:
    return " ".join(value.split())


def _source_place(source: SysctlSource) -> str:
    return f"{source.path}:{source.line}"


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
        f"{key}: because of it systemd does not write {_source_place(origin.winner)} either"
        for key, origin in sorted(facts.sysctl_origin.items())
        if origin.voided_by is not None and origin.voided_by.rejected is not None
    )
    # The value without the quotes for which the kernel refuses it; a line that it refuses otherwise goes.
    found: list[Remedy] = []
    for key, line in refused:
        if (value := _fold_words(line.value.replace('"', " ").replace("'", " "))) != _fold_words(line.value):
            found.append(set_sysctl(key, value))
        found.append(comment_out(line.path, line.line))
    return rejected.found(
        title=f"{refused[0][1].path} sets a value that the kernel refuses" if len(refused) == 1 else None,
        why="These lines have no effect at boot, and the tool that reads them reports an error: "
        + "; ".join(dict.fromkeys(f"{key}: {line.rejected}" for key, line in refused))
        + ".",
        evidence={
            "keys": tuple(dict.fromkeys(key for key, _ in refused)),
            "detail": (*(f"{_source_place(line)}: {key} = {line.value}" for key, line in refused), *voided),
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
    # Key, the line without effect, the line that stands against it, and how.
    lost: list[tuple[str, SysctlSource, SysctlSource, str]] = []
    for key, origin in sorted(facts.sysctl_origin.items()):
        for loser in origin.losers:
            if (
                loser.path.startswith(("/etc/", "/run/"))
                and loser.rejected is None
                and _fold_words(loser.value) != _fold_words(origin.winner.value)
            ):
                lost.append((key, loser, origin.winner, "wins"))
        if origin.later is not None:
            lost.append((key, origin.later, origin.winner, "wins at boot; the first only under sysctl --system"))
    if not lost:
        return None
    return overridden.found(
        why="The files are read in the order of their names and the last line wins, so what the earlier lines say does "
        "not hold.",
        evidence={
            "keys": tuple(dict.fromkeys(key for key, _, _, _ in lost)),
            "detail": tuple(
                f"{key}: {_source_place(line)} says {line.value}, {_source_place(other)} says {other.value} and {how}"
                for key, line, other, how in lost
            ),
        },
        remedy=(
            "keep the line that is meant; without those that lose, what holds now stays",
            *dict.fromkeys(comment_out(line.path, line.line) for _, line, _, _ in lost),
        ),
    )


def _is_moot(facts: Facts, key: str) -> bool:
    # Writing one of a pair sets the other to 0, so what the files say about the other is not what a boot gives.
    setting = find_setting(key)
    counterpart = setting.twin if setting else ""
    return bool(counterpart) and facts.sysctl.get(counterpart, "0") != "0" and counterpart in facts.sysctl_origin


def _is_without_effect(facts: Facts, key: str) -> bool:
    setting = find_setting(key)
    return setting is not None and setting.is_gone(kernel_version(facts))


def _differing_keys(facts: Facts) -> Iterable[tuple[str, str, SysctlSource]]:
    for key, origin in sorted(facts.sysctl_origin.items()):
        live, line = facts.sysctl.get(key), origin.winner
        is_written = line.rejected is None and origin.voided_by is None
        if (
            live is not None
            and is_written
            and _fold_words(live) != _fold_words(line.value)
            and not _is_moot(facts, key)
            and not _is_without_effect(facts, key)
        ):
            yield key, live, line


@rule(
    id="sysctl.differs-at-boot",
    severity="advice",
    title="The next boot would change a sysctl value",
    what="Live values against the line that wins at boot.",
    why="A value set with sysctl -w lives until the next boot only.",
    helps_when="The host must come back from a reboot as it ran before.",
    hurts_when="A tuning daemon or the cluster software sets the live value on purpose after boot.",
    sources=(sources.SYSCTL_D,),
)
def differs_at_boot(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_differing_keys(facts))
    if not found:
        return None
    tuned = facts.owners.tuned_profile
    return differs_at_boot.found(
        title=f"The next boot would change {len(found)} sysctl value{'s' if len(found) > 1 else ''}",
        why="The live value is not what the files say: either it was set by hand and will be lost, or the file was "
        "changed and never loaded."
        + (f" TuneD is active (profile {tuned}) and sets values of its own after boot." if tuned else ""),
        evidence={
            "keys": tuple(key for key, _, _ in found),
            "detail": tuple(
                f"{key}: live {live}, {_source_place(line)} says {line.value}" for key, live, line in found
            ),
        },
        remedy=(
            RunShell(
                "sysctl --system",
                "load the files, where they are right",
                "values that were set by hand or by another tool",
            ),
            "where the live values are right, correct the files",
        ),
    )
