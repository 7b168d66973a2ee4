"""What a person does with nothing but a shell, on a real kernel, and what the real command says about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

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
