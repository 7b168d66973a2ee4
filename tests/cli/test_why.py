"""``advisor why`` as a command: live, of a snapshot, text, JSON with its schema, exit codes, bad input."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pty
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.diagnosis.diagnose import ResourceUse, measure_uses
from advisor.diagnosis.observation import read_context
from advisor.observe.sample import encode_span
from advisor.planner import read_for_scan_and_plans
from advisor.report.why import WatchScreen, saved_note
from advisor.snapshot.archive import SPAN, capture_host
from tests.cli.inside import call_inside
from tests.diagnosis.cases import CASES
from tests.diagnosis.moments import Disk, Machine, diagnose_machine, host_at, span_of
from tests.golden import assert_golden
from tests.schemas import judge

ROOT = Path(__file__).parents[2]


def archive_of(machine: Machine, path: Path, span: bytes | None = None) -> Path:
    def read_all(host: Any) -> None:
        read_for_scan_and_plans(host)
        read_context(host)

    data = encode_span(span_of(machine), 1_790_000_000) if span is None else span
    path.write_bytes(capture_host(host_at(machine, 1000), read_all, {SPAN: data}))
    return path


def test_what_binds_in_a_snapshot(tmp_path: Path) -> None:
    case = next(one for one in CASES if one.name.startswith("slow member"))
    place = archive_of(case.machine, tmp_path / "host.tar.gz")
    done = call_inside("why", "--snapshot", place, "--json")
    assert done.returncode == 1
    found = judge(done.stdout, 1)
    assert found["binds"][0]["id"] == "disk.slow-member"
    assert found["binds"][0]["device"] == "sde"
    assert found["taken_at"] == "2026-09-21T14:13:20Z"
    text = call_inside("why", "--snapshot", place, COLUMNS="80")
    assert text.returncode == 1
    assert text.stdout.startswith("db-07: sde is ")
    assert "smartctl -a /dev/sde" in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80
    assert "\x1b" not in text.stdout


def test_nothing_binds_in_a_snapshot(tmp_path: Path) -> None:
    done = call_inside("why", "--snapshot", archive_of(Machine(), tmp_path / "host.tar.gz"))
    assert done.returncode == 0
    assert "Nothing on this host is saturated; the application asks for no more." in done.stdout


def test_a_span_is_recorded_and_judged(tmp_path: Path) -> None:
    place = tmp_path / "host.tar.gz"
    done = call_inside("snapshot", "--seconds", "1", "-o", place)
    assert done.returncode == 0, done.stderr
    found = call_inside("why", "--snapshot", place, "--json")
    assert found.returncode in (0, 1), found.stderr
    document = judge(found.stdout, found.returncode)
    assert document["seconds"] >= 1
    assert bool(document["binds"]) == bool(found.returncode)


def test_the_running_host() -> None:
    done = call_inside("why", "--seconds", "0.5", "--json")
    assert judge(done.stdout, done.returncode)["seconds"] >= 0.5


@pytest.mark.parametrize(
    ("span", "says"),
    [
        (b"{}", "missing required field"),
        (b'{"schema": "advisor.span/2", "taken_at": 1, "samples": []}', "this version reads advisor.span/1"),
        (b'{"schema": "advisor.span/1", "taken_at": 1, "samples": []}', "two samples or more"),
        (b"[" * 100_000, "advisor-span.json"),
        (
            json.dumps(
                {
                    "schema": "advisor.span/1",
                    "taken_at": 1,
                    "samples": [{"at_seconds": at, "counters": {"disk": {"sda": {"reads": -5 * at}}}} for at in (1, 2)],
                }
            ).encode(),
            "below 0",
        ),
    ],
)
def test_a_span_that_is_none_is_refused(span: bytes, says: str, tmp_path: Path) -> None:
    done = call_inside("why", "--snapshot", archive_of(Machine(), tmp_path / "host.tar.gz", span))
    assert done.returncode == 2
    assert says in done.stderr


def test_the_recorded_span_counts(tmp_path: Path) -> None:
    done = call_inside("why", "--snapshot", archive_of(Machine(), tmp_path / "host.tar.gz"), "--seconds", "2")
    assert done.returncode == 2
    assert "--snapshot excludes --seconds: the span that was recorded counts" in done.stderr


def test_a_snapshot_without_a_span_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("proc/version")
        archive.addfile(member, io.BytesIO(b""))
    place = tmp_path / "bare.tar.gz"
    place.write_bytes(gzip.compress(buffer.getvalue()))
    done = call_inside("why", "--snapshot", place)
    assert done.returncode == 2
    assert "advisor snapshot --seconds 30 -o FILE records them" in done.stderr


@pytest.mark.parametrize("words", [("--seconds", "0"), ("--seconds", "nan"), ("--seconds", "1e9")])
def test_a_time_that_is_none_is_refused(words: tuple[str, ...]) -> None:
    assert call_inside("why", *words).returncode == 2
    assert call_inside("snapshot", "-o", "-", *words).returncode == 2


def test_counters_need_the_running_host(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    done = call_inside("snapshot", "--seconds", "1", "--root", tmp_path, "-o", tmp_path / "x")
    assert done.returncode == 2
    assert "running host" in done.stderr


@pytest.mark.parametrize("words", [(), ("--json",), ("--snapshot", "x")])
def test_watch_needs_a_terminal(words: tuple[str, ...]) -> None:
    done = call_inside("why", "--watch", *words)
    assert done.returncode == 2
    assert "--watch" in done.stderr + done.stdout


def test_watch_ends_with_the_summary(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "advisor", "why", "--watch", "--seconds", "4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(sys.executable, command, environment)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 65536):
            shown += chunk
            # The first screen with figures says how to end it.
            if shown.count(b"q quit") == 1:
                os.write(terminal, b"s")
            if b"saved advisor-why-" in shown:
                os.write(terminal, b"q")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) in (0, 1)
    assert b"\x1b[?1049l" in shown, "the screen is as it was"
    assert b"observed" in shown.rpartition(b"\x1b[?1049l")[2]
    saved = next(tmp_path.glob("advisor-why-*.tar.gz"))
    assert call_inside("why", "--snapshot", saved, "--json").returncode in (0, 1)


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_screen_fits(width: int, unicode: bool) -> None:
    case = next(one for one in CASES if one.name.startswith("slow member"))
    context = read_context(host_at(case.machine, 1000))
    span = span_of(case.machine)
    screen = WatchScreen(unicode=unicode)
    for _ in range(60):
        screen.add_uses(measure_uses(span, context))
    text = screen.render_text(diagnose_machine(case.machine), width=width)
    lines = text.split("\n")
    assert len(lines) <= 22
    assert max(map(len, lines)) <= width
    assert any(line.startswith("> disk sde") for line in lines)
    assert bool(set("▁▂▃▄▅▆▇█") & set(text)) == unicode


def screen_of(*looks: Sequence[ResourceUse] | int) -> WatchScreen:
    """Return a screen after these looks; a number is a gap of so many."""
    screen = WatchScreen(unicode=False)
    for look in looks:
        if isinstance(look, int):
            screen.add_gap(look)
        else:
            screen.add_uses(look)
    return screen


def test_the_screens() -> None:
    def cpu(share: float) -> list[ResourceUse]:
        return [ResourceUse("cpu busy", share)]

    def both(share: float) -> list[ResourceUse]:
        return [*cpu(share), ResourceUse("disk sda", share)]

    idle = diagnose_machine(Machine())
    busy = diagnose_machine(next(case.machine for case in CASES if case.name == "all CPUs busy"))
    slow = diagnose_machine(next(case.machine for case in CASES if case.name.startswith("slow member")))
    waits = screen_of([*cpu(0.1), ResourceUse("cpu waits", 0.02)])
    saved = saved_note(Path("advisor-why-20260921-141320.tar.gz"))
    screens = {
        "rows aligned in time": screen_of(cpu(0), both(0), both(1), cpu(0), both(0)).render_text(idle, width=80),
        "a pause": screen_of(cpu(1), 3, cpu(0)).render_text(idle, width=80),
        "a long pause": screen_of(cpu(1), 3, cpu(0), 1000, cpu(1)).render_text(idle, width=80),
        "narrow": screen_of(*[cpu(0)] * 39, cpu(1)).render_text(idle, width=40),
        "the last look and the span": waits.render_text(busy, width=80, whole=cpu(0.98)),
        "saved": WatchScreen(unicode=True).render_text(slow, width=80, note=saved),
    }
    assert_golden("why-watch", "\n".join(f"== {name}\n{text}" for name, text in screens.items()))


def test_an_idle_disk_keeps_its_row() -> None:
    idle = Machine(disks=(Disk(reads=0, writes=0),))
    uses = measure_uses(span_of(idle), read_context(host_at(idle, 1000)))
    assert ResourceUse("disk sda", 0.0) in uses
