"""A host under traffic for the tests of `prove --live`: a tree whose counters follow a law, and a clock of its own.

Nothing of the product is replaced: the value is switched in the tree's /proc/sys, and the disk's counters in its
/proc/diskstats move with each second that the clock is asked to wait.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

from advisor.host import Host
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof.live import LiveOptions, LivePlan, prove_live
from advisor.proof.records import Proof
from advisor.proof.session_runner import Settings
from advisor.transaction.journal import Store
from tests.trees import host_of, make_command, make_tree

from .fakes import calm_tree

NAME, BEFORE, AFTER = "net.core.netdev_max_backlog", "1000", "5000"
PLACE = "proc/sys/net/core/netdev_max_backlog"
Law = Callable[[float, bool], float]
"""ln of the disk's wait at a time in seconds, and with the change or not."""


class World:
    """The host, its time, and what happens in it. ``events`` are called with the time before each second."""

    def __init__(self, where: Path, law: Law, *, requests: int = 100) -> None:
        self.root = calm_tree(where / "tree")
        make_tree(
            self.root,
            {f"/{PLACE}": f"{BEFORE}\n", "/sys/block/sda/size": "1000000\n", "/proc/sys/kernel/hostname": "world\n"},
        )
        self.commands = where / "bin"
        make_command(self.commands, "ss", "exit 1")
        self.store = Store(str(where / "state"))
        self.law, self.requests = law, requests
        self.seconds = 0.0
        self.reads = self.waited_ms = 0
        self.events: list[Callable[[float], None]] = []
        self.asked: list[LivePlan] = []
        self.consent: Callable[[LivePlan], None] = self.asked.append
        self.count()

    @property
    def host(self) -> Host:
        return host_of(self.root, self.commands)

    @property
    def value(self) -> str:
        return (self.root / PLACE).read_text().strip()

    def set_value(self, value: str) -> None:
        (self.root / PLACE).write_text(f"{value}\n")

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        for event in self.events:
            event(self.seconds)
        wait = math.exp(self.law(self.seconds, self.value == AFTER))
        self.seconds += seconds
        self.reads += round(self.requests * seconds)
        self.waited_ms += round(self.requests * seconds * wait * 10)
        self.count()

    def count(self) -> None:
        """Write the disk's counters."""
        text = f"8 0 sda {self.reads} 0 {8 * self.reads} {self.waited_ms} 0 0 0 0 0 {self.waited_ms} {self.waited_ms}\n"
        (self.root / "proc/diskstats").write_text(text)

    def prove(self, *, settings: Settings | None = None, words: tuple[str, ...] = (), **options: object) -> Proof:
        """One session; ``options`` are those of `LiveOptions`."""
        chosen = {"metrics": ("host:disk-wait",), **options}
        return prove_live(
            self.host,
            self.asked_for(words),
            {},
            settings or Settings(seed=7),
            LiveOptions(**chosen),  # type: ignore[arg-type]
            consent=self.consent,
            store=self.store,
            clock=self,
        )

    def asked_for(self, words: tuple[str, ...] = ()) -> RequestedProfile:
        return load_one(words or (f"sysctl:{NAME}={AFTER}",))


def noisy_law(seed: int, effect: float, *, tau: float = 0.0, noise: float = 0.1) -> Law:
    """A wait that scatters, and changes by ``effect`` (of the logarithm) within ``tau`` seconds after a switch."""
    source = random.Random(seed)
    state = 0.0

    def law(_at: float, is_changed: bool) -> float:
        nonlocal state
        state += (is_changed - state) * (1 - math.exp(-1 / tau) if tau else 1.0)
        return source.gauss(0, noise) + effect * state

    return law
