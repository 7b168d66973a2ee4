"""Which hosts an inventory names, asked of Ansible itself (``ansible-inventory --list``), in its words where it fails.

Whatever is an inventory to Ansible is one here: INI, YAML, a directory, a script, a plugin, ``host1,host2,``. Host
names and variables are data: they become arguments of Ansible and names of files, never words of a shell.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from advisor.errors import InvalidInputError, RefusedError
from advisor.host.patterns import lazy_regex
from advisor.i18n import N_, msg

_SECONDS: Final = 300.0  # a plugin may have to ask a cloud
_LONGEST_NAME: Final = 200  # of a quoted name and what is put behind it, a file name takes 255 bytes
_MESSAGE_LINES: Final = 12


class Access(msgspec.Struct, frozen=True):
    """How to get in, where that differs from what the inventory and ansible.cfg say; None leaves it to them.

    ``become`` True or False makes every host (none of them) become root. ``become_password`` is never written down: it
    goes to Ansible over its standard input. ``extra_vars`` are as after ``ansible-playbook -e``.
    """

    become: bool | None = None
    user: str | None = None
    private_key: str | None = None
    become_password: str | None = None
    extra_vars: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # A password must not reach a message or a report of a fault.
        return f"Access(become={self.become}, user={self.user!r})"


class Inventory(msgspec.Struct, frozen=True):
    """What follows ``-i``, each as Ansible takes it, and ``--limit``."""

    sources: tuple[str, ...]
    limit: str | None = None
    access: Access = Access()


class InventoryHost(msgspec.Struct, frozen=True):
    """A host of the inventory. ``address`` and ``port`` are what is connected to, None where a template or a plugin
    decides it; ``groups`` in natural order of the inventory, without ``all`` and ``ungrouped``."""

    name: str
    address: str | None
    port: int | None
    user: str | None
    connection: str | None
    groups: tuple[str, ...]
    variables: Mapping[str, str] = {}
    """Its plain ones (a text, a number), without Ansible's own, which may be passwords. Templates are not resolved."""


def file_name(host: str) -> str:
    """A host's name as the name of a file: quoted as in a URL, ``/`` and a leading dot included.

    Raises InvalidInputError for one that is too long for a file system.
    """
    quoted = quote(host.encode("utf-8", "surrogatepass"), safe="")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if not quoted or len(quoted) > _LONGEST_NAME:
        raise InvalidInputError(msg("inventory: {host!r}: too long a name for a host", host=host[:60]))
    return quoted


def find_ansible_program(name: str) -> str:
    """The path of a program of ansible-core: next to this Python, else on the search path. Raises RefusedError."""
    from shutil import which

    local = Path(sys.executable).parent / name
    found = str(local) if os.access(local, os.X_OK) else which(name)
    if found is None:
        raise RefusedError(
            msg("{name} is not installed here, and advisor fleet runs on it", name=name),
            hint="pip install 'ansible-core>=2.15' or your distribution's package ansible-core; on this machine alone",
        )
    return found


def read_hosts(inventory: Inventory) -> tuple[InventoryHost, ...]:
    """The hosts that the inventory and its limit name, in the order of the inventory.

    Raises InvalidInputError with Ansible's own words where a source cannot be read or parsed, where a limit names what
    is not there, and where no host is left; RefusedError where Ansible is not installed.
    """
    _check_sources(inventory)
    words = [find_ansible_program("ansible-inventory"), *source_words(inventory), "--list"]
    # An untouched password file of ansible.cfg is Ansible's to read; ours is not needed to list hosts.
    done = _run_inventory(words)
    warnings = _ansible_messages(done.stderr)
    where = ", ".join(inventory.sources)
    if done.returncode != 0:
        raise InvalidInputError(
            msg("inventory {where}: {summary}", where=where, summary=_first_reason(warnings)), hint=_HINT
        )
    ignored = [text for text in warnings if "could not match supplied host pattern" in text.lower()]
    if ignored:
        raise InvalidInputError(
            msg(
                "--limit {limit}: {ignored}: no such host or group in {where}",
                limit=inventory.limit,
                ignored=ignored[0].rpartition(": ")[2],
                where=where,
            ),
            hint=_HINT,
        )
    found = parse_inventory(done.stdout, where)
    if not found:
        limited = f"--limit {inventory.limit} leaves no host of it" if inventory.limit else "it names no host"
        raise InvalidInputError(msg("inventory {where}: {limited}", where=where, limited=limited), hint=_HINT)
    return found


_HINT: Final = N_("ansible-inventory -i INVENTORY --graph shows what Ansible makes of it")


def source_words(inventory: Inventory) -> list[str]:
    """The arguments of any of Ansible's programs that name the inventory."""
    words = [word for source in inventory.sources for word in ("-i", source)]
    return [*words, "--limit", inventory.limit] if inventory.limit else words


