"""LLT: what lltconfig, lltstat and /etc/llttab say, in every spelling that was seen, and which link carries it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.clusters.llt import (
    LltLink,
    LltNode,
    LltNodeLink,
    Llttab,
    find_carrier,
    parse_lltstat_nodes,
    parse_llttab,
    read_llt,
)
from advisor.facts.network.links import Link
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from tests.cases import read_cases

DATA = read_cases(__file__)

FLOW_7_4_2 = DATA["FLOW_7_4_2"]
VALUES_7_4_2 = DATA["VALUES_7_4_2"]
ETHER = DATA["ETHER"]
ROUTED = DATA["ROUTED"]


def link(name: str, *addresses: str, mac: str | None = None, permanent_mac: str | None = None, lower: str = "") -> Link:
    return Link(
        **dict.fromkeys(Link.__struct_fields__)  # type: ignore[arg-type]
        | {"name": name, "kind": "ethernet", "addresses": addresses, "mac": mac, "permanent_mac": permanent_mac}
        | {"lower": tuple(lower.split()), "upper": (), "irqs": (), "detail": {}}
    )


def tabbed(line: str) -> LltLink:
    (found,) = parse_llttab(line).links
    return found


# --- /etc/llttab ----------------------------------------------------------------------------------------------------


def test_ether_links() -> None:
    tab = parse_llttab(ETHER)
    assert (tab.node, tab.cluster) == ("b0d06u02", "91")
    assert [(one.tag, one.device, one.type, one.low_priority) for one in tab.links] == [
        ("eth1", "eth-00:04:23:AC:12:C4", "ether", False),
        ("eth2", "eth2", "ether", False),
        ("eth0", "/dev/eth0", "ether", True),
    ]
    assert [(one.port, one.mtu) for one in tab.links] == [(None, None), ("0xCAFE", 1500), (None, None)]
    assert (tab.timers, tab.other) == ({"peertrouble": 350}, ("exclude 2-31",))


def test_flow_of_the_file_has_the_one_spelling() -> None:
    assert parse_llttab(ETHER).flow == {"highwater": 2000, "rporthighwater": 2000, "lowwater": 900}


def test_udp_links_keep_their_fields_and_doubled_tags() -> None:
    tab = parse_llttab(ROUTED)
    assert [(one.tag, one.type, one.port, one.mtu, one.address) for one in tab.links] == DATA[
        "udp_links_keep_their_fields"
    ]
    assert tab.links[2].low_priority
    assert tab.peers == ("10.12.251.126", "10.12.251.84")
    assert tab.other == ("set-bcasthb 0", "include 0-3")
    assert tab.node == "n1"


@pytest.mark.parametrize("line", DATA["lines_that_are_not_understood_are"])
def test_lines_that_are_not_understood_are_kept(line: str) -> None:
    assert parse_llttab(f"{line}\n") == Llttab(None, None, (), (), {}, {}, (line,))


def test_a_type_that_is_unknown_to_us_is_kept_as_written() -> None:
    one = tabbed("link eth1 eth1 - tcp 50000 - 10.0.0.1 -")
    assert (one.type, one.address) == ("tcp", "10.0.0.1")


def test_an_mtu_that_is_no_number_is_kept_beside_the_link() -> None:
    tab = parse_llttab("link l1 udp - udp 50000 big 10.0.0.1 -")
    assert (tab.links[0].mtu, tab.links[0].address) == (None, "10.0.0.1")
    assert tab.other == ("link l1 udp - udp 50000 big 10.0.0.1 -",)


def test_comments() -> None:
    assert parse_llttab("#link a b - ether - -\n  # x\nset-node n1 #x\n") == Llttab("n1", None, (), (), {}, {}, ())


# --- who carries it -------------------------------------------------------------------------------------------------

LINKS = (
    link("eth0", "10.12.242.127/20", mac="00:04:23:ac:12:c0"),
    link("eth1", "fe80::21a:64ff:fe92:1b46/64", mac="00:04:23:ac:12:c4", permanent_mac="00:04:23:ac:12:c4"),
    link("eth2", mac="00:04:23:ac:12:c4", permanent_mac="00:04:23:ac:12:c5"),
    link("bond0", "10.12.240.204/24", mac="00:04:23:ac:12:c4", lower="eth1 eth2"),
)


@pytest.mark.parametrize(("line", "carrier"), DATA["the_link_that_carries"])
def test_the_link_that_carries(line: str, carrier: str | None) -> None:
    assert find_carrier(tabbed(line), LINKS) == carrier


def test_a_vlan_has_the_hardware_address_of_the_card_below() -> None:
    both = (link("eth0", mac="00:04:23:ac:12:c0"), link("eth0.5", mac="00:04:23:ac:12:c0", lower="eth0"))
    assert find_carrier(tabbed("link a eth-00:04:23:ac:12:c0 - ether - -"), both) == "eth0"


def test_an_address_on_two_links_tells_neither() -> None:
    twice = (link("a", "10.0.0.1/24"), link("b", "10.0.0.1/24"))
    assert find_carrier(tabbed("link l1 udp - udp 50000 - 10.0.0.1 -"), twice) is None


# --- lltstat --------------------------------------------------------------------------------------------------------


def test_lltstat_of_linux() -> None:
    text = DATA["lltstat_of_linux"]
    first, second = parse_lltstat_nodes(text)
    assert (first.id, first.name, first.state, first.is_self, first.links_up) == (0, "cloud-svc-1", "OPEN", True, 2)
    assert second.links[0] == LltNodeLink("eth6", "DOWN", "00:50:56:00:00:EA")
    assert (second.is_self, second.links_up) == (False, 1)


def test_lltstat_of_vcs_5() -> None:
    text = DATA["lltstat_of_vcs_5"]
    nodes = parse_lltstat_nodes(text)
    assert [(node.id, node.name, node.state, node.links_up) for node in nodes] == [
        (0, "north", "OPEN", 1),
        (1, "south", "OPEN", 1),
        (2, None, "CONNWAIT", 0),
    ]
    assert nodes[1].links[1] == LltNodeLink("lan2", "DOWN", None)


def test_numbers_and_states_may_be_names() -> None:
    (first, second) = parse_lltstat_nodes("0 UP OPEN\n  0 UP 08:00:20:93:0E:34\n1 UP OPEN\n")
    assert (first.name, first.links) == ("UP", (LltNodeLink("0", "UP", "08:00:20:93:0E:34"),))
    assert (second.id, second.name, second.state) == (1, "UP", "OPEN")


def test_lltstat_n_counts_only() -> None:
    text = "    Node   State  Links\n   *0 north  OPEN  2\n    1 south  OPEN  2\n    2  CONNWAIT 0\n"
    assert parse_lltstat_nodes(text) == (
        LltNode(0, "north", "OPEN", True, 2, ()),
        LltNode(1, "south", "OPEN", False, 2, ()),
        LltNode(2, None, "CONNWAIT", False, 0, ()),
    )


# --- a host ---------------------------------------------------------------------------------------------------------

RUNNING: dict[tuple[str, ...], Completed | Missing] = {
    ("lltconfig",): Completed(0, "LLT is running\n", ""),
    ("lltconfig", "-F", "query"): Completed(0, FLOW_7_4_2, ""),
    ("lltconfig", "-T", "query"): Completed(
        0, f"Current LLT timer values (.01 sec units):\n  peertrouble = 200\n  peerinact   = 1600\n{FLOW_7_4_2}", ""
    ),
    ("lltstat", "-nvv"): Completed(0, "  * 0 n1 OPEN\n      eth1 UP 00:50:56:00:00:E1\n", ""),
}


def host(
    commands: Mapping[tuple[str, ...], Completed | Missing], files: dict[str, str] | None = None, *directories: str
) -> Host:
    contents = {path: text.encode() for path, text in (files or {}).items()}
    return Host(MemoryFiles(contents, {}, frozenset(directories)), RecordedCommands(commands), is_root=True)


def noted(machine: Host, links: tuple[Link, ...] = ()) -> dict[str, str]:
    unknown = Unknowns()
    read_llt(machine, links, unknown)
    return {one.fact: one.why for one in unknown.listed()}


def test_a_running_cluster_node() -> None:
    machine = host(RUNNING, {"/etc/llttab": ETHER})
    llt = read_llt(machine, LINKS, Unknowns())
    assert llt is not None
    assert (llt.running, llt.flow_control) == (True, VALUES_7_4_2)
    assert llt.timers == {"peertrouble": 200, "peerinact": 1600}
    assert [one.link for one in llt.links] == ["eth1", "eth2", "eth0"]
    assert (llt.nodes[0].name, llt.nodes[0].is_self) == ("n1", True)
    assert noted(machine, LINKS) == {}


def test_a_link_that_nothing_carries_is_noted() -> None:
    machine = host(RUNNING, {"/etc/llttab": "link l1 udp - udp 50000 - 10.9.9.9 -\nlink l2 eth9 - ether - -\n"})
    assert noted(machine, LINKS) == {
        "llt.links.l1.link": "no link of this host is at 10.9.9.9",
        "llt.links.l2.link": "no link of this host is eth9",
    }


@pytest.mark.parametrize("text", DATA["every_spelling_of_the_flow_values"])
def test_every_spelling_of_the_flow_values(text: str) -> None:
    llt = read_llt(host({**RUNNING, ("lltconfig", "-F", "query"): Completed(0, text, "")}), (), Unknowns())
    assert llt is not None
    assert llt.flow_control["highwater"] == 2000


def test_names_that_are_new_to_us_are_kept() -> None:
    llt = read_llt(host({**RUNNING, ("lltconfig", "-F", "query"): Completed(0, " brandnew = 3\n", "")}), (), Unknowns())
    assert llt is not None
    assert llt.flow_control == {"brandnew": 3}


@pytest.mark.parametrize(
    "words", ["LLT is not running\n", "LLT is not configured\n", "lltconfig: LLT module not loaded\n"]
)
def test_llt_that_is_installed_and_does_not_run(words: str) -> None:
    refused = Completed(1, "", "LLT lltconfig ERROR V-14-2-15121 LLT unconfigured\n")
    machine = host({("lltconfig",): Completed(1, words, ""), ("lltconfig", "-F", "query"): refused})
    llt = read_llt(machine, (), Unknowns())
    assert llt is not None
    assert (llt.running, llt.flow_control, llt.nodes, llt.timers) == (False, {}, (), {})
    assert noted(machine) == {}


def test_values_say_that_it_runs_where_the_status_says_nothing() -> None:
    llt = read_llt(host({**RUNNING, ("lltconfig",): Completed(0, "", "")}), (), Unknowns())
    assert llt is not None
    assert llt.running is True


def test_a_query_that_fails_is_noted() -> None:
    machine = host({**RUNNING, ("lltconfig", "-F", "query"): Completed(1, "", "permission denied")})
    assert noted(machine)["llt.flow_control"] == "lltconfig -F query returned 1 and no values: permission denied"


def test_a_status_that_nobody_understands_is_unknown() -> None:
    commands = {("lltconfig",): Completed(3, "?", ""), ("lltconfig", "-F", "query"): Completed(3, "", "")}
    machine = host(commands)
    llt = read_llt(machine, (), Unknowns())
    assert llt is not None
    assert llt.running is None
    assert set(noted(machine)) == {"llt.running", "llt.flow_control"}


def test_a_host_without_llt() -> None:
    assert read_llt(host({}), LINKS, Unknowns()) is None
    assert noted(host({}), LINKS) == {}


def test_a_file_without_lltconfig() -> None:
    llt = read_llt(host({}, {"/etc/llttab": ETHER}), LINKS, Unknowns())
    assert llt is not None
    assert (llt.running, llt.flow_control, llt.links[0].link) == (None, {}, "eth1")
    assert set(noted(host({}, {"/etc/llttab": ETHER}))) == {"llt.running", "llt.flow_control"}


def test_without_its_module_llt_does_not_run() -> None:
    machine = host({}, {"/etc/llttab": ETHER, "/sys/module/ext4/refcnt": "1"})
    llt = read_llt(machine, (), Unknowns())
    assert llt is not None
    assert llt.running is False
    assert noted(machine) == {}


def test_a_file_that_cannot_be_read_is_noted() -> None:
    files = MemoryFiles({}, {}, frozenset(), {"/etc/llttab": "Permission denied"})
    assert noted(Host(files, RecordedCommands(RUNNING)))["llt.llttab"] == "Permission denied"


def test_lltconfig_that_hangs_is_asked_once() -> None:
    asked = []

    class Hanging(RecordedCommands):
        def run(self, argv: object, **_: object) -> Missing:
            asked.append(argv)
            return Missing("unreadable", "lltconfig did not answer within 10 s")

    machine = Host(MemoryFiles({"/etc/llttab": ETHER.encode()}), Hanging({}))
    llt = read_llt(machine, (), Unknowns())
    assert llt is not None
    assert (llt.running, len(asked)) == (None, 1)


# --- the samples that lie next to the project ------------------------------------------------------------------------

SAMPLES = Path(__file__).parents[3] / "shared" / "evidence" / "llt_samples"


def sample(name: str) -> str:
    if not (SAMPLES / name).is_file():
        pytest.skip(f"the samples are not here: {SAMPLES}")
    return (SAMPLES / name).read_text()


@pytest.mark.captured
def test_captured_flow_query() -> None:
    machine = host({**RUNNING, ("lltconfig", "-F", "query"): Completed(0, sample("flow_query_seed_7.4.2.txt"), "")})
    llt = read_llt(machine, (), Unknowns())
    assert llt is not None
    assert llt.flow_control == VALUES_7_4_2


@pytest.mark.captured
@pytest.mark.parametrize(("name", "links", "peers", "other"), DATA["captured_llttab"])
def test_captured_llttab(
    name: str, links: list[tuple[str, str, str, str | None]], peers: tuple[str, ...], other: tuple[str, ...]
) -> None:
    tab = parse_llttab(sample(name))
    assert [(one.tag, one.device, one.type, one.address) for one in tab.links] == links
    assert (tab.peers, tab.other) == (peers, other)
    assert [one.low_priority for one in tab.links] == [
        "lowpri" in line for line in sample(name).splitlines() if line.startswith("link")
    ]


@pytest.mark.captured
@pytest.mark.parametrize(("name", "expected"), DATA["captured_lltstat"])
def test_captured_lltstat(name: str, expected: list[tuple[str | None, str, int]]) -> None:
    assert [(node.name, node.state, node.links_up) for node in parse_lltstat_nodes(sample(name))] == expected
