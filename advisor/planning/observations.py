"""What is there now: the live value of every target, and the files that would carry it over a reboot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.block.block_graph import BlockGraph
from advisor.facts.clusters.llt import HIGH_WATER_MARKS, MarkDefault, mark_defaults, parse_llttab
from advisor.facts.unknown import LLTTAB
from advisor.host import Host, Missing, observe
from advisor.host.files import MAX_FILE_BYTES
from advisor.host.numbers import is_count
from advisor.host.would_be import file_obstacle, step_obstacle
from advisor.planning.comparison import NOTHING_OWNED, Ownership, combine_values
from advisor.planning.records import PlanTarget
from advisor.tunables import FileEdit, Persisted, Tunable, parse_tunable
from advisor.tunables.kind import explain_misread
from advisor.tunables.preflight import LinkMark, Preflight, bind_steps, link_of, marks_of
from advisor.tunables.sysctl_group import restore_rank


class FileState(msgspec.Struct, frozen=True):
    """A file as it is: None for content where it does not exist."""

    content: bytes | None
    mode: int | None
    uid: int
    gid: int
    missing_parents: tuple[str, ...] = ()
    """Directories that do not exist yet, innermost first."""
    obstacle: str | None = None
    """Why this process could not replace or make it, on a host that it runs on."""


class ObservedTarget(msgspec.Struct, frozen=True):
    """One target's live value, the value it would get, and the edit that would persist it.

    ``ours`` says that an earlier transaction of this tool brought the live value about.
    """

    live: str | Missing
    wanted: str
    combined: str | None
    edit: FileEdit | Persisted | Missing
    ours: bool = False
    preflight: Preflight = Preflight()
    undecided: str | None = None
    """Why it cannot be said what the value should be."""
    sufficient: str | None = None
    """Why nothing is to be done: what holds the value in another unit, or that the host has it by itself."""
    at_start: str | None = None
    """The value that the next start brings where no file says otherwise; None where that is not known."""
    obstacle: str | None = None
    """Why this process could not set the value now, on a host that it runs on."""

    @property
    def file_edits(self) -> tuple[FileEdit, ...]:
        """The edits that would persist it; none where no file of advisor's does."""
        return self.edit.whole if isinstance(self.edit, FileEdit) else ()


class Observations(msgspec.Struct, frozen=True):
    values: Mapping[str, ObservedTarget]
    files: Mapping[str, FileState | Missing]
    links: tuple[LinkMark, ...] = ()


def observe_targets(
    host: Host, targets: Iterable[PlanTarget], first_seen: Mapping[str, str] | None, held: Ownership = NOTHING_OWNED
) -> Observations:
    """Read the host for a plan.

    ``first_seen`` is each tunable's value before this tool first changed it; None where only root can know, so that
    a value that is a multiple of it is then unknown.
    """
    # What identifies a disk is compared with that of all others, for each value.
    host = host.remembering()
    values = {target.tunable: _observe_one(host, target, first_seen, held) for target in targets}
    paths = {edit.path for seen in values.values() for edit in seen.file_edits}
    names = [*values, *(one.tunable for seen in values.values() for one in seen.preflight.side_effects)]
    # A link takes those above and below it along.
    marks = marks_of(host) if any(map(link_of, names)) else ()
    return Observations(values, {path: _file_state(host, path) for path in sorted(paths)}, marks)


def _observe_one(
    host: Host, target: PlanTarget, first_seen: Mapping[str, str] | None, held: Ownership
) -> ObservedTarget:
    one = parse_tunable(target.tunable)
    live = _live(host, one)
    # A capture that lacks what the probe reads has none of what else would decide.
    is_known = host.is_live or not isinstance(live, Missing)
    given = one.explain_given(host, target.value) if is_known else None
    if given is not None:
        return ObservedTarget(live, target.value, target.value, Missing("absent", given), sufficient=given)
    if isinstance(live, Missing):
        return ObservedTarget(live, target.value, None, live)
    if wrong := explain_misread(one, live, target.value):
        unclear = Missing("unreadable", wrong)
        return ObservedTarget(unclear, target.value, None, unclear)
    wanted = one.choose_value(host, live, target.value)
    if target.is_of_default and (first_seen is not None or target.default is not None):
        return _observe_mark(host, target, live, first_seen or {}, held)
    if first_seen is None:
        if target.multiply is not None:
            why = Missing("unreadable", f"reads {live}, but whether it was raised already is known to root alone")
            return ObservedTarget(why, wanted, None, why)
        first_seen = {}
    if target.multiply is not None:
        base = first_seen.get(target.tunable, live)
        wanted = str(target.multiply * int(base)) if base.isascii() and is_count(base) else base
    base = held.value_underneath(target.tunable, live)
    combined = combine_values(base, wanted, target.sense)
    if target.sense in ("at-least", "at-most"):
        twin = one.measure_twin(host, base)
        if isinstance(twin, Missing):
            unknown = f"what it is compared with cannot be known: {twin.why}"
            return ObservedTarget(live, wanted, live, twin, undecided=unknown)
        if twin is not None:
            amount, words = twin
            combined = combine_values(amount, wanted, target.sense)
            if combined == amount:
                nothing = Missing("absent", words)
                reason = f"already sufficient: {words}"
                return ObservedTarget(live, wanted, live, nothing, sufficient=reason)
    ours = first_seen.get(target.tunable, live) != live
    around = one.run_preflight(host, live, combined) if one.check_value(combined) is None else Preflight()
    edit = one.make_edit(host, combined, profile=target.profile)
    return ObservedTarget(
        live, wanted, combined, edit, ours, around, obstacle=_step_obstacle(host, one, combined, around)
    )


