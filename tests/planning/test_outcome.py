"""The findings that a host would newly have after a plan, and who may apply it then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.errors import RefusedError
from advisor.facts.host_facts import scan
from advisor.host import (
    Host,
    MemoryFiles,
    Missing,
    PutFile,
    RecordedCommands,
    RunCommand,
    SetEthtool,
    SetMtu,
    SetTxqueuelen,
    Step,
    WriteFile,
)
from advisor.host.commands import Completed
from advisor.host.would_be import after_steps
from advisor.operations.prove import keep_gain
from advisor.operations.transactions import apply_profiles
from advisor.planner import plan_profiles
from advisor.planning.expansion import list_steps
from advisor.planning.records import Plan, plan_document
from advisor.profiles.requested import load_requested
from advisor.proof.verdict import decide_session
from advisor.transaction.journal import Store
from tests.cases import cases
from tests.planning.system import ETH0, LOOPBACK, Link, host, planned, system
from tests.proof.sessions import session
from tests.report.test_proof import pairs
from tests.serving_hosts import UNITS, serving_host

CASES = cases(__file__)
SCALING = "sysctl:net.ipv4.tcp_window_scaling"
RULE = "advice.tcp-window-scaling-off"
IP = ("ip", "-j", "-d", "addr", "show")
FLOW = ("lltconfig", "-F", "query")


@pytest.mark.parametrize(("sysctl", "word", "findings"), CASES)
def test_would_report(sysctl: dict[str, str], word: str, findings: list[list[str]]) -> None:
    plan = plan_profiles(serving_host([UNITS["postgresql"]], sysctl=sysctl), [word], {})
    assert plan.changes
    assert [[one.id, one.severity] for one in plan.foreseen] == findings
    assert plan_document(plan)["would_report"] == tuple(one for one, _ in findings)


def test_texts_of_findings_are_not_in_the_fingerprint() -> None:
    plan = plan_profiles(serving_host([]), [f"{SCALING}=0"], {})
    other = msgspec.structs.replace(plan, foreseen=(msgspec.structs.replace(plan.foreseen[0], why="counted 4711"),))
    without = msgspec.structs.replace(plan, foreseen=())
    assert plan.fingerprint == other.fingerprint != without.fingerprint


def _host() -> Host:
    files = {
        "/sys/block/sda/queue/scheduler": b"[mq-deadline] none\n",
        "/sys/class/net/eth1/mtu": b"1500\n",
        "/etc/sysctl.d/10-a.conf": b"a = 1\n",
    }
    links = b'[{"ifname": "eth1", "mtu": 1500, "txqlen": 1000}, {"ifname": "eth2", "mtu": 1500}, {}]'
    flow = "  highwater = 200\n  rporthiswater = 300\n"
    commands = {IP: Completed(0, links.decode(), ""), FLOW: Completed(0, flow, "")}
    answers = {("eth1", "rings"): {"rx": 512, "rx_max": 4096}}
    return Host(MemoryFiles(files), RecordedCommands(commands), ethtool_answers=answers)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("step", "path", "text"),
    [
        (WriteFile("/sys/block/sda/queue/scheduler", "none"), "/sys/block/sda/queue/scheduler", "mq-deadline [none]"),
        (WriteFile("/proc/sys/vm/swappiness", "10"), "/proc/sys/vm/swappiness", "10"),
        (SetMtu("eth1", 9000), "/sys/class/net/eth1/mtu", "9000"),
        (SetTxqueuelen("eth1", 2000), "/sys/class/net/eth1/tx_queue_len", "2000"),
        (PutFile("/etc/new/b.conf", b"b = 2\n"), "/etc/new/b.conf", "b = 2"),
    ],
)
def test_files_are_as_the_steps_write_them(step: Step, path: str, text: str) -> None:
    before = _host()
    after = after_steps(before, (step,)).remembering()
    assert after.read(path) == text != before.read(path)
    assert after.real(path) == path


def test_new_and_removed_files_are_listed_so() -> None:
    steps = (
        PutFile("/etc/sysctl.d/10-a.conf", None),
        PutFile("/etc/sysctl.d/90-b.conf", b""),
        PutFile("/run/x/y", b""),
    )
    after = after_steps(_host(), steps)
    assert after.listdir("/etc/sysctl.d") == ("90-b.conf",)
    assert (after.names("/run"), after.names("/run/x"), after.is_dir("/run/x")) == (("x",), ("y",), True)
    assert isinstance(after.read("/etc/sysctl.d/10-a.conf"), Missing)
    assert not after.exists("/etc/sysctl.d/10-a.conf")


def test_commands_and_drivers_answer_with_the_values() -> None:
    steps: tuple[Step, ...] = (
        *(SetMtu("eth1", 9000), SetTxqueuelen("eth1", 2000), SetEthtool("eth1", "rings", "rx", "4096")),
        *(RunCommand(("lltconfig", "-F", f"{name}:900")) for name in ("highwater", "rporthighwater")),
    )
    after = after_steps(_host(), steps)
    links, flow = after.run(IP), after.run(FLOW)
    assert isinstance(links, Completed)
    assert isinstance(flow, Completed)
    decoded: Any = msgspec.json.decode(links.stdout)
    assert decoded == [{"ifname": "eth1", "mtu": 9000, "txqlen": 2000}, {"ifname": "eth2", "mtu": 1500}, {}]
    assert flow.stdout == "  highwater = 900\n  rporthiswater = 900\n"
    assert after.ethtool("eth1", "rings") == {"rx": 4096, "rx_max": 4096}


def test_the_facts_hold_the_values_and_the_host_is_as_it_was(tmp_path: Path) -> None:
    here = system(tmp_path)
    plan = planned(tmp_path, "sysctl:net.core.rmem_max=8388608", "link:eth1:mtu=9000")
    steps = [step for change in plan.changes for step in change.steps]
    after, before = scan(after_steps(here, steps)), scan(here)
    mtus = [{one.name: one.mtu for one in facts.links}["eth1"] for facts in (before, after)]
    assert mtus == [1500, 9000]
    assert [facts.sysctl["net.core.rmem_max"] for facts in (before, after)] == ["4194304", "8388608"]


def test_what_the_kernel_does_along_with_an_mtu(tmp_path: Path) -> None:
    """Ports follow their bond; what is on top of a link has at most its MTU."""
    bond = Link("bond0", "bond", mtu=9000, on=("eth1", "eth2"))
    ports = [Link(name, mtu=9000, node=0) for name in ("eth1", "eth2")]
    here = system(tmp_path, (LOOPBACK, ETH0, *ports, bond, Link("bond0.7", "vlan", mtu=9000, on=("bond0",))))
    plan = planned(tmp_path, "link:bond0:mtu=4000")
    after = scan(after_steps(here, list_steps(plan, scan(here))))
    assert {one.name: one.mtu for one in after.links} == {
        **{"lo": 65536, "eth0": 1500},
        **dict.fromkeys(("eth1", "eth2", "bond0", "bond0.7"), 4000),
    }
    assert plan.foreseen == ()


def _apply(where: Path, **options: Any) -> Plan:
    return apply_profiles(host(where), [f"{SCALING}=0"], {}, store=Store(str(where / "state")), **options).plan


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    system(tmp_path, files={"/proc/sys/net/ipv4/tcp_window_scaling": "1\n", "/proc/sys/kernel/hostname": "here\n"})
    monkeypatch.setenv("ADVISOR_IGNORE_FILE", str(tmp_path / "ignore.toml"))
    return Store(str(tmp_path / "state"))


def test_a_new_warning_needs_force_and_the_journal_has_it(tmp_path: Path, store: Store) -> None:
    with pytest.raises(RefusedError) as refused:
        _apply(tmp_path)
    assert RULE in refused.value.message
    assert "--force" in (refused.value.hint or "")
    assert not store.read_records()
    _apply(tmp_path, force=True)
    (record,) = store.read_records()
    assert (record.forced, record.plan.would_report) == (True, (RULE,))


def test_a_person_who_has_seen_the_warning_may_agree(tmp_path: Path, store: Store) -> None:
    seen: list[tuple[str, ...]] = []
    _apply(tmp_path, agree=lambda plan: not seen.append(plan.would_report))  # type: ignore[func-returns-value]
    (record,) = store.read_records()
    assert (seen, record.forced) == ([(RULE,)], False)


def test_a_muted_finding_is_accepted(tmp_path: Path, store: Store) -> None:
    (tmp_path / "ignore.toml").write_text(f'[[ignore]]\nid = "{RULE}"\nhost = "here"\nreason = "a test"\n')
    _apply(tmp_path)
    assert len(store.read_records()) == 1


def test_a_proven_gain_that_a_scan_would_warn_of_is_not_kept(tmp_path: Path, store: Store) -> None:
    proof = msgspec.structs.replace(decide_session(session(pairs(1.3))), verdict="gain", cost="none")
    said: list[str] = []
    asked = load_requested([f"{SCALING}=0"])[0]
    assert not keep_gain(host(tmp_path), proof, {}, asked, say=said.append, store=store).kept
    assert not store.read_records()
    assert RULE in said[-1]
