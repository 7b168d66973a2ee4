"""Other tools that write what profiles write, what they do to these values, and how to resolve the conflict."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.network.link_claim import Owners, read_owners
from advisor.facts.writers import BootSettings, Write, read_writes, rival_writes
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change, Plan
from advisor.tunables import find_kind
from advisor.tunables.kind import Writer

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts

# Another program that writes what a plan or a transaction writes.


class OtherWriter(msgspec.Struct, frozen=True):
    """Another program at work here that writes values or files of the kinds that ours are of.

    ``otherwise`` are the tunables of the plan that it sets to another value, with that value; None where what it sets
    could not be found out. ``note`` says what it does, and how to resolve the conflict.
    """

    who: str
    note: str
    otherwise: Mapping[str, str] | None = msgspec.field(default_factory=dict)
    files: tuple[str, ...] = ()


_NAMED = 4

# The line that they write, or ask people to write, at the head of a file that they own.
_MARKS = (
    ("Ansible", lazy_regex(rb"ansible[ _-]managed|managed by ansible", re.IGNORECASE)),
    ("Puppet", lazy_regex(rb"(managed|generated|controlled) by puppet", re.IGNORECASE)),
    ("Chef", lazy_regex(rb"(managed|generated) by chef|chef[ -]managed", re.IGNORECASE)),
    ("Salt", lazy_regex(rb"managed by salt(stack)?\b|salt[ -]managed", re.IGNORECASE)),
    ("CFEngine", lazy_regex(rb"(managed|maintained) by cfengine", re.IGNORECASE)),
    ("cloud-init", lazy_regex(rb"(generated|created) by cloud-init|disable cloud-init's", re.IGNORECASE)),
)
_HEAD_LINES = 20
_MOVES_INTERRUPTS = frozenset({"isolated_cores", "irq_process"})
_SYSCTL_DIRECTORIES = ("/etc/sysctl.d/", "/run/sysctl.d/", "/etc/sysctl.conf")


def writers_beside_plan(host: Host, facts: Facts, plan: Plan) -> tuple[OtherWriter, ...]:
    """Those who write what ``plan`` is about to write."""
    from advisor.importers.tuned.convert import reads_sysctl_files

    files = {file.path: file.before or b"" for file in plan.files}
    # What the plan is about to write to /etc/sysctl.d is not there yet for TuneD's import to see.
    changes = plan.changes if reads_sysctl_files(host) else ()
    sysctls = (one for one in changes if (one.persist or "").startswith(_SYSCTL_DIRECTORIES))
    coming = {one.tunable for one in sysctls if one.tunable.startswith("sysctl:")}
    return tuple(_find_writers(host, facts.owners, facts.writes, plan.changes, files, lambda: facts, coming))


def writers_beside(host: Host, changes: Sequence[Change], paths: Iterable[str]) -> tuple[OtherWriter, ...]:
    """Those that write what active transactions have set; the files at ``paths`` are looked at as they are now."""
    found = {}
    for path in paths:
        content = host.read_bytes(path)
        found[path] = b"" if isinstance(content, Missing) else content
    # One scan, however many profiles and notes there are, and none where nobody is at work.
    return tuple(
        _find_writers(host, read_owners(host), read_writes(host), changes, found, cache(lambda: _scan_host(host)))
    )


def _scan_host(host: Host) -> Facts:
    from advisor.facts.host_facts import scan

    return scan(host)


def managed_by(content: bytes) -> str | None:
    """The configuration manager that a file names at its head; None where it names none."""
    head = b"\n".join(content.splitlines()[:_HEAD_LINES])
    return next((name for name, mark in _MARKS if mark.search(head)), None)


def _find_writers(
    host: Host,
    owners: Owners,
    writes: tuple[Write, ...],
    changes: Sequence[Change],
    files: Mapping[str, bytes],
    facts: Callable[[], Facts],
    coming: Collection[str] = (),
) -> Iterator[OtherWriter]:
    if owners.tuned_profile and _written_by("tuned", changes):
        yield _tuned_writer(host, owners.tuned_profile, changes, facts, coming)
    if owners.saptune_notes and _written_by("saptune", changes):
        yield _saptune_writer(host, owners.saptune_notes, changes, facts)
    interrupts = _written_by("irqbalance", changes)
    for name in (owners.tuned_profile or "").split() if interrupts else ():
        if keys := _moving_keys(host, name):
            yield OtherWriter(
                f"TuneD (profile {name})",
                (
                    f"TuneD's profile {name} moves interrupts itself while it runs ({', '.join(keys)}): leave "
                    "interrupts to it, or remove these lines from the profile"
                ),
                None,
            )
    yield from _rivals(writes, changes)
    for path, content in files.items():
        if "/network-scripts/ifcfg-" in path and re.search(rb"(?m)^EC2SYNC=[\"']?yes", content):
            note = (
                f"{path} says EC2SYNC=yes: ec2-net-utils writes this file when the interface is attached. EC2SYNC=no "
                "in it leaves the file alone"
            )
            yield OtherWriter("ec2-net-utils", note, None, files=(path,))
    yield from _network_writers(owners, changes)
    yield from _find_managers(owners, files)


def _rivals(writes: tuple[Write, ...], changes: Sequence[Change]) -> Iterator[OtherWriter]:
    """The writers of the table that come back to a value, but for those whose own profiles are read whole."""
    rivals: dict[str, dict[str, Write]] = {}
    found = BootSettings({}, writes)
    for change in changes:
        for write in rival_writes(found, change.tunable, change.after, change.persist):
            if not write.writer.startswith(("TuneD", "saptune")):
                rivals.setdefault(write.writer, {})[change.tunable] = write
    for who, by_tunable in rivals.items():
        known = {tunable: one.value for tunable, one in by_tunable.items() if one.value is not None}
        listed = _list_values(known) if known else _first_parts(list(by_tunable))
        first = next(iter(by_tunable.values()))
        where = "" if first.file is None else f" ({first.place})"
        note = f"{who} sets {listed} {first.acts}{where}: {first.change}"
        yield OtherWriter(who, note, known if len(known) == len(by_tunable) else None)


def _moving_keys(host: Host, profile: str) -> tuple[str, ...]:
    """Settings of a TuneD profile by which it moves interrupts that are there."""
    from advisor.importers.tuned.convert import import_tuned

    try:
        settings = import_tuned(profile, host, "faithful").settings
    except AdvisorError:
        return ()
    return tuple(dict.fromkeys(one.key for one in settings if one.key in _MOVES_INTERRUPTS or one.section == "irq"))


def _tuned_writer(
    host: Host, names: str, changes: Sequence[Change], facts: Callable[[], Facts], coming: Collection[str]
) -> OtherWriter:
    """TuneD's own profile, read as our import reads it, says what it makes of our values."""
    # Half of the time of a verify on a host without TuneD went into loading what reads its profiles.
    from advisor.importers.tuned.convert import made_by_tuned, read_again

    who = f"TuneD (profile {names})"
    values = {one.tunable: one.after for one in changes}
    otherwise: dict[str, str] = {}
    hidden: set[str] = set()
    try:
        for name in names.split():
            made, gives_way = made_by_tuned(name, values, host, facts())
            otherwise, hidden = otherwise | made, hidden | gives_way
    except AdvisorError as error:
        why = error.message
        note = (
            f"TuneD is active with the profile {names}, which cannot be read here ({why}): it may set some of "
            "these values again when it starts"
        )
        return OtherWriter(who, note, None)
    # The system's own files come last, ours among them.
    files = {name: value for name, value in read_again(host).items() if name in values} | {
        name: values[name] for name in coming
    }
    hidden |= {name for name in otherwise if files.get(name) == values[name]}
    otherwise = {name: value for name, value in (otherwise | files).items() if value != values[name]}
    if otherwise:
        profiles = list(dict.fromkeys(change.profile for change in changes))
        note = (
            f"TuneD is active with the profile {names}, which sets {_list_values(otherwise)}: it does so again "
            "whenever it starts. To leave them to TuneD: advisor profiles export "
            f"{profiles[0] if len(profiles) == 1 else 'PROFILE'} --format tuned; to be rid of it: tuned-adm off, "
            "and then apply this again"
        )
    elif hidden:
        note = (
            f"TuneD is active with the profile {names}: what it sets of these values gives way to /etc/sysctl.d, "
            "which it reads after its own"
        )
    else:
        note = f"TuneD is active with the profile {names}, which sets none of these values otherwise"
    return OtherWriter(who, note, dict(sorted(otherwise.items())))