def ansible_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for Ansible: the caller's own, so that ansible.cfg and ANSIBLE_… hold, and what we must rely on.

    A source that cannot be parsed is an error, not a warning; nothing is coloured; Python uses UTF-8.
    """
    return {
        **os.environ,
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "LC_ALL": os.environ.get("LC_ALL") or "C.UTF-8",
        **(more or {}),
    }


def parse_inventory(text: str, where: str = "inventory") -> tuple[InventoryHost, ...]:
    """What ``ansible-inventory --list`` printed, as hosts. Raises InvalidInputError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            msg("{where}: ansible-inventory printed no JSON: {error}", where=where, error=error)
        ) from error
    if not isinstance(document, dict):
        raise InvalidInputError(msg("{where}: ansible-inventory printed no inventory", where=where))
    meta = document.get("_meta")
    variables = meta.get("hostvars") if isinstance(meta, dict) else None
    variables = variables if isinstance(variables, dict) else {}
    members = {
        group: _string_items(body.get("hosts"))
        for group, body in document.items()
        if isinstance(body, dict) and group != "_meta"
    }
    parents = _group_parents(document)
    direct: dict[str, list[str]] = {}
    for group, names in members.items():
        for name in names:
            direct.setdefault(name, []).append(group)
    return tuple(_make_host(name, _all_groups(groups, parents), variables.get(name)) for name, groups in direct.items())


def _string_items(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _group_parents(document: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group, body in document.items():
        for child in _string_items(body.get("children")) if isinstance(body, dict) else ():
            found.setdefault(child, []).append(group)
    return found


def _all_groups(direct: Iterable[str], parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    found: list[str] = []
    waiting = list(direct)
    while waiting:
        group = waiting.pop(0)
        if group not in found:
            found.append(group)
            waiting += parents.get(group, ())
    return tuple(group for group in found if group not in ("all", "ungrouped"))


def _make_host(name: str, groups: tuple[str, ...], variables: object) -> InventoryHost:
    known = variables if isinstance(variables, dict) else {}
    _check_name(name, "name")
    said = known.get("ansible_host", known.get("ansible_ssh_host", name))
    address = said if isinstance(said, str) and "{{" not in said else None
    if address is not None:
        _check_name(address, f"ansible_host of {name}")
    port = known.get("ansible_port", known.get("ansible_ssh_port"))
    user = known.get("ansible_user")
    connection = known.get("ansible_connection")
    return InventoryHost(
        name,
        address,
        int(port) if isinstance(port, int | str) and re.fullmatch(r"[0-9]{1,5}", str(port)) else None,
        user if isinstance(user, str) else None,
        connection if isinstance(connection, str) else None,
        groups,
        {key: str(value) for key, value in known.items() if _is_plain(key, value)},
    )


def _is_plain(key: object, value: object) -> bool:
    return isinstance(key, str) and not key.startswith("ansible_") and isinstance(value, str | int)


def _check_name(text: str, what: str) -> None:
    # A name that begins with a dash would be an option of ssh.
    if not text or text.startswith("-") or not text.isprintable():
        raise InvalidInputError(msg("inventory: {what} {text!r}: no host can be called so", what=what, text=text[:60]))
    file_name(text)


def find_duplicates(found: Iterable[InventoryHost]) -> tuple[tuple[str, ...], ...]:
    """Names that lead to one address and port: each such group, in the order of the inventory."""
    places: dict[tuple[str, int, str], list[str]] = {}
    for host in found:
        if host.address is not None:
            place = host.address.lower().rstrip("."), host.port or 22, host.connection or "ssh"
            places.setdefault(place, []).append(host.name)
    return tuple(tuple(names) for names in places.values() if len(names) > 1)


def _check_sources(inventory: Inventory) -> None:
    if not inventory.sources:
        raise InvalidInputError("no inventory", hint="-i INVENTORY: a file, a directory, or host1,host2,")
    for source in inventory.sources:
        if "," not in source and not os.path.exists(source):
            raise InvalidInputError(
                msg("{source}: no such inventory", source=source),
                hint="a list of hosts ends in a comma: -i host1,host2 or -i host1,",
            )


def _run_inventory(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=ansible_environment(),
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidInputError(
            msg("inventory: Ansible did not read it within {seconds:g} s", seconds=_SECONDS)
        ) from error
    except ValueError as error:
        raise InvalidInputError(msg("inventory: {error}", error=error)) from error


_START: Final = lazy_regex(r"^\[(?:WARNING|ERROR|DEPRECATION WARNING)\]: ?|^ERROR! ", re.MULTILINE)


def _ansible_messages(stderr: str) -> list[str]:
    """Ansible's warnings and errors, each with the lines that belong to it, without those that say nothing."""
    texts = [text.strip() for text in _START.split(stderr)]
    return [text for text in texts if text]


def _first_reason(messages: Sequence[str]) -> str:
    """The first reason that names a place (file and line), and the last word on it."""
    if not messages:
        return "Ansible could not read it"
    lines: list[str] = []
    # A fault of Ansible's own (a broken ansible.cfg) comes with a traceback, which says nothing to a user.
    for line in "\n".join(messages).partition("\nTraceback (most")[0].splitlines():
        if line.strip() and line not in lines and "caused by" not in line:
            lines.append(line)
    return "\n".join(lines[:_MESSAGE_LINES])
