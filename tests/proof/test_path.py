"""A change of links is measured only where the path carries it: a veth whose MTU is switched, and one that stays."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.facts.host_facts import scan
from advisor.host import live_host
from advisor.planning.records import Plan
from advisor.proof.path import PathCheck, path_check, peer_target, require_other_way_in
from advisor.proof.records import Arm, Claim, Proof, ProofSubject, ToggleClass
from advisor.proof.session import Settings, prove
from tests.known import known
from tests.transaction.live import made_plan

from .second_host import FAR, HERE, SecondHost


def set_mtu(link: str, mtu: int) -> None:
    subprocess.run(["ip", "link", "set", link, "mtu", str(mtu)], check=True)


class MtuToggle:
    """Arm B is h0 at 9000 bytes."""

    toggle_class: ToggleClass = "T2"
    settle_seconds = 0.0

    def __init__(self, path: PathCheck) -> None:
        self._path = path

    def place(self, arm: Arm) -> None:
        set_mtu("h0", 9000 if arm == "B" else 1500)

    def check(self, arm: Arm) -> None:
        self._path.check(arm)


def plan_of(mtu: int = 9000) -> Plan:
    return made_plan([("link:h0:mtu", str(mtu))])


def check_of(second: SecondHost, window_seconds: float = 0.5) -> PathCheck:
    host = live_host()
    target = peer_target(second.runner().peer)
    made = known(path_check(host, scan(host), plan_of(), target, lambda _: None, window_seconds=window_seconds))
    return made


def session(second: SecondHost) -> Proof:
    runner = second.runner()
    return prove(
        live_host(),
        ProofSubject("jumbo", (Claim("net.tcp-64k"),), path="network"),
        MtuToggle(check_of(second)),
        Settings(target="", mode="quick", seconds=0.1, budget_seconds=25.0, force=True, allow_link_flap=True),
        runner=runner,
        target=peer_target(runner.peer),
    )


def near_mtu() -> str:
    return Path("/sys/class/net/h0/mtu").read_text().strip()


def test_a_path_that_does_not_carry_an_arm_is_no_measurement(second: SecondHost) -> None:
    proof, mtu = second.inside(lambda: (session(second), near_mtu()))
    assert proof.verdict == "invalid"
    assert "does not carry arm B" in proof.reasons[0]
    assert FAR in proof.reasons[0]
    assert "9000" in proof.reasons[0]
    assert {run.arm for run in proof.session.warm_up} == {"A"}
    assert mtu == "1500"


def test_a_peer_that_is_not_reached_over_the_changed_links_shows_nothing(second: SecondHost) -> None:
    def ask() -> None:
        subprocess.run(["ip", "link", "add", "other0", "type", "veth", "peer", "other1"], check=True)
        host = live_host()
        plan = made_plan([("link:other0:mtu", "9000")])
        try:
            with pytest.raises(RefusedError, match=r"reached over h0.*cannot show there"):
                path_check(host, scan(host), plan, peer_target(second.runner().peer), lambda _: None)
        finally:
            subprocess.run(["ip", "link", "del", "other0"], check=True)

    second.inside(ask)


def test_a_peer_that_does_not_answer_pings_cannot_be_asked(second: SecondHost) -> None:
    second.spaces.set("far", "net/ipv4/icmp_echo_ignore_all", "1")
    try:
        with pytest.raises(RefusedError, match="before anything was changed"):
            second.inside(lambda: check_of(second))
    finally:
        second.spaces.set("far", "net/ipv4/icmp_echo_ignore_all", "0")


def test_the_ssh_session_on_the_link_itself_is_not_interrupted(
    second: SecondHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*, force: bool) -> None:
        host = live_host()
        require_other_way_in(host, scan(host), plan_of(), force=force)

    monkeypatch.setenv("SSH_CONNECTION", f"{FAR} 50000 {HERE} 22")
    with pytest.raises(RefusedError, match=r"192\.0\.2\.2.*goes over h0") as caught:
        second.inside(lambda: ask(force=False))
    assert "--force" in (caught.value.hint or "")
    second.inside(lambda: ask(force=True))
    monkeypatch.setenv("SSH_CONNECTION", "127.0.0.1 50000 127.0.0.1 22")
    second.inside(lambda: ask(force=False))
