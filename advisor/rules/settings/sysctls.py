"""Kernel parameters with a value of which their record warns: live, in sysctl files, in a profile or a command.

One predicate judges them all, and a finding names every place that has such a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from advisor.facts.settings import CAUTIONS, SETTINGS, find_setting
from advisor.facts.settings.record import Caution, Machine, Setting
from advisor.facts.settings.sysctl import SysctlSource
from advisor.facts.settings.value import value_of
from advisor.host.origin import package_data
from advisor.host.patterns import lazy_regex
from advisor.rules import sources
from advisor.rules.queries import kernel_version, sysctl_number
from advisor.rules.rule import (
    SIGNS,
    Decide,
    DeclaredWorkload,
    Facts,
    Finding,
    Operator,
    Rule,
    SetTunable,
    Severity,
    comment_lines,
    register,
    rule,
    set_sysctl,
)

ORDER = 260

_VIRTUAL = frozenset({"bridge", "veth", "tun", "tap", "vxlan", "geneve", "wireguard", "macvlan", "dummy"})

_OWN_FILE = lazy_regex(r"/etc/sysctl\.d/90-advisor(?:\.[0-9]+)?-(?P<profile>.+)\.conf")


class Judged(msgspec.Struct, frozen=True):
    """What the record of a key says against a value on one host. ``id`` is that of the finding; ``remedy`` sets the
    ``better`` value, None where no value is. ``gone``: this kernel no longer has the setting, so that it does
    nothing."""

    id: str
    severity: Severity
    title: str
    why: str
    instead: str
    better: str | None
    remedy: SetTunable | None
    hurts_when: str
    sources: tuple[str, ...]
    gone: bool


def _is_bound(facts: Facts) -> bool:
    if facts.beegfs is None:
        return False
    from advisor.rules.clusters.beegfs import all_bound

    return all_bound(facts)


def _writers(facts: Facts) -> frozenset[str]:
    return frozenset(one.writer for one in facts.writes)


_TRAITS: Mapping[str, Callable[[Facts], bool]] = {
    "binds-services": _is_bound,
    "forwards": lambda facts: (
        facts.sysctl.get("net.ipv4.ip_forward") == "1" and any(link.kind in _VIRTUAL for link in facts.links)
    ),
    "containers": lambda facts: not _writers(facts).isdisjoint(("Docker", "Podman", "kubelet", "LXD", "Incus")),
    "": lambda _: True,
    "pods": lambda facts: not _writers(facts).isdisjoint(("kubelet", "CNI's bridge plugin")),
    "ipv6": lambda facts: any(
        ":" in one and not one.startswith(("fe80", "::1")) for link in facts.links for one in link.addresses
    ),
}
"""What a caution may ask of a host besides its kernel and memory."""


def machine_of(facts: Facts) -> Machine:
    """Return what of a host decides whether a value is good there."""
    return Machine(
        kernel=kernel_version(facts),
        memory_bytes=facts.memory.total_bytes,
        page_bytes=facts.memory.page_bytes,
        cpus=facts.cpu.threads,
        is_such=lambda trait: _TRAITS[trait](facts),
    )


def judge_value(facts: Facts, key: str, value: str) -> tuple[Judged, ...]:
    """Return what the key's record says against a value on this host; none where it says nothing, or the key has no
    record."""
    setting, machine = find_setting(key), machine_of(facts)
    if setting is None:
        return ()
    found = [_as_judged(one, key, value, machine) for one in setting.cautions if is_bad(one, machine, key, value)]
    return tuple(found) or ((_as_gone(setting),) if setting.is_gone(machine.kernel) else ())


def _as_gone(setting: Setting) -> Judged:
    return Judged(
        id="sysctl.gone",
        severity="info",
        title=gone.title,
        why=f"{setting.key} {setting.went}.",
        instead=setting.moved_to,
        better=None,
        remedy=None,
        hurts_when=gone.hurts_when,
        sources=setting.citations or gone.sources,
        gone=True,
    )


def is_bad(caution: Caution, machine: Machine, key: str, value: str) -> bool:
    """Return whether the caution is about this value of the key; one that begins with no number is, where the caution
    is about a word."""
    read = value_of(key, value)
    setting = find_setting(key)
    is_readable = bool(read.numbers) or (setting is not None and setting.holds == "words")
    if caution.is_of_gone and setting is not None and setting.until and not setting.is_gone(machine.kernel):
        return False
    return caution.covers(key) and is_readable and caution.is_bad(read, machine) and machine.is_such(caution.where)


def _as_judged(caution: Caution, key: str, value: str, machine: Machine) -> Judged:
    gone = caution.gone if caution.gone and machine.is_since(caution.gone.since) else None
    better = caution.better(value_of(key, value), machine) if callable(caution.better) else caution.better
    sign = "<=" if better and better.startswith("<=") else "="
    operator: Operator = next(name for name, each in SIGNS.items() if each == sign)
    plain = better.removeprefix("<=") if better and not gone else None
    title, why = caution.own.get(key, (caution.title, caution.why))
    return Judged(
        id=caution.id,
        severity="info" if gone else caution.severity,
        title=gone.title if gone else title,
        why=gone.why if gone else why,
        instead=caution.instead,
        better=plain,
        remedy=set_sysctl(key, plain, operator) if plain else None,
        hurts_when=caution.hurts_when,
        sources=caution.sources,
        gone=gone is not None,
    )


def _bad_lines(facts: Facts, caution: Caution, machine: Machine, key: str) -> tuple[SysctlSource, ...]:
    """The lines of a key that are bad, the one that wins first; none where each of them loses to a better one.

    Lines that the kernel rejects and those of advisor's library do not count. Where a bad one wins, bad ones that
    lose to it are named too: they would follow when it is deleted.
    """
    origin = facts.sysctl_origin.get(key)
    if origin is None:
        return ()

    def bad(*lines: SysctlSource | None) -> tuple[SysctlSource, ...]:
        counting = (line for line in lines if line and line.rejected is None and not _is_of_library(line))
        return tuple(line for line in counting if is_bad(caution, machine, key, line.value))

    in_force = bad(origin.winner, origin.later)
    return (*in_force, *bad(*origin.losers)) if in_force else ()


def _is_of_library(line: SysctlSource) -> bool:
    """Whether a profile of advisor's library has written it: its values are weighed there, with their sources, and
    planned with a budget. A person's own value or profile is judged, whatever has written it."""
    own = _OWN_FILE.fullmatch(line.path)
    return own is not None and (package_data("profiles") / f"{own['profile']}.toml").is_file()


