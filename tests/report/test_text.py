"""The scan page: every fact is there, at every width, and nothing on it can move the cursor."""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from advisor.facts.host_facts import Facts
from advisor.facts.unknown import Unknown
from advisor.report.findings import value_text
from advisor.report.format import clean
from advisor.report.scan_page import LINKS_SHOWN, scan_text
from advisor.rules.judged import count_judged, judge
from advisor.rules.rule import Finding
from tests.golden import assert_golden
from tests.report.pasted import lines_too_wide, lines_without_commands
from tests.rules.build import (
    SYSCTL,
    array,
    bond,
    disk,
    disks,
    facts,
    filesystem,
    identity,
    link,
    llt,
    llt_link,
    nothing_known,
    numa,
    on_cloud,
    replaced,
    virtual,
)

WIDTHS = (60, 80, 120, 160, 240)


def two_nodes() -> Facts:
    """The articles' storage server: two nodes, twelve drives on each, a bond across them, VLANs, LLT."""
    ports = bond("bond0", "eth1@0", "eth2@1", mtu=1500, upper=("bond0.100",))
    return facts(
        host=identity(hostname="stor1.example.org"),
        numa=numa(2, cpus_each=24),
        links=(
            link("eth0", mtu=1500, default_route=True, addresses=("192.0.2.10/24", "2001:db8::10/64")),
            *ports,
            virtual("bond0.100", "vlan", mtu=1500, lower=("bond0",), detail={"id": "100"}),
            virtual("lo", "loopback", mtu=65536, addresses=("127.0.0.1/8",)),
        ),
        disks=(*disks(12), *(disk(f"nvme{n}n1", numa_node=1) for n in range(12, 24)), disk("sda", mountpoints=("/",))),
        arrays=tuple(
            array(f"md{n}", *(f"nvme{4 * n + m}n1" for m in range(4)), numa_nodes=(n // 3,)) for n in range(6)
        ),
        filesystems=(filesystem("md0"),),
        sysctl=SYSCTL,
        llt=llt(llt_link("link1", "eth1"), llt_link("link2", "eth2", port="50001")),
        unknown=tuple(Unknown(f"disks.nvme{n}n1.serial", "Permission denied") for n in range(24)),
    )


def page(host: Facts, *, width: int = 80, color: bool = False, findings: tuple[Finding, ...] | None = None) -> str:
    return scan_text(host, judge(host) if findings is None else findings, width=width, color=color)


def flat(text: str) -> str:
    return " ".join(text.split())


HOSTS: dict[str, Any] = {
    "two nodes": two_nodes,
    "calm": facts,
    "nothing known": nothing_known,
    "eight nodes": lambda: facts(numa=numa(8), links=tuple(link(f"eth{n}", numa_node=n % 8) for n in range(16))),
    "cloud": lambda: facts(host=on_cloud("aws", "r5b.24xlarge"), sysctl=SYSCTL),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", HOSTS)
def test_no_line_is_too_long_and_none_ends_in_blanks(name: str, width: int) -> None:
    host = HOSTS[name]()
    for line in lines_without_commands(page(host, width=width), judge(host)):
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_command_is_one_line_however_narrow_the_page(width: int) -> None:
    host = two_nodes()
    lines = [line.strip().removeprefix("commands").strip() for line in page(host, width=width).split("\n")]
    commands = [command for one in judge(host) for command in one.commands]
    assert max(map(len, commands)) > 40
    assert [command for command in commands if command not in lines] == []


def test_colour_only_colours() -> None:
    host = two_nodes()
    coloured = page(host, color=True)
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.split("\n")] == page(host).split("\n")


def with_memory(*on_nodes: float | None) -> Facts:
    """Return a host of 64 GiB whose nodes have this much."""
    node = numa(2).nodes[0]
    nodes = tuple(
        replaced(node, {"id": at, "memory_bytes": gib and int(gib * 2**30)}) for at, gib in enumerate(on_nodes)
    )
    host = facts(numa=replaced(numa(2), {"nodes": nodes}))
    return replaced(host, {"memory": replaced(host.memory, {"total_bytes": 64 << 30})})


def rotating(count: int) -> Facts:
    parts = {"kind": "scsi", "rotational": True, "scheduler": "none", "mountpoints": ("/data",)}
    return facts(disks=tuple(disk(f"sd{letter}", **parts) for letter in ascii_lowercase[:count]))


def test_the_pages_of_hosts() -> None:
    """Print a whole host, and of each later page the lines that the page of a calm host does not have."""
    letters = "abcdef"
    unread = [Unknown(f"disks.sd{letter}.serial", f"reason {letter}") for letter in "abcdefghijklmn"]
    unread += [Unknown(f"links.eth{number}.driver", "Permission denied") for number in range(12)]
    hosts = {
        **{name: make() for name, make in HOSTS.items()},
        "stacked links": facts(links=(*bond("bond0", "eth1", "eth2"), virtual("bond0.7", "vlan", lower=("bond0",)))),
        "unlike drives": facts(
            disks=(*disks(4), disk("nvme4n1", model="Other"), disk("nvme5n1", mountpoints=("/srv",)))
        ),
        "every other drive": facts(
            numa=numa(2), disks=tuple(disk(f"nvme{number}n1", numa_node=number % 2) for number in range(24))
        ),
        "arrays": facts(
            disks=tuple(disk(f"sd{letter}") for letter in letters),
            arrays=(
                array("md0", *(f"sd{letter}1" for letter in letters)),
                array("md1", *(f"sd{letter}2" for letter in "abdef")),
                array("md2", *(f"nvme{at}n1p1" for at in range(4)), *(f"nvme{at}n1p3" for at in range(4))),
                array("md3", "nvme0n1p2", "nvme1n1p2", "nvme2n1p2", "nvme4n1p2"),
                array("md4", "sda5", "sda6", "sda7"),
                array("md42", "sda3", "sdd3", "sde3"),
            ),
        ),
        "two rotating drives": rotating(2),
        "26 rotating drives": rotating(26),
        "unknown facts": facts(unknown=unread),
        **{f"{size} GiB on each node": with_memory(size, size) for size in (32, 31.95, 20, 40)},
        "unknown memory of a node": with_memory(None),
    }
    calm = set(page(hosts["calm"]).splitlines())
    parts = []
    for name, host in hosts.items():
        lines = page(host).splitlines()
        assert "None" not in "".join(lines)
        parts += [f"== {name}", *(line for line in lines if name == "calm" or line not in calm)]
    parts += [
        "== calm, without findings",
        *(line for line in page(facts(), findings=()).splitlines() if line not in calm),
    ]
    assert_golden("scan-page", "\n".join(parts))


def test_findings_come_last_and_say_everything() -> None:
    host = two_nodes()
    text, found = flat(page(host)), judge(host)
    assert {finding.severity for finding in found} == {"info", "advice", "warning"} or len(found) > 3
    places = [text.index(flat(finding.title)) for finding in found]
    assert places == sorted(places)
    assert places[0] > text.index("net.core.rmem_max")
    for finding in found:
        for words in (
            finding.id,
            finding.why,
            str(finding.fix),
            *finding.commands,
            finding.hurts_when,
            *finding.sources,
        ):
            assert flat(words) in text


def test_a_thousand_links_are_folded() -> None:
    text = page(facts(links=tuple(virtual(f"veth{n}", "veth") for n in range(1000))))
    assert len(text.split("\n")) < LINKS_SHOWN + 60
    assert f"{1000 - LINKS_SHOWN} more" in text
    assert "--json" in text


def test_a_link_with_a_finding_is_never_folded() -> None:
    many = tuple(virtual(f"veth{n:03}", "veth") for n in range(500))
    bad = (link("zeth0", mtu=1500), virtual("zvx", "vxlan", mtu=8950, lower=("zeth0",)))
    text = page(facts(links=(*many, *bad)))
    assert re.search(r"^\W*zvx ", text, re.MULTILINE)
    assert re.search(r"^\W*zeth0 ", text, re.MULTILINE)


HOSTILE = "\x1b]0;pwned\x07[red]x[/red]\n\u202e:smile:"


def test_hostile_names_do_nothing() -> None:
    host = facts(
        host=identity(hostname=HOSTILE, os=HOSTILE, kernel=HOSTILE, vendor=HOSTILE),
        links=(link(HOSTILE, mtu=1500, driver=HOSTILE, addresses=(HOSTILE,)),),
        disks=(disk("nvme0n1", model=HOSTILE, mountpoints=(HOSTILE,)),),
        arrays=(array(HOSTILE, HOSTILE, state="degraded", level=HOSTILE),),
        sysctl={"net.core.rmem_max": HOSTILE, "vm.swappiness": HOSTILE},
        llt=llt(llt_link(HOSTILE, HOSTILE), flow_control={HOSTILE: 1}),
        unknown=(Unknown(HOSTILE, HOSTILE),),
    )
    for color in (False, True):
        text = page(host, color=color)
        assert "\x1b]" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
    assert r"\x1b]0;pwned\x07[red]x[/red]\n\u202e:smile:" in flat(page(host, width=240))


@settings(max_examples=25, deadline=None)
@given(name=st.text(max_size=30), model=st.text(max_size=60), width=st.integers(40, 200))
@example("a\U0001d300 b", "\u2630\u4dc0 c", 40)
@example("00 \x1f\x1f\x1f\x1f\U00018cd6\U00018d09", "", 40)
@example("0000 \x1f\x1f\x1f\x1f\U00018cd6\U00018d09", "", 40)
@example("0\x1f\x1f\u2e80\U0001019d\U00012544\U00018cd6", "", 40)
def test_any_name_fits_any_width(name: str, model: str, width: int) -> None:
    host = facts(links=(link(name, mtu=1500),), disks=(disk("sda", model=model),), arrays=(array(name),))
    text = page(host, width=width)
    assert all(map(str.isprintable, text.split("\n")))
    wide = lines_too_wide("\n".join(lines_without_commands(text, judge(host))), width)
    # The name of a link is whole, so that it can be copied.
    assert [line for line in wide if line.strip() != clean(name)] == []


def test_the_same_page_every_time() -> None:
    assert page(two_nodes()) == page(replaced(two_nodes(), {"sysctl": dict(sorted(SYSCTL.items(), reverse=True))}))


def test_a_value_that_is_empty_says_so() -> None:
    assert value_text("") == value_text(" ") == "(empty)"
    assert value_text(("", "sda")) == "(empty), sda"
    assert value_text(0) == "0"


def test_the_whole_page_says_how_many_rules_could_be_judged() -> None:
    host = nothing_known()
    judged = count_judged(host, judge(host))
    assert f"{judged.rules} of {judged.of} rules could be judged" in flat(page(host))
