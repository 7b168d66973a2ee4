"""The record of a kind of tunable: all that the catalogue, the docs, the capture and the conflicts know of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from advisor.host import Host
from advisor.tunables.tunable import Tunable

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
