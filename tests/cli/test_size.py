"""``advisor size`` as a command: text, JSON with its schema, exit codes, bad input, a saved series."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from advisor.proof.archive import save_result
from advisor.proof.series import summarise_series
from tests.cli.inside import call_inside
from tests.proof.benches import series
from tests.schemas import judge


def advisor(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call_inside("size", *words, **environment)


def document(*words: str | Path, code: int = 0) -> dict[str, Any]:
    done = advisor("--json", *words)
    assert done.returncode == code, done.stderr
    found = judge(done.stdout)
    assert found["schema"] == "advisor.size/1"
    return found


DEMAND = ("--read", "8GB/s", "--write", "3GB/s", "--iops", "200000", "--latency", "1ms")


def test_a_demand_in_all_clouds() -> None:
    found = document(*DEMAND)
    assert found["demand"]["read_mb_s"] == 8000
    # Of drives in servers the IOPS and the latency are unknown, which carry no demand.
    assert {one["cloud"] for one in found["choices"]} == {"aws", "azure"}
    assert {one["cloud"] for one in document(*DEMAND[:4])["choices"]} == {"aws", "azure", "metal"}
    for one in found["choices"]:
        assert {"instance", "volumes", "read_mb_s", "write_mb_s", "iops", "binds", "headroom", "unusable", "price"} <= {
            *one
        }
        assert one["price"] is None


def test_it_fits_a_terminal_of_80_columns() -> None:
    done = advisor(*DEMAND, COLUMNS="80")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def test_nothing_carries_it() -> None:
    found = document("--read", "90GB/s", "--cloud", "aws", code=1)
    assert found["choices"] == []
    assert [one["quantity"] for one in found["short"]] == ["mb_s"]
    done = advisor("--read", "90GB/s", "--cloud", "aws")
    assert (done.returncode, done.stderr) == (1, "")
    assert "No choice carries it." in done.stdout


def test_choices_that_may_carry_it_are_listed_and_are_no_success() -> None:
    words = ("--read", "8GB/s", "--write", "3GB/s", "--iops", "200000", "--latency", "1ms", "--limit", "3")
    assert document(*words)["found"] > document(*words)["undecided"], "Azure has a size that is known to carry it"
    on_aws = ("--read", "10GB/s", *words[2:], "--cloud", "aws")
    found = document(*on_aws, code=1)
    assert found["choices"]
    assert found["found"] == found["undecided"] > 0
    assert all(one["unknown"] for one in found["choices"])
    assert advisor(*on_aws).returncode == 1


def test_prices(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(
        'date = 2026-11-01\ncurrency = "EUR"\n[instances]\n"r5b.24xlarge" = 8\n[volumes.io2]\niops = 0.05\n'
    )
    words = ("--iops", "200k", "--cloud", "aws", "--instance", "r5b.24xlarge", "--prices", tmp_path / "p.toml")
    first, second = document(*words)["choices"]
    assert first["price"] == {"amount": 8 * 730 + 200_000 * 0.05, "currency": "EUR", "per": "month"}
    assert (second["price"], second["price_lacks"]) == (None, ["gp3"])


def test_a_saved_series_is_a_demand(tmp_path: Path) -> None:
    measured = msgspec.structs.replace(series([2000.0] * 24), device="nvme1n1")
    save_result(tmp_path / "saved", summarise_series(measured), {})
    found = document("--from", tmp_path / "saved", "--cloud", "aws", "--limit", "1")
    assert found["demand"]["iops"] == 2000
    assert found["demand"]["measured_from"] == str(tmp_path / "saved")
    assert document("--from", tmp_path / "saved", "--iops", "5k", "--limit", "1")["demand"]["iops"] == 5000
