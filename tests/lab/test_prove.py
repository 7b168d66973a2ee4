"""``advisor prove`` on a real kernel: one true gain with a known cause, one honest "not shown", nothing left behind.

The gain is the articles' own: storage over a network at 1,500 against 9,000 bytes of MTU. Emulation gives ratios only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import cases

from .guest import Machine, Result

CASES = cases(__file__)

pytestmark = pytest.mark.alone

FAR = "sh /src/tests/lab/guest/far-storage"


@pytest.fixture(scope="module")
def storage(guest: Machine) -> Iterator[Machine]:
    guest.run(["lab-setup", "md"], timeout=240).check()
    guest.run(f"rm -rf /var/lib/advisor; {FAR} up", timeout=180).check()
    yield guest
    guest.run(f"{FAR} down; rm -rf /var/lib/advisor", timeout=120)
    guest.run(["lab-setup", "no-md"], timeout=120).check()


def prove(guest: Machine, *words: str, call: str = "prove", timeout: float = 900) -> tuple[Result, dict[str, Any]]:
    done = guest.run(["advisor", call, *words, "--json"], timeout=timeout)
    assert done.stdout.startswith("{"), done.stderr
    return done, json.loads(done.stdout)


def expected_exit_code(proof: dict[str, Any]) -> int:
    """0 for a gain as large as the margin, whose guardrails are shown to stay within their limits."""
    return 0 if (proof["verdict"], proof["cost"], proof["below_margin"]) == ("gain", "none", False) else 1


def left_behind(guest: Machine) -> str:
    """Scratch files, fio processes, and the link's MTU: what a session could leave."""
    command = "ls -A /srv/far /srv/node0 | grep -v lost+found; pgrep fio; cat /sys/class/net/near0/mtu"
    return guest.run(command, timeout=30).stdout


@pytest.mark.thorough  # a boot of its own and eight pairs on an emulated machine
def test_jumbo_frames_are_a_gain_on_storage_over_a_network(storage: Machine) -> None:
    # Real links are given seconds to come up again after each toggle; these two ends are one kernel's.
    profile = "/run/jumbo-frames.toml"
    quicken = f"sed 's/^settle-seconds = 5.0$/settle-seconds = 0.5/' /src/profiles/jumbo-frames.toml >{profile}"
    storage.run(f"{quicken} && grep -q '= 0.5$' {profile}", timeout=30).check()
    before = left_behind(storage)
    # Another machine's load can spoil one session (it is then called invalid or inconclusive), hardly two.
    for _ in range(2):
        done, proof = prove(
            storage,
            *(profile, "--set", "links=near0", "--target", "/srv/far", "--allow-link-flap"),
            *("--workload", "iometer.maxtp-r100", "--reconnect", f"{FAR} reconnect", "--quick", "--dead-time", "1"),
        )
        (claim,) = proof["workloads"]
        print(f"MTU 1500 → 9000 over NVMe/TCP: {proof['verdict']}, ratio {claim['ratio']}, {claim['ci95']}")
        if proof["verdict"].startswith("gain"):
            break
    assert proof["schema"] == "advisor.proof/1"
    assert proof["verdict"] in ("gain", "gain-with-cost"), proof["reasons"]
    assert claim["ci95"][0] > 1
    assert claim["pairs"] == 8, "judged at the look that was fixed beforehand"
    assert done.rc == expected_exit_code(proof)
    assert left_behind(storage) == before


# What the kernel itself says about the values that the arms set, and LLT's own tool of its one.
STATE = CASES["STATE"]


@pytest.mark.thorough  # 12 blocks of three arms
def test_arms_find_the_one_that_helps_and_leave_the_host_as_it_was(storage: Machine) -> None:
    """Jumbo frames are a gain; LLT's high water mark carries no block of this storage, so it must not be one."""
    storage.run(["lab-setup", "llt"], timeout=60).check()
    try:
        before, files = storage.run(STATE, timeout=30).check().stdout, left_behind(storage)
        for _ in range(2):  # another machine's load can spoil one session
            done, found = prove(
                storage,
                *("jumbo-frames", "llt-highwater-doubled", "--set", "links=near0", "--target", "/srv/far"),
                *("--workload", "iometer.maxtp-r100", "--reconnect", f"{FAR} reconnect", "--allow-link-flap"),
                *("--quick", "--dead-time", "1", "--svg", "/tmp/arms.svg"),
                call="prove-arms",
                timeout=1500,
            )
            calls = {one["arm"]: (one["verdict"], one["ratio"]) for one in found["workloads"]}
            print(f"arms over NVMe/TCP: {found['verdict']}, {calls}, {found['reasons']}")
            assert storage.run(STATE, timeout=30).check().stdout == before
            assert left_behind(storage) == files
            if found["verdict"] == "gain" and calls["jumbo-frames"][0] == "gain":
                break
        assert found["schema"] == "advisor.proof/1"
        assert calls["jumbo-frames"][0] == "gain"
        assert calls["llt-highwater-doubled"][0] != "gain"
        assert done.rc == 0
        assert storage.run("cat /tmp/arms.svg", timeout=30).stdout.startswith("<svg")
    finally:
        storage.run(["lab-setup", "no-llt"], timeout=60).check()


@pytest.mark.thorough
def test_a_kill_in_the_middle_is_put_back_by_the_next_run(storage: Machine) -> None:
    before = storage.run("sysctl -n kernel.numa_balancing; cat /proc/irq/*/smp_affinity_list", timeout=30).stdout
    started = "setsid advisor prove numa-pinning --target /srv/node0 --quick >/dev/null 2>/tmp/progress & "
    storage.run(
        started + "for i in $(seq 200); do grep -q '^pair 2' /tmp/progress && break; sleep 0.3; done", timeout=120
    )
    storage.run("pkill -KILL -f 'm advisor prov[e]'; pkill -KILL fio; true", timeout=30)
    done = storage.run(["advisor", "rollback"], timeout=60)
    assert done.rc == 0, done.stdout + done.stderr
    after = storage.run("sysctl -n kernel.numa_balancing; cat /proc/irq/*/smp_affinity_list", timeout=30).stdout
    assert after == before
    storage.run("rm -rf /srv/node0/.advisor* /srv/node0/advisor*", timeout=30)
