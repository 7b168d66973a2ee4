"""A transaction whose state directory is a file system with so many free pages; prints what came of it as JSON.

Started in a network and mount namespace that holds the link d0: ``python -m tests.transaction.full WHERE PAGES HOW``.
HOW is ``kept`` (applied, then rolled back on a full disk) or ``waiting`` (nobody confirms it, on a full disk).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from advisor.host import live_host
from advisor.transaction.journal import Store
from advisor.transaction.status import find_drift
from tests.waiting import is_locked, until

PAGE = 4096
SIZE_PAGES = 160


def fill(where: Path, name: str, leave_pages: int) -> None:
    """Fill the file system but for so many pages."""
    with contextlib.suppress(OSError), open(where / name, "wb", buffering=0) as file:
        while (free := os.statvfs(where).f_bavail) > leave_pages:
            file.write(b"x" * PAGE * max(1, (free - leave_pages) // 2))


def live(where: Path, *words: str) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.transaction.live", str(where / "state"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"code": done.returncode, "said": done.stdout + done.stderr, **now(where)}


def now(where: Path) -> dict[str, object]:
    store = Store(str(where / "state"))
    records, damaged = store.survey_records()
    return {
        "mtu": int(Path("/sys/class/net/d0/mtu").read_text()),
        "states": [one.state for one in records],
        "damaged": [one.message for one in damaged],
        "drift": len(find_drift(live_host(), records)),
    }


def main(where: Path, pages: int, how: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_PAGES * PAGE}", "tmpfs", str(where)], check=True)
    fill(where, "filler", pages)
    window = ["--confirm", "2"] if how == "waiting" else []
    found = {"applied": live(where, "apply", *window, "link:d0:mtu=9000")}
    fill(where, "more", 0)
    if how == "waiting":
        names = ("pending", "taken", "reverting")
        until(lambda: not any(path.name in names for path in where.glob("state/transactions/*/*")))
        until(lambda: not is_locked(where / "state/lock"))
        found["full"] = now(where)
    else:
        found["full"] = live(where, "rollback")
    for name in ("filler", "more"):
        (where / name).unlink(missing_ok=True)
    found["room"] = live(where, "rollback")
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
