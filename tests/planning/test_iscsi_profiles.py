"""The profiles iscsi and iscsi-multipath on hosts with sessions, without, and with links that are not for storage."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from advisor.host import Host
from advisor.planner import plan_profiles
from advisor.planning.records import FileChange, plan_document
from advisor.report.plan import plan_text
from tests.facts.iscsi import CONF, SECRET
from tests.planning.system import ETH0, LOOPBACK, Link, changes, system
from tests.trees import make_tree

LINKS = (
    LOOPBACK,
    ETH0,
    Link("eth1", address="192.0.2.1", node=0),
    Link("eth2", address="198.51.100.1", node=1),
    # In use, and no storage link.
    Link("eth3", address="203.0.113.1", node=1),
)
MULTIPATH = 'defaults {\n  path_selector "round-robin 0"\n  rr_min_io_rq 1000\n}\n'
TABLE = "mpatha: 0 8192 multipath 0 0 1 1 round-robin 0 2 1 8:0 1000 8:16 1000"


def disk(number: int, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """A SCSI disk of a session, as files and links."""
    place = f"/sys/devices/platform/host{number + 2}/session{number}/target{number}:0:0/{number}:0:0:0/block/{name}"
    files = {f"{place}/size": "8192", f"{place}/queue/read_ahead_kb": "128", f"{place}/queue/rotational": "0"}
    files |= {f"{place}/queue/scheduler": "[none]", f"{place}/dev": f"8:{16 * (number - 1)}"}
    target = f"../{place.removeprefix('/sys/')}"
    return files, {f"/sys/block/{name}": target, f"/sys/dev/block/8:{16 * (number - 1)}": f"../../{target[3:]}"}


def session(number: int, portal: str) -> dict[str, str]:
    base = f"/sys/class/iscsi_session/session{number}"
    wire = f"/sys/class/iscsi_connection/connection{number}:0"
    return {
        f"{base}/targetname": "iqn.2004-04.com.example:disk1",
        f"{base}/state": "LOGGED_IN",
        f"{base}/recovery_tmo": "120",
        f"{wire}/address": portal,
        f"{wire}/port": "3260",
    }


def initiator(where: Path, *, mapped: bool = False, more: Mapping[str, str] | None = None) -> Host:
    """Two sessions by eth1 and eth2, with sda and sdb; with ``mapped`` below one multipath map."""
    files = {**session(1, "192.0.2.20"), **session(2, "198.51.100.20")}
    links: dict[str, str] = {}
    for number, name in ((1, "sda"), (2, "sdb")):
        own = disk(number, name)
        files |= own[0]
        links |= own[1]
    files |= {"/etc/iscsi/iscsid.conf": CONF, **(more or {})}
    commands = {}
    if mapped:
        place = "/sys/devices/virtual/block/dm-0"
        files |= {f"{place}/size": "8192", f"{place}/dm/name": "mpatha", f"{place}/dm/uuid": "mpath-3600"}
        files |= {f"{place}/dm/suspended": "0", f"{place}/queue/read_ahead_kb": "128", f"{place}/dev": "253:0"}
        files["/etc/multipath.conf"] = MULTIPATH
        links |= {"/sys/block/dm-0": "../devices/virtual/block/dm-0"}
        links |= {f"{place}/slaves/{name}": f"/sys/block/{name}" for name in ("sda", "sdb")}
        commands = {"dmsetup": f'[ "$1" = table ] && echo "{TABLE}"'}
    host = system(where, LINKS, {}, commands)
    make_tree(where / "root", files, links)
    return host


ISCSID = "file:/etc/iscsi/iscsid.conf:node."


def test_the_session_links_and_no_others_are_raised_and_lowered_settings_put_right(tmp_path: Path) -> None:
    found = changes(plan_profiles(initiator(tmp_path), ["iscsi"], {}))
    assert found == {
        "link:eth1:mtu": "9000",
        "link:eth2:mtu": "9000",
        # 100 in the file; what it does not name at all is named.
        f"{ISCSID}session.cmds_max": "128",
        f"{ISCSID}session.iscsi.FirstBurstLength": "262144",
        f"{ISCSID}session.iscsi.MaxBurstLength": "16776192",
        f"{ISCSID}conn[0].iscsi.MaxRecvDataSegmentLength": "262144",
        "block:sda:read_ahead_kb": "1024",
        "block:sdb:read_ahead_kb": "1024",
    }


OLD_KERNEL = {"/proc/sys/kernel/osrelease": "3.10.0-1160.el7.x86_64\n"}


def test_multipath_gets_its_timeout_and_the_selector_that_is_asked_for(tmp_path: Path) -> None:
    host = initiator(tmp_path, mapped=True, more=OLD_KERNEL)
    plan = plan_profiles(host, ["iscsi-multipath"], {"selector": "service-time"})
    found = changes(plan)
    assert found[f"{ISCSID}session.timeo.replacement_timeout"] == "15"
    assert found["file:/etc/multipath.conf:defaults/path_selector"] == "service-time 0"
    assert found["file:/etc/multipath.conf:defaults/rr_min_io_rq"] == "1"
    assert found["block:dm-0:read_ahead_kb"] == "1024"
    assert found["link:eth1:mtu"] == "9000"
    after = {one.path: one.after for one in plan.files}
    assert b'path_selector "service-time 0"' in (after["/etc/multipath.conf"] or b"")


RECORD = "/etc/iscsi/nodes/iqn.2004-04.com.example:disk1/192.0.2.20,3260,1/default"
KEYS = "node.session.auth.password = Chap-Secret-1234\nnode.session.cmds_max = 100\nnode.session.queue_depth = 32\n"


def test_a_node_record_is_changed_and_waits_for_its_login(tmp_path: Path) -> None:
    plan = plan_profiles(initiator(tmp_path, more={RECORD: KEYS}), ["iscsi"], {})
    assert changes(plan)[f"file:{RECORD}:node.session.cmds_max"] == "128"
    (file,) = [one for one in plan.files if one.path == RECORD]
    assert file.after == KEYS.replace("= 100", "= 128").encode()
    assert any("-T iqn.2004-04.com.example:disk1 -p 192.0.2.20:3260 --logout" in note for note in plan.notes)
    kept = [note for note in plan.notes if note.startswith(f"{RECORD} keeps")]
    assert not [note for note in kept if "cmds_max" in note]
    assert [note for note in kept if "its own node.session.iscsi.FirstBurstLength" in note]
    left = {one.tunable: one.reason for one in plan.skipped}
    assert "does not know it" in left[f"file:{RECORD}:node.session.iscsi.FirstBurstLength"]
    assert "Chap-Secret" not in plan_text(plan, width=100, color=False)


def test_the_timeout_is_for_records_below_multipath(tmp_path: Path) -> None:
    timeout = "node.session.timeo.replacement_timeout"
    other = RECORD.replace("example:disk1", "example:boot")
    records = dict.fromkeys((RECORD, other), f"{timeout} = 120\n")
    plan = plan_profiles(initiator(tmp_path, mapped=True, more=records), ["iscsi-multipath"], {})
    assert changes(plan)[f"file:{RECORD}:{timeout}"] == "15"
    left = {one.tunable: one.reason for one in plan.skipped}
    assert "below multipath" in left[f"file:{other}:{timeout}"]
    assert any(note.startswith(f"{other} keeps {timeout} = 120") for note in plan.notes)


def test_no_password_of_a_file_is_shown(tmp_path: Path) -> None:
    plan = plan_profiles(initiator(tmp_path), ["iscsi"], {})
    (file,) = (one for one in plan.files if one.path == "/etc/iscsi/iscsid.conf")
    assert SECRET.encode() in file.after, "the file itself keeps it"
    assert SECRET not in plan_text(plan, width=100, color=False)
    shown = msgspec.convert(plan_document(plan)["files"], list[FileChange])
    assert not any(SECRET.encode() in (one.before or b"") + one.after for one in shown)
    assert sum(one.after.count(b"redacted") for one in shown) == file.after.count(SECRET.encode()) > 0
