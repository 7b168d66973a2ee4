"""``fleet apply --prove-canary``: what is sent to the canary, what its answer means, and what is said afterwards.

The advisor of a canary is a program on its search path that plans and proves as the test says.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import UsageError
from advisor.fleet.engine import HostAnswer, State
from advisor.fleet.inventory import Inventory
from advisor.fleet.runs.journal import Asked, Ended, ProofBegun, ProofDone, read_run
from advisor.fleet.runs.proving import judge_proof, read_sent_profile
from advisor.fleet.runs.waves import WaveShape
from advisor.host.probes import ReadFile
from advisor.operations.fleet import make_wish
from advisor.planning.records import Change, Plan
from advisor.report.fleet.run import fleet_run_text
from tests.cases import read_cases
from tests.cli.inside import call_inside
from tests.fleet.hosts import Hosts, Kind, why_not
from tests.fleet.test_run import advisor, fleet, journal, mtus, words
from tests.waiting import until

DATA = read_cases(__file__)

PROFILE = DATA["PROFILE"]

ADVISOR = DATA["ADVISOR"]

HANGS = """\
trap 'kill $!; exit 130' TERM
: >/mnt/base/began
sleep 1000 &
wait
"""

SWITCHED = """\
trap 'kill $!; ip link set eth0 mtu 1500; exit 130' TERM
ip link set eth0 mtu 9000
: >/mnt/base/began
sleep 1000 &
wait
"""
"""A proof while the profile is set."""


class Canaries:
    """Hosts with an advisor each, and a profile on the controller."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.profile = hosts.home / "canary-mtu.toml"
        self.profile.write_text(PROFILE.format(mtu=9000))
        self.inventory = hosts.inventory()
        planned = advisor(hosts, "plan", self.profile, "-i", self.inventory)
        for host in planned["hosts"]:
            # What asks for the profile there is where it was put.
            document = {**host["plan"], "words": ["/elsewhere/canary-mtu.toml"]}
            self.give(host["name"], "plan.json", json.dumps(document))
            self.leave(host["name"])

    def give(self, name: str, file: str, text: str) -> None:
        (self.hosts.home / name / file).write_text(text)

    def leave(self, name: str, *unfinished: str) -> None:
        """What is unfinished on a host by what its advisor says."""
        listed = [{"id": one, "unfinished": True} for one in unfinished]
        self.give(name, "status.json", json.dumps({"schema": "advisor.status/1", "transactions": listed}))

    def prove(self, name: str, document: object, code: int) -> None:
        """Answer a proof with this document and code."""
        self.give(name, "prove", f"cat <<'EOF'\n{json.dumps(document)}\nEOF\nexit {code}\n")

    def read(self, name: str, file: str) -> str:
        return (self.hosts.home / name / file).read_text()

    def apply(self, *more: str, code: int) -> Any:
        asked = ("apply", str(self.profile), "-i", str(self.inventory), "--prove-canary", "/srv", "--yes", *more)
        return advisor(self.hosts, *asked, code=code)


@contextlib.contextmanager
def canaries(number: int = 2) -> Iterator[Canaries]:
    kind = Kind(programs={"advisor": ADVISOR})
    with fleet(number, **{f"node{at:02}": kind for at in range(1, number + 1)}) as hosts:
        yield Canaries(hosts)


def proof(verdict: str, *, after: str = "9000", effect: float = 0.2) -> dict[str, object]:
    return {
        "schema": "advisor.proof/1",
        "verdict": verdict,
        "workloads": [{"name": "net.tcp-64k", "metric": "mb_s", "effect": effect}],
        "reasons": ["8 of 8 pairs agree"],
        "values": [{"tunable": "link:eth0:mtu", "before": "1500", "after": after}],
        "saved_to": "/var/lib/advisor/proofs/one.json.gz",
    }


def refused(message: str, code: int, hint: str | None = None) -> dict[str, object]:
    return {"error": {"code": code, "kind": "refused", "message": message, "hint": hint}}


