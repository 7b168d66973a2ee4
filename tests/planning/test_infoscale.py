"""The profiles of the five InfoScale configurations on whole hosts: what each sets, and where it sets nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.facts.clusters.infoscale_configuration import TITLES
from advisor.rules.clusters.infoscale import profile_of
from tests.cases import cases
from tests.planning.system import PORTS as PORTS_OF
from tests.planning.system import Link, applied, host, llt, planned, states, system, values

CASES = cases(__file__)

EVERY = tuple(map(profile_of, TITLES))
TABLE = "set-node north\nset-cluster 7\nlink a udp - {0} 50000 - 192.0.2.1 -\nlink b udp - {0} 50001 - 192.0.2.2 -\n"
HOSTS = "0 north\n1 south\n"
HEAD = "DEVICE TYPE DISK GROUP STATUS\n"
MIRRORED = (
    f"{HEAD}xvdb auto:cdsdisk xvdb dg online exported shared\nsouth_xvdb auto:cdsdisk d2 dg online remote shared\n"
)
MTU = {f"link:{name}:mtu": ("1500", "9000") for name in ("eth1", "eth2")}
PORTS = "sysctl:net.ipv4.ip_local_reserved_ports"
BUFFERS = {f"sysctl:net.core.{end}_default": ("212992", "851968") for end in ("rmem", "wmem")}


def node(
    where: Path,
    kind: str,
    listed: str | None,
    *,
    hosts: str = HOSTS,
    files: dict[str, str] | None = None,
    ports: tuple[Link, ...] = PORTS_OF,
) -> None:
    """A host with LLT over two links of this type, and the volume manager with these disks."""
    own = {"/etc/llttab": TABLE.format(kind), "/etc/llthosts": hosts, **(files or {})}
    commands = llt(where)
    if listed is not None:
        own["/etc/vx/volboot"] = "volboot\n"
        commands["vxdisk"] = f"cat <<'EOF'\n{listed}EOF"
        commands["cat"] = 'exec /bin/cat "$@"'
    system(where, ports, files=own, commands=commands)


@pytest.mark.parametrize(("kind", "listed", "expected"), CASES["what each sets"])
def test_what_each_sets(kind: str, listed: str, expected: dict[str, dict[str, list[str]]], tmp_path: Path) -> None:
    node(tmp_path, kind, listed)
    for profile in EVERY:
        plan = planned(tmp_path, profile)
        assert {name: [*pair] for name, pair in values(plan).items()} == expected.get(profile, {}), profile
        if plan.is_empty:
            assert plan.skipped
            assert all(one.reason and one.state == "not-applicable" for one in plan.skipped)


def test_twice_is_once_and_larger_buffers_stay(tmp_path: Path) -> None:
    node(tmp_path, "udp", MIRRORED, files={"/proc/sys/net/core/rmem_default": "8388608\n"})
    first = values(applied(tmp_path, "infoscale-fss-zones"))
    assert "sysctl:net.core.rmem_default" not in first
    again = planned(tmp_path, "infoscale-fss-zones")
    assert again.is_empty
    assert not again.cannot_apply
    assert states(again)["sysctl:net.core.rmem_default"] == "would-lower"
    assert states(again)["sysctl:net.core.optmem_max"] == "kept"
    text = host(tmp_path).read("/etc/llttab")
    assert str(text).endswith("set-flow highwater:2000\nset-flow rporthighwater:2000")


def test_where_it_cannot_be_told_the_plan_can_be_made(tmp_path: Path) -> None:
    node(tmp_path, "udp", None)
    assert values(planned(tmp_path, "infoscale-fss-udp")) == {**MTU, **BUFFERS}
    assert planned(tmp_path, "infoscale-fss-tcp").is_empty


@pytest.mark.repeats(12)
@pytest.mark.parametrize("profile", ["infoscale-fss-udp", "infoscale-fss-zones", "infoscale-fss-tcp"])
@pytest.mark.parametrize(("reserved", "span", "expected"), CASES["the ports of llt are reserved and the others stay"])
def test_the_ports_of_llt_are_reserved_and_the_others_stay(
    profile: str, reserved: str, span: str, expected: list[str] | str, tmp_path: Path
) -> None:
    own = {
        "/proc/sys/net/ipv4/ip_local_port_range": f"{span}\n",
        "/proc/sys/net/ipv4/ip_local_reserved_ports": f"{reserved}\n",
    }
    node(tmp_path, "tcp" if profile.endswith("tcp") else "udp", MIRRORED, files=own)
    plan = planned(tmp_path, profile)
    wanted = tuple(expected) if isinstance(expected, list) else expected
    assert {**values(plan), **states(plan)}[PORTS] == wanted


def narrow(*names: str) -> tuple[Link, ...]:
    """The usual ports, some of which carry no more than 1500 bytes."""
    return tuple(msgspec.structs.replace(one, max_mtu=1500) if one.name in names else one for one in PORTS_OF)


@pytest.mark.parametrize("kind", ["udp", "udp6"])
@pytest.mark.parametrize(
    ("links", "settings", "expected"), CASES["where 9000 is not possible the mtu field of llttab is set"]
)
def test_where_9000_is_not_possible_the_mtu_field_of_llttab_is_set(
    kind: str, links: tuple[str, ...], settings: dict[str, str], expected: dict[str, int], tmp_path: Path
) -> None:
    node(tmp_path, kind, MIRRORED, ports=narrow(*links))
    plan = planned(tmp_path, "infoscale-fss-udp", **settings)
    overhead = 28 if kind == "udp" else 48
    found = {name: pair for name, pair in values(plan).items() if name.startswith("file:")}
    assert found == {f"file:/etc/llttab:link.{tag}.mtu": ("-", str(mtu - overhead)) for tag, mtu in expected.items()}
    assert not plan.cannot_apply
    raised = {name.split(":")[1] for name in values(plan) if name.startswith("link:")}
    assert raised == (set() if settings.get("mtu") == "1500" else {"eth1", "eth2"} - set(links))
    for name in links:
        assert states(plan)[f"link:{name}:mtu"] == "not-applicable"
    if expected:
        assert any("manual step: restart LLT" in note for note in plan.notes)
        (file,) = [one for one in plan.files if one.path == "/etc/llttab"]
        assert file.after.decode().count(f" {1500 - overhead} 192.0.2.") == len(expected)


def test_a_smaller_field_stays(tmp_path: Path) -> None:
    table = TABLE.format("udp").replace("50000 -", "50000 1400").replace("50001 -", "50001 8192")
    node(tmp_path, "udp", MIRRORED, files={"/etc/llttab": table}, ports=narrow("eth1", "eth2"))
    found = {name: pair for name, pair in values(planned(tmp_path, "infoscale-fss-udp")).items() if "file:" in name}
    assert found == {"file:/etc/llttab:link.b.mtu": ("8192", "1472")}


def test_two_lines_of_one_tag_are_not_guessed_between(tmp_path: Path) -> None:
    table = TABLE.format("udp").replace("link b", "link a")
    node(tmp_path, "udp", MIRRORED, files={"/etc/llttab": table}, ports=narrow("eth1", "eth2"))
    found = [one.reason for one in planned(tmp_path, "infoscale-fss-udp").skipped if "file:" in one.tunable]
    assert set(found) == {"2 link lines have the tag a: give each its own"}
