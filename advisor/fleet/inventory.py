"""Which hosts an inventory names, asked of Ansible itself (``ansible-inventory --list``), in its words where it fails.

Whatever is an inventory to Ansible is one here: INI, YAML, a directory, a script, a plugin, ``host1,host2,``. Host
names and variables are data: they become arguments of Ansible and names of files, never words of a shell.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from advisor.errors import InvalidInputError, RefusedError
from advisor.fleet import OWN_FORKS
from advisor.host.numbers import group_pairs
from advisor.host.patterns import lazy_regex

_SECONDS = 300.0  # a plugin may have to ask a cloud
_LONGEST_NAME = 200  # of a quoted name and what is put behind it, a file name takes 255 bytes
_MESSAGE_LINES = 12


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
    private_key: str | None = None
    ssh_arguments: str = ""
    """What Ansible gives ssh for this host besides: a jump host, for example."""
    needs_ansible: bool = False
    """Whether a command by hand has to go through Ansible, too: what it needs is known to Ansible alone."""


def file_name(host: str) -> str:
    """A host's name as the name of a file: quoted as in a URL, ``/`` and a leading dot included.

    Raises InvalidInputError for one that is too long for a file system.
    """
    quoted = quote(host.encode("utf-8", "surrogatepass"), safe="")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if not quoted or len(quoted) > _LONGEST_NAME:
        raise InvalidInputError(f"inventory: {host[:60]!r}: too long a name for a host")
    return quoted


def find_ansible_program(name: str) -> str:
    """The path of a program of ansible-core: next to this Python, else on the search path. Raises RefusedError."""
    from shutil import which

    local = Path(sys.executable).parent / name
    found = str(local) if os.access(local, os.X_OK) else which(name)
    if found is None:
        raise RefusedError(
            f"{name} is not installed here, and advisor fleet runs on it",
            hint="pip install 'ansible-core>=2.15' or your distribution's package ansible-core; on this machine alone",
        )
    return found


def read_hosts(inventory: Inventory) -> tuple[InventoryHost, ...]:
    """The hosts that the inventory and its limit name, in the order of the inventory.

    Raises InvalidInputError with Ansible's own words where a source cannot be read or parsed, where a limit names what
    is not there, and where no host is left; RefusedError where Ansible is not installed.
    """
    if not inventory.sources:
        raise InvalidInputError("no inventory", hint="-i INVENTORY: a file, a directory, or host1,host2,")
    for source in inventory.sources:
        if "," not in source and not os.path.exists(source):
            raise InvalidInputError(
                f"{source}: no such inventory", hint="a list of hosts ends in a comma: -i host1,host2 or -i host1,"
            )
    words = [find_ansible_program("ansible-inventory"), *source_words(inventory), "--list"]
    # An untouched password file of ansible.cfg is Ansible's to read; ours is not needed to list hosts.
    done = _run_inventory(words)
    # Ansible's warnings and errors, each with the lines that belong to it, without those that say nothing.
    texts = [text.strip() for text in _START.split(done.stderr)]
    warnings = [text for text in texts if text]
    where = ", ".join(inventory.sources)
    if done.returncode != 0:
        raise InvalidInputError(f"inventory {where}: {_first_reason(warnings)}", hint=_HINT)
    ignored = [text for text in warnings if "could not match supplied host pattern" in text.lower()]
    if ignored:
        raise InvalidInputError(
            f"--limit {inventory.limit}: {ignored[0].rpartition(': ')[2]}: no such host or group in {where}", hint=_HINT
        )
    found = parse_inventory(done.stdout, where)
    if not found:
        limited = f"--limit {inventory.limit} leaves no host of it" if inventory.limit else "it names no host"
        raise InvalidInputError(f"inventory {where}: {limited}", hint=_HINT)
    return found


_HINT = "ansible-inventory -i INVENTORY --graph shows what Ansible makes of it"


def source_words(inventory: Inventory) -> list[str]:
    """The arguments of any of Ansible's programs that name the inventory."""
    words = [word for source in inventory.sources for word in ("-i", source)]
    return [*words, "--limit", inventory.limit] if inventory.limit else words


