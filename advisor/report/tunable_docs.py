"""How each kind of tunable is read, set and kept: asked of the tunables themselves on an example host, so that
the words cannot drift from what apply does."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.settings import find_setting
from advisor.host import Host, MemoryFiles, Missing, Probe, ReadCommand, ReadEthtool, ReadFile, ReadIrqs
from advisor.host.commands import NoCommands
from advisor.report.terms import EFFECTS, RISKS
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import hand_command
from advisor.tunables import FileEdit, Persisted, Tunable, all_kinds, find_kind, parse_tunable
from advisor.tunables.edits import line_setting
from advisor.tunables.kind import Namespace, kind_words, own_docstring, plain_text
from advisor.tunables.link import EXAMPLE_ADDRESS
from advisor.tunables.llt import LLTTAB

BELONGS_TO: Mapping[Namespace | None, str] = {
    None: "the host: a container cannot set it",
    "ipc": "the IPC namespace: each container or pod may have its own",
    "mnt": "the mount namespace: each container has files of its own",
    "net": "the network namespace: each container or pod may have its own",
    "user": "the user namespace",
    "uts": "the UTS namespace: each container or pod may have its own",
}
"""In which namespace there is one value of a kind, by `namespace_of`."""
# Values of which each tunable takes one at least, for those of which no better one is known.
_ANY = ("64", "1", "0-3", "write back", "never", "on", "fq")


class Handling(msgspec.Struct, frozen=True):
    """What a tunable is and does. ``set_by`` and ``line`` hold an example value.

    ``by_file``: no step sets the live value, its file does once ``set_by`` has made the owner read it. ``by_hand``:
    nothing here sets it. ``persists_in`` and ``line`` are None where no file keeps it; ``persist_note`` then says why.
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
    by_hand: bool = False

    def setting(self, quote: str = "") -> str:
        """How it is set, the commands in ``quote``."""
        if self.by_hand:
            return f"hand alone: {self.set_by}"
        typed = f"{quote}{self.set_by}{quote}" if self.set_by else ""
        if not self.by_file:
            return typed
        return f"its file, then {typed}" if typed else "its file alone"


def describe_handling(
    identity: str, *, profile: str = "PROFILE", value: str | None = None, host: Host | None = None
) -> Handling:
    """How this tunable is handled, on ``host`` or an example, shown with ``value``, an example or ``VALUE``. Raises
    UsageError for what is no tunable."""
    one, kind = parse_tunable(identity), find_kind(identity)
    record = find_setting(identity.removeprefix("sysctl:"))
    by_hand = kind.by_hand if kind else None
    # The first that the tunable takes at all; empty where none is known.
    alike = (shown for identity, shown in list_examples() if type(parse_tunable(identity)) is type(one))
    candidates = (value, "VALUE", *(("1",) if record and record.unit == "switch" else ()), *alike, *_ANY)
    shown = next((each for each in candidates if each is not None and one.check_value(each) is None), "")
    edit = one.make_edit(host or _example_host(one), shown, profile=profile) if shown else Missing("absent", "unknown")
    set_by, line = _set_by(one, shown, edit), _edit_line(edit) if isinstance(edit, FileEdit) else None
    if line and host is None:
        line = line.replace(EXAMPLE_ADDRESS, "ADDRESS")
    if record and value is None and record.unit != "switch" and identity not in dict(list_examples()):
        # A number of another key would be taken for advice.
        set_by, line = set_by.replace(f" {shown}", " VALUE"), line and line.replace(f" {shown}", " VALUE")
    return Handling(
        what=kind_words(one),
        read_by=_read_by(one.probe),
        set_by=set_by,
        by_file=bool(shown) and not one.make_steps(shown) and by_hand is None,
        persists_in=None if isinstance(edit, Missing) else edit.path,
        persist_note=edit.why if isinstance(edit, Missing) else None,
        line=line,
        takes_effect=EFFECTS[one.takes_effect],
        risk=RISKS[one.risk],
        by_hand=by_hand is not None,
    )


def list_examples() -> tuple[tuple[str, str], ...]:
    """An id and a value of each form of each kind, in the order of documents."""
    return tuple(example for kind in all_kinds() for example in kind.examples)


def form_words(one: Tunable) -> str:
    """``sysctl:KEY``: how ids of the kind are made."""
    return plain_text(own_docstring(one).partition(" — ")[0])


def more_words(one: Tunable) -> str:
    """The paragraphs that follow, or nothing."""
    return plain_text(own_docstring(one).partition("\n\n")[2])


def _example_host(one: Tunable) -> Host:
    """A host on which this one can be kept: with LLT, and with a udev that knows its device."""
    shared = ("/usr/lib/tmpfiles.d/README", "/usr/lib/modules-load.d/README", "/etc/default/grub", LLTTAB)
    udev = b"E:ID_SERIAL=SERIAL\nE:MD_UUID=UUID\n"
    files: Mapping[str, bytes] = {**dict.fromkeys(shared, b""), "/run/udev/data/b8:0": udev}
    kind = find_kind(one.id)
    files = {**files, **(kind.example_files(one) if kind else {})}
    return Host(MemoryFiles(files), NoCommands())


def _read_by(probe: Probe) -> str:
    match probe:
        case ReadFile(path):
            return f"cat {shell_quote(path)}"
        case ReadCommand() | ReadEthtool():
            return " ".join(shell_quote(word) for word in probe.argv)
        case ReadIrqs(link):
            return f"grep {shell_quote(link)} /proc/interrupts"


def _set_by(one: Tunable, value: str, edit: FileEdit | Persisted | Missing) -> str:
    kind = find_kind(one.id)
    if kind is not None and kind.by_hand is not None:
        # A host of which nothing is known: what the plan says depends on its boot loader.
        return kind.by_hand(_example_host(one), one.id.partition(":")[2], value)
    reload = edit.reload if isinstance(edit, FileEdit) else ()
    steps = one.make_steps(value) or reload if value else ()
    return "; ".join(hand_command(step) for step in steps)


def _edit_line(edit: FileEdit) -> str:
    match edit.form:
        case "sysctl":
            return f"{edit.key} = {edit.value}"
        case "llttab-flow":
            return f"set-flow {edit.key}:{edit.value}"
        case "section":
            return " ".join((f"[{edit.key.partition('/')[0]}]", edit.value))
        case "multipath":
            section, _, key = edit.key.rpartition("/")
            return f"{section} {{ {key} {edit.value} }}"
        case "shell":
            return f"{edit.key}={edit.value}"
        case "interfaces":
            return f"iface {edit.key.partition(' ')[0]}: mtu {edit.value}"
        case "netplan":
            return f"network: {{{edit.key.replace('/', ': {')}: {{mtu: {edit.value}}}}}}}"
        case _:
            return line_setting(edit.form, edit.key, edit.value).line.replace("\n", "; ")
