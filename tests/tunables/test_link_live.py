"""Links' values set, read back and restored in a network namespace, judged by ethtool, ip, tc and sysfs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import cases, read_cases
from tests.running import network_namespace
from tests.tunables.form_shell import SHELLS

DATA = read_cases(__file__)

CASES = cases(__file__)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

STATE = CASES["STATE"]
VALUES = CASES["VALUES"]


class Namespace:
    def __init__(self, name: str, store: Path) -> None:
        self.name = name
        self.store = store

    def call(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        argv = ["ip", "netns", "exec", self.name, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=check, timeout=120)

    def out(self, line: str) -> str:
        return self.call("sh", "-c", line).stdout

    def ours(self, *words: str, code: int = 0) -> str:
        done = self.call(sys.executable, "-m", "tests.transaction.live", str(self.store), *words, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def apply(self, values: dict[str, str], *, code: int = 0) -> str:
        return self.ours("apply", *(f"{name}={value}" for name, value in values.items()), code=code)

    def script(self, shell: list[str]) -> subprocess.CompletedProcess[str]:
        path = sorted(self.store.glob("transactions/*"))[-1] / "rollback.sh"
        return self.call(*shell, str(path), "--any-host", check=False)

    def state(self) -> list[str]:
        return self.out(STATE).splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    one = Namespace(f"advisorlink{os.getpid()}", tmp_path_factory.mktemp("live") / "state")
    with network_namespace(one.name):
        queues = "numtxqueues 4 numrxqueues 4"
        one.out(f"ip link add a0 {queues} type veth peer name b0 {queues}")
        for link in ("lo", "a0", "b0"):
            one.out(f"ip link set {link} up")
        one.out("echo 1 > /sys/class/net/a0/queues/rx-3/rps_cpus")
        yield one


@pytest.fixture
def namespace(built: Namespace, tmp_path: Path) -> Namespace:
    return Namespace(built.name, tmp_path / "state")


def judge(namespace: Namespace) -> None:
    """Whether `VALUES` are active, by other tools than advisor."""
    channels = namespace.out("ethtool -l a0").partition("Current hardware settings")[2]
    assert channels.split()[1:5] == ["RX:", "2", "TX:", "2"]
    features = namespace.out("ethtool -k a0")
    assert "tx-checksum-ip-generic: off\n" in features
    assert "tx-tcp-segmentation: off [requested on]\n" in features, "what hangs on it went off along with it"
    assert "generic-receive-offload: on\n" in features
    (link,) = json.loads(namespace.out("ip -j -d link show a0"))
    assert (link["txqlen"], link["qdisc"]) == (555, "pfifo")
    (qdisc,) = json.loads(namespace.out("tc -j qdisc show dev a0"))
    assert (qdisc["kind"], qdisc["root"], qdisc["options"]) == ("pfifo", True, {"limit": 555})
    queues = "/sys/class/net/a0/queues"
    found = namespace.out(f"cat {queues}/rx-0/rps_cpus {queues}/rx-1/rps_flow_cnt {queues}/tx-1/xps_cpus")
    assert [line.lstrip("0,") for line in found.split()] == ["3", "512", "2"]


def test_every_kind_goes_in_and_out_without_a_trace(namespace: Namespace, tmp_path: Path) -> None:
    before = namespace.state()
    namespace.apply(VALUES)
    judge(namespace)
    applied = namespace.state()
    assert "nothing of this profile applies here" in namespace.apply(VALUES, code=3)
    # The script reaches no driver where it was given a tree to work on.
    (script,) = namespace.store.glob("transactions/*/rollback.sh")
    done = namespace.call("dash", str(script), "--any-host", "--root", str(tmp_path), check=False)
    assert (done.returncode, namespace.state()) == (5, applied)
    said = namespace.ours("rollback")
    assert namespace.state() == before
    # It belonged to a queue that was gone in between.
    assert "link:a0:rps.rx-3 restored" in said
    shellcheck = Path(sys.executable).with_name("shellcheck")
    checked = subprocess.run([str(shellcheck), "--shell=sh", script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_puts_all_back(namespace: Namespace, shell: list[str]) -> None:
    before = namespace.state()
    namespace.apply(VALUES)
    done = namespace.script(shell)
    assert done.returncode == 0, done.stdout + done.stderr
    assert namespace.state() == before
    assert all(f"restored  {name}: " in done.stdout for name in VALUES)
    again = namespace.script(shell)
    assert (again.returncode, "restored" in again.stdout) == (3, False)


def test_what_somebody_else_set_up_is_left_alone(namespace: Namespace) -> None:
    namespace.out("tc qdisc add dev b0 root tbf rate 1gbit burst 64k latency 50ms")
    before = namespace.state()
    said = namespace.apply({"link:b0:qdisc": "pfifo"}, code=3)
    assert "could not be restored" in said
    assert namespace.state() == before
    namespace.out("tc qdisc del dev b0 root")


IOCTL = DATA["IOCTL"]


def test_where_the_kernel_is_too_old_for_netlink_the_ioctl_does_the_same(namespace: Namespace) -> None:
    done = namespace.call(sys.executable, "-c", IOCTL)
    assert done.stdout == "Invalid argument\n"
    assert "RX:\t\t3\n" in namespace.out("ethtool -l a0")
    assert "tx-tcp-segmentation: off\n" in namespace.out("ethtool -k a0")
    namespace.call("ethtool", "-L", "a0", "rx", "4")
    namespace.call("ethtool", "-K", "a0", "tx-tcp-segmentation", "on")
    namespace.out("echo 1 > /sys/class/net/a0/queues/rx-3/rps_cpus")


SNAPSHOT = CASES["SNAPSHOT"]


def test_a_snapshot_answers_what_the_host_did(namespace: Namespace, tmp_path: Path) -> None:
    names = (*VALUES, "link:a0:feature.loopback", "link:a0:coalesce.rx-usecs", "link:a0:pause.rx", "link:a0:ring.rx")
    done = namespace.call(sys.executable, "-c", SNAPSHOT, str(tmp_path / "a.snapshot"), *names)
    *lines, channels, feature = done.stdout.splitlines()
    assert [line.split("|")[1] for line in lines] == ["True"] * len(names), done.stdout
    assert lines[0].split("|")[2] == "4"
    assert channels == "its driver allows at most 4"
    assert feature.startswith("it is [fixed]")