def configured_forks() -> int:
    """How many hosts at a time ansible.cfg or ANSIBLE_FORKS names, asked of Ansible itself; else `OWN_FORKS`."""
    words = [find_ansible_program("ansible-config"), "dump", "--only-changed"]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            env=ansible_environment({"PAGER": "cat"}), timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return OWN_FORKS
    # DEFAULT_FORKS(/etc/ansible/ansible.cfg) = 50
    found = re.search(r"^DEFAULT_FORKS\(.*\) = ([0-9]{1,6})$", done.stdout, re.MULTILINE | re.ASCII)
    return max(1, int(found[1])) if found else OWN_FORKS


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
        raise InvalidInputError(f"{where}: ansible-inventory printed no JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidInputError(f"{where}: ansible-inventory printed no inventory")
    meta = document.get("_meta")
    variables = meta.get("hostvars") if isinstance(meta, dict) else None
    variables = variables if isinstance(variables, dict) else {}
    members = {
        group: _string_items(body.get("hosts"))
        for group, body in document.items()
        if isinstance(body, dict) and group != "_meta"
    }
    parents = group_pairs(
        (child, group)
        for group, body in document.items()
        if isinstance(body, dict)
        for child in _string_items(body.get("children"))
    )
    direct = group_pairs((name, group) for group, names in members.items() for name in names)
    return tuple(_make_host(name, _all_groups(groups, parents), variables.get(name)) for name, groups in direct.items())


def _string_items(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _all_groups(direct: Iterable[str], parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    found = []
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
    # Of two variables for the same thing Ansible takes the one with ssh in its name.
    said = known.get("ansible_ssh_host", known.get("ansible_host", name))
    address = said if isinstance(said, str) and "{{" not in said else None
    if address is not None:
        _check_name(address, f"ansible_host of {name}")
    user = _literal(known, "ansible_ssh_user", "ansible_user")
    if user is not None:
        _check_name(user, f"ansible_user of {name}")
    port = known.get("ansible_ssh_port", known.get("ansible_port"))
    connection = known.get("ansible_connection")
    return InventoryHost(
        name,
        address,
        int(port) if isinstance(port, int | str) and re.fullmatch(r"[0-9]{1,5}", str(port)) else None,
        user,
        connection if isinstance(connection, str) else None,
        groups,
        {key: str(value) for key, value in known.items() if _is_plain(key, value)},
        _literal(known, "ansible_ssh_private_key_file", "ansible_private_key_file"),
        " ".join(filter(None, (_literal(known, f"ansible_ssh_{part}args") for part in ("", "common_", "extra_")))),
        _needs_ansible(known),
    )


_LOGIN = ("host", "user", "port", "private_key_file", "args", "common_args", "extra_args")


def _needs_ansible(known: Mapping[str, object]) -> bool:
    """Whether Ansible alone can get in as root: a template decides how, or root is not reached by sudo."""
    names = [f"ansible_{middle}{part}" for middle in ("", "ssh_") for part in _LOGIN]
    texts = [known.get(name) for name in (*names, "ansible_connection", "ansible_become_method")]
    method = known.get("ansible_become_method")
    return method not in (None, "sudo", "ansible.builtin.sudo") or any(
        isinstance(one, str) and "{{" in one for one in texts
    )


def _literal(known: Mapping[str, object], *names: str) -> str | None:
    """The first of these variables that is a text and no template. ``-4`` and the like are read as numbers."""
    said = (str(one) for one in map(known.get, names) if isinstance(one, str | int))
    return next((one for one in said if "{{" not in one), None)


def rollback_command(host: InventoryHost, inventory: Inventory, script: str) -> str:
    """What is typed on the controller to roll a host back by its transaction script, the way Ansible gets in."""
    from advisor.shell.quote import shell_quote

    if not _is_over_ssh(host):
        # Its script module needs nothing on the host, and whatever connection the inventory names.
        return _ansible_command(host, inventory, "ansible.builtin.script", f"{shell_quote(script)} rollback")
    return f"{_root_login(host, inventory)}sh -s rollback <{shell_quote(script)}"


def command_on(host: InventoryHost, inventory: Inventory, command: str) -> str:
    """What is typed on the controller to run a plain command as root on a host, the way Ansible gets in."""
    if not _is_over_ssh(host):
        return _ansible_command(host, inventory, "ansible.builtin.command", command)
    return _root_login(host, inventory) + command


def _is_over_ssh(host: InventoryHost) -> bool:
    return not host.needs_ansible and host.connection in (
        None,
        "ssh",
        "smart",
        "ansible.builtin.ssh",
        "paramiko",
        "paramiko_ssh",
    )


def _ansible_command(host: InventoryHost, inventory: Inventory, module: str, arguments: str) -> str:
    from advisor.shell.quote import shell_quote

    words = ["ansible", *source_words(msgspec.structs.replace(inventory, limit=None)), host.name]
    words += ["--become"] if inventory.access.become is not False else []
    words += ["--user", inventory.access.user] if inventory.access.user else []
    words += ["--private-key", inventory.access.private_key] if inventory.access.private_key else []
    return " ".join(map(shell_quote, [*words, "-m", module, "-a", arguments]))


def _root_login(host: InventoryHost, inventory: Inventory) -> str:
    """The words before a command of root over ssh, a space behind them."""
    from advisor.shell.quote import shell_quote

    access = inventory.access
    user, key = access.user or host.user, access.private_key or host.private_key
    words = ["ssh"]
    words += ["-p", str(host.port)] if host.port not in (None, 22) else []
    words += ["-i", os.path.expanduser(key)] if key else []
    if host.ssh_arguments:
        # Split as Ansible does it; quoted again, so that nothing in it reaches the shell.
        with contextlib.suppress(ValueError):
            words += shlex.split(host.ssh_arguments)
    words += [f"{user}@{host.address or host.name}" if user else host.address or host.name]
    return " ".join(map(shell_quote, words)) + (" " if user == "root" else " sudo ")


def _is_plain(key: object, value: object) -> bool:
    return isinstance(key, str) and not key.startswith("ansible_") and isinstance(value, str | int)


def _check_name(text: str, what: str) -> None:
    # A name that begins with a dash would be an option of ssh.
    if not text or text.startswith("-") or not text.isprintable():
        raise InvalidInputError(f"inventory: {what} {text[:60]!r}: no host can be called so")
    file_name(text)


def find_duplicates(found: Iterable[InventoryHost]) -> tuple[tuple[str, ...], ...]:
    """Names that lead to one address and port: each such group, in the order of the inventory."""
    places = group_pairs(
        ((host.address.lower().rstrip("."), host.port or 22, host.connection or "ssh"), host.name)
        for host in found
        if host.address is not None
    )
    return tuple(tuple(names) for names in places.values() if len(names) > 1)


def named_hosts(inventory: Inventory) -> tuple[InventoryHost, ...]:
    """The hosts of an inventory, each once. Raises RefusedError where two names lead to one host: it would be changed
    twice at a time."""
    found = read_hosts(inventory)
    for names in find_duplicates(found):
        raise RefusedError(
            f"{', '.join(names)} are one host: the same address and port", hint="leave all but one out, by --limit"
        )
    return found


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
        raise InvalidInputError(f"inventory: Ansible did not read it within {_SECONDS:g} s") from error
    except ValueError as error:
        raise InvalidInputError(f"inventory: {error}") from error


_START = lazy_regex(r"^\[(?:WARNING|ERROR|DEPRECATION WARNING)\]: ?|^ERROR! ", re.MULTILINE)


def _first_reason(messages: Sequence[str]) -> str:
    """The first reason that names a place (file and line), and the last word on it."""
    if not messages:
        return "Ansible could not read it"
    lines = []
    # A fault of Ansible's own (a broken ansible.cfg) comes with a traceback, which says nothing to a user.
    for line in "\n".join(messages).partition("\nTraceback (most")[0].splitlines():
        if line.strip() and line not in lines and "caused by" not in line:
            lines.append(line)
    return "\n".join(lines[:_MESSAGE_LINES])
