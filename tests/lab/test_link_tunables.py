"""Rings, channels, coalescing, pause, offloads, qdiscs and queues of real drivers, judged by ethtool, ip and tc."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

import pytest

from tests.cases import cases

from .conftest import refuse_to_run
from .guest import CannotRunError, Guest, Machine
from .hardware import Hardware, Link
from .road import AT_ONCE, advisor, goes_in_and_out, out, profile, script_puts_back

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

HARDWARE = Hardware(
    nodes=1,
    cpus=2,
    memory_mib=1024,
    nvme=(),
    links=(Link(node=0), Link("e1000e", node=0), Link("virtio-net-pci", wire="user")),
)

STATE = CASES["STATE"]

# vmxnet3, e1000e and veth: between them they have one of each kind.
VALUES = CASES["VALUES"]
RENAMED = {"link:eth2:txqueuelen": "77", "link:eth2:feature.rx-gro": "off"}


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A guest of its own, thrown away afterwards."""
    if os.environ.get("ADVISOR_LAB") == "off":
        pytest.skip("the lab is switched off (ADVISOR_LAB=off)")
    guest = Guest(HARDWARE)
    try:
        guest.boot()
    except CannotRunError as error:
        refuse_to_run(error)
    make_veth(guest)
    yield guest
    guest.stop()


def make_veth(guest: Machine) -> None:
    queues = "numtxqueues 4 numrxqueues 4"
    out(guest, f"ip link add va {queues} type veth peer name vb {queues} && ip link set va up && ip link set vb up")


def state(guest: Machine) -> list[str]:
    # e1000e negotiates again when its pause settings change.
    out(
        guest,
        "udevadm settle; for n in 1 2 3 4 5 6 7 8 9; do grep -q 1 /sys/class/net/eth1/carrier && break; sleep 1; done",
    )
    return out(guest, STATE).splitlines()


def put_profile(guest: Machine, values: Mapping[str, str], name: str = "links") -> str:
    guest.put(f"/etc/advisor/profiles/{name}.toml", profile(name, ((*pair, "") for pair in values.items())))
    return name


def apply(guest: Machine, values: Mapping[str, str], *, code: int = 0, name: str = "links") -> str:
    done = advisor(guest, "apply", put_profile(guest, values, name), *AT_ONCE, code=code)
    return done.stdout + done.stderr


def judge(guest: Machine, *, virtual: bool = True) -> None:
    """Whether `VALUES` are active, by other eyes than ours."""
    rings = out(guest, "ethtool -g eth0").partition("Current hardware settings:")[2].split()
    assert (rings[1], rings[7], rings[9]) == ("2048", "1024", "1024"), rings
    assert out(guest, "ethtool -g eth1").partition("Current hardware settings:")[2].split()[1] == "512"
    features = out(guest, "ethtool -k eth0")
    for line in (
        "large-receive-offload: off\n",
        "tx-checksum-ip-generic: off\n",
        "tx-tcp-segmentation: off [requested on]\n",
    ):
        assert line in features
    qdiscs = {one["dev"]: one for one in json.loads(out(guest, "tc -j qdisc show")) if one.get("root")}
    assert (qdiscs["eth0"]["kind"], qdiscs["eth1"]["kind"]) == ("fq", "fq_codel")
    links = {one["ifname"]: one for one in json.loads(out(guest, "ip -j -d link show"))}
    assert (links["eth0"]["txqlen"], links["eth0"]["qdisc"]) == (5000, "fq")
    queues = "/sys/class/net/eth0/queues"
    assert out(guest, f"cat {queues}/rx-0/rps_cpus {queues}/rx-1/rps_flow_cnt {queues}/tx-1/xps_cpus").split() == [
        *("3", "256", "2")
    ]
    assert "\nrx-usecs: 50\n" in out(guest, "ethtool -c eth1")
    assert "Autonegotiate:\toff\n" in out(guest, "ethtool -a eth1")
    if virtual:
        assert out(guest, "ethtool -l va").partition("Current hardware settings:")[2].split()[1] == "2"
        assert "generic-receive-offload: on\n" in out(guest, "ethtool -k va")


def test_every_kind_goes_in_and_out_without_a_trace(machine: Machine) -> None:
    put_profile(machine, VALUES)
    before = state(machine)
    planned = advisor(machine, "plan", "links", "--json", user="plain").stdout
    assert {one["tunable"] for one in json.loads(planned)["changes"]} == set(VALUES)
    assert state(machine) == before
    goes_in_and_out(machine, "links", lambda: judge(machine), lambda: state(machine))


@pytest.mark.parametrize("shell", ["dash", "busybox sh"])
def test_the_script_puts_all_back_with_nothing_installed(machine: Machine, shell: str) -> None:
    put_profile(machine, VALUES)
    script_puts_back(machine, "links", shell, lambda: judge(machine), lambda: state(machine))


REFUSED = CASES["REFUSED"]


def test_what_a_driver_would_not_take_is_refused_beforehand(machine: Machine) -> None:
    values = {"link:eth0:txqueuelen": "7"} | {name: value for name, (value, _) in REFUSED.items()}
    put_profile(machine, values)
    before = state(machine)
    planned = json.loads(advisor(machine, "plan", "links", "--json", code=3).stdout)
    skipped = {one["tunable"]: one for one in planned["skipped"]}
    assert {name: one["state"] for name, one in skipped.items()} == dict.fromkeys(REFUSED, "blocked")
    assert [name for name, (_, words) in REFUSED.items() if words not in skipped[name]["reason"]] == []
    apply(machine, values, code=3)
    assert state(machine) == before


@pytest.mark.parametrize(("values", "words"), CASES["what the kernel refuses is put back in its words"])
def test_what_the_kernel_refuses_is_put_back_in_its_words(machine: Machine, values: dict[str, str], words: str) -> None:
    both = {"link:eth0:qdisc": "pfifo", **values}
    put_profile(machine, both)
    before = state(machine)
    said = apply(machine, both, code=4)
    assert words in said
    assert "everything has been rolled back" in said
    assert state(machine) == before


def test_what_is_applied_outlasts_a_reboot_and_then_goes(machine: Machine) -> None:
    real = {name: value for name, value in VALUES.items() if ":va:" not in name}
    put_profile(machine, real)
    put_profile(machine, RENAMED, "renamed")
    before = state(machine)
    apply(machine, real)
    apply(machine, RENAMED, name="renamed")
    # The rules find a port by its own address, whatever its name is to be.
    rename = '"[Match]\\nMACAddress=52:54:00:1a:b0:02\\nDriver=virtio_net\\n[Link]\\nName=mgmt0\\n"'
    out(machine, f"printf {rename} > /etc/systemd/network/09-name.link")
    machine.reboot()
    make_veth(machine)
    judge(machine, virtual=False)
    (link,) = json.loads(out(machine, "ip -j link show mgmt0"))
    assert link["txqlen"] == 77
    assert "generic-receive-offload: off\n" in out(machine, "ethtool -k mgmt0")
    out(machine, "rm /etc/systemd/network/09-name.link; ip link set mgmt0 down; ip link set mgmt0 name eth2 up")
    advisor(machine, "verify")
    advisor(machine, "rollback", "--all")
    after = state(machine)
    assert [line for line in after if line not in before] == []
