"""Each exported form, put to use by its own tool: the host ends as the plan says, and nothing of advisor has run."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import cases

from .guest import Machine
from .road import advisor, out

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

HEAD = CASES["HEAD"]
LINE = CASES["LINE"]
VALUES = CASES["VALUES"]
# Besides them what NetworkManager calls otherwise than the kernel, and what nmstate would widen.
WIRE = {"link:eth1:feature.rx-gro": "off", "link:eth1:feature.tx-tcp-segmentation": "off"}
# How each value is read by a hand that knows nothing of us, and what is wanted.
LOOK = CASES["LOOK"]
# Of what cloud-init does at a first start, the part that reads user data: not users, host keys and links of its own.
CLOUD = CASES["CLOUD"]
LOOK_WIRE = {
    "ethtool -k eth1 | sed -n 's/^generic-receive-offload: //p'": "off",
    "ethtool -k eth1 | sed -n 's/^.tx-tcp-segmentation: //p'": "off",
}
LINKS = [command for command in LOOK if "eth1" in command]
LIVE = "; ".join(LOOK)
# Debian 12 has no nmstate: `cargo install nmstatectl` makes one that runs there.
NMSTATECTL = os.environ.get("ADVISOR_NMSTATECTL")


@pytest.fixture(scope="module")
def wanted(guest: Machine) -> Iterator[Machine]:
    """The guest with the profiles, and everything as before afterwards."""
    for name, values in {"mixed": VALUES, "wire": VALUES | WIRE}.items():
        text = HEAD.replace('"mixed"', f'"{name}"') + "".join(LINE.format(*pair) for pair in values.items())
        guest.put(f"/etc/advisor/profiles/{name}.toml", text)
    yield guest
    out(guest, "rm -rf /etc/advisor /root/export")


@pytest.fixture
def host(wanted: Machine) -> Iterator[Machine]:
    before = out(wanted, LIVE)
    assert not set(before.splitlines()) & {"5123", "4000", "mq-deadline"}
    advisor(wanted, "rollback-script", "mixed", "-o", "/root/back.sh")
    out(wanted, "rm -rf /root/export")
    yield wanted
    # It knows the values before, and the files that each tool has made are named by their tests.
    wanted.run("sh /root/back.sh --force", timeout=60)
    out(wanted, "rm -f /root/back.sh; udevadm control --reload")
    assert out(wanted, LIVE) == before


def exported(guest: Machine, form: str, profile: str = "mixed") -> list[str]:
    done = advisor(guest, "profiles", "export", profile, "--format", form, "-o", "/root/export")
    return [line for line in done.stderr.splitlines() if line.startswith("left out")]


def in_force(guest: Machine, *commands: str) -> None:
    wanted = LOOK | LOOK_WIRE
    for command in commands or LOOK:
        assert out(guest, command).strip() == wanted[command], command


def test_files_act_at_once_and_after_a_restart(host: Machine) -> None:
    assert exported(host, "files") == []
    reported = json.loads(advisor(host, "profiles", "export", "mixed", "--format", "files", "--json").stdout)
    out(host, "cp -a /root/export/. /")
    files = " ".join(f"/{path}" for path in reported["files"])
    try:
        host.reboot()
        in_force(host)
    finally:
        out(host, f"rm -f {files}")


def test_the_script(host: Machine) -> None:
    assert exported(host, "shell") == []
    for verb in ("check", "apply --confirm-within 0", "verify"):
        done = host.run(f"sh /root/export/mixed.sh {verb}", timeout=300)
        assert done.rc == 0, done.stdout + done.stderr
    in_force(host)
    done = host.run("sh /root/export/mixed.sh rollback", timeout=300)
    assert done.rc == 0, done.stdout + done.stderr
    out(host, "rm -rf /var/lib/advisor")


def test_tuned_puts_it_in_force_and_takes_it_back(host: Machine) -> None:
    assert exported(host, "tuned") == []
    before = out(host, LIVE)
    out(host, "cp -r /root/export/mixed /etc/tuned/")
    try:
        done = host.run("systemctl start tuned && tuned-adm profile mixed", timeout=180)
        assert done.rc == 0, done.stdout + done.stderr
        in_force(host)
        done = host.run("tuned-adm verify", timeout=60)
        assert done.rc == 0, done.stdout + out(host, "tail -20 /var/log/tuned/tuned.log")
        out(host, "tuned-adm off")
        assert out(host, LIVE) == before
    finally:
        host.run("systemctl stop tuned; rm -rf /etc/tuned/mixed; : >/etc/tuned/active_profile", timeout=60)


def test_ansible_brings_it_about_and_finds_nothing_the_second_time(host: Machine) -> None:
    assert exported(host, "ansible") == []
    # Without looking for Pythons and copying each module to a file first: seconds per task under emulation.
    settings = "ANSIBLE_NOCOLOR=1 ANSIBLE_PIPELINING=1 ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3"
    play = f"cd /root/export && {settings} ansible-playbook -i localhost, -e target=localhost -c local"
    before = out(host, LIVE)
    looked = host.run(f"{play} --check --diff site.yml", timeout=900)
    assert looked.rc == 0, looked.stdout + looked.stderr
    assert "link:eth1:mtu is wanted to be 4000" in looked.stdout
    assert out(host, LIVE) == before
    try:
        done = host.run(f"{play} site.yml", timeout=900)
        assert done.rc == 0, done.stdout + done.stderr
        in_force(host)
        again = host.run(f"{play} site.yml", timeout=900)
        assert again.rc == 0
        assert "changed=0" in again.stdout, again.stdout
    finally:
        out(host, "cd /root/export/roles/mixed/files && find etc -type f -exec rm -f /{} + ; rm -rf /root/.ansible")


def test_cloud_init_takes_it_as_user_data(host: Machine) -> None:
    assert exported(host, "cloud-init") == []
    checked = host.run("cloud-init schema --config-file /root/export/user-data.yaml", timeout=120)
    assert checked.rc == 0, checked.stdout + checked.stderr
    seed, config = "/var/lib/cloud/seed/nocloud", "/etc/cloud/cloud.cfg.d/99-test.cfg"
    written = out(host, "sed -n 's/^  - path: //p' /root/export/user-data.yaml").split()
    try:
        out(host, f"mkdir -p {seed} && cp /root/export/user-data.yaml {seed}/user-data && touch {seed}/meta-data")
        host.put(config, CLOUD)
        # Each stage as its service runs it; the data lies below /var/lib/cloud, so nothing is asked over a link.
        for stage in ("init --local", "init", "modules --mode=config", "modules --mode=final"):
            done = host.run(f"cloud-init {stage}", timeout=900)
            assert done.rc == 0, done.stdout + done.stderr
        in_force(host)
    finally:
        host.run(f"rm -f {' '.join(written)}; rm -rf {config} /var/lib/cloud /run/cloud-init", timeout=60)


@pytest.fixture
def wire(host: Machine) -> Iterator[Machine]:
    """The host with eth1 in NetworkManager's hands."""
    unmanaged = out(host, "cat /etc/NetworkManager/conf.d/10-lab.conf")
    try:
        for command in (
            "systemctl stop systemd-networkd.socket systemd-networkd; rm -f /etc/NetworkManager/conf.d/10-lab.conf",
            "systemctl start NetworkManager",
            "nmcli --wait 90 connection add type ethernet con-name wire ifname eth1 "
            "ipv4.method manual ipv4.addresses 192.0.2.65/26 ipv6.method disabled",
            "nmcli --wait 90 connection up wire",
        ):
            host.run(command, timeout=240).check()
        yield host
    finally:
        host.run("nmcli connection delete wire; systemctl stop NetworkManager", timeout=60)
        host.put("/etc/NetworkManager/conf.d/10-lab.conf", unmanaged)
        host.reboot()


