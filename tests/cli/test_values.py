"""Values without a profile and profile files, through a transaction of their own, in a namespace of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inside import call_inside
from tests.containers import needs_a_host
from tests.trees import make_tree

ROOT = Path(__file__).parent.parent.parent
KEY = "net.ipv4.tcp_slow_start_after_idle"
OTHER = "net.ipv4.tcp_keepalive_time"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")


def in_namespace(where: Path, script: str) -> subprocess.CompletedProcess[str]:
    """The script in network and mount namespaces of its own: its sysctls and its /etc are nobody else's."""
    (where / "etc").mkdir()
    setup = f"mount -t tmpfs none /etc/sysctl.d && mount --bind {where}/etc /etc/sysctl.d && ip link set lo up\n"
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(where / "state"), "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    call = ["unshare", "-n", "-m", "sh", "-ec", f'advisor() {{ {sys.executable} -m advisor "$@"; }}\n{setup}{script}']
    return subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=300, cwd=where)


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON documents among the lines of other commands."""
    decoder = json.JSONDecoder()
    starts = [
        place for place in range(len(text)) if text.startswith("{\n", place) and text[place - 1 : place] in ("", "\n")
    ]
    return [decoder.raw_decode(text, place)[0] for place in starts]


@needs_a_host
def test_values_are_a_transaction_like_any_other(tmp_path: Path) -> None:
    done = in_namespace(
        tmp_path,
        f"""
        cat /proc/sys/{KEY.replace(".", "/")}
        advisor apply --yes sysctl:{KEY}=0 'sysctl:{OTHER}<=600' --json
        cat /proc/sys/{KEY.replace(".", "/")}
        ls /etc/sysctl.d
        advisor verify --json
        sysctl -q -w {KEY}=1
        advisor verify || true
        sysctl -q -w {KEY}=0
        advisor rollback --json
        cat /proc/sys/{KEY.replace(".", "/")}
        ls /etc/sysctl.d
        """,
    )
    assert done.returncode == 0, done.stderr
    applied, verified, rolled_back = documents(done.stdout)
    assert applied["state"] == "applied"
    assert {one["tunable"]: one["after"] for one in applied["changes"]} == {
        f"sysctl:{KEY}": "0",
        f"sysctl:{OTHER}": "600",
    }
    assert not verified["drift"]
    assert rolled_back["transactions"][0]["state"] == "rolled-back"
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("1", "1"), "set back, and no file"
    assert not any(line.endswith(".conf") for line in lines), "a file would set the host's own at the next boot"
    assert f"advisor apply sysctl:{KEY}=0 'sysctl:{OTHER}<=600'" in done.stdout, "what sets a drifted value again"


def test_a_file_is_applied_by_its_path_and_rolled_back_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'name = "own"\ntitle = "O"\nsummary = "O"\nhelps-when = "A"\nhurts-when = "N"\nsources = ["a book"]\n'
        f'[[tunables]]\ntunable = "sysctl:{KEY}"\nvalue = "0"\nwhy = "B"\nhurts-when = "N"\nsources = ["a book"]\n'
    )
    script = (
        "advisor apply --yes ./own.toml --json; advisor rollback own --json; chmod 666 own.toml\nadvisor apply own.toml"
    )
    done = in_namespace(tmp_path, script)
    applied, rolled_back = documents(done.stdout)
    assert applied["profiles"] == ["own"]
    assert rolled_back["transactions"][0]["state"] == "rolled-back"
    assert done.returncode == 3
    assert "own.toml: not a file that only its owner can write to" in done.stderr


def test_an_empty_value_is_shown_as_such(tmp_path: Path) -> None:
    ports = "net.ipv4.ip_local_reserved_ports"
    done = in_namespace(
        tmp_path,
        f"""
        advisor apply --yes sysctl:{ports}=8080
        advisor rollback
        """,
    )
    assert done.returncode == 0, done.stderr
    assert f"sysctl:{ports}: (empty) → 8080" in done.stderr
    assert "8080 → (empty)" in done.stdout + done.stderr


@pytest.mark.parametrize(("option", "meant"), [("--trial", "--confirm-within"), ("--noop", "--dry-run")])
def test_an_option_of_another_tool_is_answered_with_ours(option: str, meant: str) -> None:
    call = [sys.executable, "-m", "advisor", "apply", "jumbo-frames", option]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert f"No such option: {option}. Did you mean {meant}?" in done.stderr


def test_a_mistyped_tunable_is_not_explained(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "advisor", "explain"]
    wrong = subprocess.run([*call, "sysctl:net.core.rmem_maxx"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean sysctl:net.core.rmem_max" in wrong.stderr
    # One that a host could have is explained, and that this one does not.
    (tmp_path / "proc/sys/vm").mkdir(parents=True)
    absent = [*call, "sysctl:vm.swappiness", "--root", str(tmp_path)]
    done = subprocess.run(absent, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Not known of the captured host: ")


def test_a_key_that_is_gone_is_explained_though_the_host_lacks_it(tmp_path: Path) -> None:
    done = call_inside(
        "explain", "net.ipv4.tcp_tw_recycle", "--root", str(make_tree(tmp_path, {"/proc/uptime": "1 1"}))
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "is gone since Linux 4.12" in " ".join(done.stdout.split())


@pytest.mark.parametrize(("key", "is_said"), [("swappiness", True), ("dirty_ratio", False)])
def test_who_has_the_last_word_on_a_captured_host_is_explained(tmp_path: Path, key: str, is_said: bool) -> None:
    files = {"/proc/sys/vm/swappiness": "60\n", "/etc/rc.local": f"#!/bin/sh\nsysctl -w vm.{key}=7\n"}
    done = call_inside("explain", "vm.swappiness", "--root", str(make_tree(tmp_path, files)))
    assert (done.returncode, done.stderr) == (0, "")
    assert ("/etc/rc.local:2 sets 7" in " ".join(done.stdout.split())) is is_said
