"""The engine on hosts that are well, and on those that are not: each is yielded once, and what it did is true."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from advisor.fleet.engine import CaptureTimes, HostAnswer, HostJob, run_job
from advisor.fleet.inventory import Access, Inventory, InventoryHost
from tests.fleet.hosts import Hosts, Kind, why_not
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

KINDS = {
    "node02": Kind(fault="noise", clock=600),
    "node03": Kind(fault="garbage"),
    "node04": Kind(fault="truncated"),
    "node05": Kind(fault="refuses"),
    "node06": Kind(fault="unreachable"),
    "node07": Kind(user="keeper"),
    "node08": Kind(user="keeper", sudo_password=""),
}
PLAIN = Access()
EVERY_BYTE = bytes(range(256)) * 3


@pytest.fixture(scope="module")
def fleet() -> Iterator[Hosts]:
    with Hosts(8, **KINDS) as made:
        yield made


Ask = Callable[..., dict[str, HostAnswer]]


@pytest.fixture
def ask(fleet: Hosts, tmp_path: Path) -> Ask:
    """Do a script on hosts of the fleet; answers by host, each of them once."""

    def ask(
        script: str | Path, *arguments: str, names: Sequence[str] | None = None, access: Access = PLAIN, **job: object
    ) -> dict[str, HostAnswer]:
        place = script if isinstance(script, Path) else tmp_path / "script"
        if isinstance(script, str):
            place.write_text(script)
        meant = Inventory((str(fleet.inventory(names=names)),), None, access)
        made = HostJob("test", place, arguments, **job)  # type: ignore[arg-type]
        listed = [InventoryHost(name, None, None, None, None, ()) for name in names or fleet.names]
        found = fleet.inside(lambda: [*run_job(meant, made, output=tmp_path / "answers", hosts=listed)])
        assert len({one.host for one in found}) == len(found)
        return {one.host: one for one in found}

    return ask


def test_every_host_is_told_with_what_came_of_it(ask: Ask, fleet: Hosts) -> None:
    found = ask("echo here; exit 7")
    assert {name: one.state for name, one in found.items()} == {
        **dict.fromkeys(("node01", "node02", "node04", "node07", "node08"), "ok"),
        **{"node03": "failed", "node05": "unreachable", "node06": "unreachable"},
    }
    assert {one.rc for one in found.values() if one.state == "ok"} == {7}
    assert "Welcome to this appliance." in found["node03"].message
    assert "Connection refused" in found["node05"].message
    assert {name: found[name].uid for name in ("node01", "node07", "node08")} == {
        **{"node01": 0, "node07": 1234, "node08": 0}
    }
    # Their clocks, compared with ours.
    ahead = found["node02"].skew_seconds
    assert found["node01"].skew_seconds == 0
    assert ahead is not None
    assert 570 < ahead <= 601
    # Nothing is left on the controller but shared connections, for the minute that Ansible's own setting gives them.
    left = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in fleet.controller_processes()]
    assert [line for line in left if not line.startswith(b"ssh: /")] == []
    assert [*(fleet.home / "tmp").iterdir()] == []


def test_arguments_and_answers_arrive_byte_for_byte_whatever_a_login_shell_prints(ask: Ask, tmp_path: Path) -> None:
    given = ("$(id)", 'it\'s "one"', "", "-n", "two\nlines", "*", "ünï", "{{ 7 * 7 }}", "\\", "!x")
    octal = "".join(f"\\{byte:03o}" for byte in EVERY_BYTE)
    script = f"printf '%s\\000' \"$@\"; printf '{octal}'; echo careful >&2"
    found = ask(script, *given, names=["node01", "node02", "node08"])
    for one in found.values():
        assert one.path is not None
        assert one.path.read_bytes() == "".join(f"{word}\0" for word in given).encode() + EVERY_BYTE
        assert one.path.stat().st_mode & 0o777 == 0o600
        assert "careful" in one.message
    assert (tmp_path / "answers").stat().st_mode & 0o777 == 0o700


def test_no_python_is_there_and_nothing_is_left_there(ask: Ask, fleet: Hosts) -> None:
    before = fleet.shell("node01", "find /tmp /run /dev/shm /var/lib /etc -xdev")
    found = ask("python3 -c pass; echo $?; exec 3>&1; kill -9 $$", names=["node01"])
    assert found["node01"].path is not None
    assert found["node01"].path.read_text() == "127\n"
    assert found["node01"].rc == 137
    assert fleet.shell("node01", "find /tmp /run /dev/shm /var/lib /etc -xdev") == before


def test_a_host_that_does_not_answer_in_time_holds_up_nobody(ask: Ask) -> None:
    found = ask('[ "$(hostname)" != node02 ] || sleep 1000; echo done', names=["node01", "node02"], timeout_seconds=3)
    assert {name: one.state for name, one in found.items()} == {"node01": "ok", "node02": "timeout"}


def test_what_needs_root_is_not_begun_without_it(ask: Ask, fleet: Hosts) -> None:
    found = ask("touch /run/was-here", names=["node01", "node07", "node08"], needs_root=True)
    assert {name: one.state for name, one in found.items()} == {"node01": "ok", "node07": "no-root", "node08": "ok"}
    assert fleet.shell("node07", "ls /run/was-here", check=False) == ""
    fleet.shell("node01", "rm /run/was-here")


def test_skew_is_what_cannot_be_explained_by_the_way() -> None:
    assert CaptureTimes(100.5, 103.0, 101, 102).skew_seconds == 0
    assert CaptureTimes(100.9, 103.0, 100, 100).skew_seconds == 0  # the host's second began before ours did
    assert CaptureTimes(100.0, 103.0, 201, 202).skew_seconds == pytest.approx(99)
    assert CaptureTimes(100.0, 103.0, 50, 51).skew_seconds == pytest.approx(-49)
    assert CaptureTimes(100.0, 103.0, None, None).skew_seconds is None


def test_a_change_that_broke_off_is_lost_and_one_that_did_not_begin_is_not(ask: Ask, fleet: Hosts) -> None:
    script = 'echo "$$" >/run/began; sleep 3; touch /run/went-on; echo done'
    children: list[int] = []
    pid = os.fork()
    if pid == 0:
        deadline = time.monotonic() + PATIENCE_SECONDS
        began = fleet.root("node01") / "run/began"
        while not began.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        fleet.kill_sshd("node01")
        os._exit(0)
    children.append(pid)
    found = ask(script, names=["node01", "node05"], changes=True, timeout_seconds=20)
    os.waitpid(pid, 0)
    fleet.start_sshd("node01")
    assert {name: one.state for name, one in found.items()} == {"node01": "lost", "node05": "unreachable"}
    # What was begun there goes on to its end, whoever asked for it.
    until(lambda: (fleet.root("node01") / "run/went-on").exists())
