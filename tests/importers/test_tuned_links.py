"""What TuneD makes of one line on links whose drivers take different things, and what our import of it does there."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.facts.host_facts import scan
from advisor.host import Host, Missing, NoCommands
from advisor.host.ethtool import Answer
from advisor.importers.records import Imported, Mode
from advisor.importers.tuned.convert import import_tuned
from tests.importers.hosts import machine, tuned, values
from tests.importers.plans import plan_imported

COMBINED: Answer = {**dict.fromkeys(("rx", "rx_max", "tx", "tx_max", "other", "other_max"), 0), "combined": 1}
SPLIT: Answer = {**COMBINED, "combined": 0, "combined_max": 0, "rx": 1, "rx_max": 4, "tx": 1, "tx_max": 4}


def combined(most: int) -> Answer:
    return {**COMBINED, "combined_max": most}


def rings(rx: int, tx: int) -> Answer:
    none = dict.fromkeys(("rx_mini", "rx_mini_max", "rx_jumbo", "rx_jumbo_max"), 0)
    return {**none, "rx": 256, "rx_max": rx, "tx": 256, "tx_max": tx}


def host(body: str, group: str, **links: Answer) -> Host:
    """The small machine, whose drivers answer so."""
    answers: dict[tuple[str, str], Answer | Missing] = {(link, group): answer for link, answer in links.items()}
    return Host(machine(tuned(mine=body)).files, NoCommands(), is_root=True, ethtool_answers=answers)


def imported(one: Host, mode: Mode = "faithful") -> Imported:
    return import_tuned("mine", one, mode)


def planned(one: Host, mode: Mode = "faithful") -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Tunable → value that it gets, and tunable → why it gets none."""
    plan = plan_imported(imported(one, mode), one, scan(one))
    assert plan.blocking == ()
    return (
        {change.tunable: change.after for change in plan.changes},
        {skipped.tunable: f"{skipped.state}: {skipped.reason}" for skipped in plan.skipped},
    )


def reported(found: Imported) -> list[str]:
    return [one.why for one in found.settings if one.outcome != "tunable" and not one.sets_nothing]


def test_a_link_with_fewer_channels_does_not_stop_the_rest() -> None:
    one = host("[net]\nchannels=combined 4\n", "channels", eth0=combined(8), eth1=combined(1))
    for mode in ("faithful", "intent"):
        assert planned(one, mode) == (
            {"link:eth0:channels.combined": "4"},
            {"link:eth1:channels.combined": "not-applicable: its driver allows at most 1"},
        )


def test_a_link_without_combined_channels_gets_the_other_kind() -> None:
    one = host("[net]\nchannels=combined 2\n", "channels", eth0=combined(8), eth1=SPLIT)
    assert values(imported(one)) == {
        "link:{link}:channels.combined eth0": "2",
        "link:{link}:channels.rx eth1": "2",
        "link:{link}:channels.tx eth1": "2",
    }
    assert planned(one)[0] == {
        **{"link:eth0:channels.combined": "2"},
        **{"link:eth1:channels.rx": "2", "link:eth1:channels.tx": "2"},
    }
    alone = host("[net]\nchannels=rx 3 tx 2\n", "channels", eth0=combined(8), eth1=SPLIT)
    assert planned(alone)[0] == {
        **{"link:eth0:channels.combined": "3"},
        **{"link:eth1:channels.rx": "3", "link:eth1:channels.tx": "2"},
    }
    broken = imported(host("[net]\nchannels=rx 3\n", "channels", eth0=combined(8), eth1=SPLIT))
    assert values(broken) == {"link:{link}:channels.rx eth1": "3"}
    assert reported(broken) == ["eth0: it has no such channels, and TuneD breaks off there"]


def test_one_size_that_is_too_large_takes_the_others_of_its_line_with_it() -> None:
    """TuneD gives a link all of a line in one command; its author meant each."""
    one = host("[net]\nring=rx 4096, tx 512\n", "rings", eth0=rings(8192, 8192), eth1=rings(1024, 1024))
    assert planned(one)[0] == {"link:eth0:ring.rx": "4096", "link:eth0:ring.tx": "512"}
    (why,) = reported(imported(one))
    assert why == "eth1: its driver takes rx at most 1024, and refuses the line as a whole"
    (differs,) = [each for each in imported(one).differences if each.kind == "refused"]
    assert differs.why == why
    done, left_out = planned(one, "intent")
    assert done == {"link:eth0:ring.rx": "4096", "link:eth0:ring.tx": "512", "link:eth1:ring.tx": "512"}
    assert left_out == {"link:eth1:ring.rx": "not-applicable: its driver allows at most 1024"}
    nowhere = host("[net]\nring=rx 4096, tx 512\n", "rings", eth0=rings(64, 64), eth1=rings(1024, 1024))
    assert values(imported(nowhere)) == {}


def test_drivers_that_say_nothing_are_left_to_the_plan() -> None:
    for body in ("[net]\nring=rx 4096, tx 512\n", "[net]\nring=rx many, tx 5\n", "[net]\nchannels=combined 2\n"):
        assert imported(host(body, "rings", eth0=rings(64, 64))).settings[-1].section == "net"
    assert values(imported(host("[net]\nring=rx 64, tx 512\n", "rings"))) == {
        "link:{link}:ring.rx": "64",
        "link:{link}:ring.tx": "512",
    }
