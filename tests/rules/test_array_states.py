"""Arrays in states of which one thing is true and another, that sounds like it, is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import tree_host
from advisor.operations import scan
from advisor.rules.rule import Finding
from tests.cases import read_cases
from tests.trees import make_tree


def findings_of(place: Path, mdstat: str) -> dict[str, list[Finding]]:
    """The findings of a host with this /proc/mdstat, by their rule."""
    text = f"Personalities : [raid1] [raid6]\n{mdstat}\nunused devices: <none>\n"
    found: dict[str, list[Finding]] = {}
    for one in scan(tree_host(str(make_tree(place, {"/proc/mdstat": text})))).findings:
        found.setdefault(one.id, []).append(one)
    return found


DATA = read_cases(__file__)


@pytest.mark.parametrize(("mdstat", "loss", "severity", "left"), DATA["what_more_may_be_lost"])
def test_what_more_may_be_lost(tmp_path: Path, mdstat: str, loss: str, severity: str, left: int) -> None:
    [one] = findings_of(tmp_path, mdstat)["arrays.degraded"]
    assert loss in one.why
    assert (one.severity, one.evidence["survives"]) == (severity, left)


def test_an_inactive_array_is_not_whole(tmp_path: Path) -> None:
    found = findings_of(tmp_path, "md4 : inactive raid1 sda3[0](F) sdb3[1](S)\n 100 blocks [2/2] [UU]")
    assert "arrays.degraded" not in found
    assert [one.severity for one in found["arrays.inactive"]] == ["critical"]


def test_what_waits_is_not_at_work(tmp_path: Path) -> None:
    found = findings_of(
        tmp_path,
        "md9 : active raid1 sdd1[1] sdc1[0]\n 100 blocks super 1.2 [2/2] [UU]\n \tresync=DELAYED\n\n"
        "md8 : active (auto-read-only) raid1 sdb1[1] sda1[0]\n 100 blocks super 1.2 [2/2] [UU]\n \tresync=PENDING\n",
    )
    [one] = found["arrays.rebuilding"]
    assert one.evidence["detail"] == ("md8: resync waits (PENDING)", "md9: resync waits (DELAYED)")
    assert "The resync of md8 begins with the first write to it." in str(one.fix)
    assert "resync of md9" not in str(one.fix)
