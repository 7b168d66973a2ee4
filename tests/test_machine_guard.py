"""What a test leaves on the machine fails its module; what others change there meanwhile is shown and fails nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.machine_guard import blamed_names
from tests.running import run_text

ROOT = Path(__file__).parents[1]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
NOTICE = "changed on this machine meanwhile"
LEAVES = {
    "link left0": "subprocess.run(['ip', 'link', 'add', 'left0', 'type', 'veth'], check=True)",
    "link there0": "subprocess.run(['ip', 'link', 'set', 'there0', 'mtu', '1400'], check=True)",
    "/proc/sys/net/ipv4/tcp_sack": "Path('/proc/sys/net/ipv4/tcp_sack').write_text('0')",
    "/var/lib/advisor/left": "Path('/var/lib/advisor/left').write_text('')",
}
OTHER = "ip link add cni0 type veth peer name cni1; echo 0 > /proc/sys/net/ipv4/tcp_dsack"
OF_OTHER = {"link cni0", "link cni1", "/proc/sys/net/ipv4/tcp_dsack"}


def run_session(where: Path, bodies: list[str]) -> subprocess.CompletedProcess[str]:
    """A session of modules of one test, in a network namespace in place of the machine; meanwhile, OTHER runs."""
    for number, body in enumerate(bodies):
        (where / f"test_{number}.py").write_text(
            "import os, subprocess\nfrom pathlib import Path\n\n\n"
            f"def test_it():\n    subprocess.run(os.environ['OTHER'], shell=True, check=True)\n    {body}\n"
        )
    pytest_words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.machine_guard", "-p", "no:cacheprovider"]
    own = "mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/advisor"
    inside = f'{own} && ip link add there0 type veth peer name there1 && exec "$@"'
    return run_text(
        ["unshare", "--net", "--mount", "sh", "-c", inside, "sh", *pytest_words, "-c", "/dev/null", str(where)],
        cwd=ROOT,
        env={**os.environ, "OTHER": f"[ -e /sys/class/net/cni0 ] || {{ {OTHER}; }}"},
    )


def shown_names(said: str) -> set[str]:
    """Those in the section at the end."""
    return {line for line in said.partition(NOTICE)[2].splitlines() if line.startswith(("link ", "/"))}


@needs_root
def test_what_a_test_leaves_fails(tmp_path: Path) -> None:
    done = run_session(tmp_path, [*LEAVES.values(), "pass"])
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{len(LEAVES) + 1} passed, {len(LEAVES)} errors" in done.stdout
    assert {name for name in LEAVES if f"{{'{name}'}}" in done.stdout} == {*LEAVES}, done.stdout
    # The peer is a link that no test named.
    assert shown_names(done.stdout) == {*OF_OTHER, "link veth0"}


@needs_root
def test_what_another_program_changes_is_shown_and_fails_nothing(tmp_path: Path) -> None:
    done = run_session(tmp_path, ["pass", "pass"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown_names(done.stdout) == OF_OTHER


@pytest.mark.parametrize(
    ("name", "text", "is_ours"),
    [
        ("link ifb0", "ip link add if0 type ifb", True),
        ("link veth12", "ip link add v0 type veth", False),
        ("link v0", "ip link add v0x type veth", False),
        ("/proc/irq/25/smp_affinity_list", "irq:25:affinity", True),
        ("/proc/irq/25/smp_affinity_list", "irq:250:affinity", False),
        ("/sys/block/sda/queue/scheduler", "sda", True),
        ("/sys/block/sdb/queue/scheduler", "sda", False),
        ("/proc/sys/net/core/rmem_max", "profile = 'socket-buffers-8m'", True),
        ("/proc/sys/net/core/rmem_max", "from tests.transaction.system import build", True),
        ("/proc/sys/net/core/rmem_max", "rmem_maximum", False),
    ],
)
def test_who_names_it(tmp_path: Path, name: str, text: str, is_ours: bool) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(text)
    assert (blamed_names({name}, test) == {name}) == is_ours
