"""What apply and rollback owe their user, case by case, on a real kernel (docs/safety.md lists the promises).

The counts that are printed (``pytest -s``) say how many points, cuts and cases were tried.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator

import pytest

from tests.cases import cases

from . import road
from .guest import Machine, Result
from .road import out, profile, state
from .state import NEAR, STATE, changed

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

ENVIRONMENT = "PYTHONPATH=/src:/opt/advisor-deps PYTHONPYCACHEPREFIX=/var/cache/pycache"
FAULTS = f"env {ENVIRONMENT} python3 /src/tests/lab/guest/faults.py"
PROFILES = "/etc/advisor/profiles"

# One tunable of every kind, as a profile of this host's own.
KINDS = CASES["KINDS"]


def advisor(guest: Machine, line: str, code: int = 0) -> Result:
    return road.advisor(guest, *shlex.split(line), code=code)


def until(holds: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.5)


def mtu(guest: Machine, link: str = "eth0") -> int:
    return int(out(guest, f"cat /sys/class/net/{link}/mtu"))


@pytest.fixture(scope="module")
def host(guest: Machine) -> Iterator[Machine]:
    """LLT and a service; profiles of the host's own."""
    guest.run(["lab-setup", "service", "llt"], timeout=240).check()
    guest.run(f"rm -rf /var/lib/advisor; mkdir -p {PROFILES}", timeout=30).check()
    disk = out(guest, "lsblk --nodeps -n -o NAME,SERIAL | awk '$2 == \"LAB-N1-2\" { print $1 }'").strip()
    kinds = tuple((tunable.format(disk=disk), value, "") for tunable, value in KINDS)
    guest.put(f"{PROFILES}/every-kind.toml", profile("every-kind", kinds))
    guest.put(f"{PROFILES}/state-a.toml", profile("state-a", (("sysctl:vm.vfs_cache_pressure", "21", ""),)))
    guest.put(f"{PROFILES}/state-b.toml", profile("state-b", (("sysctl:vm.vfs_cache_pressure", "42", ""),)))
    guest.put("/run/states/near", NEAR)
    guest.put("/run/states/whole", STATE)
    yield guest
    guest.run(f"advisor rollback --all; rm -rf {PROFILES} /var/lib/advisor; rmdir /etc/advisor", timeout=60)
    guest.run("rm -rf /etc/systemd/system/demo-storage.service", timeout=30)
    guest.run(["lab-setup", "no-llt"], timeout=60).check()


def test_killed_at_every_moment_it_is_as_before(host: Machine) -> None:
    """SIGKILL just before and just after each line of the journal, with a tunable of every kind.

    An emulated machine takes minutes for all of them: every seventh, unless ADVISOR_LAB_EVERY says 1. Without a kernel
    of its own, tests/transaction/test_transaction.py goes through every single one.
    """
    every = int(os.environ.get("ADVISOR_LAB_EVERY", "7"))
    advisor(host, "apply every-kind --confirm-within 0 --yes")
    advisor(host, "verify")
    advisor(host, "rollback")
    words = "apply every-kind --confirm-within 0 --yes"
    done = host.run(f"{FAULTS} sweep /run/states {every} -- {words}", timeout=2400)
    print(done.stdout)
    assert done.rc == 0, done.stdout + done.stderr
    found = re.search(r"points (\d+) of (\d+), last run ended with 0, wrong 0", done.stdout)
    assert found, done.stdout
    print(f"{found[1]} of {found[2]} kill points × {len(KINDS)} kinds of tunable, {done.seconds:.0f} s")
    assert int(found[2]) > 2 * len(KINDS)


def journal_lines(guest: Machine, words: str) -> int:
    """How many moments there are: two for each line that a whole run writes."""
    advisor(guest, words)
    lines = int(out(guest, "cat $(ls -d /var/lib/advisor/transactions/* | tail -n 1)/journal | wc -l"))
    advisor(guest, "rollback")
    return 2 * lines


