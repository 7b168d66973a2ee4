"""The verbs for other programs: the same records and documents as the commands give, and nothing printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import advisor
from advisor import operations as api
from advisor.errors import PermissionDeniedError, UsageError
from tests.running import run_text
from tests.trees import make_tree

ROOT = Path(__file__).parents[1]
HOST = {
    "proc/sys/net/core/rmem_max": "212992\n",
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "proc/meminfo": "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB\n",
}


def command(*words: str | Path) -> object:
    done = run_text(
        [sys.executable, "-m", "advisor", *map(str, words), "--json"], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    return json.loads(done.stdout)


def test_a_captured_host_is_judged_as_the_commands_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, HOST)
    host = api.open_host(root)
    own, printed = api.document(api.scan(host)), command("scan", "--root", root)
    assert isinstance(printed, dict)
    assert own.pop("scanned_at")[:11] == printed.pop("scanned_at")[:11]
    assert own == printed
    assert api.document(api.plan("socket-buffers-8m", host=host)) == command(
        "plan", "socket-buffers-8m", "--root", root
    )
    advice = api.recommend(host, workload="oltp")
    assert api.document(advice) == command("recommend", "--workload", "oltp", "--root", root)
    assert capsys.readouterr() == ("", "")


def test_errors_are_those_of_the_commands(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        api.plan("no-such-profile", host=api.open_host(make_tree(tmp_path, HOST)))
    assert (raised.value.exit_code, bool(raised.value.hint)) == (2, True)
    with pytest.raises(TypeError):
        api.document(object())


def test_what_changes_a_host_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for verb in (lambda: api.apply("socket-buffers-8m"), api.confirm, api.rollback):
        with pytest.raises(PermissionDeniedError):
            verb()


PROGRAM = """
import sys
import advisor
from advisor import api

asked = []
done = api.apply("jumbo-frames", settings={"links": "v0"}, runtime_only=True, confirm_within=0,
                 agree=lambda plan: asked.append(plan) or True)
assert [plan.profiles for plan in asked] == [("jumbo-frames",)]
mtu = lambda: open("/sys/class/net/v0/mtu").read().strip()
assert (done.record.state, mtu()) == ("applied", "9000")
assert api.document(done)["schema"] == "advisor.transaction/1"
assert api.verify().is_as_set
assert api.apply("jumbo-frames", settings={"links": "v0"}, runtime_only=True).record is None
((record, outcomes),) = api.rollback()
assert (mtu(), [one.state for one in outcomes]) == ("1500", ["restored"] * len(outcomes))
assert api.document(api.status())["in_force"] == []
"""


def run_in_namespace(program: str, place: Path, link: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a network namespace with one pair of links, with its own state."""
    make = f"mount -t sysfs none /sys && ip link add {link} type veth peer name v1"
    make += f" && ip link set lo up && ip link set {link} up && ip link set v1 up"
    return run_text(
        ["unshare", "--net", "--mount", "sh", "-c", f'{make} && exec "$@"', "sh", sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "ADVISOR_STATE_DIR": str(place / "state")},
        cwd=place,
    )


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="makes a network namespace: needs root")
def test_a_program_applies_verifies_and_puts_back(tmp_path: Path) -> None:
    done = run_in_namespace(PROGRAM, tmp_path, link="v0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="makes a network namespace: needs root")
def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/fixtures/storage-host-root.tar.gz", tmp_path / "node1.tar.gz")
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text(), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        done = run_in_namespace(example, tmp_path, link="eth1")
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_the_package_itself_has_the_verbs_and_loads_them_late() -> None:
    code = (
        "import sys, advisor; assert 'advisor.api' not in sys.modules; "
        "from advisor import api, cli; "
        "print(*(name for name in ('apply', 'confirm', 'document', 'open_host', 'plan', 'rollback', 'rollback_script', "
        "'scan', 'status', 'verify') if getattr(advisor, name) is not getattr(api, name)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = advisor.nothing
