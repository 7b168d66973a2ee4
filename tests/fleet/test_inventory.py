"""Inventories, good and bad: what Ansible makes of them is reported, and nothing in one reaches a shell."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InvalidInputError
from advisor.fleet.inventory import (
    Access,
    Inventory,
    InventoryHost,
    file_name,
    find_duplicates,
    parse_inventory,
    read_hosts,
    rollback_command,
)
from tests.cases import read_cases
from tests.trees import make_command

DATA = read_cases(__file__)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ansible.cfg").touch()
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "ansible.cfg"))


GOOD = DATA["GOOD"]


def write(place: Path, text: str) -> Inventory:
    place.write_text(text)
    return Inventory((str(place),))


def test_hosts_with_their_groups_and_one_address_under_two_names(tmp_path: Path) -> None:
    found = read_hosts(write(tmp_path / "inventory", GOOD))
    assert found[0] == InventoryHost("node01", "192.0.2.1", None, "keeper", None, ("storage", "cluster"))
    assert [one.address for one in found] == ["192.0.2.1", "192.0.2.1", None, "192.0.2.1"]
    assert find_duplicates(found) == (("node01", "node02"),)


def test_what_cannot_be_parsed_is_an_error_in_the_words_of_ansible(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"bad\.yml:2:1") as caught:
        read_hosts(write(tmp_path / "bad.yml", "all: [b\n"))
    assert caught.value.exit_code == 2


def test_no_host_is_an_error_and_so_is_a_limit_that_nothing_has(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="names no host"):
        read_hosts(write(tmp_path / "inventory", ""))
    sources = (str(tmp_path / "inventory"),)
    (tmp_path / "inventory").write_text(GOOD)
    with pytest.raises(InvalidInputError, match="node77: no such host or group"):
        read_hosts(Inventory(sources, "node01,node77"))
    with pytest.raises(InvalidInputError, match="leaves no host"):
        read_hosts(Inventory(sources, "node01:!node01"))


def test_an_inventory_that_is_not_there_and_none_at_all() -> None:
    with pytest.raises(InvalidInputError, match="no such inventory"):
        read_hosts(Inventory(("/nonexistent/inventory",)))
    with pytest.raises(InvalidInputError, match="no inventory"):
        read_hosts(Inventory(()))


def test_a_host_that_would_be_an_option_of_ssh_is_refused() -> None:
    for name in ("-oProxyCommand=true", "a\nb", ""):
        said = '{"_meta": {"hostvars": {"n": {"ansible_host": %s}}}, "g": {"hosts": ["n"]}}'
        with pytest.raises(InvalidInputError, match="no host can be called so"):
            parse_inventory(said % json.dumps(name))


def test_a_password_is_not_in_what_is_shown() -> None:
    assert "secret" not in repr(Inventory(("i",), None, Access(become_password="secret")))


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=15))
def test_a_name_becomes_one_file_name_and_no_two_the_same(name: str) -> None:
    made = file_name(name)
    assert "/" not in made
    assert not made.startswith(".")
    assert made.isascii()
    assert file_name(name + "x") != made


RECORDER = """
printf '%s\\n' "$0" "$@" >>"$LOG"
cat >>"$LOG"
"""
ODD = DATA["ODD"]


def typed(place: Path, name: str, inventory: Inventory) -> list[str]:
    """What reaches the program when a person pastes the command into a shell."""
    script = place / "it's a script.sh"
    script.write_text("echo of the script\n")
    for program in ("ssh", "ansible"):
        make_command(place / "bin", program, RECORDER)
    host = next(one for one in read_hosts(inventory) if one.name == name)
    log = place / "log"
    log.unlink(missing_ok=True)
    environment = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "LOG": str(log)}
    command = rollback_command(host, inventory, str(script))
    subprocess.run(["/bin/sh", "-c", command], env=environment, cwd=place, check=True, stdin=subprocess.DEVNULL)
    words = log.read_text().splitlines()
    return [Path(words[0]).name, *words[1:]]


def test_the_command_by_hand_goes_the_way_that_the_inventory_goes(tmp_path: Path) -> None:
    inventory = write(tmp_path / "inventory", ODD)
    end = ["sudo", "sh", "-s", "rollback", "echo of the script"]
    assert typed(tmp_path, "plain", inventory) == ["ssh", "192.0.2.1", *end]
    keyed = ["ssh", "-p", "2222", "-i", "/keys/my key", "keeper@192.0.2.2", *end]
    assert typed(tmp_path, "keyed", inventory) == keyed
    assert typed(tmp_path, "rooted", inventory) == ["ssh", "root@rooted", *end[1:]]
    proxy = ["-o", "ProxyJump=bastion", "-o", "ProxyCommand=nc; touch $(hacked)"]
    assert typed(tmp_path, "jump", inventory) == ["ssh", *proxy, "jump", *end]
    assert not (tmp_path / "hacked").exists()
    # Of two variables for the same thing Ansible takes the one with ssh in its name.
    assert typed(tmp_path, "both", inventory) == ["ssh", "-p", "2", "-i", "/keys/2", "b@192.0.2.4", *end]
    assert typed(tmp_path, "args", inventory) == ["ssh", "-o", "ProxyJump=bastion", "-4", "-6", "args", *end]
    assert typed(tmp_path, "passing", inventory) == ["ssh", "-p", "2222", "-J", "bastion", "passing", *end]
    own = msgspec.structs.replace(inventory, access=Access(user="me", private_key="/keys/own"))
    assert typed(tmp_path, "keyed", own) == ["ssh", "-p", "2222", "-i", "/keys/own", "me@192.0.2.2", *end]
    path = str(tmp_path / "it's a script.sh")
    words = ["-i", str(tmp_path / "inventory"), "box", "--become", "-m", "ansible.builtin.script"]
    assert typed(tmp_path, "box", inventory) == ["ansible", *words, "-a", f'"{path}" rollback']
    # What Ansible alone can resolve, or do.
    for name in ("template", "ordered"):
        words[2] = name
        assert typed(tmp_path, name, inventory) == ["ansible", *words, "-a", f'"{path}" rollback']
    words[4:4] = ["--user", "me", "--private-key", "/keys/own"]
    assert typed(tmp_path, "ordered", own) == ["ansible", *words, "-a", f'"{path}" rollback']


def test_a_user_that_would_be_an_option_of_ssh_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="ansible_user of node01"):
        read_hosts(write(tmp_path / "inventory", "node01 ansible_user=-oProxyCommand=x\n"))
