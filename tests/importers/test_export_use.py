"""What an exported form does to a host on its way, and what is said about it: nothing that disturbs, nothing untrue."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from advisor.exporters import FORMATS, Bundle, Exported, export_form
from advisor.exporters.settings import ExportedSetting, SkippedSetting, kept_files
from advisor.host import Missing, RunCommand, SetMtu, WriteFile
from advisor.host.probes import ReadFile
from advisor.planning.records import Plan
from advisor.tunables import FileEdit
from advisor.tunables.kind import Sense
from tests.cases import read_cases
from tests.running import run_text
from tests.trees import make_tree

ROOT = Path(__file__).parents[2]
RELOAD = (RunCommand(("udevadm", "control", "--reload")),)
DISK = 'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ENV{ID_SERIAL}=="S1"'
LINK = 'ACTION=="add", SUBSYSTEM=="net", ATTR{address}=="52:54:00:00:00:01", DRIVERS=="virtio_net"'


def block() -> ExportedSetting:
    name = "nvme0n1"
    path = f"/sys/block/{name}/queue/scheduler"
    edit = FileEdit(
        "/etc/udev/rules.d/90-advisor-block.rules", "udev-rule", DISK, 'ATTR{queue/scheduler}="none"', reload=RELOAD
    )
    step = WriteFile(path, "none")
    return ExportedSetting(f"block:{name}:scheduler", "none", "W.", "", (), ReadFile(path), (step,), edit)


def mtu() -> ExportedSetting:
    path, step = "/etc/systemd/network/10-advisor-eth1.link", SetMtu("eth1", 9000)
    fresh = b"[Match]\nMACAddress=52:54:00:00:00:01\n\n[Link]\n"
    edit = FileEdit(path, "section", "Link/", "MTUBytes=9000", fresh, reload=RELOAD)
    return ExportedSetting("link:eth1:mtu", "9000", "W.", "", (), ReadFile("/sys/class/net/eth1/mtu"), (step,), edit)


def link_rule() -> ExportedSetting:
    edit = FileEdit(
        "/etc/udev/rules.d/91-advisor-link.rules", "udev-rule", LINK, 'ATTR{tx_queue_len}="5000"', reload=RELOAD
    )
    path = "/sys/class/net/eth1/tx_queue_len"
    step = WriteFile(path, "5000")
    return ExportedSetting("link:eth1:txqueuelen", "5000", "W.", "", (), ReadFile(path), (step,), edit)


def sysctl(sense: Sense = "exactly") -> ExportedSetting:
    path = "/proc/sys/net/core/rmem_max"
    edit = FileEdit("/etc/sysctl.d/90-advisor-p.conf", "sysctl", "net.core.rmem_max", "8388608")
    step = WriteFile(path, "8388608")
    return ExportedSetting("sysctl:net.core.rmem_max", "8388608", "W.", "", (), ReadFile(path), (step,), edit, sense)


def live_alone() -> ExportedSetting:
    edit = Missing("absent", "udev does not run here")
    step = WriteFile("/proc/x", "1")
    return ExportedSetting("sysfs:/proc/x", "1", "W.", "", (), ReadFile("/proc/x"), (step,), edit)


def bundle(form: str, *settings: ExportedSetting, hostname: str | None = "node1") -> Bundle:
    left = (SkippedSetting("sysctl:a.b", "1", "not of this kernel"),)
    plan = Plan(("p",), None, (), (), (), (), ())
    return export_form(Exported("p", plan, settings, left, kept_files(settings), hostname), form)


def said(found: Bundle) -> str:
    return b"".join(found.files.values()).decode() + "\n".join(found.use)


def unfolded(text: str) -> str:
    return re.sub(r"\n#\s+", " ", text)


LINKS_ALONE = frozenset({"networkmanager", "nmstate"})
THIS_HOST = frozenset({"shell"})
"""A script for the host of the plan alone, which reads each value before it writes."""
OF_ANY_HOST = sorted(FORMATS.keys() - LINKS_ALONE - THIS_HOST)


@pytest.mark.parametrize("form", sorted(FORMATS.keys() - LINKS_ALONE - THIS_HOST - {"tuned"}))
def test_no_device_is_made_to_appear_or_change_anew(form: str) -> None:
    """A synthetic event would activate volume groups and assemble arrays, on disks that are another host's, too."""
    assert "trigger" not in said(bundle(form, block(), mtu(), link_rule()))


