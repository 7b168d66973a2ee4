"""What is exported: every value that a plan wants on this host, whether or not it is there already."""

from __future__ import annotations

import re
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.writers import BootSettings, overriding_write, read_boot_settings
from advisor.host import Host, Missing, Probe, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.planner import profile_requests
from advisor.planning.comparison import combine_values
from advisor.planning.expansion import expand_targets
from advisor.planning.records import Plan
from advisor.planning.targets import resolve_targets
from advisor.shell.rollback_script import hand_command
from advisor.tunables import FileEdit, apply_edit, parse_tunable
from advisor.tunables.edits import Persisted
from advisor.tunables.kind import Sense
from advisor.tunables.preflight import BUILT_IN, Preflight, bind_probe, bind_steps
from advisor.tunables.sysctl_group import twin_of


class SkippedSetting(msgspec.Struct, frozen=True):
    """A value that the form does not carry, and why."""

    tunable: str
    value: str
    why: str


class PersistedFile(msgspec.Struct, frozen=True):
    """A file of our own that keeps values over a reboot. ``reload`` makes its owner read it."""

    path: str
    content: bytes
    mode: int
    reload: tuple[RunCommand, ...]


class ExportedSetting(msgspec.Struct, frozen=True):
    """One value. ``edit`` is where this host keeps it over a reboot; Missing says why nowhere, Persisted that its
    own command does.

    ``steps`` bring it about at once; none where only the file and what is to be started again do.
    """

    tunable: str
    value: str
    why: str
    hurts_when: str
    sources: tuple[str, ...]
    probe: Probe
    steps: tuple[Step, ...]
    edit: FileEdit | Persisted | Missing
    sense: Sense | tuple[Sense, ...] = "exactly"

    @property
    def kind(self) -> str:
        return self.tunable.partition(":")[0]

    @property
    def device(self) -> str:
        """The link or disk that it is of; the second word of its id, whatever that is, for other kinds."""
        return self.tunable.split(":")[1]

    @property
    def is_none_at_zero(self) -> bool:
        """Whether 0 is no limit that is kept already, but none: of one limit in two units the kernel zeroes the one
        that does not count (``vm.dirty_bytes`` next to ``vm.dirty_ratio``)."""
        kind, _, key = self.tunable.partition(":")
        return self.sense == "at-most" and kind == "sysctl" and twin_of(key) is not None

    def skip(self, why: str) -> SkippedSetting:
        """The setting as one that a form does not carry."""
        return SkippedSetting(self.tunable, self.value, why)

    @property
    def commands(self) -> tuple[str, ...]:
        """What sets it, as shell."""
        return tuple(hand_command(step) for step in self.steps)


class Exported(msgspec.Struct, frozen=True):
    """``name`` is that of the profiles together; ``plan`` is the one that the values come from."""

    name: str
    plan: Plan
    settings: tuple[ExportedSetting, ...]
    left_out: tuple[SkippedSetting, ...]
    files: tuple[PersistedFile, ...]
    hostname: str | None
    virtual_links: frozenset[str] = frozenset()
    """Bonds, VLANs, bridges …: links below /sys/devices/virtual."""
    boot: BootSettings | None = None
    """What sets the tunables on this host."""


class Bundle(msgspec.Struct, frozen=True):
    """The files of an exported form by their path below a directory, and how they are put to use.

    ``executable`` are those that are run. ``DIRECTORY`` in ``use`` is where the files are. ``not_kept`` are values that
    the form sets, and that a restart takes back.
    """

    files: dict[str, bytes]
    left_out: tuple[SkippedSetting, ...]
    use: tuple[str, ...]
    executable: tuple[str, ...] = ()
    not_kept: tuple[SkippedSetting, ...] = ()