def _is_ours(facts: Facts, key: str, value: str) -> bool:
    """Whether a profile of the library sets just this value at boot."""
    origin = facts.sysctl_origin.get(key)
    return origin is not None and _is_of_library(origin.winner) and origin.winner.value.split() == value.split()


def _carriers(facts: Facts, caution: Caution, machine: Machine) -> Iterator[tuple[str, Judged, SysctlSource | None]]:
    """What has a value that the caution is about: its text, what is said of it, and the line; None for the kernel."""
    seen = sorted({*facts.sysctl, *facts.sysctl_origin}) if any("*" in key for key in caution.keys) else caution.keys
    keys = [key for key in seen if caution.covers(key)]
    for key in keys:
        for line in _bad_lines(facts, caution, machine, key):
            text = f"{line.path}:{line.line}: {line.key} = {' '.join(line.value.split())}"
            yield text, _as_judged(caution, key, line.value, machine), line
    for key in keys:
        live = facts.sysctl.get(key)
        if live is not None and is_bad(caution, machine, key, live) and not _is_ours(facts, key, live):
            yield f"live: {key} = {live}", _as_judged(caution, key, live, machine), None


def _find(caution: Caution, facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_carriers(facts, caution, machine_of(facts)))
    if not found:
        return None
    said = found[0][1]
    if len({one.title for _, one, _ in found}) > 1:
        said = msgspec.structs.replace(said, title=caution.title, why=caution.why)
    return _RULES[caution.id].found(
        severity=said.severity,
        title=said.title,
        why=said.why,
        evidence={"detail": tuple(text for text, _, _ in found)},
        remedy=(
            Decide(caution.instead),
            *comment_lines(line for _, _, line in found if line),
            *dict.fromkeys(one.remedy for _, one, _ in found if one.remedy),
        ),
        intent=caution.is_intent,
    )


