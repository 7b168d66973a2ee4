"""The commands of findings: each can be pasted as it stands, and what it sets can be set."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.facts.settings.site_settings import SiteSetting, parse_fstab, read_site_settings
from advisor.facts.system.services import Systemd, read_systemd
from advisor.facts.unknown import Unknowns
from advisor.host import DirectoryFiles, Host, LiveCommands
from advisor.profiles.profile import load
from advisor.rules.judged import RULES
from advisor.rules.rule import Finding, PlanProfile, Rule, RunShell, SetTunable, comment_out, list_commands, set_sysctl
from advisor.tunables import parse_tunable
from tests.cases import read_cases
from tests.cli.inside import parse_words
from tests.each import for_each
from tests.rules.build import filesystem, link, llt, llt_link
from tests.rules.cases_storage import sysctl
from tests.rules.table import Row, table
from tests.rules.test_edges import only
from tests.trees import host_of, make_command, make_tree

every_rule = for_each("rule", RULES, lambda rule: rule.id)


@cache
def rows() -> Mapping[str, Row]:
    return {row.rule.id: row for row in table()}


@cache
def findings(rule_id: str) -> tuple[Finding, ...]:
    """A rule's findings on all hosts of the table that need it."""
    row = rows()[rule_id]
    return tuple(one for seen in row.fires for one in seen.findings(row.rule))


@every_rule
def test_a_finding_has_a_remedy_in_words_and_as_data(rule: Rule) -> None:
    for one in findings(rule.id):
        assert one.remedy
        assert one.fix is not None
        assert re.fullmatch(r"[^a-z ].*\.", one.fix, re.DOTALL), one.fix
        assert not re.search(r"  |\bNone\b|\.\.", one.fix + "".join(one.commands)), one


@every_rule
def test_commands_of_advisor_are_calls_that_it_takes_and_others_are_shell(rule: Rule) -> None:
    for command in dict.fromkeys(command for one in findings(rule.id) for command in one.commands):
        assert "\n" not in command
        words = shlex.split(command)
        if words[0] == "advisor":
            parse_words(words[1:])
        checked = subprocess.run(["sh", "-n"], input=command, text=True, capture_output=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), command


@every_rule
def test_commands_leave_no_place_to_fill_in(rule: Rule) -> None:
    for command in (command for one in findings(rule.id) for command in one.commands):
        words = shlex.split(command)
        assert not [word for word in words if re.fullmatch(r"[A-Z][A-Z_-]+|<.*>|.*…", word)], command
        assert not re.search(r", |\b(then|and|or|where|if)\b", command), command


@every_rule
def test_tunables_exist_and_take_the_value(rule: Rule) -> None:
    for part in (part for one in findings(rule.id) for part in one.remedy if isinstance(part, SetTunable)):
        try:
            assert parse_tunable(part.tunable).check_value(part.value) is None, part
        except UsageError as error:
            raise AssertionError(f"{part}: {error.message}") from error


@every_rule
def test_advisor_s_own_command_is_the_first_but_for_prerequisites(rule: Rule) -> None:
    for one in findings(rule.id):
        before = [part.command for part in one.remedy if isinstance(part, RunShell) and part.is_prerequisite]
        has_own = any(isinstance(part, SetTunable | PlanProfile) for part in one.remedy)
        assert not has_own or one.commands[len(before)].startswith("advisor "), one.commands
        assert one.commands[: len(before)] == tuple(before)


@pytest.mark.parametrize(("path", "is_first"), [("10-site", False), ("90-advisor-x", True), ("99-site", True)])
def test_a_line_that_is_read_after_advisor_s_file_goes_first(path: str, is_first: bool) -> None:
    line = comment_out(f"/etc/sysctl.d/{path}.conf", 3)
    commands = list_commands((set_sysctl("vm.swappiness", 10), line))
    assert commands.index(line.command) == (0 if is_first else 1)


@every_rule
def test_profiles_that_are_planned_exist_and_have_these_parameters(rule: Rule) -> None:
    for one in findings(rule.id):
        for part in (part for part in one.remedy if isinstance(part, PlanProfile)):
            assert one.profile == part.profile
            assert {name for name, _ in part.settings} <= load(part.profile).parameters.keys()


