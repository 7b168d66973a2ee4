"""An apply script and its rollback script whose state directory is a file system with so many free pages; prints what
came of each as JSON.

Started in a network and mount namespace that holds the links d0 and d1:
``python -m tests.exporters.apply_script.full WHERE PAGES HOW SHELL``. HOW is ``apply`` (so many pages are free for it,
then it is rolled back on a full disk), ``waiting`` (the same, and nobody confirms it), ``script`` (applied with room,
then rollback.sh has so many pages), or ``bare`` (the same, and the reserved space is gone).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from advisor.exporters.apply_script import transaction_script
from advisor.host import live_host
from advisor.transaction.journal import Store
from advisor.transaction.status import find_drift
from tests.running import run_text
from tests.transaction.full import PAGE, fill
from tests.transaction.live import made_plan

SIZE_PAGES = 160
OLD = {"d0": "1500", "d1": "1500", "fin": "60"}
NEW = {"d0": "9000", "d1": "8000", "fin": "41"}
FIN = "net/ipv4/tcp_fin_timeout"


def live_values() -> dict[str, str]:
    found = {name: Path(f"/sys/class/net/{name}/mtu").read_text().strip() for name in ("d0", "d1")}
    return {**found, "fin": Path("/proc/sys", FIN).read_text().strip()}


class Place:
    def __init__(self, where: Path, shell: list[str]) -> None:
        self.where, self.shell = where, shell
        self.script = where.parent / f"{where.name}.sh"
        values = [
            ("link:d0:mtu", NEW["d0"]),
            ("link:d1:mtu", NEW["d1"]),
            ("sysctl:net.ipv4.tcp_fin_timeout", NEW["fin"]),
        ]
        plan = made_plan(values)
        self.script.write_text(transaction_script(plan, machine_id=plan.machine_id, hostname=os.uname().nodename))

    @property
    def store(self) -> Store:
        return Store(str(self.where / "state"))

    def run(self, script: Path, *words: str) -> dict[str, object]:
        environment = {"PATH": os.environ["PATH"], "ADVISOR_STATE_DIR": str(self.where / "state")}
        done = run_text([*self.shell, str(script), *words], env=environment)
        return {"code": done.returncode, "said": done.stdout + done.stderr, **self.now()}

    def now(self) -> dict[str, object]:
        records, damaged = self.store.survey_records()
        return {
            "live": live_values(),
            "states": [one.state for one in records],
            "damaged": [one.message for one in damaged],
            "drift": [one.what for one in find_drift(live_host(), records)],
            "files": sorted(path.name for path in self.where.glob("state/transactions/*/*")),
        }


def main(where: Path, pages: int, how: str, shell: list[str]) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_PAGES * PAGE}", "tmpfs", str(where)], check=True)
    place = Place(where, shell)
    transaction = where / "state/transactions/0001"
    window = "3" if how == "waiting" else "0"
    if how in ("apply", "waiting"):
        fill(where, "filler", pages)
    found = {"applied": place.run(place.script, "apply", "--confirm-within", window)}
    if how == "bare":
        (transaction / "reserve").unlink()
    fill(where, "more", 0 if how in ("apply", "waiting") else pages)
    if how == "waiting":
        end = time.monotonic() + 60
        while any((transaction / name).exists() for name in ("pending", "reverting")) and time.monotonic() < end:
            time.sleep(0.5)
        found["full"] = place.now()
    elif how == "apply":
        found["full"] = place.run(place.script, "rollback")
    else:
        found["full"] = place.run(transaction / "rollback.sh")
    for name in ("filler", "more"):
        (where / name).unlink(missing_ok=True)
    found["room"] = place.run(place.script, "rollback")
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4].split())