needs_hosts = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@needs_hosts
def test_the_profile_is_sent_and_a_busy_canary_is_a_refusal_with_its_reason() -> None:
    with canaries(1) as found:
        # A file of that name on the canary is not the one to be proven.
        found.give("node01", "etc/canary-mtu.toml", PROFILE.format(mtu=1400))
        found.prove("node01", refused("the host is busy: PSI cpu some 34 %", 3, "--force measures all the same"), 3)
        options = ("--quick", "--force", "--allow-link-flap")
        done = found.apply(*options, code=3)
        assert done["message"] == (
            "node01: the proof was refused: the host is busy: PSI cpu some 34 % (--force measures all the same)"
        )
        assert [(one["host"], one["code"], one["state"]) for one in done["proofs"]] == [("node01", 3, "untouched")]
        for file in ("came.toml", "proven.toml"):
            assert found.read("node01", file) == PROFILE.format(mtu=9000)
        *_, proven = (line for line in found.read("node01", "calls").splitlines() if line.startswith("prove"))
        assert proven.endswith("--target=/srv --quick --force --allow-link-flap --json")
        assert mtus(found.hosts) == [1500]
        # Nothing of what was sent stays there.
        assert found.hosts.shell("node01", "ls -d /run/advisor* /tmp/advisor* 2>/dev/null", check=False) == ""


@needs_hosts
@pytest.mark.thorough
def test_a_gain_lets_the_run_begin_and_a_run_without_one_proves_again_when_it_is_resumed() -> None:
    with canaries(3) as found:
        found.prove("node01", proof("gain"), 0)
        found.prove("node02", proof("gain-with-cost", effect=-0.3), 1)
        done = found.apply("--canary", "2", code=1)
        assert "node02: no gain is proven: gain-with-cost (net.tcp-64k -30.0%)" in done["message"]
        assert [(one["host"], one["code"]) for one in done["proofs"]] == [("node01", 0), ("node02", 1)]
        assert mtus(found.hosts) == [1500] * 3
        # Resumed, it is proven again: what did not pass is not applied by another way.
        again = advisor(found.hosts, "apply", "--resume", "last", "--yes", code=1)
        assert len(again["proofs"]) == 4
        assert mtus(found.hosts) == [1500] * 3
        shown = found.hosts.run(*words("status")).stdout
        assert "for its proof the profile was set and rolled back on node01 and node02" in shown
        assert "no host was touched" not in shown
        found.prove("node02", proof("gain"), 0)
        advisor(found.hosts, "apply", "--resume", "last", "--yes")
        assert mtus(found.hosts) == [9000] * 3


@needs_hosts
@pytest.mark.thorough
def test_another_profile_or_plan_there_is_refused_before_anything_is_measured() -> None:
    with canaries(1) as found:
        planned = json.loads(found.read("node01", "plan.json"))
        planned["changes"][0]["after"] = "1400"
        found.give("node01", "plan.json", json.dumps(planned))
        refusal = found.apply(code=3)["error"]["message"]
        assert "link:eth0:mtu from 1500 to 1400 there, from 1500 to 9000 here" in refusal
        found.give("node01", "plan.json", json.dumps(refused("jumbo: line 3: unknown key", 2)))
        assert "cannot be planned there: jumbo: line 3" in found.apply(code=3)["error"]["message"]
        assert "prove" not in found.read("node01", "calls")


@needs_hosts
@pytest.mark.thorough
@pytest.mark.parametrize("left", [(), ("0007",)], ids=["back", "unfinished"])
def test_an_interrupt_ends_the_proof_there_and_asks_whether_it_is_back(left: tuple[str, ...]) -> None:
    with canaries(1) as found:
        found.give("node01", "prove", HANGS)
        found.leave("node01", *left)
        process = found.hosts.popen(
            *words("apply", found.profile, "-i", found.inventory, "--prove-canary", "/srv", "--yes")
        )
        until(lambda: (found.hosts.home / "node01/began").exists() or process.poll() is not None)
        os.kill(process.pid, signal.SIGINT)
        if left:
            until(lambda: "status" in found.read("node01", "calls"))
            found.leave("node01")
        out, err = process.communicate(timeout=300)
        assert process.returncode == 130, out + err
        assert "every value is as before there" in err
        until(lambda: not any(line == "sleep 1000" for line in found.hosts.processes("node01")))
        assert '"event":"proof"' in journal(found.hosts)


