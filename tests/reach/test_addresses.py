"""Addresses and names as users and hosts give them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.reach.addresses import parse_address, resolve, why_not_askable
from tests.cases import cases

CASES = cases(__file__)


@pytest.mark.parametrize(("text", "canonical"), CASES["an address is an address"])
def test_an_address_is_an_address(text: str, canonical: str) -> None:
    assert str(parse_address(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "192.0.2", "192.0.2.02", "192.0.2.2/24", "192.0.2.2 ", "192.0.2.٢", "192.0.2.2\n"),
        *("2001:db8::g", "fe80::1%", "[2001:db8::1]", "-n", "a;reboot"),
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert parse_address(text) is None


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    address = parse_address(text)
    assert address is None or parse_address(str(address)) == address


@pytest.mark.parametrize(("text", "why"), CASES["whom nobody can ask"])
def test_whom_nobody_can_ask(text: str, why: str) -> None:
    assert why in str(why_not_askable(ipaddress.ip_address(text)))
    with pytest.raises(UsageError, match=why):
        resolve(text)


@pytest.mark.parametrize(
    "name", ["", "a" * 70 + ".b", "a..b", ".", "with blank", "-n", "x\0y", "\ud800", "192.0.2.2/24", "é" * 300]
)
def test_names_that_nobody_has(name: str) -> None:
    with pytest.raises(UsageError, match="neither an address nor a name"):
        resolve(name)
