from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.fleet.compare.collected import Membership
from advisor.fleet.compare.path_findings import RTT_FLOOR_US, find_culprits, judge_matrix
from advisor.fleet.compare.path_matrix import (
    FULL_MESH,
    MAX_ANSWER,
    MAX_TARGETS,
    NEIGHBOURS,
    Matrix,
    MatrixCell,
    ProbedLink,
    choose_targets,
    make_matrix,
    parse_answer,
    probe_script,
)
from tests.cases import read_cases
from tests.fleet.wires import member
from tests.running import run_text

DATA = read_cases(__file__)

BIN = Path(sys.executable).parent

WHOLE = DATA["WHOLE"]


def nodes(count: int, **parts: Any) -> dict[str, list[Membership]]:
    return {
        f"n{number:03}": [
            member(f"10.{number // 200}.0.{number % 200 + 1}", network="10.0.0.0/8", link="nolink0", **parts)
        ]
        for number in range(count)
    }


def pairs(members: Mapping[str, list[Membership]]) -> set[tuple[str, str]]:
    targets = choose_targets(members)
    return {(host, one.target) for host, asked in targets.by_host.items() for one in asked}


# -- whom each asks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [FULL_MESH + 1, 100, 1000])
def test_in_a_large_one_each_asks_some_and_is_asked_by_as_many_in_both_directions(count: int) -> None:
    asked = pairs(nodes(count))
    assert {(target, source) for source, target in asked} == asked
    by_source = [sum(source == host for source, _ in asked) for host in nodes(count)]
    assert set(by_source) <= {NEIGHBOURS - 1, NEIGHBOURS}
    targets = choose_targets(nodes(count))
    assert f"{targets.asked} of {count * (count - 1)} pairs" in targets.notes[0]


def test_the_wanted_size_is_what_both_links_take() -> None:
    members = {
        "a": [member("198.51.100.1")],
        "b": [member("198.51.100.2", mtu=1500)],
        "c": [member("198.51.100.3", mtu=None)],
    }
    wanted = {one.target: one.wanted for one in choose_targets(members).by_host["a"]}
    assert wanted == {"b": 1500, "c": None}


def test_cluster_links_come_first_and_the_number_of_targets_is_bounded() -> None:
    many = {
        f"n{number:03}": [
            *[
                member(f"10.{net}.0.{number + 1}", network=f"10.{net}.0.0/24", link=f"e{net}", role=f"e{net}")
                for net in range(20)
            ],
            member(f"172.16.0.{number + 1}", network="172.16.0.0/24", link="llt0", role="llt-1"),
        ]
        for number in range(16)
    }
    targets = choose_targets(many)
    assert all(len(asked) == MAX_TARGETS for asked in targets.by_host.values())
    assert [one.role for one in targets.by_host["n000"]][:16] == ["llt-1"] * 15 + ["e0"]
    assert any(str(MAX_TARGETS) in note for note in targets.notes)


def test_an_address_that_several_hosts_have_is_not_asked() -> None:
    shared = member("172.17.0.1", network="172.17.0.0/16", link="docker0")
    members = {name: [shared, member(f"198.51.100.{number}")] for number, name in enumerate("abc", 1)}
    targets = choose_targets(members)
    assert {one.network for one in targets.by_host["a"]} == {"198.51.100.0/24"}
    assert targets.notes == ("172.17.0.1 is on 3 hosts: not asked",)


@pytest.mark.parametrize(
    "odd",
    [
        member("198.51.100.9; reboot"),
        member("fe80::1%eth0"),
        member("198.51.100.9", link="eth 0"),
        member("198.51.100.9", link="a/b"),
        member("198.51.100.9", link="e" * 16),
        member("198.51.100.9", link="e\n0"),
        member("198.51.100.9", mtu=0),
        member("2001:db8::9", mtu=576),
    ],
)
def test_what_is_no_address_or_no_link_never_gets_into_a_script(odd: Membership) -> None:
    members = {"a": [member("198.51.100.1")], "b": [odd], "c": [member("198.51.100.2")]}
    targets = choose_targets(members)
    assert targets.by_host["b"] == ()
    assert [one.target for one in targets.by_host["a"]] == ["c"]


# -- the script ----------------------------------------------------------------------------------------------------


def fake(place: Path, command: str) -> None:
    """A ping in this directory."""
    ping = place / "ping"
    ping.write_text(f"#!/bin/sh\n{command}\n")
    ping.chmod(0o755)


def scripts() -> list[str]:
    hostile = ProbedLink("b", "198.51.100.2", "n", "$(id)'`\"", "e", "r", 1500, 9000)
    return [probe_script([]), probe_script([hostile]), probe_script(choose_targets(nodes(40)).by_host["n000"])]