@pytest.mark.parametrize("phase", ["live values", "files", "waiting", "rolling back"])
def test_after_a_power_cut_the_next_boot_has_the_old_values_and_files(host: Machine, phase: str) -> None:
    """The machine goes off in each phase; never a mixture, and nobody has to do anything."""
    before = state(host)
    words = "apply jumbo-frames socket-buffers-8m --set links=eth0 --yes"
    if phase == "waiting":
        assert json.loads(advisor(host, f"{words} --confirm-within 600 --json").stdout)["state"] == (
            "awaiting-confirmation"
        )
        assert mtu(host) == 9000
        out(host, "sync")
    else:
        begin = words + " --confirm-within 0"
        moments = journal_lines(host, begin)
        if phase == "rolling back":
            advisor(host, begin)
            begin, point = "rollback", 3
        else:
            point = 8 if phase == "live values" else moments - 6
        host.run(f"setsid {FAULTS} stop {point} - -- {begin} >/dev/null 2>&1 &", timeout=30).check()
        until(lambda: "T" in host.run("ps -o stat= -C python3", timeout=30).stdout)
        assert state(host) != before, "the cut comes in between"
    host.power_cut()
    host.boot()
    assert changed(before, state(host)) == []
    said = json.loads(advisor(host, "status --json").stdout)
    assert said["transactions"][-1]["state"] == "rolled-back"
    assert "host" in said["transactions"][-1]["why_undone"]
    assert out(host, "systemctl list-unit-files 'advisor*' --no-legend | wc -l").strip() == "0"


def test_between_two_profiles_no_third_value_is_ever_seen(host: Machine) -> None:
    """A reader as fast as it can be, at least 1 kHz, while A gives way to B and back."""
    reader = (
        "import os,sys,time\n"
        "fd = os.open('/proc/sys/vm/vfs_cache_pressure', os.O_RDONLY)\n"
        "seen, count, end = {}, 0, time.monotonic() + float(sys.argv[1])\n"
        "while not os.path.exists('/run/stop-reader'):\n"
        "    for _ in range(100):\n"
        "        value = os.pread(fd, 20, 0).strip().decode(); seen[value] = seen.get(value, 0) + 1; count += 1\n"
        "print(count, time.monotonic() - end, *sorted(seen))\n"
    )
    advisor(host, "apply state-a --yes")
    host.put("/run/reader.py", reader)
    host.run("rm -f /run/stop-reader; setsid python3 /run/reader.py 0 > /run/seen 2>&1 &", timeout=30).check()
    advisor(host, "apply state-b --yes")
    assert out(host, "cat /proc/sys/vm/vfs_cache_pressure").strip() == "42"
    advisor(host, "rollback")
    out(host, "touch /run/stop-reader; for i in $(seq 50); do [ -s /run/seen ] && exit; sleep 0.2; done")
    count, seconds, *values = out(host, "cat /run/seen").split()
    print(f"{count} readings, {int(count) / float(seconds):.0f} in a second: {', '.join(values)}")
    assert values == ["21", "42"]
    assert int(count) / float(seconds) >= 1000
    advisor(host, "rollback --all")


STACK = CASES["STACK"]
STACKED = ("s0", "s1", "s2", "bond9", "bond9.5", "mac9", "team9", "team9.7")


def test_a_stack_of_links_rises_in_order_and_comes_down_in_order(host: Machine) -> None:
    """Two links, a bond, a VLAN, a macvlan; next to it a team with a VLAN."""
    out(host, STACK)
    try:
        until(lambda: "tentative" not in out(host, "ip -6 -o addr"))
        before = state(host)
        done = advisor(host, "apply jumbo-frames --set links=mac9,team9.7 --yes --confirm-within 0 --runtime-only")
        order = re.findall(r"^link:(\S+):mtu", done.stderr, re.MULTILINE)
        assert order.index("bond9") < order.index("bond9.5") < order.index("mac9"), order
        links = {one["ifname"]: one["mtu"] for one in json.loads(out(host, "ip -j link"))}
        assert order.index("team9") < order.index("team9.7"), order
        assert {links[name] for name in STACKED} == {9000}
        back = advisor(host, "rollback").stdout
        assert back.index("mac9") < back.index("bond9.5")
        assert state(host) == before
    finally:
        out(host, "; ".join(f"ip link del {name}" for name in reversed(STACKED)))


SSH = "ip netns exec peer ssh -i /root/.ssh/lab -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=5"


@pytest.fixture
def ssh(host: Machine) -> Iterator[Machine]:
    """The guest as reached over ssh from another namespace, whose end of the wire stays at 1500."""
    host.run(["lab-setup", "peer"], timeout=60).check()
    out(
        host,
        "mkdir -p /root/.ssh; [ -e /root/.ssh/lab ] || ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/lab;"
        "cp /root/.ssh/lab.pub /root/.ssh/authorized_keys; systemctl start ssh",
    )
    until(lambda: host.run(f"{SSH} 192.0.2.1 true", timeout=30).rc == 0)
    yield host
    out(host, "touch /run/stop-switch; sleep 1; systemctl stop ssh; rm -rf /root/.ssh; pkill -f '[s]sh -i'; true")
    host.run(["lab-setup", "no-peer"], timeout=60).check()