def test_files_of_sysctls_are_taken_up_as_they_are() -> None:
    use = bundle("files", block(), sysctl()).use
    assert use[:3] == ("cp -a DIRECTORY/. /", "udevadm control --reload", "sysctl -p /etc/sysctl.d/90-advisor-p.conf")
    assert not any("rmem_max" in line for line in use)


DATA = read_cases(__file__, block, link_rule, mtu)


@pytest.mark.parametrize(("one", "command"), DATA["what_waits_for_its_device_is_said"])
def test_what_waits_for_its_device_is_said_with_what_sets_it_now(one: ExportedSetting, command: str) -> None:
    (line,) = [line for line in bundle("files", one).use if line.startswith(command)]
    assert "restart" in line.removeprefix(command)
    assert line.removeprefix(command).lstrip().startswith("#")
    assert command in said(bundle("cloud-init", one))


def test_what_is_set_and_not_kept_is_not_called_left_out() -> None:
    for form in ("ansible", "cloud-init"):
        found = bundle(form, live_alone(), sysctl())
        assert [one.tunable for one in found.left_out] == ["sysctl:a.b"], form
        (one,) = found.not_kept
        assert one.tunable == "sysfs:/proc/x"
        assert "udev does not run here" in one.why
        name = "site.yml" if form == "ansible" else "user-data.yaml"
        head = found.files[name].decode()
        missing = head.partition("Not in here:")[2].partition("Set, but not kept")[0]
        kept = head.partition("Set, but not kept over a restart:")[2]
        assert ("sysfs:/proc/x" in missing, "sysfs:/proc/x" in kept) == (False, True)
    # Files alone: what none of them keeps is not in there.
    assert "sysfs:/proc/x" in {one.tunable for one in bundle("files", live_alone(), sysctl()).left_out}


def test_user_data_says_whose_disks_and_links_it_knows() -> None:
    for one in (block(), mtu(), link_rule()):
        head = said(bundle("cloud-init", one)).partition("write_files")[0]
        assert "serial numbers and addresses" in head
        assert "node1" in head
    assert "serial numbers" not in said(bundle("cloud-init", sysctl()))


@pytest.mark.parametrize("form", OF_ANY_HOST)
def test_at_least_that_became_exact_is_reported(form: str) -> None:
    # TuneD has an operator for it.
    words = "net.core.rmem_max=>8388608" if form == "tuned" else "would lower what is larger there"
    assert words in unfolded(said(bundle(form, sysctl("at-least")))), (
        f"{form}: elsewhere_words of exporters/settings.py"
    )
    assert words not in unfolded(said(bundle(form, sysctl())))


@pytest.mark.parametrize("form", OF_ANY_HOST)
def test_what_a_form_leaves_out_is_in_its_bundle(form: str) -> None:
    found = bundle(form, sysctl())
    assert [one.tunable for one in found.left_out] == ["sysctl:a.b"]
    # Files that a program reads as they are have no head for it.
    if form != "files":
        assert "not of this kernel" in unfolded(said(found)), f"{form}: left_out_words of exporters/settings.py"


@pytest.mark.parametrize("form", sorted(LINKS_ALONE))
def test_at_least_of_a_link_is_reported_too(form: str) -> None:
    raised = msgspec.structs.replace(mtu(), sense="at-least")
    assert "- link:eth1:mtu = 9000" in said(bundle(form, raised))
    assert "- link:eth1:mtu = 9000" not in said(bundle(form, mtu()))


def test_a_playbook_is_for_the_host_that_it_was_made_for() -> None:
    plays = yaml.safe_load(bundle("ansible", block()).files["site.yml"])
    assert plays[0]["hosts"] == "{{ target | default('node1') }}"
    for hostname in (None, "x'}}{{ 1 }}"):
        found = bundle("ansible", block(), hostname=hostname)
        plays = yaml.safe_load(found.files["site.yml"])
        assert plays[0]["hosts"] == "{{ target | default('host-unknown') }}"
        assert all("-e target=HOST" in line for line in found.use)


