"""Links that have other names than they had, and other links with their names: every kind of value, by every way back,
judged by ``ip``, ``sysctl``, ``tc``, ``ethtool`` and sysfs on a real kernel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cases import cases
from tests.exporters.apply_script.stage import answer_of
from tests.exporters.apply_script.test_live import MAKE
from tests.running import network_namespace
from tests.transaction.veth import ADVISOR
from tests.tunables.form_shell import SHELLS
from tests.tunables.test_link_live import Namespace
from tests.waiting import until

CASES = cases(__file__)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

VALUES = CASES["VALUES"]
STATE = CASES["STATE"]
CHANGES = CASES["CHANGES"]
QUEUES = "numtxqueues 4 numrxqueues 4"
WAYS = ["command", *(" ".join(shell) for shell in SHELLS), "apply-script", "watchdog"]
THOROUGH_WAYS = {" ".join(shell) for shell in SHELLS[1:]}
NAMES = [("v0", "v2"), ("a.7", "b-c"), ("dev", "lo0")]


class Place(Namespace):
    """A namespace with two pairs of links; ``own`` is the one that is changed."""

    def __init__(self, where: Path, own: str, other: str) -> None:
        super().__init__(f"advisormark{os.getpid()}", where / "state")
        self.where, self.own, self.other = where, own, other

    def build(self) -> None:
        for one, peer in ((self.own, "p1"), (self.other, "p2")):
            self.out(f"ip link add name {one} {QUEUES} type veth peer name {peer} {QUEUES}")
            self.out(f"ip link set dev {one} addrgenmode none; ip link set dev {peer} addrgenmode none")
            self.out(f"ip link set dev {one} up; ip link set dev {peer} up")
        self.out("ip link set lo up")

    def values(self) -> dict[str, str]:
        key = self.own.replace(".", "/")
        return {name.format(key if "sysctl" in name else self.own): value for name, value in VALUES.items()}

    def change(self, what: str) -> None:
        self.out(CHANGES[what].format(own=self.own, other=self.other, queues=QUEUES))

    def state(self) -> list[str]:
        links = json.loads(self.out("ip -j link show"))
        mtus = [f"{one['ifindex']} {one['mtu']} {one['txqlen']}" for one in links if "txqlen" in one]
        return [*mtus, *sorted(self.out(STATE).splitlines())]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        paths = {"ADVISOR_STATE_DIR": str(self.store), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "COLUMNS": "300"}
        argv = ["ip", "netns", "exec", self.name, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, env=paths)

    def put_in(self, values: Mapping[str, str], way: str) -> None:
        pairs = [f"{name}={value}" for name, value in values.items()]
        if way == "apply-script":
            script = self.call(sys.executable, "-c", MAKE, *pairs).stdout
            (self.where / "apply.sh").write_text(script)
            done = self.verb("apply", "--confirm-within", "0")
            assert done[0] == 0, done
        else:
            window = ["--confirm", "90"] if way == "watchdog" else []
            self.ours("apply", *window, *pairs)

    def verb(self, *words: str) -> tuple[int, str]:
        """Of the script that applies."""
        done = self.run("sh", str(self.where / "apply.sh"), *words)
        found = answer_of(done.returncode, done.stdout.encode(), done.stderr.encode())
        items = "\n".join(f"{one['state']} {one['what']}: {one.get('detail', '')}" for one in found.last["items"])
        return done.returncode, f"{done.stdout}\n{items}"

    def back(self, way: str) -> tuple[int, str]:
        """Exit code and what was said."""
        if way == "apply-script":
            return self.verb("rollback")
        if way == "watchdog":
            (place,) = self.store.glob("transactions/0001")
            # Its time is over: nobody has confirmed.
            (place / "deadline").write_text("1\n")
            until((place / "outcome").exists)
            first, _, said = (place / "outcome").read_text().partition("\n")
            return int(first.split()[0]), said
        path = sorted(self.store.glob("transactions/*"))[-1] / "rollback.sh"
        done = self.run(ADVISOR, "rollback") if way == "command" else self.run(*way.split(), str(path), "--any-host")
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    own, other = getattr(request, "param", NAMES[0])
    one = Place(tmp_path, own, other)
    with network_namespace(one.name):
        one.build()
        yield one


def line_of(said: str, *words: str) -> str:
    # What is too wide for a line goes on in the next one.
    found = re.search(rf"{re.escape(words[0])}\b.*?(?=(?:sysctl|link):|$)", " ".join(said.split()))
    assert found, (words, said)
    assert all(word in found[0] for word in words), (words, said)
    return found[0]


# In the short form each change meets two ways, and each way two changes.
MATRIX = [
    pytest.param(
        NAMES[number % len(NAMES)],
        change,
        way,
        id=f"{change}-{way}",
        marks=[pytest.mark.thorough] * (way in THOROUGH_WAYS or (WAYS.index(way) + at) % 2),
    )
    for number, (way, (at, change)) in enumerate((way, each) for way in WAYS for each in enumerate(CHANGES))
]


@pytest.mark.repeats(4)
@pytest.mark.parametrize(("place", "change", "way"), MATRIX, indirect=["place"])
def test_our_link_is_restored_under_any_name_and_no_other(place: Place, change: str, way: str) -> None:
    # The other link reads as was set on this one: it is not for its value that it is left alone.
    place.out(f"ip link set dev {place.other} mtu 8000 txqueuelen 555")
    before = place.state()
    place.put_in(place.values(), way)
    assert place.state() != before
    place.change(change)
    stands = place.state()
    code, said = place.back(way)
    if change in ("swapped", "renamed"):
        assert place.state() == before, said
        assert code == 0, said
        for name in place.values():
            assert f"{place.own} is now named w0" in line_of(said, name), said
    else:
        assert place.state() == stands, said
        assert code == 5, said
        for name in place.values():
            assert line_of(said, name, "the one that is meant is gone" if change == "made-again" else "is not there")


WIDE = CASES["WIDE"]


# Each way with each change, and the keys take turns.
WIDE_MATRIX = [
    pytest.param(key, change, way, id=f"{change}-{key}-{way}", marks=[pytest.mark.thorough] * ((at + number) % 3 > 0))
    for number, (way, change) in enumerate(
        (way, change) for way in ("command", "dash", "apply-script", "watchdog") for change in ("swapped", "renamed")
    )
    for at, key in enumerate(WIDE)
]


@pytest.mark.parametrize(("key", "change", "way"), WIDE_MATRIX)
def test_what_a_wide_key_moved_is_restored_on_renamed_links(place: Place, key: str, change: str, way: str) -> None:
    family, attribute = key.split(".")[1], key.rpartition(".")[2]
    place.out(f"sysctl -w net.{family}.conf.{place.own}.{attribute}=1")
    before = place.state()
    place.put_in({key: WIDE[key]}, way)
    assert place.state() != before
    place.change(change)
    code, said = place.back(way)
    assert (code, place.state()) == (0, before), said
    assert "v0 is now named w0" in line_of(said, f"{family}.conf.v0.{attribute}")


@pytest.mark.parametrize("way", ["command", "dash", "apply-script"])
def test_a_wide_key_leaves_a_link_alone_that_was_made_again(place: Place, way: str) -> None:
    key = "sysctl:net.ipv6.conf.all.disable_ipv6"
    # The kernel copies what all goes back to; what the link that is gone had is not for the new one.
    place.out("sysctl -w net.ipv6.conf.v0.disable_ipv6=1")
    place.put_in({key: "1"}, way)
    place.change("made-again")
    assert place.back(way)[0] == 0
    assert place.out("sysctl -n net.ipv6.conf.v0.disable_ipv6 net.ipv6.conf.v2.disable_ipv6").split() == ["0", "0"]


@pytest.mark.parametrize("way", ["command", "dash", "apply-script"])
def test_a_stacked_link_that_moved_along_is_restored_under_its_new_name(place: Place, way: str) -> None:
    place.out("ip link add m0 link v0 type macvlan; ip link set m0 addrgenmode none; ip link set m0 up")
    before = place.state()
    place.put_in({"link:v0:mtu": "1400"}, way)
    place.out(
        "ip link set m0 down; ip link set m0 name m9; ip link set m9 up; ip link add m0 mtu 1400 type veth peer name p9"
    )
    stranger = [line for line in place.state() if line not in before and line.split()[1:2] == ["1400"]]
    code, said = place.back(way)
    found = place.state()
    assert code == 0, said
    assert set(before) <= set(found), said
    assert "m0 is now named m9" in line_of(said, "link:m0:mtu")
    assert json.loads(place.out("ip -j link show m0"))[0]["mtu"] == 1400, stranger


@pytest.mark.repeats(4)
@pytest.mark.parametrize("way", ["command", "apply-script"])
@pytest.mark.parametrize("change", CHANGES)
def test_verify_reads_our_link_and_no_other(place: Place, change: str, way: str) -> None:
    place.out("ip link set v2 txqueuelen 555")
    place.put_in({"link:v0:txqueuelen": "555"}, way)
    place.change(change)
    done = place.run(ADVISOR, "verify") if way == "command" else None
    code, said = (done.returncode, done.stdout + done.stderr) if done else place.verb("verify")
    assert code == (0 if change in ("swapped", "renamed") else 1), said
    if code == 0:
        place.out("ip link set w0 txqueuelen 556")
        done = place.run(ADVISOR, "verify") if way == "command" else None
        code, said = (done.returncode, done.stdout + done.stderr) if done else place.verb("verify")
        assert code == 1, said
        assert "v0 is now named w0" in " ".join(said.split())
