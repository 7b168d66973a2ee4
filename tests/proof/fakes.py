"""A faked system for the proof tests: an fio on PATH, a calm host as a directory, a toggle that writes a file.

Nothing of the product is replaced: the fake fio is a real executable, started by the real runner.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

from advisor.errors import CommandError
from advisor.host import Host, tree_host
from advisor.proof.fio import FioProcess
from advisor.proof.records import Arm, ToggleClass

FAKE_FIO = Path(__file__).with_name("fake-fio").read_text("utf-8")


class FakeFio:
    """An fio executable of our own in ``directory``: ``plan`` sets how it behaves, ``calls`` how it was called."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        program = directory / "fio"
        program.write_text(f"#!{sys.executable} -IS\n{FAKE_FIO}")
        program.chmod(0o755)
        self.plan()

    @classmethod
    def existing(cls, directory: Path) -> FakeFio:
        """The one that another process has made, its plan untouched."""
        found = cls.__new__(cls)
        found.directory = directory
        return found

    def plan(self, **changes: object) -> None:
        """Set noise, sleep, seed, misbehave, after, iops, control_factor; ``steal`` ticks are added to the faked
        /proc/stat at ``stat`` by each run."""
        (self.directory / "plan").write_text(repr(changes))

    @property
    def runner(self) -> FioProcess:
        """The real runner, with this fio first on its search path."""
        return FioProcess(search_path=f"{self.directory}:/usr/bin:/bin")

    def calls(self) -> list[list[str]]:
        """Argument vectors, in order."""
        return [list(call["argv"]) for call in self._log()]

    def directories(self) -> list[str]:
        """Working directories, in order."""
        return [str(call["cwd"]) for call in self._log()]

    def _log(self) -> list[dict[str, list[str] | str]]:
        log = self.directory / "log"
        return [ast.literal_eval(line) for line in log.read_text().splitlines()] if log.exists() else []


class SpeedToggle:
    """A change that is real for the fake fio: arm B runs ``factor`` times as fast. ``placed`` is what it was given."""

    def __init__(self, fio: FakeFio, factor: float, *, toggle_class: ToggleClass = "T0", settle: float = 0.0) -> None:
        self.file = fio.directory / "speed"
        self.factor = factor
        self.toggle_class: ToggleClass = toggle_class
        self.settle_seconds = settle
        self.placed: list[Arm] = []
        self.fails_at: Sequence[int] = ()

    def place(self, arm: Arm) -> None:
        self.placed.append(arm)
        if len(self.placed) - 1 in self.fails_at:
            raise CommandError(f"sysctl:vm.dirty_ratio reads back 20 instead of 40 in arm {arm}")
        self.file.write_text(str(self.factor if arm == "B" else 1.0))

    @property
    def in_force(self) -> Arm:
        return "A" if float(self.file.read_text()) == 1.0 else "B"


CALM = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500\n"


def calm_tree(root: Path, **files: str) -> Path:
    """A captured host on which nothing happens and every path lies on ext4; ``files`` replaces or adds by key, with
    ``__`` for a slash."""
    tree = {
        "proc/self/mountinfo": "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n",
        "proc/pressure/cpu": CALM,
        "proc/pressure/io": CALM,
        "proc/meminfo": "MemTotal:        1024 kB\nDirty:               0 kB\nWriteback:           0 kB\n",
        "proc/stat": "cpu  100 0 100 1000 0 0 0 0 0 0\n",
    }
    tree.update({key.replace("__", "/"): text for key, text in files.items()})
    for name, text in tree.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def calm_host(root: Path, **files: str) -> Host:
    return tree_host(str(calm_tree(root, **files)))
