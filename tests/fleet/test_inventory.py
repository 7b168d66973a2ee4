"""Inventories, good and bad: what Ansible makes of them is reported, and nothing in one reaches a shell."""

from __future__ import annotations

import json
from pathlib import Path

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
)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ansible.cfg").touch()
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "ansible.cfg"))


GOOD = """
[storage]
node01 ansible_host=192.0.2.1 ansible_user=keeper
node02 ansible_host=192.0.2.1 ansible_port=22
node03 ansible_host="{{ inventory_hostname }}.example"
node04 ansible_port=2222 ansible_host=192.0.2.1
[cluster:children]
storage
"""


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
