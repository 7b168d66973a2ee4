"""Every value of a plan is in an exported form or reported as left out; each form is one that its own tool takes.

Putting them to use on a real kernel is tests/lab/test_exports.py.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import RefusedError, UsageError
from advisor.exporters import FORMATS, Bundle, Exported, export_form
from advisor.exporters.settings import ExportedSetting, write_bundle
from advisor.host import WriteFile
from advisor.host.probes import ReadFile
from advisor.planning.records import Plan
from advisor.tunables.edits import Persisted
from docs.command_page import help_pages
from tests.cases import read_cases
from tests.running import run_text
from tests.trees import make_tree

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DATA = read_cases(__file__)

HOST = DATA["HOST"]
PROFILE = "socket-buffers-8m"
SYSCTL_FILE = f"/etc/sysctl.d/90-advisor-{PROFILE}.conf"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_tree(tmp_path / "host", HOST)
    return tmp_path


def advisor(place: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(place / "state"), "PYTHONPATH": str(ROOT)}
    done = run_text(
        [sys.executable, "-m", "advisor", "profiles", "export", *map(str, words), "--root", str(place / "host")],
        env=environment,
    )
    assert "Traceback" not in done.stderr
    return done


def exported(place: Path, form: str) -> dict[str, Any]:
    done = advisor(place, PROFILE, "--format", form, "--json")
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_each_value_is_there_or_told_as_left_out(form: str, place: Path) -> None:
    found = exported(place, form)
    text = "\n".join(found["files"].values())
    left = {one["tunable"]: one["why"] for one in found["left_out"]}
    assert all(left.values())
    # To be raised, already set, already sufficient, and not of this kernel.
    for key in ("net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_rmem"):
        # The script changes this host alone, where wmem_max is already set.
        assert f"sysctl:{key}" in left or (form, key) == ("shell", "net.core.wmem_max") or key in text, key
    assert {"sysctl:net.ipv4.tcp_wmem", "sysctl:net.core.optmem_max"} <= left.keys()


def test_a_form_that_is_none_and_a_directory_that_is_full_are_told(place: Path) -> None:
    done = advisor(place, PROFILE, "--format", "no-such-form")
    assert (done.returncode, "ansible, cloud-init" in done.stderr) == (2, True)
    (place / "full").mkdir()
    (place / "full/x").write_text("kept")
    done = advisor(place, PROFILE, "--format", "files", "-o", place / "full")
    assert (done.returncode, (place / "full/x").read_text()) == (3, "kept")
    done = advisor(place, PROFILE, "--format", "files", "-o", place / "no/such/place")
    assert done.returncode == 2


def test_the_help_of_the_option_names_each_form() -> None:
    said = help_pages()["profiles export"].partition("--format FORM")[2].partition("[required]")[0]
    missing = sorted(FORMATS.keys() - {*re.findall(r"[a-z-]+", said)})
    assert not missing, f"advisor/cli/exporting.py, help of --format: {missing}"


def test_what_a_form_has_no_word_for_at_all_is_refused(place: Path) -> None:
    for form in ("nmstate", "networkmanager"):
        done = advisor(place, PROFILE, "--format", form)
        assert done.returncode == 3
        assert "links alone" in done.stderr
        assert "use it with" not in done.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_where_no_value_fits_the_host_nothing_is_written(form: str, place: Path) -> None:
    done = advisor(place, "llt-highwater-doubled", "--format", form, "-o", place / "out")
    assert done.returncode == 3, done.stderr
    assert not (place / "out").exists()
    assert "use it with" not in done.stderr
    assert "llt" in done.stderr


def test_tuned_conf_is_an_ini_file_with_the_values(place: Path) -> None:
    (text,) = exported(place, "tuned")["files"].values()
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    assert dict(parser["sysctl"]) == {
        "net.core.rmem_max": ">8388608",
        "net.core.wmem_max": ">8388608",
        "net.ipv4.tcp_rmem": "4096 131072 8388608",
    }


def test_user_data_is_yaml_with_files_and_commands(place: Path) -> None:
    text = exported(place, "cloud-init")["files"]["user-data.yaml"]
    assert text.startswith("#cloud-config\n")
    document = yaml.safe_load(text)
    (file,) = document["write_files"]
    assert file["path"] == SYSCTL_FILE
    assert "net.core.rmem_max = 8388608\n" in file["content"]
    assert document["runcmd"] == [["sh", "-c", f"sysctl -p {SYSCTL_FILE}"]]


def test_the_role_is_clean_in_the_eyes_of_ansible_lint(place: Path) -> None:
    assert advisor(place, PROFILE, "--format", "ansible", "-o", place / "out").returncode == 0
    environment = {**os.environ, "NO_COLOR": "1", "HOME": str(place), "PATH": f"{BIN}:{os.environ['PATH']}"}
    lint = [str(BIN / "ansible-lint"), "--offline", "--profile", "production"]
    done = subprocess.run(lint, cwd=place / "out", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    scripts = list((place / "out").rglob("*.sh"))
    assert scripts
    done = subprocess.run([str(BIN / "shellcheck"), *map(str, scripts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def setting(identity: str, value: str) -> ExportedSetting:
    path = "/proc/sys/x"
    return ExportedSetting(identity, value, "W.", "", (), ReadFile(path), (WriteFile(path, value),), Persisted(path))


def bundles(settings: tuple[ExportedSetting, ...]) -> dict[str, Bundle]:
    plan = Plan(("p",), None, (), (), (), (), ())
    wanted = Exported("p", plan, settings, (), (), "h")
    return {form: export_form(wanted, form) for form in FORMATS if form != "shell"}


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_a_value_is_data_whatever_it_holds(value: str) -> None:
    identity = "sysctl:net.core.somaxconn"
    found = bundles((setting(identity, value),))
    document = yaml.safe_load(found["cloud-init"].files["user-data.yaml"])
    (command,) = [one for one in document["runcmd"] if "/proc/sys/x" in one[2]]
    script = command[2].replace("> /proc/sys/x", "")
    if "\0" not in value:
        said = subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout
        assert said == value.encode() + b"\n"
    for bundle in found.values():
        for path, content in bundle.files.items():
            if path.endswith((".yaml", ".yml")):
                yaml.safe_load(content)


@pytest.mark.parametrize(("path", "is_carried"), DATA["tuned_takes_whatever_is_one"])
def test_tuned_takes_whatever_is_one_attribute_below_sys(path: str, is_carried: bool) -> None:
    one = msgspec.structs.replace(setting("other:x", "1"), steps=(WriteFile(path, "1"),))
    bundle = bundles((one, setting("sysctl:vm.swappiness", "10")))["tuned"]
    (text,) = bundle.files.values()
    assert (f"{path}=1" in text.decode()) == is_carried
    assert [left.why for left in bundle.left_out] == ([] if is_carried else ["this form has no line for it"])


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_have_the_modes_that_the_caller_wants(tmp_path: Path, mask: int) -> None:
    write_it = (
        "from pathlib import Path; from advisor.exporters.settings import write_bundle; "
        "from advisor.exporters import Bundle; import sys; "
        "write_bundle(Bundle({'a/b': b'1', 'run.sh': b''}, (), (), ('run.sh',)), Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", write_it, str(tmp_path / "out")], umask=mask, check=True)
    modes = {name: (tmp_path / "out" / name).stat().st_mode & 0o777 for name in ("", "a", "a/b", "run.sh")}
    assert modes == {
        name: usual & ~mask for name, usual in (("", 0o777), ("a", 0o777), ("a/b", 0o666), ("run.sh", 0o777))
    }


KINDS = ["link:eth0:mtu", "link:eth0:ring.rx", "link:eth0:xps.tx-0", "llt:highwater", "md:md0:skip_copy", "thp:enabled"]


@pytest.mark.parametrize("identity", KINDS)
def test_each_kind_is_carried_or_left_out_by_every_form(identity: str) -> None:
    for form, bundle in bundles((setting(identity, "64"),)).items():
        reported = {one.tunable for one in bundle.left_out}
        text = b"".join(bundle.files.values())
        assert identity in reported or b"64" in text, form


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    bundle = Bundle({"a/b": b"1", "run.sh": b"#!/bin/sh\n"}, (), (), ("run.sh",))
    write_bundle(bundle, tmp_path / "out")
    assert (tmp_path / "out/a/b").read_bytes() == b"1"
    assert os.access(tmp_path / "out/run.sh", os.X_OK)
    with pytest.raises(RefusedError):
        write_bundle(bundle, tmp_path / "out")
    with pytest.raises(UsageError):
        write_bundle(bundle, tmp_path / "no/such/out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
