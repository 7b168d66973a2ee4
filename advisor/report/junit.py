"""What ``advisor verify`` and ``advisor scan --fail-on`` found, as test results in the JUnit form that CI servers read.

The form is what https://github.com/windyroad/JUnit-Schema and Jenkins' xUnit plugin
(https://github.com/jenkinsci/xunit-plugin, junit-10.xsd) both accept. The texts are English, as other programs read
them; a name of a test case is that of a value, file, rule or device, and so the same from one run to the next.
"""

from __future__ import annotations

import html
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from advisor.facts.unknown import Unknown
from advisor.report.format import clean
from advisor.report.monitoring import VerifyState, is_unknown
from advisor.rules.finding import Finding, at_or_above, finding_devices
from advisor.version import __version__

MAX_TEXT: Final = 4000
"""Characters of a case's text; a message may have a tenth of them, a name half of that."""

Result = Literal["passed", "failure", "error", "skipped"]


class JunitCase(msgspec.Struct, frozen=True):
    """One test case: ``group`` and ``name`` identify it; ``kind`` is what a failure or an error is of."""

    group: str
    name: str
    result: Result = "passed"
    message: str = ""
    text: str = ""
    kind: str = ""


def junit_text(
    command: Literal["verify", "scan"], host: str | None, at_seconds: float, cases: Sequence[JunitCase]
) -> str:
    """The document of one command on one host; ``at_seconds`` since the epoch. Names that are there twice are numbered.

    What XML 1.0 forbids, and all else that is not printable, is spelled out.
    """
    results = Counter(one.result for one in cases)
    counts = {
        "tests": len(cases),
        "failures": results["failure"],
        "errors": results["error"],
        "skipped": results["skipped"],
    }
    suite = {
        "name": f"advisor.{command}",
        "package": "advisor",
        "id": "0",
        "hostname": host or "localhost",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_seconds)),
        **{name: str(count) for name, count in counts.items()},
        "time": "0",
    }
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<testsuites>",
        f"<testsuite {_attributes(suite)}>",
        f'<properties><property name="advisor.version" value="{_field(__version__)}"/></properties>',
        *_case_lines(cases),
        "<system-out/>",
        "<system-err/>",
        "</testsuite>",
        "</testsuites>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _case_lines(cases: Iterable[JunitCase]) -> Iterator[str]:
    seen: Counter[tuple[str, str]] = Counter()
    for one in cases:
        key = one.group, _shorten(clean(one.name), MAX_TEXT // 20)
        seen[key] += 1
        name = key[1] if seen[key] == 1 else f"{key[1]} #{seen[key]}"
        head = f"<testcase {_attributes({'classname': f'advisor.{one.group}', 'name': name, 'time': '0'})}"
        if one.result == "passed":
            yield f"{head}/>"
            continue
        kind = {} if one.result == "skipped" else {"type": one.kind or one.result}
        inside = f"{one.result} {_attributes({**kind, 'message': one.message})}"
        text = "\n".join(html.escape(clean(line)) for line in _shorten(one.text, MAX_TEXT).split("\n"))
        yield f"{head}><{inside}>{text}</{one.result}></testcase>"


def _attributes(values: dict[str, str]) -> str:
    return " ".join(f'{name}="{_field(value)}"' for name, value in values.items())


def _field(text: str) -> str:
    return html.escape(_shorten(clean(text), MAX_TEXT // 10))


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def failed_junit(command: Literal["verify", "scan"], error: str, at_seconds: float) -> str:
    """The document of a command that failed: one error, and nothing that could pass for a result."""
    case = JunitCase(command, command, "error", error, kind="failed")
    return junit_text(command, None, at_seconds, [case])


# -- verify --------------------------------------------------------------------------------------------------------


def verify_cases(state: VerifyState) -> tuple[JunitCase, ...]:
    """Each value and file that the active transactions set, and each transaction that is interrupted or pending.

    A drifted item is a failure, one that cannot be read an error. Skipped: what the kernel left as it was, what an
    upper transaction holds, and what awaits confirmation. The first case is that the host could be verified.
    """
    if state.status is None:
        return (JunitCase("verify", "verify", "error", state.error or "could not be verified", kind="failed"),)
    from advisor.transaction.layer_ownership import files_of, values_of

    cases = {("verify", "verify"): JunitCase("verify", "verify")}
    active = [record for record in state.status.records if record.is_active]
    for record in active:
        held = dict.fromkeys(files_of(record), "verify.persisted") | dict.fromkeys(values_of(record), "verify.live")
        for name, group in held.items():
            cases[group, name] = JunitCase(group, name)
    for record in active:
        for name, why in record.left:
            cases.setdefault(
                ("verify.live", name), JunitCase("verify.live", name, "skipped", f"left as it was ({record.id}): {why}")
            )
    for name, upper in state.status.held_above:
        group = "verify.persisted" if name.startswith("/") else "verify.live"
        cases[group, name] = JunitCase(group, name, "skipped", f"set by {upper}: verified with that transaction")
    for one in (*state.drifted, *state.unknown):
        group = "verify.persisted" if one.what.startswith("/") else "verify.live"
        found = "" if one.live is None else f", found {one.live}"
        message = one.reason if is_unknown(one) else f"expected {one.wanted}{found} ({one.reason})"
        cases[group, one.what] = JunitCase(
            *(group, one.what, "error" if is_unknown(one) else "failure", message),
            text=f"transaction {one.transaction}\nexpected: {one.wanted}\nfound: {one.live or 'unknown'}\n{one.reason}",
            kind="unknown" if is_unknown(one) else "drift",
        )
    for record in state.status.unfinished:
        cases["verify.transaction", record.id] = JunitCase(
            *("verify.transaction", record.id, "failure", "interrupted or running"),
            text="advisor rollback",
            kind="interrupted",
        )
    for identity in state.waiting:
        cases["verify.transaction", identity] = JunitCase(
            *("verify.transaction", identity, "skipped", "awaiting confirmation"), text=f"advisor confirm {identity}"
        )
    return tuple(cases.values())


# -- scan ----------------------------------------------------------------------------------------------------------


def scan_cases(findings: Iterable[Finding], unknown: Iterable[Unknown], floor: str) -> tuple[JunitCase, ...]:
    """Each finding on each device that it is about, and each fact that is unknown.

    A finding of severity ``floor`` or above is a failure, one below it passes. Skipped: what is muted, with its
    reason, and what is unknown. The first case is that the host could be scanned.
    """
    cases = [JunitCase("scan", "scan")]
    for one in findings:
        fails = at_or_above(one.severity, floor)
        result: Result = "skipped" if one.muted else "failure" if fails else "passed"
        message = one.title
        if one.muted:
            until = f" until {one.muted.until}" if one.muted.until else ""
            message = f"muted{until}: {one.muted.reason}"
        sources = [f"Source: {source}" for source in one.sources]
        text = "\n".join(filter(None, (one.title, one.why, one.fix, *one.commands, *sources)))
        cases += [
            JunitCase(f"scan.{one.id}", device, result, message, text, one.severity)
            for device in finding_devices(one) or ("host",)
        ]
    cases += [JunitCase("scan.unknown", one.fact, "skipped", one.why) for one in unknown]
    return tuple(cases)
