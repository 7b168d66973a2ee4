"""Tunables that are two names for one thing: the kernel zeroes ``vm.dirty_ratio`` where ``vm.dirty_bytes`` is set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.facts.host_facts import Facts
from advisor.facts.sysctl import SysctlOrigin
from advisor.facts.sysctl_files import reads_later
from advisor.planning.records import Change, PlanTarget
from advisor.tunables import FileEdit, parse_tunable
from advisor.tunables.sysctl import Sysctl


def find_rivals(targets: Iterable[PlanTarget]) -> Mapping[str, str]:
    """Targets that cannot all be met, each with the other."""
    names = {target.tunable for target in targets}
    found = {name: other for name in names if (other := _find_rival(name)) in names}
    return found | {other: name for name, other in found.items()}


def _find_rival(identity: str) -> str | None:
    if identity.startswith("unit:") and identity.endswith(":CPUAffinity"):
        return identity.removesuffix(":CPUAffinity") + ":numa"
    one = parse_tunable(identity) if identity.startswith("sysctl:vm.") else None
    return f"sysctl:{one.twin}" if isinstance(one, Sysctl) and one.twin else None


def renumbered_irqs(changes: Iterable[Change], facts: Facts) -> Mapping[str, str]:
    """Interrupts that a plan cannot name, as a change of it gives others to their link: id → the reason."""
    changed = [change.tunable for change in changes if change.before != change.after and ":channels." in change.tunable]
    return {
        f"irq:{irq}:affinity": f"{link.name} gets other interrupts with its channels: apply those first, then this"
        for link in facts.links
        if any(name.startswith(f"link:{link.name}:channels.") for name in changed)
        for irq in link.irqs
    }


def twin_obstacle(one: Sysctl, edit: FileEdit, origins: Mapping[str, SysctlOrigin]) -> str | None:
    """Why a line for the other key, read at boot after advisor's, overrides it; None where there is none."""
    other, own = origins.get(one.twin or ""), origins.get(one.key)
    if other is None or other.winner.rejected or other.winner.value == "0":
        return None
    line = other.winner
    is_below = line.path == edit.path and own is not None and own.winner.path == line.path
    if not (is_below and own and own.winner.line < line.line) and not reads_later(line.path, edit.path):
        return None
    what = f"sets {one.twin} to {line.value} at boot, after advisor's line, and the kernel then zeroes {one.key}"
    return f"{line.file} line {line.line}{line.reading} {what}: remove that line, or use --runtime-only"


def twin_notes(changes: Iterable[Change], origins: Mapping[str, SysctlOrigin]) -> tuple[str, ...]:
    """Notes on lines for the other key that advisor's line overrides."""
    said: list[str] = []
    for change in changes:
        one = parse_tunable(change.tunable)
        other = origins.get(one.twin or "") if isinstance(one, Sysctl) and change.persist else None
        if isinstance(one, Sysctl) and other is not None and other.winner.value != "0":
            where = f"{other.winner.file} line {other.winner.line}{other.winner.reading}"
            said.append(f"{where} sets {one.twin}; advisor's file is read later, and {one.key} then replaces it")
    return tuple(said)
