"""A rule: one decorated function with its citation, with the conditions under which its advice helps and hurts.

What every rule names is imported from here with the decorator.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Literal

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import fold_list, parse_list
from advisor.facts.settings.sysctl import SysctlSource
from advisor.host.origin import read_sections
from advisor.host.patterns import lazy_regex
from advisor.rules import sources
from advisor.rules.workload import DeclaredWorkload

__all__ = [
    "REGISTERED",
    "DeclaredWorkload",
    "Evidence",
    "Facts",
    "Finding",
    "Judge",
    "Rule",
    "Severity",
    "register",
    "rule",
]

# Where the sources contradict each other: every side with who says it, and what this tool does about it.

PREFIX = "contradiction."


class ContradictionSide(msgspec.Struct, frozen=True):
    """What one source says."""

    says: str
    source: str


class Contradiction(msgspec.Struct, frozen=True):
    """A question that sources answer differently. ``id`` begins with ``contradiction.``; ``topic`` says what of."""

    id: str
    topic: str
    sides: tuple[ContradictionSide, ...]
    what_we_do: str


def _make_contradiction(name: str, pairs: Sequence[tuple[str, str]]) -> Contradiction:
    texts = dict(pairs)
    sides = (text.rpartition(" | ") for field, text in pairs if field == "side")
    return Contradiction(
        PREFIX + name,
        texts["topic"],
        tuple(ContradictionSide(says, _source_words(source)) for says, _, source in sides),
        texts["what_we_do"],
    )


def _source_words(written: str) -> str:
    """The source that a constant names, and what is added to it after a comma."""
    name, comma, rest = written.partition(",")
    return f"{getattr(sources, name)}{comma}{rest}"


@cache
def all_contradictions() -> dict[str, Contradiction]:
    """Each contradiction by its id, in the order of the table."""
    made = (_make_contradiction(*row) for row in read_sections("contradictions.ini"))
    return {one.id: one for one in made}


def contradiction(identity: str) -> Contradiction | None:
    """The contradiction with this id; None where there is none."""
    return all_contradictions().get(identity)


def named(identities: Iterable[str]) -> tuple[Contradiction, ...]:
    """Those with these ids, in their order. Raises KeyError for an id that stands for nothing."""
    return tuple(all_contradictions()[identity] for identity in identities)


# What to do about a finding, as data: values to set, profiles to plan, commands to run, decisions to make.

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


# What a rule says about a host.

Severity = Literal["info", "advice", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "advice", "warning", "critical")
"""``critical``: redundancy or a path is lost, a drive is failing, I/O waits or data is at risk now."""
Evidence = Mapping[str, str | int | float | tuple[str, ...] | None]
_DEVICE_KEYS = (
    *("arrays", "links", "disks", "devices", "device", "link", "disk", "instances", "units", "sessions"),
    *("controllers", "targets"),
)


class Muted(msgspec.Struct, frozen=True):
    """Why a finding is accepted, and until which day (ISO 8601), that one included; None for no end."""

    reason: str
    until: str | None = None


class Finding(msgspec.Struct, frozen=True):
    """A rule's judgement on the facts: what (``title``), ``why``, on which ``evidence``, what to do, and when that
    would hurt.

    What to do is data (``remedy``), a text (``fix``), the ``commands`` (each one line that can be pasted) and, for
    readers of older documents, commands and text in one (``advice``).
    ``profile`` is the one that acts on it, None where a person must. ``intent`` is True where no counter or mismatch
    made the rule fire but the declared workload, or none: then it is a matter of intent, not a fault.
    ``contradictions`` are those among the sources that bear on the advice. ``muted`` is set where this host's
    administrator has accepted it (``advisor mute``).
    """

    id: str
    severity: Severity
    title: str
    why: str
    evidence: Evidence
    advice: str
    profile: str | None
    hurts_when: str
    sources: tuple[str, ...]
    intent: bool = False
    contradictions: tuple[Contradiction, ...] = ()
    fix: str | None = None
    commands: tuple[str, ...] = ()
    remedy: tuple[Remedy, ...] = ()
    muted: Muted | None = None

    @property
    def is_maxim(self) -> bool:
        """Whether it is worth knowing and no finding: nothing is wrong, and no counter or mismatch speaks of it."""
        return self.severity == "info" and self.intent

    @property
    def interrupts(self) -> tuple[str, ...]:
        """What the commands of the remedy disturb, each once."""
        return tuple(
            dict.fromkeys(one.interrupts for one in self.remedy if isinstance(one, RunShell) if one.interrupts)
        )


def at_or_above(severity: Severity, floor: str) -> bool:
    """Whether a severity is at least ``floor``, one of `SEVERITIES`."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(floor)


