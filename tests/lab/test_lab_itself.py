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
    def test_two_numa_nodes_at_distance_21(self, lab: Host) -> None:
        assert lab.file("/sys/devices/system/node/online").content_string == "0-1\n"
        assert lab.file("/sys/devices/system/node/node0/distance").content_string == "10 21\n"
        assert lab.file("/sys/devices/system/node/node1/cpulist").content_string == "2-3\n"

    def test_three_drives_on_each_node(self, guest: Machine) -> None:
        listing = guest.run("cd /sys/block; for d in nvme*; do echo $(cat $d/device/serial $d/device/numa_node); done")
        found = dict(line.split() for line in listing.check().stdout.splitlines())
        assert found == {f"LAB-N{node}-{index}": str(node) for node in (0, 1) for index in range(3)}

    def test_every_drive_has_queue_interrupts(self, guest: Machine) -> None:
        queues = re.findall(r"\bnvme(\d)q([1-9])\b", guest.get("/proc/interrupts").decode())
        assert {drive for drive, _ in queues} == set("012345")
        assert {queue for _, queue in queues} == set("1234")

    @pytest.mark.parametrize(("link", "node"), [("eth0", "0"), ("eth1", "1"), ("eth2", "-1")])
    def test_links_are_on_their_nodes(self, lab: Host, link: str, node: str) -> None:
        # A virtio link's device is a virtio one, and that one's parent is the PCI function.
        pci = f"/sys/class/net/{link}/device" + ("/.." if node == "-1" else "")
        assert lab.file(f"{pci}/numa_node").content_string.strip() == node

    def test_links_have_carrier(self, lab: Host) -> None:
        for link in ("eth0", "eth1", "eth2"):
            assert lab.file(f"/sys/class/net/{link}/carrier").content_string.strip() == "1"

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

    def test_rings_and_channels_can_be_read(self, guest: Machine) -> None:
        assert "RX:\t\t4096" in guest.run("ethtool -g eth0").check().stdout
        assert "Combined:\t4" in guest.run("ethtool -l eth0").check().stdout


class TestSystem:
    def test_systemd_runs_and_nothing_failed(self, lab: Host) -> None:
        assert lab.file("/proc/1/comm").content_string == "systemd\n"
        assert lab.run("systemctl --failed --plain --no-legend").stdout == ""
        assert lab.run("systemctl is-system-running").stdout == "running\n"

    def test_working_tree_is_there_and_read_only(self, guest: Machine) -> None:
        assert guest.get("/src/tests/lab/test_lab_itself.py") == Path(__file__).read_bytes()
        assert guest.run("touch /src/x").rc != 0

    def test_changes_of_the_working_tree_are_seen_at_once_in_a_guest_that_is_kept_up(self, guest: Machine) -> None:
        """The unit of such a guest, done by hand: this one was started without the word that switches it on."""
        here = Path(__file__).parent / "changing.tmp"
        unit = "/etc/systemd/system/src-live.service"
        assert "ConditionKernelCommandLine=lab.live-src\n" in guest.get(unit).decode()
        guest.run(f"set -e; sed -n s/^ExecStart=//p {unit} | while read -r line; do $line; done").check()
        try:
            for content in (b"one", b"another"):
                here.write_bytes(content)
                assert guest.get("/src/tests/lab/changing.tmp") == content
        finally:
            here.unlink()
            guest.run("umount /src && systemctl restart src.mount").check()

    def test_dependencies_can_be_imported(self, guest: Machine) -> None:
        modules = "typer, rich, msgspec, pyroute2, psutil, jinja2"
        guest.run(["python3", "-c", f"import {modules}"], env={"PYTHONPATH": "/opt/advisor-deps"}).check()

    def test_unit_is_bound_to_a_node(self, guest: Machine, lab: Host) -> None:
        guest.run("lab-setup service").check()
        drop_in = "/etc/systemd/system/demo-storage.service.d/50-numa.conf"
        guest.put(drop_in, "[Service]\nNUMAPolicy=bind\nNUMAMask=1\nCPUAffinity=numa\n")
        try:
            guest.run("systemctl daemon-reload && systemctl restart demo-storage").check()
            assert lab.service("demo-storage").is_running
            pid = lab.run("systemctl show -P MainPID demo-storage").stdout.strip()
            assert "Cpus_allowed_list:\t2-3\n" in lab.file(f"/proc/{pid}/status").content_string
            # 32 MiB of its own, all on node 1; pages of shared files may lie anywhere.
            held = [line for line in lab.file(f"/proc/{pid}/numa_maps").content_string.splitlines() if "anon=" in line]
            pages = {node: sum(int(n) for n in re.findall(rf"\bN{node}=(\d+)", "\n".join(held))) for node in (0, 1)}
            assert pages[1] >= 8192
            assert pages[0] < pages[1] / 10
        finally:
            guest.run(["rm", "-r", drop_in.rpartition("/")[0]]).check()
            guest.run("systemctl daemon-reload && systemctl restart demo-storage").check()

    def test_arrays(self, guest: Machine, lab: Host) -> None:
        guest.run("lab-setup md degraded", timeout=180).check()
        assert lab.mount_point("/srv/node0").filesystem == "xfs"
        assert lab.mount_point("/srv/span").filesystem == "ext4"
        assert lab.file("/sys/block/md0/md/chunk_size").content_string.strip() == "65536"
        assert lab.file("/sys/block/md2/md/degraded").content_string.strip() == "1"
        assert "sunit=16     swidth=32" in guest.run("xfs_info /srv/node0").check().stdout
        guest.run("lab-setup no-md", timeout=180).check()
        assert lab.file("/proc/mdstat").content_string.count(" : active") == 0


