"""``advisor recommend`` at the command line: codes, one document, and pages of other hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inside import call_inside
from tests.trees import make_tree

LAB = Path(__file__).parents[2] / "docs/examples/lab.tar.gz"
DROPS = "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 9000 0 0 0 1204 0\n"


def tree(root: Path) -> Path:
    files = {
        "/proc/net/snmp": DROPS,
        "/proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n",
        "/proc/net/sockstat": "TCP: inuse 2 orphan 0 tw 0 alloc 2 mem 0\nUDP: inuse 3 mem 1\n",
        "/proc/sys/net/core/rmem_max": "212992",
        "/proc/sys/net/core/rmem_default": "212992",
    }
    return make_tree(root, files)


def test_another_host_is_judged_and_the_code_is_0(tmp_path: Path) -> None:
    where = str(tree(tmp_path / "host"))
    page = call_inside("recommend", "--root", where)
    assert (page.returncode, page.stderr) == (0, "")
    assert "UDP receive buffer errors since the host started: 1,204" in " ".join(page.stdout.split())
    done = call_inside("recommend", "--root", where, "--workload", "fss-udp", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema"]) == (0, "advisor.recommendation/1")
    fits = {one["profile"]: one["fits"] for one in document["recommendations"]}
    assert fits["socket-buffers-8m"] == "yes"
    assert document["workload"]["name"] == "fss-udp"


@pytest.mark.parametrize("command", ["recommend", "limits"])
def test_a_common_host_takes_one_screen_and_the_rest_is_named(command: str) -> None:
    page = call_inside(command, "--snapshot", LAB, COLUMNS="80").stdout
    assert len(page.splitlines()) < 24
    assert f"advisor {command} --all" in page


def test_a_host_without_anything_is_judged_too(tmp_path: Path) -> None:
    (tmp_path / "host/proc").mkdir(parents=True)
    done = call_inside("recommend", "--root", str(tmp_path / "host"))
    assert done.returncode == 0
    assert done.stdout.startswith("Nothing to recommend.")


def test_what_several_workload_options_say_is_joined(tmp_path: Path) -> None:
    where = str(tree(tmp_path / "host"))
    options = ("--workload", "oltp", "--workload", "rtt=2ms")
    several = call_inside("recommend", "--root", where, *options, "--json")
    joined = call_inside("recommend", "--root", where, "--workload", "oltp,rtt=2ms", "--json")
    found = json.loads(several.stdout)["workload"]
    assert found == json.loads(joined.stdout)["workload"]
    assert (found["name"], found["rtt_seconds"]) == ("oltp", 0.002)


def test_an_unknown_key_names_the_known_ones(tmp_path: Path) -> None:
    done = call_inside("recommend", "--workload", "speed=1")
    for word in ("read", "block", "access", "transport", "rtt", "oltp", "batch", "infoscale.…"):
        assert word in done.stderr
