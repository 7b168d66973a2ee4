"""``advisor fleet scan`` on hosts that are well and on those that are not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import Hosts, Kind, why_not
from tests.schemas import judge

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

ADVISOR = Path(sys.executable).parent / "advisor"
SAME = "5" * 32
SECRET = "ztopsecretz"
KINDS = {
    "node01": Kind(machine_id=SAME, etc={"iscsi/iscsid.conf": f"node.session.auth.password = {SECRET}\n"}),
    "node02": Kind(machine_id=SAME, links={"eth1": 9000}),
    "node03": Kind(user="keeper", clock=-300),
    "node04": Kind(fault="garbage"),
    "node05": Kind(fault="truncated"),
    "node06": Kind(fault="refuses"),
}
FAILED = ["node04", "node05", "node06"]


@pytest.fixture(scope="module")
def fleet() -> Iterator[Hosts]:
    with Hosts(6, **KINDS) as made:
        yield made


@pytest.fixture(scope="module")
def document(fleet: Hosts) -> dict[str, Any]:
    done = fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), "--json")
    assert done.returncode == 4, done.stderr
    found: dict[str, Any] = judge(done.stdout)
    return found


def test_every_host_is_told_and_the_others_go_on(document: dict[str, Any]) -> None:
    assert document["schema"] == "advisor.fleet-scan/1"
    states = {host["name"]: host["state"] for host in document["hosts"]}
    assert states == {
        **dict.fromkeys(("node01", "node02", "node03"), "ok"),
        "node04": "failed",
        "node05": "lost",
        "node06": "unreachable",
    }
    assert document["failed"] == FAILED
    reasons = {host["name"]: host["message"] for host in document["hosts"]}
    assert "Welcome to this appliance" in reasons["node04"]
    assert "breaks off" in reasons["node05"]
    assert "Connection refused" in reasons["node06"]


def test_a_wrong_clock_and_one_machine_under_two_names_are_named(document: dict[str, Any]) -> None:
    assert document["clock_off"] == ["node03"]
    assert document["same_machine"] == [["node01", "node02"]]
    behind = next(host["skew_seconds"] for host in document["hosts"] if host["name"] == "node03")
    assert -302 < behind < -200


def test_each_host_is_judged_as_advisor_scan_judges_its_capture(fleet: Hosts, document: dict[str, Any]) -> None:
    for host in document["hosts"][:3]:
        done = fleet.run(ADVISOR, "scan", "--snapshot", host["archive"], "--json")
        alone = json.loads(done.stdout)
        assert [one["id"] for one in host["findings"]] == [one["id"] for one in alone["findings"]]
        assert host["hostname"] == alone["host"]["hostname"] == host["name"]
        assert host["unknown"] == len(alone["unknown"])
    rules = {rule["id"]: rule["hosts"] for rule in document["findings"]}
    assert rules
    for host in document["hosts"][:3]:
        assert all(host["name"] in rules[one["id"]] for one in host["findings"])


def test_no_secret_is_on_the_controllers_disk_and_nobody_else_can_read_the_rest(
    fleet: Hosts, document: dict[str, Any]
) -> None:
    import gzip

    places = [path for path in (fleet.home / "state").rglob("*") if path.is_file()]
    assert len(places) == 6
    for path in places:
        data = path.read_bytes()
        assert SECRET.encode() not in (gzip.decompress(data) if path.name.endswith(".gz") else data)
        assert path.stat().st_mode & 0o777 == 0o600
    assert (fleet.home / "state/fleet").stat().st_mode & 0o777 == 0o700
    assert document["hosts"][0]["state"] == "ok"


def test_what_the_script_printed_elsewhere_can_be_kept_too(fleet: Hosts, tmp_path: Path) -> None:
    fleet.run(ADVISOR, "fleet", "capture-script", "-o", fleet.home / "node01/root/capture.sh")
    stream = fleet.shell("node01", "sh /root/capture.sh")
    done = fleet.run(ADVISOR, "fleet", "receive", "-o", tmp_path / "kept", "node01", stdin=stream)
    assert done.returncode == 0, done.stderr
    assert fleet.run(ADVISOR, "scan", "--snapshot", done.stdout.strip()).returncode == 0
    broken = fleet.run(ADVISOR, "fleet", "receive", "-o", tmp_path / "kept", "node09", stdin=stream[:5000])
    assert broken.returncode == 2
    assert "node09" in broken.stderr
    assert sorted(path.name for path in (tmp_path / "kept/captures").iterdir()) == ["node01.json", "node01.tar.gz"]


def test_why_observes_the_hosts_at_once_and_keeps_their_spans(fleet: Hosts, tmp_path: Path) -> None:
    words = ("fleet", "why", "-i", fleet.inventory(), "-o", tmp_path / "kept", "--json")
    done = fleet.run(ADVISOR, *words, "--seconds", "2")
    assert done.returncode == 4, done.stderr
    document = judge(done.stdout, done.returncode)
    assert [one["name"] for one in document["hosts"]] == ["node01", "node02", "node03"]
    assert all(one["why"]["seconds"] >= 1.9 for one in document["hosts"])
    assert set(document["failed"]) == set(FAILED)
    again = json.loads(fleet.run(ADVISOR, *words, "--kept").stdout)
    assert again["hosts"] == document["hosts"]
    fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), "-o", tmp_path / "kept", "--limit", "node01")
    gone = json.loads(fleet.run(ADVISOR, *words, "--kept").stdout)
    assert "holds no counters over time" in gone["failed"]["node01"]
