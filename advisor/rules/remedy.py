"""What to do about a finding, as data: values to set, profiles to plan, commands to run, decisions to make."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

Operator = Literal["exactly", "at-least", "at-most"]
_SIGNS: Final[Mapping[Operator, str]] = {"exactly": "=", "at-least": ">=", "at-most": "<="}
_OPERATOR_TEXTS: Final[Mapping[Operator, str]] = {"exactly": "to", "at-least": "to at least", "at-most": "to at most"}
_SHOWN: Final = 6


class SetTunable(msgspec.Struct, frozen=True, tag="set-tunable", tag_field="kind"):
    """A tunable (id as in `advisor.tunables`) and the value that it should have."""

    tunable: str
    value: str
    operator: Operator = "exactly"

    @property
    def argument(self) -> str:
        """As ``advisor plan`` and ``advisor apply`` take it: ``sysctl:vm.swappiness=10``; not quoted."""
        return f"{self.tunable}{_SIGNS[self.operator]}{self.value}"


class PlanProfile(msgspec.Struct, frozen=True, tag="plan-profile", tag_field="kind"):
    """A profile that holds the remedy, with the parameters that this host needs."""

    profile: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        """The command that plans it, safe to paste into a shell whatever the names hold."""
        given = (f"--set {shlex.quote(f'{name}={value}')}" for name, value in self.settings)
        return " ".join(["advisor plan", shlex.quote(self.profile), *given])


class RunCommand(msgspec.Struct, frozen=True, tag="run-command", tag_field="kind"):
    """One line of shell for the user to run. ``purpose``: what it does or shows; ``interrupts``: what it disturbs."""

    command: str
    purpose: str = ""
    interrupts: str = ""


class Decide(msgspec.Struct, frozen=True, tag="decide", tag_field="kind"):
    """What only a person can decide or do."""

    text: str


Remedy = SetTunable | PlanProfile | RunCommand | Decide


def set_sysctl(key: str, value: object, operator: Operator = "exactly") -> SetTunable:
    """A sysctl set to a value, or to the numbers of a tuple."""
    return SetTunable(f"sysctl:{key}", " ".join(map(str, value)) if isinstance(value, tuple) else str(value), operator)


def set_queues(disks: Iterable[str], attribute: str, value: object) -> tuple[SetTunable, ...]:
    """An attribute of the block queue of each disk, by kernel name."""
    return tuple(SetTunable(f"block:{disk}:{attribute}", str(value)) for disk in disks)


def list_commands(remedy: Iterable[Remedy]) -> tuple[str, ...]:
    """The commands of a remedy, advisor's own first, each one line that can be pasted into a shell."""
    values = [shlex.quote(one.argument) for one in remedy if isinstance(one, SetTunable)]
    profiles = [one.command for one in remedy if isinstance(one, PlanProfile)]
    others = [one.command for one in remedy if isinstance(one, RunCommand)]
    return (*([f"advisor apply {' '.join(values)}"] if values else ()), *profiles, *others)


def describe_remedy(remedy: Iterable[Remedy]) -> str:
    """What to do, in sentences without the commands."""
    texts = [*_describe_values(remedy)]
    for one in remedy:
        if isinstance(one, PlanProfile):
            texts.append(f"plan the profile {one.profile}")
        elif isinstance(one, Decide):
            texts.append(one.text)
        elif isinstance(one, RunCommand) and one.purpose:
            texts.append(one.purpose)
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in texts)


def _describe_values(remedy: Iterable[Remedy]) -> Iterator[str]:
    """``set vm.swappiness to 10``; devices that get the same value share a text."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in remedy:
        if isinstance(one, SetTunable):
            _, _, rest = one.tunable.partition(":")
            device, _, leaf = rest.rpartition(":")
            alike.setdefault((leaf, f"{_OPERATOR_TEXTS[one.operator]} {one.value}"), []).append(device)
    for (leaf, value), devices in alike.items():
        more = f" and {len(devices) - _SHOWN} more" if len(devices) > _SHOWN else ""
        where = f" of {', '.join(devices[:_SHOWN])}{more}" if any(devices) else ""
        yield f"set {leaf}{where} {value}"
