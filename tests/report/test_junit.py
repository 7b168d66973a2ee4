"""Test results of verify and scan as JUnit XML: judged by libxml2 against a schema, and by what a CI server counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lxml import etree

from advisor.facts.host_facts import scan
from advisor.facts.unknown import Unknown
from advisor.report.junit import JunitCase, failed_junit, junit_text, scan_cases, verify_cases
from advisor.report.monitoring import VerifyState
from advisor.rules.finding import Finding, Muted
from advisor.rules.registry import judge
from advisor.transaction.status import Status, verify_transactions
from advisor.transaction.verify import Drift
from tests import beegfs_server
from tests.cli.inside import call_inside
from tests.cli.test_monitoring import make_transaction, needs_root
from tests.report.test_change import change, plan, record
from tests.report.test_monitoring import FILE, HOSTILE, LIVE, TIME, UNREAD, failed, state
from tests.trees import make_tree

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))
RESULTS = ("failure", "error", "skipped")


def read_cases(document: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Result and message of each case by its class and name; the document is valid, and its counts are true."""
    tree = etree.fromstring(document.encode())
    SCHEMA.assertValid(tree)
    suite = tree[0]
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for case in suite.iter("testcase"):
        inside: Any = case[0] if len(case) else None
        result = ("passed", "") if inside is None else (inside.tag, inside.get("message"))
        found[case.get("classname"), case.get("name")] = result
    counts = Counter(result for result, _ in found.values())
    assert [int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")] == [
        len(found),
        *(counts[result] for result in RESULTS),
    ]
    return found


def verified(found: VerifyState) -> dict[tuple[str, str], tuple[str, str]]:
    return read_cases(junit_text("verify", "node1", TIME, verify_cases(found)))


def test_a_value_that_matches_passes_and_keeps_its_name_when_it_drifts() -> None:
    passed = verified(state())
    assert passed == {("advisor.verify", "verify"): ("passed", ""), ("advisor.verify.live", LIVE.what): ("passed", "")}
    drifted = verified(state(LIVE, FILE, UNREAD))
    assert drifted["advisor.verify.live", LIVE.what] == (
        "failure",
        "expected 10, found 60 (is as before the transaction)",
    )
    assert drifted["advisor.verify.persisted", FILE.what][0] == "failure"
    assert drifted["advisor.verify.live", UNREAD.what] == ("error", "cannot be read: no such file")


@pytest.mark.parametrize(
    ("parts", "name", "result"),
    [
        ({"state": "applying"}, ("advisor.verify.transaction", "0007"), "failure"),
        ({"state": "awaiting-confirmation", "seconds_left": 7.0}, ("advisor.verify.transaction", "0007"), "skipped"),
        ({"left": (("sysctl:kernel.other", "locked"),)}, ("advisor.verify.live", "sysctl:kernel.other"), "skipped"),
    ],
)
def test_what_is_neither_set_nor_drifted(parts: dict[str, Any], name: tuple[str, str], result: str) -> None:
    assert verified(state(**parts))[name][0] == result


def test_a_host_that_cannot_be_verified_is_one_error() -> None:
    assert verified(failed()) == {("advisor.verify", "verify"): ("error", "only root can read it")}
    assert read_cases(failed_junit("scan", "no such file", TIME)) == {
        ("advisor.scan", "scan"): ("error", "no such file")
    }


@needs_root
def test_what_an_upper_transaction_holds_is_no_success_of_the_lower_one(tmp_path: Path) -> None:
    from advisor.host import live_host
    from advisor.transaction.journal import Store

    make_transaction(tmp_path)
    make_transaction(tmp_path)
    found = verify_transactions(live_host(), "0001", Store(str(tmp_path / "state")), with_others=False)
    case = verified(VerifyState(TIME, found))["advisor.verify.live", "sysctl:vm.swappiness"]
    assert case == ("skipped", "set by 0002: verified with that transaction")


CHARACTERS = [*map(chr, range(0x20)), *"\x7f\x85\u2028\u202e\ufffe\uffff\udcff\U0001ffff<&>\"']"]


def test_each_character_that_xml_forbids_or_means_something_by() -> None:
    for text in (f"a{character}b]]>" for character in CHARACTERS):
        document = junit_text("scan", text, TIME, [JunitCase(text, text, "failure", text, text, text)])
        (case,) = etree.fromstring(document.encode()).iter("failure")
        assert case.text.replace("\n", " ").isprintable()
        assert case.get("message").isprintable()


