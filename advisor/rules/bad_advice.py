"""Advice that is passed on from guide to guide and does harm, or nothing: what all rules about it share.

Each rule names the lines that follow the advice (file and line), what is wrong with them, and what to do instead.
docs/advice.md lists all of it, with what files do not show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec

from advisor.facts.site_settings import SiteSetting
from advisor.facts.sysctl import SysctlSource
from advisor.rules.queries import kernel_version
from advisor.rules.remedy import Decide, Operator, Remedy, RunShell, comment_out, edit_file, set_sysctl
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, Rule, Severity, register

OURS = ("/etc/sysctl.d/90-advisor-", "/etc/sysctl.d/90-advisor.")
"""Files that advisor's own profiles write: requested by name, planned with a budget, removed by a rollback."""

Line = SysctlSource | SiteSetting
Lines = Callable[[Facts], Iterable[tuple[str, Line]]]
"""The lines of a host that follow the advice, each with a text of it; none where nobody followed it."""

Better = Callable[[Facts, Line], Remedy | None]
"""What to set in place of a line's value; None where nothing is to be set."""
Judgement = Callable[[Facts, tuple[int, ...]], bool]


class Gone(msgspec.Struct, frozen=True):
    """What is said instead on kernels from ``since`` (major, minor) on, which do not have the setting any more."""

    since: tuple[int, int]
    title: str
    why: str


class BadAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """A row of advice: the fields of `Rule`, ``instead``: what to do, ``lines``, which finds who follows it, and what
    is ``better`` than such a line.

    ``intent`` marks one that is right for some programs and wrong for others. Where ``gone`` applies, following the
    advice does nothing: the finding is for information only.
    """

    id: str
    title: str
    what: str
    why: str
    instead: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    lines: Lines
    better: Better = lambda *_: None
    severity: Severity = "advice"
    intent: bool = False
    contradictions: tuple[str, ...] = ()
    gone: Gone | None = None

    def register(self, module: str) -> None:
        """Adds the rule that fires where ``lines`` finds any, as one of ``module``."""

        def judge(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
            found = dict(self.lines(facts))
            if not found:
                return None
            version = kernel_version(facts)
            gone = self.gone if self.gone and version is not None and version >= self.gone.since else None
            return made.found(
                severity="info" if gone else None,
                title=gone.title if gone else None,
                why=gone.why if gone else self.why,
                evidence={"detail": tuple(found)},
                remedy=(
                    Decide(self.instead),
                    *dict.fromkeys(one for line in found.values() if (one := _open_line(line))),
                    *(new for line in found.values() if not gone and (new := self.better(facts, line))),
                ),
                intent=self.intent,
            )

        made = register(
            Rule(
                id=self.id,
                severity=self.severity,
                title=self.title,
                what=self.what,
                why=self.why + (f" {self.gone.why}" if self.gone else ""),
                helps_when=self.helps_when,
                hurts_when=self.hurts_when,
                sources=self.sources,
                function=judge,
                module=module,
                contradictions=self.contradictions,
            )
        )


def _open_line(line: Line) -> RunShell | None:
    """Lines of sysctl files stand for themselves; others may go on, or share a line with what is right."""
    if isinstance(line, SysctlSource):
        return comment_out(line.path, line.line)
    is_text = line.path.startswith("/etc/") and not line.path.endswith(".service")
    return edit_file(line.path, line.line, f"change line {line.line} of {line.path}") if is_text else None


def bad_lines(facts: Facts, key: str, is_bad: Callable[[SysctlSource], bool]) -> tuple[SysctlSource, ...]:
    """The lines of a key that are bad, the one that wins first; none where each of them loses to a better one.

    Lines that the kernel rejects and those of advisor's own profiles do not count. Where a bad one wins, bad ones that
    lose to it are named too: they would follow when it is deleted.
    """
    origin = facts.sysctl_origin.get(key)
    if origin is None:
        return ()

    def bad(*lines: SysctlSource | None) -> tuple[SysctlSource, ...]:
        counting = (line for line in lines if line and line.rejected is None and not line.path.startswith(OURS))
        return tuple(filter(is_bad, counting))

    in_force = bad(origin.winner, origin.later)
    return (*in_force, *bad(*origin.losers)) if in_force else ()


def numbers_of(line: Line) -> tuple[int, ...]:
    """The integers that begin a value; what follows them is no number and does not count."""
    found: list[int] = []
    for word in line.value.split():
        if not re.fullmatch(r"-?[0-9]{1,19}", word, re.ASCII):
            break
        found.append(int(word))
    return tuple(found)


def sysctl_text(line: SysctlSource) -> str:
    return f"{line.path}:{line.line}: {line.key} = {' '.join(line.value.split())}"


def where(keys: Iterable[str], is_bad: Judgement) -> Lines:
    """The lines of these keys whose numbers are judged bad; a value that is no number is not judged."""
    listed = tuple(keys)

    def lines(facts: Facts) -> Iterator[tuple[str, Line]]:
        for key in listed:
            yield from ((sysctl_text(line), line) for line in bad_lines(facts, key, partial(are_bad, facts)))

    def are_bad(facts: Facts, line: SysctlSource) -> bool:
        values = numbers_of(line)
        return bool(values) and is_bad(facts, values)

    return lines


def is_word(key: str, word: str) -> Lines:
    """The lines that set a key to a word."""

    def lines(facts: Facts) -> Iterator[tuple[str, Line]]:
        found = bad_lines(facts, key, lambda line: line.value.strip() == word)
        return ((sysctl_text(line), line) for line in found)

    return lines


def set_to(value: object, operator: Operator = "exactly") -> Better:
    """Sets the key of the line to a value."""
    return lambda _, line: set_sysctl(line.key, value, operator)


def make_numbers(make: Callable[[Facts, tuple[int, ...]], object], operator: Operator = "exactly") -> Better:
    """Sets the key of the line to what its numbers should be."""

    def better(facts: Facts, line: Line) -> Remedy | None:
        return set_sysctl(line.key, make(facts, numbers_of(line)), operator)

    return better
