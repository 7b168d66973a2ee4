"""`advisor` in the guest, and what stands there before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from .guest import Machine, Result
from .state import STATE


def advisor(guest: Machine, *words: str, code: int = 0, user: str = "root") -> Result:
    done = guest.run(["advisor", *words], timeout=180, user=user)
    assert done.rc == code, f"advisor {' '.join(words)}: {done.rc}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


AT_ONCE = ("--yes", "--confirm-within", "0")


def document(guest: Machine, *words: str, code: int = 0, user: str = "root") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(advisor(guest, *words, "--json", code=code, user=user).stdout)
    return found


def profile(name: str, lines: Iterable[tuple[str, str, str]]) -> str:
    """A profile of tunables with their values, and further lines of each."""
    text = f'name = "{name}"\ntitle = "t"\nsummary = "s"\nhelps-when = "h"\nhurts-when = "h"\nsources = ["s"]\n'
    for tunable, value, more in lines:
        text += f'[[tunables]]\ntunable = "{tunable}"\nvalue = "{value}"\nwhy = "w"\nhurts-when = "h"\n'
        text += f'sources = ["s"]\n{more}\n'
    return text


def goes_in_and_out(guest: Machine, name: str, judge: Callable[[], None], state: Callable[[], object]) -> None:
    """A profile is applied once, verified, and rolled back without a trace."""
    before = state()
    assert document(guest, "apply", name, *AT_ONCE)["state"] == "applied"
    judge()
    advisor(guest, "verify")
    again = document(guest, "apply", name, *AT_ONCE)
    assert (again["state"], again["changes"]) == ("unchanged", [])
    advisor(guest, "rollback")
    assert state() == before


def script_puts_back(
    guest: Machine, name: str, shell: str, judge: Callable[[], None], state: Callable[[], object]
) -> None:
    """What a profile set is restored by its script with nothing installed, and advisor knows."""
    before = state()
    advisor(guest, "apply", name, *AT_ONCE)
    judge()
    directory = sorted(out(guest, "ls -d /var/lib/advisor/transactions/*").split())[-1]
    done = guest.run(f"PATH=/usr/sbin:/usr/bin:/sbin:/bin {shell} {directory}/rollback.sh", timeout=300)
    assert done.rc == 0, done.stdout + done.stderr
    assert state() == before
    advisor(guest, "rollback", "--all", code=3)
    assert state() == before


def state(guest: Machine) -> list[str]:
    return guest.run(STATE, timeout=120).stdout.splitlines()


def out(guest: Machine, command: str) -> str:
    return guest.run(command, timeout=90).check().stdout
