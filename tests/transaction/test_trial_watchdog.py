"""A measurement switches nothing whose watchdog is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import CommandError
from advisor.transaction.trial import Trial
from advisor.transaction.watchdog import Watchdog
from tests.planning.system import host, planned, system

VALUE = "/proc/sys/vm/swappiness"


def test_nothing_is_switched_without_the_watchdog(tmp_path: Path) -> None:
    system(tmp_path, files={VALUE: "60\n"})
    plan = planned(tmp_path, "sysctl:vm.swappiness=10")
    (tmp_path / "0001").mkdir()
    trial = Trial(host(tmp_path), plan, Watchdog(tmp_path / "0001", "unit"))
    with pytest.raises(CommandError, match="the watchdog of this measurement was killed"):
        trial.set_values()
    assert (tmp_path / "root" / VALUE[1:]).read_text() == "60\n"
    Trial(host(tmp_path), plan).set_values()
    assert (tmp_path / "root" / VALUE[1:]).read_text().strip() == "10"
