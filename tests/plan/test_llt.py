"""LLT's high-water marks doubled: of the value before us, whatever the spelling, and only where LLT runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import RefusedError
from tests.plan.system import applied, host, llt, planned, skipped, states, system, values

DOUBLED = "llt-highwater-doubled"
TABLE = "set-node a\nset-cluster 7\nlink eth1 eth1 - ether - -\n"


def test_twice_the_value_before_us_however_often(tmp_path: Path) -> None:
    system(tmp_path, files={"/etc/llttab": TABLE}, commands=llt(tmp_path))
    assert values(applied(tmp_path, DOUBLED)) == {
        "llt:highwater": ("1000", "2000"),
        "llt:rporthighwater": ("1000", "2000"),
    }
    again = planned(tmp_path, DOUBLED)
    assert again.is_empty
    assert states(again) == {"llt:highwater": "in-place", "llt:rporthighwater": "in-place"}
    assert values(planned(tmp_path, DOUBLED, factor="3")) == {
        "llt:highwater": ("2000", "3000"),
        "llt:rporthighwater": ("2000", "3000"),
    }
    text = (tmp_path / "root/etc/llttab").read_text()
    assert text == TABLE + "set-flow highwater:2000\nset-flow rporthighwater:2000\n"


def test_a_restart_of_llt_keeps_it(tmp_path: Path) -> None:
    system(tmp_path, files={"/etc/llttab": TABLE}, commands=llt(tmp_path))
    applied(tmp_path, DOUBLED)
    for option in ("-U", "-c"):
        host(tmp_path).run(("lltconfig", option))
    assert planned(tmp_path, DOUBLED).is_empty


def test_without_llttab_it_lasts_until_a_restart(tmp_path: Path) -> None:
    system(tmp_path, commands=llt(tmp_path))
    plan = planned(tmp_path, DOUBLED)
    assert plan.files == ()
    assert {(one.persist, str(one.persist_note)[:24]) for one in plan.changes} == {(None, "/etc/llttab does not exi")}


def test_where_llt_is_not(tmp_path: Path) -> None:
    system(tmp_path)
    plan = planned(tmp_path, DOUBLED)
    assert plan.cannot_apply
    assert skipped(plan, "llt:highwater").state == "not-applicable"
    assert "LLT is not installed" in skipped(plan, "llt:highwater").reason


def test_where_llt_does_not_run(tmp_path: Path) -> None:
    system(tmp_path, files={"/etc/llttab": TABLE}, commands=llt(tmp_path))
    host(tmp_path).run(("lltconfig", "-U"))
    plan = planned(tmp_path, DOUBLED)
    assert plan.cannot_apply
    assert {one.reason for one in plan.skipped} == {"LLT is not running, so its values cannot be read"}
    assert set(states(plan).values()) == {"not-applicable"}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("echo '  highwater = 1000'", "not-applicable"),
        ("echo no licence >&2; exit 1", "unknown"),
        ("echo '  highwater = many'; echo '  rporthiswater=many'", "not-applicable"),
        ("printf 'rporthighwater = \\377'", "unknown"),
    ],
)
def test_an_odd_answer_is_no_value(answer: str, state: str, tmp_path: Path) -> None:
    script = f'case "$*" in "-F query") {answer} ;; *) echo LLT is running ;; esac'
    system(tmp_path, files={"/etc/llttab": TABLE}, commands={"lltconfig": script})
    assert states(planned(tmp_path, DOUBLED))["llt:rporthighwater"] == state


def test_the_memory_budget(tmp_path: Path) -> None:
    peers = "".join(f"set-addr {number} eth1 192.0.2.{number}\n" for number in range(1, 65))
    memory = {"/proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"}
    system(tmp_path, files={"/etc/llttab": TABLE + peers, **memory}, commands=llt(tmp_path))
    with pytest.raises(RefusedError) as caught:
        planned(tmp_path, DOUBLED)
    # 64 peers, 4000 packets of 8 KiB each.
    assert "LLT queues for 64 peer(s) could take 2000 MiB of 4096 MiB available" in caught.value.message
    assert caught.value.hint == "lower --set factor="
