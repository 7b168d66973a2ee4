"""How each kind of tunable is read, set and kept: told by asking the tunables themselves on an example host, so that
the words cannot drift from what apply does."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from advisor.host import Host, MemoryFiles, Missing, Probe, ReadCommand, ReadFile
from advisor.host.commands import NoCommands
from advisor.report.terms import EFFECTS, RISKS
from advisor.script import hand_command, shell_quote
from advisor.tunables import FileEdit, Tunable, tunable
from advisor.tunables.llt import LLTTAB

# One id and value per kind. A kind that is not named here is told without its example.
EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "sysctl": ("sysctl:net.core.rmem_max", "8388608"),
    "link": ("link:eth1:mtu", "9000"),
    "irq": ("irq:42:affinity", "0-3"),
    "llt": ("llt:highwater", "2000"),
    "unit": ("unit:beegfs-storage.service:numa", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
}


class Handling(msgspec.Struct, frozen=True):
    """What a tunable is and does. ``set_by`` and ``line`` hold an example value.

    ``by_file``: no step sets the live value, its file does once ``set_by`` has made the owner read it. ``persists_in``
    and ``line`` are None where no file keeps it; ``persist_note`` then says why.
    """

    what: str
    read_by: str
    set_by: str
    by_file: bool
    persists_in: str | None
    persist_note: str | None
    line: str | None
    takes_effect: str
    risk: str


def handling(identity: str, *, profile: str = "PROFILE", value: str | None = None) -> Handling:
    """How this tunable is handled, told with ``value`` or an example. Raises UsageError for what is no tunable."""
    one = tunable(identity)
    shown = _example_value(one, value)
    edit = one.edit(_example_host(), shown, profile=profile) if shown else Missing("absent", "unknown")
    return Handling(
        what=kind_words(one),
        read_by=_read_by(one.probe),
        set_by=_set_by(one, shown, edit),
        by_file=bool(shown) and not one.steps(shown),
        persists_in=edit.path if isinstance(edit, FileEdit) else None,
        persist_note=edit.why if isinstance(edit, Missing) else None,
        line=_line(edit) if isinstance(edit, FileEdit) else None,
        takes_effect=EFFECTS[one.takes_effect],
        risk=RISKS[one.risk],
    )


def _example_value(one: Tunable, value: str | None) -> str:
    """The first that the tunable takes at all; empty where none is known."""
    candidates = (value, "VALUE", EXAMPLES.get(one.id.partition(":")[0], ("", None))[1])
    return next((each for each in candidates if each is not None and one.check(each) is None), "")


def kind_words(one: Tunable) -> str:
    """What the kind's own module says that it is."""
    paragraph = _docstring(one).partition("\n\n")[0]
    return _plain(paragraph.partition(" — ")[2])


def form_words(one: Tunable) -> str:
    """``sysctl:KEY``: how ids of the kind are made."""
    return _plain(_docstring(one).partition(" — ")[0])


def more_words(one: Tunable) -> str:
    """The paragraphs that follow, or nothing."""
    return _plain(_docstring(one).partition("\n\n")[2])


def _docstring(one: Tunable) -> str:
    return inspect.cleandoc(sys.modules[type(one).__module__].__doc__ or "")


def _plain(text: str) -> str:
    words = " ".join(text.replace("``", "").split())
    return words[:1].upper() + words[1:] if " " in words else words


def _example_host() -> Host:
    """A host on which every kind can be kept: with LLT, and with a udev that reads .link files."""
    return Host(MemoryFiles({LLTTAB: b"", "/etc/systemd/network/README": b""}), NoCommands())


def _read_by(probe: Probe) -> str:
    match probe:
        case ReadFile(path):
            return f"cat {shell_quote(path)}"
        case ReadCommand(argv):
            return " ".join(shell_quote(word) for word in argv)


def _set_by(one: Tunable, value: str, edit: FileEdit | Missing) -> str:
    reload = edit.reload if isinstance(edit, FileEdit) else ()
    steps = one.steps(value) or reload if value else ()
    return "; ".join(hand_command(step) for step in steps)


def _line(edit: FileEdit) -> str:
    match edit.form:
        case "sysctl":
            return f"{edit.key} = {edit.value}"
        case "llttab-flow":
            return f"set-flow {edit.key}:{edit.value}"
        case "section":
            return " ".join((f"[{edit.key.partition('/')[0]}]", edit.value))