def test_names_that_are_alike_are_numbered_and_long_ones_are_cut() -> None:
    long = "x" * 100_000
    hostile = Drift("0007", HOSTILE, long, HOSTILE, HOSTILE)
    found = verified(VerifyState(TIME, Status((record(plan(change())),), (hostile,))))
    assert max(len(message) for _, message in found.values()) <= 400
    twice = read_cases(junit_text("scan", None, TIME, [JunitCase("scan.a", long)] * 3))
    assert len(twice) == 3


def finding(**parts: Any) -> Finding:
    facts = scan(beegfs_server.tree("storage").host())
    return msgspec.structs.replace(judge(facts, None)[0], evidence={"disks": ("sda", "sdb")}, **parts)


def test_a_finding_is_a_case_of_each_device_and_fails_from_the_asked_severity_on() -> None:
    shown = finding(id="disk.slow", severity="warning")
    muted = msgspec.structs.replace(shown, id="disk.other", muted=Muted("known", "2026-12-31"), severity="critical")

    def cases(floor: str) -> dict[tuple[str, str], tuple[str, str]]:
        unknown = [Unknown("links.eth0.rings", "Permission denied")]
        return read_cases(junit_text("scan", "node1", TIME, scan_cases((shown, muted), unknown, floor)))

    failing, passing = cases("advice"), cases("critical")
    assert failing.keys() == passing.keys()
    assert failing["advisor.scan.disk.slow", "sdb"] == ("failure", shown.title[:400])
    assert passing["advisor.scan.disk.slow", "sdb"][0] == "passed"
    assert failing["advisor.scan.disk.other", "sda"] == ("skipped", "muted until 2026-12-31: known")
    assert failing["advisor.scan.unknown", "links.eth0.rings"] == ("skipped", "Permission denied")
    assert failing["advisor.scan", "scan"][0] == "passed"


def test_the_command_fails_where_the_file_has_a_failure(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "host", {"proc/sys/kernel/osrelease": "6.1.0\n", "proc/mdstat": DEGRADED})
    file = tmp_path / "scan.xml"
    failing = call_inside("scan", "--root", root, "--brief", "--fail-on", "info", "--junit", file)
    assert failing.returncode == 1
    assert failing.stdout
    assert "failure" in {result for result, _ in read_cases(file.read_text()).values()}
    alone = call_inside("scan", "--root", root, "--fail-on", "info", "--junit", "-")
    assert read_cases(alone.stdout) == read_cases(file.read_text())
    broken = call_inside("scan", "--snapshot", tmp_path / "none", "--fail-on", "info", "--junit", file)
    assert broken.returncode == 2
    assert [result for result, _ in read_cases(file.read_text()).values()] == ["error"]


DEGRADED = """\
Personalities : [raid1]
md0 : active raid1 sdb1[1]
      1000 blocks super 1.2 [2/1] [_U]

unused devices: <none>
"""


def test_calls_that_are_refused(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "host", {"proc/sys/kernel/osrelease": "6.1.0\n"})
    for words, part in (
        (("scan", "--root", root, "--junit", "-"), "--fail-on"),
        (("scan", "--root", root, "--fail-on", "info", "--junit", "-", "--json"), "--junit"),
        (("scan", "--root", root, "--fail-on", "info", "--junit", ""), "--junit: empty"),
        (("verify", "--junit", "-", "--nagios"), "--junit"),
    ):
        done = call_inside(*words)
        assert done.returncode in (2, 3)
        assert part in done.stdout + done.stderr


@needs_root
def test_verify_writes_its_results_and_its_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    path = make_transaction(tmp_path)
    file = tmp_path / "verify.xml"
    assert call_inside("verify", "--junit", file).returncode == 0
    assert {result for result, _ in read_cases(file.read_text()).values()} == {"passed"}
    path.unlink()
    assert call_inside("verify", "--junit", file).returncode == 1
    assert read_cases(file.read_text())["advisor.verify.persisted", str(path)][0] == "failure"
    (tmp_path / "state/transactions/0001/journal").write_bytes(b"damaged\n")
    assert call_inside("verify", "--junit", file).returncode == 2
    assert [result for result, _ in read_cases(file.read_text()).values()] == ["error"]
