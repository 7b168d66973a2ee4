"""The canonical line that a probe makes of a file or of what a command prints."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from advisor.host import Missing, Probe, ReadCommand, ReadFile, observe
from advisor.host.config_text import parse_flow
from advisor.host.probes import reduce
from tests.trees import host_of, make_command, make_tree


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
