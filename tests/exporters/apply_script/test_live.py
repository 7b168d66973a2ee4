"""The script on a real kernel: links and sysctls of a network namespace, its watchdog, peers that answer or not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import read_cases
from tests.exporters.apply_script.stage import SHELLS, Answer, answer_of
from tests.running import network_namespace
from tests.transaction.test_stacked_links import Namespace
from tests.trees import make_command
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

MAKE = """
import sys
from advisor.exporters.apply_script import transaction_script
from tests.transaction.live import made_plan

plan = made_plan([tuple(pair.split("=", 1)) for pair in sys.argv[1:]])
name = open("/proc/sys/kernel/hostname").read().strip()
sys.stdout.write(transaction_script(plan, machine_id=plan.machine_id, hostname=name))
"""


class Place(Namespace):
    """A namespace with a pair of links, one below a bridge."""

    def __init__(self, name: str, where: Path) -> None:
        super().__init__(name, where / "state")
        self.where = where
        self.programs = where / "programs"
        self.programs.mkdir()
        self.has_no_ping = False

    def make(self, *pairs: str) -> None:
        words = ["ip", "netns", "exec", self.name, sys.executable, "-c", MAKE, *pairs]
        done = subprocess.run(words, capture_output=True, check=True)
        (self.where / "apply.sh").write_bytes(done.stdout)

    def call(self, *verb: str, under: list[str] = SHELLS[0]) -> Answer:
        """With our programs before the system's; ip-netns(8) gives each command its own mounts."""
        own = 'mount --bind "$0" /usr/local/bin && exec "$@"'
        if self.has_no_ping:
            own = f"for one in /usr/bin/ping /bin/ping; do [ ! -f $one ] || mount --bind /dev/null $one; done; {own}"
        words = ["ip", "netns", "exec", self.name, "sh", "-c", own, str(self.programs)]
        done = subprocess.run(
            [*words, *under, str(self.where / "apply.sh"), *verb],
            capture_output=True,
            env={"ADVISOR_STATE_DIR": str(self.store), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            timeout=60,
            check=False,
        )
        return answer_of(done.returncode, done.stdout, done.stderr)

    def sysctl(self, key: str) -> str:
        words = ["ip", "netns", "exec", self.name, "cat", f"/proc/sys/{key}"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    name = f"script{os.getpid()}"
    with network_namespace(name):
        one = Place(name, tmp_path)
        one.ip("link add v0 type veth peer name v1")
        one.ip("link add b0 type bridge")
        one.ip("link set v1 master b0")
        # A bridge makes its own address seconds later, whatever is done.
        one.ip("link set b0 addrgenmode none")
        for link in ("lo", "v0", "v1", "b0"):
            one.ip(f"link set {link} up")
        one.ip("address add 192.0.2.1/24 dev v0")
        one.ip("address add 2001:db8::1/64 dev v0 nodad")
        one.ip("route add 198.51.100.0/24 via 192.0.2.9")
        yield one


@pytest.mark.repeats(1)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_links_and_sysctls_change_and_come_back(place: Place, shell: list[str]) -> None:
    before = place.settled(), place.sysctl("net/ipv4/tcp_keepalive_time")
    place.make("link:v0:mtu=4000", "link:v1:mtu=4000", "sysctl:net.ipv4.tcp_keepalive_time=600")
    assert place.call("check", under=shell).state == "ready"
    done = place.call("apply", "--confirm-within", "0", under=shell)
    assert (done.code, done.state) == (0, "applied"), done
    assert (place.mtus()["v0"], place.sysctl("net/ipv4/tcp_keepalive_time")) == (4000, "600")
    assert place.call("apply", under=shell).state == "unchanged"
    assert place.call("verify", under=shell).code == 0
    place.ip("link set v0 mtu 1400")
    assert place.call("verify", under=shell).states()["link:v0:mtu"] == "drifted"
    place.ip("link set v0 mtu 4000")
    assert place.call("rollback", under=shell).code == 0
    assert (place.settled(), place.sysctl("net/ipv4/tcp_keepalive_time")) == before


def test_what_a_small_mtu_takes_comes_back_and_advisor_can_do_it(place: Place) -> None:
    before = place.settled()
    place.make("link:v0:mtu=1200")
    assert place.call("apply", "--confirm-within", "0").code == 0
    assert place.settled() != before
    place.run("rollback")
    assert place.settled() == before


def test_a_value_that_the_kernel_refuses_takes_the_links_back(place: Place) -> None:
    before = place.settled()
    place.make("link:v0:mtu=4000", "sysctl:net.ipv4.tcp_congestion_control=reno")
    script = place.where / "apply.sh"
    script.write_text(script.read_text().replace("\twrite\treno\t", "\twrite\tnonsense\t"))
    done = place.call("apply")
    assert (done.code, done.state) == (4, "rolled-back"), done
    assert "No such file or directory" in done.last["message"], "the kernel's own words"
    assert place.settled() == before


def test_nobody_confirms_and_it_goes_back(place: Place) -> None:
    before = place.settled()
    place.make("link:v0:mtu=4000")
    done = place.call("apply", "--confirm-within", "1")
    assert (done.state, done.last["deadline"]) == ("awaiting-confirmation", 1)
    until(lambda: place.call("status").state == "rolled-back")
    assert place.settled() == before


DATA = read_cases(__file__)

CARRIES_1500 = DATA["CARRIES_1500"]


@pytest.mark.thorough
def test_a_peer_that_does_not_carry_the_new_size_stops_it(place: Place) -> None:
    make_command(place.programs, "ping", CARRIES_1500)
    before = place.settled()
    place.make("link:v0:mtu=4000")
    silent = place.call("apply", "--peer", "192.0.2.3")
    assert (silent.code, silent.state) == (3, "refused")
    assert "192.0.2.3 does not answer; nothing was changed" in silent.last["message"]
    done = place.call("apply", "--peer", "192.0.2.2")
    assert (done.code, done.state) == (4, "rolled-back"), done
    assert "192.0.2.2 answers, but not to packets of 4000 bytes" in done.last["message"]
    assert place.settled() == before
    place.make("link:v0:mtu=1400")
    done = place.call("apply", "--peer", "192.0.2.2", "--confirm-within", "0")
    assert done.code == 0
    assert "192.0.2.2 answers again, at 1400 bytes" in done.said


@pytest.mark.parametrize("ping", [None, "case $* in *-M*) echo 'ping: invalid option -- M' >&2; exit 1 ;; esac"])
def test_what_cannot_be_asked_is_unknown_and_no_failure(place: Place, ping: str | None) -> None:
    place.has_no_ping = ping is None
    if ping is not None:
        make_command(place.programs, "ping", ping)
    place.make("link:v0:mtu=4000")
    done = place.call("apply", "--peer", "192.0.2.2", "--confirm-within", "0")
    assert (done.code, done.state) == (0, "applied"), done
    assert "unknown " in done.said


def test_a_peer_where_no_link_changes_is_refused(place: Place) -> None:
    place.make("sysctl:net.ipv4.tcp_keepalive_time=600")
    assert place.call("apply", "--peer", "192.0.2.2").code == 3
