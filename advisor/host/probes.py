"""How a live value is read, as data: observed here, rendered as shell by ``advisor.script``.

A probe names a file or a command, and a *form* that reduces what it gives to one canonical line:

``words``      all white space folded to single blanks (``4096\\t131072\\t6291456`` → ``4096 131072 6291456``)
``flow:NAME``  the value of NAME in what ``lltconfig -F query`` prints, whatever the spacing
``unit-numa``  NUMAPolicy, NUMAMask and CPUAffinity in what ``systemctl show`` prints
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from advisor.host.missing import Missing

if TYPE_CHECKING:
    from advisor.host.machine import Host

# InfoScale 7.4.2 prints the receive-side name so; Veritas' own documents spell it rporthighwater.
FLOW_ALIASES = {"rporthiswater": "rporthighwater"}


class ReadFile(msgspec.Struct, frozen=True, tag="file"):
    """A kernel attribute."""

    path: str
    form: str = "words"


class ReadCommand(msgspec.Struct, frozen=True, tag="command"):
    """Standard output of a command that must return 0."""

    argv: tuple[str, ...]
    form: str = "words"


Probe = ReadFile | ReadCommand


def observe(host: Host, probe: Probe) -> str | Missing:
    """The live value in canonical form, or why there is none."""
    match probe:
        case ReadFile(path, form):
            text = host.read(path)
        case ReadCommand(argv, form):
            done = host.run(argv)
            if isinstance(done, Missing):
                return done
            if not done.ok:
                return Missing("unreadable", f"{argv[0]} returned {done.rc}: {done.stderr.strip() or 'no message'}")
            text = done.stdout
    if isinstance(text, Missing):
        return text
    # What it stood for is lost, so that it could not be put back.
    return Missing("unreadable", "not UTF-8") if "\ufffd" in text else reduce(text, form)


def reduce(text: str, form: str) -> str | Missing:
    """One canonical line from what a file or command gave."""
    if form == "words":
        return " ".join(text.split())
    if form.startswith("flow:"):
        return _flow_value(text, form.removeprefix("flow:"))
    if form == "unit-numa":
        return _unit_numa(text)
    raise AssertionError(f"unknown probe form {form!r}")


def parse_flow(text: str) -> dict[str, int]:
    """Name and value of each line ``name = value`` that ``lltconfig -F query`` prints; unknown names are kept.

    The spelling ``rporthiswater`` of InfoScale 7.4.2 is returned as ``rporthighwater``.
    """
    values: dict[str, int] = {}
    for line in text.splitlines():
        found = re.fullmatch(r"\s*([A-Za-z_][\w-]*)\s*[=:]\s*(-?\d{1,18})\s*", line, re.ASCII)
        if found:
            values[FLOW_ALIASES.get(found[1], found[1])] = int(found[2])
    return values


def _flow_value(text: str, name: str) -> str | Missing:
    value = parse_flow(text).get(name)
    return Missing("absent", f"{name} is not among the values that lltconfig prints") if value is None else str(value)


def _unit_numa(text: str) -> str | Missing:
    properties = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if properties.get("LoadState") != "loaded":
        return Missing("absent", "systemd knows no such unit")
    from_node = properties.get("CPUAffinityFromNUMA") == "yes"
    cpus = "numa" if from_node else properties.get("CPUAffinity", "").replace(" ", ",")
    policy = properties.get("NUMAPolicy", "")
    policy = "default" if policy in ("", "n/a") else policy
    return f"NUMAPolicy={policy} NUMAMask={properties.get('NUMAMask', '').replace(' ', ',')} CPUAffinity={cpus}"
