"""Prints what becomes of the settings of TuneD's profiles on the tests' small machine, as a table.

python -m tests.importers.tuned_table
"""

from __future__ import annotations

from collections import Counter

from advisor.facts.tuned.files import installed_profiles
from advisor.importers.records import count_outcomes
from advisor.importers.tuned.convert import import_tuned
from tests.importers.hosts import machine
from tests.importers.tuned_package import tuned_files


def rows() -> list[str]:
    host, files = machine(), tuned_files()
    found = []
    for name in installed_profiles(files):
        faithful = import_tuned(name, host, "faithful", files=files)
        intent = import_tuned(name, host, "intent", files=files)
        done, meant = count_outcomes(faithful.settings), count_outcomes(intent.settings)
        kinds = Counter(one.kind for one in faithful.differences)
        reported = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"
        three = f"{done['tunable']} / {done['ignored']} / {done['manual']}"
        found.append(f"| {name} | {sum(done.values())} | {three} | {meant['tunable']} | {reported} |")
    return found


if __name__ == "__main__":
    print("| profile | settings | faithful: tunable / ignored / by hand | intent: tunable | differences |")
    print("|---|---|---|---|---|")
    print("\n".join(rows()))
