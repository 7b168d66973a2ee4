"""What a profile declares, in words: wanted values, parameters, conditions, budgets and proof."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.planning.guards import LLT_SHARE, REFUSE_SHARE, WARN_SHARE
from advisor.profiles.profile import KEEP, Computed, Condition, Parameter, Profile, ProofDeclaration, Wanted
from advisor.tunables.kind import Sense

_SENSES: Mapping[Sense, str] = {
    "exactly": "",
    "at-least": "at least ",
    "at-most": "at most ",
    "within": "within ",
    "keep": "as it is: ",
}

GUARDS: Mapping[str, str] = {
    "socket-memory": (
        f"Refused where the sockets in use could fill more than {REFUSE_SHARE:.0%} of the available memory; "
        f"the plan says so from {WARN_SHARE:.0%} on."
    ),
    "llt-memory": f"Refused where LLT's queues could take more than {LLT_SHARE:.0%} of the available memory.",
}

TOGGLES: Mapping[str, str] = {
    "T0": "It is switched on and off freely between the measurements.",
    "T1": "It acts on new sockets, sessions or mounts: each measurement must reconnect or remount.",
    "T2": "Each switch interrupts the link, which needs --allow-link-flap.",
    "T3": "It cannot be switched freely: measured before, with it, and after it.",
}


def wanted_value(profile: Profile, wanted: Wanted) -> str:
    """``at least 8388608``: the value with the defaults of the parameters, in the sense that it is wanted."""
    if wanted.sense == "keep":
        return "as it is"
    value = fill_template(profile, wanted.value if isinstance(wanted.value, str) else _computed_words(wanted.value))
    return "as it is, unless asked for" if value == KEEP else _sense_words(wanted) + value


def fill_template(profile: Profile, template: str) -> str:
    """The template with the defaults of the parameters; a place without one stays, ``{link}``."""

    def default(place: re.Match[str]) -> str:
        parameter = profile.parameters.get(place[1])
        return place[0] if parameter is None or parameter.default in (None, ()) else str(parameter.default)

    return re.sub(r"\{(\w+)\}", default, template)


def _computed_words(value: Computed) -> str:
    if value.placement == "unit":
        return "bound to the node of its own devices"
    if value.placement == "cpus":
        return "the CPUs of its device's node"
    if value.placement == "node":
        return "the node of its targets"
    if value.huge_pages == "iris":
        return "the pages that hold globals, routines and gmheap of every IRIS instance, and 5 % more"
    if value.llt == "ports":
        return "what is reserved already, and LLT's ports"
    if value.llt == "mtu":
        return "what the link below carries, less the headers"
    if value.of == "llt-default":
        return f"{value.multiply} × LLT's default"
    return f"{value.multiply} × the value before advisor first changed it"


def _sense_words(wanted: Wanted) -> str:
    if not isinstance(wanted.sense, tuple):
        return _SENSES[wanted.sense]
    if len(set(wanted.sense)) == 1:
        return f"each field {_SENSES[wanted.sense[0]]}"
    return f"({', '.join(wanted.sense)}) "


def parameter_words(parameter: Parameter) -> str:
    """``whole number from 1280 to 65535; default 9000``."""
    kinds = {"integer": "whole number", "word": "word", "names": "names, separated by commas"}
    low, high = parameter.minimum, parameter.maximum
    parts = [
        kinds[parameter.type] + (("" if low is None else f" from {low}") + ("" if high is None else f" to {high}"))
    ]
    if parameter.choices:
        parts[0] = f"one of {', '.join(parameter.choices)}"
    default = parameter.default
    if default not in (None, ()):
        parts.append(f"default {', '.join(default) if isinstance(default, tuple) else default}")
    return "; ".join(parts)


def condition_words(condition: Condition) -> str:
    """``llt.running is-not false``: the fact and what must hold of it."""
    value = condition.value
    shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"{condition.fact} {condition.op} {shown}".rstrip()


def proof_words(proof: ProofDeclaration) -> str:
    """How a gain is measured, in sentences."""
    sentences = [TOGGLES[proof.toggle]]
    if proof.network:
        sentences.append("A target that is not reached over a network is refused.")
    if proof.place_fio:
        sentences.append("fio then runs on the node of the target's device.")
    if proof.settle_seconds:
        sentences.append(f"{proof.settle_seconds:g} s are given to settle.")
    return " ".join(sentences)
