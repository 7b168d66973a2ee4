"""One profile in the place of another on real links: confirmed, not confirmed, killed in between; judged by ``ip``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.transaction.veth import Veth, veth
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

KEEPALIVE, FINISH = "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout"
SMALL = {"link:a0:mtu": "4000", "link:b0:mtu": "8500", f"sysctl:{KEEPALIVE}": "600"}
LARGE = {"link:a0:mtu": "8000", "link:b0:mtu": "8500", f"sysctl:{FINISH}": "30"}
BEFORE, FIRST, SECOND = (1500, "7200", "60"), (4000, "600", "60"), (8000, "7200", "30")
WAITING = (8000, "600", "30")
SWITCH = ("apply", "large", "--instead-of", "small", "--yes")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Veth]:
    with veth(tmp_path) as one:
        one.profile("small", SMALL)
        one.profile("large", LARGE)
        yield one


def values(host: Veth) -> tuple[int, str, str]:
    return host.mtus()["a0"], host.sysctl(KEEPALIVE), host.sysctl(FINISH)


def began(host: Veth) -> dict[str, object]:
    """The first profile active; everything as it was before it."""
    before = host.everything()
    host.advisor("apply", "small", "--yes", "--confirm-within", "0")
    assert values(host) == FIRST
    return before


def test_confirmed_the_first_is_out_and_only_what_differs_was_written(host: Veth) -> None:
    before = began(host)
    with host.monitored("a0", "b0") as seen:
        host.advisor(*SWITCH, "--confirm-within", "600")
        assert (values(host), host.standings()) == (WAITING, {"0001": "applied", "0002": "awaiting-confirmation"})
        said = host.advisor("confirm")
    assert [mtu for mtu, _ in groupby(seen["a0"])] == [8000], "straight there, and never by way of 1500"
    assert seen["b0"] == [], "what both want is not written"
    assert "Rolled back 0001 (small): 1 restored, 2 held by an upper layer." in said
    assert (values(host), host.standings()) == (SECOND, {"0001": "rolled-back", "0002": "applied"})
    host.advisor("verify")
    host.advisor("rollback")
    assert host.everything() == before


def test_not_confirmed_the_first_is_in_force_as_it_was(host: Veth) -> None:
    before = began(host)
    first = host.everything()
    host.advisor(*SWITCH, "--confirm-within", "1")
    until(lambda: host.standings()["0002"] == "rolled-back")
    assert (host.everything(), values(host)) == (first, FIRST)
    host.advisor("verify")
    assert "nobody confirmed it in time" in host.advisor("status")
    assert host.standings()["0001"] == "applied"
    host.advisor("rollback", "--all")
    assert host.everything() == before


def killed(host: Veth, at: int, *words: str) -> bool:
    """Whether the command was killed right after its ``at``-th write to disk, before it ended by itself."""
    command = host.words(sys.executable, "-m", "tests.transaction.dying", str(at), *words)
    done = subprocess.run(command, env=host.environment(), capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), done.stdout + done.stderr
    return done.returncode != 0


def ended(host: Veth) -> str:
    """How it ends by itself, or by the next command where no watchdog is at it; judged by what is live then."""
    deadline = host.store / "transactions/0002/deadline"
    if deadline.exists():
        # Its time is up.
        deadline.write_text("0\n")
    until(lambda: not host.is_watched())
    first, second = (host.standings().get(one) for one in ("0001", "0002"))
    if (first, second) == ("applied", "applied"):
        said = " ".join(host.advisor("status").split())
        assert "0002 replaces 0001, which is not rolled back yet. To complete that: advisor rollback" in said
        host.advisor("verify")
    if "rolling-back" in (first, second) or second == "applying" or (first, second) == ("applied", "applied"):
        host.advisor("rollback")
    host.advisor("verify")
    if host.standings().get("0002") == "applied":
        assert (values(host), host.standings()["0001"]) == (SECOND, "rolled-back")
        return "as asked"
    assert (values(host), host.standings()["0001"]) == (FIRST, "applied")
    return "as it was"


# By then it is written that it is confirmed; that nobody waits any more. Every other moment is among what is thorough.
@pytest.mark.repeats(1)
@pytest.mark.parametrize(("at", "end"), [(2, "as it was"), (3, "as asked")])
def test_killed_while_it_is_confirmed_it_ends_forward_once_it_is_kept(host: Veth, at: int, end: str) -> None:
    before = began(host)
    host.advisor(*SWITCH, "--confirm-within", "600")
    assert killed(host, at, "confirm")
    assert ended(host) == end
    host.advisor("rollback", "--all")
    assert host.everything() == before


@pytest.mark.thorough
@pytest.mark.parametrize("word", ["apply", "confirm"])
def test_killed_after_any_write(host: Veth, word: str) -> None:
    before, found, at = host.everything(), list[str](), 0
    while True:
        at += 1
        began(host)
        words = (*SWITCH, "--confirm-within", "600")
        if word == "confirm":
            host.advisor(*words)
        if not killed(host, at, *(words if word == "apply" else ("confirm",))):
            break
        found.append(ended(host))
        host.advisor("rollback", "--all")
        assert host.everything() == before, at
        host.forget()
    print(word, found)
    assert len(found) > 5
    assert found == sorted(found, reverse=True), "one moment decides"
    assert set(found) == ({"as it was"} if word == "apply" else {"as it was", "as asked"})
