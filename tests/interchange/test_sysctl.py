"""sysctl files and directories of them."""

from __future__ import annotations

import pytest

from advisor.errors import InvalidInputError
from advisor.interchange.records import Mode
from advisor.interchange.sysctl_text import import_sysctl
from advisor.interchange.to_profile import to_profile
from tests.interchange.hosts import PROC, became, machine, values

FILE = "/etc/sysctl.d/10-own.conf"


def made(text: str | bytes, mode: Mode = "faithful") -> dict[str, str | None]:
    found = import_sysctl(FILE, machine({FILE: text}), mode)
    assert len(to_profile(found).tunables) == len(values(found))
    return values(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vm.swappiness = 10\n", {"sysctl:vm.swappiness": "10"}),
        ("# why\n; also\nvm.swappiness=1\nvm.swappiness=2\n", {"sysctl:vm.swappiness": "2"}),
        ("-net/ipv4/conf/eth0.10/rp_filter = 2\n", {"sysctl:net.ipv4.conf.eth0/10.rp_filter": "2"}),
        ("net.ipv4.tcp_rmem = 4096\t1 2\n", {"sysctl:net.ipv4.tcp_rmem": "4096 1 2"}),
        ("vm.dirty_ratio=5\nvm.dirty_bytes=1000000\n", {"sysctl:vm.dirty_bytes": "1000000"}),
        ("kernel.modprobe=/tmp/x\n", {}),
        ("vm.swappiness=ten\n", {}),
        ('net.core.rmem_max="5"\n', {}),
        ("-vm.swappiness\n", {}),
        ("\0\n===\n = \nvm\n", {}),
    ],
)
def test_lines(text: str, expected: dict[str, str]) -> None:
    assert made(text) == expected


def test_quotes_are_not_meant() -> None:
    assert made('net.ipv4.tcp_rmem="4096 1 2"\n', "intent") == {"sysctl:net.ipv4.tcp_rmem": "4096 1 2"}


def test_a_directory_in_the_order_of_names() -> None:
    host = machine(
        {FILE: "vm.swappiness=1\n", "/etc/sysctl.d/99-z.conf": "vm.swappiness=9\n", "/etc/sysctl.d/x": "a=1\n"}
    )
    found = import_sysctl("/etc/sysctl.d", host, "faithful")
    assert values(found) == {"sysctl:vm.swappiness": "9"}
    assert became(found, "vm.swappiness")[0].why == "/etc/sysctl.d/99-z.conf line 1 sets it again"
    assert found.sources == (FILE, "/etc/sysctl.d/99-z.conf")


def test_a_pattern_stands_for_the_keys_of_this_host() -> None:
    keys: dict[str, str | bytes] = {f"{PROC}/net/ipv4/conf/{name}/rp_filter": "0\n" for name in ("eth0", "eth1", "all")}
    text = "net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.eth1.rp_filter=1\n"
    found = import_sysctl(FILE, machine({**keys, FILE: text}), "faithful")
    assert values(found) == {
        "sysctl:net.ipv4.conf.eth0.rp_filter": "2",
        "sysctl:net.ipv4.conf.eth1.rp_filter": "1",
    }
    assert became(import_sysctl(FILE, machine({FILE: "a.*=1\n"}), "intent"), "a.*")[0].outcome == "ignored"


def test_the_authors_own_words_are_the_reason() -> None:
    found = import_sysctl(FILE, machine({FILE: "# Swap late. Or never.\nvm.swappiness=1\n"}), "intent")
    assert to_profile(found).tunables[0].why == "Swap late."


def test_lowering_is_told() -> None:
    host = machine({FILE: "net.ipv4.tcp_rmem=4096 87380 16777216\n"})
    assert [one.kind for one in import_sysctl(FILE, host, "faithful").differences] == ["lowers"]
    assert became(import_sysctl(FILE, host, "intent"), "net.ipv4.tcp_rmem")[0].sense == "at-least"


@pytest.mark.parametrize("data", [b"\xff=1\n", b"a" * 300_000])
def test_what_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"10-own\.conf"):
        made(data)


def test_what_is_not_there() -> None:
    with pytest.raises(InvalidInputError, match="/nosuch: does not exist"):
        import_sysctl("/nosuch", machine(), "faithful")
    with pytest.raises(InvalidInputError, match="holds no"):
        import_sysctl(
            "/etc/tmpfiles.d", machine({"/etc/tmpfiles.d/x": ""}, without=("/etc/tmpfiles.d/x.conf",)), "intent"
        )
