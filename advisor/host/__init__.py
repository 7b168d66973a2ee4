"""The only door to a machine: files, commands, ethtool queries, and the steps that change it.

Nothing outside this package opens ``/proc`` or ``/sys``, starts a process (the fio runner of ``proof`` excepted,
which needs its own kill rules) or speaks netlink. A live host, a directory with a captured ``/proc`` and ``/sys``,
and a snapshot archive answer the same questions, so everything above this package runs on all three alike.

Every read has three outcomes: a value, *absent*, or *unreadable* with the reason; the last two are `Missing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.host.commands import CommandRunner, Completed, LiveCommands, NoCommands, RecordedCommands
from advisor.host.files import DirectoryFiles, FileSource, MemoryFiles
from advisor.host.machine import Host, live_host, tree_host
from advisor.host.missing import Missing
from advisor.host.numbers import count_noun, is_count, is_hexadecimal
from advisor.host.patterns import lazy_regex

if TYPE_CHECKING:
    from advisor.host.probes import Probe, ReadCommand, ReadEthtool, ReadFile, ReadIrqs, observe
    from advisor.host.steps import (
        PutFile,
        RunCommand,
        SetEthtool,
        SetIrqs,
        SetMtu,
        SetQdisc,
        SetTxqueuelen,
        Step,
        WriteFile,
    )
else:

    def __getattr__(name: str) -> Any:
        # What plans are made of; a scan does without.
        if name not in __all__:
            raise AttributeError(name)
        from advisor.host import probes, steps

        return getattr(steps if hasattr(steps, name) else probes, name)


__all__ = [
    "CommandRunner",
    "Completed",
    "DirectoryFiles",
    "FileSource",
    "Host",
    "LiveCommands",
    "MemoryFiles",
    "Missing",
    "NoCommands",
    "Probe",
    "PutFile",
    "ReadCommand",
    "ReadEthtool",
    "ReadFile",
    "ReadIrqs",
    "RecordedCommands",
    "RunCommand",
    "SetEthtool",
    "SetIrqs",
    "SetMtu",
    "SetQdisc",
    "SetTxqueuelen",
    "Step",
    "WriteFile",
    "count_noun",
    "is_count",
    "is_hexadecimal",
    "lazy_regex",
    "live_host",
    "observe",
    "tree_host",
]