def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    for number, text in enumerate(scripts()):
        (tmp_path / f"{number}.sh").write_text(text)
    done = subprocess.run([BIN / "shellcheck", *tmp_path.iterdir()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_every_shell_runs_it_and_a_link_s_name_is_data(shell: str, tmp_path: Path) -> None:
    """A ping that prints its arguments in place of the real one."""
    fake(tmp_path, 'printf "%s\\n" "$*" >> "${0%/*}/log"; exit 1')
    for text in scripts():
        command = [*shell.split(), "-c", text]
        done = run_text(command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
        assert (done.returncode, done.stderr) == (0, "")
        answer = parse_answer(done.stdout)
        assert answer.is_whole
        assert len(answer.lines) == text.count("        probe ")
        assert all(line.times_us == () for line in answer.lines.values())
    if shell != "busybox sh":  # which takes its own ping before any other
        assert "-I $(id)'`\" -s 56 198.51.100.2" in (tmp_path / "log").read_text()


def test_without_ping_it_says_so(tmp_path: Path) -> None:
    text = probe_script(choose_targets(nodes(2)).by_host["n000"]).replace(
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "/nowhere"
    )
    (tmp_path / "date").symlink_to("/usr/bin/date")
    done = run_text(["/bin/dash", "-c", text], env={"PATH": str(tmp_path)})
    assert done.stdout == "advisor-probe 1 none\nend 1\n"
    found = make_matrix(choose_targets(nodes(2)), {"n000": parse_answer(done.stdout)})
    assert found.silent_hosts == {"n000": "no ping(8) on this host", "n001": "not asked"}


# -- the answer ----------------------------------------------------------------------------------------------------


def test_an_answer() -> None:
    answer = parse_answer(WHOLE)
    assert (answer.tool, answer.is_whole, sorted(answer.lines)) == ("do", True, [0, 1, 2, 3])
    assert answer.lines[0].times_us == (18.0, 40.0, 30.0, 28.0, 32.0)
    assert (answer.lines[2].said_mtu, answer.lines[2].by) == (1400, "198.51.100.254")
    assert answer.lines[3].why == "From 198.51.100.1 Unreachable"
    assert parse_answer(WHOLE.replace("\n", "\r\n")) == answer


@pytest.mark.parametrize(("before", "after"), DATA["a_line_of_another_form_is_none"])
def test_a_line_of_another_form_is_none(before: str, after: str) -> None:
    lines = parse_answer(WHOLE.replace(before, after, 1)).lines
    assert 1 not in lines
    assert 3 in lines


@pytest.mark.parametrize(
    "text", ["", "hello", WHOLE.replace("probe 1", "probe 2"), WHOLE + WHOLE, WHOLE + "x" * MAX_ANSWER]
)
def test_what_is_no_answer_is_none(text: str) -> None:
    assert parse_answer(text).tool is None


def test_an_answer_that_broke_off_keeps_what_there_is() -> None:
    members = nodes(5)
    answer = parse_answer(WHOLE[: WHOLE.index("cell 2") + 9])
    assert not answer.is_whole
    found = make_matrix(choose_targets(members), {"n000": answer, "n001": "unreachable"})
    own = [cell for cell in found.cells if cell.source == "n000"]
    assert [cell.path_mtu for cell in own] == [9000, 1500, None, None]
    assert own[2].error == "the answer broke off before it"
    assert {cell.error for cell in found.cells if cell.source == "n001"} == {"unreachable"}
    assert found.silent_hosts == {"n001": "unreachable", **dict.fromkeys(("n002", "n003", "n004"), "not asked")}


def test_more_than_was_asked_for_is_not_believed() -> None:
    found = make_matrix(choose_targets(nodes(2, mtu=1500)), {"n000": parse_answer(WHOLE)})
    assert [cell.path_mtu for cell in found.cells] == [None, None]


# -- findings ------------------------------------------------------------------------------------------------------


def cell(source: str, target: str, **parts: Any) -> MatrixCell:
    plain = MatrixCell(
        source=source,
        target=target,
        address="198.51.100.1",
        network="198.51.100.0/24",
        link="eth1",
        target_link="eth1",
        role="eth1",
        mtu=9000,
        target_mtu=9000,
        rtt_us=(18.0, 20.0, 30.0),
        sent=6,
        received=6,
        path_mtu=9000,
        wanted=9000,
        carries=True,
        limit="link",
    )
    return msgspec.structs.replace(plain, **parts)


SILENT: dict[str, Any] = {"path_mtu": 1500, "carries": False, "limit": "silent"}
MUTE: dict[str, Any] = DATA["MUTE"]


def mesh(*odd: MatrixCell, names: str = "abcde") -> Matrix:
    cells = {(one, other): cell(one, other) for one in names for other in names if one != other}
    cells |= {(one.source, one.target): one for one in odd}
    return Matrix(tuple(names), tuple(cells.values()), len(cells), ())


SAID: dict[str, Any] = {"path_mtu": 1400, "carries": False, "limit": "too-big", "limited_by": "198.51.100.254"}
SAID_BY = tuple(f"{way} (eth1): 1400 of 9000 bytes, says 198.51.100.254" for way in ("a (eth1) → b", "b (eth1) → a"))
SMALL: dict[str, Any] = {"wanted": 1500, "path_mtu": 1500}
FAR: dict[str, Any] = {"rtt_us": (900.0, 1000.0, 1100.0)}
NOISY: dict[str, Any] = {"rtt_us": (18.0, 20.0 + RTT_FLOOR_US, 500.0)}


def asked_by(source: str, targets: str, **parts: Any) -> list[MatrixCell]:
    return [cell(source, target, **parts) for target in targets]


def asked(target: str, sources: str, **parts: Any) -> list[MatrixCell]:
    return [cell(source, target, **parts) for source in sources]


def both_ways(host: str, others: str, **parts: Any) -> list[MatrixCell]:
    return [*asked_by(host, others, **parts), *asked(host, others, **parts)]


@pytest.mark.parametrize(
    ("odd", "findings"),
    [
        ([], {}),
        # A node behind a smaller port of a switch is named; of one pair, neither end is blamed.
        (both_ways("d", "abce", **SILENT), {"fleet.path-black-hole": {"title": ": d", "hosts": ("d",)}}),
        (both_ways("a", "b", **SILENT), {"fleet.path-black-hole": {"title": ": a and b", "hosts": ()}}),
        # What somebody said is told apart from silence.
        (both_ways("a", "b", **SAID, said_mtu=1400), {"fleet.path-mtu-smaller": {"seen": SAID_BY}}),
        ([cell("a", "b", **SILENT)], {"fleet.path-black-hole": {}, "fleet.path-mtu-asymmetric": {}}),
        # Room for a VLAN tag is no asymmetry.
        ([cell("a", "b", **SILENT), cell("b", "a", **{**SILENT, "path_mtu": 1504})], {"fleet.path-black-hole": {}}),
        # A smaller link that carries what it takes is no matter of the path.
        ([cell("a", "c", **SMALL, target_mtu=1500), cell("c", "a", **SMALL, mtu=1500)], {}),
        # A node that drops echoes is not called cut off; one without any answer, or that cannot ask, is.
        (asked("e", "abcd", **MUTE), {"fleet.drops-echoes": {"severity": "info"}}),
        (both_ways("e", "abcd", **MUTE), {"fleet.cut-off": {"title": ": e"}}),
        (asked_by("e", "abcd", **MUTE), {"fleet.cut-off": {}}),
        ([cell("a", "b", **MUTE)], {"fleet.one-way": {"seen": ("a (eth1) → b (eth1): no answer to 6 echoes",)}}),
        # Who was not asked is no finding.
        ([cell("a", "b", **{**MUTE, "sent": 0, "error": "unreachable"})], {}),
        ([cell("a", "b", received=4)], {"fleet.echoes-lost": {}}),
        ([cell("a", "b", received=5)], {}),
        # A node that is far is named, but not one that was busy while it asked, nor a single pair's noise.
        (both_ways("e", "abcd", **FAR), {"fleet.rtt-outlier": {"hosts": ("e",)}}),
        (asked_by("e", "abcd", **FAR), {}),
        (both_ways("a", "b", **NOISY), {}),
    ],
)
def test_findings(odd: list[MatrixCell], findings: dict[str, dict[str, Any]]) -> None:
    found = judge_matrix(mesh(*odd))
    assert [one.id for one in found] == list(findings)
    for one in found:
        wanted = dict(findings[one.id])
        assert one.title.endswith(wanted.pop("title", ""))
        assert {name: getattr(one, name) for name in wanted} == wanted
        if one.id == "fleet.path-black-hole":
            assert "advisor probe 198.51.100.1 --mtu 9000" in one.advice


def test_culprits() -> None:
    assert find_culprits([("a", "d"), ("b", "d"), ("d", "c")]) == ("d",)
    assert find_culprits([("a", "b"), ("b", "a")]) == ()
    assert find_culprits([("a", "d"), ("b", "d"), ("a", "e"), ("b", "e"), ("c", "e")]) == ("e", "d")
