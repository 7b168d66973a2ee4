"""What may be called a host, and what is read without one."""

from __future__ import annotations

import pytest

from advisor.errors import UsageError
from advisor.proof.network import parse_bound_ports
from advisor.proof.peer import check_destination, explain_failure
from advisor.proof.process import EndedProcess


@pytest.mark.parametrize(
    "text", ["", "-oProxyCommand=x", "a b", "a;b", "$(x)", "far\n", "@far", "user@-x", "a'b", "root@far/", "x" * 400]
)
def test_what_ssh_or_a_shell_could_take_otherwise_is_no_host(text: str) -> None:
    with pytest.raises(UsageError):
        check_destination(text)


@pytest.mark.parametrize("text", ["far", "root@far", "node-1.example.org", "192.0.2.2", "u_1@2001:db8::2"])
def test_what_is_a_host(text: str) -> None:
    assert check_destination(text) == text


def test_ports_in_use_are_those_that_are_bound() -> None:
    text = (
        "  sl  local_address rem_address   st tx_queue rx_queue\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n"
        "   1: 0100007F:A001 0100007F:1F91 06 00000000:00000000\n"
        "   2: 0100007F:0016 0100007F:1F92 01 00000000:00000000\n"
        "   3: cut off\n"
    )
    assert parse_bound_ports(text) == {0x1F90, 0x16}


def test_a_connection_that_ended_without_a_word_is_said_to_be_lost() -> None:
    error = explain_failure("far", EndedProcess(255, "", "", False, 0.0))
    assert "lost" in error.message
    assert error.hint is not None
