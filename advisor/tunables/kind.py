"""The record of a kind of tunable: all that the catalogue, the docs, the capture and the conflicts know of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal, Self

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit, Persisted
from advisor.tunables.preflight import Preflight

# The contract of every kind of tunable.

_SHOWN = 40
# A tab parts the numbers of a sysctl; U+FFFD stands where bytes were no text.
_NO_TEXT = lazy_regex(r"[\0-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
NUMBERS = lazy_regex(r"-?[0-9]{1,20}(?:[ \t]+-?[0-9]{1,20})*")
_COUNT = lazy_regex(r"[0-9]{1,20}")

Risk = Literal["none", "link", "restart"]
Sense = Literal["exactly", "at-least", "at-most", "within", "keep"]
Effect = Literal["now", "new-sockets", "new-links", "remount", "service-restart", "reboot"]


class Tunable(msgspec.Struct, frozen=True):
    """One thing that can be set; base of every kind. Values are canonical single-line strings, as `probe` gives them.

    It takes effect at once and disturbs nobody, unless the kind says otherwise. A kind gives ``id_pattern``, the
    pattern of what follows its name in an id, with the fields in groups, and ``id_hint``, how to write one; or its own
    ``parse``. ``holds_count``: whether it is a number from 0 on; what is no number is then never taken for its live
    value.
    """

    kind: ClassVar[str]
    id_pattern: ClassVar[re.Pattern[str]]
    id_hint: ClassVar[str]
    accepted: ClassVar[re.Pattern[str]]
    """Pattern of its values, and ``wrong``: why another cannot be one."""
    wrong: ClassVar[str]
    holds_count: ClassVar[bool] = False
    id_form: ClassVar[str]
    """The id, with the fields of ``self`` in it."""

    @classmethod
    def parse(cls, rest: str) -> Self:
        """The tunable of what follows ``KIND:`` in an id. Raises UsageError for another form, and where none is
        offered."""
        found = cls.id_pattern.fullmatch(rest)
        if found is None:
            raise UnknownIdError(rest, kind=cls.kind, hint=cls.id_hint)
        one = cls(**found.groupdict())
        if one.why_refused:
            raise RefusedIdError(rest, kind=cls.kind, hint=one.why_refused)
        return one

    @property
    def why_refused(self) -> str | None:
        """Why no profile sets it, though it has the form of its kind; None where one may."""
        return None

    @property
    def id(self) -> str:
        return self.id_form.format(self=self)

    @property
    def risk(self) -> Risk:
        return "none"

    @property
    def takes_effect(self) -> Effect:
        return "now"

    @property
    def probe(self) -> Probe:
        """How the live value is read."""
        raise NotImplementedError

    def can_read(self, live: str) -> bool:
        """Whether ``live`` can be a value of it, where a number is wanted."""
        return not self.holds_count or _COUNT.fullmatch(live) is not None

    def check_value(self, value: str) -> str | None:
        """Why ``value`` cannot be a value of this tunable at all; None where it can."""
        return None if self.accepted.fullmatch(value) else self.wrong

    def explain_misfit(self, host: Host, value: str) -> str:
        """Why a value that is one comes to nothing on this host; empty where it does not."""
        return ""

    def make_steps(self, value: str) -> tuple[Step, ...]:
        """What to do now. None at all where only the persisted file and its reload bring the value about."""
        raise NotImplementedError

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Persisted | Missing:
        """What to leave on disk so that the value is there after a reboot; Missing says why nothing can be."""
        raise NotImplementedError

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        """What a change depends on besides its own value. Reads the host, changes nothing. ``after`` is a value that
        `check_value` has let pass."""
        return Preflight()

    def list_values(self, host: Host) -> tuple[str, ...]:
        """The values that the host's kernel offers, or that there are at all; none where they are many or unknown."""
        return ()

    def choose_value(self, host: Host, live: str, wanted: str) -> str:
        """``wanted`` as this host has it; as it stands where the host says nothing of it."""
        return wanted

    def measure_twin(self, host: Host, live: str) -> tuple[str, str] | Missing | None:
        """What another tunable that holds the value in another unit amounts to in this one's, and in words; Missing
        where that cannot be known, None where this one holds the value itself."""
        return None

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        """``missing`` with a reason that says more."""
        return missing

    def explain_given(self, host: Host, wanted: str) -> str | None:
        """Why nothing is to be done for ``wanted``, whatever the probe reads; None where the value decides."""
        return None

    @property
    def restart_command(self) -> RunCommand | None:
        """The command that makes a service read the value; None where that is more than one command, or none."""
        return None


class StoredValue(Tunable, frozen=True):
    """A value without steps: only the persisted file brings it about."""

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return ()


