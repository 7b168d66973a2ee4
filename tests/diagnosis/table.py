"""Write the causes of docs/why.md and print how well they are judged: ``python -m tests.diagnosis.table [--live]``.

Constructed cases are judged from the texts that a kernel would print; those of ``--live`` are real, on this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from advisor.diagnosis.cause import BindingCause
from advisor.diagnosis.diagnose import list_causes
from tests.diagnosis.cases import CASES, Case
from tests.diagnosis.checks import SEEN_LIVE
from tests.diagnosis.healthy import healthy_history
from tests.diagnosis.live import INJECTIONS
from tests.diagnosis.moments import diagnose_machine
from tests.diagnosis.pairs import list_pairs

PAGE = Path(__file__).parents[2] / "docs" / "why.md"
SPANS = 250


def _between(text: str, name: str, rows: list[str]) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    head, rest = text.split(begin)
    return f"{head}{begin}{chr(10).join(rows)}\n{end}{rest.split(end)[1]}"


def _ids(found: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in found) or "nothing binds"


def cause_rows() -> list[str]:
    """Return a row for each cause: its id, its help, and the counters that it reads."""
    rows = ["| cause | helps | reads |", "|---|---|---|"]
    for cause in sorted(list_causes(), key=lambda cause: cause.id):
        name = f"**`{cause.id}`**" if cause.is_error else f"`{cause.id}`"
        rows.append(f"| {name}{'' if cause.id in SEEN_LIVE else ' *'} | {cause.help} | {cause.what} |")
    return rows


def constructed_rows() -> list[str]:
    """What is found in the constructed cases, alone and in pairs, and in hosts that are well."""
    rows = ["| injected | first answer | also | right |", "|---|---|---|---|"]
    right = 0
    for case in CASES:
        found = [one.id for one in diagnose_machine(case.machine).binds]
        is_right = bool(found) and found[0] in case.right
        right += is_right
        rows.append(f"| {case.name} | {_ids(found[:1])} | {_ids(found[1:]) if found[1:] else ''} | {_word(is_right)} |")
    first, both, explained, wrong = 0, 0, 0, []
    pairs = list(list_pairs())
    for one, other, machine in pairs:
        seen = diagnose_machine(machine).binds
        found = [binding.id for binding in seen]
        first += bool(found) and found[0] in one.right | other.right
        missed = [case for case in (one, other) if not set(found) & case.right]
        if not missed:
            both += 1
        elif all(any(_explains(binding, case) for binding in seen) for case in missed):
            explained += 1
        else:
            wrong.append(f"{missed[0].name} with {(other if missed[0] is one else one).name}: {_ids(found)}")
    alarms = sum(bool(diagnose_machine(healthy_history(seed)).binds) for seed in range(SPANS))
    rows += [
        "",
        f"Alone: {right} of {len(CASES)} first answers are right. In pairs: {first} of {len(pairs)} first answers name "
        f"one of both; {both} answers name both, {explained} name the one from which the other follows, "
        f"{len(wrong)} miss one. Hosts that are well, idle to busy: {alarms} alarms in {SPANS} spans.",
    ]
    if wrong:
        rows += ["", "Pairs of which one is missed:", ""]
        rows += [f"- {line}" for line in wrong]
    return rows


def _explains(binding: BindingCause, case: Case) -> bool:
    return bool(case.right & {text.partition(" ")[0] for text in binding.explains})


def _word(is_right: bool) -> str:
    return "yes" if is_right else "**no**"


def live_rows() -> list[str]:
    """What is found in the injections on this machine."""
    rows = ["| injected | answer | share | first | also |", "|---|---|---|---|---|"]
    for one in INJECTIONS:
        with one.make() as where:
            done = subprocess.run(
                [*where, sys.executable, "-m", "advisor", "why", "--seconds", "4", "--json"],
                capture_output=True,
                text=True,
                check=False,
                cwd=PAGE.parents[1],
            )
        found = json.loads(done.stdout)["binds"]
        own = next((bound for bound in found if bound["id"] in one.right), None)
        # The CPUs of this machine are busy with other programs: that is right as well.
        ranked = [bound["id"] for bound in found if bound["id"] != "cpu.saturated" or "cpu.saturated" in one.right]
        first = bool(ranked) and ranked[0] in one.right
        others = [bound["id"] for bound in found if bound is not own]
        answer, share = (f"`{own['id']}`", f"{own['share']:.0%}") if own else ("**missed**", "")
        rows.append(f"| {one.name} | {answer} | {share} | {_word(first)} | {_ids(others) if others else ''} |")
    return [
        *rows,
        "",
        f"Linux {os.uname().release}, {os.cpu_count()} CPUs, which other programs kept busy meanwhile: `cpu.saturated`",
        "is right as well, and does not count as first; a reader that waits for a CPU leaves its device idle for that.",
    ]


def main() -> None:
    PAGE.write_text(_between(PAGE.read_text(), "causes", cause_rows()))
    print("\n".join([*constructed_rows(), *(["", *live_rows()] if "--live" in sys.argv else [])]))


if __name__ == "__main__":
    main()
