"""``advisor probe``: what it prints at every width, its document, and its exit codes on real paths."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from advisor.reach.addresses import Limit, Peer, Reach, Role, Unprobeable
from advisor.reach.peers import Survey
from advisor.report.encode import encode_document
from advisor.report.reach import probe_document, probe_text
from tests.cases import cases
from tests.golden import assert_golden
from tests.reach.space import Spaces
from tests.reach.test_path import V4, V6, routed
from tests.running import run_text

CASES = cases(__file__)

ROOT = Path(__file__).parents[2]
EVIL = "eth$(reboot)\x1b[31m"


def reach(
    address: str,
    limit: Limit,
    path_mtu: int | None,
    *,
    role: Role = "named",
    why: str = "named",
    link: str | None = "eth1",
    by: str | None = None,
    said: int | None = None,
    why_not: str | None = None,
) -> Reach:
    answered = why_not is None or path_mtu is not None or "stopped" in why_not
    return Reach(
        peer=Peer(address, role, link, why, mtu=9000),
        rtt_ms_min=0.11 if answered else None,
        rtt_ms_median=0.123456 if answered else None,
        lost=0 if answered else 5,
        sent=5,
        path_mtu=path_mtu,
        limit=limit,
        limited_by=by,
        answered=answered,
        why_not=why_not,
        said_mtu=said,
    )


LINK = reach("192.0.2.1", "link", 1500, role="gateway", why="default gateway", link="eth0")
TOO_BIG = reach("192.0.2.130", "too-big", 1400, role="nfs", why="NFS server of /data", by="192.0.2.254", said=1400)
SILENT = reach("2001:db8:1234:5678:9abc:def0:1234:5678", "silent", 1500, role="llt", why="LLT node 1 over link1")
BACK = reach("fe80::fc:ff:fe00:1%eth1", "way-back", 1500, said=1496)
NOBODY = reach("192.0.2.77", "unknown", None, why_not="no answer to 5 echoes of 84 bytes")
GONE = reach("192.0.2.78", "unknown", None, why_not="stopped answering while it was asked; 1500 bytes had passed")
HOSTILE = reach(f"fe80::1%{EVIL}", "too-big", 1400, by="192.0.2.254", said=1400, link=EVIL)
ALL = (LINK, TOO_BIG, SILENT, BACK, NOBODY, GONE, HOSTILE)
LEFT = (Unprobeable("LLT link link2", "llt", "eth2", "Ethernet without IP"), Unprobeable("\x1b[2J", "nfs", None, "bad"))


def text(reaches: Sequence[Reach], mtu: int | None = None, width: int = 80, color: bool = False) -> str:
    return probe_text(Survey(tuple(reaches), LEFT, mtu), width=width, color=color)


@pytest.mark.parametrize(("name", "mtu"), [("probe", None), ("probe-9000", 9000), ("probe-1400", 1400)])
def test_the_page(name: str, mtu: int | None) -> None:
    """Each limit with the command that helps, and what is asked for: all of it, some of it, or none."""
    assert_golden(f"reach/{name}", text((LINK, TOO_BIG) if mtu == 1400 else ALL, mtu))


def test_the_document() -> None:
    document = json.loads(encode_document(probe_document(Survey(ALL, LEFT, 1500))))
    assert (document["schema"], document["mtu"], document["carried"]) == ("advisor.probe/1", 1500, False)
    assert [one["carries"] for one in document["peers"]] == [True, False, True, True, False, False, False]
    fields = {field.name for field in msgspec.structs.fields(Reach)} - {"peer"}
    fields |= {field.name for field in msgspec.structs.fields(Peer)}
    assert all(set(one) == fields | {"carries"} for one in document["peers"])
    assert [one["role"] for one in document["unprobeable"]] == ["llt", "nfs"]
    free = json.loads(encode_document(probe_document(Survey(ALL, (), None))))
    assert (free["mtu"], free["carried"], free["peers"][0]["carries"]) == (None, None, None)


def probe(spaces: Spaces, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = ["ip", "netns", "exec", spaces.name("here"), *before, sys.executable, "-m", "advisor", "probe", *words]
    done = run_text(command, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"})
    assert "Traceback" not in done.stderr
    return done


def test_on_a_path_with_a_smaller_link(spaces: Spaces) -> None:
    routed(spaces, near=9000, beyond=1400)
    said = probe(spaces, V4, V6, "--mtu", "1400", "--count", "2", "--json")
    assert said.returncode == 0, said.stderr
    document = json.loads(said.stdout)
    assert {one["address"]: (one["path_mtu"], one["limit"], one["link"]) for one in document["peers"]} == {
        V4: (1400, "too-big", "h0"),
        V6: (1400, "too-big", "h0"),
    }
    narrow = probe(spaces, V4, "--mtu", "1401", "--count", "1")
    assert narrow.returncode == 1
    assert f"No: packets of 1401 bytes do not get to {V4} (1400)" in narrow.stdout
    assert "\x1b" not in narrow.stdout
    assert max(len(line) for line in narrow.stdout.splitlines()) <= 80


def test_without_a_word_the_gateways_are_asked(spaces: Spaces) -> None:
    routed(spaces)
    said = probe(spaces, "--json", "--count", "1")
    assert said.returncode == 0, said.stderr
    found = {one["address"]: (one["role"], one["path_mtu"]) for one in json.loads(said.stdout)["peers"]}
    assert found == {"192.0.2.2": ("gateway", 9000), "2001:db8:a::2": ("gateway", 9000)}


def test_nobody_to_ask(spaces: Spaces) -> None:
    spaces.add("here")
    said = probe(spaces)
    assert said.returncode == 3
    assert "nobody to ask" in said.stderr
    assert "advisor probe ADDRESS" in said.stderr


@pytest.mark.parametrize(("words", "message"), CASES["calls that make no sense"])
def test_calls_that_make_no_sense(spaces: Spaces, words: tuple[str, ...], message: str) -> None:
    spaces.add("here")
    said = probe(spaces, *words, "--json")
    assert said.returncode == 2
    error = json.loads(said.stdout)["error"]
    assert (error["code"], error["kind"]) == (2, "usage")
    assert message in error["message"]


def test_without_the_right_to_send_echoes(spaces: Spaces, as_nobody: tuple[str, ...]) -> None:
    spaces.add("here")
    spaces.set("here", "net/ipv4/ping_group_range", "1 0")
    said = probe(spaces, "127.0.0.1", "--json", before=as_nobody)
    assert said.returncode == 6
    error = json.loads(said.stdout)["error"]
    assert error["kind"] == "permission"
    assert "ping_group_range" in error["hint"]
