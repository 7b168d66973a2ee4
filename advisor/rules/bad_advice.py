"""Advice that is passed on from guide to guide and does harm, or nothing: what all rules about it share.

Each rule names the lines that follow the advice (file and line), what is wrong with them, and what to do instead.
docs/advice.md lists all of it, with what cannot be told from files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from advisor.facts.sysctl import SysctlSource
from advisor.facts.whole import Facts
from advisor.rules.finding import Finding, Severity
from advisor.rules.rule import Rule
from advisor.rules.workload import Workload

OURS = "/etc/sysctl.d/90-advisor-"
"""Files that a profile of ours wrote: asked for by name, planned with a budget, and taken back by a rollback."""

Lines = Callable[[Facts], Iterable[str]]
"""The lines of a host that follow the advice, each with its file and line; none where nobody followed it."""


class Advice(msgspec.Struct, frozen=True):
    """What a rule about an advice says; the words of `Rule`, and ``instead``: what to do.

    ``intent`` marks one that is right for some programs and wrong for others.
    """

    id: str
    title: str
    what: str
    why: str
    instead: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    severity: Severity = "advice"
    intent: bool = False
    contradictions: tuple[str, ...] = ()


def rule_about(advice: Advice, lines: Lines) -> Rule:
    """The rule that fires where ``lines`` finds any."""

    def judge(facts: Facts, workload: Workload | None) -> tuple[Finding, ...]:
        found = tuple(dict.fromkeys(lines(facts)))
        if not found:
            return ()
        return (
            made.found(
                advice.severity,
                why=advice.why,
                evidence={"detail": found},
                advice=advice.instead,
                intent=advice.intent,
            ),
        )

    made = Rule(
        id=advice.id,
        title=advice.title,
        what=advice.what,
        why=advice.why,
        helps_when=advice.helps_when,
        hurts_when=advice.hurts_when,
        sources=advice.sources,
        function=judge,
        contradictions=advice.contradictions,
    )
    return made


def kernel_version(facts: Facts) -> tuple[int, int] | None:
    """Major and minor of the running kernel; None where it is unknown."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", facts.host.kernel or "", re.ASCII)
    return (int(found[1]), int(found[2])) if found else None


def sysctl_lines(facts: Facts, key: str) -> Iterator[SysctlSource]:
    """Every line that sets a key and that the kernel would take, the one that wins first; not those of our profiles."""
    origin = facts.sysctl_origin.get(key)
    if origin is not None:
        for line in (origin.winner, *origin.losers, *([origin.later] if origin.later else [])):
            if line.rejected is None and not line.path.startswith(OURS):
                yield line


def numbers_of(line: SysctlSource) -> tuple[int, ...]:
    """The integers that begin a value; what follows them is no number and does not count."""
    found: list[int] = []
    for word in line.value.split():
        if not re.fullmatch(r"-?[0-9]{1,19}", word, re.ASCII):
            break
        found.append(int(word))
    return tuple(found)


def sysctl_text(line: SysctlSource) -> str:
    return f"{line.path}:{line.line}: {line.key} = {' '.join(line.value.split())}"


Judgement = Callable[[Facts, tuple[int, ...]], bool]


def where(keys: Iterable[str], is_bad: Judgement) -> Lines:
    """The lines of these keys whose numbers are judged bad; a value that is no number is not judged."""
    listed = tuple(keys)

    def lines(facts: Facts) -> Iterator[str]:
        for key in listed:
            for line in sysctl_lines(facts, key):
                values = numbers_of(line)
                if values and is_bad(facts, values):
                    yield sysctl_text(line)

    return lines


def is_word(key: str, word: str) -> Lines:
    """The lines that set a key to a word."""
    return lambda facts: (sysctl_text(line) for line in sysctl_lines(facts, key) if line.value.strip() == word)
