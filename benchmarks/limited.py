"""A proof whose true ratio is known: between the arms, cgroup io.max lets more or fewer operations through.

Runs inside the lab's guest, as root: ``python -m benchmarks.limited FIRST SECOND [--deep]``, limits in operations a
second. Prints the proof as JSON.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from advisor.host import live_host
from advisor.proof.records import Arm, ProofSubject, ToggleClass, claims_for
from advisor.proof.session import prove
from advisor.proof.session_runner import Settings

TARGET: Final = "/srv/node0"
GROUP: Final = Path("/sys/fs/cgroup/advisor-limited")


class Limit:
    """Arm A is the first limit, arm B the second one."""

    toggle_class: ToggleClass = "T0"
    settle_seconds = 0.3

    def __init__(self, device: str, first: int, second: int) -> None:
        self._device = device
        self._limits: dict[Arm, int] = {"A": first, "B": second}

    def place(self, arm: Arm) -> None:
        """Write the limit and read it back."""
        limit = self._limits[arm]
        file = GROUP / "io.max"
        file.write_text(f"{self._device} riops={limit} wiops={limit}\n", "ascii")
        assert f"riops={limit}" in file.read_text("ascii")


def main() -> None:
    """Measure in a control group of its own, and take it away."""
    first, second = int(sys.argv[1]), int(sys.argv[2])
    number = os.stat(TARGET).st_dev
    (GROUP.parent / "cgroup.subtree_control").write_text("+io\n", "ascii")
    GROUP.mkdir(exist_ok=True)
    try:
        (GROUP / "cgroup.procs").write_text(str(os.getpid()), "ascii")
        proof = prove(
            live_host(),
            ProofSubject(profile="limited", claims=claims_for(["infoscale.4k-rand-r100"])),
            Limit(f"{os.major(number)}:{os.minor(number)}", first, second),
            Settings(target=TARGET, mode="deep" if "--deep" in sys.argv else "default"),
        )
    finally:
        (GROUP.parent / "cgroup.procs").write_text(str(os.getpid()), "ascii")
        GROUP.rmdir()
    sys.stdout.buffer.write(msgspec.json.encode(proof))


if __name__ == "__main__":
    main()
