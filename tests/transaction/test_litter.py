"""Killed at any write, and ended by command, script or watchdog: nothing is left outside the state directory.

Systemd counts as running, so that the unit for the next boot is part of it; its daemon cannot be asked.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transaction.veth import ADVISOR, Veth, veth
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")
KEY = "net.ipv4.tcp_fin_timeout"
ENDINGS = ("command", "script", "watchdog")


class Booted(Veth):
    """With a /run of its own, in which systemd runs."""

    def words(self, *command: str) -> list[str]:
        booted = 'mount --bind "$0/run" /run && exec "$@"'
        return super().words("sh", "-c", booted, str(self.where), *command)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Booted]:
    with veth(tmp_path) as one:
        booted = Booted.__new__(Booted)
        booted.__dict__.update(one.__dict__)
        (tmp_path / "run/systemd/system").mkdir(parents=True)
        booted.profile("fin", {f"sysctl:{KEY}": "41", "link:a0:mtu": "1400"})
        yield booted


def everything(host: Booted) -> dict[str, object]:
    """All files, directories and links below /etc, and the value."""
    found: dict[str, object] = {"value": host.sysctl(KEY), "mtus": host.mtus()}
    for path in sorted((host.where / "etc").rglob("*")):
        found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


def end(host: Booted, how: str) -> None:
    if how == "watchdog":
        until(lambda: not host.is_watched())
    script = host.store / "transactions/0001/rollback.sh"
    if how == "script" and script.exists():
        done = host.call("sh", str(script))
        if done.returncode == 3 and "its watchdog" in done.said:
            # The client's death was the watchdog's sign: on a busy machine it is at work before the script is.
            until(lambda: not host.is_watched())
            done = host.call("sh", str(script))
        assert done.returncode in (0, 3), done.said
        # What is open is the watchdog's to record, where it was there already.
        until(lambda: not host.is_watched())
    if how == "command":
        assert host.call(ADVISOR, "rollback").returncode in (0, 3)


@pytest.mark.parametrize("first", [1, *(pytest.param(first, marks=pytest.mark.thorough) for first in range(2, 8))])
def test_killed_at_any_write_nothing_is_left(host: Booted, first: int) -> None:
    before = everything(host)
    at, killed, refusals = first, 0, 0
    while True:
        program = [sys.executable, "-m", "tests.transaction.dying", str(at)]
        done = host.call(*program, "apply", "fin", "--yes", "--confirm-within", "0")
        if done.returncode == 3 and "the watchdog, which guards the change, cannot be started" in done.said:
            # The one before, of the same number, is at its last step: it removes what a kill has left of its unit.
            refusals += 1
            assert refusals < 5, done.said
            continue
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.said
            break
        killed += 1
        end(host, ENDINGS[killed % 3])
        if everything(host) != before:
            # Only where it had been applied whole, or no watchdog had been started yet and nobody came since.
            records = host.standings()
            assert set(records.values()) <= {"applied", "applying", "rolling-back"}, (at, records)
            host.call(ADVISOR, "rollback")
        # The watchdog's last step is a directory of systemd's that it made, where there was none.
        until(lambda: not host.is_watched() and everything(host) == before)
        assert everything(host) == before, (at, ENDINGS[killed % 3], changed(before, everything(host)))
        shutil.rmtree(host.store, ignore_errors=True)
        at += 7
    assert killed >= 3
    host.advisor("rollback")
    assert everything(host) == before


def changed(before: dict[str, object], now: dict[str, object]) -> list[str]:
    return [name for name in {*before, *now} if before.get(name) != now.get(name)]


def test_a_standard_output_that_is_full_ends_no_change(host: Booted) -> None:
    before = everything(host)
    for words, said in (("apply fin --yes --confirm-within 0", "0001 is applied"), ("rollback", "rolled back: 0001")):
        done = host.call("sh", "-c", f"{ADVISOR} {words} > /dev/full")
        assert done.returncode == 0, done.said
        assert "standard output: No space left on device; " in done.stderr
        assert said in done.stderr
    assert set(host.standings().values()) == {"rolled-back"}
    assert everything(host) == before
