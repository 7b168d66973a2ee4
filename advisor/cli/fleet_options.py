"""What the commands of ``advisor fleet`` have in common: options, and the inventory that they mean."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from typer import Option

if TYPE_CHECKING:
    from advisor.fleet.inventory import Access, Inventory

InventorySources = Annotated[
    list[str],
    Option(
        "-i",
        "--inventory",
        metavar="INVENTORY",
        help="Read this inventory, as Ansible does: a file, a directory, or h1,h2,",
    ),
]
HostSources = Annotated[
    list[str] | None,
    Option(
        "-i",
        "--inventory",
        metavar="INVENTORY",
        help="Read this inventory, as Ansible does: a file, a directory, or h1,h2,",
    ),
]
Limit = Annotated[str | None, Option("--limit", metavar="PATTERN", help="Use only these hosts or groups of it.")]
Forks = Annotated[
    int,
    Option(
        "--forks",
        min=0,
        max=1000,
        metavar="N",
        help="Work on so many hosts at a time; 0: as ansible.cfg says, else 20.",
    ),
]
Timeout = Annotated[
    int, Option("--timeout", min=1, max=86400, metavar="SECONDS", help="Wait at most this long for one host.")
]
Keep = Annotated[
    Path | None, Option("-o", "--output", metavar="DIR", help="Store the captures here. Default: the state directory.")
]
MaxAge = Annotated[
    str | None,
    Option(
        "--max-age",
        metavar="30m|2h|SECONDS",
        help="Connect only to hosts whose stored capture is older, or that have none.",
    ),
]
Kept = Annotated[bool, Option("--kept", help="Read the stored captures; connect to no host.")]


class Login(Protocol):
    """Makes the inventory that a command means of its sources and limit, with the login that the command was given."""

    def __call__(self, sources: list[str] | None, limit: str | None) -> Inventory: ...


def logs_in(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of a login, after its own; its parameter ``login`` is a `Login` made of them."""
    own = inspect.signature(command, eval_str=True)
    # what it returns is a class that is imported only when it is used: its name alone does here
    options = inspect.signature(_make_access, locals={"Access": object}, eval_str=True).parameters

    @functools.wraps(command)
    def run(**given: Any) -> int:
        access = {name: given.pop(name) for name in options}

        def login(sources: list[str] | None, limit: str | None) -> Inventory:
            from advisor.fleet.inventory import Inventory

            return Inventory(tuple(sources or ()), limit, _make_access(**access))

        return command(**given, login=login)

    kept = [one for one in own.parameters.values() if one.name != "login"]
    run.__signature__ = own.replace(parameters=[*kept, *options.values()])  # type: ignore[attr-defined]
    return run


def _make_access(
    become: Annotated[
        bool | None,
        Option(
            "--become/--no-become",
            help="Become root there (or not). Default: as the inventory says.",
            show_default=False,
        ),
    ] = None,
    ask_become_pass: Annotated[
        bool, Option("--ask-become-pass", "-K", help="Prompt once for the password of sudo; it is stored nowhere.")
    ] = False,
    user: Annotated[str | None, Option("--user", "-u", metavar="NAME", help="Log in as this user.")] = None,
    private_key: Annotated[
        Path | None, Option("--private-key", metavar="FILE", help="Log in with this key.", exists=True, dir_okay=False)
    ] = None,
    extra_vars: Annotated[
        list[str] | None, Option("-e", "--extra-vars", metavar="K=V|@FILE", help="Set variables, as for Ansible.")
    ] = None,
) -> Access:
    """How to get in. Asks for the password of sudo where that is wanted. Raises UsageError."""
    from advisor.fleet.inventory import Access

    key = None if private_key is None else str(private_key.absolute())
    password = _ask_password() if ask_become_pass else None
    is_root = True if ask_become_pass and become is None else become
    return Access(is_root, user, key, password, tuple(extra_vars or ()))


def _ask_password() -> str:
    from getpass import getpass

    from advisor.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("--ask-become-pass: no terminal for the prompt")
    password = getpass("password for sudo: ")
    if not password:
        raise UsageError("--ask-become-pass: no password was given")
    return password
