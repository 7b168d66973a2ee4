"""The watchdog's script and its protocol: real processes, real signals, a rollback script that leaves a trace."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.shell.quote import make_data
from advisor.transaction.watchdog import WATCH_KIND, Watchdog, watch_text
from tests.running import run_text
from tests.waiting import until

ROLLBACK = "#!/bin/sh\necho ran >> {trace}\necho 'restored  sysctl:a.b: 2 -> 1'\nexit {code}\n"
SHELLS = ("dash", "busybox sh")


class Transaction:
    """A transaction's directory, and how often its rollback script ran."""

    def __init__(self, directory: Path, code: int = 0) -> None:
        directory.mkdir(parents=True)
        self.trace = directory / "trace"
        (directory / "journal").write_bytes(b"")
        (directory / "rollback.sh").write_text(ROLLBACK.format(trace=shlex.quote(str(self.trace)), code=code))
        self.watchdog = Watchdog(directory, "advisor-watchdog-test")

    @property
    def reverted(self) -> int:
        return len(self.trace.read_text().splitlines()) if self.trace.exists() else 0

    def has(self, name: str) -> bool:
        return (self.watchdog.directory / name).exists()


@pytest.fixture
def transaction(tmp_path: Path) -> Iterator[Transaction]:
    one = Transaction(tmp_path / "0001")
    yield one
    one.watchdog.close_files()
    until(lambda: watching(one) is None)


def watching(one: Transaction) -> str | None:
    found = run_text(["pgrep", "-f", f"^/bin/sh {one.watchdog.directory}/watch.sh"])
    return found.stdout.strip() or None


CLIENT = """
import sys, time
from pathlib import Path
from advisor.transaction.watchdog import Watchdog
watchdog = Watchdog(Path(sys.argv[1]), "advisor-watchdog-test")
watchdog.start_watching(persists=False, state="pending", step_seconds=None)
if sys.argv[2] == "claim":
    watchdog.claim_rollback()
if sys.argv[2] == "await":
    watchdog.await_confirmation(float(sys.argv[3]))
    sys.exit()
print("armed", flush=True)
time.sleep(600)
"""


def client(one: Transaction, *words: str) -> subprocess.Popen[str]:
    """Another process that arms the watchdog, in a session of its own as a terminal's is."""
    command = [sys.executable, "-c", CLIENT, str(one.watchdog.directory), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    with process.stdout as said:
        said.readline()
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT])
def test_a_client_that_is_killed_with_its_whole_session_is_put_back(
    transaction: Transaction, number: signal.Signals
) -> None:
    process = client(transaction, "work")
    os.killpg(process.pid, number)
    process.wait()
    outcome = transaction.watchdog.await_outcome()
    assert outcome is not None
    assert (outcome.code, outcome.why) == (0, "its client ended half-way")
    assert outcome.lines == ("restored  sysctl:a.b: 2 -> 1",)
    assert transaction.reverted == 1


def test_a_client_that_works_is_left_alone(transaction: Transaction) -> None:
    transaction.watchdog.start_watching(persists=False, state="pending", step_seconds=None)
    time.sleep(2.5)
    assert transaction.reverted == 0
    assert transaction.watchdog.place is not None
    assert transaction.watchdog.keep_change()
    until(lambda: watching(transaction) is None)
    assert transaction.reverted == 0
    assert sorted(os.listdir(transaction.watchdog.directory)) == ["journal", "rollback.sh", "watch.data", "watch.sh"]


def test_a_client_that_dies_while_putting_back_is_taken_over(transaction: Transaction) -> None:
    process = client(transaction, "claim")
    assert transaction.watchdog.read_state().open == "taken"
    process.kill()
    process.wait()
    outcome = transaction.watchdog.await_outcome()
    assert outcome is not None
    assert outcome.why == "the client that rolled it back ended half-way"


def test_without_confirmation_it_goes_back(transaction: Transaction) -> None:
    client(transaction, "await", "1").wait()
    outcome = transaction.watchdog.await_outcome()
    assert outcome is not None
    assert outcome.why == "nobody confirmed it in time"
    assert not transaction.watchdog.keep_change(), "too late"


def test_one_alone_decides(tmp_path: Path) -> None:
    """Confirmation and the end of the window at the same moment: kept, or rolled back, never both and never neither."""
    kept = 0
    for number in range(12):
        one = Transaction(tmp_path / f"{number:04d}")
        one.watchdog.start_watching(persists=False, state="pending", step_seconds=None)
        one.watchdog.await_confirmation(0)
        time.sleep(number * 0.1)
        was_kept = one.watchdog.keep_change()
        until(lambda one=one: watching(one) is None)  # type: ignore[misc]
        assert one.reverted == (0 if was_kept else 1), number
        assert one.has("outcome") is not was_kept
        kept += was_kept
    assert 0 < kept < 12, "the moments were chosen so that each side wins some"