def _step_obstacle(host: Host, one: Tunable, value: str, around: Preflight) -> str | None:
    if not host.is_live or one.check_value(value) is not None:
        return None
    steps = bind_steps(one.make_steps(value), around.identity)
    return next((why for step in steps if (why := step_obstacle(host, step)) is not None), None)


def _observe_mark(
    host: Host, target: PlanTarget, live: str, first_seen: Mapping[str, str], held: Ownership
) -> ObservedTarget:
    """A multiple of LLT's default, never less than what is live or in /etc/llttab."""
    one = parse_tunable(target.tunable)
    name, first = target.tunable.removeprefix("llt:"), first_seen.get(target.tunable, live)
    text = host.read(LLTTAB)
    if isinstance(text, Missing) and not text.is_absent:
        return ObservedTarget(text, target.value, None, text)
    llttab = None if isinstance(text, Missing) else parse_llttab(text)
    in_file = llttab.flow.get(name) if llttab else None
    known = MarkDefault(target.default)
    if target.default is None:
        marks = {each: _live(host, parse_tunable(f"llt:{each}")) for each in HIGH_WATER_MARKS} | {name: live}
        numbers = {each: int(value) for each, value in marks.items() if isinstance(value, str)}
        firsts = {each: first_seen.get(f"llt:{each}", "") for each in marks}
        known = mark_defaults(numbers, llttab, {each: int(value) for each, value in firsts.items() if is_count(value)})[
            name
        ]
    if known.packets is None or target.multiply is None:
        why = f"{known.why}: say it with --set default=PACKETS, as an untouched node prints it"
        return ObservedTarget(live, target.value, live, Missing("absent", known.why), undecided=why)
    wanted = str(max(target.multiply * known.packets, in_file or 0))
    combined = combine_values(held.value_underneath(target.tunable, live), wanted, target.sense)
    edit = one.make_edit(host, combined, profile=target.profile)
    around = one.run_preflight(host, live, combined)
    ours, at_start = first != live, None if in_file is not None else str(known.packets)
    return ObservedTarget(live, wanted, combined, edit, ours, around, at_start=at_start)


def _live(host: Host, one: Tunable) -> str | Missing:
    live = observe(host, one.probe)
    return one.explain_absence(host, live) if isinstance(live, Missing) else live


def _file_state(host: Host, path: str) -> FileState | Missing:
    content = host.read_bytes(path)
    if isinstance(content, Missing):
        if not content.is_absent:
            return content
        found: list[str] = []
        parent = path.rpartition("/")[0]
        while parent and not host.is_dir(parent):
            found.append(parent)
            parent = parent.rpartition("/")[0]
        return FileState(None, None, 0, 0, tuple(found), file_obstacle(host, path))
    if len(content) >= MAX_FILE_BYTES:
        return Missing("unreadable", "larger than any configuration file")
    owner = host.owner(path)
    if isinstance(owner, Missing) and not owner.is_absent:
        # A symbolic link: it would be replaced, and the rollback would leave a file instead.
        return owner
    mode, uid, gid = (0o644, 0, 0) if isinstance(owner, Missing) else owner
    return FileState(content, mode, uid, gid, obstacle=file_obstacle(host, path))


# The order of changes that the kernel ties together; the rest goes by name.

# What comes first: it resets what follows (nr_requests), or bounds it (preread_bypass_threshold).
_FIRST = (":scheduler", ":stripe_cache_size")


def rank_of(identity: str) -> int:
    """0 for most, more for what another setting of the same device, or a wider sysctl of the same group, changes."""
    if identity.startswith("sysctl:net."):
        return restore_rank(identity.removeprefix("sysctl:"))
    return 1 if identity.startswith(("block:", "md:", "udev:")) and not identity.endswith(_FIRST) else 0


def layer_rank(identity: str, one: ObservedTarget, graph: BlockGraph) -> int:
    """Of the largest request of a device on others: what is below rises first and sinks last, since a map's request
    fails on a path that takes less."""
    kind, _, rest = identity.partition(":")
    name, _, attribute = rest.rpartition(":")
    before, after = one.live, one.combined
    if kind != "block" or attribute != "max_sectors_kb" or not isinstance(before, str) or not isinstance(after, str):
        return 0
    if not is_count(before) or not is_count(after):
        return 0
    height = len(graph.lowest(name))
    return height if int(after) > int(before) else -height
