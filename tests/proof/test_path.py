"""A change of links is measured only where the path carries it: two namespaces, and a veth whose MTU is switched."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.facts.host_facts import scan
from advisor.host import live_host
from advisor.operations.measure import choose_settings
from advisor.operations.prove import choose_command
from advisor.planning.records import Plan
from advisor.profiles.requested import load_one
from advisor.proof.path import path_check, require_other_way_in
from advisor.proof.profile import Means, ground_for_command, prove_profile
from advisor.proof.records import Proof
from advisor.report.proof.words import command_again
from advisor.transaction.journal import Store
from tests.known import known
from tests.reach.space import Spaces, can_have_namespaces
from tests.transaction.live import made_plan

HERE, FAR = "192.0.2.1", "192.0.2.2"
pytestmark = pytest.mark.skipif(not can_have_namespaces(), reason="needs root and network namespaces")


@pytest.fixture(scope="module")
def spaces() -> Iterator[Spaces]:
    made = Spaces()
    try:
        made.add("here", "far")
        made.wire(("here", "h0"), ("far", "f0"))
        made.address("here", "h0", f"{HERE}/24")
        made.address("far", "f0", f"{FAR}/24")
        yield made
    finally:
        made.remove()


def plan_of(mtu: int = 9000) -> Plan:
    return made_plan([("link:h0:mtu", str(mtu))])


def near_mtu() -> str:
    return Path("/sys/class/net/h0/mtu").read_text().strip()


def session(where: Path) -> Proof:
    """`prove jumbo-frames --command …`, by a command whose figure is what a packet carries on the link."""
    command = choose_command("cat /sys/class/net/h0/mtu", ["regex:([0-9]+):higher:bytes"], directory=Path("/"))
    kept, asked, means = where / "kept", load_one(["jumbo-frames"]), Means(command=command, peer=FAR)
    settings = choose_settings(quick=True, seed=1, force=True, allow_link_flap=True, save=kept, dead_time=0.1)
    return prove_profile(live_host(), asked, {"links": "h0"}, settings, means, store=Store(str(where / "state")))


@pytest.mark.thorough
def test_jumbo_frames_are_measured_by_a_command_where_the_peer_carries_them(spaces: Spaces, tmp_path: Path) -> None:
    spaces.run("far", "ip link set f0 mtu 9000")
    proof, mtu = spaces.inside("here", lambda: (session(tmp_path), near_mtu()))
    (claim,) = proof.workloads
    assert (proof.tendency, claim.before, claim.after) == ("gain", 1500, 9000)
    assert proof.session.peer_address == FAR
    assert f"--peer={FAR}" in command_again(proof)
    assert mtu == "1500"


def test_a_path_that_does_not_carry_an_arm_is_no_measurement(spaces: Spaces, tmp_path: Path) -> None:
    spaces.run("far", "ip link set f0 mtu 1500")
    proof, mtu = spaces.inside("here", lambda: (session(tmp_path), near_mtu()))
    assert proof.verdict == "invalid"
    assert "does not carry arm B" in proof.reasons[0]
    assert FAR in proof.reasons[0]
    assert "9000" in proof.reasons[0]
    assert {run.arm for run in proof.session.warm_up} == {"A"}
    assert mtu == "1500"


def ask_path(plan: Plan) -> None:
    host = live_host()
    command = known(choose_command("true", ["time"], directory=Path("/")))
    path_check(host, scan(host), plan, ground_for_command(command, FAR).target, lambda _: None, window_seconds=0.5)


def test_a_peer_that_is_not_reached_over_the_changed_links_shows_nothing(spaces: Spaces) -> None:
    def ask() -> None:
        subprocess.run(["ip", "link", "add", "other0", "type", "veth", "peer", "other1"], check=True)
        try:
            with pytest.raises(RefusedError, match=r"reached over h0.*cannot show there"):
                ask_path(made_plan([("link:other0:mtu", "9000")]))
        finally:
            subprocess.run(["ip", "link", "del", "other0"], check=True)

    spaces.inside("here", ask)


def test_a_peer_that_does_not_answer_pings_cannot_be_asked(spaces: Spaces) -> None:
    spaces.set("far", "net/ipv4/icmp_echo_ignore_all", "1")
    try:
        with pytest.raises(RefusedError, match="before anything was changed"):
            spaces.inside("here", lambda: ask_path(plan_of()))
    finally:
        spaces.set("far", "net/ipv4/icmp_echo_ignore_all", "0")


def test_the_ssh_session_on_the_link_itself_is_not_interrupted(spaces: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*, force: bool) -> None:
        host = live_host()
        require_other_way_in(host, scan(host), plan_of(), force=force)

    monkeypatch.setenv("SSH_CONNECTION", f"{FAR} 50000 {HERE} 22")
    with pytest.raises(RefusedError, match=r"192\.0\.2\.2.*goes over h0") as caught:
        spaces.inside("here", lambda: ask(force=False))
    assert "--force" in (caught.value.hint or "")
    spaces.inside("here", lambda: ask(force=True))
    monkeypatch.setenv("SSH_CONNECTION", "127.0.0.1 50000 127.0.0.1 22")
    spaces.inside("here", lambda: ask(force=False))
