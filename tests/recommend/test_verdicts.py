"""Settings of texts, judged on hosts: `advisor judge`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.host_facts import scan
from advisor.facts.writers import Write
from advisor.host import Host, PutFile
from advisor.host.would_be import after_steps
from advisor.importers.pasted.forms import read_pasted
from advisor.operations import open_host
from advisor.operations.judge import judge_lines, read_given
from advisor.planner import plan_profiles
from advisor.recommend import outlooks
from advisor.recommend.verdicts import JudgedText, judge_texts
from advisor.report.recommend import judge_text
from advisor.rules.judged import judge
from advisor.rules.rule import Finding, PlanProfile
from tests.cases import cases
from tests.cli.inside import call_inside
from tests.golden import assert_golden
from tests.schemas import judge as by_schema
from tests.serving_hosts import serving_host

LAB = Path(__file__).parents[2] / "docs/examples/lab.tar.gz"
CASES = cases(__file__)


def judged(text: str, host: Host) -> JudgedText:
    facts = scan(host)
    return judge_texts(
        [read_pasted(text, "text.txt", host, facts)], host, facts, judge(facts), outlooks(host, facts), None
    )


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    host = serving_host(["kafka.service"], sysctl=case.get("sysctl", {}))
    found = judged(case["text"], host)
    assert [[one.line, one.verdict, *([one.apply] if one.apply else [])] for one in found.lines] == case["lines"]
    assert all(one.why for one in found.lines if one.verdict != "set")
    assert found.apply == tuple(line[2] for line in case["lines"] if len(line) > 2)
    assert not found.apply or plan_profiles(host, found.apply, {}).changes


def test_more_than_a_finding_asks_for_is_applied_as_far_as_it_asks() -> None:
    found = judged("net.core.rmem_max = 134217728\n", open_host(snapshot=LAB))
    assert [one.verdict for one in found.lines] == ["helps"]
    assert found.apply == ("sysctl:net.core.rmem_max>=851968",)
    assert found.prove == "advisor prove 'sysctl:net.core.rmem_max>=851968' --target DIR --keep-if-gain"


def test_a_later_file_overrides_it() -> None:
    found = judged("vm.swappiness = 1\n", open_host(snapshot=LAB)).lines[0]
    assert (found.verdict, "/etc/sysctl.d/99-zz-local.conf" in found.why) == ("overridden", True)


def test_a_value_that_a_program_sets_again_belongs_to_it() -> None:
    host = serving_host(["kubelet.service"], sysctl={"vm.panic_on_oom": "0"})
    found = judged("vm.panic_on_oom = 1\n", host).lines[0]
    assert (found.verdict, found.live, found.next_boot) == ("owned", "0", "0")
    assert "kubelet" in found.why


def test_a_dotted_key_of_a_vlan_names_no_file() -> None:
    host = serving_host(["kafka.service"])
    facts = scan(host)
    facts = msgspec.structs.replace(
        facts, links=tuple(msgspec.structs.replace(link, name="eno1.10") for link in facts.links[:1])
    )
    pasted = read_pasted("net.ipv4.conf.eno1.10.rp_filter = 1\n", "text.txt", host, facts)
    found = judge_texts([pasted], host, facts, (), ()).lines[0]
    assert (found.verdict, "eno1/10" in found.why) == ("no-effect", True)


@pytest.mark.parametrize(("is_program", "verdict"), [(True, "owned"), (False, "overridden")])
def test_another_writer_has_the_last_word(is_program: bool, verdict: str) -> None:
    host = serving_host(["kafka.service"])
    write = Write("sysctl:vm.swappiness", "10", "TuneD", 99, "/etc/tuned/x/tuned.conf", 4, "late", "there", is_program)
    facts = msgspec.structs.replace(scan(host), writes=(write,))
    pasted = read_pasted("vm.swappiness = 30\nvm.max_map_count = 262144\n", "text.txt", host, facts)
    found = judge_texts([pasted], host, facts, (), ()).lines
    harmful = judge_texts([read_pasted("vm.swappiness = 0\n", "text.txt", host, facts)], host, facts, (), ()).lines[0]
    assert (harmful.verdict, "tuned.conf:4" in harmful.why) == ("harmful", is_program)
    assert [(one.verdict, one.next_boot) for one in found] == [(verdict, "10"), ("no-evidence", None)]
    assert "/etc/tuned/x/tuned.conf:4" in found[0].why


def test_a_later_text_overrides_an_earlier_one() -> None:
    found = judge_lines({"a": b"vm.swappiness = 1\n", "b": b"vm.swappiness = 60\n"}, serving_host(["kafka.service"]))
    assert [(one.file, one.verdict) for one in found.judged.lines] == [("a", "overridden"), ("b", "set")]


def test_a_whole_profile_that_a_finding_names_in_part() -> None:
    """Of a profile that is the remedy, a finding asks for what it names."""
    host = open_host(snapshot=LAB)
    facts = scan(host)
    asked = PlanProfile("socket-buffers-8m")
    finding = Finding("x.y", "advice", "Too small", "It wants 8388608.", {}, "", None, "", (), remedy=(asked,))
    pasted = read_pasted("net.core.wmem_max = 8388608\nvm.max_map_count = 262144\n", "text.txt", host, facts)
    found = judge_texts([pasted], host, facts, [finding], outlooks(host, facts)).lines
    assert [one.verdict for one in found] == ["helps", "no-evidence"]


ARTICLE = """\
Tune your server! Put this into /etc/sysctl.conf:
net.core.rmem_max = 16777216
net.ipv4.tcp_rmem = "4096 87380 16777216"
net.ipv4.tcp_sack = 0
net.ipv4.tcp_tw_recycle = 1
net.core.somaxconn = 1024
vm.swappiness = 1
vm.max_map_count = 262144
kernel.sysrq = 0
and run: ethtool -G eth0 rx 4096
"""


def test_page() -> None:
    found = judge_lines({"article.txt": ARTICLE.encode()}, open_host(snapshot=LAB))
    assert found.is_harmful
    assert found.has_settings
    assert_golden("judge", judge_text(found.judged, "lab", width=80, color=False, is_live=False))


@pytest.mark.parametrize(
    ("text", "code"), [("vm.swappiness = 10\n", 0), ("net.ipv4.tcp_sack = 0\n", 1), ("nothing here\n", 3), ("", 3)]
)
def test_exit_codes(text: str, code: int, tmp_path: Path) -> None:
    article = tmp_path / "article.txt"
    article.write_text(text)
    done = call_inside("judge", str(article), "--snapshot", str(LAB), "--json")
    assert done.returncode == code
    document = by_schema(done.stdout, code)
    assert document["schema"] == "advisor.judge/1"
    assert len(document["lines"]) + document["passed_over"] == len(text.splitlines())


@pytest.mark.parametrize("name", ["no-such-file", "directory", "binary", "pipe"])
def test_what_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    done = call_inside("judge", str(tmp_path / name), "--snapshot", str(LAB))
    assert done.returncode == 2
    assert name in done.stderr


def test_the_name_of_another_device_is_said_beside_every_verdict() -> None:
    found = judged(
        "ip link set wlan7 txqueuelen 20000\nip link set wlan7 mtu 1500\n", serving_host(["kafka.service"])
    ).lines
    assert [one.verdict for one in found] == ["harmful", "set"]
    assert all("wlan7" in one.why for one in found)


def test_a_pipe_of_the_shell_is_read() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb"), os.fdopen(write, "wb") as end:
        end.write(b"vm.swappiness = 1\n")
        end.close()
        assert read_given(f"/dev/fd/{read}") == b"vm.swappiness = 1\n"
    with pytest.raises(InvalidInputError):
        read_given("/dev/fd/987654")


def test_a_kernel_parameter_acts_after_a_step_by_hand() -> None:
    """It is no setting without effect: the next boot has it."""
    host = after_steps(serving_host(["kafka.service"]), [PutFile("/proc/cmdline", b"root=/dev/sda1 ro\n")])
    found = judged('GRUB_CMDLINE_LINUX="intel_idle.max_cstate=0"\n', host).lines[0]
    assert (found.verdict, found.live, found.apply) == ("no-evidence", "(unset)", None)


def test_a_line_that_another_file_overrides_hides_no_order_of_the_others() -> None:
    text = "vm.swappiness = 1\nvm.dirty_background_ratio = 30\nvm.dirty_ratio = 10\n"
    found = judged(text, open_host(snapshot=LAB)).lines
    assert [one.verdict for one in found] == ["overridden", "harmful", "harmful"]
    assert "vm.dirty_ratio" in found[1].why


def test_what_a_plan_notes_of_a_value_is_said() -> None:
    (line,) = judged("net.ipv4.tcp_congestion_control = bbr2\n", serving_host([])).lines
    assert line.verdict == "no-evidence"
    assert "modules.dep" in line.why


def test_two_hosts_at_once_are_refused_with_a_hint() -> None:
    with pytest.raises(UsageError) as raised:
        open_host(root="/", snapshot=LAB)
    assert raised.value.hint
