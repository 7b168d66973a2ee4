"""The script against ``advisor apply``: every profile on every captured host, the same tree and record."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.exporters.apply_script import transaction_script
from advisor.planner import plan_profiles
from advisor.profiles.profile import profile_paths
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.status import find_drift
from tests.captured import captured_root
from tests.exporters.apply_script.stage import SHELLS, reported
from tests.serving_hosts import GENERAL
from tests.transaction.captured_hosts import HOSTS, SETTINGS, built, touched
from tests.trees import STANDARD_PATH


def caller(script: Path, root: Path, store: Store, shell: list[str]) -> Callable[..., None]:
    """What runs a verb of the script, which must go well."""
    environment = {"PATH": f"{root.parent / 'bin'}:{STANDARD_PATH}", "ADVISOR_STATE_DIR": str(store.directory)}

    def call(*verb: str) -> None:
        words = [*shell, str(script), *verb, "--root", str(root), "--reload"]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return call


@pytest.mark.repeats(2)
@pytest.mark.captured
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (at % 3 > 0)) for at, name in enumerate(HOSTS)]
)
def test_script_and_apply_end_alike(name: str, tmp_path: Path) -> None:
    captured_root()
    host = built(name, tmp_path)
    root = tmp_path / "root"
    tried = 0
    for number, profile in enumerate(name for name in profile_paths() if name not in GENERAL):
        store = Store(str(tmp_path / f"state{number}"))
        plan = plan_profiles(host, [profile], SETTINGS if profile == "jumbo-frames" else {}, store=store)
        if plan.is_empty or plan.blocking:
            continue
        tried += 1
        before = touched(plan, root)
        with store.hold_lock():
            wanted = apply_plan(host, plan, store)
            applied = touched(plan, root)
            roll_back(host, wanted, store)
        ours = Store(str(tmp_path / f"ours{number}"))
        script = tmp_path / f"apply{number}.sh"
        script.write_text(transaction_script(plan, machine_id=plan.machine_id, hostname=None))
        call = caller(script, root, ours, SHELLS[number % len(SHELLS)])
        call("check")
        assert touched(plan, root) == before
        call("apply", "--confirm-within", "0")
        assert touched(plan, root) == applied, profile
        record = ours.read_records()[0]
        assert reported(record) == reported(wanted), profile
        assert find_drift(host, [record]) == (), profile
        call("verify")
        call("rollback")
        assert touched(plan, root) == before, profile
    print(f"{name}: {tried} profiles")
    assert tried >= 2