def _register(caution: Caution) -> Rule:
    return register(
        Rule(
            id=caution.id,
            severity=caution.severity,
            title=caution.title,
            what=f"{', '.join(caution.keys)}: {caution.when}. Judged are live values and the lines of sysctl files.",
            why=caution.why + (f" {caution.gone.why}" if caution.gone else ""),
            helps_when=caution.helps_when,
            hurts_when=caution.hurts_when,
            sources=caution.sources,
            function=partial(_find, caution),
            module=__name__,
            contradictions=caution.contradictions,
        )
    )


@rule(
    id="sysctl.gone",
    severity="info",
    title="Sysctl files set keys that this kernel lacks",
    what="Lines of sysctl files for keys that the running kernel removed, moved, or keeps without effect.",
    why="The line does nothing, and what it was meant for is not set.",
    helps_when="The file is read to learn how the host is tuned, or came from a guide for an older kernel.",
    hurts_when="The same file serves hosts with older kernels, where the line still counts.",
    sources=(sources.SYSCTL_D, sources.DEBUGFS),
)
def gone(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = [
        (line, judged)
        for key, origin in sorted(facts.sysctl_origin.items())
        for line in (origin.winner,)
        for judged in judge_value(facts, key, line.value)
        if judged.id == gone.id
    ]
    if not found:
        return None
    return gone.found(
        why=" ".join(dict.fromkeys(judged.why for _, judged in found)),
        evidence={
            "keys": tuple(line.key for line, _ in found),
            "detail": tuple(f"{line.path}:{line.line}: {line.key} = {line.value}" for line, _ in found),
        },
        remedy=("set it where it went, if it is still wanted", *comment_lines(line for line, _ in found)),
    )


def _active(facts: Facts, key: str) -> tuple[Setting, int] | None:
    """The key of a limit that counts, of those in two units, with its number; None where it is not known."""
    setting = find_setting(key)
    twin = find_setting(setting.twin) if setting and setting.twin else None
    found = [(one, number) for one in (setting, twin) if one and (number := sysctl_number(facts, one.key))]
    return found[0] if found else None


def _is_misplaced(low: tuple[Setting, int], high: tuple[Setting, int], memory: int | None) -> bool:
    (lower, number), (upper, most) = low, high
    if lower.unit != upper.unit:
        # A percentage is one of the memory that may be dirty, which is never more than all of it.
        if not lower.is_in_bytes or not memory:
            return False
        most = most * memory // 100
    return number > most or (lower.is_below and number == most)


def find_misplaced(facts: Facts) -> dict[str, tuple[Setting, Setting]]:
    """Return the limits that exceed another which they should not, with that one, by the sentence that says so."""
    found: dict[str, tuple[Setting, Setting]] = {}
    for one in SETTINGS.values():
        low, high = (_active(facts, key) for key in (one.key, one.not_above)) if one.not_above else (None, None)
        if low and high and _is_misplaced(low, high, facts.memory.total_bytes):
            found[f"{low[0].key} {low[1]} is not below {high[0].key} {high[1]}"] = (low[0], high[0])
    return found


@rule(
    id="sysctl.out-of-order",
    severity="advice",
    title="Limits that belong together are out of order",
    what="Live values that should not exceed another: marks of the neighbour table, and the limit of dirty memory in "
    "the background against that of the writers, in either unit.",
    why="The kernel takes each of them as it is written, and then does otherwise than they say.",
    helps_when="One of them was set by itself.",
    hurts_when="Never: in this order neither does what it says.",
    sources=(sources.VM, sources.IP_SYSCTL),
)
def out_of_order(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = find_misplaced(facts)
    if not found:
        return None
    return out_of_order.found(
        why=" ".join(f"{text}: {low.otherwise}." for text, (low, _) in found.items()),
        evidence={"detail": tuple(found)},
        remedy=tuple(f"raise {high.key}, or lower {low.key}" for low, high in found.values()),
    )


_RULES = {one.id: _register(one) for one in CAUTIONS}
