"""Ids and values of block devices, arrays, huge pages, LLT timers, units and files: what each is, what is refused."""

from __future__ import annotations

import pytest

from advisor.errors import UsageError
from advisor.host import ReadCommand, ReadFile, RunCommand, WriteFile
from advisor.tunables import parse_tunable
from tests.each import for_each

QUEUE = "/sys/block/{}/queue/{}"
THP = "/sys/kernel/mm/transparent_hugepage"


@pytest.mark.parametrize(
    ("identity", "path", "form"),
    [
        ("block:nvme0n1:scheduler", QUEUE.format("nvme0n1", "scheduler"), "selected"),
        ("block:cciss!c0d0:read_ahead_kb", QUEUE.format("cciss!c0d0", "read_ahead_kb"), "words"),
        ("block:dm-3:write_cache", QUEUE.format("dm-3", "write_cache"), "words"),
        ("md:md127:stripe_cache_size", "/sys/block/md127/md/stripe_cache_size", "words"),
        ("md:md_d0:sync_speed_min", "/sys/block/md_d0/md/sync_speed_min", "md-speed"),
        ("thp:enabled", f"{THP}/enabled", "selected"),
        ("thp:khugepaged/defrag", f"{THP}/khugepaged/defrag", "words"),
        ("thp:khugepaged/max_ptes_none", f"{THP}/khugepaged/max_ptes_none", "words"),
        ("file:/etc/beegfs/beegfs-meta.conf:tuneNumWorkers", "/etc/beegfs/beegfs-meta.conf", "conf:tuneNumWorkers"),
        (
            "file:/etc/beegfs/a.d/beegfs-storage.conf:connMaxInternodeNum",
            "/etc/beegfs/a.d/beegfs-storage.conf",
            "conf:connMaxInternodeNum",
        ),
        ("file:/etc/multipath.conf:defaults/rr_min_io_rq", "/etc/multipath.conf", "multipath:defaults/rr_min_io_rq"),
        (
            "file:/etc/iscsi/iscsid.conf:node.conn[0].timeo.noop_out_interval",
            "/etc/iscsi/iscsid.conf",
            "conf:node.conn[0].timeo.noop_out_interval",
        ),
        ("file:/etc/llttab:set-arp", "/etc/llttab", "directive:set-arp"),
        ("file:/etc/llttab:link.link-1.mtu", "/etc/llttab", "llttab-mtu:link-1"),
        ("file:/opt/iris/iris.cpf:config/globals", "/opt/iris/iris.cpf", "cpf:config/globals"),
    ],
)
def test_an_id_is_a_file(identity: str, path: str, form: str) -> None:
    one = parse_tunable(identity)
    assert one.id == identity
    assert one.probe == ReadFile(path, form)
    wanted = () if identity.startswith("file:") else (WriteFile(path, "7"),)
    assert one.make_steps("7") == wanted


def test_an_id_is_what_a_command_answers() -> None:
    timer = parse_tunable("llt:timer.peerinact")
    assert (timer.id, timer.probe) == (
        "llt:timer.peerinact",
        ReadCommand(("lltconfig", "-T", "query"), "timer:peerinact"),
    )
    assert timer.make_steps("3200") == (RunCommand(("lltconfig", "-T", "peerinact:3200")),)
    limit = parse_tunable("unit:a@b.service:LimitNOFILE")
    words = ("systemctl", "show", "--property=LoadState,LimitNOFILE,LimitNOFILESoft", "--", "a@b.service")
    assert (limit.id, limit.probe) == ("unit:a@b.service:LimitNOFILE", ReadCommand(words, "unit-setting:LimitNOFILE"))
    assert (limit.make_steps("1"), limit.takes_effect, limit.risk) == ((), "service-restart", "restart")


