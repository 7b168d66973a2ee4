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


def test_the_page_fits_its_width_and_names_what_failed(fleet: Hosts) -> None:
    done = fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), more={"COLUMNS": "80"})
    assert done.returncode == 4
    assert "3 of 6 hosts captured" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert all(name in done.stdout.partition("Not captured")[2] for name in FAILED)
    assert "6 of 6 hosts asked" in done.stderr


@pytest.mark.thorough
def test_what_is_accepted_of_a_host_is_counted_and_not_listed(fleet: Hosts, document: dict[str, Any]) -> None:
    first = document["hosts"][0]["findings"][0]["id"]
    accepted, ours = fleet.home / "ignore.toml", {"ADVISOR_IGNORE_FILE": str(fleet.home / "ignore.toml")}
    accepted.write_text(
        f'[[ignore]]\nid = "{first}"\nhost = "node01"\nreason = "known"\n'
        f'[[ignore]]\nid = "{first}"\nreason = "of the controller alone"\n'
    )
    done = fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), "--json", "--limit", "node01,node02", more=ours)
    assert done.returncode == 0, done.stderr
    known, other = judge(done.stdout)["hosts"]
    assert known["muted"] == sum(one["id"] == first for one in document["hosts"][0]["findings"])
    assert first not in [one["id"] for one in known["findings"]]
    assert (other["muted"], other["findings"]) == (0, document["hosts"][1]["findings"])
    page = fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), "--limit", "node01", more=ours).stdout
    assert f"{known['muted']} finding" in page.splitlines()[0]
    accepted.write_text("[[ignore]]\nid = 1\n")
    assert fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), more=ours).returncode == 2


@pytest.mark.thorough
def test_fail_on_asks_for_a_finding_of_that_weight_once_all_are_captured(fleet: Hosts) -> None:
    for floor in ("info", "warning"):
        words = ("--limit", "node02", "--fail-on", floor, "--json")
        done = fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), *words)
        found = json.loads(done.stdout)
        has_any = any(rule["severity"] == "warning" or floor == "info" for rule in found["findings"])
        assert done.returncode == (1 if has_any else 0), done.stderr
    done = fleet.run(ADVISOR, "fleet", "scan", "-i", fleet.inventory(), "--limit", "nobody", "--json")
    assert done.returncode == 2
    assert "nobody" in json.loads(done.stdout)["error"]["message"]


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
