"""All profiles of TuneD's package: each imports, lints and plans, and every line of its files is accounted for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.facts.host_facts import Facts, scan
from advisor.facts.tuned.files import decode_text, parse_tuned_ini
from advisor.host import DirectoryFiles, Host, NoCommands
from advisor.importers.records import Imported, Mode, count_outcomes
from advisor.importers.to_profile import to_toml
from advisor.importers.tuned.convert import import_tuned
from advisor.planning.records import SATISFIED
from advisor.profiles.lint import lint_profile
from tests.importers.hosts import LINKS, MACHINE, NETWORK, machine
from tests.importers.plans import plan_imported
from tests.importers.tuned_package import NAMES, tuned_files
from tests.trees import make_tree

MODES: tuple[Mode, ...] = ("faithful", "intent")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The small machine as a directory, which a plan can look at."""
    root = make_tree(tmp_path_factory.mktemp("host"), {**MACHINE, **NETWORK}, LINKS)
    return Host(DirectoryFiles(str(root)), NoCommands(), is_root=True)


@pytest.fixture(scope="module")
def facts(tree: Host) -> Facts:
    return scan(tree)


@pytest.mark.parametrize("name", NAMES)
def test_it_imports_lints_and_plans_the_same_each_time(name: str, tree: Host, facts: Facts, tmp_path: Path) -> None:
    for mode in MODES:
        found = import_tuned(name, tree, mode, files=tuned_files())
        assert found == import_tuned(name, tree, mode, files=tuned_files())
        path = tmp_path / f"{found.name}.toml"
        path.write_text(to_toml(found))
        assert len(lint_profile(path).tunables) == sum(one.outcome == "tunable" for one in found.settings)
        plans = [plan_imported(found, tree, facts) for _ in range(2)]
        assert msgspec.json.encode(plans[0]) == msgspec.json.encode(plans[1])
        # Nothing that TuneD passes over blocks the rest.
        assert plans[0].blocking == ()


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_accounted_for(name: str, tree: Host) -> None:
    files = tuned_files()
    for mode in MODES:
        found = import_tuned(name, tree, mode, files=files)
        reported = {(one.file, one.line, one.section, one.key) for one in found.settings}
        for source in found.sources:
            path = source.partition(" ")[0]
            data = files.read_bytes(path)
            assert isinstance(data, bytes)
            sections = parse_tuned_ini(decode_text(data, path), path)
            lines = {(path, one.line, part, key) for part, all_ in sections.items() for key, one in all_.items()}
            assert lines <= reported
        for one in found.settings:
            assert one.why or one.outcome == "tunable"
            assert (one.tunable is not None) == (one.outcome == "tunable")


def by_hand(name: str, mode: Mode = "faithful") -> Imported:
    return import_tuned(name, machine(), mode, files=tuned_files())


def test_the_storage_profile_is_inert_on_its_disks() -> None:
    inert = [one for one in by_hand("spectrumscale-ece").differences if one.kind == "inert"]
    assert {(one.section, one.key) for one in inert} == {
        (section, key) for section in ("disk-sas", "disk-nvme") for key in ("elevator", "readahead")
    }
    meant = {one.tunable: one for one in by_hand("spectrumscale-ece", "intent").settings if one.section == "disk-sas"}
    assert meant["block:{disk}:scheduler"].value == "mq-deadline"


def test_the_network_profile_lowers_what_younger_kernels_have() -> None:
    (lowers,) = [one for one in by_hand("network-throughput").differences if one.kind == "lowers"]
    assert lowers.key == "net.ipv4.tcp_rmem"
    assert "33554432 to 16777216" in lowers.faithful


def test_values_that_tuned_leaves_on_a_host(tree: Host) -> None:
    plan = plan_imported(import_tuned("network-throughput", tree, "faithful", files=tuned_files()), tree)
    found = {one.tunable: one.before for one in plan.skipped if one.state in SATISFIED}
    found |= {change.tunable: change.after for change in plan.changes}
    assert found["sysctl:net.ipv4.tcp_rmem"] == "4096 87380 16777216"
    assert found["sysctl:net.core.somaxconn"] == "4096"
    assert found["sysctl:vm.swappiness"] == "10"
    assert found["block:sda:read_ahead_kb"] == "4096"


def test_scripts_are_left_to_a_person() -> None:
    for name in ("powersave", "realtime", "cpu-partitioning"):
        scripts = [one for one in by_hand(name, "intent").settings if one.section == "script" and one.key == "script"]
        assert any(one.outcome == "manual" for one in scripts)


def test_counts_leave_lines_out_that_set_nothing() -> None:
    found = by_hand("balanced")
    assert sum(count_outcomes(found.settings).values()) == len(
        {one.line for one in found.settings if not one.sets_nothing}
    )
