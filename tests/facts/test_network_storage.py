"""What is seen of storage over the network: disks, mounts and targets, with protocol and links."""

from __future__ import annotations

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.remote.network_storage import NetworkStorage
from tests.articles.openfiler import NEW_KERNEL, Machine
from tests.cases import read_cases


def machine() -> Machine:
    made = Machine(NEW_KERNEL, 16)
    made.link("eth0", "10.0.2.15/24", default=True)
    made.link("eth1", "192.0.2.7/24")
    return made


DATA = read_cases(__file__, NetworkStorage)


@pytest.mark.parametrize(("kind", "options", "expected"), DATA["mounts"])
def test_mounts(kind: str, options: str, expected: NetworkStorage | None) -> None:
    made = machine()
    made.files["/proc/self/mountinfo"] += f"90 1 0:77 / /data rw - {kind} server:/x {options}\n"
    assert scan(made.host()).network_storage == (() if expected is None else (expected,))


@pytest.mark.parametrize(("transport", "protocol"), [("tcp", "tcp"), ("rdma", "rdma"), ("fc", None), ("loop", None)])
def test_namespaces_of_nvme_over_fabrics(transport: str, protocol: str | None) -> None:
    made = machine()
    place = "/sys/devices/virtual/nvme-fabrics/ctl/nvme0"
    made.block("nvme0n1", place, sectors=8192)
    made.files |= {f"{place}/transport": f"{transport}\n", f"{place}/address": "traddr=192.0.2.9,trsvcid=4420\n"}
    expected = (NetworkStorage("nvme", "nvme0n1", protocol, ("eth1",)),) if protocol else ()  # type: ignore[arg-type]
    assert scan(made.host()).network_storage == expected


def test_a_drive_on_pcie_is_local() -> None:
    made = machine()
    made.nvme(0, 0)
    assert scan(made.host()).network_storage == ()


def test_disks_of_sessions_and_exported_targets() -> None:
    made = machine()
    made.session(1, local="192.0.2.7", portal="192.0.2.20", disks=("sdb",))
    made.export("sdb", "192.0.2.7:3260")
    found = scan(made.host()).network_storage
    assert [(one.kind, one.name, one.links) for one in found] == [
        ("iscsi", "sdb", ("eth1",)),
        ("iscsi-target", "iqn.2004-04.com.example:storage.disk1", ("eth1",)),
    ]
