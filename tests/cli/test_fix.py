"""``advisor fix`` on a tree, and through a transaction in a namespace of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from advisor import operations
from advisor.cli.fix import fix
from advisor.errors import PermissionDeniedError
from advisor.host import Host, tree_host
from tests.cli.inside import call_inside
from tests.cli.test_values import documents, in_namespace
from tests.schemas import judge
from tests.transaction import system
from tests.trees import make_tree

ADVISOR = [sys.executable, "-m", "advisor"]
AS_ROOT = f"sudo {sys.executable} -m advisor"
DOUBTFUL = {
    "/sys/block/vda/size": "1000\n",
    "/sys/block/vda/queue/rotational": "1\n",
    "/sys/devices/virtual/dmi/id/sys_vendor": "QEMU\n",
    "/proc/cpuinfo": "processor : 0\nflags : fpu hypervisor\n",
}
VMSTAT = "nr_dirty 0\npgsteal_kswapd 100000\npgsteal_direct 50000\n"


def tree(where: Path) -> Path:
    files = {
        "/proc/sys/kernel/hostname": "node1\n",
        "/proc/sys/vm/min_free_kbytes": "67584\n",
        "/proc/meminfo": "MemTotal:       65536000 kB\nMemAvailable:   60000000 kB\n",
        "/proc/vmstat": VMSTAT,
    }
    return make_tree(where / "root", {**system.FILES, **files})


def call(*words: str) -> subprocess.CompletedProcess[str]:
    return call_inside(*words, NO_COLOR=1, COLUMNS=100)


def test_the_plan_of_a_finding_on_a_captured_host(tmp_path: Path) -> None:
    done = call("fix", "vm.reclaim-stalls", "--root", str(tree(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert "sysctl:vm.min_free_kbytes  67584 → " in done.stdout
    assert "Allocations wait for memory to be reclaimed" in done.stdout
    assert "advisor apply 'sysctl:vm.min_free_kbytes>=" in done.stdout
    document = judge(call("fix", "--all-safe", "--root", str(tmp_path / "root"), "--json").stdout)
    assert [one["id"] for one in document["findings"]] == ["vm.reclaim-stalls"]
    assert document["plan"]["changes"][0]["tunable"] == "sysctl:vm.min_free_kbytes"
    assert document["transaction"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [((), "expected findings or --all-safe"), (("no.such",), "no finding"), (("a", "--all-safe"), "expected findings")],
)
def test_a_call_that_is_wrong(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = call("fix", *words, "--root", str(tree(tmp_path)))
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_values_that_a_line_overrides_are_to_be_applied_after_the_step(tmp_path: Path) -> None:
    root = tree(tmp_path)
    make_tree(root, {"/etc/sysctl.d/99-site.conf": "net.ipv4.tcp_sack = 0\n", "/proc/sys/net/ipv4/tcp_sack": "0\n"})
    done = call("fix", "advice.tcp-sack-off", "--root", str(root))
    assert done.returncode == 3, done.stdout
    assert done.stdout.endswith("\n  advisor apply sysctl:net.ipv4.tcp_sack=1\n")


def test_a_doubtful_value_is_not_set_by_yes_alone(tmp_path: Path) -> None:
    root = tree(tmp_path)
    make_tree(root, DOUBTFUL)
    asked = call("fix", "disks.rotation-doubtful", "--root", str(root))
    assert "block:vda:rotational  1 \u2192 0" in asked.stdout, asked.stdout + asked.stderr
    done = call("fix", "disks.rotation-doubtful", "--yes", "--root", str(root))
    assert "block:vda:rotational=0: --yes does not decide that" in " ".join(done.stdout.split())
    assert "advisor itself has nothing to set." not in done.stdout
    assert "    advisor fix disks.rotation-doubtful\n" in done.stdout
    assert "    advisor apply block:vda:rotational=0\n" in done.stdout
    assert done.returncode == 3


def test_a_finding_prints_the_command_that_fix_runs() -> None:
    lab = str(Path(__file__).parents[2] / "docs/examples/lab.tar.gz")
    for identity in ("buffers.below-llt-window", "buffers.below-profile", "llt.mtu-fragments", "llt.port-not-reserved"):
        found = judge(call("explain", identity, "--snapshot", lab, "--json").stdout)
        first = found["findings"][0]["commands"][0]
        plan = judge(call("fix", identity, "--snapshot", lab, "--json").stdout)["plan"]
        words = shlex.split(first)
        alone = judge(call("plan", *words[2:], "--snapshot", lab, "--json").stdout)
        assert words[1] in ("apply", "plan")
        assert [(one["tunable"], one["after"]) for one in plan["changes"]] == [
            (one["tunable"], one["after"]) for one in alone["changes"]
        ]


def test_another_user_gets_the_call_for_root_where_a_decision_is_missing_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    host = doubtful_host(tmp_path)
    monkeypatch.setattr(operations, "open_host", lambda *_: host)
    name = "disks.rotation-doubtful"
    with pytest.raises(PermissionDeniedError) as refused:
        fix([name], yes=True)
    assert "--yes does not decide that" in capsys.readouterr().out
    assert refused.value.hint == f"{AS_ROOT} fix {name}"
    with pytest.raises(PermissionDeniedError) as refused:
        fix([name], runtime_only=True, workload="oltp")
    assert refused.value.hint == f"{AS_ROOT} fix {name} --runtime-only --workload oltp"
    with pytest.raises(PermissionDeniedError):
        fix([name], yes=True, as_json=True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert fix([name], yes=True) == 3


def doubtful_host(where: Path) -> Host:
    """A live host with a virtual disk that says that it rotates."""
    root = tree(where)
    make_tree(root, DOUBTFUL)
    host = tree_host(str(root))
    host.is_live = True
    return host


BAD = "sysctl -q -w net.ipv4.tcp_sack=0; echo net.ipv4.tcp_sack=0 > /etc/sysctl.d/50-site.conf\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
def test_a_finding_is_fixed_by_a_transaction_and_is_gone(tmp_path: Path) -> None:
    script = f"""{BAD}
    advisor fix advice.tcp-sack-off </dev/null || echo "code $?"
    advisor fix advice.tcp-sack-off --yes
    cat /proc/sys/net/ipv4/tcp_sack
    advisor scan --json
    advisor rollback --json
    cat /proc/sys/net/ipv4/tcp_sack
    """
    done = in_namespace(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert "code 2" in done.stdout
    assert "--yes" in done.stderr, "no terminal for the prompt"
    assert "Manual steps, in this order" in done.stdout
    assert "advisor verify 0001" in done.stdout
    assert "advisor prove sysctl:net.ipv4.tcp_sack=1 --target DIR" in done.stdout
    _scan, rolled_back = documents(done.stdout)
    assert rolled_back["transactions"][0]["profiles"] == ["set-net-ipv4-tcp-sack"]
    lines = done.stdout.splitlines()
    assert [line for line in lines if line in ("0", "1")] == ["1", "0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
def test_another_user_gets_the_call_for_root(open_path: Path, as_nobody: tuple[str, ...]) -> None:
    call_as_nobody = shlex.join([*as_nobody, *ADVISOR])
    (open_path / "state").mkdir(mode=0o777)
    script = f"""{BAD}
    for words in "" "--yes" "--yes --json"; do
        {call_as_nobody} fix advice.tcp-sack-off $words </dev/null && echo "code 0" || echo "code $?"
    done
    cat /proc/sys/net/ipv4/tcp_sack
    """
    done = in_namespace(open_path, script)
    assert [line for line in done.stdout.splitlines() if line.startswith("code")] == ["code 6"] * 3
    assert done.stdout.splitlines()[-1] == "0"
    assert f"hint: {AS_ROOT} fix advice.tcp-sack-off\n" in done.stderr
    assert f"hint: {AS_ROOT} fix advice.tcp-sack-off --yes\n" in done.stderr
    (document,) = documents(done.stdout)
    assert document["error"]["hint"] == f"{AS_ROOT} fix advice.tcp-sack-off --yes --json"