# A switch port that goes down for a frame size that it does not know: the session hangs, and no new one can be made.
SWITCH = CASES["SWITCH"]


def test_a_change_that_cuts_the_ssh_session_takes_itself_back(ssh: Machine) -> None:
    """Over ssh, the path is cut, the terminal dies; within the window ssh works again."""
    before = state(ssh)
    ssh.put("/run/switch.sh", SWITCH)
    out(ssh, "rm -f /run/stop-switch /run/was-cut; setsid sh /run/switch.sh >/dev/null 2>&1 &")
    command = f"{SSH} -tt 192.0.2.1 'advisor apply jumbo-frames --set links=eth0 --yes --confirm-within 6'"
    ssh.run(f"setsid {command} >/run/ssh.log 2>&1 &", timeout=30).check()
    until(lambda: ssh.run("test -e /run/was-cut", timeout=30).rc == 0)
    out(ssh, "pkill -KILL -f '[s]sh -i /root/.ssh/lab'")
    until(lambda: mtu(ssh) == 1500)
    until(lambda: ssh.run(f"{SSH} 192.0.2.1 true", timeout=30).rc == 0)
    out(ssh, "touch /run/stop-switch")
    until(lambda: json.loads(advisor(ssh, "status --json").stdout)["transactions"][-1]["state"] == "rolled-back")
    assert changed(before, state(ssh)) == []


def test_over_ssh_only_a_new_session_can_confirm(ssh: Machine) -> None:
    over = f"{SSH} 192.0.2.1"
    one = "advisor apply jumbo-frames --set links=eth0 --yes --confirm-within 120; advisor confirm"
    done = ssh.run(f"{over} '{one}'", timeout=120)
    assert done.rc == 3, done.stdout + done.stderr
    assert "reconnect and run" in done.stderr
    confirmed = ssh.run(f"{over} 'advisor confirm'", timeout=60)
    assert confirmed.rc == 0, confirmed.stdout + confirmed.stderr
    assert mtu(ssh) == 9000
    advisor(ssh, "rollback")
    assert mtu(ssh) == 1500


def test_a_peer_that_does_not_carry_it_stops_the_change(ssh: Machine) -> None:
    """The peer answers at 1500 before; at 9000 its link drops the packet in silence."""
    before = state(ssh)
    done = advisor(ssh, "apply jumbo-frames --set links=eth0 --peer 192.0.2.2 --yes", code=4)
    assert "192.0.2.2" in done.stderr
    assert "carries no more" in done.stderr or "vanish" in done.stderr, done.stderr
    assert "everything has been rolled back" in done.stderr
    assert state(ssh) == before
    out(ssh, "ip -n peer link set eth1 mtu 9000")
    advisor(ssh, "apply jumbo-frames --set links=eth0 --peer 192.0.2.2 --yes --confirm-within 0")
    advisor(ssh, "rollback")
    refused = advisor(ssh, "apply jumbo-frames --set links=eth0 --peer 192.0.2.9 --yes", code=3)
    assert "before anything was changed" in refused.stderr
    out(ssh, "ip -n peer link set eth1 mtu 1500")


@pytest.mark.parametrize("number", ["HUP", "KILL"])
def test_a_client_that_is_ended_while_it_waits_for_peers_leaves_nothing(host: Machine, number: str) -> None:
    """A hang-up and a kill in the middle: back without anybody."""
    before = state(host)
    host.run("mv /sbin/lltconfig /sbin/lltconfig.real", timeout=30).check()
    host.put(
        "/sbin/lltconfig", '#!/bin/sh\ncase $2 in rport*) sleep 77;; esac\nexec /sbin/lltconfig.real "$@"\n', 0o755
    )
    host.run("setsid advisor apply llt-highwater-doubled --yes >/dev/null 2>&1 &", timeout=30).check()
    until(lambda: " highwater = 2000" in host.run("lltconfig -F query", timeout=30).stdout)
    out(host, f"pkill -{number} -f 'm advisor appl[y]'; sleep 1; pkill -f 'sleep 7[7]'; true")
    out(host, "mv /sbin/lltconfig.real /sbin/lltconfig")
    until(lambda: state(host) == before)
