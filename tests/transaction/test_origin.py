"""Whose transaction it is: of which network namespace, and of which machine. No way back writes to another one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.host import live_host
from advisor.host.signals import entering_words
from advisor.host.would_be import file_obstacle
from advisor.transaction.journal import Store
from tests.running import network_namespace
from tests.schemas import judge
from tests.transaction.system import apply_locked, build, plan_of, roll_back_locked, store_of
from tests.transaction.test_script import run_script
from tests.transaction.veth import ADVISOR, Veth, veth
from tests.trees import listing
from tests.waiting import until

TTL = "net.ipv4.ip_default_ttl"
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")


class Two:
    """Two namespaces with one store and one /etc, whose links have the same names and numbers."""

    def __init__(self, blue: Veth) -> None:
        self.blue, self.red = blue, Veth.__new__(Veth)
        self.red.__dict__.update(blue.__dict__, name=f"{blue.name}red")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    with veth(tmp_path) as blue:
        found = Two(blue)
        with network_namespace(found.red.name):
            found.red.ip("link add a0 type veth peer name b0")
            blue.profile("aa", {f"sysctl:{TTL}": "70", "link:a0:txqueuelen": "777"})
            yield found


@NEEDS_ROOT
def test_a_transaction_is_rolled_back_in_its_own_namespace_alone(two: Two) -> None:
    blue, red = two.blue, two.red
    files = blue.files()
    blue.advisor("apply", "aa", "--yes", "--confirm-within", "0")
    assert blue.files() == files, "what sets a namespace at boot is no file"
    red.call("sysctl", "-qw", f"{TTL}=70")
    script = str(blue.store / "transactions/0001/rollback.sh")
    for words in ((ADVISOR, "rollback"), (ADVISOR, "rollback", "1"), ("sh", script)):
        done = red.call(*words)
        assert (done.returncode, f"ip netns exec {blue.name}" in done.said) == (3, True), done.said
    assert red.call(ADVISOR, "rollback", "--all").returncode == 5
    drift = {one["what"]: one["live"] for one in judge(red.advisor("verify", "--json", code=1))["drift"]}
    assert drift == {f"sysctl:{TTL}": None, "link:a0:txqueuelen": None}
    assert (blue.sysctl(TTL), red.sysctl(TTL)) == ("70", "70")
    red.profile("cc", {f"sysctl:{TTL}": "71"})
    assert f"ip netns exec {blue.name}" in red.advisor("apply", "cc", "--yes", code=3)
    blue.advisor("rollback")
    assert (blue.sysctl(TTL), red.sysctl(TTL)) == ("64", "70")


@NEEDS_ROOT
@pytest.mark.parametrize("words", [(ADVISOR, "rollback"), ("sh", "SCRIPT")], ids=["command", "script"])
def test_values_that_went_with_their_namespace_are_not_written_elsewhere(two: Two, words: tuple[str, ...]) -> None:
    blue, red = two.blue, two.red
    blue.advisor("apply", "aa", "--yes", "--confirm-within", "0")
    inode = os.stat(f"/run/netns/{blue.name}").st_ino
    subprocess.run(["ip", "netns", "delete", blue.name], check=True)
    # Its watchdog ends a second after it was closed, and another namespace may have its number by then.
    until(lambda: entering_words("net", inode) is None)
    red.call("sysctl", "-qw", f"{TTL}=70")
    script = str(blue.store / "transactions/0001/rollback.sh")
    called = [script if word == "SCRIPT" else word for word in words]
    done = red.call(*called)
    for _ in range(5 if words[0] == "sh" else 0):
        if done.returncode == 3:
            until(lambda: entering_words("net", inode) is None)
            done = red.call(*called)
    assert (done.returncode, "gone with its namespace" in done.said) == (0, True), done.said
    assert red.sysctl(TTL) == "70"
    assert red.standings() == {"0001": "rolled-back"}


@NEEDS_ROOT
def test_a_later_namespace_of_the_same_number_is_another_one(two: Two) -> None:
    """The kernel gives the number of a namespace that went to the next one."""
    blue, numbers = two.blue, set[int]()
    blue.advisor("apply", "aa", "--yes", "--confirm-within", "0")
    inode = os.stat(f"/run/netns/{blue.name}").st_ino
    cookie = Store(str(blue.store)).survey_records()[0][0].origin.network
    subprocess.run(["ip", "netns", "delete", blue.name], check=True)
    until(lambda: entering_words("net", inode) is None)
    made = list[str]()
    try:
        while inode not in numbers and len(made) < 20:
            made.append(f"{blue.name}n{len(made)}")
            subprocess.run(["ip", "netns", "add", made[-1]], check=True)
            numbers.add(os.stat(f"/run/netns/{made[-1]}").st_ino)
        if inode not in numbers:
            pytest.skip("the kernel gave the number to nobody here")
        assert entering_words("net", inode) == f"ip netns exec {made[-1]}"
        assert entering_words("net", inode, cookie) is None
        two.red.call("ip", "netns", "exec", made[-1], ADVISOR, "rollback")
        assert two.red.standings() == {"0001": "rolled-back"}
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=True)


@NEEDS_ROOT
def test_a_store_of_another_machine_is_obeyed_only_when_asked_to(two: Two) -> None:
    host = two.blue
    host.advisor("apply", "aa", "--yes", "--confirm-within", "0")
    (host.where / "etc/machine-id").write_text("f" * 32 + "\n")
    assert "--any-host" in host.advisor("rollback", code=3)
    host.profile("cc", {"sysctl:net.ipv4.tcp_fin_timeout": "31"})
    assert "--any-host" in host.advisor("apply", "cc", "--yes", code=3)
    assert "another machine" in host.advisor("status")
    assert all(one["live"] is None for one in judge(host.advisor("verify", "--json", code=1))["drift"])
    assert host.sysctl(TTL) == "70"
    host.advisor("rollback", "--any-host")
    assert host.sysctl(TTL) == "64"


def test_a_clone_with_the_same_machine_id_is_another_machine(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    mark = tmp_path / "root/sys/class/dmi/id/product_uuid"
    mark.parent.mkdir(parents=True)
    mark.write_text("4C4C4544-0035\n")
    record = apply_locked(host, plan_of(host), store)
    before = listing(tmp_path / "root")
    mark.write_text("4C4C4544-0036\n")
    with pytest.raises(RefusedError) as refused:
        roll_back_locked(host, record, store)
    assert "--any-host" in str(refused.value.hint)
    done = run_script(store.script_path(record.id), tmp_path)
    assert (done.returncode, "4c4c4544-0035" in done.stderr) == (3, True)
    mark.write_text("4C4C4544-0035\n")
    assert listing(tmp_path / "root") == before
    assert {one.state for one in roll_back_locked(host, record, store)} == {"restored"}


def test_a_directory_that_leads_nowhere_is_an_obstacle(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/sysctl.d").symlink_to("/nowhere/at/all")
    assert "leads to no directory" in str(file_obstacle(live_host(), str(tmp_path / "etc/sysctl.d/90-x.conf")))
    (tmp_path / "a").touch()
    os.link(tmp_path / "a", tmp_path / "b")
    assert "2 names" in str(file_obstacle(live_host(), str(tmp_path / "a")))


def test_streams_that_are_closed_are_no_fault(tmp_path: Path) -> None:
    words = f"exec {ADVISOR} status 2>&- >&-"
    done = subprocess.run(
        ["sh", "-c", words], env={"ADVISOR_STATE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode in (0, 6)
