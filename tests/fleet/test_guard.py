"""A wave guards every plan: with --guard also one that changes no link waits for its confirmation, or goes back."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from advisor.exporters.apply_script import transaction_script
from tests.transaction.system import MACHINE, build, plan_of

VALUE = "proc/sys/net/core/rmem_max"


def made(where: Path) -> None:
    host = build(where)
    text = transaction_script(plan_of(host, [0], runtime_only=True), machine_id=MACHINE, hostname="x")
    (where / "script").write_text(text)


def reported(where: Path, *arguments: str) -> Any:
    words = ["sh", str(where / "script"), *arguments, "--root", str(where / "root")]
    path = f"{where}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    env = {**os.environ, "PATH": path, "ADVISOR_STATE_DIR": str(where / "state")}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1])


def live(where: Path) -> str:
    return (where / "root" / VALUE).read_text().strip()


def test_a_guarded_plan_waits_and_is_kept_by_its_confirmation(tmp_path: Path) -> None:
    made(tmp_path)
    assert reported(tmp_path, "apply", "--guard", "--confirm-within", "600")["state"] == "awaiting-confirmation"
    assert live(tmp_path) == "8388608"
    assert reported(tmp_path, "confirm")["state"] == "applied"
    assert reported(tmp_path, "rollback")["state"] == "rolled-back"
    assert live(tmp_path) == "212992"


def test_a_guarded_plan_that_nobody_confirms_goes_back_by_itself(tmp_path: Path) -> None:
    made(tmp_path)
    reported(tmp_path, "apply", "--guard", "--confirm-within", "1")
    end = time.monotonic() + 60
    while reported(tmp_path, "status")["state"] != "rolled-back":
        assert time.monotonic() < end, "it never went back"
        time.sleep(0.2)
    assert live(tmp_path) == "212992"


def test_without_it_a_plan_that_changes_no_link_is_kept_at_once(tmp_path: Path) -> None:
    made(tmp_path)
    assert reported(tmp_path, "apply", "--confirm-within", "600")["state"] == "applied"
