"""Units of the command line, and price files: what is wrong is named with its option or field."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InvalidInputError, UsageError
from advisor.sizing.cloud import parse_prices, read_prices
from advisor.sizing.records import parse_demand
from tests.known import known

HEAD = b'date = 2026-11-01\ncurrency = "EUR"\n'


@pytest.mark.parametrize(
    ("option", "text", "field", "value"),
    [
        ("read", "8GB/s", "read_mb_s", 8000),
        ("read", "500MB/s", "read_mb_s", 500),
        ("write", "4GiB/s", "write_mb_s", 4294.967296),
        ("write", "25Gbit/s", "write_mb_s", 3125),
        ("read", " 8 gb/s ", "read_mb_s", 8000),
        ("iops", "200000", "iops", 200_000),
        ("iops", "200k", "iops", 200_000),
        ("iops", "200,000", "iops", 200_000),
        ("iops", "1.5M", "iops", 1_500_000),
        ("latency", "1ms", "latency_ms", 1),
        ("latency", "500us", "latency_ms", 0.5),
        ("latency", "500µs", "latency_ms", 0.5),
        ("latency", "0.01s", "latency_ms", 10),
        ("capacity", "1TiB", "capacity_bytes", 2**40),
        ("capacity", "500GB", "capacity_bytes", 500_000_000_000),
    ],
)
def test_units(option: str, text: str, field: str, value: float) -> None:
    assert getattr(parse_demand(**{option: text}), field) == pytest.approx(value)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        *(("read", text) for text in ("8", "0GB/s", "-1GB/s", "GB/s", "8GB", "8XB/s", "nanGB/s", "1e3GB/s", "")),
        *(("iops", text) for text in ("many", "0", "-5", "5GB/s", "", "1e9", "inf")),
        *(("latency", text) for text in ("1", "0ms", "1m", "-1ms", "")),
        *(("capacity", text) for text in ("1", "1T", "0GB", "")),
    ],
)
def test_what_is_wrong_names_option_and_value(option: str, text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--{option} {text}: expected")):
        parse_demand(**{option: text})


@given(st.text(max_size=12))
def test_nothing_but_an_error_comes_of_noise(text: str) -> None:
    for option in ("read", "iops", "latency", "capacity"):
        with contextlib.suppress(UsageError):
            assert parse_demand(**{option: text})


def example() -> bytes:
    page = (Path(__file__).parents[2] / "docs/size.md").read_text()
    found = known(re.search(r"```toml\n(.*?)```", page, re.DOTALL))
    return found[1].encode()


def test_the_example_of_the_documentation_is_valid_and_json_says_the_same() -> None:
    found = parse_prices(example(), "docs")
    assert found.instances["r5b.24xlarge"] == 8.5
    document: dict[str, Any] = {"date": "2026-11-01", "currency": "EUR", "instances": {"r5b.24xlarge": 8.5}}
    assert parse_prices(json.dumps(document).encode(), "p.json").instances == {"r5b.24xlarge": 8.5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "field date: it is missing"),
        (b"date = 2026-11-01\n", "field currency: it is missing"),
        (b'date = "soon"\ncurrency = "EUR"\n', "field date"),
        (HEAD + b"price = 3\n", "field price: there is no such field"),
        (HEAD + b'[instances]\n"a" = -1\n', "field instances"),
        (HEAD + b'[instances]\n"a" = "x"\n', "field instances"),
        (HEAD + b"[volumes.gp3]\n", r"field volumes.gp3: neither each"),
        (HEAD + b"[volumes.gp3]\neach = 1\ngib = 2\n", "field volumes.gp3.each"),
        (HEAD + b"[volumes.gp3]\ngb = 2\n", "gb: there is no such field"),
        (HEAD + b'[volumes.gp3]\ngib = 1\nper = "year"\n', "per"),
        (HEAD + b"[volumes.io2]\niops = []\n", "field volumes.io2.iops: expected steps"),
        (HEAD + b"[volumes.io2]\niops = [{price = 1, up-to = 5}]\n", "field volumes.io2.iops: expected steps"),
        (HEAD + b"[volumes.io2]\niops = [{price = 1}, {price = 2}]\n", "field volumes.io2.iops: expected steps"),
        (
            HEAD + b"[volumes.io2]\niops = [{price=1,up-to=9}, {price=1,up-to=5}, {price=2}]\n",
            "field volumes.io2.iops: expected steps",
        ),
        (b"x", "not valid TOML"),
        (b"{", "not valid JSON"),
        (b"\xff", "not UTF-8"),
        (b"a" + b".a" * 50_000, "p: "),
    ],
)
def test_a_price_file_that_is_wrong_is_refused_with_its_field(text: bytes, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        parse_prices(text, "p")
    assert caught.value.message.startswith("p: ")


def test_a_price_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No such file"):
        read_prices(tmp_path / "absent")


@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    with contextlib.suppress(InvalidInputError):
        parse_prices(data, "p")
