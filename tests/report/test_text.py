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
from advisor.report.finding_blocks import value_text
from advisor.report.format import clean
from advisor.report.scan_page import LINKS_SHOWN, scan_text
from advisor.rules.finding import Finding
from advisor.rules.registry import judge
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


@pytest.mark.parametrize("name", HOSTS)
def test_plain_text_has_no_escape_codes(name: str) -> None:
    assert page(HOSTS[name]()).replace("\n", "").isprintable()


def test_colour_only_colours() -> None:
    host = two_nodes()
    coloured = page(host, color=True)
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.split("\n")] == page(host).split("\n")


@pytest.mark.parametrize("width", [80, 160])
def test_every_fact_that_matters_is_on_the_page(width: int) -> None:
    text = flat(page(two_nodes(), width=width))
    for wanted in (
        *("stor1.example.org", "6.1.0-25-amd64", "Debian GNU/Linux 12 (bookworm)", "PowerEdge R740xd", "64 GiB"),
        *("Node 0", "Node 1", "0-23", "24-47", "16 GiB"),
        *("eth0", "eth1", "eth2", "bond0", "bond0.100", "lo", "25 Gbit/s", "192.0.2.10/24", "default route"),
        *("nvme0n1 … nvme11n1", "12 × 1.6 TB", "nvme12n1 … nvme23n1", "INTEL SSDPE2KE016T7", "sda", "md0", "md5"),
        *("net.core.rmem_max", "208 KiB", "212992", "4096 131072 6291456", "/data"),
        *("highwater", "1000", "link1", "link2", "Permission denied", "root"),
    ):
        assert wanted in text, wanted


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


def test_a_stacked_link_stands_below_what_carries_it() -> None:
    stack = (*bond("bond0", "eth1", "eth2"), virtual("bond0.7", "vlan", lower=("bond0",)))
    rows = [line for line in page(facts(links=stack)).split("\n") if re.match(r"\W*(eth|bond)", line)]
    assert [row.split()[0] for row in rows] == ["eth1", "eth2", "bond0", "bond0.7"]
    indents = [len(row) - len(row.lstrip()) for row in rows]
    assert indents[0] == indents[1] < indents[2] < indents[3]


def test_a_link_across_nodes_is_under_neither() -> None:
    text = page(two_nodes())
    row = re.search(r"^ +bond0 ", text, re.MULTILINE)
    assert row
    assert text.index("Across nodes") < row.start() < text.index("net.core.rmem_max")


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


def test_unlike_drives_are_not_grouped() -> None:
    text = flat(page(facts(disks=(*disks(4), disk("nvme4n1", model="Other"), disk("nvme5n1", mountpoints=("/srv",))))))
    assert "nvme0n1 … nvme3n1" in text
    assert "4 × 1.6 TB" in text
    assert "nvme4n1 1.6 TB Other" in text
    assert "nvme5n1" in text
    assert "/srv" in text


def test_many_names_in_one_cell_wrap_inside_it() -> None:
    every_other = tuple(disk(f"nvme{n}n1", numa_node=n % 2) for n in range(24))
    text = page(facts(numa=numa(2), disks=every_other))
    assert all(drive.name in text for drive in every_other)
    assert re.search(r"12 × 1.6 TB  INTEL SSDPE2KE016T7  none", text)


def test_a_command_for_many_devices_is_the_one_that_means_them_all() -> None:
    def commands(count: int) -> list[str]:
        parts = {"kind": "scsi", "rotational": True, "scheduler": "none", "mountpoints": ("/data",)}
        host = facts(disks=tuple(disk(f"sd{letter}", **parts) for letter in ascii_lowercase[:count]))
        (found,) = (one for one in judge(host) if one.id == "disks.rotating-unscheduled")
        text = scan_text(host, (found,), width=80, color=False)
        return re.findall(r"advisor (?:apply|fix) .*", text)

    assert commands(2) == ["advisor apply block:sda:scheduler=mq-deadline block:sdb:scheduler=mq-deadline"]
    assert commands(26) == ["advisor fix 1"]


def test_every_unknown_fact_is_on_the_page() -> None:
    reasons = [Unknown(f"disks.sd{letter}.serial", f"reason {letter}") for letter in "abcdefghijklmn"]
    alike = [Unknown(f"links.eth{number}.driver", "Permission denied") for number in range(12)]
    text = page(facts(unknown=(*reasons, *alike)))
    unknown = text[text.index("\nUnknown") :]
    assert "more" not in unknown.replace("root would see more", "")
    assert all(one.fact in unknown and one.why in unknown for one in (*reasons, *alike))


def test_where_nothing_is_known_the_page_says_so() -> None:
    text = page(nothing_known())
    assert "unknown" in text
    assert "None" not in text


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


def test_a_host_without_findings_says_so() -> None:
    assert "nothing" in flat(page(facts(), findings=())).lower()


def test_the_same_page_every_time() -> None:
    assert page(two_nodes()) == page(replaced(two_nodes(), {"sysctl": dict(sorted(SYSCTL.items(), reverse=True))}))


@pytest.mark.parametrize(
    ("on_nodes", "said"), [(64, ""), (63.9, ""), (40, "64 GiB · 40 GiB on nodes"), (80, "80 GiB on")]
)
def test_memory_that_is_on_no_node_is_said(on_nodes: float, said: str) -> None:
    node = numa(2).nodes[0]
    nodes = tuple(replaced(node, {"id": at, "memory_bytes": int(on_nodes * 2**29)}) for at in range(2))
    host = facts(numa=replaced(numa(2), {"nodes": nodes}))
    host = replaced(host, {"memory": replaced(host.memory, {"total_bytes": 64 << 30})})
    text = page(host, width=160)
    assert (said in text) if said else ("on nodes" not in text)
    unknown = replaced(host, {"numa": replaced(host.numa, {"nodes": (replaced(node, {"memory_bytes": None}),)})})
    assert "on nodes" not in page(unknown)


def test_members_of_an_array_are_folded_by_true_ranges() -> None:
    letters = "abcdef"
    host = facts(
        disks=tuple(disk(f"sd{one}") for one in letters),
        arrays=(
            array("md0", *(f"sd{one}1" for one in letters)),
            array("md1", *(f"sd{one}2" for one in "abdef")),
            array("md2", *(f"nvme{at}n1p1" for at in range(4)), *(f"nvme{at}n1p3" for at in range(4))),
            array("md3", "nvme0n1p2", "nvme1n1p2", "nvme2n1p2", "nvme4n1p2"),
            array("md4", "sda5", "sda6", "sda7"),
            array("md42", "sda3", "sdd3", "sde3"),
        ),
    )
    text = page(host, width=160)
    assert "6 members: sda1 … sdf1" in text
    assert "5 members: sda2, sdb2, sdd2 … sdf2" in text
    assert "8 members: nvme0n1p1 … nvme3n1p1, nvme0n1p3 … nvme3n1p3" in text
    assert "4 members: nvme0n1p2 … nvme2n1p2, nvme4n1p2" in text
    assert "3 members: sda5 … sda7" in text
    assert "3 members: sda3, sdd3, sde3" in text


def test_a_value_that_is_empty_says_so() -> None:
    assert value_text("") == value_text(" ") == "(empty)"
    assert value_text(("", "sda")) == "(empty), sda"
    assert value_text(0) == "0"