def collect_settings(
    host: Host, plan: Plan, *, hostname: str | None, senses: Mapping[str, Sense | tuple[Sense, ...]]
) -> Exported:
    """The values of ``plan``: those that it changes, and those that are already set. ``senses`` are those of the
    values that are not wanted exactly so, by tunable; a value that stays, whatever it is, is none to export."""
    name = "-".join(plan.profiles)
    # What identifies a device is compared with that of all others, for each value.
    host = host.remembering()
    settings = [
        _make_setting(host, one.tunable, one.after, name, (one.why, one.hurts_when, one.sources), one.probe, one.steps)
        for one in plan.changes
    ]
    changed = {one.tunable for one in plan.changes}
    left_out = []
    for skipped in plan.skipped:
        if skipped.reason == BUILT_IN:
            left_out.append(SkippedSetting(skipped.tunable, skipped.wanted or "", skipped.reason))
        elif senses.get(skipped.tunable) == "keep":
            continue
        elif skipped.state in ("in-place", "kept") and skipped.wanted is not None and skipped.tunable not in changed:
            settings.append(_in_place(host, skipped.tunable, skipped.wanted, name))
        elif skipped.state not in ("in-place", "kept"):
            # What a profile names for each of a class has no name where there is none of it.
            name_of_class = re.sub(r"\{\w+\}", "*", skipped.tunable)
            left_out.append(SkippedSetting(name_of_class, skipped.wanted or "", skipped.reason))
    settings = [msgspec.structs.replace(one, sense=senses.get(one.tunable, "exactly")) for one in settings]
    virtual = frozenset(link for one in settings if one.kind == "link" if _is_virtual(host, link := one.device))
    boot = read_boot_settings(host, [one.tunable for one in settings])
    return Exported(name, plan, tuple(settings), tuple(left_out), kept_files(settings), hostname, virtual, boot)


def _in_place(host: Host, identity: str, value: str, profile: str) -> ExportedSetting:
    one = parse_tunable(identity)
    said = ("In place on the host that this was made on.", "", ())
    around = one.run_preflight(host, value, value) if one.check_value(value) is None else Preflight()
    probe, steps = bind_probe(one.probe, around.identity), bind_steps(one.make_steps(value), around.identity)
    return _make_setting(host, identity, value, profile, said, probe, steps)


def _make_setting(
    host: Host,
    identity: str,
    value: str,
    profile: str,
    said: tuple[str, str, tuple[str, ...]],
    probe: Probe,
    steps: tuple[Step, ...],
) -> ExportedSetting:
    return ExportedSetting(
        identity, value, *said, probe, steps, parse_tunable(identity).make_edit(host, value, profile=profile)
    )


def _is_virtual(host: Host, link: str) -> bool:
    place = host.real(f"/sys/class/net/{link}")
    return isinstance(place, str) and "/virtual/" in place


def is_own(edit: FileEdit) -> bool:
    """Whether its files are made for the values alone: one of a product or of the host's own is edited in its place."""
    return all("advisor" in one.path.rpartition("/")[2] for one in edit.whole)


def kept_files(settings: Iterable[ExportedSetting]) -> tuple[PersistedFile, ...]:
    """The files of our own that the settings' edits come to, by path."""
    contents: dict[str, bytes] = {}
    edits: dict[str, list[FileEdit]] = {}
    own = [one.edit for one in settings if isinstance(one.edit, FileEdit) and is_own(one.edit)]
    for edit in (each for one in own for each in one.whole):
        contents[edit.path] = apply_edit(contents.get(edit.path), edit)
        edits.setdefault(edit.path, []).append(edit)
    return tuple(
        PersistedFile(
            path, contents[path], some[0].mode, tuple(dict.fromkeys(step for one in some for step in one.reload))
        )
        for path, some in sorted(edits.items())
    )


def read_senses(
    host: Host, names: Sequence[str], settings: Mapping[str, str], facts: Facts
) -> Mapping[str, Sense | tuple[Sense, ...]]:
    """Tunable → sense of every value that the profiles do not want exactly so. Raises UsageError as a plan does."""
    wanted = (target for request in profile_requests(names, settings) for target in resolve_targets(request, facts)[0])
    return {target.tunable: target.sense for target in expand_targets(host, wanted)[0] if target.sense != "exactly"}


