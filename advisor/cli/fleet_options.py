"""What the commands of ``advisor fleet`` have in common: options, the inventory that they mean, and progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.output import say

if TYPE_CHECKING:
    from advisor.fleet.inventory import Inventory

InventorySources = Annotated[
    list[str],
    typer.Option("-i", "--inventory", metavar="INVENTORY", help="As for Ansible: a file, a directory, or host1,host2,"),
]
Limit = Annotated[str | None, typer.Option("--limit", metavar="PATTERN", help="Only these hosts or groups of it.")]
Forks = Annotated[int, typer.Option("--forks", min=1, max=1000, metavar="N", help="So many hosts at a time.")]
Timeout = Annotated[
    int, typer.Option("--timeout", min=1, max=86400, metavar="SECONDS", help="Wait for one host no longer than this.")
]
Become = Annotated[
    bool | None,
    typer.Option(
        "--become/--no-become", help="Be root there (or not), whatever the inventory says.", show_default=False
    ),
]
AskBecomePass = Annotated[
    bool, typer.Option("--ask-become-pass", "-K", help="Ask once for the password of sudo; it is nowhere written down.")
]
User = Annotated[str | None, typer.Option("--user", "-u", metavar="NAME", help="Log in as this user.")]
PrivateKey = Annotated[
    Path | None,
    typer.Option("--private-key", metavar="FILE", help="Log in with this key.", exists=True, dir_okay=False),
]
ExtraVars = Annotated[
    list[str] | None, typer.Option("-e", "--extra-vars", metavar="K=V|@FILE", help="Variables, as for Ansible.")
]
Keep = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="DIR", help="Keep the captures here, not in the state directory."),
]

FORKS = 20
TIMEOUT_SECONDS = 180


def the_inventory(
    sources: list[str],
    limit: str | None,
    *,
    become: bool | None = None,
    ask_become_pass: bool = False,
    user: str | None = None,
    private_key: Path | None = None,
    extra_vars: list[str] | None = None,
) -> Inventory:
    """The inventory and how to get in. Asks for the password of sudo where that is wanted. Raises UsageError."""
    from advisor.fleet.inventory import Access, Inventory

    key = None if private_key is None else str(private_key.absolute())
    password = _password() if ask_become_pass else None
    is_root = True if ask_become_pass and become is None else become
    return Inventory(tuple(sources), limit, Access(is_root, user, key, password, tuple(extra_vars or ())))


def _password() -> str:
    from getpass import getpass

    from advisor.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("--ask-become-pass: there is no terminal to ask on")
    password = getpass("password for sudo: ")
    if not password:
        raise UsageError("--ask-become-pass: no password was given")
    return password


def show_progress(what: str) -> Callable[[int, int], None]:
    """Tells ``37 of 100 hosts WHAT`` on standard error: a line that is rewritten on a terminal, else a few whole lines.

    Never raises: a terminal that has gone silences it.
    """
    stream = sys.stderr
    if stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return _rewritten(what)
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        # Ten lines at most, however many hosts: a log is read later.
        if done and (done == total or done * 10 // total > told):
            told = done * 10 // total
            say(f"{done} of {total} hosts {what}")

    return tell


def _rewritten(what: str) -> Callable[[int, int], None]:
    import contextlib

    def tell(done: int, total: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            end = "\n" if done == total else ""
            sys.stderr.write(f"\r\x1b[K{done} of {total} hosts {what}{end}")
            sys.stderr.flush()

    return tell
