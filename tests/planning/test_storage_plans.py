"""Plans of settings that the kernel ties together: scheduler and queue, bytes and ratio, stripe caches and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from advisor.errors import RefusedError
from advisor.facts.host_facts import Facts
from advisor.facts.remote.iscsi import Iscsi, IscsiNode
from advisor.facts.writers import read_writes
from advisor.host import Host, MemoryFiles, NoCommands, WriteFile
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import parse_profile
from tests.cases import cases
from tests.planning.system import change, skipped, states, values
from tests.profiles.build import document, toml, wanted
from tests.rules.build import GIB, array, facts, origin, replaced

CASES = cases(__file__)

QUEUE = "/sys/block/sda/queue"
DISK = {
    "/run/udev/data/b8:0": "E:ID_SERIAL=36001\n",
    "/sys/block/sda/dev": "8:0\n",
    "/sys/block/sda/device/wwid": "naa.6001\n",
    f"{QUEUE}/scheduler": "[none] mq-deadline\n",
    f"{QUEUE}/nr_requests": "1023\n",
    f"{QUEUE}/read_ahead_kb": "128\n",
}
WWID = ("/sys/block/sda/device/wwid", "naa.6001", "single")
RULES = "/etc/udev/rules.d/90-advisor-block.rules"
VM = "/proc/sys/vm"
RATIO = {
    f"{VM}/dirty_bytes": "0\n",
    f"{VM}/dirty_ratio": "20\n",
    f"{VM}/dirty_background_bytes": "0\n",
    f"{VM}/dirty_background_ratio": "10\n",
}
BYTES = {**RATIO, f"{VM}/dirty_bytes": "268435456\n", f"{VM}/dirty_ratio": "0\n"}


def planned(
    files: Mapping[str, str],
    wants: Mapping[str, str] | None = None,
    *lines: dict[str, Any],
    known: Facts | None = None,
    runtime_only: bool = False,
) -> Plan:
    body = document("mine", *(wanted(tunable=name, value=value) for name, value in (wants or {}).items()), *lines)
    host = Host(MemoryFiles({path: text.encode() for path, text in files.items()}), NoCommands())
    about = replaced(known or facts(), {"writes": read_writes(host)})
    targets, not_here = resolve_targets(Request.from_settings(parse_profile(toml(body), "x"), {}), about)
    seen = observe_targets(host, targets, {})
    return make_plan(("mine",), targets, not_here, seen, about, runtime_only=runtime_only)


def test_the_scheduler_comes_before_what_it_resets() -> None:
    wants = {f"block:sda:{name}": value for name, value in
             {"nr_requests": "64", "read_ahead_kb": "4096", "scheduler": "mq-deadline"}.items()}  # fmt: skip
    plan = planned(DISK, wants)
    assert list(values(plan)) == ["block:sda:scheduler", "block:sda:nr_requests", "block:sda:read_ahead_kb"]
    (file,) = plan.files
    assert (file.path, file.before) == (RULES, None)
    settings = [line.rpartition("ATTR")[2] for line in file.after.decode().splitlines()[1:]]
    assert settings == ['{queue/scheduler}="mq-deadline"', '{queue/nr_requests}="64"', '{queue/read_ahead_kb}="4096"']
    # It is set by the plan itself, so that it has no side effect.
    assert plan.side_effects == ()
    undo = change(plan, "block:sda:scheduler").undo
    assert undo == (WriteFile(f"{QUEUE}/scheduler", "none", WWID), WriteFile(f"{QUEUE}/nr_requests", "1023", WWID))


def test_what_is_as_wanted_but_would_be_reset_is_set_again_and_kept() -> None:
    plan = planned(DISK, {"block:sda:nr_requests": "1023", "block:sda:scheduler": "mq-deadline"})
    assert values(plan) == {"block:sda:scheduler": ("none", "mq-deadline"), "block:sda:nr_requests": ("1023", "1023")}
    assert b'nr_requests}="1023"' in plan.files[0].after
    assert any("the kernel resets it with another change" in note for note in plan.notes)
    alone = planned(DISK, {"block:sda:nr_requests": "1023", "block:sda:scheduler": "none"})
    assert set(states(alone).values()) == {"in-place"}


@pytest.mark.parametrize(("files", "key", "value", "undo"), CASES["the pair comes back in its own kind"])
def test_the_pair_comes_back_in_its_own_kind(
    files: dict[str, str], key: str, value: str, undo: list[tuple[str, str]]
) -> None:
    plan = planned(files, {f"sysctl:vm.{key}": value})
    (one,) = plan.changes
    assert one.undo == tuple(WriteFile(f"{VM}/{name}", number) for name, number in undo)
    (moved,) = plan.side_effects
    twin = key.replace("bytes", "ratio") if "bytes" in key else key.replace("ratio", "bytes")
    assert (moved.tunable, moved.before) == (f"sysctl:vm.{twin}", files[f"{VM}/{twin}"].strip())


def test_both_of_a_pair_cannot_be_had() -> None:
    plan = planned(RATIO, {"sysctl:vm.dirty_bytes": "268435456", "sysctl:vm.dirty_ratio": "20"})
    assert {one.tunable: one.reason for one in plan.blocking} == {
        "sysctl:vm.dirty_bytes": "cannot be set along with sysctl:vm.dirty_ratio: ask for one",
        "sysctl:vm.dirty_ratio": "cannot be set along with sysctl:vm.dirty_bytes: ask for one",
    }
    zero = planned(BYTES, {"sysctl:vm.dirty_bytes": "0"})
    assert "vm.dirty_ratio is what to set instead" in zero.blocking[0].reason


@pytest.mark.parametrize(("path", "value", "outcome"), CASES["a file that sets the other of a pair"])
def test_a_file_that_sets_the_other_of_a_pair(path: str, value: str, outcome: str) -> None:
    known = facts(sysctl_origin={"vm.dirty_ratio": origin("vm.dirty_ratio", value, path=path)})
    plan = planned(RATIO, {"sysctl:vm.dirty_bytes": "268435456"}, known=known)
    assert bool(plan.blocking) == (outcome == "overridden")
    said = [note for note in plan.notes if note.startswith(f"{path} line 3 sets vm.dirty_ratio")]
    assert bool(said) == (outcome == "note")
    if plan.blocking:
        found = skipped(plan, "sysctl:vm.dirty_bytes")
        assert found.state == "overridden"
        assert found.reason.startswith(f"{path} line 3 sets vm.dirty_ratio to 30 at boot")
        assert not planned(RATIO, {"sysctl:vm.dirty_bytes": "268435456"}, known=known, runtime_only=True).blocking


def test_our_own_line_below_is_no_better_than_another_file() -> None:
    ours = "/etc/sysctl.d/90-advisor-mine.conf"
    ratio = origin("vm.dirty_ratio", "30", path=ours, line=9)
    size = origin("vm.dirty_bytes", "1", path=ours)
    known = facts(sysctl_origin={"vm.dirty_ratio": ratio, "vm.dirty_bytes": size})
    assert planned(RATIO, {"sysctl:vm.dirty_bytes": "268435456"}, known=known).blocking
    known = facts(sysctl_origin={"vm.dirty_ratio": origin("vm.dirty_ratio", "30", path=ours)})
    assert not planned(RATIO, {"sysctl:vm.dirty_bytes": "268435456"}, known=known).blocking


THP = CASES["THP"]
LINE = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - {}\n"


def test_huge_pages_are_written_at_boot_and_the_command_line_is_told() -> None:
    plan = planned(THP, {"thp:enabled": "madvise"})
    assert values(plan) == {"thp:enabled": ("always", "madvise")}
    (file,) = plan.files
    assert file.path == "/etc/tmpfiles.d/advisor-mine.conf"
    assert file.after.decode() == "# Transparent huge pages of the profile mine.\n" + LINE.format("madvise")
    assert [note for note in plan.notes if "command line says transparent_hugepage=always" in note]
    assert planned({**THP, "/proc/cmdline": "quiet\n"}, {"thp:enabled": "madvise"}).notes == ()
    refused = planned(THP, {"thp:enabled": "inherit"}).blocking[0]
    assert refused.reason == "this kernel offers always, madvise, never"


@pytest.mark.parametrize(("path", "value", "is_overridden"), CASES["a file of tmpfiles that comes first wins"])
def test_a_file_of_tmpfiles_that_comes_first_wins(path: str, value: str, *, is_overridden: bool) -> None:
    plan = planned({**THP, path: "# site\n" + LINE.format(value)}, {"thp:enabled": "madvise"})
    assert bool(plan.blocking) == is_overridden
    if is_overridden:
        assert plan.blocking[0].state == "overridden"
        assert f"{path}:2" in plan.blocking[0].reason


def raid(pages: str, available_gib: float, **parts: Any) -> Plan:
    files = {
        "/run/udev/data/b9:5": "E:MD_UUID=1:2:3:4\n",
        "/sys/block/md5/dev": "9:5\n",
        "/sys/block/md5/md/stripe_cache_size": "256\n",
        "/sys/block/md5/md/preread_bypass_threshold": "1\n",
    }
    memory = replaced(facts().memory, {"available_bytes": int(available_gib * GIB)})
    known = facts(arrays=(array("md5", "a", "b", "c", level="raid5", **parts),), memory=memory)
    return planned(files, {"md:md5:preread_bypass_threshold": "512", "md:md5:stripe_cache_size": pages}, known=known)


def test_the_memory_of_a_stripe_cache_is_counted() -> None:
    plan = raid("32768", 4, detail={"raid_disks": "8 (3)"})
    # The cache comes before the threshold that it bounds.
    assert list(values(plan)) == ["md:md5:stripe_cache_size", "md:md5:preread_bypass_threshold"]
    assert plan.notes == ("memory budget: the stripe caches of md5 take 1024 MiB of 4096 MiB available",)
    with pytest.raises(RefusedError) as caught:
        raid("32768", 3, detail={"raid_disks": "8"})
    assert "memory budget: the stripe caches of md5 take 1024 MiB of 3072 MiB available; the limit is 25%" in str(
        caught.value.message
    )
    assert raid("4096", 4).notes == ("memory budget: the stripe caches of md5 take 48 MiB of 4096 MiB available",)


@pytest.mark.parametrize(("path", "text", "key", "value", "before", "reason"), CASES["a key that has no place"])
def test_a_key_that_has_no_place(
    path: str, text: str, key: str, value: str, before: str | None, reason: str | None
) -> None:
    name = f"file:{path}:{key}"
    plan = planned({path: text}, {name: value})
    if reason is None:
        assert values(plan) == {name: (before, value)}
    else:
        assert reason in skipped(plan, name).reason
        assert plan.files == ()


def test_what_else_reads_or_keeps_the_key_is_told() -> None:
    name = "node.session.queue_depth"
    place = "/etc/iscsi/nodes/iqn.x/192.0.2.1,3260,1/default"
    known = facts(iscsi=Iscsi(nodes=(IscsiNode(place, "iqn.x", "192.0.2.1,3260,1", "default", {name: "8"}),)))
    files = {"/etc/iscsi/iscsid.conf": f"{name} = 32\n"}
    (note,) = planned(files, {f"file:/etc/iscsi/iscsid.conf:{name}": "64"}, known=known).notes
    assert note.startswith(f"{place} keeps {name} = 8")
    assert note.endswith(f"iscsiadm -m node -T iqn.x -p 192.0.2.1:3260 -o update -n {name} -v 64")
    files = {
        "/etc/multipath.conf": "defaults {\n}\n",
        "/etc/multipath/conf.d/x.conf": "defaults {\n prio alua\n}\n",
        "/etc/multipath/conf.d/y.conf": "defaults {\n failback 5\n}\n",
    }
    (note,) = planned(files, {"file:/etc/multipath.conf:defaults/prio": "const"}).notes
    assert note.startswith("/etc/multipath/conf.d/x.conf gives defaults/prio too")


def test_placement_and_affinity_of_one_unit_are_rivals() -> None:
    numa = "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"
    wants = {"unit:a.service:CPUAffinity": "0-3", "unit:a.service:numa": numa, "unit:b.service:CPUAffinity": "0"}
    assert sorted(one.tunable for one in planned({}, wants).blocking) == [
        "unit:a.service:CPUAffinity",
        "unit:a.service:numa",
    ]
