"""The commands that findings advise: each can be pasted as it stands, what else there is to say comes after it."""

from __future__ import annotations

import re
import shlex

import pytest

from advisor.rules.finding import Finding
from tests.rules.build import link, llt, llt_link
from tests.rules.cases_storage import sysctl
from tests.rules.table import table
from tests.rules.test_edges import only

_FINDINGS = tuple(finding for row in table() for seen in row.fires for finding in seen.findings(row.rule))
_STARTS = ("sysctl ", "lltconfig ", "ip link ", "ethtool ", "tc ")


def commands(finding: Finding) -> list[str]:
    """The parts of an advice that begin like a command."""
    return [part for part in finding.advice.split("; ") if part.startswith(_STARTS) and "VALUE" not in part]


def test_commands_are_alone_in_their_part_of_the_advice() -> None:
    found = {command for finding in _FINDINGS for command in commands(finding)}
    assert len(found) > 10
    wrong = {command for command in found if re.search(r"[()]|, |\b(and|or|where|if|the)\b", command)}
    assert wrong == set()


def test_what_sysctl_is_given_are_settings_alone() -> None:
    found = {one for finding in _FINDINGS for one in commands(finding) if one.startswith("sysctl -w")}
    settings = [word for command in found for word in shlex.split(command)[2:]]
    assert settings
    assert [one for one in settings if not re.fullmatch(r"[a-z0-9_.]+=[^,;()]*[^,;() ](,[0-9-]+)*", one)] == []


@pytest.mark.parametrize(
    ("reserved", "command"),
    [
        ("", "sysctl -w net.ipv4.ip_local_reserved_ports=50000"),
        ("8080,50001-50009", "sysctl -w net.ipv4.ip_local_reserved_ports=8080,50001-50009,50000"),
    ],
)
def test_ports_that_are_reserved_already_are_part_of_the_command(reserved: str, command: str) -> None:
    keys = sysctl(net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports=reserved)
    found = only("llt.port-not-reserved", **keys, llt=llt(llt_link("a", None, port="50000")))
    assert found.advice.split("; ")[0] == command


def test_a_list_of_ports_that_is_none_is_not_pasted() -> None:
    keys = sysctl(net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports="1;reboot")
    found = only("llt.port-not-reserved", **keys, llt=llt(llt_link("a", None, port="50000")))
    assert "reboot" not in found.advice
    assert "already" in found.advice


def test_bbr_names_what_paces_the_links_that_are_up() -> None:
    keys = sysctl(net__ipv4__tcp_congestion_control="bbr", net__core__default_qdisc="fq_codel")
    links = (link("eth0"), link("eth1", state="down", carrier=False), link("e;id"))
    advice = only("network.bbr-unpaced", **keys, links=links).advice
    assert advice.startswith("sysctl -w net.core.default_qdisc=fq; ")
    assert "tc qdisc replace dev eth0 root fq; " in advice
    assert "tc qdisc replace dev 'e;id' root fq; " in advice
    assert "eth1" not in advice
    assert "link:IFACE:qdisc" in advice
    assert "tc qdisc show" in advice
