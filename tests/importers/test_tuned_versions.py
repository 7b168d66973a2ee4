"""What each release of TuneD knows: judged by the plugins of a packaged one, and by what newer ones were given."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.importers.records import Imported, Mode
from advisor.importers.tuned.convert import PLUGINS, import_tuned
from advisor.importers.tuned.differences import installed_version, known_since, parse_tuned_version
from tests.cases import read_cases
from tests.importers.test_import_command import advisor
from tests.importers.tuned_package import VERSION, tuned_root

# The head of throughput-performance, of which this is the main effect, since 2.26; shortened.
DIRTY = "[vm]\ndirty_bytes = 40%\ndirty_background_bytes=10%\ntransparent_hugepages=never\n"


def host(text: str, more: dict[str, str] | None = None) -> Host:
    files = {
        "/etc/tuned/mine/tuned.conf": text,
        "/proc/sys/vm/dirty_ratio": "20\n",
        "/proc/sys/vm/dirty_bytes": "0\n",
        "/proc/sys/vm/dirty_background_ratio": "10\n",
        "/proc/sys/vm/dirty_background_bytes": "0\n",
        "/proc/cmdline": "ro\n",
        **(more or {}),
    }
    return Host(MemoryFiles({path: data.encode() for path, data in files.items()}), NoCommands())


def imported(text: str, mode: Mode = "faithful", version: str | None = None) -> Imported:
    return import_tuned("mine", host(text), mode, version=parse_tuned_version(version) if version else None)


def values(found: Imported) -> dict[str, str]:
    return {one.tunable: one.value or "" for one in found.settings if one.outcome == "tunable" and one.tunable}


def why(found: Imported, key: str) -> str:
    (one,) = [each for each in found.settings if each.key == key]
    return one.why or ""


def options_of_package() -> dict[str, set[str]]:
    """Plugin → options, as the methods of the packaged plugins return them; the source is read, not run."""
    found: dict[str, set[str]] = {}
    for path in (tuned_root() / "usr/lib/python3/dist-packages/tuned/plugins").glob("plugin_*.py"):
        found[path.stem.removeprefix("plugin_")] = set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of escapes in its strings.
            tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == "_get_config_options":
                keys = [key for part in ast.walk(node) if isinstance(part, ast.Dict) for key in part.keys]
                found[path.stem.removeprefix("plugin_")] = {
                    str(key.value) for key in keys if isinstance(key, ast.Constant)
                }
    return found


def test_the_tables_hold_what_the_packaged_release_knows_and_no_more() -> None:
    theirs = options_of_package()
    release = parse_tuned_version(VERSION)
    assert len(theirs) > 15
    for plugin, options in theirs.items():
        known = PLUGINS[plugin]
        for option in options:
            assert known.knows(option), (plugin, option)
            assert known_since(plugin, option) <= release, (plugin, option)
        if known.options is not None and options:
            later = {one for one in known.options - options if not known_since(plugin, one) > release}
            assert later <= {"runtime"}, (plugin, later)
    assert all(known_since(plugin, "") > release for plugin in PLUGINS.keys() - theirs.keys())


@pytest.mark.parametrize("version", ["2.26", "2.27.0", "2.28", None])
def test_dirty_limits_in_percent_are_ratios(version: str | None) -> None:
    found = imported(DIRTY, version=version)
    assert values(found) == {
        "sysctl:vm.dirty_ratio": "40",
        "sysctl:vm.dirty_background_ratio": "10",
        "thp:enabled": "never",
    }
    assert any("--tuned-version" in note for note in found.notes) == (version is None)


def test_a_release_that_has_no_dirty_limits_ignores_them_and_its_author_meant_them() -> None:
    text = "[vm]\ndirty_bytes=268435456\ndirty_background_ratio=3\n"
    assert values(imported(text, version="2.24.1")) == {}
    assert "TuneD 2.24 does not know the option dirty_bytes of vm yet, which is of 2.25" in why(
        imported(text, version="2.24"), "dirty_bytes"
    )
    expected = {"sysctl:vm.dirty_bytes": "268435456", "sysctl:vm.dirty_background_ratio": "3"}
    assert values(imported(text, version="2.25")) == expected
    assert values(imported(text, "intent", version="2.20")) == expected
    assert "since 2.26" in why(imported(DIRTY, version="2.25.1"), "dirty_bytes")


@pytest.mark.parametrize("value", ["8191", "-1", "101%", "40 %x", "half", ">40", "0", ""])
def test_what_tuned_refuses_is_not_written(value: str) -> None:
    assert values(imported(f"[vm]\ndirty_bytes={value}\n", version="2.28")) == {}


def test_of_both_units_the_ratio_is_set_last() -> None:
    found = imported("[vm]\ndirty_ratio=30\ndirty_bytes=100000000\n", version="2.25")
    assert values(found) == {"sysctl:vm.dirty_ratio": "30"}
    assert "is set after it" in why(found, "dirty_bytes")


def test_a_plugin_of_a_later_release() -> None:
    text = "[acpi]\nplatform_profile=performance\n[cpu]\nboost=1\n[scheduler]\nkthread_process=true\n"
    found = imported(text, version="2.20")
    assert "does not know the plugin acpi yet, which is of 2.22" in why(found, "platform_profile")
    assert "boost of cpu yet, which is of 2.24" in why(found, "boost")
    assert "which is of 2.25.1" in why(found, "kthread_process")
    assert "yet" not in why(imported(text, version="2.25.1"), "kthread_process")


DATA = read_cases(__file__)


@pytest.mark.parametrize(("files", "version"), DATA["the_installed_release_decides"])
def test_the_installed_release_decides(files: dict[str, str], version: str | None) -> None:
    one = host("[vm]\ndirty_ratio=7\n", files)
    assert installed_version(one) == version
    found = import_tuned("mine", one, "faithful")
    assert values(found) == ({} if version == "2.24.0" else {"sysctl:vm.dirty_ratio": "7"})


@pytest.mark.parametrize("text", ["2", "2.18", "2.29", "3.0", "newest", "2.٢5", "2.25.1.7", "", "9" * 5000])
def test_a_release_without_a_table_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"no release of TuneD between 2\.19 and 2\.28"):
        parse_tuned_version(text)


def test_the_option_of_the_command(tmp_path: Path) -> None:
    place = tmp_path / "mine" / "tuned.conf"
    place.parent.mkdir()
    place.write_text(DIRTY)
    call = (str(place), "--mode", "faithful")
    assert '"sysctl:vm.dirty_ratio"' in advisor(*call, "--tuned-version", "2.28").stdout
    old = advisor(*call, "--tuned-version", "2.20")
    assert '"sysctl:vm.dirty' not in old.stdout
    (tmp_path / "10-own.conf").write_text("vm.swappiness = 10\n")
    wrong = advisor(f"sysctl:{tmp_path}", "--tuned-version", "2.28")
    assert wrong.returncode == 2
    assert "--tuned-version is for profiles of TuneD" in wrong.stderr
