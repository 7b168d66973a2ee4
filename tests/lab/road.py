"""`advisor` in the guest, and what stands there before and after."""

from __future__ import annotations

import json
from typing import Any

from .guest import Machine, Result
from .state import STATE


def advisor(guest: Machine, *words: str, code: int = 0, user: str = "root") -> Result:
    done = guest.run(["advisor", *words], timeout=120, user=user)
    assert done.rc == code, f"advisor {' '.join(words)}: {done.rc}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


AT_ONCE = ("--yes", "--confirm-within", "0")


def document(guest: Machine, *words: str, code: int = 0, user: str = "root") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(advisor(guest, *words, "--json", code=code, user=user).stdout)
    return found


def state(guest: Machine) -> list[str]:
    return guest.run(STATE, timeout=120).stdout.splitlines()


def out(guest: Machine, command: str) -> str:
    return guest.run(command, timeout=60).check().stdout
