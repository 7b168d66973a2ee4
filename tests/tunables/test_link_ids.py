"""Ids of links' values: what each names, what it takes, and what this driver or this host would not take."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import CommandError, UsageError
from advisor.host import (
    DirectoryFiles,
    Host,
    MemoryFiles,
    Missing,
    NoCommands,
    ReadEthtool,
    ReadFile,
    SetQdisc,
    observe,
)
from advisor.host.commands import Completed, RecordedCommands
from advisor.host.ethtool import Answer
from advisor.shell.rollback_script import hand_command
from advisor.tunables import Tunable, parse_tunable
from advisor.tunables.preflight import HasPreflight, Preflight
from tests.trees import make_tree

# id → command that a person would type for a value, value
SET = {
    "link:eth1:ring.rx": ("ethtool -G eth1 rx 4096", "4096"),
    "link:eth1:ring.rx-jumbo": ("ethtool -G eth1 rx-jumbo 512", "512"),
    "link:eth1:ring.rx-mini": ("ethtool -G eth1 rx-mini 0", "0"),
    "link:bond0.100:ring.tx": ("ethtool -G bond0.100 tx 1", "1"),
    "link:eth1:channels.combined": ("ethtool -L eth1 combined 8", "8"),
    "link:eth1:channels.other": ("ethtool -L eth1 other 1", "1"),
    "link:eth1:coalesce.rx-usecs": ("ethtool -C eth1 rx-usecs 50", "50"),
    "link:eth1:coalesce.adaptive-tx": ("ethtool -C eth1 adaptive-tx on", "on"),
    "link:eth1:feature.tx-udp_tnl-csum-segmentation": ("ethtool -K eth1 tx-udp_tnl-csum-segmentation off", "off"),
    "link:eth1:pause.autoneg": ("ethtool -A eth1 autoneg off", "off"),
    "link:eth1:txqueuelen": ("ip link set dev eth1 txqueuelen 5000", "5000"),
    "link:eth1:qdisc": ("tc qdisc replace dev eth1 root handle ad4: fq", "fq"),
    "link:eth1:rps.rx-0": ("printf '%s\\n' 1,0000000f > /sys/class/net/eth1/queues/rx-0/rps_cpus", "0-3,32"),
    "link:eth1:rps-flow-cnt.rx-12": ("printf '%s\\n' 4096 > /sys/class/net/eth1/queues/rx-12/rps_flow_cnt", "4096"),
    "link:eth1:xps.tx-3": ("printf '%s\\n' 0 > /sys/class/net/eth1/queues/tx-3/xps_cpus", "none"),
    "link:-a:txqueuelen": ("ip link set dev -a txqueuelen 1", "1"),
    "link:a'b:ring.rx": ('ethtool -G "a\'b" rx 1', "1"),
}


@pytest.mark.parametrize("identity", SET)
def test_an_id_and_the_command_that_does_the_same(identity: str) -> None:
    one, (command, value) = parse_tunable(identity), SET[identity]
    assert one.id == identity
    assert one.check_value(value) is None
    assert [hand_command(step) for step in one.make_steps(value)] == [command]


@pytest.mark.parametrize(
    "attribute",
    [
        *("ring", "ring.", "ring.RX", "ring.rx_jumbo", "ring.rx-max", "ring.combined", "rings.rx", "ring.rx.tx"),
        *(
            "channels.rx-0",
            "coalesce.rx",
            "coalesce.rx-usecs-irq",
            "pause.on",
            "txqueuelen.",
            "txqueuelen.1",
            "qdisc.root",
        ),
        *("feature.", "feature.-x", "feature.TSO", "feature.a b", "feature.a;b", "feature.$x", "feature.a\n"),
        *(
            "rps.0",
            "rps.tx-0",
            "rps.rx-",
            "rps.rx-01",
            "rps.rx--1",
            "rps.rx-0/..",
            "rps.rx-٣",
            "xps.rx-0",
            "xps.tx-99999",
        ),
        *("rps-flow-cnt.tx-0", "mtu.rx", "", "."),
        "feature." + "a" * 40,
    ],
)
def test_what_names_nothing(attribute: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable") as caught:
        parse_tunable(f"link:eth1:{attribute}")
    assert "link:eth1:" in (caught.value.hint or "")


@given(st.text(max_size=20), st.sampled_from([identity.rpartition(":")[2] for identity in SET]))
def test_any_name_of_a_link(name: str, attribute: str) -> None:
    try:
        one = parse_tunable(f"link:{name}:{attribute}")
    except UsageError:
        return
    assert one.id == f"link:{name}:{attribute}"
    assert not set(name) & set("/:\0 \n\t")
    assert name not in ("", ".", "..")


VALUES = {
    "ring.rx": (["0", "4096"], ["", "-1", "4k", "01", "٩", "1\n", "1" * 10, "n/a"]),
    "coalesce.adaptive-rx": (["on", "off"], ["", "1", "On", "on\n"]),
    "feature.rx-gro": (["on", "off"], ["", "1", "off [fixed]"]),
    "pause.rx": (["on", "off"], ["yes"]),
    "txqueuelen": (["1", "10000"], ["0", "-5", "", "99999999"]),
    "qdisc": (["fq", "fq_codel", "pfifo"], ["", "htb", "mq", "noqueue", "fq limit 5", "default fq", "fq;x", "clsact"]),
    "rps.rx-0": (["none", "0", "0-3,8"], ["", "0,1", "3-0", "f", "0-1,1", "all", "none,1", "0-99999999"]),
    "rps-flow-cnt.rx-0": (["0", "1", "4096", "536870912"], ["3", "1000", "-2", "", "1073741824"]),
}


@pytest.mark.parametrize("attribute", VALUES)
def test_values_that_can_be(attribute: str) -> None:
    one, (good, bad) = parse_tunable(f"link:eth1:{attribute}"), VALUES[attribute]
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert all(one.check_value(value) for value in bad)
    # A plan asks for the edit before it judges the value.
    assert all(one.make_edit(a_host(), value, profile="p") for value in bad)


RINGS: Answer = {
    **{"rx": 1024, "rx_max": 4096, "rx_mini": 0, "rx_mini_max": 0},
    **{"rx_jumbo": 512, "rx_jumbo_max": 2048, "tx": 512, "tx_max": 4096},
}
CHANNELS: Answer = {
    "combined": 2,
    "combined_max": 4,
    "rx": 0,
    "rx_max": 0,
    "tx": 0,
    "tx_max": 0,
    "other": 1,
    "other_max": 1,
}
FEATURES: Answer = {"highdma": True, "rx-all": False, "rx-gro": True, "rx-lro": True, "tx-tso": False, "tx-csum": True}
CHANGEABLE: Answer = {**dict.fromkeys(FEATURES, True), "highdma": False, "rx-all": False}
REQUESTED: Answer = {**FEATURES, "highdma": False, "tx-tso": True}
FILES = {
    "/sys/devices/system/cpu/online": "0-3",
    "/proc/sys/net/core/default_qdisc": "fq_codel",
    "/sys/class/net/eth1/mtu": "1500",
    "/sys/class/net/eth1/queues/rx-0/rps_cpus": "3",
    "/sys/class/net/eth1/queues/rx-0/rps_flow_cnt": "0",
    "/sys/class/net/eth1/queues/tx-0/xps_cpus": "0",
    "/sys/class/net/bond0/lower_eth1/ifindex": "2",
}


def a_host(files: dict[str, str] | None = None) -> Host:
    links = ("eth1", "bond0")
    groups = {
        "rings": RINGS,
        "channels": CHANNELS,
        "features": FEATURES,
        "changeable": CHANGEABLE,
        "requested": REQUESTED,
    }
    answers: dict[tuple[str, str], Answer | Missing] = {(link, what): groups[what] for link in links for what in groups}
    source = MemoryFiles({path: text.encode() for path, text in {**FILES, **(files or {})}.items()})
    return Host(source, NoCommands(), ethtool_answers=answers)


def around(identity: str, before: str, after: str, files: dict[str, str] | None = None) -> Preflight:
    one: Tunable = parse_tunable(identity)
    assert isinstance(one, HasPreflight)
    return one.run_preflight(a_host(files), before, after, profile="p")


QDISC_OF = "default mq {} limit 10240p quantum {} target 5ms"
REFUSED = [
    ("link:eth1:ring.rx", "1024", "4096", None),
    ("link:eth1:ring.rx", "1024", "8192", "its driver allows at most 4096"),
    ("link:eth1:ring.rx-jumbo", "512", "4096", "its driver allows at most 2048"),
    ("link:eth1:channels.combined", "2", "8", "its driver allows at most 4"),
    ("link:eth1:coalesce.rx-usecs", "3", "500", None),
    ("link:eth1:feature.rx-gro", "on", "off", None),
    ("link:eth1:feature.highdma", "on", "off", "it is [fixed]: the driver does not let it be changed"),
    ("link:eth1:feature.tx-tso", "off", "on", "on is requested already"),
    ("link:eth1:rps.rx-0", "none", "0-3", None),
    ("link:eth1:rps.rx-0", "none", "2-9", "CPU 4 is not online; 0-3 are"),
    ("link:eth1:qdisc", QDISC_OF.format("fq_codel", 1514), "fq", None),
    ("link:eth1:qdisc", "default noqueue", "fq", None),
    ("link:eth1:qdisc", "fq", "fq_codel", None),
    ("link:eth1:qdisc", QDISC_OF.format("pfifo_fast", 1), "fq", "the kernel would attach fq_codel now"),
    ("link:eth1:qdisc", QDISC_OF.format("fq_codel", 9014), "fq", "would not choose at an MTU of 1500"),
]


@pytest.mark.parametrize(("identity", "before", "after", "why"), REFUSED)
def test_what_this_host_would_not_take(identity: str, before: str, after: str, why: str | None) -> None:
    found = around(identity, before, after).refusal
    assert found is None if why is None else why in str(found)


def test_a_qdisc_of_which_it_cannot_be_told_whether_it_comes_back() -> None:
    found = around(
        "link:eth1:qdisc", QDISC_OF.format("fq_codel", 1514), "fq", {"/proc/sys/net/core/default_qdisc": "fq"}
    )
    assert "could not be restored" in str(found.refusal)


def test_what_moves_along_is_recorded() -> None:
    def named(identity: str, before: str, after: str) -> dict[str, str]:
        return {one.tunable.removeprefix("link:"): one.before for one in around(identity, before, after).side_effects}

    assert named("link:eth1:ring.rx", "1024", "512") == {"eth1:ring.rx-jumbo": "512", "eth1:ring.tx": "512"}
    # Those that are on and can be changed.
    assert named("link:eth1:feature.rx-gro", "on", "off") == {"eth1:feature.rx-lro": "on", "eth1:feature.tx-csum": "on"}
    below = named("link:bond0:feature.rx-lro", "on", "off")
    assert below.keys() == {"bond0:feature.rx-gro", "bond0:feature.tx-csum", "eth1:feature.rx-lro"}
    assert named("link:eth1:channels.combined", "2", "1") == {
        **{"eth1:channels.other": "1", "eth1:rps.rx-0": "0-1"},
        **{"eth1:rps-flow-cnt.rx-0": "0", "eth1:xps.tx-0": "none"},
    }
    assert named("link:eth1:ring.rx", "1024", "1024") == {}


def test_probes() -> None:
    machine = a_host()
    cases = {
        "ring.rx": "1024",
        "ring.rx-mini": Missing("absent", "its driver has no rx-mini among its rings"),
        "channels.rx": Missing("absent", "its driver has no rx among its channels"),
        "feature.rx-gro": "on",
        "feature.nonsense": Missing("absent", "its driver has no nonsense among its features"),
        # A capture that was not asked: unknown, which is not the same as absent.
        "pause.rx": Missing("unreadable", "no recorded ethtool answer"),
        "rps.rx-0": "0-1",
        "xps.tx-1": Missing("absent", "does not exist"),
    }
    assert {key: observe(machine, parse_tunable(f"link:eth1:{key}").probe) for key in cases} == cases
    assert ReadEthtool("eth1", "rings", "rx") == parse_tunable("link:eth1:ring.rx").probe
    assert ReadFile("/sys/class/net/eth1/tx_queue_len") == parse_tunable("link:eth1:txqueuelen").probe


def test_a_qdisc_is_read_where_tc_is_recorded() -> None:
    shown = Completed(0, "qdisc fq_codel 0: root refcnt 2 limit 1p\n", "")
    machine = Host(MemoryFiles({}), RecordedCommands({("tc", "qdisc", "show", "dev", "eth1"): shown}))
    assert observe(machine, parse_tunable("link:eth1:qdisc").probe) == "default fq_codel limit 1p"


def test_a_captured_tree_has_no_drivers_to_set(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"/sys/class/net/eth1/tx_queue_len": "1000"})
    machine = Host(DirectoryFiles(str(root)), NoCommands())
    for step in (*parse_tunable("link:eth1:ring.rx").make_steps("1"), SetQdisc("eth1", "fq")):
        with pytest.raises(CommandError, match="only the running kernel"):
            machine.do(step)
    for step in parse_tunable("link:eth1:txqueuelen").make_steps("5000"):
        machine.do(step)
    assert (root / "sys/class/net/eth1/tx_queue_len").read_text() == "5000\n"