def finding_devices(finding: Finding) -> tuple[str, ...]:
    """What the finding is about, by name: the arrays, links, disks or services of its evidence; none for the host."""
    for key in _DEVICE_KEYS:
        value = finding.evidence.get(key)
        if value and isinstance(value, str | tuple):
            return (value,) if isinstance(value, str) else value
    return ()


Judge = Callable[[Facts, DeclaredWorkload | None], Finding | Iterable[Finding] | None]
"""Judges a host: nothing, one finding or several."""
_registered: dict[str, Rule] = {}

REGISTERED: Mapping[str, Rule] = MappingProxyType(_registered)
"""The rules of all modules that have been imported, by id."""


class Rule(msgspec.Struct, frozen=True):
    """What ``advisor explain ID`` prints, and the function that judges a host by it.

    ``severity`` is the highest of its findings, ``what`` is what the rule looks at, ``why`` the mechanism behind it.
    ``contradictions`` are the ids of those among the sources that bear on its advice
    (`advisor.rules.rule`). A rule that ``judges_declared`` gets the workload as it was declared; all others
    get it with what was seen of its path (`advisor.rules.clusters.infoscale.as_seen`).
    """

    id: str
    severity: Severity
    title: str
    what: str
    why: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    function: Judge
    module: str
    contradictions: tuple[str, ...] = ()
    judges_declared: bool = False
    seen_live: bool = True
    """Whether it was tried on what it judges; else its hosts are built from the structures of its source alone."""

    def __call__(self, facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
        found = self.function(facts, workload)
        return () if found is None else (found,) if isinstance(found, Finding) else tuple(found)

    def found(
        self,
        *,
        why: str,
        evidence: Evidence,
        remedy: RemedyPart | Iterable[RemedyPart],
        severity: Severity | None = None,
        profile: str | None = None,
        title: str | None = None,
        intent: bool = False,
        hurts_when: str | None = None,
    ) -> Finding:
        """A finding of this rule; its severity, title, and when it would hurt, may be made more precise."""
        parts = to_remedy(remedy)
        commands = list_commands(parts)
        planned = next((one.profile for one in parts if isinstance(one, PlanProfile)), None)
        return Finding(
            id=self.id,
            severity=severity or self.severity,
            title=title or self.title,
            why=why,
            evidence=evidence,
            advice="; ".join([*list_commands(parts, with_parts=False), *list_notes(parts)]),
            profile=profile or planned,
            hurts_when=hurts_when or self.hurts_when,
            sources=self.sources,
            intent=intent,
            contradictions=named(self.contradictions),
            fix=describe_remedy(parts),
            commands=commands,
            remedy=parts,
        )


def register(new: Rule) -> Rule:
    """Adds a rule. Raises ValueError, which names file and rule, for an id that is taken, an unknown severity and a
    field that is empty: a rule without source, or that never hurts, is none."""
    path = getattr(sys.modules.get(new.module), "__file__", None) or new.module
    empty = [name for name in ("id", "title", "what", "why", "helps_when", "hurts_when") if not getattr(new, name)]
    if not new.sources:
        empty.append("sources")
    if empty:
        raise ValueError(f"{path}: rule {new.id!r} has no {', '.join(empty)}")
    if new.severity not in SEVERITIES:
        raise ValueError(f"{path}: rule {new.id!r}: severity {new.severity!r} is not one of {', '.join(SEVERITIES)}")
    if new.id in _registered:
        raise ValueError(f"{path}: rule {new.id!r} is already defined in {_registered[new.id].module}")
    _registered[new.id] = new
    return new


def rule(
    *,
    id: str,  # noqa: A002
    severity: Severity,
    title: str = "",
    what: str = "",
    why: str = "",
    helps_when: str = "",
    hurts_when: str = "",
    sources: tuple[str, ...] = (),
    contradictions: tuple[str, ...] = (),
    judges_declared: bool = False,
    seen_live: bool = True,
) -> Callable[[Judge], Rule]:
    """Makes the function below a registered rule; the parameters are the fields of `Rule`.

    Raises ValueError, which names file and rule, where a text or the sources are missing (see `register`).
    """
    return lambda function: register(
        Rule(
            id=id,
            severity=severity,
            title=title,
            what=what,
            why=why,
            helps_when=helps_when,
            hurts_when=hurts_when,
            sources=sources,
            function=function,
            module=function.__module__,
            contradictions=contradictions,
            judges_declared=judges_declared,
            seen_live=seen_live,
        )
    )
