"""Findings as a person counts them: those of one rule that say the same of several devices are one line, one number.

The numbers are the same on the page, in the HTML and for ``advisor explain N`` and ``advisor fix N``: they depend on
the findings alone, in the order of `advisor.rules.registry.judge`. Muted findings have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.facts.block import natural
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.rules.finding import Finding, Severity, finding_devices

NAME = "\0"
"""Stands in the template of a title for the device."""
_NUMBER = lazy_regex(r"[0-9][0-9,.]*")


class NumberedFindings(msgspec.Struct, frozen=True):
    """Findings of one rule and severity that say the same of several devices; ``number`` counts from 1."""

    number: int
    id: str
    severity: Severity
    findings: tuple[Finding, ...]

    @property
    def is_maxim(self) -> bool:
        """Whether they are worth knowing and no findings (`Finding.is_maxim`)."""
        return self.findings[0].is_maxim


def number_findings(findings: Iterable[Finding]) -> tuple[NumberedFindings, ...]:
    """The findings that are not muted, in the order given, those that say the same at the place of the first, and in
    the order of their devices: md3 before md12."""
    groups: dict[tuple[str, Severity, bool, str], list[Finding]] = {}
    for one in findings:
        if one.muted is not None:
            continue
        shape = _NUMBER.sub("#", title_template(one))
        groups.setdefault((one.id, one.severity, one.intent, shape), []).append(one)
    return tuple(
        NumberedFindings(number, some[0].id, some[0].severity, tuple(sorted(some, key=_devices_rank)))
        for number, some in enumerate(groups.values(), 1)
    )


def _devices_rank(finding: Finding) -> list[object]:
    return [natural(name) for name in finding_devices(finding)]


def title_template(finding: Finding) -> str:
    """The title with `NAME` in place of the device that it names first, if it names one."""
    for name in finding_devices(finding):
        template = _replace_word(finding.title, name, NAME)
        if template != finding.title:
            return template
    return finding.title


def _replace_word(text: str, word: str, new: str) -> str:
    """The text with the first occurrence of a word replaced that is no part of a longer word.

    Not by an expression: to compile one for each device made half of the page of a host with 1,000 disks.
    """
    at = text.find(word)
    while at >= 0:
        before, after = text[:at], text[at + len(word) :]
        if not _is_letter(before[-1:]) and not _is_letter(after[:1]):
            return f"{before}{new}{after}"
        at = text.find(word, at + 1)
    return text


def _is_letter(char: str) -> bool:
    return char.isalnum() or char == "_"


def find_numbered(numbered: Sequence[NumberedFindings], name: str) -> tuple[NumberedFindings, ...]:
    """Those that a number or the id of a rule means; an id may mean several.

    Raises UsageError for a number that there is not, and for an id that no finding has.
    """
    wanted = tuple(one for one in numbered if name in (str(one.number), one.id))
    if wanted:
        return wanted
    if is_count(name) and numbered:
        raise UsageError(
            f"finding {name}: there are {len(numbered)}", hint="advisor scan lists them with their numbers"
        )
    raise UsageError(
        f"{name}: no finding on this host has this number or id",
        hint="advisor scan lists the findings with their numbers, advisor scan --muted those that are accepted",
    )
