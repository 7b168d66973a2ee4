"""`advisor schema`, and what ``--json`` really prints, validated against the schemas by a library that is not ours.

The schemas leave room for more keys, as the contract does. Here they do not: a key that is printed and not described is
a fault.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from advisor.cli.complete import schema_names
from advisor.operations.library import list_schemas, read_schema
from advisor.proof.archive import save_result
from advisor.report.json import scan_document
from tests.captured import HWLOC_HOSTS, PEPC_HOSTS, tree
from tests.cli.inside import call_inside
from tests.cli.test_bench import QUICK, kept, proof
from tests.cli.test_bench import advisor as with_fio
from tests.proof.conftest import disk, fake_fio
from tests.proof.fakes import FakeFio
from tests.proof.sessions import WORKLOAD
from tests.proof.test_arms import made
from tests.report.pictures import beegfs, judged
from tests.schemas import judge

__all__ = ["disk", "fake_fio"]

ROOT = Path(__file__).parents[2]
# /sys/class/net shows the links of the namespace in which it was mounted.
OWN_SYS = 'mount -t sysfs none /sys && exec "$@"'


@pytest.mark.parametrize("name", list_schemas())
def test_a_pattern_is_one_of_ecma_262(name: str) -> None:
    """JSON Schema has ECMA's regular expressions: no anchors \\A and \\Z, no named groups of Python's, no flags."""
    patterns = re.findall(r'"pattern": ("(?:[^"\\\\]|\\\\.)*")', json.dumps(read_schema(name)))
    assert [one for one in patterns if re.search(r"\\\\[AZz]|\(\?(?:P|#|[aiLmsux])", one)] == []


@pytest.mark.parametrize("name", ["scan", "advisor.scan/1"])
def test_the_command_prints_a_schema(name: str) -> None:
    assert json.loads(call_inside("schema", name).stdout) == read_schema("advisor.scan/1")


def test_without_a_name_the_command_lists_them() -> None:
    assert tuple(call_inside("schema").stdout.splitlines()) == list_schemas()
    assert judge(call_inside("schema", "--json").stdout)["schemas"] == list(list_schemas())


@pytest.mark.parametrize(
    ("name", "near"), [("skan", "scan"), ("advisor.scan/2", "scan"), ("fleet", "fleet-"), ("x", "")]
)
def test_an_unknown_name_gets_near_ones(name: str, near: str) -> None:
    error = judge(call_inside("schema", name, "--json").stdout, 2)["error"]
    assert name in error["message"]
    assert near in error["hint"]


def test_names_are_completed() -> None:
    assert schema_names("fleet-s") == ["fleet-scan", "fleet-status"]
    assert schema_names("advisor.sc") == ["advisor.scan/1", "advisor.schemas/1"]


def test_a_document_that_is_none_is_told() -> None:
    with pytest.raises(jsonschema.ValidationError):
        judge('{"schema": "advisor.verify/1", "ok": "yes"}')


@pytest.fixture
def advisor(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(*words: str | Path, before: str = "") -> dict[str, Any]:
        if not before:
            done = call_inside(*words, "--json", ADVISOR_STATE_DIR=tmp_path / "state")
            return judge(done.stdout, done.returncode)
        environment = {**os.environ, "ADVISOR_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
        inside = ["nsenter", f"--net={before}", "unshare", "--mount", "sh", "-c", OWN_SYS, "sh"]
        command = [*inside, sys.executable, "-m", "advisor", *map(str, words), "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
        assert "Traceback" not in ended.stderr
        return judge(ended.stdout, ended.returncode)

    return run


Advisor = Callable[..., dict[str, Any]]


def test_what_looks_at_this_machine(advisor: Advisor) -> None:
    assert advisor("scan")["schema"] == "advisor.scan/1"
    assert advisor("recommend")["schema"] == "advisor.recommendation/1"
    assert advisor("recommend", "--workload", "iris")["schema"] == "advisor.recommendation/1"
    assert advisor("limits")["schema"] == "advisor.limits/1"
    assert advisor("status")["schema"] == "advisor.status/1"
    assert advisor("verify")["schema"] == "advisor.verify/1"


CAPTURED = [*(f"hwloc/{name}" for name in HWLOC_HOSTS[::3]), *(f"pepc/{name}" for name in PEPC_HOSTS[::3])]


@pytest.mark.captured
@pytest.mark.parametrize("name", CAPTURED)
def test_captured_hosts(name: str, advisor: Advisor) -> None:
    root = tree(name)
    assert advisor("scan", "--root", root)["schema"] == "advisor.scan/1"
    assert advisor("plan", "socket-buffers-8m", "--root", root)["schema"] == "advisor.plan/1"


def test_a_host_with_everything() -> None:
    facts, findings, _ = judged(beegfs())
    assert judge(scan_document(facts, findings).decode())["arrays"]


def test_the_library(advisor: Advisor) -> None:
    names = [one["name"] for one in advisor("profiles", "list")["profiles"]]
    assert len(names) > 10
    for name in names:
        assert advisor("profiles", "show", name)["schema"] == "advisor.profile/1"
    for identity in ("jumbo-frames", "arrays.degraded", "sysctl:net.core.rmem_max", "contradictions"):
        assert advisor("explain", identity)["schema"] == "advisor.explanation/1"


def test_errors(advisor: Advisor) -> None:
    for words in (("plan", "no-such-profile"), ("scan", "--root", "/no/such"), ("rollback",), ("explain", "nothing")):
        assert advisor(*words)["error"]["message"]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("nsenter"), reason="makes a network namespace: needs root")
def test_what_changes_a_host(advisor: Advisor, tmp_path: Path) -> None:
    place = tmp_path / "net"
    place.touch()
    setup = "ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up"
    subprocess.run(["unshare", f"--net={place}", "sh", "-c", setup], check=True)
    try:
        words = ("jumbo-frames", "--set", "links=v0", "--runtime-only")
        assert advisor("plan", *words, before=str(place))["changes"]
        assert advisor("apply", *words, "--dry-run", before=str(place))["dry_run"]
        made = advisor("apply", *words, "--yes", "--confirm-within", "100", before=str(place))
        assert made["state"] == "awaiting-confirmation"
        assert advisor("status", before=str(place))["awaiting_confirmation"]
        assert advisor("confirm", "--same-session", before=str(place))["state"] == "applied"
        subprocess.run(["nsenter", f"--net={place}", "ip", "link", "set", "v0", "mtu", "4000"], check=True)
        assert advisor("verify", before=str(place))["drift"]
        assert not advisor("rollback", before=str(place))["ok"]
        assert advisor("status", before=str(place))["transactions"]
    finally:
        subprocess.run(["umount", place], check=True)


def test_what_is_measured(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    words = ("bench", "--target", disk, "--workload", WORKLOAD, *QUICK, "--json")
    series = judge(with_fio(*words, state=tmp_path / "state", fio=fake_fio).stdout)
    assert series["schema"] == "advisor.bench/1"
    saved = series["saved_to"]
    assert judge(with_fio("compare", saved, saved, "--json", state=tmp_path).stdout)["schema"] == "advisor.comparison/1"
    place = kept(tmp_path / "proof", proof(1.3))
    assert judge(with_fio("compare", place, "--json", state=tmp_path).stdout)["schema"] == "advisor.proof/1"


def test_several_arms(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    found = made({"a": 1.2, "b": 1.0}, blocks=12, noise=0.03, seed=1, workloads=(WORKLOAD,))
    place = tmp_path / "arms.gz"
    save_result(place, found, {})
    assert judge(with_fio("compare", place, "--json", state=tmp_path).stdout)["schema"] == "advisor.proof/1"
    for words in (("none",), ("jumbo-frames", "jumbo-frames")):
        error = judge(with_fio("prove-arms", "--target", disk, *words, "--json", state=tmp_path, fio=fake_fio).stdout)
        assert error["error"]["code"] == 2


def test_import_and_export(advisor: Advisor, tmp_path: Path) -> None:
    file = tmp_path / "site.conf"
    file.write_text("# Why.\nnet.core.somaxconn = 5123\nkernel.core_pattern = |/bin/x\nnot a line\n")
    assert advisor("profiles", "import", f"sysctl:{file}")["counts"]
    assert advisor("profiles", "import", "--list")["schema"] == "advisor.importable/1"
    assert advisor("profiles", "export", "socket-buffers-8m", "--format", "tuned")["files"]
