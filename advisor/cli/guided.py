"""``advisor`` alone on a terminal: scan, choose, plan, apply, verify, keep or roll back.

Each step prints the command that it stands for, so that the user learns them.
"""

from __future__ import annotations

import os
import sys

from advisor.cli.output import print_text, wants_color
from advisor.errors import as_root


def run_guided() -> int:
    """Lead through the steps; to stop at any of them changes nothing further. Returns an exit code of the contract."""
    from advisor.cli.scan import scan
    from advisor.operations.library import list_transaction_ids

    _show_step("advisor scan")
    scan()
    choice = _answer("Fix which findings? Numbers or ids, all-safe, judge FILE, or Enter to stop:")
    if not choice:
        print_text("Nothing was changed. Explain a finding: advisor explain ID. All commands: advisor --help")
        return 0
    words = choice.replace(",", " ").split()
    if words[0] == "judge":
        from advisor.cli.judge import judge

        _show_step(choice := f"advisor {choice}")
        return judge(choice.split()[2:])
    is_safe = words == ["all-safe"]
    command = "--all-safe" if is_safe else " ".join(words)
    if os.geteuid() != 0:
        _show_step(f"advisor fix {command} --dry-run")
        code = _fix(words, is_safe=is_safe, dry_run=True)
        print_text("To apply it, as root: " + as_root(f"advisor fix {command}"))
        return code
    _show_step(f"advisor fix {command}")
    before = set(list_transaction_ids())
    code = _fix(words, is_safe=is_safe)
    made = [one for one in list_transaction_ids() if one not in before]
    return _verify_and_decide(made[-1]) if made else code


def _fix(words: list[str], *, is_safe: bool, dry_run: bool = False) -> int:
    from advisor.cli.fix import fix

    return fix(None if is_safe else words, all_safe=is_safe, dry_run=dry_run)


def _verify_and_decide(identity: str) -> int:
    """Verify the transaction, then keep it or roll it back as the user says."""
    from advisor.cli.change import confirm, rollback, verify
    from advisor.operations.transactions import read_transaction

    _show_step(f"advisor verify {identity}")
    code = verify(identity)
    answers = ("n", "no", *["n", "no"])
    if _answer("Keep it? [Y/n]").lower() in answers:
        _show_step(f"advisor rollback {identity}")
        return rollback(identity)
    if read_transaction(identity).seconds_left is not None:
        _show_step(f"advisor confirm {identity}")
        return confirm(identity)
    print_text(f"Kept. To roll back later: advisor rollback {identity}")
    return code


def _show_step(command: str) -> None:
    text = f"$ {command}"
    print_text(f"\n\x1b[1m{text}\x1b[0m" if wants_color() else f"\n{text}")


def _answer(question: str) -> str:
    """One line of standard input; empty at its end."""
    sys.stderr.write(f"\n{question} ")
    sys.stderr.flush()
    return sys.stdin.readline().strip()
