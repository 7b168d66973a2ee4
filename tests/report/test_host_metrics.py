"""Metrics of a scan and of a span: both formats, judged by readers that others wrote; what the dashboard asks for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from advisor.diagnosis.diagnose import diagnose, measure_uses
from advisor.diagnosis.observation import read_context
from advisor.facts.host_facts import scan
from advisor.report.host_metrics import failed_scan_metrics, failed_why_metrics, scan_metrics, why_metrics
from advisor.report.monitoring import MAX_SERIES, Families, Gauge, render_metrics, verify_metrics
from advisor.rules.judged import judge
from tests import beegfs_server
from tests.diagnosis.cases import CASES
from tests.diagnosis.moments import Machine, host_at, span_of
from tests.fleet.test_why import save_machine
from tests.report.exposition import samples
from tests.report.promtool import find_promtool
from tests.report.test_monitoring import FILE, LIVE, UNREAD, state
from tests.running import run_text

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples/monitoring"
UNITS = ROOT / "packaging/systemd"
HOSTILE = 'a"b\\c\nd} 7 # |x\x1b[31m\udcff'
STEAL = next(case.machine for case in CASES if case.name == "CPU steal")


def observed(machine: Machine) -> Families:
    span, context = span_of(machine, 2), read_context(host_at(machine, 1000))
    return why_metrics(diagnose(span, context, 1.7e9), measure_uses(span, context))


def scanned() -> Families:
    facts = scan(beegfs_server.tree("storage").host())
    return scan_metrics(judge(facts, None), muted=2, unknown=len(facts.unknown), at_seconds=1.7e9)


FAMILIES: dict[str, Families] = {
    "verify": verify_metrics({None: state(LIVE, FILE, UNREAD)}),
    "scan": scanned(),
    "why": observed(STEAL),
    "failed scan": failed_scan_metrics(1.7e9),
    "failed why": failed_why_metrics(1.7e9),
    "hostile": {Gauge("advisor_drift", 'A "help"\\ text'): [((("tunable", HOSTILE), ("kind", "live")), 1)]},
}


def test_what_binds_and_how_much_of_it() -> None:
    found = samples(render_metrics(observed(STEAL)))
    shares = {key: value for (name, key), value in found.items() if name == "advisor_why_binding_ratio"}
    (share,) = [value for key, value in shares.items() if ("id", "cpu.steal") in key]
    assert 0.3 < share < 0.5
    assert found["advisor_why_causes", (("resource", "cpu"),)] >= 1
    assert found["advisor_why_causes", (("resource", "disk"),)] == 0
    assert found["advisor_why_wait_ratio", (("resource", "cpu"),)] == pytest.approx(0.7, abs=0.01)
    assert 0.5 < found["advisor_why_use_ratio", (("device", "all"), ("resource", "cpu"))] <= 1


def test_what_failed_says_only_that() -> None:
    assert samples(render_metrics(failed_scan_metrics(5.0))) == {
        ("advisor_scan_success", ()): 0,
        ("advisor_scan_timestamp_seconds", ()): 5.0,
    }


def test_series_are_bounded() -> None:
    name = Gauge("advisor_x", "x")
    assert len(samples(render_metrics({name: [((("n", "y" * 300),), 1), ((("n", "y" * 400),), 2)]}))) == 1
    span, context = span_of(STEAL, 2), read_context(host_at(STEAL, 1000))
    found = diagnose(span, context, 0.0)
    uses = measure_uses(span, context) * 100
    assert all(len(series) <= MAX_SERIES or name.name.endswith("wait_ratio")
               for name, series in why_metrics(found, uses).items())  # fmt: skip


def test_no_metric_is_in_two_files() -> None:
    names = [{metric.name for metric in FAMILIES[which]} for which in ("verify", "scan", "why")]
    assert sum(map(len, names)) == len(set.union(*names))


@pytest.mark.parametrize("which", FAMILIES)
def test_promtool_has_nothing_to_say(which: str) -> None:
    text = render_metrics(FAMILIES[which])
    samples(text)
    done = run_text([find_promtool(), "check", "metrics"], input=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("which", FAMILIES)
def test_openmetrics_is_read_by_its_own_parser(which: str) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    text = render_metrics(FAMILIES[which], "openmetrics")
    assert text.endswith("# EOF\n")
    families = list(parser.text_string_to_metric_families(text))
    read = {sample.name for family in families for sample in family.samples}
    assert read == {metric.name for metric, series in FAMILIES[which].items() if series}
    assert all(family.documentation for family in families)
    for family in families:
        if family.name.endswith(("_seconds", "_ratio")):
            assert family.unit == family.name.rpartition("_")[2]


def test_every_metric_of_the_dashboard_is_one_that_is_written() -> None:
    dashboard = json.loads((EXAMPLES / "advisor-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    labels = {"instance"}
    written: set[str] = set()
    for which in ("verify", "scan", "why"):
        for name, pairs in samples(render_metrics(FAMILIES[which])):
            written.add(name)
            labels |= {key for key, _ in pairs}
    used = set(re.findall(r"advisor_\w+", " ".join(asked)))
    assert used
    assert used - written == set()
    assert set(re.findall(r"[{,(]\s*(\w+)=~?\"", " ".join(asked))) <= labels
    legends = " ".join(target["legendFormat"] for panel in dashboard["panels"] for target in panel["targets"])
    assert set(re.findall(r"{{(\w+)}}", legends)) <= labels
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.skipif("ADVISOR_GRAFANA_SCHEMA" not in os.environ, reason="ADVISOR_GRAFANA_SCHEMA names no file")
def test_the_dashboard_fits_grafanas_own_schema() -> None:
    """jsonschema/dashboard.jsonschema.json of grafana/grafana-foundation-sdk; seen with that of 2026-06-16."""
    schema = json.loads(Path(os.environ["ADVISOR_GRAFANA_SCHEMA"]).read_text())
    dashboard = json.loads((EXAMPLES / "advisor-dashboard.json").read_text())
    judge_document = jsonschema.Draft7Validator(schema)
    assert [error.message for error in judge_document.iter_errors(dashboard)] == []
    dashboard["panels"][0]["gridPos"] = {"x": "left"}
    assert list(judge_document.iter_errors(dashboard))


def _series(text: str) -> list[dict[str, str]]:
    """Series of an exposition as the tests of Prometheus' rules take them."""
    rows = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    named = [(name if "{" in name else f"{name}{{}}", value) for name, _, value in rows]
    return [{"series": name.replace("{", '{instance="a",', 1), "values": value} for name, value in named]


