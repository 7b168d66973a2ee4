"""Transactions whose state directory becomes read-only; prints what came of it as JSON.

``python -m tests.transaction.read_only tree WHERE HOW`` rolls back what is active on the tree below WHERE. HOW is
``all``, ``last`` or an id. ``… live WHERE HOW`` works on the link d0 of the namespace that it is started in: HOW is
``kept``, ``waiting`` (nobody confirms) or ``killed`` (the client is, while it applies).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.transaction.status import rollback_transactions
from tests.transaction.full import live, now
from tests.transaction.layered import host_at
from tests.transaction.test_script_notes import store_in


def tree(where: Path, how: str) -> dict[str, object]:
    warnings: list[str] = []
    identity = None if how in ("all", "last") else how
    try:
        done = rollback_transactions(
            host_at(where), identity, everything=how == "all", force=False, store=store_in(where), warn=warnings.append
        )
    except AdvisorError as error:
        return {"code": error.exit_code, "warnings": warnings, "said": error.message}
    lost = [one.what for _, outcomes in done for one in outcomes if not one.is_back]
    return {"code": 5 if lost else 0, "warnings": warnings, "said": str(lost)}


def remount(where: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how},bind", str(where)], check=True)


def on_link(where: Path, how: str) -> dict[str, object]:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(where)], check=True)
    process = None
    if how == "killed":
        # At a step after the link was changed.
        words = [sys.executable, "-m", "tests.transaction.hanging", "17", str(where / "state"), "apply"]
        process = subprocess.Popen([*words, "--confirm", "10", "link:d0:mtu=9000"], stdout=subprocess.DEVNULL)
        while (state := Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]) != "T":
            assert state != "Z"
            time.sleep(0.01)
    else:
        window = ["--confirm", "2"] if how == "waiting" else []
        live(where, "apply", *window, "link:d0:mtu=9000")
    found: dict[str, object] = {"applied": now(where)}
    if process is not None:
        process.kill()
        process.wait()
    remount(where, "ro")
    if how == "kept":
        found["read-only"] = live(where, "rollback")
    else:
        time.sleep(6)
        found["read-only"] = now(where)
    remount(where, "rw")
    time.sleep(3)
    if how == "waiting":
        found["confirmed"] = live(where, "confirm")
    found["writable"] = live(where, "rollback")
    return found


if __name__ == "__main__":
    _, kind, place, how = sys.argv
    print(json.dumps((tree if kind == "tree" else on_link)(Path(place), how)))
