"""Values of sysctls as the kernel reads them, and those that it refuses; the kernel of this machine is the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.settings.value import kernel_number, out_of_bounds, to_canonical
from advisor.tunables import parse_tunable
from advisor.tunables.sysctl import explain_commit_limit
from tests.cases import cases, read_cases
from tests.running import run_text
from tests.trees import host_of, make_tree

DATA = read_cases(__file__)

CASES = cases(__file__)

TTL = "net.ipv4.ip_default_ttl"
PORTS = "net.ipv4.ip_local_port_range"
RMEM = "net.ipv4.tcp_rmem"
VALUES = [
    *((TTL, value) for value in ("65 # comment", "050", "0x10", "7 8 9", "00", "0", "256", "-1", "08", "0x", "65#")),
    (PORTS, "60000 100"),
    (PORTS, "010000 60999 # x"),
    (PORTS, "1024 70000"),
    (RMEM, "0x1000 0200000 6291456 # c"),
    (RMEM, "8192 4096 6291456"),
    ("net.ipv4.tcp_tw_reuse", "3"),
    ("net.ipv4.tcp_tw_reuse", "02"),
    ("net.ipv4.tcp_fin_timeout", "050 60"),
    *((key, value) for key in ("net.core.somaxconn", "net.ipv4.udp_rmem_min") for value in ("-1", "0", "512")),
    (RMEM, "0 131072 6291456"),
]


def written(key: str, value: str) -> str | None:
    """What a network namespace of its own has after the value is written there; None where it refuses it."""
    path = f"/proc/sys/{key.replace('.', '/')}"
    script = f'printf %s "$1" > {path} || exit 9; cat {path}'
    done = run_text(["unshare", "-n", "sh", "-c", script, "sh", value])
    if "unshare:" in done.stderr:
        pytest.skip(f"no network namespace here: {done.stderr.strip()[-120:]}")
    assert done.returncode in (0, 9)
    return " ".join(done.stdout.split()) if done.returncode == 0 else None


@pytest.mark.parametrize(("key", "value"), VALUES)
def test_a_value_is_what_the_kernel_makes_of_it(key: str, value: str) -> None:
    now = written(key, value)
    read = to_canonical(key, value, numbers={RMEM: 3, PORTS: 2}.get(key, 1))
    if now is None:
        assert out_of_bounds(key, read) is not None or None in map(kernel_number, read.split())
    else:
        assert read == now
        assert out_of_bounds(key, read) is None


@pytest.mark.parametrize(("identity", "value", "wrong"), CASES["a plan refuses it with the reason"])
def test_a_plan_refuses_it_with_the_reason(identity: str, value: str, wrong: str) -> None:
    assert wrong in (parse_tunable(identity).check_value(value) or "")


@pytest.mark.parametrize(
    ("key", "value"), [*CASES["what the kernel takes or is not known stays as it is"], ("vm.swappiness", "9" * 5000)]
)
def test_what_the_kernel_takes_or_is_not_known_stays_as_it_is(key: str, value: str) -> None:
    assert to_canonical(key, value) == value
    if len(value) < 100:
        assert parse_tunable(f"sysctl:{key}").check_value(value) is None


@pytest.mark.parametrize(
    ("limit", "asked", "words"), CASES["strict accounting needs room for what is asked for already"]
)
def test_strict_accounting_needs_room_for_what_is_asked_for_already(
    tmp_path: Path, limit: int | None, asked: int | None, words: str | None
) -> None:
    figures = "" if limit is None else f"CommitLimit:    {limit} kB\nCommitted_AS:   {asked} kB\n"
    tree = {"/proc/sys/vm/overcommit_memory": "0\n", "/proc/meminfo": f"MemTotal:  2097152 kB\n{figures}"}
    found = explain_commit_limit(host_of(make_tree(tmp_path, tree)), {"vm.overcommit_memory": "2"})
    assert (found is None) == (words is None)
    assert words is None or words in str(found)


@pytest.mark.parametrize(("live", "planned", "is_refused"), DATA["accounting_is_judged_with_all_that_is_planned_of_it"])
def test_accounting_is_judged_with_all_that_is_planned_of_it(
    live: str, planned: dict[str, str], *, is_refused: bool, tmp_path: Path
) -> None:
    meminfo = "MemTotal: 2097152 kB\nCommitLimit: 500000 kB\nCommitted_AS: 600000 kB\n"
    tree = {"/proc/sys/vm/overcommit_memory": f"{live}\n", "/proc/meminfo": meminfo}
    own = {f"vm.overcommit_{name}": value for name, value in planned.items()}
    assert (explain_commit_limit(host_of(make_tree(tmp_path, tree)), own) is not None) is is_refused
