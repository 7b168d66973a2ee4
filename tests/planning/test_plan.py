"""A plan: what changes, what does not and why, the same bytes each time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import RefusedError
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import plan_document
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import parse_profile
from tests.cases import cases
from tests.planning.system import PORTS, Link, applied, change, llt, planned, skipped, states, system, systemctl, values
from tests.profiles.build import document, toml, wanted
from tests.rules.build import facts
from tests.trees import listing

CASES = cases(__file__)

BUFFERS = "socket-buffers-8m"
OUR_FILE = "/etc/sysctl.d/90-advisor-socket-buffers-8m.conf"


def test_socket_buffers_on_a_recent_kernel(tmp_path: Path) -> None:
    system(tmp_path)
    plan = planned(tmp_path, BUFFERS)
    assert values(plan) == {
        "sysctl:net.core.optmem_max": ("131072", "8388608"),
        "sysctl:net.core.rmem_default": ("212992", "8388608"),
        "sysctl:net.core.rmem_max": ("4194304", "8388608"),
        "sysctl:net.core.wmem_default": ("212992", "8388608"),
        "sysctl:net.core.wmem_max": ("4194304", "8388608"),
        "sysctl:net.ipv4.tcp_wmem": ("4096 16384 4194304", "4096 65536 8388608"),
    }
    kept = skipped(plan, "sysctl:net.ipv4.tcp_rmem")
    assert (kept.state, kept.before, kept.wanted) == ("would-lower", "4096 131072 33554432", "4096 87380 8388608")
    one = change(plan, "sysctl:net.core.rmem_max")
    assert (one.persist, one.takes_effect, one.risk) == (OUR_FILE, "new-sockets", "none")
    (file,) = plan.files
    assert file.after.decode().splitlines()[1:] == [
        f"{tunable.removeprefix('sysctl:')} = {after}" for tunable, (_, after) in values(plan).items()
    ]
    assert file.new_directories == ("/etc/sysctl.d",)


def test_planning_changes_nothing_and_what_is_absent_is_said(tmp_path: Path) -> None:
    system(tmp_path, files={"/proc/sys/net/core/optmem_max": None, "/proc/sys/net/core/wmem_max": "8388608\n"})
    before = listing(tmp_path / "root")
    plan = planned(tmp_path, BUFFERS)
    assert listing(tmp_path / "root") == before
    assert skipped(plan, "sysctl:net.core.optmem_max").reason == "cannot be read: not in this capture"
    assert states(plan) == {
        "sysctl:net.core.optmem_max": "not-applicable",
        "sysctl:net.core.wmem_max": "in-place",
        "sysctl:net.ipv4.tcp_rmem": "would-lower",
    }


EVERYTHING = (BUFFERS, "jumbo-frames", "llt-highwater-doubled", "numa-pinning")
UNIT = {"units": "a=eth1"}


def everything(where: Path) -> None:
    port = Link("eth1", address="192.0.2.1", node=1, irqs={40: "0-7", 41: "4"})
    commands = {**llt(where), **systemctl(where, a="")}
    system(where, (*PORTS[:2], port), {"/etc/llttab": "set-node a\n"}, commands)


SCRIPT = """
import json, sys
from pathlib import Path
from advisor.planning.records import plan_document
from tests.planning.system import planned
print(json.dumps(plan_document(planned(Path(sys.argv[1]), *sys.argv[2:], units="a=eth1")), default=bytes.hex))
"""


def test_the_same_bytes_whatever_the_order_of_sets(tmp_path: Path) -> None:
    everything(tmp_path)
    words = [sys.executable, "-c", SCRIPT, str(tmp_path), *EVERYTHING]
    runs = [
        subprocess.run(
            words,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    plan = planned(tmp_path, *EVERYTHING, **UNIT)
    assert runs[0] == runs[1]
    assert json.loads(runs[0])["fingerprint"] == plan.fingerprint == planned(tmp_path, *EVERYTHING, **UNIT).fingerprint
    assert len(plan.changes) == 12
    assert plan_document(plan)["schema"] == "advisor.plan/1"


def test_what_a_reboot_would_undo_is_not_in_place(tmp_path: Path) -> None:
    system(tmp_path)
    applied(tmp_path, BUFFERS)
    (tmp_path / "root" / OUR_FILE[1:]).unlink()
    plan = planned(tmp_path, BUFFERS)
    assert change(plan, "sysctl:net.core.rmem_max").before == change(plan, "sysctl:net.core.rmem_max").after
    assert plan.files[0].path == OUR_FILE
    assert planned(tmp_path, BUFFERS, runtime_only="yes").is_empty
    system(tmp_path / "live")
    live = planned(tmp_path / "live", BUFFERS, runtime_only="yes")
    assert live.files == ()
    assert {(one.persist, one.persist_note) for one in live.changes} == {(None, "--runtime-only")}


@pytest.mark.parametrize(("path", "at_boot", "state"), CASES["set by hand while a file says otherwise"])
def test_set_by_hand_while_a_file_says_otherwise(path: str, at_boot: str, state: str, tmp_path: Path) -> None:
    """What a reboot would take back is not in place."""
    line = f"net.core.rmem_max = {at_boot}\n"
    system(tmp_path, files={f"/etc/sysctl.d/{path}": line, "/proc/sys/net/core/rmem_max": "8388608\n"})
    plan = planned(tmp_path, BUFFERS)
    if state == "persisted":
        found = change(plan, "sysctl:net.core.rmem_max")
        assert (found.before, found.after, found.persist) == ("8388608", "8388608", OUR_FILE)
    else:
        assert skipped(plan, "sysctl:net.core.rmem_max").state == state


@pytest.mark.parametrize(("path", "line", "words"), CASES["a later file wins and is named"])
def test_a_later_file_wins_and_is_named(path: str, line: str, words: str, tmp_path: Path) -> None:
    system(tmp_path, files={path: f"# site\n{line}\n"})
    found = skipped(planned(tmp_path, BUFFERS), "sysctl:net.core.rmem_max")
    assert found.state == "overridden"
    assert found.reason.startswith(f"{path} line 2 ")
    assert words in found.reason
    assert not planned(tmp_path, BUFFERS, runtime_only="yes").blocking


def test_the_last_word_is_etc_sysctl_conf(tmp_path: Path) -> None:
    # As Debian has it: the link makes boot read it, by the name of the link.
    system(tmp_path, files={"/etc/sysctl.conf": "net.core.rmem_max = 1\n"})
    (tmp_path / "root/etc/sysctl.d").mkdir()
    (tmp_path / "root/etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    found = skipped(planned(tmp_path, BUFFERS), "sysctl:net.core.rmem_max")
    assert found.state == "overridden"
    assert "/etc/sysctl.conf line 1 (read as /etc/sysctl.d/99-sysctl.conf) sets it to 1" in found.reason


@pytest.mark.parametrize("kind", ["link", "folder", "huge", "latin"])
def test_a_file_that_cannot_be_edited_stands_in_the_way(kind: str, tmp_path: Path) -> None:
    system(tmp_path, files={"/etc/sysctl.d/README": ""})
    path = tmp_path / "root" / OUR_FILE[1:]
    match kind:
        case "link":
            path.symlink_to("README")
        case "folder":
            path.mkdir()
        case "huge":
            path.touch()
            with path.open("r+b") as file:
                file.truncate(1 << 30)
        case "latin":
            path.write_bytes(b"# caf\xe9\nnet.core.rmem_max = 1\n")
    plan = planned(tmp_path, BUFFERS)
    if kind == "latin":
        assert plan.files[0].after.startswith(b"# caf\xe9\nnet.core.rmem_max = 8388608\n")
    else:
        found = skipped(plan, "sysctl:net.core.rmem_max")
        assert (found.state, OUR_FILE in found.reason, "--runtime-only" in found.reason) == ("blocked", True, True)
        assert not planned(tmp_path, BUFFERS, runtime_only="yes").blocking


@pytest.mark.parametrize(
    ("available_gib", "udp", "outcome"), [(12, 6, "silent"), (2, 40, "warns"), (1, 40, "refuses"), (0, 6, "refuses")]
)
def test_the_memory_budget(available_gib: int, udp: int, outcome: str, tmp_path: Path) -> None:
    memory = f"MemTotal: 16777216 kB\nMemAvailable: {available_gib << 20} kB\n"
    sockets = f"TCP: inuse 0 orphan 0\nUDP: inuse {udp} mem 0\n"
    system(tmp_path, files={"/proc/meminfo": memory, "/proc/net/sockstat": sockets})
    # 40 sockets with 8 MiB to receive and 8 MiB to send.
    figures = f"0 TCP and {udp} UDP sockets could take {16 * udp} MiB of {1024 * available_gib} MiB available"
    if outcome == "refuses":
        with pytest.raises(RefusedError) as caught:
            planned(tmp_path, BUFFERS)
        assert figures in caught.value.message
        assert "the limit is 50%" in caught.value.message
        assert "--set bytes=851968" in str(caught.value.hint)
        assert caught.value.exit_code == 3
    else:
        notes = planned(tmp_path, BUFFERS).notes
        assert [note.startswith(f"memory budget: {figures}") for note in notes] == [True] * (outcome == "warns")


@pytest.mark.parametrize(("live", "value", "sense", "outcome"), CASES["values that do not fit"])
def test_values_that_do_not_fit(live: str, value: str, sense: Any, outcome: str | None) -> None:
    body = document("mine", wanted(tunable="sysctl:net.ipv4.tcp_rmem", value=value, sense=sense))
    targets, _ = resolve_targets(Request.from_settings(parse_profile(toml(body), "x"), {}), facts())
    host = Host(MemoryFiles({"/proc/sys/net/ipv4/tcp_rmem": live.encode()}), NoCommands())
    plan = make_plan(("mine",), targets, (), observe_targets(host, targets, {}), facts())
    if outcome is None:
        assert values(plan) == {"sysctl:net.ipv4.tcp_rmem": (live, value)}
    else:
        assert outcome in plan.skipped[0].reason
        assert bool(plan.blocking) == (sense != "keep")