def test_networkmanager_keeps_what_it_has_words_for(wire: Machine) -> None:
    left = exported(wire, "networkmanager", "wire")
    assert {line.split()[2].partition(":")[0] for line in left} == {"sysctl", "block", "thp"}
    done = wire.run("sh /root/export/networkmanager.sh", timeout=300)
    assert done.rc == 0, done.stdout + done.stderr
    in_force(wire, *LINKS, *LOOK_WIRE)
    assert out(wire, "nmcli --get-values 802-3-ethernet.mtu connection show wire").strip() == "4000"


def sent(guest: Machine, source: str, destination: str) -> None:
    """A large file, in parts that the agent takes."""
    data, size = gzip.compress(Path(source).read_bytes()), 1 << 20
    for number, start in enumerate(range(0, len(data), size)):
        guest.put(f"{destination}.{number:03}", data[start : start + size])
    out(guest, f"cat {destination}.* | gzip -d >{destination} && chmod 755 {destination} && rm {destination}.*")


def holds(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is found."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(holds(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted)


@pytest.mark.skipif(not NMSTATECTL, reason="ADVISOR_NMSTATECTL names no binary of nmstatectl, and Debian 12 has none")
def test_nmstate_takes_it_and_shows_it(wire: Machine) -> None:
    left = [line.split()[2] for line in exported(wire, "nmstate", "wire")]
    assert {one.partition(":")[0] for one in left} == {"sysctl", "block", "thp", "link"}
    assert [one for one in left if one.startswith("link:")] == ["link:eth1:feature.tx-tcp-segmentation"]
    sent(wire, str(NMSTATECTL), "/usr/local/bin/nmstatectl")
    addresses = out(wire, "ip -4 -o addr show eth1")
    try:
        for command in (
            "nmstatectl validate state.yaml",
            "nmstatectl gc state.yaml",
            "nmstatectl apply --no-commit --timeout 60 state.yaml",
            "nmstatectl commit",
        ):
            done = wire.run(command, cwd="/root/export", timeout=300)
            assert done.rc == 0, command + done.stdout + done.stderr
        in_force(wire, *LINKS, *list(LOOK_WIRE)[:1])
        assert out(wire, "ip -4 -o addr show eth1") == addresses
        (state,) = yaml.safe_load(out(wire, "cat /root/export/state.yaml"))["interfaces"]
        (shown,) = json.loads(out(wire, "nmstatectl show --json eth1"))["interfaces"]
        assert holds(shown, state), shown
        # What it would have widened is as it was.
        assert "tx-tcp-segmentation: on" in out(wire, "ethtool -k eth1")
        assert out(wire, "nmcli --get-values 802-3-ethernet.mtu connection show wire").strip() == "4000"
    finally:
        out(wire, "rm -f /usr/local/bin/nmstatectl")
