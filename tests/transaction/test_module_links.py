"""A module that makes links takes them along when it is removed, whoever made them: where there are any, it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Host
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from tests.cases import cases
from tests.transaction.kernel_system import build, plan_of
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import make_command

CASES = cases(__file__)

MODULES = CASES["MODULES"]
# As iproute2 prints links of a kind, one to a line.
IP = 'cat "{root}/run/links/$5" 2>/dev/null || true'
NSENTER = 'shift; exec "$@"'
LINK = "7: {}@eth1: <BROADCAST,MULTICAST{}> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000\n"
IDLE = "9: gre0@NONE: <NOARP> mtu 1476 qdisc noop state DOWN mode DEFAULT group default qlen 1000\n"


def machine(where: Path) -> Host:
    host = build(where, MODULES)
    make_command(where / "bin", "ip", IP.format(root=where / "root"))
    make_command(where / "bin", "nsenter", NSENTER)
    return host


def loaded(where: Path) -> set[str]:
    return {line.split()[0] for line in (where / "root/proc/modules").read_text().splitlines()} - {"dep_a", "other"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_leaves_it_too_until_the_link_is_gone(tmp_path: Path, shell: list[str]) -> None:
    host, store = machine(tmp_path), Store(str(tmp_path / "state"))
    link = tmp_path / "root/run/links/macvlan"
    with store.hold_lock():
        record = apply_plan(host, plan_of(host, {"module:macvtap": "loaded"}), store)
        link.write_text(LINK.format("lab-mv", ",UP"))
    done = run_script(store.script_path(record.id), tmp_path, shell=shell)
    assert done.returncode != 0
    assert "lab-mv" in done.stdout + done.stderr
    assert loaded(tmp_path) == {"macvtap", "macvlan"}
    link.unlink()
    done = run_script(store.script_path(record.id), tmp_path, shell=shell)
    assert done.returncode == 0, done.stdout + done.stderr
    assert loaded(tmp_path) == set()


@pytest.mark.parametrize(("link", "is_used"), [(IDLE, False), (IDLE.replace("NOARP", "NOARP,UP"), True)])
def test_a_link_that_the_module_makes_itself_counts_when_it_is_up(tmp_path: Path, link: str, *, is_used: bool) -> None:
    host, store = machine(tmp_path), Store(str(tmp_path / "state"))
    with store.hold_lock():
        record = apply_plan(host, plan_of(host, {"module:ip_gre": "loaded"}), store)
        (tmp_path / "root/run/links/gre").write_text(link)
        outcomes = roll_back(host, record, store)
    assert all(one.is_back for one in outcomes) != is_used
    assert loaded(tmp_path) == ({"ip_gre"} if is_used else set())


def test_what_cannot_be_told_is_not_removed(tmp_path: Path) -> None:
    host, store = machine(tmp_path), Store(str(tmp_path / "state"))
    with store.hold_lock():
        record = apply_plan(host, plan_of(host, {"module:macvtap": "loaded"}), store)
        make_command(tmp_path / "bin", "ip", "echo 'ip: unknown argument' >&2; exit 255")
        (lost,) = [one for one in roll_back(host, record, store) if not one.is_back]
    assert "unknown argument" in lost.detail
    assert loaded(tmp_path) == {"macvtap", "macvlan"}