@needs_hosts
@pytest.mark.thorough
def test_a_proof_that_outlived_its_controller_is_settled_before_anything_is_planned() -> None:
    with canaries(1) as found:
        found.give("node01", "prove", SWITCHED)
        process = found.hosts.popen(
            *words("apply", found.profile, "-i", found.inventory, "--prove-canary", "/srv", "--yes")
        )
        until(lambda: (found.hosts.home / "node01/began").exists() or process.poll() is not None)
        process.kill()
        process.communicate(timeout=300)
        assert mtus(found.hosts) == [9000]
        # The proof is ended there; that all is back cannot be asked, so nothing is planned.
        found.give("node01", "status.json", "")
        error = advisor(found.hosts, "apply", "--resume", "last", "--yes", code=5)["error"]
        assert "node01: what its proof left was not known; it could not be asked" in error["message"]
        assert "ssh root@192.0.2.11 advisor status" in json.dumps(error)
        assert mtus(found.hosts) == [1500]
        found.leave("node01")
        found.prove("node01", proof("gain"), 0)
        done = advisor(found.hosts, "apply", "--resume", "last", "--yes")
        assert [one["state"] for one in done["proofs"]] == ["unknown", "rolled-back", "rolled-back"]
        assert mtus(found.hosts) == [9000]


PLAN = Plan(
    ("canary-mtu",),
    None,
    (Change("link:eth0:mtu", "1500", "9000", None, None, "link", "now", "", "", (), "", ReadFile("/x"), (), ()),),
    (),
    (),
    (),
    (),
)


def answered(tmp_path: Path, document: object, code: int | None, state: State = "ok", said: str = "") -> HostAnswer:
    path = tmp_path / "answer"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return HostAnswer("node01", state, code, path, said)


@pytest.mark.parametrize(
    ("document", "there", "code", "state", "said"),
    [
        (proof("gain"), 0, 0, "rolled-back", "the gain is proven: gain (net.tcp-64k +20.0%)"),
        (proof("no-difference", effect=0.001), 1, 1, "rolled-back", "no gain is proven: no-difference"),
        (proof("loss", effect=-0.3), 1, 1, "rolled-back", "loss (net.tcp-64k -30.0%); 8 of 8 pairs agree"),
        (proof("gain", after="1400"), 0, 4, "rolled-back", "link:eth0:mtu=1400 there, 9000 in the plan"),
        ({**proof("gain"), "values": None}, 0, 4, "rolled-back", "does not say which values"),
        (refused("no such directory", 2), 2, 2, "untouched", "cannot be made as asked: no such directory"),
        (refused("busy", 3, "wait"), 3, 3, "untouched", "was refused: busy (wait)"),
        (refused("a link did not come up", 4), 4, 4, "rolled-back", "every value is as before: a link did not"),
        (refused("one is not back", 5), 5, 5, "unknown", "not every value is back: one is not back"),
        (refused("needs root", 6), 6, 6, "untouched", "needs root"),
        ("", 127, 3, "untouched", "advisor cannot be run there"),
    ],
)
def test_the_code_of_a_proof_there_is_that_of_the_run(
    tmp_path: Path, document: object, there: int, code: int, state: str, said: str
) -> None:
    done = judge_proof("node01", answered(tmp_path, document, there), PLAN)
    assert done is not None
    assert (done.code, done.state) == (code, state)
    assert said in done.message


@pytest.mark.parametrize("there", [0, 1, 2, 3, 4, 6, 70, 130, 137])
def test_an_answer_that_says_nothing_is_no_answer_and_the_host_is_asked(tmp_path: Path, there: int) -> None:
    assert judge_proof("node01", answered(tmp_path, "", there), PLAN) is None
    assert judge_proof("node01", answered(tmp_path, '{"verdict": 3}', there), PLAN) is None


