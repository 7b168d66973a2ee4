"""The profiles of the five InfoScale configurations on whole hosts: what each sets, and where it sets nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.facts.infoscale_configuration import TITLES
from advisor.rules.infoscale import profile_of
from tests.plan.system import FILES, GIB, applied, host, llt, planned, states, system, values

EVERY = tuple(map(profile_of, TITLES))
TABLE = "set-node north\nset-cluster 7\nlink a udp - {0} 50000 - 192.0.2.1 -\nlink b udp - {0} 50001 - 192.0.2.2 -\n"
HOSTS = "0 north\n1 south\n"
HEAD = "DEVICE TYPE DISK GROUP STATUS\n"
MIRRORED = (
    f"{HEAD}xvdb auto:cdsdisk xvdb dg online exported shared\nsouth_xvdb auto:cdsdisk d2 dg online remote shared\n"
)
SHARED = f"{HEAD}xvdb auto:cdsdisk xvdb dg online shared\n"
MTU = {f"link:{name}:mtu": ("1500", "9000") for name in ("eth1", "eth2")}
MARKS = {f"llt:{name}": ("1000", "2000") for name in ("highwater", "rporthighwater")}
BUFFERS = {f"sysctl:net.core.{end}_default": ("212992", "851968") for end in ("rmem", "wmem")}


def node(
    where: Path, kind: str, listed: str | None, *, hosts: str = HOSTS, files: dict[str, str] | None = None
) -> None:
    """A host with LLT over two links of this type, and the volume manager with these disks."""
    own = {"/etc/llttab": TABLE.format(kind), "/etc/llthosts": hosts, **(files or {})}
    commands = llt(where)
    if listed is not None:
        own["/etc/vx/volboot"] = "volboot\n"
        commands["vxdisk"] = f"cat <<'EOF'\n{listed}EOF"
        commands["cat"] = 'exec /bin/cat "$@"'
    system(where, files=own, commands=commands)


@pytest.mark.parametrize(
    ("kind", "listed", "expected"),
    [
        ("tcp", MIRRORED, {"infoscale-fss-tcp": MTU}),
        (
            "udp",
            MIRRORED,
            {"infoscale-fss-udp": {**MTU, **BUFFERS}, "infoscale-fss-zones": {**MTU, **BUFFERS, **MARKS}},
        ),
        ("udp", SHARED, {}),
        ("ether", MIRRORED, {}),
    ],
)
def test_what_each_sets(
    kind: str, listed: str, expected: dict[str, dict[str, tuple[str, str]]], tmp_path: Path
) -> None:
    node(tmp_path, kind, listed)
    for profile in EVERY:
        plan = planned(tmp_path, profile)
        assert values(plan) == expected.get(profile, {}), profile
        if plan.is_empty:
            assert plan.skipped
            assert all(one.reason and one.state == "not-applicable" for one in plan.skipped)


@pytest.mark.parametrize("profile", EVERY)
def test_without_infoscale_there_is_nothing_and_it_is_said(profile: str, tmp_path: Path) -> None:
    system(tmp_path)
    plan = planned(tmp_path, profile)
    assert plan.is_empty
    assert plan.cannot_apply
    assert {one.reason for one in plan.skipped} <= {
        "InfoScale is not on this host (neither LLT, main.cf nor the volume manager was found)",
        "LLT is not installed on this host (neither lltconfig nor /etc/llttab was found)",
    }


@pytest.mark.parametrize(
    ("name", "hosts", "listed"), [("single-node", "0 north\n", SHARED), ("shared-disk", HOSTS, SHARED)]
)
def test_two_set_nothing_where_they_are_at_home_and_say_why(name: str, hosts: str, listed: str, tmp_path: Path) -> None:
    node(tmp_path, "udp", listed, hosts=hosts)
    (why,) = planned(tmp_path, profile_of(name)).skipped
    assert why.reason.startswith("Sets nothing: ")
    assert "none of the white paper's three tunings" in why.reason
    (other,) = planned(tmp_path, profile_of("shared-disk" if name == "single-node" else "single-node")).skipped
    assert not other.reason.startswith("Sets nothing: ")


def test_twice_is_once_and_larger_buffers_stay(tmp_path: Path) -> None:
    node(tmp_path, "udp", MIRRORED, files={"/proc/sys/net/core/rmem_default": "8388608\n"})
    first = values(applied(tmp_path, "infoscale-fss-zones"))
    assert "sysctl:net.core.rmem_default" not in first
    again = planned(tmp_path, "infoscale-fss-zones")
    assert again.is_empty
    assert not again.cannot_apply
    assert states(again)["sysctl:net.core.rmem_default"] == "would-lower"
    assert states(again)["sysctl:net.core.optmem_max"] == "in-place"
    text = host(tmp_path).read("/etc/llttab")
    assert str(text).endswith("set-flow highwater:2000\nset-flow rporthighwater:2000")


def test_what_has_no_part_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    node(tmp_path, "udp", MIRRORED, files={"/proc/sys/net/core/optmem_max": "20480\n"})
    found = values(planned(tmp_path, "infoscale-fss-udp"))
    assert not [name for name in found if "optmem" in name or "tcp" in name]
    assert values(planned(tmp_path, "socket-buffers-8m"))["sysctl:net.core.optmem_max"] == ("20480", "8388608")


def test_eight_megabytes_can_be_asked_for_and_memory_sets_the_bound(tmp_path: Path) -> None:
    # 20 TCP sockets alone may take 702 MiB by the kernel's own maxima.
    small = FILES["/proc/meminfo"].replace(str(12 * GIB), str(3 * GIB // 2))
    node(tmp_path, "udp", MIRRORED, files={"/proc/meminfo": small})
    assert values(planned(tmp_path, "infoscale-fss-udp")) == {**MTU, **BUFFERS}
    with pytest.raises(RefusedError, match="memory budget"):
        planned(tmp_path, "infoscale-fss-udp", bytes="8388608")


def test_where_it_cannot_be_told_the_plan_can_be_made(tmp_path: Path) -> None:
    node(tmp_path, "udp", None)
    assert values(planned(tmp_path, "infoscale-fss-udp")) == {**MTU, **BUFFERS}
    assert planned(tmp_path, "infoscale-fss-tcp").is_empty
