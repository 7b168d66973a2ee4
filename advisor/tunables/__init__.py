"""What can be set: one file per kind, and the catalogue that turns an id such as ``sysctl:vm.swappiness`` into one.

A tunable is an address with four verbs: how it is read (`probe`), what to do now (`make_steps`), what to leave on disk
(`make_edit`), and when it takes effect. Probe, steps and edit are data: apply, the dry run and the rollback script use
the same ones.
"""

from __future__ import annotations

from advisor.tunables.catalogue import all_kinds, find_kind, namespace_of, parse_tunable
from advisor.tunables.edits import FileEdit, Persisted, apply_edit, mentions_key
from advisor.tunables.kind import Capture, Effect, Kind, Risk, Tunable

__all__ = [
    "Capture",
    "Effect",
    "FileEdit",
    "Kind",
    "Persisted",
    "Risk",
    "Tunable",
    "all_kinds",
    "apply_edit",
    "find_kind",
    "mentions_key",
    "namespace_of",
    "parse_tunable",
]