class TestAgent:
    def test_outputs_status_and_input(self, guest: Machine) -> None:
        result = guest.run("cat; echo problem >&2; exit 7", input="text")
        assert (result.rc, result.stdout, result.stderr) == (7, "text", "problem\n")

    def test_signal_is_128_and_its_number(self, guest: Machine) -> None:
        assert guest.run("kill -9 $$").rc == 137

    def test_timeout_kills_the_children_too(self, guest: Machine) -> None:
        result = guest.run("sleep 4321 & sleep 4321", timeout=1)
        assert (result.rc, result.timed_out) == (124, True)
        assert guest.run(["pgrep", "-f", "sleep 4321"]).rc == 1

    def test_background_process_stays(self, guest: Machine) -> None:
        assert guest.run("sleep 4322 & echo started").check().seconds < 30
        guest.run(["pkill", "-f", "sleep 4322"]).check()

    def test_files_travel_unchanged(self, guest: Machine) -> None:
        data = bytes(range(256)) * 4096
        guest.put("/tmp/deep/er/file", data, mode=0o640)
        assert guest.get("/tmp/deep/er/file") == data
        assert guest.run("stat -c %a /tmp/deep/er/file").stdout == "640\n"

    def test_absent_file_is_an_error(self, guest: Machine) -> None:
        with pytest.raises(AgentError) as caught:
            guest.get("/no/such/file")
        assert caught.value.errno == 2

    def test_ordinary_user(self, guest: Machine) -> None:
        assert guest.run("id -un; echo $HOME; pwd", user="plain").stdout == "plain\n/home/plain\n/home/plain\n"
        assert guest.run("sysctl -w vm.swappiness=1", user="plain").rc != 0


class TestLltconfig:
    @pytest.fixture(autouse=True)
    def _installed(self, guest: Machine) -> None:
        guest.run("lab-setup no-llt llt").check()

    def test_query_is_the_published_sample(self, guest: Machine) -> None:
        assert guest.run("lltconfig -F query").check().stdout == FLOW_QUERY

    def test_other_spelling(self, guest: Machine) -> None:
        manual = {"LLT_STANDIN_SPELLING": "rporthighwater"}
        stdout = guest.run("lltconfig -F query", env=manual).stdout
        assert stdout == FLOW_QUERY.replace("rporthiswater", "rporthighwater")

    def test_setting_is_silent_and_kept(self, guest: Machine) -> None:
        result = guest.run("lltconfig -F highwater:2000 && lltconfig -F rporthighwater:3000")
        assert (result.rc, result.stdout, result.stderr) == (0, "", "")
        shown = guest.run("lltconfig -F query").stdout
        assert "  highwater = 2000\n" in shown
        assert "  rporthiswater = 3000\n" in shown

    @pytest.mark.parametrize(
        "setting", ["nonsense:1", "highwater:800", "lowwater:1000", "rporthighwater:1", "highwater:-5", "highwater"]
    )
    def test_refusals_change_nothing(self, guest: Machine, setting: str) -> None:
        result = guest.run(["lltconfig", "-F", setting])
        assert (result.rc, result.stdout) == (1, "")
        assert result.stderr.startswith("lltconfig: ")
        assert guest.run("lltconfig -F query").stdout == FLOW_QUERY

    def test_start_reads_llttab(self, guest: Machine) -> None:
        guest.run("echo 'set-flow highwater:2000' >>/etc/llttab && lltconfig -F highwater:1500").check()
        assert "  highwater = 1500\n" in guest.run("lltconfig -F query").stdout
        guest.run("lltconfig -c").check()
        assert "  highwater = 2000\n" in guest.run("lltconfig -F query").stdout

    def test_status(self, guest: Machine) -> None:
        assert guest.run("lltconfig").check().stdout == "LLT is running\n"
        assert "eth0   UP" in guest.run("lltstat -nvv").check().stdout


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