@every_rule
def test_the_text_says_what_commands_are_for(rule: Rule) -> None:
    for one in findings(rule.id):
        for part in one.remedy:
            assert not isinstance(part, RunShell) or part.purpose, part


@pytest.mark.parametrize(("reserved", "value"), [("", "50000"), ("8080,50001-50009", "8080,50000-50009")])
def test_ports_that_are_reserved_already_are_part_of_the_value(reserved: str, value: str) -> None:
    keys = sysctl(net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports=reserved)
    found = only("llt.port-not-reserved", **keys, llt=llt(llt_link("a", None, port="50000")))
    assert found.remedy == (set_sysctl("net.ipv4.ip_local_reserved_ports", value),)


def test_a_list_of_ports_that_is_none_is_not_pasted() -> None:
    keys = sysctl(net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports="1;reboot")
    found = only("llt.port-not-reserved", **keys, llt=llt(llt_link("a", None, port="50000")))
    assert "reboot" not in found.advice
    assert "already" in str(found.fix)
    assert found.commands == ()


@pytest.mark.parametrize("is_running", [True, False])
def test_discards_are_stopped_before_a_timer_takes_their_place(is_running: bool) -> None:
    mounted = (filesystem(options="rw,discard"),)
    lines = tuple(
        SiteSetting("/etc/fstab", *each) for each in ((3, "discard", "", "/data (xfs)"), (4, "discard", "", "/"))
    )
    systemd = Systemd(252, "252", is_running)
    found = only("filesystems.online-discard", filesystems=mounted, systemd=systemd, site_settings=lines)
    timer = ("systemctl enable --now fstrim.timer",) if is_running else ()
    assert found.commands == ("mount -o remount,nodiscard /data", *timer)
    assert "line 3 of /etc/fstab" in found.advice
    assert "line 4" not in found.advice
    bare = only("filesystems.online-discard", filesystems=mounted)
    assert "fstab" not in bare.advice
    assert bare.commands == ("mount -o remount,nodiscard /data",)
    assert "fstrim --all" in bare.advice


def test_who_would_discard_is_read_from_the_host(tmp_path: Path) -> None:
    fstab = "# data\n/dev/sdb1 /data xfs noatime,discard 0 0\n/dev/sdc1 /a ext4 nodiscard 0 0\n"
    assert list(parse_fstab(fstab)) == [(2, ("discard", "", "/data (xfs)"))]
    kept = read_site_settings(host_of(make_tree(tmp_path / "fstab", {"/etc/fstab": fstab})), Unknowns())
    assert [(one.key, one.line) for one in kept] == [("discard", 2)]
    make_command(tmp_path / "bin", "systemctl", "echo 'systemd 252 (252.1)'")
    for files, is_running in (({"/etc/fstab": fstab}, False), ({"/run/systemd/system/x": ""}, True)):
        root = make_tree(tmp_path / str(is_running), files)
        host = Host(DirectoryFiles(str(root)), LiveCommands(path=str(tmp_path / "bin")))
        assert read_systemd(host) == Systemd(252, "252 (252.1)", is_running, trims=False if is_running else None)
        assert read_systemd(host, with_version=False) == (
            Systemd(0, "", is_running=True, trims=False) if is_running else None
        )


DATA = read_cases(__file__)


def test_bbr_names_what_paces_the_links_that_are_up() -> None:
    keys = sysctl(net__ipv4__tcp_congestion_control="bbr", net__core__default_qdisc="fq_codel")
    links = (link("eth0"), link("eth1", state="down", carrier=False), link("e;id"))
    found = only("network.bbr-unpaced", **keys, links=links)
    assert found.commands == DATA["bbr_names_what_paces_the_links"]
    assert len(found.interrupts) == 2
    said = " ".join(next(one.sources for one in RULES if one.id == "network.bbr-unpaced"))
    assert "TCP_CONG_BBR" in said
    assert "no document" not in said