# What failed may be the way of the answer alone: too long, cut off, refused by the disk here.
@pytest.mark.parametrize("state", ["lost", "timeout", "failed"])
def test_a_proof_whose_end_is_not_known_is_asked_for(tmp_path: Path, state: State) -> None:
    assert judge_proof("node01", answered(tmp_path, "", None, state), PLAN) is None
    assert judge_proof("node01", None, PLAN) is None


@pytest.mark.parametrize("state", ["unreachable", "no-root"])
def test_a_host_that_was_not_reached_was_not_changed(tmp_path: Path, state: State) -> None:
    done = judge_proof("node01", answered(tmp_path, "", None, state, "No route to host"), PLAN)
    assert done is not None
    assert (done.code, done.state) == (4, "untouched")
    assert "No route to host" in done.message


def shown(*entries: ProofBegun | ProofDone | Ended) -> str:
    asked = Asked(0.0, "1", ("jumbo-frames",), (), ("h,",), None, 1, 60, WaveShape(), None, ("--target=/srv",))
    run = read_run("0001", (asked, *entries))
    assert run is not None
    return " ".join(fleet_run_text(run, None, width=100, color=False).split())


def test_what_was_done_for_a_proof_is_said() -> None:
    begun, ended = ProofBegun(1.0, "node01"), Ended(3.0, 1, "stopped", "why")
    proven = ProofDone(2.0, "node01", 1, "rolled-back", "why", "loss")
    said = shown(begun, proven, ended)
    assert "stopped; for its proof the profile was set and rolled back on node01." in said
    assert "advisor fleet apply --resume 0001" in said
    refused_there = ProofDone(2.0, "node01", 3, "untouched", "why")
    assert "stopped; no host was touched." in shown(begun, refused_there, ended)
    # A controller that died in the middle.
    assert "interrupted, or still at it; what its proof left is not known on node01." in shown(begun)


def test_what_a_profile_inherits_goes_with_it_and_values_need_no_file(tmp_path: Path) -> None:
    own = tmp_path / "canary-mtu.toml"
    own.write_text(PROFILE.format(mtu=9000).replace("[[tunables]]", 'inherits = ["base-mtu"]\n[[tunables]]'))
    base = PROFILE.format(mtu=4000).replace("canary-mtu", "base-mtu")
    (tmp_path / "base-mtu.toml").write_text(base)
    sent = read_sent_profile([str(own)])
    assert sent.files == {"canary-mtu": own.read_bytes(), "base-mtu": base.encode()}
    assert sent.words == '"$here"/canary-mtu.toml'
    values = read_sent_profile(["sysctl:net.ipv4.tcp_sack=1", "sysctl:net.core.rmem_max>=4194304"])
    assert (dict(values.files), values.words) == ({}, "sysctl:net.ipv4.tcp_sack=1 'sysctl:net.core.rmem_max>=4194304'")
    with pytest.raises(UsageError, match="proves one profile"):
        read_sent_profile(["jumbo-frames", "socket-buffers-8m"])


@pytest.mark.parametrize(("options", "place"), DATA["the_directory_is_for_fio_or_for_the_command"])
def test_the_directory_is_for_fio_or_for_the_command(options: tuple[str, ...], place: tuple[str, ...]) -> None:
    wish = make_wish(Inventory(("h,",)), ["jumbo-frames"], {}, prove=options[0], prove_options=options[1:])
    assert wish.options.proof == place


@pytest.mark.parametrize(
    ("options", "said"), DATA["options_of_a_proof_that_cannot_be_are_refused_before_anybody_is_asked"]
)
def test_options_of_a_proof_that_cannot_be_are_refused_before_anybody_is_asked(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    state = tmp_path / "state"
    done = call_inside("fleet", "apply", "jumbo-frames", "-i", "h,", *options, ADVISOR_STATE_DIR=state)
    assert done.returncode == 2
    assert said in done.stderr