def _saptune_writer(
    host: Host, notes: Sequence[str], changes: Sequence[Change], facts: Callable[[], Facts]
) -> OtherWriter:
    from advisor.importers.saptune import made_by_saptune

    named = ", ".join(notes)
    who = f"saptune ({named})"
    values = {one.tunable: one.after for one in changes}
    otherwise: dict[str, str] = {}
    try:
        for note in notes:
            otherwise.update(made_by_saptune(note, values, host, facts()))
    except AdvisorError as error:
        why = error.message
        text = (
            f"saptune has applied {named}, which cannot be read here ({why}): what a note sets is set again when "
            "it starts"
        )
        return OtherWriter(who, text, None)
    if not otherwise:
        return OtherWriter(who, f"saptune has applied {named}: it sets none of these values otherwise")
    text = (
        f"saptune has applied {named}, which set {_list_values(otherwise)}: that is set again when it starts. "
        "Change such a value in /etc/saptune/override, or revert the note first (saptune note revert)"
    )
    return OtherWriter(who, text, dict(sorted(otherwise.items())))


def _written_by(writer: Writer, changes: Iterable[Change]) -> list[Change]:
    """The changes of kinds that another program writes too."""
    kinds = ((one, find_kind(one.tunable)) for one in changes)
    return [one for one, kind in kinds if kind is not None and writer in kind.written_by]


