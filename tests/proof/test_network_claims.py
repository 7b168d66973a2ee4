"""What was claimed between two hosts by earlier versions, and is refused now with the command that measures it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.errors import RefusedError, UsageError
from advisor.proof.metrics import RunFigures
from advisor.proof.own_command import OwnCommand, parse_metrics
from advisor.proof.profile import measurable_claims
from advisor.proof.records import Claim, Guardrail, ProofSubject, command_subject, resolve_subject
from advisor.proof.schedule import MODES
from advisor.proof.session import reconnects_itself, require_measurable
from advisor.proof.target import MeasuredTarget
from advisor.proof.verdict import decide_session
from advisor.report.proof.result import proof_text
from tests.cli.inside import call_inside

from .fakes import FakeFio, SpeedToggle
from .sessions import figures, pair, session
from .test_bench import settings

TCP, UDP, STORAGE = "net.tcp-64k", "net.udp-8k", "infoscale.64k-seq-w100"


def resolved(*names: str) -> ProofSubject:
    return resolve_subject(
        ProofSubject("network", tuple(Claim(name) for name in names), path="network"), MODES["default"]
    )


def test_what_is_delivered_is_guarded_between_two_hosts_only() -> None:
    assert resolved(TCP).guardrails == (Guardrail(TCP, "cpu_per_io"),)
    assert resolved(UDP).guardrails == (Guardrail(UDP, "delivered", 0.01), Guardrail(UDP, "cpu_per_io"))
    assert Guardrail(STORAGE, "latency_p99") in resolved(STORAGE).guardrails
    assert figures(1000).value("delivered") == 0
    proof = decide_session(session([pair(index, 1000, 1100 + index) for index in range(8)]))
    assert not [item for item in proof.exploratory if item.metric == "delivered"]


def runs(arrived: float, share: float) -> RunFigures:
    sent = 1_000_000_000
    return msgspec.structs.replace(figures(arrived), sent_bytes=sent, received_bytes=round(sent * share))


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.99, "gain"), (0.985, "gain"), (0.9, "gain-with-cost"), (0.5, "gain-with-cost")]
)
def test_more_that_arrives_is_no_gain_where_more_is_lost(share: float, verdict: str) -> None:
    """Twice as much arrives in arm B; of what is sent in arm A 99 % do."""
    noise = (1.0, 1.01, 0.99, 1.005)
    pairs = []
    for index in range(16):
        before = runs(1000 * noise[index % 4], 0.99)
        after = runs(2000 * noise[(index + 1) % 4], share * (1 - index / 100_000))
        pairs.append(pair(index, before, after, order="AB" if index % 3 else "BA"))
    named = tuple(
        msgspec.structs.replace(one, runs=tuple(msgspec.structs.replace(run, workload=UDP) for run in one.runs))
        for one in pairs
    )
    made = msgspec.structs.replace(
        session(named),
        subject=msgspec.structs.replace(resolved(UDP), control=None),
        peer_ssh="node2",
        peer_address="192.0.2.2",
    )
    proof = decide_session(made)
    assert proof.verdict == verdict
    assert proof.is_gain == (verdict == "gain")
    text = proof_text(proof, width=100, color=False)
    assert ("delivered" in text.partition("\n\n")[0]) == (verdict == "gain-with-cost")


def test_of_a_profile_s_claims_those_on_storage_are_measured() -> None:
    assert measurable_claims((STORAGE, TCP), are_chosen=False) == (STORAGE,)


@pytest.mark.parametrize(("names", "are_chosen"), [((TCP,), False), ((STORAGE, TCP), True)])
def test_a_workload_that_is_asked_for_is_not_left_out_in_silence(names: tuple[str, ...], *, are_chosen: bool) -> None:
    with pytest.raises(UsageError) as caught:
        measurable_claims(names, are_chosen=are_chosen)
    assert "--command 'iperf3" in (caught.value.hint or "")


def test_new_sockets_in_each_run_make_a_change_of_class_t1_act(fake_fio: FakeFio, disk: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3, toggle_class="T1")
    assert reconnects_itself(command_subject("p", OwnCommand(("true",), parse_metrics(["time"]), "/")))
    assert not reconnects_itself(resolved(STORAGE))
    target = MeasuredTarget("/srv", "nfs4", "/srv", "server:/srv", None, True, 0, 0)
    with pytest.raises(RefusedError, match="compare the old state with itself") as caught:
        require_measurable(resolved(STORAGE), toggle, target, settings(disk), can_reconnect=False)
    assert caught.value.exit_code == 3
    assert "--reconnect" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["jumbo-frames"], "nothing to measure on"),
        (["jumbo-frames", "--peer-ssh=node2"], "--peer-ssh: was removed; --command 'iperf3"),
        (["jumbo-frames", "--target=/tmp", "--workload=net.tcp-64k"], "--command 'iperf3"),
    ],
)
def test_a_call_that_makes_no_sense_is_a_usage_error(words: list[str], expected: str) -> None:
    done = call_inside("prove", *words)
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.split())
