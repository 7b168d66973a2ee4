"""A process that is killed at one moment after another, and what the next run makes of each."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from advisor.host import Host, Step
from advisor.transaction.journal import Store
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.status import find_drift
from tests.transaction.layered import BASE, at_boot, host_at, live, store_of
from tests.transaction.test_layers import out
from tests.trees import listing

Work = Callable[[Host, Store], object]
Ends = Mapping[str, Mapping[str, str]]


def in_child(work: Callable[[], object]) -> bool:
    """Run ``work`` in a forked process; whether that was killed before it ended by itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def counting_down(at: int) -> Callable[[], None]:
    left = at

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def killed_at_fsync(host: Host, store: Store, work: Work, at: int) -> bool:
    def die() -> None:
        count, real = counting_down(at), os.fsync

        def dying_fsync(fd: Any) -> None:
            real(fd)
            count()

        os.fsync = dying_fsync
        work(host, store)

    return in_child(die)


class Dying(Host):
    def __init__(self, host: Host, at: int, *, after: bool) -> None:
        super().__init__(host.files, host.commands, is_root=True)
        self._count, self._after = counting_down(at), after

    def do(self, step: Step) -> None:
        if not self._after:
            self._count()
        super().do(step)
        if self._after:
            self._count()


def killed_at_step(host: Host, store: Store, work: Work, at: int, *, after: bool) -> bool:
    return in_child(lambda: work(Dying(host, at, after=after), store))


def points(where: Path, kill: Callable[[Host, Store, int], bool], possible: Ends, before: dict[str, Any]) -> list[str]:
    """Kill at each point in a copy of what is in ``where``, recover, roll everything back; how each had ended."""
    found: list[str] = []
    while True:
        copy = where.with_name(f"copy{len(found)}")
        shutil.copytree(where, copy, symlinks=True)
        host, store = host_at(copy), store_of(copy)
        if not kill(host, store, len(found) + 1):
            return found
        with store.hold_lock():
            assert all(one.is_back for _, outcomes in recover_unfinished(host, store) for one in outcomes)
        ends = [name for name, wanted in possible.items() if (live(host), at_boot(copy)) == (wanted, wanted)]
        assert ends, (len(found), live(host), at_boot(copy))
        assert find_drift(host, store.read_records()) == ()
        found.append(ends[0])
        for record in store.read_records():
            if record.is_active:
                out(host, store, record.id)
        assert listing(copy / "root") == before
        shutil.rmtree(copy)


def killers(word: str, work: Work) -> Callable[[Host, Store, int], bool]:
    if word == "fsync":
        return lambda host, store, at: killed_at_fsync(host, store, work, at)
    return lambda host, store, at: killed_at_step(host, store, work, at, after=word == "after")


def together(layers: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found = dict(BASE)
    for wanted in layers:
        found |= wanted
    return found