def explain_misread(one: Tunable, live: str, wanted: str) -> str | None:
    """Why the live value is none of this tunable's, and so never restored; None where it may be one.

    Where a number is wanted, the kernel's own value is a number too, in ASCII digits; -5 is no count of anything.
    """
    if _NO_TEXT.search(live):
        return f"not a value: {live[:_SHOWN]!r}"
    is_wrong = NUMBERS.fullmatch(wanted) and not one.can_read(live)
    return f"not a number: {live[:_SHOWN]!r}" if is_wrong else None


class UnknownIdError(UsageError):
    """An id that no kind understands."""

    def __init__(self, rest: str, *, kind: str = "", hint: str) -> None:
        super().__init__(f"{f'{kind}:{rest}' if kind else rest!r} is not a tunable", hint=hint)


class RefusedIdError(UsageError):
    """An id that has the form of its kind, and is not offered."""

    def __init__(self, rest: str, *, kind: str, hint: str) -> None:
        super().__init__(f"{f'{kind}:{rest}'!r} is not a tunable here", hint=hint)


Writer = Literal["tuned", "saptune", "power-profiles-daemon", "irqbalance", "network-manager"]
Namespace = Literal["ipc", "mnt", "net", "user", "uts"]
"""A kind of namespace (namespaces(7)) of which each has a value of its own."""
Argv = tuple[str, ...]
Files = tuple[tuple[str, tuple[str, ...]], ...]
"""Directories (patterns of the shell) and the names of files in them."""

LAST = 1_000_000
NOT_MEASURED = "It was not measured on this host."


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """What a capture takes of a host for a kind, in addition to what the facts read.

    ``files``: their content; ``configuration``: the names, and the content of the files that match; ``listed``:
    directories, by the names in them; ``marked``: paths that only have to exist. ``link_commands`` run for each link
    (``{link}``), ``port_commands`` for each link with a device, ``root_commands`` as root only. ``unit_properties`` are
    asked of each loaded unit. ``values``: ids that imported profiles usually set, each with a value that it takes; a
    snapshot reads what a plan for them reads.
    """

    files: Files = ()
    configuration: Files = ()
    listed: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    link_commands: tuple[Argv, ...] = ()
    port_commands: tuple[Argv, ...] = ()
    root_commands: tuple[Argv, ...] = ()
    system_commands: tuple[Argv, ...] = ()
    unit_properties: tuple[str, ...] = ()
    values: Mapping[str, str] = {}


def no_files(one: Tunable) -> Mapping[str, bytes]:
    return {}


def no_devices(host: Host) -> Iterable[str]:
    return ()


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of tunable, declared as ``KIND`` in the module of its name (``pm-qos`` in ``pm_qos.py``).

    ``parse`` makes a tunable of what follows ``NAME:`` in an id and raises UsageError. ``noun`` names one value.
    ``examples``: ids, each with a value; the first stands for the kind, the others for its
    further forms. ``capture`` is None where the facts read all that a plan needs, or where an id may name any file.
    ``written_by``: other programs that set values of the kind. ``order``: the place in documents.
    """

    name: str
    parse: Callable[[str], Tunable]
    noun: str
    examples: tuple[tuple[str, str], ...]
    capture: Capture | None
    written_by: frozenset[Writer]
    order: int = LAST
    sysfs: tuple[tuple[str, str], ...] = ()
    """Files below /sys that the kind sets: pattern of the path, and the id with the pattern's groups (``\\1``)."""
    units: tuple[tuple[str, str], ...] = ()
    """Pattern of an id, and the unit of its value."""
    namespaces: tuple[tuple[str, Namespace], ...] = ()
    """Pattern of an id, and the namespace whose value it is; what no pattern fits belongs to the whole host."""
    harm: str = ""
    """When any value does harm, where tables/attributes.ini has no record of it (English: it becomes part of imported
    profiles)."""
    slow: str = ""
    """Pattern of what acts on caches, reclaim or the placement of pages: its effect builds up over minutes."""
    example_files: Callable[[Tunable], Mapping[str, bytes]] = no_files
    """Files of a host on which the tunable can be persisted, for the docs."""
    devices: Callable[[Host], Iterable[str]] = no_devices
    """The devices of a host that have values of the kind, by the name that ids have; none for values of the host."""
    by_hand: Callable[[Host, str, str], str] | None = None
    """For a kind that only a person sets: the commands, from a host, the id without its kind, and a value."""


def kind_words(one: Tunable) -> str:
    """What the kind's own module says that it is."""
    return plain_text(own_docstring(one).partition("\n\n")[0].partition(" — ")[2])


def own_docstring(one: Tunable) -> str:
    """The docstring of a kind, or of its module: how its ids are made, what it is, and more paragraphs."""
    import inspect

    return inspect.cleandoc(vars(type(one)).get("__doc__") or sys.modules[type(one).__module__].__doc__ or "")


def plain_text(text: str) -> str:
    """A part of it as a sentence."""
    words = " ".join(text.replace("``", "").split())
    return words[:1].upper() + words[1:] if " " in words else words
