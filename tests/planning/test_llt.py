"""LLT's high-water marks doubled: of the value before us, whatever the spelling, and only where LLT runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import RefusedError
from tests.cases import cases
from tests.planning.system import applied, host, llt, planned, skipped, states, system, values

CASES = cases(__file__)

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


def test_where_llt_is_not_or_does_not_run(tmp_path: Path) -> None:
    system(tmp_path)
    plan = planned(tmp_path, DOUBLED)
    assert plan.cannot_apply
    assert skipped(plan, "llt:highwater").state == "not-applicable"
    assert "LLT is not installed" in skipped(plan, "llt:highwater").reason
    where = tmp_path / "stopped"
    system(where, files={"/etc/llttab": TABLE}, commands=llt(where))
    host(where).run(("lltconfig", "-U"))
    stopped = planned(where, DOUBLED)
    assert stopped.cannot_apply
    assert {(one.state, one.reason) for one in stopped.skipped} == {
        ("not-applicable", "LLT is not running, so its values cannot be read")
    }


@pytest.mark.parametrize(("answer", "state"), CASES["an odd answer is no value"])
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
    assert "LLT queues for 64 peers could take 2000 MiB of 4096 MiB available" in caught.value.message
    assert caught.value.hint == "lower --set factor="


FLOW = "  lowwater = 800\n  highwater = {0}\n  rportlowwater = 800\n  {2} = {1}\n  window = 50\n"


def doubled(
    where: Path, live: tuple[int, int], *lines: str, spelt: str = "rporthighwater", **settings: str
) -> dict[str, tuple[str, str] | str]:
    """What is planned of each mark: its values, or the state of what is skipped."""
    script = f"""case "$*" in "-F query") printf '{FLOW.format(*live, spelt)}' ;; *) echo LLT is running ;; esac"""
    files = {"/etc/llttab": TABLE + "".join(f"{line}\n" for line in lines)}
    system(where, files=files, commands={"lltconfig": script.replace("\n", "\\n")})
    plan = planned(where, DOUBLED, **settings)
    assert not (plan.changes and plan.blocking)
    return {**values(plan), **states(plan)}


BOTH = ("set-flow highwater:{0}", "set-flow rporthighwater:{0}")


def both(value: int) -> tuple[str, ...]:
    return tuple(line.format(value) for line in BOTH)


@pytest.mark.parametrize("spelt", ["rporthighwater", "rporthiswater"])
@pytest.mark.parametrize(("live", "kept", "settings", "expected"), CASES["doubled once of a default that is known"])
def test_doubled_once_of_a_default_that_is_known(
    live: tuple[int, int],
    kept: int | None,
    settings: dict[str, str],
    expected: list[str] | str,
    spelt: str,
    tmp_path: Path,
) -> None:
    lines = () if kept is None else (f"set-flow highwater:{kept}", f"set-flow {spelt}:{kept}")
    found = doubled(tmp_path, live, *lines, spelt=spelt, **settings)
    wanted = tuple(expected) if isinstance(expected, list) else expected
    assert found == {"llt:highwater": wanted, "llt:rporthighwater": wanted}


def test_the_spelling_of_the_file_stays(tmp_path: Path) -> None:
    system(tmp_path, files={"/etc/llttab": f"{TABLE}set-flow rporthiswater:1500\n"}, commands=llt(tmp_path))
    plan = planned(tmp_path, DOUBLED, default="1000")
    assert [edit.key for file in plan.files for edit in file.edits] == ["highwater", "rporthighwater"]
    assert plan.files[0].after.decode() == f"{TABLE}set-flow rporthiswater:2000\nset-flow highwater:2000\n"
