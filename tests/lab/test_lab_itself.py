"""Is the lab what it claims to be? Judged by the guest's kernel, its systemd and testinfra."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .guest import AgentError

if TYPE_CHECKING:
    from testinfra.host import Host

    from .guest import Machine

FLOW_QUERY = """\
Current LLT flow control values (in packets):
  lowwater = 800
  highwater = 1000
  rportlowwater = 800
  rporthiswater = 1000
  largepktlen = 1024
  window = 50
  ackval = 10
  sws = 40
  linkburst = 32
"""


class TestHardware:
    def test_nodes_drives_and_links(self, guest: Machine, lab: Host) -> None:
        assert lab.file("/sys/devices/system/node/node0/distance").content_string == "10 21\n"
        assert lab.file("/sys/devices/system/node/node1/cpulist").content_string == "2-3\n"
        listing = guest.run("cd /sys/block; for d in nvme*; do echo $(cat $d/device/serial $d/device/numa_node); done")
        found = dict(line.split() for line in listing.check().stdout.splitlines())
        assert found == {f"LAB-N{node}-{index}": str(node) for node in (0, 1) for index in range(3)}
        queues = re.findall(r"\bnvme(\d)q([1-9])\b", guest.get("/proc/interrupts").decode())
        assert {*queues} == {(drive, queue) for drive in "012345" for queue in "1234"}
        # A virtio link's device is a virtio one, and that one's parent is the PCI function.
        nodes = (
            "cd /sys/class/net; cat eth0/device/numa_node eth1/device/numa_node eth2/device/../numa_node eth?/carrier"
        )
        assert guest.run(nodes).check().stdout.split() == ["0", "1", "-1", "1", "1", "1"]
        assert "Combined:\t4" in guest.run("ethtool -l eth0").check().stdout

    def test_jumbo_frames_cross_the_wire(self, guest: Machine) -> None:
        guest.run("lab-setup peer").check()
        try:
            guest.run("ip link set eth0 mtu 9000; ip -n peer link set eth1 mtu 9000").check()
            ping = "ping -n -q -c 3 -i 0.3 -W 5 -M do -s 8972 192.0.2.2"
            assert guest.run(ping).rc == 0
            guest.run("ip link set eth0 mtu 1500").check()
            assert guest.run(ping).rc == 1
        finally:
            guest.run("ip link set eth0 mtu 1500; ip -n peer link set eth1 mtu 1500; lab-setup no-peer").check()


class TestSystem:
    def test_systemd_runs_and_nothing_failed(self, lab: Host) -> None:
        assert lab.file("/proc/1/comm").content_string == "systemd\n"
        assert lab.run("systemctl --failed --plain --no-legend").stdout == ""
        assert lab.run("systemctl is-system-running").stdout == "running\n"

    def test_working_tree_is_there_and_read_only(self, guest: Machine) -> None:
        assert guest.get("/src/tests/lab/test_lab_itself.py") == Path(__file__).read_bytes()
        assert guest.run("touch /src/x").rc != 0


class TestAgent:
    def test_outputs_status_input_and_files(self, guest: Machine) -> None:
        result = guest.run("cat; echo problem >&2; exit 7", input="text")
        assert (result.rc, result.stdout, result.stderr) == (7, "text", "problem\n")
        assert guest.run("kill -9 $$").rc == 137
        data = bytes(range(256)) * 4096
        guest.put("/tmp/deep/er/file", data, mode=0o640)
        assert guest.get("/tmp/deep/er/file") == data
        assert guest.run("stat -c %a /tmp/deep/er/file").stdout == "640\n"
        with pytest.raises(AgentError) as caught:
            guest.get("/no/such/file")
        assert caught.value.errno == 2
        assert guest.run("sysctl -w vm.swappiness=1", user="plain").rc != 0

    def test_timeout_kills_the_children_too(self, guest: Machine) -> None:
        result = guest.run("sleep 4321 & sleep 4321", timeout=1)
        assert (result.rc, result.timed_out) == (124, True)
        assert guest.run(["pgrep", "-f", "sleep 4321"]).rc == 1


def test_the_stand_in_of_lltconfig(guest: Machine) -> None:
    guest.run("lab-setup no-llt llt").check()
    assert guest.run("lltconfig -F query").check().stdout == FLOW_QUERY
    refused = [*("nonsense:1", "highwater:800", "lowwater:1000", "rporthighwater:1", "highwater:-5", "highwater")]
    said = guest.run(f"for one in {' '.join(refused)}; do lltconfig -F $one && echo taken; done")
    assert (said.stdout, said.stderr.count("lltconfig: ")) == ("", len(refused))
    assert guest.run("lltconfig -F query").stdout == FLOW_QUERY
    guest.run("lltconfig -F highwater:3000 && echo 'set-flow highwater:2000' >>/etc/llttab").check()
    assert "  highwater = 3000\n" in guest.run("lltconfig -F query").stdout
    guest.run("lltconfig -c").check()
    assert "  highwater = 2000\n" in guest.run("lltconfig -F query").stdout
    assert "eth0   UP" in guest.run("lltstat -nvv; lab-setup no-llt").check().stdout


class TestPower:
    @pytest.mark.thorough  # the road reboots as well
    def test_reboot_keeps_files_and_loses_the_rest(self, guest: Machine, lab: Host) -> None:
        guest.run("lab-setup no-llt llt md; lltconfig -F highwater:2000; lltconfig -F query", timeout=180).check()
        guest.run("echo kept >/etc/lab-kept; sysctl -q -w vm.dirty_ratio=33; echo kept >/srv/node0/kept").check()
        identity = guest.get("/proc/sys/kernel/random/boot_id")
        guest.reboot()
        assert guest.get("/proc/sys/kernel/random/boot_id") != identity
        assert lab.file("/etc/lab-kept").content_string == "kept\n"
        assert lab.file("/srv/node0/kept").content_string == "kept\n"
        assert lab.sysctl("vm.dirty_ratio") == 20
        assert guest.run("lltconfig -F query").stdout == FLOW_QUERY
        guest.run("lab-setup no-md no-llt; rm /etc/lab-kept", timeout=180).check()

    @pytest.mark.thorough  # the crash matrix cuts the power as well
    def test_power_cut_keeps_what_was_flushed(self, guest: Machine, lab: Host) -> None:
        guest.put("/etc/lab-flushed", "flushed\n")
        guest.power_cut()
        guest.boot()
        assert lab.file("/etc/lab-flushed").content_string == "flushed\n"
        assert "recovery complete" in lab.run("dmesg").stdout
        guest.run("rm /etc/lab-flushed").check()