def test_a_claim_takes_the_watchdogs_place(transaction: Transaction) -> None:
    client(transaction, "await", "2").wait()
    assert transaction.watchdog.claim_rollback()
    time.sleep(3)
    assert transaction.reverted == 0, "this process lives and is at it"
    transaction.watchdog.close_files()
    until(lambda: watching(transaction) is None)


def test_what_a_dead_watchdog_had_begun_can_be_claimed(transaction: Transaction) -> None:
    directory = transaction.watchdog.directory
    (directory / "reverting").write_text("")
    (directory / "watching").write_text(f"{os.getpid()}\n")  # alive, and no watchdog
    assert transaction.watchdog.claim_rollback()
    assert transaction.watchdog.read_state().open == "taken"


def test_of_two_watchdogs_the_one_that_acts_is_known_as_such(transaction: Transaction) -> None:
    """A rollback starts another one next to the first; here that one has written its number, and is gone."""
    script = transaction.watchdog.directory / "rollback.sh"
    script.write_text("sleep 3\n" + script.read_text())
    process = client(transaction, "work")
    second = subprocess.Popen(["/bin/sh", str(transaction.watchdog.directory / "watch.sh")])
    until(lambda: (transaction.watchdog.directory / "watching").read_text().startswith(f"{second.pid}\n"))
    second.kill()
    second.wait()
    process.kill()
    process.wait()
    until(lambda: transaction.has("reverting"))
    time.sleep(0.3)
    assert transaction.watchdog.place is not None
    outcome = transaction.watchdog.await_outcome()
    assert outcome is not None
    assert (outcome.code, transaction.reverted) == (0, 1)


def test_a_watchdog_that_is_at_it_is_not_disturbed(transaction: Transaction) -> None:
    (transaction.watchdog.directory / "rollback.sh").write_text(
        "sleep 2; echo 'kept      sysctl:a.b: theirs'; exit 5\n"
    )
    client(transaction, "await", "0").wait()
    until(lambda: transaction.has("reverting"))
    assert not transaction.watchdog.claim_rollback()
    outcome = transaction.watchdog.await_outcome()
    assert outcome is not None
    assert outcome.code == 5


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("state", ["pending", "taken", "reverting"])
def test_the_next_boot_puts_back_what_is_open(tmp_path: Path, shell: str, state: str) -> None:
    one = boot_case(tmp_path, state, boot="another boot")
    subprocess.run([*shell.split(), str(one.watchdog.directory / "watch.sh"), "--boot"], check=True)
    assert one.reverted == 1
    standing = one.watchdog.read_state()
    assert standing.outcome is not None
    assert standing.outcome.why == "the host went down before it was done"
    subprocess.run([*shell.split(), str(one.watchdog.directory / "watch.sh"), "--boot"], check=True)
    assert one.reverted == 1, "once"


@pytest.mark.parametrize(("state", "is_same_boot"), [("pending", True), ("watching", False)])
def test_in_the_same_boot_or_once_kept_nothing_is_put_back(tmp_path: Path, state: str, is_same_boot: bool) -> None:
    now = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    one = boot_case(tmp_path, state, boot=now if is_same_boot else "another boot")
    subprocess.run(["sh", str(one.watchdog.directory / "watch.sh"), "--boot"], check=True)
    assert one.reverted == 0


def write_watch(directory: Path) -> Path:
    (directory / "watch.data").write_bytes(make_data(WATCH_KIND, b""))
    script = directory / "watch.sh"
    script.write_text(watch_text())
    return script


def boot_case(tmp_path: Path, state: str, *, boot: str) -> Transaction:
    one = Transaction(tmp_path / "0001")
    write_watch(one.watchdog.directory)
    (one.watchdog.directory / "boot").write_text(boot)
    (one.watchdog.directory / state).write_text("")
    return one


@pytest.mark.parametrize("shell", SHELLS)
def test_any_directory_name_will_do(tmp_path: Path, shell: str) -> None:
    one = Transaction(tmp_path / 'it\'s $(touch pwned) `x` "quoted" \\n' / "0001")
    (one.watchdog.directory / "client").write_text("1 0\n")  # a number in use by another process
    (one.watchdog.directory / "pending").write_text("")
    script = write_watch(one.watchdog.directory)
    subprocess.run([*shell.split(), str(script)], check=True, cwd=tmp_path)
    assert one.reverted == 1
    assert not list(tmp_path.rglob("pwned"))


def test_a_link_that_comes_late_is_tried_again(transaction: Transaction) -> None:
    script = transaction.watchdog.directory / "rollback.sh"
    once = transaction.watchdog.directory / "once"
    script.write_text(
        f"[ -e {once} ] || {{ touch {once}; echo 'failed    link:a:mtu cannot be read'; exit 5; }}\nexit 0\n"
    )
    client(transaction, "await", "0").wait()
    outcome = transaction.watchdog.await_outcome()
    assert outcome is not None
    assert outcome.code == 0
