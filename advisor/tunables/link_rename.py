"""Probes and steps of a link under another name of it."""

from __future__ import annotations

import re

import msgspec

from advisor.host import Probe, ReadCommand, ReadEthtool, ReadFile, ReadIrqs, RunCommand, Step, WriteFile
from advisor.host.patterns import lazy_regex
from advisor.host.steps import SetEthtool, SetIrqs, SetMtu, SetQdisc, SetTxqueuelen

_PLACE = lazy_regex(r"(/sys/class/net|/proc/sys/net/(?:ipv[46]/(?:conf|neigh)|mpls/conf))/([^/]+)(/.*)", re.DOTALL)

_replace = msgspec.structs.replace


def renamed_probe(probe: Probe, old: str, new: str) -> Probe:
    """``probe`` as it is to be asked where the link ``old`` is named ``new``."""
    match probe:
        case ReadFile(path):
            return _replace(probe, path=_rename_path(path, old, new))
        case ReadCommand(argv):
            return _replace(probe, argv=_rename_argv(argv, old, new))
        case ReadEthtool(link) | ReadIrqs(link):
            return _replace(probe, link=new) if link == old else probe


def renamed_step(step: Step, old: str, new: str) -> Step:
    """``step`` as it is to be done where the link ``old`` is named ``new``."""
    match step:
        case WriteFile(path):
            return _replace(step, path=_rename_path(path, old, new))
        case RunCommand(argv):
            return _replace(step, argv=_rename_argv(argv, old, new))
        case SetMtu(link) | SetTxqueuelen(link) | SetEthtool(link) | SetQdisc(link) | SetIrqs(link):
            return _replace(step, link=new) if link == old else step
    return step


def _rename_path(path: str, old: str, new: str) -> str:
    found = _PLACE.fullmatch(path)
    return f"{found[1]}/{new}{found[3]}" if found and found[2] == old else path


def _rename_argv(argv: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    """ip(8) and tc(8) take the name behind ``dev``, ethtool(8) behind its option."""
    return tuple(
        new if word == old and (argv[place - 1] == "dev" or (argv[0] == "ethtool" and place == 2)) else word
        for place, word in enumerate(argv)
    )
