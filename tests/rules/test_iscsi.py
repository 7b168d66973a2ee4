"""Rules about iSCSI: each on a host on which it fires and on one on which it is silent."""

from __future__ import annotations

import pytest

from advisor.facts.remote.iscsi import Iscsi, IscsiSession
from advisor.rules.judged import judge
from advisor.rules.remote import multipath
from advisor.rules.rule import Finding, SetTunable
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.rules.build import GIB, disk, facts, nothing_known, replaced
from tests.rules.cases_iscsi import MAP, MAPPED, OLD, exports, node, over, path, set_in_file
from tests.rules.test_rules import findings_of


def test_where_nothing_is_known_nothing_is_claimed() -> None:
    empty = replaced(nothing_known(), {"iscsi": Iscsi()})
    assert judge(empty, parse_workload("iscsi-vm")) == ()
    odd = IscsiSession("session1", *(None,) * 10, connections=(), disks=())
    found = judge(replaced(nothing_known(), {"iscsi": Iscsi((odd, replaced(odd, {"name": "session2"})))}))
    assert [one.id for one in found] == ["iscsi.order"]


def test_the_storage_itself_is_told_the_size_of_the_file_for_its_disks() -> None:
    (found,) = findings_of(
        "iscsi.order", None, {"iscsi": exports("eth1"), "memory": replaced(facts().memory, {"total_bytes": 8 * GIB})}
    )
    assert "--size=16384m" in found.advice
    (found,) = findings_of("iscsi.order", None, {"iscsi": over("eth1")})
    assert "--size=TWICE-ITS-MEMORY" in found.advice


def edits_of(found: Finding) -> dict[str, str]:
    return {one.tunable.rpartition(".")[2]: one.value for one in found.remedy if isinstance(one, SetTunable)}


DATA = read_cases(__file__)


@pytest.mark.parametrize(("commands", "depth", "edits"), DATA["a_depth_above_its_session_is_mended"])
def test_a_depth_above_its_session_is_mended_by_exact_edits(commands: str, depth: str, edits: dict[str, str]) -> None:
    parts = {"iscsi": Iscsi(nodes=(node(cmds_max=commands, queue_depth=depth),))}
    (found,) = findings_of("iscsi.queue-depth", None, parts)
    assert found.profile is None
    assert "advisor plan" not in found.advice
    assert edits_of(found) == edits
    assert "log out" in found.advice.split("; ")[-1]


def test_a_depth_in_the_file_for_new_records_is_an_edit_of_that_file() -> None:
    settings = node(cmds_max="32", queue_depth="64").settings
    (found,) = findings_of("iscsi.queue-depth", None, {"iscsi": Iscsi(settings=settings)})
    assert found.commands == ("advisor apply file:/etc/iscsi/iscsid.conf:node.session.cmds_max=64",)


def test_hostile_names_make_no_unsafe_command() -> None:
    one = replaced(node(cmds_max="32", queue_depth="64"), {"path": "/etc/iscsi/nodes/iqn.x;reboot/fe80::1,3260,1"})
    (found,) = findings_of("iscsi.queue-depth", None, {"iscsi": Iscsi(nodes=(one,))})
    assert found.commands == (f"advisor apply 'file:{one.path}:node.session.cmds_max=64'",)


def test_a_command_for_unequal_links_names_them() -> None:
    (found,) = findings_of(
        "iscsi.mtu-differs",
        None,
        {"iscsi": over("eth1", "e;reboot"), "links": (path("eth1", 1), path("e;reboot", 2, mtu=1500))},
    )
    assert "advisor plan iscsi --set 'links=eth1,e;reboot'" in found.advice


def test_a_device_section_that_would_take_endless_time_is_left_open() -> None:
    disks = tuple(disk(name, model="a" * 60, detail={"vendor": "LIO"}) for name in ("sda", "sdb"))
    for product, doubt in (("(a+)+b", True), ("a+b", False), ("[", False)):
        line = set_in_file("rr_min_io_rq", "1000", f"devices/device[LIO,{product}]")
        host = facts(**MAPPED, arrays=(MAP,), disks=disks, host=OLD, site_settings=(line,))
        assert (multipath.unclear(host, MAP, "rr_min_io_rq") is not None) is doubt
        assert multipath.winning(host, MAP, "rr_min_io_rq") is None
