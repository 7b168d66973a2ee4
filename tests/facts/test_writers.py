"""The table of writers: who has the last word on a tunable, on hosts of a few files."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.writers import last_word, last_write, next_boot
from advisor.host import Host, MemoryFiles, NoCommands
from tests.cases import cases
from tests.managers import PROFILE, links, managed, profile, running

CASES = cases(__file__)


def host_of(case: dict[str, Any]) -> Host:
    files = {**links(), "/usr/lib/systemd/systemd-sysctl": "", **case["files"]}
    contents = {path: text.encode() for path, text in files.items() if path not in case.get("links", {})}
    return Host(MemoryFiles(contents, case.get("links", {})), NoCommands(), is_root=True)


def words_of(case: dict[str, Any]) -> dict[str, object]:
    facts = scan(host_of(case))
    found = {tunable: last_word(facts, tunable) for tunable in case["words"]}
    assert {one: next_boot(facts, one) for one in found} == {one: word and word.value for one, word in found.items()}
    places = {one: word and (f"{word.file}:{word.line}" if word.line else word.file) for one, word in found.items()}
    return {one: word and [word.writer, places[one] or word.writer, word.value] for one, word in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_who_has_the_last_word(name: str) -> None:
    assert words_of(CASES[name]) == CASES[name]["words"]


def test_a_line_behind_a_link_is_named_by_its_file_and_says_when_it_is_read() -> None:
    files = {"/etc/sysctl.conf": 'vm.swappiness = 30\nnet.ipv4.tcp_rmem = "4096 87380 8388608"\n'}
    case = {"files": files, "links": {"/etc/sysctl.d/99-sysctl.conf": "../sysctl.conf"}}
    facts = scan(host_of(case))
    plain, refused = (last_write(facts, f"sysctl:{key}") for key in ("vm.swappiness", "net.ipv4.tcp_rmem"))
    assert plain is not None
    assert refused is not None
    assert [plain.place, refused.place] == ["/etc/sysctl.conf:1", "/etc/sysctl.conf:2"]
    ends = {one.acts.endswith("after advisor's own file, as /etc/sysctl.d/99-sysctl.conf") for one in (plain, refused)}
    assert ends == {True}
    assert ["refuses" in plain.acts, "refuses" in refused.acts, refused.value] == [False, True, None]
    line = facts.sysctl_origin["vm.swappiness"].winner
    assert line.place == "/etc/sysctl.conf:1 (read as /etc/sysctl.d/99-sysctl.conf)"


@pytest.mark.parametrize(
    ("line", "tunable", "value"),
    [
        ("ring-rx=256", "ring.rx", "256"),
        ("channels-combined=4", "channels.combined", "4"),
        ("coalesce-adaptive-rx=1", "coalesce.adaptive-rx", "on"),
        ("pause-autoneg=false", "pause.autoneg", "off"),
        ("feature-gro=false", "feature.rx-gro", "off"),
        ("feature-tso=true", "feature.tx-tcp6-segmentation", "on"),
        ("feature-tx-tcp-segmentation=false", "feature.tx-tcp-segmentation", "off"),
        ("#ring-rx=256", "ring.rx", None),
    ],
)
@pytest.mark.parametrize("made_by", ["NetworkManager", "netplan"])
def test_a_setting_of_network_manager_s_profile(line: str, tunable: str, value: str | None, made_by: str) -> None:
    made = "/run/NetworkManager/system-connections/netplan-lan0.nmconnection"
    text = f"{profile()}\n[ethtool]\n{line}\n"
    files = {PROFILE: text} if made_by == "NetworkManager" else {made: text.replace("uuid=", "#")}
    files |= {"/etc/netplan/1.yaml": "network: {version: 2, ethernets: {lan0: {}}}"} if made_by == "netplan" else {}
    case = {"files": {**managed(), **files}, "words": {}, "links": running("NetworkManager")}
    word = last_word(scan(host_of(case)), f"link:eth1:{tunable}")
    if value is None:
        assert word is None
    else:
        place = (PROFILE, made)[made_by == "netplan"]
        assert word is not None
        assert (word.writer, word.file, word.value) == (made_by, place, value)
        assert text.split("\n")[(word.line or 0) - 1] == line