def write_bundle(bundle: Bundle, directory: Path) -> None:
    """Write the files below ``directory``, which must not be there yet or be empty. Raises RefusedError, UsageError."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedError(f"{directory}: is there already", hint="name a new directory: nothing is written over")
    parent = directory.resolve().parent
    if not parent.is_dir():
        raise UsageError(f"{parent}: no such directory")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=parent) as temporary:
            made = Path(temporary, directory.name)
            made.mkdir()
            for path, content in sorted(bundle.files.items()):
                place = made / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch(mode=0o777 if path in bundle.executable else 0o666)
                place.write_bytes(content)
            if directory.is_dir():
                directory.rmdir()
            made.rename(directory)
    except OSError as error:
        raise AdvisorError(f"{error.filename or directory}: {error.strerror or error}") from error


# What every exported file says at its head, and why a value is left out.

_WIDTH = 100
# What udev rules and .link files match by, other than a name that every host may give.
_IDENTITY = lazy_regex(rb"(?m)^(?:MACAddress|Path)=|(?:ENV\{(?!DEVTYPE)\w+\}|ATTR\{[\w/]+\})==")


def file_head(wanted: Exported, *lines: str, place: str | None = None) -> str:
    """A comment with ``#`` at each line: what this is, for which host it was made, and what sets values of it again
    there. ``place`` is where the form goes, by default where this host keeps each value."""
    origin = f", made for {_plain_text(wanted.hostname)}" if wanted.hostname else ""
    text = [f"{_plain_text(wanted.name)}, exported by advisor{origin}.", *lines]
    head = "".join(f"# {line}\n" for one in text for line in textwrap.wrap(_plain_text(one), _WIDTH))
    return head + _comment_lines(_set_again(wanted, place))


def _set_again(wanted: Exported, place: str | None) -> list[str]:
    found = []
    for one in wanted.settings if wanted.boot else ():
        path = place or (one.edit.path if isinstance(one.edit, FileEdit) else None)
        write = overriding_write(wanted.boot, one.tunable, one.value, path) if wanted.boot and path else None
        is_enough = write and write.value and combine_values(write.value, one.value, one.sense) == write.value
        if write and not is_enough:
            found.append(f"- {_plain_text(one.tunable)} = {_plain_text(one.value)}: {_plain_text(write.sentence)}")
    return ["That host sets these again:", *found] if found else []


def reason_lines(setting: ExportedSetting) -> str:
    """Why the value is wanted, and when it would hurt, as comment lines."""
    said = [setting.why, f"Hurts when: {setting.hurts_when}" if setting.hurts_when else ""]
    said.append(f"Source: {'; '.join(setting.sources)}" if setting.sources else "")
    return "".join(f"# {line}\n" for one in said if one for line in textwrap.wrap(_plain_text(one), _WIDTH))


def left_out_words(left_out: tuple[SkippedSetting, ...]) -> str:
    """The values that are not carried, as comment lines."""
    if not left_out:
        return ""
    return _comment_lines(["Not in here:", *map(_one_line, left_out)])


def identity_words(wanted: Exported) -> tuple[str, ...]:
    """What is to be said about files that know disks and links by what another host has not."""
    if not any(_IDENTITY.search(kept.content) for kept in wanted.files):
        return ()
    host = wanted.hostname or "the host that this was made on"
    return (
        f"The files for disks and links know them by the serial numbers and addresses of {host}. On an instance with "
        "others they match nothing: what the commands set there is gone with a restart.",
    )


def elsewhere_words(wanted: Exported, exact: Iterable[ExportedSetting], *, where: str = "here") -> str:
    """Which values the profile wants at least or at most so, and the form says exactly ``where`` as they came out."""
    bounded = [one for one in exact if one.sense != "exactly"]
    if not bounded:
        return ""
    host = _plain_text(wanted.hostname) if wanted.hostname else "the host that this was made on"
    lines = [
        f"The profile wants these as the least or the most; {where} they stand as they came out on {host}, and on "
        "another host would lower what is larger there, or raise what is smaller."
    ]
    lines += [f"- {_plain_text(one.tunable)} = {_plain_text(one.value)}" for one in bounded]
    return _comment_lines(lines)


def _comment_lines(lines: Iterable[str]) -> str:
    return "".join(f"# {line}\n" for one in lines for line in textwrap.wrap(one, _WIDTH, subsequent_indent="  "))


def not_kept_words(not_kept: tuple[SkippedSetting, ...]) -> str:
    """The values that are set, and not kept, as comment lines."""
    if not not_kept:
        return ""
    return _comment_lines(["Set, but not kept over a restart:", *map(_one_line, not_kept)])


def _one_line(one: SkippedSetting) -> str:
    wanted = f" = {_plain_text(one.value)}" if one.value else ""
    return f"- {_plain_text(one.tunable)}{wanted}: {_plain_text(one.why)}"


def not_kept(setting: ExportedSetting) -> str | None:
    """Why no file of its own keeps the value over a reboot; None where one does, or what sets it keeps it."""
    if isinstance(setting.edit, Missing):
        return setting.edit.why
    if isinstance(setting.edit, FileEdit) and not is_own(setting.edit):
        return f"it is kept in {setting.edit.path}, the host's own file: --format shell edits it in its place"
    return None


def _plain_text(text: str) -> str:
    # A name or an error may hold what would end a comment.
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
