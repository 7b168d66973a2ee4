"""What a person does with nothing but a shell, on a real kernel, and what the real command says about it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import needs_a_host
from tests.schemas import judge
from tests.transaction.veth import Done, Veth, veth
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")
TTL, FIN = "net.ipv4.ip_default_ttl", "net.ipv4.tcp_fin_timeout"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Veth]:
    with veth(tmp_path) as one:
        one.profile("aa", {f"sysctl:{TTL}": "70", f"sysctl:{FIN}": "31"})
        one.profile("bb", {f"sysctl:{TTL}": "70", f"sysctl:{FIN}": "32"})
        yield one


def values(host: Veth) -> tuple[str, str]:
    return host.sysctl(TTL), host.sysctl(FIN)


def script(host: Veth, identity: str, *options: str) -> Done:
    return host.call("sh", str(host.store / "transactions" / identity / "rollback.sh"), *options)


def test_two_layers_by_their_scripts_and_what_advisor_says_of_it(host: Veth) -> None:
    before = values(host), host.files()
    for name in ("aa", "bb"):
        host.advisor("apply", name, "--yes")
    assert values(host) == ("70", "32")
    first = script(host, "0001")
    assert first.returncode == 5
    assert "held by the later transaction 0002" in first.stdout
    assert script(host, "0002").returncode == 0
    assert values(host) == ("70", "31")
    assert "rolled back by its rollback script" in host.advisor("status")
    assert script(host, "0001").returncode == 0
    assert (values(host), host.files()) == before
    assert host.standings() == {"0001": "rolled-back", "0002": "rolled-back"}
    assert "No transaction is active" in host.advisor("verify")
    assert "no transaction is active" in host.advisor("rollback", code=3)
    host.advisor("apply", "bb", "--yes")
    host.advisor("rollback", "bb")
    assert (values(host), host.files()) == before


def test_a_script_while_it_waits_for_confirmation(host: Veth) -> None:
    host.profile("mtu", {"link:a0:mtu": "1400"})
    before = host.everything()
    host.advisor("apply", "mtu", "--yes", "--confirm-within", "300")
    said = host.advisor("verify")
    assert "0001 awaits confirmation: rolls back automatically in" in said
    assert "advisor confirm 0001" in said
    (waiting,) = judge(host.advisor("verify", "--json"))["awaiting_confirmation"]
    assert waiting["id"] == "0001"
    assert script(host, "0001").returncode == 0
    assert host.everything() == before
    assert "is not awaiting confirmation" in host.advisor("confirm", "1", code=3)
    host.advisor("apply", "aa", "--yes")
    until(lambda: not host.is_watched())
    assert host.standings() == {"0001": "rolled-back", "0002": "applied"}
    host.advisor("rollback")
    assert host.everything() == before


def test_drift_set_again_and_put_back(host: Veth) -> None:
    before = values(host), host.files()
    host.advisor("apply", "aa", "--yes")
    assert host.call("sysctl", "-w", f"{FIN}=99").returncode == 0
    assert "advisor apply aa\n" in host.advisor("verify", code=1)
    host.advisor("apply", "aa", "--yes")
    assert "lower layer 0001 holds it at 31" in host.advisor("rollback")
    assert values(host) == ("70", "31")
    host.advisor("verify")
    host.advisor("rollback")
    assert (values(host), host.files()) == before


def test_a_journal_that_is_empty(host: Veth) -> None:
    before = values(host), host.files()
    host.advisor("apply", "aa", "--yes")
    (host.store / "transactions/0001/journal").write_bytes(b"")
    path = str(host.store / "transactions/0001")
    for verb in ("status", "verify"):
        said = host.advisor(verb, code=2)
        assert "0001: damaged" in said
        assert f"{path}/rollback.sh" in "".join(said.split()), "a long name is folded"
        (one,) = judge(host.advisor(verb, "--json", code=2))["damaged"]
        assert (one["id"], one["script"]) == ("0001", f"{path}/rollback.sh")
    for code, *words in ((2, "rollback"), (2, "rollback", "1"), (3, "apply", "bb", "--yes")):
        assert "rollback.sh" in host.advisor(*map(str, words), code=int(code))
    assert "UNKNOWN" in host.advisor("verify", "--nagios", code=3)
    assert script(host, "0001").returncode == 0
    assert (values(host), host.files()) == before
    host.advisor("verify")
    host.advisor("apply", "bb", "--yes")


@needs_a_host
def test_a_dry_run_shows_what_goes(host: Veth) -> None:
    host.profile("cc", {f"sysctl:{FIN}": "33"})
    host.advisor("apply", "aa", "--yes")
    said = host.advisor("apply", "cc", "--instead-of", "aa", "--dry-run")
    assert "rm -f /etc/sysctl.d/90-advisor-aa.conf\n" in said
    assert "printf '%s\\n' 64 > /proc/sys/net/ipv4/ip_default_ttl\n" in said
    steps = json.loads(host.advisor("apply", "cc", "--instead-of", "aa", "--dry-run", "--json"))["steps"]
    assert "rm -f /etc/sysctl.d/90-advisor-aa.conf" in [command for step in steps for command in step["commands"]]
    planned = " ".join(host.advisor("plan", "cc", "--instead-of", "aa").split())
    assert "/etc/sysctl.d/90-advisor-aa.conf is removed" in planned