# ---- what is said about the files

HOST = DATA["HOST"]


def exported(place: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    make_tree(place / "host", HOST)
    command = [sys.executable, "-m", "advisor", "profiles", "export", "socket-buffers-8m", *map(str, words)]
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(place / "state"), "PYTHONPATH": str(ROOT)}
    done = run_text([*command, "--root", str(place / "host")], env=environment)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(("form", "command"), DATA["commands_name_the_directory_and_the_files_are_told"])
def test_commands_name_the_directory_and_the_files_are_told(form: str, command: str, tmp_path: Path) -> None:
    out = tmp_path / "made here"
    reported = exported(tmp_path, "--format", form, "-o", out).stderr
    lines = [shlex.split(line) for line in reported.splitlines() if line.startswith("use it with: ")]
    assert ["use", "it", "with:", *(word.format(out) for word in command.split())] in lines
    assert "DIRECTORY" not in reported
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert [line for line in reported.splitlines() if line.startswith("written: ")] == [
        f"written: {out}/{one}" for one in files
    ]


@pytest.mark.parametrize("form", ["ansible", "tuned"])
def test_without_a_directory_no_command_is_said_that_could_not_work(form: str, tmp_path: Path) -> None:
    reported = exported(tmp_path, "--format", form).stderr
    assert "-o DIR writes the files" in reported
    assert "use it with" not in reported


def test_the_sense_of_a_profile_s_line_comes_over(tmp_path: Path) -> None:
    text = exported(tmp_path, "--format", "tuned").stdout
    assert "\nnet.core.rmem_max=>8388608\n" in text
    found: dict[str, Any] = json.loads(exported(tmp_path / "b", "--format", "ansible", "--json").stdout)
    assert found["not_kept"] == []


def test_each_form_says_what_puts_it_to_use_from_its_directory() -> None:
    settings = (sysctl(), mtu(), block())
    for form in FORMATS.keys() - {"shell"}:
        assert "DIRECTORY" in " ".join(bundle(form, *settings).use), form


@pytest.mark.parametrize("form", sorted(FORMATS.keys() - {"shell"}))
@pytest.mark.parametrize("one", [sysctl(), mtu(), block(), link_rule(), live_alone()], ids=lambda one: one.tunable)
def test_each_form_carries_a_value_or_lists_it_as_left_out(form: str, one: ExportedSetting) -> None:
    wanted = (one, *(other for other in (sysctl(), mtu()) if other.tunable != one.tunable))
    found = bundle(form, *wanted)
    text = "\n".join(line for line in said(found).splitlines() if not line.startswith("#"))
    words = {"block": "none", "sysfs": "/proc/x"}.get(one.kind, one.value)
    assert words in text or one.tunable in {left.tunable for left in found.left_out}, f"{form} loses {one.tunable}"


@pytest.mark.parametrize(("key", "live", "is_set"), DATA["a_limit_that_is_0_where_there"])
def test_a_limit_that_is_0_where_there_is_none_is_set(tmp_path: Path, key: str, live: str, *, is_set: bool) -> None:
    place = tmp_path / "value"
    place.write_text(f"{live}\n")
    edit = FileEdit("/etc/sysctl.d/90-advisor-p.conf", "sysctl", key, "1073741824")
    step = WriteFile(str(place), "1073741824")
    one = ExportedSetting(f"sysctl:{key}", "1073741824", "W.", "", (), ReadFile(str(place)), (step,), edit, "at-most")
    files = bundle("ansible", one).files
    (script,) = [content for path, content in files.items() if path.endswith("settings.sh")]
    done = subprocess.run(["sh", "-s", "set"], input=script, capture_output=True, check=True)
    assert place.read_text().strip() == ("1073741824" if is_set else live), done.stderr
    (text,) = bundle("tuned", one).files.values()
    # TuneD leaves alone what is below the value, and 0 is.
    assert (f"{key}=<" in text.decode()) is (key == "vm.swappiness")
    assert (f"{key} = 1073741824" in text.decode()) is (key != "vm.swappiness")
