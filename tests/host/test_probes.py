"""The canonical line that a probe makes of a file or of what a command prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.host import Missing, Probe, ReadCommand, ReadFile, observe
from advisor.host.lltconfig_text import parse_flow
from advisor.host.probes import reduce
from tests.trees import host_of, make_command, make_tree

FLOW = """Current LLT flow control values (in packets):
  lowwater = 800
  highwater   =1000
  rportlowwater: 800
  rporthiswater = 1000
  strange-name = 7
  text = many
  huge = {}
""".format("9" * 5000)
UNIT = "LoadState=loaded\nNUMAPolicy={}\nNUMAMask={}\nCPUAffinity={}\nCPUAffinityFromNUMA={}\n"


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("4096\t131072\t6291456\n", "words", "4096 131072 6291456"),
        ("", "words", ""),
        (FLOW, "flow:highwater", "1000"),
        (FLOW, "flow:rporthighwater", "1000"),
        (FLOW, "flow:rportlowwater", "800"),
        (FLOW, "flow:text", "absent"),
        (FLOW, "flow:huge", "absent"),
        ("", "flow:highwater", "absent"),
        (UNIT.format("n/a", "", "", "no"), "unit-numa", "NUMAPolicy=default NUMAMask= CPUAffinity="),
        (UNIT.format("bind", "0", "0-3", "yes"), "unit-numa", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
        (UNIT.format("bind", "0 2", "0-3 8", "no"), "unit-numa", "NUMAPolicy=bind NUMAMask=0,2 CPUAffinity=0-3,8"),
        ("LoadState=not-found\n", "unit-numa", "absent"),
    ],
)
def test_reduce(text: str, form: str, value: str) -> None:
    found = reduce(text, form)
    assert (found.state if isinstance(found, Missing) else found) == value


@given(st.text(), st.sampled_from(["words", "flow:highwater", "unit-numa"]))
def test_any_text_is_one_line_or_a_reason(text: str, form: str) -> None:
    found = reduce(text, form)
    assert isinstance(found, Missing) or "\n" not in found
    assert all(isinstance(value, int) for value in parse_flow(text).values())


def test_observe(tmp_path: Path) -> None:
    make_command(tmp_path / "bin", "llt", 'echo "$1 = 5"; exit "$2"')
    make_command(tmp_path / "bin", "bad", "echo no licence >&2; exit 1")
    files: dict[str, str | bytes] = {"/v": " 1\t2\n", "/bytes": b"\xff1", "/nul": b"1\0002\n", "/end": b"1\0\n"}
    host = host_of(make_tree(tmp_path / "root", files), tmp_path / "bin")
    cases: dict[Probe, str | Missing] = {
        ReadFile("/v"): "1 2",
        ReadFile("/nowhere"): Missing("absent", "does not exist"),
        # Nobody could restore it.
        ReadFile("/bytes"): Missing("unreadable", "not UTF-8"),
        ReadFile("/nul"): Missing("unreadable", "holds NUL bytes"),
        ReadFile("/end"): "1",
        ReadCommand(("llt", "highwater", "0"), "flow:highwater"): "5",
        ReadCommand(("llt", "highwater", "1"), "flow:highwater"): Missing("unreadable", "llt returned 1: no message"),
        ReadCommand(("bad",)): Missing("unreadable", "bad returned 1: no licence"),
        ReadCommand(("nowhere",)): Missing("absent", "nowhere is not installed"),
    }
    assert {probe: observe(host, probe) for probe in cases} == cases