def test_promtool_takes_the_rules_of_the_example() -> None:
    rules = EXAMPLES / "advisor.rules.yml"
    done = subprocess.run([find_promtool(), "check", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rules found" in done.stdout


def test_prometheus_answers_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    """Parsed and evaluated by Prometheus itself, on what the three commands write: none is without an answer."""
    dashboard = json.loads((EXAMPLES / "advisor-dashboard.json").read_text())
    asked = [target["expr"].replace("$instance", ".*") for panel in dashboard["panels"] for target in panel["targets"]]
    written = [one for which in ("verify", "scan", "why") for one in _series(render_metrics(FAMILIES[which]))]
    series = {one["series"]: one for one in written}
    tests = [
        {"expr": f"count({expression}) > bool 0", "eval_time": "0s", "exp_samples": [{"labels": "{}", "value": 1}]}
        for expression in asked
    ]
    case = {"evaluation_interval": "1m", "tests": [{"interval": "1m", "input_series": list(series.values())}]}
    case["tests"][0]["promql_expr_test"] = tests  # type: ignore[index]
    (tmp_path / "test.json").write_text(json.dumps(case))
    done = run_text([find_promtool(), "test", "rules", "test.json"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "advisor", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_commands_write_their_files_and_fail_in_them(tmp_path: Path) -> None:
    save_machine(tmp_path / "h.tar.gz", STEAL)
    metrics, other = tmp_path / "m.prom", tmp_path / "m.txt"
    done = call("why", "--snapshot", tmp_path / "h.tar.gz", "--prometheus", metrics, "--openmetrics", other)
    assert (done.returncode, done.stdout[:6]) == (1, "db-07:")
    assert samples(metrics.read_text())["advisor_why_success", ()] == 1
    assert other.read_text().endswith("# EOF\n")
    assert metrics.stat().st_mode & 0o777 == 0o644
    done = call("why", "--snapshot", tmp_path / "none.tar.gz", "--prometheus", metrics)
    assert done.returncode == 2
    assert samples(metrics.read_text())["advisor_why_success", ()] == 0
    done = call("scan", "--snapshot", tmp_path / "h.tar.gz", "--prometheus", "-")
    assert done.returncode == 0, done.stderr
    assert samples(done.stdout)["advisor_scan_success", ()] == 1
    done = call("scan", "--snapshot", tmp_path / "h.tar.gz", "--prometheus", "-", "--json")
    assert (done.returncode, done.stdout[:11]) == (2, '{\n  "error"')
    done = call("scan", "--snapshot", tmp_path / "h.tar.gz", "--openmetrics", "-", "--html", "-")
    assert (done.returncode, done.stdout) == (2, "")
    done = call("why", "--prometheus", metrics, "--openmetrics", metrics)
    assert done.returncode == 2
    assert "name the same file" in done.stderr


def test_a_scan_of_what_cannot_be_opened_replaces_the_success_of_last_time(tmp_path: Path) -> None:
    empty, metrics = tmp_path / "empty", tmp_path / "m.prom"
    empty.write_bytes(b"")
    for given in (("--snapshot", empty), ("--root", tmp_path / "nope")):
        metrics.write_text("advisor_scan_success 1\n")
        done = call("scan", *given, "--prometheus", metrics)
        assert done.returncode == 2
        assert samples(metrics.read_text())["advisor_scan_success", ()] == 0


@pytest.mark.parametrize("command", ["why", "scan"])
def test_metrics_and_a_page_do_not_share_a_file(command: str, tmp_path: Path) -> None:
    place = tmp_path / "a.prom"
    done = call(command, "--prometheus", place, "--html", tmp_path / "." / "a.prom")
    assert done.returncode == 2
    assert "--prometheus and --html name the same file" in done.stderr
    assert not place.exists()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_units_of_the_package_are_units(tmp_path: Path) -> None:
    for unit in sorted(UNITS.iterdir()):
        text = unit.read_text().replace("/usr/bin/advisor", str(Path(sys.executable).with_name("advisor")))
        (tmp_path / unit.name).write_text(text)
    for unit in sorted(UNITS.iterdir()):
        command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), unit.name


def test_the_service_writes_a_file_for_each_command_in_the_one_place_that_it_may_write_to() -> None:
    text = (UNITS / "advisor-metrics.service").read_text()
    calls = re.findall(r"^ExecStart=-/usr/bin/advisor (\w+).* --prometheus (\S+)$", text, re.MULTILINE)
    assert [name for name, _ in calls] == ["verify", "scan", "why"]
    assert len({file for _, file in calls}) == 3
    (place,) = re.findall(r"^ReadWritePaths=(.*)$", text, re.MULTILINE)
    assert all(file.startswith(f"{place}/") and file.endswith(".prom") for _, file in calls)
