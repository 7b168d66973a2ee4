"""systemd services: one command for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.system.services import Service, read_services, show_command
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from tests.cases import read_cases
from tests.trees import host_of, make_command, make_tree

UNITS = ("beegfs-storage.service", "nginx.service", "nope.service")
DATA = read_cases(__file__, Completed, Missing)

SHOWN = DATA["SHOWN"]
STORAGE = Service("beegfs-storage.service", 712, "bind", "0-1", "0-3,8", "0-3,8", "0-1")
NGINX = Service("nginx.service", None, None, None, None, None, None)


def look(
    answer: Completed | Missing, files: dict[str, str] | None = None
) -> tuple[tuple[Service, ...], dict[str, str]]:
    commands = RecordedCommands({show_command(UNITS): answer})
    unknown = Unknowns()
    contents = {path: text.encode() for path, text in (files or {}).items()}
    services = read_services(Host(MemoryFiles(contents), commands), UNITS, unknown)
    return services, {entry.fact: entry.why for entry in unknown.listed()}


def test_all_units_by_one_command(tmp_path: Path) -> None:
    status = "Name:\tx\nCpus_allowed_list:\t0-3,8\nMems_allowed_list:\t0-1\n"
    root = make_tree(tmp_path / "root", {"/proc/712/status": status, "/answer": SHOWN})
    log = tmp_path / "log"
    make_command(tmp_path / "bin", "systemctl", f'echo "$@" >> {log}; cat {root}/answer')
    unknown = Unknowns()
    assert read_services(host_of(root, tmp_path / "bin"), UNITS, unknown) == (STORAGE, NGINX)
    (asked,) = log.read_text().splitlines()
    assert asked.endswith("-- beegfs-storage.service nginx.service nope.service")
    assert [(entry.fact, entry.why) for entry in unknown.listed()] == [
        ("services.nope.service", "systemd says not-found")
    ]


def test_a_process_that_has_gone_is_unknown() -> None:
    services, unknown = look(Completed(0, SHOWN, ""))
    assert services[0].cpus_allowed is None
    assert {"services.beegfs-storage.service.cpus_allowed", "services.beegfs-storage.service.mems_allowed"} < set(
        unknown
    )


def test_affinity_that_follows_the_mask() -> None:
    (service,), _ = look(Completed(0, "Id=a.service\nLoadState=loaded\nCPUAffinityFromNUMA=yes\nCPUAffinity=0-3\n", ""))
    assert (service.cpu_affinity, service.numa_policy, service.main_pid) == ("numa", None, None)


@pytest.mark.parametrize(("answer", "why"), DATA["without_systemd_the_services_are"])
def test_without_systemd_the_services_are_unknown(answer: Completed | Missing, why: str) -> None:
    services, unknown = look(answer)
    assert services == ()
    assert why in unknown["services"]


def test_no_units_ask_for_nothing() -> None:
    unknown = Unknowns()
    assert read_services(Host(MemoryFiles({}), RecordedCommands({})), (), unknown) == ()
    assert not unknown.listed()


@pytest.mark.parametrize("text", ["", "\n\n\n", "garbage", "Id=", "MainPID=x\nLoadState=loaded\nId=a"])
def test_odd_answers(text: str) -> None:
    services, _ = look(Completed(0, text, ""))
    assert [service.main_pid for service in services] in ([], [None])