@for_each(
    "identity",
    [
        *(
            "block:sda",
            "block:sda:",
            "block::scheduler",
            "block:sda:optimal_io_size",
            "block:sda:../../x",
            "block:..:iostats",
        ),
        *("block:a/b:scheduler", "block:sd a:scheduler", "block:sda:scheduler\n", "block:sda\n:scheduler"),
        *("md:md0:chunk_size", "md:md0:sync_action", "md:..:skip_copy", "md:md0", "md:md/0:skip_copy"),
        *("thp:", "thp:../enabled", "thp:khugepaged", "thp:khugepaged/full_scans", "thp:enabled\n"),
        *("llt:timer.", "llt:timer.A", "llt:timer.a:b", "llt:timer.a\n"),
        *(
            "unit:a.service:ExecStart",
            "unit:a.service:User",
            "unit:a.socket:Nice",
            "unit:a.service:nice",
            "unit:a.service:",
        ),
        *("file:/etc/passwd:root", "file:/etc/beegfs/../passwd:tuneX", "file:/etc/beegfs/x.conf:tuneNumWorkers"),
        *(
            "file:etc/llttab:set-arp",
            "file:/etc/llttab:set-node",
            "file:/etc/llttab:set-cluster",
            "file:/etc/llttab:link",
        ),
        # What the program would run, read or trust.
        *(
            "file:/etc/iscsi/iscsid.conf:iscsid.startup",
            "file:/etc/iscsi/iscsid.conf:node.session.auth.password",
            "file:/etc/multipath.conf:defaults/multipath_dir",
            "file:/etc/multipath.conf:defaults/getuid_callout",
            "file:/etc/multipath.conf:blacklist/devnode",
            "file:/etc/beegfs/beegfs-meta.conf:connAuthFile",
            "file:/etc/beegfs/beegfs-meta.conf:connDisableAuthentication",
            "file:/etc/beegfs/beegfs-meta.conf:connInterfacesFile",
            "file:/etc/beegfs/beegfs-meta.conf:sysMgmtdHost",
            "file:/etc/beegfs/beegfs-meta.conf:storeMetaDirectory",
            "file:/opt/iris/iris.cpf:Startup/SystemMode",
            "file:/opt/iris/iris.cpf:config/LibPath",
        ),
        *(
            "file:/opt/../etc/iris.cpf:config/globals",
            "file:/opt/./iris.cpf:config/globals",
            "file:/opt//iris.cpf:config/a",
        ),
    ],
)
def test_an_id_that_is_refused(identity: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable") as caught:
        parse_tunable(identity)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("identity", "good", "bad"),
    [
        ("block:a:scheduler", ["none", "mq-deadline"], ["", "[none]", "a b", 'x"', "none\n", "A"]),
        ("block:a:read_ahead_kb", ["0", "128", "4096"], ["", "-4", "130", "0128", "12x", "٤"]),
        ("block:a:nr_requests", ["4", "1023"], ["3", "0", ""]),
        ("block:a:rq_affinity", ["0", "1", "2"], ["3", "", "on"]),
        ("block:a:iostats", ["0", "1"], ["2", "true"]),
        ("block:a:max_sectors_kb", ["4", "512"], ["0", "-1"]),
        ("block:a:wbt_lat_usec", ["0", "2000"], ["-1"]),
        # A volatile cache that the kernel no longer flushes loses what it held.
        ("block:a:write_cache", ["write back"], ["write through", "", "x"]),
        ("md:a:stripe_cache_size", ["17", "32768"], ["16", "32769", ""]),
        ("md:a:sync_speed_max", ["system", "200000"], ["local", "0", "1000 (system)"]),
        ("md:a:skip_copy", ["0", "1"], ["2", "system"]),
        ("thp:enabled", ["never", "madvise"], ["", "[never]", "a b", "1"]),
        ("thp:defrag", ["defer+madvise"], ["defer madvise", "+"]),
        ("thp:use_zero_page", ["0", "1"], ["2"]),
        ("thp:khugepaged/pages_to_scan", ["4096"], ["", "-1", "01"]),
        ("llt:timer.peerinact", ["1", "3200"], ["0", "", "-1", "1.5", "٣"]),
        ("unit:a.service:LimitNOFILE",
         ["1048576", "infinity", "1024:4096", "1024:infinity"], ["1M", "", "5:5", "infinity:5", "5:1", ":5", "1:2:3"]),
        ("unit:a.service:TasksMax", ["100", "infinity"], ["1:2", "10%"]),
        ("unit:a.service:Nice", ["-20", "0", "19"], ["20", "+5", "-0", ""]),
        ("unit:a.service:OOMScoreAdjust", ["-1000", "500"], ["1001"]),
        ("unit:a.service:IOWeight", ["1", "10000"], ["0", "10001", "(unset)"]),
        # As systemd shows it again.
        ("unit:a.service:CPUAffinity", ["0-3,8", "0"], ["", "0,1", "3-0", "0 1", "numa", "0-3,8\nExecStart=/x"]),
        ("file:/etc/beegfs/beegfs-meta.conf:tuneNumWorkers",
         ["32", "2m", "randomized"], ["", "a\nb", "(unset)", "/x", "$(x)", "a  b", '"1"']),
        ("file:/etc/multipath.conf:defaults/path_selector", ["service-time 0"], ['a" b', "{", "#", "a/b"]),
        ("file:/etc/llttab:set-arp", ["0", "1"], ["2", "", "1 # x"]),
        ("file:/opt/iris/iris.cpf:config/globals", ["0,0,512,0,0,0"], ["[x]", "a=b", "x;y"]),
    ],
)  # fmt: skip
def test_values_that_can_be(identity: str, good: list[str], bad: list[str]) -> None:
    one = parse_tunable(identity)
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert [value for value in bad if not one.check_value(value)] == []