def _list_values(values: Mapping[str, str]) -> str:
    return _first_parts([f"{name} = {value}" for name, value in values.items()])


def _first_parts(parts: Sequence[str], between: str = ", ") -> str:
    """The first few, and a sign that there are more."""
    return between.join((*parts[:_NAMED], "…") if len(parts) > _NAMED else parts)


def _network_writers(owners: Owners, changes: Sequence[Change]) -> Iterator[OtherWriter]:
    """A link's manager sets what stands in its own files; all else is its to undo when it activates the link."""
    links = _written_by("network-manager", changes)
    if not owners.network_managers or not links:
        return
    who = " with ".join(reversed(owners.network_managers))
    lost = [one.tunable for one in links if one.persist is None]
    if not lost:
        places = ", ".join(dict.fromkeys(one.persist or "" for one in links))
        yield OtherWriter(who, f"{who} configures links here; the values of links are kept in {places}, so they last")
        return
    yield OtherWriter(
        who,
        (
            f"{who} configures links here, and no file keeps {_first_parts(lost)}: such a value may be gone when "
            "the link is activated again. Set it in the link's own configuration to keep it"
        ),
        None,
    )


def _find_managers(owners: Owners, files: Mapping[str, bytes]) -> Iterator[OtherWriter]:
    marked = {path: manager for path, content in files.items() if (manager := managed_by(content))}
    for path, manager in marked.items():
        yield OtherWriter(
            manager,
            (
                f"{path} says that {manager} manages it: put the setting where {manager} takes it from, or its "
                "next run undoes it (advisor verify then reports it)"
            ),
            files=(path,),
        )
    if files and owners.agents and not marked:
        named = " and ".join(dict.fromkeys(owners.agents))
        verb = "runs" if len(set(owners.agents)) == 1 else "run"
        yield OtherWriter(
            named, f"{named} {verb} here: add {_first_parts(sorted(files))} to it, if it manages files there"
        )
