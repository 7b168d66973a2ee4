"""Agents and packages of clouds are named where they write what a plan writes, with the value; elsewhere they are not.

The files are as their sources ship them: WALinuxAgent, azure-vm-utils, GoogleCloudPlatform guest-configs and
guest-agent, amazon-ec2-net-utils, oci-utils.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor.host import Host, MemoryFiles, NoCommands, ReadFile
from advisor.planning.records import Change
from advisor.transaction.conflicts import OtherWriter, writers_beside
from tests.cases import cases

CASES = cases(__file__)

INVOCATION = "/run/systemd/units/invocation:"
EC2 = {"/usr/lib/systemd/network/80-ec2.network": "[Match]\nDriver=ena ixgbevf vif\n\n[Link]\nMTUBytes=9001\n"}
OCI_CONFIG, OTHERS_OFF = "/etc/oci-utils.conf.d/00.conf", "[iscsi]\nenabled=false\n[vnic]\nenabled=true\n"


def change(identity: str, after: str, persist: str | None = None) -> Change:
    return Change(identity, "1", after, persist, None, "none", "now", "W.", "H.", ("S",), "p", ReadFile("/x"), (), ())


def writers(
    files: Mapping[str, str], *changes: Change, running: str | None = None, paths: tuple[str, ...] = ()
) -> dict[str, OtherWriter]:
    links = {} if running is None else {INVOCATION + running: "0123"}
    content = {path: text.encode() for path, text in files.items()}
    host = Host(MemoryFiles(content, links, frozenset()), NoCommands(), is_root=True)
    return {one.who: one for one in writers_beside(host, changes, paths)}


@pytest.mark.parametrize(
    ("files", "concerned", "who", "otherwise", "named"), CASES["each is named where it writes such a value"]
)
def test_each_is_named_where_it_writes_such_a_value(
    files: Mapping[str, str], concerned: list[str], who: str, otherwise: str | None, named: str
) -> None:
    found = writers(files, change(*concerned))[who]
    assert named in found.note
    assert found.otherwise == (None if otherwise is None else {concerned[0]: otherwise})
    assert not writers(files, change("sysctl:vm.swappiness", "1"))
    assert not writers({}, change(*concerned))


@pytest.mark.parametrize(("files", "concerned"), CASES["who sets no other value is not named"])
def test_who_sets_no_other_value_is_not_named(files: Mapping[str, str], concerned: list[str]) -> None:
    assert not writers(files, change(*concerned))


@pytest.mark.parametrize(("files", "concerned", "unit"), CASES["an agent that does not run is not named"])
def test_an_agent_that_does_not_run_is_not_named(files: Mapping[str, str], concerned: list[str], unit: str) -> None:
    assert writers(files, change(*concerned), running=unit)
    assert not writers(files, change(*concerned), running="ssh.service")


def test_the_links_of_other_drivers_are_left_alone_by_amazons_file() -> None:
    files = {path: text.encode() for path, text in EC2.items()}
    links = {"/sys/class/net/eth9/device/driver": "/sys/bus/pci/drivers/mlx5_core"}
    host = Host(MemoryFiles(files, links, frozenset()), NoCommands(), is_root=True)
    assert writers_beside(host, (change("link:eth9:mtu", "1500"),), ()) == ()


def test_a_file_that_ec2_net_utils_writes() -> None:
    path = "/etc/sysconfig/network-scripts/ifcfg-eth1"
    files = {path: "DEVICE=eth1\nBOOTPROTO=dhcp\nEC2SYNC=yes\n"}
    found = writers(files, change("link:eth1:mtu", "1500", path), paths=(path,))["ec2-net-utils"]
    assert found.files == (path,)
    assert "EC2SYNC=no" in found.note
    quiet = {path: "DEVICE=eth1\nEC2SYNC=no\n"}
    assert not writers(quiet, change("link:eth1:mtu", "1500", path), paths=(path,))
