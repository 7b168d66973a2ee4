"""Two at once, steered: one is stopped at each of its steps while the other acts. Some order of the two explains the
end, and the value from before is never lost.

Actors: the rollback script, the watchdog whose time is over, a second watchdog, `confirm`, and the apply script.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.exporters.apply_script import transaction_script
from advisor.transaction.status import rollback_transactions
from tests.cases import read_cases
from tests.exporters.apply_script.stage import Stage
from tests.transaction.layered import build, host_at, plan_of, store_of
from tests.transaction.system import LLTCONFIG
from tests.transaction.test_layers import HIGH
from tests.transaction.test_races import STEERED
from tests.trees import make_command
from tests.waiting import PATIENCE_SECONDS

Start = Callable[[Stage], "subprocess.Popen[bytes] | None"]


def waiting(where: Path) -> Stage:
    """A transaction that the script has applied, and whose watchdog waits for a confirmation."""
    build(where)
    plan = plan_of(host_at(where), store_of(where), "aa", {HIGH: "1000"})
    stage = Stage(where, host_at, plan)
    assert stage.call("apply", "--guard", "--confirm-within", "90").state == "awaiting-confirmation"
    return stage


def steer(stage: Stage, at: int) -> None:
    """From now on the first to reach its step of that number is stopped there."""
    place = stage.where / "steer"
    place.mkdir()
    stop = STEERED.format(where=stage.where)
    make_command(stage.where / "bin", "lltconfig", stop + LLTCONFIG.format(root=stage.root))
    for name in ("mv", "rm", "sync"):
        make_command(stage.where / "bin", name, f'{stop}\nexec /bin/{name} "$@"')
    (place / "at").write_text(f"{at}\n")


def expire(stage: Stage) -> None:
    if (stage.transaction / "deadline").exists():
        (stage.transaction / "deadline").write_text("1\n")


def by_script(stage: Stage) -> subprocess.Popen[bytes]:
    words = ["dash", str(stage.transaction / "rollback.sh"), "--root", str(stage.root)]
    return subprocess.Popen(
        words, env=stage.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def by_watchdog(stage: Stage) -> None:
    expire(stage)


def by_two_watchdogs(stage: Stage) -> None:
    """Another one, as a restart of its unit next to one that is still there makes it."""
    script = stage.transaction / "watch.sh"
    if script.exists():
        subprocess.run(
            ["sh", "-c", 'sh "$0" </dev/null >/dev/null 2>&1 &', script], env=stage.environment(), check=True
        )
        time.sleep(1)
    expire(stage)


def confirmed(stage: Stage) -> subprocess.Popen[bytes]:
    return stage.start("confirm")  # type: ignore[no-any-return]


def applied(stage: Stage) -> subprocess.Popen[bytes]:
    """The script of another plan, which sets the same value."""
    other = stage.where / "other.sh"
    words = ["dash", str(other), "apply", "--confirm-within", "0", "--root", str(stage.root)]
    return subprocess.Popen(
        words, env=stage.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


ACTORS: dict[str, Start] = {
    "script": by_script,
    "watchdog": by_watchdog,
    "watchdogs": by_two_watchdogs,
    "confirm": confirmed,
    "apply": applied,
}


def ended(process: subprocess.Popen[bytes] | None) -> int | None:
    if process is None:
        return None
    process.communicate(timeout=60)
    return process.returncode


def settled(stage: Stage, seconds: float) -> None:
    """Until the transaction is closed, where it is in that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and is_open(stage):
        time.sleep(0.05)


def is_open(stage: Stage) -> bool:
    return any((stage.transaction / name).exists() for name in ("pending", "taken", "reverting"))


def value(stage: Stage) -> str:
    return (stage.root / "run/llt").read_text().split()[1]


def is_explained(first: str, second: str, codes: dict[str, int | None], live: str) -> bool:
    """Whether an order of the two, or one of them alone with the other refused (3), ends so."""
    if "apply" in codes and codes["apply"] == 0:
        # It comes after a rollback, or next to a transaction that is kept.
        return live == "1500"
    if "confirm" in (first, second) and codes.get("confirm") == 0:
        # Kept; a rollback script can come after that.
        return live == "1000" if codes.get("script") != 0 else live == "200"
    return live == "200"


DATA = read_cases(__file__)

PAIRS = DATA["PAIRS"]


@pytest.mark.repeats(4)
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda name: name)
def test_some_order_explains_the_end(tmp_path: Path, first: str, second: str, stride: int) -> None:
    steps = 0
    for at in range(1, 80, stride):
        stage = waiting(tmp_path / str(at))
        if "apply" in (first, second):
            other_script(stage)
        steer(stage, at)
        reached = stage.where / "steer/reached"
        process = ACTORS[first](stage)
        is_stopped = stopped(stage, process, reached)
        codes = {}
        if is_stopped:
            steps += 1
            codes[second] = ended(ACTORS[second](stage))
            settled(stage, 2.5)
        (stage.where / "steer/go").touch()
        codes[first] = ended(process)
        if "confirm" not in codes or codes["confirm"] != 0:
            settled(stage, 10)
        if "watchdogs" in (first, second):
            assert stage.store.watchdog_of("0001").place is None or not is_open(stage)
        assert is_explained(first, second, codes, value(stage)), (at, codes, value(stage))
        whatever_is_left(stage)
        assert value(stage) == "200", (at, codes)
        # First: what still runs is not stopped once the rest of it is gone.
        (stage.where / "steer/at").unlink()
        shutil.rmtree(stage.where, ignore_errors=True)
        if not is_stopped:
            break
    assert steps >= 2


def stopped(stage: Stage, process: subprocess.Popen[bytes] | None, reached: Path) -> bool:
    end = time.monotonic() + PATIENCE_SECONDS
    while not reached.exists():
        if process is not None and process.poll() is not None:
            return False
        if process is None and not is_open(stage):
            return False
        assert time.monotonic() < end, "neither stopped nor ended"
        time.sleep(0.01)
    return True


def other_script(stage: Stage) -> None:
    """Of a plan that finds the first one kept."""
    assert stage.call("confirm").code == 0
    plan = plan_of(stage.host, stage.store, "bb", {HIGH: "1500"})
    text = transaction_script(plan, machine_id=plan.machine_id, hostname="host")
    (stage.where / "other.sh").write_text(text)


def whatever_is_left(stage: Stage) -> None:
    if any(one.is_active or one.is_unfinished or one.by_watchdog for one in stage.store.read_records()):
        rollback_transactions(stage.host, None, everything=True, force=False, store=stage.store)
