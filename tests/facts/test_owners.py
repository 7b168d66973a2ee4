"""Which tuning daemons and network managers are at work, by what they leave in /run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor.facts.network.link_claim import read_owners
from advisor.host import Host, MemoryFiles, NoCommands
from tests.cases import read_cases

INVOCATION = "/run/systemd/units/invocation:"


def host(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> Host:
    return Host(MemoryFiles(files, links or {}, frozenset()), NoCommands(), is_root=True)


DATA = read_cases(__file__)


@pytest.mark.parametrize(("files", "running", "managers"), DATA["network_managers"])
def test_network_managers(files: Mapping[str, bytes], running: str | None, managers: tuple[str, ...]) -> None:
    links = {} if running is None else {INVOCATION + running: "0123"}
    assert read_owners(host(files, links)).network_managers == managers


@pytest.mark.parametrize(("pid", "profile"), [("71", "throughput-performance"), ("72", None), ("x", None), ("", None)])
def test_tuned_counts_while_it_runs(pid: str, profile: str | None) -> None:
    files = {
        "/etc/tuned/active_profile": b"throughput-performance\n",
        "/run/tuned/tuned.pid": f"{pid}\n".encode(),
        "/proc/71/stat": b"71",
    }
    assert read_owners(host(files)).tuned_profile == profile


def test_irqbalance_by_its_socket() -> None:
    assert read_owners(host({"/run/irqbalance/irqbalance71.sock": b""})).irqbalance
    assert not read_owners(host({"/run/other": b""})).irqbalance


@pytest.mark.parametrize("place", ["/run/saptune/saved_state", "/var/lib/saptune/saved_state"])
def test_saptune_by_what_it_keeps_of_before(place: str) -> None:
    files = {f"{place}/{name}": b"" for name in ("2382421", "1984787")}
    assert read_owners(host(files)).saptune_notes == ("1984787", "2382421")
    assert read_owners(host({"/etc/saptune/override/2382421": b""})).saptune_notes == ()


def test_power_profiles_daemon_by_its_control_group() -> None:
    group = "/sys/fs/cgroup/system.slice/power-profiles-daemon.service/cgroup.procs"
    assert read_owners(host({group: b"71\n"})).power_profiles_daemon
    assert not read_owners(host({"/usr/libexec/power-profiles-daemon": b""})).power_profiles_daemon


@pytest.mark.parametrize(("file", "running", "agents"), DATA["agents_of_configuration_managers"])
def test_agents_of_configuration_managers(file: str, running: str | None, agents: tuple[str, ...]) -> None:
    links = {} if running is None else {INVOCATION + running: "0123"}
    assert read_owners(host({file: b""}, links)).agents == agents
