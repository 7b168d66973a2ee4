"""The one exception tree. Each error carries a hint and the exit code of the command-line contract.

    AdvisorError
    ├── UsageError               2   the call itself is wrong (unknown profile, bad option value)
    ├── InvalidInputError        2   a profile, snapshot or saved result is broken; names file and line or field
    ├── RefusedError             3   a precondition does not hold; nothing was changed
    │   └── BusyError            3   another transaction holds the lock
    ├── RestoredError            4   failed, everything that was changed is back
    ├── NotRestoredError         5   failed, and something could not be restored
    ├── PermissionDeniedError    6   needs root or a named capability
    └── CommandError             4   a command or kernel write failed (the kernel's own words in the message)

What a caller writes::

    try:
        transaction = apply_plan(host, plan, store)
    except AdvisorError as error:
        print(error.message, error.hint, file=sys.stderr)
        raise SystemExit(error.exit_code)
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from typing import ClassVar

ALIKE = 0.6
"""How alike (difflib, 0 to 1) a known name is to a given one at least, where it is suggested in its place."""


def near_names(given: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The known names that ``given`` may stand for, the nearest first: those that are much like it, then those of which
    it is a part between signs (``socket`` of ``socket-buffers-8m``). None where nothing is near."""
    from difflib import get_close_matches

    names = list(dict.fromkeys(known))
    alike = get_close_matches(given, names, n=most, cutoff=ALIKE)
    parts = given.lower().split("-")
    holding = [one for one in names if len(given) > 2 and set(parts) <= set(one.lower().replace(".", "-").split("-"))]
    return list(dict.fromkeys([*alike, *holding]))[:most]


def as_root(call: str) -> str:
    """Return ``call``, such as ``advisor fix 1``, as sudo runs it: with the full path of this program where the path
    of every distribution's sudo (secure_path of sudoers(5)) has none."""
    if shutil.which("advisor", path="/usr/sbin:/usr/bin:/sbin:/bin"):
        return f"sudo {call}"
    own = os.path.abspath(sys.argv[0])
    program = own if os.path.basename(own) == "advisor" else f"{sys.executable} -m advisor"
    return f"sudo {shlex.quote(program) if program == own else program}{call.removeprefix('advisor')}"


class AdvisorError(Exception):
    """An error that a user can act on: ``message`` says what and where, ``hint`` what to do."""

    exit_code: ClassVar[int] = 2
    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AdvisorError):
    """The call itself is wrong; nothing was changed."""

    exit_code = 2
    kind = "usage"


class InvalidInputError(AdvisorError):
    """An input (profile, snapshot, saved result) is broken; the message names the file and the line or field."""

    exit_code = 2
    kind = "invalid-input"


class RefusedError(AdvisorError):
    """A precondition does not hold; nothing was changed."""

    exit_code = 3
    kind = "refused"


class BusyError(RefusedError):
    """Another process holds the transaction lock."""

    kind = "busy"


class RestoredError(AdvisorError):
    """A change failed; everything that had been changed was restored and read back."""

    exit_code = 4
    kind = "failed-restored"


class NotRestoredError(AdvisorError):
    """Something could not be restored; ``items`` holds (what, the command to do by hand)."""

    exit_code = 5
    kind = "failed-not-restored"

    def __init__(self, message: str, *, hint: str | None = None, items: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.items = items


class PermissionDeniedError(AdvisorError):
    """Needs root, or the capability that the message names."""

    exit_code = 6
    kind = "permission"


class CommandError(AdvisorError):
    """A command or a kernel write failed; the message carries the kernel's or the tool's own words.

    ``errno`` is the kernel's error number where there is one.
    """

    exit_code = 4
    kind = "command"

    def __init__(self, message: str, *, hint: str | None = None, errno: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.errno = errno
