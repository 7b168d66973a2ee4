"""What to do about a finding, as data: values to set, profiles to plan, commands to run, decisions to make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Literal

import msgspec

from advisor.facts.cpulist import fold_list, parse_list
from advisor.facts.sysctl_files import SysctlSource
from advisor.host.patterns import lazy_regex

Operator = Literal["exactly", "at-least", "at-most"]
SIGNS: Mapping[Operator, str] = {"exactly": "=", "at-least": ">=", "at-most": "<="}
_OPERATOR_TEXTS: Mapping[Operator, str] = {"exactly": "to", "at-least": "to at least", "at-most": "to at most"}
_SHOWN = 6
_ALTERNATIVE = lazy_regex(r"or\b", re.IGNORECASE)
_BEEGFS_FILE = lazy_regex(r"/etc/beegfs/([\w-]+\.d/)?beegfs-[\w-]+\.conf", re.ASCII)
"""Files whose keys are tunables (`advisor.tunables.file`)."""


class SetTunable(msgspec.Struct, frozen=True, tag="set-tunable", tag_field="kind"):
    """A tunable (id as in `advisor.tunables`) and the value that it should have."""

    tunable: str
    value: str
    operator: Operator = "exactly"

    @property
    def argument(self) -> str:
        """As ``advisor plan`` and ``advisor apply`` take it: ``sysctl:vm.swappiness=10``; not quoted."""
        return f"{self.tunable}{SIGNS[self.operator]}{self.value}"


class PlanProfile(msgspec.Struct, frozen=True, tag="plan-profile", tag_field="kind"):
    """A profile that holds the remedy, with the parameters that this host needs. ``only`` are those of its values that
    the finding is about, where it is not about all: ``advisor fix`` sets no others."""

    profile: str
    settings: tuple[tuple[str, str], ...] = ()
    only: tuple[SetTunable, ...] = ()

    @property
    def command(self) -> str:
        """The command that plans it, safe to paste into a shell whatever the names hold."""
        given = (f"--set {shlex.quote(f'{name}={value}')}" for name, value in self.settings)
        return " ".join(["advisor plan", shlex.quote(self.profile), *given])


class RunShell(msgspec.Struct, frozen=True, tag="run-command", tag_field="kind"):
    """One line of shell for the user to run. ``purpose``: what it does or shows; ``interrupts``: what it disturbs;
    ``is_prerequisite``: advisor's own command is refused until it has been run."""

    command: str
    purpose: str = ""
    interrupts: str = ""
    is_prerequisite: bool = False


class Decide(msgspec.Struct, frozen=True, tag="decide", tag_field="kind"):
    """What only a person can decide or do; a text that begins with ``or`` stands in place of the rest of the remedy.
    ``is_prerequisite``: the values of the remedy are right only after it has been decided so; ``advisor fix --yes``
    sets none of them."""

    text: str
    is_prerequisite: bool = False


Remedy = SetTunable | PlanProfile | RunShell | Decide
RemedyPart = Remedy | str
"""A text is a decision."""


def set_sysctl(key: str, value: object, operator: Operator = "exactly") -> SetTunable:
    """A sysctl set to a value, or to the numbers of a tuple."""
    return SetTunable(f"sysctl:{key}", " ".join(map(str, value)) if isinstance(value, tuple) else str(value), operator)


def to_remedy(parts: RemedyPart | Iterable[RemedyPart]) -> tuple[Remedy, ...]:
    """The parts in their order, texts as decisions."""
    listed = (parts,) if isinstance(parts, RemedyPart) else parts
    return tuple(Decide(one) if isinstance(one, str) else one for one in listed)


def is_alternative(text: str) -> bool:
    """Whether a text of a remedy stands in place of the rest of it, and is no step beside it."""
    return _ALTERNATIVE.match(text) is not None


def plan_profile(profile: str, **settings: Iterable[str]) -> PlanProfile:
    """A profile with its parameters, the words of each joined by commas."""
    return PlanProfile(profile, tuple((name, ",".join(words)) for name, words in settings.items()))


def edit_file(path: str, line: int, purpose: str) -> RunShell:
    """Opens a file in the user's editor, at a line."""
    return RunShell(f"${{EDITOR:-vi}} +{line} {shlex.quote(path)}", purpose)


