"""What advisor costs as a fleet grows to 1,000 hosts: ``python -m benchmarks.fleet_thousand [HOSTS…]``.

By default 100, 300 and 1,000. No machine has as many hosts as that, so something stands for each part:

- engine: names with Ansible's local connection, a script that prints one line. Ansible's own work, its workers and the
  events that advisor reads are those of a real fleet; ssh and the hosts' work are missing. Its rival, in the same run
  and over the same names: ``ansible all -m ansible.builtin.raw -a true`` with as many forks.
- reading: ``advisor fleet scan --max-age 1d`` over stored captures, copies of one storage host; no host is asked.

CPU seconds hold all processes of a step. Peak memory is that of advisor's own process, which must not grow. Nothing is
left behind.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from advisor.fleet.engine import HostJob, run_job
from advisor.fleet.inventory import Inventory, find_ansible_program
from advisor.fleet.scan import CaptureHeader, FleetStore

FORKS: Final = 20
CAPTURE: Final = Path(__file__).parents[1] / "tests/fixtures/storage-host-root.tar.gz"


def measure_child(run: Callable[[], object]) -> tuple[float, float, float]:
    """CPU seconds of a process that runs this and of its children, its wall time, and its own peak memory in MiB."""
    began, (get, put) = time.monotonic(), os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run()
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            os.write(put, f"{own}".encode())
            code = 0
        finally:
            os._exit(code)
    os.close(put)
    _, status, used = os.wait4(pid, 0)
    with open(get) as answer:
        peak = float(answer.read() or 0)
    if status:
        raise SystemExit("a step failed")
    return used.ru_utime + used.ru_stime, time.monotonic() - began, peak


def ask_all(inventory: Inventory, place: Path, count: int) -> None:
    (place / "script").write_text("echo here\n")
    job = HostJob("bench", place / "script")
    states = [one.state for one in run_job(inventory, job, output=place / "answers", forks=FORKS)]
    assert states == ["ok"] * count


def run_quietly(words: Sequence[str], place: Path) -> None:
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(place), "ANSIBLE_LOCALHOST_WARNING": "False"}
    with (place / "said").open("wb") as said:
        subprocess.run(words, stdout=said, stderr=subprocess.DEVNULL, env=environment, check=True)


def scan_stored(inventory: Path, place: Path) -> None:
    """In this very process, so that its memory is what is measured."""
    from advisor.operations.fleet import Collection, scan_fleet
    from advisor.report.fleet.scan import fleet_scan_document, fleet_scan_text

    found = scan_fleet(Collection(Inventory((str(inventory),)), output=place / "kept", max_age_seconds=86400))
    assert not found.failed
    (place / "page").write_text(fleet_scan_text(found, width=100, color=False))
    (place / "document").write_bytes(fleet_scan_document(found))


def measure(count: int) -> list[str]:
    """Table rows of one size."""
    with tempfile.TemporaryDirectory(prefix="advisor-thousand.") as made:
        place = Path(made)
        names = [f"n{at:04}" for at in range(count)]
        (place / "hosts.ini").write_text("".join(f"{name} ansible_connection=local\n" for name in names))
        store, content = FleetStore(place / "kept"), CAPTURE.read_bytes()
        for name in names:
            store.keep_capture(CaptureHeader(name, name, "", "", 0, time.time(), None), content)
        inventory = Inventory((str(place / "hosts.ini"),))
        raw = [find_ansible_program("ansible"), "all", "-i", str(place / "hosts.ini"), "--forks", str(FORKS)]
        raw += ["-m", "ansible.builtin.raw", "-a", "true"]
        steps: dict[str, Callable[[], object]] = {
            "`ansible -m raw -a true`": lambda: run_quietly(raw, place),
            "advisor's engine": lambda: ask_all(inventory, place, count),
            "reading stored captures": lambda: scan_stored(place / "hosts.ini", place),
        }
        rows = []
        for name, run in steps.items():
            cpu, wall, own = measure_child(run)
            memory = "" if name.startswith("`") else f"{own:.0f}"
            rows.append(f"| {name} | {count:,} | {cpu:.1f} | {cpu / count * 1000:.0f} | {wall:.0f} | {memory} |")
            print(rows[-1], file=sys.stderr, flush=True)
        page, document = (place / "page").read_text(), (place / "document").stat().st_size
        print(f"{count:,} hosts: {len(page.splitlines())} lines, {document / count:.0f} bytes of JSON each", flush=True)
        return rows


def main(arguments: Sequence[str]) -> None:
    rows = [row for count in [int(one) for one in arguments] or [100, 300, 1000] for row in measure(count)]
    print("\n| step | hosts | CPU s | CPU ms per host | wall s | MiB of advisor |\n|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