def comment_out(path: str, *lines: int, file: str | None = None) -> RunShell:
    """Makes lines of a sysctl file comments, and keeps a copy of the file in the same directory. ``file`` is what holds
    them where ``path`` is a link. The file is written and not replaced, which would part it from its hard links. A line
    that is read after advisor's own file goes first: nothing that advisor writes would hold against it."""
    real = file or path
    f = "$f" if re.fullmatch(r"[\w./@:+-]+", real) else '"$f"'
    numbers = sorted({*lines})
    script = ";".join(f"{line}s/^/# /" for line in numbers)
    which = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {' and '.join(map(str, numbers))}"
    command = f"f={shlex.quote(real)}; cp -p {f} {f}.before && sed '{script}' {f}.before >{f}"
    purpose = f"make {which} of {real} {'a comment' if len(numbers) == 1 else 'comments'}"
    return RunShell(command, purpose, is_prerequisite=path.rpartition("/")[2] > "90-advisor")


def comment_lines(lines: Iterable[SysctlSource]) -> Iterator[RunShell]:
    """Makes lines of sysctl files comments, by one command for each file."""
    by_file: dict[tuple[str, str], list[int]] = {}
    for line in lines:
        by_file.setdefault((line.path, line.file), []).append(line.line)
    return (comment_out(path, *numbers, file=file) for (path, file), numbers in by_file.items())


def set_beegfs(path: str, key: str, value: object, operator: Operator = "exactly") -> SetTunable | RunShell:
    """A key of a BeeGFS file; by hand where the file has a name of its own."""
    if _BEEGFS_FILE.fullmatch(path):
        return SetTunable(f"file:{path}:{key}", str(value), operator)
    return edit_file(path, 1, f"write {key} = {value}")


def set_queues(
    disks: Iterable[str], attribute: str, value: object, operator: Operator = "exactly"
) -> tuple[SetTunable, ...]:
    """An attribute of the block queue of each disk, by kernel name."""
    return tuple(SetTunable(f"block:{disk}:{attribute}", str(value), operator) for disk in disks)


def list_commands(remedy: Iterable[Remedy], *, with_parts: bool = True) -> tuple[str, ...]:
    """The commands of a remedy, after what has to be done before them advisor's own, each one line that can be pasted
    into a shell. Of a profile that the finding is about in part, first what sets this part alone (``with_parts``), as
    ``advisor fix`` does."""
    parts = [one.only if isinstance(one, PlanProfile) and with_parts else (one,) for one in remedy]
    values = [shlex.quote(one.argument) for some in parts for one in some if isinstance(one, SetTunable)]
    profiles = [one.command for one in remedy if isinstance(one, PlanProfile)]
    first, others = (
        [one.command for one in remedy if isinstance(one, RunShell) and one.is_prerequisite is wanted]
        for wanted in (True, False)
    )
    return (*first, *([f"advisor apply {' '.join(values)}"] if values else ()), *profiles, *others)


def describe_remedy(remedy: Iterable[Remedy]) -> str:
    """What to do, in sentences without the commands, in the order of the remedy: what is to be decided before a value
    is set comes before it."""
    texts: list[str] = []
    for kind, parts in groupby(remedy, type):
        if kind is SetTunable:
            texts += _describe_values(parts)
        elif kind is PlanProfile:
            for one in parts:
                if isinstance(one, PlanProfile):
                    texts += _describe_profile(one)
        else:
            texts += list_notes(parts)
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in texts)


def _describe_profile(one: PlanProfile) -> Iterator[str]:
    if not one.only:
        yield f"plan the profile {one.profile}"
        return
    yield from _describe_values(one.only)
    yield f"the profile {one.profile} sets all that belongs to it"


def list_notes(remedy: Iterable[Remedy]) -> tuple[str, ...]:
    """What the commands of others are for, and what is to be decided, in the order of the remedy."""
    said = (
        one.text if isinstance(one, Decide) else one.purpose for one in remedy if isinstance(one, Decide | RunShell)
    )
    return tuple(filter(None, said))


def _describe_values(remedy: Iterable[Remedy]) -> Iterator[str]:
    """``set vm.swappiness to 10``; devices that get the same value share a text."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in remedy:
        if isinstance(one, SetTunable):
            _, _, rest = one.tunable.partition(":")
            device, _, leaf = rest.rpartition(":")
            # A list of CPUs as people read it; the command has it as the kernel takes it.
            value = fold_list(parse_list(one.value)) if one.tunable.startswith("irq:") else one.value
            alike.setdefault((leaf, f"{_OPERATOR_TEXTS[one.operator]} {value}"), []).append(device)
    for (leaf, value), devices in alike.items():
        more = f" and {len(devices) - _SHOWN} more" if len(devices) > _SHOWN else ""
        where = f" of {', '.join(devices[:_SHOWN])}{more}" if any(devices) else ""
        yield f"set {leaf}{where} {value}"
